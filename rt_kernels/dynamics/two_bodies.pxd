"""Two free rigid spacecraft: structs and the tick for parts that build on it. Equations and frames: two_bodies.pyx.

Inline: copies, one sum of three numbers and the verdict on a state, made once or more a step by every stage of two bodies.
"""

from libc.stdint cimport uint32_t

from rt_kernels.algebra.values cimport (Pose, Quat, Twist, Vec3, add, cross, dot, mul, pose, pose_of, put_pose, put_twist,
                                        rotate_back, sub, twist, twist_of, vec)
from rt_kernels.codes cimport DYNAMICS_STATUS_JOINED, DYNAMICS_STATUS_NOT_FINITE, DYNAMICS_STATUS_OUT_OF_RANGE
from rt_kernels.dynamics.orbit cimport Orbit, Reference
from rt_kernels.dynamics.two_bodies_parameters cimport TwoBodiesParameters
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample


cdef struct Vehicle:
    double mass
    double inverse_mass
    double inertia[9]           # about the centre of mass, body axes
    double inverse_inertia[9]
    Pose X_port                 # port in the body frame

cdef struct Params:
    TwoBodiesParameters keys
    Vehicle active
    Vehicle target
    double period
    Vec3 orbital_rate           # N axes
    double late                 # share of a tick by which the positions' velocity is older than the new one
    Orbit orbit

cdef struct Body:
    Vec3 p                      # centre of mass in N
    Vec3 v
    Quat q
    Vec3 L                      # angular momentum about the centre of mass, N axes
    Vec3 w                      # angular velocity, N axes
    Vec3 p_rest                 # what the sums of p, v and L have lost to rounding
    Vec3 v_rest
    Vec3 L_rest

cdef struct State:
    Body active
    Body target
    double V_TA[6]              # of the previous tick, for the acceleration
    Pose join_X_TA              # relative pose at the moment of joining
    Vec3 join_p                 # joined body: centre of mass, its velocity, angular momentum about it
    Vec3 join_v
    Vec3 join_L
    Reference reference         # where the origin of N is on its orbit
    int joined
    int unused

cdef struct Self:
    Params params
    State state


cdef void advance(const Params *p, State *s, Sample *sample, const double *F_T) noexcept nogil
cdef void report(const Params *p, const State *s, Sample *sample) noexcept nogil


cdef class TwoBodies(StagePart):
    cdef Self c

cdef inline void accumulate(double h, Vec3 rate, Vec3 *total, Vec3 *rest) noexcept nogil:
    """total += h rate, with the rounding error of the sum carried along (Kahan): a million ticks keep the momentum to the last digits."""
    cdef Vec3 change = sub(mul(h, rate), rest[0])
    cdef Vec3 sum = add(total[0], change)
    rest[0] = sub(sub(sum, total[0]), change)
    total[0] = sum


cdef inline Pose body_pose(const Body *b) noexcept nogil:
    return pose_of(b.p, b.q)


cdef inline Twist body_twist(const Body *b) noexcept nogil:
    """Velocity of the centre of mass, angular velocity, both on N axes."""
    return twist_of(b.v, b.w)


cdef inline Twist relative_twist(Pose X_NT, Twist V_NT, Pose X_NA, Twist V_NA) noexcept nogil:
    """Twist of A in T, T axes, from the motion of both in N: d/dt p_TA = R_TN (v_A - v_T - w_T x p_TA_N), w_TA = R_TN (w_A - w_T)."""
    cdef Vec3 v = sub(sub(V_NA.v, V_NT.v), cross(V_NT.w, sub(X_NA.p, X_NT.p)))
    return twist_of(rotate_back(X_NT.q, v), rotate_back(X_NT.q, sub(V_NA.w, V_NT.w)))


cdef inline uint32_t verdict(const Sample *o, double energy, double range_max, int joined) noexcept nogil:
    """Bits of `dynamics_status` that every pair of craft has: whether the state is finite (by its energy, J) and within its range (m)."""
    cdef uint32_t status = 0
    if not (energy <= 1e12):
        status |= DYNAMICS_STATUS_NOT_FINITE
    if not (dot(vec(o.X_TA), vec(o.X_TA)) <= range_max * range_max):
        status |= DYNAMICS_STATUS_OUT_OF_RANGE
    if joined:
        status |= DYNAMICS_STATUS_JOINED
    return status


cdef inline void take_motion(Sample *o, const double *X, const double *V) noexcept nogil:
    """The relative motion is the given one: the programmed one, or at the closing of the loop the achieved one."""
    put_pose(pose(X), o.X_TA)
    put_twist(twist(V), o.V_TA)


cdef void integrate_body(const Vehicle *vehicle, Body *b, const Vec3 *f, const Vec3 *m, double h, double late) noexcept nogil
cdef void relative_state(const Params *p, const State *s, double *X_TA, double *V_TA) noexcept nogil
cdef void start_from_relative(const Params *p, State *s, const double *X_TA, const double *V_TA) noexcept nogil
cdef void fill_vehicle(Vehicle *out, name, vehicle)
