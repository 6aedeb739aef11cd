"""A table of a TOML file against its declaration: every independent fault in one pass, one line each.

The declaration is a tuple of `rt_kernels.parameters.Parameter`, the same for the tables of a file and for the table of a part. A strict
pydantic model (no conversion, no unknown key, finite numbers only) is built from it once; pydantic's findings are put into our own words:

    docking.toml: wrench.cutof_hz: unknown key, value 100.0, did you mean 'cutoff_hz'?
    docking.toml: test.rate_hz: above its limit, value 100000, limit 100 ... 4000, unit Hz
"""

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import pydantic

from rt_kernels.parameters import Parameter

WRONG_LENGTH = "wrong length"
WORDS = {
    "missing": "missing key",
    "extra_forbidden": "unknown key",
    "finite_number": "not a finite number",
    "greater_than_equal": "below its limit",
    "less_than_equal": "above its limit",
    "literal_error": "not one of its choices",
}
KIND_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "str": "text",
    "floats": "a list of numbers",
    "rows": "a list of lists of numbers",
    "table": "a table",
}


class Table:
    """Checks TOML tables against one declaration."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = {p.key: p for p in parameters}
        fields: dict[str, Any] = {}
        for number, p in enumerate(parameters):
            # Fields get numbers for names: a key like "copy" or "model_x" would collide with pydantic's own attributes.
            fields[f"field_{number}"] = (_type(p), pydantic.Field(... if p.required else None, alias=p.key))
        config = pydantic.ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, validate_default=False)
        self._model = pydantic.create_model("Table", __config__=config, **fields)

    def faults(self, table: Any, file: str, path: str) -> list[str]:
        """Lines for everything that is wrong with `table`, which stands at key path `path` of `file`. Empty if nothing is."""
        if not isinstance(table, dict):
            return [line(file, path, "wrong type", table, limit="a table", unit="-")]
        found = []
        try:
            self._model.model_validate(table)
        except pydantic.ValidationError as error:
            found = [self._line(file, path, e, table) for e in error.errors(include_url=False)]
        # A wrong length hides in pydantic behind wrong items, and a free table is not looked into: both are independent faults.
        for key, p in self.parameters.items():
            if key in table:
                if p.shape is not None and not _has_shape(table[key], p.shape):
                    found.append(line(file, join(path, key), WRONG_LENGTH, table[key], limit=limit_of(p), unit=p.unit))
                if p.kind == "table":
                    found += free_table_faults(table[key], file, join(path, key))
        return found

    def with_defaults(self, table: dict[str, Any]) -> dict[str, Any]:
        """A copy with every absent key that has a default, in the order of the declaration."""
        full = {}
        for key, p in self.parameters.items():
            value = table.get(key, None if p.required else p.default)
            if value is not None:
                full[key] = list(value) if isinstance(value, tuple) else value
        return full

    def _line(self, file: str, path: str, error: Any, table: dict[str, Any]) -> str:
        key, *indices = error["loc"]
        where = join(path, str(key)) + "".join(f"[{i}]" for i in indices)
        if error["type"] == "extra_forbidden":
            return unknown_key(file, where, table[key], str(key), self.parameters)
        p = self.parameters[str(key)]
        what = WORDS.get(error["type"], f"wrong type, needs {KIND_WORDS[p.kind]}")
        value = "none" if error["type"] == "missing" else error["input"]
        return line(file, where, what, value, limit=limit_of(p), unit=p.unit, meaning=p.meaning if error["type"] == "missing" else "")


def line(file: str, path: str, what: str, value: Any, limit: str, unit: str, meaning: str = "") -> str:
    """One fault as one line."""
    shown = value if value == "none" else _shown(value)
    return f"{file}: {path}: {what}, value {shown}, limit {limit}, unit {unit}{f' ({meaning})' if meaning else ''}"


def unknown_key(file: str, path: str, value: Any, key: str, known: Iterable[str]) -> str:
    known = list(known)
    close = get_close_matches(key, known, n=1)
    hint = f", did you mean {close[0]!r}?" if close else f"; keys: {', '.join(known) or 'none'}"
    return f"{file}: {path}: unknown key, value {_shown(value)}{hint}"


def limit_of(p: Parameter) -> str:
    """The allowed values in words."""
    if p.choices:
        return "one of " + ", ".join(p.choices)
    words = KIND_WORDS[p.kind]
    if isinstance(p.shape, tuple):
        words = f"{p.shape[0]} rows of {p.shape[1]} numbers"
    elif p.shape is not None:
        words = f"{p.shape} numbers"
    if p.low is None and p.high is None:
        return words
    if p.low is not None and p.high is not None:
        span = f"{p.low:g} ... {p.high:g}"
    else:
        span = f"at least {p.low:g}" if p.low is not None else f"at most {p.high:g}"
    return span if p.kind in ("float", "int") else f"{words}, each {span}"


def free_table_faults(value: Any, file: str, path: str) -> list[str]:
    """A table whose keys nobody declared: only finite numbers, text, true/false, lists and tables."""
    if isinstance(value, dict):
        return [fault for key, item in value.items() for fault in free_table_faults(item, file, join(path, key))]
    if isinstance(value, list):
        return [fault for i, item in enumerate(value) for fault in free_table_faults(item, file, f"{path}[{i}]")]
    if isinstance(value, float) and not math.isfinite(value):
        return [line(file, path, "not a finite number", value, limit="a number", unit="-")]
    if not isinstance(value, int | float | str):
        return [line(file, path, "wrong type", value, limit="number, text, true or false, list or table", unit="-")]
    return []


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _type(p: Parameter) -> Any:
    """The pydantic type of a parameter, its length left out."""
    if p.choices:
        return Literal[p.choices]
    number: Any = Annotated[int if p.kind == "int" else float, pydantic.Field(ge=p.low, le=p.high)]
    kinds: dict[str, Any] = {
        "float": number,
        "int": number,
        "bool": bool,
        "str": str,
        "floats": list[number],
        "rows": list[list[number]],
        "table": dict[str, Any],
    }
    return kinds[p.kind]


def _has_shape(value: Any, shape: int | tuple[int, int]) -> bool:
    """False only for lists of another length: anything but a list is a wrong type, which is reported already."""
    if not isinstance(value, list):
        return True
    if isinstance(shape, int):
        return len(value) == shape
    return len(value) == shape[0] and all(_has_shape(row, shape[1]) for row in value)


def _shown(value: Any) -> str:
    if value is True or value is False:
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
