"""Damping of a contact from its coefficient of restitution."""

import math
from collections.abc import Callable


def restitution(damping_ratio: float) -> float:
    """Speed after over speed before a blow on a spring and damper that push and never pull; `damping_ratio` = c/(2 sqrt(k m)) < 1.

    m x'' + c x' + k x = 0 from x = 0 to the moment without force, k x + c x' = 0:
    e = exp(-z/s (pi - atan2(2 z s, 1 - 2 z^2))) with z the ratio and s = sqrt(1 - z^2).
    """
    z, s = damping_ratio, math.sqrt(1.0 - damping_ratio**2)
    return math.exp(-z / s * (math.pi - math.atan2(2.0 * z * s, 1.0 - 2.0 * z * z)))


def restitution_one_way(damping_ratio: float) -> float:
    """As `restitution`, of a damper that acts in compression alone: exp(-z acos(z)/s), what the spring has stored at its deepest."""
    z = damping_ratio
    return math.exp(-z * math.acos(z) / math.sqrt(1.0 - z * z))


def damping(stiffness: float, mass: float, wanted: float, law: Callable[[float], float] = restitution) -> float:
    """Damper [N.s/m] with which a mass [kg] on a spring [N/m] has the `wanted` restitution by this law: above that of critical damping,
    0.135, of the one-way damper 0.368."""
    low, high = 0.0, 1.0 - 1e-9
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if law(middle) > wanted else (low, middle)
    return 2.0 * low * math.sqrt(stiffness * mass)
