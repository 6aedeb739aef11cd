"""How a part declares its parameters. The declaration is the manual page of the part (`hil-server list ROLE NAME`), and of it the build
makes what a kernel needs to read and to tune them (`parameter_structs`).

A part has a class attribute `PARAMETERS`, a tuple of `Parameter`, and takes exactly these keys as keyword arguments; `AUX`, a tuple
of `Aux`, names its auxiliary channels; `COMMANDS`, a tuple of `Command`, says which commands it acts on (a command that no part of a run
declares is refused).

`checked` is the one function that holds values against a declaration and fills in the defaults: a constructor takes `**given` and reads
its values from `checked(self.PARAMETERS, given)`, so that no default stands twice. The loader of the configuration asks the same function
(as `faults`) about every table of a TOML file, and puts the file's name before each line.

`CONTEXT` (a tuple of names) lists what the part needs of the rest of the configuration: see `rt_kernels.context`.
    part_of         the class of a part by role and name, for a part that is made of others

What the rest of the program wants to know of a part the part declares too; it is nowhere known by its name. All are optional:

    guidance    FLOWN           True: operators fly it, its runs are rehearsals
                IN_AIR          True: the loop is never closed, the run identifies the drives (`schedule`, `lines`)
    dynamics    FREE_VEHICLES   True: both vehicles fly free; what a force does follows from their mass and inertia
                MANIPULATOR     True: an arm carries a vehicle; `model_tables(model, data)` gives the tables of its file
                FLIES           what of a craft beyond one rigid body it flies: words of `hil_server.config.crafts.flown`
    mechanisms  PICTURE         how it looks (see `rt_kernels.pictures`)
                LEDGER          its channels of energy: what was put in, and (..., ...) where it is or went
    any stage   LIVE            False: not for a stand that moves
                READS           key of "tables" -> function (row, folder) that gives the row with what stands in the file that it names
                FILES           keys that name files which stay outside of the configuration and the log: the loader finds them
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypedDict

REQUIRED = object()


@dataclass(frozen=True)
class Tunable:
    """A parameter with it can be changed during a run (rt_kernels/tuning.pyx).

    rate_per_s: how fast its value moves to a new one, in its own unit per second. phases: names of the phases in which it may change and
    moves, none: in every one. low, high: limits narrower than the parameter's own. of_configured: in a run no more than so many times the
    configured value. above, below: key beside which it stays on its side of half way between the two configured values.
    """

    rate_per_s: float
    phases: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    of_configured: float | None = None
    above: str = ""
    below: str = ""

    @property
    def narrowed(self) -> str:
        """What of a run's configuration narrows the limits further, in words."""
        times = {1.0: "", 2.0: "twice as "}.get(self.of_configured or 0.0, f"{self.of_configured} times as ")
        most = f"half way to {self.below}" if self.below else f"{times}configured" if self.of_configured else ""
        if self.above:
            return f"from half way to {self.above}" + (f" to {most}" if most else "")
        return f"no higher than {most}" if most else ""


@dataclass(frozen=True)
class Parameter:
    """One key of a part's table.

    kind: "float", "int", "bool", "str", "floats" (list of numbers), "ints", "rows" (list of lists of numbers), "table" (keys that no part
    declares), "tables" (list of such tables).
    low, high: inclusive limits of every number. shape: length of a list, or (rows, columns), None for any number of them. choices: allowed
    strings. default: the value of a key that is not given, None: the part does without. of: what each table of "tables" holds, None: keys
    that no part declares. tunable: how it can be changed during a run, None: not at all.
    stricter: of a limit, which way is stricter: "lower", "higher", or "equal" for what may not be changed at all; the stand file's value
    (where it has none, the default) is then the widest that a test, `--set` or `tune` can have. None: no limit.
    """

    key: str
    kind: str
    unit: str
    meaning: str
    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    shape: int | tuple[int | None, int | None] | None = None
    choices: tuple[str, ...] | None = None
    of: "tuple[Parameter, ...] | None" = None
    tunable: Tunable | None = None
    stricter: str | None = None

    @property
    def required(self) -> bool:
        """Whether the key must be given."""
        return self.default is REQUIRED


@dataclass(frozen=True)
class Aux:
    """One auxiliary channel of a part: `count` doubles from the offset the assembly gives it."""

    name: str
    unit: str
    meaning: str
    count: int = 1


class TunableEntry(TypedDict):
    """A tunable parameter as a log keeps it and a client receives it."""

    name: str
    unit: str
    low: float
    high: float
    rate_per_s: float
    phases: list[str]
    value: float
    meaning: str


@dataclass(frozen=True)
class TunedParameter:
    """A tunable parameter of one part as it was built: what the loop must know to change it, and what its users see.

    name: its key, with the name of the inner part before it where parts are made of others. low, high: limits in this run. value: as
    configured. offset, scale: the part's step reads value * scale from the double at this offset in bytes of its block, -1: nowhere.
    """

    name: str
    unit: str
    meaning: str
    low: float
    high: float
    rate_per_s: float
    phases: Sequence[str]
    value: float
    offset: int = -1
    scale: float = 1.0

    def entry(self) -> TunableEntry:
        """What a log keeps and a client receives: all but its memory address."""
        return {
            "name": self.name, "unit": self.unit, "low": self.low, "high": self.high, "rate_per_s": self.rate_per_s,
            "phases": list(self.phases), "value": self.value, "meaning": self.meaning,
        }  # fmt: skip


def tuned_parameter(
    declared: Iterable[Parameter], key: str, value: float, offset: int, low: float | None, high: float | None, scale: float
) -> TunedParameter | None:
    """The tunable parameter `key` of a part that was built with `value`. low, high: half way to another value; of a limit, no wider than
    `value`. None where the value is not within them. Raises ValueError for a key that is not declared tunable, or without limits."""
    p = next((p for p in declared if p.key == key), None)
    if p is None or p.tunable is None or p.kind != "float":
        raise ValueError(f"{key}: not declared as a tunable number")
    times = p.tunable.of_configured
    lows = [x for x in (p.low, p.tunable.low, low) if x is not None]
    highs = [x for x in (p.high, p.tunable.high, high, times and times * value) if x is not None]
    if not lows or not highs:
        raise ValueError(f"{key}: a tunable number needs limits")
    if p.stricter in ("lower", "equal"):
        highs.append(value)
    if p.stricter in ("higher", "equal"):
        lows.append(value)
    found = TunedParameter(p.key, p.unit, p.meaning, float(max(lows)), float(min(highs)), p.tunable.rate_per_s, p.tunable.phases,
                           float(value), offset, scale)  # fmt: skip
    return found if found.low <= found.value <= found.high and found.low < found.high else None


@dataclass(frozen=True)
class Command:
    """A command that a part acts on.

    name: of the table's `command`. phases: names of the phases in which it acts, none: in every one. numbers: what its first argument may
    be where the part knows (numbers of faults, of joints), None: whatever the command itself allows. acts: False for a part that only
    narrows what another part acts on. does: what it does in this part, where that is not the same in all, for who presses the button.
    names_of: attribute of the part that names what the first two arguments point to ("joints": "active yaw", ...: a name of the first one,
    then as many as it has, counted from 0); names: these, of a run. targets_of: attribute with the limits of the fourth argument for each
    of these names, by the third: (least, largest, unit, whose limit), None where it has no meaning; targets: these, of a run.
    """

    name: str
    phases: tuple[str, ...] = ()
    numbers: tuple[int, ...] | None = None
    acts: bool = True
    does: str = field(default="", compare=False)
    names_of: str = ""
    names: tuple[str, ...] | None = None
    targets_of: str = ""
    targets: tuple[Any, ...] | None = None


# ------------------------------------------------------------------------------------------------------- values against a declaration
def checked(declared: Iterable[Parameter], given: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The value of every declared key, in the order of the declaration: as given or its default.

    "float" comes back as float, "int" as int, "floats", "ints" and "rows" as lists of these; tuples, arrays and NumPy's numbers are
    taken as lists and numbers. A key whose default is None may be given as None. where: goes before each key in the words.

    Raises ValueError with all independent faults, each with key, value, limit and unit, separated by "; "."""
    values, found = _examined(declared, given, where)
    if found:
        raise ValueError("; ".join(found))
    return values


def faults(declared: Iterable[Parameter], given: Mapping[str, Any], where: str = "") -> list[str]:
    """What `checked` would raise, one line each; empty if nothing is wrong."""
    return _examined(declared, given, where)[1]


def must_be(p: Parameter, unit: bool = True) -> str:
    """What a value may be, in words: "a number within 0 ... 1 kg", "one of x, y"."""
    if p.choices:
        return "one of " + ", ".join(p.choices)
    if p.kind in ("floats", "ints", "rows"):
        rows, count = p.shape if isinstance(p.shape, tuple) else (None, p.shape)
        numbers = "whole numbers" if p.kind == "ints" else "numbers"
        words = f"{count} {numbers}" if count else numbers
        if p.kind == "rows":
            words = f"{f'{rows} ' if rows else ''}rows of {words}"
        return (words if count else f"a list of {words}") + _span(p, unit)
    return _KINDS[p.kind] + (_span(p, unit) if p.kind in ("float", "int") else "")


def unknown_key(key: str, value: Any, known: Iterable[str]) -> str:
    """The message for an undeclared key, with the one that may have been meant."""
    known = list(known)
    return f"unknown key, value {shown(value)}" + (did_you_mean(key, known) or f"; keys: {', '.join(known) or 'none'}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest of the known words as the rest of a message; empty where none is near."""
    close = get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def shown(value: Any) -> str:
    """A value as it stands in a message: as TOML writes true and false, at most 80 characters."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_KINDS = {"float": "a number", "int": "a whole number", "bool": "true or false", "str": "text", "table": "a table",
          "tables": "a list of tables"}  # fmt: skip
_LARGEST = sys.float_info.max


def _span(p: Parameter, unit: bool) -> str:
    """Limits and unit of the numbers."""
    word = p.unit[:1].isalpha() and not {",", " "} & set(p.unit)  # "kg" reads on, "m, N" and "1/s" stand in brackets
    of = "" if not unit or p.unit == "-" else f" {p.unit}" if word else f" ({p.unit})"
    if p.low is not None and p.high is not None:
        return f" within {p.low:g} ... {p.high:g}{of}"
    if p.low is None and p.high is None:
        return f" in{of}" if of and "(" not in of else of
    return (f" of at least {p.low:g}" if p.low is not None else f" of at most {p.high:g}") + of


def _examined(declared: Iterable[Parameter], given: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[str]]:
    """The values with defaults filled in, and a line for each that cannot be."""
    known = {p.key: p for p in declared}
    before = f"{where}." if where else ""
    found = [f"{before}{key}: {unknown_key(key, value, known)}" for key, value in given.items() if key not in known]
    values: dict[str, Any] = {}
    for key, p in known.items():
        if key in given and (given[key] is not None or p.default is not None):
            values[key] = _value(p, given[key], before + key, found)
        elif p.required:
            found.append(f"{before}{key}: required key is missing: {must_be(p)} ({p.meaning})")
        else:
            values[key] = None if p.default is None else _value(p, p.default, before + key, found)
    return values, found


def _value(p: Parameter, value: Any, path: str, found: list[str]) -> Any:
    """One value in its own type; a line to `found` for all that is wrong with it."""
    value = _plain(value)
    if p.kind in ("float", "int"):
        return _number(p, value, path, found)
    if p.kind in ("floats", "ints"):
        return _list(p, value, path, found)
    if p.kind == "rows":
        return _rows(p, value, path, found)
    if p.choices is not None:
        right = isinstance(value, str) and value in p.choices
    elif p.kind == "tables":
        right = _is_list(value) and all(isinstance(item, Mapping) for item in value)
    else:
        right = isinstance(value, {"bool": bool, "str": str, "table": Mapping}[p.kind])
    if not right:
        found.append(f"{path}: must be {must_be(p)}, got {shown(value)}")
    elif p.kind == "tables" and p.of is not None:
        return [_table(p.of, item, f"{path}[{i}]", found) for i, item in enumerate(value)]
    elif p.kind in ("table", "tables"):
        _free(value, path, found)
    return value


def _table(declared: Iterable[Parameter], table: Mapping[str, Any], path: str, found: list[str]) -> dict[str, Any]:
    """One table of a list, its defaults filled in."""
    values, lines = _examined(declared, table, path)
    found += lines
    return values


def _number(p: Parameter, value: Any, path: str, found: list[str]) -> Any:
    whole = p.kind in ("int", "ints")
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if not right or (p.low is not None and value < p.low) or (p.high is not None and value > p.high):
        a_number = "a whole number" if whole else "a number"
        found.append(f"{path}: must be {a_number}{_span(p, True)}, got {shown(value)}")
        return value
    return value if whole else float(value)


def _list(p: Parameter, value: Any, path: str, found: list[str]) -> Any:
    if not _is_list(value) or (p.shape is not None and len(value) != p.shape):
        size = f"{len(value)}: " if _is_list(value) else ""
        found.append(f"{path}: must be {must_be(p)}, got {size}{shown(value)}")
    return _numbers(p, value, path, found)


def _rows(p: Parameter, value: Any, path: str, found: list[str]) -> Any:
    count, columns = p.shape if isinstance(p.shape, tuple) else (None, None)
    rows = [_plain(row) for row in value] if _is_list(value) else None
    if rows is None or (count is not None and len(rows) != count) or not all(_is_list(r) and columns in (None, len(r)) for r in rows):
        found.append(f"{path}: must be {must_be(p)}, got {shown(value)}")
    return value if rows is None else [_numbers(p, row, f"{path}[{i}]", found) for i, row in enumerate(rows)]


def _numbers(p: Parameter, value: Any, path: str, found: list[str]) -> Any:
    """Each number of a list; what is none is a fault of its shape."""
    return [_number(p, _plain(x), f"{path}[{i}]", found) for i, x in enumerate(value)] if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _free(value: Any, path: str, found: list[str]) -> None:
    """A table with undeclared keys: finite numbers, text, true or false, lists and tables only."""
    value = _plain(value)
    if isinstance(value, Mapping):
        for key, item in value.items():
            _free(item, f"{path}.{key}", found)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            _free(item, f"{path}[{i}]", found)
    elif not isinstance(value, int | float | str) or (isinstance(value, float) and not abs(value) <= _LARGEST):
        found.append(f"{path}: must be a finite number, text, true or false, a list or a table, got {shown(value)}")


def _plain(value: Any) -> Any:
    """Arrays and numbers of NumPy as lists and numbers of Python."""
    return value.tolist() if hasattr(value, "tolist") else value
