"""How long the stages of a tick take, and how fast a simulation runs on one core. Prints method and machine.

    python tools/bench_tick.py [--set KEY=VALUE ...]

Method: the shipped docking is assembled in process and run to the middle of its contact phase; then the tick alone is timed 200,000 times
on that sample, two clock readings around each (their own cost is printed and not taken off). The simulation figure is a whole run of the
line with the 50 us plant, thread time of the loop, log and report left out.
"""

import argparse
import os
import platform
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hil_server.config import load_test  # noqa: E402
from hil_server.line import assembly  # noqa: E402


def machine() -> str:
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.platform()}"


def run(test, until_s=None) -> float:
    """Runs the line, throwing its samples away; returns thread seconds of the loop."""
    used = []

    def loop() -> None:
        began = time.thread_time()
        test.line.run()
        used.append(time.thread_time() - began)

    thread = threading.Thread(target=loop)
    thread.start()
    while thread.is_alive():
        test.block.drain(4096)
        time.sleep(0.0005)
    return used[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))} | {min(os.sched_getaffinity(0))})
    print(machine())
    test = assembly.simulation(load_test(None, [*args.set, "test.duration_max_s=7.2"]))
    run(test)
    empty = np.diff([time.perf_counter_ns() for _ in range(10000)])
    ns = test.line.time_ticks(200_000)
    print(f"tick, rows 2-9, contact phase: median {np.median(ns) / 1e3:.2f} us, p99 {np.percentile(ns, 99) / 1e3:.2f} us, "
          f"least {ns.min() / 1e3:.2f} us (a Python clock reading alone: {np.median(empty):.0f} ns)")  # fmt: skip
    best = 0.0
    for _ in range(3):
        test = assembly.simulation(load_test(None, args.set))
        seconds = run(test)
        simulated = float(test.line.sample["time_ns"][0]) * 1e-9
        best = max(best, simulated / seconds)
    print(f"simulation with the 50 us plant: {best:.0f} times real time on one core (best of 3)")


if __name__ == "__main__":
    main()
