"""Which thread had a core when, and which softirq it was in: the kernel's own records, where this process may have them.

perf_event_open(2). Switches: a counter that counts nothing and records every switch of one core; a record is 40 bytes, a loop at 1 kHz
makes some two thousand a second (layout: PERF_RECORD_SWITCH_CPU_WIDE of that page, with sample_id: tid, time, cpu). Softirqs: the
tracepoints of their beginning and end, whose numbers tracefs gives; a record is 48 bytes (PERF_RECORD_SAMPLE: tid, time, cpu, raw).
"""

import ctypes
import fcntl
import mmap
import os
import platform
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

IDLE = 0
PAGES = 128  # of the buffer: ten thousand records and more
KEPT = 65536  # changes: a second of a busy network, many of a quiet one
SYSCALL = {"x86_64": 298, "aarch64": 241}
SOFTWARE, TRACEPOINT, DUMMY = 1, 2, 9
SAMPLE_TID, SAMPLE_TIME, SAMPLE_CPU, SAMPLE_RAW = 1 << 1, 1 << 2, 1 << 7, 1 << 10
COMM, SAMPLE_ID_ALL, USE_CLOCKID, CONTEXT_SWITCH = 1 << 9, 1 << 18, 1 << 25, 1 << 26
CLOCK_MONOTONIC = 1
SET_OUTPUT = 0x2405
LOST, NAMED, THROTTLED, RELEASED, SAMPLE, SWITCH_CPU_WIDE, OUT = 2, 3, 5, 6, 9, 15, 1 << 13
HEAD, TAIL = 1024, 1032  # in the first page
# header, the other thread, then sample_id: the one whose switch it is, time, cpu
SWITCH = np.dtype([("kind", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("other_process", "<u4"), ("other", "<u4"), ("own_process", "<u4"),
                   ("own", "<u4"), ("time_ns", "<i8"), ("cpu", "<u4"), ("unused", "<u4")])  # fmt: skip
# header, thread, time, cpu, then the tracepoint's own: its number, and which softirq
SOFTIRQ = np.dtype([("kind", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("process", "<u4"), ("thread", "<u4"), ("time_ns", "<i8"),
                    ("cpu", "<u4"), ("unused", "<u4"), ("length", "<u4"), ("point", "<u2"), ("flags", "<u2"), ("pid", "<u4"),
                    ("which", "<u4")])  # fmt: skip
SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
NONE = -1  # no softirq
TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")

_T = TypeVar("_T", bound="Trace")


class Trace(ABC):
    """A state of one core over time, from the newest records. Made by `open` of its kinds. names: of threads that took theirs on this core
    meanwhile, ended or not."""

    LAYOUT: np.dtype
    KIND: int

    def __init__(self, descriptors: list[int]) -> None:
        """descriptors: the first has the buffer, the others write into it."""
        self._descriptors = descriptors
        self._page = mmap.PAGESIZE
        self._map = mmap.mmap(descriptors[0], (1 + PAGES) * self._page)
        for other in descriptors[1:]:
            fcntl.ioctl(other, SET_OUTPUT, descriptors[0])
        self.names: dict[int, str] = {}
        self._full = False
        self._chunks: deque[tuple[np.ndarray, np.ndarray]] = deque()  # times, and the state from each on
        self._count = 0
        self._joined: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def _made(cls: type[_T], descriptors: list[int]) -> _T | None:
        if all(one >= 0 for one in descriptors):
            try:
                return cls(descriptors)
            except (OSError, ValueError):
                pass
        for one in descriptors:
            if one >= 0:
                os.close(one)
        return None

    def _new(self) -> bytes:
        """What the kernel has written since the last time."""
        head, tail = (struct.unpack_from("<Q", self._map, at)[0] for at in (HEAD, TAIL))
        size, raw = PAGES * self._page, bytearray()
        while tail < head:
            part = min(head - tail, size - tail % size)
            raw += self._map[self._page + tail % size : self._page + tail % size + part]
            tail += part
        struct.pack_into("<Q", self._map, TAIL, head)
        self._full = len(raw) > size - 256  # more may have come, for which there was no room
        return bytes(raw)

    def read(self) -> None:
        """Takes what is new. Call it often enough: a full buffer makes a hole, and what was before it is no use."""
        for records in _runs(self._new(), self.LAYOUT, self.KIND, self.names):
            if records is None:
                self._forget()
            else:
                self._chunks.append((records["time_ns"].astype(np.int64), self._of(records).astype(np.int64)))
                self._count, self._joined = self._count + len(records), None
        while self._count > KEPT:
            self._count -= len(self._chunks.popleft()[0])
        if self._full:
            self._forget()

    @abstractmethod
    def _of(self, records: np.ndarray) -> np.ndarray:
        """The state from each record on."""

    def _forget(self) -> None:
        """There is a hole after what is known."""
        self._chunks.clear()
        self._count, self._joined = 0, None

    def shares(self, begin: int, end: int) -> list[tuple[int, float]] | None:
        """State → its share of the time from begin to end (CLOCK_MONOTONIC, ns), most first. None where the records do not reach back so
        far."""
        if (known := self._reaching(begin)) is None or end <= begin:
            return None
        times, states = known
        first, last = int(np.searchsorted(times, begin, "right")) - 1, int(np.searchsorted(times, end, "left"))
        edges = np.clip(np.append(times[first:last], end), begin, end)
        sums: dict[int, float] = {}
        for state, length in zip(states[first:last].tolist(), np.diff(edges), strict=True):
            sums[state] = sums.get(state, 0.0) + float(length) / (end - begin)
        return sorted(sums.items(), key=lambda one: -one[1])

    def _reaching(self, begin: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Times and the state from each on, where they reach back to `begin`."""
        if self._joined is None and self._chunks:
            self._joined = np.concatenate([one[0] for one in self._chunks]), np.concatenate([one[1] for one in self._chunks])
        return None if self._joined is None or self._joined[0][0] > begin else self._joined

    def close(self) -> None:
        """Gives the buffer and the descriptors back."""
        if self._descriptors:
            self._map.close()
            for one in self._descriptors:
                os.close(one)
            self._descriptors = []


class SwitchTrace(Trace):
    """Which thread has the core (IDLE: none)."""

    LAYOUT, KIND = SWITCH, SWITCH_CPU_WIDE

    @classmethod
    def open(cls, core: int) -> "SwitchTrace | None":
        """None where it is not permitted, or this kernel has none."""
        return cls._made([_event(core, SOFTWARE, DUMMY, 0, SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU, COMM | SAMPLE_ID_ALL | CONTEXT_SWITCH)])

    def _of(self, records: np.ndarray) -> np.ndarray:
        # out: the core goes to the other one
        return np.where(records["misc"] & OUT, records["other"], records["own"])


class SoftirqTrace(Trace):
    """Which softirq the core is in (index into SOFTIRQS, NONE)."""

    LAYOUT, KIND = SOFTIRQ, SAMPLE
    _end = 0

    @classmethod
    def open(cls, core: int) -> "SoftirqTrace | None":
        """None where it is not permitted, or tracefs is not there."""
        numbers = [_tracepoint(name) for name in ("irq/softirq_entry", "irq/softirq_exit")]
        if None in numbers:
            return None
        sample = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_RAW
        found = cls._made([_event(core, TRACEPOINT, number, 1, sample, 0) for number in numbers if number is not None])
        if found is not None:
            found._end = numbers[1] or 0
        return found

    def _of(self, records: np.ndarray) -> np.ndarray:
        # a beginning whose end is not the next record is not known to have lasted (the kernel may leave records out)
        begun = records["point"] != self._end
        ended = np.append(~begun[1:], True)
        return np.where(begun & ended, records["which"].astype(np.int64), NONE)

    def kinds(self, begin: int, end: int) -> dict[str, float] | None:
        """Softirq → share of this time that the core was in it. None where unknown."""
        shares = self.shares(begin, end)
        return None if shares is None else {SOFTIRQS[which]: share for which, share in shares if 0 <= which < len(SOFTIRQS)}

    def left_out(self, counted: dict[str, int], begin: int, end: int) -> dict[str, int]:
        """Of what the kernel counted in this time (softirq → how many), what is not on record, where that is more than half: an idle core
        that another one asked for them may be passed over."""
        if (known := self._reaching(begin)) is None:
            return {}
        times, states = known
        seen = np.bincount(states[(times >= begin) & (times <= end) & (states != NONE)], minlength=len(SOFTIRQS))
        missing = {kind: number - int(seen[SOFTIRQS.index(kind)]) for kind, number in counted.items() if kind in SOFTIRQS}
        return {kind: number for kind, number in missing.items() if 2 * number > counted[kind]}


def _event(core: int, kind: int, config: int, period: int, sample: int, flags: int) -> int:
    """Descriptor of the records of one core, negative where there are none. Times on CLOCK_MONOTONIC."""
    number = SYSCALL.get(platform.machine())
    if core < 0 or number is None:
        return -1
    fields = (kind, 112, config, period, sample, 0, flags | USE_CLOCKID, 0, 0, 0, 0, 0, 0, 0, CLOCK_MONOTONIC)
    attribute = struct.pack("<IIQQQQQIIQQQQIi", *fields).ljust(112, b"\0")
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(number, ctypes.c_char_p(attribute), -1, core, -1, 8)  # 8: close on exec
    return descriptor


def _tracepoint(name: str) -> int | None:
    for folder in TRACEFS:
        try:
            return int(Path(f"{folder}/events/{name}/id").read_text())
        except (OSError, ValueError):
            continue
    return None


def _runs(raw: bytes, layout: np.dtype, wanted: int, names: dict[int, str]) -> Iterator[np.ndarray | None]:
    """Runs of records of the wanted kind, None in place of those that the kernel had no room for; threads that take a name go into
    `names`."""
    whole = np.frombuffer(raw[: len(raw) // layout.itemsize * layout.itemsize], layout)
    alike = np.all(whole["kind"] == wanted) and np.all(whole["size"] == layout.itemsize)
    if len(whole) and len(whole) * layout.itemsize == len(raw) and alike:
        yield whole
        return
    at = 0
    while at + 8 <= len(raw):
        kind, _, length = struct.unpack_from("<IHH", raw, at)
        if kind in (LOST, THROTTLED, RELEASED):
            yield None
        elif kind == NAMED:
            names[struct.unpack_from("<I", raw, at + 12)[0]] = raw[at + 16 : at + 32].partition(b"\0")[0].decode(errors="replace")
        elif kind == wanted and length == layout.itemsize:
            yield np.frombuffer(raw, layout, 1, at)
        at += max(length, 8)
