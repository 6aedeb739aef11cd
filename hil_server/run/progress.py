"""A running test before the person who started it: the live status line, messages, and Ctrl-C."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import numpy as np

from hil_server.line.assembly import Assembly
from rt_kernels.layout import CODES, SAMPLE_DTYPE

COMMANDS, PHASES = CODES["command"], {number: name for name, number in CODES["phase"].items()}
PROGRESS_S = 0.25


class Progress:
    """One line, a few times a second: phase, time, force, lateness."""

    def __init__(self, test: Assembly, quiet: bool) -> None:
        self._test, self._next, self._shown = test, 0.0, False
        self._on = not quiet and sys.stderr.isatty()

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
        text = f"{PHASES[int(s['phase'])]:9s} {s['time_ns'] * 1e-9:8.2f} s  {force:8.1f} N  late {late:6.1f} us"
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
