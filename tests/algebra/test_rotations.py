"""Quaternions, rotation matrices, poses and wrenches: scipy, closed forms and identities."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rt_kernels.algebra import arrays

NUMBER = st.floats(-3.0, 3.0, allow_subnormal=False)
VECTOR = st.tuples(NUMBER, NUMBER, NUMBER).map(np.array)
QUATERNION = st.tuples(NUMBER, NUMBER, NUMBER, NUMBER).map(np.array).filter(lambda q: np.linalg.norm(q) > 1e-3)
UNIT = QUATERNION.map(lambda q: q / np.linalg.norm(q))
POSE = st.tuples(VECTOR, UNIT).map(np.concatenate)
SIX = st.tuples(VECTOR, VECTOR).map(np.concatenate)
CASES = settings(max_examples=150, deadline=None)


def matrix(X: np.ndarray) -> np.ndarray:
    """4x4 homogeneous twin of a pose, by scipy."""
    T = np.eye(4)
    T[:3, :3] = Rotation.from_quat(X[3:]).as_matrix()
    T[:3, 3] = X[:3]
    return T


@CASES
@given(UNIT, UNIT, VECTOR)
def test_quaternion_product_and_rotation(a, b, v):
    product = arrays.quat_multiply(a, b)
    twin = Rotation.from_quat(a) * Rotation.from_quat(b)
    assert np.allclose(arrays.quat_to_matrix(product), twin.as_matrix(), rtol=0, atol=2e-15)
    assert np.allclose(arrays.quat_rotate(a, v), Rotation.from_quat(a).apply(v), rtol=0, atol=8e-15)
    assert np.allclose(arrays.quat_rotate_back(a, arrays.quat_rotate(a, v)), v, rtol=0, atol=8e-15)
    assert abs(np.linalg.norm(product) - 1.0) <= 1e-15


@CASES
@given(UNIT)
@example(np.array([0.99917014, 0.02351611, 0.02351611, 0.02351611]) / np.linalg.norm([0.99917014, 0.02351611, 0.02351611, 0.02351611]))
def test_matrix_and_quaternion_are_inverse(q):
    R = arrays.quat_to_matrix(q)
    assert np.allclose(R @ R.T, np.eye(3), rtol=0, atol=2e-15)
    # R R^T = I + E with |E| <= 2e-15: the determinant is off by half the trace of E at most, and what its computation rounds
    assert np.linalg.det(R) == pytest.approx(1.0, abs=3e-15 + 9 * np.finfo(float).eps)
    back = arrays.quat_from_matrix(R)
    assert min(np.abs(back - q).max(), np.abs(back + q).max()) <= 2e-15


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, -1), (1, -1, 1)])
def test_from_matrix_at_half_turns(axis):
    """Every branch of Shepperd's method: the scalar part is zero here."""
    axis = np.array(axis) / np.linalg.norm(axis)
    q = np.append(axis, 0.0)
    back = arrays.quat_from_matrix(arrays.quat_to_matrix(q))
    assert min(np.abs(back - q).max(), np.abs(back + q).max()) <= 2e-15


@CASES
@given(VECTOR)
def test_exponential_and_logarithm(phi):
    q = arrays.quat_exponential(phi)
    assert abs(np.linalg.norm(q) - 1.0) <= 4e-16
    assert np.allclose(q, Rotation.from_rotvec(phi).as_quat(canonical=False), rtol=0, atol=4e-16)
    back = arrays.quat_logarithm(q)
    if np.linalg.norm(phi) < math.pi - 1e-9:
        assert np.allclose(back, phi, rtol=0, atol=4e-15)
    assert np.linalg.norm(back) <= math.pi + 1e-15
    assert np.allclose(arrays.quat_logarithm(-q), back, rtol=0, atol=4e-15) or np.linalg.norm(back) > math.pi - 1e-9


@pytest.mark.parametrize("angle", [0.0, 1e-200, 1e-12, 9.9e-4, 1.01e-3, 0.0199, 0.0201, 0.3, 3.0, math.pi])
def test_exponential_and_logarithm_across_their_series_limits(angle):
    axis = np.array([2.0, -3.0, 6.0]) / 7.0
    q = arrays.quat_exponential(angle * axis)
    # the length of the vector itself is rounded: one unit in the last place of the angle
    assert np.allclose(q, np.append(math.sin(angle / 2) * axis, math.cos(angle / 2)), rtol=3e-16, atol=math.ulp(angle))
    assert np.allclose(arrays.quat_logarithm(q), angle * axis, rtol=5e-16, atol=0)


@CASES
@given(QUATERNION)
def test_normalisation(q):
    unit = arrays.quat_normalize(q)
    assert abs(np.linalg.norm(unit) - 1.0) <= 4e-16
    near = unit * (1.0 + 1e-6)
    assert abs(np.linalg.norm(arrays.quat_renormalize(near)) - 1.0) <= 2e-12


def test_norm_is_kept_over_many_small_rotations():
    """Twenty seconds of 1 kHz steps: the norm stays within rounding of 1 with one Newton step a tick."""
    q = np.array([0.0, 0.0, 0.0, 1.0])
    step = arrays.quat_exponential([1e-4, -2e-4, 3e-4])
    for _ in range(20_000):
        q = arrays.quat_renormalize(arrays.quat_multiply(q, step))
    assert abs(np.linalg.norm(q) - 1.0) <= 4e-16
    exact = Rotation.from_rotvec(20_000 * np.array([1e-4, -2e-4, 3e-4])).as_matrix()
    assert np.abs(arrays.quat_to_matrix(q) - exact).max() <= 1e-12


@CASES
@given(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1))
def test_yaw_pitch_roll(yaw, pitch, roll):
    q = arrays.quat_from_yaw_pitch_roll(yaw, pitch, roll)
    twin = Rotation.from_euler("YZX", [yaw, pitch, roll])
    assert np.abs(arrays.quat_to_matrix(q) - twin.as_matrix()).max() <= 2e-15
    assert np.allclose(arrays.quat_to_yaw_pitch_roll(q), [yaw, pitch, roll], rtol=0, atol=4e-14)


@CASES
@given(UNIT, UNIT, VECTOR)
def test_matrix_products(a, b, v):
    A, B = arrays.quat_to_matrix(a), arrays.quat_to_matrix(b)
    assert np.allclose(arrays.rot3_multiply(A, B), A @ B, rtol=0, atol=1e-15)
    assert np.allclose(arrays.rot3_multiply_transposed(A, B), A @ B.T, rtol=0, atol=1e-15)
    assert np.allclose(arrays.rot3_apply(A, v), A @ v, rtol=0, atol=4e-15)
    assert np.allclose(arrays.rot3_apply_transposed(A, v), A.T @ v, rtol=0, atol=4e-15)
    assert np.allclose(arrays.vec3_cross(v, A[0]), np.cross(v, A[0]), rtol=0, atol=4e-15)


@CASES
@given(POSE, POSE, VECTOR)
def test_pose_product_and_inverse(X_AB, X_BC, p):
    assert np.allclose(matrix(arrays.pose_multiply(X_AB, X_BC)), matrix(X_AB) @ matrix(X_BC), rtol=0, atol=2e-14)
    assert np.allclose(matrix(arrays.pose_inverse(X_AB)), np.linalg.inv(matrix(X_AB)), rtol=0, atol=2e-14)
    assert np.allclose(matrix(arrays.pose_multiply(arrays.pose_inverse(X_AB), X_AB)), np.eye(4), rtol=0, atol=2e-14)
    assert np.allclose(arrays.pose_apply(X_AB, p), (matrix(X_AB) @ np.append(p, 1.0))[:3], rtol=0, atol=2e-14)


@CASES
@given(POSE, SIX, SIX)
def test_wrench_shift_keeps_power(X_AB, F_B, V_B):
    """The work of a wrench does not depend on where it is taken."""
    F_A, V_A = arrays.wrench_to_parent(X_AB, F_B), arrays.motion_to_parent(X_AB, V_B)
    assert F_A @ V_A == pytest.approx(F_B @ V_B, rel=0, abs=5e-13)
    assert np.allclose(arrays.wrench_to_child(X_AB, F_A), F_B, rtol=0, atol=5e-14)
    assert np.allclose(arrays.motion_to_child(X_AB, V_A), V_B, rtol=0, atol=5e-14)


def test_lever_arm_by_hand():
    """1 N along z at (2, 0, 0) gives -2 N.m about y at the origin."""
    X = np.array([2.0, 0, 0, 0, 0, 0, 1])
    assert np.array_equal(arrays.wrench_to_parent(X, [0, 0, 1, 0, 0, 0]), [0, 0, 1, 0, -2, 0])
    # spin about z seen 2 m away: the body point at the origin moves along -y
    assert np.array_equal(arrays.motion_to_parent(X, [0, 0, 0, 0, 0, 1]), [0, -2, 0, 0, 0, 1])


def test_wrong_size_is_named():
    with pytest.raises(ValueError, match="4 numbers are needed, 3 are given"):
        arrays.quat_normalize([1, 2, 3])
