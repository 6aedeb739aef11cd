"""Pose-referenced force: the measured force is carried from the platform's pose to the simulated one (pose_force.pxd).

The setpoint has no lead; whatever lag drive and sensor have shows as x - y and is taken back through the stiffness of the contact.
Source: hybrid-stability notes 5.4 (4).
"""

from libc.string cimport memset

from rt_kernels.compensation.declarations_parameters cimport tune_pose_force
from rt_kernels.compensation.pose_force cimport PoseForceParams, PoseForceState, pose_force_step, set_up_pose_force
from rt_kernels.compensation.pose_force_record cimport PoseForceRecord
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import COUNT, COUNT_32, FLAG
from rt_kernels.compensation.pose_force_record import AUX
from rt_kernels.compensation.declarations import POSE_FORCE_PARAMETERS
from rt_kernels.parameters import checked


cdef struct Self:
    PoseForceParams force
    double loop_delay
    PoseForceState state


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef int i
    sample.compensation_status = pose_force_step(&p.force, &p.state, sample)
    sample.lead[0] = 1.0
    sample.lead[1] = 0.0
    sample.lead[2] = 0.0
    for i in range(6):
        sample.lead_offset[i] = 0.0
    sample.loop_delay = p.loop_delay
    (<PoseForceRecord *>aux).contact_stiffness = p.state.stiffness


cdef class PoseReferencedForce(StagePart):
    """Force correction by the contact's stiffness, no lead. Raises ValueError without a stiffness."""

    PARAMETERS = POSE_FORCE_PARAMETERS
    AUX = AUX
    CONTEXT = ("period_s", "delays")
    cdef Self c

    def __init__(self, *, period_s, delays, **given):
        memset(&self.c, 0, sizeof(Self))
        keys = checked(PoseReferencedForce.PARAMETERS, given)
        set_up_pose_force(&self.c.force, &self.c.state, keys, period_s, delays)
        self.c.loop_delay = delays.total_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(PoseForceState)
        self.plug.step = step
        tune_pose_force(self, &self.c.force.keys, keys)

    def state_bounds(self):
        return {"count": COUNT, "observer.started": FLAG, "in_contact": FLAG, "contact_ticks": COUNT_32}

    def fields(self):
        return self.c
