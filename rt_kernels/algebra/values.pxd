"""Vectors, quaternions, poses, twists, wrenches and matrices as values: structs that functions take and return, all inlined.

    v_A = add(cross(a.w, sub(X_NA.p, a.p)), a.v)

The structs have the layout of the arrays that samples, states and files hold: `Vec3` is `double[3]`, `Quat` `double[4]` (x, y, z, w),
`Pose` `double[7]` (position, quaternion), `Twist` `double[6]` (linear first), `Wrench` `double[6]` (force first), `Mat3` `double[9]` by
rows, `Inertia` `double[10]` of a rigid body. `vec`, `quat`, `pose`, `twist`, `wrench`, `mat` and `inertia` read such an array; `put`,
`put_quat`, `put_pose`, `put_twist`, `put_wrench`, `put_mat` and `put_inertia` write one. Every function does its operations in one fixed
order, so that results are the same to the bit wherever it is inlined.

Frames in monogram notation: `X_AB` is the pose of B in A, `R_AB` and `q_AB` map components from B to A.
"""

from libc.math cimport sqrt

from rt_kernels.algebra.sincos cimport atan2, sincos


cdef struct Vec3:
    double x
    double y
    double z


cdef struct Quat:
    double x
    double y
    double z
    double w


cdef struct Pose:
    Vec3 p
    Quat q


cdef struct Twist:
    Vec3 v
    Vec3 w


cdef struct Wrench:
    Vec3 f
    Vec3 m


cdef struct Mat3:
    double xx
    double xy
    double xz
    double yx
    double yy
    double yz
    double zx
    double zy
    double zz


cdef struct Inertia:
    double m
    Vec3 h                 # mass times centre of mass
    double xx              # tensor about the origin
    double xy
    double xz
    double yy
    double yz
    double zz


# -- vectors -------------------------------------------------------------------------------------------------------------


cdef inline Vec3 xyz(double x, double y, double z) noexcept nogil:
    cdef Vec3 out
    out.x = x; out.y = y; out.z = z
    return out


cdef inline Vec3 vec(const double *a) noexcept nogil:
    return xyz(a[0], a[1], a[2])


cdef inline void put(Vec3 a, double *out) noexcept nogil:
    out[0] = a.x; out[1] = a.y; out[2] = a.z


cdef inline Vec3 add(Vec3 a, Vec3 b) noexcept nogil:
    return xyz(a.x + b.x, a.y + b.y, a.z + b.z)


cdef inline Vec3 sub(Vec3 a, Vec3 b) noexcept nogil:
    return xyz(a.x - b.x, a.y - b.y, a.z - b.z)


cdef inline Vec3 mul(double s, Vec3 a) noexcept nogil:
    # s a
    return xyz(s * a.x, s * a.y, s * a.z)


cdef inline Vec3 neg(Vec3 a) noexcept nogil:
    return xyz(-a.x, -a.y, -a.z)


cdef inline double dot(Vec3 a, Vec3 b) noexcept nogil:
    return a.x * b.x + a.y * b.y + a.z * b.z


cdef inline double norm(Vec3 a) noexcept nogil:
    return sqrt(a.x * a.x + a.y * a.y + a.z * a.z)


cdef inline Vec3 cross(Vec3 a, Vec3 b) noexcept nogil:
    # a x b
    return xyz(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


cdef inline Vec3 div(Vec3 a, double s) noexcept nogil:
    # a / s
    return xyz(a.x / s, a.y / s, a.z / s)


# -- unit quaternions ----------------------------------------------------------------------------------------------------


cdef inline Quat xyzw(double x, double y, double z, double w) noexcept nogil:
    cdef Quat out
    out.x = x; out.y = y; out.z = z; out.w = w
    return out


cdef inline Quat quat(const double *q) noexcept nogil:
    return xyzw(q[0], q[1], q[2], q[3])


cdef inline void put_quat(Quat q, double *out) noexcept nogil:
    out[0] = q.x; out[1] = q.y; out[2] = q.z; out[3] = q.w


cdef inline Quat conjugate(Quat q) noexcept nogil:
    return xyzw(-q.x, -q.y, -q.z, q.w)


cdef inline Quat quat_multiply(Quat a, Quat b) noexcept nogil:
    # q_AC = q_AB q_BC
    return xyzw(a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
                a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
                a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z)


cdef inline Quat normalized(Quat q) noexcept nogil:
    cdef double s = 1.0 / sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w)
    return xyzw(s * q.x, s * q.y, s * q.z, s * q.w)


cdef inline Quat renormalized(Quat q) noexcept nogil:
    # one Newton step of 1/sqrt: of a norm 1 + e the error becomes 1.5 e^2
    cdef double s = 1.5 - 0.5 * (q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w)
    return xyzw(s * q.x, s * q.y, s * q.z, s * q.w)


cdef inline Vec3 rotate(Quat q, Vec3 v) noexcept nogil:
    # v + 2 w (u x v) + 2 u x (u x v)
    cdef double tx = 2.0 * (q.y * v.z - q.z * v.y)
    cdef double ty = 2.0 * (q.z * v.x - q.x * v.z)
    cdef double tz = 2.0 * (q.x * v.y - q.y * v.x)
    return xyz(v.x + q.w * tx + q.y * tz - q.z * ty,
               v.y + q.w * ty + q.z * tx - q.x * tz,
               v.z + q.w * tz + q.x * ty - q.y * tx)


cdef inline Vec3 rotate_back(Quat q, Vec3 v) noexcept nogil:
    # by the inverse of q
    return rotate(conjugate(q), v)


cdef inline Quat exponential(Vec3 phi) noexcept nogil:
    """Quaternion of the rotation vector phi (angle = |phi|)."""
    cdef double angle2 = phi.x * phi.x + phi.y * phi.y + phi.z * phi.z
    cdef double s, c, k
    if angle2 < 1e-6:
        # series of sin(a/2)/a and cos(a/2): the next terms are below 1e-20
        k = 0.5 - angle2 * (1.0 / 48.0 - angle2 * (1.0 / 3840.0))
        c = 1.0 - angle2 * (0.125 - angle2 * (1.0 / 384.0))
    else:
        k = sqrt(angle2)
        sincos(0.5 * k, &s, &c)
        k = s / k
    return xyzw(k * phi.x, k * phi.y, k * phi.z, c)


cdef inline Vec3 logarithm(Quat q) noexcept nogil:
    """Rotation vector of the unit quaternion q, angle in [0, pi]; inverse of `exponential`, and the same for q and -q."""
    cdef double sign = -1.0 if q.w < 0.0 else 1.0
    cdef double w = sign * q.w
    cdef double n2 = q.x * q.x + q.y * q.y + q.z * q.z
    cdef double k, u
    if n2 < 1e-4:
        # series of 2 atan(n/w)/n: the next term is below 1e-20
        u = n2 / (w * w)
        k = 2.0 / w * (1.0 - u * (1.0 / 3.0 - u * (0.2 - u * (1.0 / 7.0 - u * (1.0 / 9.0)))))
    else:
        k = sqrt(n2)
        k = 2.0 * atan2(k, w) / k
    k *= sign
    return xyz(k * q.x, k * q.y, k * q.z)


cdef inline Quat turned(Quat q, Vec3 w, double h) noexcept nogil:
    """exp(h w) q, normalised: a body has turned for h seconds at the rate w, in the axes to which q leads."""
    return normalized(quat_multiply(exponential(mul(h, w)), q))


# -- poses ---------------------------------------------------------------------------------------------------------------


cdef inline Pose pose_of(Vec3 p, Quat q) noexcept nogil:
    cdef Pose out
    out.p = p; out.q = q
    return out


cdef inline Pose pose(const double *X) noexcept nogil:
    return pose_of(vec(X), quat(X + 3))


cdef inline void put_pose(Pose X, double *out) noexcept nogil:
    put(X.p, out)
    put_quat(X.q, out + 3)


cdef inline Vec3 apply(Pose X_AB, Vec3 p_BQ) noexcept nogil:
    # p_AQ
    return add(X_AB.p, rotate(X_AB.q, p_BQ))


cdef inline Pose compose(Pose X_AB, Pose X_BC) noexcept nogil:
    # X_AC
    return pose_of(add(X_AB.p, rotate(X_AB.q, X_BC.p)), quat_multiply(X_AB.q, X_BC.q))


cdef inline Pose inverse(Pose X_AB) noexcept nogil:
    # X_BA
    cdef Quat q = conjugate(X_AB.q)
    return pose_of(mul(-1.0, rotate(q, X_AB.p)), q)


cdef inline Pose unit_pose() noexcept nogil:
    return pose_of(xyz(0.0, 0.0, 0.0), xyzw(0.0, 0.0, 0.0, 1.0))


cdef inline Pose pose_from(object X) except *:
    """Of seven numbers, at set-up."""
    return pose_of(xyz(X[0], X[1], X[2]), xyzw(X[3], X[4], X[5], X[6]))


# -- twists and wrenches -------------------------------------------------------------------------------------------------


cdef inline Twist twist_of(Vec3 v, Vec3 w) noexcept nogil:
    cdef Twist out
    out.v = v; out.w = w
    return out


cdef inline Twist twist(const double *V) noexcept nogil:
    return twist_of(vec(V), vec(V + 3))


cdef inline void put_twist(Twist V, double *out) noexcept nogil:
    put(V.v, out)
    put(V.w, out + 3)


cdef inline Wrench wrench_of(Vec3 f, Vec3 m) noexcept nogil:
    cdef Wrench out
    out.f = f; out.m = m
    return out


cdef inline Wrench wrench(const double *F) noexcept nogil:
    return wrench_of(vec(F), vec(F + 3))


cdef inline void put_wrench(Wrench F, double *out) noexcept nogil:
    put(F.f, out)
    put(F.m, out + 3)


cdef inline double power(Twist V, Wrench F) noexcept nogil:
    return V.v.x * F.f.x + V.v.y * F.f.y + V.v.z * F.f.z + V.w.x * F.m.x + V.w.y * F.m.y + V.w.z * F.m.z


cdef inline Wrench wrench_sum(Wrench a, Wrench b) noexcept nogil:
    return wrench_of(add(a.f, b.f), add(a.m, b.m))


cdef inline Wrench wrench_to_parent(Pose X_AB, Wrench F_B) noexcept nogil:
    """The same wrench, given at and in B, taken at and in A: f_A = R f_B, m_A = R m_B + p_AB x f_A."""
    cdef Vec3 f = rotate(X_AB.q, F_B.f)
    return wrench_of(f, add(rotate(X_AB.q, F_B.m), cross(X_AB.p, f)))


cdef inline Wrench wrench_to_child(Pose X_AB, Wrench F_A) noexcept nogil:
    """Inverse of `wrench_to_parent`."""
    return wrench_of(rotate_back(X_AB.q, F_A.f), rotate_back(X_AB.q, sub(F_A.m, cross(X_AB.p, F_A.f))))


cdef inline Twist motion_to_parent(Pose X_AB, Twist V_B) noexcept nogil:
    """The same motion, given at and in B, taken at and in A: w_A = R w_B, v_A = R v_B + p_AB x w_A."""
    cdef Vec3 w = rotate(X_AB.q, V_B.w)
    return twist_of(add(rotate(X_AB.q, V_B.v), cross(X_AB.p, w)), w)


cdef inline Twist motion_to_child(Pose X_AB, Twist V_A) noexcept nogil:
    """Inverse of `motion_to_parent`."""
    return twist_of(rotate_back(X_AB.q, sub(V_A.v, cross(X_AB.p, V_A.w))), rotate_back(X_AB.q, V_A.w))


cdef inline Twist cross_motion(Twist V, Twist U) noexcept nogil:
    """V x U for motions: (w x u + v x u_w, w x u_w), Featherstone 2008, (2.31)."""
    return twist_of(add(cross(V.w, U.v), cross(V.v, U.w)), cross(V.w, U.w))


cdef inline Wrench cross_force(Twist V, Wrench F) noexcept nogil:
    """V x* F for forces: (w x f, w x m + v x f), Featherstone 2008, (2.32)."""
    return wrench_of(cross(V.w, F.f), add(cross(V.w, F.m), cross(V.v, F.f)))


cdef inline Twist twist_sum(Twist a, Twist b) noexcept nogil:
    return twist_of(add(a.v, b.v), add(a.w, b.w))


cdef inline Twist twist_scaled(double s, Twist V) noexcept nogil:
    # s V
    return twist_of(mul(s, V.v), mul(s, V.w))


# -- matrices ------------------------------------------------------------------------------------------------------------


cdef inline Mat3 mat(const double *R) noexcept nogil:
    cdef Mat3 out
    out.xx = R[0]; out.xy = R[1]; out.xz = R[2]
    out.yx = R[3]; out.yy = R[4]; out.yz = R[5]
    out.zx = R[6]; out.zy = R[7]; out.zz = R[8]
    return out


cdef inline void put_mat(Mat3 R, double *out) noexcept nogil:
    out[0] = R.xx; out[1] = R.xy; out[2] = R.xz
    out[3] = R.yx; out[4] = R.yy; out[5] = R.yz
    out[6] = R.zx; out[7] = R.zy; out[8] = R.zz


cdef inline Vec3 mat_vec(Mat3 R, Vec3 v) noexcept nogil:
    # R v
    return xyz(R.xx * v.x + R.xy * v.y + R.xz * v.z, R.yx * v.x + R.yy * v.y + R.yz * v.z, R.zx * v.x + R.zy * v.y + R.zz * v.z)


cdef inline Vec3 mat_transposed_vec(Mat3 R, Vec3 v) noexcept nogil:
    # R^T v
    return xyz(R.xx * v.x + R.yx * v.y + R.zx * v.z, R.xy * v.x + R.yy * v.y + R.zy * v.z, R.xz * v.x + R.yz * v.y + R.zz * v.z)


cdef inline Mat3 transposed(Mat3 A) noexcept nogil:
    cdef Mat3 out
    out.xx = A.xx; out.xy = A.yx; out.xz = A.zx
    out.yx = A.xy; out.yy = A.yy; out.yz = A.zy
    out.zx = A.xz; out.zy = A.yz; out.zz = A.zz
    return out


cdef inline Mat3 mat_multiply(Mat3 A, Mat3 B) noexcept nogil:
    # A B
    cdef Mat3 out
    out.xx = A.xx * B.xx + A.xy * B.yx + A.xz * B.zx
    out.xy = A.xx * B.xy + A.xy * B.yy + A.xz * B.zy
    out.xz = A.xx * B.xz + A.xy * B.yz + A.xz * B.zz
    out.yx = A.yx * B.xx + A.yy * B.yx + A.yz * B.zx
    out.yy = A.yx * B.xy + A.yy * B.yy + A.yz * B.zy
    out.yz = A.yx * B.xz + A.yy * B.yz + A.yz * B.zz
    out.zx = A.zx * B.xx + A.zy * B.yx + A.zz * B.zx
    out.zy = A.zx * B.xy + A.zy * B.yy + A.zz * B.zy
    out.zz = A.zx * B.xz + A.zy * B.yz + A.zz * B.zz
    return out


cdef inline Mat3 to_matrix(Quat q) noexcept nogil:
    # R_AB of q_AB
    cdef double x2 = q.x + q.x, y2 = q.y + q.y, z2 = q.z + q.z
    cdef double xx = q.x * x2, yy = q.y * y2, zz = q.z * z2
    cdef double xy = q.x * y2, xz = q.x * z2, yz = q.y * z2
    cdef double wx = q.w * x2, wy = q.w * y2, wz = q.w * z2
    cdef Mat3 R
    R.xx = 1.0 - (yy + zz); R.xy = xy - wz; R.xz = xz + wy
    R.yx = xy + wz; R.yy = 1.0 - (xx + zz); R.yz = yz - wx
    R.zx = xz - wy; R.zy = yz + wx; R.zz = 1.0 - (xx + yy)
    return R


cdef inline Mat3 mat_sum(Mat3 A, Mat3 B) noexcept nogil:
    cdef Mat3 out
    out.xx = A.xx + B.xx; out.xy = A.xy + B.xy; out.xz = A.xz + B.xz
    out.yx = A.yx + B.yx; out.yy = A.yy + B.yy; out.yz = A.yz + B.yz
    out.zx = A.zx + B.zx; out.zy = A.zy + B.zy; out.zz = A.zz + B.zz
    return out


cdef inline Vec3 mat_solve(Mat3 A, Vec3 b) noexcept nogil:
    """A^-1 b for a symmetric positive definite matrix (adjugate)."""
    cdef double xx = A.yy * A.zz - A.yz * A.zy, xy = A.yz * A.zx - A.yx * A.zz, xz = A.yx * A.zy - A.yy * A.zx
    cdef double d = 1.0 / (A.xx * xx + A.xy * xy + A.xz * xz)
    return xyz(d * (xx * b.x + (A.xz * A.zy - A.xy * A.zz) * b.y + (A.xy * A.yz - A.xz * A.yy) * b.z),
               d * (xy * b.x + (A.xx * A.zz - A.xz * A.zx) * b.y + (A.xz * A.yx - A.xx * A.yz) * b.z),
               d * (xz * b.x + (A.xy * A.zx - A.xx * A.zy) * b.y + (A.xx * A.yy - A.xy * A.yx) * b.z))


cdef inline Quat quat_of(Mat3 R) noexcept nogil:
    # q_AB of R_AB; Shepperd's method: divide by the largest of the four components
    cdef double trace = R.xx + R.yy + R.zz
    cdef double s
    if trace >= R.xx and trace >= R.yy and trace >= R.zz:
        s = sqrt(1.0 + trace) * 2.0
        return xyzw((R.zy - R.yz) / s, (R.xz - R.zx) / s, (R.yx - R.xy) / s, 0.25 * s)
    if R.xx >= R.yy and R.xx >= R.zz:
        s = sqrt(1.0 + R.xx - R.yy - R.zz) * 2.0
        return xyzw(0.25 * s, (R.xy + R.yx) / s, (R.xz + R.zx) / s, (R.zy - R.yz) / s)
    if R.yy >= R.zz:
        s = sqrt(1.0 + R.yy - R.xx - R.zz) * 2.0
        return xyzw((R.xy + R.yx) / s, 0.25 * s, (R.yz + R.zy) / s, (R.xz - R.zx) / s)
    s = sqrt(1.0 + R.zz - R.xx - R.yy) * 2.0
    return xyzw((R.xz + R.zx) / s, (R.yz + R.zy) / s, 0.25 * s, (R.yx - R.xy) / s)


cdef inline Quat of_yaw_pitch_roll(double yaw, double pitch, double roll) noexcept nogil:
    """Angles shown to people [rad]: yaw about Y, then pitch about the new Z, then roll about the new X."""
    cdef double s, c
    cdef Quat q
    sincos(0.5 * yaw, &s, &c)
    q = xyzw(0.0, s, 0.0, c)
    sincos(0.5 * pitch, &s, &c)
    q = quat_multiply(q, xyzw(0.0, 0.0, s, c))
    sincos(0.5 * roll, &s, &c)
    return quat_multiply(q, xyzw(s, 0.0, 0.0, c))


cdef inline Vec3 yaw_pitch_roll(Quat q) noexcept nogil:
    """Yaw, pitch, roll [rad], inverse of `of_yaw_pitch_roll`; for display only (at pitch = +-90 deg yaw and roll are not separate)."""
    # R = Ry(yaw) Rz(pitch) Rx(roll): first column (cy cp, sp, -sy cp), second row (sp, cp cr, -cp sr)
    cdef Mat3 R = to_matrix(q)
    return xyz(atan2(-R.zx, R.xx), atan2(R.yx, sqrt(R.xx * R.xx + R.zx * R.zx)), atan2(-R.yz, R.yy))


cdef inline Mat3 unit_matrix() noexcept nogil:
    cdef Mat3 out
    out.xx = 1.0; out.xy = 0.0; out.xz = 0.0
    out.yx = 0.0; out.yy = 1.0; out.yz = 0.0
    out.zx = 0.0; out.zy = 0.0; out.zz = 1.0
    return out


cdef inline Mat3 mat_scaled(double s, Mat3 A) noexcept nogil:
    # s A
    cdef Mat3 out
    out.xx = s * A.xx; out.xy = s * A.xy; out.xz = s * A.xz
    out.yx = s * A.yx; out.yy = s * A.yy; out.yz = s * A.yz
    out.zx = s * A.zx; out.zy = s * A.zy; out.zz = s * A.zz
    return out


cdef inline double trace(Mat3 A) noexcept nogil:
    return A.xx + A.yy + A.zz


cdef inline Vec3 antisymmetric_part(Mat3 R) noexcept nogil:
    # a of [a] = (R - R^T)/2: for a small rotation its vector
    return xyz(0.5 * (R.zy - R.yz), 0.5 * (R.xz - R.zx), 0.5 * (R.yx - R.xy))


cdef inline Mat3 rows_of(Vec3 x, Vec3 y, Vec3 z) noexcept nogil:
    cdef Mat3 out
    out.xx = x.x; out.xy = x.y; out.xz = x.z
    out.yx = y.x; out.yy = y.y; out.yz = y.z
    out.zx = z.x; out.zy = z.y; out.zz = z.z
    return out


cdef inline Mat3 cross_rows(Vec3 p, Mat3 A) noexcept nogil:
    # rows p x (row of A): -A [p]
    return rows_of(cross(p, xyz(A.xx, A.xy, A.xz)), cross(p, xyz(A.yx, A.yy, A.yz)), cross(p, xyz(A.zx, A.zy, A.zz)))


cdef inline Mat3 cross_columns(Vec3 p, Mat3 A) noexcept nogil:
    # columns p x (column of A): [p] A
    return transposed(cross_rows(p, transposed(A)))


cdef inline Mat3 rotated_tensor(Mat3 R, Mat3 S) noexcept nogil:
    # R S R^T
    return mat_multiply(mat_multiply(R, S), transposed(R))


cdef inline Mat3 block(const double *M) noexcept nogil:
    # 3x3 block of a 6x6 matrix, M: its first element
    cdef Mat3 B
    B.xx = M[0]; B.xy = M[1]; B.xz = M[2]
    B.yx = M[6]; B.yy = M[7]; B.yz = M[8]
    B.zx = M[12]; B.zy = M[13]; B.zz = M[14]
    return B


cdef inline void put_block(Mat3 B, double *M) noexcept nogil:
    M[0] = B.xx; M[1] = B.xy; M[2] = B.xz
    M[6] = B.yx; M[7] = B.yy; M[8] = B.yz
    M[12] = B.zx; M[13] = B.zy; M[14] = B.zz


cdef inline void add_block(Mat3 B, double *M) noexcept nogil:
    M[0] += B.xx; M[1] += B.xy; M[2] += B.xz
    M[6] += B.yx; M[7] += B.yy; M[8] += B.yz
    M[12] += B.zx; M[13] += B.zy; M[14] += B.zz


# -- rigid-body inertia --------------------------------------------------------------------------------------------------


cdef inline Inertia inertia(const double *I) noexcept nogil:
    cdef Inertia out
    out.m = I[0]
    out.h = vec(I + 1)
    out.xx = I[4]; out.xy = I[5]; out.xz = I[6]; out.yy = I[7]; out.yz = I[8]; out.zz = I[9]
    return out


cdef inline void put_inertia(Inertia I, double *out) noexcept nogil:
    out[0] = I.m
    put(I.h, out + 1)
    out[4] = I.xx; out[5] = I.xy; out[6] = I.xz; out[7] = I.yy; out[8] = I.yz; out[9] = I.zz


cdef inline Mat3 tensor(Inertia I) noexcept nogil:
    # about the origin
    cdef Mat3 out
    out.xx = I.xx; out.xy = I.xy; out.xz = I.xz
    out.yx = I.xy; out.yy = I.yy; out.yz = I.yz
    out.zx = I.xz; out.zy = I.yz; out.zz = I.zz
    return out


cdef inline Wrench momentum_of(Inertia I, Twist V) noexcept nogil:
    """I V: f = m v + w x h, moment = I_o w + h x v."""
    return wrench_of(add(cross(V.w, I.h), mul(I.m, V.v)), add(mat_vec(tensor(I), V.w), cross(I.h, V.v)))


cdef inline double kinetic_energy(Inertia I, Twist V) noexcept nogil:
    # V . I V / 2
    return 0.5 * power(V, momentum_of(I, V))
