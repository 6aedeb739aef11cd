"""Central (probe-cone) docking unit: contact, swinging body, elastic probe, dampers, drive, latches, sensors.

What it computes (Yaskevich 2020, 5.3, 6; errata of the printed formulas applied): from the pose and twist of the active unit's base A in
the target port T it finds all contacts, advances the mechanism's own coordinates by sub-steps and returns the wrench on the target (at and
in T), the wrench on the active vehicle (at and in A), the sensors and some 300 auxiliary channels (record.toml).

Frames: X_T points into the receptacle, X_A along the mechanism; at zero swing the two agree. Free length L of the probe:
exit bearing to head centre;
`stroke` s = L - L_0 is negative in compression and the nut turns by phi = -i s, i = 2 pi/lead.

A sub-step of length h: bodies placed in T, contacts, generalised forces Q, M q'' = Q - bias, semi-implicit Euler (v += h q'', q += h v),
and the hysteresis elements accept the new coordinates. The wrenches of a tick are the means over its sub-steps: its impulse is exact.

Variants: `axial_damper = "spring"` (spring mechanism + friction clutch + magnetic brakes) or "two_brakes" (modified, 6.4);
`limiter = "fixed"` or
"movable" (6.5); `levers`; compliance of the hatch cover (6.1.6) for the correlation with stand tests only.
Assumptions: craft accelerations are left out of the transport terms; lever and latch inertia is neglected.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from rt_kernels.algebra.sincos cimport atan2
from rt_kernels.algebra.values cimport (
    Mat3, Pose, Quat, Twist, Vec3, Wrench, add, conjugate, cross, dot, exponential, logarithm, mat_transposed_vec, mat_vec, mul, pose,
    pose_of, power, put, put_wrench, quat_multiply, rotate, sub, to_matrix, twist, twist_of, vec, wrench, wrench_of, wrench_sum, xyz,
)
from rt_kernels.codes cimport (MECHANISM_COMMAND_EXTRA_BRAKES, MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_INITIAL_POSITION,
                               MECHANISM_SIGNAL_RELEASED, MECHANISM_STATUS_OUT_OF_RANGE)
from rt_kernels.mechanisms.common.drive cimport drive_angle, drive_rate
from rt_kernels.mechanisms.common.hysteresis cimport HysteresisTable, beyond_table
from rt_kernels.mechanisms.probe_cone.contact_sums cimport Body, Sums
from rt_kernels.mechanisms.probe_cone.contacts cimport head_contacts, limiter_contacts, plane_contacts, roller_contacts
from rt_kernels.mechanisms.probe_cone.cover cimport cover_step
from rt_kernels.mechanisms.probe_cone.dynamics cimport assemble, base_wrench, factor, kinematics, solve
from rt_kernels.mechanisms.probe_cone.joints cimport accept_joints, joint_forces, lateral_losses
from rt_kernels.mechanisms.probe_cone.latches cimport latch_contacts
from rt_kernels.mechanisms.probe_cone.model cimport (
    DOF, LENGTH, LIMITER, PART_BENDING, PART_BRAKE_CHAIN, PART_COVER, PART_LATERAL_SPRING, PART_NONE, PART_TORSION, Motion, State, Unit,
)
from rt_kernels.mechanisms.probe_cone.record cimport ProbeConeRecord
from rt_kernels.mechanisms.probe_cone.setup cimport fill_unit
from rt_kernels.mechanisms.probe_cone.stroke cimport accept_stroke, axial_friction, run_drive, stroke_forces
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import COUNT_32, FLAG
from rt_kernels.mechanisms.probe_cone.declaration import INVALID, PARAMETERS
from rt_kernels.mechanisms.probe_cone.picture import ProbeConePicture
from rt_kernels.mechanisms.probe_cone.record import AUX
from rt_kernels.parameters import checked


# ---------------------------------------------------------------------------------------------------------- bodies in the target port

cdef struct Bodies:
    Body head          # probe with head; reference point: head centre
    Body swing         # swinging body; the others: origin of their frame
    Body limiter
    Body base


# contact wrenches about A, A axes
cdef struct Wrenches:
    Wrench head
    Wrench swing
    Wrench limiter
    Wrench base


cdef inline void place(const Pose *X_TA, const Mat3 *R_TA, const Twist *V, const Vec3 *p_AB, const Vec3 *v_AB, const Vec3 *w_AB,
                       Body *b) noexcept nogil:
    """Place and twist in T of a body whose reference point is p_AB and whose motion relative to A is v_AB, w_AB, all in A axes."""
    cdef Vec3 r = mat_vec(R_TA[0], p_AB[0])
    b.p = add(X_TA.p, r)
    b.v = add(add(V.v, cross(V.w, r)), mat_vec(R_TA[0], v_AB[0]))
    b.w = add(V.w, mat_vec(R_TA[0], w_AB[0]))
    b.F = wrench_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0))


cdef inline Mat3 columns(Vec3 x, Vec3 y, Vec3 z) noexcept nogil:
    cdef Mat3 R
    R.xx = x.x; R.xy = y.x; R.xz = z.x
    R.yx = x.y; R.yy = y.y; R.yz = z.y
    R.zx = x.z; R.zy = y.z; R.zz = z.z
    return R


cdef inline void place_bodies(const Unit *u, const Pose *X_TA, const Mat3 *R_TA, const Twist *V, Bodies *b) noexcept nogil:
    """Places, axes and twists of all bodies in T; their contact sums begin at zero."""
    cdef const Motion *k = &u.motion
    cdef Vec3 rest = xyz(0.0, 0.0, 0.0)
    # the limiter: at rest on the body, or sliding along it
    cdef Vec3 p_AL = mul(u.state.q[LIMITER], k.x2)
    cdef Vec3 v_AL = add(cross(k.w2_rel, p_AL), mul(u.state.v[LIMITER], k.x2))
    place(X_TA, R_TA, V, &k.p_head, &k.v_head, &k.w1_rel, &b.head)
    place(X_TA, R_TA, V, &rest, &rest, &k.w2_rel, &b.swing)
    place(X_TA, R_TA, V, &rest, &rest, &rest, &b.base)
    place(X_TA, R_TA, V, &p_AL, &v_AL, &k.w2_rel, &b.limiter)
    b.head.R = columns(mat_vec(R_TA[0], k.x1), mat_vec(R_TA[0], k.y1), mat_vec(R_TA[0], k.z1))
    b.swing.R = columns(mat_vec(R_TA[0], k.x2), mat_vec(R_TA[0], k.y2), mat_vec(R_TA[0], k.z2))
    b.base.R = R_TA[0]
    b.limiter.R = b.swing.R


cdef inline Wrench in_A(const Mat3 *R_TA, Wrench F) noexcept nogil:
    return wrench_of(mat_transposed_vec(R_TA[0], F.f), mat_transposed_vec(R_TA[0], F.m))


cdef inline void find_contacts(Unit *u, const Mat3 *R_TA, Bodies *b, Sums *sums, Wrenches *W) noexcept nogil:
    """All contacts: sums on the target, wrenches on the bodies (A axes)."""
    head_contacts(u, &b.head, sums)
    latch_contacts(u, &b.head, sums)
    limiter_contacts(u, &b.limiter, sums)
    roller_contacts(u, &b.swing, sums)
    plane_contacts(u, &b.base, sums)
    W.head = in_A(R_TA, b.head.F)
    W.swing = in_A(R_TA, b.swing.F)
    W.limiter = in_A(R_TA, b.limiter.F)
    W.base = in_A(R_TA, b.base.F)


# ------------------------------------------------------------------------------------------------------------------- equations of motion

cdef inline void add_generalised(const Motion *k, Wrench F, double *Q) noexcept nogil:
    """Generalised forces of a wrench (about A, A axes) on a body that the swing carries."""
    cdef int i
    for i in range(2):
        Q[i] += dot(k.axis[i], F.m)


cdef inline void add_generalised_of_probe(const Motion *k, Wrench F, double *Q) noexcept nogil:
    """Those of a wrench on the probe, whose joints 2, 3, 4 lie at the exit bearing."""
    cdef Vec3 moment = sub(F.m, cross(k.p_exit, F.f))
    cdef int i
    add_generalised(k, F, Q)
    for i in range(2, 5):
        Q[i] += dot(k.axis[i], moment)
    Q[LENGTH] += dot(k.x1, F.f)


cdef inline double kinetic_energy(Unit *u) noexcept nogil:
    # v^T M v / 2 with the lower triangle, motion relative to the base
    cdef double e = 0.0
    cdef const double *v = u.state.v
    cdef int i, j
    for i in range(u.inertias.dof):
        for j in range(i):
            e += v[i] * u.motion.M[DOF * i + j] * v[j]
        e += 0.5 * v[i] * v[i] * u.motion.M[(DOF + 1) * i]
    return e


cdef inline void accelerations(Unit *u, const Wrenches *W, double h, double *acc) noexcept nogil:
    """Generalised forces of contacts, joints and stroke; M q'' = Q - bias; then the friction that may stop the stroke."""
    cdef Motion *k = &u.motion
    cdef double Q[DOF]
    cdef int i, n = u.inertias.dof
    assemble(&u.inertias, u.state.q, u.state.v, k)
    for i in range(DOF):
        Q[i] = 0.0
    add_generalised_of_probe(k, W.head, Q)
    add_generalised(k, W.swing, Q)
    add_generalised(k, W.limiter, Q)
    if u.movable:
        Q[LIMITER] += dot(k.x2, W.limiter.f)
    joint_forces(u, Q)
    stroke_forces(u, Q)
    for i in range(DOF):
        u.record.mass[i] = k.M[(DOF + 1) * i]
        u.record.bias[i] = k.bias[i]
        u.record.generalised[i] = Q[i]
        acc[i] = Q[i] - k.bias[i] if i < n else 0.0
    u.record.stored.kinetic = kinetic_energy(u)
    factor(n, k.M)
    solve(n, k.M, acc)
    axial_friction(u, k.M, dot(k.x1, W.head.f), h, acc)


cdef inline void sum_wrenches(Unit *u, const Wrenches *W, const Sums *sums, const double *acc) noexcept nogil:
    """Wrench on the base: external less rate of momentum, and what acts on the base itself;
    adds it and the target's to those of the tick."""
    cdef Wrench external = wrench_sum(wrench_sum(W.head, W.swing), W.limiter)
    cdef Wrench base = wrench_sum(base_wrench(&u.inertias, &u.motion, acc, external), W.base)
    put_wrench(base, u.record.base)
    u.force_A = wrench_sum(u.force_A, base)
    u.force_T = wrench_sum(u.force_T, sums.F_T)


cdef inline void account(Unit *u, const Sums *sums, const Twist *V) noexcept nogil:
    """Work of the target, whose surface moves at -V relative to the base and between ticks by the jump, and losses of the lateral damper
    and the limiter."""
    cdef Wrench F = wrench_of(sums.F_T.f, sub(sums.F_T.m, cross(sums.p_TA, sums.F_T.f)))
    u.state.supplied += sums.h * power(V[0], F) + 0.5 * power(u.jump, wrench_sum(F, u.state.F_led))
    u.state.F_led = F
    lateral_losses(u, sums.h)
    if u.movable:
        u.state.lost.limiter += sums.h * u.limiter_loss


cdef inline void note_motion(Unit *u, const Body *head, const Wrenches *W, const Sums *sums) noexcept nogil:
    # where the head was and what the contacts did in this sub-step
    cdef ProbeConeRecord *r = u.record
    r.stored.contact = sums.stored
    put_wrench(W.head, r.contact)
    put_wrench(W.swing, r.lever)
    put_wrench(W.limiter, r.limiter)
    put_wrench(sums.F_T, r.target)
    put(head.p, r.head)
    put(head.v, r.head_v)
    put(head.w, r.head_w)
    put(xyz(head.R.xx, head.R.yx, head.R.zx), r.axis)


# ---------------------------------------------------------------------------------------------------------------------- sub-step

cdef void substep(Unit *u, const Pose *X_TA, const Twist *V, Vec3 w0, double h, uint32_t commands) noexcept nogil:
    """One sub-step with the base at the pose X_TA, twist V (T axes) and absolute rate w0 (A axes)."""
    cdef State *s = &u.state
    cdef Mat3 R_TA = to_matrix(X_TA.q)
    cdef Bodies bodies
    cdef Sums sums
    cdef Wrenches W
    cdef double acc[DOF]
    cdef int i
    memset(u.record, 0, sizeof(ProbeConeRecord))
    memset(&sums, 0, sizeof(Sums))
    sums.p_TA = X_TA.p
    sums.h = h
    u.brake_factor = u.extra_brakes if commands & MECHANISM_COMMAND_EXTRA_BRAKES else 1.0
    # where everything is, and what touches
    kinematics(&u.inertias, s.q, s.v, w0, &u.motion)
    place_bodies(u, X_TA, &R_TA, V, &bodies)
    find_contacts(u, &R_TA, &bodies, &sums, &W)
    # forces and accelerations
    accelerations(u, &W, h, acc)
    sum_wrenches(u, &W, &sums, acc)
    account(u, &sums, V)
    run_drive(u, commands, h)
    # new rates, new coordinates, new reactions; the kinetic energy is that of the new rates, as all other entries are of the new state
    for i in range(u.inertias.dof):
        u.record.stored.kinetic += h * (s.v[i] + 0.5 * h * acc[i]) * (
            u.record.generalised[i] - u.record.bias[i] + (u.record.axial_friction if i == LENGTH else 0.0))
        s.v[i] += h * acc[i]
        s.q[i] += h * s.v[i]
        u.record.acceleration[i] = acc[i]
    accept_joints(u, h)
    accept_stroke(u, h)
    s.time += h
    note_motion(u, &bodies.head, &W, &sums)


# -------------------------------------------------------------------------------------------------------------------------- step

cdef inline void out_of_range(Unit *u, int part, int number, double value, double limit, Vec3 at) noexcept nogil:
    """A law is used beyond its valid range; the state keeps the first time: part, number, value, limit, place in T (of contacts only)."""
    cdef State *s = &u.state
    u.status |= MECHANISM_STATUS_OUT_OF_RANGE
    if s.invalid_part != PART_NONE:
        return
    s.invalid_part, s.invalid_number = part, number
    s.invalid_value, s.invalid_limit = value, limit
    s.invalid_time = s.time
    put(at, s.invalid_at)


cdef inline void check_element(Unit *u, int part, int number, const HysteresisTable *t, double x) noexcept nogil:
    """Has an elastic element been deformed further than its table goes?"""
    if beyond_table(t, x):
        out_of_range(u, part, number, x, t.up.q[t.up.n - 1] if x > 0.0 else t.up.q[0], xyz(0.0, 0.0, 0.0))


cdef inline void check_validity(Unit *u) noexcept nogil:
    """Penetration of the contacts, tables of the elastic elements, reach of the brake chains. The axial train slips at the ends of its
    table instead."""
    cdef const State *s = &u.state
    cdef int i
    if u.deepest > u.depth_limit:
        out_of_range(u, u.deepest_part, u.deepest_number, u.deepest, u.depth_limit, u.deepest_at)
    for i in range(2):
        check_element(u, PART_BENDING, i + 1, &u.bend, s.bend[i].q)
        check_element(u, PART_LATERAL_SPRING, i + 1, &u.lateral, s.lateral[i].q)
        if u.motion.brake[i].out_of_reach > 0.0:
            out_of_range(u, PART_BRAKE_CHAIN, i + 1, u.motion.brake[i].out_of_reach, 0.0, xyz(0.0, 0.0, 0.0))
    check_element(u, PART_TORSION, 1, &u.twist, s.twist.q)
    if u.cover_on:
        check_element(u, PART_COVER, 1, &u.cover, s.cover.q)


cdef inline void on_the_cover(const State *s, Pose *X_TA, Twist *V) noexcept nogil:
    """The hatch cover moves the base along X_A: its place and velocity with it."""
    cdef Vec3 shift = rotate(X_TA.q, xyz(s.cover_x, 0.0, 0.0))
    X_TA.p = add(X_TA.p, shift)
    V.v = add(add(V.v, cross(V.w, shift)), rotate(X_TA.q, xyz(s.cover_v, 0.0, 0.0)))


cdef inline void release(Unit *u) noexcept nogil:
    # latches and capture levers are drawn into the head for as long as the command stands
    u.latches_held = True
    u.signals |= MECHANISM_SIGNAL_RELEASED


cdef inline Wrench mean(Wrench F, int n) noexcept nogil:
    return wrench_of(xyz(F.f.x / n, F.f.y / n, F.f.z / n), xyz(F.m.x / n, F.m.y / n, F.m.z / n))


cdef inline void report(Unit *u, MechanismOutput *out) noexcept nogil:
    """Wrenches, sensors and validity of the tick."""
    cdef State *s = &u.state
    # mean over the sub-steps: the impulse of the tick is exact
    put_wrench(mean(u.force_T, u.substeps), out.F_T)
    put_wrench(mean(u.force_A, u.substeps), out.F_A)
    if u.cover_on:
        out.F_A[0] = s.cover_force
    if s.q[LENGTH] >= u.length0 - 1e-3:
        u.signals |= MECHANISM_SIGNAL_INITIAL_POSITION
    check_validity(u)
    if u.status & MECHANISM_STATUS_OUT_OF_RANGE:
        s.over_limit += 1
    out.signals = u.signals
    out.status = u.status
    out.analog[0] = u.length0 - s.q[LENGTH]
    out.analog[1] = u.record.spring[0].stroke
    out.analog[2] = u.record.spring[1].stroke
    out.analog[3] = u.record.plane_gap
    out.analog[4] = s.axial.slip + s.axial.slip1
    out.analog[5] = u.deepest
    out.analog[6] = s.q[LIMITER] if u.movable else 0.0
    out.analog[7] = drive_rate(&u.drive, &s.drive)


cdef inline double total(const void *energies, size_t size) noexcept nogil:
    """Sum of all members of a struct of energies."""
    cdef const double *e = <const double *>energies
    cdef double result = 0.0
    cdef size_t i
    for i in range(size // sizeof(double)):
        result += e[i]
    return result


cdef inline void note_state(Unit *u, Vec3 p_TA, Vec3 w_TA, uint32_t commands) noexcept nogil:
    """The rest of the record: state at the end of the tick, sums of the energy ledger."""
    cdef ProbeConeRecord *r = u.record
    cdef const State *s = &u.state
    memcpy(r.q, s.q, sizeof(r.q))
    memcpy(r.v, s.v, sizeof(r.v))
    # stroke and axial damper
    r.stroke = s.q[LENGTH] - u.length0
    r.stroke_rate = s.v[LENGTH]
    r.nut_angle = -u.nut_ratio * (s.q[LENGTH] - u.length0)
    r.nut_rate = -u.nut_ratio * s.v[LENGTH]
    r.clutch_angle = s.axial.q
    r.clutch_slip = s.axial.slip
    r.clutch_slip1 = s.axial.slip1
    # drive, hatch cover
    r.drive.angle = drive_angle(&u.drive, &s.drive)
    r.drive.rate = drive_rate(&u.drive, &s.drive)
    r.drive.wheel_a = s.drive.angle[0]
    r.drive.wheel_b = s.drive.angle[1]
    r.drive.wheel_a_rate = s.drive.rate[0]
    r.drive.wheel_b_rate = s.drive.rate[1]
    r.cover.x = s.cover_x
    r.cover.v = s.cover_v
    r.cover.force = s.cover_force
    # whole unit
    put(p_TA, r.base_p)
    put(w_TA, r.base_w)
    r.penetration = u.deepest
    r.over_limit = s.over_limit
    r.invalid.part, r.invalid.number = s.invalid_part, s.invalid_number
    r.invalid.value, r.invalid.limit, r.invalid.time = s.invalid_value, s.invalid_limit, s.invalid_time
    put(vec(s.invalid_at), r.invalid.at)
    r.commands = commands
    r.time = s.time
    # ledger
    r.energy_stored = total(&r.stored, sizeof(r.stored))
    r.lost = s.lost
    r.energy_lost = total(&s.lost, sizeof(s.lost))
    r.energy_supplied = s.supplied


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Unit *u = <Unit *>self
    cdef double h = inp.dt / u.substeps
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V = twist(inp.V_TA)
    cdef Quat turn
    u.record = <ProbeConeRecord *>aux
    if u.cover_on:
        on_the_cover(&u.state, &X_TA, &V)
    memset(&u.force_T, 0, sizeof(Wrench))
    memset(&u.force_A, 0, sizeof(Wrench))
    u.deepest = 0.0
    u.signals = 0
    u.status = 0
    u.latches_held = False
    if inp.commands & MECHANISM_COMMAND_RELEASE:
        release(u)
    # rotation of one sub-step, in T axes
    turn = exponential(mul(h, V.w))
    # the craft have moved the base with the rates that this tick begins with, its last tick led it on with those before
    if u.state.led:
        u.jump = twist_of(sub(X_TA.p, u.state.X_led.p), logarithm(quat_multiply(X_TA.q, conjugate(u.state.X_led.q))))
    for _ in range(u.substeps):
        substep(u, &X_TA, &V, vec(inp.w_A), h, inp.commands)
        u.jump = twist_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0))
        if u.cover_on:
            cover_step(u, u.record.base[0], h)
        X_TA = pose_of(add(X_TA.p, mul(h, V.v)), quat_multiply(turn, X_TA.q))
    u.state.X_led, u.state.led = X_TA, 1
    report(u, out)
    note_state(u, X_TA.p, V.w, inp.commands)


# -------------------------------------------------------------------------------------------------------------------------- the part

cdef class ProbeCone(MechanismPart):
    """Central docking unit. Keyword arguments: `PARAMETERS`; `AUX` names the auxiliary channels. Raises ValueError for a wrong parameter.

    Signals: bits of `mechanism_signal` in the channel table. Analogue signals: LPS (compression of the probe, m), BPR and BPT (strokes of
    the two lateral rods, m), widest gap of the docking planes (m), clutch slip (rad), deepest penetration (m),
    position of the movable limiter (m), drive rate (rad/s).
    Commands: bit 0 drive on, bit 1 extra lateral brakes, bit 2 latches and capture levers drawn into the head while it is set, bit 3 drive
    extends instead of retracting.
    """

    cdef Unit unit

    PARAMETERS = PARAMETERS
    PICTURE = ProbeConePicture
    AUX = AUX
    LEDGER = ("probe.energy_supplied", ("probe.energy_stored", "probe.energy_lost"))  # kinetic energy is in what is stored
    INVALID = INVALID

    @staticmethod
    def longest_substep_s(keys):
        """Longest sub-step with which friction takes at most half of the slip of the smallest mass, s; None where the friction follows from
        the sub-steps."""
        damping = keys["friction_damping_max_n_s_per_m"]
        return None if damping is None else 0.5 * keys["contact_mass_kg"] / damping

    def __init__(self, **given):
        cdef Unit *u = &self.unit
        memset(u, 0, sizeof(Unit))
        values = checked(PARAMETERS, given)
        # lists as arrays, tables of rows as (n, columns)
        values |= {p.key: np.array(values[p.key]) for p in PARAMETERS if p.kind in ("floats", "rows")}
        fill_unit(u, values)
        self.plug.self = <void *>u
        self.plug.state = <void *>&u.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance

    def state_fields(self):
        return self.unit.state

    def state_bounds(self):
        return {"latch_phase": (0, 2), "lever_phase": (0, 2), "over_limit": COUNT_32, "invalid_part": COUNT_32, "invalid_number": COUNT_32,
                "led": FLAG}

    def max_penetration(self, X_TA):
        """Deepest contact [m] of head, limiter and rollers at the pose X_TA (position m, quaternion xyzw) in the present state,
        before the first step with the probe extended; 0 without contact."""
        cdef Unit *u = &self.unit
        cdef Unit copy
        cdef ProbeConeRecord record
        cdef double[::1] X = np.ascontiguousarray(X_TA, dtype=float).reshape(7)
        cdef Pose X_ = pose(&X[0])
        cdef Vec3 zero = xyz(0.0, 0.0, 0.0)
        cdef Twist rest = twist_of(zero, zero)
        memcpy(&copy, u, sizeof(Unit))
        copy.record = &record
        copy.deepest = 0.0
        if u.state.time == 0.0:
            copy.state.q[LENGTH] = u.length0
            copy.state.q[LIMITER] = u.limiter_front if u.movable else 0.0
        substep(&copy, &X_, &rest, zero, 1e-9, 0)
        return copy.deepest

    def set_state(self, coordinates=None, rates=None):
        """Set the seven coordinates (swing y, z, bend y, z, twist [rad], free length, limiter position [m]) and rates;
        hysteresis is left as it is."""
        cdef int i
        for i in range(DOF):
            if coordinates is not None:
                self.unit.state.q[i] = coordinates[i]
            if rates is not None:
                self.unit.state.v[i] = rates[i]

    @property
    def coordinates(self):
        return np.array([self.unit.state.q[i] for i in range(DOF)])

    @property
    def rates(self):
        return np.array([self.unit.state.v[i] for i in range(DOF)])


def multibody_step(ProbeCone part, q, v, w0, Q, external=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)):
    """Dynamics alone, for tests: accelerations for coordinates q, rates v, base rate w0 (rad/s, A axes) and generalised forces Q.

    `external` is the wrench (about A, A axes) that belongs to Q. Returns (accelerations, wrench on the base, mass matrix, bias,
    chain values and rates).
    """
    cdef Unit *u = &part.unit
    cdef Motion k
    cdef double[::1] q_ = np.ascontiguousarray(q, dtype=float)
    cdef double[::1] v_ = np.ascontiguousarray(v, dtype=float)
    cdef double[::1] w_ = np.ascontiguousarray(w0, dtype=float)
    cdef double[::1] external_ = np.array(external, dtype=float)
    cdef Vec3 w_NA = vec(&w_[0])
    cdef double[::1] W = np.zeros(6)
    cdef double[::1] acc = np.zeros(DOF)
    cdef int i, j, n = u.inertias.dof
    kinematics(&u.inertias, &q_[0], &v_[0], w_NA, &k)
    assemble(&u.inertias, &q_[0], &v_[0], &k)
    M = np.array([[k.M[DOF * max(i, j) + min(i, j)] for j in range(n)] for i in range(n)])
    bias = np.array([k.bias[i] for i in range(n)])
    for i in range(n):
        acc[i] = Q[i] - k.bias[i]
    factor(n, k.M)
    solve(n, k.M, &acc[0])
    put_wrench(base_wrench(&u.inertias, &k, &acc[0], wrench(&external_[0])), &W[0])
    chains = [(k.spring[i].value, k.spring[i].rate) for i in range(2)]
    chains += [(atan2(k.brake[i].sine, k.brake[i].cosine), k.brake[i].rate) for i in range(2)]
    return np.asarray(acc)[:n].copy(), np.asarray(W).copy(), M, bias, chains
