"""Rest-to-rest and rest-to-rate profiles with continuous acceleration, on poses, and the two moves made of them: from pose to pose
(minimum jerk) and from a rate to rest. A move is planned once and followed tick by tick into the programmed motion of the sample."""

from libc.math cimport sqrt

from rt_kernels.algebra.sincos cimport atan2
from rt_kernels.algebra.values cimport (Pose, Quat, Twist, Vec3, add, conjugate, mul, norm, pose, pose_of, put_pose, put_twist,
                                        quat_multiply, sub, turned, twist_of, twist_scaled, xyz)
from rt_kernels.guidance.stand_commands_parameters cimport StandParameters
from rt_kernels.sample cimport Sample


cdef struct Move:
    Pose X_from
    Pose X_to
    Twist V_from                # of a stop
    Vec3 turn                   # rotation vector from X_from to X_to
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


cdef inline Pose pose_on_line(Pose X0, Twist V, double u) noexcept nogil:
    """Pose reached from X0 in time u at the constant twist V (position rate and angular rate in the frame that X0 is given in)."""
    return pose_of(add(X0.p, mul(u, V.v)), turned(X0.q, V.w, u))


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline Vec3 rotation_between(Quat q_from, Quat q_to) noexcept nogil:
    """phi with exp(phi) q_from = q_to, angle at most pi."""
    cdef Quat dq = quat_multiply(q_to, conjugate(q_from))
    cdef double sign = -1.0 if dq.w < 0.0 else 1.0
    cdef Vec3 u = mul(sign, xyz(dq.x, dq.y, dq.z))
    cdef double n = norm(u)
    return mul(2.0 if n < 1e-12 else 2.0 * atan2(n, sign * dq.w) / n, u)


cdef inline void plan_move(const StandParameters *limit, Move *m, Pose X_from, Pose X_to, double speed) noexcept nogil:
    """Minimum-jerk move; its duration follows from the limits on rate (peak 1.875/T) and acceleration (peak 5.7735/T^2)."""
    cdef double length = norm(sub(X_to.p, X_from.p)), angle
    m.X_from = X_from
    m.X_to = X_to
    m.turn = rotation_between(X_from.q, X_to.q)
    angle = norm(m.turn)
    m.duration = larger(1.875 * length / speed, 1.875 * angle / limit.turn_max)
    m.duration = larger(m.duration, sqrt(5.7735026918962584 * length / limit.acceleration_max))
    m.duration = larger(m.duration, sqrt(5.7735026918962584 * angle / limit.turn_acceleration_max))
    m.duration = larger(m.duration, 0.1)


cdef inline void follow_move(const Move *m, double t, Sample *o) noexcept nogil:
    """The programmed motion of the sample, t after the start of the move."""
    cdef double x, dx, ddx, T = m.duration
    cdef Vec3 way = sub(m.X_to.p, m.X_from.p)
    quintic(t / T, &x, &dx, &ddx)
    dx /= T
    ddx /= T * T
    put_pose(pose_of(add(m.X_from.p, mul(x, way)), turned(m.X_from.q, m.turn, x)), o.profile_X_TA)
    put_twist(twist_of(mul(dx, way), mul(dx, m.turn)), o.profile_V_TA)
    put_twist(twist_of(mul(ddx, way), mul(ddx, m.turn)), o.profile_A_TA)


cdef inline void plan_stop(const StandParameters *limit, Move *m, Pose X, Twist V) noexcept nogil:
    """Deceleration peaks at 1.5 V/T: T from the limits."""
    m.X_from = X
    m.V_from = V
    m.duration = larger(1.5 * norm(V.v) / limit.acceleration_max, 1.5 * norm(V.w) / limit.turn_acceleration_max)
    m.duration = larger(m.duration, 0.1)


cdef inline void follow_stop(const Move *m, double t, Sample *o) noexcept nogil:
    """From the rate V_from to rest over `duration`: the ramp run backwards."""
    cdef double u, du, ddu, T = m.duration
    ramp(1.0 - t / T, &u, &du, &ddu)
    u = T * (0.5 - u)
    put_pose(pose_on_line(m.X_from, m.V_from, u), o.profile_X_TA)
    put_twist(twist_scaled(du, m.V_from), o.profile_V_TA)
    put_twist(twist_scaled(-ddu / T, m.V_from), o.profile_A_TA)


cdef inline bint reached(const Sample *o, double position_tolerance, double angle_tolerance) noexcept nogil:
    """Does the achieved pose agree with the programmed one?"""
    cdef Pose X = pose(o.X_TA_measured), X_programmed = pose(o.profile_X_TA)
    return (norm(sub(X.p, X_programmed.p)) <= position_tolerance
            and norm(rotation_between(X_programmed.q, X.q)) <= angle_tolerance)
