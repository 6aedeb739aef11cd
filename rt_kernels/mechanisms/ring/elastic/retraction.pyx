# distutils: extra_compile_args = -O3
"""Sequence of operation (7.2), (7.6) and cable retraction (7.5) of the elastic-adaptive mechanism.

Source: Yaskevich 2020, ch. 7, corrected: the gear cam leads by the twist of its flexible shaft, phi_CamG = (phi_D + dphi_FS)/i_G with
dphi_FS = f R_Roll/(i_G k_FS) (printed minus: tension would wind in more cable); the load on the drive has the gear's efficiency.

Signs: phi_D > 0 pays cable out. Drum angle phi_CamR = (d_RR - L_RP)/R_Roll, zero with the planes mated. A cable takes part while
phi_CamG < phi_CamR + 2 dphi_Cam (three cams in a row). At joining d_join, phi_join are stored; stretch s = (d_RR - d_join) - R_Roll
(phi_CamG - phi_join);
tension f = max(0, k s + c v). The flexible shaft is a spring in series, 1/k_eff = 1/k + R_Roll^2/(i_G^2 k_FS), so phi_CamG may be taken as
phi_D/i_G. Force on the ring -f n along the cable (n from drum to ring), the opposite on the base at the drum.
The longest cable joins first and so aligns the ring. The limit of the gear cam is configuration: the printed 2 pi - 4 dphi_Cam does not fit
two pairs of cams (relative travel 2 dphi ... 4 pi - 2 dphi).

Phases: RETRACTED -> EXTENDING (command) -> READY (all six clutches blocked at the initial position) -> THROWN (a strut loses the initial
position: all clutches open) -> CAPTURED (three alignment sensors: all blocked) -> RETRACTING (after a delay) -> DONE (planes mated).
A hard central impact goes from READY to CAPTURED.
"""

import numpy as np

from libc.string cimport memset

from rt_kernels.algebra.values cimport Vec3, Wrench, add, cross, dot, mat, mat_vec, mul, norm, sub, xyz


cdef void sequence(const Sequencer *q, SequencerState *s, const double *stroke, const bint *aligned, bint extend, double gear_cam,
                   bint mated, double dt) noexcept nogil:
    """One step of the controller: switches, sensors and timers to clutches and drive."""
    cdef int k, ready = 0, lost = 0, before = s.phase
    cdef bint all_aligned = aligned[0] and aligned[1] and aligned[2]
    for k in range(STRUTS):
        s.in_position[k] = stroke[k] >= q.ready_stroke_min
        if not s.in_position[k]:
            lost += 1
    s.time += dt
    if s.phase == RETRACTED:
        block_all(s, 1)
        s.drive_command = 0.0
        if extend:
            s.phase = EXTENDING
            block_all(s, 0)
    elif s.phase == EXTENDING:
        s.drive_command = q.drive_rate
        for k in range(STRUTS):
            if stroke[k] >= q.ready_stroke:
                s.blocked[k] = 1
            ready += s.blocked[k]
        if ready == STRUTS:
            s.phase = READY
    elif s.phase == READY:
        s.drive_command = q.drive_rate if gear_cam < q.gear_cam_max else 0.0
        if all_aligned:
            s.phase = CAPTURED
        elif lost > 0:
            s.phase = THROWN
            block_all(s, 0)
    elif s.phase == THROWN:
        s.drive_command = 0.0
        if all_aligned:
            s.phase = CAPTURED
            block_all(s, 1)
    elif s.phase == CAPTURED:
        s.drive_command = 0.0
        if s.time >= q.retract_delay:
            s.phase = RETRACTING
    elif s.phase == RETRACTING:
        s.drive_command = -q.drive_rate
        if mated:
            s.phase = DONE
    else:
        s.drive_command = 0.0
    if s.phase != before:
        s.time = 0.0


cdef void block_all(SequencerState *s, int blocked) noexcept nogil:
    cdef int k
    for k in range(STRUTS):
        s.blocked[k] = blocked


cdef Wrench pull(const Retraction *r, RetractionState *s, const RingPose *N, Wrench *W) noexcept nogil:
    """Cable tensions of a pose: wrench on the ring (about its centre, base axes), the one on the base (at its origin) added to W."""
    cdef Wrench F
    cdef Vec3 eye, n, v
    cdef double gear = s.phi / r.gear_ratio
    cdef double gear_rate = s.omega / r.gear_ratio
    cdef double stretch
    cdef Cable *c
    cdef int i
    memset(&F, 0, sizeof(F))
    s.load = 0.0
    for i in range(CABLES):
        c = &s.cable[i]
        eye = mat_vec(N.R, r.eye[i])
        n = sub(add(N.p, eye), r.drum[i])
        c.length = norm(n)
        n = mul(1.0 / c.length, n)
        c.cam = (c.length - r.length_in[i]) / r.roll_radius
        c.tension = 0.0
        # joined while the gear cam, through the intermediate one, touches the drum cam (7.5.1)
        if gear < c.cam + 2.0 * r.cam_gap and i + 1 != r.broken:
            if not c.joined:
                c.joined = 1
                c.length_join = c.length
                c.phi_join = gear
            stretch = (c.length - c.length_join) - r.roll_radius * (gear - c.phi_join)
            v = add(N.v, cross(N.w, eye))
            c.tension = r.stiffness * stretch + r.damping * (dot(n, v) - r.roll_radius * gear_rate)
            if c.tension < 0.0 or stretch <= 0.0:
                c.tension = 0.0
            F.f = add(F.f, mul(-c.tension, n))
            F.m = add(F.m, mul(-c.tension, cross(eye, n)))
            W.f = add(W.f, mul(c.tension, n))
            W.m = add(W.m, mul(c.tension, cross(r.drum[i], n)))
            s.load += c.tension * r.roll_radius / (r.gear_ratio * r.efficiency)
        else:
            c.joined = 0
    return F


cdef void drive_step(const Retraction *r, RetractionState *s, double command, double dt) noexcept nogil:
    """Speed-controlled drive, implicit; the planetary gears lock it when it stands, and tension only brakes winding in."""
    if command == 0.0:
        s.omega = 0.0
        return
    s.omega = (s.omega + dt / r.drive_inertia * (r.drive_gain * command + (s.load if command < 0.0 else 0.0))) / (
        1.0 + dt * r.drive_gain / r.drive_inertia)
    if s.omega * command < 0.0:
        s.omega = 0.0
    s.phi += dt * s.omega


PHASES = ("retracted", "extending", "ready", "thrown", "captured", "retracting", "done")


cdef void fill_retraction(object t, object p_eyes, Retraction *r, Sequencer *q) except *:
    """From a parameter table; p_eyes: cable ends (3, 3) in the ring. Drums lie under them on the base circle `drum_radius_m`."""
    cdef int i
    memset(r, 0, sizeof(Retraction))
    memset(q, 0, sizeof(Sequencer))
    r.roll_radius = t["drum_roll_radius_m"]
    r.gear_ratio = t["gear_ratio"]
    r.cam_gap = t["cam_gap_rad"]
    k, k_FS = t["cable_stiffness_n_per_m"], t["flexible_shaft_n_m_per_rad"]
    r.stiffness = 1.0 / (1.0 / k + r.roll_radius**2 / (r.gear_ratio**2 * k_FS))
    r.shaft_share = r.roll_radius / (r.gear_ratio**2 * k_FS)
    r.damping = t["cable_damping_n_s_per_m"]
    r.drive_gain = t["drive_gain_n_m_s_per_rad"]
    r.drive_inertia = t["drive_inertia_kg_m2"]
    r.efficiency = t["gear_efficiency"]
    if r.efficiency >= 0.5:
        raise ValueError(f"gear_efficiency: {r.efficiency}, a self-locking gear has less than 0.5")
    for i in range(CABLES):
        eye = np.asarray(p_eyes[i], dtype=float)
        radial = eye / np.linalg.norm(eye)
        drum = radial * t["drum_radius_m"]
        r.eye[i] = xyz(eye[0], eye[1], eye[2])
        r.drum[i] = xyz(drum[0], drum[1], drum[2])
        r.length_in[i] = np.linalg.norm(eye + [t["mated_distance_m"], 0, 0] - drum)
    q.ready_stroke = 0.0
    q.ready_stroke_min = -t["ready_switch_m"]
    q.retract_delay = t["retract_delay_s"]
    q.drive_rate = t["drive_rate_rad_s"]
    q.gear_cam_max = t["gear_cam_max_rad"]


cdef class CableRetraction:
    """Three cables and their drive on arrays, for tests. table: keys of the elastic-adaptive unit; eyes (3, 3) in the ring."""

    cdef Retraction law
    cdef Sequencer sequencer
    cdef RetractionState state

    def __init__(self, table, eyes, phi=0.0):
        fill_retraction(table, eyes, &self.law, &self.sequencer)
        self.state.phi = phi

    def step(self, p_0N, R_0N, v_N, w_N, double command, double dt=5e-4):
        """Drive step, then tensions: dict of tension (3,), joined (3,), cam (3,), gear, gear_twisted (3,), omega, load, F_ring,
        base_wrench."""
        cdef double[::1] R = np.ascontiguousarray(R_0N, dtype=float).reshape(-1)
        cdef RingPose N
        cdef Wrench F, W
        cdef int i
        N.R = mat(&R[0])
        N.p = xyz(p_0N[0], p_0N[1], p_0N[2])
        N.v = xyz(v_N[0], v_N[1], v_N[2])
        N.w = xyz(w_N[0], w_N[1], w_N[2])
        memset(&W, 0, sizeof(W))
        drive_step(&self.law, &self.state, command, dt)
        F = pull(&self.law, &self.state, &N, &W)
        tension = np.array([self.state.cable[i].tension for i in range(3)])
        return {"tension": tension, "joined": [bool(self.state.cable[i].joined) for i in range(3)],
                "cam": np.array([self.state.cable[i].cam for i in range(3)]), "gear": self.state.phi / self.law.gear_ratio,
                "gear_twisted": self.state.phi / self.law.gear_ratio + self.law.shaft_share * tension, "omega": self.state.omega,
                "length": np.array([self.state.cable[i].length for i in range(3)]),
                "load": self.state.load, "F_ring": np.array([(<double *> &F)[i] for i in range(6)]),
                "base_wrench": np.array([(<double *> &W)[i] for i in range(6)])}


cdef class OperationSequence:
    """The controller alone, for event scripts. table: keys of the elastic-adaptive unit."""

    cdef Retraction law
    cdef Sequencer sequencer
    cdef SequencerState state

    def __init__(self, table, eyes, phase="ready"):
        fill_retraction(table, eyes, &self.law, &self.sequencer)
        if phase not in PHASES:
            raise ValueError(f"phase: {phase!r} is not one of {', '.join(PHASES)}")
        self.state.phase = PHASES.index(phase)
        block_all(&self.state, 1)

    def step(self, stroke, aligned, bint extend=False, double gear_cam=0.0, bint mated=False, double dt=5e-4):
        """One step; returns (phase, blocked (6,), drive command [rad/s])."""
        cdef double p[STRUTS]
        cdef bint a[3]
        cdef int k
        for k in range(STRUTS):
            p[k] = stroke[k]
        for k in range(3):
            a[k] = aligned[k]
        sequence(&self.sequencer, &self.state, p, a, extend, gear_cam, mated, dt)
        return PHASES[self.state.phase], [bool(self.state.blocked[k]) for k in range(STRUTS)], self.state.drive_command
