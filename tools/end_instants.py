"""Ends, aborts and holds at instants spread over whole runs, in virtual time: the real line, its stages and its commands, no wall clock.

    python tools/end_instants.py [--count 500] [--programmes docking,identify,...] [--kinds time,ctrl_c,...] [--seed 1]

Each programme is run once to its end; the instants are then drawn between its first tick and its last. Kinds:

    time        `test.duration_max_s` is up then
    ctrl_c      one, two or three presses, obeyed by the code that obeys them in a run (`Stopper`)
    exception   the supervisor fails then, and the code that leads a live platform home takes over
    abort       the command `abort`
    hold        the command `hold`, at instants before the first contact

What is held against each:

* no frame steps by more than the rate limit allows, no rate by more than the acceleration limit allows, up to the last frame;
* the setpoints of the last frame rest;
* the exit code is not 0 where the run was cut: that of the summary, 130 after Ctrl-C, 5 after an error;
* after an abort nothing but the stop and the end, after a park nothing but the way home;
* a hold before the contact touches nothing, or `hold_touches` is in the log before the contact; what touches is reported (`contact`).

Prints a table by programme and kind and each run that is wrong; exit code 1 when there is one.
"""

import argparse
import contextlib
import io
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hil_server.config import load_test  # noqa: E402
from hil_server.errors import InternalError  # noqa: E402
from hil_server.interrupts import INTERRUPTED  # noqa: E402
from hil_server.judge.run import Run  # noqa: E402
from hil_server.judge.summary import summarise  # noqa: E402
from hil_server.line import assembly  # noqa: E402
from hil_server.log.reader import Log  # noqa: E402
from hil_server.run import session  # noqa: E402
from hil_server.run.progress import Stopper  # noqa: E402
from rt_kernels.layout import CODES, FAULTS, SAMPLE_DTYPE  # noqa: E402

PHASE, COMMAND = CODES["phase"], CODES["command"]
FAULT = {name: mask for name, mask, *_ in FAULTS}
PIECE_TICKS = 10  # between two looks of the supervisor, as often as it looks at a live run
REST_M_S = 1e-4
AFTER_ABORT = {PHASE[name] for name in ("fault", "ended")}
AFTER_PARK = AFTER_ABORT | {PHASE[name] for name in ("finish", "retreat", "park", "hold")}
QUICK = ("guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.fault_s=0.2")
# name -> (test, settings that make it short, s at most)
PROGRAMMES: dict[str, tuple[str, tuple[str, ...], float]] = {
    "docking": ("docking.toml", (*QUICK, "guidance.retreat_distance_m=0.05"), 14.0),
    "hydraulic": ("virtual_docking_hydraulic.toml", (*QUICK, "guidance.contact_max_s=2.0"), 14.0),
    "ring": ("idss_docking.toml", (*QUICK, "guidance.contact_max_s=3.0"), 14.0),
    "berthing": ("berthing_operator.toml", (*QUICK, "guidance.contact_max_s=3.0", "commands.part=latch"), 14.0),
    "identify": ("identify.toml", ("guidance.slow_hz=2.0", "guidance.slow_periods=1", "guidance.multisine_s=2.0", "guidance.periods=1",
                                   "guidance.chirp_s=1.0"), 14.0),
}  # fmt: skip
KINDS = ("time", "ctrl_c", "exception", "abort", "hold")


class Presses:
    """Presses of Ctrl-C, as `hil_server.interrupts` counts them."""

    count = 0


@dataclass
class Flight:
    """A run on the free-running clock, a piece at a time; `is_alive` and `join` are those of the thread that a live loop runs on."""

    test: Any
    records: list[bytes] = field(default_factory=list)
    alive: bool = True

    def __post_init__(self) -> None:
        self.test.line.clock.pause_every(PIECE_TICKS, self.test.line.sample)

    @property
    def seconds(self) -> float:
        return float(self.test.line.clock.tick * self.test.context["period_s"])

    def is_alive(self) -> bool:
        return self.alive

    def join(self, seconds: float) -> None:
        until = self.seconds + seconds
        while self.alive and self.seconds < until:
            self.test.block.heartbeat()
            self.test.line.run()
            while data := self.test.block.drain(4096):
                self.records.append(data)
            self.alive = bool(self.test.line.clock.paused)

    def taken(self) -> np.ndarray:
        return np.frombuffer(b"".join(self.records), np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (self.test.block.aux_count,))]))


def flight(programme: str, duration_s: float) -> Flight:
    """The programme on the virtual clock, ended as a live run when its time is up."""
    file, settings, _ = PROGRAMMES[programme]
    config = load_test(f"programmes/{file}", [*settings, f"test.duration_max_s={duration_s:.4f}"])
    context = assembly.base_context(config)
    port = assembly.simulated_port(config, context)
    context |= {"sensor_scale": port.sensor_scale, "noiseless": config.setup.stand.noiseless(in_process=True)}
    return Flight(assembly.finish(config, context, [port], clock=assembly.simulation_clock))


def ended(kind: str, programme: str, at_s: float, rng: random.Random) -> tuple[Flight, int]:
    """A run that is ended so at this run time, and the presses of Ctrl-C in it."""
    limit_s = PROGRAMMES[programme][2]
    one = flight(programme, max(at_s, 0.01) if kind == "time" else limit_s)
    presses: Any = Presses()
    stopper = Stopper(one.test, presses)
    if kind == "time":
        one.join(1e4)
        return one, 0
    one.join(at_s)
    if kind == "exception":
        session._lead_home(one.test, one, stopper)  # type: ignore[arg-type]
    elif kind == "ctrl_c":
        more = [at_s + rng.random() * 2.0 for _ in range(rng.randrange(3))]
        for press_s in sorted([at_s, *more]):
            while one.alive and one.seconds < press_s:
                stopper.look()
                one.join(PIECE_TICKS * one.test.context["period_s"])
            presses.count += one.alive
        while one.alive:
            stopper.look()
            one.join(PIECE_TICKS * one.test.context["period_s"])
    else:
        one.test.block.push_command(COMMAND[kind], source=1)
        one.join(3.0 if kind == "hold" else 1e4)
        if one.alive:
            one.test.block.push_command(COMMAND["park"], source=1)
            one.join(1e4)
    return one, presses.count


def wrong(kind: str, one: Flight, presses: int, test_end_s: float, at_s: float) -> list[str]:
    """What is not as it should be."""
    r, table, period_s = one.taken(), one.test.config.stand["platform"], one.test.context["period_s"]
    found = []
    dt = r["periods"][1:, None] * period_s
    rate, leg = r["leg_rate_setpoint"], r["leg_setpoint"]
    limit = table["leg_acceleration_max_m_s2"]
    if (np.abs(np.diff(rate, axis=0)) > 1.0001 * limit * dt).any():
        found.append(f"a rate steps by {(np.abs(np.diff(rate, axis=0)) / dt).max():.4g} m/s2, limit {limit:g}")
    if (np.abs(np.diff(leg, axis=0)) > 1.0001 * table["leg_rate_max_m_s"] * dt + 1e-12).any():
        found.append(f"a frame steps by {np.abs(np.diff(leg, axis=0)).max():.4g} m")
    if np.abs(rate[-1]).max() > REST_M_S:
        found.append(f"the last frame has {np.abs(rate[-1]).max():.4g} m/s")
    log = Log(Path("memory"), session.header(one.test, "memory", "simulation", {}, None), r, {}, [])
    code = INTERRUPTED if presses else InternalError.exit_code if kind == "exception" else summarise(Run(log)).exit_code
    cut = at_s < test_end_s and kind != "hold"
    if cut and code == 0:
        found.append("exit code 0")
    for name, after in (("abort", AFTER_ABORT), ("park", AFTER_PARK)):
        given = np.flatnonzero(r["command_code"] == COMMAND[name])
        if len(given) and (name == "abort" or kind != "hold"):
            strange = set(r["phase"][given[0] + 1 :].tolist()) - after
            found += [f"phase {number} after the {name}" for number in strange - set(r["phase"][given[0] : given[0] + 1].tolist())]
    if kind == "hold":
        found += wrong_hold(r)
    return found


def wrong_hold(r: np.ndarray) -> list[str]:
    """Of a hold: contact in it that was not reported before, and force that no flag shows."""
    held = np.flatnonzero(r["phase"] == PHASE["hold"])
    if not len(held):
        return []
    inside = r[held]
    force = np.linalg.norm(inside["F_T"][:, :3], axis=1)
    touches = np.flatnonzero(force > 20.0)
    reported = np.flatnonzero(r["faults"] & FAULT["hold_touches"])
    found = []
    # a hold that is taken in the tick of the touch is none before it
    if len(touches) and touches[0] > 0 and not (len(reported) and reported[0] <= held[touches[0]]):
        found.append(f"touches with {force.max():.0f} N after a hold that did not say so")
    if len(touches) and not inside["contact"][touches].all():
        found.append(f"{force[touches][inside['contact'][touches] == 0].max():.0f} N in hold without contact")
    return found


def main(argv: list[str] | None = None) -> int:
    """Runs all; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="runs in all (default: 500)")
    parser.add_argument("--programmes", default=",".join(PROGRAMMES))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    rng, names, kinds = random.Random(args.seed), args.programmes.split(","), args.kinds.split(",")
    began, failed, rows, free = time.monotonic(), 0, [], {}
    for name in names:
        one = flight(name, PROGRAMMES[name][2])
        one.join(1e4)
        r = one.taken()
        t = r["time_ns"] * 1e-9
        # its end, its first contact, and the end of the test: from there on it only returns to its home position
        free[name] = float(t[-1]), float(r["first_contact_time"][-1]), float(t[np.argmax(r["end_cause"] != CODES["end_cause"]["none"])])
    pairs = [(name, kind) for name in names for kind in kinds if kind != "hold" or free[name][1] > 0.0]
    for number, (name, kind) in enumerate(pairs):
        count = args.count // len(pairs) + (number < args.count % len(pairs))
        end_s, contact_s, test_end_s = free[name]
        bad = 0
        for k in range(count):
            at_s = (k + rng.random()) / count * (contact_s if kind == "hold" else end_s)
            with contextlib.redirect_stderr(io.StringIO()):
                one, presses = ended(kind, name, max(at_s, 0.001), rng)
            if faults := wrong(kind, one, presses, test_end_s, at_s):
                bad += 1
                print(f"{name}, {kind} at {at_s:.3f} of {end_s:.2f} s: {'; '.join(faults)}", flush=True)
        failed += bad
        rows.append((name, kind, f"{end_s:.1f}", count, count - bad, bad))
        print(" ".join(f"{word!s:>10}" for word in rows[-1]), flush=True)
    print("\n" + " ".join(f"{word:>10}" for word in ("programme", "kind", "s", "runs", "right", "wrong")))
    for row in rows:
        print(" ".join(f"{word!s:>10}" for word in row))
    print(f"{sum(row[3] for row in rows)} runs, {failed} wrong, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
