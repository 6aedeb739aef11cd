"""Work before the person who started it: live status of a test, messages, Ctrl-C, and the bar of what takes longer than a moment."""

import contextlib
import sys
from collections.abc import Iterator

import numpy as np

from hil_server.config.files import Done
from hil_server.interrupts import counted, look
from hil_server.line.assembly import Assembly
from rt_kernels.doors import time
from rt_kernels.layout import CODES, SAMPLE_DTYPE

COMMANDS, PHASES = CODES["command"], {number: name for name, number in CODES["phase"].items()}
AT_REST = [CODES["safety_state"][state] for state in ("not_armed", "held", "blocked")]
PROGRESS_S = 0.25


class Line:
    """One line on a terminal's standard error, written over a few times a second; nothing where there is no terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self._next, self._shown = 0.0, False
        self._on = not quiet and sys.stderr.isatty()

    @property
    def due(self) -> bool:
        """Whether a new text would be shown: at most every `PROGRESS_S` seconds."""
        return self._on and time.monotonic() >= self._next

    def update(self, text: str) -> None:
        """Shows the text, if it is time."""
        if self.due:
            self._next = time.monotonic() + PROGRESS_S
            print(f"\r{text:<100s}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def end(self) -> None:
        """Takes the line away, so that what follows stands in its place."""
        if self._shown:
            print(f"\r{'':<100s}\r", end="", file=sys.stderr, flush=True)
            self._shown = False


@contextlib.contextmanager
def working(what: str, quiet: bool = False) -> Iterator[Done]:
    """A line on standard error while `what` is worked on: share done, time gone, time left. Gives what is to be told how much is done of
    how much; until then the time gone is shown. Nothing where there is no terminal; the line is taken away at the end, however it comes.
    A call raises KeyboardInterrupt after Ctrl-C."""
    if quiet or not sys.stderr.isatty():
        yield look
        look()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"),
             TimeRemainingColumn())  # fmt: skip
    with Progress(*shown, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(what, total=None)

        def done(part: float, whole: float) -> None:
            look()
            bar.update(task, completed=part, total=whole)

        yield done
    look()


class Progress:
    """One line, a few times a second: phase, time, how long at most the rest takes, force, lateness."""

    def __init__(self, test: Assembly, quiet: bool) -> None:
        self._test, self._next, self._shown = test, 0.0, False
        self._on = not quiet and sys.stderr.isatty()
        self._began, self._whole = time.monotonic(), test.config.setup.test.duration_max_s

    def update(self) -> None:
        """Shows the line again, at most every `PROGRESS_S` seconds."""
        now = time.monotonic()
        if not self._on or now < self._next:
            return
        self._next = now + PROGRESS_S
        newest = self._test.block.newest()
        if newest is None:
            return
        s = np.frombuffer(newest[: SAMPLE_DTYPE.itemsize], SAMPLE_DTYPE)[0]
        force = float(np.linalg.norm(s["F_T"][:3]))
        late = float(s["lateness_ns"]) * 1e-3
        at = float(s["time_ns"]) * 1e-9
        left = (self._whole - at) * (now - self._began) / max(at, 1e-3)
        text = f"{PHASES[int(s['phase'])]:9s} {at:8.2f} s, at most {left:.0f} s left  {force:8.1f} N  late {late:6.1f} us"
        print(f"\r{text}  missed {int(s['missed_total'])}   ", end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        """Ends the line, so that what follows begins on a new one."""
        if self._shown:
            print(file=sys.stderr)


class Stopper:
    """What Ctrl-C does while a loop runs. First press: the platform is parked; second: abort, a trip; third: the waiting that follows a
    trip ends as soon as the platform rests. It never ends a loop that moves the platform."""

    def __init__(self, test: Assembly, presses: counted) -> None:
        self._test, self._presses, self._seen = test, presses, 0

    def look(self) -> None:
        """Obeys the presses that came since the last look."""
        while self._seen < self._presses.count:
            try:
                if self._seen == 0:
                    self._test.block.push_command(COMMANDS["park"], source=1)
                    print("\nparking the platform; once more to abort", file=sys.stderr)
                elif self._seen == 1:
                    self._test.block.push_command(COMMANDS["abort"], source=1)
                    print("\nabort; once more to end the run as soon as the platform rests", file=sys.stderr)
            except BufferError:
                return  # the loop takes one command a tick: the next look finds room
            self._seen += 1
        if self._seen > 2 and self.resting():
            self._test.block.request_stop()

    def resting(self) -> bool:
        """Whether the setpoints rest after a trip, or never left their start."""
        newest = self._test.block.newest()
        if newest is None:
            return False
        return int(np.frombuffer(newest[: SAMPLE_DTYPE.itemsize], SAMPLE_DTYPE)[0]["safety_state"]) in AT_REST
