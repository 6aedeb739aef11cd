"""A table of a TOML file against its declaration: every independent fault in one pass, one line each, the file's name before it.

    docking.toml: wrench.cutof_hz: unknown key, value 100.0, did you mean 'cutoff_hz'?
    docking.toml: test.rate_hz: must be a number within 100 ... 4000 Hz, got 100000

The declaration is a tuple of `rt_kernels.parameters.Parameter`, the same for the tables of a file and for the table of a part (`part =
"name"` and the keys of its `PARAMETERS`); the verdict and the values are those of `rt_kernels.parameters`. A key that was renamed is named
with its new name.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from hil_server import registry
from hil_server.config import former_names
from hil_server.errors import ConfigurationError
from hil_server.values import Document, Given
from rt_kernels import parameters as declarations
from rt_kernels.parameters import Parameter, did_you_mean, shown
from rt_kernels.stages import FORMER_ROLES


class Table:
    """Checks TOML tables against one declaration."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = {p.key: p for p in parameters}

    def faults(self, table: object, file: str, path: str) -> list[str]:
        """Lines for everything that is wrong with `table`, which stands at key path `path` of `file`. Empty if nothing is."""
        if not isinstance(table, dict):
            return [must_be(file, path, "a table", table)]
        former = {key: former_names.present_key(key, self.parameters) for key in table}
        former = {key: new for key, new in former.items() if new}
        found = [f"{file}: {join(path, key)}: was renamed {new}" for key, new in former.items()]
        gone = {key: words for key in table if (words := former_names.gone(key, self.parameters))}
        found += [f"{file}: {join(path, key)}: {words}" for key, words in gone.items()]
        present = {former[key] if key in former else key: value for key, value in table.items() if key not in gone}
        return found + [f"{file}: {fault}" for fault in declarations.faults(self.parameters.values(), present, path)]

    def with_defaults(self, table: Given) -> Document:
        """The values of a table without faults, with every absent key that has a default, in the order of the declaration."""
        full = declarations.checked(self.parameters.values(), table)
        return {key: value for key, value in full.items() if value is not None}


def must_be(file: str, path: str, what: str, value: object) -> str:
    """A value of the wrong kind as one line."""
    return f"{file}: {path or 'file'}: must be {what}, got {shown(value)}"


def missing(file: str, path: str, kind: str, what: str) -> str:
    """A key or a table that has to be there, as one line."""
    return f"{file}: {path}: required {kind} is missing: {what}"


def line(file: str, path: str, what: str, value: object, limit: str, unit: str) -> str:
    """One fault as one line, of a value that is good by itself."""
    return f"{file}: {path}: {what}, value {shown(value)}, limit {limit}, unit {unit}"


def unknown_key(file: str, path: str, value: object, key: str, known: Iterable[str]) -> str:
    """The message for a key that does not exist, with the nearest known one."""
    return f"{file}: {path}: {declarations.unknown_key(key, value, known)}"


def unknown_table(file: str, path: str, name: str, value: object, known: Iterable[str]) -> str:
    """A table, or a key of a file, that the file may not have."""
    if name in FORMER_ROLES:
        return f"{file}: {path}: was renamed {FORMER_ROLES[name]}"
    return unknown_key(file, path, value, name, known)


def limit_of(p: Parameter) -> str:
    """The allowed values in words, the unit left out."""
    return declarations.must_be(p, unit=False)


def join(path: str, key: str) -> str:
    """Path of a key below the table at `path` ("" is the top)."""
    return f"{path}.{key}" if path else key


# ------------------------------------------------------------------------------------------------------------- tables of parts
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
        return [line(file, join(path, "part"), "no such part", name, limit=limit, unit="-") + did_you_mean(name, known)]
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


def _stray(table: Document, file: str, path: str) -> list[str]:
    """With `part` misspelt the key that was meant is worth a line of its own."""
    from difflib import get_close_matches

    return [unknown_key(file, join(path, key), table[key], key, ["part"]) for key in get_close_matches("part", table, n=1)]
