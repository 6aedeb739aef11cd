"""What control wrenches add to the speed of a contact point, against the bodies' own motion."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server import registry
from hil_server.judge.rebound import control_gain, speed_along
from rt_kernels.context import Start, Vehicle, Vehicles
from tests.first_sample import closed

PERIOD = 1e-3
X_TA = [-0.3, 0.05, -0.02, *Rotation.from_euler("xyz", [3, -5, 8], degrees=True).as_quat()]


def body(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    X_port = [*rng.normal(size=3), *Rotation.from_rotvec(rng.normal(size=3)).as_quat()]
    return Vehicle(rng.uniform(500.0, 3000.0), A @ A.T * 100.0 + 500.0 * np.eye(3), X_port)


@pytest.mark.parametrize("acting", [("control_A",), ("control_T",), ("control_A", "control_T")])
def test_speed_gained_from_the_wrenches_of_either_craft(acting):
    """Two bodies from rest under constant control wrenches, no contact: all of the speed along the screw is the gain."""
    rng = np.random.default_rng(4)
    vehicles = Vehicles(body(1), body(2))
    bodies = registry.part("dynamics", "two_bodies")(period_s=PERIOD, vehicles=vehicles, start=Start(X_TA, np.zeros(6)), range_max_m=100.0)
    sample, _ = closed(bodies, X_TA)
    rows = [sample.copy()]
    for name in acting:
        sample[name] = rng.normal(0.0, 50.0, 6)
    for _ in range(20):
        bodies.step(sample)
        rows.append(sample.copy())
    records, screw = np.concatenate(rows), np.array([0.6, -0.8, 0.0, 0.1, 0.3, -0.2])
    gained = np.diff(speed_along(records[[0, -1]], screw))[0]
    assert abs(gained) > 1e-4 and control_gain(records, screw, PERIOD, vehicles) == pytest.approx(gained, rel=1e-3)
    assert control_gain(records, screw, PERIOD, None) is None
    records["control_A"], records["control_T"] = 0.0, 0.0
    assert control_gain(records, screw, PERIOD, None) == 0.0
