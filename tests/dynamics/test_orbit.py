"""Gravity in a falling frame: the field against extended arithmetic, closed forms, and what the two craft do in it."""

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from hil_server import registry
from rt_kernels.algebra.arrays import quat_to_matrix
from rt_kernels.context import IDENTITY, Orbit, Start, Vehicle, Vehicles
from rt_kernels.dynamics.orbit import field, moment
from rt_kernels.dynamics.two_bodies import TwoBodies
from rt_kernels.layout import CODES
from tests.first_sample import closed

MOTION = CODES["motion"]
MU = 3.986004418e14
EYE = np.eye(3)
# every dynamics part that knows gravity flies the same orbit
PARTS = [part for part in (registry.part("dynamics", name) for name in registry.PARTS["dynamics"]) if "orbit" in part.CONTEXT]
RNG = np.random.default_rng(8)


def orbit(axes=EYE, radius_m=6.778e6):
    """Circular: radius along X, flight along Y of `axes`."""
    speed = np.sqrt(MU / radius_m)
    return Orbit(radius_m * axes[:, 0], speed * axes[:, 1], MU)


def gravity_difference(R, r):
    """g(R + r) - g(R) by subtraction, with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        R, r = ([Decimal(float(x)) for x in v] for v in (R, r))
        d = [a + b for a, b in zip(R, r, strict=True)]

        def g(v):
            rr = sum(x * x for x in v)
            return [-Decimal(MU) * x / (rr * rr.sqrt()) for x in v]

        return np.array([float(a - b) for a, b in zip(g(d), g(R), strict=True)])


@pytest.mark.parametrize("distance_m", [1e-3, 1.0, 30.0, 1e4, 3e6])
def test_the_field_is_the_difference_of_two_gravities_at_any_distance(distance_m):
    for _ in range(5):
        axes = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
        given, direction = orbit(axes), RNG.normal(size=3)
        place = distance_m * direction / np.linalg.norm(direction)
        a, _ = field(given, place)
        exact = gravity_difference(given.position_m, place)
        assert np.linalg.norm(a - exact) <= 2e-15 * np.linalg.norm(exact)


def test_the_gradient_is_the_derivative_of_the_field():
    given, place, step = orbit(np.linalg.qr(RNG.normal(size=(3, 3)))[0]), np.array([1e5, -2e5, 3e4]), 10.0
    _, G = field(given, place)
    across = [(field(given, place + step * e)[0] - field(given, place - step * e)[0]) / (2 * step) for e in EYE]
    np.testing.assert_allclose(G, np.transpose(across), rtol=0, atol=1e-8 * np.abs(G).max())
    assert abs(np.trace(G)) <= 1e-15 * np.abs(G).max()  # Laplace


def test_the_moment_of_the_gradient_is_that_of_its_points():
    """A cloud of points: sum of x x (m G x), about any point; and 3 mu/d^3 u x (I u) about the centre of mass."""
    given = orbit(np.linalg.qr(RNG.normal(size=(3, 3)))[0])
    _, G = field(given, np.zeros(3))
    points, masses = RNG.normal(size=(20, 3)), RNG.uniform(1.0, 5.0, 20)
    inertia = sum(m * (x @ x * EYE - np.outer(x, x)) for m, x in zip(masses, points, strict=True))
    expected = sum(m * np.cross(x, G @ x) for m, x in zip(masses, points, strict=True))
    np.testing.assert_allclose(moment(inertia, G), expected, rtol=0, atol=1e-14 * np.abs(expected).max())
    R = given.position_m
    u, d = R / np.linalg.norm(R), np.linalg.norm(R)
    np.testing.assert_allclose(moment(inertia, G), 3 * MU / d**3 * np.cross(u, inertia @ u), rtol=0, atol=1e-14 * np.abs(expected).max())


@pytest.mark.parametrize("change, named", [
    (dict(position_m=[1.0, 0, 0]), "position_m"),
    (dict(position_m=[np.nan, 0, 0]), "position_m"),
    (dict(velocity_m_s=[0, np.inf, 0]), "velocity_m_s"),
    (dict(gravitational_parameter_m3_per_s2=-1.0), "gravitational_parameter_m3_per_s2"),
])  # fmt: skip
def test_an_impossible_orbit_is_refused(change, named):
    given = {"position_m": [7e6, 0, 0], "velocity_m_s": [0, 7.5e3, 0], "gravitational_parameter_m3_per_s2": MU} | change
    with pytest.raises(ValueError, match=named):
        field(Orbit(**given), np.zeros(3))


# ------------------------------------------------------------------------------------------------------------------ two craft in it
def ball(mass_kg=7000.0):
    return Vehicle(mass_kg, 1e4 * EYE)


def fly(given, vehicles, offset, *, rate=None, period_s=1e-3, part=TwoBodies, V_TA=(0.0,) * 6):
    """A part and a sample at the closing of the loop: port A (C) at `offset` [m] from port T (V), turning with the orbit unless `rate`."""
    R, V = given.position_m, given.velocity_m_s
    turn = np.cross(R, V) / (R @ R) if rate is None else np.asarray(rate, float)
    start = Start(IDENTITY, np.zeros(6), turn)
    built = part(period_s=period_s, vehicles=vehicles, start=start, orbit=given, range_max_m=1e3)
    return built, closed(built, [*offset, 0.0, 0.0, 0.0, 1.0], V_TA)[0]


def inertial(given, offset, velocity, seconds):
    """Position and velocity of the second of two inertial orbits from the first after `seconds`, N axes: DOP853 on both, subtracted."""

    def fall(_, y):
        r = y.reshape(4, 3)
        return np.concatenate([r[1], -MU * r[0] / np.linalg.norm(r[0]) ** 3, r[3], -MU * r[2] / np.linalg.norm(r[2]) ** 3])

    first = np.concatenate([given.position_m, given.velocity_m_s])
    y0 = np.concatenate([first, first + np.concatenate([offset, velocity])])
    y = solve_ivp(fall, (0.0, seconds), y0, "DOP853", rtol=1e-13, atol=1e-9, max_step=2.0).y[:, -1].reshape(4, 3)
    return y[2] - y[0], y[3] - y[1]


@pytest.fixture(params=PARTS, ids=lambda part: part.__name__)
def part(request):
    return request.param


def test_the_parts_are_found():
    assert {"TwoBodies", "TwoBodiesFlexible"} <= {found.__name__ for found in PARTS}


def test_free_drift_30_m_above_is_that_of_two_inertial_orbits(part):
    """Both turn with the orbit: after 100 s the upper one has left by 0.57 m at 11 mm/s along the radius (3 n^2 x)."""
    given, offset = orbit(), np.array([30.0, 0.0, 0.0])
    rate = np.cross(given.position_m, given.velocity_m_s) / (given.position_m @ given.position_m)
    built, sample = fly(given, Vehicles(ball(), ball(20000.0)), offset, part=part)
    built.repeat(sample, 100_000)
    found = [sample["X_NC"][0][:3] - sample["X_NV"][0][:3], sample["V_NC"][0][:3] - sample["V_NV"][0][:3]]
    p, v = inertial(given, offset, np.cross(rate, offset), 100.0)
    # as the target, which turns with the orbit, sees it
    turn = Rotation.from_rotvec(-100.0 * rate)
    drift, speed = turn.apply(p) - offset, turn.apply(v - np.cross(rate, p))
    assert abs(drift[0] - 0.57) < 0.01 and abs(speed[0] - 11e-3) < 1e-3
    assert np.linalg.norm(found[0] - p) <= 1e-6 * np.linalg.norm(drift)
    assert np.linalg.norm(found[1] - v) <= 1e-6 * np.linalg.norm(speed)
    assert np.linalg.norm(sample["X_TA"][0][:3] - offset - drift) <= 1e-6 * np.linalg.norm(drift)
    assert np.linalg.norm(sample["V_TA"][0][:3] - speed) <= 1e-6 * np.linalg.norm(speed)
    # the target stays at the origin of N, which falls with it
    assert np.linalg.norm(sample["X_NV"][0][:3]) == 0.0


def test_free_drift_on_an_eccentric_orbit_any_way(part):
    axes = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    circular, offset = orbit(axes), np.array([12.0, -20.0, 9.0])
    given = Orbit(circular.position_m, 1.2 * circular.velocity_m_s + 900.0 * axes[:, 0], MU)
    built, sample = fly(given, Vehicles(ball(), ball()), offset, rate=np.zeros(3), part=part, V_TA=(0.01, -0.02, 0.005, 0.0, 0.0, 0.0))
    built.repeat(sample, 100_000)
    p, v = inertial(given, offset, [0.01, -0.02, 0.005], 100.0)
    straight = offset + 100.0 * np.array([0.01, -0.02, 0.005])
    assert np.linalg.norm(sample["X_TA"][0][:3] - p) <= 1e-6 * np.linalg.norm(p - straight)
    assert np.linalg.norm(sample["V_TA"][0][:3] - v) <= 1e-6 * np.linalg.norm(v - [0.01, -0.02, 0.005])


def test_without_an_orbit_nothing_falls():
    vehicles = Vehicles(ball(), ball())
    built = TwoBodies(period_s=1e-3, vehicles=vehicles, start=Start(IDENTITY, np.zeros(6)), range_max_m=1e3)
    _, sample = fly(orbit(), vehicles, [30.0, 0.0, 0.0], rate=np.zeros(3))
    sample["motion"] = MOTION["close_loop"]
    built.step(sample)
    sample["motion"] = MOTION["free"]
    built.repeat(sample, 1000)
    np.testing.assert_array_equal(sample["X_TA"][0][:3], [30.0, 0.0, 0.0])


def librations(built, sample, given, seconds, period_s, axis_of):
    """Times [s] at which the axis of a body crosses the radius."""
    every = round(1.0 / period_s)
    R, V = np.array(given.position_m), np.array(given.velocity_m_s)
    n = np.linalg.norm(V) / np.linalg.norm(R)
    times, angles = np.arange(1, seconds + 1), np.empty(seconds)
    for i, t in enumerate(times):
        built.repeat(sample, every)
        axis = axis_of(sample)
        radial, along = (np.cos(n * t), np.sin(n * t)), (-np.sin(n * t), np.cos(n * t))
        angles[i] = np.arctan2(axis[:2] @ along, axis[:2] @ radial)
    return CubicSpline(times, angles).roots(extrapolate=False)


def test_a_dumbbell_librates_with_the_period_of_the_closed_form(part):
    """Small pitch about the radius in a circular orbit: w^2 = 3 n^2 (I_along - I_axis)/I_normal."""
    given, moments, period_s = orbit(), np.array([1e3, 2.5e5, 2.5e5 + 1e3]), 1e-2
    n = np.sqrt(MU / np.linalg.norm(given.position_m) ** 3)
    swing = n * np.sqrt(3.0 * (moments[1] - moments[0]) / moments[2])
    # at the radius, at a rate for an amplitude of 1e-3 rad
    target = Vehicle(20000.0, np.diag(moments))
    built, sample = fly(given, Vehicles(ball(), target), [30.0, 0, 0], rate=[0.0, 0.0, n + 1e-3 * swing], period_s=period_s, part=part)
    crossings = librations(built, sample, given, 2900, period_s, lambda s: quat_to_matrix(s["X_NV"][0][3:])[:, 0])
    assert abs(crossings[0] - np.pi / swing) <= 1e-4 * np.pi / swing, (crossings, np.pi / swing)


def test_two_joined_craft_librate_as_one_dumbbell(part):
    """Two balls 30 m apart, joined at their ports: the arm is what the field turns. Their common centre is on a circular orbit."""
    centre, period_s, half = orbit(), 1e-2, 15.0
    n = np.sqrt(MU / np.linalg.norm(centre.position_m) ** 3)
    ported = [replace(ball(), X_port=[sign * half, 0, 0, 0, 0, 0, 1.0]) for sign in (-1.0, 1.0)]
    arm = 2 * 7000.0 * half**2
    swing = n * np.sqrt(3.0 * arm / (arm + 2e4))
    # N begins at the target, half an arm below, which the swing carries back
    below = centre.position_m - np.array([half, 0.0, 0.0])
    turn = np.array([0.0, 0.0, n + 1e-3 * swing])
    given = Orbit(below, centre.velocity_m_s - np.cross(turn, [half, 0.0, 0.0]), MU)
    built, sample = fly(given, Vehicles(*ported), [0.0, 0, 0], rate=turn, period_s=period_s, part=part)
    sample["motion"] = MOTION["joined"]
    crossings = librations(built, sample, centre, 2900, period_s, lambda s: s["X_NC"][0][:3] - s["X_NV"][0][:3])
    assert abs(crossings[0] - np.pi / swing) <= 1e-4 * np.pi / swing, (crossings, np.pi / swing)


def test_the_state_of_the_orbit_is_in_the_snapshot(part):
    vehicles = Vehicles(ball(), Vehicle(20000.0, np.diag([1e4, 2e5, 2.1e5])))
    built, sample = fly(orbit(), vehicles, [30.0, 5.0, 0], part=part)
    built.repeat(sample, 500)
    snapshot, before = built.snapshot(), sample.copy()
    built.repeat(sample, 500)
    other, again = fly(orbit(), vehicles, [30.0, 5.0, 0], part=part)
    other.restore(snapshot)
    again[:] = before
    other.repeat(again, 500)
    assert sample.tobytes() == again.tobytes()
