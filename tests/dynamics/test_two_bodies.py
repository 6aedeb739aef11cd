"""Two free spacecraft: conservation, closed forms, the joined body."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles
from rt_kernels.dynamics.two_bodies import TwoBodies
from rt_kernels.layout import CODES
from tests.first_sample import closed

MOTION = CODES["motion"]
PERIOD = 1e-3


def vehicle(mass, moments, port, tilt=(10.0, -20.0, 30.0)):
    R = Rotation.from_euler("xyz", tilt, degrees=True).as_matrix()
    return Vehicle(mass, (R @ np.diag(moments) @ R.T).tolist(), [*port, 0.0, 0.0, 0.0, 1.0])


VEHICLES = Vehicles(
    active=vehicle(7000.0, (4200.0, 30000.0, 31000.0), (3.6, 0.2, -0.1)),
    target=vehicle(20000.0, (42000.0, 260000.0, 250000.0), (-6.2, 0.1, 0.0)),
)


def make(vehicles=VEHICLES, orbital_rate=(0.0, 0.0, 0.0)):
    start = Start(IDENTITY, np.zeros(6), orbital_rate)
    return TwoBodies(period_s=PERIOD, vehicles=vehicles, start=start, range_max_m=1e3)


def begin(part, X_TA, V_TA):
    return closed(part, X_TA, V_TA)[0]


TILTED = [-0.5, 0.05, -0.03, *Rotation.from_euler("xyz", [2, -3, 4], degrees=True).as_quat()]


def test_closing_the_loop_starts_from_the_achieved_pose_and_twist():
    V = [0.1, 0.01, -0.02, 0.001, -0.002, 0.003]
    sample = begin(make(), TILTED, V)
    np.testing.assert_array_equal(sample["X_TA"][0], TILTED)
    part = make()
    sample = begin(part, TILTED, V)
    part.step(sample)
    # one free tick later the relative state has moved by the twist, and the twist is the same to first order
    np.testing.assert_allclose(sample["V_TA"][0], V, atol=2e-6)
    np.testing.assert_allclose(sample["X_TA"][0][:3], np.add(TILTED[:3], PERIOD * np.array(V[:3])), atol=1e-8)


@pytest.mark.parametrize("orbital_rate", [(0.0, 0.0, 0.0), (0.0, 1.1e-3, 0.0)])
def test_momentum_is_kept_over_a_million_ticks_without_contact(orbital_rate):
    part = make(orbital_rate=orbital_rate)
    sample = begin(part, TILTED, [0.1, 0.01, -0.02, 0.01, -0.02, 0.03])
    part.step(sample)
    before = sample["momentum"][0].copy()
    part.repeat(sample, 1_000_000)
    after = sample["momentum"][0]
    for part_of in (slice(0, 3), slice(3, 6)):
        assert np.linalg.norm(after[part_of] - before[part_of]) <= 1e-12 * np.linalg.norm(before[part_of])
    assert np.isfinite(sample["kinetic_energy"][0])


def test_momentum_is_kept_under_an_internal_wrench():
    part = make()
    sample = begin(part, TILTED, [0.1, 0.01, -0.02, 0.01, -0.02, 0.03])
    part.step(sample)
    before = sample["momentum"][0].copy()
    rng = np.random.default_rng(3)
    scale = np.zeros(6)
    for _ in range(2000):
        sample["F_T_corrected"] = rng.normal(scale=[900, 300, 300, 100, 100, 100])
        part.step(sample)
        scale = np.maximum(scale, np.abs(sample["momentum"][0]))
    assert np.linalg.norm(sample["momentum"][0][:3] - before[:3]) <= 1e-12 * 7000 * 10
    np.testing.assert_allclose(sample["momentum"][0][3:], before[3:], atol=1e-12 * 1e6)


def test_free_symmetric_top_precesses_as_the_closed_form():
    """Torque-free axisymmetric body: the body axis turns about L at L / I_t."""
    It, Ia = 3000.0, 1000.0
    part = make(Vehicles(active=Vehicle(100.0, np.diag([Ia, It, It])), target=Vehicle(1e8, np.diag([1e12] * 3))))
    w0 = np.array([0.4, 0.3, 0.0])
    sample = begin(part, [0, 0, 0, 0, 0, 0, 1.0], [0, 0, 0, *w0])
    seconds = 20.0
    part.repeat(sample, int(seconds / PERIOD))
    L = np.array([Ia * w0[0], It * w0[1], 0.0])
    turn = np.linalg.norm(L) / It * seconds
    axis = Rotation.from_rotvec(turn * L / np.linalg.norm(L)).apply([1.0, 0.0, 0.0])
    got = Rotation.from_quat(sample["X_NC"][0][3:]).apply([1.0, 0.0, 0.0])
    np.testing.assert_allclose(got, axis, atol=1e-6)


def test_constant_force_moves_the_reduced_mass():
    """Central push: relative acceleration f / m1 + f / m2, to rounding."""
    part = make(Vehicles(replace(VEHICLES.active, X_port=IDENTITY), replace(VEHICLES.target, X_port=IDENTITY)))
    sample = begin(part, [0, 0, 0, 0, 0, 0, 1.0], [0.0] * 6)
    sample["F_T_corrected"] = [100.0, 0, 0, 0, 0, 0]
    part.repeat(sample, 1000)
    a = -100.0 / 7000.0 - 100.0 / 20000.0
    np.testing.assert_allclose(sample["A_TA"][0][0], a, rtol=1e-10)
    np.testing.assert_allclose(sample["V_TA"][0][0], a * 1.0, rtol=1e-12)
    # symplectic Euler: x = a h^2 n (n + 1) / 2
    np.testing.assert_allclose(sample["X_TA"][0][0], a * PERIOD**2 * 1000 * 1001 / 2, rtol=1e-10)


def test_skipped_periods_are_integrated():
    one, other = make(), make()
    V = [0.1, 0.0, 0.0, 0.0, 0.0, 0.0]
    a, b = begin(one, TILTED, V), begin(other, TILTED, V)
    for s in (a, b):
        s["F_T_corrected"] = [50.0, 5.0, 0, 1.0, 0, 0]
    b["periods"] = 5
    other.step(b)
    one.repeat(a, 5)
    np.testing.assert_array_equal(a["X_NC"], b["X_NC"])


def test_joining_keeps_momentum_and_the_relative_pose():
    part = make()
    sample = begin(part, TILTED, [0.1, 0.01, -0.02, 0.01, -0.02, 0.03])
    part.step(sample)
    before, energy = sample["momentum"][0].copy(), float(sample["kinetic_energy"][0])
    sample["motion"] = MOTION["joined"]
    X = sample["X_TA"][0].copy()
    part.repeat(sample, 5000)
    assert sample["dynamics_status"][0] & 4
    np.testing.assert_allclose(sample["momentum"][0][:3], before[:3], rtol=1e-12)
    np.testing.assert_allclose(sample["momentum"][0][3:], before[3:], rtol=1e-9)
    np.testing.assert_allclose(sample["X_TA"][0], X, atol=1e-13)
    assert np.all(sample["V_TA"] == 0) and sample["kinetic_energy"][0] < energy


def test_divergence_is_reported():
    part = make()
    sample = begin(part, TILTED, [0.1] * 6)
    sample["F_T_corrected"] = [np.nan, 0, 0, 0, 0, 0]
    part.step(sample)
    assert sample["dynamics_status"][0] & 1


@pytest.mark.parametrize("mass, inertia", [(0.0, np.eye(3)), (10.0, -np.eye(3)), (10.0, np.array([[1, 2, 0], [0, 1, 0], [0, 0, 1.0]]))])
def test_impossible_bodies_are_refused(mass, inertia):
    with pytest.raises(ValueError, match="active vehicle"):
        make(Vehicles(Vehicle(mass, inertia.tolist()), VEHICLES.target))
