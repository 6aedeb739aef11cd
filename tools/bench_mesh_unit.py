"""Probe and cone as meshes of 1e5 triangles against the unit in closed form: `python tools/bench_mesh_unit.py [CASES]`.

Peak force and time of capture over random first contacts, the same for the closed form with other friction (what these figures depend on),
and the processor time of the mesh unit. A field of 3 mm takes a minute to compute and 500 cases some minutes.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rt_kernels.mechanisms.mesh.unit import MeshUnit
from rt_kernels.mechanisms.probe_cone.simple import ProbeConeSimple
from tests.mechanisms.mesh.test_analytic import differences, mesh_keys

TICKS = 20_000


def show(name: str, count: int, unit, reference=ProbeConeSimple) -> None:
    rows, left_out = differences(count, unit, reference)
    peak, late = np.abs(rows).T
    print(f"{name}: captured by one alone {np.isinf(late).sum()}, left out, captured by none: {left_out}")
    for what, values, limit in (("peak force", peak, 0.02), ("time of capture, s", late[np.isfinite(late)], 0.01)):
        shares = ", ".join(f"{100 * q:g} % {np.quantile(values, q):.4f}" for q in (0.5, 0.9, 0.95, 0.99, 1.0))
        print(f"  {what}: {shares}; {np.count_nonzero(values > limit)} of {len(values)} above {limit}")


def cost(keys) -> None:
    """Head pressed into the cone, sliding back and forth: processor time of a tick of 1 ms."""
    unit = MeshUnit(**keys)
    X, V = np.array([-0.7, 0.06, 0.0, 0.0, 0.0, 0.0, 1.0]), np.zeros(6)
    while unit.max_penetration(X) <= 0.0:
        X[0] += 1e-3
    force, began = 0.0, time.process_time()
    for k in range(TICKS):
        # 30 mm in 0.3 s, then half a second this way and half a second that way
        V[:2] = (0.1, 0.0) if k < 300 else (0.0, 0.05 * (1 if k // 500 % 2 else -1))
        X[:2] += V[:2] * 1e-3
        force = max(force, np.linalg.norm(unit.advance(X, V, 1e-3)["F_T"][:3]))
    took = (time.process_time() - began) / TICKS
    print(
        f"a tick of 1 ms, sliding in contact, up to {force:.0f} N: {took * 1e6:.1f} us, {1e-3 / took:.0f} x real time, called from Python"
    )


if __name__ == "__main__":
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        keys = mesh_keys(Path(folder), 0.003, 0.002, 6, 8192)
        cost(keys)
        show("mesh", cases, lambda: MeshUnit(**keys))
    show("closed form, friction 0.101 for 0.1", cases, lambda: ProbeConeSimple(friction=0.101))
