"""Telemetry for the bus: everything in batches, and a thinned picture of it that keeps every extreme.

`full`: 20 samples a message, `channels` maps a name to the list of its 20 values (or 20 lists). `slow`: one message for every `slow_ticks`,
with the newest values (`last`), smallest and largest (`min`, `max`) of numbers, and for words of bits all bits that were set (`any`). Both
carry `t` (s, run time of the newest sample), `t_ns`, `tick`, `run`, `layout`, `dropped` (samples lost in the ring), `sequence` (counts the
messages of a topic: a gap is a loss on the way), `thinned` (batches not sent because the run is faster than real time), `wall` (when the
message was made, s since 1970) and `wall_of_tick` (when its newest sample was, see `TickTime`). Auxiliary channels stand among the others
under their names. `requirements`: four times a second what the requirements of the test have come to (`hil_server.requirements.Result` as
maps), `final` when the run is over.

Sending never waits: ZeroMQ drops for a subscriber whose queue is full, and for no other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import zmq

from hil_server.bus.wire import FULL, REQUIREMENTS, SLOW, STATUS, Message, Socket, pack
from hil_server.log.header import LogHeader
from hil_server.log.record import joined
from rt_kernels.codes import STOP_FAULTS
from rt_kernels.doors import time
from rt_kernels.layout import FIELDS, SAMPLE_DTYPE

MAX_RATE = 100.0  # batches per second of the wall clock, on average
MAX_BURST = 200.0


class TokenBucket:
    """Lets through `rate` per second on average and `burst` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._last = burst, clock()

    def take(self) -> bool:
        """Whether one more message may be sent now; takes it off the allowance if so."""
        now = self._clock()
        self._level = min(self._burst, self._level + self._rate * (now - self._last))
        self._last = now
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True


class TickTime:
    """When a tick was on the wall clock, s since 1970: its run time plus the smallest distance of the two that was ever seen.

    A sample cannot be seen before it was made, and some look at the ring comes right after it; so the smallest distance is right to
    well below a millisecond after the first second. DRIFT lets the two clocks run apart. Of a run faster or slower than real time it says
    nothing.
    """

    DRIFT = 1e-4  # s/s

    def __init__(self) -> None:
        self._offset, self._at = float("inf"), 0.0

    def see(self, t: float, wall: float) -> None:
        """Takes a pair of run time t [s] and wall clock [s]; the smallest difference counts, with a slow drift."""
        self._offset = min(self._offset + self.DRIFT * (wall - self._at), wall - t)
        self._at = wall

    def wall(self, t: float) -> float:
        """Wall clock [s] of the run time t [s]."""
        return t + self._offset


class Window:
    """Cuts a stream of records into arrays of exactly `size` records."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._parts: list[np.ndarray] = []
        self._count = 0

    def cut(self, records: np.ndarray) -> list[np.ndarray]:
        """Takes records, returns the arrays of `size` records that are full by now."""
        self._parts.append(records)
        self._count += len(records)
        if self._count < self.size:
            return []
        stream = joined(self._parts)
        whole = len(stream) - len(stream) % self.size
        self._parts, self._count = [stream[whole:]], len(stream) - whole
        return [stream[i : i + self.size] for i in range(0, whole, self.size)]


class Columns:
    """Fields of one type, whose numbers are taken out of records together: bits, of which each that was set counts, or numbers."""

    def __init__(self, base: np.dtype, bits: bool) -> None:
        self.bits, self._base = bits, base
        self._names: list[tuple[str, int, int]] = []  # with the first of its columns, and how many: 0 for a single number
        self._places: list[int] = []

    @classmethod
    def of_fields(cls, names: Iterable[str]) -> list["Columns"]:
        """These fields of a record by type; each begins at a multiple of its size."""
        found: dict[tuple[np.dtype, bool], Columns] = {}
        for name in names:
            kind, offset = SAMPLE_DTYPE.fields[name][:2]  # type: ignore[index]
            bits = kind.base.kind == "u" or name == "faults"
            found.setdefault((kind.base, bits), cls(kind.base, bits))._add(name, offset, kind.shape)
        return list(found.values())

    def _add(self, name: str, offset: int, shape: tuple[int, ...]) -> None:
        self._names.append((name, len(self._places), shape[0] if shape else 0))
        first = offset // self._base.itemsize
        self._places += range(first, first + (shape[0] if shape else 1))

    def of(self, records: np.ndarray) -> np.ndarray:
        """(n, columns) of records (n,), which lie one after the other."""
        found: np.ndarray = records.view(self._base).reshape(len(records), -1)[:, self._places]
        return found

    def by_name(self, row: np.ndarray) -> dict[str, object]:
        """One number of each column, as the fields have them."""
        numbers = row.tolist()
        return {name: numbers[at : at + count] if count else numbers[at] for name, at, count in self._names}


class Trip(TypedDict):
    """tick and t, s, of a trip; faults: the stop faults that came with it."""

    tick: int
    t: float
    faults: int


def first_trip(records: np.ndarray, before: np.int64) -> Trip | None:
    """The trip that these records hold: its tick, its time in s, and the stop faults that came with it; None without one.

    before: `faults` of the record before them."""
    if not len(records) or not (tripped := records["trip_tick"] >= 0).any():
        return None
    i = int(tripped.argmax())
    now = int(records["faults"][i]) & STOP_FAULTS
    new = now & ~int(records["faults"][i - 1] if i else before)
    return {"tick": int(records["trip_tick"][i]), "t": float(records["time_ns"][i]) * 1e-9, "faults": new or now}


def on_bus() -> list[str]:
    """Names of the fields that are published on the bus, in the order of the tick."""
    return [field[0] for field in FIELDS if field[7]]


class Publisher:
    """Sends batches to the sockets that are given.

    full: gets `full`, `slow` and `status`. plot: gets `slow` only (PlotJuggler). dropped: tells how many samples the ring lost.
    """

    def __init__(
        self,
        header: LogHeader,
        full: Socket | None,
        plot: Socket | None,
        batch_ticks: int,
        slow_ticks: int,
        dropped: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._header, self._full, self._plot, self._dropped = header, full, plot, dropped
        self._batches, self._slow = Window(batch_ticks), Window(slow_ticks)
        self._bucket = {FULL: TokenBucket(MAX_RATE, MAX_BURST, clock), SLOW: TokenBucket(MAX_RATE, MAX_BURST, clock)}
        self._sequence = {FULL: 0, SLOW: 0, STATUS: 0, REQUIREMENTS: 0}
        self._thinned = {FULL: 0, SLOW: 0, STATUS: 0, REQUIREMENTS: 0}
        self._names = on_bus()
        self._of_a_kind = Columns.of_fields(self._names)
        self._newest = (0, 0)
        self._tick_time = TickTime()
        self._faults = np.int64(0)
        self._trip: Trip | None = None  # from then on in the head of every message

    def publish(self, records: np.ndarray) -> None:
        """Takes the next records of the run, in order."""
        if not len(records) or (self._full is None and self._plot is None):
            return
        self._newest = int(records["time_ns"][-1]), int(records["tick"][-1])
        self._tick_time.see(self._newest[0] * 1e-9, time.time())
        self._trip = self._trip or first_trip(records, self._faults)
        self._faults = records["faults"][-1]
        if self._full is not None:
            for batch in self._batches.cut(records):
                if self._may_send(FULL):
                    self._send(FULL, batch, {"n": len(batch), "channels": self._columns(batch)}, [self._full])
        for batch in self._slow.cut(records):
            if self._may_send(SLOW):
                self._send(SLOW, batch, self._extremes(batch), [self._full, self._plot])

    def status(self, facts: Mapping[str, object]) -> None:
        """Publishes a status message with these facts on the full stream."""
        self._tell(STATUS, facts)

    def requirements(self, results: Sequence[Mapping[str, object]], final: bool) -> None:
        """Publishes what the requirements have come to so far, on the full stream. final: the run is over."""
        self._tell(REQUIREMENTS, {"requirements": results, "final": final})

    def _tell(self, topic: bytes, facts: Mapping[str, object]) -> None:
        if self._full is not None:
            _send_now(self._full, topic, pack({**self._head(topic, *self._newest), **facts}))

    def _may_send(self, topic: bytes) -> bool:
        if self._bucket[topic].take():
            return True
        self._thinned[topic] += 1
        return False

    def _send(self, topic: bytes, batch: np.ndarray, body: Mapping[str, object], sockets: list[Socket | None]) -> None:
        head = self._head(topic, int(batch["time_ns"][-1]), int(batch["tick"][-1]))
        data = pack({**head, "wall_of_tick": self._tick_time.wall(head["t"]), **body})
        for socket in sockets:
            if socket is not None:
                _send_now(socket, topic, data)

    def _head(self, topic: bytes, time_ns: int, tick: int) -> Message:
        self._sequence[topic] += 1
        return {
            "t": time_ns * 1e-9,
            "t_ns": time_ns,
            "tick": tick,
            "run": self._header.run_id,
            "layout": self._header.layout_hash,
            "dropped": self._dropped(),
            "sequence": self._sequence[topic],
            "thinned": self._thinned[topic],
            "wall": time.time(),
            **({"trip": self._trip} if self._trip else {}),
        }

    def _columns(self, batch: np.ndarray) -> dict[str, object]:
        return {name: batch[name].tolist() for name in self._names} | self._by_channel(batch["aux"].T.tolist(), transpose=True)

    def _extremes(self, batch: np.ndarray) -> dict[str, dict[str, object]]:
        body: dict[str, dict[str, object]] = {"last": {}, "min": {}, "max": {}, "any": {}}
        for columns in self._of_a_kind:
            values = columns.of(batch)
            body["last"] |= columns.by_name(values[-1])
            if columns.bits:
                body["any"] |= columns.by_name(np.bitwise_or.reduce(values, axis=0))
            else:
                body["min"] |= columns.by_name(values.min(axis=0))
                body["max"] |= columns.by_name(values.max(axis=0))
        aux = batch["aux"]
        for group, row in (("last", aux[-1]), ("min", aux.min(axis=0)), ("max", aux.max(axis=0))):
            body[group] |= self._by_channel(row.tolist())
        return body

    def _by_channel(self, rows: list[Any], transpose: bool = False) -> dict[str, object]:
        """The auxiliary channels by name, out of one entry for each of their scalars: one conversion for all, however many there are."""
        found = {}
        for channel in self._header.aux:
            part = rows[channel.offset : channel.offset + channel.count]
            found[channel.name] = part[0] if channel.count == 1 else list(zip(*part, strict=True)) if transpose else part
        return found


def _send_now(socket: Socket, topic: bytes, data: bytes) -> None:
    try:
        socket.send_multipart([topic, data], zmq.NOBLOCK)
    except zmq.ZMQError:
        pass  # the bus delays no one; `sequence` shows the gap
