"""Files: a text that somebody else wrote, regular and of a sensible size, is read; what is written has its name when it is whole."""

import contextlib
import errno
import os
import pickle
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import stand_configs
from hil_server import interrupts
from hil_server.values import Document

SHIPPED = Path(stand_configs.__file__).parent  # files that come with the program
FOLDERS = ("programmes", "stands", "vehicles", "mechanisms", "manipulators", "programmes/operators")
SIZE_MAX = 1 << 28  # bytes; the largest recordings and modal files have some tens of megabytes
LONG_NUMBER = re.compile("[0-9a-fA-F_]{16}")
INT_MAX = 2**63  # TOML's whole numbers have 64 bits
Done = Callable[[float, float], None]  # what long work tells: how much is done of how much


def no_progress(done: float, whole: float) -> None:
    """Ignores the progress."""


def named_file(path: str | Path, folder: str = "programmes") -> Path:
    """A file as it is named on the command line: as it stands, else a shipped one, by its path below `stand_configs` or by its name
    alone (those in `folder` first), with or without `.toml`. Need not exist."""
    if Path(path).exists() or Path(path).is_absolute():
        return Path(path)
    places = (SHIPPED, *(SHIPPED / name for name in dict.fromkeys((folder, *FOLDERS))))
    tried = (place / name for name in (str(path), f"{path}.toml") for place in places)
    return next((file for file in tried if file.is_file()), Path(path))


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


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Gives the name to write to in a folder of its own beside `path`; at the end that file, and what was written beside it, move to where
    `path` says, with the permissions of what is there; a link stays one. What is interrupted or fails leaves nothing behind. A device, a
    pipe or a folder is given as it is. Raises OSError."""
    if path.exists() and not path.is_file():
        yield path
        return
    target = Path(os.path.realpath(path))
    with interrupts.held():
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=target.parent))
        try:
            with interrupts.heard():
                yield folder / path.name
            for file in folder.iterdir():
                place = target if file.name == path.name else target.parent / file.name
                if place.is_file():
                    shutil.copymode(place, file)
                file.replace(place)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def parse_toml(text: str) -> Document:
    """TOML as tables. Raises ValueError for what is none, for a whole number beyond 64 bits and for what is nested too deeply."""
    document: Document = pickle.loads(pickle.dumps(parsed_toml(text)))  # a copy, in a fifth of the time of copy.deepcopy
    return document


@lru_cache(maxsize=32)
def parsed_toml(text: str) -> Document:
    """The same for who only reads it: one command reads the same few files over and over. Raises as `parse_toml`."""
    try:
        document = tomllib.loads(text)
        if LONG_NUMBER.search(text):
            _check_numbers(document, "")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return document


def _check_numbers(value: object, path: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check_numbers(item, f"{path}[{i}]")
    elif isinstance(value, int) and not -INT_MAX <= value < INT_MAX:
        raise ValueError(f"{path}: a whole number of {value.bit_length()} bits, limit 64")
