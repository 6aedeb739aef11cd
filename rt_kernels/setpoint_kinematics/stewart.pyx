"""Where the platform has to be: the relative pose with its lead, through the mounting, to leg lengths and rates.

    X_cmd = X_TA moved by  l1 V_TA + l2 A_TA + lead_offset           (T axes; rotation by its exponential)
    V_cmd = V_TA + l1 A_TA + lead_offset_rate
    leg_demand = legs of X_cmd + leg_offset

Bumpless: when the source of the motion changes, the step that the command would make becomes an offset, which is taken back by a
minimum-jerk profile over `blend_s`. (A compensator that is switched blends its own leads.)
"""

from libc.string cimport memset

from rt_kernels.algebra cimport pose, quat, vec3
from rt_kernels.algebra.sincos cimport atan2
from rt_kernels.guidance.profiles cimport quintic
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.mounting cimport Mounting, fill_mounting, platform_pose, platform_twist_of
from rt_kernels.stewart.platform cimport Platform, PlatformParams, place_legs

from rt_kernels.block_check import FLAG, code_range
from rt_kernels.parameters import Parameter, checked


cdef struct Params:
    PlatformParams platform
    Mounting mounting
    double period
    double blend

cdef struct State:
    double X_cmd[7]         # previous command
    double V_cmd[6]
    double offset[6]        # what remains of a step, as it was when it was taken
    double blend_time
    int motion
    int started

cdef struct Self:
    Params params
    State state


cdef inline void move_pose(const double *X, const double *d, double *out) noexcept nogil:
    """X moved by the small motion d = (translation, rotation vector), both in the frame that X is given in."""
    cdef double dq[4]
    vec3.add(X, d, out)
    quat.exponential(d + 3, dq)
    quat.multiply(dq, X + 3, out + 3)
    quat.normalize(out + 3)


cdef inline void motion_between(const double *X_from, const double *X_to, double *d) noexcept nogil:
    """d with move_pose(X_from, d) = X_to."""
    cdef double inverse[4]
    cdef double dq[4]
    cdef double n, k
    vec3.sub(X_to, X_from, d)
    quat.conjugate(X_from + 3, inverse)
    quat.multiply(X_to + 3, inverse, dq)
    n = vec3.norm(dq)
    if dq[3] < 0.0:
        dq[0] = -dq[0]; dq[1] = -dq[1]; dq[2] = -dq[2]; dq[3] = -dq[3]
    k = 2.0 if n < 1e-12 else 2.0 * atan2(n, dq[3]) / n
    vec3.scale(k, dq, d + 3)


cdef void command(const Sample *o, double *X, double *V) noexcept nogil:
    """Pose and twist with the lead of the compensator."""
    cdef double d[6]
    cdef int i
    for i in range(6):
        d[i] = o.lead[1] * o.V_TA[i] + o.lead[2] * o.A_TA[i] + o.lead_offset[i]
        V[i] = o.V_TA[i] + o.lead[1] * o.A_TA[i]
        # nothing is added where there is none: a zero keeps its sign
        if o.lead_offset_rate[i] != 0.0:
            V[i] += o.lead_offset_rate[i]
    move_pose(o.X_TA, d, X)


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double X[7]
    cdef double V[6]
    cdef double expected[7]
    cdef double d[6]
    cdef double x, dx, ddx
    cdef double dt = p.period * sample.periods
    cdef int i
    command(sample, X, V)
    if s.started and s.motion != sample.motion:
        # the old command carried on, against the new one
        for i in range(6):
            d[i] = dt * s.V_cmd[i]
        move_pose(s.X_cmd, d, expected)
        motion_between(X, expected, s.offset)
        s.blend_time = 0.0
    s.started = 1
    s.motion = sample.motion
    if s.blend_time < p.blend:
        quintic(s.blend_time / p.blend, &x, &dx, &ddx)
        for i in range(6):
            d[i] = (1.0 - x) * s.offset[i]
            V[i] -= dx / p.blend * s.offset[i]
        move_pose(X, d, X)
        s.blend_time += dt
    pose.copy(X, s.X_cmd)
    for i in range(6):
        s.V_cmd[i] = V[i]
    platform_pose(&p.mounting, X, sample.X_WP)
    platform_twist_of(&p.mounting, sample.X_WP, X, V, sample.V_WP)
    sample.setpoint_kinematics_status = place_legs(&p.platform, sample.X_WP, sample.V_WP, sample.leg_demand, sample.leg_rate_demand,
                                     &sample.stroke_margin, &sample.condition)
    for i in range(6):
        sample.leg_demand[i] += sample.leg_offset[i]


cdef class StewartSetpoints(StagePart):
    """Relative pose to legs."""

    PARAMETERS = (
        Parameter("blend_s", "float", "s", "a change of the motion's source is blended over this time", 0.3, low=0.001, high=10.0),
    )
    CONTEXT = ("period_s", "platform", "mounting")
    cdef Self c

    def __init__(self, *, period_s, platform, mounting, **given):
        keys = checked(StewartSetpoints.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.c.params.platform = (<Platform?>platform).params
        fill_mounting(&self.c.params.mounting, mounting)
        self.c.params.period = period_s
        self.c.params.blend = keys["blend_s"]
        self.c.state.blend_time = keys["blend_s"]
        pose.identity(self.c.state.X_cmd)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def state_bounds(self):
        return {"motion": code_range("motion"), "started": FLAG}

    def fields(self):
        return self.c
