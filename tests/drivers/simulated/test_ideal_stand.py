"""The stand without drives: legs at their setpoints, the mechanism's wrench on the load cell in the same tick, the carried weight."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from drivers.simulated.ideal_stand import IdealStandPort
from hil_server import registry
from rt_kernels.context import Vehicle, Vehicles
from rt_kernels.layout import BITS, CODES, SAMPLE_DTYPE
from tests.stewart import plain_kinematics as plain

PERIOD = 1e-3
STIFFNESS = 2e4
MASS, COM, G = 30.0, np.array([-0.1, 0.04, 0.02]), np.array([-9.8, 0.3, -0.2])
X_S = plain.pose(plain.matrix([4.5, 0.1, 0.0], [0.2, -0.3, 0.1]))
X_S_PORT = plain.pose(plain.matrix([-0.2, 0.05, 0.03], [0.1, 0.4, -0.2]))


def stand(unit="target", substeps=1, mass=MASS, cell="floor"):
    carried = {"carried_mass_kg": mass, "carried_com_m": COM, "gravity_m_s2": G}
    mounting = replace(plain.mounting(unit, cell), X_S=X_S, X_S_port=X_S_PORT, **carried)
    mechanism = registry.part("mechanisms", "bumper")(stiffness_n_per_m=STIFFNESS)
    vehicles = Vehicles(Vehicle(1.0, np.eye(3), plain.pose(plain.matrix([1.0, 0.2, 0.0], [0.1, 0.2, 0.3]))), Vehicle(1.0, np.eye(3)))
    return IdealStandPort(
        period_s=PERIOD, platform=plain.platform(), mounting=mounting, mechanism=mechanism, vehicles=vehicles, substeps=substeps
    )


def sample(X_TA, **fields):
    s = np.zeros(1, SAMPLE_DTYPE)
    s["periods"], s["X_TA"], s["safety_state"] = 1, X_TA, CODES["safety_state"]["following"]
    s["X_NC"][0, 6] = 1.0
    for name, value in fields.items():
        s[name] = value
    return s


def pressed():
    """A pose in which the bumper is in contact, and the mechanism's own wrenches there."""
    mechanism = registry.part("mechanisms", "bumper")(stiffness_n_per_m=STIFFNESS)
    X = plain.pose(plain.matrix([-3.0, 0.01, -0.02], [0.01, 0.02, -0.01]))
    while mechanism.max_penetration(X) < 0.01:
        X[0] += 0.001
    return X, mechanism.advance(X, np.zeros(6), PERIOD)


def moved_to_parent(X, F):
    """A wrench at and in the child frame as it is at and in the parent."""
    R = Rotation.from_quat(X[3:]).as_matrix()
    f = R @ F[:3]
    return np.concatenate([f, R @ F[3:] + np.cross(X[:3], f)])


def weight():
    f = Rotation.from_quat(X_S[3:]).as_matrix().T @ (MASS * G)
    return np.concatenate([f, np.cross(COM, f)])


@pytest.mark.parametrize(("unit", "wrench"), [("target", "F_T"), ("active", "F_A")])
def test_load_cell_feels_the_unit_that_it_carries_in_the_same_tick(unit, wrench):
    X, alone = pressed()
    port, s = stand(unit), sample(X)
    port.read(s)  # the first tick: no contact yet, the weight alone
    np.testing.assert_allclose(s["wrench_raw"][0], weight(), rtol=1e-12, atol=1e-9)
    port.read(s)
    assert np.abs(alone[wrench]).max() > 50.0
    np.testing.assert_allclose(s["wrench_raw"][0], moved_to_parent(X_S_PORT, alone[wrench]) + weight(), rtol=1e-9, atol=1e-7)
    np.testing.assert_array_equal(s["signal_analog"][0], alone["analog"])
    assert s["signal_discrete"][0] == alone["signals"] and s["wrench_status"][0] == s["signal_status"][0] == 0
    assert s["analogue_chain"][0] == BITS["analogue_chain"]["healthy"]


def test_legs_are_their_setpoints_once_armed():
    port, s = stand(), sample(pressed()[0], safety_state=CODES["safety_state"]["not_armed"])
    neutral = plain.lengths(plain.platform(), plain.matrix_of(plain.platform().neutral_pose))
    for _ in range(2):
        s["leg_setpoint"] = 1.0
        port.read(s)
        np.testing.assert_allclose(s["measured_leg"][0], neutral, rtol=0, atol=1e-12)
        assert not s["measured_leg_rate"].any()
    s["safety_state"], before = CODES["safety_state"]["following"], neutral
    for periods, step in ((1, 0.001), (2, 0.004), (1, -0.002)):
        s["periods"], s["leg_setpoint"] = periods, before + step * np.arange(1, 7)
        port.read(s)
        np.testing.assert_array_equal(s["measured_leg"], s["leg_setpoint"])
        np.testing.assert_allclose(s["measured_leg_rate"][0], step * np.arange(1, 7) / (PERIOD * periods), rtol=1e-9)
        before = s["leg_setpoint"][0].copy()


def test_sequence_counts_ticks():
    port, s = stand(), sample(pressed()[0])
    for k in range(1, 5):
        port.read(s)
        assert s["wrench_sequence"][0] == k


@pytest.mark.parametrize("substeps", [1, 4])
@pytest.mark.parametrize("periods", [1, 3])
def test_mechanism_is_advanced_by_the_true_time(substeps, periods):
    """The probe's own clock, after ten ticks: ten times the periods, whatever the substeps; the first tick only measures."""
    mechanism = registry.part("mechanisms", "probe_cone")()
    mounting = replace(plain.mounting(), X_S=X_S, X_S_port=X_S_PORT, carried_com_m=COM, gravity_m_s2=G)
    vehicles = Vehicles(Vehicle(1.0, np.eye(3)), Vehicle(1.0, np.eye(3)))
    port = IdealStandPort(
        period_s=PERIOD, platform=plain.platform(), vehicles=vehicles, substeps=substeps, mounting=mounting, mechanism=mechanism
    )
    names = [f"{a.name}" for a in port.AUX for _ in range(a.count)]
    s, aux = sample([-3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], periods=periods), np.zeros(len(names))
    for _ in range(11):
        port.read(s, aux)
    assert aux[names.index("probe.time")] == pytest.approx(10 * periods * PERIOD, rel=1e-9)


def test_only_a_load_cell_on_the_floor():
    with pytest.raises(ValueError, match="load cell on the floor"):
        stand(cell="platform")


def test_counts_are_newtons_and_nothing_is_late():
    port = stand()
    assert port.sensor_scale == [1.0] * 6 and set(port.delays.values()) == {0.0}
