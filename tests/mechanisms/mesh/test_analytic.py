"""Probe head and cone as meshes against `probe_cone_simple`, whose contact is in closed form: peak force and time of capture.

Both have the same springs, masses and latch; the contact differs: an elastic foundation here, one spring there. `differences` plays any
number of cases; `tools/bench_mesh_unit.py` does so with fine meshes, and measures the cost.
"""

import numpy as np
import pytest

from rt_kernels.algebra.arrays import quat_from_yaw_pitch_roll
from rt_kernels.mechanisms.mesh.unit import MeshUnit
from rt_kernels.mechanisms.probe_cone.simple import ProbeConeSimple
from rt_kernels.offline.two_craft import TwoCraft
from tests.mechanisms.mesh import drawings

CAPTURED = 0b010
HERE = [0, 0, 0, 0, 0, 0, 1]
SPRINGS = {"head_mass_kg": 4.0, "axial_stiffness_n_per_m": 8e3, "axial_damping_n_s_per_m": 4e3, "lateral_stiffness_n_per_m": 2e4,
           "lateral_damping_n_s_per_m": 1.5e3, "friction": 0.1, "slip_speed_m_s": 1e-3}  # fmt: skip
LATCH = {"active": "tip", "target": "throat", "radius_m": 0.05, "stiffness_n_per_m": 2e5, "damping_n_s_per_m": 1e3}


def mesh_keys(folder, cell, spacing, subdivisions, sections):
    places = (("tip", "active", [0.6, 0.0, 0.0]), ("throat", "target", [0.02, 0.0, 0.0]))
    points = [{"name": name, "body": body, "position_m": place} for name, body, place in places]
    ball, cone = drawings.ball(0.04, [0.6, 0, 0], subdivisions), drawings.cone(sections=sections)
    return drawings.unit_keys(folder, ball, cone, cell=cell, spacing=spacing, head_m=[0.6, 0.0, 0.0], points=points, latches=[LATCH],
                              foundation_stiffness_n_per_m3=2e10, **SPRINGS)  # fmt: skip


def docking(unit, case, duration=6.0, dt=1e-3):
    """Peak force on the target [N] up to a second after the capture and the time from the first contact to the capture [s], None without
    one."""
    y, z, speed, yaw, pitch, roll, rates = case[0], case[1], case[2], *case[3:6], case[6:9]
    q = quat_from_yaw_pitch_roll(yaw, pitch, roll)
    X = np.array([-1.2, y, z, *q])
    while unit.max_penetration(X) <= 0.0:
        X[0] += 0.002
    X[0] -= 0.002
    active = dict(mass=7000.0, inertia=np.diag([8e3, 2e4, 2e4]), X_port=HERE, X=X, v=[speed, 0.0, 0.0], w=rates)
    target = dict(mass=20000.0, inertia=np.diag([5e4, 1e5, 1e5]), X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
    rows = TwoCraft(unit, active, target).run(duration, dt)
    force, signals = np.linalg.norm(rows["F_T"][:, :3], axis=1), rows["signals"].astype(int)
    caught = np.flatnonzero(signals & CAPTURED)
    until = caught[0] + int(1.0 / dt) if len(caught) else None
    return force[:until].max(), (caught[0] - np.flatnonzero(force)[0]) * dt if len(caught) else None


def differences(count, unit, reference=ProbeConeSimple, seed=7):
    """(count, 2) of peak forces, relative, and of times of capture [s] (infinite where one alone captures), for random first contacts after
    which one captures; how many were left out because none does. unit, reference: make a new unit."""
    rng, rows, left_out = np.random.default_rng(seed), [], 0
    while len(rows) < count:
        miss, speed = rng.uniform(-0.12, 0.12, 2), rng.uniform(0.05, 0.25)
        case = np.r_[miss, speed, np.radians(rng.uniform(-3, 3, 3)), np.radians(rng.uniform(-0.3, 0.3, 3))]
        exact, found = docking(reference(), case), docking(unit(), case)
        both = [one[1] for one in (exact, found)]
        if both == [None, None]:
            left_out += 1
            continue
        rows.append([found[0] / exact[0] - 1.0, np.inf if None in both else both[1] - both[0]])
    return np.array(rows), left_out


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return mesh_keys(tmp_path_factory.mktemp("unit"), 0.006, 0.004, 4, 128)


def test_peak_force_and_time_of_capture(keys):
    """With a field twice as coarse as the table's."""
    peak, late = differences(8, lambda: MeshUnit(**keys))[0].T
    assert np.median(np.abs(peak)) < 0.01 and np.abs(peak).max() < 0.03
    assert np.abs(late).max() < 0.03
