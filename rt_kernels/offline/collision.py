"""Collisions: what a blow of no duration does to the speeds of a system whose mass matrix is known.

A blow changes the speeds and leaves the coordinates where they are. Integrated over it, the equations X u_dot = Y leave the momenta
(Kane and Levinson 1985, 5.7, 5.8)

    X (u' - u) = G^T R,     w = G u,  w' = G u'

where the rows of G (k, n) give the relative velocity at the point of contact along its normal (first row, positive: parting) and along no,
one or two tangents, and R (k,) is the impulse along them: N = R[0] >= 0 and the tangential impulse T. Two rules make the equations whole:

    w'[0] = -e w[0]                     Newton's restitution e in [0, 1]
    T such that the tangents end at rest, when that takes |T| <= mu N; otherwise |T| = mu N against the motion that remains (Coulomb)

With e = 0 and mu = inf the two become one at the point. The rules look at the ends of the blow only: with e > 0, friction and a normal
coupled with the tangents they can add energy, which no blow does; `Collision.energy_lost` shows it. SI units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

Array = np.ndarray
_DIRECTIONS = 720


@dataclass(frozen=True)
class Collision:
    """u (n,): speeds after it; impulse (k,): normal, then tangents, N.s; slides: the tangents still move; energy_lost: J."""

    u: Array
    impulse: Array
    slides: bool
    energy_lost: float


def collide(X, u, G, restitution: float, friction: float = 0.0) -> Collision:
    """Speeds after a blow at one point.

    X (n, n) mass matrix and u (n,) speeds (of `KaneModel`, `Tree` or `FlexibleTree`), G (1 to 3, n) rows of the relative velocity: normal,
    tangents (perpendicular to each other). Raises ValueError naming the argument, the value and the limit.
    """
    X, u, G = (np.array(x, dtype=float) for x in (X, u, G))
    n = len(u) if u.ndim == 1 else 0
    if X.shape != (n, n) or n == 0:
        raise ValueError(f"X, u: shapes {X.shape} and {u.shape} given, (n, n) and (n,) expected")
    if G.ndim != 2 or G.shape[1] != n or not 1 <= len(G) <= 3:
        raise ValueError(f"G: shape {G.shape} given, (1 to 3, {n}) expected")
    for name, value in (("X", X), ("u", u), ("G", G)):
        if not np.all(np.isfinite(value)):
            raise ValueError(f"{name}: not finite")
    if not 0.0 <= restitution <= 1.0:
        raise ValueError(f"restitution: {restitution} is not in [0, 1]")
    if not friction >= 0.0:
        raise ValueError(f"friction: {friction} is not >= 0")
    w = G @ u
    if not w[0] < 0.0:
        raise ValueError(f"u: the bodies part at {w[0]:.6g} m/s; a blow needs an approach, a normal velocity < 0")
    reach = np.linalg.solve(X, G.T)
    A = G @ reach                                  # velocity at the contact for a unit of impulse
    if not A[0, 0] > 0.0:
        raise ValueError("G: nothing moves along the normal")
    # the tangents come to rest, if friction can hold them
    parting = -restitution * w[0]
    R = np.linalg.lstsq(A, np.append(parting, np.zeros(len(G) - 1)) - w, rcond=1e-12)[0]
    slides = len(G) > 1 and not (R[0] > 0.0 and np.linalg.norm(R[1:]) <= friction * R[0] * (1.0 + 1e-12))
    if slides:
        R = _sliding(A, w, parting, friction)
    after = u + reach @ R
    return Collision(after, R, slides, float(0.5 * (u @ X @ u - after @ X @ after)))


def _sliding(A: Array, w: Array, parting: float, friction: float) -> Array:
    """Impulse whose tangential part is friction times the normal one, against the tangential velocity that is left."""

    def blow(*d: float) -> tuple[Array, Array]:
        """Impulse when the motion that remains is along d, and the tangential velocity that then remains."""
        direction = np.append(1.0, -friction * np.array(d))
        R = direction * (parting - w[0]) / (A[0] @ direction)
        return R, (w + A @ R)[1:]

    def across(angle: float) -> float:
        """Zero where the velocity that remains lies along the assumed direction, or against it."""
        c, s = math.cos(angle), math.sin(angle)
        left = blow(c, s)[1]
        return float(c * left[1] - s * left[0])

    if friction == 0.0:
        return blow(*np.eye(len(w) - 1)[0])[0]
    if len(w) == 2:
        candidates: list[tuple[float, ...]] = [(1.0,), (-1.0,)]
    elif math.isfinite(friction):
        edges = np.linspace(0.0, 2.0 * math.pi, _DIRECTIONS + 1)
        values = [across(x) for x in edges]
        roots = [brentq(across, edges[k], edges[k + 1], xtol=1e-15) for k in range(_DIRECTIONS) if values[k] * values[k + 1] <= 0.0]
        candidates = [(math.cos(x), math.sin(x)) for x in roots]
    else:
        candidates = []
    for d in candidates:
        R, left = blow(*d)
        if R[0] > 0.0 and left @ d >= 0.0:
            return R
    raise ValueError(f"friction: neither rest nor sliding along the tangents agrees with {friction} here")
