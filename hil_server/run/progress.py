"""Work before the person who started it: live status of a test, messages, Ctrl-C, and the bar of what takes longer than a moment."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import numpy as np

from hil_server.config.files import Done, nobody
from hil_server.line.assembly import Assembly
from rt_kernels.layout import CODES, SAMPLE_DTYPE

COMMANDS, PHASES = CODES["command"], {number: name for name, number in CODES["phase"].items()}
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
    how much; until then the time gone is shown. Nothing where there is no terminal; the line is taken away at the end, however it comes."""
    if quiet or not sys.stderr.isatty():
        yield nobody
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"),
             TimeRemainingColumn())  # fmt: skip
    with Progress(*shown, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


class Progress:
    """One line, a few times a second: phase, time, how long at most the rest takes, force, lateness."""

    def __init__(self, test: Assembly, quiet: bool) -> None:
        self._test, self._next, self._shown = test, 0.0, False
        self._on = not quiet and sys.stderr.isatty()
        self._began, self._whole = time.monotonic(), float(test.config.test["duration_max_s"])

    def update(self) -> None:
        """Shows the line anew, at most every `PROGRESS_S` seconds."""
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


@contextlib.contextmanager
def interruptible(test: Assembly) -> Iterator[None]:
    """Ctrl-C and SIGTERM: park; again: abort (trip); a third time: as Python does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            test.block.push_command(COMMANDS["park"], source=1)
            print("\nparking the platform; once more to abort", file=sys.stderr)
        elif pressed == 2:
            test.block.push_command(COMMANDS["abort"], source=1)
        else:
            raise KeyboardInterrupt

    old = {n: signal.signal(n, handler) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for n, previous in old.items():
            signal.signal(n, previous)
