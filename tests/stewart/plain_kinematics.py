"""The stand's kinematics a second time, for tests: homogeneous matrices, SciPy rotations, one leg at a time, nothing of `rt_kernels`.

T_AB is the 4x4 matrix of frame B in A; a pose X_AB is position and quaternion xyzw. Twists by central differences.
"""

import tomllib
from importlib import resources

import numpy as np
from scipy.spatial.transform import Rotation

from rt_kernels.context import Mounting
from rt_kernels.stewart.platform import Platform

MOUNTINGS = [(unit, cell) for unit in ("target", "active") for cell in ("floor", "platform")]


def platform(**changes):
    """The docking stand's platform, with other limits."""
    table = tomllib.loads(resources.files("stand_configs").joinpath("stands/docking_stand.toml").read_text(encoding="utf-8"))["platform"]
    return Platform.from_dict(table | changes, "docking_stand")


def mounting(unit="target", cell="floor"):
    """Ports that stand askew to the platform: no angle or offset is zero, so that none can be left out or be taken twice."""
    return Mounting(unit, cell, pose(matrix([4.3, 0.05, -0.04], [0.02, 0.3, -0.2])), pose(matrix([0.31, -0.06, 0.03], [-0.1, 0.2, 0.15])))


def matrix(p, rotation_vector):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec(rotation_vector).as_matrix(), p
    return T


def matrix_of(X):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_quat(X[3:]).as_matrix(), X[:3]
    return T


def pose(T):
    return np.concatenate([T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_quat()])


def moved(T, d):
    """T after the small motion d = (translation, rotation vector), both in the axes that T is given in."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = Rotation.from_rotvec(d[3:]).as_matrix() @ T[:3, :3], T[:3, 3] + d[:3]
    return out


def difference(T_from, T_to):
    """d with moved(T_from, d) = T_to."""
    return np.concatenate([T_to[:3, 3] - T_from[:3, 3], Rotation.from_matrix(T_to[:3, :3] @ T_from[:3, :3].T).as_rotvec()])


def target_stands(m):
    """Whether the target unit is the one that is fixed to the stand."""
    return (m.unit_on_load_cell == "target") == (m.load_cell_on == "floor")


def relative(m, T_WP):
    """T_TA of the platform's pose."""
    T_FM = np.linalg.inv(matrix_of(m.X_WF)) @ T_WP @ matrix_of(m.X_PM)
    return T_FM if target_stands(m) else np.linalg.inv(T_FM)


def platform_of(m, T_TA):
    """The platform's pose of T_TA."""
    T_FM = T_TA if target_stands(m) else np.linalg.inv(T_TA)
    return matrix_of(m.X_WF) @ T_FM @ np.linalg.inv(matrix_of(m.X_PM))


def twist_through(relation, T, V, h=1e-5):
    """Twist of relation(T) when T moves with the twist V."""
    return difference(relation(moved(T, -h * V)), relation(moved(T, h * V))) / (2.0 * h)


def lengths(p, T_WP):
    joints = (T_WP @ np.column_stack([p.platform_joints, np.ones(6)]).T).T[:, :3]
    return np.linalg.norm(joints - p.base_joints, axis=1)


def rates(p, T_WP, V_WP, h=1e-5):
    return (lengths(p, moved(T_WP, h * V_WP)) - lengths(p, moved(T_WP, -h * V_WP))) / (2.0 * h)


def condition(p, T_WP):
    """Condition of the Jacobian in the Frobenius norm, rotations scaled by the rms distance of the platform's joints: 6 at best."""
    radius = np.sqrt(np.mean(np.sum(np.square(p.platform_joints), axis=1)))
    J = np.column_stack([rates(p, T_WP, V) for V in np.eye(6)]) / np.array([1.0, 1.0, 1.0] + 3 * [radius])
    return np.linalg.norm(J) * np.linalg.norm(np.linalg.inv(J))


def same_pose(X, T, atol=1e-9):
    np.testing.assert_allclose(matrix_of(np.asarray(X)), T, rtol=0, atol=atol)
    np.testing.assert_allclose(np.linalg.norm(X[3:]), 1.0, rtol=0, atol=1e-12)
