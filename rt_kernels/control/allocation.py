"""Which thrusters give a wrench, and what the kernels need to know of a craft's actuators. Set-up only.

The table of a craft is made once: for a unit wrench along one axis, the share x of its full thrust with which each thruster takes part.

    B x = e,  x >= 0          B (6, n): wrench of each thruster at full thrust

Of all such x it is one of least propellant, sum of the thrusts; of those the most even one, least |x|^2, so thrusters that do the same
thing do it together. A moment that no thrusters give without a force is given with as little force as can be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, nnls

from rt_kernels.model.craft import Craft, at_rest, node_pose

AXES = ("+X", "-X", "+Y", "-Y", "+Z", "-Z")
_SMALL = 1e-9
_PENALTY = 1e-5  # of the shares against the wrench
_BESIDE = 1e4  # of a force beside a moment against propellant


@dataclass(frozen=True)
class Actuators:
    """What is on a craft, at and in its centre of mass C, joints at rest, nothing bent.

    wrench (n, 6) N, N.m: of each thruster at full thrust; thrust (n,) N. axis (m, 3): of each wheel; wheel_inertia (m,) kg.m2 about it.
    """

    wrench: np.ndarray
    thrust: np.ndarray
    axis: np.ndarray
    wheel_inertia: np.ndarray


def actuators(craft: Craft | None) -> Actuators:
    """Thrusters and wheels of a craft in the axes of its root body; none without a craft."""
    if craft is None:
        return Actuators(np.zeros((0, 6)), np.zeros(0), np.zeros((0, 3)), np.zeros(0))
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
    thrust = np.array([thruster.thrust_n for thruster in craft.thrusters])
    return Actuators(np.array(wrenches).reshape(-1, 6), thrust, np.array(axes).reshape(-1, 3), np.array(inertias))


def shares(wrench: np.ndarray, thrust: np.ndarray, axis: int) -> np.ndarray | None:
    """Shares (n,) for one unit, N or N.m, along `axis` 0...5 = +X -X +Y -Y +Z -Z of the force, 6...11 of the moment; None: not possible.

    wrench: (n, 6) of the thrusters at full thrust; thrust: (n,) N."""
    n = len(thrust)
    if n == 0:
        return None
    e = np.zeros(6)
    e[axis // 2] = 1.0 if axis % 2 == 0 else -1.0
    # in units of the largest force and moment
    largest = np.repeat(np.maximum(np.abs(wrench).reshape(n, 2, 3).max(axis=(0, 2)), _SMALL), 3)
    B, e = wrench.T / largest[:, None], e / largest
    size = float(np.abs(e).max())
    e /= size
    # least propellant; a force beside a moment counts more than any propellant
    beside = _BESIDE if axis >= 6 else 0.0
    slack = np.vstack([np.eye(3), np.zeros((3, 3))]) if beside else np.zeros((6, 3))
    cost = np.concatenate([thrust / thrust.max(), np.full(6, beside)])
    found = linprog(cost, A_eq=np.hstack([B, slack, -slack]), b_eq=e, bounds=(0.0, None))
    if not found.success:
        return None
    x = found.x[:n]
    x = _even(np.vstack([B, cost[:n]]), np.concatenate([B @ x, [cost[:n] @ x]]), x)
    return np.asarray(size * x)


def _even(A: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """min |x|^2, A x = b, x >= 0: the most even of all solutions. x: one of them."""
    weight = max(float(x.max()), _SMALL)
    A = weight * A
    # who takes part, by a penalty; with what share, by least squares
    found, _ = nnls(np.vstack([A, _PENALTY * np.eye(len(x))]), np.concatenate([b, np.zeros(len(x))]), maxiter=100 * len(x))
    used = found > 1e-6
    even = np.zeros(len(x))
    even[used] = np.linalg.lstsq(A[:, used], b, rcond=None)[0]
    sound = even.min() > -_SMALL and np.abs(A @ even - b).max() < _SMALL
    return np.asarray(weight * np.maximum(even, 0.0) if sound else x)


def table(where: str, wrench: np.ndarray, thrust: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """`shares` of some axes, (len(axes), n). Raises ValueError that names what the thrusters cannot give."""
    found = [shares(wrench, thrust, axis) for axis in axes]
    missing = [f"{'force' if axis < 6 else 'moment'} {AXES[axis % 6]}" for axis, x in zip(axes, found, strict=True) if x is None]
    if missing:
        raise ValueError(f"{where}: its {len(wrench)} thrusters cannot give {', '.join(missing)}")
    return np.array(found)
