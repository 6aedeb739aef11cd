"""Energy cap: passivity observer and controller at the simulated port (Hannaford and Ryu 2002; hybrid-stability notes 5.4 (5)).

Observer: the relative kinetic energy of the model at the start of the contact, E0, plus what the control wrenches of both craft have done
since, is all that the contact may give back. One symplectic step under the force s F changes the energy by

    -s h F.V + 1/2 s^2 h^2 F.L^-1 F        L^-1 inverse inertia of the relative motion, V twist at the origin of T

Controller: while the force pushes apart (F.V < 0) the largest s in 0...1 is taken that keeps the energy within (1 - dissipated) E0 + work.
It needs no model of drive or contact. It is a net, not a compensator: below the cap it does nothing, so a damped contact keeps its error.
"""

from libc.math cimport sqrt
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Pose, Twist, Vec3, Wrench, add, cross, dot, pose, put_twist, rotate, sub, twist, twist_of,
                                        vec, wrench)
from rt_kernels.codes cimport COMPENSATION_STATUS_ENERGY_CAP, COMPENSATION_STATUS_GATE_OPEN, MOTION_FREE
from rt_kernels.compensation.energy_cap_parameters cimport EnergyCapParameters, fill_energy_cap, tune_energy_cap
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG
from rt_kernels.compensation.effective_mass import relative_inverse_inertia
from rt_kernels.parameters import Parameter, Tunable, checked


cdef struct State:
    double energy               # allowed
    int in_contact
    int unused

cdef struct Self:
    EnergyCapParameters keys
    double inverse_inertia[36]
    double period
    double loop_delay
    double share                # of the active craft's thrust that goes into relative motion: m_V / (m_C + m_V); 1 - it: of the target's
    State state


cdef double control_power(const Sample *o, double share) noexcept nogil:
    """Power of both crafts' control wrenches into the energy of relative motion."""
    cdef Twist V_NC = twist(o.V_NC), V_NV = twist(o.V_NV)
    cdef Pose X_NC = pose(o.X_NC), X_NV = pose(o.X_NV)
    cdef Wrench A = wrench(o.control_A), T = wrench(o.control_T)
    cdef Vec3 v = sub(V_NC.v, V_NV.v)
    cdef double power = share * dot(rotate(X_NC.q, A.f), v) + dot(rotate(X_NC.q, A.m), V_NC.w)
    # a force on the target takes the relative velocity the other way
    return power - (1.0 - share) * dot(rotate(X_NV.q, T.f), v) + dot(rotate(X_NV.q, T.m), V_NV.w)


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef State *s = &p.state
    cdef double h = p.period * sample.periods
    cdef Twist V_TA = twist(sample.V_TA)
    cdef double V[6]
    cdef double power = 0.0, square = 0.0, excess, k
    cdef int i, j
    for i in range(6):
        sample.F_T_corrected[i] = sample.F_T[i]
        sample.lead_offset[i] = 0.0
    sample.lead[0] = 1.0
    sample.lead[1] = 0.0
    sample.lead[2] = 0.0
    sample.loop_delay = p.loop_delay
    sample.compensation_status = 0
    if not sample.contact or sample.motion != MOTION_FREE:
        s.in_contact = 0
        return
    sample.compensation_status = COMPENSATION_STATUS_GATE_OPEN
    if not s.in_contact:
        s.in_contact = 1
        s.energy = (1.0 - p.keys.dissipated) * sample.kinetic_energy
    s.energy += h * control_power(sample, p.share)
    # twist at the origin of T
    put_twist(twist_of(add(V_TA.v, cross(vec(sample.X_TA), V_TA.w)), V_TA.w), V)
    for i in range(6):
        power += sample.F_T[i] * V[i]
        for j in range(6):
            square += 0.5 * sample.F_T[i] * p.inverse_inertia[6 * i + j] * sample.F_T[j]
    power *= h
    square *= h * h
    excess = sample.kinetic_energy - power + square - s.energy
    if excess <= 0.0 or power >= 0.0 or s.energy < p.keys.energy_floor:
        return
    # square k^2 - power k + (kinetic - allowed) = 0, the root nearest to no force
    excess = s.energy - sample.kinetic_energy
    if excess <= 0.0 or not (square > 0.0):
        k = 0.0
    else:
        k = 2.0 * excess / (-power + sqrt(power * power + 4.0 * square * excess))
        k = 1.0 if k > 1.0 else k
    for i in range(6):
        sample.F_T_corrected[i] = k * sample.F_T[i]
    sample.compensation_status |= COMPENSATION_STATUS_ENERGY_CAP


cdef class EnergyCap(StagePart):
    """No contact gives back more energy than it took."""

    PARAMETERS = (
        Parameter("dissipated", "float", "-", "share of the energy that the contact is known to keep", 0.0, low=0.0, high=1.0,
                  tunable=Tunable(0.5)),
        Parameter("energy_floor_j", "float", "J", "contacts with less energy are left alone", 1e-6, low=0.0, high=1e6),
    )
    CONTEXT = ("period_s", "delays", "vehicles", "start")
    cdef Self c

    def __init__(self, *, period_s, delays, vehicles, start, **given):
        cdef int i
        keys = checked(EnergyCap.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        inverse = relative_inverse_inertia(vehicles, start.X_TA)
        for i in range(36):
            self.c.inverse_inertia[i] = inverse.flat[i]
        masses = [vehicle.mass_kg for vehicle in (vehicles.active, vehicles.target)]
        self.c.share = masses[1] / sum(masses)
        fill_energy_cap(&self.c.keys, keys)
        self.c.period, self.c.loop_delay = period_s, delays.total_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        # read where a contact begins: a change acts from the next one on
        tune_energy_cap(self, &self.c.keys, keys)

    def state_bounds(self):
        return {"in_contact": FLAG}

    def fields(self):
        return self.c
