"""The recommended stack: second-order lead, and the pose-referenced force for what the lead leaves (hybrid-stability notes 0.4).

The lead brings the platform to where the model is; a drive that is known only to some per cent, or has drifted, leaves a small x - y,
which the force correction takes out. Neither alone holds the band: see lead.pxd and pose_force.pxd for the formulas.

On a stand whose machine is known ([stand_model]) the lead is that of the platform's six directions, and the demand of the legs crosses
their dead band and friction (leg_offset.pxd), so that x - y stays small at the amplitude of a contact, too. Where what carries the units
rings, y is that of the units themselves (structure_observer.pxd).
"""

from libc.string cimport memset

from rt_kernels.compensation.declarations_parameters cimport tune_lead, tune_leg_offset, tune_pose_force
from rt_kernels.compensation.lead cimport LeadParams, LeadState, lead_step, set_up_lead
from rt_kernels.compensation.leg_offset cimport LegOffsetParams, LegOffsetState, leg_offset_step, set_up_leg_offset
from rt_kernels.compensation.pose_force cimport PoseForceParams, PoseForceState, pose_force_step, set_up_pose_force
from rt_kernels.compensation.pose_force_record cimport PoseForceRecord
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.platform cimport Platform

from rt_kernels.block_check import COUNT, COUNT_32, FLAG, under
from rt_kernels.compensation.pose_force_record import AUX
from rt_kernels.compensation.declarations import (
    LEAD_PARAMETERS, LEG_OFFSET_PARAMETERS, OBSERVER_PARAMETERS, POSE_FORCE_PARAMETERS, carried_ports, lead_inertia, leg_constants,
)
from rt_kernels.parameters import checked


cdef struct State:
    LeadState lead
    PoseForceState force
    LegOffsetState legs

cdef struct Self:
    LeadParams lead
    PoseForceParams force
    LegOffsetParams legs
    double loop_delay
    State state


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    # the force first: the lead foresees the acceleration that it will make
    sample.compensation_status = pose_force_step(&p.force, &p.state.force, sample)
    sample.compensation_status |= lead_step(&p.lead, &p.state.lead, sample)
    if p.legs.active:
        sample.compensation_status |= leg_offset_step(&p.legs, &p.state.legs, sample)
    sample.loop_delay = p.loop_delay
    (<PoseForceRecord *>aux).contact_stiffness = p.state.force.stiffness


cdef class LeadAndPoseForce(StagePart):
    """Lead and force correction together. Raises ValueError without a stiffness."""

    PARAMETERS = LEAD_PARAMETERS + POSE_FORCE_PARAMETERS + LEG_OFFSET_PARAMETERS + OBSERVER_PARAMETERS
    AUX = AUX
    CONTEXT = ("period_s", "delays", "vehicles", "start", "platform", "mounting", "stand_model")
    cdef Self c

    def __init__(self, *, period_s, delays, vehicles, start, platform, mounting, stand_model, **given):
        cdef Platform legs = platform
        keys = checked(LeadAndPoseForce.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        set_up_lead(&self.c.lead, &self.c.state.lead, keys, period_s, delays, lead_inertia(vehicles, start),
                    (legs.params.rate_max, legs.params.acceleration_max))
        set_up_pose_force(&self.c.force, &self.c.state.force, keys, period_s, delays, carried_ports(stand_model, mounting, keys))
        set_up_leg_offset(&self.c.legs, &self.c.state.legs, keys, period_s, leg_constants(stand_model) if stand_model else None, legs,
                          mounting)
        self.c.loop_delay = delays.total_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        tune_lead(self, &self.c.lead.keys, keys)
        self.let_tune("lead_rate_max_m_s", &self.c.lead.rate_max, self.c.lead.rate_max)
        tune_pose_force(self, &self.c.force.keys, keys)
        if self.c.legs.active:
            tune_leg_offset(self, &self.c.legs.keys, keys)

    def state_bounds(self):
        return {"lead.started": FLAG} | under("force", {
            "count": COUNT, "observer.started": FLAG, "in_contact": FLAG, "contact_ticks": COUNT_32,
        })

    def fields(self):
        return self.c
