"""Adaptive time series compensation (Chae et al. 2013; hybrid-stability notes 5.4 (3)).

    x_c = a0 x + a1 v + a2 a        a = (Y^T Y)^-1 Y^T u        Y = [y, y', y''], u = command, over the last second

Command u and measured pose y go through the same three first-order low-passes in a row, z1 z2 z3 with the corner w, so that their
relation stays as it is; the derivatives of z3 are then w (z2 - z3) and w^2 (z1 - 2 z2 + z3), without a difference. The translations of
all three axes go into one fit, from the reference pose at which the present motion began.

Old data are forgotten with the time constant `window_s`. The fit is taken over only where the measured rate is above a gate, moves no
faster than its rate limits, and stays within bounds. What it sees is setpoint to measured pose: the delay of the force, which it cannot
see, is added (a1 + t, a2 + a1 t + t^2/2).

A docking contact comes out of quiescence and is short: by default the fit runs in programmed motion, which excites it, and the coefficients
are frozen while the loop is closed (`adapt_in_contact`).
"""

from libc.string cimport memset

import math
from dataclasses import replace

from rt_kernels.algebra.values cimport Pose, Vec3, add, mul, pose, put, sub, vec
from rt_kernels.compensation.adaptive_time_series_parameters cimport (AdaptiveTimeSeriesParameters, fill_adaptive_time_series,
                                                                       tune_adaptive_time_series)
from rt_kernels.compensation.adaptive_time_series_record cimport AdaptiveRecord
from rt_kernels.compensation.lead cimport LeadParams, LeadState, lead_step, set_up_lead
from rt_kernels.codes cimport COMPENSATION_STATUS_ADAPTING, MOTION_FOLLOW_PROFILE
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.mounting cimport Mounting, fill_mounting, relative_pose
from rt_kernels.stewart.platform cimport Platform

from rt_kernels.block_check import FLAG, code_range
from rt_kernels.compensation.adaptive_time_series_record import AUX
from rt_kernels.compensation.declarations import ADAPTIVE_LEAD_PARAMETERS, lead_inertia
from rt_kernels.parameters import Parameter, Tunable, checked


cdef struct Chain:
    Vec3 z1
    Vec3 z2
    Vec3 z3

cdef struct State:
    LeadState lead
    Chain u
    Chain y
    Vec3 origin                 # reference of the pose gain
    Pose command                # relative pose that was commanded, previous tick
    double N[6]                 # Y^T Y, upper triangle
    double b[3]                 # Y^T u
    double a[3]                 # coefficients in use
    int motion
    int ticks                   # since the motion changed, up to 2

cdef struct Self:
    AdaptiveTimeSeriesParameters keys
    LeadParams lead             # l1 and l2 change
    Mounting mounting
    double corner               # rad/s
    double keep                 # low-pass over one tick
    double forget
    double low[3]
    double high[3]
    double extra                # delay that the fit does not see
    double loop_delay
    State state


cdef inline Vec3 nearer(Vec3 z, Vec3 x, double keep) noexcept nogil:
    return add(z, mul(keep, sub(x, z)))


cdef inline void pass_chain(Chain *c, double keep, Vec3 x) noexcept nogil:
    c.z1 = nearer(c.z1, x, keep)
    c.z2 = nearer(c.z2, c.z1, keep)
    c.z3 = nearer(c.z3, c.z2, keep)


cdef inline void settle(Chain *c, Vec3 x) noexcept nogil:
    c.z1 = c.z2 = c.z3 = x


cdef inline double collect(State *s, double corner, double z1, double z2, double z3, double u) noexcept nogil:
    """Adds one component to the sums of the fit. Returns the square of its measured rate."""
    cdef double y = z3, dy = corner * (z2 - z3), ddy = corner * corner * (z1 - 2.0 * z2 + z3)
    s.N[0] += y * y; s.N[1] += y * dy; s.N[2] += y * ddy
    s.N[3] += dy * dy; s.N[4] += dy * ddy; s.N[5] += ddy * ddy
    s.b[0] += y * u; s.b[1] += dy * u; s.b[2] += ddy * u
    return dy * dy


cdef bint solve(const double *N, const double *b, double *x) noexcept nogil:
    """x = N^-1 b, N symmetric (upper triangle 00 01 02 11 12 22), scaled by its diagonal. False: not enough excitation."""
    cdef double s0, s1, s2, n01, n02, n12, d, c00, c01, c02, c11, c12, c22, b0, b1, b2
    if not (N[0] > 0.0 and N[3] > 0.0 and N[5] > 0.0):
        return False
    s0 = 1.0 / N[0]; s1 = 1.0 / N[3]; s2 = 1.0 / N[5]
    # unit diagonal: determinant between 0 (collinear) and 1
    n01 = N[1] * N[1] * s0 * s1
    n02 = N[2] * N[2] * s0 * s2
    n12 = N[4] * N[4] * s1 * s2
    d = 1.0 - n01 - n02 - n12 + 2.0 * N[1] * N[2] * N[4] * s0 * s1 * s2
    if not (d > 1e-4):
        return False
    d *= N[0] * N[3] * N[5]
    c00 = N[3] * N[5] - N[4] * N[4]; c01 = N[2] * N[4] - N[1] * N[5]; c02 = N[1] * N[4] - N[2] * N[3]
    c11 = N[0] * N[5] - N[2] * N[2]; c12 = N[1] * N[2] - N[0] * N[4]; c22 = N[0] * N[3] - N[1] * N[1]
    b0 = b[0]; b1 = b[1]; b2 = b[2]
    x[0] = (c00 * b0 + c01 * b1 + c02 * b2) / d
    x[1] = (c01 * b0 + c11 * b1 + c12 * b2) / d
    x[2] = (c02 * b0 + c12 * b1 + c22 * b2) / d
    return True


cdef bint adapt(Self *p, State *s, const Sample *o) noexcept nogil:
    """One tick of the fit. True when the coefficients were taken over."""
    cdef double fit[3]
    cdef double speed, most
    cdef double dt = p.lead.period * o.periods
    cdef int i
    pass_chain(&s.u, p.keep, sub(s.command.p, s.origin))
    pass_chain(&s.y, p.keep, sub(vec(o.X_TA_measured), s.origin))
    for i in range(6):
        s.N[i] *= p.forget
    for i in range(3):
        s.b[i] *= p.forget
    speed = collect(s, p.corner, s.y.z1.x, s.y.z2.x, s.y.z3.x, s.u.z3.x)
    speed += collect(s, p.corner, s.y.z1.y, s.y.z2.y, s.y.z3.y, s.u.z3.y)
    speed += collect(s, p.corner, s.y.z1.z, s.y.z2.z, s.y.z3.z, s.u.z3.z)
    if speed < p.keys.gate * p.keys.gate or (o.motion != MOTION_FOLLOW_PROFILE and not p.keys.adapt_in_contact) or \
            not solve(s.N, s.b, fit):
        return False
    # the chain's first derivative is half a tick old: y'(t - h/2) = y' - h/2 y''
    fit[2] -= 0.5 * p.lead.period * fit[1]
    for i in range(3):
        most = p.keys.rates[i] * dt
        fit[i] = s.a[i] + (most if fit[i] - s.a[i] > most else (-most if fit[i] - s.a[i] < -most else fit[i] - s.a[i]))
        s.a[i] = p.low[i] if fit[i] < p.low[i] else (p.high[i] if fit[i] > p.high[i] else fit[i])
    return True


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef State *s = &p.state
    cdef double command[7]
    cdef double d
    cdef int i
    cdef bint running = False
    for i in range(6):
        sample.F_T_corrected[i] = sample.F_T[i]
    if sample.forward_kinematics_status == 0:
        # what was commanded at the end of the previous tick, with everything that the setpoint kinematics did to it
        relative_pose(&p.mounting, sample.X_WP, command)
        s.command = pose(command)
        if sample.motion != s.motion or s.ticks < 2:
            # a new motion: the fit starts from here, with filters that have settled on where things are
            s.ticks = s.ticks + 1 if sample.motion == s.motion else 0
            s.motion = sample.motion
            s.origin = vec(sample.X_TA_measured)
            settle(&s.u, sub(s.command.p, s.origin))
            settle(&s.y, sub(vec(sample.X_TA_measured), s.origin))
            memset(s.N, 0, sizeof(s.N))
            memset(s.b, 0, sizeof(s.b))
        else:
            running = adapt(p, s, sample)
    d = p.extra
    p.lead.l1 = s.a[1] + s.a[0] * d
    p.lead.l2 = s.a[2] + s.a[1] * d + 0.5 * s.a[0] * d * d
    sample.loop_delay = p.loop_delay
    sample.compensation_status = lead_step(&p.lead, &s.lead, sample)
    sample.lead[0] = s.a[0]
    put(add(vec(sample.lead_offset), mul(s.a[0] - 1.0, sub(vec(sample.X_TA), s.origin))), sample.lead_offset)
    if running:
        sample.compensation_status |= COMPENSATION_STATUS_ADAPTING
    for i in range(3):
        (<AdaptiveRecord *>aux).adaptive_lead[i] = s.a[i]


cdef class AdaptiveTimeSeries(StagePart):
    """Adaptive lead from the simulated state."""

    PARAMETERS = ADAPTIVE_LEAD_PARAMETERS + (
        Parameter("window_s", "float", "s", "old data are forgotten with this time constant", 1.0, low=0.05, high=60.0),
        Parameter("corner_hz", "float", "Hz", "low-pass of command and measured pose before the fit", 20.0, low=0.5, high=200.0),
        Parameter("gate_m_s", "float", "m/s", "no adaptation below this measured rate", 0.002, low=0.0, high=1.0,
                  tunable=Tunable(0.01, low=1e-4)),
        Parameter("gain_bounds", "floats", "-", "bounds of the pose gain a0", (0.7, 1.3), shape=2, low=0.0, high=10.0),
        Parameter("lead_bounds", "floats", "-", "bounds of a1 and a2 against what the ledger says", (0.5, 2.0), shape=2, low=0.0,
                  high=10.0),
        Parameter("rates", "floats", "1/s, -, s", "largest change a second of a0, a1, a2", (2.0, 0.05, 0.001), shape=3, low=0.0),
        Parameter("adapt_in_contact", "bool", "-", "continues to adapt while the loop is closed", False),
    )
    AUX = AUX
    CONTEXT = ("period_s", "delays", "vehicles", "start", "platform", "mounting")
    cdef Self c

    def __init__(self, *, period_s, delays, vehicles, start, platform, mounting, **given):
        cdef Platform legs = platform
        cdef int i
        keys = checked(AdaptiveTimeSeries.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        fill_adaptive_time_series(&self.c.keys, keys)
        # the fit sees the loop from the command to the measured pose; the force delay stands outside of it
        outside = delays.sensor_delay_s - delays.measured_leg_delay_s
        # one pair of coefficients for all directions: matrices of the ledger would stand in the way of what is learnt
        seen = replace(delays, transport_s=delays.transport_s - outside, lead_rate=None, lead_acceleration=None)
        set_up_lead(&self.c.lead, &self.c.state.lead, keys, period_s, seen, lead_inertia(vehicles, start),
                    (legs.params.rate_max, legs.params.acceleration_max))
        # the fit starts from leads that have the factor in them, and then moves them itself
        self.c.lead.l1 *= self.c.lead.keys.lead_factor
        self.c.lead.l2 *= self.c.lead.keys.lead_factor
        self.c.lead.keys.lead_factor = 1.0
        fill_mounting(&self.c.mounting, mounting)
        self.c.extra = outside
        self.c.corner = 2.0 * math.pi * self.c.keys.corner
        self.c.keep = 1.0 - math.exp(-self.c.corner * period_s)
        # derivative of the discrete chain: z' = (keep / Ts)(...) is what one tick really moves
        self.c.corner = self.c.keep / (1.0 - self.c.keep) / period_s
        self.c.forget = math.exp(-period_s / self.c.keys.window)
        nominal = (1.0, self.c.lead.l1, self.c.lead.l2)
        for i in range(3):
            self.c.state.a[i] = nominal[i]
            bounds = keys["lead_bounds"] if i else keys["gain_bounds"]
            self.c.low[i], self.c.high[i] = sorted((bounds[0] * nominal[i], bounds[1] * nominal[i]))
        self.c.loop_delay = delays.total_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        self.let_tune("lead_rate_max_m_s", &self.c.lead.rate_max, self.c.lead.rate_max)
        tune_adaptive_time_series(self, &self.c.keys, keys)

    def state_bounds(self):
        return {"lead.started": FLAG, "motion": (-1, code_range("motion")[1]), "ticks": (0, 2)}

    def fields(self):
        return self.c
