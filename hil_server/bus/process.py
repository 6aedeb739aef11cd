"""Starts the telemetry process from the server, watches it and closes it. See `drain.py` for what it does."""

import os

from hil_server.bus.child import Child
from hil_server.bus.settings import TelemetrySettings
from hil_server.errors import InternalError
from hil_server.log.format import Facts
from hil_server.log.header import LogHeader
from rt_kernels.doors import made_as
from rt_kernels.ring import SharedBlock


class TelemetryProcess:
    """The running telemetry process of one run. Made by `start`; end it with `finish`.

    endpoints: settings key → address as bound. closed: its last report, or None.
    """

    def __init__(self, child: Child, lifeline: int) -> None:
        self._child, self._lifeline = child, lifeline
        self.endpoints: dict[str, str] = {}
        self.closed: Facts | None = None

    @classmethod
    def start(cls, block_fd: int, settings: TelemetrySettings, header: LogHeader, timeout_s: float = 20.0) -> "TelemetryProcess":
        """Starts it and waits until its log is open and its sockets are bound. Call before the loop starts.

        Raises ConfigurationError (addresses, keys, log path), DeviceError (an address that another program has) or InternalError.
        """
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            more = () if settings.late is None else (settings.late["fd"],)
            self = cls(made_as("child", Child)("hil_server.bus.drain", "telemetry", block_fd, reading, more), writing)
        finally:
            os.close(reading)
        try:
            self.endpoints = self._child.start(settings.to_dict(), header.to_json(), timeout_s)
        except BaseException:
            self._cut_lifeline()
            raise
        return self

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._child.alive

    def trouble(self) -> str:
        """Why the run is not recorded as it should be, as far as the process knows and says; empty when it is."""
        if not self.alive:
            return f"the telemetry process has died ({self._child.ending})"
        return "; ".join(self._child.trouble.get("reasons", ()))

    def finish(self, facts: Facts | None = None, timeout_s: float = 60.0) -> Facts:
        """Ends the log with `facts` (JSON values). Returns path, ticks, lost_ticks, complete, reasons, overflow.

        Call when the loop has ended. Raises InternalError when the process has died or does not end in time; the log then ends at its
        last whole chunk.
        """
        if self.closed is None:
            self._child.resume()
            self._child.tell({"close": facts or {}})
            self.closed = self._child.answer(timeout_s).get("closed")
            self._child.end(10.0)
            self._cut_lifeline()
        if self.closed is None:
            raise InternalError("the telemetry process ended without closing the log; it is readable up to its last 0.1 s")
        return self.closed

    def kill(self) -> None:
        """Ends the process at once; what is in the ring stays there."""
        self._child.kill()
        self._cut_lifeline()

    def _cut_lifeline(self) -> None:
        """What was started beside it ends, too."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


class RecordWatch:
    """Whether the run is being recorded: what the server's supervisor asks all the while.

    telemetry: its process. block: the shared block; its ring is the time that a recorder which is held up has left.
    """

    def __init__(self, telemetry: TelemetryProcess, block: SharedBlock) -> None:
        self._telemetry, self._block = telemetry, block
        self.reason = ""

    def look(self) -> str:
        """Why the run cannot be recorded any longer: the first reason, for good; empty while all is well."""
        self.reason = self.reason or self._now()
        return self.reason

    def _now(self) -> str:
        waiting = self._block.head - self._block.tail
        if trouble := self._telemetry.trouble():
            return trouble
        if self._block.overflow:
            return f"the ring to the log is full, {self._block.overflow} ticks are lost"
        if waiting > self._block.capacity // 2:
            # a recorder that is stopped or waits for its disk: while there is room left, the end of the run can still be kept
            return f"the telemetry process does not keep up: {waiting} ticks wait for the log, more than half of what there is room for"
        return ""
