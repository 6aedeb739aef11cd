"""Setpoint phase lead: the inverse of drive and delay, taken from the simulated state (hybrid-stability notes 5.4 (1)).

    x_c = x + l1 v + l2 a        l1 = tau + 2 zeta/w      l2 = 1/w^2 + 2 zeta tau/w + tau^2/2

exact to second order for a second-order drive (w, zeta) behind a pure delay tau; v and a come from the integrator, never from
differences of measured values. Order 1 leaves l2 away. All numbers come from the delay ledger; `lead_factor` is for studies of a
wrongly known drive only. Rate and acceleration of the lead are limited (lead.pxd).
"""

from libc.string cimport memset

from rt_kernels.compensation.declarations_parameters cimport tune_lead
from rt_kernels.compensation.lead cimport LeadParams, LeadState, lead_step, set_up_lead
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.platform cimport Platform

from rt_kernels.block_check import FLAG
from rt_kernels.compensation.declarations import LEAD_PARAMETERS, lead_inertia
from rt_kernels.parameters import checked


cdef struct Self:
    LeadParams lead
    double loop_delay
    LeadState state


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef int i
    for i in range(6):
        sample.F_T_corrected[i] = sample.F_T[i]
    sample.loop_delay = p.loop_delay
    sample.compensation_status = lead_step(&p.lead, &p.state, sample)


cdef class PhaseLead(StagePart):
    """Second-order (or first-order) inverse lead from the simulated state."""

    PARAMETERS = LEAD_PARAMETERS
    CONTEXT = ("period_s", "delays", "vehicles", "start", "platform")
    cdef Self c

    def __init__(self, *, period_s, delays, vehicles, start, platform, **given):
        cdef Platform legs = platform
        keys = checked(PhaseLead.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        set_up_lead(&self.c.lead, &self.c.state, keys, period_s, delays, lead_inertia(vehicles, start),
                    (legs.params.rate_max, legs.params.acceleration_max))
        self.c.loop_delay = delays.total_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(LeadState)
        self.plug.step = step
        tune_lead(self, &self.c.lead.keys, keys)
        self.let_tune("lead_rate_max_m_s", &self.c.lead.rate_max, self.c.lead.rate_max)

    def state_bounds(self):
        return {"started": FLAG}

    def fields(self):
        return self.c
