"""Tables that belong to a part: `part = "name"` and keys that the part itself declares (`PARAMETERS`)."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from hil_server import registry
from hil_server.config.checks import Table, join, line, missing, must_be, unknown_key
from hil_server.errors import ConfigurationError
from hil_server.values import Document, Given


@lru_cache
def part_table(role: str, name: str) -> Table:
    """The checker of a part's own keys."""
    return Table(registry.part(role, name).PARAMETERS)


def check_part(role: str, name: str, keys: Given, file: str = "configuration", path: str = "") -> Document:
    """The part's keyword arguments as they go into its constructor: `keys` checked, every required one there, defaults filled in.

    Raises ConfigurationError with all faults."""
    table = part_table(role, name)
    found = table.faults(keys, file, path or f"{role}.{name}")
    if found:
        raise ConfigurationError(found)
    return table.with_defaults(keys)


def part_faults(table: object, role: str, file: str, path: str, shared: Iterable[str] = ()) -> list[str]:
    """Lines for a part's table as it stands in a file. shared: keys of the file itself that stand beside the part's own."""
    if not isinstance(table, dict):
        return [must_be(file, path, "a table with part = ...", table)]
    known = sorted(registry.parts(role))
    limit = "one of " + (", ".join(known) or "nothing: this role has no part yet")
    name = table.get("part")
    if name is None:
        return [missing(file, join(path, "part"), "key", f"{limit} (name of the part)"), *_stray(table, file, path)]
    if not isinstance(name, str):
        return [must_be(file, join(path, "part"), limit, name)]
    try:
        checker = part_table(role, name)
    except ConfigurationError as error:
        if name in known:
            return [f"{file}: {join(path, 'part')}: {error}"]
        return [_unknown_part(file, join(path, "part"), name, known, limit)]
    own = {key: value for key, value in table.items() if key != "part" and key not in shared}
    # a part made of parts of its own role
    inner = {key: value for key, value in own.items() if key in checker.parameters and isinstance(value, dict) and "part" in value}
    return checker.faults(own, file, path) + [f for key, value in inner.items() for f in part_faults(value, role, file, join(path, key))]


def trial_faults(part: Callable[..., object], keys: Document, file: str, path: str) -> list[str]:
    """Builds the part once for trial: keys that are good one by one may still contradict each other. Its words name the key."""
    try:
        part(**keys)
    except (ValueError, TypeError) as error:
        return [f"{file}: {path or 'table'}: {' '.join(str(error).split())}"]
    return []


def _unknown_part(file: str, path: str, name: str, known: list[str], limit: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return line(file, path, "no such part", name, limit=limit, unit="-") + (f", did you mean {close[0]!r}?" if close else "")


def _stray(table: Document, file: str, path: str) -> list[str]:
    """With `part` misspelt the key that was meant is worth a line of its own."""
    from difflib import get_close_matches

    return [unknown_key(file, join(path, key), table[key], key, ["part"]) for key in get_close_matches("part", table, n=1)]
