"""Poses X_AB as (7,) [x, y, z, qx, qy, qz, qw] for the pictures of viewers: product, inverse, a frame along a direction."""

import numpy as np
from numpy.typing import ArrayLike

from rt_kernels.algebra.arrays import pose_inverse, pose_multiply
from rt_kernels.pictures import along

Pose = np.ndarray
IDENTITY: Pose = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def pose(position: ArrayLike, quaternion: ArrayLike = (0.0, 0.0, 0.0, 1.0)) -> Pose:
    """(7,) from position and quaternion."""
    return np.concatenate((np.asarray(position, float), np.asarray(quaternion, float)))


def product(X_AB: ArrayLike, X_BC: ArrayLike) -> Pose:
    """X_AC = X_AB X_BC."""
    found: Pose = pose_multiply(np.asarray(X_AB, float), np.asarray(X_BC, float))
    return found


def inverse(X_AB: ArrayLike) -> Pose:
    """X_BA."""
    found: Pose = pose_inverse(np.asarray(X_AB, float))
    return found


def pointing(start: ArrayLike, end: ArrayLike) -> Pose:
    """A frame at `start` whose X points to `end` by the shortest turn."""
    foot = np.asarray(start, float)
    return pose(foot, along(np.asarray(end, float) - foot))
