"""Writes the log of a run (`reader` says how the file is built)."""

import errno
import io
import json
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
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
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from mcap.writer import MCAP0_MAGIC

from hil_server.log import checkpoint as checkpoints
from hil_server.log.checkpoint import Checkpoint
from hil_server.log.format import (
    CDR_HEADER,
    CHUNK_SECONDS,
    CHUNK_TICKS,
    FORMAT_VERSION,
    MAX_EXPANSION,
    SCHEMA_NAME,
    TOPIC,
    ZSTD_LEVEL,
    Facts,
    message_dtype,
)
from hil_server.log.header import TOML, LogHeader
from hil_server.log.record import (
    CRC_FIELD,
    checksums_in,
    record_dtype,
    ros2_schema,
)
from rt_kernels.doors import disk, time

CHECKPOINT_CHANNEL = 2


class LogWriter:
    """Writes the log of one run.

    output: a path, or a binary file object (tests). clock: s, tells when a chunk is due. The file has its name only with its whole head in
    it, on the disk: it can be read from there. Raises OSError when the head cannot be written, or the name is taken. After that no
    error leaves the writer: what cannot be written is counted in `lost_ticks`, the file is cut back to its last whole record, and
    `reasons` says why the run is incomplete; it tries again with the next chunk.
    """

    def __init__(
        self, output: str | os.PathLike[str] | BinaryIO, header: LogHeader, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.header, self._clock = header, clock
        self.path = os.fspath(output) if isinstance(output, str | os.PathLike) else None
        self._file: BinaryIO = _new_file(self.path) if self.path is not None else output  # type: ignore[assignment]
        self.dtype = record_dtype(header.aux_count)
        self._chunk = _empty_messages(self.dtype)  # the chunk that is being filled, in one place: it stays in the cache
        self._bytes = memoryview(self._chunk.data).cast("B")
        self._blank = np.dtype((np.void, self.dtype.itemsize))  # records are copied whole, not field by field
        self._filled = 0
        self._zstd = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
        self._chunk_started = self._clock()
        self._offset = 0
        self._chunks: list[ChunkIndex] = []
        self._attachments: list[AttachmentIndex] = []
        self._metadata: list[MetadataIndex] = []
        self._times = (0, 0)
        self.ticks = 0
        self.checkpoints = 0
        self.lost_ticks = 0
        self.reasons: list[str] = []
        self.closed = False
        try:
            self._write_head()
            if self.path is not None:
                _give_name(self._file, self.path)
        except OSError:
            if self.path is not None:
                Path(self._file.name).unlink(missing_ok=True)
            self._close_file()
            raise

    # ------------------------------------------------------------------------------------------------------------ head
    def _write_head(self) -> None:
        h = self.header
        self._put(MCAP0_MAGIC)
        self._put_record(Header(profile="", library=f"hil-server log {FORMAT_VERSION}"))
        stored = h.store()
        self._put_metadata("run", {"format_version": FORMAT_VERSION, **stored.run})
        self._put_attachment("channels.toml", _table(), TOML)
        for name, (data, kind) in stored.files.items():
            self._put_attachment(name, data, kind)
        self._schema = Schema(id=1, name=SCHEMA_NAME, encoding="ros2msg", data=ros2_schema(h.aux_count).encode())
        self._channel = Channel(id=1, topic=TOPIC, message_encoding="cdr", schema_id=1, metadata={"layout_hash": h.layout_hash})
        self._put_record(self._schema)
        self._put_record(self._channel)

    # ----------------------------------------------------------------------------------------------------------- ticks
    def write(self, records: bytes | np.ndarray) -> np.ndarray:
        """Takes whole records, writes every full chunk, each record with its checksum. Returns them as they came, (n,) of `dtype`.

        Raises ValueError when the bytes are not a whole number of records of this run.
        """
        array = self._as_records(records)
        self._take(array, sealed=False)
        if self._clock() - self._chunk_started >= CHUNK_SECONDS:
            self.flush()
        return array

    def copy(self, records: np.ndarray) -> None:
        """Takes records of another log with the checksums that they have."""
        self._take(records, sealed=True)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint; what cannot be written is left out, and `reasons` says so."""
        builder = RecordBuilder()
        if not self.checkpoints:
            checkpoints.channel(CHECKPOINT_CHANNEL).write(builder)
        checkpoints.message(CHECKPOINT_CHANNEL, checkpoint).write(builder)
        self.checkpoints += self._try_put(builder.end())

    def flush(self) -> None:
        """Writes what waits."""
        if self._filled:
            self._write_chunk()
        self._chunk_started = self._clock()

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
            raise ValueError(f"log: {len(records)} bytes are not a whole number of records of {self.dtype.itemsize} bytes")
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
                self._chunk_started = self._clock()

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
    def close(self, facts: Facts | None = None) -> bool:
        """Writes what waits, the metadata `end` with `facts`, and the summary. True when the run is complete. May be called twice.

        facts: JSON values by name, stored beside `ticks`, `lost_ticks`, `complete` and `reasons`.
        """
        if self.closed:
            return not self.reasons
        self.closed = True
        self.flush()
        freed = 0
        while not self._try_put(ending := self._ending(facts or {})) and freed < len(ending) and self._chunks:
            freed += self._give_way()
        self._close_file()
        return not self.reasons

    def _ending(self, facts: Facts) -> bytes:
        """Metadata `end` and summary, as they follow on what is in the file."""
        end = {
            "complete": json.dumps(not self.reasons),
            "reasons": json.dumps(self.reasons),
            "ticks": str(self.ticks),
            "lost_ticks": str(self.lost_ticks),
            "facts": json.dumps(facts, default=str),
        }
        file, start, metadata = self._file, self._offset, list(self._metadata)
        self._file = taken = io.BytesIO()
        try:
            self._put_metadata("end", end)
            self._put_summary()
        finally:
            self._file, self._offset, self._metadata = file, start, metadata
        return taken.getvalue()

    def _give_way(self) -> int:
        """On a full disk the newest chunk makes room for the end, which says why the run is incomplete. Returns the bytes that it had. A
        disk that takes the end not even in their place keeps all other chunks: what is in them is read without an end."""
        chunk = self._chunks.pop()
        ticks = chunk.uncompressed_size // self._chunk.itemsize
        self.ticks, self.lost_ticks = self.ticks - ticks, self.lost_ticks + ticks
        self._times = (self._times[0], self._chunks[-1].message_end_time if self._chunks else self._times[0])
        freed, self._offset = self._offset - chunk.chunk_start_offset, chunk.chunk_start_offset
        self._cut()
        return freed

    def _close_file(self) -> None:
        if self.path is None:
            return
        try:
            disk.sync(self._file)
        except OSError as error:
            self._failed(error)
        finally:
            self._file.close()

    def _put_summary(self) -> None:
        self._put_record(DataEnd(data_section_crc=0))
        start = self._offset
        channels, counts = [self._channel], {1: self.ticks}
        if self.checkpoints:
            channels.append(checkpoints.channel(CHECKPOINT_CHANNEL))
            counts[CHECKPOINT_CHANNEL] = self.checkpoints
        statistics = Statistics(
            attachment_count=len(self._attachments),
            channel_count=len(channels),
            channel_message_counts=counts,
            chunk_count=len(self._chunks),
            message_count=self.ticks + self.checkpoints,
            message_end_time=self._times[1],
            message_start_time=self._times[0],
            metadata_count=len(self._metadata),
            schema_count=1,
        )
        groups: list[tuple[Opcode, Sequence[McapRecord]]] = [
            (Opcode.SCHEMA, [self._schema]),
            (Opcode.CHANNEL, channels),
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
    def _put_record(self, record: McapRecord) -> None:
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


def _new_file(path: str) -> BinaryIO:
    """An empty file in the folder of `path`, without that name yet. Raises OSError, FileExistsError where the name is taken."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    return disk.new_file(f"{path}.{os.getpid()}")


def _give_name(file: BinaryIO, path: str) -> None:
    """The name at last, when what is in the file is on the disk. Raises OSError, FileExistsError where the name is taken by now."""
    disk.sync(file)
    try:
        os.link(file.name, path)  # unlike a rename never over another file
    except FileExistsError:
        raise
    except OSError:  # a file system that knows no second name, as that of a memory stick
        os.rename(file.name, path)
    else:
        os.unlink(file.name)


def _table() -> bytes:
    """The table of channels, which every log carries."""
    return (Path(__file__).resolve().parents[2] / "rt_kernels" / "channels.toml").read_bytes()


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
