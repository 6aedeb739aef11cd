"""How long the control stage takes when the controller is an FMU in a process of its own. Prints method and machine.

    python tools/bench_fmu.py [--steps N]

Method: the FMU of the tests (tests/control/fmu/controller.c: four inputs, five outputs, some ten operations) is stepped through the part,
each step between two clock readings. The same around the part `press_thrust` is what the readings and the call from Python take; it is
printed, not taken off. Four cases: one step after the other (a simulation); a step a millisecond, both sides asleep between; the same in
real time (SCHED_FIFO, the FMU's thread on another core) as a live run has it; and that with an FMU process that looks for its next step
instead of sleeping (`look_us`). The peer is fmpy's own binding, which calls the same library in process through ctypes: five calls a
step.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fmpy import extract, read_model_description  # noqa: E402
from fmpy.fmi2 import FMU2Slave  # noqa: E402

from hil_server import registry  # noqa: E402
from rt_kernels.context import Vehicle, Vehicles  # noqa: E402
from rt_kernels.layout import SAMPLE_DTYPE  # noqa: E402
from tests.control.fmu import factory  # noqa: E402
from tools.bench_tick import machine  # noqa: E402

PERIOD = 1e-3


def timed(call, steps, period_s=0.0) -> np.ndarray:
    """Microseconds of each call."""
    taken = np.zeros(steps)
    for i in range(steps):
        if period_s:
            time.sleep(period_s)
        began = time.perf_counter_ns()
        call()
        taken[i] = time.perf_counter_ns() - began
    return taken[steps // 10 :] / 1e3


def shown(name, taken, peer=None) -> None:
    ratio = "" if peer is None else f", {np.median(taken) / np.median(peer):.2f} of the peer"
    print(f"{name:46s} median {np.median(taken):6.1f} us, p90 {np.percentile(taken, 90):6.1f}, p99 {np.percentile(taken, 99):7.1f}{ratio}")


def fmpy_slave(path):
    """One step through fmpy's binding."""
    model = read_model_description(path)
    slave = FMU2Slave(
        guid=model.guid, unzipDirectory=extract(path), modelIdentifier=model.coSimulation.modelIdentifier, instanceName="peer"
    )  # fmt: skip
    slave.instantiate()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    at = [0.0]

    def step():
        slave.setReal([0, 1, 2], [0.1, 0.2, 0.3])
        slave.setBoolean([3], [True])
        slave.doStep(at[0], PERIOD)
        at[0] += PERIOD
        slave.getReal([4, 5, 6, 7])
        slave.getBoolean([14])

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20000, help="steps of the first case, a tenth of them for those at 1 kHz")
    args = parser.parse_args()
    print(machine())
    sample = np.zeros(1, SAMPLE_DTYPE)
    sample["periods"] = 1
    with tempfile.TemporaryDirectory() as folder:
        keys = factory.keys(folder)

        def part(live=False, **more):
            made = registry.part("control", "fmu")(period_s=PERIOD, folders=[], live=live, **keys, **more)
            return lambda: made.step(sample)

        vehicles = Vehicles(Vehicle(1.0, np.eye(3), thrust_n=1.0), Vehicle(1.0, np.eye(3)))
        own = registry.part("control", "press_thrust")(vehicles=vehicles)
        shown("press_thrust, one after the other (the readings)", timed(lambda: own.step(sample), args.steps))
        peer = timed(fmpy_slave(keys["file"]), args.steps)
        shown("peer: fmpy in process, one after the other", peer)
        shown("fmu, one after the other", timed(part(), args.steps), peer)
        few = max(100, args.steps // 10)
        shown("press_thrust, one a millisecond (the readings)", timed(lambda: own.step(sample), few, PERIOD))
        shown("peer, one a millisecond", timed(fmpy_slave(keys["file"]), few, PERIOD))
        shown("fmu, one a millisecond", timed(part(), few, PERIOD), peer)
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        except OSError as error:
            print(f"fmu, in real time: not measured: {error}")
            return
        for name, look in (("fmu, one a millisecond, real time", 0.0), ("fmu, the same, look_us = 5000", 5000.0)):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            call = part(live=True, look_us=look, deadline_ms=1000.0)
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
            shown(f"press_thrust, {name[5:]}", timed(lambda: own.step(sample), few, PERIOD))
            shown(name, timed(call, few, PERIOD), peer)
            del call


if __name__ == "__main__":
    main()
