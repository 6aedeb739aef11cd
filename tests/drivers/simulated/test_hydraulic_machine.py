"""The hydraulic machine against closed forms."""

import numpy as np
import pytest

from drivers.simulated.hydraulic_machine import HydraulicMachine
from hil_server.config import SHIPPED, load_test
from rt_kernels.stewart.platform import Platform

STAND = load_test(None, [f"test.stand={SHIPPED}/stands/hydraulic_stand.toml"]).stand
PLATFORM = Platform.from_dict(STAND["platform"])
STIFF = {"accumulator_gas_m3": 0.0, "line_volume_m3": 0.0}  # the supply never gives way
SMOOTH = {"valve_overlap": 0.0, "friction_coulomb_n": 0.0, "friction_static_n": 0.0, **STIFF}
SHUT = {"position_gain_1_s": 0.0, "velocity_feedforward": 0.0, "pressure_gain_1_pa": 0.0}  # the drives leave their spools alone
FREE = SMOOTH | SHUT | {"friction_viscous_n_s_m": 0.0, "leakage_internal_m3_s_pa": 0.0}
AXES = "X Y Z RX RY RZ".split()


def machine(**keys):
    return HydraulicMachine(platform=PLATFORM, **keys)


def sine(keys, frequency_hz, amplitude, axis, periods=10):
    """Pose against setpoint along one direction, complex; the last half of the run, one step of the drives a plant step."""
    m, X = machine(**keys), PLATFORM.neutral_pose
    step, w, e = m.step_s, 2.0 * np.pi * frequency_hz, np.eye(6)[axis]
    t = step * np.arange(1, round(periods / frequency_hz / step) + 1)
    ramp = np.minimum(t * frequency_hz, 1.0)
    a = amplitude * ramp * np.sin(w * t)
    rate = np.gradient(a, step)
    out = np.empty(len(t))
    for i in range(len(t)):
        pose = X + np.r_[e[:3] * a[i], 0.5 * e[3:] * a[i], 0.0]
        m.set_legs(*PLATFORM.leg_rates(pose / np.r_[np.ones(3), np.full(4, np.linalg.norm(pose[3:]))], e * rate[i]))
        m.advance(1)
        now = m.state()["X_WP"]
        out[i] = now[axis] - X[axis] if axis < 3 else 2.0 * now[axis]
    late = t > (periods // 2) / frequency_hz
    c = np.linalg.lstsq(np.c_[np.sin(w * t), np.cos(w * t), np.ones(len(t))][late], out[late], rcond=None)[0]
    return (c[0] + 1j * c[1]) / amplitude


@pytest.mark.parametrize(
    "axis, frequency_hz, decibel, degrees", [("X", 10.0, -2.00, -70.3), ("Y", 5.0, 4.81, -64.7), ("RX", 10.0, -1.35, -77.3)]
)
def test_small_signal_response_of_the_preset(axis, frequency_hz, decibel, degrees):
    G = sine(SMOOTH, frequency_hz, 5e-4, AXES.index(axis))
    assert 20.0 * np.log10(abs(G)) == pytest.approx(decibel, abs=0.02)
    assert np.degrees(np.angle(G)) == pytest.approx(degrees, abs=0.1)
