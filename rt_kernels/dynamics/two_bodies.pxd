"""Two free rigid spacecraft: structs and the tick for parts that build on it. Equations and frames: two_bodies.pyx.

Inline: copies, one sum of three numbers and the verdict on a state, made once or more a step by every stage of two bodies.
"""

from libc.stdint cimport uint32_t

from rt_kernels.algebra cimport pose, quat, vec3
from rt_kernels.codes cimport DYNAMICS_STATUS_JOINED, DYNAMICS_STATUS_NOT_FINITE, DYNAMICS_STATUS_OUT_OF_RANGE
from rt_kernels.dynamics.orbit cimport Orbit, Reference
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample


cdef struct Vehicle:
    double mass
    double inverse_mass
    double inertia[9]           # about the centre of mass, body axes
    double inverse_inertia[9]
    double X_port[7]            # port in the body frame

cdef struct Params:
    Vehicle active
    Vehicle target
    double period
    double orbital_rate[3]      # N axes
    double range_max            # further apart than this the model is out of its range
    double late                 # share of a tick by which the positions' velocity is older than the new one
    Orbit orbit

cdef struct Body:
    double p[3]                 # centre of mass in N
    double v[3]
    double q[4]
    double L[3]                 # angular momentum about the centre of mass, N axes
    double w[3]                 # angular velocity, N axes
    double p_rest[3]            # what the sums of p, v and L have lost to rounding
    double v_rest[3]
    double L_rest[3]

cdef struct State:
    Body active
    Body target
    double V_TA[6]              # of the previous tick, for the acceleration
    double join_X_TA[7]         # relative pose at the moment of joining
    double join_p[3]            # joined body: centre of mass, its velocity, angular momentum about it
    double join_v[3]
    double join_L[3]
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

cdef inline void accumulate(double h, const double *rate, double *sum, double *rest) noexcept nogil:
    """sum += h rate, with the rounding error of the sum carried along (Kahan): a million ticks keep the momentum to the last digits."""
    cdef int i
    cdef double y, t
    for i in range(3):
        y = h * rate[i] - rest[i]
        t = sum[i] + y
        rest[i] = (t - sum[i]) - y
        sum[i] = t


cdef inline void body_pose(const Body *b, double *X) noexcept nogil:
    vec3.copy(b.p, X)
    quat.copy(b.q, X + 3)


cdef inline void body_twist(const Body *b, double *V) noexcept nogil:
    """Velocity of the centre of mass, angular velocity, both on N axes."""
    vec3.copy(b.v, V)
    vec3.copy(b.w, V + 3)


cdef inline uint32_t verdict(const Sample *o, double energy, double range_max, int joined) noexcept nogil:
    """Bits of `dynamics_status` that every pair of craft has: whether the state is finite (by its energy, J) and within its range (m)."""
    cdef uint32_t status = 0
    if not (energy <= 1e12):
        status |= DYNAMICS_STATUS_NOT_FINITE
    if not (vec3.dot(o.X_TA, o.X_TA) <= range_max * range_max):
        status |= DYNAMICS_STATUS_OUT_OF_RANGE
    if joined:
        status |= DYNAMICS_STATUS_JOINED
    return status


cdef inline void take_motion(Sample *o, const double *X, const double *V) noexcept nogil:
    """The relative motion is the given one: the programmed one, or at the closing of the loop the achieved one."""
    cdef int i
    pose.copy(X, o.X_TA)
    for i in range(6):
        o.V_TA[i] = V[i]


cdef void integrate_body(const Vehicle *vehicle, Body *b, const double *f, const double *m, double h, double late) noexcept nogil
cdef void relative_state(const Params *p, const State *s, double *X_TA, double *V_TA) noexcept nogil
cdef void start_from_relative(const Params *p, State *s, const double *X_TA, const double *V_TA) noexcept nogil
cdef void fill_vehicle(Vehicle *out, name, vehicle)
