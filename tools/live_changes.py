"""Random changes of every tunable parameter of a docking while it runs; prints what they did to the setpoints. Exit code 1 when a bound
is broken.

    .venv/bin/python tools/live_changes.py [--changes N] [--seed N] [--live] [--test FILE]

Simulation by default; `--live`: over the wires of the virtual stand, by a client. Each change is uniform within a quarter of the configured
value and the parameter's limits (energy_trip and following_max_m only upwards of half: they are to supervise, not to end the run). Held
against it:

* rate and acceleration of every leg's setpoint within the legs' limits;
* the third difference of leg_demand in the 0.15 s after a change in free motion, but for the hand-overs from one source of the motion to
  another: no larger than the largest that the same run without changes has there, times 1.25, the largest gain;
* the first tick whose record shows another value: at most two ticks after the one that took the command;
* `replay --verify` equal.
"""

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import zmq

from hil_server.bus.wire import COMMAND, connect, pack
from hil_server.client import Client
from hil_server.config import TestConfig, load_test
from hil_server.errors import HilError
from hil_server.log.reader import Log, read_log
from hil_server.run.replay import replay
from hil_server.run.session import Options, run_live, simulate
from rt_kernels.codes import code_name
from rt_kernels.layout import CODES, LAYOUT_HASH

AFTER = 0.15  # s that are looked at behind a change
HAND_OVER = 10  # ticks behind a change of the motion's source, which has a step of its own
LARGEST_GAIN = 1.25
ROUNDING = 1e-9  # m: of a length of some metres, taken three times


def random_value(rng: np.random.Generator, entry: dict[str, Any]) -> float:
    """A value near the configured one, within the limits of the run."""
    low, high, value = entry["low"], entry["high"], entry["value"]
    spread = 0.25 * value if value else 0.01 * (high - low)
    if entry["name"].startswith("safety."):
        spread = 0.5 * value
    return float(rng.uniform(max(low, value - spread), min(high, value + spread)))


def rows(reference: Log, changes: int, seed: int) -> list[dict[str, Any]]:
    """The changes by run time, as the commands of a test file; each in a phase that allows it in the same run without changes."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0.05, float(reference.time_s[-1]) - 0.5, changes))
    phases = [code_name("phase", int(code)) for code in reference.records["phase"][np.searchsorted(reference.time_s, times)]]
    allowed = [[entry for entry in reference.header.tunables if not entry["phases"] or phase in entry["phases"]] for phase in phases]
    chosen = [entries[int(rng.integers(len(entries)))] for entries in allowed]
    return [
        {"time_s": round(float(t), 3), "command": "tune", "parameter": entry["name"], "arguments": [random_value(rng, entry)]}
        for t, entry in zip(times, chosen, strict=True)
    ]


def with_rows(config: TestConfig, given: list[dict[str, Any]]) -> TestConfig:
    """The test with these commands."""
    config.document["commands"] = {"part": "script", "command": given}
    return config


def send(given: list[dict[str, Any]], address: str, ended: threading.Event) -> None:
    """The same changes over the command socket, by this machine's clock since the server's first answer; answers are not waited for, the
    log says their results."""
    with Client(command=address, timeout_s=5.0) as client:
        while not ended.is_set():
            with contextlib.suppress(HilError):
                client.status()
                break
    socket = connect(zmq.Context.instance(), zmq.DEALER, address, 1000, None, None)
    began = time.monotonic()
    for number, row in enumerate(given):
        while time.monotonic() - began < row["time_s"] and not ended.is_set():
            time.sleep(0.002)
        arguments = {"number": row["parameter"], "value": row["arguments"][0]}
        socket.send_multipart([COMMAND, pack({"id": number, "command": "tune", "args": arguments, "layout": LAYOUT_HASH})])
    ended.wait()
    socket.close(linger=0)


def measure(log: Log, platform: dict[str, Any], reference: Log) -> dict[str, Any]:
    """What the changes did. reference: the same run without them."""
    r = log.records
    period = log.header.period_ns * 1e-9
    tuned = np.flatnonzero(r["tune_answer"] == CODES["tune_answer"]["taken"])
    asked = int(np.sum(r["tune_answer"] != 0))
    # latency: first record from the command's on in which the parameter has another value than before it
    latency = []
    for i in tuned:
        number = int(r["command_arg"][i, 0])
        before = r["tuned"][i - 1, number]
        if r["command_arg"][i, 1] == before:
            continue
        moved = np.flatnonzero(r["tuned"][i : i + 10, number] != before)
        latency.append(int(r["tick"][i + moved[0]] - r["tick"][i]) if len(moved) else 10**6)
    return {
        "asked": asked,
        "taken": len(tuned),
        "latency_ticks": max(latency, default=0),
        "rate": float(np.abs(r["leg_rate_setpoint"]).max()) / platform["leg_rate_max_m_s"],
        "acceleration": float(np.abs(np.diff(r["leg_rate_setpoint"], axis=0)).max()) / (period * platform["leg_acceleration_max_m_s2"]),
        "third_after_changes": _third(log, tuned),
        "third_without_changes": _third(reference, None),
    }


def _third(log: Log, changes: np.ndarray | None) -> float:
    """Largest third difference of leg_demand in free motion, m: behind the changes, or anywhere once the legs are known."""
    r = log.records
    span = round(AFTER / (log.header.period_ns * 1e-9))
    known = (r["safety_state"] == CODES["safety_state"]["following"]) & (r["setpoint_kinematics_status"] == 0)
    whole = known & np.roll(known, 3) & (np.arange(len(r)) > 3) & (r["periods"] == 1)
    if changes is not None:
        near = np.zeros(len(r), bool)
        for i in changes:
            near[i : i + span] = True
        whole &= near
    # free motion, and not behind a hand-over of the motion's source
    steady = np.ones(len(r), bool)
    for i in [0, *np.flatnonzero(known & ~np.roll(known, 1)), *(np.flatnonzero(np.diff(r["motion"])) + 1)]:
        steady[i : i + HAND_OVER] = False
    whole &= steady & (r["contact"] == 0)
    for back in (1, 2, 3):  # a skipped period is no step
        whole &= np.roll(r["periods"] == 1, back)
    third = np.abs(np.diff(r["leg_demand"], n=3, axis=0)).max(axis=1)
    inside = whole[3:]
    return float(third[inside].max()) if inside.any() else 0.0


def study(test: str | None, changes: int, seed: int, folder: Path, live: bool = False, overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    """Both runs, the measures, and whether the replay is equal."""
    options = Options(out=str(folder / "without"), quiet=True, report=False)
    reference = read_log(simulate(load_test(test, overrides), options)["log"])
    given = rows(reference, changes, seed)
    if live:
        alone = Options(out=str(folder / "live_without"), quiet=True, report=False, force=True, confirmed="study of live changes")
        run_live(load_test(test, overrides), alone)
        reference = read_log(folder / "live_without" / "run.mcap")
        names = ("publish", "command", "hand_controller")
        local = [f"telemetry.{name}={f'ipc://{folder}/{name}'!r}" for name in names]
        ended = threading.Event()
        thread = threading.Thread(target=send, args=(given, f"ipc://{folder}/command", ended))
        thread.start()
        config = load_test(test, (*overrides, *local))
        changed = Options(out=str(folder / "with"), quiet=True, report=False, force=True, confirmed="study of live changes")
        summary = run_live(config, changed)
        ended.set()
        thread.join()
    else:
        config = with_rows(load_test(test, overrides), given)
        summary = simulate(config, Options(out=str(folder / "with"), quiet=True, report=False))
    log = read_log(summary["log"])
    found = measure(log, config.stand["platform"], reference)
    again = replay(summary["log"], verify=True)
    return {"end": summary["end"], **found, "replay_equal": again["equal"], "missing": again["missing_ticks"]}


def bounds_broken(found: dict[str, Any]) -> list[str]:
    """Names of the measures that are beyond their bounds."""
    broken = [name for name in ("rate", "acceleration") if not found[name] <= 1.0 + ROUNDING]
    if not found["latency_ticks"] <= 2:
        broken.append("latency_ticks")
    if not found["third_after_changes"] <= LARGEST_GAIN * found["third_without_changes"]:
        broken.append("third_after_changes")
    return broken + ([] if found["replay_equal"] else ["replay_equal"])


def main(argv: list[str] | None = None) -> int:
    """Prints the measures; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--test", default=None)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = study(args.test, args.changes, args.seed, Path(folder), args.live)
    for name, value in found.items():
        print(f"{name:24} {value}")
    broken = bounds_broken(found)
    print("broken: " + ", ".join(broken) if broken else "within all bounds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
