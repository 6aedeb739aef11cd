"""Peripheral docking unit with a ring on six spring-loaded legs (APAS/IDSS type), and what all ring units share.

Sources: dissertation, ch. 1-2 (platform, see ring_platform), ch. 3 (hysteresis), ch. 5 (5.4) (contact of rings, see ring_contact).

One tick is `substeps` internal steps of h. In each: pose and relative motion of the ring in T -> contacts, plungers, latches -> joint forces ->
accelerations of the ring from the reduced equations, wrench on the base from the legs' reactions -> symplectic Euler. Between ticks the
base moves at constant twist. F_T and F_A are means over the substeps, so impulses are right at any number of substeps.

Frames: A base of the mechanism (plane of the lower leg joints, X towards the target), N ring centre, T target port (plane of the passive
ring). The base's linear acceleration and the derivative of its angular velocity are neglected, as in the text: "small compared with those of the links".

Leg of this unit: U-P-S with a hysteresis table (deformation = stroke less the neutral stroke) and a damper. Command bit 0 moves the neutral
stroke in at `retract_speed_m_s` (the drive), bit 2 releases the latches. The neutral stroke stays between 0 and -`retract_stroke_m`.
"""

import numpy as np

from libc.string cimport memset

from rt_kernels.mechanisms.common.hysteresis cimport HysteresisState, HysteresisTable, beyond_table, fill_table, hysteresis_step
from rt_kernels.mechanisms.ring.contact cimport fill_contact_law, fill_latches, fill_ring_geometry, fill_sensors
from rt_kernels.mechanisms.ring.platform cimport build_leg
from rt_kernels.codes cimport MECHANISM_COMMAND_DRIVE, MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DRIVE_RUNNING
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.mechanisms.ring.parameters import RING_PARAMETERS, joint_circles, strut_legs
from rt_kernels.parameters import Aux, Parameter, checked


RING_AUX = (
    Aux("ring_position", "m", "ring centre in the base", 3),
    Aux("ring_quaternion", "1", "ring in the base, x y z w", 4),
    Aux("ring_velocity", "m/s", "relative to the base, base axes", 3),
    Aux("ring_rate", "rad/s", "relative to the base, base axes", 3),
    Aux("stroke", "m", "of the six rods, from the initial position", 6),
    Aux("spring_force", "N", "on the six rods, positive outwards", 6),
    Aux("latch_compression", "m", "of the six latches", 6),
    Aux("latch_fired", "1", "latches behind their stops", 6),
    Aux("plunger", "m", "compression of the three alignment sensors", 3),
    Aux("contacts", "1", "number of ring contacts"),
    Aux("depth", "m", "deepest penetration"),
    Aux("kinetic_energy", "J", "of ring and legs relative to the base"),
    Aux("work_in", "J", "put in by the target that moves against the base"),
    Aux("lost_contact", "J", "friction and damping of the contacts"),
    Aux("given_to_springs", "J", "stored and lost in the legs"),
    Aux("stored_contact", "J", "contact springs, plungers, latches"),
    Aux("first_contact_time", "s", "since the start, -1 before"),
    Aux("capture_time", "s", "since the start, -1 before"),
)
RING_AUX_COUNT = sum(channel.count for channel in RING_AUX)


def drawn_in(t):
    """Ring plane before the base plane [m] when the legs of the plain ring unit are shorter by the way of the drive. ValueError: too far."""
    base, ring = joint_circles(t)
    across = float(np.linalg.norm(ring[0] - base[0]))
    length = float(np.hypot(t["ready_distance_m"], across)) - t["retract_stroke_m"]
    if length <= across:
        raise ValueError(f"retract_stroke_m: {t['retract_stroke_m']} m draws the ring through its base; "
                         f"limit {np.hypot(t['ready_distance_m'], across) - across:.4f} m")
    return float(np.sqrt(length**2 - across**2))


cdef void fill_ring_unit(object t, RingUnit *u, RingState *s, object leg_tables) except *:
    """Constants and the initial state (ring at rest in the initial position). `t`: table of RING_PARAMETERS."""
    cdef int k, j
    memset(u, 0, sizeof(RingUnit))
    memset(s, 0, sizeof(RingState))
    for k in range(MAX_LEGS):
        build_leg(leg_tables[k], &u.leg[k])
    u.ring.mass = t["ring_mass_kg"]
    for j in range(3):
        u.ring.inertia[4 * j] = t["ring_inertia_kg_m2"][j]
    fill_ring_geometry(t, &u.geometry)
    # friction may not turn the slip within the longest tick of the line (4 ms at 250 Hz), for the ring alone
    fill_contact_law(t, t["ring_mass_kg"], 1e-3 / t["substeps"], &u.law)
    fill_latches(t, &u.latches)
    fill_sensors(t, &u.geometry, &u.sensors)
    u.depth_limit = t["depth_limit_m"]
    u.plane_radius, u.together_gap = t["face_radius_m"], t["together_gap_m"]
    u.substeps = t["substeps"]
    s.X_AN[0] = t["ready_distance_m"]
    s.X_AN[6] = 1.0
    s.contact_time = -1.0
    s.capture_time = -1.0


cdef object ring_depth(RingUnit *u, RingState *s, object X_TA):
    """Deepest penetration of the two rings [m] with the base at X_TA; negative without contact."""
    cdef double X[7]
    cdef double V[6]
    cdef RingPose N
    cdef Contact found[RING_CONTACTS]
    cdef double deepest = -1.0, tip
    cdef int i, n
    for i in range(7):
        X[i] = X_TA[i]
    for i in range(6):
        V[i] = 0.0
    ring_in_target(X, V, s, &N)
    n = ring_contacts(&u.geometry, N.p, N.R, found)
    for i in range(n):
        if found[i].depth > deepest:
            deepest = found[i].depth
    return deepest


cdef struct RingUnitState:
    RingState ring
    HysteresisState spring[MAX_LEGS]
    double force[MAX_LEGS]
    double neutral                # stroke of the undeformed springs, 0 in the initial position

cdef struct RingSelf:
    RingUnit unit
    LegMotion motion[MAX_LEGS]
    HysteresisTable spring
    double damping
    double retract_speed
    double retract_stroke
    RingUnitState state


cdef void ring_advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef RingSelf *m = <RingSelf *> self
    cdef RingState *s = &m.state.ring
    cdef RingPose N
    cdef RingLoads loads
    cdef BaseMotion base
    cdef double X_TA[7]
    cdef double R_AN[9]
    cdef double F_ring[6]
    cdef double W[6]
    cdef double h = inp.dt / m.unit.substeps
    cdef double share = 1.0 / m.unit.substeps
    cdef double rate, target
    cdef int i, k, n
    memset(&loads, 0, sizeof(RingLoads))
    pose.copy(inp.X_TA, X_TA)
    vec3.copy(inp.w_A, base.w)
    vec3.fill(0.0, 0.0, 0.0, base.alpha)
    vec3.fill(0.0, 0.0, 0.0, base.accel)
    for i in range(6):
        out.F_T[i] = 0.0
        out.F_A[i] = 0.0
        W[i] = 0.0
    # the drive draws the neutral point in
    if inp.commands & MECHANISM_COMMAND_DRIVE:
        m.state.neutral -= inp.dt * m.retract_speed
        if m.state.neutral < -m.retract_stroke:
            m.state.neutral = -m.retract_stroke
    for n in range(m.unit.substeps):
        ring_in_target(X_TA, inp.V_TA, s, &N)
        ring_touch(&m.unit, s, &N, h, &loads, not (inp.commands & MECHANISM_COMMAND_RELEASE))
        ring_wrench(X_TA, &loads, F_ring)
        if not ring_close(&m.unit, s, m.motion, R_AN):
            s.out_of_range = 1
            break
        # springs with hysteresis, and dampers
        for k in range(MAX_LEGS):
            i = m.unit.leg[k].stroke
            rate = m.motion[k].p_rate[i]
            target = m.motion[k].p[i] - m.state.neutral
            if beyond_table(&m.spring, target):
                s.out_of_range = 1
            m.state.force[k] = -hysteresis_step(&m.spring, &m.state.spring[k], target) - m.damping * rate
            m.motion[k].force[i] += m.state.force[k]
        for i in range(6):
            W[i] = 0.0
        if not ring_move(&m.unit, s, m.motion, R_AN, &base, F_ring, h, W):
            s.out_of_range = 1
            break
        for k in range(MAX_LEGS):
            i = m.unit.leg[k].stroke
            s.lost_springs -= h * m.state.force[k] * (m.motion[k].p_rate[i] + 0.5 * h * m.motion[k].p_accel[i])
        ring_account(s, inp, X_TA, &loads, h)
        for i in range(6):
            out.F_T[i] += share * loads.F_T[i]
            out.F_A[i] += share * W[i]
        base_moves(X_TA, inp.V_TA, h)
    ring_report(&m.unit, s, m.motion, m.state.force, &loads, X_TA, out, aux)
    if m.state.neutral < 0.0:
        out.signals |= MECHANISM_SIGNAL_DRIVE_RUNNING


cdef inline void ring_wrench(const double *X_TA, const RingLoads *loads, double *F_ring) noexcept nogil:
    # loads on the ring about its centre, from T axes to base axes
    quat.rotate_back(X_TA + 3, loads.F_N, F_ring)
    quat.rotate_back(X_TA + 3, loads.F_N + 3, F_ring + 3)


cdef class Ring(MechanismPart):
    """Peripheral docking unit: ring with guide petals and latches on six U-P-S legs with springs and dampers."""

    PARAMETERS = RING_PARAMETERS + (
        Parameter("spring_forward_n", "rows", "m, N", "loading branch of a leg: rows [deformation, force], odd symmetric", low=0.0, high=1e9),
        Parameter("spring_backward_n", "rows", "m, N", "return branch of a leg", low=0.0, high=1e9),
        Parameter("leg_damping_n_s_per_m", "float", "N.s/m", "damper of a leg", low=0.0, high=1e7),
        Parameter("retract_speed_m_s", "float", "m/s", "speed of the neutral stroke while the drive runs", default=1e-3, low=0.0, high=0.1),
        Parameter("retract_stroke_m", "float", "m", "way of the neutral stroke", default=0.0, low=0.0, high=2.0),
    )
    AUX = RING_AUX

    cdef RingSelf m

    def __init__(self, **given):
        t = checked(Ring.PARAMETERS, given)
        memset(&self.m, 0, sizeof(RingSelf))
        fill_ring_unit(t, &self.m.unit, &self.m.state.ring, strut_legs(t, "UPS"))
        fill_table(&self.m.spring, "spring_forward_n", t["spring_forward_n"], t["spring_backward_n"], None, None, False)
        self.m.damping = t["leg_damping_n_s_per_m"]
        self.m.retract_speed = t["retract_speed_m_s"]
        self.m.retract_stroke = t["retract_stroke_m"]
        self.m.unit.mated_x = drawn_in(t)
        self.plug.self = &self.m
        self.plug.state = &self.m.state
        self.plug.state_size = sizeof(RingUnitState)
        self.plug.advance = ring_advance

    def max_penetration(self, X_TA):
        """Deepest penetration of the rings [m] with the base at X_TA (7,), at the ring's present pose; -1 without contact."""
        return ring_depth(&self.m.unit, &self.m.state.ring, X_TA)
