"""Hatch cover: the compliance under the mechanism in stand tests (Yaskevich 2020, 6.1.6), for the correlation with them only.

    m v' = f - c v - Q(x)      by implicit Euler with the linear segment of the hysteresis curve frozen over the step
"""

from rt_kernels.mechanisms.common.hysteresis cimport curve_value, hysteresis_step
from rt_kernels.mechanisms.probe_cone.model cimport State, Unit


cdef inline void implicit_step(double h, double m, double k, double c, double net, double *v, double *x) noexcept nogil:
    """m v' = net - c v - k (x - x_now) by implicit Euler: D0 = 1 + (c + h k) h/m, v+ = (v + net h/m)/D0, x+ = x + h v+."""
    v[0] = (v[0] + net * h / m) / (1.0 + (c + h * k) * h / m)
    x[0] += h * v[0]


cdef void cover_step(Unit *u, double force, double h) noexcept nogil:
    """One sub-step of the cover; `force` the mechanism exerts on its base along X_A."""
    cdef State *s = &u.state
    cdef double k = u.cover.slope_max, up, lo, Q
    # stiffness of the segment in the direction of motion
    up = curve_value(&u.cover.up, s.cover_x + 1e-7) - s.cover.Q
    lo = s.cover.Q - curve_value(&u.cover.lo, s.cover_x - 1e-7)
    if s.cover_v > 0.0 and up < 1e-7 * k:
        k = up / 1e-7
    elif s.cover_v < 0.0 and lo < 1e-7 * k:
        k = lo / 1e-7
    if k < 0.0:
        k = 0.0
    implicit_step(h, u.cover_mass, k, u.cover_damping, force - s.cover.Q, &s.cover_v, &s.cover_x)
    Q = hysteresis_step(&u.cover, &s.cover, s.cover_x)
    s.cover_force = Q + u.cover_damping * s.cover_v


def implicit_euler(double h, double m, double k, double c, double net, double v, double x):
    """(v+, x+) of the implicit step, for tests: `net` is the outer force less the spring's present force, N."""
    implicit_step(h, m, k, c, net, &v, &x)
    return v, x
