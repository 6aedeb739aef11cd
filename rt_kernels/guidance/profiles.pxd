"""Rest-to-rest and rest-to-rate profiles with continuous acceleration, on poses, and the two moves made of them: from pose to pose
(minimum jerk) and from a rate to rest. A move is planned once and followed tick by tick into the programmed motion of the sample."""

from libc.math cimport sqrt

from rt_kernels.algebra cimport pose, quat, vec3
from rt_kernels.algebra.sincos cimport atan2
from rt_kernels.sample cimport Sample


cdef struct MoveLimits:
    double speed                # programme mode, m/s and rad/s
    double turn
    double acceleration         # m/s2, rad/s2
    double turn_acceleration


cdef struct Move:
    double X_from[7]
    double X_to[7]
    double V_from[6]            # of a stop
    double turn[3]              # rotation vector from X_from to X_to
    double duration


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


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline void rotation_between(const double *q_from, const double *q_to, double *phi) noexcept nogil:
    """phi with exp(phi) q_from = q_to, angle at most pi."""
    cdef double inverse[4]
    cdef double dq[4]
    cdef double n, k
    quat.conjugate(q_from, inverse)
    quat.multiply(q_to, inverse, dq)
    if dq[3] < 0.0:
        dq[0] = -dq[0]; dq[1] = -dq[1]; dq[2] = -dq[2]; dq[3] = -dq[3]
    n = vec3.norm(dq)
    k = 2.0 if n < 1e-12 else 2.0 * atan2(n, dq[3]) / n
    vec3.scale(k, dq, phi)


cdef inline void plan_move(const MoveLimits *limit, Move *m, const double *X_from, const double *X_to, double speed) noexcept nogil:
    """Minimum-jerk move; its duration follows from the limits on rate (peak 1.875/T) and acceleration (peak 5.7735/T^2)."""
    cdef double d[3]
    cdef double length, angle
    pose.copy(X_from, m.X_from)
    pose.copy(X_to, m.X_to)
    vec3.sub(X_to, X_from, d)
    rotation_between(X_from + 3, X_to + 3, m.turn)
    length = vec3.norm(d)
    angle = vec3.norm(m.turn)
    m.duration = larger(1.875 * length / speed, 1.875 * angle / limit.turn)
    m.duration = larger(m.duration, sqrt(5.7735026918962584 * length / limit.acceleration))
    m.duration = larger(m.duration, sqrt(5.7735026918962584 * angle / limit.turn_acceleration))
    m.duration = larger(m.duration, 0.1)


cdef inline void follow_move(const Move *m, double t, Sample *o) noexcept nogil:
    """The programmed motion of the sample, t after the start of the move."""
    cdef double x, dx, ddx
    cdef double phi[3]
    cdef double dq[4]
    cdef double T = m.duration
    cdef int i
    quintic(t / T, &x, &dx, &ddx)
    dx /= T
    ddx /= T * T
    for i in range(3):
        o.profile_X_TA[i] = m.X_from[i] + x * (m.X_to[i] - m.X_from[i])
        o.profile_V_TA[i] = dx * (m.X_to[i] - m.X_from[i])
        o.profile_A_TA[i] = ddx * (m.X_to[i] - m.X_from[i])
        o.profile_V_TA[3 + i] = dx * m.turn[i]
        o.profile_A_TA[3 + i] = ddx * m.turn[i]
    vec3.scale(x, m.turn, phi)
    quat.exponential(phi, dq)
    quat.multiply(dq, m.X_from + 3, o.profile_X_TA + 3)
    quat.normalize(o.profile_X_TA + 3)


cdef inline void plan_stop(const MoveLimits *limit, Move *m, const double *X, const double *V) noexcept nogil:
    """Deceleration peaks at 1.5 V/T: T from the limits."""
    cdef int i
    pose.copy(X, m.X_from)
    for i in range(6):
        m.V_from[i] = V[i]
    m.duration = larger(1.5 * vec3.norm(V) / limit.acceleration, 1.5 * vec3.norm(V + 3) / limit.turn_acceleration)
    m.duration = larger(m.duration, 0.1)


cdef inline void follow_stop(const Move *m, double t, Sample *o) noexcept nogil:
    """From the rate V_from to rest over `duration`: the ramp run backwards."""
    cdef double u, du, ddu
    cdef double T = m.duration
    cdef int i
    ramp(1.0 - t / T, &u, &du, &ddu)
    u = T * (0.5 - u)
    pose_on_line(m.X_from, m.V_from, u, o.profile_X_TA)
    for i in range(6):
        o.profile_V_TA[i] = du * m.V_from[i]
        o.profile_A_TA[i] = -ddu / T * m.V_from[i]


cdef inline bint reached(const Sample *o, double position_tolerance, double angle_tolerance) noexcept nogil:
    """Does the achieved pose agree with the programmed one?"""
    cdef double d[3]
    cdef double phi[3]
    vec3.sub(o.X_TA_measured, o.profile_X_TA, d)
    rotation_between(o.profile_X_TA + 3, o.X_TA_measured + 3, phi)
    return vec3.norm(d) <= position_tolerance and vec3.norm(phi) <= angle_tolerance
