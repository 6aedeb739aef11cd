"""Where the platform has to be: the relative pose with its lead, through the mounting, to leg lengths and rates.

    X_cmd = X_TA moved by  l1 V_TA + l2 A_TA + lead_offset           (T axes; rotation by its exponential)
    V_cmd = V_TA + l1 A_TA + lead_offset_rate
    leg_demand = legs of X_cmd + leg_offset

Bumpless: when the source of the motion changes, the step that the command would make becomes an offset, which is taken back by a
minimum-jerk profile over `blend_s`. (A compensator that is switched blends its own leads.)

`crafts_only`: the platform stands where it was when the loop closed, X_cmd = const; a flight of crafts that no stand could follow.
"""

from libc.string cimport memset

from rt_kernels.algebra.values cimport (Pose, Twist, add, pose, pose_of, put_pose, put_twist, sub, turned, twist, twist_of,
                                        twist_scaled, twist_sum, unit_pose)
from rt_kernels.codes cimport MOTION_FREE, MOTION_JOINED
from rt_kernels.guidance.profiles cimport quintic, rotation_between
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.setpoint_kinematics.stewart_parameters cimport StewartSetpointsParameters, fill_stewart_setpoints
from rt_kernels.stewart.mounting cimport Mounting, fill_mounting, platform_pose, platform_twist_of
from rt_kernels.stewart.platform cimport Platform, PlatformParams, place_legs

from rt_kernels.block_check import FLAG, code_range
from rt_kernels.parameters import Parameter, checked


cdef struct Params:
    PlatformParams platform
    Mounting mounting
    double period
    StewartSetpointsParameters keys

cdef struct State:
    Pose X_cmd              # previous command
    Twist V_cmd
    Twist offset            # what remains of a step, as it was when it was taken
    double blend_time
    int motion
    int started

cdef struct Self:
    Params params
    State state


cdef inline Pose moved(Pose X, Twist d) noexcept nogil:
    """X moved by the small motion d = (translation, rotation vector), both in the frame that X is given in."""
    return pose_of(add(X.p, d.v), turned(X.q, d.w, 1.0))


cdef inline Twist motion_between(Pose X_from, Pose X_to) noexcept nogil:
    """d with moved(X_from, d) = X_to."""
    return twist_of(sub(X_to.p, X_from.p), rotation_between(X_from.q, X_to.q))


cdef inline Pose commanded_pose(const Sample *o) noexcept nogil:
    """X_cmd: the pose with the lead of the compensator."""
    cdef Twist lead = twist_sum(twist_scaled(o.lead[1], twist(o.V_TA)), twist_scaled(o.lead[2], twist(o.A_TA)))
    return moved(pose(o.X_TA), twist_sum(lead, twist(o.lead_offset)))


cdef inline Twist commanded_twist(const Sample *o) noexcept nogil:
    """V_cmd."""
    cdef double V[6]
    cdef int i
    for i in range(6):
        V[i] = o.V_TA[i] + o.lead[1] * o.A_TA[i]
        # nothing is added where there is none: a zero keeps its sign
        if o.lead_offset_rate[i] != 0.0:
            V[i] += o.lead_offset_rate[i]
    return twist(V)


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef Pose X = commanded_pose(sample), X_WP
    cdef Twist V = commanded_twist(sample)
    cdef double x, dx, ddx
    cdef double dt = p.period * sample.periods
    cdef int i
    if p.keys.crafts_only and s.started and (sample.motion == MOTION_FREE or sample.motion == MOTION_JOINED):
        X = s.X_cmd
        V = twist_scaled(0.0, V)
    if s.started and s.motion != sample.motion:
        # the old command carried on, against the new one
        s.offset = motion_between(X, moved(s.X_cmd, twist_scaled(dt, s.V_cmd)))
        s.blend_time = 0.0
    s.started = 1
    s.motion = sample.motion
    if s.blend_time < p.keys.blend:
        quintic(s.blend_time / p.keys.blend, &x, &dx, &ddx)
        X = moved(X, twist_scaled(1.0 - x, s.offset))
        V = twist_sum(V, twist_scaled(-(dx / p.keys.blend), s.offset))
        s.blend_time += dt
    s.X_cmd = X
    s.V_cmd = V
    X_WP = platform_pose(&p.mounting, X)
    put_pose(X_WP, sample.X_WP)
    put_twist(platform_twist_of(&p.mounting, X_WP, V), sample.V_WP)
    sample.setpoint_kinematics_status = place_legs(&p.platform, sample.X_WP, sample.V_WP, sample.leg_demand, sample.leg_rate_demand,
                                     &sample.stroke_margin, &sample.condition)
    for i in range(6):
        sample.leg_demand[i] += sample.leg_offset[i]


cdef class StewartSetpoints(StagePart):
    """Relative pose to legs."""

    PARAMETERS = (
        Parameter("blend_s", "float", "s", "a change of the motion's source is blended over this time", 0.3, low=0.001, high=10.0),
        Parameter("crafts_only", "bool", "-", "true: the platform stands still from the closing of the loop on, the crafts fly alone: load "
                  "cases that no stand could follow; nothing of a docking is measured then", False),
    )
    CONTEXT = ("period_s", "platform", "mounting")
    cdef Self c

    def __init__(self, *, period_s, platform, mounting, **given):
        keys = checked(StewartSetpoints.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.c.params.platform = (<Platform?>platform).params
        fill_mounting(&self.c.params.mounting, mounting)
        self.c.params.period = period_s
        fill_stewart_setpoints(&self.c.params.keys, keys)
        self.c.state.blend_time = self.c.params.keys.blend
        self.c.state.X_cmd = unit_pose()
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def state_bounds(self):
        return {"motion": code_range("motion"), "started": FLAG}

    def fields(self):
        return self.c
