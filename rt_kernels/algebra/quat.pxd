"""Unit quaternions `[x, y, z, w]`, `double[4]`. `q_AB` is the rotation whose matrix `R_AB` maps components from B to A."""

from libc.math cimport sqrt
from rt_kernels.algebra.sincos cimport atan2, sincos


cdef inline void identity(double *q) noexcept nogil:
    q[0] = 0.0; q[1] = 0.0; q[2] = 0.0; q[3] = 1.0


cdef inline void copy(const double *q, double *out) noexcept nogil:
    out[0] = q[0]; out[1] = q[1]; out[2] = q[2]; out[3] = q[3]


cdef inline void conjugate(const double *q, double *out) noexcept nogil:
    out[0] = -q[0]; out[1] = -q[1]; out[2] = -q[2]; out[3] = q[3]


cdef inline void multiply(const double *a, const double *b, double *out) noexcept nogil:
    # q_AC = q_AB q_BC; out may be an input
    cdef double x = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1]
    cdef double y = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0]
    cdef double z = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3]
    cdef double w = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]
    out[0] = x; out[1] = y; out[2] = z; out[3] = w


cdef inline void normalize(double *q) noexcept nogil:
    cdef double s = 1.0 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    q[0] *= s; q[1] *= s; q[2] *= s; q[3] *= s


cdef inline void renormalize(double *q) noexcept nogil:
    # one Newton step of 1/sqrt: for a norm that is already 1 + e, the error becomes 1.5 e^2; no root, no division
    cdef double s = 1.5 - 0.5 * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    q[0] *= s; q[1] *= s; q[2] *= s; q[3] *= s


cdef inline void rotate(const double *q, const double *v, double *out) noexcept nogil:
    # v + 2 w (u x v) + 2 u x (u x v); out may be v
    cdef double tx = 2.0 * (q[1] * v[2] - q[2] * v[1])
    cdef double ty = 2.0 * (q[2] * v[0] - q[0] * v[2])
    cdef double tz = 2.0 * (q[0] * v[1] - q[1] * v[0])
    cdef double x = v[0] + q[3] * tx + q[1] * tz - q[2] * ty
    cdef double y = v[1] + q[3] * ty + q[2] * tx - q[0] * tz
    cdef double z = v[2] + q[3] * tz + q[0] * ty - q[1] * tx
    out[0] = x; out[1] = y; out[2] = z


cdef inline void rotate_back(const double *q, const double *v, double *out) noexcept nogil:
    # by the inverse of q
    cdef double p[4]
    conjugate(q, p)
    rotate(p, v, out)


cdef inline void to_matrix(const double *q, double *R) noexcept nogil:
    cdef double x2 = q[0] + q[0], y2 = q[1] + q[1], z2 = q[2] + q[2]
    cdef double xx = q[0] * x2, yy = q[1] * y2, zz = q[2] * z2
    cdef double xy = q[0] * y2, xz = q[0] * z2, yz = q[1] * z2
    cdef double wx = q[3] * x2, wy = q[3] * y2, wz = q[3] * z2
    R[0] = 1.0 - (yy + zz); R[1] = xy - wz; R[2] = xz + wy
    R[3] = xy + wz; R[4] = 1.0 - (xx + zz); R[5] = yz - wx
    R[6] = xz - wy; R[7] = yz + wx; R[8] = 1.0 - (xx + yy)


cdef inline void from_matrix(const double *R, double *q) noexcept nogil:
    # Shepperd's method: divide by the largest of the four components
    cdef double trace = R[0] + R[4] + R[8]
    cdef double s
    if trace >= R[0] and trace >= R[4] and trace >= R[8]:
        s = sqrt(1.0 + trace) * 2.0
        q[3] = 0.25 * s; q[0] = (R[7] - R[5]) / s; q[1] = (R[2] - R[6]) / s; q[2] = (R[3] - R[1]) / s
    elif R[0] >= R[4] and R[0] >= R[8]:
        s = sqrt(1.0 + R[0] - R[4] - R[8]) * 2.0
        q[0] = 0.25 * s; q[3] = (R[7] - R[5]) / s; q[1] = (R[1] + R[3]) / s; q[2] = (R[2] + R[6]) / s
    elif R[4] >= R[8]:
        s = sqrt(1.0 + R[4] - R[0] - R[8]) * 2.0
        q[1] = 0.25 * s; q[3] = (R[2] - R[6]) / s; q[0] = (R[1] + R[3]) / s; q[2] = (R[5] + R[7]) / s
    else:
        s = sqrt(1.0 + R[8] - R[0] - R[4]) * 2.0
        q[2] = 0.25 * s; q[3] = (R[3] - R[1]) / s; q[0] = (R[2] + R[6]) / s; q[1] = (R[5] + R[7]) / s


cdef inline void exponential(const double *phi, double *q) noexcept nogil:
    """Quaternion of the rotation vector phi (angle = |phi|)."""
    cdef double angle2 = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    cdef double s, c, k
    if angle2 < 1e-6:
        # series of sin(a/2)/a and cos(a/2): the next terms are below 1e-20
        k = 0.5 - angle2 * (1.0 / 48.0 - angle2 * (1.0 / 3840.0))
        c = 1.0 - angle2 * (0.125 - angle2 * (1.0 / 384.0))
    else:
        k = sqrt(angle2)
        sincos(0.5 * k, &s, &c)
        k = s / k
    q[0] = k * phi[0]; q[1] = k * phi[1]; q[2] = k * phi[2]; q[3] = c


cdef inline void logarithm(const double *q, double *phi) noexcept nogil:
    """Rotation vector of the unit quaternion q, angle |phi| in [0, pi]; inverse of `exponential`, and the same for q and -q."""
    cdef double sign = -1.0 if q[3] < 0.0 else 1.0
    cdef double w = sign * q[3]
    cdef double n2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2]
    cdef double k, u
    if n2 < 1e-4:
        # series of 2 atan(n/w)/n: the next term is below 1e-20
        u = n2 / (w * w)
        k = 2.0 / w * (1.0 - u * (1.0 / 3.0 - u * (0.2 - u * (1.0 / 7.0 - u * (1.0 / 9.0)))))
    else:
        k = sqrt(n2)
        k = 2.0 * atan2(k, w) / k
    k *= sign
    phi[0] = k * q[0]; phi[1] = k * q[1]; phi[2] = k * q[2]


cdef inline void turn(const double *w, double h, double *q) noexcept nogil:
    """q <- exp(h w) q, normalised: a body turns for h seconds at the rate w, in the axes to which q leads."""
    cdef double phi[3]
    cdef double dq[4]
    phi[0] = h * w[0]; phi[1] = h * w[1]; phi[2] = h * w[2]
    exponential(phi, dq)
    multiply(dq, q, q)
    normalize(q)


cdef inline void from_yaw_pitch_roll(double yaw, double pitch, double roll, double *q) noexcept nogil:
    """Angles shown to people [rad]: yaw about Y, then pitch about the new Z, then roll about the new X."""
    cdef double s, c
    cdef double a[4]
    sincos(0.5 * yaw, &s, &c)
    q[0] = 0.0; q[1] = s; q[2] = 0.0; q[3] = c
    sincos(0.5 * pitch, &s, &c)
    a[0] = 0.0; a[1] = 0.0; a[2] = s; a[3] = c
    multiply(q, a, q)
    sincos(0.5 * roll, &s, &c)
    a[0] = s; a[1] = 0.0; a[2] = 0.0; a[3] = c
    multiply(q, a, q)


cdef inline void to_yaw_pitch_roll(const double *q, double *angles) noexcept nogil:
    """Yaw, pitch, roll [rad], inverse of `from_yaw_pitch_roll`; for display only (at pitch = +-90 deg yaw and roll are not separate)."""
    # R = Ry(yaw) Rz(pitch) Rx(roll): first column (cy cp, sp, -sy cp), second row (sp, cp cr, -cp sr)
    cdef double R[9]
    to_matrix(q, R)
    angles[0] = atan2(-R[6], R[0])
    angles[1] = atan2(R[3], sqrt(R[0] * R[0] + R[6] * R[6]))
    angles[2] = atan2(-R[5], R[4])
