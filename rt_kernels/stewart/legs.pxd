"""The six legs at a pose: vectors, rates, accelerations, inline. Equations (1)-(3) of `platform.pyx`.

Leg by leg in memory, so that plain SSE2 takes two legs at a time.
"""

from libc.math cimport sqrt

from rt_kernels.algebra.values cimport Mat3, Pose, pose, to_matrix
from rt_kernels.stewart.platform cimport PlatformParams


# Legs at a pose: r_i, d_i first and u_i then, moments r_i x u_i.
cdef struct Legs:
    double rx[6]
    double ry[6]
    double rz[6]
    double ux[6]
    double uy[6]
    double uz[6]
    double tx[6]
    double ty[6]
    double tz[6]
    double length[6]


cdef inline void leg_vectors(const PlatformParams *params, const double *X_WP, Legs *legs) noexcept nogil:
    # r_i and d_i of (1); d_i lies in u
    cdef Pose X = pose(X_WP)
    cdef Mat3 R = to_matrix(X.q)
    cdef int i
    for i in range(6):
        legs.rx[i] = R.xx * params.joint_x[i] + R.xy * params.joint_y[i] + R.xz * params.joint_z[i]
        legs.ry[i] = R.yx * params.joint_x[i] + R.yy * params.joint_y[i] + R.yz * params.joint_z[i]
        legs.rz[i] = R.zx * params.joint_x[i] + R.zy * params.joint_y[i] + R.zz * params.joint_z[i]
        legs.ux[i] = X.p.x + (legs.rx[i] - params.base_x[i])
        legs.uy[i] = X.p.y + (legs.ry[i] - params.base_y[i])
        legs.uz[i] = X.p.z + (legs.rz[i] - params.base_z[i])


cdef inline void unit_vectors(Legs *legs) noexcept nogil:
    # l_i and u_i of (1)
    cdef double inverse
    cdef int i
    for i in range(6):
        legs.length[i] = sqrt(legs.ux[i] * legs.ux[i] + legs.uy[i] * legs.uy[i] + legs.uz[i] * legs.uz[i])
        inverse = 1.0 / legs.length[i]
        legs.ux[i] *= inverse
        legs.uy[i] *= inverse
        legs.uz[i] *= inverse


cdef inline void moments(Legs *legs) noexcept nogil:
    # r_i x u_i
    cdef int i
    for i in range(6):
        legs.tx[i] = legs.ry[i] * legs.uz[i] - legs.rz[i] * legs.uy[i]
        legs.ty[i] = legs.rz[i] * legs.ux[i] - legs.rx[i] * legs.uz[i]
        legs.tz[i] = legs.rx[i] * legs.uy[i] - legs.ry[i] * legs.ux[i]


cdef inline void all_legs(const PlatformParams *params, const double *X_WP, Legs *legs) noexcept nogil:
    leg_vectors(params, X_WP, legs)
    unit_vectors(legs)
    moments(legs)


cdef inline void apply_jacobian(const Legs *legs, const double *V, double *out) noexcept nogil:
    # J V, (2)
    cdef int i
    for i in range(6):
        out[i] = (legs.ux[i] * V[0] + legs.uy[i] * V[1] + legs.uz[i] * V[2]
                  + (legs.tx[i] * V[3] + legs.ty[i] * V[4] + legs.tz[i] * V[5]))


cdef inline void bias_accelerations(const Legs *legs, const double *V, const double *rates, double *out) noexcept nogil:
    # terms of (3) that do not contain A
    cdef double vx, vy, vz, wr, ww = V[3] * V[3] + V[4] * V[4] + V[5] * V[5]
    cdef int i
    for i in range(6):
        # velocity of the platform joint
        vx = V[0] + (V[4] * legs.rz[i] - V[5] * legs.ry[i])
        vy = V[1] + (V[5] * legs.rx[i] - V[3] * legs.rz[i])
        vz = V[2] + (V[3] * legs.ry[i] - V[4] * legs.rx[i])
        # w x (w x r) = w (w . r) - r (w . w)
        wr = V[3] * legs.rx[i] + V[4] * legs.ry[i] + V[5] * legs.rz[i]
        out[i] = (wr * (V[3] * legs.ux[i] + V[4] * legs.uy[i] + V[5] * legs.uz[i])
                  - ww * (legs.rx[i] * legs.ux[i] + legs.ry[i] * legs.uy[i] + legs.rz[i] * legs.uz[i])
                  + (vx * vx + vy * vy + vz * vz - rates[i] * rates[i]) / legs.length[i])


cdef inline double sum_of_products(const double *a, const double *b) noexcept nogil:
    # over the six legs, even and odd legs apart: one two-lane sum
    return (a[0] * b[0] + a[2] * b[2] + a[4] * b[4]) + (a[1] * b[1] + a[3] * b[3] + a[5] * b[5])
