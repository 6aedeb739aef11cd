# distutils: extra_compile_args = -O1
"""The algebra headers on NumPy arrays, for tests and offline use: each function calls the very inline step that the kernels use.

Shapes: vectors (3,), quaternions (4,) `[x, y, z, w]`, poses (7,), twists and wrenches (6,) linear or force first, rotation matrices (3, 3),
rigid-body inertias (10,), symmetric 6x6 (21,). SI units, angles in rad. A wrong shape raises `ValueError`.
"""

import numpy as np

from rt_kernels.algebra cimport sincos as trig
from rt_kernels.algebra cimport spatial
from rt_kernels.algebra cimport values
from rt_kernels.algebra.values cimport Inertia, Mat3, Pose, Quat, Twist, Vec3, Wrench, inertia, mat, pose, twist, vec, wrench


cdef double[::1] given(object numbers, Py_ssize_t size):
    array = np.ascontiguousarray(numbers, dtype=np.float64).reshape(-1)
    if array.size != size:
        raise ValueError(f"{size} numbers are needed, {array.size} are given")
    return array.copy()


cdef object shown(Vec3 a):
    cdef double[::1] out = np.empty(3)
    values.put(a, &out[0])
    return np.asarray(out)


cdef object shown_quat(Quat q):
    cdef double[::1] out = np.empty(4)
    values.put_quat(q, &out[0])
    return np.asarray(out)


cdef object shown_pose(Pose X):
    cdef double[::1] out = np.empty(7)
    values.put_pose(X, &out[0])
    return np.asarray(out)


cdef object shown_twist(Twist V):
    cdef double[::1] out = np.empty(6)
    values.put_twist(V, &out[0])
    return np.asarray(out)


cdef object shown_wrench(Wrench F):
    cdef double[::1] out = np.empty(6)
    values.put_wrench(F, &out[0])
    return np.asarray(out)


cdef object shown_matrix(Mat3 A):
    cdef double[::1] out = np.empty(9)
    values.put_mat(A, &out[0])
    return np.asarray(out).reshape(3, 3)


cdef object shown_inertia(Inertia I):
    cdef double[::1] out = np.empty(10)
    values.put_inertia(I, &out[0])
    return np.asarray(out)


# -- sincos, atan2 ----------------------------------------------------------------------------------------------------------


def sincos(x):
    """Sine and cosine of x [rad] (n,), |x| <= 1e5; returns two arrays (n,)."""
    cdef double[::1] angle = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
    cdef double[::1] s = np.empty(angle.shape[0])
    cdef double[::1] c = np.empty(angle.shape[0])
    cdef Py_ssize_t i
    with nogil:
        for i in range(angle.shape[0]):
            trig.sincos(angle[i], &s[i], &c[i])
    return np.asarray(s), np.asarray(c)


def atan2(y, x):
    """Angle of the points (x, y) [rad], arrays (n,)."""
    cdef double[::1] ys = np.ascontiguousarray(y, dtype=np.float64).reshape(-1)
    cdef double[::1] xs = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
    if xs.shape[0] != ys.shape[0]:
        raise ValueError(f"y has {ys.shape[0]} numbers, x has {xs.shape[0]}")
    cdef double[::1] angle = np.empty(xs.shape[0])
    cdef Py_ssize_t i
    with nogil:
        for i in range(xs.shape[0]):
            angle[i] = trig.atan2(ys[i], xs[i])
    return np.asarray(angle)


# -- quaternions ------------------------------------------------------------------------------------------------------------


def quat_multiply(q_AB, q_BC):
    """q_AC."""
    cdef double[::1] a = given(q_AB, 4), b = given(q_BC, 4)
    return shown_quat(values.quat_multiply(values.quat(&a[0]), values.quat(&b[0])))


def quat_rotate(q_AB, v_B):
    """Components in A of the vector v given in B."""
    cdef double[::1] q = given(q_AB, 4), v = given(v_B, 3)
    return shown(values.rotate(values.quat(&q[0]), vec(&v[0])))


def quat_rotate_back(q_AB, v_A):
    """Components in B of the vector v given in A."""
    cdef double[::1] q = given(q_AB, 4), v = given(v_A, 3)
    return shown(values.rotate_back(values.quat(&q[0]), vec(&v[0])))


def quat_normalize(q):
    """q divided by its norm."""
    cdef double[::1] a = given(q, 4)
    return shown_quat(values.normalized(values.quat(&a[0])))


def quat_renormalize(q):
    """One Newton step towards norm 1, for a norm that is already close to 1."""
    cdef double[::1] a = given(q, 4)
    return shown_quat(values.renormalized(values.quat(&a[0])))


def quat_to_matrix(q_AB):
    """R_AB (3, 3)."""
    cdef double[::1] q = given(q_AB, 4)
    return shown_matrix(values.to_matrix(values.quat(&q[0])))


def quat_from_matrix(R_AB):
    """q_AB of a rotation matrix."""
    cdef double[::1] R = given(R_AB, 9)
    return shown_quat(values.quat_of(mat(&R[0])))


def quat_exponential(phi):
    """Unit quaternion of the rotation vector phi [rad]."""
    cdef double[::1] p = given(phi, 3)
    return shown_quat(values.exponential(vec(&p[0])))


def quat_logarithm(q):
    """Rotation vector [rad], length in [0, pi], of a unit quaternion."""
    cdef double[::1] a = given(q, 4)
    return shown(values.logarithm(values.quat(&a[0])))


def quat_from_yaw_pitch_roll(double yaw, double pitch, double roll):
    """Unit quaternion of yaw (Y), pitch (Z), roll (X), in this order of rotation [rad]."""
    return shown_quat(values.of_yaw_pitch_roll(yaw, pitch, roll))


def quat_to_yaw_pitch_roll(q):
    """Yaw, pitch, roll [rad] (3,) of a unit quaternion."""
    cdef double[::1] a = given(q, 4)
    return shown(values.yaw_pitch_roll(values.quat(&a[0])))


# -- matrices ---------------------------------------------------------------------------------------------------------------


def rot3_apply(R, v):
    """R v."""
    cdef double[::1] a = given(R, 9), x = given(v, 3)
    return shown(values.mat_vec(mat(&a[0]), vec(&x[0])))


def rot3_apply_transposed(R, v):
    """R^T v."""
    cdef double[::1] a = given(R, 9), x = given(v, 3)
    return shown(values.mat_transposed_vec(mat(&a[0]), vec(&x[0])))


def rot3_multiply(A, B):
    """A B."""
    cdef double[::1] a = given(A, 9), b = given(B, 9)
    return shown_matrix(values.mat_multiply(mat(&a[0]), mat(&b[0])))


def rot3_multiply_transposed(A, B):
    """A B^T."""
    cdef double[::1] a = given(A, 9), b = given(B, 9)
    return shown_matrix(values.mat_multiply(mat(&a[0]), values.transposed(mat(&b[0]))))


def vec3_cross(a, b):
    """a x b."""
    cdef double[::1] x = given(a, 3), y = given(b, 3)
    return shown(values.cross(vec(&x[0]), vec(&y[0])))


# -- poses and wrenches -----------------------------------------------------------------------------------------------------


def pose_multiply(X_AB, X_BC):
    """X_AC."""
    cdef double[::1] a = given(X_AB, 7), b = given(X_BC, 7)
    return shown_pose(values.compose(pose(&a[0]), pose(&b[0])))


def pose_inverse(X_AB):
    """X_BA."""
    cdef double[::1] a = given(X_AB, 7)
    return shown_pose(values.inverse(pose(&a[0])))


def pose_apply(X_AB, p_BQ):
    """p_AQ, from A's origin to Q in A."""
    cdef double[::1] a = given(X_AB, 7), p = given(p_BQ, 3)
    return shown(values.apply(pose(&a[0]), vec(&p[0])))


def wrench_to_parent(X_AB, F_B):
    """The wrench at and in B, taken at and in A."""
    cdef double[::1] a = given(X_AB, 7), f = given(F_B, 6)
    return shown_wrench(values.wrench_to_parent(pose(&a[0]), wrench(&f[0])))


def wrench_to_child(X_AB, F_A):
    """The wrench at and in A, taken at and in B."""
    cdef double[::1] a = given(X_AB, 7), f = given(F_A, 6)
    return shown_wrench(values.wrench_to_child(pose(&a[0]), wrench(&f[0])))


# -- spatial vectors and inertias -------------------------------------------------------------------------------------------


def cross_motion(V, U):
    """V x U of two motions."""
    cdef double[::1] a = given(V, 6), b = given(U, 6)
    return shown_twist(values.cross_motion(twist(&a[0]), twist(&b[0])))


def cross_force(V, F):
    """V x* F of a motion and a force."""
    cdef double[::1] a = given(V, 6), b = given(F, 6)
    return shown_wrench(values.cross_force(twist(&a[0]), wrench(&b[0])))


def motion_to_parent(X_AB, V_B):
    """The motion at and in B, taken at and in A."""
    cdef double[::1] a = given(X_AB, 7), v = given(V_B, 6)
    return shown_twist(values.motion_to_parent(pose(&a[0]), twist(&v[0])))


def motion_to_child(X_AB, V_A):
    """The motion at and in A, taken at and in B."""
    cdef double[::1] a = given(X_AB, 7), v = given(V_A, 6)
    return shown_twist(values.motion_to_child(pose(&a[0]), twist(&v[0])))


def inertia_from_centre(double mass, c, J):
    """Ten numbers from mass [kg], centre c (3,) [m], tensor about the centre J = xx, xy, xz, yy, yz, zz [kg.m2]."""
    cdef double[::1] centre = given(c, 3), tensor = given(J, 6), out = np.empty(10)
    spatial.inertia_from_centre(mass, &centre[0], &tensor[0], &out[0])
    return np.asarray(out)


def inertia_to_centre(I):
    """Mass, centre (3,), tensor about the centre (6,)."""
    cdef double[::1] a = given(I, 10), tensor = np.empty(6)
    cdef Vec3 centre
    spatial.inertia_to_centre(inertia(&a[0]), &centre, &tensor[0])
    return a[0], shown(centre), np.asarray(tensor)


def inertia_add(a, b):
    """Inertia of two bodies rigidly joined, both about the same origin."""
    cdef double[::1] x = given(a, 10), y = given(b, 10)
    spatial.inertia_add(&x[0], &y[0], &x[0])
    return np.asarray(x)


def inertia_apply(I, V):
    """Momentum I V (6,)."""
    cdef double[::1] a = given(I, 10), v = given(V, 6)
    return shown_wrench(values.momentum_of(inertia(&a[0]), twist(&v[0])))


def kinetic_energy(I, V):
    """V . I V / 2 [J]."""
    cdef double[::1] a = given(I, 10), v = given(V, 6)
    return values.kinetic_energy(inertia(&a[0]), twist(&v[0]))


def inertia_to_parent(X_AB, I_B):
    """The inertia about and in B, taken about and in A."""
    cdef double[::1] x = given(X_AB, 7), a = given(I_B, 10)
    return shown_inertia(spatial.inertia_to_parent(pose(&x[0]), inertia(&a[0])))


def symmetric_from_inertia(I):
    """Twenty-one numbers of a rigid-body inertia."""
    cdef double[::1] a = given(I, 10), out = np.empty(21)
    spatial.symmetric_from_inertia(inertia(&a[0]), &out[0])
    return np.asarray(out)


def symmetric_add(a, b):
    """Sum of two symmetric 6x6."""
    cdef double[::1] x = given(a, 21), y = given(b, 21)
    spatial.symmetric_add(&x[0], &y[0], &x[0])
    return np.asarray(x)


def symmetric_full(S):
    """The full matrix (6, 6) of twenty-one numbers."""
    cdef double[::1] a = given(S, 21)
    return np.array([[a[spatial.symmetric_index(i, j)] for j in range(6)] for i in range(6)])


def symmetric_apply(S, x):
    """S x (6,)."""
    cdef double[::1] a = given(S, 21), v = given(x, 6), out = np.empty(6)
    spatial.symmetric_apply(&a[0], &v[0], &out[0])
    return np.asarray(out)


def symmetric_add_outer(double scale, u, S):
    """S + scale u u^T."""
    cdef double[::1] v = given(u, 6), a = given(S, 21)
    spatial.symmetric_add_outer(scale, &v[0], &a[0])
    return np.asarray(a)


def symmetric_to_parent(X_AB, S_B):
    """The symmetric map from motions to forces about and in B, taken about and in A."""
    cdef double[::1] x = given(X_AB, 7), a = given(S_B, 21)
    spatial.symmetric_to_parent(pose(&x[0]), &a[0], &a[0])
    return np.asarray(a)


def symmetric_solve(S, b):
    """x of S x = b; `ValueError` when S is not positive definite."""
    cdef double[::1] a = given(S, 21), x = given(b, 6)
    if spatial.symmetric_solve(&a[0], &x[0], &x[0]):
        raise ValueError("the symmetric matrix is not positive definite")
    return np.asarray(x)
