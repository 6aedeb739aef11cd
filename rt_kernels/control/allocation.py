"""Which thrusters give a wrench, and what the kernels need to know of a craft's actuators. Set-up only.

The table of a craft is made once: for a unit wrench along one axis, the share 0... of its full thrust with which each thruster takes part.
Of all shares >= 0 that give the wrench it is the one of least squares, so thrusters that do the same thing do it together:

    min |x|^2   B x = e,  x >= 0          B (6, n): wrench of each thruster at full thrust

A moment that no thrusters give without a force is given with as little force as can be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from rt_kernels.model.craft import Craft, at_rest, node_pose

AXES = ("+X", "-X", "+Y", "-Y", "+Z", "-Z")
_SMALL = 1e-9
_PENALTY = 1e-5  # of the shares against the wrench: finds who takes part, the shares themselves are then exact
_FORCE = 1e4  # of a force beside a moment against the shares


@dataclass(frozen=True)
class Actuators:
    """What is on a craft, at and in its centre of mass C, joints at rest, nothing bent.

    wrench (n, 6) N, N.m: of each thruster at full thrust. axis (m, 3): of each wheel; wheel_inertia (m,) kg.m2 about it.
    """

    wrench: np.ndarray
    axis: np.ndarray
    wheel_inertia: np.ndarray


def actuators(craft: Craft | None) -> Actuators:
    """Thrusters and wheels of a craft in the axes of its root body; none without a craft."""
    if craft is None:
        return Actuators(np.zeros((0, 6)), np.zeros((0, 3)), np.zeros(0))
    rest = at_rest(craft)
    links = {link.name: link for link in craft.links}
    wrenches = []
    for thruster in craft.thrusters:
        R, p = node_pose(links[thruster.body], rest.poses[thruster.body], thruster.node)
        force = thruster.thrust_n * (R @ thruster.direction)
        wrenches.append(np.concatenate([force, np.cross(p + R @ thruster.position - rest.centre, force)]))
    joints = {link.joint_name: link for link in craft.links}
    axes, inertias = [], []
    for wheel in craft.wheels:
        link = joints[wheel.joint]
        second, a = link.body.second_moment, link.axis
        axes.append(rest.poses[link.name][0] @ a)
        inertias.append(float(np.trace(second) - a @ second @ a) + link.armature)
    return Actuators(np.array(wrenches).reshape(-1, 6), np.array(axes).reshape(-1, 3), np.array(inertias))


def shares(wrench: np.ndarray, axis: int) -> np.ndarray | None:
    """Shares (n,) for one unit, N or N.m, along `axis` 0...5 = +X -X +Y -Y +Z -Z of the force, 6...11 of the moment; None: not possible.

    wrench: (n, 6) of the thrusters at full thrust."""
    B = wrench.T
    e = np.zeros(6)
    e[axis // 2] = 1.0 if axis % 2 == 0 else -1.0
    scale = np.abs(B).max(axis=1)
    alone = _least(B, e, np.eye(B.shape[1]), scale)
    if alone is not None or axis < 6:
        return alone
    force = B[:3] / max(float(scale[:3].max()), _SMALL)
    return _least(B[3:], e[3:], np.eye(B.shape[1]) + _FORCE * force.T @ force, scale[3:])


def _least(B: np.ndarray, e: np.ndarray, Q: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
    """min x^T Q x, B x = e, x >= 0; None where there is no such x. scale: largest of each row of B."""
    n = B.shape[1]
    if n == 0 or np.any((scale <= _SMALL) & (e != 0.0)):
        return None
    acts = scale > _SMALL
    A, b = B[acts] / scale[acts, None], e[acts] / scale[acts]
    size = float(np.abs(b).max())
    # who takes part
    x, _ = nnls(np.vstack([A, _PENALTY * np.linalg.cholesky(Q).T]), np.concatenate([b / size, np.zeros(n)]), maxiter=100 * n)
    used = x > _PENALTY
    # and with what share: the conditions of Lagrange for those
    k = int(used.sum())
    KKT = np.block([[Q[np.ix_(used, used)], A[:, used].T], [A[:, used], np.zeros((len(A), len(A)))]])
    found = np.zeros(n)
    found[used] = np.linalg.lstsq(KKT, np.concatenate([np.zeros(k), b / size]), rcond=None)[0][:k]
    if found.min() < -1e-6 or np.abs(A @ found - b / size).max() > 1e-6:
        return None
    return np.asarray(size * np.maximum(found, 0.0))


def table(where: str, wrench: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """`shares` of some axes, (len(axes), n). Raises ValueError that names what the thrusters cannot give."""
    found = [shares(wrench, axis) for axis in axes]
    missing = [f"{'force' if axis < 6 else 'moment'} {AXES[axis % 6]}" for axis, x in zip(axes, found, strict=True) if x is None]
    if missing:
        raise ValueError(f"{where}: its {len(wrench)} thrusters cannot give {', '.join(missing)}")
    return np.array(found)
