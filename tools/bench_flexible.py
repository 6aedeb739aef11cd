"""Time of the flexible tree kernel against the number of bodies: `python tools/bench_flexible.py [--modes 4] [--json FILE]`.

Chains of 5 ... 100 equal links on revolute joints, each a beam with the given number of modes; one evaluation of the forward dynamics,
timed inside the compiled integrator (symplectic Euler, one evaluation a step) in processor time of the thread. The figure of a chain is
the least of the medians of several rounds, chains interleaved. Printed: ns per evaluation, the straight line through them and the
largest relative residual; exit code 1 if that is above 5 %.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from rt_kernels.model.beam_elements import Section, straight_beam  # noqa: E402
from rt_kernels.model.craft import Link  # noqa: E402
from rt_kernels.model.modes import clamped_modes  # noqa: E402
from rt_kernels.multibody.flexible import FlexibleTree  # noqa: E402
from rt_kernels.offline.integrators import Motion  # noqa: E402

COUNTS = (5, 10, 20, 35, 50, 75, 100)


def chain(bodies: int, modes: int) -> FlexibleTree:
    section = Section(70e9, 27e9, 4e-4, 2e-8, 1e-8, 1e-8, 2700.0, gyration_y=0.01, gyration_z=0.01)
    frame = straight_beam(1.0, section, 6)
    _, X = clamped_modes(frame, modes, frame.node_dofs(0))
    body = frame.modal_body(X, {"tip": frame.port(frame.node_dofs(6), (1.0, 0.0, 0.0), X)})
    axes = np.eye(3)
    return FlexibleTree([
        Link(f"b{k}", body, f"b{k - 1}" if k else None, "tip" if k else None, "revolute", axes[(2, 1)[k % 2]],
             armature=0.01)
        for k in range(bodies)
    ])


def measure(modes: int, rounds: int = 15, samples: int = 15) -> np.ndarray:
    """ns per evaluation for each count."""
    motions, states = [], []
    for n in COUNTS:
        tree = chain(n, modes)
        motions.append(Motion(tree, "symplectic_euler", 1e-9))
        states.append((tree.neutral() + 0.01, np.zeros(tree.nv)))
    best = np.full(len(COUNTS), np.inf)
    for _ in range(rounds):
        for k, (motion, (q, v), n) in enumerate(zip(motions, states, COUNTS, strict=True)):
            steps = max(10, 2000 // n)
            motion.run(q, v, steps)
            times = []
            for _ in range(samples):
                start = time.thread_time_ns()
                motion.run(q, v, steps)
                times.append((time.thread_time_ns() - start) / steps)
            best[k] = min(best[k], np.median(times))
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modes", type=int, nargs="*", default=[4])
    parser.add_argument("--json")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    report, worst = {}, 0.0
    for modes in options.modes:
        ns = measure(modes)
        # relative least squares: every chain counts alike
        A = np.column_stack([np.ones(len(COUNTS)), COUNTS]) / ns[:, None]
        (base, slope), *_ = np.linalg.lstsq(A, np.ones(len(COUNTS)), rcond=None)
        residual = (base + slope * np.array(COUNTS)) / ns - 1.0
        worst = max(worst, np.abs(residual).max())
        print(f"{modes} modes a body: {base:.0f} ns + {slope:.1f} ns per body, largest residual {100 * np.abs(residual).max():.1f} %")
        for n, x, r in zip(COUNTS, ns, residual, strict=True):
            print(f"  {n:4d} bodies {x:10.0f} ns  {100 * r:+5.1f} %")
        report[str(modes)] = {"bodies": list(COUNTS), "ns": ns.tolist(), "ns_per_body": slope, "residual": residual.tolist()}
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1))
    return 0 if worst <= 0.05 else 1


if __name__ == "__main__":
    raise SystemExit(main())
