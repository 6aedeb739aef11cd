"""Measured legs to the pose of the platform and the relative pose of the ports, against a stand in plain NumPy."""

import numpy as np
import pytest

from rt_kernels.forward_kinematics.stewart import StewartForward
from rt_kernels.layout import BITS
from tests.first_sample import first_sample
from tests.stewart import plain_kinematics as plain

PERIOD = 1e-3
STATUS = BITS["forward_kinematics_status"]
RESULTS = ("X_WP_measured", "V_WP_measured", "X_TA_measured", "V_TA_measured")
V_WP = np.array([0.05, -0.03, 0.08, 0.02, -0.04, 0.06])


def part(platform, mounting=None, **keys):
    return StewartForward(period_s=PERIOD, platform=platform, mounting=mounting or plain.mounting(), **keys)


def sample(platform, T_WP, V=None):
    s = first_sample()
    measure(s, platform, T_WP, V)
    return s


def measure(s, platform, T_WP, V=None):
    s["periods"], s["measured_leg"] = 1, plain.lengths(platform, T_WP)
    s["measured_leg_rate"] = 0.0 if V is None else plain.rates(platform, T_WP, V)


def somewhere(platform, seed):
    """A pose of the platform decimetres and some degrees from the neutral one."""
    rng = np.random.default_rng(seed)
    return plain.moved(plain.matrix_of(platform.neutral_pose), np.concatenate([rng.uniform(-0.25, 0.25, 3), rng.uniform(-0.15, 0.15, 3)]))


@pytest.mark.parametrize(("unit", "cell"), plain.MOUNTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_first_pose_is_found_from_the_neutral_one(unit, cell, seed):
    """Wherever the platform stands at switch-on, and whichever unit it carries."""
    platform, mounting = plain.platform(), plain.mounting(unit, cell)
    T_WP = somewhere(platform, seed)
    s = sample(platform, T_WP)
    part(platform, mounting).step(s)
    assert s["forward_kinematics_status"][0] == 0
    plain.same_pose(s["X_WP_measured"][0], T_WP)
    plain.same_pose(s["X_TA_measured"][0], plain.relative(mounting, T_WP))


@pytest.mark.parametrize(("unit", "cell"), plain.MOUNTINGS)
def test_motion_is_followed(unit, cell):
    """A second of motion on a screw: pose in every tick, and with a fast filter the twist of platform and ports."""
    platform, mounting = plain.platform(), plain.mounting(unit, cell)
    stage, s = part(platform, mounting, rate_filter_hz=400.0), sample(platform, somewhere(platform, 1))
    for k in range(0, 1000, 10):
        T_WP = plain.moved(somewhere(platform, 1), k * PERIOD * V_WP)
        measure(s, platform, T_WP, V_WP)
        stage.step(s)
        assert s["forward_kinematics_status"][0] == 0
        plain.same_pose(s["X_WP_measured"][0], T_WP)
        plain.same_pose(s["X_TA_measured"][0], plain.relative(mounting, T_WP))
    wanted = plain.twist_through(lambda T: plain.relative(mounting, T), T_WP, V_WP)
    np.testing.assert_allclose(s["V_WP_measured"][0], V_WP, rtol=0, atol=1e-8)
    np.testing.assert_allclose(s["V_TA_measured"][0], wanted, rtol=0, atol=1e-8)


@pytest.mark.parametrize("corner", [0.5, 5.0, 100.0])
def test_twist_passes_a_first_order_low_pass(corner):
    """After n ticks of a steady motion 1 - exp(-2 pi f n T) of it has arrived, in every component."""
    platform = plain.platform()
    T_WP = somewhere(platform, 2)
    stage, s = part(platform, rate_filter_hz=corner), sample(platform, T_WP, V_WP)
    for n in range(1, 30):
        stage.step(s)
        arrived = 1.0 - np.exp(-2.0 * np.pi * corner * n * PERIOD)
        np.testing.assert_allclose(s["V_WP_measured"][0], arrived * V_WP, rtol=0, atol=1e-8)


@pytest.mark.parametrize("leg", range(6))
@pytest.mark.parametrize("length", [0.0, -4.0, np.nan])
def test_a_missing_leg_leaves_the_last_pose(leg, length):
    """No length, or none that can be: reported in the status; then the next good tick continues."""
    platform = plain.platform()
    T_WP = somewhere(platform, 3)
    stage, s = part(platform), sample(platform, T_WP, V_WP)
    for known in (False, True):  # before the first pose, and after it
        before = s.copy()
        s["measured_leg"][0, leg] = length
        stage.step(s)
        assert s["forward_kinematics_status"][0] == STATUS["leg_missing"]
        assert all(s[name].tobytes() == before[name].tobytes() for name in RESULTS), known
        measure(s, platform, T_WP, V_WP)
        stage.step(s)
        assert s["forward_kinematics_status"][0] == 0
        plain.same_pose(s["X_WP_measured"][0], T_WP)


def test_legs_that_fit_no_pose_are_reported_and_change_nothing():
    platform = plain.platform()
    stage, s = part(platform), sample(platform, somewhere(platform, 4))
    stage.step(s)
    before = s.copy()
    s["measured_leg"] = [3.0, 5.0, 3.0, 5.0, 3.0, 9.0]
    stage.step(s)
    assert s["forward_kinematics_status"][0] & (STATUS["not_converged"] | STATUS["near_singular"])
    assert all(s[name].tobytes() == before[name].tobytes() for name in RESULTS)


def test_steps_a_tick_decide_how_far_a_jump_may_be():
    """One Newton step does not bridge two decimetres, five do."""
    platform = plain.platform()
    T_WP, far = somewhere(platform, 5), plain.moved(somewhere(platform, 5), [0.2, -0.15, 0.1, 0.1, -0.1, 0.1])
    for steps, status in ((1, STATUS["not_converged"]), (5, 0)):
        stage, s = part(platform, newton_steps=steps), sample(platform, T_WP)
        stage.step(s)
        measure(s, platform, far)
        stage.step(s)
        assert s["forward_kinematics_status"][0] == status
        plain.same_pose(s["X_WP_measured"][0], T_WP if status else far)


def test_near_singular_is_reported():
    """A limit of the condition below that of the pose stands in for a pose beside a singularity."""
    T_WP = plain.moved(plain.matrix_of(plain.platform().neutral_pose), [0.1, 0.1, 0.0, 0.6, 0.2, 0.0])
    value = plain.condition(plain.platform(), T_WP)
    for limit, status in ((1.01 * value, 0), (0.99 * value, STATUS["near_singular"])):
        platform = plain.platform(condition_max=limit)
        s = sample(platform, T_WP)
        part(platform).step(s)
        assert s["forward_kinematics_status"][0] == status
