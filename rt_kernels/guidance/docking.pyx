"""Phases of a hybrid docking run (Yaskevich 2020, 6.2, 8.3; requirements R-St-20...25) and the docking sequence (figure 6.1.6).

    idle -> position -> approach -> closing -> contact (-> latched) -> finish -> retreat -> park -> ended
    hold and fault from anywhere

The stand's own phases before and after the test: `stand_phases`. The test:

* approach: along the line of the relative motion at first contact; rest to full rate over `ramp_s`, then constant rate. With the factor k =
  `approach_factor` the same line is travelled in the time T = k t: rate k V, acceleration k^2 V'. The loop is then closed with the rate
  k V. The factor stands still from the beginning of the approach on: a rate that changes where the loop is closed would be a step there.
* closing: one tick; the dynamics start from the achieved pose, `close_before_s` ahead of the nominal first contact.
* contact: the closed loop. Sequence: press thrust from the first contact, off at the bottom (DK2), captured or not; no capture in
  `capture_limit_s`: thrust reversed (retreat); attitude control off at capture; extra lateral brakes 2 s after the start of docking for
  30 s; drive at 35 s; complete when the unit's sensors say that the planes are together all round and the ports are aligned within
  `complete_tilt_deg` and `complete_offset_m`. A retraction that has not come to that when the time is up ends as not_aligned.
* undocking, with `undock`: from the completed docking, `undock_after_s` later, the latches are drawn in and the pushers separate the craft;
  the run ends as separated when no latch holds and the ports are `separation_m` further apart.
* extension, with `extend_first`: a probe that is drawn in is extended to its initial position before the approach begins.

The programmed relative motion is X(u) = line through the nominal first contact, u the time to it at constant rate (u = 0 there).
"""

import math

from libc.stdint cimport int32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport Pose, Twist, norm, pose_from, put_pose, put_twist, twist, twist_of, twist_scaled, xyz
from rt_kernels.codes cimport (COMMAND_HOLD, COMMAND_MANUAL_MODE, COMMAND_MECHANISM_DRIVE, COMMAND_RELEASE,
                               CONTROL_REQUEST_ATTITUDE, CONTROL_REQUEST_PRESS, CONTROL_REQUEST_RETREAT, END_CAUSE_CAPTURED,
                               END_CAUSE_COMPLETE, END_CAUSE_NOT_ALIGNED, END_CAUSE_REGION, END_CAUSE_RETREATED,
                               END_CAUSE_SEPARATED, END_CAUSE_TIME,
                               GUIDANCE_FAULT_REGION_ENDED, GUIDANCE_FAULT_SEQUENCE_INTERVAL, MECHANISM_COMMAND_DRIVE,
                               MECHANISM_COMMAND_EXTEND, MECHANISM_COMMAND_EXTRA_BRAKES, MECHANISM_COMMAND_RELEASE,
                               MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DK2, MECHANISM_SIGNAL_DSG,
                               MECHANISM_SIGNAL_INITIAL_POSITION, MECHANISM_SIGNAL_LATCH,
                               MECHANISM_SIGNAL_LEVER_CONTACT, MECHANISM_SIGNAL_PLANES_TOGETHER, MECHANISM_SIGNAL_RING_ALIGNED,
                               MOTION_CLOSE_LOOP, MOTION_FOLLOW_PROFILE, MOTION_FREE, MOTION_JOINED, PHASE_APPROACH, PHASE_CLOSING,
                               PHASE_CONTACT, PHASE_FAULT, PHASE_LATCHED, PHASE_PARK, PHASE_POSITION, SEQUENCE_APPROACH, SEQUENCE_CAPTURED,
                               SEQUENCE_COMPLETE, SEQUENCE_DAMPING, SEQUENCE_EXTENSION, SEQUENCE_MANUAL, SEQUENCE_PRESS,
                               SEQUENCE_RETRACT, SEQUENCE_RETREAT, SEQUENCE_SEPARATION)
from rt_kernels.guidance.docking_parameters cimport DockingGuidanceParameters, fill_docking_guidance, tune_docking_guidance
from rt_kernels.guidance.profiles cimport pose_on_line, ramp
from rt_kernels.guidance.stand_commands_parameters cimport fill_stand
from rt_kernels.guidance.stand_phases cimport (StandParams, StandState, begin_finish, begin_hold, enter,
                                               may_hold, obey_stand, run_stand, stand_idle, trip)
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

import numpy as np

from rt_kernels.block_check import FLAG, code_range
from rt_kernels.guidance.stand_commands import ALIVE, STAND_BOUNDS, STAND_COMMANDS, STAND_PARAMETERS
from rt_kernels.parameters import Command, Parameter, Tunable, checked

cdef struct Params:
    DockingGuidanceParameters keys
    StandParams stand
    double period
    Pose X_contact              # nominal first contact
    Twist V_contact
    double complete_cosine      # of the largest angle between the docking axes of a completed docking

cdef struct State:
    StandState stand
    double sequence_time
    double start_of_docking     # time since it, negative before
    double together             # for how long the units have been together and aligned
    double interval             # time in the present state of the sequence
    double approach_time        # T: time along the line since the approach began
    double x_docked             # place of A along X_T when the latches were drawn in
    int32_t sequence
    int32_t manual_drive        # 1 retracts, -1 extends
    int32_t manual_release
    int32_t relieved            # the probe, after a completed docking

cdef struct Self:
    Params params
    State state


# --------------------------------------------------------------------------------------------------------------- profiles

cdef void follow_approach(const Params *p, State *s, double dt, Sample *o) noexcept nogil:
    """u(T) runs from its start to -close_before, from rest to unit rate; T at the rate k."""
    cdef double k = p.keys.approach_factor
    cdef double u, du, ddu
    s.approach_time += k * dt
    ramp(s.approach_time / p.keys.ramp, &u, &du, &ddu)
    u *= p.keys.ramp
    ddu = k * k * ddu / p.keys.ramp
    du *= k
    u -= p.keys.close_before + p.keys.constant + 0.5 * p.keys.ramp
    put_pose(pose_on_line(p.X_contact, p.V_contact, u), o.profile_X_TA)
    put_twist(twist_scaled(du, p.V_contact), o.profile_V_TA)
    put_twist(twist_scaled(ddu, p.V_contact), o.profile_A_TA)


# ------------------------------------------------------------------------------------------------------------- sequence

cdef inline bint aligned(const Params *p, const Sample *o) noexcept nogil:
    """Do all sensors of the interface say that the planes are together, at this moment, do the ports agree in angle and place, and are the
    units at rest?"""
    cdef const double *q = o.X_TA + 3
    # cosine of the angle between the axes X_A and X_T: first element of R_TA
    cdef double cosine = 1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2])
    cdef double offset2 = o.X_TA[1] * o.X_TA[1] + o.X_TA[2] * o.X_TA[2]
    cdef Twist V = twist(o.V_TA)
    return o.signal_discrete & MECHANISM_SIGNAL_PLANES_TOGETHER and cosine >= p.complete_cosine and \
        offset2 <= p.keys.complete_offset * p.keys.complete_offset and \
        norm(V.v) <= p.keys.complete_speed and norm(V.w) <= p.keys.complete_rate


cdef inline double interval_limit(const Params *p, const State *s) noexcept nogil:
    """Longest permitted time in the present state of the sequence, s; what has a successor by time has no limit of its own."""
    if s.sequence == SEQUENCE_CAPTURED:
        return p.keys.bottom_limit
    if s.sequence == SEQUENCE_RETRACT:
        return p.keys.retract_limit
    if s.sequence == SEQUENCE_RETREAT:
        return p.keys.retreat_limit
    if s.sequence == SEQUENCE_COMPLETE and p.keys.relieve_limit > 0.0:
        return p.keys.relieve_limit + (p.keys.undock_after if p.keys.undock else 0.0)
    return 1e9


cdef inline bint relieves(const Params *p, const State *s) noexcept nogil:
    """Whether the drive takes its pull off the probe now: docked, before the latches are drawn in."""
    return s.sequence == SEQUENCE_COMPLETE and p.keys.relieve_limit > 0.0 and not s.relieved and (
        not p.keys.undock or s.interval >= p.keys.undock_after)


cdef inline void run_docked(const Params *p, State *s, const Sample *o) noexcept nogil:
    """A completed docking: the drive extends the probe until the pushers part the planes, what is left on the latches is their force; then
    the undocking continues to the release of the latches."""
    if relieves(p, s) and not o.signal_discrete & MECHANISM_SIGNAL_PLANES_TOGETHER:
        s.relieved = 1
    if s.sequence == SEQUENCE_COMPLETE and p.keys.undock and s.interval >= p.keys.undock_after and (
            s.relieved or p.keys.relieve_limit == 0.0):
        s.sequence = SEQUENCE_SEPARATION
        s.x_docked = o.X_TA[0]


cdef void run_sequence(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """What the control is to do and the commands to the mechanism, from the (real or modelled) sensors; timers run from the first DK1.
    A violated interval ends the automatic sequence: no thrust and no drive, the operator continues with single commands."""
    cdef bint touched = (o.mechanism_state & MECHANISM_SIGNAL_DK1) != 0
    cdef bint captured = (o.mechanism_state & MECHANISM_SIGNAL_DSG) != 0
    # the head on the bottom of the cone, or the rings in full contact
    cdef bint bottom = ((o.mechanism_state & MECHANISM_SIGNAL_DK2) != 0
                        or o.mechanism_state & MECHANISM_SIGNAL_RING_ALIGNED == MECHANISM_SIGNAL_RING_ALIGNED)
    cdef int32_t before = s.sequence
    if s.sequence == SEQUENCE_APPROACH and touched:
        s.sequence = SEQUENCE_PRESS
        s.sequence_time = 0.0
    if s.sequence == SEQUENCE_PRESS:
        if captured:
            s.sequence = SEQUENCE_CAPTURED
        elif s.sequence_time > p.keys.capture_limit:
            s.sequence = SEQUENCE_RETREAT
    if s.sequence == SEQUENCE_CAPTURED and bottom:
        s.sequence = SEQUENCE_DAMPING
        s.start_of_docking = 0.0
    if s.sequence == SEQUENCE_DAMPING and s.start_of_docking >= p.keys.drive_after:
        s.sequence = SEQUENCE_RETRACT
    if s.sequence == SEQUENCE_RETRACT or s.sequence == SEQUENCE_MANUAL and s.manual_drive > 0:
        s.together = s.together + dt if aligned(p, o) else 0.0
        if s.together > p.keys.complete_hold:
            s.sequence = SEQUENCE_COMPLETE
    if s.sequence == before:  # the time in it begins at zero
        run_docked(p, s, o)
    if s.sequence == before and s.interval > interval_limit(p, s):
        s.sequence = SEQUENCE_MANUAL
        o.guidance_fault |= GUIDANCE_FAULT_SEQUENCE_INTERVAL
    if s.sequence != before:
        s.interval = 0.0
    # thrust along the docking axis of the active vehicle, until the head has been on the bottom
    if (s.sequence == SEQUENCE_PRESS or s.sequence == SEQUENCE_CAPTURED) and not bottom:
        o.control_request |= CONTROL_REQUEST_PRESS
    elif s.sequence == SEQUENCE_RETREAT:
        o.control_request |= CONTROL_REQUEST_RETREAT
    # attitude control until capture
    if s.sequence <= SEQUENCE_PRESS:
        o.control_request |= CONTROL_REQUEST_ATTITUDE
    # mechanism commands
    o.mechanism_command = 0
    if s.sequence == SEQUENCE_RETRACT or s.manual_drive != 0:
        o.mechanism_command |= MECHANISM_COMMAND_DRIVE
    if s.manual_drive < 0:
        o.mechanism_command |= MECHANISM_COMMAND_EXTEND
    if relieves(p, s):
        o.mechanism_command |= MECHANISM_COMMAND_DRIVE | MECHANISM_COMMAND_EXTEND
    if s.start_of_docking >= p.keys.brakes_after and s.start_of_docking < p.keys.brakes_after + p.keys.brakes_for:
        o.mechanism_command |= MECHANISM_COMMAND_EXTRA_BRAKES
    if s.manual_release or s.sequence == SEQUENCE_SEPARATION:
        o.mechanism_command |= MECHANISM_COMMAND_RELEASE
    s.sequence_time += dt
    s.interval += dt
    if s.start_of_docking >= 0.0:
        s.start_of_docking += dt


cdef bint region_ended(const Sample *o) noexcept nogil:
    """R-St-31: the process is reproduced up to the contact of the alignment levers' rollers."""
    return o.mechanism_state & MECHANISM_SIGNAL_LEVER_CONTACT != 0


# ------------------------------------------------------------------------------------------------------------- commands

cdef void obey(const Params *p, State *s, Sample *o) noexcept nogil:
    cdef int c = o.command_code
    if c == COMMAND_HOLD and may_hold(&s.stand):
        begin_hold(&p.stand, &s.stand, o)
    elif c == COMMAND_MANUAL_MODE:
        s.sequence = SEQUENCE_MANUAL
    elif c == COMMAND_MECHANISM_DRIVE:
        s.manual_drive = (o.command_arg[0] > 0.5) - (o.command_arg[0] < -0.5)
    elif c == COMMAND_RELEASE:
        s.manual_release = o.command_arg[0] > 0.5
    else:
        obey_stand(&p.stand, &s.stand, o)


# -------------------------------------------------------------------------------------------------------------- the step

cdef void finish(const Params *p, State *s, Sample *o, int cause) noexcept nogil:
    begin_finish(&p.stand, &s.stand, o, cause)


cdef void extend_probe(const Params *p, State *s, Sample *o) noexcept nogil:
    """Before the approach: the drive extends the probe until its sensor says that it is in the initial position."""
    if not p.keys.extend_first or s.stand.phase != PHASE_POSITION:
        return
    if s.sequence == SEQUENCE_APPROACH and not o.signal_discrete & MECHANISM_SIGNAL_INITIAL_POSITION:
        s.sequence = SEQUENCE_EXTENSION
        o.mechanism_command = MECHANISM_COMMAND_DRIVE | MECHANISM_COMMAND_EXTEND
    elif s.sequence == SEQUENCE_EXTENSION and o.signal_discrete & MECHANISM_SIGNAL_INITIAL_POSITION:
        s.sequence = SEQUENCE_APPROACH
        o.mechanism_command = 0


cdef void run_phase(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """What the present phase asks of the dynamics, and where it leads."""
    cdef double t = o.phase_time
    cdef int phase = s.stand.phase
    cdef bint captured = (o.mechanism_state & MECHANISM_SIGNAL_DSG) != 0
    if phase == PHASE_APPROACH:
        o.motion = MOTION_FOLLOW_PROFILE
        follow_approach(p, s, dt, o)
        if s.approach_time >= p.keys.ramp + p.keys.constant:
            enter(&s.stand, o, PHASE_CLOSING)
    elif phase == PHASE_CLOSING:
        o.motion = MOTION_CLOSE_LOOP
        run_sequence(p, s, o, 0.0)
        enter(&s.stand, o, PHASE_CONTACT)
    elif phase == PHASE_CONTACT:
        o.motion = MOTION_FREE
        run_sequence(p, s, o, dt)
        if captured and p.keys.latch_on_capture and 1e-9 * <double>o.time_ns - o.capture_time >= p.keys.latch_after:
            enter(&s.stand, o, PHASE_LATCHED)
        elif captured and p.keys.finish_on_capture and 1e-9 * <double>o.time_ns - o.capture_time >= p.keys.after_capture:
            finish(p, s, o, END_CAUSE_CAPTURED)
        elif s.sequence == SEQUENCE_COMPLETE and not p.keys.undock and not relieves(p, s):
            finish(p, s, o, END_CAUSE_COMPLETE)
        elif s.sequence == SEQUENCE_SEPARATION and not o.signal_discrete & MECHANISM_SIGNAL_LATCH and \
                o.X_TA[0] <= s.x_docked - p.keys.separation:
            finish(p, s, o, END_CAUSE_SEPARATED)
        elif s.sequence == SEQUENCE_RETREAT and o.X_TA[0] <= p.X_contact.p.x - p.keys.retreat_range:
            finish(p, s, o, END_CAUSE_RETREATED)
        elif p.keys.finish_at_region_end and region_ended(o):
            o.guidance_fault |= GUIDANCE_FAULT_REGION_ENDED
            finish(p, s, o, END_CAUSE_REGION)
        elif t >= p.keys.contact_max:
            finish(p, s, o, END_CAUSE_NOT_ALIGNED if s.sequence == SEQUENCE_RETRACT else END_CAUSE_TIME)
    elif phase == PHASE_LATCHED:
        o.motion = MOTION_JOINED
        run_sequence(p, s, o, dt)
        if t >= p.keys.after_capture:
            finish(p, s, o, END_CAUSE_CAPTURED)
    else:
        if phase == PHASE_PARK:
            o.mechanism_command = 0
        extend_probe(p, s, o)
        if run_stand(&p.stand, &s.stand, o) and s.sequence != SEQUENCE_EXTENSION:
            enter(&s.stand, o, PHASE_APPROACH)
            s.approach_time = 0.0


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double dt = p.period * sample.periods
    sample.guidance_fault = 0
    memset(sample.operator_rate, 0, sizeof(sample.operator_rate))
    sample.control_request = 0
    sample.phase_time += dt
    trip(&s.stand, sample)
    if sample.command_code != 0 and s.stand.phase != PHASE_FAULT:
        obey(p, s, sample)
    run_phase(p, s, sample, dt)
    sample.phase = s.stand.phase
    sample.sequence = s.sequence
    sample.end_cause = s.stand.end_cause


cdef class DockingGuidance(StagePart):
    """Phases and sequence of a docking run."""

    PARAMETERS = (
        Parameter("ramp_s", "float", "s", "rest to full relative rate", 1.0, low=0.05, high=60.0),
        Parameter("approach_factor", "float", "-", "of the relative rate with which the approach and the first contact are made", 1.0,
                  low=0.1, high=1.0, tunable=Tunable(0.2, ("idle", "position"))),
        Parameter("constant_s", "float", "s", "at full rate before the loop is closed", 0.5, low=0.0, high=60.0),
        Parameter("close_before_s", "float", "s", "the loop is closed this long before the nominal first contact", 0.5, low=0.0, high=60.0),
        Parameter("contact_max_s", "float", "s", "longest closed-loop phase", 20.0, low=0.01, high=3600.0),
        Parameter("after_capture_s", "float", "s", "the run continues this long after capture", 2.0, low=0.0, high=3600.0),
        Parameter("capture_limit_s", "float", "s", "no capture this long after first contact: thrust reversed", 10.0, low=0.1, high=3600.0),
        Parameter("bottom_limit_s", "float", "s", "interval from capture to the bottom signal, pressed on meanwhile: one that lasts longer "
                  "ends thrust and automatic sequence (state manual), the operator continues", 3600.0, low=0.1, high=3600.0),
        Parameter("retract_limit_s", "float", "s", "the same for the retraction", 3600.0, low=0.1, high=3600.0),
        Parameter("retreat_limit_s", "float", "s", "the same for the retreat with reversed thrust", 3600.0, low=0.1, high=3600.0),
        Parameter("relieve_limit_s", "float", "s", "the same for the relief of a docked probe: the drive extends it until the pushers part "
                  "the planes, before latches are drawn; 0: no relief", 0.0, low=0.0, high=3600.0),
        Parameter("retreat_range_m", "float", "m", "closed-loop retreat ends this far from first contact", 0.1, low=0.0, high=5.0),
        Parameter("brakes_after_s", "float", "s", "extra lateral brakes after the start of docking", 2.0, low=0.0),
        Parameter("brakes_for_s", "float", "s", "and for how long", 30.0, low=0.0),
        Parameter("drive_after_s", "float", "s", "drive on after the start of docking", 35.0, low=0.0),
        Parameter("complete_tilt_deg", "float", "deg", "complete: the docking planes together and the ports' axes within this angle", 0.5,
                  low=0.01, high=10.0),
        Parameter("complete_offset_m", "float", "m", "complete: the ports' axes no further apart than this", 0.010, low=1e-4, high=1.0),
        Parameter("complete_speed_m_s", "float", "m/s", "complete: the ports move no faster against each other than this", 1.0, low=1e-6,
                  high=1.0),
        Parameter("complete_rate_deg_s", "float", "deg/s", "complete: and turn no faster than this", 180.0, low=1e-4, high=180.0),
        Parameter("complete_hold_s", "float", "s", "complete: all of it for this long", 0.5, low=0.0, high=60.0),
        Parameter("undock", "bool", "-", "a completed docking is taken apart again: latches drawn in, pushers, probe extended", False),
        Parameter("undock_after_s", "float", "s", "undock: this long after the docking is complete", 5.0, low=0.0, high=3600.0),
        Parameter("separation_m", "float", "m", "undock: the run ends when the ports are this much further apart", 0.3, low=0.01,
                  high=10.0),
        Parameter("extend_first", "bool", "-", "a probe that is drawn in is extended before the approach", False),
        Parameter("finish_on_capture", "bool", "-", "capture ends the run (after after_capture_s)", True),
        Parameter("finish_at_region_end", "bool", "-", "contact of the alignment levers ends the run", True),
        Parameter("latch_on_capture", "bool", "-", "latched phase: the model becomes one body and the platform holds", False),
        Parameter("latch_after_s", "float", "s", "latched this long after capture", 0.5, low=0.0, high=3600.0),
    ) + STAND_PARAMETERS
    COMMANDS = STAND_COMMANDS + (Command("manual_mode", ALIVE), Command("mechanism_drive", ALIVE), Command("release", ALIVE))
    CONTEXT = ("period_s", "start")
    cdef Self c

    def __init__(self, *, period_s, start, **given):
        cdef Params *p = &self.c.params
        keys = checked(DockingGuidance.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        p.period = period_s
        V = start.V_TA
        p.X_contact, p.V_contact = pose_from(start.X_TA), twist_of(xyz(V[0], V[1], V[2]), xyz(V[3], V[4], V[5]))
        fill_docking_guidance(&p.keys, keys)
        fill_stand(&p.stand.keys, keys)
        p.stand.touch = p.X_contact.p.x
        p.stand.X_start = pose_on_line(p.X_contact, p.V_contact, -(p.keys.close_before + p.keys.constant + 0.5 * p.keys.ramp))
        p.complete_cosine = math.cos(p.keys.complete_tilt)
        self.c.state.start_of_docking = -1.0
        stand_idle(&self.c.state.stand)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        tune_docking_guidance(self, &p.keys, keys)

    def state_bounds(self):
        return STAND_BOUNDS | {"sequence": code_range("sequence"), "manual_drive": (-1, 1), "manual_release": FLAG, "relieved": FLAG}

    def fields(self):
        return self.c

    def approach(self, int count):
        """The programmed relative poses X_TA from the start pose (rest) to where the loop is closed, (count, 7): evenly spaced in the time
        to contact, both ends included."""
        cdef Params *p = &self.c.params
        cdef double begin = -(p.keys.close_before + p.keys.constant + 0.5 * p.keys.ramp)
        cdef double[:, ::1] X = np.empty((count, 7))
        cdef int i
        for i in range(count):
            put_pose(pose_on_line(p.X_contact, p.V_contact, begin - (begin + p.keys.close_before) * i / (count - 1)), &X[i, 0])
        return np.asarray(X)
