"""Checkpoints of a simulation while it runs: when, and what they hold (form: `hil_server.log.checkpoint`).

The clock of the simulation pauses the line between two ticks; the line's own thread takes the bytes and continues. A live run takes none:
its loop has no time to copy some hundred kilobytes, and its stand is a machine that cannot be put back.
"""

from collections import deque

import numpy as np

from hil_server.host.build import build_id
from hil_server.line.assembly import Assembly
from hil_server.log.checkpoint import Checkpoint
from rt_kernels.layout import CODES

TICKS_MAX = 2**40  # of a run: 34 years at 1 kHz
PHASES = {number: name for name, number in CODES["phase"].items()}
STATES = {number: name for name, number in CODES["safety_state"].items()}


def take(test: Assembly, build_id: str, cause: str) -> Checkpoint:
    """The line as it stands between two ticks. Raises ValueError where a part cannot give its state (an FMU)."""
    tick = test.line.clock.tick
    return Checkpoint(tick, tick * test.period_ns, cause, build_id, test.line.snapshot())


class Keeper:
    """Takes the checkpoints of a run: after every `every_s` of run time and where something happens. every_s 0: none.

    waiting: those that were taken and are not yet in the log; refused: why none can be taken, "" while they can.
    """

    def __init__(self, test: Assembly, build_id: str, every_s: float) -> None:
        self._test, self._build_id = test, build_id
        self.waiting: deque[Checkpoint] = deque()
        self.refused = ""
        self._before = self._seen()
        if every_s > 0.0:
            test.line.clock.pause_every(max(1, round(every_s * 1e9 / test.period_ns)), test.line.sample)

    def _seen(self) -> dict[str, int | bool]:
        sample = self._test.line.sample[0]
        return {"phase": int(sample["phase"]), "safety": int(sample["safety_state"]),
                "first contact": bool(sample["first_contact_time"] >= 0.0), "capture": bool(sample["capture_time"] >= 0.0)}  # fmt: skip

    def at_pause(self) -> None:
        """Called by the line's thread at a pause."""
        now, before = self._seen(), self._before
        self._before = now
        happened = [name for name in ("first contact", "capture") if now[name] != before[name]]
        if now["phase"] != before["phase"]:
            happened.append(f"phase {PHASES.get(int(now['phase']), now['phase'])}")
        if now["safety"] != before["safety"]:
            happened.append(f"safety {STATES.get(int(now['safety']), now['safety'])}")
        if not self.refused:
            try:
                self.waiting.append(take(self._test, self._build_id, ", ".join(happened) or "interval"))
            except ValueError as error:
                self.refused = str(error)


def refuse_foreign(checkpoint: Checkpoint) -> None:
    """Raises ValueError for a checkpoint of another build: its structs are not ours."""
    own = build_id()
    if checkpoint.build_id != own:
        remedy = "simulate the test again and continue from that log"
        raise ValueError(f"it is of build {checkpoint.build_id!r:.80}, limit this build, {own!r}: {remedy}")


def put_back(checkpoint: Checkpoint, test: Assembly) -> None:
    """The line as it was at the checkpoint. Raises ValueError that names the part that is not in it, does not fit or cannot be in such a
    state, and for a checkpoint of another build; the line must not run then."""
    refuse_foreign(checkpoint)
    parts = checkpoint.parts
    now = test.line.snapshot()
    different = sorted(set(parts) ^ set(now))
    if different:
        raise ValueError(f"it has not the parts of this line: {', '.join(different)}")
    for name, block in now.items():
        if len(parts[name]) != len(block) and not name.startswith("stage.control"):  # an FMU's state has the length it likes
            raise ValueError(f"{name} has {len(parts[name])} bytes, this line's {len(block)}")
    if not 0 <= checkpoint.tick < TICKS_MAX:
        raise ValueError(f"tick {checkpoint.tick}, limit 0 ... {TICKS_MAX - 1}")
    test.line.restore(parts, checked=True)
    test.line.clock.begin_at(checkpoint.tick)


def same_sample(test: Assembly, record: np.ndarray) -> bool:
    """Whether sample and auxiliary channels of the line are those of a logged record, by bytes."""
    own = test.line.sample[0].copy()
    own["record_crc"] = record["record_crc"]
    names = own.dtype.names or ()
    fields = all(own[name].tobytes() == record[name].tobytes() for name in names)
    return fields and bool(test.line.aux.tobytes() == np.ascontiguousarray(record["aux"]).tobytes())
