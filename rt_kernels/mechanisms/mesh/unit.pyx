"""A docking unit from its drawings: samples of the active unit's surface in the distance field of the target's, springs, latches, stops.

Contact of sample i, area a, at p_TQ with the velocity v in the target (elastic foundation; dissipation: Hunt and Crossley 1975):

    depth = -phi(p_TQ)    g = -grad phi    n = g/|g|          phi: rt_kernels/contact/distance_field.pxd
    N     = k a depth (1 + c g.v)          while depth > 0, never below zero
    f_t   = mu N v_t / sqrt(v_t^2 + v_s^2) v_t = v - (n.v) n
    f     = N g + f_t                      on the target at Q

With N g and not N n, the springs are the gradient of sum k a depth^2/2 and give back what they took on every way; damper and friction only
take: N - k a depth has the sign of g.v. Friction of all samples together is at most what stops `contact_mass_kg` in a sub-step.

The drawn body of the active unit, the head, is rigid on the port A, or with a mass on springs:

    d = R_AT (p_TH - p_TN)    phi = log(R_AT R_TH)            deflections from the nominal place N = A + `head_m`, A axes
    f = -k d - c d' - stops beyond `travel_m`                 on the head; likewise the moment -k phi - c w about it
    m p_TH'' = R_TA f - sum f_i

Its centre of mass is H, its inertia diagonal. Springs and latches act between a point Q of the head and a point P of the target along an
axis a of T, e = a.(p_TQ - p_TP): a spring pushes with max(0, f_0 + k e + c e') while e > 0 (a stop is a stiff one, a damper one without k);
a latch closes when e >= 0 within `radius_m` of the axis, pulls with min(0, k e + c e') while e < 0 and opens on the release command. That
also moves N by `release_way_m` within `release_s`, for a hook that holds by its shape.

A rigid head is taken once, at the pose of the tick: the craft's symplectic Euler then keeps the springs' energy. A sprung one has
semi-implicit sub-steps with the port at constant twist; wrenches are the means of the tick. Ledger: energies in T at rest; `supplied` is
the work of the port A, by trapezium, and of the release. An edge of the target between two samples is not seen.

The samples lie in a tree of balls; when the head has moved by more than half a cell it is searched for those that may touch before the next
search. Of these, one does not touch before it has gone phi/2 from where phi was computed (the gradient is shorter than 2): what was looked
at before changes no bit.
"""

from libc.math cimport sqrt
from libc.string cimport memset

import numpy as np

from rt_kernels.algebra.values cimport (
    Mat3, Pose, Quat, Twist, Vec3, Wrench, add, apply, conjugate, cross, dot, logarithm, mat_vec, mul, neg, norm, pose, pose_of,
    power, put, put_pose, put_twist, put_wrench, quat_multiply, rotate, rotate_back, sub, to_matrix, turned, twist, twist_of, unit_pose,
    vec, wrench, wrench_of, wrench_sum, xyz,
)
from rt_kernels.codes cimport (MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DK2, MECHANISM_SIGNAL_DSG,
                               MECHANISM_SIGNAL_RELEASED, MECHANISM_STATUS_OUT_OF_RANGE)
from rt_kernels.contact.distance_field cimport Ball, DistanceField, Field, distance_at, is_far
from rt_kernels.mechanisms.mesh.unit_parameters cimport (LatchParameters, MeshUnitParameters, SpringParameters, fill_latch, fill_mesh_unit,
                                                         fill_spring)
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.mechanisms.mesh import field_file
from rt_kernels.mechanisms.mesh.picture import MeshUnitPicture
from rt_kernels.parameters import Aux, Parameter, checked

cdef enum:
    MOST_LATCHES = 12
    MOST_SPRINGS = 24
    STEEPEST = 2               # more than the longest gradient of a field

cdef struct Sample:
    Vec3 p                     # in the head
    double area

cdef struct Touch:
    Vec3 r                     # in T
    Vec3 g                     # -grad phi
    Vec3 slip                  # v_t
    double normal              # N
    double per_speed           # friction per slip speed, N.s/m

cdef struct Place:
    # of a spring or a latch
    Vec3 Q                     # in the head
    Vec3 P                     # in T
    Vec3 axis                  # in T

cdef struct Latch:
    Place at
    LatchParameters keys

cdef struct Spring:
    Place at
    SpringParameters keys

cdef struct Record:
    # auxiliary channels, in the order of AUX
    double depth
    double area
    double pressure_point[3]
    double deflection[6]
    double latched[12]
    double supplied
    double stored
    double lost

cdef struct State:
    double X_TH[7]
    double V_TH[6]             # velocity of H, rate of the head, T axes
    double X_led[7]            # port A in the sub-step before
    double F_led[6]            # wrench of the port on the unit there, at A, T axes
    double supplied
    double lost
    double drawn               # share of the way of the release
    int latched[12]
    int started
    int unused

cdef struct Self:
    MeshUnitParameters keys
    Field field
    const Sample *sample
    const Ball *ball
    Touch *touch               # room for all samples
    int *near                  # samples that may touch before the next search
    double *due                # path at which each of them may touch, m
    double path                # of the head since the search, counted as the farthest sample, m
    double margin              # way of a sample to the next search
    double reach               # of the samples from H
    double inertia[3]     # of the head about H
    bint sprung
    bint turns
    bint stops
    int balls
    int nears
    int latches
    int springs
    Pose X_searched            # of the head when the tree was searched
    Pose X_looked              # and when it was last looked at
    Latch latch[12]
    Spring spring[24]
    State state

cdef struct Sums:
    Wrench F_T                 # on the target, at and in T
    double stored
    double lost_power
    double deepest
    double area
    Vec3 pressure_point        # times the force
    double force
    bint docked


# ---------------------------------------------------------------------------------------------------------------------- contact

cdef void search(Self *p, Pose X_TH) noexcept nogil:
    """Samples that may touch while none moves by more than the margin."""
    cdef Mat3 R = to_matrix(X_TH.q)
    cdef Vec3 p_TQ, gradient
    cdef double phi
    cdef int i = 0, k
    p.nears = 0
    p.X_searched = p.X_looked = X_TH
    p.path = 0.0
    while i < p.balls:
        if is_far(&p.field, add(X_TH.p, mat_vec(R, vec(p.ball[i].centre))), p.ball[i].radius + p.margin):
            i = p.ball[i].skip
            continue
        for k in range(p.ball[i].first, p.ball[i].first + p.ball[i].count):
            p_TQ = add(X_TH.p, mat_vec(R, p.sample[k].p))
            if is_far(&p.field, p_TQ, p.margin) or not distance_at(&p.field, p_TQ, &phi, &gradient) or phi > STEEPEST * p.margin:
                continue
            p.near[p.nears], p.due[p.nears] = k, phi / STEEPEST
            p.nears += 1
        i += 1


cdef inline double way_of(const Self *p, Pose X, Pose Y) noexcept nogil:
    """The most by which a sample moves from pose X of the head to Y: |R x - R' x| <= 2 |q - q'| |x|."""
    cdef double dx = Y.q.x - X.q.x, dy = Y.q.y - X.q.y, dz = Y.q.z - X.q.z, dw = Y.q.w - X.q.w
    return norm(sub(Y.p, X.p)) + 2.0 * sqrt(dx * dx + dy * dy + dz * dz + dw * dw) * p.reach


cdef inline void press(const Self *p, const Sample *s, Vec3 p_TQ, double depth, Vec3 g, Vec3 v, Touch *t, Sums *sums) noexcept nogil:
    """Normal force and slip of one sample, which moves at v."""
    cdef double elastic = p.keys.foundation_stiffness * s.area * depth
    cdef double rate = dot(g, v), size2 = dot(g, g)
    t.r, t.g = p_TQ, g
    t.normal = elastic * (1.0 + p.keys.dissipation * rate)
    if t.normal < 0.0:
        t.normal = 0.0
    t.slip = sub(v, mul(rate / size2, g)) if size2 > 0.0 else v
    t.per_speed = p.keys.friction * t.normal / sqrt(dot(t.slip, t.slip) + p.keys.slip_speed * p.keys.slip_speed)
    sums.stored += 0.5 * elastic * depth
    sums.lost_power += (t.normal - elastic) * rate
    sums.area += s.area
    if depth > sums.deepest:
        sums.deepest = depth


cdef void touch_all(Self *p, Pose X_TH, Twist V_TH, double h, Sums *sums) noexcept nogil:
    """Adds the forces of all samples that touch."""
    cdef Mat3 R = to_matrix(X_TH.q)
    cdef const Sample *s
    cdef Touch *t
    cdef Vec3 p_TQ, gradient, f
    cdef double phi, limit, total = 0.0, share = 1.0
    cdef int i, n = 0
    if not way_of(p, p.X_searched, X_TH) <= p.margin:
        search(p, X_TH)
    p.path += way_of(p, p.X_looked, X_TH)
    p.X_looked = X_TH
    for i in range(p.nears):
        if p.due[i] > p.path:
            continue
        s = &p.sample[p.near[i]]
        p_TQ = add(X_TH.p, mat_vec(R, s.p))
        if not distance_at(&p.field, p_TQ, &phi, &gradient):
            continue
        if phi >= 0.0:
            p.due[i] = p.path + phi / STEEPEST
            continue
        press(p, s, p_TQ, -phi, neg(gradient), add(V_TH.v, cross(V_TH.w, sub(p_TQ, X_TH.p))), &p.touch[n], sums)
        total += p.touch[n].per_speed
        n += 1
    # friction must not turn the slip within the sub-step
    limit = p.keys.contact_mass / h
    if total > limit:
        share = limit / total
    for i in range(n):
        t = &p.touch[i]
        f = add(mul(t.normal, t.g), mul(share * t.per_speed, t.slip))
        sums.F_T = wrench_sum(sums.F_T, wrench_of(f, cross(t.r, f)))
        sums.lost_power += share * t.per_speed * dot(t.slip, t.slip)
        sums.pressure_point = add(sums.pressure_point, mul(t.normal, t.r))
        sums.force += t.normal


# ------------------------------------------------------------------------------------------------------------ springs and latches

cdef inline void along(const Place *at, Pose X_TH, Twist V_TH, Vec3 *p_TQ, double *e, double *rate, double *off) noexcept nogil:
    """Place of Q, its way e beyond P along the axis with its rate, and how far it is off the axis."""
    cdef Vec3 way
    p_TQ[0] = apply(X_TH, at.Q)
    way = sub(p_TQ[0], at.P)
    e[0] = dot(at.axis, way)
    rate[0] = dot(at.axis, add(V_TH.v, cross(V_TH.w, sub(p_TQ[0], X_TH.p))))
    off[0] = norm(sub(way, mul(e[0], at.axis)))


cdef inline void pull(Sums *sums, const Place *at, Vec3 p_TQ, double force, double elastic, double rate, double stored) noexcept nogil:
    cdef Vec3 f = mul(force, at.axis)
    sums.F_T = wrench_sum(sums.F_T, wrench_of(f, cross(p_TQ, f)))
    sums.stored += stored
    sums.lost_power += (force - elastic) * rate


cdef void link_all(Self *p, Pose X_TH, Twist V_TH, bint release, Sums *sums) noexcept nogil:
    """Adds the forces of springs and latches; latches close and open."""
    cdef const Spring *s
    cdef const Latch *l
    cdef Vec3 p_TQ
    cdef double e, rate, off, elastic, force
    cdef int i
    for i in range(p.springs):
        s = &p.spring[i]
        along(&s.at, X_TH, V_TH, &p_TQ, &e, &rate, &off)
        if e > 0.0:
            elastic = s.keys.preload + s.keys.stiffness * e
            force = elastic + s.keys.damping * rate
            pull(sums, &s.at, p_TQ, force if force > 0.0 else 0.0, elastic, rate, (s.keys.preload + 0.5 * s.keys.stiffness * e) * e)
            sums.docked = sums.docked or s.keys.docked
    for i in range(p.latches):
        l = &p.latch[i]
        along(&l.at, X_TH, V_TH, &p_TQ, &e, &rate, &off)
        if release:
            if p.state.latched[i] and e < 0.0:
                p.state.lost += 0.5 * l.keys.stiffness * e * e
            p.state.latched[i] = 0
        elif e >= 0.0 and off <= l.keys.radius:
            p.state.latched[i] = 1
        if p.state.latched[i] and e < 0.0:
            elastic = l.keys.stiffness * e
            force = elastic + l.keys.damping * rate
            pull(sums, &l.at, p_TQ, force if force < 0.0 else 0.0, elastic, rate, 0.5 * elastic * e)


# ------------------------------------------------------------------------------------------------------------------------- head

cdef inline double stretch(double k, double c, double x, double rate, Sums *sums) noexcept nogil:
    """Spring and damper."""
    sums.stored += 0.5 * k * x * x
    sums.lost_power += c * rate * rate
    return -k * x - c * rate


cdef inline double stop(const Self *p, double travel, double x, double rate, Sums *sums) noexcept nogil:
    """Beyond the travel on either side; it never pulls back."""
    cdef double side = 1.0 if x > 0.0 else -1.0
    cdef double over = side * x - travel
    cdef double elastic, force
    if not p.stops or over <= 0.0:
        return 0.0
    elastic = p.keys.stop_stiffness * over
    force = elastic + p.keys.stop_damping * side * rate
    if force < 0.0:
        force = 0.0
    sums.stored += 0.5 * elastic * over
    sums.lost_power += (force - elastic) * side * rate
    return -side * force


cdef Wrench carry(
    const Self *p, Pose X_TA, Twist V_TA, Pose X_TH, Twist V_TH, Vec3 v_N, Twist *deflection, Sums *sums
) noexcept nogil:
    """Wrench of the springs on the head, at H, A axes; v_N: velocity of the nominal place in A; deflection: from `head_m`, and phi."""
    cdef Vec3 p_AH = rotate_back(X_TA.q, sub(X_TH.p, X_TA.p))
    cdef Vec3 moved = sub(p_AH, vec(p.keys.head)), d = sub(moved, mul(p.state.drawn, vec(p.keys.release_way)))
    cdef Vec3 turn = xyz(0.0, 0.0, 0.0), f, m = xyz(0.0, 0.0, 0.0)
    # rates in the turning axes A
    cdef Vec3 rate = sub(rotate_back(X_TA.q, sub(V_TH.v, add(V_TA.v, cross(V_TA.w, sub(X_TH.p, X_TA.p))))), v_N)
    cdef Vec3 spin = rotate_back(X_TA.q, sub(V_TH.w, V_TA.w))
    f.x = (stretch(p.keys.axial_stiffness, p.keys.axial_damping, d.x, rate.x, sums) + stop(p, p.keys.travel[0], d.x, rate.x, sums))
    f.y = (stretch(p.keys.lateral_stiffness, p.keys.lateral_damping, d.y, rate.y, sums) + stop(p, p.keys.travel[1], d.y, rate.y, sums))
    f.z = (stretch(p.keys.lateral_stiffness, p.keys.lateral_damping, d.z, rate.z, sums) + stop(p, p.keys.travel[2], d.z, rate.z, sums))
    if p.turns:
        turn = logarithm(quat_multiply(conjugate(X_TA.q), X_TH.q))
        m.x = stretch(p.keys.roll_stiffness, p.keys.roll_damping, turn.x, spin.x, sums)
        m.y = stretch(p.keys.tilt_stiffness, p.keys.tilt_damping, turn.y, spin.y, sums)
        m.z = stretch(p.keys.tilt_stiffness, p.keys.tilt_damping, turn.z, spin.z, sums)
    deflection[0] = twist_of(moved, turn)
    return wrench_of(f, m)


cdef inline Vec3 draw(Self *p, bint release, double h) noexcept nogil:
    """Moves the nominal place towards where the command has it; its velocity in A."""
    cdef double before = p.state.drawn, step = h / p.keys.release
    p.state.drawn = min(1.0, before + step) if release else max(0.0, before - step)
    return mul((p.state.drawn - before) / h, vec(p.keys.release_way))


cdef inline double kinetic(const Self *p, Quat q, Twist V) noexcept nogil:
    cdef Vec3 w = rotate_back(q, V.w)
    cdef double turning = 0.0
    if p.turns:
        turning = p.inertia[0] * w.x * w.x + p.inertia[1] * w.y * w.y + p.inertia[2] * w.z * w.z
    return 0.5 * (p.keys.head_mass * dot(V.v, V.v) + turning)


cdef Twist driven(const Self *p, Pose X_TA, Twist V_TA, Pose X_TH, Twist V_TH, Wrench F_A, Wrench F_T, double h) noexcept nogil:
    """Velocity of the head after h seconds under the springs (F_A, at H, A axes) and what it does to the target (F_T, at T); a head that
    does not turn by itself turns with A."""
    cdef Vec3 f = sub(rotate(X_TA.q, F_A.f), F_T.f), m, w
    cdef Vec3 v = add(V_TH.v, mul(h / p.keys.head_mass, f))
    if not p.turns:
        return twist_of(v, V_TA.w)
    # about H, head axes: I w' = m - w x I w
    m = rotate_back(X_TH.q, sub(rotate(X_TA.q, F_A.m), sub(F_T.m, cross(X_TH.p, F_T.f))))
    w = rotate_back(X_TH.q, V_TH.w)
    m = sub(m, cross(w, xyz(p.inertia[0] * w.x, p.inertia[1] * w.y, p.inertia[2] * w.z)))
    w = add(w, mul(h, xyz(m.x / p.inertia[0], m.y / p.inertia[1], m.z / p.inertia[2])))
    return twist_of(v, rotate(X_TH.q, w))


cdef inline Twist carried(Twist V_TA, Pose X_TA, Vec3 p_TH) noexcept nogil:
    # twist of the point of A that is at p_TH
    return twist_of(add(V_TA.v, cross(V_TA.w, sub(p_TH, X_TA.p))), V_TA.w)


cdef inline Pose led_on(Pose X, Twist V, double h) noexcept nogil:
    return pose_of(add(X.p, mul(h, V.v)), turned(X.q, V.w, h))


cdef inline void account(State *s, Pose X_TA, Wrench F) noexcept nogil:
    """Work of the port since the sub-step before; F: its wrench on the unit now, at A, T axes."""
    cdef Pose before = pose(s.X_led)
    cdef Twist way
    if s.started:
        way = twist_of(sub(X_TA.p, before.p), logarithm(quat_multiply(X_TA.q, conjugate(before.q))))
        s.supplied += 0.5 * power(way, wrench_sum(F, wrench(s.F_led)))
    s.started = 1
    put_pose(X_TA, s.X_led)
    put_wrench(F, s.F_led)


cdef Wrench substep(Self *p, Pose X_TA, Twist V_TA, double h, bint release, Twist *deflection, Sums *sums) noexcept nogil:
    """One sub-step from X_TA on; returns the wrench on the active vehicle, at and in A."""
    cdef State *s = &p.state
    cdef Pose X_TH = pose(s.X_TH)
    cdef Twist V_TH = twist(s.V_TH)
    cdef Wrench on_head = wrench_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0)), F_A
    cdef Vec3 f, arm, v_N
    if not p.sprung or not s.started:
        X_TH = pose_of(apply(X_TA, vec(p.keys.head)), X_TA.q)
        V_TH = carried(V_TA, X_TA, X_TH.p)
    elif not p.turns:
        X_TH.q, V_TH.w = X_TA.q, V_TA.w
    touch_all(p, X_TH, V_TH, h, sums)
    link_all(p, X_TH, V_TH, release, sums)
    arm = rotate_back(X_TA.q, sub(X_TH.p, X_TA.p))
    if p.sprung:
        v_N = draw(p, release, h)
        on_head = carry(p, X_TA, V_TA, X_TH, V_TH, v_N, deflection, sums)
        s.supplied += h * dot(on_head.f, v_N)
        if not p.turns:
            # the bearing passes the moment about H on
            f = rotate_back(X_TA.q, sub(sums.F_T.m, cross(X_TH.p, sums.F_T.f)))
            F_A = wrench_of(neg(on_head.f), sub(neg(f), cross(arm, on_head.f)))
        else:
            F_A = wrench_of(neg(on_head.f), sub(neg(on_head.m), cross(arm, on_head.f)))
        V_TH = driven(p, X_TA, V_TA, X_TH, V_TH, on_head, sums.F_T, h)
        sums.stored += kinetic(p, X_TH.q, V_TH)
    else:
        f = rotate_back(X_TA.q, sums.F_T.f)
        F_A = wrench_of(neg(f), neg(rotate_back(X_TA.q, sub(sums.F_T.m, cross(X_TA.p, sums.F_T.f)))))
    account(s, X_TA, wrench_of(neg(rotate(X_TA.q, F_A.f)), neg(rotate(X_TA.q, F_A.m))))
    s.lost += h * sums.lost_power
    put_pose(led_on(X_TH, V_TH, h), s.X_TH)
    put_twist(V_TH, s.V_TH)
    return F_A


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef Record *r = <Record *>aux
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA), deflection
    cdef Wrench F_T = wrench_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0)), F_A = F_T
    cdef int substeps = p.keys.substeps if p.sprung else 1
    cdef double h = inp.dt / substeps, worst = 0.0, part = 1.0 / substeps
    cdef bint release = inp.commands & MECHANISM_COMMAND_RELEASE, all_closed = p.latches > 0
    cdef Sums sums
    cdef int i
    memset(out, 0, sizeof(MechanismOutput))
    memset(r, 0, sizeof(Record))
    memset(&deflection, 0, sizeof(Twist))
    for _ in range(substeps):
        memset(&sums, 0, sizeof(Sums))
        F_A = wrench_sum(F_A, substep(p, X_TA, V_TA, h, release, &deflection, &sums))
        F_T = wrench_sum(F_T, sums.F_T)
        if sums.deepest > worst:
            worst = sums.deepest
        X_TA = led_on(X_TA, V_TA, h)
    # means: the impulse of the tick is exact
    put_wrench(wrench_of(mul(part, F_T.f), mul(part, F_T.m)), out.F_T)
    put_wrench(wrench_of(mul(part, F_A.f), mul(part, F_A.m)), out.F_A)
    # signals
    if worst > 0.0:
        out.signals |= MECHANISM_SIGNAL_DK1
    if sums.docked:
        out.signals |= MECHANISM_SIGNAL_DK2
    for i in range(p.latches):
        all_closed = all_closed and p.state.latched[i]
        r.latched[i] = p.state.latched[i]
    if all_closed:
        out.signals |= MECHANISM_SIGNAL_DSG
    if release and (p.state.drawn == 1.0 or not p.sprung):
        out.signals |= MECHANISM_SIGNAL_RELEASED
    if worst > p.keys.penetration_max:
        out.status |= MECHANISM_STATUS_OUT_OF_RANGE
    put(xyz(-deflection.v.x, deflection.v.y, deflection.v.z), out.analog)
    # record
    r.depth, r.area = worst, sums.area
    if sums.force > 0.0:
        put(mul(1.0 / sums.force, sums.pressure_point), r.pressure_point)
    put_twist(deflection, r.deflection)
    r.supplied, r.stored, r.lost = p.state.supplied, sums.stored, p.state.lost


# --------------------------------------------------------------------------------------------------------------------- the part

# of one table [[points]]
POINT_PARAMETERS = (
    Parameter("name", "str", "-", "by which springs and latches name the point"),
    Parameter("body", "str", "-", "whose drawing it is a point of", choices=("active", "target")),
    Parameter("position_m", "floats", "m", "in the axes of that unit's port", low=-10.0, high=10.0, shape=3),
)
# of one table [[springs]]
SPRING_PARAMETERS = (
    Parameter("active", "str", "-", "point of the active unit"),
    Parameter("target", "str", "-", "point of the target unit, through which the plane goes that the active one meets"),
    Parameter("axis", "floats", "-", "along which it acts, into the target, T axes", (1.0, 0.0, 0.0), low=-1e3, high=1e3, shape=3),
    Parameter("preload_n", "float", "N", "force at the first touch", 0.0, low=0.0, high=1e6),
    Parameter("stiffness_n_per_m", "float", "N/m", "spring, of a stop a stiff one", 0.0, low=0.0, high=1e10),
    Parameter("damping_n_s_per_m", "float", "N.s/m", "damper; it never pulls", 0.0, low=0.0, high=1e8),
    Parameter("docked", "bool", "-", "when it is pressed, the units are docked (signal DK2)", False),
)
# of one table [[latches]]
LATCH_PARAMETERS = (
    Parameter("active", "str", "-", "point of the active unit that is caught"),
    Parameter("target", "str", "-", "point of the target unit that it must pass"),
    Parameter("axis", "floats", "-", "along which it must pass, into the target, T axes", (1.0, 0.0, 0.0), low=-1e3, high=1e3, shape=3),
    Parameter("radius_m", "float", "m", "off the axis it is caught within this", 0.02, low=1e-4, high=10.0),
    Parameter("stiffness_n_per_m", "float", "N/m", "of the closed latch", 2e5, low=1.0, high=1e10),
    Parameter("damping_n_s_per_m", "float", "N.s/m", "of the closed latch; it never pushes", 1e3, low=0.0, high=1e8),
)


cdef int place(tables, dict points, key, Place *at, head) except -1:
    """Points and axis of a spring or a latch. Raises ValueError that names the key."""
    for end in ("active", "target"):
        name = tables[end]
        if name not in points or points[name]["body"] != end:
            known = ", ".join(n for n, p in points.items() if p["body"] == end) or "none: add a table [[points]]"
            raise ValueError(f"{key}.{end}: {name!r} is no point of the {end} unit; there are: {known}")
    x, y, z = tables["axis"]
    size = (x * x + y * y + z * z)**0.5  # the same bits everywhere
    if not size > 1e-9:
        raise ValueError(f"{key}.axis must not be zero, got {tables['axis']}")
    Q, P = (points[tables[end]]["position_m"] for end in ("active", "target"))
    at.Q = xyz(Q[0] - head[0], Q[1] - head[1], Q[2] - head[2])
    at.P = xyz(P[0], P[1], P[2])
    at.axis = xyz(x / size, y / size, z / size)
    return 0


cdef class MeshUnit(MechanismPart):
    """Unit from drawings. Analogue signals: 0 axial stroke (compression), 1 and 2 lateral deflections, m. Raises ValueError for a field
    that is missing, another one or none, for points that are not there, and for a head whose springs and masses do not fit together."""

    PICTURE = MeshUnitPicture
    FILES = ("field",)
    PARAMETERS = (
        Parameter("field", "str", "-", "file with distance field and samples, made by hil-server new-unit"),
        Parameter("field_sha256", "str", "-", "SHA-256 of that file; another one is refused"),
        Parameter("foundation_stiffness_n_per_m3", "float", "N/m3", "pressure per depth of contact", 1e10, low=1e4, high=1e15),
        Parameter("dissipation_s_per_m", "float", "s/m", "damping of the contact over its spring and the speed", 0.5, low=0.0, high=1e3),
        Parameter("friction", "float", "-", "Coulomb friction of the contact", 0.1, low=0.0, high=2.0),
        Parameter("slip_speed_m_s", "float", "m/s", "friction is smooth below this sliding speed", 1e-3, low=1e-6, high=0.1),
        Parameter("contact_mass_kg", "float", "kg", "smallest effective mass at the contact: friction must not turn its slip", 4.0,
                  low=1e-3, high=1e6),
        Parameter("penetration_max_m", "float", "m", "valid depth: beyond it the model is out of its range", 0.003, low=1e-6, high=0.1),
        Parameter("head_m", "floats", "m", "centre of mass of the drawn body, A axes", (0.0, 0.0, 0.0), low=-10.0, high=10.0, shape=3),
        Parameter("head_mass_kg", "float", "kg", "of the drawn body on its springs; 0: rigid on the port", 0.0, low=0.0, high=1e5),
        Parameter("head_inertia_kg_m2", "floats", "kg.m2", "about X, Y, Z through head_m, each above 0; all 0: it turns with the port",
                  (0.0, 0.0, 0.0), low=0.0, high=1e5, shape=3),
        Parameter("axial_stiffness_n_per_m", "float", "N/m", "of the head along X of the port", 0.0, low=0.0, high=1e9),
        Parameter("axial_damping_n_s_per_m", "float", "N.s/m", "likewise", 0.0, low=0.0, high=1e7),
        Parameter("lateral_stiffness_n_per_m", "float", "N/m", "of the head along Y and Z", 0.0, low=0.0, high=1e9),
        Parameter("lateral_damping_n_s_per_m", "float", "N.s/m", "likewise", 0.0, low=0.0, high=1e7),
        Parameter("roll_stiffness_n_m_per_rad", "float", "N.m/rad", "of the head about X", 0.0, low=0.0, high=1e8),
        Parameter("roll_damping_n_m_s_per_rad", "float", "N.m.s/rad", "likewise", 0.0, low=0.0, high=1e7),
        Parameter("tilt_stiffness_n_m_per_rad", "float", "N.m/rad", "of the head about Y and Z", 0.0, low=0.0, high=1e8),
        Parameter("tilt_damping_n_m_s_per_rad", "float", "N.m.s/rad", "likewise", 0.0, low=0.0, high=1e7),
        Parameter("travel_m", "floats", "m", "of the head along X, Y, Z to its stops, on either side; all zero: no stops", (0.0, 0.0, 0.0),
                  low=0.0, high=10.0, shape=3),
        Parameter("stop_stiffness_n_per_m", "float", "N/m", "of these stops", 1e6, low=0.0, high=1e10),
        Parameter("stop_damping_n_s_per_m", "float", "N.s/m", "of these stops; they never pull", 1e3, low=0.0, high=1e8),
        Parameter("release_way_m", "floats", "m", "way of a head with a mass on the release command, A axes", (0.0, 0.0, 0.0), low=-10.0,
                  high=10.0, shape=3),
        Parameter("release_s", "float", "s", "time of this way", 1.0, low=1e-3, high=1e3),
        Parameter("points", "tables", "-", "points of the drawings, tables [[points]]", (), of=POINT_PARAMETERS),
        Parameter("springs", "tables", "-", "springs, dampers and stops between head and target, tables [[springs]]", (),
                  of=SPRING_PARAMETERS),
        Parameter("latches", "tables", "-", "latches, tables [[latches]]; captured: all are closed", (), of=LATCH_PARAMETERS),
        Parameter("substeps", "int", "-", "sub-steps of a tick, of a head with a mass", 4, low=1, high=1000),
    )
    AUX = (
        Aux("mesh.depth", "m", "deepest penetration"),
        Aux("mesh.area", "m2", "area that touches"),
        Aux("mesh.pressure_point", "m", "centre of pressure, T axes", 3),
        Aux("mesh.deflection", "m, rad", "of the head from head_m, A axes", 6),
        Aux("mesh.latched", "-", "1: latch closed", 12),
        Aux("mesh.energy_supplied", "J", "work of the active port and the release"),
        Aux("mesh.energy_stored", "J", "in contact, springs and motion of the head"),
        Aux("mesh.energy_lost", "J", "in dampers and friction"),
    )
    LEDGER = ("mesh.energy_supplied", ("mesh.energy_stored", "mesh.energy_lost"))
    cdef Self c
    cdef DistanceField distances
    cdef object kept            # arrays that the pointers lead into

    @staticmethod
    def longest_substep_s(keys):
        """Longest sub-step with which the head is stable on springs and dampers: half of m/c, a third of sqrt(m/k), s; None of a rigid
        one."""
        mass = keys["head_mass_kg"]
        if not mass > 0.0:
            return None
        c, k = (max(keys[f"{way}_{what}"] for way in ("axial", "lateral")) for what in ("damping_n_s_per_m", "stiffness_n_per_m"))
        return min(0.5 * mass / c if c > 0.0 else np.inf, (mass / k)**0.5 / 3.0 if k > 0.0 else np.inf)

    def __init__(self, **given):
        cdef Self *p = &self.c
        cdef int i
        keys = checked(MeshUnit.PARAMETERS, given)
        memset(p, 0, sizeof(Self))
        self._take_keys(keys)
        self._take_arrays(field_file.read(keys["field"], keys["field_sha256"]), keys)
        points = {}
        for i, point in enumerate(keys["points"]):
            if point["name"] in points:
                raise ValueError(f"points[{i}].name: {point['name']!r} is there twice")
            points[point["name"]] = point
        for key, most in (("springs", MOST_SPRINGS), ("latches", MOST_LATCHES)):
            if len(keys[key]) > most:
                raise ValueError(f"{key}: at most {most} tables, got {len(keys[key])}")
        p.springs, p.latches = len(keys["springs"]), len(keys["latches"])
        for i, spring in enumerate(keys["springs"]):
            place(spring, points, f"springs[{i}]", &p.spring[i].at, keys["head_m"])
            fill_spring(&p.spring[i].keys, spring)
        for i, latch in enumerate(keys["latches"]):
            place(latch, points, f"latches[{i}]", &p.latch[i].at, keys["head_m"])
            fill_latch(&p.latch[i].keys, latch)
        put_pose(unit_pose(), p.state.X_TH)
        self.plug.self = p
        self.plug.state = &p.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance

    cdef _take_keys(self, keys):
        cdef Self *p = &self.c
        fill_mesh_unit(&p.keys, keys)
        p.sprung = keys["head_mass_kg"] > 0.0
        turning = [x > 0.0 for x in keys["head_inertia_kg_m2"]]
        p.turns = all(turning)
        if any(turning) and not (p.turns and p.sprung):
            raise ValueError(f"head_inertia_kg_m2: all three above zero beside a head_mass_kg above zero, got {keys['head_inertia_kg_m2']} "
                             f"and {keys['head_mass_kg']:g}")
        for i in range(3):
            p.inertia[i] = keys["head_inertia_kg_m2"][i]
        p.stops = any(keys["travel_m"])
        if p.sprung and not (keys["axial_stiffness_n_per_m"] > 0.0 and keys["lateral_stiffness_n_per_m"] > 0.0):
            raise ValueError("axial_stiffness_n_per_m, lateral_stiffness_n_per_m: must be above 0 N/m for a head with head_mass_kg")
        if p.turns and not (keys["roll_stiffness_n_m_per_rad"] > 0.0 and keys["tilt_stiffness_n_m_per_rad"] > 0.0):
            raise ValueError("roll_stiffness_n_m_per_rad, tilt_stiffness_n_m_per_rad: must be above 0 N.m/rad for a head with an inertia")

    cdef _take_arrays(self, arrays, keys):
        """Field, samples about H, tree of balls and room to work in."""
        cdef Self *p = &self.c
        cell, band = arrays["grid"][3:]
        if keys["penetration_max_m"] > band - 3.5 * cell:
            raise ValueError(f"penetration_max_m: {keys['penetration_max_m']:g}, limit {band - 3.5 * cell:g} m, as deep as the field is "
                             "known; make it again with a larger --depth-m")
        self.distances = DistanceField(arrays["node"], arrays["grid"][:3], cell, *arrays["box"])
        p.field = self.distances.field
        samples = np.ascontiguousarray(arrays["sample"] - [*keys["head_m"], 0.0])
        balls = np.zeros(len(arrays["ball"]), [("centre", "f8", 3), ("radius", "f8"), ("link", "i4", 4)])
        balls["centre"], balls["radius"] = arrays["ball"][:, :3] - keys["head_m"], arrays["ball"][:, 3] * (1.0 + 1e-9)
        balls["link"][:, :3] = arrays["link"]
        touches, nears, dues = np.zeros(len(samples) * sizeof(Touch), np.uint8), np.zeros(len(samples), np.int32), np.zeros(len(samples))
        self.kept = (samples, balls, touches, nears, dues)
        cdef double[:, ::1] sample = samples
        cdef unsigned char[::1] ball = balls.view(np.uint8), touch = touches
        cdef int[::1] near = nears
        cdef double[::1] due = dues
        p.sample, p.ball, p.touch = <const Sample *>&sample[0, 0], <const Ball *>&ball[0], <Touch *>&touch[0]
        p.near, p.due = &near[0], &due[0]
        p.balls, p.margin = len(balls), 0.5 * cell
        p.X_searched = pose_of(xyz(np.inf, 0.0, 0.0), unit_pose().q)  # nothing is known yet
        p.reach = float(np.linalg.norm(samples[:, :3], axis=1).max())

    def state_fields(self):
        return self.c.state

    def state_bounds(self):
        return {"latched": FLAG, "started": FLAG}

    def max_penetration(self, X_TA):
        """Depth of the deepest sample of the undeflected head at the relative pose X_TA (7), m; 0 without contact."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef Pose X_TH = pose(&X[0])
        cdef Sums sums
        X_TH.p = apply(X_TH, vec(self.c.keys.head))
        memset(&sums, 0, sizeof(Sums))
        touch_all(&self.c, X_TH, twist_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0)), 1.0, &sums)
        return sums.deepest
