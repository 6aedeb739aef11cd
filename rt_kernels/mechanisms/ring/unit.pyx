# distutils: extra_compile_args = -O3
"""Peripheral docking unit with a ring on six spring-loaded legs (APAS/IDSS type), and what all ring units share.

Sources: Yaskevich 2020, ch. 1-2 (platform, see `platform`), ch. 3 (hysteresis), ch. 5 (5.4) (contact of rings, see `contact`).

One tick is `substeps` internal steps of h. In each: pose and relative motion of the ring in T -> contacts, plungers, latches -> joint
forces -> accelerations of the ring from the reduced equations, wrench on the base from the legs' reactions -> symplectic Euler. Between
ticks the base moves at constant twist. F_T and F_A are means over the substeps, so impulses are right at any number of substeps.

Frames: A base of the mechanism (plane of the lower leg joints, X towards the target), N ring centre, T target port (plane of the passive
ring). The base's linear acceleration and the derivative of its angular velocity are neglected, as in the text:
"small compared with those of the links".

Leg of this unit: a strut (U-P-S, S-P-U) or crank and link (R-U-S, R-S-U) with a hysteresis table (deformation = stroke, or arc of the
crank's end, less the neutral stroke) and a damper. Command bit 0 moves the neutral
stroke in at `retract_speed_m_s` (the drive), bit 2 releases the latches. The neutral stroke stays between 0 and -`retract_stroke_m`.
With planes (`plane_x_m`, see `interface`) it continues by `press_stroke_m`, and stops when they are pressed together and the ring is
latched in its nest.
"""

import numpy as np

from libc.stdint cimport uint32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Pose, Twist, Wrench, add, apply, compose, conjugate, cross, dot, exponential, logarithm, mul,
                                        pose, pose_of, power, put, put_quat, put_wrench, quat_multiply, rotate, rotate_back, sub,
                                        to_matrix, turned, twist, twist_of, vec, wrench_of, wrench_sum, xyz)
from rt_kernels.contact.primitives cimport Contact
from rt_kernels.codes cimport (MECHANISM_COMMAND_DRIVE, MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DRIVE_RUNNING,
                               MECHANISM_SIGNAL_DSG, MECHANISM_SIGNAL_LATCH, MECHANISM_SIGNAL_LATCH1,
                               MECHANISM_SIGNAL_PLANES_TOGETHER, MECHANISM_SIGNAL_PUSHERS, MECHANISM_SIGNAL_RING_ALIGNED1,
                               MECHANISM_STATUS_OUT_OF_RANGE)
from rt_kernels.mechanisms.common.hysteresis cimport HysteresisState, HysteresisTable, beyond_table, fill_table, hysteresis_step
from rt_kernels.mechanisms.ring.contact cimport (
    RING_CONTACTS, contact_loads, fill_contact_law, fill_latches, fill_ring_geometry, fill_sensors, latch_loads, ring_captured,
    ring_contacts,
    sensor_loads,
)
from rt_kernels.mechanisms.ring.interface cimport (
    InterfaceTouch, fill_interface, interface_account, interface_report, interface_touch, nest_hold,
)
from rt_kernels.mechanisms.ring.planes_record cimport PlanesRecord
from rt_kernels.mechanisms.ring.platform cimport build_leg, close_legs, react_all_on_base, reduce_to_ring, solve_ring
from rt_kernels.mechanisms.ring.record cimport RingRecord
from rt_kernels.mechanisms.ring.unit_record cimport RingUnitRecord
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.context import UnitEnergy
from rt_kernels.mechanisms.ring.parameters import RING_PARAMETERS, joint_circles, legs_of, longest_substep_s
from rt_kernels.mechanisms.ring.picture import RingPicture
from rt_kernels.mechanisms.ring.unit_record import AUX
from rt_kernels.parameters import Parameter, checked


# ------------------------------------------------------------------------------- what every ring unit does

cdef void ring_begin(const MechanismInput *inp, BodyMotion *base, RingLoads *loads, MechanismOutput *out) noexcept nogil:
    """A tick begins: the base turns at its rate and is not accelerated (see above); no loads yet."""
    memset(loads, 0, sizeof(RingLoads))
    memset(base, 0, sizeof(BodyMotion))
    base.w = vec(inp.w_A)
    memset(out.F_T, 0, sizeof(out.F_T))
    memset(out.F_A, 0, sizeof(out.F_A))


cdef Wrench ring_wrench(Pose X_TA, const RingLoads *loads) noexcept nogil:
    # loads on the ring about its centre, from T axes to base axes
    return wrench_of(rotate_back(X_TA.q, loads.F_N.f), rotate_back(X_TA.q, loads.F_N.m))


cdef inline void add_share(double share, Wrench F, double *total) noexcept nogil:
    # total += share F
    put_wrench(wrench_of(add(vec(total), mul(share, F.f)), add(vec(total + 3), mul(share, F.m))), total)


cdef void ring_mean(const RingUnit *u, const RingLoads *loads, Wrench W, MechanismOutput *out) noexcept nogil:
    # wrenches of a substep, as its share of the tick's
    add_share(1.0 / u.substeps, loads.F_T, out.F_T)
    add_share(1.0 / u.substeps, W, out.F_A)


cdef RingPose ring_in_target(Pose X_TA, Twist V_TA, const RingState *s) noexcept nogil:
    """Pose and relative motion of the ring in T, T axes."""
    cdef Pose X_TN = compose(X_TA, s.X_AN)
    cdef RingPose N
    N.p = X_TN.p
    N.R = to_matrix(X_TN.q)
    N.v = add(add(V_TA.v, cross(V_TA.w, sub(X_TN.p, X_TA.p))), rotate(X_TA.q, s.v))
    N.w = add(V_TA.w, rotate(X_TA.q, s.w))
    return N


cdef void ring_touch(const RingUnit *u, RingState *s, const RingPose *N, double h, RingLoads *loads, bint grip) noexcept nogil:
    """All loads between the two rings; `grip` false draws the latches in (release)."""
    cdef Contact found[RING_CONTACTS]
    memset(loads, 0, sizeof(RingLoads))
    loads.count = ring_contacts(&u.geometry, N.p, N.R, found)
    contact_loads(&u.law, found, loads.count, N, loads)
    sensor_loads(&u.sensors, &u.geometry, N, loads)
    latch_loads(&u.latches, &u.law, s.latch, N, grip, h, loads)


cdef void planes_touch(const RingUnit *u, Pose X_TA, Twist V_TA, double h, RingLoads *loads, InterfaceTouch *touch) noexcept nogil:
    """Planes, pushers and pins in the middle of the substep; their wrench on the target added to the loads'."""
    memset(touch, 0, sizeof(InterfaceTouch))
    if u.interface.fitted:
        interface_touch(&u.interface, base_moves(X_TA, V_TA, 0.5 * h), V_TA, touch)
        loads.F_T = wrench_sum(loads.F_T, touch.F_T)


cdef Wrench ring_nest(const RingUnit *u, const RingState *s, const RingPose *N, const InterfaceTouch *touch, Wrench *W) noexcept nogil:
    """What the nest gives the ring; its opposite and the planes' wrench on the base are added to W."""
    if not u.interface.fitted:
        return wrench_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0))
    W[0] = wrench_sum(W[0], touch.F_A)
    return nest_hold(&u.interface, &s.interface, N, W)


cdef inline double power_on_ring(const RingState *s, Twist V, Wrench F) noexcept nogil:
    # of a wrench about its centre, base axes, at the rates of the middle of the step; V: those of its start
    return dot(F.f, add(V.v, s.half_step.v)) + dot(F.m, add(V.w, s.half_step.w))


cdef void planes_account(const RingUnit *u, RingState *s, const InterfaceTouch *touch, Wrench nest, Twist V, bint drawing,
                         double h) noexcept nogil:
    """Their part of the ledger, and the latching of the ring in its nest. V: of the ring at the start of the substep."""
    if u.interface.fitted:
        s.interface.given_to_nest -= h * power_on_ring(s, V, nest)
        interface_account(&u.interface, &s.interface, touch, s.X_AN, drawing, h)


cdef bint ring_close(const RingUnit *u, const RingState *s, LegMotion *motion, RingPose *N) noexcept nogil:
    """Pose and motion of the ring in the base; joint coordinates and rates of all legs, whose forces start at zero. False outside the
    workspace."""
    N.p = s.X_AN.p
    N.R = to_matrix(s.X_AN.q)
    N.v = s.v
    N.w = s.w
    return close_legs(u.leg, N, motion)


cdef bint ring_move(const RingUnit *u, RingState *s, LegMotion *motion, const RingPose *N, const BodyMotion *base, Wrench F_ring, double h,
                    Wrench *W) noexcept nogil:
    """One substep: accelerations under the wrench on the ring (about its centre, base axes) and the joint forces;
    wrench on the base added to W. N: of `ring_close`.

    Symplectic Euler: velocities first, then the pose with the new velocities (attitude by the exponential).
    """
    cdef double A[36]
    cdef double b[6]
    cdef double x[6]
    cdef Twist accel
    cdef int i, k
    reduce_to_ring(u.leg, &u.ring, base, N, F_ring, motion, A, b)
    if not solve_ring(A, b, x):
        return False
    accel = twist(x)
    react_all_on_base(u.leg, accel, motion, W)
    s.half_step = twist_of(mul(0.5 * h, accel.v), mul(0.5 * h, accel.w))
    s.v = add(s.v, mul(h, accel.v))
    s.w = add(s.w, mul(h, accel.w))
    # kinetic energy with the new velocities: u A u / 2, A from its lower triangle
    put(s.v, x)
    put(s.w, x + 3)
    s.kinetic = 0.0
    for i in range(6):
        for k in range(i):
            s.kinetic += A[6 * i + k] * x[i] * x[k]
        s.kinetic += 0.5 * A[7 * i] * x[i] * x[i]
    s.X_AN = pose_of(add(s.X_AN.p, mul(h, s.v)), turned(s.X_AN.q, s.w, h))
    return True


cdef Pose base_moves(Pose X_TA, Twist V_TA, double h) noexcept nogil:
    # the base between ticks: at constant twist
    return pose_of(add(X_TA.p, mul(h, V_TA.v)), quat_multiply(exponential(mul(h, V_TA.w)), X_TA.q))


cdef void ring_account(RingState *s, Pose X_TA, Twist V_TA, const RingLoads *loads, double h) noexcept nogil:
    """Energy ledger of one substep, seen from the base (which the mechanism takes for inertial), and times of events. The target's surface
    moves at -V_TA relative to the base, and between ticks by the jump to where the craft have moved the base meanwhile."""
    cdef Wrench F = wrench_of(loads.F_T.f, sub(loads.F_T.m, cross(X_TA.p, loads.F_T.f)))
    cdef Twist jump
    s.work_in += h * power(V_TA, F)
    if s.led:
        jump = twist_of(sub(X_TA.p, s.X_led.p), logarithm(quat_multiply(X_TA.q, conjugate(s.X_led.q))))
        s.work_in += 0.5 * power(jump, wrench_sum(F, s.F_led))
    s.F_led, s.X_led, s.led = F, base_moves(X_TA, V_TA, h), 1
    s.lost_contact += s.latches - loads.latches
    s.latches = loads.latches
    # friction and damping at the rates of the middle of the step: what they took from the ring
    s.lost_contact += h * (loads.lost_power - dot(rotate_back(X_TA.q, loads.D_N.f), s.half_step.v))
    s.lost_contact -= h * dot(rotate_back(X_TA.q, loads.D_N.m), s.half_step.w)
    s.time += h
    if loads.depth > s.depth_peak:
        s.depth_peak = loads.depth
    if s.contact_time < 0.0 and (loads.count > 0 or loads.plunger[0] + loads.plunger[1] + loads.plunger[2] > 0.0):
        s.contact_time = s.time
    if s.capture_time < 0.0 and ring_captured(s.latch):
        s.capture_time = s.time


cdef inline uint32_t plane_signals(const RingUnit *u, const RingState *s, Pose X_TA, PlanesRecord *planes) noexcept nogil:
    """Pushers: the docking planes are close at one of four places at least (a pusher is pressed). Together: at all four (and the ring
    latched in its nest)."""
    cdef uint32_t word = 0
    cdef double r
    cdef int i, closed = 0
    if u.interface.fitted:
        for i in range(4):
            if planes.place[i].pusher > 0.0:
                word |= MECHANISM_SIGNAL_PUSHERS
            closed += planes.place[i].gap <= u.together_gap
        if closed == 4 and s.interface.held:
            word |= MECHANISM_SIGNAL_PLANES_TOGETHER
        return word
    for i in range(4):
        r = u.plane_radius if i < 2 else -u.plane_radius
        planes.place[i].gap = -apply(X_TA, xyz(u.mated_x, 0.0 if i & 1 else r, r if i & 1 else 0.0)).x
        closed += planes.place[i].gap <= u.together_gap
    if closed > 0:
        word |= MECHANISM_SIGNAL_PUSHERS
    if closed == 4:
        word |= MECHANISM_SIGNAL_PLANES_TOGETHER
    return word


cdef void ring_report(const RingUnit *u, const RingState *s, const LegMotion *motion, const double *force, const RingLoads *loads,
                      Pose X_TA, Twist V_TA, MechanismOutput *out, RingRecord *record, PlanesRecord *planes) noexcept nogil:
    """Signals, analogue values and the auxiliary channels. X_TA: the base at the end of the tick."""
    cdef int i, k
    memset(planes, 0, sizeof(PlanesRecord))
    if u.interface.fitted:
        interface_report(&u.interface, &s.interface, X_TA, V_TA, planes)
    out.signals = plane_signals(u, s, X_TA, planes)
    if s.contact_time >= 0.0:
        out.signals |= MECHANISM_SIGNAL_DK1
    for k in range(3):
        if loads.aligned[k]:
            out.signals |= MECHANISM_SIGNAL_RING_ALIGNED1 << k
        if s.latch[2 * k].fired != 0.0 or s.latch[2 * k + 1].fired != 0.0:
            out.signals |= MECHANISM_SIGNAL_LATCH1 << k
    # captured, until the last latch has been drawn in
    if s.capture_time >= 0.0 and out.signals & MECHANISM_SIGNAL_LATCH:
        out.signals |= MECHANISM_SIGNAL_DSG
    out.status = MECHANISM_STATUS_OUT_OF_RANGE if s.out_of_range or s.depth_peak > u.depth_limit else 0
    if u.interface.fitted and s.interface.depth_peak > u.interface.depth_limit:
        out.status = MECHANISM_STATUS_OUT_OF_RANGE
    for i in range(8):
        out.analog[i] = u.leg[i].lever * motion[i].p[u.leg[i].active] if i < MAX_LEGS else 0.0
    put(s.X_AN.p, record.ring_position)
    put_quat(s.X_AN.q, record.ring_quaternion)
    put(s.v, record.ring_velocity)
    put(s.w, record.ring_rate)
    put(vec(loads.plunger), record.plunger)
    for i in range(MAX_LEGS):
        record.stroke[i] = out.analog[i]
        record.spring_force[i] = force[i]
    for i in range(RING_LATCHES):
        record.latch_compression[i] = s.latch[i].x
        record.latch_fired[i] = s.latch[i].fired
    record.contacts = loads.count
    record.depth = loads.depth
    record.kinetic_energy = s.kinetic
    record.work_in = s.work_in
    record.lost_contact = s.lost_contact
    record.given_to_springs = s.lost_springs
    record.stored_contact = loads.stored + loads.latches
    record.first_contact_time = s.contact_time
    record.capture_time = s.capture_time


# ------------------------------------------------------------------------------- set-up


def drawn_in(t):
    """Ring plane before the base plane [m] when the legs of the plain ring unit are shorter by the way of the drive. ValueError:
    too far."""
    base, ring = joint_circles(t)
    across = float(np.linalg.norm(ring[0] - base[0]))
    length = float(np.hypot(t["ready_distance_m"], across)) - t["retract_stroke_m"]
    if length <= across:
        raise ValueError(f"retract_stroke_m: {t['retract_stroke_m']} m draws the ring through its base; "
                         f"limit {np.hypot(t['ready_distance_m'], across) - across:.4f} m")
    return float(np.sqrt(length**2 - across**2))


cdef void fill_ring_unit(object t, RingUnit *u, RingState *s, object leg_tables) except *:
    """Constants and the initial state (ring at rest in the initial position). `t`: table of RING_PARAMETERS."""
    cdef int k
    memset(u, 0, sizeof(RingUnit))
    memset(s, 0, sizeof(RingState))
    for k in range(MAX_LEGS):
        build_leg(leg_tables[k], &u.leg[k])
    u.ring.mass = t["ring_mass_kg"]
    u.ring.inertia.xx, u.ring.inertia.yy, u.ring.inertia.zz = t["ring_inertia_kg_m2"]
    fill_ring_geometry(t, &u.geometry)
    fill_contact_law(t, &u.law)
    fill_latches(t, &u.latches)
    fill_sensors(t, &u.geometry, &u.sensors)
    fill_interface(t, &u.interface)
    u.depth_limit = t["depth_limit_m"]
    u.plane_radius, u.together_gap = t["face_radius_m"], t["together_gap_m"]
    u.substeps = t["substeps"]
    u.latches.jammed, u.latches.stays, u.sensors.dead = t["latch_jammed"], t["latch_stays"], t["sensor_dead"]
    u.spring_broken = t["spring_broken"]
    s.X_AN.p.x = t["ready_distance_m"]
    s.X_AN.q.w = 1.0
    s.contact_time = -1.0
    s.capture_time = -1.0


cdef object ring_depth(RingUnit *u, RingState *s, object X_TA):
    """Deepest penetration of the two rings [m] with the base at X_TA; negative without contact."""
    cdef double X[7]
    cdef Twist still
    cdef RingPose N
    cdef Contact found[RING_CONTACTS]
    cdef double deepest = -1.0
    cdef int i, n
    for i in range(7):
        X[i] = X_TA[i]
    memset(&still, 0, sizeof(still))
    N = ring_in_target(pose(X), still, s)
    n = ring_contacts(&u.geometry, N.p, N.R, found)
    for i in range(n):
        if found[i].depth > deepest:
            deepest = found[i].depth
    return deepest


RING_BOUNDS = {"ring.out_of_range": FLAG, "ring.interface.held": FLAG, "ring.interface.spare": (0, 0), "ring.led": FLAG}


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


cdef inline void draw_in(RingSelf *m, double dt) noexcept nogil:
    """The drive draws the neutral point of the springs in."""
    m.state.neutral -= dt * m.retract_speed
    if m.state.neutral < -m.retract_stroke:
        m.state.neutral = -m.retract_stroke


cdef inline bint drawing_in(const RingSelf *m, const MechanismInput *inp) noexcept nogil:
    # the drive runs on command until the ring is latched in its nest
    return inp.commands & MECHANISM_COMMAND_DRIVE and not m.state.ring.interface.held


cdef inline void spring_legs(RingSelf *m) noexcept nogil:
    """Springs with hysteresis, and dampers: forces on the strokes."""
    cdef double lever, rate, deformation
    cdef int i, k
    for k in range(MAX_LEGS):
        i = m.unit.leg[k].active
        lever = m.unit.leg[k].lever
        rate = lever * m.motion[k].p_rate[i]
        deformation = lever * m.motion[k].p[i] - m.state.neutral
        if beyond_table(&m.spring, deformation):
            m.state.ring.out_of_range = 1
        m.state.force[k] = -m.damping * rate
        if k + 1 != m.unit.spring_broken:
            m.state.force[k] -= hysteresis_step(&m.spring, &m.state.spring[k], deformation)
        m.motion[k].force[i] += lever * m.state.force[k]


cdef void ring_advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef RingSelf *m = <RingSelf *> self
    cdef RingState *s = &m.state.ring
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA)
    cdef RingPose N
    cdef RingLoads loads
    cdef InterfaceTouch touch
    cdef RingUnitRecord *record = <RingUnitRecord *> aux
    cdef BodyMotion base
    cdef Wrench F_ring, W, nest
    cdef Twist V
    cdef double h = inp.dt / m.unit.substeps
    cdef int i, k
    ring_begin(inp, &base, &loads, out)
    if drawing_in(m, inp):
        draw_in(m, inp.dt)
    for _ in range(m.unit.substeps):
        N = ring_in_target(X_TA, V_TA, s)
        ring_touch(&m.unit, s, &N, h, &loads, not (inp.commands & MECHANISM_COMMAND_RELEASE))
        planes_touch(&m.unit, X_TA, V_TA, h, &loads, &touch)
        F_ring = ring_wrench(X_TA, &loads)
        if not ring_close(&m.unit, s, m.motion, &N):
            s.out_of_range = 1
            break
        spring_legs(m)
        memset(&W, 0, sizeof(W))
        V = twist_of(s.v, s.w)
        nest = ring_nest(&m.unit, s, &N, &touch, &W)
        if not ring_move(&m.unit, s, m.motion, &N, &base, wrench_sum(F_ring, nest), h, &W):
            s.out_of_range = 1
            break
        # what the springs took, at the rates of the middle of the step
        for k in range(MAX_LEGS):
            i = m.unit.leg[k].active
            s.lost_springs -= h * m.unit.leg[k].lever * m.state.force[k] * (m.motion[k].p_rate[i] + 0.5 * h * m.motion[k].p_accel[i])
        ring_account(s, X_TA, V_TA, &loads, h)
        planes_account(&m.unit, s, &touch, nest, V, drawing_in(m, inp), h)
        ring_mean(&m.unit, &loads, W, out)
        X_TA = base_moves(X_TA, V_TA, h)
    ring_report(&m.unit, s, m.motion, m.state.force, &loads, X_TA, V_TA, out, &record.ring, &record.planes)
    if m.state.neutral < 0.0 and not s.interface.held:
        out.signals |= MECHANISM_SIGNAL_DRIVE_RUNNING


cdef class Ring(MechanismPart):
    """Peripheral docking unit: ring with guide petals and latches on six struts or cranks with springs and dampers."""

    PARAMETERS = RING_PARAMETERS + (
        Parameter("leg_kind", "str", "-", "joints of a leg from the base on; UPS, SPU: struts; RUS, RSU: Hunt's cranks and links, whose "
                  "springs, dampers and drive are given at the end of the crank", "UPS", choices=("UPS", "SPU", "RUS", "RSU")),
        Parameter("crank_length_m", "float", "m", "crank of a leg of the kind RUS or RSU", default=None, low=0.01, high=5.0),
        Parameter("crank_angle_deg", "float", "deg", "of the crank in the initial position, from the base plane towards the ring",
                  default=0.0, low=-60.0, high=60.0),
        Parameter("spring_forward_n", "rows", "m, N", "loading branch of a leg: rows [deformation, force], odd symmetric", low=0.0,
                  high=1e9),
        Parameter("spring_backward_n", "rows", "m, N", "return branch of a leg", low=0.0, high=1e9),
        Parameter("leg_damping_n_s_per_m", "float", "N.s/m", "damper of a leg", low=0.0, high=1e7),
        Parameter("retract_speed_m_s", "float", "m/s", "speed of the neutral stroke while the drive runs", default=1e-3, low=0.0, high=0.1),
        Parameter("retract_stroke_m", "float", "m", "way of the neutral stroke", default=0.0, low=0.0, high=2.0),
        Parameter("press_stroke_m", "float", "m", "its further way with planes, which hold the ring while the springs are stretched",
                  default=0.0, low=0.0, high=2.0),
    )
    PICTURE = RingPicture
    longest_substep_s = staticmethod(longest_substep_s)
    AUX = AUX
    LEDGER = ("work_in", ("kinetic_energy", "lost_contact", "given_to_springs", "stored_contact", "stored_planes", "lost_planes",
                          "given_to_nest"))

    cdef RingSelf m
    cdef readonly object gives      # UnitEnergy

    def __init__(self, **given):
        t = checked(Ring.PARAMETERS, given)
        memset(&self.m, 0, sizeof(RingSelf))
        fill_ring_unit(t, &self.m.unit, &self.m.state.ring, legs_of(t))
        fill_table(&self.m.spring, "spring_forward_n", t["spring_forward_n"], t["spring_backward_n"], None, None, False)
        self.m.damping = t["leg_damping_n_s_per_m"]
        self.m.retract_speed = t["retract_speed_m_s"]
        self.m.retract_stroke = t["retract_stroke_m"] + (0.0 if t["plane_x_m"] is None else t["press_stroke_m"])
        self.m.unit.mated_x = drawn_in(t) if t["plane_x_m"] is None else t["plane_x_m"]
        # the drive moves the neutral point of springs that pull with no more than the end of their table
        strongest = max(row[1] for row in t["spring_forward_n"])
        self.gives = UnitEnergy(drive_power_w=MAX_LEGS * strongest * t["retract_speed_m_s"])
        self.plug.self = &self.m
        self.plug.state = &self.m.state
        self.plug.state_size = sizeof(RingUnitState)
        self.plug.advance = ring_advance

    def state_fields(self):
        return self.m.state

    def state_bounds(self):
        return RING_BOUNDS

    def max_penetration(self, X_TA):
        """Deepest penetration of the rings [m] with the base at X_TA (7,), at the ring's present pose; -1 without contact."""
        return ring_depth(&self.m.unit, &self.m.state.ring, X_TA)
