"""The telemetry process: empties the ring into the log.

    python -m hil_server.bus.drain --fd N --lifeline N

How it is started and told: `child.py`. Its last line {"close": {...facts...}} ends the run: what is in the ring is written, then the
facts, then the end of the log. When standard input ends without that, the server has died: the log is finished from what is in the ring
and marked incomplete. SIGTERM does the same.

Nothing here listens to anybody else. What clients see and send belongs to the bus, a process of its own (`server.py`) that this one starts
and, should it die, starts again: whatever a client does to it, the log continues.
"""

import base64
import os
import sys

import numpy as np

from hil_server.bus.child import Control, LogState, Task, say, serve
from hil_server.bus.keeper import BusKeeper
from hil_server.bus.settings import ADDRESSES, TelemetrySettings
from hil_server.errors import DeviceError
from hil_server.host.late_watch import LateWatch
from hil_server.log.checkpoint import Checkpoint
from hil_server.log.format import Facts
from hil_server.log.header import LogHeader
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter
from rt_kernels.doors import select, time
from rt_kernels.late_ticks import LateTicks
from rt_kernels.layout import LAYOUT_HASH
from rt_kernels.ring import SharedBlock

PERIOD = 0.010  # s between two looks at the ring
DRAIN_AT_ONCE = 2000  # records; bounds the time between two looks at standard input
STATUS_PERIOD = 0.5  # s
PRIORITY = -10  # niceness: the log comes before whatever else is busy on its cores
CLOSE_WITHIN = 5.0  # s that a finished loop waits for the server's closing line


class Recorder:
    """The ring's reader and the log. bus: gets to know how the log does; None when there is none. late: names the causes of late ticks."""

    def __init__(self, block: SharedBlock, settings: TelemetrySettings, header: LogHeader, bus: BusKeeper | None = None,
                 late: LateWatch | None = None) -> None:  # fmt: skip
        if header.aux_count != block.aux_count:
            raise ValueError(f"header declares {header.aux_count} auxiliary channels, the block has {block.aux_count}")
        self.block, self.bus, self.late, self.path = block, bus, late, settings.log_path
        self._late_facts: Facts = {}
        self.dtype = record_dtype(header.aux_count)
        self.log = _new_log(settings.log_path, header) if settings.log_path else None
        if self.log is not None and settings.checkpoint:
            self.log.checkpoint(Checkpoint.unpacked(base64.b64decode(settings.checkpoint)))
        self._begins = header.branch.get("tick", 0)  # of a continued run: what the bus shows before it is of the run before
        self._overflow = 0
        self._next_status = 0.0
        self._told = 0

    def drain(self) -> int:
        """One look at the ring. Returns the number of records taken."""
        data = self.block.drain(DRAIN_AT_ONCE)
        taken = len(data) // self.dtype.itemsize
        if self._begins and len(data):
            ticks = np.frombuffer(data, self.dtype)["tick"]
            data = data[int(np.searchsorted(ticks, self._begins)) * self.dtype.itemsize :]
            self._begins = 0 if len(data) else self._begins
        if self.log is not None:
            self.log.write(data)  # an empty look gives it the chance to write what waits
        self._note_trouble()
        return taken

    def _note_trouble(self) -> None:
        """What was lost is in the log, and the server hears of every new reason at once."""
        overflow = self.block.overflow
        if self.log is None:
            return
        if overflow > self._overflow:
            self.log.lost(overflow - self._overflow, "ring overflow: the loop was faster than the log")
        self._overflow = overflow
        if len(self.log.reasons) > self._told:
            self._told = len(self.log.reasons)
            say({"trouble": self.facts()})

    def facts(self) -> LogState:
        """How the log does."""
        log = self.log
        return {
            "ticks": 0 if log is None else log.ticks,
            "lost_ticks": 0 if log is None else log.lost_ticks,
            "reasons": [] if log is None else [reason[:200] for reason in log.reasons[:8]],
        }

    def beat(self) -> None:
        """Twice a second: the bus tells everybody how the log does."""
        now = time.monotonic()
        if self.bus is not None and now >= self._next_status:
            self._next_status = now + STATUS_PERIOD
            self.bus.tell(self.facts())

    def name_late_ticks(self, last: bool = False) -> Facts:
        """The next look at the loop's core; the last one says what goes to the end of the log. What goes wrong costs the causes of the late
        ticks from then on, never the record."""
        if self.late is None:
            return {}
        try:
            if not last:
                self.late.look()
                return {}
            self.late.close()
        except Exception as error:  # tables of the kernel that look otherwise, a trace that is gone
            failed, self.late = self.late, None
            self._late_facts = {**failed.facts(), "late_sources": f"{failed.sources}, until {type(error).__name__}: {error}"}
            return self._late_facts
        return self.late.facts()

    def close(self, facts: Facts, reason: str | None = None) -> Facts:
        """Writes what is left, ends the log and the bus. reason: why the run is incomplete, if it is."""
        while self.drain():
            pass
        log = self.log
        restarts = 0 if self.bus is None else self.bus.restarts
        facts = {**facts, **(self.name_late_ticks(last=True) or self._late_facts)}
        if log is not None:
            if reason:
                log.lost(0, reason)
            log.close({**facts, "overflow": self.block.overflow, **({"bus_restarts": restarts} if restarts else {})})
        if self.bus is not None:
            self.bus.close(self.facts())
        return {
            "path": self.path,
            "ticks": 0 if log is None else log.ticks,
            "lost_ticks": 0 if log is None else log.lost_ticks,
            "complete": log is None or not log.reasons,
            "reasons": [] if log is None else log.reasons,
            "overflow": self.block.overflow,
            "bus_restarts": restarts,
        }


def run(recorder: Recorder, control: Control) -> tuple[Facts, str | None]:
    """Until the run ends. Returns the facts of the server and why the run is incomplete (None when it is not)."""
    next_look, finished_at = time.monotonic(), None
    while True:
        select.select([control.descriptor], [], [], max(0.0, next_look - time.monotonic()))
        if control.terminated:
            return {}, "the telemetry process was stopped (SIGTERM) before the run ended"
        line = control.line()
        if line is not None:
            return line.get("close", {}), None
        if control.ended:
            return {}, None if recorder.block.finished else "the server ended without closing the run"
        now = time.monotonic()
        if now >= next_look:
            busy = recorder.drain() >= DRAIN_AT_ONCE
            recorder.beat()
            recorder.name_late_ticks()
            next_look = now if busy else now + PERIOD
        if recorder.block.finished:
            finished_at = finished_at or now
            if now - finished_at > CLOSE_WITHIN:
                return {}, None


def _new_log(path: str, header: LogHeader) -> LogWriter:
    try:
        return LogWriter(path, header)
    except OSError as error:
        raise DeviceError(f"log {path}: cannot be written: {error.strerror or error}; see to the disk, or give another folder "
                          "with --out") from error  # fmt: skip


def _late_watch(fd: int, core: int, trace: int = 1) -> LateWatch:
    """Over the server's loop."""
    return LateWatch(LateTicks.attach(fd), os.getppid(), core, bool(trace))


def work(task: Task, control: Control) -> Facts:
    """Empties the ring into the log and onto the bus until the run ends; returns the summary."""
    block, settings, header, arguments = task
    control.obey_terminations()
    bus = None
    if any(getattr(settings, key) for key in ADDRESSES):
        bus = BusKeeper(arguments.fd, arguments.lifeline, settings, header.to_json())
    try:
        late = None if settings.late is None else _late_watch(**settings.late)
        recorder = Recorder(block, settings, header, bus, late)
    except BaseException:
        if bus is not None:
            bus.close({})
        raise
    control.prefer(PRIORITY)
    say({"ready": {} if bus is None else bus.endpoints, "layout": LAYOUT_HASH})
    facts, reason = run(recorder, control)
    return recorder.close(facts, reason)


def main(argv: list[str] | None = None) -> int:
    """The telemetry process; returns its exit code."""
    return serve("hil_server.bus.drain", "telemetry process of a run; started by the server", argv, work)


if __name__ == "__main__":
    sys.exit(main())
