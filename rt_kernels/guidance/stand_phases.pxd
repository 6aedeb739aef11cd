"""What the stand does around a test, the same for every guidance that closes the loop (requirements R-St-20...25).

    idle -> position -> (the test) -> finish -> retreat -> park -> ended
    hold and fault from anywhere

* idle: the platform stands where it is, until `start` or, by configuration, at once; not before the safety stage knows the legs.
* position: it goes to the start pose in programme mode, minimum jerk; `run_stand` says when it is there.
* finish: the relative motion is brought to rest and the mechanism released, which the latches' own sensors confirm (`release_wait`);
  retreat: the platform backs off; park: back to the pose that the run started from. What is not released within that time is held, which
  the note `sequence_interval` says: nothing pulls at closed latches but by an operator's `resume`, `stop` or `park`; a run whose time is
  up ends there.
* hold: brought to rest; before the units touch with up to `hold_acceleration` so that they do not, and where that is not enough the
  guidance says so. A closed loop that was held is not taken up again, after it there is only the way back. What follows it waits until
  the platform is at rest, for every programmed move begins there; another hold takes it back.
* fault: the platform is frozen and recorded for `fault_time` after it stands; then it waits for `recover_time` for the command `recover`,
  which the safety stage obeys, unless `stop` or `park` ends the waiting. While that recovers, the programmed pose is the achieved one, at
  rest; when it is done the run is held there, and the command `park` (stop, resume) leads back: from where the units may touch by the
  retreat, or what is left of it, else straight to the pose that the run started from. The run remains one that tripped.

A run that can no longer be recorded is ended here too (command `record_lost`, from the server's supervisor): by parking, or by a trip.

The phases of the test itself, and what leads out of it, are the guidance's own.
"""

from libc.stdint cimport int32_t

from rt_kernels.algebra.values cimport Pose, Twist, norm, pose, put_pose, twist, twist_of, unit_pose, xyz
from rt_kernels.codes cimport (COMMAND_ABORT, COMMAND_HOLD, COMMAND_PARK, COMMAND_RECORD_LOST, COMMAND_RESUME, COMMAND_START,
                               COMMAND_STOP, END_CAUSE_NONE, END_CAUSE_RECORD_LOST, END_CAUSE_STOPPED, END_CAUSE_TRIPPED, FAULTS_STOP,
                               GUIDANCE_FAULT_HOLD_TOUCHES, GUIDANCE_FAULT_OPERATOR_STOP,
                               GUIDANCE_FAULT_PROGRAMME_NOT_REACHED, GUIDANCE_FAULT_RECORD_LOST, GUIDANCE_FAULT_RECORD_REQUIRED,
                               GUIDANCE_FAULT_SEQUENCE_INTERVAL, MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DSG, MECHANISM_SIGNAL_LATCH,
                               MOTION_FOLLOW_PROFILE, MOTION_FREEZE,
                               PHASE_APPROACH, PHASE_CLOSING, PHASE_ENDED, PHASE_FAULT, PHASE_FINISH, PHASE_HOLD, PHASE_IDLE, PHASE_PARK,
                               PHASE_POSITION, PHASE_RETREAT, SAFETY_STATE_BLOCKED, SAFETY_STATE_FOLLOWING, SAFETY_STATE_HELD,
                               SAFETY_STATE_NOT_ARMED, SAFETY_STATE_RECOVERING)
from rt_kernels.guidance.profiles cimport Move, follow_move, follow_stop, plan_move, plan_stop, reached
from rt_kernels.guidance.stand_commands_parameters cimport StandParameters
from rt_kernels.recovery cimport starts_from_here
from rt_kernels.sample cimport Sample

# how a run that tripped returns to its park pose once it has recovered
cdef enum:
    BACK_NONE = 0               # it has not tripped
    BACK_STRAIGHT = 1           # to the park pose
    BACK_RETREAT = 2            # by a retreat first
    BACK_REST = 3               # by what is left of the retreat

cdef struct StandParams:
    StandParameters keys
    Pose X_start
    double touch                # X of the nominal first contact

cdef struct StandState:
    Move move
    Pose X_park                 # the pose that the run started from
    Pose X_retreat              # where the retreat ends
    int32_t phase
    int32_t end_cause
    int32_t have_park
    int32_t leaves_hold         # resume or stop came while held
    int32_t back                # after a trip
    int32_t gives_up            # stop or park came in the fault phase
    int32_t recovers            # a recovery is under way: the programmed pose is the achieved one
    int32_t released            # ticks of the command to release the mechanism, before the retreat


cdef inline void stand_idle(StandState *s) noexcept nogil:
    """The state before the run."""
    s.phase = PHASE_IDLE
    s.X_park = s.X_retreat = s.move.X_from = s.move.X_to = unit_pose()
    s.move.duration = 1.0


# ---------------------------------------------------------------------------------------------------------- phase changes

cdef inline void enter(StandState *s, Sample *o, int phase) noexcept nogil:
    s.phase = phase
    o.phase_time = 0.0


cdef inline void end_because(StandState *s, int cause) noexcept nogil:
    """The first cause counts."""
    if s.end_cause == END_CAUSE_NONE:
        s.end_cause = cause


cdef inline void begin_position(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    if not s.have_park:
        s.X_park = pose(o.profile_X_TA)
        s.have_park = 1
    plan_move(&p.keys, &s.move, pose(o.profile_X_TA), p.X_start, p.keys.speed_max)
    enter(s, o, PHASE_POSITION)


cdef inline void begin_finish(const StandParams *p, StandState *s, Sample *o, int cause) noexcept nogil:
    end_because(s, cause)
    s.released = 0
    plan_stop(&p.keys, &s.move, pose(o.X_TA), twist(o.V_TA))
    enter(s, o, PHASE_FINISH)


cdef inline void begin_retreat(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    s.X_retreat = pose(o.profile_X_TA)
    s.X_retreat.p.x -= p.keys.retreat_distance
    plan_move(&p.keys, &s.move, pose(o.profile_X_TA), s.X_retreat, 0.5 * p.keys.speed_max)
    enter(s, o, PHASE_RETREAT)


cdef inline double hold_reserve() noexcept nogil:
    """What a hold leaves to the nominal first contact, m."""
    return 0.005


cdef inline double shortest_stop(const StandParams *p, const Sample *o) noexcept nogil:
    """Duration of the hardest stop that a hold may make from the present rates."""
    cdef double shortest = 0.02
    cdef double harder = p.keys.hold_acceleration_max / p.keys.acceleration_max
    cdef Twist V = twist(o.V_TA)
    cdef double least = 1.5 * norm(V.v) / p.keys.hold_acceleration_max
    cdef double turning = 1.5 * norm(V.w) / (harder * p.keys.turn_acceleration_max)
    if turning > least:
        least = turning
    return shortest if least < shortest else least


cdef inline void tell_touch(const StandParams *p, Sample *o, double duration) noexcept nogil:
    """Says that a stop of this duration ends behind the first contact: it leads V T / 2 further, which the platform overshoots a little."""
    cdef double gap = p.touch - o.X_TA[0]
    if gap > 0.0 and 0.5 * o.V_TA[0] * duration > gap - 0.5 * hold_reserve():
        o.guidance_fault |= GUIDANCE_FAULT_HOLD_TOUCHES


cdef inline void brake_before_touch(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    """Shortens the stop that is planned, so that it ends the reserve before the first contact."""
    cdef double least = shortest_stop(p, o)
    cdef double wanted = 2.0 * (p.touch - o.X_TA[0] - hold_reserve()) / o.V_TA[0]
    if wanted < least:
        wanted = least
    if wanted < s.move.duration:
        s.move.duration = wanted
    tell_touch(p, o, s.move.duration)


cdef inline void begin_hold(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    """To rest; from a closed loop there is only the way back."""
    plan_stop(&p.keys, &s.move, pose(o.X_TA), twist(o.V_TA))
    if p.keys.hold_acceleration_max > p.keys.acceleration_max and o.V_TA[0] > 0.0:
        brake_before_touch(p, s, o)
    s.leaves_hold = 0
    if s.phase >= PHASE_CLOSING:
        end_because(s, END_CAUSE_STOPPED)
    enter(s, o, PHASE_HOLD)


cdef inline void begin_park(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    plan_move(&p.keys, &s.move, pose(o.profile_X_TA), s.X_park, p.keys.speed_max)
    enter(s, o, PHASE_PARK)


cdef inline void begin_way_back(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    """From a hold that nothing but the way back follows."""
    if s.back == BACK_STRAIGHT:
        begin_park(p, s, o)
    elif s.back == BACK_REST:
        plan_move(&p.keys, &s.move, pose(o.profile_X_TA), s.X_retreat, 0.5 * p.keys.speed_max)
        enter(s, o, PHASE_RETREAT)
    else:
        begin_retreat(p, s, o)


cdef inline bint may_hold(const StandState *s) noexcept nogil:
    return s.phase != PHASE_IDLE and s.phase != PHASE_ENDED and s.phase != PHASE_HOLD


cdef inline bint trip(StandState *s, Sample *o) noexcept nogil:
    """A trip of the previous tick ends everything else. True in the tick in which it does."""
    if not o.faults & FAULTS_STOP or s.phase == PHASE_FAULT or s.phase == PHASE_ENDED:
        return False
    if s.phase == PHASE_RETREAT:
        s.back = BACK_REST
    elif PHASE_APPROACH <= s.phase <= PHASE_FINISH:
        s.back = BACK_RETREAT
    elif s.phase != PHASE_HOLD:
        s.back = BACK_STRAIGHT
    elif s.back == BACK_NONE:
        # held on the way to the test, or in it and after it
        s.back = BACK_STRAIGHT if s.end_cause == END_CAUSE_NONE else BACK_RETREAT
    s.end_cause = END_CAUSE_TRIPPED
    s.gives_up = s.recovers = 0
    enter(s, o, PHASE_FAULT)
    return True


# --------------------------------------------------------------------------------------------------------------- commands

cdef inline bint latched(const Sample *o) noexcept nogil:
    """Whether the sensors say that the units hold each other."""
    return o.signal_discrete & (MECHANISM_SIGNAL_DSG | MECHANISM_SIGNAL_LATCH) != 0


cdef inline bint ends_for_record(StandState *s, Sample *o) noexcept nogil:
    """Obeys `record_lost`. True when the run is to be parked; the trip that argument 0 asks for instead is the safety stage's. What has
    tripped already is not recovered from: the safety stage refuses it."""
    if o.command_code != COMMAND_RECORD_LOST:
        return False
    if o.command_arg[0] > 0.5:
        o.guidance_fault |= GUIDANCE_FAULT_RECORD_REQUIRED
        return False
    o.guidance_fault |= GUIDANCE_FAULT_RECORD_LOST
    if s.phase == PHASE_FAULT:
        return False
    # without a record there is no test, whatever had ended it before
    s.end_cause = END_CAUSE_RECORD_LOST
    return True


cdef inline void obey_stand(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    """abort, start, resume, stop, park and record_lost; a hold while held."""
    cdef int c = o.command_code
    if ends_for_record(s, o):
        c = COMMAND_PARK
    if c == COMMAND_ABORT:
        o.guidance_fault |= GUIDANCE_FAULT_OPERATOR_STOP
    elif c == COMMAND_START and s.phase == PHASE_IDLE and s.have_park:
        begin_position(p, s, o)
    elif c == COMMAND_RESUME and s.phase == PHASE_HOLD:
        s.leaves_hold = 1
    elif c == COMMAND_HOLD and s.phase == PHASE_HOLD:
        s.leaves_hold = 0
    elif c == COMMAND_STOP or c == COMMAND_PARK:
        if s.phase == PHASE_IDLE:
            end_because(s, END_CAUSE_STOPPED)
            enter(s, o, PHASE_ENDED)
        elif s.phase < PHASE_FINISH:
            begin_finish(p, s, o, END_CAUSE_STOPPED)
        elif s.phase == PHASE_HOLD and p.keys.release_wait > 0.0 and s.released and latched(o) and o.command_arg[0] == -1.0:
            # the time of the run is up: no operator says that the latches may be pulled at
            enter(s, o, PHASE_ENDED)
        elif s.phase == PHASE_HOLD:
            end_because(s, END_CAUSE_STOPPED)
            s.leaves_hold = 1


# -------------------------------------------------------------------------------------------------------------- the fault

cdef inline void stand_here(Sample *o, StandState *s) noexcept nogil:
    """The programmed motion is the achieved pose, at rest."""
    cdef int i
    if starts_from_here(o, s.recovers):
        put_pose(pose(o.X_TA_measured), o.profile_X_TA)
        s.recovers = 1
    for i in range(6):
        o.profile_V_TA[i] = 0.0
        o.profile_A_TA[i] = 0.0


cdef inline void run_fault(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    """After a trip: frozen, while the safety stage recovers where the stand is, held when it has."""
    cdef int c = o.command_code
    ends_for_record(s, o)
    if c == COMMAND_ABORT:
        o.guidance_fault |= GUIDANCE_FAULT_OPERATOR_STOP
    elif c == COMMAND_STOP or c == COMMAND_PARK or c == COMMAND_RECORD_LOST:
        s.gives_up = 1
    if o.safety_state == SAFETY_STATE_RECOVERING:
        o.motion = MOTION_FOLLOW_PROFILE
        stand_here(o, s)
        # the time in which the operator may try again begins with each attempt
        o.phase_time = 0.0
    elif s.recovers and o.safety_state == SAFETY_STATE_FOLLOWING:
        o.motion = MOTION_FOLLOW_PROFILE
        plan_stop(&p.keys, &s.move, pose(o.profile_X_TA), twist_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0)))
        s.leaves_hold = s.gives_up
        enter(s, o, PHASE_HOLD)
    else:
        o.motion = MOTION_FREEZE
        s.recovers = 0
        if o.safety_state == SAFETY_STATE_NOT_ARMED:
            s.gives_up = 1      # nothing was sent, nothing is to be taken back
        if o.phase_time >= p.keys.fault and (s.gives_up or o.phase_time >= p.keys.recover) and (
                o.safety_state == SAFETY_STATE_HELD or o.safety_state == SAFETY_STATE_BLOCKED
                or o.safety_state == SAFETY_STATE_NOT_ARMED):
            enter(s, o, PHASE_ENDED)


# --------------------------------------------------------------------------------------------------------------- the step

cdef inline bint run_stand(const StandParams *p, StandState *s, Sample *o) noexcept nogil:
    """One tick of the stand's own phases. True when the start pose is reached: the guidance begins its test."""
    cdef double t = o.phase_time
    cdef bint over = t >= s.move.duration + p.keys.settle
    if s.phase == PHASE_IDLE:
        # stands where it is: the profile is the achieved pose, so that the first move starts without a step
        o.motion = MOTION_FOLLOW_PROFILE
        if not s.have_park and o.forward_kinematics_status == 0:
            s.X_park = pose(o.X_TA_measured)
            put_pose(s.X_park, o.profile_X_TA)
            s.have_park = o.safety_state != SAFETY_STATE_NOT_ARMED
        if s.have_park and p.keys.auto_start:
            begin_position(p, s, o)
    elif s.phase == PHASE_POSITION:
        o.motion = MOTION_FOLLOW_PROFILE
        follow_move(&s.move, t, o)
        if over and reached(o, p.keys.position_tolerance, p.keys.angle_tolerance):
            return True
        if t >= s.move.duration + 10.0 * p.keys.settle + 2.0:
            o.guidance_fault |= GUIDANCE_FAULT_PROGRAMME_NOT_REACHED
    elif s.phase == PHASE_FINISH:
        o.motion = MOTION_FOLLOW_PROFILE
        follow_stop(&s.move, t, o)
        if over:
            # the real units are let go before the platform backs off
            o.mechanism_command = MECHANISM_COMMAND_RELEASE
            s.released += 1
            if p.keys.release_wait == 0.0 or s.released > 1 and not latched(o):
                begin_retreat(p, s, o)
            elif t >= s.move.duration + p.keys.settle + p.keys.release_wait:
                o.guidance_fault |= GUIDANCE_FAULT_SEQUENCE_INTERVAL
                begin_hold(p, s, o)
    elif s.phase == PHASE_RETREAT:
        o.motion = MOTION_FOLLOW_PROFILE
        o.mechanism_command = MECHANISM_COMMAND_RELEASE
        follow_move(&s.move, t, o)
        if over:
            begin_park(p, s, o)
    elif s.phase == PHASE_PARK:
        o.motion = MOTION_FOLLOW_PROFILE
        follow_move(&s.move, t, o)
        if over:
            enter(s, o, PHASE_ENDED)
    elif s.phase == PHASE_HOLD:
        o.motion = MOTION_FOLLOW_PROFILE
        follow_stop(&s.move, t, o)
        if s.leaves_hold and t >= s.move.duration:
            if s.end_cause == END_CAUSE_NONE:
                begin_position(p, s, o)
            else:
                begin_way_back(p, s, o)
    elif s.phase == PHASE_FAULT:
        run_fault(p, s, o)
    return False
