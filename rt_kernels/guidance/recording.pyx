"""Closed loop from the first tick to the last: guidance of a recording that comes from elsewhere (`hil-server import`).

The first tick (phase closing) puts the model at the nominal first contact with the relative twist of the initial conditions; from the
second on (phase contact) it moves freely under the recorded wrench. Nothing ends it but the end of the recording, or a stop: no stand
moves, so a fault is recorded and shown, and the model continues. Not for a run that moves a stand (`LIVE`).
"""

from libc.stdint cimport int32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport Pose, Twist, pose_from, put_pose, put_twist, twist_of, xyz
from rt_kernels.codes cimport (COMMAND_ABORT, COMMAND_PARK, COMMAND_STOP, END_CAUSE_NONE, END_CAUSE_STOPPED, GUIDANCE_FAULT_OPERATOR_STOP,
                               MOTION_FOLLOW_PROFILE, MOTION_FREE, PHASE_CLOSING, PHASE_CONTACT, PHASE_ENDED, PHASE_IDLE)
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import code_range
from rt_kernels.parameters import Command

cdef struct Params:
    double period
    Pose X_start
    Twist V_start

cdef struct State:
    int32_t phase
    int32_t unused

cdef struct Self:
    Params params
    State state


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    sample.guidance_fault = 0
    sample.mechanism_command = 0
    memset(sample.operator_rate, 0, sizeof(sample.operator_rate))
    sample.control_request = 0
    sample.phase_time += p.period * sample.periods
    sample.end_cause = END_CAUSE_NONE
    if sample.command_code == COMMAND_ABORT:
        sample.guidance_fault |= GUIDANCE_FAULT_OPERATOR_STOP
    elif sample.command_code == COMMAND_STOP or sample.command_code == COMMAND_PARK:
        s.phase = PHASE_ENDED
        sample.end_cause = END_CAUSE_STOPPED
    if s.phase == PHASE_IDLE:
        # the model is put where the contact begins
        s.phase = PHASE_CLOSING
        sample.motion = MOTION_FOLLOW_PROFILE
        put_pose(p.X_start, sample.profile_X_TA)
        put_twist(p.V_start, sample.profile_V_TA)
        memset(sample.profile_A_TA, 0, sizeof(sample.profile_A_TA))
        sample.phase_time = 0.0
    else:
        if s.phase == PHASE_CLOSING:
            s.phase = PHASE_CONTACT
            sample.phase_time = 0.0
        sample.motion = MOTION_FREE
    sample.phase = s.phase


cdef class Recording(StagePart):
    """Closed loop throughout. No parameters: it starts at the test's initial conditions."""

    PARAMETERS = ()
    COMMANDS = (Command("abort"), Command("stop"), Command("park"))
    LIVE = False
    CONTEXT = ("period_s", "start")
    cdef Self c

    def __init__(self, *, period_s, start):
        cdef Params *p = &self.c.params
        memset(&self.c, 0, sizeof(Self))
        p.period = period_s
        V = start.V_TA
        p.X_start, p.V_start = pose_from(start.X_TA), twist_of(xyz(V[0], V[1], V[2]), xyz(V[3], V[4], V[5]))
        self.c.state.phase = PHASE_IDLE
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def state_bounds(self):
        return {"phase": code_range("phase")}

    def fields(self):
        return self.c
