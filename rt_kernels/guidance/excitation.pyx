"""Programmed motion for the identification of the drives, in air: slow sine, multisine, chirp, one after another along one direction.

    X_TA = X_0 moved by s(t) d

slow sine   s = a sin(2 pi f t), whole periods: dead band and static gain
multisine   s = sum_k a_k sin(2 pi f_k t + phi_k), lines on a grid of 1/period, Schroeder phases; one period to settle, `periods` to measure
chirp       s = a(t) sin(2 pi (f_0 t + (f_1 - f_0) t^2/(2 T))): checks what was fitted

Each part is faded in and out over `fade_s`; a line's amplitude falls with its frequency, so that all have the same share of the rate.
The loop is never closed: the phases are idle, approach (moving), finish, ended. The parts' times are in `SCHEDULE` of the Python class.
"""

from libc.math cimport floor
from libc.string cimport memset

import math

from rt_kernels.algebra cimport pose, quat, vec3
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.codes cimport (COMMAND_ABORT, COMMAND_PARK, COMMAND_RECORD_LOST, COMMAND_STOP, END_CAUSE_COMPLETE, END_CAUSE_RECORD_LOST,
                               END_CAUSE_STOPPED, END_CAUSE_TRIPPED, FAULTS_STOP, GUIDANCE_FAULT_OPERATOR_STOP,
                               GUIDANCE_FAULT_RECORD_LOST, GUIDANCE_FAULT_RECORD_REQUIRED, MOTION_FOLLOW_PROFILE, MOTION_FREEZE,
                               PHASE_APPROACH, PHASE_ENDED, PHASE_FAULT, PHASE_IDLE, SAFETY_STATE_HELD, SAFETY_STATE_NOT_ARMED)
from rt_kernels.guidance.profiles cimport quintic
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Command, Parameter, checked

cdef enum:
    MAX_LINES = 32

cdef double TURN = 6.283185307179586

cdef struct Params:
    double period
    double direction[6]
    double begin[3]             # s, of the three parts
    double length[3]
    double fade
    double slow_amplitude
    double slow_frequency
    double frequency[32]
    double amplitude[32]
    double phase[32]            # turns
    double chirp_from
    double chirp_rate           # Hz/s
    double chirp_speed          # m/s
    double end
    int lines
    int unused

cdef struct State:
    double X_0[7]
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


cdef void excitation(const Params *p, double t, double *s, double *ds, double *dds) noexcept nogil:
    """s(t) and its derivatives. Outside the parts: zero."""
    cdef double x, dx, ddx, w, u, du, ddu, f
    cdef int part = -1, i
    s[0] = ds[0] = dds[0] = 0.0
    for i in range(3):
        if p.begin[i] <= t < p.begin[i] + p.length[i]:
            part = i
    if part < 0:
        return
    t -= p.begin[part]
    if part == 0:
        sine(p.slow_frequency * t, TURN * p.slow_frequency, p.slow_amplitude, s, ds, dds)
    elif part == 1:
        for i in range(p.lines):
            sine(p.frequency[i] * t + p.phase[i], TURN * p.frequency[i], p.amplitude[i], s, ds, dds)
    else:
        f = p.chirp_from + p.chirp_rate * t
        w = TURN * f
        sine((p.chirp_from + 0.5 * p.chirp_rate * t) * t, w, p.chirp_speed / w, s, ds, dds)
    # fade: quintic from 0 to 1, and back
    u = s[0]
    du = ds[0]
    ddu = dds[0]
    if t < p.fade:
        quintic(t / p.fade, &x, &dx, &ddx)
        dx /= p.fade
    elif p.length[part] - t < p.fade:
        quintic((p.length[part] - t) / p.fade, &x, &dx, &ddx)
        dx /= -p.fade
    else:
        return
    ddx /= p.fade * p.fade
    s[0] = x * u
    ds[0] = x * du + dx * u
    dds[0] = x * ddu + 2.0 * dx * du + ddx * u


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double x, dx, ddx
    cdef double phi[3]
    cdef double dq[4]
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
    elif sample.command_code == COMMAND_RECORD_LOST and s.phase != PHASE_FAULT and s.phase != PHASE_ENDED:
        sample.guidance_fault |= GUIDANCE_FAULT_RECORD_LOST
        s.end_cause = END_CAUSE_RECORD_LOST
        s.phase = PHASE_ENDED
    elif (sample.command_code == COMMAND_STOP or sample.command_code == COMMAND_PARK) and s.phase == PHASE_APPROACH:
        s.end_cause = END_CAUSE_STOPPED
        s.phase = PHASE_ENDED
    sample.motion = MOTION_FOLLOW_PROFILE
    if s.phase == PHASE_IDLE:
        if sample.forward_kinematics_status == 0:
            # from where the platform stands, as soon as the setpoints have started
            pose.copy(sample.X_TA_measured, s.X_0)
            pose.copy(s.X_0, sample.profile_X_TA)
            if sample.safety_state != SAFETY_STATE_NOT_ARMED:
                s.phase = PHASE_APPROACH
                s.time = 0.0
                sample.phase_time = 0.0
    elif s.phase == PHASE_APPROACH:
        excitation(p, s.time, &x, &dx, &ddx)
        for i in range(3):
            sample.profile_X_TA[i] = s.X_0[i] + x * p.direction[i]
        vec3.scale(x, p.direction + 3, phi)
        quat.exponential(phi, dq)
        quat.multiply(dq, s.X_0 + 3, sample.profile_X_TA + 3)
        quat.normalize(sample.profile_X_TA + 3)
        for i in range(6):
            sample.profile_V_TA[i] = dx * p.direction[i]
            sample.profile_A_TA[i] = ddx * p.direction[i]
        s.time += p.period * sample.periods
        if s.time >= p.end:
            s.phase = PHASE_ENDED
            s.end_cause = END_CAUSE_COMPLETE
    elif s.phase == PHASE_FAULT:
        sample.motion = MOTION_FREEZE
        if sample.safety_state == SAFETY_STATE_HELD or sample.safety_state == SAFETY_STATE_NOT_ARMED:
            s.phase = PHASE_ENDED
    sample.phase = s.phase
    sample.end_cause = s.end_cause


cdef class Excitation(StagePart):
    """Identification run. `schedule`: name -> (begin, length) in s of the phase `approach`; `lines`: (frequency Hz, amplitude m)."""

    PARAMETERS = (
        Parameter("direction", "floats", "m, rad", "motion of the moving port for s = 1 m, T axes", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
                  shape=6),
        Parameter("slow_amplitude_m", "float", "m", "amplitude of the slow sine", 0.004, low=1e-5, high=0.5),
        Parameter("slow_hz", "float", "Hz", "its frequency", 0.25, low=0.01, high=2.0),
        Parameter("slow_periods", "int", "-", "its periods that count; one more to settle", 2, low=1, high=100),
        Parameter("lines_hz", "floats", "Hz", "lines of the multisine",
                  (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0,
                                                                       16.0, 18.0, 20.0), low=0.05, high=200.0),
        Parameter("rate_rms_m_s", "float", "m/s", "rate of the multisine, rms", 0.03, low=1e-4, high=1.0),
        Parameter("multisine_s", "float", "s", "period of the multisine; every line is a multiple of 1/period", 4.0, low=0.1, high=600.0),
        Parameter("periods", "int", "-", "periods that are measured", 3, low=1, high=1000),
        Parameter("chirp_hz", "floats", "Hz", "from, to", (0.5, 15.0), shape=2, low=0.05, high=200.0),
        Parameter("chirp_s", "float", "s", "length of the chirp", 6.0, low=0.5, high=600.0),
        Parameter("chirp_rate_m_s", "float", "m/s", "rate amplitude of the chirp", 0.03, low=1e-4, high=1.0),
        Parameter("fade_s", "float", "s", "every part begins and ends over this time", 0.5, low=0.05, high=10.0),
    )
    COMMANDS = (Command("abort"), Command("stop", ("approach",)), Command("park", ("approach",)))
    CONTEXT = ("period_s",)
    IN_AIR = True
    cdef Self c
    cdef readonly dict schedule
    cdef readonly list lines
    cdef readonly double fade_s
    cdef readonly double multisine_s

    def __init__(self, *, period_s, **given):
        cdef Params *p = &self.c.params
        keys = checked(Excitation.PARAMETERS, given)
        cdef int k, n = len(keys["lines_hz"])
        memset(&self.c, 0, sizeof(Self))
        raise_for(keys["lines_hz"], keys["multisine_s"])
        p.period = period_s
        self.fade_s, self.multisine_s = keys["fade_s"], keys["multisine_s"]
        for k in range(6):
            p.direction[k] = keys["direction"][k]
        p.slow_amplitude, p.slow_frequency, p.fade = keys["slow_amplitude_m"], keys["slow_hz"], keys["fade_s"]
        p.lines = n
        self.lines = []
        for k in range(n):
            p.frequency[k] = keys["lines_hz"][k]
            p.amplitude[k] = keys["rate_rms_m_s"] * math.sqrt(2.0 / n) / (2.0 * math.pi * keys["lines_hz"][k])
            p.phase[k] = -0.5 * k * (k + 1) / n
            self.lines.append((keys["lines_hz"][k], p.amplitude[k]))
        begin, end = keys["chirp_hz"]
        p.chirp_from, p.chirp_rate, p.chirp_speed = begin, (end - begin) / keys["chirp_s"], keys["chirp_rate_m_s"]
        pause, at = 0.3, 0.3
        self.schedule = {}
        slow = (keys["slow_periods"] + 1) / keys["slow_hz"] + 2 * self.fade_s
        multisine = (keys["periods"] + 1) * self.multisine_s + 2 * self.fade_s
        for k, (name, length) in enumerate((("slow", slow), ("multisine", multisine), ("chirp", keys["chirp_s"]))):
            p.begin[k], p.length[k] = at, length
            self.schedule[name] = (at, length)
            at += length + pause
        p.end = at
        self.c.state.phase = PHASE_IDLE
        pose.identity(self.c.state.X_0)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def fields(self):
        return self.c


def raise_for(lines_hz, multisine_s):
    """ValueError for too many lines, or one that does not lie on the grid."""
    if not 2 <= len(lines_hz) <= MAX_LINES:
        raise ValueError(f"guidance.lines_hz: 2...{MAX_LINES} lines, got {len(lines_hz)}")
    for f in lines_hz:
        if abs(f * multisine_s - round(f * multisine_s)) > 1e-9:
            raise ValueError(f"guidance.lines_hz: {f} Hz is no multiple of 1/period, {1.0 / multisine_s} Hz")
