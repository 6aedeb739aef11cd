"""What every peripheral docking unit has: a ring on six legs that meets an equal ring at the target port. Equations: ring_unit.pyx."""

from libc.stdint cimport uint32_t

from rt_kernels.algebra cimport pose
from rt_kernels.algebra cimport quat
from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3
from rt_kernels.contact.primitives cimport Contact
from rt_kernels.contact.reaction cimport ContactLaw
from rt_kernels.mechanisms.ring.contact cimport (
    PETALS, RING_CONTACTS, RING_LATCHES, RingGeometry, RingLatchLaw, RingLatchState, RingLoads, RingPose, RingSensors, contact_loads,
    latch_loads, ring_captured, ring_contacts, sensor_loads,
)
from rt_kernels.mechanisms.ring.platform cimport (
    MAX_LEGS, BaseMotion, Leg, LegMotion, RingBody, close_leg, leg_inertia, place_leg, react_on_base, reduce_leg, ring_terms, solve_ring,
    spread_leg,
)
from rt_kernels.codes cimport (MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DSG, MECHANISM_SIGNAL_LATCH1, MECHANISM_SIGNAL_PLANES_TOGETHER,
                               MECHANISM_SIGNAL_PUSHERS, MECHANISM_SIGNAL_RING_ALIGNED1)
from rt_kernels.plugs cimport MechanismInput, MechanismOutput

cdef enum:
    RING_AUX_SIZE = 49


cdef struct RingUnit:
    Leg leg[MAX_LEGS]
    RingBody ring
    RingGeometry geometry
    ContactLaw law
    RingLatchLaw latches
    RingSensors sensors
    double depth_limit
    double mated_x                        # docking plane of the unit in its base: the ring plane when drawn in
    double plane_radius                   # where the gap of the docking planes is sensed, at four places
    double together_gap
    int substeps


# Flat; the part of a unit that changes.
cdef struct RingState:
    double X_AN[7]                        # ring in the base
    double v[3]                           # relative to the base, base axes
    double w[3]
    double half_step[6]                   # half the change of [v; w] in the last sub-step: the ledger takes every power at its middle
    RingLatchState latch[RING_LATCHES]
    double time
    double contact_time                   # of the first contact, -1 before
    double capture_time                   # all latch pairs behind their stops, -1 before
    double kinetic                        # energy of the mechanism relative to its base, J
    double work_in                        # put in by the target, moved against the base, J
    double lost_contact                   # friction and damping in contacts, J
    double lost_springs                   # given to springs and their dampers by the struts (stored and lost), J
    double depth_peak
    int out_of_range


cdef inline void ring_in_target(const double *X_TA, const double *V_TA, const RingState *s, RingPose *N) noexcept nogil:
    """Pose and relative motion of the ring in T, T axes."""
    cdef double X_TN[7]
    cdef double arm[3]
    cdef double t[3]
    pose.multiply(X_TA, s.X_AN, X_TN)
    vec3.copy(X_TN, N.p)
    quat.to_matrix(X_TN + 3, N.R)
    vec3.sub(X_TN, X_TA, arm)
    vec3.cross(V_TA + 3, arm, t)
    vec3.add(V_TA, t, N.v)
    quat.rotate(X_TA + 3, s.v, t)
    vec3.add(N.v, t, N.v)
    quat.rotate(X_TA + 3, s.w, t)
    vec3.add(V_TA + 3, t, N.w)


cdef inline void ring_touch(const RingUnit *u, RingState *s, const RingPose *N, double h, RingLoads *loads, bint grip) noexcept nogil:
    """All loads between the two rings; `grip` false holds the latches in (released)."""
    cdef Contact found[RING_CONTACTS]
    cdef int i
    for i in range(6):
        loads.F_T[i] = 0.0
        loads.F_N[i] = 0.0
        loads.D_N[i] = 0.0
    loads.lost_power = 0.0
    loads.stored = 0.0
    loads.depth = 0.0
    loads.count = ring_contacts(&u.geometry, N.p, N.R, found)
    contact_loads(&u.law, found, loads.count, N, loads)
    sensor_loads(&u.sensors, &u.geometry, N, loads)
    if grip:
        latch_loads(&u.latches, &u.law, s.latch, N, h, loads)
    else:
        for i in range(RING_LATCHES):
            s.latch[i].x = 0.0
            s.latch[i].v = 0.0
            s.latch[i].fired = 0.0


cdef inline bint ring_close(const RingUnit *u, const RingState *s, LegMotion *motion, double *R_AN) noexcept nogil:
    """Joint coordinates and rates of all legs; their forces start at zero. False outside the workspace."""
    cdef int j, k
    quat.to_matrix(s.X_AN + 3, R_AN)
    for k in range(MAX_LEGS):
        if not place_leg(&u.leg[k], s.X_AN, R_AN, &motion[k]):
            return False
        spread_leg(&u.leg[k], &motion[k])
        close_leg(&u.leg[k], R_AN, s.v, s.w, &motion[k])
        for j in range(u.leg[k].joints):
            motion[k].force[j] = 0.0
    return True


cdef inline bint ring_move(const RingUnit *u, RingState *s, LegMotion *motion, const double *R_AN, const BaseMotion *base, const double *F_ring,
                           double h, double *W) noexcept nogil:
    """One substep: accelerations under the wrench on the ring (about its centre, base axes) and the joint forces; wrench on the base added to W.

    Symplectic Euler: velocities first, then the pose with the new velocities (attitude by the exponential).
    """
    cdef double A[36]
    cdef double b[6]
    cdef double accel[6]
    cdef double phi[3]
    cdef double dq[4]
    cdef double x
    cdef int i, k
    ring_terms(&u.ring, base, s.X_AN, R_AN, s.v, s.w, F_ring, A, b)
    for k in range(MAX_LEGS):
        leg_inertia(&u.leg[k], base, &motion[k])
        reduce_leg(&u.leg[k], &motion[k], A, b)
    if not solve_ring(A, b, accel):
        return False
    for k in range(MAX_LEGS):
        react_on_base(&u.leg[k], accel, &motion[k], W)
    for i in range(6):
        s.half_step[i] = 0.5 * h * accel[i]
    vec3.add_scaled(s.v, h, accel, s.v)
    vec3.add_scaled(s.w, h, accel + 3, s.w)
    # kinetic energy with the new velocities: u A u / 2, A from its lower triangle
    s.kinetic = 0.0
    for i in range(6):
        x = s.v[i] if i < 3 else s.w[i - 3]
        for k in range(i):
            s.kinetic += A[6 * i + k] * x * (s.v[k] if k < 3 else s.w[k - 3])
        s.kinetic += 0.5 * A[7 * i] * x * x
    vec3.add_scaled(s.X_AN, h, s.v, s.X_AN)
    vec3.scale(h, s.w, phi)
    quat.exponential(phi, dq)
    quat.multiply(dq, s.X_AN + 3, s.X_AN + 3)
    quat.normalize(s.X_AN + 3)
    return True


cdef inline void base_moves(double *X_TA, const double *V_TA, double h) noexcept nogil:
    # the base between ticks: at constant twist
    cdef double phi[3]
    cdef double dq[4]
    vec3.add_scaled(X_TA, h, V_TA, X_TA)
    vec3.scale(h, V_TA + 3, phi)
    quat.exponential(phi, dq)
    quat.multiply(dq, X_TA + 3, X_TA + 3)


cdef inline void ring_account(RingState *s, const MechanismInput *inp, const double *X_TA, const RingLoads *loads,
                              double h) noexcept nogil:
    """Energy ledger of one substep, seen from the base (which the mechanism takes for inertial), and times of events."""
    cdef double v[3]
    # twist of the base's material point at the origin of T, relative to T; the target moves with the opposite one
    vec3.cross(inp.V_TA + 3, X_TA, v)
    vec3.sub(inp.V_TA, v, v)
    s.work_in += h * (vec3.dot(loads.F_T, v) + vec3.dot(loads.F_T + 3, inp.V_TA + 3))
    # friction and damping at the rates of the middle of the step: what they took from the ring
    quat.rotate_back(X_TA + 3, loads.D_N, v)
    s.lost_contact += h * (loads.lost_power - vec3.dot(v, s.half_step))
    quat.rotate_back(X_TA + 3, loads.D_N + 3, v)
    s.lost_contact -= h * vec3.dot(v, s.half_step + 3)
    s.time += h
    if loads.depth > s.depth_peak:
        s.depth_peak = loads.depth
    if s.contact_time < 0.0 and (loads.count > 0 or loads.plunger[0] + loads.plunger[1] + loads.plunger[2] > 0.0):
        s.contact_time = s.time
    if s.capture_time < 0.0 and ring_captured(s.latch):
        s.capture_time = s.time


cdef inline uint32_t plane_signals(const RingUnit *u, const double *X_TA) noexcept nogil:
    """Pushers: the docking planes are close at one of four places at least. Together: at all four."""
    cdef double p[3]
    cdef uint32_t word = 0
    cdef int i, closed = 0
    for i in range(4):
        vec3.fill(u.mated_x, 0.0, 0.0, p)
        p[1 + (i & 1)] = u.plane_radius if i < 2 else -u.plane_radius
        pose.apply(X_TA, p, p)
        closed += -p[0] <= u.together_gap
    if closed > 0:
        word |= MECHANISM_SIGNAL_PUSHERS
    if closed == 4:
        word |= MECHANISM_SIGNAL_PLANES_TOGETHER
    return word


cdef inline void ring_report(const RingUnit *u, const RingState *s, const LegMotion *motion, const double *force, const RingLoads *loads,
                             const double *X_TA, MechanismOutput *out, double *aux) noexcept nogil:
    """Signals, analogue values and the auxiliary channels RING_AUX in their order. X_TA: the base at the end of the tick."""
    cdef int i, k
    out.signals = plane_signals(u, X_TA)
    if s.contact_time >= 0.0:
        out.signals |= MECHANISM_SIGNAL_DK1
    if s.capture_time >= 0.0:
        out.signals |= MECHANISM_SIGNAL_DSG
    for k in range(3):
        if loads.aligned[k]:
            out.signals |= MECHANISM_SIGNAL_RING_ALIGNED1 << k
        if s.latch[2 * k].fired != 0.0 or s.latch[2 * k + 1].fired != 0.0:
            out.signals |= MECHANISM_SIGNAL_LATCH1 << k
    out.status = 1 if s.out_of_range or s.depth_peak > u.depth_limit else 0
    for i in range(8):
        out.analog[i] = motion[i].p[u.leg[i].stroke] if i < MAX_LEGS else 0.0
    for i in range(3):
        aux[i] = s.X_AN[i]
        aux[7 + i] = s.v[i]
        aux[10 + i] = s.w[i]
        aux[37 + i] = loads.plunger[i]
    for i in range(4):
        aux[3 + i] = s.X_AN[3 + i]
    for i in range(6):
        aux[13 + i] = motion[i].p[u.leg[i].stroke]
        aux[19 + i] = force[i]
        aux[25 + i] = s.latch[i].x
        aux[31 + i] = s.latch[i].fired
    aux[40] = loads.count
    aux[41] = loads.depth
    aux[42] = s.kinetic
    aux[43] = s.work_in
    aux[44] = s.lost_contact
    aux[45] = s.lost_springs
    aux[46] = loads.stored
    aux[47] = s.contact_time
    aux[48] = s.capture_time


# set-up, with the interpreter
cdef void fill_ring_unit(object t, RingUnit *u, RingState *s, object leg_tables) except *
cdef object ring_depth(RingUnit *u, RingState *s, object X_TA)
