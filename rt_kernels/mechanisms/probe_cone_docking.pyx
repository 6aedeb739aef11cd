"""Virtual docking of two free rigid craft with a central unit and its sequence, in one loop: for tests and quick looks.

Both craft have the axes of their docking ports (X_T into the receptacle, X_A along the mechanism). Semi-implicit Euler with the wrench held over a
tick; the whole of a docking (5-7 min) takes a few seconds. The server's own two-body dynamics is elsewhere; this one knows no stages.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from rt_kernels.algebra cimport quat, rot3, vec3
from rt_kernels.codes cimport MECHANISM_SIGNAL_PLANES_TOGETHER
from rt_kernels.mechanisms.probe_cone_sequence cimport (
    ATTITUDE_CONTROL, COMPLETE, PRESS_THRUST, RETREAT_THRUST, Sequence, SequenceState, sequence_reset, sequence_step,
)
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart


cdef struct Craft:
    double mass
    double I[9]
    double I_inverse[9]
    double port[3]        # port from the centre of mass, own axes
    double r[3]           # centre of mass, inertial
    double v[3]
    double q[4]           # own axes to inertial
    double w[3]           # own axes


cdef int _fill(Craft *c, str name, double mass, inertia, port) except -1:
    I = np.asarray(inertia, dtype=float)
    I = np.diag(I) if I.shape == (3,) else I
    if not mass > 0.0 or I.shape != (3, 3) or np.linalg.eigvalsh(I).min() <= 0.0 or len(port) != 3:
        raise ValueError(f"{name}: mass must be above 0 kg, inertia positive definite (3 or 3x3 kg.m2) and port three numbers (m)")
    inverse = np.linalg.inv(I)
    cdef int i
    c.mass = mass
    for i in range(9):
        c.I[i] = I.flat[i]
        c.I_inverse[i] = inverse.flat[i]
    for i in range(3):
        c.port[i] = port[i]
        c.r[i] = c.v[i] = c.w[i] = 0.0
    quat.identity(c.q)
    return 0


cdef inline void move(Craft *c, const double *force, const double *moment, double dt) noexcept nogil:
    """One step; `force` in inertial axes, `moment` about the centre of mass in own axes."""
    cdef double h[3]
    cdef double t[3]
    cdef double turn[4]
    rot3.apply(c.I, c.w, h)
    vec3.cross(c.w, h, t)
    vec3.sub(moment, t, t)
    rot3.apply(c.I_inverse, t, h)
    vec3.add_scaled(c.w, dt, h, c.w)
    vec3.add_scaled(c.v, dt / c.mass, force, c.v)
    vec3.add_scaled(c.r, dt, c.v, c.r)
    vec3.scale(dt, c.w, h)
    quat.exponential(h, turn)
    quat.multiply(c.q, turn, c.q)
    quat.normalize(c.q)


cdef inline void port_motion(const Craft *c, double *p, double *v, double *w) noexcept nogil:
    # place, velocity and angular velocity of the port, inertial axes
    cdef double arm[3]
    cdef double t[3]
    quat.rotate(c.q, c.port, arm)
    quat.rotate(c.q, c.w, w)
    vec3.add(c.r, arm, p)
    vec3.cross(w, arm, t)
    vec3.add(c.v, t, v)


cdef inline void relative_motion(const Craft *active, const Craft *target, MechanismInput *inp) noexcept nogil:
    """X_TA, V_TA (d/dt of the position and relative rate, T axes) and w_A."""
    cdef double pA[3]
    cdef double vA[3]
    cdef double wA[3]
    cdef double pT[3]
    cdef double vT[3]
    cdef double wT[3]
    cdef double d[3]
    cdef double t[3]
    cdef double back[4]
    port_motion(active, pA, vA, wA)
    port_motion(target, pT, vT, wT)
    vec3.sub(pA, pT, d)
    quat.rotate_back(target.q, d, inp.X_TA)
    quat.conjugate(target.q, back)
    quat.multiply(back, active.q, inp.X_TA + 3)
    vec3.cross(wT, d, t)
    vec3.sub(vA, vT, d)
    vec3.sub(d, t, d)
    quat.rotate_back(target.q, d, inp.V_TA)
    vec3.sub(wA, wT, d)
    quat.rotate_back(target.q, d, inp.V_TA + 3)
    vec3.copy(active.w, inp.w_A)


cdef inline void load(const Craft *c, const double *F, double thrust, double gain, double *force, double *moment) noexcept nogil:
    """Wrench F at the port in own axes, thrust along own X at the centre of mass, rate damping by the attitude control."""
    cdef double f[3]
    vec3.copy(F, f)
    f[0] += thrust
    quat.rotate(c.q, f, force)
    vec3.cross(c.port, F, moment)
    vec3.add(moment, F + 3, moment)
    vec3.add_scaled(moment, -gain, c.w, moment)


def virtual_docking(
    MechanismPart part, active, target, X_TA, V_TA, w_A=(0.0, 0.0, 0.0), double duration=60.0, double dt=5e-4, int every=100, double press_thrust=0.0,
    double attitude_gain=0.0, timing=(10.0, 2.0, 30.0, 35.0), bint stop_on_complete=True
):
    """Dock two free craft. active, target: (mass kg, inertia kg.m2 [3] or [3, 3], port from the centre of mass [3] m).

    X_TA: initial pose of A in T (m, quaternion xyzw). V_TA: velocity of the active craft's centre of mass relative to the resting target and rate
    w_A (rad/s, A axes) come from `V_TA[:3]` (T axes, m/s) and `w_A`. press_thrust N along X_A, attitude_gain N.m.s/rad of both craft while control is on.
    Returns a dict: rows (every-th tick: time, X_TA 7, V_TA 6, F_T 6, F_A 6, signals, phase, analog 8, aux), first (time of the first setting of
    each signal bit, -1: never), last (of the last), counts of rising edges, phase times, peak |F_T| per component, drift of momentum, end.
    """
    if not dt > 0.0 or not duration > 0.0 or every < 1:
        raise ValueError(f"virtual_docking needs dt > 0, duration > 0 s and every >= 1, got {dt}, {duration}, {every}")
    cdef Craft a, t
    _fill(&a, "active", active[0], active[1], active[2])
    _fill(&t, "target", target[0], target[1], target[2])
    cdef MechanismInput inp
    cdef MechanismOutput out
    cdef SequenceState cs
    cdef Sequence cycle = Sequence(timing[0], timing[1], timing[2], timing[3])
    cdef int i, j, n = 0, ticks = <int>(duration / dt + 0.5)
    cdef int width = 31 + sum(channel.count for channel in part.AUX)
    rows = np.zeros((ticks // every + 1, width))
    cdef double[:, ::1] r = rows
    buffer = np.zeros(width)
    cdef double[::1] aux = buffer
    first_, last_, rises_, peaks_ = np.full(32, -1.0), np.full(32, -1.0), np.zeros(32, dtype=np.int32), np.zeros(12)
    cdef double[::1] first = first_
    cdef double[::1] last = last_
    cdef double[::1] peaks = peaks_
    cdef int[::1] rises = rises_
    cdef uint32_t before = 0
    cdef double force[3]
    cdef double moment[3]
    cdef double arm[3]
    cdef double thrust, gain, value
    cdef double momentum[3]
    memset(&inp, 0, sizeof(inp))
    sequence_reset(&cs)
    # target at rest with its port at the origin; the active craft placed by X_TA
    for i in range(3):
        t.r[i] = -t.port[i]
    for i in range(4):
        a.q[i] = X_TA[3 + i]
    quat.normalize(a.q)
    quat.rotate(a.q, a.port, arm)
    for i in range(3):
        a.r[i] = X_TA[i] - arm[i]
        a.v[i] = V_TA[i]
        a.w[i] = w_A[i]
    start = np.array([a.mass * a.v[i] for i in range(3)])
    cdef double impulse[3]
    vec3.fill(0.0, 0.0, 0.0, impulse)
    with nogil:
        inp.dt = dt
        for i in range(ticks):
            relative_motion(&a, &t, &inp)
            inp.commands = cs.unit_command
            part.plug.advance(part.plug.self, &inp, &out, &aux[0])
            sequence_step(&cycle, &cs, (out.signals & 1) != 0, (out.signals & 2) != 0, (out.signals & 4) != 0, (out.signals & MECHANISM_SIGNAL_PLANES_TOGETHER) != 0, False, dt)
            # book-keeping
            for j in range(32):
                if out.signals >> j & 1:
                    last[j] = i * dt
                    if first[j] < 0.0:
                        first[j] = i * dt
                    if not before >> j & 1:
                        rises[j] += 1
            before = out.signals
            for j in range(6):
                if out.F_T[j] > peaks[j]:
                    peaks[j] = out.F_T[j]
                if out.F_T[j] < peaks[6 + j]:
                    peaks[6 + j] = out.F_T[j]
            if i % every == 0:
                r[n, 0] = i * dt
                memcpy(&r[n, 1], inp.X_TA, sizeof(inp.X_TA))
                memcpy(&r[n, 8], inp.V_TA, sizeof(inp.V_TA))
                memcpy(&r[n, 14], out.F_T, sizeof(out.F_T))
                memcpy(&r[n, 20], out.F_A, sizeof(out.F_A))
                r[n, 26] = out.signals
                r[n, 27] = cs.phase
                r[n, 28] = out.status
                r[n, 29] = cs.unit_command
                r[n, 30] = cs.craft_command
                memcpy(&r[n, 31], &aux[0], sizeof(double) * (width - 31))
                n += 1
            if stop_on_complete and cs.phase == COMPLETE:
                break
            # craft
            thrust = 0.0
            if cs.craft_command & PRESS_THRUST:
                thrust = press_thrust
            elif cs.craft_command & RETREAT_THRUST:
                thrust = -press_thrust
            gain = attitude_gain if cs.craft_command & ATTITUDE_CONTROL else 0.0
            load(&a, out.F_A, thrust, gain, force, moment)
            vec3.fill(thrust, 0.0, 0.0, arm)
            quat.rotate(a.q, arm, arm)
            vec3.add_scaled(impulse, dt, arm, impulse)
            move(&a, force, moment, dt)
            load(&t, out.F_T, 0.0, gain, force, moment)
            move(&t, force, moment, dt)
    for i in range(3):
        momentum[i] = a.mass * a.v[i] + t.mass * t.v[i] - impulse[i]
    return {
        "rows": rows[:n], "first": first_, "last": last_, "rises": rises_, "peaks": peaks_, "phase": cs.phase,
        "times": {"end": cs.time, "contact": cs.contact_time, "capture": cs.capture_time, "start": cs.start_time, "phase": cs.phase_start},
        "momentum_drift": np.array([momentum[i] for i in range(3)]) - start, "v_active": np.array([a.v[i] for i in range(3)]),
        "v_target": np.array([t.v[i] for i in range(3)]),
    }
