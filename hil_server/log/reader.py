"""The log of a run: one MCAP file that holds the whole record of the run and that other people's tools open.

File: header · metadata `run` · attachments (configuration texts, channels.toml, initial sample, stage states, calibration) · schema
(`ros2msg`) · channel · chunks of 100 ticks, written every 0.1 s · metadata `end` · summary. A message is one tick: four bytes of CDR
encapsulation and the record (`record.py`). All messages have one size, so a chunk is built and read as one NumPy array (`message_dtype`);
the record classes of the `mcap` library write and read everything else.

What a killed writer leaves is a file without its end: it is read up to the last whole chunk, and says so. A chunk that does not decompress
is left out and named; one whose contents were altered is kept, and `Log.damaged()` names ticks and channels.

Reading trusts no figure of the file. A chunk is decompressed only to what it says, what its zstd frame says, and what MAX_EXPANSION and
MAX_CHUNK allow; the writer leaves a chunk that shrinks by more than that uncompressed. So the memory of reading is bounded by the size of
the file, and records that would take more than half of the free memory are unpacked into a file without a name. Records come in ascending
ticks: what stands out of order is left out and named. `Log.missing()` says which ticks are not there. A log of an earlier table of channels
is read by the names in its schema (`former_layout`).
"""

import contextlib
import json
import mmap
import os
import struct
import tempfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    Channel,
    Chunk,
    Message,
    Metadata,
    Schema,
)
from mcap.stream_reader import breakup_chunk
from mcap.writer import MCAP0_MAGIC

from hil_server.log import former_layout
from hil_server.log.format import MAX_CHUNK, MAX_EXPANSION, SCHEMA_NAME, TOPIC, LogError, message_dtype
from hil_server.log.header import LogHeader, Stored
from hil_server.log.record import (
    LayoutMismatchError,
    damaged_records,
    record_dtype,
    scalar_names,
    syndromes,
)
from hil_server.log.writer import LogWriter
from rt_kernels.layout import LAYOUT_HASH

MEMORY_SHARE = 0.5  # of the free memory that the records of a log may take


def available_memory() -> int:
    """Bytes that can be had without swapping (MemAvailable of /proc/meminfo)."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return 1 << 62


@dataclass
class Log:
    """A log that was read.

    records: (n,) structured, the fields of the table and `aux` (aux_count,). incomplete: why the run is not whole, empty when it is.
    end: facts the run left at its end ({} when it was cut). absent: fields that an earlier table of channels did not have, None for a log
    of this one; damage: records of such a log whose checksum was wrong.
    """

    path: Path
    header: LogHeader
    records: np.ndarray
    end: dict[str, Any]
    incomplete: list[str]
    absent: frozenset[str] | None = None
    damage: tuple[tuple[int, str], ...] = ()

    @property
    def ticks(self) -> int:
        """Number of ticks in the log."""
        return len(self.records)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.incomplete

    @cached_property
    def time_s(self) -> np.ndarray:
        """Run time of every record, s, shape (n,)."""
        return self.records["time_ns"] * 1e-9

    @property
    def aux_names(self) -> list[str]:
        """Name of every auxiliary scalar, in the order of `records["aux"]`."""
        return [name for channel in self.header.aux for name in scalar_names(channel.name, channel.count)]

    def aux(self, name: str) -> np.ndarray:
        """One auxiliary channel, (n,) or (n, count). Raises KeyError that names near ones."""
        for channel in self.header.aux:
            if channel.name == name:
                part = self.records["aux"][:, channel.offset : channel.offset + channel.count]
                return part[:, 0] if channel.count == 1 else part
        raise KeyError(f"no auxiliary channel {name!r} in this log; it has {', '.join(c.name for c in self.header.aux) or 'none'}")

    def damaged(self) -> list[tuple[int, str]]:
        """(tick, channel) of every record whose own checksum is wrong; channel "" when more than one bit changed."""
        return list(self.damage) if self.absent is not None else damaged_records(self.records, self.aux_names)

    def missing(self) -> list[tuple[int, int]]:
        """First and last of every row of ticks that is not in the log of a run that logs every tick, between its first and its last.

        Periods that the loop has skipped are no missing ticks: the next record says how many they were (`periods`)."""
        ticks = self.records["tick"]
        if not len(ticks):
            return []
        before = np.concatenate([[np.int64(self.header.branch.get("tick", 0) - 1)], ticks[:-1]])
        skipped = np.maximum(self.records["periods"].astype(np.int64), 1)
        gaps = np.flatnonzero(ticks - before > skipped)
        return [(int(before[i]) + 1, int(ticks[i] - skipped[i])) for i in gaps]


def open_log(path: str | os.PathLike[str]) -> Log:
    """Reads a log. A file without its end (killed writer, torn tail) is read up to the last whole chunk.

    Raises LogError when it is not one of our logs, LayoutMismatchError when its table of channels is another one and it does not say which.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(MCAP0_MAGIC):
                raise LogError(f"{path}: is not a log ({size} bytes)")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return Reader(path, data).read()
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}") from error


class Reader:
    """Walks over the records of one file. data: the file's bytes, as a map."""

    def __init__(self, path: Path, data: Any) -> None:
        self.path, self.data = path, data
        self.incomplete: list[str] = []
        self.run: dict[str, str] = {}
        self.end: dict[str, str] | None = None
        self.schema: str | None = None
        self.files: dict[str, tuple[bytes, str]] = {}
        self.channel_id: int | None = None
        self.chunks: list[Chunk] = []
        self.finished = False

    def read(self) -> Log:
        """The whole log. Raises LogError, LayoutMismatchError."""
        header, former = self._described()
        if former:
            return self._former(header)
        records = self._records(record_dtype(header.aux_count))
        end = self._end(len(records))
        return Log(self.path, header, records, end, self.incomplete)

    def _described(self) -> tuple[LogHeader, bool]:
        """Walks over the file: what it says of the run, and whether its table of channels is an earlier one."""
        if self.data[: len(MCAP0_MAGIC)] != MCAP0_MAGIC:
            raise LogError(f"{self.path}: not an MCAP file")
        self._walk()
        if "layout_hash" not in self.run:
            raise LogError(f"{self.path}: no run is described in it (cut before its first tick, or not a log of this program)")
        former = self.run["layout_hash"] != LAYOUT_HASH
        if former and self.schema is None:
            raise LayoutMismatchError(f"log {self.path}", self.run["layout_hash"])
        return LogHeader.read(Stored(self.path, self.run, self.files)), former

    def _former_dtype(self, header: LogHeader) -> np.dtype:
        """Structured type of the records of a log of an earlier table. Raises LogError."""
        try:
            return former_layout.dtype_of(self.schema or "", header.aux_count)
        except LogError as error:
            raise LogError(f"{self.path}: {error}") from None

    def _former(self, header: LogHeader) -> Log:
        """A log of an earlier table, as one of today's."""
        dtype = self._former_dtype(header)
        theirs = self._records(dtype)
        damage = tuple(former_layout.damaged(theirs))
        records, absent = former_layout.converted(theirs)
        before = header.initial_record
        if len(before) >= dtype.itemsize - dtype["aux"].itemsize:  # with or without auxiliary channels
            whole = before.ljust(dtype.itemsize, b"\0")[: dtype.itemsize]
            header.initial_record = former_layout.converted(np.frombuffer(whole, dtype))[0].tobytes()
        header.layout_hash = LAYOUT_HASH
        return Log(self.path, header, records, self._end(len(records)), self.incomplete, absent, damage)

    def _walk(self) -> None:
        data, size, at = self.data, len(self.data), len(MCAP0_MAGIC)
        while at + 9 <= size:
            opcode, length = struct.unpack_from("<BQ", data, at)
            body = at + 9
            if opcode == 0 or body + length > size:
                break
            try:
                self._take(opcode, data, body, length)
            except (struct.error, ValueError, OverflowError, McapError) as error:
                self.incomplete.append(f"damaged record at byte {at} left out: {error}")
            at = body + length
            if opcode == Opcode.FOOTER and data[at : at + len(MCAP0_MAGIC)] == MCAP0_MAGIC:
                self.finished = True
                return
        self.incomplete.append(f"the file is cut: its last {size - at} bytes are an incomplete record" if at < size else "the file is cut")

    def _take(self, opcode: int, data: Any, start: int, length: int) -> None:
        if opcode not in (Opcode.CHUNK, Opcode.METADATA, Opcode.ATTACHMENT, Opcode.CHANNEL, Opcode.SCHEMA):
            return
        stream = ReadDataStream(BytesIO(data[start : start + length]))
        if opcode == Opcode.CHUNK:
            self.chunks.append(Chunk.read(stream))
        elif opcode == Opcode.METADATA:
            metadata = Metadata.read(stream)
            if metadata.name == "run":
                self.run = metadata.metadata
            elif metadata.name == "end":
                self.end = metadata.metadata
        elif opcode == Opcode.ATTACHMENT:
            attachment = Attachment.read(stream)
            self.files[attachment.name] = (attachment.data, attachment.media_type)
        elif opcode == Opcode.SCHEMA:
            schema = Schema.read(stream)
            if schema.name == SCHEMA_NAME:
                self.schema = schema.data.decode("utf-8", "replace")
        else:
            channel = Channel.read(stream)
            if channel.topic == TOPIC:
                self.channel_id = channel.id

    def _records(self, dtype: np.dtype) -> np.ndarray:
        message = message_dtype(dtype)
        chunks = [chunk for chunk in self.chunks if self._honest(chunk)]
        total = sum(chunk.uncompressed_size // message.itemsize + 1 for chunk in chunks)
        out = self._room(total, dtype.itemsize)
        unpack, filled = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK), 0
        for chunk in chunks:
            part = self._chunk_records(chunk, message, unpack)
            out[filled : filled + len(part)] = part
            filled += len(part)
        return self._in_order(out[:filled].reshape(-1).view(dtype))

    def _room(self, count: int, size: int) -> np.ndarray:
        """Room for `count` records of `size` bytes: memory, or, for a run of hours, a file without a name beside the log, of which the
        kernel keeps in memory what is in use. Raises LogError when the disk has no room either."""
        if count * size <= MEMORY_SHARE * available_memory():
            return np.empty((count, size), np.uint8)  # what is not written to costs nothing
        for folder in (self.path.parent, Path(tempfile.gettempdir())):
            with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
                os.posix_fallocate(file.fileno(), 0, count * size)
                return np.memmap(file, np.uint8, "r+", shape=(count, size))
        raise LogError(f"{self.path}: its records need {count * size / 1e9:.1f} GB, more than {MEMORY_SHARE:.0%} of the free memory, "
                       f"and there is no room for a file of that size in {self.path.parent} or {tempfile.gettempdir()}")  # fmt: skip

    def _honest(self, chunk: Chunk) -> bool:
        """Can the chunk hold what it says? Else it is left out and named."""
        fault = chunk_fault(chunk)
        if fault:
            self.incomplete.append(f"damaged chunk left out: run time {_span(chunk)} s: {fault}")
        return not fault

    def _in_order(self, records: np.ndarray) -> np.ndarray:
        """Records in ascending ticks. Where they are not, only those with a right checksum count, and of these the ones that continue."""
        if not len(records) or (records["tick"][1:] > records["tick"][:-1]).all() and records["tick"][0] >= 0:
            return records
        ticks = np.where(syndromes(records) != 0, -1, records["tick"])
        keep = ticks > np.concatenate([[-1], np.maximum.accumulate(ticks)[:-1]])
        left = records["tick"][~keep]
        some = ", ".join(str(tick) for tick in left[:5])
        self.incomplete.append(f"{len(left)} records out of order left out: tick {some}{', ...' if len(left) > 5 else ''}")
        return records[keep]

    def _chunk_records(self, chunk: Chunk, message: np.dtype, unpack: zstandard.ZstdDecompressor) -> np.ndarray:
        """The records of an honest chunk as bytes, (n, record size)."""
        nothing = np.empty((0, message["record"].itemsize), np.uint8)
        try:
            raw = unpack.decompress(chunk.data, chunk.uncompressed_size) if chunk.compression == "zstd" else chunk.data
        except zstandard.ZstdError:
            self.incomplete.append(f"damaged chunk left out: run time {_span(chunk)} s")
            return nothing
        if len(raw) > chunk.uncompressed_size:
            self.incomplete.append(f"damaged chunk left out: run time {_span(chunk)} s: longer than its header states")
            return nothing
        if chunk.uncompressed_crc and zlib.crc32(raw) != chunk.uncompressed_crc:
            self.incomplete.append(f"altered chunk: run time {_span(chunk)} s")
        if len(raw) % message.itemsize == 0:
            messages = np.frombuffer(raw, message)
            ours = (messages["opcode"] == Opcode.MESSAGE) & (messages["length"] == message.itemsize - 9)
            if (ours & (messages["channel"] == self.channel_id)).all():
                return np.frombuffer(raw, np.uint8).reshape(len(messages), -1)[:, message.fields["record"][1] :]  # type: ignore[index]
        return self._mixed_chunk(chunk, raw, message["record"].itemsize, nothing)

    def _mixed_chunk(self, chunk: Chunk, raw: bytes, size: int, nothing: np.ndarray) -> np.ndarray:
        """The slow way, for chunks that other tools have rewritten: message by message."""
        plain = Chunk("", raw, chunk.message_end_time, chunk.message_start_time, 0, len(raw))
        found = []
        try:
            for record in breakup_chunk(plain):
                if isinstance(record, Channel) and record.topic == TOPIC:
                    self.channel_id = record.id
                elif isinstance(record, Message) and record.channel_id == self.channel_id and len(record.data) == size + 4:
                    found.append(record.data[4:])
        except (struct.error, ValueError, OverflowError, McapError) as error:
            self.incomplete.append(f"damaged chunk at run time {_span(chunk)} s: {error}")
        return np.frombuffer(b"".join(found), np.uint8).reshape(len(found), size) if found else nothing

    def _end(self, ticks: int) -> dict[str, Any]:
        if self.end is None:
            if self.finished:
                self.incomplete.append("the log says nothing of the end of the run")
            return {}
        try:
            reasons, facts = json.loads(self.end["reasons"]), json.loads(self.end["facts"])
            written, lost = int(self.end["ticks"]), int(self.end["lost_ticks"])
            if not isinstance(reasons, list) or not isinstance(facts, dict):
                raise ValueError("reasons and facts must be a list and a table")
        except (KeyError, ValueError, RecursionError) as error:
            self.incomplete.append(f"the record of the end of the run is damaged: {error}")
            return {}
        self.incomplete[:0] = [str(reason) for reason in reasons]
        if written != ticks:
            self.incomplete.append(f"{ticks} ticks are in the file, {written} were written")
        return facts | {"lost_ticks": lost}


def chunk_fault(chunk: Chunk) -> str:
    """Why a chunk cannot hold what it says, "" when it can: then it takes no more memory than that when it is decompressed."""
    packed, size = len(chunk.data), chunk.uncompressed_size
    if chunk.compression == "":
        return "" if packed == size else f"{packed} bytes, its header states {size}"
    if chunk.compression != "zstd":
        return f"compressed with {chunk.compression!r:.20}: only zstd is read"
    try:
        inside = zstandard.get_frame_parameters(chunk.data).content_size
    except zstandard.ZstdError as error:
        return str(error)
    if inside not in (size, zstandard.CONTENTSIZE_UNKNOWN):
        return f"{inside} bytes inside, its header states {size}"
    if size > min(MAX_CHUNK, MAX_EXPANSION * packed):
        return f"{packed} bytes would become {size}, limit {MAX_EXPANSION} times and {MAX_CHUNK}"
    return ""


def _span(chunk: Chunk) -> str:
    return f"{chunk.message_start_time * 1e-9:.3f}...{chunk.message_end_time * 1e-9:.3f}"


def recover(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Log:
    """Writes what can be read of `source` to a new, whole file `target`, marked as incomplete. Returns what was read.

    Checksums of records are carried over as they were, so that damage stays visible. Raises LogError.
    """
    log = open_log(source)
    try:
        writer = LogWriter(target, log.header)
        writer.reasons = [*log.incomplete, "recovered from a damaged file"] if log.incomplete else []
        writer.copy(log.records)
        writer.lost_ticks = int(log.end.get("lost_ticks", 0))
        writer.close({key: value for key, value in log.end.items() if key != "lost_ticks"})
    except OSError as error:
        raise LogError(f"{target}: {error.strerror or error}") from error
    return log
