"""Limits that only become stricter: a stand file says how wide each may be, a test, `--set` and `tune` may narrow it.

Which keys are limits, and which way is stricter, stands beside each in its declaration (`Parameter.stricter`). What a limit may be at most
is the stand file's value; of a part's key the stand file has a table with the name of the role (`[safety]`, `[wrench]`). Where it says
nothing, the default is the widest.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hil_server.config import extends, files, tables, toml_text
from hil_server.config.checks import join, line, part_table
from hil_server.errors import ConfigurationError
from hil_server.values import Document, Given, Value
from rt_kernels.parameters import REQUIRED, Parameter
from rt_kernels.stages import STAGE_ROLES

GUARDED_ROLES = ("commands", *STAGE_ROLES)  # a stand file may have a table of limits for each
# Tables of a stand file of whose content its checksum is made: what says how far, how fast and how hard the machine may go, and which
# devices it has.
SIGNED = ("platform", "mounting", "limits", *GUARDED_ROLES, "drives", "wrench_sensor", "mechanism_signals")
WAYS = {"lower": "at most", "higher": "at least", "equal": "exactly"}


def limits_of(declared: Iterable[Parameter]) -> dict[str, Parameter]:
    """Those of the declared keys that are limits."""
    return {p.key: p for p in declared if p.stricter is not None}


def is_wider(p: Parameter, value: Value, widest: Value | None) -> bool:
    """Whether a value of the limit `p`, or one of its numbers, goes beyond `widest`. None: the stand has no such limit."""
    if widest is None:
        return p.stricter == "equal"
    if isinstance(value, list | tuple) and isinstance(widest, list | tuple):
        return len(value) != len(widest) or any(is_wider(p, one, other) for one, other in zip(value, widest, strict=True))
    if p.stricter != "equal" and isinstance(value, int | float) and isinstance(widest, int | float):
        return value > widest if p.stricter == "lower" else value < widest
    return value != widest


def take_from_stand(role: str, table: Document, stand: Given) -> None:
    """The stand's limits into a part's table where the test says nothing."""
    for key, value in stand.get(role, {}).items():
        table.setdefault(key, copy.deepcopy(value))


def stand_table_faults(role: str, part: str, table: Given, file: str, path: str) -> list[str]:
    """What is wrong with a table of limits for a part in a stand file: limits of the part that the test has, each by its declaration."""
    declared = part_table(role, part)
    found = declared.faults(table, file, path)
    if found:
        return found
    known = limits_of(declared.parameters.values())
    return [line(file, join(path, key), "not a limit: it belongs into the test", value, limit=", ".join(known) or "no key of this part",
                 unit="-") for key, value in table.items() if key not in known]  # fmt: skip


def refused(p: Parameter, value: object, widest: object, file: str, path: str, stand: str, key: str) -> str:
    """The line for a limit that is wider than the stand allows. stand: its file; key: where the limit stands in it."""
    return line(file, path, "wider than the stand allows", value, limit=f"{WAYS[str(p.stricter)]} {_shown(widest)}", unit=p.unit) + (
        f"; a test may only make a limit stricter: omit it, or change {key} in {stand} and sign that file")


def compare(document: Given, own: Given, where: Callable[[str], tuple[str, str]], stand_file: str,
            platform: Iterable[Parameter]) -> tuple[list[str], list[Document]]:  # fmt: skip
    """Lines for every limit of `document` that is wider than the stand file has it, and what is narrower: {key, value, limit, unit}.

    own: the stand file's tables as they stand in it, before `--set`; platform: keys of [platform]."""
    faults: list[str] = []
    narrower: list[Document] = []

    def hold(p: Parameter, given: object, allowed: object, path: str, key: str) -> None:
        value, widest = _plain(given), None if allowed is REQUIRED else _plain(allowed)
        if value is None or value == widest:
            return
        if is_wider(p, value, widest):
            faults.append(refused(p, value, widest, *where(path), stand_file, key))
        else:
            narrower.append({"key": path, "value": value, "unit": p.unit} | ({} if widest is None else {"limit": widest}))

    for role in GUARDED_ROLES:
        table, bounds = document[role], own.get(role, {})
        for key, p in limits_of(part_table(role, table["part"]).parameters.values()).items():
            hold(p, table.get(key, p.default), bounds.get(key, p.default), f"{role}.{key}", f"{role}.{key}")
    for name, declared in (("limits", tables.LIMITS), ("platform", platform)):
        for key, p in limits_of(declared).items():
            hold(p, document["stand"][name].get(key, p.default), own[name].get(key, p.default), f"stand.{name}.{key}", f"{name}.{key}")
    return faults, narrower


# ------------------------------------------------------------------------------------------------------------------ signature
def checksum(stand: Given) -> str:
    """`sha256:` and 64 hexadecimal digits over the signed tables of a stand file and of those it extends: independent of order,
    comments and the way a number is written."""
    text = json.dumps({name: _canonical(stand[name]) for name in SIGNED if name in stand}, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def changed_keys(stand: Given, own: Given, platform: Iterable[Parameter]) -> list[str]:
    """Keys of signed tables, limits apart, that are not as in the stand file: `--set` made another stand of it."""
    limits = {"limits": limits_of(tables.LIMITS), "platform": limits_of(platform)}
    return [f"stand.{name}.{key}" for name in SIGNED
            for key in dict.fromkeys((*own.get(name, {}), *stand.get(name, {}))) if key not in limits.get(name, ())
            and _canonical(own.get(name, {}).get(key)) != _canonical(stand.get(name, {}).get(key))]  # fmt: skip


def signature(own: Given, changed: Sequence[str], narrower: Sequence[Given]) -> Document:
    """What a log keeps of a stand file's limits: owner, date and checksum; `state`: "signed", "unsigned" (no [safety_record]) or "changed"
    (after it was signed); `set_keys`: of `changed_keys`; `narrower`: limits that the test has stricter, of `compare`. own: the tables as
    they stand in the file."""
    record = own.get("safety_record", {})
    computed = checksum(own)
    state = "unsigned" if not record else "signed" if record.get("checksum") == computed else "changed"
    return {"owner": record.get("owner", ""), "date": record.get("date", ""), "checksum": computed, "state": state,
            "set_keys": list(changed), "narrower": [dict(one) for one in narrower]}  # fmt: skip


def sign(file: Path, owner: str, date: str) -> tuple[str, dict[str, str]]:
    """Writes the table [safety_record] into a stand file, in the place of the former one; it is of all values, those of a file that is
    extended too. Returns the state before (of `signature`) and the table. Raises ConfigurationError for a file that is no stand or cannot
    be written, and as `with_table`."""
    found = extends.whole(file, "stand")
    own, text = found.tables, found.texts[file]
    if "platform" not in own or not owner.strip() or not date.strip():
        what = "no [platform]: not a stand" if "platform" not in own else "who signs, and the date, must not be empty"
        raise ConfigurationError(f"{file}: {what}")
    before = str(signature(own, (), ())["state"])
    record = {"owner": owner.strip(), "date": date.strip(), "checksum": checksum(own)}
    signed = toml_text.with_table(text, "safety_record", record, file)
    try:
        with files.whole(file) as unfinished:
            unfinished.write_text(signed, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be written: {error.strerror}") from None
    return before, record


def demand_signed(record: Given, file: str) -> None:
    """For a stand of hardware. record: of `signature`. Raises ConfigurationError when its limits are unsigned, or changed after signing."""
    if record["state"] != "signed":
        what = "the limits of this stand are not signed" if record["state"] == "unsigned" else "the limits were changed after signing"
        raise ConfigurationError(f"{file}: safety_record: {what}: check them, then hil-server sign {file} --owner 'YOUR NAME'")
    if record["set_keys"]:
        raise ConfigurationError([f"--set: {key}: belongs to the signed tables of a stand of hardware: change it in {file} and sign that "
                                  "file" for key in record["set_keys"]])  # fmt: skip


def in_words(record: Given) -> str:
    """A stand file's signature in one line."""
    if record["state"] == "unsigned":
        words = "limits of the stand: not signed"
    else:
        words = f"limits of the stand: signed by {record['owner']}, {record['date']}" + (
            f", {record['checksum'][:19]}" if record["state"] == "signed" else "; CHANGED after that")
    return words + (f"; changed by --set: {', '.join(record['set_keys'])}" if record["set_keys"] else "")


def narrower_in_words(one: Given) -> str:
    """A limit that the test has stricter than the stand."""
    unit = "" if one["unit"] == "-" else f" {one['unit']}"
    return f"{one['key']}: {_shown(one['value'])}{unit}, the stand allows " + (f"{_shown(one['limit'])}{unit}" if "limit" in one else "any")


def _canonical(value: object) -> object:
    """1, 1.0 and 10e-1 are one number."""
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(_plain(value)).lower()
