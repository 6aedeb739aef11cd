"""Writes TOML: tables, lists, text, finite numbers, true and false; what `tomllib` reads back is equal."""

import json
import re
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dumps(document: dict[str, Any]) -> str:
    return "\n".join(_table(document, ())).strip() + "\n"


def _table(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """The table's own keys first, then its sub-tables under their headers."""
    lines = [f"{_key(k)} = {_value(v)}" for k, v in table.items() if not isinstance(v, dict)]
    for key, value in table.items():
        if isinstance(value, dict):
            inner = (*path, key)
            lines += ["", f"[{'.'.join(map(_key, inner))}]", *_table(value, inner)]
    return lines


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    raise TypeError(f"TOML has no {type(value).__name__}")
