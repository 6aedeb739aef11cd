"""TOML files that say only what differs from another one: `extends = "docking.toml"` at the top.

The extended file is named relative to the file, or is a shipped one, as every file that a configuration names. It may extend a further one.

* A table merges key by key; a value or a list replaces the one of the extended file.
* Rows of an array of tables are told apart by `name`, as in `--set`: a row of the same name merges, another one comes behind. An array of
  which a row has no name of its own replaces the extended one.
* A table with another `part` starts from the defaults: the former part's keys are dropped, as with `--set`. The top of a file does not.
* `without = ["virtual", "requirement.whole process"]` leaves tables, keys and named rows of the extended file out.
* [safety_record] is never taken over: a signature is of one file.

A name of a file in the extended file keeps its meaning where the extending file lies in another folder.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rt_kernels.parameters import shown

EXTENDS, WITHOUT = "extends", "without"
OWN = ("safety_record",)  # tables that an extending file does not take over
SHIPPED = Path(__file__).resolve().parents[1] / "stand_configs"
FOLDERS = ("stands", "vehicles", "mechanisms", "manipulators")
SEGMENT = re.compile(r"""\[\d+\]|\.?(?:"[^"]*"|[^.\["]+)""")

Tables = dict[str, Any]


class ExtendsError(ValueError):
    """What is wrong with `extends` or `without`, one line: file, key, value, limit."""


@dataclass
class Place:
    """Where a value stands: file, path of its key in that file; inner: of what is in a table (key -> Place), of the rows of an array of
    tables (a list of Place), None for any other value."""

    file: Path
    path: str
    inner: Any = None


@dataclass(frozen=True)
class Whole:
    """What a file says together with those that it extends. tables: all of it; place: where each key of it stands; texts: file → text, the
    extending one first."""

    tables: Tables
    place: Place
    texts: dict[Path, str]

    @property
    def file(self) -> Path:
        """The file that was asked for."""
        return self.place.file

    def where(self, path: str) -> tuple[Path, str]:
        """File, and path in that file, of the key at `path` of the whole; of one that is missing the nearest table about it."""
        value: Any = self.tables
        place, found = self.place, ""
        segments = SEGMENT.findall(path)
        for i, segment in enumerate(segments):
            at: Any = segment.removeprefix(".").strip('"')
            if isinstance(value, list):
                at = int(segment[1:-1]) if segment.startswith("[") else row_index(value, at)
            if place.inner is None or at is None or not (at in place.inner if isinstance(value, dict) else at < len(value)):
                return place.file, found + "".join(segments[i:])
            value, place = value[at], place.inner[at]
            found = place.path if segment.startswith("[") else found + segment
        return place.file, found


def row_index(rows: list[Any], name: str) -> int | None:
    """Place of the row of this name."""
    return next((i for i, row in enumerate(rows) if isinstance(row, dict) and row.get("name") == name), None)


def read_tables(path: str | Path) -> Tables:
    """The tables of a file with what it extends. Raises OSError, ValueError."""
    return read_whole(path).tables


def read_whole(path: str | Path, read_text: Callable[[Path], str] | None = None, parse: Callable[[str], Tables] = tomllib.loads,
               check: Callable[[list[tuple[Path, Tables]]], None] | None = None) -> Whole:  # fmt: skip
    """A file with those that it extends. check: looks at (file, its own tables) of all, the extending one first, before they are merged.
    Raises OSError and ValueError of the file itself; ExtendsError for what is wrong with a file that is extended."""
    own: list[tuple[Path, Tables]] = []
    texts: dict[Path, str] = {}
    file: Path | None = Path(path)
    while file is not None:
        try:
            texts[file] = read_text(file) if read_text else file.read_text(encoding="utf-8")
            own.append((file, parse(texts[file])))
        except (OSError, ValueError) as error:
            if not own:
                raise
            why = getattr(error, "strerror", None) or ("not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"not TOML: {error}")
            raise ExtendsError(f"{file}: {why}, extended by {own[-1][0]}") from None
        file = _extended(*own[-1], [one for one, _ in own])
    if WITHOUT in own[-1][1]:
        raise ExtendsError(_line(own[-1][0], WITHOUT, "nothing to leave out", own[-1][1][WITHOUT], f"only beside {EXTENDS}"))
    if len(own) == 1:
        return Whole(own[0][1], Place(own[0][0], ""), texts)
    if check is not None:
        check(own)
    try:
        return Whole(*_all_merged(own), texts)
    except RecursionError:
        raise ExtendsError(f"{path}: nested too deeply") from None


def _all_merged(own: list[tuple[Path, Tables]]) -> tuple[Tables, Place]:
    """The tables of all files in one, the last one of the list at the bottom."""
    *above, (file, tables) = own
    place = _placed(tables, file, "")
    for file, given in reversed(above):
        _leave_out(tables, place, given, file)
        _keep_names(tables, place, file.parent)
        inner = {key: value for key, value in given.items() if key not in (EXTENDS, WITHOUT)}
        tables, place = _merged(tables, place, inner, _placed(given, file, ""))
    return tables, place


def _extended(file: Path, tables: Tables, before: list[Path]) -> Path | None:
    """The file that `file` extends. Raises ExtendsError."""
    if EXTENDS not in tables:
        return None
    named = tables[EXTENDS]
    if not isinstance(named, str):
        raise ExtendsError(f"{file}: {EXTENDS}: must be the name of a file, got {shown(named)}")
    found = _found(named, file, tables)
    if found is None:
        raise ExtendsError(_line(file, EXTENDS, "no such file", named, f"a file below {file.parent} or {SHIPPED}"))
    for one in before:
        if found.resolve() == one.resolve():
            names = " -> ".join(str(step) for step in [*before[before.index(one) :], one])
            raise ExtendsError(_line(file, EXTENDS, "a circle", named, f"a file that does not extend this one ({names})"))
    return found


def _found(named: str, file: Path, tables: Mapping[str, Any]) -> Path | None:
    """Beside the file that names it; else shipped, by its path below `stand_configs` or, of the folder of its kind, by its name alone."""
    of_programme = any(name in tables for name in ("test", "programme", "campaign"))
    folders = ("programmes",) if of_programme else (*FOLDERS, "programmes")
    for folder in (file.parent, SHIPPED, *(SHIPPED / name for name in folders)):
        if _is_file(folder, named):
            return folder / named
    return None


def _is_file(folder: Path, named: str) -> bool:
    try:
        return bool(named) and folder.joinpath(named).is_file()
    except (OSError, ValueError):
        return False


def _placed(value: Any, file: Path, path: str) -> Place:
    if isinstance(value, dict):
        return Place(file, path, {key: _placed(item, file, _join(path, key)) for key, item in value.items()})
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return Place(file, path, [_placed(row, file, f"{path}[{i}]") for i, row in enumerate(value)])
    return Place(file, path)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _merged(base: Tables, base_place: Place, own: Tables, own_place: Place) -> tuple[Tables, Place]:
    """One table over another, with the places of the keys."""
    tables, places = dict(base), dict(base_place.inner)
    for key, value in own.items():
        under, place = tables.get(key), own_place.inner[key]
        if isinstance(value, dict) and isinstance(under, dict) and not _other_part(under, value):
            tables[key], places[key] = _merged(under, places[key], value, place)
        elif _named(value) and _named(under):
            tables[key], places[key] = _merged_rows(under, places[key], value, place)
        else:
            tables[key], places[key] = value, place
    return tables, Place(own_place.file, own_place.path, places)


def _merged_rows(base: Any, base_place: Place, own: list[Tables], own_place: Place) -> tuple[list[Tables], Place]:
    """Rows of one array of tables over those of another, by their names."""
    rows, places = list(base), list(base_place.inner)
    for row, place in zip(own, own_place.inner, strict=True):
        i = row_index(rows, row["name"])
        if i is None:
            rows.append(row)
            places.append(place)
        else:
            rows[i], places[i] = (row, place) if _other_part(rows[i], row) else _merged(rows[i], places[i], row, place)
    return rows, Place(own_place.file, own_place.path, places)


def _other_part(base: Tables, own: Tables) -> bool:
    return base.get("part") is not None and own.get("part", base["part"]) != base["part"]


def _named(value: Any) -> bool:
    """Whether it is an array of tables of which each has a name of its own."""
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) and isinstance(row.get("name"), str) for row in value):
        return False
    return len({row["name"] for row in value}) == len(value)


def _leave_out(base: Tables, place: Place, own: Mapping[str, Any], file: Path) -> None:
    """Takes out of the extended tables what `without` names, and what no file takes over. Raises ExtendsError."""
    given = own.get(WITHOUT, [])
    if not isinstance(given, list) or not all(isinstance(path, str) for path in given):
        raise ExtendsError(f"{file}: {WITHOUT}: must be a list of keys, tables and named rows of the extended file, got {shown(given)}")
    for i, path in enumerate(given):
        if not _take_out(base, place, path):
            limit = f"a table, a key or a named row of {own[EXTENDS]}, as wrench, wrench.filter_order or requirement.NAME"
            raise ExtendsError(_line(file, f"{WITHOUT}[{i}]", "not in the extended file", path, limit))
    for key in OWN:
        _take_out(base, place, key)


def _take_out(value: Any, place: Place, path: str) -> bool:
    """Whether there was something at the path; names may have dots."""
    keys = list(value) if isinstance(value, dict) else [row["name"] for row in value] if _named(value) else []
    for key in sorted(keys, key=len, reverse=True):
        at: Any = key if isinstance(value, dict) else row_index(value, key)
        if path == key:
            del value[at], place.inner[at]
            return True
        if path.startswith(f"{key}.") and _take_out(value[at], place.inner[at], path[len(key) + 1 :]):
            return True
    return False


def _keep_names(value: Any, place: Place, folder: Path) -> None:
    """Names of files in tables from another folder so that they mean the same in `folder`."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        inner = place.inner[key] if place.inner is not None else place
        if isinstance(item, dict | list):
            _keep_names(item, inner, folder)
        elif isinstance(item, str) and "." in item and inner.file.parent.resolve() != folder.resolve():
            if _is_file(inner.file.parent, item):
                value[key] = os.path.relpath(inner.file.parent / item, folder)
            elif _is_file(folder, item) and _is_file(SHIPPED, item):  # another file of the name of a shipped one
                value[key] = str(SHIPPED / item)


def _line(file: Path, path: str, what: str, value: Any, limit: str) -> str:
    return f"{file}: {path}: {what}, value {shown(value)}, limit {limit}, unit -"
