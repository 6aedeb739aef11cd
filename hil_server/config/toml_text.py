"""Writes TOML: tables, lists, text, finite numbers, true and false; what `tomllib` reads back is equal."""

import json
import re
import tomllib
from pathlib import Path

from hil_server.errors import ConfigurationError
from hil_server.values import Document

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dumps(document: Document) -> str:
    """The document as TOML text. Raises TypeError for a value that TOML cannot hold."""
    return "\n".join(_table(document, ())).strip() + "\n"


def with_table(text: str, name: str, table: Document, file: str | Path) -> str:
    """The TOML text of a file with `table` at its end, in the place of the one it had and of what that has below. Remarks before the
    next table stay. Raises ConfigurationError where the table is there, but not as lines below a header."""
    own = re.compile(rf"""\s*\[+\s*["']?{re.escape(name)}["']?\s*[].]""")
    kept: list[str] = []
    remarks: list[str] = []
    inside = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.lstrip().startswith("["):
            inside = own.match(line) is not None
        if not inside:
            kept += [*remarks, line]
        if line.lstrip().startswith("#") and inside:
            remarks.append(line)
        elif line.strip():
            remarks = []
    found = "\n".join([*kept, *remarks]).rstrip() + "\n\n" + dumps({name: table})
    try:
        whole = tomllib.loads(found) == {**tomllib.loads(text), name: table}
    except tomllib.TOMLDecodeError:
        whole = False
    if not whole:
        raise ConfigurationError(f"{file}: {name}: cannot be replaced as it is written there: remove it first")
    return found


def _table(table: Document, path: tuple[str, ...]) -> list[str]:
    """The table's own keys first, then its sub-tables under their headers."""
    lines = [f"{key_text(k)} = {value(v)}" for k, v in table.items() if not isinstance(v, dict)]
    for key, item in table.items():
        if isinstance(item, dict):
            inner = (*path, key)
            lines += ["", f"[{'.'.join(map(key_text, inner))}]", *_table(item, inner)]
    return lines


def key_text(key: str) -> str:
    """A key as TOML writes it."""
    return key if BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def value(item: object) -> str:
    """One value as TOML text. Raises TypeError for what TOML has not."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | float):
        return repr(item)
    if isinstance(item, str):
        return _text(item)
    if isinstance(item, list | tuple):
        return "[" + ", ".join(map(value, item)) + "]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"{key_text(k)} = {value(v)}" for k, v in item.items()) + "}"
    raise TypeError(f"TOML has no {type(item).__name__}")
