"""Checkpoints in a log: all that the next tick of a simulation depends on, as bytes by part.

A checkpoint is an MCAP message of its own, outside the chunks, on the topic `checkpoint`: what it holds is of use to this program alone,
and a reader of samples passes it over. Its time is that of the tick that comes next. The data is one zstd frame: CRC-32 of the rest, length
of the head, head (JSON), blocks one after another in the order of the head. Clocks of the machine and places in memory are not in it: they
are made again by the reader that continues from it.

The blocks are structs of the build that wrote them. They are used by the same build alone, which the head names; another one, and a
checkpoint whose checksum is wrong, finds its way by running again from the start (`hil_server.run.branch`). A checkpoint may come from a
stranger: what steers a kernel in it (whole numbers: counts, indices, modes) must be within the bounds that the part declares, and numbers
must be finite (`rt_kernels.plugs.restore_checked`).
"""

import json
import mmap
import struct
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import zstandard
from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Channel, Message

from hil_server.log.format import WRONG, LogError, records_in

TOPIC = "checkpoint"
ENCODING = "hil-checkpoint"
LEVEL = 1
MAX_BYTES = 1 << 26  # of one, unpacked; ours have a fifth of a megabyte


@dataclass(frozen=True)
class Checkpoint:
    """tick: the one that comes next; time_ns: its run time; cause: why it was taken; build_id: whose structs these are; parts: name →
    bytes, as `LoopLine.snapshot` gives them."""

    tick: int
    time_ns: int
    cause: str
    build_id: str
    parts: dict[str, bytes]

    def packed(self) -> bytes:
        """The data of the message."""
        head = json.dumps({"tick": self.tick, "time_ns": self.time_ns, "cause": self.cause, "build_id": self.build_id,
                           "parts": [[name, len(block)] for name, block in self.parts.items()]}).encode()  # fmt: skip
        rest = struct.pack("<I", len(head)) + head + b"".join(self.parts.values())
        return zstandard.ZstdCompressor(level=LEVEL).compress(struct.pack("<I", zlib.crc32(rest)) + rest)

    @classmethod
    def unpacked(cls, data: bytes) -> "Checkpoint":
        """Out of the data of a message. Raises ValueError that says what is wrong with it."""
        try:
            if not 0 < zstandard.get_frame_parameters(data).content_size <= MAX_BYTES:
                raise ValueError(f"longer than {MAX_BYTES} bytes")
            raw = zstandard.ZstdDecompressor().decompress(data, MAX_BYTES)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if len(raw) < 8 or zlib.crc32(raw[4:]) != struct.unpack_from("<I", raw)[0]:
            raise ValueError("its checksum is wrong")
        size = struct.unpack_from("<I", raw, 4)[0]
        try:
            head = json.loads(raw[8 : 8 + size])
            parts, at = {}, 8 + size
            for name, length in head["parts"]:
                parts[str(name)] = raw[at : at + length]
                at += length
            found = cls(int(head["tick"]), int(head["time_ns"]), str(head["cause"]), str(head["build_id"]), parts)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"its head is damaged: {error}") from None
        if at != len(raw):
            raise ValueError(f"its blocks have {len(raw) - 8 - size} bytes, its header states {at - 8 - size}")
        return found


@dataclass(frozen=True)
class Place:
    """Where a checkpoint lies in a log. time_ns: of the tick that comes next; offset, length: of the message's data in the file."""

    path: Path
    time_ns: int
    offset: int
    length: int

    def read(self) -> Checkpoint:
        """The checkpoint. Raises LogError when it is damaged."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                return Checkpoint.unpacked(file.read(self.length))
        except OSError as error:
            raise LogError(f"{self.path}: {error.strerror or error}") from error
        except ValueError as error:
            raise LogError(f"{self.path}: checkpoint at {self.time_ns * 1e-9:.3f} s is damaged: {error}") from None


MESSAGE_HEAD = struct.Struct("<HIQQ")  # channel, sequence, log time, publish time


def places(path: str | Path) -> list[Place]:
    """The checkpoints of a log in order of time, without unpacking any; none for a log that has none. Raises LogError for a file that is
    no log or cannot be read."""
    path = Path(path)
    found, channel = [], None
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for opcode, body, length in records_in(path, data):
                if opcode == Opcode.DATA_END:
                    break
                if opcode == Opcode.CHANNEL:
                    channel = _channel(data[body : body + length]) or channel
                elif opcode == Opcode.MESSAGE and length > MESSAGE_HEAD.size:
                    of, _, time_ns, _ = MESSAGE_HEAD.unpack_from(data, body)
                    if of == channel:
                        found.append(Place(path, time_ns, body + MESSAGE_HEAD.size, length - MESSAGE_HEAD.size))
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise LogError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return sorted(found, key=lambda place: place.time_ns)


def _channel(record: bytes) -> int | None:
    """Number of the channel of checkpoints, None for another channel or a damaged one."""
    try:
        channel = Channel.read(ReadDataStream(BytesIO(record)))
    except WRONG:
        return None
    return channel.id if channel.topic == TOPIC and channel.message_encoding == ENCODING else None


def channel(number: int) -> Channel:
    """The channel of checkpoints."""
    return Channel(id=number, topic=TOPIC, message_encoding=ENCODING, schema_id=0, metadata={})


def message(number: int, checkpoint: Checkpoint) -> Message:
    """A checkpoint as a message of channel `number`."""
    time_ns, sequence = checkpoint.time_ns, checkpoint.tick & 0xFFFFFFFF
    return Message(channel_id=number, log_time=time_ns, publish_time=time_ns, sequence=sequence, data=checkpoint.packed())
