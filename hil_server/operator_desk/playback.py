"""A recorded operator over the wire: the rows of one station as a source of `Station`, and its commands, by the run time on the bus."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence

from drivers.hand_controllers import Reading
from hil_server.bus.commands import ARGUMENTS
from hil_server.client import Client
from hil_server.errors import HilError
from hil_server.operator_desk.calibration import Axis, Calibration
from hil_server.operator_desk.script import Row
from hil_server.values import Document
from rt_kernels.layout import BITS

# rows are calibrated already: axes as they are, button bits one by one
AS_RECORDED = Calibration(tuple(Axis(n, 0.0, 1.0, 0.0, 0.0, 1) for n in range(6)), deadman=0, others=tuple(range(1, 32)))


class RunTime:
    """Run time as the bus tells it, carried on by this machine's clock. A message is late by its way, never early: the least delay counts.

    messages: (run time s) one after another; seconds() is None before the first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._offset: float | None = None

    def told(self, run_time_s: float) -> None:
        """Takes what the server says about run time; the smallest difference to our clock is the truest."""
        offset = self._clock() - run_time_s
        self._offset = offset if self._offset is None else min(offset, self._offset)

    def seconds(self) -> float | None:
        """Run time now, s; None until the server has told one."""
        return None if self._offset is None else self._clock() - self._offset


class Playback:
    """Source of a station that repeats the newest due row of its own. fileno never becomes readable: only time moves it.

    lost: whether the loop has lost this controller (held up on the way, say). Then it is centred, as an operator does, until the loop has
    it back, and continues with the row of that moment."""

    framed = False

    def __init__(
        self, rows: Sequence[Row], station: int, seconds: Callable[[], float | None], lost: Callable[[], bool] = lambda: False
    ) -> None:
        self._rows = [row for row in rows if row.what == station]
        self._seconds, self._lost = seconds, lost
        self._next = 0
        self._pipe = os.pipe()

    def fileno(self) -> int:
        """A descriptor on which nothing ever comes: time alone moves the script."""
        return self._pipe[0]

    def read(self) -> list[Reading]:
        """No readings: the rows are sent as they stand."""
        return []

    def now(self) -> Reading | None:
        """The state at this moment; None before the first row, and while the record is silent."""
        seconds = self._seconds()
        while seconds is not None and self._next < len(self._rows) and self._rows[self._next].time_s <= seconds:
            self._next += 1
        if self._next == 0 or self._rows[self._next - 1].silent:
            return None
        row = self._rows[self._next - 1]
        if self._lost():
            return Reading(dict.fromkeys(range(6), 0.0), frozenset({AS_RECORDED.deadman}))
        return Reading(dict(enumerate(row.values)), frozenset(bit for bit in range(32) if row.buttons >> bit & 1))

    @property
    def done(self) -> bool:
        """Whether all rows were sent."""
        return self._next == len(self._rows)

    def close(self) -> None:
        """Closes the descriptor."""
        for end in self._pipe:
            os.close(end)


class Follower:
    """Follows a run on the bus in a thread of its own; gives the recorded commands when they are due, where asked to.

    Use as a context manager. The run's end, or a server that is not there yet, is silence."""

    def __init__(self, rows: Sequence[Row], commands: bool, bus: str, desk: str, say: Callable[[str], None]) -> None:
        self.run_time = RunTime()
        self._status = [0, 0]
        self._commands = [row for row in rows if isinstance(row.what, str)] if commands else []
        self._bus, self._desk, self._say = bus, desk, say
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._follow, daemon=True), threading.Thread(target=self._command, daemon=True)]

    def __enter__(self) -> "Follower":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(2.0)

    def lost(self, station: int) -> bool:
        """Whether the loop says that it has lost the hand controller of a station."""
        return bool(self._status[station] & BITS["hand_status"]["stale"])

    def _follow(self) -> None:
        with Client(self._bus, self._desk) as client:
            while not self._ended.is_set():
                with contextlib.suppress(HilError):
                    for batch in client.subscribe(["hand_status"], topic="slow", timeout_s=0.5):
                        self.run_time.told(batch.t)
                        self._status = batch.last["hand_status"]
                        if self._ended.is_set():
                            return

    def _command(self) -> None:
        with Client(self._bus, self._desk, name="recorded operator") as client:
            for row in self._commands:
                while not self._ended.is_set() and (now := self.run_time.seconds() or -1.0) < row.time_s:
                    time.sleep(min(0.01, row.time_s - now))
                if self._ended.is_set():
                    return
                try:
                    client.command(str(row.what), **_named(row))
                except HilError as error:
                    self._say(f"{row.what} at {row.time_s:g} s: {error}")


def _named(row: Row) -> Document:
    names = [argument.name for argument in ARGUMENTS[str(row.what)]]
    return dict(zip(names, [row.parameter, *row.values[1:]] if row.parameter else row.values, strict=True))
