"""Flexible segments of an arm: where they are and their compliance (c0, c1, c2, c3, c4). Set-up only.

The equations of a segment, and their effect at the end effector, are in `rt_kernels.dynamics.manipulator.compliance`. Each
function returns (body, tip (3,) m, unit vector along the segment (3,), compliance (5,)), on the axes of the body.
"""

from __future__ import annotations

import numpy as np


def _positive(value, what, unit, optional=False):
    if optional and value is None:
        return None
    if isinstance(value, bool) or not np.isfinite(value) or not value > 0.0:
        raise ValueError(f"{what}: {value} {unit} is not a finite number > 0")
    return float(value)


def beam(body, start, end, EI, GJ, EA=None):
    """Uniform beam fixed to a body of the tree, from `start` to `end` [m, body frame]; EI, GJ [N.m2], EA [N] or None (rigid along x)."""
    start, axis, length = _along(body, start, end)
    EI, GJ, EA = _positive(EI, f"{body}: EI", "N.m2"), _positive(GJ, f"{body}: GJ", "N.m2"), _positive(EA, f"{body}: EA", "N", True)
    c = (length / EA if EA else 0.0, length**3 / (3 * EI), length**2 / (2 * EI), length / GJ, length / EI)
    return body, start + length * axis, axis, c


def lumped(body, start, end, k_b, k_t, axis=None):
    """Angular spring at `start` with a rigid length to `end` [m, body frame]; k_b about the two cross axes, k_t about x [N.m/rad].

    `axis`: direction of x in the body, needed when the length is zero.
    """
    start, along, length = _along(body, start, end, axis)
    k_b, k_t = _positive(k_b, f"{body}: k_b", "N.m/rad"), _positive(k_t, f"{body}: k_t", "N.m/rad")
    return body, start + length * along, along, (0.0, length**2 / k_b, length / k_b, 1.0 / k_t, 1.0 / k_b)


def hinge(body, point, axis, k):
    """Locked joint of stiffness k [N.m/rad] about `axis` through `point` [m, body frame]."""
    point, axis, _ = _along(body, point, point, axis)
    return body, point, axis, (0.0, 0.0, 0.0, 1.0 / _positive(k, f"{body}: k", "N.m/rad"), 0.0)


def _along(body, start, end, axis=None):
    start, end = np.array(start, dtype=float), np.array(end, dtype=float)
    if start.shape != (3,) or end.shape != (3,) or not np.all(np.isfinite([start, end])):
        raise ValueError(f"{body}: segment from {start.tolist()} to {end.tolist()}, two points of three finite metres are needed")
    length = float(np.linalg.norm(end - start))
    direction = end - start if axis is None else np.array(axis, dtype=float)
    size = float(np.linalg.norm(direction))
    if direction.shape != (3,) or not np.isfinite(size) or size == 0.0:
        raise ValueError(f"{body}: segment of {length} m has no direction; give an axis of three finite numbers, not zero")
    direction = direction / size
    if length > 0.0 and np.linalg.norm(np.cross(direction, end - start)) > 1e-9 * length:
        raise ValueError(f"{body}: axis {direction.tolist()} is not along the segment")
    return start, direction, length
