"""Kinematics of the platform: a slow NumPy twin, finite differences, published check lengths, identities, and what happens next to a
singularity."""

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rt_kernels.algebra import arrays
from rt_kernels.extends import read_tables
from rt_kernels.stewart.platform import (
    Platform,
    PlatformStatusError,
    chord_batch,
    forward_batch,
    inverse_batch,
    place_batch,
    twist_batch,
)

NOT_CONVERGED, NEAR_SINGULAR, NOT_FINITE, RATE, ACCELERATION, OUT_OF_REACH = 1, 2, 4, 8, 16, 1
INCH = 0.0254
STANDS_FOLDER = Path(__file__).resolve().parents[2] / "stand_configs" / "stands"
CASES = settings(max_examples=150, deadline=None)


def table(name: str) -> dict:
    return read_tables(STANDS_FOLDER / f"{name}.toml")["platform"]


STANDS = {name: Platform.from_dict(table(name), name) for name in ("msfc_6dof", "docking_stand")}


@pytest.fixture(params=STANDS)
def platform(request):
    return STANDS[request.param]


# -- the slow twin: one leg at a time, SciPy rotations, no shared formulas


def twin_legs(platform: Platform, X_WP) -> np.ndarray:
    R = Rotation.from_quat(X_WP[3:])
    return np.array([X_WP[:3] + R.apply(a) - b for a, b in zip(platform.platform_joints, platform.base_joints, strict=True)])


def twin_lengths(platform: Platform, X_WP) -> np.ndarray:
    return np.linalg.norm(twin_legs(platform, X_WP), axis=1)


def moved(X_WP, V_WP, A_WP, t: float) -> np.ndarray:
    """The pose after t with twist V at t = 0 and constant linear acceleration and, to second order, angular acceleration A."""
    v, w, a, alpha = (np.asarray(x) for x in (V_WP[:3], V_WP[3:], A_WP[:3], A_WP[3:]))
    turn = Rotation.from_rotvec(w * t + 0.5 * alpha * t * t) * Rotation.from_quat(X_WP[3:])
    return np.concatenate([X_WP[:3] + v * t + 0.5 * a * t * t, turn.as_quat()])


def displaced(platform: Platform, shift, turn) -> np.ndarray:
    """The neutral pose, displaced in W and turned by a rotation vector."""
    X = platform.neutral_pose
    q = arrays.quat_multiply(arrays.quat_exponential(turn), X[3:])
    return np.concatenate([X[:3] + shift, q])


def workspace_poses(platform: Platform, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random poses (count, 7) inside all strokes and away from singularities."""
    found: list[np.ndarray] = []
    while len(found) < count:
        n = 40 * count
        turns = Rotation.from_rotvec(rng.uniform(-0.6, 0.6, (n, 3))) * Rotation.from_quat(platform.neutral_pose[3:])
        tried = np.column_stack([platform.neutral_pose[:3] + rng.uniform(-1.0, 1.0, (n, 3)), turns.as_quat()])
        found += list(tried[place_batch(platform, tried)[0] == 0])
    return np.array(found[:count])


NUMBER = st.floats(-1.0, 1.0)
THREE = st.tuples(NUMBER, NUMBER, NUMBER).map(np.array)
SIX = st.tuples(THREE, THREE).map(np.concatenate)


# -- inverse


@CASES
@given(st.sampled_from(sorted(STANDS)), THREE, THREE, SIX, SIX)
def test_lengths_rates_accelerations_against_the_twin(name, shift, turn, V, A):
    platform = STANDS[name]
    X = displaced(platform, 0.5 * shift, 0.4 * turn)
    lengths, rates, accelerations = platform.leg_accelerations(X, V, A)
    assert np.allclose(lengths, twin_lengths(platform, X), rtol=0, atol=4e-15)
    assert np.allclose(platform.leg_lengths(X), lengths, rtol=0, atol=2e-15)
    # five-point differences of the twin along the motion
    h = 2e-3
    l = {k: twin_lengths(platform, moved(X, V, A, k * h)) for k in (-2, -1, 0, 1, 2)}
    assert np.allclose(rates, (8 * (l[1] - l[-1]) - (l[2] - l[-2])) / (12 * h), rtol=0, atol=2e-9)
    second = (16 * (l[1] + l[-1]) - (l[2] + l[-2]) - 30 * l[0]) / (12 * h * h)
    assert np.allclose(accelerations, second, rtol=0, atol=2e-7)


@CASES
@given(st.sampled_from(sorted(STANDS)), THREE, THREE, SIX)
def test_all_ways_to_lengths_and_rates_agree(name, shift, turn, V):
    platform = STANDS[name]
    X = displaced(platform, 0.5 * shift, 0.4 * turn)
    lengths, rates = platform.leg_rates(X, V)
    again, rates_again, _ = platform.leg_accelerations(X, V, np.zeros(6))
    status, placed, placed_rates, margin, condition = platform.place_legs(X, V)
    assert np.allclose(lengths, again, rtol=0, atol=2e-15) and np.allclose(lengths, placed, rtol=0, atol=2e-15)
    assert np.allclose(rates, rates_again, rtol=0, atol=4e-15) and np.allclose(rates, placed_rates, rtol=0, atol=4e-15)
    assert np.allclose(rates, platform.jacobian(X) @ V, rtol=0, atol=4e-15)
    assert margin == pytest.approx(platform.margins(X).min(), abs=4e-15)
    assert margin == pytest.approx(platform.stroke_margin(lengths), abs=4e-15)
    assert condition == pytest.approx(platform.condition(X), rel=1e-12)
    assert status == (OUT_OF_REACH if margin < 0 else 0)


# -- published geometry


def test_check_lengths_of_msfc():
    """Six published leg lengths belong to yaw -30 deg (about the platform normal) and height^2 = 12 389.9 square inches."""
    platform = STANDS["msfc_6dof"]
    published = np.array([162.107, 116.891, 162.106, 116.890, 162.104, 116.891]) * INCH
    X = np.concatenate([[math.sqrt(12389.9) * INCH, 0, 0], arrays.quat_from_yaw_pitch_roll(0, 0, math.radians(-30))])
    # published to 0.001 in, height^2 to 0.1 in^2
    assert np.abs(platform.leg_lengths(X) - published).max() <= 0.0012 * INCH
    found = platform.forward(published, steps=10)
    assert np.abs(found[:3] - X[:3]).max() <= 0.002 * INCH
    assert np.degrees(arrays.quat_to_yaw_pitch_roll(found[3:])) == pytest.approx([0, 0, -30], abs=2e-3)
    # the other sense of rotation gives other lengths: the check has teeth
    X[3] = -X[3]
    assert np.abs(platform.leg_lengths(X) - published).max() > 1.0


def test_stroke_of_msfc_in_inches():
    platform = STANDS["msfc_6dof"]
    assert platform.leg_length_min == pytest.approx(106 * INCH, abs=1e-9)
    assert platform.leg_length_max == pytest.approx(167 * INCH, abs=1e-9)


def test_docking_stand_is_the_one_specified():
    platform = STANDS["docking_stand"]
    assert platform.leg_length_max - platform.leg_length_min == 2.0
    assert (platform.leg_rate_max, platform.leg_force_max) == (0.5, 125e3)
    assert np.abs(platform.margins(platform.neutral_pose) - 1.0).max() < 0.01


# -- forward


def test_forward_of_inverse_over_the_workspace(platform):
    """FK(IK(X)) = X within 1e-10 m and rad, three warm steps; the seed is the pose of a tick ago at the greatest leg rate."""
    rng = np.random.default_rng(5)
    poses = workspace_poses(platform, rng, 4000)
    twists = rng.normal(size=(len(poses), 6))
    lengths, rates = inverse_batch(platform, poses, twists)
    twists *= (platform.leg_rate_max / np.abs(rates).max(axis=1))[:, None]
    seeds = np.array([moved(X, V, np.zeros(6), -1e-3) for X, V in zip(poses, twists, strict=True)])
    assert np.abs(seeds - poses)[:, :3].max() > 4e-4
    status, found = forward_batch(platform, lengths, seeds, 3)
    assert not status.any()
    assert np.abs(found[:, :3] - poses[:, :3]).max() <= 1e-10
    difference = Rotation.from_quat(found[:, 3:]) * Rotation.from_quat(poses[:, 3:]).inv()
    assert difference.magnitude().max() <= 1e-10
    assert np.abs(np.linalg.norm(found[:, 3:], axis=1) - 1.0).max() <= 4e-16


def test_forward_converges_quadratically(platform):
    """The number of good digits doubles with every step; roll-pitch-yaw updates would only add digits."""
    rng = np.random.default_rng(6)
    X = workspace_poses(platform, rng, 1)[0]
    lengths = platform.leg_lengths(X)
    errors = []
    for steps in (0, 1, 2):
        guess = displaced_from(X, np.full(3, 0.03), np.full(3, 0.03))
        for _ in range(steps):
            x = np.linalg.solve(platform.jacobian(guess), lengths - platform.leg_lengths(guess))
            guess = displaced_from(guess, x[:3], x[3:])
        errors.append(np.abs(guess[:3] - X[:3]).max())
    assert errors[1] < 0.1 * errors[0] and errors[2] < 10 * errors[1] ** 2
    # the kernel takes the same steps
    status, found = platform.forward_status(lengths, displaced_from(X, np.full(3, 0.03), np.full(3, 0.03)), 4)
    assert status == 0 and np.abs(found - X).max() <= 1e-13


def displaced_from(X, shift, turn) -> np.ndarray:
    return np.concatenate([X[:3] + shift, arrays.quat_multiply(arrays.quat_exponential(turn), X[3:])])


@CASES
@given(st.sampled_from(sorted(STANDS)), THREE, THREE)
def test_cold_start_from_the_neutral_pose(name, shift, turn):
    platform = STANDS[name]
    X = displaced(platform, 0.4 * shift, 0.3 * turn)
    found = platform.forward(platform.leg_lengths(X), steps=8)
    assert np.abs(found[:3] - X[:3]).max() <= 1e-10
    assert np.linalg.norm(arrays.quat_logarithm(arrays.quat_multiply(found[3:], X[3:] * [-1, -1, -1, 1]))) <= 1e-10


def test_too_few_steps_is_a_status_and_keeps_the_seed(platform):
    X = displaced(platform, [0.1, -0.1, 0.1], [0.1, 0.1, -0.1])
    status, kept = platform.forward_status(platform.leg_lengths(X), platform.neutral_pose, 1)
    assert status == NOT_CONVERGED and np.array_equal(kept, platform.neutral_pose)
    with pytest.raises(PlatformStatusError, match="no pose found") as caught:
        platform.forward(platform.leg_lengths(X), platform.neutral_pose, 1)
    assert caught.value.status == NOT_CONVERGED


def test_lengths_that_no_pose_has(platform):
    lengths = platform.leg_lengths(platform.neutral_pose)
    lengths[0] += 30.0
    for steps in (3, 20):
        status, kept = platform.forward_status(lengths, platform.neutral_pose, steps)
        assert status & (NOT_CONVERGED | NEAR_SINGULAR) and np.array_equal(kept, platform.neutral_pose)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite_is_a_status(platform, bad):
    X, lengths = platform.neutral_pose, platform.leg_lengths(platform.neutral_pose)
    for i in range(6):
        broken = lengths.copy()
        broken[i] = bad
        status, kept = platform.forward_status(broken, X)
        assert status == NOT_FINITE and np.array_equal(kept, X)
        assert platform.check_legs(broken, np.zeros(6), np.zeros(6)) == NOT_FINITE
        assert math.isnan(platform.stroke_margin(broken)) or platform.stroke_margin(broken) == -math.inf
    for i in range(7):
        broken = X.copy()
        broken[i] = bad
        assert platform.forward_status(lengths, broken)[0] == NOT_FINITE
        assert platform.place_legs(broken, np.zeros(6))[0] == NOT_FINITE
        with pytest.raises(PlatformStatusError, match="not finite"):
            platform.twist(broken, np.zeros(6))
    with pytest.raises(PlatformStatusError, match="not finite"):
        platform.twist(X, [0, 0, 0, 0, 0, bad])
    with pytest.raises(PlatformStatusError, match="not finite"):
        platform.acceleration(X, np.zeros(6), [0, 0, 0, 0, 0, bad])


def test_chord_steps_follow_a_moving_platform(platform):
    """A plant of 50 us: one chord step a time with an inverse Jacobian refreshed every 20 steps stays within 1e-7 m of the truth."""
    V = np.array([0.3, 0.2, -0.2, 0.1, -0.1, 0.1])
    X = start = platform.neutral_pose
    worst = 0.0
    for k in range(200):
        truth = moved(start, V, np.zeros(6), (k + 1) * 50e-6)
        if k % 20 == 0:
            J_inverse = platform.inverse_jacobian(X)
        X, residual = platform.forward_chord(platform.leg_lengths(truth), J_inverse, X)
        assert 1e-7 < residual < 1e-4
        worst = max(worst, np.abs(X - truth).max())
    assert worst <= 1e-7
    assert platform.forward_chord(platform.leg_lengths(truth), J_inverse, truth)[1] <= 1e-14
    assert math.isnan(platform.forward_chord(np.full(6, math.nan), J_inverse, X)[1])


# -- rates back to twists


@CASES
@given(st.sampled_from(sorted(STANDS)), THREE, THREE, SIX, SIX)
def test_twist_and_acceleration_come_back(name, shift, turn, V, A):
    platform = STANDS[name]
    X = displaced(platform, 0.4 * shift, 0.3 * turn)
    _, rates, accelerations = platform.leg_accelerations(X, V, A)
    assert np.allclose(platform.twist(X, rates), V, rtol=0, atol=2e-14)
    assert np.allclose(platform.acceleration(X, V, accelerations), A, rtol=0, atol=5e-14)
    assert np.allclose(platform.inverse_jacobian(X) @ platform.jacobian(X), np.eye(6), rtol=0, atol=1e-14)


def test_solve_keeps_its_digits_when_the_condition_is_bad():
    """At 88.5 deg the condition is above 100: as accurate as elimination with pivots."""
    platform = Platform.from_dict(table("msfc_6dof") | {"condition_max": 200.0})
    X = np.concatenate([[2.83, 0.2, 0.1], arrays.quat_from_yaw_pitch_roll(0.05, 0, math.radians(88.5))])
    V = np.array([0.3, -0.2, 0.1, 0.2, 0.1, -0.3])
    error = np.abs(platform.twist(X, platform.jacobian(X) @ V) - V).max()
    by_lapack = np.abs(np.linalg.solve(platform.jacobian(X), platform.jacobian(X) @ V) - V).max()
    assert 100 < platform.condition(X) < 200
    assert error <= max(10 * by_lapack, 5e-14)


def test_power_of_leg_forces(platform):
    """Leg forces times leg rates = wrench J^T f times twist."""
    X, V, f = displaced(platform, [0.1, 0.2, -0.1], [0.1, -0.2, 0.1]), np.arange(1.0, 7.0), np.arange(6.0, 0.0, -1.0)
    assert f @ platform.leg_rates(X, V)[1] == pytest.approx((platform.jacobian(X).T @ f) @ V, rel=1e-14)


# -- condition and singularity


@CASES
@given(st.sampled_from(sorted(STANDS)), THREE, THREE)
def test_condition_and_distance_are_what_the_singular_values_say(name, shift, turn):
    platform = STANDS[name]
    X = displaced(platform, 0.5 * shift, 0.4 * turn)
    values = platform.singular_values(X)
    assert platform.condition(X) == pytest.approx(math.sqrt((values**2).sum() * (values**-2).sum()), rel=1e-11)
    assert platform.singularity_distance(X) == pytest.approx(1.0 / math.sqrt((values**-2).sum()), rel=1e-11)
    assert platform.condition(X, exact=True) <= platform.condition(X) <= 6.0 * platform.condition(X, exact=True)
    assert platform.singularity_distance(X) <= platform.singularity_distance(X, exact=True) <= 2.45 * platform.singularity_distance(X)
    assert platform.condition(X, exact=True) == pytest.approx(values[0] / values[5])


@pytest.mark.parametrize("angle", [90.0, -90.0, 89.9999, 90.01, 89.5])
def test_next_to_the_singularity_a_status_not_a_number(angle):
    """A platform turned by 90 deg about its normal is singular (Fichter 1986)."""
    platform = STANDS["msfc_6dof"]
    X = np.concatenate([[2.83, 0, 0], arrays.quat_from_yaw_pitch_roll(0, 0, math.radians(angle))])
    lengths, V = platform.leg_lengths(X), np.ones(6)
    status, kept = platform.forward_status(lengths, X)
    assert status == NEAR_SINGULAR and np.array_equal(kept, X)
    seed = np.concatenate([[2.83, 0, 0], arrays.quat_from_yaw_pitch_roll(0, 0, math.radians(angle - math.copysign(1e-3, angle)))])
    status, kept = platform.forward_status(lengths, seed)
    assert status != 0 and np.array_equal(kept, seed)
    assert platform.place_legs(X, V)[0] & NEAR_SINGULAR
    for call in (lambda: platform.twist(X, V), lambda: platform.inverse_jacobian(X), lambda: platform.acceleration(X, V, V)):
        with pytest.raises(PlatformStatusError, match="near singular"):
            call()
    assert platform.condition(X) > platform.condition_max
    assert platform.singularity_distance(X, exact=True) < 0.02


def test_condition_grows_all_the_way_to_the_singularity():
    platform = STANDS["msfc_6dof"]
    angles = [0, 30, 60, 80, 85, 89, 89.9, 89.99]
    poses = [np.concatenate([[2.83, 0, 0], arrays.quat_from_yaw_pitch_roll(0, 0, math.radians(a))]) for a in angles]
    conditions = [platform.condition(X) for X in poses]
    assert conditions == sorted(conditions)
    assert platform.condition(poses[-1]) > 1e4


# -- limits


def test_limits(platform):
    neutral = platform.leg_lengths(platform.neutral_pose)
    zero = np.zeros(6)
    assert platform.check_legs(neutral, zero, zero) == 0
    for i in range(6):
        one = np.eye(6)[i]
        assert platform.check_legs(neutral + 10 * one, zero, zero) == OUT_OF_REACH
        assert platform.check_legs(neutral - 2 * one, zero, zero) == OUT_OF_REACH
        assert platform.check_legs(neutral, 1.01 * platform.leg_rate_max * one, zero) == RATE
        assert platform.check_legs(neutral, -1.01 * platform.leg_rate_max * one, zero) == RATE
        assert platform.check_legs(neutral, zero, -1.01 * platform.leg_acceleration_max * one) == ACCELERATION
    assert platform.stroke_margin(np.full(6, platform.leg_length_max - 0.01)) == pytest.approx(0.01)
    assert platform.stroke_margin(np.full(6, platform.leg_length_min - 0.02)) == pytest.approx(-0.02)
    status, *_ = platform.place_legs(displaced(platform, [5.0, 0, 0], zero[:3]), zero)
    assert status & OUT_OF_REACH


# -- mounting from a table


def test_table_and_back(platform):
    again = Platform.from_dict(platform.to_dict(), platform.name)
    copy = pickle.loads(pickle.dumps(platform))
    X = displaced(platform, [0.1, 0.2, 0.3], [0.1, 0.1, 0.1])
    assert np.array_equal(again.leg_lengths(X), platform.leg_lengths(X)) and np.array_equal(copy.leg_lengths(X), platform.leg_lengths(X))
    assert copy.name == platform.name


def test_neutral_angles_are_yaw_pitch_roll():
    rotated = Platform.from_dict(table("docking_stand") | {"neutral_yaw_deg": 5.0, "neutral_pitch_deg": -4.0, "neutral_roll_deg": 3.0})
    R = Rotation.from_euler("YZX", [5.0, -4.0, 3.0], degrees=True)
    assert np.allclose(arrays.quat_to_matrix(rotated.neutral_pose[3:]), R.as_matrix(), rtol=0, atol=1e-15)


def test_what_a_range_cannot_see():
    good = table("docking_stand")
    for change, words in (
        ({"leg_length_max_m": 3.0}, r"leg_length_max_m: 3 m is not above leg_length_min_m = 3 m"),
        ({"neutral_position_m": [2.0, 0.0, 0.0]}, r"neutral_position_m: leg 0 is 2\.\d+ m long in the neutral pose, outside 3 \.\.\. 5 m"),
        ({"neutral_roll_deg": 90.0, "leg_length_max_m": 9.0}, r"condition_max: the condition in the neutral pose is .* above 60"),
        ({"platform_joints_m": [[0.0, 0.0, 0.0]] * 6, "leg_length_max_m": 9.0}, r"platform_joints_m: rms distance"),
        ({"leg_lenght_min_m": 3.0}, r"leg_lenght_min_m: unknown key"),
        ({"base_joints_m": good["base_joints_m"][:5]}, r"base_joints_m: must be 6 rows of 3 numbers within -100 ... 100 m"),
    ):
        with pytest.raises(ValueError, match=words):
            Platform.from_dict(good | change)


def test_architecturally_singular_platform_is_refused():
    """Similar base and platform hexagons: singular in every pose (Ma and Angeles 1991)."""
    bad = table("docking_stand")
    bad["platform_joints_m"] = (0.6 * np.array(bad["base_joints_m"])).tolist()
    with pytest.raises(ValueError, match="condition_max: the condition in the neutral pose is"):
        Platform.from_dict(bad | {"leg_length_min_m": 1.0})


def test_wrong_shapes_are_named(platform):
    with pytest.raises(ValueError, match="X_WP: 7 numbers are needed, 6 are given"):
        platform.leg_lengths(np.zeros(6))
    with pytest.raises(ValueError, match="steps: -1 is below 0"):
        platform.forward(np.zeros(6), steps=-1)
    with pytest.raises(ValueError, match="needed"):
        forward_batch(platform, np.zeros((2, 6)), np.zeros((3, 7)))


def test_batches_are_the_single_calls(platform):
    rng = np.random.default_rng(8)
    X = workspace_poses(platform, rng, 20)
    V = 0.1 * rng.normal(size=(20, 6))
    lengths, rates = inverse_batch(platform, X, V)
    status, placed, margin, condition = place_batch(platform, X)
    twists = twist_batch(platform, X, rates)
    seeds = np.array([moved(x, v, np.zeros(6), -1e-3) for x, v in zip(X, V, strict=True)])
    J = np.array([platform.inverse_jacobian(x) for x in seeds])
    chords = chord_batch(platform, lengths, J, seeds)
    found_status, found = forward_batch(platform, lengths, seeds, 3)
    for i in range(20):
        assert np.array_equal(lengths[i], platform.leg_rates(X[i], V[i])[0]) and np.array_equal(rates[i], platform.leg_rates(X[i], V[i])[1])
        one = platform.place_legs(X[i], np.zeros(6))
        assert (status[i], margin[i], condition[i]) == (one[0], one[3], one[4]) and np.array_equal(placed[i], one[1])
        assert np.array_equal(twists[i], platform.twist(X[i], rates[i]))
        assert np.array_equal(chords[i], platform.forward_chord(lengths[i], J[i], seeds[i])[0])
        assert found_status[i] == 0 and np.array_equal(found[i], platform.forward(lengths[i], seeds[i]))
    for call in (
        lambda: place_batch(platform, X[:, :6]),
        lambda: twist_batch(platform, X, V[:3]),
        lambda: chord_batch(platform, lengths, J[:2], X),
    ):
        with pytest.raises(ValueError, match="are needed"):
            call()
