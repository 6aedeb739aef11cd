"""Phases of a berthing run: the stand goes to the start pose, closes the loop, and an operator flies the manipulator (Yaskevich 2020, 8.3,
8.4).

    idle -> position -> closing -> contact -> finish -> retreat -> park -> ended
    hold and fault from anywhere

The stand's own phases before and after the flight: `stand_phases`; the start pose lies `start_distance_m` back along the docking axis from
the nominal first contact. The flight:

* closing: one tick; the manipulator and its load start at rest from the achieved pose.
* contact: the closed loop from here on, in contact or not. The operator asks for rates with two hand controllers, or gives commands.
* Capture ends the run after `after_capture_s`; so do the longest time and, by configuration, a load beyond the manipulator's limit.
* hold: the manipulator holds. Its elastic structure still swings and the platform continues to follow the model, so that the run can be
  resumed; with `hold_stops_platform` the platform itself is brought to rest and after it there is only the way back. Before the units
  touch the platform brakes with up to `hold_acceleration_max_m_s2`. An arm cannot: where the units come nearer than a platform could stop
  them, the guidance says that the hold touches.

Rates of the hand controllers, left hand translation, right hand rotation, n in -1...1 after calibration, deadman and age checks:

    operator_rate = n rate_max(coarse or vernier)          in the axes rate_frame

Supervisory commands Step and Insert (8.4): one coordinate of the moving interface, amplitude A and rate r given. The demanded travel u is
a trapezoid of the rate with acceleration a and period T; it brakes in time by the rule of the joint stops:

    v(t + T) = min(r, v + a T, sqrt(a^2 T^2 + 2 a (A - u)) - a T),   u(t + T) = u + v T

An elastic arm lags and swings, and its drives have play. When the trapezoid is over, the achieved coordinate x of the interface since the
start of the command (R_TA^T (p - p_0), or the rotation vector in these axes) takes its end to A: v = k (A - x), no faster than r, changing
no faster than a. Done when |A - x| has been within the tolerance for `settle_s`, or after `correction_max_s`. On an arm whose load swings
at w with the damping ratio z the correction itself is stable for k < 2 z w.

One command is active, others wait in a queue; a force or moment beyond its limit, hold, or (by configuration) a deflected stick ends the
running one and clears the queue. With `release_wait` none begins after a release before the latches' sensors say that nothing holds; where
they do not say so in that time the queue is cleared with the note `sequence_interval`. Hand controllers move the arm all the same.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport Pose, Vec3, norm, pose, pose_from, put_pose, rotate_back, sub, unit_pose, vec
from rt_kernels.codes cimport (ARM_MODE_BRAKES, ARM_MODE_HAND, ARM_MODE_HOLD, ARM_MODE_LIMP, ARM_MODE_PATH, ARM_MODE_SINGLE_JOINT,
                               COMMAND_AUTO_SEQUENCE, COMMAND_BRAKES, COMMAND_HOLD, COMMAND_INSERT, COMMAND_LIMP, COMMAND_PARK,
                               COMMAND_RELEASE, COMMAND_RESUME, COMMAND_SINGLE_JOINT, COMMAND_SPEED_MODE, COMMAND_STEP, COMMAND_STOP,
                               DYNAMICS_STATUS_OVERLOAD, DYNAMICS_STATUS_PATH_DONE, END_CAUSE_CAPTURED, END_CAUSE_OVERLOAD,
                               END_CAUSE_STOPPED, END_CAUSE_TIME, GUIDANCE_FAULT_HAND_CONTROLLER_STALE,
                               GUIDANCE_FAULT_SEQUENCE_INTERVAL, HAND_BUTTON_VERNIER, HAND_STATUS_PRESENT, HAND_STATUS_STALE,
                               MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DSG, MOTION_CLOSE_LOOP, MOTION_FOLLOW_PROFILE, MOTION_FREE,
                               PHASE_CLOSING, PHASE_CONTACT, PHASE_FAULT, PHASE_HOLD,
                               RATE_FRAME_CAMERA, RATE_FRAME_END_EFFECTOR, RATE_FRAME_INTERFACE, RATE_FRAME_TARGET, SPEED_MODE_COARSE,
                               SPEED_MODE_VERNIER, SUPERVISORY_ABORTED, SUPERVISORY_DONE, SUPERVISORY_INSERT, SUPERVISORY_STEP)
from rt_kernels.guidance.berthing_parameters cimport BerthingGuidanceParameters, fill_berthing_guidance, tune_berthing_guidance
from rt_kernels.guidance.profiles cimport rotation_between
from rt_kernels.guidance.stand_commands_parameters cimport fill_stand
from rt_kernels.guidance.stand_phases cimport (StandParams, StandState, begin_finish, begin_hold, ends_for_record, enter,
                                               latched, may_hold, obey_stand, run_stand, shortest_stop, stand_idle, tell_touch, trip)
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

import numpy as np

from rt_kernels.block_check import COUNT_32, FLAG, code_range
from rt_kernels.guidance.stand_commands import ALIVE, MOVING, STAND_BOUNDS, STAND_COMMANDS, STAND_PARAMETERS
from rt_kernels.parameters import Command, Parameter, Tunable, checked

cdef enum:
    QUEUE = 8

cdef struct Request:            # a Step or an Insert
    int32_t kind
    int32_t coordinate          # 0-2 translation, 3-5 rotation of the moving interface
    double amplitude
    double rate

cdef struct Params:
    BerthingGuidanceParameters keys
    StandParams stand
    double period
    int frame
    int right                   # where the three rotation rates begin in hand_axis

cdef struct State:
    StandState stand
    Pose X_begin                # pose of the moving interface when the running command began
    double travel               # demanded since then
    double speed                # along the coordinate, positive towards the amplitude
    double correcting           # time since the trapezoid ended
    double settled
    double latched_time         # for which commands have waited for latches that hold after the release
    double flight_time          # with the loop closed
    double mode_time
    double joint_rate
    Request queue[QUEUE]        # the running command is the first
    int32_t waiting             # length of the queue, the running command included
    int32_t supervisory
    int32_t arm_mode
    int32_t arm_target
    int32_t speed_mode
    int32_t release

cdef struct Self:
    Params params
    State state


# ------------------------------------------------------------------------------------------------------- Step and Insert

cdef inline bint running(const State *s) noexcept nogil:
    return s.supervisory == SUPERVISORY_STEP or s.supervisory == SUPERVISORY_INSERT


cdef void cancel(State *s) noexcept nogil:
    """Ends the running command and forgets those that wait."""
    if running(s):
        s.supervisory = SUPERVISORY_ABORTED
    s.waiting = 0
    s.speed = 0.0


cdef void begin_request(State *s, const Sample *o) noexcept nogil:
    """The first of the queue becomes the running command."""
    s.X_begin = pose(o.X_TA)
    s.travel = 0.0
    s.speed = 0.0
    s.correcting = 0.0
    s.settled = 0.0
    s.supervisory = s.queue[0].kind


cdef void request(State *s, int kind, int coordinate, double amplitude, double rate) noexcept nogil:
    """Takes a command into the queue; one without travel, without rate, or too many are not taken."""
    cdef Request *last
    if s.waiting >= QUEUE or s.arm_mode != ARM_MODE_HAND or amplitude == 0.0 or not rate > 0.0:
        return
    last = &s.queue[s.waiting]
    last.kind, last.coordinate, last.amplitude, last.rate = kind, coordinate, amplitude, rate
    s.waiting += 1


cdef double achieved(const State *s, const Sample *o, int coordinate) noexcept nogil:
    """How far the moving interface has come along or about one of its own axes, as they were at the beginning of the command."""
    cdef Pose X = pose(o.X_TA)
    cdef Vec3 d = sub(X.p, s.X_begin.p) if coordinate < 3 else rotation_between(s.X_begin.q, X.q)
    cdef Vec3 a = rotate_back(s.X_begin.q, d)
    return a.x if coordinate % 3 == 0 else a.y if coordinate % 3 == 1 else a.z


cdef void follow_request(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Rate of the running command; the next one when it is done."""
    cdef Request *r = &s.queue[0]
    cdef int kind = r.coordinate // 3
    cdef double sign = 1.0 if r.amplitude > 0.0 else -1.0
    cdef double a = p.keys.step_acceleration_rad_s2 if kind else p.keys.step_acceleration_m_s2
    cdef double left = fabs(r.amplitude) - s.travel
    cdef double gap = fabs(r.amplitude) - sign * achieved(s, o, r.coordinate)
    cdef double wanted
    cdef int i
    if s.correcting == 0.0 and left > a * dt * dt:
        # trapezoid: no faster than the rate and than what can still be braked
        wanted = sqrt(a * a * dt * dt + 2.0 * a * left) - a * dt
        if wanted > r.rate:
            wanted = r.rate
    else:
        # its end, corrected by what was achieved
        s.correcting += dt
        wanted = p.keys.correction_gain * gap
        wanted = r.rate if wanted > r.rate else -r.rate if wanted < -r.rate else wanted
        s.settled = s.settled + dt if fabs(gap) <= (p.keys.step_tolerance_rad if kind else p.keys.step_tolerance_m) else 0.0
        if wanted < s.speed - a * dt:
            wanted = s.speed - a * dt
    s.speed = s.speed + a * dt if wanted > s.speed + a * dt else wanted
    s.travel += s.speed * dt
    o.supervisory_left = gap
    o.operator_rate[r.coordinate] = sign * s.speed
    o.rate_frame = RATE_FRAME_INTERFACE
    if s.correcting > 0.0 and (s.settled > p.stand.keys.settle or s.correcting >= p.keys.correction_max):
        s.supervisory = SUPERVISORY_DONE
        o.operator_rate[r.coordinate] = 0.0
        s.waiting -= 1
        for i in range(s.waiting):
            s.queue[i] = s.queue[i + 1]


cdef bint waits_for_latches(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Whether latches hold after the release: the first command of the queue is not begun, and after `release_wait` none is."""
    if not s.release or p.stand.keys.release_wait == 0.0 or not latched(o):
        s.latched_time = 0.0
        return False
    s.latched_time += dt
    if s.latched_time > p.stand.keys.release_wait:
        s.latched_time = 0.0
        s.waiting = 0
        s.supervisory = SUPERVISORY_ABORTED
        o.guidance_fault |= GUIDANCE_FAULT_SEQUENCE_INTERVAL
    return True


cdef inline bint too_hard(const Params *p, const Sample *o) noexcept nogil:
    return norm(vec(o.F_T)) > p.keys.abort_force or norm(vec(o.F_T + 3)) > p.keys.abort_moment


# ------------------------------------------------------------------------------------------------------------ the operator

cdef void operate(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Rates that the operator asks for: hand controllers, a supervisory command, or one joint."""
    cdef double stick[6]
    cdef bint coarse
    cdef bint deflected = False
    cdef int i
    for i in range(3):
        stick[i] = o.hand_axis[i]
        stick[3 + i] = o.hand_axis[p.right + i]
    for i in range(6):
        deflected = deflected or stick[i] != 0.0
    # a silent or faulty hand controller is a note to the operator; its rates are zero already
    if p.keys.sticks_required:
        for i in range(2 if p.right >= 6 else 1):
            if not o.hand_status[i] & HAND_STATUS_PRESENT or o.hand_status[i] & HAND_STATUS_STALE:
                o.guidance_fault |= GUIDANCE_FAULT_HAND_CONTROLLER_STALE
    o.speed_mode = SPEED_MODE_VERNIER if o.hand_buttons[0] & HAND_BUTTON_VERNIER else s.speed_mode
    s.mode_time += dt
    if s.arm_mode == ARM_MODE_PATH and o.dynamics_status & DYNAMICS_STATUS_PATH_DONE and s.mode_time > 10.0 * dt:
        s.arm_mode = ARM_MODE_HAND
    if s.arm_mode == ARM_MODE_SINGLE_JOINT:
        o.operator_rate[0] = s.joint_rate
    if s.arm_mode != ARM_MODE_HAND:
        return
    if running(s) and (too_hard(p, o) or deflected and p.keys.stick_cancels):
        cancel(s)
    if not running(s) and s.waiting > 0 and not waits_for_latches(p, s, o, dt):
        begin_request(s, o)
    if running(s):
        follow_request(p, s, o, dt)
        return
    coarse = o.speed_mode == SPEED_MODE_COARSE
    for i in range(3):
        o.operator_rate[i] = (p.keys.coarse_m_s if coarse else p.keys.vernier_m_s) * stick[i]
        o.operator_rate[3 + i] = (p.keys.coarse_rad_s if coarse else p.keys.vernier_rad_s) * stick[3 + i]


cdef void set_mode(State *s, int mode, int target) noexcept nogil:
    cancel(s)
    s.arm_mode = mode
    s.arm_target = target
    s.mode_time = 0.0
    s.joint_rate = 0.0


# ---------------------------------------------------------------------------------------------------------- phase changes

cdef void finish(const Params *p, State *s, Sample *o, int cause) noexcept nogil:
    set_mode(s, ARM_MODE_HOLD, 0)
    begin_finish(&p.stand, &s.stand, o, cause)


cdef void hold(const Params *p, State *s, Sample *o) noexcept nogil:
    set_mode(s, ARM_MODE_HOLD, 0)
    if s.stand.phase == PHASE_CONTACT and not p.keys.hold_stops_platform:
        # the loop stays closed
        o.motion = MOTION_FREE
        enter(&s.stand, o, PHASE_HOLD)
    else:
        begin_hold(&p.stand, &s.stand, o)
        o.motion = MOTION_FOLLOW_PROFILE


# --------------------------------------------------------------------------------------------------------------- commands

cdef inline bint held_flying(const State *s, const Sample *o) noexcept nogil:
    """Held with the loop closed?"""
    return s.stand.phase == PHASE_HOLD and o.motion == MOTION_FREE


cdef void obey(const Params *p, State *s, Sample *o) noexcept nogil:
    """Commands that change the phase."""
    cdef int c = o.command_code
    cdef bint flying = s.stand.phase == PHASE_CONTACT or held_flying(s, o)
    if c == COMMAND_HOLD and may_hold(&s.stand):
        hold(p, s, o)
    elif flying and (c == COMMAND_STOP or c == COMMAND_PARK or ends_for_record(&s.stand, o)):
        finish(p, s, o, END_CAUSE_STOPPED)
    elif c == COMMAND_RESUME and held_flying(s, o):
        set_mode(s, ARM_MODE_HAND, 0)
        enter(&s.stand, o, PHASE_CONTACT)
    else:
        obey_stand(&p.stand, &s.stand, o)


cdef void obey_arm(State *s, const Sample *o) noexcept nogil:
    """Commands to the manipulator, taken while the loop is closed and not held."""
    cdef int c = o.command_code
    cdef const double *arg = o.command_arg
    if c == COMMAND_STEP and 0.0 <= arg[0] < 6.0:
        request(s, SUPERVISORY_STEP, <int>arg[0], arg[1], arg[2])
    elif c == COMMAND_INSERT:
        request(s, SUPERVISORY_INSERT, 0, arg[0], arg[1])
    elif c == COMMAND_SINGLE_JOINT:
        set_mode(s, ARM_MODE_SINGLE_JOINT, <int>arg[0])
        s.joint_rate = arg[1]
    elif c == COMMAND_AUTO_SEQUENCE:
        set_mode(s, ARM_MODE_PATH, <int>arg[0])
    elif c == COMMAND_BRAKES:
        set_mode(s, ARM_MODE_BRAKES if arg[0] > 0.5 else ARM_MODE_HAND, 0)
    elif c == COMMAND_LIMP:
        set_mode(s, ARM_MODE_LIMP if arg[0] > 0.5 else ARM_MODE_HAND, 0)
    elif c == COMMAND_RESUME:
        set_mode(s, ARM_MODE_HAND, 0)


# --------------------------------------------------------------------------------------------------------------- the step

cdef void end_of_flight(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Capture, load or time ends the closed loop."""
    cdef bint captured = (o.mechanism_state & MECHANISM_SIGNAL_DSG) != 0
    s.flight_time += dt
    if captured and p.keys.finish_on_capture and 1e-9 * <double>o.time_ns - o.capture_time >= p.keys.after_capture:
        finish(p, s, o, END_CAUSE_CAPTURED)
    elif p.keys.finish_on_overload and o.dynamics_status & DYNAMICS_STATUS_OVERLOAD:
        finish(p, s, o, END_CAUSE_OVERLOAD)
    elif s.flight_time >= p.keys.contact_max:
        finish(p, s, o, END_CAUSE_TIME)


cdef void run_phase(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """What the present phase asks of the dynamics, and where it leads."""
    if s.stand.phase == PHASE_CLOSING:
        o.motion = MOTION_CLOSE_LOOP
        set_mode(s, ARM_MODE_HAND, 0)
        enter(&s.stand, o, PHASE_CONTACT)
    elif s.stand.phase == PHASE_CONTACT:
        o.motion = MOTION_FREE
        operate(p, s, o, dt)
        end_of_flight(p, s, o, dt)
    elif held_flying(s, o):
        if p.stand.keys.hold_acceleration_max > 0.0 and o.V_TA[0] > 0.0:
            tell_touch(&p.stand, o, shortest_stop(&p.stand, o))
        end_of_flight(p, s, o, dt)
    elif run_stand(&p.stand, &s.stand, o):
        enter(&s.stand, o, PHASE_CLOSING)
    # what has not let go is not gripped again by the latches that were drawn in
    if o.guidance_fault & GUIDANCE_FAULT_SEQUENCE_INTERVAL:
        s.release = 1


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double dt = p.period * sample.periods
    sample.guidance_fault = 0
    memset(sample.operator_rate, 0, sizeof(sample.operator_rate))
    sample.control_request = 0
    sample.supervisory_left = 0.0
    sample.rate_frame = p.frame
    sample.phase_time += dt
    if trip(&s.stand, sample):
        set_mode(s, ARM_MODE_HOLD, 0)
    if sample.command_code != 0 and s.stand.phase != PHASE_FAULT:
        if sample.command_code == COMMAND_SPEED_MODE:
            s.speed_mode = SPEED_MODE_COARSE if sample.command_arg[0] > 0.5 else SPEED_MODE_VERNIER
        elif sample.command_code == COMMAND_RELEASE:
            s.release = sample.command_arg[0] > 0.5
        elif s.stand.phase == PHASE_CONTACT:
            obey_arm(s, sample)
        obey(p, s, sample)
    sample.speed_mode = s.speed_mode
    sample.mechanism_command = MECHANISM_COMMAND_RELEASE if s.release else 0
    run_phase(p, s, sample, dt)
    sample.phase = s.stand.phase
    sample.end_cause = s.stand.end_cause
    sample.arm_mode = s.arm_mode
    sample.arm_target = s.arm_target
    sample.supervisory = s.supervisory
    sample.supervisory_queue = s.waiting - 1 if running(s) else s.waiting


FRAMES = {"camera": RATE_FRAME_CAMERA, "target": RATE_FRAME_TARGET, "interface": RATE_FRAME_INTERFACE,
          "end_effector": RATE_FRAME_END_EFFECTOR}
ROTATIONS = {"right": 9, "right_first": 6, "left": 3}


# resume gives the arm back to the hand controllers too
BERTHING_COMMANDS = (
    *(command for command in STAND_COMMANDS if command.name not in ("resume", "hold")),
    *(Command(name, ("contact",)) for name in ("step", "insert", "single_joint", "auto_sequence", "brakes", "limp")),
    Command("hold", (*MOVING, "hold"), does="the arm holds, its load swings out and the platform follows; with hold_stops_platform the "
            "platform is brought to rest and only the way back follows"),
    Command("resume", ("hold", "contact"), does="gives the arm back to the hand controllers; of a platform at rest: retreat and park"),
    Command("speed_mode", ALIVE), Command("release", ALIVE),
)


cdef class BerthingGuidance(StagePart):
    """Phases of a berthing run, hand controllers, Step and Insert."""

    PARAMETERS = (
        Parameter("start_distance_m", "float", "m", "from the start pose to the nominal first contact, along the docking axis", 0.3,
                  low=0.0, high=3.0),
        Parameter("frame", "str", "-", "axes in which the hand controllers command", "camera", choices=tuple(FRAMES)),
        Parameter("rotation_from", "str", "-", "where the rotation rates come from: axes roll yaw pitch of the right hand controller, its "
                  "axes x y z, or axes roll yaw pitch of the left one (a single hand controller)", "right", choices=tuple(ROTATIONS)),
        Parameter("coarse_m_s", "float", "m/s", "translation rate at full deflection, coarse", 0.019, low=1e-5, high=0.5,
                  tunable=Tunable(0.02, of_configured=2.0)),
        Parameter("vernier_m_s", "float", "m/s", "translation rate at full deflection, vernier", 0.005, low=1e-5, high=0.5,
                  tunable=Tunable(0.02, of_configured=2.0)),
        Parameter("coarse_deg_s", "float", "deg/s", "rotation rate at full deflection, coarse", 0.15, low=1e-4, high=10.0,
                  tunable=Tunable(0.2, of_configured=2.0)),
        Parameter("vernier_deg_s", "float", "deg/s", "rotation rate at full deflection, vernier", 0.04, low=1e-4, high=10.0,
                  tunable=Tunable(0.2, of_configured=2.0)),
        Parameter("start_coarse", "bool", "-", "speed mode at the start of the run", True),
        Parameter("sticks_required", "bool", "-", "a missing or silent hand controller is a note (fault hand_controller_stale)", True),
        Parameter("stick_cancels", "bool", "-", "a deflected hand controller ends a running Step or Insert", True),
        Parameter("step_acceleration_m_s2", "float", "m/s2", "of Step and Insert", 0.002, low=1e-6, high=1.0),
        Parameter("step_acceleration_deg_s2", "float", "deg/s2", "of Step in rotation", 0.02, low=1e-5, high=10.0),
        Parameter("step_tolerance_m", "float", "m", "a Step is done this near to its amplitude", 0.0005, low=1e-6, high=0.1),
        Parameter("step_tolerance_deg", "float", "deg", "the same in rotation", 0.02, low=1e-5, high=5.0),
        Parameter("correction_gain_per_s", "float", "1/s", "of the end of a Step by the achieved coordinate", 0.2, low=0.0, high=20.0),
        Parameter("correction_max_s", "float", "s", "a Step is done this long after its profile, whatever was achieved", 20.0,
                  low=0.0, high=600.0),
        Parameter("abort_force_n", "float", "N", "measured force that ends a running Step or Insert", 1000.0, low=0.1, high=1e6),
        Parameter("abort_moment_n_m", "float", "N.m", "measured moment that does", 1000.0, low=0.1, high=1e6),
        Parameter("contact_max_s", "float", "s", "longest closed loop", 900.0, low=0.01, high=7200.0),
        Parameter("after_capture_s", "float", "s", "the run continues this long after capture", 2.0, low=0.0, high=3600.0),
        Parameter("finish_on_capture", "bool", "-", "capture ends the run (after after_capture_s)", True),
        Parameter("finish_on_overload", "bool", "-", "a load beyond the manipulator's limit ends the run", False),
        Parameter("hold_stops_platform", "bool", "-", "hold brings the platform to rest instead of the manipulator alone; the run cannot "
                  "be resumed then", False),
    ) + STAND_PARAMETERS
    COMMANDS = BERTHING_COMMANDS
    CONTEXT = ("period_s", "start")
    FLOWN = True
    cdef Self c

    def __init__(self, *, period_s, start, **given):
        cdef Params *p = &self.c.params
        keys = checked(BerthingGuidance.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        p.period = period_s
        p.stand.X_start = pose_from(start.X_TA)
        fill_berthing_guidance(&p.keys, keys)
        fill_stand(&p.stand.keys, keys)
        p.stand.X_start.p.x -= p.keys.start_distance
        p.stand.touch = start.X_TA[0]
        p.frame, p.right = FRAMES[keys["frame"]], ROTATIONS[keys["rotation_from"]]
        stand_idle(&self.c.state.stand)
        self.c.state.speed_mode = SPEED_MODE_COARSE if p.keys.start_coarse else SPEED_MODE_VERNIER
        self.c.state.X_begin = unit_pose()
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        tune_berthing_guidance(self, &p.keys, keys)

    def state_bounds(self):
        return STAND_BOUNDS | {"queue.kind": code_range("supervisory"), "queue.coordinate": (0, 5), "waiting": (0, QUEUE),
                               "supervisory": code_range("supervisory"), "arm_mode": code_range("arm_mode"),
                               "arm_target": (-COUNT_32[1], COUNT_32[1]),
                               "speed_mode": code_range("speed_mode"), "release": FLAG}

    def fields(self):
        return self.c

    def approach(self, int count):
        """The programmed relative poses X_TA of the approach, (1, 7): the start pose alone, from there on the operator flies."""
        cdef double[:, ::1] X = np.empty((1, 7))
        put_pose(self.c.params.stand.X_start, &X[0, 0])
        return np.asarray(X)
