"""A whole docking through the line, without a stand and without a log: cost of a tick and ratio to real time on one core.

    taskset -c 1 python tools/bench_virtual_docking.py [PROGRAMME] [--set KEY=VALUE ...]

The shipped programme is 20 t to 420 t with the probe-cone unit, 0.5 ms, more than 300 mechanism channels a tick. The loop and the thread
that empties its ring share the core; the ratio is simulated time over processor time of the whole process while it runs. Cost of a tick:
processor time of the loop's thread (clock, mechanism, all stages, record) over batches of at least 500 ticks.
"""

import argparse
import contextlib
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hil_server.config import SHIPPED, load_test
from hil_server.line import assembly
from rt_kernels.layout import CODES, SAMPLE_DTYPE


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("programme", nargs="?", default=str(SHIPPED / "programmes" / "virtual_docking.toml"))
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    given = parser.parse_args()
    test = assembly.simulation(load_test(given.programme, given.overrides))
    dtype = np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (test.block.aux_count,))])
    thread = threading.Thread(target=test.line.run)
    began, wall = time.process_time(), time.perf_counter()
    thread.start()
    clock, cost, ticks = time.pthread_getcpuclockid(thread.ident), [], 0
    used, head = 0, 0
    while thread.is_alive() or test.block.head > test.block.tail:
        records = np.frombuffer(test.block.drain(4096), dtype)
        ticks += len(records)
        if thread.is_alive():
            with contextlib.suppress(OSError):
                now, at = time.clock_gettime_ns(clock), test.block.head
                if at - head >= 500:
                    cost.append((now - used) / (at - head) * 1e-3)
                    used, head = now, at
        if not len(records):
            thread.join(0.001)
    spent, wall = time.process_time() - began, time.perf_counter() - wall
    simulated = float(test.line.sample["time_ns"][0]) * 1e-9
    end = {number: name for name, number in CODES["end_cause"].items()}[int(test.line.sample["end_cause"][0])]
    print(f"{simulated:.1f} s simulated, end: {end}, {test.block.aux_count} auxiliary channels, {ticks} ticks")
    print(f"processor time {spent:.2f} s: {simulated / spent:.0f} x real time on one core (wall {wall:.2f} s: {simulated / wall:.0f} x)")
    print(f"tick: median {np.median(cost):.2f} us, 99 % {np.percentile(cost, 99):.2f} us of {len(cost)} batches")


if __name__ == "__main__":
    main()
