"""Our `sincos` and `atan2` against mpmath: at most one unit in the last place, over the range that is used.

`POINTS` scales the random families; the shipped count keeps the run short, `python tests/algebra/test_sincos.py 200000` runs more.
"""

import math
import sys

import mpmath
import numpy as np
import pytest

from rt_kernels.algebra import arrays

POINTS = 4000
mpmath.mp.prec = 160


def ulps(computed: float, exact: mpmath.mpf) -> float:
    """Distance in units of the last place of the exact value."""
    if math.isnan(computed):
        return math.inf
    return float(abs(mpmath.mpf(computed) - exact) / math.ulp(float(exact)))


def worst_sincos(x: np.ndarray) -> float:
    s, c = arrays.sincos(x)
    worst = 0.0
    for angle, sine, cosine in zip(x.tolist(), s.tolist(), c.tolist(), strict=True):
        exact = mpmath.mpf(angle)
        worst = max(worst, ulps(sine, mpmath.sin(exact)), ulps(cosine, mpmath.cos(exact)))
    return worst


def worst_atan2(y: np.ndarray, x: np.ndarray) -> float:
    angles = arrays.atan2(y, x)
    pairs = zip(y.tolist(), x.tolist(), angles.tolist(), strict=True)
    return max(ulps(angle, mpmath.atan2(mpmath.mpf(b), mpmath.mpf(a))) for b, a, angle in pairs)


def near_quarter_turns(count: int, rng: np.random.Generator) -> np.ndarray:
    """Doubles next to multiples of pi/2 up to 1e5, where the reduced argument is small."""
    k = rng.integers(-63661, 63661, count)
    nearest = np.array([float(int(i) * mpmath.pi / 2) for i in k])
    steps = rng.integers(-3, 4, count)
    return nearest + steps * np.spacing(nearest)


def sincos_families(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "dense over three turns": np.linspace(-10.0, 10.0, count),
        "random to 1e5": rng.uniform(-1e5, 1e5, count),
        "random exponent": rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-300, 5, count),
        "next to quarter turns": near_quarter_turns(count, rng),
        "next to eighth turns": (rng.integers(-60000, 60000, count) + 0.5) * (math.pi / 2) * (1 + rng.uniform(-1e-9, 1e-9, count)),
        "ends": np.array([0.0, 1e5, -1e5, math.pi / 4, -math.pi / 4, 5e-324, 2.3e-308, 1e-8]),
    }


def atan2_families(count: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(2)
    turn = rng.uniform(-math.pi, math.pi, count)
    radius = 10.0 ** rng.uniform(-3, 3, count)
    exponents = 10.0 ** rng.uniform(-300, 300, (2, count))
    signs = rng.choice([-1.0, 1.0], (2, count))
    # next to the borders of the table, ratios (2 j + 1) / 16, and next to its points, ratios j / 8
    border = (rng.integers(1, 17, count) / 16.0) * (1 + rng.uniform(-1e-12, 1e-12, count))
    scale = 10.0 ** rng.uniform(-5, 5, count)
    steep = rng.random(count) < 0.5
    return {
        "all round": (radius * np.sin(turn), radius * np.cos(turn)),
        "any magnitudes": (exponents[0] * signs[0], exponents[1] * signs[1]),
        "similar magnitudes, any scale": (exponents[0] * signs[0] * rng.uniform(0.001, 1.0, count), exponents[0] * signs[1]),
        "table borders": (
            np.where(steep, scale, border * scale) * signs[0],
            np.where(steep, border * scale, scale) * signs[1],
        ),
        "subnormal": (signs[0] * 5e-324 * rng.integers(1, 2**40, count), signs[1] * 5e-324 * rng.integers(1, 2**40, count)),
        "tiny ratio": (signs[0] * 10.0 ** rng.uniform(-323, -290, count), signs[1] * 10.0 ** rng.uniform(-10, 10, count)),
        "next to the diagonal": (signs[0] * scale, signs[1] * scale * (1 + rng.integers(-4, 5, count) * 2.0**-52)),
        "small ratio": (signs[0] * scale * 2.0 ** rng.uniform(-70, -20, count), signs[1] * scale),
    }


@pytest.mark.parametrize("family", sincos_families(2))
def test_sincos_within_one_ulp(family):
    assert worst_sincos(sincos_families(POINTS)[family]) <= 1.0


@pytest.mark.parametrize("family", atan2_families(2))
def test_atan2_within_one_ulp(family):
    assert worst_atan2(*atan2_families(POINTS)[family]) <= 1.0


def test_atan2_on_axes_and_with_signed_zeros_and_infinities():
    """The special cases of IEEE 754-2019 (9.2.1), as the C library has them; bit for bit with the sign of zero."""
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 3e-310, -3e-310, 1.7e308, -1.7e308]
    for y in special:
        for x in special:
            ours, library = arrays.atan2([y], [x])[0], math.atan2(y, x)
            assert abs(ours - library) <= math.ulp(library), (y, x)
            assert math.copysign(1.0, ours) == math.copysign(1.0, library), (y, x)


@pytest.mark.parametrize(("y", "x"), [(math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan), (math.nan, 0.0), (math.inf, math.nan)])
def test_atan2_of_nan_is_nan(y, x):
    assert math.isnan(arrays.atan2([y], [x])[0])


def test_identities():
    x = np.random.default_rng(3).uniform(-1e5, 1e5, 100_000)
    s, c = arrays.sincos(x)
    assert np.abs(s * s + c * c - 1.0).max() <= 4e-16
    odd, even = arrays.sincos(-x)
    assert np.array_equal(odd, -s) and np.array_equal(even, c)
    turn = np.linspace(-3.14, 3.14, 100_001)
    assert np.abs(arrays.atan2(*arrays.sincos(turn)) - turn).max() <= 9e-16


def test_nan_and_infinity_stay_visible():
    s, c = arrays.sincos([math.nan, math.inf, -math.inf])
    assert np.isnan(s).all() and np.isnan(c).all()


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for name, points in sincos_families(count).items():
        print(f"sincos {name}: {worst_sincos(points):.4f} ulp")
    for name, (ys, xs) in atan2_families(count).items():
        print(f"atan2 {name}: {worst_atan2(ys, xs):.4f} ulp")
