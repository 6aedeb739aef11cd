"""Which thread had a core when: the kernel's records of context switches, where this process may have them.

perf_event_open(2) with a counter that counts nothing and records every switch of one core. A record of a switch is 40 bytes; a loop at
1 kHz makes some two thousand a second. Layout of the records: PERF_RECORD_SWITCH_CPU_WIDE of that page, with sample_id (tid, time, cpu).
"""

import ctypes
import mmap
import os
import platform
import struct
from collections import deque
from collections.abc import Iterator

import numpy as np

IDLE = 0
PAGES = 64  # of the buffer: six thousand records
KEPT = 8192  # switches: some seconds
SYSCALL = {"x86_64": 298, "aarch64": 241}
SOFTWARE, DUMMY = 1, 9
SAMPLE_TID, SAMPLE_TIME, SAMPLE_CPU = 1 << 1, 1 << 2, 1 << 7
COMM, SAMPLE_ID_ALL, USE_CLOCKID, CONTEXT_SWITCH = 1 << 9, 1 << 18, 1 << 25, 1 << 26
CLOCK_MONOTONIC = 1
LOST, NAMED, SWITCH_CPU_WIDE, OUT = 2, 3, 15, 1 << 13
HEAD, TAIL, OFFSET, SIZE = 1024, 1032, 1040, 1048  # in the first page
# header (type u4, misc u2, size u2), the other thread, then sample_id: the one whose switch it is, time, cpu
RECORD = np.dtype([("kind", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("other_process", "<u4"), ("other", "<u4"), ("own_process", "<u4"),
                   ("own", "<u4"), ("time_ns", "<i8"), ("cpu", "<u4"), ("unused", "<u4")])  # fmt: skip


class SwitchTrace:
    """The newest switches of one core. Made by `open`. names: of threads that took theirs on this core meanwhile, ended or not."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._page = mmap.PAGESIZE
        self._map = mmap.mmap(descriptor, (1 + PAGES) * self._page)
        self.names: dict[int, str] = {}
        self._times: deque[int] = deque(maxlen=KEPT)
        self._threads: deque[int] = deque(maxlen=KEPT)  # who has the core from that time on

    @classmethod
    def open(cls, core: int) -> "SwitchTrace | None":
        """None where it is not permitted, or this kernel has none."""
        number = SYSCALL.get(platform.machine())
        if core < 0 or number is None:
            return None
        flags = COMM | SAMPLE_ID_ALL | CONTEXT_SWITCH | USE_CLOCKID
        # type, size, config, period, sample_type, read_format, flags, wakeup, bp_type, config1, config2, branch, regs, stack, clockid
        sample = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU
        fields = (SOFTWARE, 112, DUMMY, 0, sample, 0, flags, 0, 0, 0, 0, 0, 0, 0, CLOCK_MONOTONIC)
        attribute = struct.pack("<IIQQQQQIIQQQQIi", *fields).ljust(112, b"\0")
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.syscall(number, ctypes.c_char_p(attribute), -1, core, -1, 8)  # 8: close on exec
        if descriptor < 0:
            return None
        try:
            return cls(descriptor)
        except (OSError, ValueError):
            os.close(descriptor)
            return None

    def read(self) -> None:
        """Takes what the kernel has written since the last time."""
        view = self._map
        head, tail = (struct.unpack_from("<Q", view, at)[0] for at in (HEAD, TAIL))
        size = PAGES * self._page
        raw = bytearray()
        while tail < head:
            part = min(head - tail, size - tail % size)
            raw += view[self._page + tail % size : self._page + tail % size + part]
            tail += part
        struct.pack_into("<Q", view, TAIL, head)
        for records in _switches(bytes(raw), self.names):
            if records is None:  # the buffer was full: what is known has a hole
                self._times.clear()
                self._threads.clear()
                continue
            self._times.extend(records["time_ns"].tolist())
            # out: the core goes to the other one
            self._threads.extend(np.where(records["misc"] & OUT, records["other"], records["own"]).tolist())

    def shares(self, begin: int, end: int) -> list[tuple[int, float]] | None:
        """Thread → share of the time from begin to end (CLOCK_MONOTONIC, ns) that it had the core, most first. None where the records do
        not reach back so far."""
        times = np.fromiter(self._times, np.int64, len(self._times))
        if end <= begin or not len(times) or times[0] > begin:
            return None
        first, last = int(np.searchsorted(times, begin, "right")) - 1, int(np.searchsorted(times, end, "left"))
        edges = np.clip(np.append(times[first:last], end), begin, end)
        sums: dict[int, float] = {}
        for thread, length in zip(list(self._threads)[first:last], np.diff(edges), strict=True):
            sums[thread] = sums.get(thread, 0.0) + float(length) / (end - begin)
        return sorted(sums.items(), key=lambda one: -one[1])

    def close(self) -> None:
        """Gives the buffer and the descriptor back."""
        if self._descriptor >= 0:
            self._map.close()
            os.close(self._descriptor)
            self._descriptor = -1


def _switches(raw: bytes, names: dict[int, str]) -> Iterator[np.ndarray | None]:
    """Runs of switches, None in place of those that the kernel had no room for; threads that take a name go into `names`."""
    whole = np.frombuffer(raw[: len(raw) // RECORD.itemsize * RECORD.itemsize], RECORD)
    if len(whole) * RECORD.itemsize == len(raw) and np.all(whole["kind"] == SWITCH_CPU_WIDE) and np.all(whole["size"] == RECORD.itemsize):
        yield whole
        return
    at = 0
    while at + 8 <= len(raw):
        kind, _, length = struct.unpack_from("<IHH", raw, at)
        if kind == LOST:
            yield None
        elif kind == NAMED:
            names[struct.unpack_from("<I", raw, at + 12)[0]] = raw[at + 16 : at + 32].partition(b"\0")[0].decode(errors="replace")
        elif kind == SWITCH_CPU_WIDE and length == RECORD.itemsize:
            yield np.frombuffer(raw, RECORD, 1, at)
        at += max(length, 8)
