"""The disk, as far as a record is written to it."""

import os
from typing import BinaryIO


def new_file(path: str) -> BinaryIO:
    """A file that was not there, unbuffered. Raises OSError."""
    return open(path, "xb", buffering=0)


def sync(file: BinaryIO) -> None:
    """Returns when what is in the file is on the disk. Raises OSError."""
    os.fsync(file.fileno())
