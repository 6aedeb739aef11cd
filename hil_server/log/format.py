"""What writer and reader of a log agree on (`reader` says how the file is built)."""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mcap.exceptions import McapError
from mcap.writer import MCAP0_MAGIC

from hil_server.errors import UsageError

FORMAT_VERSION = "1"
TOPIC = "sample"
SCHEMA_NAME = "hil_server/msg/Sample"
CDR_HEADER = 0x00000100  # bytes 00 01 00 00: plain CDR, little-endian, no options
CHUNK_TICKS = 100
CHUNK_SECONDS = 0.1
ZSTD_LEVEL = -5  # half the time of level 1, a tenth more bytes
MAX_EXPANSION = 256  # of a chunk by decompression; runs have 2 to 6, a line in which nothing moves about 200
MAX_CHUNK = 1 << 26  # bytes; ours have a quarter of a megabyte, those of other tools a few
MAX_AUX = 100_000  # auxiliary scalars of a run, as in the ring
WRONG = (struct.error, ValueError, OverflowError, McapError)  # what a damaged record raises when it is read
Facts = dict[str, Any]  # a JSON table of what somebody else has found out: about the machine, by a prediction, at the end of the run


class LogError(UsageError):
    """A file is not a log of this program, or holds nothing that can be read."""


def message_dtype(record: np.dtype) -> np.dtype:
    """A whole MCAP message record of one tick, packed."""
    head = [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log_time", "<u8"), ("publish_time", "<u8")]
    return np.dtype([*head, ("encapsulation", "<u4"), ("record", record)])


def records_in(path: Path, data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """(opcode, where its contents begin, their length) of every whole MCAP record of a file. Raises LogError when it is no MCAP file."""
    at = len(MCAP0_MAGIC)
    if data[:at] != MCAP0_MAGIC:
        raise LogError(f"{path}: not an MCAP file")
    while at + 9 <= len(data):
        opcode, length = struct.unpack_from("<BQ", data, at)
        if opcode == 0 or at + 9 + length > len(data):
            return
        yield opcode, at + 9, length
        at += 9 + length
