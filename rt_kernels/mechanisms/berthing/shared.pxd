"""What head and pins share. Inline: a few operations for every contact and every axis of the hinge."""

from libc.math cimport sqrt, fabs

from rt_kernels.algebra.values cimport Vec3, Wrench, add, cross, mul


cdef inline void swing_step(double h, double inertia, double stiffness, double damping, double free_angle, double moment, double *w,
                            double *angle) noexcept nogil:
    """One implicit Euler step of a hinge axis: free within `free_angle`, one-sided spring and damper beyond (Yaskevich 2020 (8.4),
    corrected)."""
    cdef double side = 1.0 if angle[0] >= 0.0 else -1.0
    cdef double D0, w_next
    if fabs(angle[0]) <= free_angle:
        w[0] += h * moment / inertia
        angle[0] += h * w[0]
        return
    D0 = 1.0 + (h / inertia) * (damping + h * stiffness)
    w_next = (w[0] + (h / inertia) * (moment - stiffness * (angle[0] - side * free_angle))) / D0
    angle[0] = (angle[0] * (1.0 + h * damping / inertia) + h * (w[0] + (moment + stiffness * side * free_angle) * h / inertia)) / D0
    w[0] = w_next


cdef inline void add_wrench(Vec3 f, Vec3 r, double sign, Wrench *W) noexcept nogil:
    # force sign f at the point r, about the origin
    W.f = add(W.f, mul(sign, f))
    W.m = add(W.m, mul(sign, cross(r, f)))
