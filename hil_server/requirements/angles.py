"""Angles of poses, for people."""

import numpy as np


def yaw_pitch_roll(pose: np.ndarray) -> np.ndarray:
    """Angles for people from poses (n, 7): yaw about Y, pitch about Z, roll about X, in that order of rotation, rad, (n, 3).

    R = R_y(yaw) R_z(pitch) R_x(roll), so R[1,0] = sin(pitch), R[2,0]/R[0,0] = -tan(yaw), R[1,2]/R[1,1] = -tan(roll).
    """
    x, y, z, w = pose[:, 3:].T
    pitch = np.arcsin(np.clip(2.0 * (x * y + w * z), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * y - x * z), 1.0 - 2.0 * (y * y + z * z))
    roll = np.arctan2(2.0 * (w * x - y * z), 1.0 - 2.0 * (x * x + z * z))
    return np.column_stack([yaw, pitch, roll])


def tilt_of(pose: np.ndarray) -> np.ndarray:
    """Angle between the two X axes of poses (n, 7), rad, (n,): arccos of R[0,0]."""
    y, z = pose[:, 4], pose[:, 5]
    found: np.ndarray = np.arccos(np.clip(1.0 - 2.0 * (y * y + z * z), -1.0, 1.0))
    return found
