"""Programmed motion for the identification of a stand, in air: parts one after another, along one direction

    X_TA = X_0 moved by s(t) d

slow sine   s = a sin(2 pi f t), whole periods: dead band and static gain
multisine   s = sum_k a_k sin(2 pi f_k t + phi_k), lines on a grid of 1/period, Schroeder phases; one period to settle, `periods` to measure
chirp       s = a(t) sin(2 pi (f_0 t + (f_1 - f_0) t^2/(2 T))): checks what was fitted

and, where the stand feels its load, in all six:

six         a multisine in each direction at once, the lines of a grid dealt to the directions in turn, so that each answers by its own
            lines; once for every rate of `six_rate_rms_m_s`, down to the motion of a contact
high        a second chirp, along `direction`, near the frequencies of the structure
poses       moves to other poses and stands still there: what the weight does
tap         stands still for `tap_s`: the unit on the load cell is tapped

Each part is faded in and out over `fade_s`; a line's amplitude falls with its frequency, so that all have the same share of the rate.
Rate and acceleration of the chirps are those of a sine of their frequency at the time: the slopes of amplitude and frequency are left out.
The loop is never closed: the phases are idle, approach (moving), finish, ended. The parts' times are in `schedule` of the Python class.
"""

from libc.math cimport floor
from libc.string cimport memset

import math

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport (Pose, Vec3, add, cross, mul, pose, pose_of, put, put_pose, turned, unit_pose, vec)
from rt_kernels.codes cimport (COMMAND_ABORT, COMMAND_PARK, COMMAND_RECORD_LOST, COMMAND_START, COMMAND_STOP, END_CAUSE_COMPLETE,
                               END_CAUSE_RECORD_LOST, END_CAUSE_STOPPED, END_CAUSE_TRIPPED, FAULTS_STOP, GUIDANCE_FAULT_OPERATOR_STOP,
                               GUIDANCE_FAULT_RECORD_LOST, GUIDANCE_FAULT_RECORD_REQUIRED, MOTION_FOLLOW_PROFILE, MOTION_FREEZE,
                               PHASE_APPROACH, PHASE_ENDED, PHASE_FAULT, PHASE_IDLE, SAFETY_STATE_BLOCKED, SAFETY_STATE_HELD,
                               SAFETY_STATE_NOT_ARMED)
from rt_kernels.guidance.excitation_parameters cimport ExcitationParameters, fill_excitation
from rt_kernels.guidance.profiles cimport quintic
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import code_range
from rt_kernels.parameters import Command, Parameter, checked

cdef enum:
    MAX_LINES = 32
    MAX_SIX = 256
    MAX_LEVELS = 6
    MAX_POSES = 12
    MAX_PARTS = 12
    # kinds of parts
    SLOW = 0
    MULTISINE = 1
    CHIRP = 2
    SIX = 3
    HIGH = 4
    POSES = 5
    TAP = 6

cdef double TURN = 6.283185307179586

cdef struct Params:
    ExcitationParameters keys
    double period
    double begin[12]            # s, of the parts
    double length[12]
    double scale[12]            # m/s, of the lines of a part `six`
    int kind[12]
    int parts
    int poses
    double frequency[32]
    double amplitude[32]
    double phase[32]            # turns
    double chirp_from[2]        # chirp, high
    double chirp_rate[2]        # Hz/s
    double chirp_speed[2]       # m/s
    double six_frequency[256]
    double six_amplitude[256]   # s or rad.s/m: m or rad at a rate of 1 m/s
    double six_phase[256]       # turns
    double pose[12][6]          # displacements, m, rad
    double end
    int lines
    int six_lines

cdef struct State:
    Pose X_0
    double time
    int phase
    int end_cause

cdef struct Self:
    Params params
    State state


cdef inline void sine(double turns, double w, double a, double *s, double *ds, double *dds) noexcept nogil:
    """Adds a sin(2 pi turns) and its derivatives at the angular frequency w."""
    cdef double sn, cs
    sincos(TURN * (turns - floor(turns)), &sn, &cs)
    s[0] += a * sn
    ds[0] += a * w * cs
    dds[0] -= a * w * w * sn


cdef inline void along(const Params *p, int kind, double t, double *s, double *ds, double *dds) noexcept nogil:
    """s(t) of a part along `direction`, and its derivatives."""
    cdef double w
    cdef int i
    s[0] = ds[0] = dds[0] = 0.0
    if kind == SLOW:
        sine(p.keys.slow * t, TURN * p.keys.slow, p.keys.slow_amplitude, s, ds, dds)
    elif kind == MULTISINE:
        for i in range(p.lines):
            sine(p.frequency[i] * t + p.phase[i], TURN * p.frequency[i], p.amplitude[i], s, ds, dds)
    else:
        i = 1 if kind == HIGH else 0
        w = TURN * (p.chirp_from[i] + p.chirp_rate[i] * t)
        sine((p.chirp_from[i] + 0.5 * p.chirp_rate[i] * t) * t, w, p.chirp_speed[i] / w, s, ds, dds)


cdef inline void window(const Params *p, double t, double length, double *s, double *ds, double *dds) noexcept nogil:
    """Fades s in and out: quintic from 0 to 1, and back."""
    cdef double x, dx, ddx, u = s[0], du = ds[0], ddu = dds[0]
    if t < p.keys.fade:
        quintic(t / p.keys.fade, &x, &dx, &ddx)
        dx /= p.keys.fade
    elif length - t < p.keys.fade:
        quintic((length - t) / p.keys.fade, &x, &dx, &ddx)
        dx /= -p.keys.fade
    else:
        return
    ddx /= p.keys.fade * p.keys.fade
    s[0] = x * u
    ds[0] = x * du + dx * u
    dds[0] = x * ddu + 2.0 * dx * du + ddx * u


cdef inline void from_pose_to_pose(const Params *p, double t, double *s, double *ds, double *dds) noexcept nogil:
    """Displacement (6): one pose after another by quintics, standing still in each, and back."""
    cdef double leg = p.keys.move + p.keys.still, x, dx, ddx, start, way
    cdef int at = <int>floor(t / leg), i
    at = p.poses if at > p.poses else at
    t -= at * leg
    quintic(t / p.keys.move if t < p.keys.move else 1.0, &x, &dx, &ddx)
    for i in range(6):
        start = p.pose[at - 1][i] if at > 0 else 0.0
        way = (p.pose[at][i] if at < p.poses else 0.0) - start
        s[i] = start + x * way
        ds[i] = dx * way / p.keys.move
        dds[i] = ddx * way / (p.keys.move * p.keys.move)


cdef void excitation(const Params *p, double t, double *s, double *ds, double *dds) noexcept nogil:
    """Displacement (6), a rotation vector below, and its derivatives. Outside the parts: zero."""
    cdef double x, dx, ddx
    cdef int part = -1, i
    memset(s, 0, 6 * sizeof(double))
    memset(ds, 0, 6 * sizeof(double))
    memset(dds, 0, 6 * sizeof(double))
    for i in range(p.parts):
        if p.begin[i] <= t < p.begin[i] + p.length[i]:
            part = i
    if part < 0 or p.kind[part] == TAP:
        return
    t -= p.begin[part]
    if p.kind[part] == POSES:
        from_pose_to_pose(p, t, s, ds, dds)
    elif p.kind[part] == SIX:
        for i in range(p.six_lines):
            sine(p.six_frequency[i] * t + p.six_phase[i], TURN * p.six_frequency[i], p.scale[part] * p.six_amplitude[i], s + i % 6,
                 ds + i % 6, dds + i % 6)
        for i in range(6):
            window(p, t, p.length[part], s + i, ds + i, dds + i)
    else:
        along(p, p.kind[part], t, &x, &dx, &ddx)
        window(p, t, p.length[part], &x, &dx, &ddx)
        for i in range(6):
            s[i] = x * p.keys.direction[i]
            ds[i] = dx * p.keys.direction[i]
            dds[i] = ddx * p.keys.direction[i]
        return
    # the twist of a turning rotation vector, to its third order
    turn(s + 3, dds + 3)
    turn(s + 3, ds + 3)


cdef inline void turn(const double *phi, double *d) noexcept nogil:
    """Adds phi x d / 2 + phi x (phi x d) / 6."""
    cdef Vec3 f = vec(phi)
    cdef Vec3 c = cross(f, vec(d))
    put(add(add(vec(d), mul(0.5, c)), mul(1.0 / 6.0, cross(f, c))), d)


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double x[6]
    cdef double dx[6]
    cdef double ddx[6]
    cdef int i
    sample.guidance_fault = 0
    sample.mechanism_command = 0
    memset(sample.operator_rate, 0, sizeof(sample.operator_rate))
    sample.control_request = 0
    sample.phase_time += p.period * sample.periods
    if sample.faults & FAULTS_STOP and s.phase != PHASE_FAULT and s.phase != PHASE_ENDED:
        s.phase = PHASE_FAULT
        s.end_cause = END_CAUSE_TRIPPED
        sample.phase_time = 0.0
    if sample.command_code == COMMAND_ABORT:
        sample.guidance_fault |= GUIDANCE_FAULT_OPERATOR_STOP
    elif sample.command_code == COMMAND_RECORD_LOST and sample.command_arg[0] > 0.5:
        sample.guidance_fault |= GUIDANCE_FAULT_RECORD_REQUIRED
    elif sample.command_code == COMMAND_RECORD_LOST and s.phase != PHASE_ENDED:
        sample.guidance_fault |= GUIDANCE_FAULT_RECORD_LOST
        if s.phase != PHASE_FAULT:
            s.end_cause = END_CAUSE_RECORD_LOST
            s.phase = PHASE_ENDED
    elif (sample.command_code == COMMAND_STOP or sample.command_code == COMMAND_PARK) and (s.phase == PHASE_APPROACH
                                                                                                  or s.time < 0.0):
        s.end_cause = END_CAUSE_STOPPED
        s.phase = PHASE_ENDED
    sample.motion = MOTION_FOLLOW_PROFILE
    if s.phase == PHASE_IDLE:
        if sample.forward_kinematics_status == 0:
            # from where the platform stands, as soon as the setpoints have started; time -1: it stands there and waits for the command
            if s.time >= 0.0:
                s.X_0 = pose(sample.X_TA_measured)
            put_pose(s.X_0, sample.profile_X_TA)
            if sample.safety_state != SAFETY_STATE_NOT_ARMED:
                s.time = -1.0
            if s.time < 0.0 and (p.keys.auto_start or sample.command_code == COMMAND_START):
                s.phase = PHASE_APPROACH
                s.time = 0.0
                sample.phase_time = 0.0
    elif s.phase == PHASE_APPROACH:
        excitation(p, s.time, x, dx, ddx)
        put_pose(pose_of(add(s.X_0.p, vec(x)), turned(s.X_0.q, vec(x + 3), 1.0)), sample.profile_X_TA)
        for i in range(6):
            sample.profile_V_TA[i] = dx[i]
            sample.profile_A_TA[i] = ddx[i]
        s.time += p.period * sample.periods
        if s.time >= p.end:
            s.phase = PHASE_ENDED
            s.end_cause = END_CAUSE_COMPLETE
    elif s.phase == PHASE_ENDED and sample.phase == PHASE_ENDED:
        # the loop continues until the setpoints rest
        for i in range(6):
            sample.profile_V_TA[i] = 0.0
            sample.profile_A_TA[i] = 0.0
    elif s.phase == PHASE_FAULT:
        sample.motion = MOTION_FREEZE
        if (sample.safety_state == SAFETY_STATE_HELD or sample.safety_state == SAFETY_STATE_NOT_ARMED
                or sample.safety_state == SAFETY_STATE_BLOCKED):
            s.phase = PHASE_ENDED
    sample.phase = s.phase
    sample.end_cause = s.end_cause


cdef class Excitation(StagePart):
    """Identification run. `schedule`: name -> (begin, length) in s of the phase `approach`; `lines`: (frequency Hz, amplitude m);
    `six_lines`: (frequency Hz, direction 0...5)."""

    PARAMETERS = (
        Parameter("direction", "floats", "m, rad", "motion of the moving port for s = 1 m, T axes", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
                  shape=6),
        Parameter("slow_amplitude_m", "float", "m", "amplitude of the slow sine", 0.004, low=1e-5, high=0.5),
        Parameter("slow_hz", "float", "Hz", "its frequency", 0.25, low=0.01, high=2.0),
        Parameter("slow_periods", "int", "-", "its periods that count; one more to settle; 0: no such part", 2, low=0, high=100),
        Parameter("lines_hz", "floats", "Hz", "lines of the multisine",
                  (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0,
                                                                       16.0, 18.0, 20.0), low=0.05, high=200.0),
        Parameter("rate_rms_m_s", "float", "m/s", "rate of the multisine, rms", 0.03, low=1e-4, high=1.0),
        Parameter("multisine_s", "float", "s", "period of the multisine; every line is a multiple of 1/period", 4.0, low=0.1, high=600.0),
        Parameter("periods", "int", "-", "periods that are measured; 0: no such part", 3, low=0, high=1000),
        Parameter("chirp_hz", "floats", "Hz", "from, to", (0.5, 15.0), shape=2, low=0.05, high=200.0),
        Parameter("chirp_s", "float", "s", "length of the chirp, 0: none", 6.0, low=0.0, high=600.0),
        Parameter("chirp_rate_m_s", "float", "m/s", "rate amplitude of the chirp", 0.03, low=1e-4, high=1.0),
        Parameter("fade_s", "float", "s", "every part begins and ends over this time", 0.5, low=0.05, high=10.0),
        Parameter("six_rate_rms_m_s", "floats", "m/s", "rates of the multisines in all six directions, one after another, rms; none: no "
                  "such part", (), low=1e-5, high=1.0),
        Parameter("six_hz", "floats", "Hz", "lines from, to: all of the grid between", (0.5, 20.0), shape=2, low=0.05, high=200.0),
        Parameter("six_period_s", "float", "s", "their period: the grid is 1/period", 4.0, low=0.1, high=600.0),
        Parameter("six_periods", "int", "-", "periods that are measured at each rate; one more to settle", 2, low=1, high=1000),
        Parameter("six_radius_m", "float", "m", "turning rates are rates over this radius", 1.8, low=0.01, high=100.0),
        Parameter("high_hz", "floats", "Hz", "chirp near the frequencies of the structure: from, to", (20.0, 60.0), shape=2, low=0.05,
                  high=200.0),
        Parameter("high_s", "float", "s", "its length, 0: none", 0.0, low=0.0, high=600.0),
        Parameter("high_rate_m_s", "float", "m/s", "its rate amplitude", 0.005, low=1e-5, high=1.0),
        Parameter("poses", "rows", "m, rad", "displacements of the moving port to stand still at, T axes; the last move leads back", (),
                  shape=(None, 6), low=-3.0, high=3.0),
        Parameter("move_s", "float", "s", "time of a move to the next pose", 2.0, low=0.1, high=60.0),
        Parameter("still_s", "float", "s", "time to stand still there", 1.0, low=0.1, high=60.0),
        Parameter("tap_s", "float", "s", "time to stand still while the unit on the load cell is tapped, 0: none", 0.0, low=0.0,
                  high=600.0),
        Parameter("auto_start", "bool", "-", "start without a command", True),
    )
    COMMANDS = (Command("abort"), Command("start", ("idle",)), Command("stop", ("idle", "approach")), Command("park", ("idle", "approach")))
    CONTEXT = ("period_s",)
    IN_AIR = True
    cdef Self c
    cdef readonly dict schedule
    cdef readonly list lines
    cdef readonly double fade_s
    cdef readonly double move_s
    cdef readonly double still_s
    cdef readonly double multisine_s
    cdef readonly list six_lines
    cdef readonly double six_period_s

    def __init__(self, *, period_s, **given):
        cdef Params *p = &self.c.params
        keys = checked(Excitation.PARAMETERS, given)
        cdef int i, k, n = len(keys["lines_hz"])
        memset(&self.c, 0, sizeof(Self))
        raise_for(keys["lines_hz"], keys["multisine_s"])
        p.period = period_s
        fill_excitation(&p.keys, keys)
        self.fade_s, self.multisine_s = p.keys.fade, p.keys.multisine
        p.lines = n
        self.lines = []
        for k in range(n):
            p.frequency[k] = keys["lines_hz"][k]
            p.amplitude[k] = keys["rate_rms_m_s"] * math.sqrt(2.0 / n) / (2.0 * math.pi * keys["lines_hz"][k])
            p.phase[k] = -0.5 * k * (k + 1) / n
            self.lines.append((keys["lines_hz"][k], p.amplitude[k]))
        for k, name in enumerate(("chirp", "high")):
            begin, end = keys[f"{name}_hz"]
            p.chirp_from[k], p.chirp_rate[k] = begin, (end - begin) / max(keys[f"{name}_s"], 0.5)
            p.chirp_speed[k] = keys[f"{name}_rate_m_s"]
        self.six_lines, self.six_period_s = [], keys["six_period_s"]
        rates = keys["six_rate_rms_m_s"]
        grid = [n / self.six_period_s for n in range(round_up(keys["six_hz"][0] * self.six_period_s),
                                                     round_down(keys["six_hz"][1] * self.six_period_s) + 1)]
        raise_for_six(rates, grid, keys["poses"])
        p.six_lines = len(grid) if rates else 0
        for k in range(p.six_lines):
            each, n = k // 6, (len(grid) - k % 6 + 5) // 6
            p.six_frequency[k] = grid[k]
            p.six_amplitude[k] = math.sqrt(2.0 / n) / (2.0 * math.pi * grid[k]) / (1.0 if k % 6 < 3 else keys["six_radius_m"])
            # directions apart by a part of a turn, so that their peaks do not meet
            p.six_phase[k] = -0.5 * each * (each + 1) / n + 0.37 * (k % 6)
            self.six_lines.append((grid[k], k % 6))
        p.poses = len(keys["poses"])
        self.move_s, self.still_s = p.keys.move, p.keys.still
        for k in range(p.poses):
            for i in range(6):
                p.pose[k][i] = keys["poses"][k][i]
        pause, at = 0.3, 0.3
        self.schedule = {}
        slow = (keys["slow_periods"] + 1) / keys["slow_hz"] + 2 * self.fade_s
        multisine = (keys["periods"] + 1) * self.multisine_s + 2 * self.fade_s
        parts = [("slow", SLOW, slow)] * (keys["slow_periods"] > 0) + [("multisine", MULTISINE, multisine)] * (keys["periods"] > 0)
        parts += [("chirp", CHIRP, keys["chirp_s"])] * (keys["chirp_s"] > 0.0)
        first_six = len(parts)
        six = (keys["six_periods"] + 1) * self.six_period_s + 2 * self.fade_s
        parts += [(f"six {k + 1}", SIX, six) for k in range(len(rates))]
        parts += [("high", HIGH, keys["high_s"])] * (keys["high_s"] > 0.0)
        parts += [("poses", POSES, (p.poses + 1) * (p.keys.move + p.keys.still))] * (p.poses > 0)
        parts += [("tap", TAP, keys["tap_s"])] * (keys["tap_s"] > 0.0)
        p.parts = len(parts)
        for k, (name, kind, length) in enumerate(parts):
            p.begin[k], p.length[k], p.kind[k] = at, length, kind
            p.scale[k] = rates[k - first_six] if kind == SIX else 0.0
            self.schedule[name] = (at, length)
            at += length + pause
        p.end = at
        self.c.state.phase = PHASE_IDLE
        self.c.state.X_0 = unit_pose()
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def state_bounds(self):
        return {"phase": code_range("phase"), "end_cause": code_range("end_cause")}

    def fields(self):
        return self.c


def raise_for(lines_hz, multisine_s):
    """ValueError for too many lines, or one that does not lie on the grid."""
    if not 2 <= len(lines_hz) <= MAX_LINES:
        raise ValueError(f"guidance.lines_hz: 2...{MAX_LINES} lines, got {len(lines_hz)}")
    for f in lines_hz:
        if abs(f * multisine_s - round(f * multisine_s)) > 1e-9:
            raise ValueError(f"guidance.lines_hz: {f} Hz is no multiple of 1/period, {1.0 / multisine_s} Hz")


def raise_for_six(rates, grid, poses):
    """ValueError for too many rates, lines or poses, or less than two lines a direction."""
    if len(rates) > MAX_LEVELS:
        raise ValueError(f"guidance.six_rate_rms_m_s: at most {MAX_LEVELS} rates, got {len(rates)}")
    if rates and not 12 <= len(grid) <= MAX_SIX:
        raise ValueError(f"guidance.six_hz: 12...{MAX_SIX} lines of 1/six_period_s, got {len(grid)}")
    if len(poses) > MAX_POSES:
        raise ValueError(f"guidance.poses: at most {MAX_POSES} poses, got {len(poses)}")


def round_up(x):
    return math.ceil(x - 1e-9)


def round_down(x):
    return math.floor(x + 1e-9)
