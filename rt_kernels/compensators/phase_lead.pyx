"""Set-point phase lead: the inverse of drive and delay, taken from the simulated state (hybrid-stability notes 5.4 (1)).

    x_c = x + l1 v + l2 a        l1 = tau + 2 zeta/w      l2 = 1/w^2 + 2 zeta tau/w + tau^2/2

exact to second order for a second-order drive (w, zeta) behind a pure delay tau; v and a come from the integrator, never from
differences of measured values. Order 1 leaves l2 away. All numbers come from the delay ledger; `lead_factor` is for studies of a
wrongly known drive only.
"""

from libc.string cimport memset

import math

from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Parameter


cdef struct Self:
    double l1
    double l2
    double loop_delay


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef int i
    for i in range(6):
        sample.F_T_corrected[i] = sample.F_T[i]
        sample.lead_offset[i] = 0.0
    sample.lead[0] = 1.0
    sample.lead[1] = p.l1
    sample.lead[2] = p.l2
    sample.loop_delay = p.loop_delay
    sample.compensator_status = 0


def lead_coefficients(delays):
    """(l1 [s], l2 [s2]) of a second-order drive behind the ledger's pure delay. delays: dict of the ledger."""
    tau = delays["transport_s"]
    w = 2.0 * math.pi * delays["drive_frequency_hz"] if delays["drive_frequency_hz"] > 0 else math.inf
    zeta = delays["drive_damping"]
    return tau + 2.0 * zeta / w, 1.0 / w**2 + 2.0 * zeta * tau / w + 0.5 * tau**2


cdef class PhaseLead(StagePart):
    """Second-order (or first-order) inverse lead from the simulated state."""

    PARAMETERS = (
        Parameter("order", "int", "-", "1: velocity lead, 2: velocity and acceleration lead", 2, low=1, high=2),
        Parameter("lead_factor", "float", "-", "multiplies both leads: 1 unless the effect of a wrong drive model is studied", 1.0,
                  low=0.0, high=2.0),
    )
    CONTEXT = ("delays",)
    cdef Self c

    def __init__(self, *, delays, order=2, lead_factor=1.0):
        memset(&self.c, 0, sizeof(Self))
        l1, l2 = lead_coefficients(delays)
        self.c.l1 = lead_factor * l1
        self.c.l2 = lead_factor * l2 if order == 2 else 0.0
        self.c.loop_delay = delays["total_s"]
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = NULL
        self.plug.state_size = 0
        self.plug.step = step
