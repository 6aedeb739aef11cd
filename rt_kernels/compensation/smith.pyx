"""Smith predictor on the force (Li et al. 2026; hybrid-stability notes 5.4 (6)).

    F_lead  = (1 + T s) F_m
    F_smith = [1 + (1 - e^{-Ts}) (1 + T s)] F_m        1 - e^{-Ts} taken as T s / (1 + T s/2)
    F       = (F_lead + F_smith) / 2

With z = T s the mean is 3/2 z + 1/(1 + z/2): a difference of the measured force, and a low-pass of it with the time constant T/2. It
is linear and always on: what the low-pass still holds at the end of a contact belongs to that contact. It needs neither the drive nor
the contact, only the total delay; it differentiates the force, so noise comes out amplified (its mean does not: the sum of the
differences of noise is noise).
"""

from libc.string cimport memset

import math

from rt_kernels.codes cimport COMPENSATION_STATUS_GATE_OPEN
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked


cdef struct State:
    double F[6]                 # of the previous tick
    double low[6]
    int started
    int unused

cdef struct Self:
    double delay                # T, s
    double period
    double keep                 # of the low-pass, exact for a straight line between the samples
    double slope
    double loop_delay
    State state


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef State *s = &p.state
    cdef double F, change
    cdef int i
    for i in range(6):
        F = sample.F_T[i]
        if not s.started:
            s.F[i] = F
            s.low[i] = F
        change = F - s.F[i]
        # low-pass of the ramp from the previous sample to this one
        s.low[i] = p.keep * (s.low[i] - s.F[i] + p.slope * change) + F - p.slope * change
        sample.F_T_corrected[i] = 1.5 * p.delay / p.period * change + s.low[i]
        sample.lead_offset[i] = 0.0
        s.F[i] = F
    s.started = 1
    sample.lead[0] = 1.0
    sample.lead[1] = 0.0
    sample.lead[2] = 0.0
    sample.loop_delay = p.loop_delay
    sample.compensation_status = COMPENSATION_STATUS_GATE_OPEN if sample.contact else 0


cdef class SmithPredictor(StagePart):
    """Force prediction over the loop's delay, no lead."""

    PARAMETERS = (
        Parameter("lead_factor", "float", "-", "multiplies the delay: 1 unless the effect of a wrong delay is studied", 1.0,
                  low=0.0, high=2.0),
    )
    CONTEXT = ("period_s", "delays")
    cdef Self c

    def __init__(self, *, period_s, delays, **given):
        keys = checked(SmithPredictor.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        T = max(delays.total_s * keys["lead_factor"], 1e-9)
        self.c.delay, self.c.period, self.c.loop_delay = T, period_s, delays.total_s
        # y' = 2 (F - y)/T over one tick with F = F0 + dF t/Ts: y1 = F1 - a dF + e^{-Ts 2/T} (y0 - F0 + a dF), a = T/(2 Ts)
        self.c.keep = math.exp(-2.0 * period_s / T)
        self.c.slope = 0.5 * T / period_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def state_bounds(self):
        return {"started": FLAG}

    def fields(self):
        return self.c
