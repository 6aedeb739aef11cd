"""A rehearsal flown again from a time of itself: command `again`, or `hil-server run --from LOG@TIME`.

The command is logged as every other one; the server sees it in the samples, ends the flight, rebuilds the line as it was
(`hil_server.run.branch`) and flies it with the stand as a part of the line, on the wall clock and with a log of its own. Before the loop
runs, the picture stands: the last sample before TIME goes out on the bus, and not into the log, until a hand controller is centred with its
deadman held, or a command comes. A stand of hardware is never restored: there the command is refused.
"""

import base64
from collections.abc import Callable

import numpy as np

from hil_server import interrupts, registry
from hil_server.host.build import build_id
from hil_server.line.assembly import Assembly
from hil_server.log.checkpoint import Checkpoint
from hil_server.log.reader import Log
from hil_server.log.record import record_dtype
from hil_server.run.branch import Resumed
from rt_kernels.doors import time
from rt_kernels.layout import BITS, CODES, SAMPLE_DTYPE
from rt_kernels.ring import SharedBlock

AGAIN = CODES["command"]["again"]
LOOK_AT_ONCE = 2000  # records
PICTURE_S = 0.05  # between two records of the standing picture
DEADMAN = BITS["hand_button"]["deadman"]
REJECTED = BITS["hand_status"]["rejected"]


class Wish:
    """Looks for the command `again` in the samples of a run. asked: its arguments (before_contact_s, time_s) once it came, else None."""

    def __init__(self, block: SharedBlock) -> None:
        self._block, self._next = block, block.head
        self._dtype = record_dtype(block.aux_count)
        self.asked: tuple[float, float] | None = None

    def look(self) -> bool:
        """Whether the loop has taken the command."""
        first, data = self._block.look(self._next, LOOK_AT_ONCE)
        records = np.frombuffer(data, self._dtype)
        self._next = first + len(records)
        taken = np.flatnonzero(records["command_code"] == AGAIN)
        if len(taken):
            before_contact_s, time_s = records["command_arg"][taken[0]][:2]
            self.asked = float(before_contact_s), float(time_s)
        return self.asked is not None


def tick_asked_for(log: Log, before_contact_s: float, time_s: float) -> int:
    """The tick of a flown log to continue from: at time_s, or where that is negative, so long before the first contact, or before the end
    of a
    flight that has come to none. Never before the log's first tick, nor behind its last."""
    contact = float(log.records["first_contact_time"][-1])
    wanted = time_s if time_s >= 0.0 else (contact if contact >= 0.0 else float(log.time_s[-1])) - before_contact_s
    ticks = log.records["tick"]
    # the first record is what the line can be restored after
    i = int(np.clip(np.searchsorted(log.records["time_ns"], round(wanted * 1e9)), 1, log.ticks - 1)) if log.ticks > 1 else 0
    return int(ticks[i])


def take_over(begin: Resumed, test: Assembly) -> None:
    """The line of a live run with the stand in process, in the state of `begin`. What belongs to the machine's clock and to the queues of
    the other run starts from reset: hand controllers, numbers of commands, lateness."""
    state = begin.test.line.snapshot()
    for role, part in test.line.stages.items():
        part.load_unchecked(begin.test.line.stages[role].dump())  # constants too: those of the run that it continues
    state["port.0"] = test.line.ports[0].snapshot()
    test.line.restore(state)
    sample = test.line.sample
    for name in ("command_code", "command_sequence", "lateness_ns", "missed_total", "late_cause", "read_ns", "compute_ns", "write_ns"):
        sample[name] = 0
    test.line.sample = sample
    test.line.clock.begin_at(begin.tick)


def beginning(begin: Resumed, test: Assembly) -> str:
    """The checkpoint with which the log of the new flight begins, packed, in base 64."""
    found = Checkpoint(begin.tick, begin.tick * test.period_ns, "branch", build_id(), test.line.snapshot())
    return base64.b64encode(found.packed()).decode()


def hold(test: Assembly, say: Callable[[str], None]) -> None:
    """The standing picture, until an operator is ready: a hand controller centred with its deadman held. A command ends it, too: the loop
    takes it. A test without an operator does not wait."""
    guidance = test.config.setup.stages["guidance"]
    if not getattr(registry.part(guidance.role, guidance.name), "FLOWN", False):
        return
    record = np.zeros(1, record_dtype(test.block.aux_count))
    for name in SAMPLE_DTYPE.names or ():
        record[name] = test.line.sample[name]
    record["aux"] = test.line.aux
    standing = record.view(np.uint8).reshape(-1)
    given = test.config.setup.commands.values
    centred, stale_s = given.get("centred", 0.02), given.get("stale_s", 0.2)
    say(f"holding at {float(record['time_ns'][0]) * 1e-9:.3f} s: centre the hand controller and hold its deadman to fly on")
    shown = 0.0
    while not test.block.commands_waiting and not _ready(test, centred, stale_s):
        interrupts.look()
        test.block.heartbeat()
        if time.monotonic() >= shown + PICTURE_S:
            shown = time.monotonic()
            test.block.push_records(standing, record.dtype.itemsize)
        time.sleep(0.01)


def _ready(test: Assembly, centred: float, stale_s: float) -> bool:
    """Whether a hand controller is centred with its deadman held."""
    for station in range(2):
        newest = test.block.hand(station)
        if newest is None:
            continue
        axes, buttons, status, age_s = newest
        if age_s <= stale_s and buttons & DEADMAN and not status & REJECTED and max(map(abs, axes)) <= centred:
            return True
    return False
