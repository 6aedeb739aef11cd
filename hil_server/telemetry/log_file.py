"""The log of a run: one MCAP file that holds the whole record of the run and that other people's tools open.

File: header · metadata `run` · attachments (configuration texts, channels.toml, initial sample, stage states, calibration) · schema
(`ros2msg`) · channel · chunks of 100 ticks, written every 0.1 s · metadata `end` · summary. A message is one tick: four bytes of CDR
encapsulation and the record (`record.py`). All messages have one size, so a chunk is built and read as one NumPy array (`message_dtype`);
the record classes of the `mcap` library write and read everything else.

What a killed writer leaves is a file without its end: it is read up to the last whole chunk, and says so. A chunk that does not decompress
is left out and named; one whose contents were altered is kept, and `Log.damaged()` names ticks and channels.

Reading trusts no figure of the file. A chunk is decompressed only to what it says, what its zstd frame says, and what MAX_EXPANSION and
MAX_CHUNK allow; the writer leaves a chunk that shrinks by more than that uncompressed. So the memory of reading is bounded by the size of
the file. Records come in ascending ticks: what stands out of order is left out and named. `Log.missing()` says which ticks are not there.
"""

import base64
import errno
import json
import math
import mmap
import os
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream, RecordBuilder
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    AttachmentIndex,
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    Message,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from mcap.stream_reader import breakup_chunk
from mcap.writer import MCAP0_MAGIC

from hil_server.errors import UsageError
from hil_server.telemetry.record import (
    CRC_FIELD,
    AuxChannel,
    LayoutMismatchError,
    aux_channels,
    checksums,
    checksums_in,
    damaged_records,
    record_dtype,
    ros2_schema,
    scalar_names,
)
from rt_kernels.layout import LAYOUT_HASH

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


@dataclass
class LogHeader:
    """What is known of a run before its first tick.

    run_id: name of the run. build_id: of the kernels. period_ns: nominal period of the loop. configuration: file name → text, the first
    one is the one the run was started with. aux: declared auxiliary channels. host: facts of the machine. delay_ledger: term → seconds;
    delay_origins: term → measured, identified, configured or derived. prediction: what `hil-server predict` says of it. calibration: of
    the sensors. notes: lines for the reader. synthetic: what was made with invented geometry, "" when nothing was. initial_record: record
    before tick 0, bytes. states: stage → snapshot before tick 0. created: seconds since 1970.
    """

    run_id: str
    build_id: str = ""
    mode: str = ""
    period_ns: int = 1_000_000
    configuration: dict[str, str] = field(default_factory=dict)
    aux: tuple[AuxChannel, ...] = ()
    host: dict[str, Any] = field(default_factory=dict)
    delay_ledger: dict[str, float] = field(default_factory=dict)
    delay_origins: dict[str, str] = field(default_factory=dict)
    prediction: dict[str, Any] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    synthetic: str = ""
    initial_record: bytes = b""
    states: dict[str, bytes] = field(default_factory=dict)
    created: float = field(default_factory=time.time)
    layout_hash: str = LAYOUT_HASH

    def __post_init__(self) -> None:
        self.aux = aux_channels(self.aux)

    @property
    def aux_count(self) -> int:
        return sum(channel.count for channel in self.aux)

    def to_json(self) -> str:
        """The header as text, for another process; bytes in base 64."""
        plain = asdict(self)
        plain["aux"] = [channel.declaration() for channel in self.aux]
        plain["initial_record"] = base64.b64encode(self.initial_record).decode()
        plain["states"] = {name: base64.b64encode(state).decode() for name, state in self.states.items()}
        return json.dumps(plain, default=str)

    @classmethod
    def from_json(cls, text: str) -> "LogHeader":
        plain = json.loads(text)
        plain["initial_record"] = base64.b64decode(plain["initial_record"])
        plain["states"] = {name: base64.b64decode(state) for name, state in plain["states"].items()}
        return cls(**plain)


def message_dtype(record: np.dtype) -> np.dtype:
    """A whole MCAP message record of one tick, packed."""
    columns: list[Any] = [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log_time", "<u8")]
    return np.dtype([*columns, ("publish_time", "<u8"), ("encapsulation", "<u4"), ("record", record)])


# ---------------------------------------------------------------------------------------------------------------- writing


class LogWriter:
    """Writes the log of one run.

    output: a path, or a binary file object (tests). Raises OSError when the head cannot be written. After that no error leaves the
    writer: what cannot be written is counted in `lost_ticks`, the file is cut back to its last whole record, and `reasons` says why the
    run is incomplete; it tries again with the next chunk.
    """

    def __init__(self, output: str | os.PathLike[str] | BinaryIO, header: LogHeader) -> None:
        self.header = header
        self.path = os.fspath(output) if isinstance(output, str | os.PathLike) else None
        self._file: BinaryIO = open(self.path, "xb", buffering=0) if self.path is not None else output  # type: ignore[assignment]
        self.dtype = record_dtype(header.aux_count)
        self._chunk = _empty_messages(self.dtype)  # the chunk that is being filled, in one place: it stays in the cache
        self._bytes = memoryview(self._chunk.data).cast("B")
        self._blank = np.dtype((np.void, self.dtype.itemsize))  # records are copied whole, not field by field
        self._filled = 0
        self._zstd = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
        self._chunk_started = time.monotonic()
        self._offset = 0
        self._chunks: list[ChunkIndex] = []
        self._attachments: list[AttachmentIndex] = []
        self._metadata: list[MetadataIndex] = []
        self._times = (0, 0)
        self.ticks = 0
        self.lost_ticks = 0
        self.reasons: list[str] = []
        self.closed = False
        try:
            self._write_head()
        except OSError:
            self._close_file()
            raise

    # ------------------------------------------------------------------------------------------------------------ head
    def _write_head(self) -> None:
        h = self.header
        self._put(MCAP0_MAGIC)
        self._put_record(Header(profile="", library=f"hil-server log {FORMAT_VERSION}"))
        self._put_metadata("run", _run_metadata(h))
        for name, data, kind in _attachments(h):
            self._put_attachment(name, data, kind)
        self._schema = Schema(id=1, name=SCHEMA_NAME, encoding="ros2msg", data=ros2_schema(h.aux_count).encode())
        self._channel = Channel(id=1, topic=TOPIC, message_encoding="cdr", schema_id=1, metadata={"layout_hash": h.layout_hash})
        self._put_record(self._schema)
        self._put_record(self._channel)

    # ----------------------------------------------------------------------------------------------------------- ticks
    def write(self, records: bytes | np.ndarray) -> np.ndarray:
        """Takes whole records, writes every full chunk, each record with its checksum. Returns them as they came, (n,) of `dtype`.

        Raises ValueError when the bytes are no whole number of records of this run.
        """
        array = self._as_records(records)
        self._take(array, sealed=False)
        if time.monotonic() - self._chunk_started >= CHUNK_SECONDS:
            self.flush()
        return array

    def copy(self, records: np.ndarray) -> None:
        """Takes records of another log with the checksums that they have."""
        self._take(records, sealed=True)

    def flush(self) -> None:
        """Writes what waits."""
        if self._filled:
            self._write_chunk()
        self._chunk_started = time.monotonic()

    def lost(self, ticks: int, reason: str) -> None:
        """Somebody else lost ticks (ring overflow, a killed process): the run is incomplete."""
        self.lost_ticks += ticks
        if reason not in self.reasons:
            self.reasons.append(reason)

    def _as_records(self, records: bytes | np.ndarray) -> np.ndarray:
        if isinstance(records, np.ndarray):
            if records.dtype != self.dtype:
                raise ValueError(f"log: records of {records.dtype.itemsize} bytes, this run has {self.dtype.itemsize}")
            return records
        if len(records) % self.dtype.itemsize:
            raise ValueError(f"log: {len(records)} bytes are no whole number of records of {self.dtype.itemsize} bytes")
        return np.frombuffer(records, self.dtype)

    def _take(self, records: np.ndarray, sealed: bool) -> None:
        """Puts records into the waiting chunk, and writes it whenever it is full."""
        size, record_size = self._chunk.itemsize, self.dtype.itemsize
        at = 0
        while at < len(records):
            some = records[at : at + CHUNK_TICKS - self._filled]
            into = self._chunk[self._filled : self._filled + len(some)]
            into["sequence"] = some["tick"] & 0xFFFFFFFF
            into["log_time"] = into["publish_time"] = some["time_ns"]
            records_here = into["record"]
            records_here.view(self._blank)[:] = some.view(self._blank)
            if not sealed:
                records_here[CRC_FIELD] = 0
                first = (self._filled + 1) * size - record_size
                records_here[CRC_FIELD] = checksums_in(self._bytes, first, size, record_size, len(some))
            self._filled += len(some)
            at += len(some)
            if self._filled == CHUNK_TICKS:
                self._write_chunk()
                self._chunk_started = time.monotonic()

    def _write_chunk(self) -> None:
        messages = self._chunk[: self._filled]
        raw = self._bytes[: messages.nbytes]
        self._filled = 0
        first, last = int(messages["log_time"].min()), int(messages["log_time"].max())
        builder = RecordBuilder()
        packed, compression = self._zstd.compress(raw), "zstd"
        if len(raw) > MAX_EXPANSION * len(packed):
            packed, compression = bytes(raw), ""
        Chunk(compression, packed, last, first, zlib.crc32(raw), len(raw)).write(builder)
        size = builder.count
        builder.write(_message_index(messages))
        start = self._offset
        if not self._try_put(builder.end()):
            self.lost_ticks += len(messages)
            return
        self._chunks.append(
            ChunkIndex(
                chunk_length=size,
                chunk_start_offset=start,
                compression=compression,
                compressed_size=len(packed),
                message_end_time=last,
                message_index_length=self._offset - start - size,
                message_index_offsets={1: start + size},
                message_start_time=first,
                uncompressed_size=len(raw),
            )
        )
        self._times = (min(self._times[0], first) if self.ticks else first, max(self._times[1], last))
        self.ticks += len(messages)

    # ------------------------------------------------------------------------------------------------------------- end
    def close(self, facts: dict[str, Any] | None = None) -> bool:
        """Writes what waits, the metadata `end` with `facts`, and the summary. True when the run is complete. May be called twice.

        facts: JSON values by name, stored beside `ticks`, `lost_ticks`, `complete` and `reasons`.
        """
        if self.closed:
            return not self.reasons
        self.closed = True
        self.flush()
        while not self._end(facts or {}) and self._give_way():
            pass
        self._close_file()
        return not self.reasons

    def _end(self, facts: dict[str, Any]) -> bool:
        """Metadata `end` and summary, both or none of them."""
        end = {
            "complete": json.dumps(not self.reasons),
            "reasons": json.dumps(self.reasons),
            "ticks": str(self.ticks),
            "lost_ticks": str(self.lost_ticks),
            "facts": json.dumps(facts, default=str),
        }
        start, metadata = self._offset, list(self._metadata)
        try:
            self._put_metadata("end", end)
            self._put_summary()
        except OSError as error:
            self._offset, self._metadata = start, metadata
            self._failed(error)
            return False
        return True

    def _give_way(self) -> bool:
        """On a full disk the newest chunk makes room for the end, which says why the run is incomplete. False when there is none."""
        if not self._chunks:
            return False
        chunk = self._chunks.pop()
        ticks = chunk.uncompressed_size // self._chunk.itemsize
        self.ticks, self.lost_ticks = self.ticks - ticks, self.lost_ticks + ticks
        self._times = (self._times[0], self._chunks[-1].message_end_time if self._chunks else self._times[0])
        self._offset = chunk.chunk_start_offset
        self._cut()
        return True

    def _close_file(self) -> None:
        if self.path is None:
            return
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            self._failed(error)
        finally:
            self._file.close()

    def _put_summary(self) -> None:
        self._put_record(DataEnd(data_section_crc=0))
        start = self._offset
        statistics = Statistics(
            attachment_count=len(self._attachments),
            channel_count=1,
            channel_message_counts={1: self.ticks},
            chunk_count=len(self._chunks),
            message_count=self.ticks,
            message_end_time=self._times[1],
            message_start_time=self._times[0],
            metadata_count=len(self._metadata),
            schema_count=1,
        )
        groups: list[tuple[Opcode, list[Any]]] = [
            (Opcode.SCHEMA, [self._schema]),
            (Opcode.CHANNEL, [self._channel]),
            (Opcode.STATISTICS, [statistics]),
            (Opcode.CHUNK_INDEX, self._chunks),
            (Opcode.ATTACHMENT_INDEX, self._attachments),
            (Opcode.METADATA_INDEX, self._metadata),
        ]
        builder, offsets = RecordBuilder(), []
        for opcode, members in groups:
            at = builder.count
            for member in members:
                member.write(builder)
            if members:
                offsets.append(SummaryOffset(opcode, start + at, builder.count - at))
        offset_start = start + builder.count
        for offset in offsets:
            offset.write(builder)
        data = builder.end()
        crc = zlib.crc32(struct.pack("<BQQQ", Opcode.FOOTER, 20, start, offset_start), zlib.crc32(data))
        Footer(summary_start=start, summary_offset_start=offset_start, summary_crc=crc).write(builder)
        self._put(data + builder.end() + MCAP0_MAGIC)

    # ----------------------------------------------------------------------------------------------------------- bytes
    def _put_record(self, record: Any) -> None:
        builder = RecordBuilder()
        record.write(builder)
        self._put(builder.end())

    def _put_metadata(self, name: str, data: dict[str, str]) -> None:
        start = self._offset
        self._put_record(Metadata(name=name, metadata=data))
        self._metadata.append(MetadataIndex(offset=start, length=self._offset - start, name=name))

    def _put_attachment(self, name: str, data: bytes, kind: str) -> None:
        start, created = self._offset, int(self.header.created * 1e9)
        self._put_record(Attachment(create_time=created, log_time=0, name=name, media_type=kind, data=data))
        length = self._offset - start
        self._attachments.append(
            AttachmentIndex(offset=start, length=length, log_time=0, create_time=created, data_size=len(data), name=name, media_type=kind)
        )

    def _put(self, data: bytes) -> None:
        """Writes all of `data` or raises OSError; an unbuffered file may take less than it is given."""
        view = memoryview(data)
        while view:
            taken = self._file.write(view)
            if not taken:
                raise OSError(errno.EIO, "the file takes no more data")
            view = view[taken:]
        self._offset += len(data)

    def _try_put(self, data: bytes) -> bool:
        try:
            self._put(data)
        except OSError as error:
            self._failed(error)
            return False
        return True

    def _failed(self, error: OSError) -> None:
        """Notes why, and cuts the file back so that what is in it stays readable."""
        reason = f"log: {error.strerror or error}"
        if reason not in self.reasons:
            self.reasons.append(reason)
        self._cut()

    def _cut(self) -> None:
        try:
            self._file.seek(self._offset)
            self._file.truncate()
        except (OSError, ValueError):
            pass


def _run_metadata(h: LogHeader) -> dict[str, str]:
    return {
        "format_version": FORMAT_VERSION,
        "run_id": h.run_id,
        "layout_hash": h.layout_hash,
        "build_id": h.build_id,
        "mode": h.mode,
        "period_ns": str(h.period_ns),
        "created": repr(h.created),
        "synthetic": h.synthetic,
        "aux": json.dumps([channel.declaration() for channel in h.aux]),
        "host": json.dumps(h.host, default=str),
        "delay_ledger": json.dumps(h.delay_ledger),
        "delay_origins": json.dumps(h.delay_origins),
        "prediction": json.dumps(h.prediction),
        "notes": json.dumps(h.notes),
        "configuration": json.dumps(list(h.configuration)),
    }


def _attachments(h: LogHeader) -> Iterator[tuple[str, bytes, str]]:
    table = Path(__file__).resolve().parents[2] / "rt_kernels" / "channels.toml"
    yield "channels.toml", table.read_bytes(), "application/toml"
    for name, text in h.configuration.items():
        yield f"configuration/{name}", text.encode(), "application/toml"
    yield "calibration.json", json.dumps(h.calibration, default=str).encode(), "application/json"
    yield "initial_record", h.initial_record, "application/octet-stream"
    for name, state in h.states.items():
        yield f"state/{name}", state, "application/octet-stream"


def _empty_messages(record: np.dtype) -> np.ndarray:
    """A chunk of messages without their ticks, (CHUNK_TICKS,)."""
    messages = np.zeros(CHUNK_TICKS, message_dtype(record))
    messages["opcode"] = Opcode.MESSAGE
    messages["length"] = messages.itemsize - 9
    messages["channel"] = 1
    messages["encapsulation"] = CDR_HEADER
    return messages


def _message_index(messages: np.ndarray) -> bytes:
    """MCAP MessageIndex of a chunk that holds only these messages: time and offset of each."""
    entries = np.empty((len(messages), 2), "<u8")
    entries[:, 0] = messages["log_time"]
    entries[:, 1] = np.arange(len(messages)) * messages.dtype.itemsize
    return struct.pack("<BQHI", Opcode.MESSAGE_INDEX, 6 + entries.nbytes, 1, entries.nbytes) + entries.tobytes()


# ---------------------------------------------------------------------------------------------------------------- reading


@dataclass
class Log:
    """A log that was read.

    records: (n,) structured, the fields of the table and `aux` (aux_count,). incomplete: why the run is not whole, empty when it is.
    end: facts the run left at its end ({} when it was cut).
    """

    path: Path
    header: LogHeader
    records: np.ndarray
    end: dict[str, Any]
    incomplete: list[str]

    @property
    def ticks(self) -> int:
        return len(self.records)

    @property
    def complete(self) -> bool:
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
        return damaged_records(self.records, self.aux_names)

    def missing(self) -> list[tuple[int, int]]:
        """First and last of every row of ticks that is not in the log of a run that logs every tick, between its first and its last."""
        ticks = self.records["tick"]
        if not len(ticks):
            return []
        before = np.concatenate([[np.int64(-1)], ticks[:-1]])
        gaps = np.flatnonzero(ticks - before != 1)
        return [(int(before[i]) + 1, int(ticks[i]) - 1) for i in gaps if ticks[i] > before[i]]


def open_log(path: str | os.PathLike[str]) -> Log:
    """Reads a log. A file without its end (killed writer, torn tail) is read up to the last whole chunk.

    Raises LogError when it is not one of our logs, LayoutMismatchError when its table of channels is another one.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(MCAP0_MAGIC):
                raise LogError(f"{path}: is not a log ({size} bytes)")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(path, data).read()
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}") from error


class _Reader:
    """Walks over the records of one file."""

    def __init__(self, path: Path, data: Any) -> None:
        self.path, self.data = path, data
        self.incomplete: list[str] = []
        self.run: dict[str, str] = {}
        self.end: dict[str, str] | None = None
        self.files: dict[str, bytes] = {}
        self.channel_id: int | None = None
        self.chunks: list[Chunk] = []
        self.finished = False

    def read(self) -> Log:
        if self.data[: len(MCAP0_MAGIC)] != MCAP0_MAGIC:
            raise LogError(f"{self.path}: not an MCAP file")
        self._walk()
        if "layout_hash" not in self.run:
            raise LogError(f"{self.path}: no run is described in it (cut before its first tick, or not a log of this program)")
        if self.run["layout_hash"] != LAYOUT_HASH:
            raise LayoutMismatchError(f"log {self.path}", self.run["layout_hash"])
        header = self._header()
        records = self._records(record_dtype(header.aux_count))
        end = self._end(len(records))
        return Log(self.path, header, records, end, self.incomplete)

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
        self.incomplete.append(f"the file is cut: its last {size - at} bytes are no whole record" if at < size else "the file is cut")

    def _take(self, opcode: int, data: Any, start: int, length: int) -> None:
        if opcode not in (Opcode.CHUNK, Opcode.METADATA, Opcode.ATTACHMENT, Opcode.CHANNEL):
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
            self.files[attachment.name] = attachment.data
        else:
            channel = Channel.read(stream)
            if channel.topic == TOPIC:
                self.channel_id = channel.id

    def _header(self) -> LogHeader:
        """What the metadata `run` and the attachments say, each of its kind. Raises LogError that names the first that is not."""
        files = self.files
        if "run_id" not in self.run:
            raise LogError(f"{self.path}: metadata run: run_id is missing")
        names = self._json("configuration", list)
        if not all(isinstance(name, str) for name in names):
            raise LogError(f"{self.path}: metadata run: configuration: must be a list of names")
        return LogHeader(
            **{key: self.run[key] for key in ("run_id", "build_id", "mode", "synthetic", "layout_hash") if key in self.run},
            period_ns=self._number("period_ns", int, 1, 10**10),
            created=self._number("created", float, 0.0, 1e11),
            aux=self._aux(),
            host=self._json("host", dict),
            delay_ledger=self._json("delay_ledger", dict),
            delay_origins=self._json("delay_origins", dict, "{}"),  # this and the next: later additions
            prediction=self._json("prediction", dict, "{}"),
            notes=[str(note) for note in self._json("notes", list)],
            configuration={name: self._text(f"configuration/{name}") for name in names},
            calibration=self._parsed("calibration.json", self._text("calibration.json", b"{}"), dict),
            initial_record=files.get("initial_record", b""),
            states={name.removeprefix("state/"): state for name, state in files.items() if name.startswith("state/")},
        )

    def _json(self, key: str, kind: type, default: str | None = None) -> Any:
        text = self.run.get(key, default)
        if text is None:
            raise LogError(f"{self.path}: metadata run: {key} is missing")
        return self._parsed(f"metadata run: {key}", text, kind)

    def _parsed(self, what: str, text: str, kind: type) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise LogError(f"{self.path}: {what}: not JSON: {error}") from None
        if not isinstance(value, kind):
            raise LogError(f"{self.path}: {what}: must be a {'table' if kind is dict else 'list'}")
        return value

    def _text(self, name: str, default: bytes = b"") -> str:
        try:
            return self.files.get(name, default).decode()
        except UnicodeDecodeError as error:
            raise LogError(f"{self.path}: attachment {name}: not UTF-8 text: byte {error.start}") from None

    def _number(self, key: str, kind: type, low: float, high: float) -> Any:
        try:
            value = kind(self.run[key])
        except (KeyError, ValueError):
            raise LogError(f"{self.path}: metadata run: {key} is missing or no number") from None
        if not (math.isfinite(value) and low <= value <= high):
            raise LogError(f"{self.path}: metadata run: {key} is {value:g}, limit {low:g} ... {high:g}")
        return value

    def _aux(self) -> tuple[AuxChannel, ...]:
        declared = self._json("aux", list)
        for entry in declared:
            whole = isinstance(entry, list) and len(entry) == 4 and all(isinstance(word, str) for word in entry[:3])
            if not whole or type(entry[3]) is not int or not 1 <= entry[3] <= MAX_AUX:
                raise LogError(f"{self.path}: metadata run: aux: {entry!r:.80} is not [name, unit, meaning, 1 ... {MAX_AUX}]")
        if sum(entry[3] for entry in declared) > MAX_AUX:
            raise LogError(f"{self.path}: metadata run: aux: more than {MAX_AUX} auxiliary scalars")
        return aux_channels(declared)

    def _records(self, dtype: np.dtype) -> np.ndarray:
        message = message_dtype(dtype)
        chunks = [chunk for chunk in self.chunks if self._honest(chunk)]
        total = sum(chunk.uncompressed_size // message.itemsize + 1 for chunk in chunks)
        out = np.empty((total, dtype.itemsize), np.uint8)  # what is not written to costs nothing
        unpack, filled = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK), 0
        for chunk in chunks:
            part = self._chunk_records(chunk, message, unpack)
            out[filled : filled + len(part)] = part
            filled += len(part)
        return self._in_order(out[:filled].reshape(-1).view(dtype))

    def _honest(self, chunk: Chunk) -> bool:
        """Can the chunk hold what it says? Else it is left out and named."""
        fault = chunk_fault(chunk)
        if fault:
            self.incomplete.append(f"damaged chunk left out: run time {_span(chunk)} s: {fault}")
        return not fault

    def _in_order(self, records: np.ndarray) -> np.ndarray:
        """Records in ascending ticks. Where they are not, only those with a right checksum count, and of these the ones that go on."""
        if not len(records) or (records["tick"][1:] > records["tick"][:-1]).all() and records["tick"][0] >= 0:
            return records
        wrong = np.zeros(len(records), bool)
        block = max(1, (1 << 25) // records.dtype.itemsize)
        for start in range(0, len(records), block):
            part = records[start : start + block].copy()
            part[CRC_FIELD] = 0
            wrong[start : start + block] = checksums(part) != records[CRC_FIELD][start : start + block]
        ticks = np.where(wrong, -1, records["tick"])
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
            self.incomplete.append(f"damaged chunk left out: run time {_span(chunk)} s: longer than its head says")
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
            self.incomplete.append(f"what the log says of the end of the run is damaged: {error}")
            return {}
        self.incomplete[:0] = [str(reason) for reason in reasons]
        if written != ticks:
            self.incomplete.append(f"{ticks} ticks are in the file, {written} were written")
        return facts | {"lost_ticks": lost}


def chunk_fault(chunk: Chunk) -> str:
    """Why a chunk cannot hold what it says, "" when it can: then it takes no more memory than that when it is decompressed."""
    packed, size = len(chunk.data), chunk.uncompressed_size
    if chunk.compression == "":
        return "" if packed == size else f"{packed} bytes, its head says {size}"
    if chunk.compression != "zstd":
        return f"compressed with {chunk.compression!r:.20}: only zstd is read"
    try:
        inside = zstandard.get_frame_parameters(chunk.data).content_size
    except zstandard.ZstdError as error:
        return str(error)
    if inside not in (size, zstandard.CONTENTSIZE_UNKNOWN):
        return f"{inside} bytes inside, its head says {size}"
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
