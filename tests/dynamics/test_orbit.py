"""Gravity in a falling frame: the field against extended arithmetic, closed forms, and what the two craft do in it."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from rt_kernels.context import Orbit
from rt_kernels.dynamics.orbit import field, moment

MU = 3.986004418e14
EYE = np.eye(3)
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
    (dict(gravitational_parameter_m3_s2=-1.0), "gravitational_parameter_m3_s2"),
])  # fmt: skip
def test_an_impossible_orbit_is_refused(change, named):
    given = {"position_m": [7e6, 0, 0], "velocity_m_s": [0, 7.5e3, 0], "gravitational_parameter_m3_s2": MU} | change
    with pytest.raises(ValueError, match=named):
        field(Orbit(**given), np.zeros(3))
