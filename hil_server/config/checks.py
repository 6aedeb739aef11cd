"""A table of a TOML file against its declaration: every independent fault in one pass, one line each, the file's name before it.

    docking.toml: wrench.cutof_hz: unknown key, value 100.0, did you mean 'cutoff_hz'?
    docking.toml: test.rate_hz: must be a number within 100 ... 4000 Hz, got 100000

The declaration is a tuple of `rt_kernels.parameters.Parameter`, the same for the tables of a file and for the table of a part; the verdict
and the values are those of `rt_kernels.parameters`. A key that was renamed is named with its new name.
"""

from collections.abc import Iterable, Sequence

from hil_server.config import former_names
from hil_server.values import Document, Given
from rt_kernels import parameters as declarations
from rt_kernels.parameters import Parameter, shown
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
