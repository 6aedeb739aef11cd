"""Time of one tick of the modal propagator: projection of the loads, exact update and outputs at the port, in one pass.

    python tools/bench_modal.py [--modes 2000] [--loads 6] [--samples 2000] [--instructions auto] [--json FILE]

A sample is 20 ticks in a row, called as the line calls them (C to C); figures are per tick. `cold` walks 8 MiB of other data before each
single tick, so that the coefficients come from the third level cache, as after other work (the Python call is inside: about 1 us).
"""

import argparse
import json
import time

import numpy as np

from rt_kernels.dynamics.modal import ModalCraft

TICKS_PER_SAMPLE = 20


def craft(modes: int, loads: int, instructions: str) -> ModalCraft:
    rng = np.random.default_rng(1)
    omega = 2 * np.pi * np.geomspace(0.05, 300.0, modes)
    shapes = rng.normal(scale=0.01, size=(modes, loads))
    return ModalCraft(omega, np.full(modes, 0.03), shapes, (5e-4, 1e-4), instructions)


def measure(modes: int, loads: int, samples: int, instructions: str) -> dict:
    """Medians and percentiles of the time per tick [us]."""
    modal = craft(modes, loads, instructions)
    wrench = np.random.default_rng(2).normal(scale=100.0, size=(TICKS_PER_SAMPLE, loads))
    modal.run(wrench)
    warm = np.empty(samples)
    for i in range(samples):
        begin = time.perf_counter_ns()
        modal.run(wrench)
        warm[i] = (time.perf_counter_ns() - begin) / TICKS_PER_SAMPLE
    other = np.ones(1 << 20)
    cold = np.empty(min(samples, 300))
    for i in range(len(cold)):
        other += 1.0
        begin = time.perf_counter_ns()
        modal.run(wrench[:1])
        cold[i] = time.perf_counter_ns() - begin
    return {
        "modes": modes, "loads": loads, "instructions": instructions,
        "tick_us": {name: float(np.percentile(warm, p)) / 1e3 for name, p in (("min", 0), ("p50", 50), ("p99", 99))},
        "cold_tick_us_p50": float(np.median(cold)) / 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modes", type=int, default=2000)
    parser.add_argument("--loads", type=int, default=6)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--instructions", default="auto", choices=["auto", "base", "avx2", "avx512"])
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    result = measure(args.modes, args.loads, args.samples, args.instructions)
    tick = result["tick_us"]
    print(f"{args.modes} modes, {args.loads} loads, {args.instructions}: "
          f"median {tick['p50']:.2f} us per tick (least {tick['min']:.2f}, p99 {tick['p99']:.2f}), "
          f"cold {result['cold_tick_us_p50']:.1f} us")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
