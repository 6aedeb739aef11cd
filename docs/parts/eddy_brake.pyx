"""Two free rigid spacecraft (rt_kernels.dynamics.two_bodies) with an eddy-current brake between their ports.

    F_T = F_T_corrected + c v_TA        on the target, at and in T; the opposite on the active vehicle
"""

from libc.string cimport memcpy, memset

from my_parts.eddy_brake_parameters cimport EddyBrakeParameters, fill_eddy_brake
from rt_kernels.dynamics.two_bodies cimport Self, State, TwoBodies, advance
from rt_kernels.sample cimport Sample

from rt_kernels.dynamics.two_bodies import TwoBodies as Rigid
from rt_kernels.parameters import Aux, Parameter, checked


cdef struct Brake:
    EddyBrakeParameters keys
    Self bodies


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Brake *p = <Brake *>self
    cdef double F_T[6]
    cdef int i
    memcpy(F_T, sample.F_T_corrected, sizeof(F_T))
    for i in range(3):
        F_T[i] += p.keys.damping * p.bodies.state.V_TA[i]
    aux[0] = F_T[0] - sample.F_T_corrected[0]
    advance(&p.bodies.params, &p.bodies.state, sample, F_T)


cdef class EddyBrake(TwoBodies):
    """Rigid vehicles and a viscous force between their ports."""

    PARAMETERS = (*Rigid.PARAMETERS, Parameter("damping_n_s_per_m", "float", "N.s/m", "force per relative velocity", low=0.0, high=1e5))
    AUX = (Aux("brake.force", "N", "force of the brake on the target along X"),)
    cdef Brake own

    def __init__(self, *, period_s, vehicles, start, orbit=None, **given):
        keys = checked(self.PARAMETERS, given)
        memset(&self.own, 0, sizeof(Brake))
        fill_eddy_brake(&self.own.keys, keys)
        del keys["damping_n_s_per_m"]
        TwoBodies.__init__(self, period_s=period_s, vehicles=vehicles, start=start, orbit=orbit, **keys)
        self.own.bodies = self.c
        self.plug.self = &self.own
        self.plug.self_size = sizeof(Brake)
        self.plug.state = &self.own.bodies.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def fields(self):
        return self.own
