"""Press thrust and rate damping: what is asked for is what acts, nothing else does."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server import registry
from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles
from rt_kernels.layout import BITS, CODES
from tests.first_sample import first_sample

REQUEST, STATUS = BITS["control_request"], BITS["control_status"]
THRUST, GAIN = 250.0, 50.0
VEHICLES = Vehicles(Vehicle(1.0, np.eye(3), thrust_n=THRUST), Vehicle(1.0, np.eye(3), thrust_n=77.0))
OUTPUTS = ("control_A", "control_T", "thruster_A", "thruster_T", "wheel_torque_A", "wheel_torque_T")


def controlled(*asked, w=(0.0, 0.0, 0.0), R=None, **keys):
    """The sample after one step; w: rate of the active craft on its own axes."""
    R = Rotation.identity() if R is None else R
    sample = first_sample(control_request=sum(REQUEST[name] for name in asked), **dict.fromkeys(OUTPUTS, 9.0))  # of the tick before
    sample["X_NC"][0, 3:], sample["V_NC"][0, 3:] = R.as_quat(), R.apply(w)
    registry.part("control", "press_thrust")(vehicles=VEHICLES, **keys).step(sample)
    return sample[0]


@pytest.mark.parametrize(("asked", "thrust"), [((), 0.0), (("press",), THRUST), (("retreat",), -THRUST), (("press", "attitude"), THRUST)])
def test_thrust_is_what_the_guidance_asks_for(asked, thrust):
    sample = controlled(*asked)
    assert sample["control_A"].tolist() == [thrust, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert not any(sample[name].any() for name in OUTPUTS[1:]) and sample["control_status"] == 0


@pytest.mark.parametrize("part", ["press_thrust", "thrusters"])
def test_it_acts_along_the_port_wherever_that_looks(part):
    active = Vehicle(1.0, np.eye(3), thrust_n=THRUST, docking_axis=(0.0, -0.6, 0.8))
    sample = first_sample(motion=CODES["motion"]["free"], control_request=REQUEST["retreat"])
    off = {f"{side}_attitude": "off" for side in ("active", "target")} if part == "thrusters" else {}
    context = {"period_s": 1e-3, "start": Start(IDENTITY, np.zeros(6))} if part == "thrusters" else {}
    registry.part("control", part)(vehicles=replace(VEHICLES, active=active), **context, **off).step(sample)
    assert sample["control_A"][0] == pytest.approx([0.0, 0.6 * THRUST, -0.8 * THRUST, 0.0, 0.0, 0.0])


def test_attitude_damps_the_own_rate_on_the_axes_of_the_craft():
    w, R = np.array([0.01, -0.02, 0.03]), Rotation.from_euler("xyz", [0.3, -0.4, 1.1])
    sample = controlled("attitude", w=w, R=R, attitude_rate_gain_n_m_s_per_rad=GAIN)
    assert sample["control_A"][3:] == pytest.approx(-GAIN * w, rel=1e-12) and not sample["control_A"][:3].any()
    assert sample["control_status"] == STATUS["attitude"]
    assert not controlled("press", w=w, R=R, attitude_rate_gain_n_m_s_per_rad=GAIN)["control_A"][3:].any()
