"""The log of a run: one MCAP file that holds the whole record of the run and that other people's tools open.

File: header · metadata `run` · attachments (configuration texts, channels.toml, initial sample, stage states, calibration) · schema
(`ros2msg`) · channel · chunks of 100 ticks, written every 0.1 s · metadata `end` · summary. A message is one tick: four bytes of CDR
encapsulation and the record (`record.py`). All messages have one size, so a chunk is built and read as one NumPy array (`message_dtype`);
the record classes of the `mcap` library write and read everything else. Its reader and its writer take a message at a time, end at the
first damaged record and cannot take back what a full disk has cut off: the walk over the records and the order of writing are our own.

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
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Chunk, Message, Metadata, Schema
from mcap.stream_reader import breakup_chunk
from mcap.writer import MCAP0_MAGIC

from hil_server.log import former_layout
from hil_server.log.format import MAX_CHUNK, MAX_EXPANSION, SCHEMA_NAME, TOPIC, WRONG, Facts, LogError, message_dtype, records_in
from hil_server.log.header import LogHeader, Stored
from hil_server.log.record import LayoutMismatchError, damaged_records, record_dtype, scalar_names, syndromes
from rt_kernels.layout import LAYOUT_HASH

MEMORY_SHARE = 0.5  # of the free memory that the records of a log may take
HEAD = struct.Struct("<QQQ")  # of a chunk: first and last time, size when decompressed


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
    end: Facts
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
        return list(self.damage) if self.absent is not None else list(self._damaged)

    @cached_property
    def _damaged(self) -> list[tuple[int, str]]:
        return damaged_records(self.records, self.aux_names)

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


def read_log(path: str | os.PathLike[str]) -> Log:
    """Reads a log whole. A file without its end (killed writer, torn tail) is read up to the last whole chunk.

    Raises LogError when it is not one of our logs, LayoutMismatchError when its table of channels is another one and it does not say which.
    """
    with contextlib.closing(LogFile(path)) as file:
        return file.read()


@dataclass
class ChunkPlace:
    """Where a chunk lies in the file, its first and last run time, ns, its size when decompressed, and the last tick before it that counts
    (-1: no tick has to be looked at)."""

    start: int
    length: int
    first_ns: int
    last_ns: int
    size: int
    floor: int = -1


class LogFile:
    """A log that is read on demand: opening walks over the heads of the file's records and decompresses nothing; `records` reads one chunk
    (about a quarter of a megabyte), `read` all of them.

    header: what the file says of the run. end: facts that the run left at its end ({} when it was cut), written: ticks that it then had
    (None when it was cut). absent: fields of today's table that this log, of an earlier one, does not have; None for a log of today's. Use
    `close`, or leave it to the end of the process.

    Raises LogError when the file is not one of our logs, LayoutMismatchError when its table of channels is another one and it does not
    say which.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._reasons: dict[str, None] = {}
        self._run: dict[str, str] = {}
        self._at_end: dict[str, str] | None = None
        self._schema: str | None = None
        self._files: dict[str, tuple[bytes, str]] = {}
        self._channel_id: int | None = None
        self._chunks: list[ChunkPlace] = []
        self._unpack = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
        try:
            with self.path.open("rb") as file:
                if (size := os.fstat(file.fileno()).st_size) < len(MCAP0_MAGIC):
                    raise LogError(f"{path}: is not a log ({size} bytes)")
                self._fd = os.dup(file.fileno())  # chunks are read from here: pages of a map would count as memory of the process
            self._closed = weakref.finalize(self, os.close, self._fd)
            with mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ) as data:
                finished = self._walk(data)
        except OSError as error:
            raise LogError(f"{path}: {error.strerror or error}") from error
        self.header = self._described()
        self.end, self.written = self._ended(finished)

    def close(self) -> None:
        """Lets the file go; nothing can be read afterwards."""
        self._closed()

    @property
    def incomplete(self) -> list[str]:
        """Why the run is not whole, as far as the file has been read; empty when it is."""
        return list(self._reasons)

    @cached_property
    def places(self) -> list[ChunkPlace]:
        """The chunks in the order of the run. They are taken by the run times in their heads; where these are not in order, every chunk is
        looked at once, and what does not continue the ticks before it is left out."""
        starts, ends = [place.first_ns for place in self._chunks], [place.last_ns for place in self._chunks]
        in_order = all(a <= b for a, b in zip(starts, ends, strict=True)) and all(a > b for a, b in zip(starts[1:], ends, strict=False))
        return self._chunks if in_order else self._surveyed()

    @property
    def span_s(self) -> tuple[float, float]:
        """First and last run time in the file, s; (0, 0) of a log without a tick."""
        return (self.places[0].first_ns * 1e-9, self.places[-1].last_ns * 1e-9) if self.places else (0.0, 0.0)

    @property
    def bytes_inside(self) -> int:
        """Size of all ticks when decompressed."""
        return sum(place.size for place in self.places)

    def between(self, start_s: float, stop_s: float) -> list[int]:
        """Numbers of the chunks that may hold ticks of these run times."""
        return [i for i, place in enumerate(self.places) if place.last_ns * 1e-9 >= start_s and place.first_ns * 1e-9 <= stop_s]

    def records(self, number: int) -> np.ndarray:
        """The ticks of a chunk as records of today's table, (n,); none of one that is damaged."""
        theirs = self._theirs(self.places[number])
        return theirs if self.absent is None else former_layout.converted(theirs)[0]

    def damaged(self) -> Iterator[tuple[int, np.ndarray]]:
        """(number of the chunk, ticks (m,) of its records whose own checksum is wrong), of chunks that have some."""
        for number, place in enumerate(self.places):
            theirs = self._theirs(place)
            wrong = theirs["tick"][syndromes(theirs) != 0]
            if len(wrong):
                yield number, wrong

    def read(self) -> Log:
        """The whole log. Raises LogError when there is no room for its records."""
        chunks = [chunk for place in self._chunks if (chunk := self._chunk(place)) is not None]
        total = sum(chunk.uncompressed_size // self._message.itemsize + 1 for chunk in chunks)
        room, filled = self._room(total, self.dtype.itemsize), 0
        for chunk in chunks:
            part = self._rows(chunk)
            room[filled : filled + len(part)] = part
            filled += len(part)
        records = self._in_order(room[:filled].reshape(-1).view(self.dtype))
        damage: tuple[tuple[int, str], ...] = ()
        if self.absent is not None:
            damage, records = tuple(former_layout.damaged(records)), former_layout.converted(records)[0]
        if self.written not in (None, len(records)):
            self._note(f"{len(records)} ticks are in the file, {self.written} were written")
        return Log(self.path, self.header, records, self.end, self.incomplete, self.absent, damage)

    # ---------------------------------------------------------------------------------------------------------- what it says
    def _note(self, reason: str) -> None:
        self._reasons[reason] = None

    def _walk(self, data: mmap.mmap) -> bool:
        """Takes the file's records one after the other; whether it comes to their end."""
        at = len(MCAP0_MAGIC)
        for opcode, body, length in records_in(self.path, data):
            try:
                self._take(opcode, data, body, length)
            except WRONG as error:
                self._note(f"damaged record at byte {at} left out: {error}")
            at = body + length
            if opcode == Opcode.FOOTER and data[at : at + len(MCAP0_MAGIC)] == MCAP0_MAGIC:
                return True
        left = len(data) - at
        self._note(f"the file is cut: its last {left} bytes are an incomplete record" if left else "the file is cut")
        return False

    def _take(self, opcode: int, data: mmap.mmap, start: int, length: int) -> None:
        if opcode == Opcode.CHUNK:
            self._chunks.append(ChunkPlace(start, length, *HEAD.unpack_from(data, start)))
        if opcode not in (Opcode.METADATA, Opcode.ATTACHMENT, Opcode.CHANNEL, Opcode.SCHEMA):
            return
        stream = ReadDataStream(BytesIO(data[start : start + length]))
        if opcode == Opcode.METADATA:
            metadata = Metadata.read(stream)
            if metadata.name == "run":
                self._run = metadata.metadata
            elif metadata.name == "end":
                self._at_end = metadata.metadata
        elif opcode == Opcode.ATTACHMENT:
            attachment = Attachment.read(stream)
            self._files[attachment.name] = (attachment.data, attachment.media_type)
        elif opcode == Opcode.SCHEMA:
            schema = Schema.read(stream)
            if schema.name == SCHEMA_NAME:
                self._schema = schema.data.decode("utf-8", "replace")
        else:
            channel = Channel.read(stream)
            if channel.topic == TOPIC:
                self._channel_id = channel.id

    def _described(self) -> LogHeader:
        """What the file says of the run; sets `dtype` and `absent` by its table of channels."""
        if "layout_hash" not in self._run:
            raise LogError(f"{self.path}: no run is described in it (cut before its first tick, or not a log of this program)")
        former = self._run["layout_hash"] != LAYOUT_HASH
        if former and self._schema is None:
            raise LayoutMismatchError(f"log {self.path}", self._run["layout_hash"])
        header = LogHeader.read(Stored(self.path, self._run, self._files))
        self.absent: frozenset[str] | None = None
        self.dtype = record_dtype(header.aux_count)
        if former:
            try:
                self.dtype = former_layout.dtype_of(self._schema or "", header.aux_count)
            except LogError as error:
                raise LogError(f"{self.path}: {error}") from None
            self.absent = former_layout.converted(np.zeros(1, self.dtype))[1]
            before = header.initial_record
            if len(before) >= self.dtype.itemsize - self.dtype["aux"].itemsize:  # with or without auxiliary channels
                whole = before.ljust(self.dtype.itemsize, b"\0")[: self.dtype.itemsize]
                header.initial_record = former_layout.converted(np.frombuffer(whole, self.dtype))[0].tobytes()
            header.layout_hash = LAYOUT_HASH
        self._message = message_dtype(self.dtype)
        return header

    def _ended(self, finished: bool) -> tuple[Facts, int | None]:
        """Facts that the run left at its end, and how many ticks it then had."""
        if self._at_end is None:
            if finished:
                self._note("the log says nothing of the end of the run")
            return {}, None
        try:
            reasons, facts = json.loads(self._at_end["reasons"]), json.loads(self._at_end["facts"])
            written, lost = int(self._at_end["ticks"]), int(self._at_end["lost_ticks"])
            if not isinstance(reasons, list) or not isinstance(facts, dict):
                raise ValueError("reasons and facts must be a list and a table")
        except (KeyError, ValueError, RecursionError) as error:
            self._note(f"the record of the end of the run is damaged: {error}")
            return {}, None
        self._reasons = dict.fromkeys(str(reason) for reason in reasons) | self._reasons
        return facts | {"lost_ticks": lost}, written

    # ---------------------------------------------------------------------------------------------------------------- chunks
    def _chunk(self, place: ChunkPlace) -> Chunk | None:
        """The chunk as it is in the file; None, and named, when it cannot hold what it says."""
        try:
            chunk: Chunk = Chunk.read(ReadDataStream(BytesIO(os.pread(self._fd, place.length, place.start))))
        except WRONG as error:
            self._note(f"damaged record at byte {place.start - 9} left out: {error}")
            return None
        if fault := chunk_fault(chunk):
            self._note(f"damaged chunk left out: run time {_span(chunk)} s: {fault}")
            return None
        return chunk

    def _theirs(self, place: ChunkPlace) -> np.ndarray:
        """The chunk's records as they were written, (n,) of `dtype`, those in ascending ticks above the floor."""
        chunk = self._chunk(place)
        rows = self._nothing() if chunk is None else self._rows(chunk)
        return self._in_order(np.ascontiguousarray(rows).reshape(-1).view(self.dtype), place.floor)

    def _surveyed(self) -> list[ChunkPlace]:
        """Looks at every chunk once: its times by its records, and the last tick before it."""
        floor = 0
        kept: list[ChunkPlace] = []
        for place in self._chunks:
            place.floor = floor if kept else -1
            records = self._theirs(place)
            if len(records):
                place.first_ns, place.last_ns = int(records["time_ns"].min()), int(records["time_ns"].max())
                floor = max(floor, int(records["tick"][-1]))
                kept.append(place)
        return kept

    def _in_order(self, records: np.ndarray, floor: int = -1) -> np.ndarray:
        """Records in ascending ticks above the floor. Where they are not, only those with a right checksum count, and of these the ones
        that continue."""
        ticks = records["tick"]
        if not len(records) or (ticks[0] > floor and (ticks[1:] > ticks[:-1]).all()):
            return records
        ticks = np.where(syndromes(records) != 0, -1, ticks)
        keep = ticks > np.concatenate([[floor], np.maximum(np.maximum.accumulate(ticks)[:-1], floor)])
        left = records["tick"][~keep]
        some = ", ".join(str(tick) for tick in left[:5])
        self._note(f"{len(left)} records out of order left out: tick {some}{', ...' if len(left) > 5 else ''}")
        return records[keep]

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

    def _nothing(self) -> np.ndarray:
        return np.empty((0, self.dtype.itemsize), np.uint8)

    def _rows(self, chunk: Chunk) -> np.ndarray:
        """The records of a chunk as bytes, (n, record size); none of one that is damaged."""
        try:
            raw = self._unpack.decompress(chunk.data, chunk.uncompressed_size) if chunk.compression == "zstd" else chunk.data
        except zstandard.ZstdError:
            self._note(f"damaged chunk left out: run time {_span(chunk)} s")
            return self._nothing()
        if len(raw) > chunk.uncompressed_size:
            self._note(f"damaged chunk left out: run time {_span(chunk)} s: longer than its header states")
            return self._nothing()
        if chunk.uncompressed_crc and zlib.crc32(raw) != chunk.uncompressed_crc:
            self._note(f"altered chunk: run time {_span(chunk)} s")
        message = self._message
        if len(raw) % message.itemsize == 0:
            messages = np.frombuffer(raw, message)
            ours = (messages["opcode"] == Opcode.MESSAGE) & (messages["length"] == message.itemsize - 9)
            if (ours & (messages["channel"] == self._channel_id)).all():
                return np.frombuffer(raw, np.uint8).reshape(len(messages), -1)[:, message.fields["record"][1] :]  # type: ignore[index]
        return self._mixed_rows(chunk, raw)

    def _mixed_rows(self, chunk: Chunk, raw: bytes) -> np.ndarray:
        """The slow way, for chunks that other tools have rewritten: message by message."""
        plain = Chunk("", raw, chunk.message_end_time, chunk.message_start_time, 0, len(raw))
        found, size = [], self.dtype.itemsize
        try:
            for record in breakup_chunk(plain):
                if isinstance(record, Channel) and record.topic == TOPIC:
                    self._channel_id = record.id
                elif isinstance(record, Message) and record.channel_id == self._channel_id and len(record.data) == size + 4:
                    found.append(record.data[4:])
        except WRONG as error:
            self._note(f"damaged chunk at run time {_span(chunk)} s: {error}")
        return np.frombuffer(b"".join(found), np.uint8).reshape(len(found), size)


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
