"""A line on the free-running clock and what it leaves in its ring: the one way in which simulations and campaigns run.

A simulation repeats itself to the last bit, so its log need not hold every tick (`telemetry.log_every`): `Thinner` says which ones, and
`hil_server.run.replay` runs the whole simulation again and compares them.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hil_server.config.files import Done
from hil_server.line.assembly import Assembly
from hil_server.log.moments import MOMENTS, Moments
from hil_server.log.record import record_dtype
from rt_kernels.doors import threading
from rt_kernels.loop import LoopLine

# what happens once and matters: a tick in which one of these changes is always kept
STATES = ("phase", "motion", "contact", "events", "signal_discrete", "mechanism_command", "sequence", "faults", "safety_state",
          "end_cause", "command_code")  # fmt: skip
BLOCK_TICKS = 256  # about a megabyte with three hundred channels: stays in a core's own cache
WAIT_S = 0.002
WAITS = 50  # for a whole block: a slow line's records come ten times a second, not one by one
PIECE_TICKS = 2048


def blocks(test: Assembly, at_pause: Callable[[], None] | None = None) -> Iterator[np.ndarray]:
    """Runs the line to its end on a thread of its own; gives its records in blocks of at most BLOCK_TICKS, (n,) of the run's record type.
    A block is there until the next one is asked for: it is the same memory. Leaving early stops the line. A line that fails raises here.
    at_pause: called on the line's thread wherever its clock pauses the run."""
    taken = np.zeros(BLOCK_TICKS, record_dtype(test.block.aux_count))
    space = taken.view(np.uint8)
    failed: list[BaseException] = []

    def loop() -> None:
        try:
            test.line.run()
            while test.line.clock.paused:
                if at_pause is not None:
                    at_pause()
                test.line.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=loop, name="free-running loop")
    test.block.heartbeat()
    thread.start()
    try:
        while thread.is_alive() or test.block.head > test.block.tail:
            for _ in range(WAITS):
                if test.block.head - test.block.tail >= BLOCK_TICKS or not thread.is_alive():
                    break
                thread.join(WAIT_S)
            if count := test.block.drain_into(space):
                yield taken[:count]
    finally:
        test.block.request_stop()
        thread.join()
    if failed:
        raise failed[0]


def run_in_pieces(line: LoopLine, ticks: int, done: Done) -> None:
    """Runs a line that needs no other process to its end, on this thread: between two pieces Ctrl-C is heard, and `done` called with how
    many of the `ticks` are run."""
    line.clock.pause_every(PIECE_TICKS, line.sample)
    line.run()
    while line.clock.paused:
        done(line.clock.tick, ticks)
        line.run()


class Thinner:
    """Chooses the records of a thinned log: every `every`-th tick, those in which one of STATES or the moment of the docking changes, those
    in which the contact force, the moment or a component of them exceeds all it was before in this moment of the docking (so the log's
    peaks are the run's peaks, moment by moment), the first and the last."""

    def __init__(self, every: int) -> None:
        self.every = every
        self._moments = Moments()
        self._peaks = np.zeros((len(MOMENTS), 8))
        self._before: np.ndarray | None = None  # the last record of the block before
        self._before_moment = 0
        self._before_kept = True

    def __call__(self, records: np.ndarray) -> np.ndarray:
        """The chosen ones of a block, in order."""
        keep = records["tick"] % self.every == 0
        first = records[:1] if self._before is None else self._before
        for name in STATES:
            values = np.concatenate([first[name], records[name]])
            keep |= values[1:] != values[:-1]
        moments = self._moments.of(records)
        keep |= np.diff(moments, prepend=moments[0] if self._before is None else self._before_moment) != 0
        F = records["F_T"]
        loads = np.column_stack([np.abs(F), np.linalg.norm(F[:, :3], axis=1), np.linalg.norm(F[:, 3:], axis=1)])
        for place in np.unique(moments):
            inside = np.flatnonzero(moments == place)
            reached = np.maximum.accumulate(np.vstack([self._peaks[place], loads[inside]]))
            keep[inside] |= (reached[1:] > reached[:-1]).any(axis=1)
            self._peaks[place] = reached[-1]
        keep[0] |= self._before is None
        self._before, self._before_moment, self._before_kept = records[-1:].copy(), int(moments[-1]), bool(keep[-1])
        found: np.ndarray = records[keep]
        return found

    def last(self) -> np.ndarray:
        """The run's last record, where it was not chosen; (0,) or (1,)."""
        return np.empty(0) if self._before is None or self._before_kept else self._before
