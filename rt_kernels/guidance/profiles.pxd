"""Rest-to-rest and rest-to-rate profiles with continuous acceleration, on poses."""

from libc.math cimport sqrt

from rt_kernels.algebra cimport quat, vec3
from rt_kernels.algebra.sincos cimport sincos


cdef inline void quintic(double x, double *s, double *ds, double *dds) noexcept nogil:
    """Minimum-jerk step from 0 to 1 over x in 0...1: s = 10 x^3 - 15 x^4 + 6 x^5; derivatives by x. Peaks: 1.875 and 5.7735."""
    if x <= 0.0:
        s[0] = 0.0; ds[0] = 0.0; dds[0] = 0.0
    elif x >= 1.0:
        s[0] = 1.0; ds[0] = 0.0; dds[0] = 0.0
    else:
        s[0] = x * x * x * (10.0 - x * (15.0 - 6.0 * x))
        ds[0] = 30.0 * x * x * (1.0 - x) * (1.0 - x)
        dds[0] = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x)


cdef inline void ramp(double x, double *u, double *du, double *ddu) noexcept nogil:
    """Integral of the smooth step r(x) = 3 x^2 - 2 x^3: from rest to unit rate over x in 0...1. u(1) = 1/2."""
    if x <= 0.0:
        u[0] = 0.0; du[0] = 0.0; ddu[0] = 0.0
    elif x >= 1.0:
        u[0] = x - 0.5; du[0] = 1.0; ddu[0] = 0.0
    else:
        u[0] = x * x * x * (1.0 - 0.5 * x)
        du[0] = x * x * (3.0 - 2.0 * x)
        ddu[0] = 6.0 * x * (1.0 - x)


cdef inline void pose_on_line(const double *X0, const double *V, double u, double *X) noexcept nogil:
    """Pose reached from X0 in time u at the constant twist V (position rate and angular rate in the frame that X0 is given in)."""
    cdef double phi[3]
    cdef double dq[4]
    vec3.add_scaled(X0, u, V, X)
    vec3.scale(u, V + 3, phi)
    quat.exponential(phi, dq)
    quat.multiply(dq, X0 + 3, X + 3)
    quat.normalize(X + 3)
