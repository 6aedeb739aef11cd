"""What writer and reader of a log agree on (`reader` says how the file is built)."""

from typing import Any

import numpy as np

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


class LogError(UsageError):
    """A file is not a log of this program, or holds nothing that can be read."""


def message_dtype(record: np.dtype) -> np.dtype:
    """A whole MCAP message record of one tick, packed."""
    columns: list[Any] = [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log_time", "<u8")]
    return np.dtype([*columns, ("publish_time", "<u8"), ("encapsulation", "<u4"), ("record", record)])
