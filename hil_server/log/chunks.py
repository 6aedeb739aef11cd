"""A log read on demand, chunk by chunk: memory holds one chunk (about a quarter of a megabyte), however long the run was.

Opening walks over the heads of the file's records and decompresses nothing. What `reader.open_log` leaves out is left out here too, and
is named in `incomplete` as soon as the chunk that it lies in has been read. Chunks are taken by the run times in their heads; where these
are not in order, every chunk is looked at once, and what does not continue the ticks before it is left out.
"""

import mmap
import os
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Chunk
from mcap.writer import MCAP0_MAGIC

from hil_server.log import former_layout
from hil_server.log.format import MAX_CHUNK, LogError, message_dtype
from hil_server.log.reader import Reader
from hil_server.log.record import record_dtype, syndromes

HEAD = struct.Struct("<QQQ")  # of a chunk: first and last time, size when decompressed


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


class ChunkedLog(Reader):
    """header, end, incomplete: as those of `reader.Log`; places: the chunks in the order of the run. Use `close`, or leave it to the end
    of the process.

    Raises LogError when the file is not one of our logs, LayoutMismatchError when its table of channels is another one and it does not
    say which.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.places: list[ChunkPlace] = []
        path = Path(path)
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < len(MCAP0_MAGIC):
                    raise LogError(f"{path}: is not a log ({size} bytes)")
                super().__init__(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise LogError(f"{path}: {error.strerror or error}") from error
        self._fd = os.open(path, os.O_RDONLY)  # chunks are read from here: pages of a map would count as memory of the process
        self._closed = weakref.finalize(self, os.close, self._fd)
        self._unpack = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
        try:
            self.header, self.former = self._described()
            self.dtype = self._former_dtype(self.header) if self.former else record_dtype(self.header.aux_count)
        except Exception:
            self.close()
            raise
        finally:
            self.data.close()
        self._message = message_dtype(self.dtype)
        self.facts = self._facts()
        starts = [place.first_ns for place in self.places]
        ends = [place.last_ns for place in self.places]
        if any(a > b for a, b in zip(starts, ends, strict=True)) or any(a <= b for a, b in zip(starts[1:], ends, strict=False)):
            self._survey()

    def close(self) -> None:
        """Lets the file go; nothing can be read afterwards."""
        self._closed()

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
        found = former_layout.converted(theirs)[0] if self.former else theirs
        self.incomplete = list(dict.fromkeys(self.incomplete))
        return found

    def damaged(self) -> Iterator[tuple[int, np.ndarray]]:
        """(number of the chunk, ticks (m,) of its records whose own checksum is wrong), of chunks that have some."""
        for number, place in enumerate(self.places):
            theirs = self._theirs(place)
            wrong = theirs["tick"][syndromes(theirs) != 0]
            if len(wrong):
                yield number, wrong
        self.incomplete = list(dict.fromkeys(self.incomplete))

    def absent(self) -> frozenset[str]:
        """Fields of today's table that this log, of an earlier one, does not have."""
        return former_layout.converted(np.zeros(1, self.dtype))[1] if self.former else frozenset()

    # --------------------------------------------------------------------------------------------------------------- file
    def _take(self, opcode: int, data: Any, start: int, length: int) -> None:
        if opcode != Opcode.CHUNK:
            super()._take(opcode, data, start, length)
            return
        self.places.append(ChunkPlace(start, length, *HEAD.unpack_from(data, start)))

    def _facts(self) -> dict[str, Any]:
        """What the run left at its end. How many ticks the file has is not known yet, so their number is not looked at."""
        written = self.end["ticks"] if self.end and self.end.get("ticks", "").isdigit() else "0"
        return self._end(int(written))

    def _theirs(self, place: ChunkPlace) -> np.ndarray:
        """The chunk's records as they were written, (n,) of `dtype`, those in ascending ticks above the floor."""
        nothing = np.zeros(0, self.dtype)
        try:
            chunk = Chunk.read(ReadDataStream(BytesIO(os.pread(self._fd, place.length, place.start))))
        except (struct.error, ValueError, OverflowError, McapError) as error:
            self.incomplete.append(f"damaged record at byte {place.start - 9} left out: {error}")
            return nothing
        if not self._honest(chunk):
            return nothing
        raw = self._chunk_records(chunk, self._message, self._unpack)
        records = np.ascontiguousarray(raw).reshape(-1).view(self.dtype) if len(raw) else nothing
        if place.floor < 0 or not len(records) or (records["tick"][0] > place.floor and (np.diff(records["tick"]) > 0).all()):
            return self._in_order(records)
        ticks = np.where(syndromes(records) != 0, -1, records["tick"])
        keep = ticks > np.concatenate([[place.floor], np.maximum(np.maximum.accumulate(ticks)[:-1], place.floor)])
        if not keep.all():
            left = f"tick {records['tick'][~keep][0]}{', ...' if (~keep).sum() > 1 else ''}"
            self.incomplete.append(f"{(~keep).sum()} records out of order left out: {left}")
        return records[keep]

    def _survey(self) -> None:
        """Looks at every chunk once: its times by its records, and the last tick before it."""
        floor = 0
        kept: list[ChunkPlace] = []
        for place in self.places:
            place.floor = floor if kept else -1
            records = self._theirs(place)
            if len(records):
                place.first_ns, place.last_ns = int(records["time_ns"].min()), int(records["time_ns"].max())
                floor = max(floor, int(records["tick"][-1]))
                kept.append(place)
        self.places = kept
        self.incomplete = list(dict.fromkeys(self.incomplete))
