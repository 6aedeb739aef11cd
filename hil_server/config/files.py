"""Reading a text file that somebody else wrote: a regular file of a sensible size, nothing that never ends."""

import errno
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

SIZE_MAX = 1 << 28  # bytes; the largest recordings and modal files have some tens of megabytes
INT_MAX = 2**63  # TOML's whole numbers have 64 bits


def check_file(path: str | os.PathLike[str]) -> None:
    """Raises OSError for a device, a pipe, a folder, and a file of more than SIZE_MAX bytes."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
    if found.st_size > SIZE_MAX:
        raise OSError(errno.EFBIG, f"{found.st_size} bytes, limit {SIZE_MAX}", os.fspath(path))


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """The whole file. Raises OSError as `check_file`, UnicodeDecodeError."""
    check_file(path)
    return Path(path).read_bytes().decode(encoding)


def parse_toml(text: str) -> dict[str, Any]:
    """TOML as tables. Raises ValueError for what is none, for a whole number beyond 64 bits and for what is nested too deeply."""
    try:
        document = tomllib.loads(text)
        _check_numbers(document, "")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return document


def _check_numbers(value: Any, path: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check_numbers(item, f"{path}[{i}]")
    elif isinstance(value, int) and not -INT_MAX <= value < INT_MAX:
        raise ValueError(f"{path}: a whole number of {value.bit_length()} bits, limit 64")
