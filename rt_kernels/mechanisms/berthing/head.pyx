"""Small probe-type berthing unit: a head with four latches on a hinge with stiff stops, a small receiving cone with a socket.

Source: Yaskevich 2020 (5.5), (8.4), corrected: one-sided stop of the hinge, |psi| > psi_0 only
(the text applies the spring inside the free angle).

Frames: T target port, X into the receptacle, cone and socket coaxial with X; A base of the active unit; H head, origin at the hinge, X
along the probe. Hinge axes are turned by `hinge_azimuth_deg` about X of A: R_AH = Rx(azimuth) Ry(psi) Rz(theta) Rx(-azimuth), angles within
about 1 deg: sines by our own sincos. The hinge has no damping inside the free angle.

Head: two spheres and two truncated cones, each cone a family of 2^N + 1 generators in two sectors with common ends (convex: halving finds
the deepest one). Pairs: spheres - cavity (rim plane, cone, edge, cylinder, bottom); generators - mouth circle and stop circle;
latches - stop circle.
Latch before firing: massless; its position is the first of a table of 2^N + 1 positions that frees segments L0L1, L1L2 from the stop
circle, found by halving; force = spring moment / arm along the normal. After firing (L2 behind the stop) points L2,
L3 act on the stop's reverse cone, each by itself:
the latch goes out as far as the cone lets it and never back in (at once it would penetrate the cone, and that would give energy). Capture:
all four fired. Command bit 2 holds the latches in. On one side of one edge only the deepest contact of head and cavity counts.

Loads: contact force at its point on T; on A the same force at the hinge and the same moment less what turns the head about its two axes.

Energy ledger (relative to the base): supplied = kinetic + stored (contacts, latches, stops of the hinge) + lost (contact damping, friction,
hinge stops, latches at firing or release).
"""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.string cimport memset

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport (Mat3, Pose, Twist, Vec3, Wrench, add, cross, dot, mat_multiply, mat_transposed_vec, mat_vec, mul,
                                        pose, put, put_wrench, rotate_back, sub, to_matrix, transposed, twist, vec, wrench_of, xyz)
from rt_kernels.codes cimport (MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DSG, MECHANISM_SIGNAL_LATCH1,
                               MECHANISM_STATUS_OUT_OF_RANGE)
from rt_kernels.contact.primitives cimport Contact, FACE, Profile, deepest_of_family, prepare_profile, segment_circle, sphere_in_cavity
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react
from rt_kernels.mechanisms.berthing.head_record cimport HeadRecord
from rt_kernels.mechanisms.berthing.shared cimport add_wrench, swing_step
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.mechanisms.berthing.head_picture import BerthingHeadPicture
from rt_kernels.mechanisms.berthing.head_record import AUX
from rt_kernels.mechanisms.berthing.parameters import contact_parameters, number
from rt_kernels.parameters import Parameter, checked

cdef enum:
    GENERATORS = 257
    POSITIONS = 257
    LATCHES = 4


cdef struct HeadParams:
    Profile cavity
    double mouth_x, mouth_radius
    double stop_x, stop_radius            # edge of the stop at the socket entry
    double reverse_tan                    # reverse cone of the stop: radius grows by this per metre behind the edge
    double sphere_x[2]
    double sphere_radius[2]
    int levels
    Vec3 start[2][GENERATORS]             # generators of the two head cones, H axes
    Vec3 along[2][GENERATORS]
    int latch_levels
    double latch_axis[LATCHES][2]         # cos, sin of the azimuth
    double pivot[2]                       # axial, radial, H
    double point[4][2]                    # L0..L3 of a latch that is out
    double turned[POSITIONS][2][4]        # per position and segment: start, vector (axial, radial)
    double turn[POSITIONS]                # latch angle
    double latch_moment, latch_rate
    double latch_side                     # sign of the turn that takes the nose towards the axis
    double hinge_x
    Mat3 R_azimuth
    double inertia, stiffness, damping, free_angle
    ContactLaw law
    double depth_limit
    int latch_jammed, latch_stays         # number of the latch, 0: none

cdef struct HeadState:
    double angle[2]                       # psi, theta of the hinge
    double rate[2]
    double latch[LATCHES]                 # angle of the latches
    double fired[LATCHES]
    double time
    double contact_time
    double capture_time
    double depth_peak
    double supplied                       # work of the target, moved against the base, J
    double lost[4]                        # contact damping, friction, stops of the hinge, latches, J
    double latch_energy[LATCHES]          # of the latch springs, J

cdef struct HeadSelf:
    HeadParams p
    HeadState s

cdef struct HeadPose:
    Vec3 p                                # hinge in T
    Mat3 R
    Vec3 v
    Vec3 w

cdef struct HeadLoads:
    Wrench F_T                            # on the target, at and in T
    Wrench F_H                            # on the head about the hinge, T axes
    Vec3 D_H                              # moment about the hinge of what is not a contact spring
    double stored                         # energy in contacts, latches, stops of the hinge, J
    double kinetic                        # of the head on its hinge, J

cdef struct HeadFamily:
    const HeadParams *p
    const HeadPose *pose
    int cone
    int first                             # first generator of the sector
    double centre_x


cdef inline Vec3 generator_start(const HeadParams *p, const HeadPose *H, int cone, int i) noexcept nogil:
    return add(H.p, mat_vec(H.R, p.start[cone][i]))


cdef inline Vec3 generator_vector(const HeadParams *p, const HeadPose *H, int cone, int i) noexcept nogil:
    return mat_vec(H.R, p.along[cone][i])


cdef inline double from_axis(Vec3 P) noexcept nogil:
    return sqrt(P.y * P.y + P.z * P.z)


cdef double head_radius(const void *family, int i) noexcept nogil:
    # distance from X at which a generator crosses the plane of the circle
    cdef const HeadFamily *f = <const HeadFamily *> family
    cdef Vec3 P = generator_start(f.p, f.pose, f.cone, f.first + i)
    cdef Vec3 L = generator_vector(f.p, f.pose, f.cone, f.first + i)
    if fabs(L.x) < 1e-12:
        return 0.0
    return from_axis(add(P, mul((f.centre_x - P.x) / L.x, L)))


cdef inline Vec3 latch_vector(const HeadParams *p, const HeadPose *H, int k, double axial, double radial) noexcept nogil:
    # in the plane of latch k, in T
    return mat_vec(H.R, xyz(axial, radial * p.latch_axis[k][0], radial * p.latch_axis[k][1]))


cdef inline Vec3 latch_point(const HeadParams *p, const HeadPose *H, int k, double axial, double radial) noexcept nogil:
    return add(H.p, latch_vector(p, H, k, axial, radial))


cdef inline bint latch_touches(const HeadParams *p, const HeadPose *H, int k, int i, Contact *deepest) noexcept nogil:
    """Segments L0L1 and L1L2 of latch k at table position i against the stop circle."""
    cdef Vec3 P, L, centre = xyz(p.stop_x, 0.0, 0.0), axis = xyz(1.0, 0.0, 0.0)
    cdef Contact found
    cdef bint touches = False
    cdef int j
    for j in range(2):
        P = latch_point(p, H, k, p.turned[i][j][0], p.turned[i][j][1])
        L = latch_vector(p, H, k, p.turned[i][j][2], p.turned[i][j][3])
        if segment_circle(&P.x, &L.x, &centre.x, &axis.x, p.stop_radius, True, 3, &found):
            if not touches or found.depth > deepest.depth:
                deepest[0] = found
            touches = True
    return touches


cdef inline Vec3 turned_point(const HeadParams *p, const HeadPose *H, int k, int j, double turn) noexcept nogil:
    # point L_j of latch k, turned by `turn`, in T
    cdef double axial = p.point[j][0] - p.pivot[0], radial = p.point[j][1] - p.pivot[1], s, c
    sincos(p.latch_side * turn, &s, &c)
    return latch_point(p, H, k, p.pivot[0] + c * axial - s * radial, p.pivot[1] + s * axial + c * radial)


cdef inline double reverse_depth(const HeadParams *p, Vec3 P) noexcept nogil:
    # how deep P lies in the reverse cone of the stop: radius stop_radius + (x - stop_x) tan
    return (from_axis(P) - p.stop_radius - (P.x - p.stop_x) * p.reverse_tan) / sqrt(1.0 + p.reverse_tan * p.reverse_tan)


cdef inline double ratchet(const HeadParams *p, const HeadPose *H, int k, double turn) noexcept nogil:
    """Angle of a fired latch: out by what the gap to the reverse cone allows (linear in the angle, checked), never in."""
    cdef double gap = reverse_depth(p, turned_point(p, H, k, 2, turn))
    cdef double step
    if turn <= 0.0 or gap >= 0.0:
        return turn
    step = reverse_depth(p, turned_point(p, H, k, 2, turn - 1e-5)) - gap
    step = turn + 1e-5 * gap / step if step > 0.0 else 0.0
    if step < 0.0:
        step = 0.0
    if reverse_depth(p, turned_point(p, H, k, 2, step)) > 0.0 or reverse_depth(p, turned_point(p, H, k, 3, step)) > 0.0:
        return turn
    return step


cdef inline double swing_energy(const HeadParams *p, const HeadState *s, int j) noexcept nogil:
    # kinetic energy about hinge axis j and what its stop stores
    cdef double over = fabs(s.angle[j]) - p.free_angle
    if over < 0.0:
        over = 0.0
    return 0.5 * (p.inertia * s.rate[j] * s.rate[j] + p.stiffness * over * over)


cdef inline double latch_spring(const HeadParams *p, double angle) noexcept nogil:
    # energy of a latch turned by `angle`
    return angle * (p.latch_moment + 0.5 * p.latch_rate * angle)


cdef inline int latch_position(const HeadParams *p, const HeadPose *H, int k, Contact *last) noexcept nogil:
    """First table position without contact, by halving; `last` is the contact of the position before it. 0: free."""
    cdef int low = 0, high = 1 << p.latch_levels, middle
    if not latch_touches(p, H, k, 0, last):
        return 0
    while high - low > 1:
        middle = (low + high) >> 1
        if latch_touches(p, H, k, middle, last):
            low = middle
        else:
            high = middle
    latch_touches(p, H, k, low, last)
    return high


cdef inline void give(Vec3 f, Vec3 r, const HeadPose *H, HeadLoads *loads) noexcept nogil:
    # force on the target at r, its reaction on the head about the hinge (T axes)
    add_wrench(f, r, 1.0, &loads.F_T)
    add_wrench(f, sub(r, H.p), -1.0, &loads.F_H)


cdef inline HeadPose head_pose(const HeadParams *p, const HeadState *s, Pose X_TA, Twist V_TA) noexcept nogil:
    cdef Mat3 R_TA = to_matrix(X_TA.q)
    cdef Mat3 R
    cdef Vec3 arm = mat_vec(R_TA, xyz(p.hinge_x, 0.0, 0.0)), rate
    cdef HeadPose H
    cdef double sp, cp, st, ct
    sincos(s.angle[0], &sp, &cp)
    sincos(s.angle[1], &st, &ct)
    # Ry(psi) Rz(theta) between the hinge azimuths
    R.xx = cp * ct; R.xy = -cp * st; R.xz = sp
    R.yx = st; R.yy = ct; R.yz = 0.0
    R.zx = -sp * ct; R.zy = sp * st; R.zz = cp
    H.R = mat_multiply(R_TA, mat_multiply(mat_multiply(p.R_azimuth, R), transposed(p.R_azimuth)))
    H.p = add(X_TA.p, arm)
    H.v = add(V_TA.v, cross(V_TA.w, arm))
    # hinge rates about the turned Y axis and, after it, the Z axis
    rate = add(xyz(0.0, s.rate[0], 0.0), mul(s.rate[1], xyz(sp, 0.0, cp)))
    H.w = add(V_TA.w, mat_vec(R_TA, mat_vec(p.R_azimuth, rate)))
    return H


cdef inline void push(const HeadParams *p, const Contact *c, const HeadPose *H, HeadState *s, double h, HeadLoads *loads) noexcept nogil:
    cdef Reaction reaction
    cdef Vec3 arm = sub(vec(c.r), H.p), zero = xyz(0.0, 0.0, 0.0)
    cdef Vec3 v = add(H.v, cross(H.w, arm))
    react(&p.law, c, &v.x, &zero.x, &reaction)
    give(vec(reaction.force), vec(c.r), H, loads)
    # moment about the hinge of what is not the contact spring
    loads.D_H = sub(loads.D_H, cross(arm, add(vec(reaction.force), mul(-p.law.stiffness * c.depth, vec(c.n)))))
    s.lost[0] += h * reaction.damped_power
    s.lost[1] += h * reaction.friction_power
    loads.stored += 0.5 * p.law.stiffness * c.depth * c.depth
    if c.depth > s.depth_peak:
        s.depth_peak = c.depth


cdef inline int head_contacts(const HeadParams *p, const HeadPose *H, Contact *out) noexcept nogil:
    """Spheres in the cavity, head cones against mouth and stop circle; at most 12."""
    cdef Vec3 P, L, centre, axis = xyz(1.0, 0.0, 0.0)
    cdef HeadFamily family
    cdef double value, best, radius
    cdef int i, cone, sector, circle, halvings, k, found = 0
    cdef int half = 1 << (p.levels - 1)
    for i in range(2):
        centre = add(H.p, mat_vec(H.R, xyz(p.sphere_x[i], 0.0, 0.0)))
        found += sphere_in_cavity(&p.cavity, &centre.x, p.sphere_radius[i], out + found, 3)
    family.p = p
    family.pose = H
    for cone in range(2):
        family.cone = cone
        for circle in range(2):
            family.centre_x = p.mouth_x if circle == 0 else p.stop_x
            radius = p.mouth_radius if circle == 0 else p.stop_radius
            best = 0.0
            k = 0
            for sector in range(2):
                family.first = sector * half
                i = deepest_of_family(head_radius, &family, p.levels - 1, True, &value, &halvings)
                if value > best:
                    best = value
                    k = family.first + i
            if best > radius:
                P = generator_start(p, H, cone, k)
                L = generator_vector(p, H, cone, k)
                centre = xyz(family.centre_x, 0.0, 0.0)
                if segment_circle(&P.x, &L.x, &centre.x, &axis.x, radius, True, 3, &out[found]):
                    out[found].index = 1 + circle
                    found += 1
    return one_per_region(out, found)


cdef inline int one_per_region(Contact *out, int count) noexcept nogil:
    """Spheres and cones of the head are parts of one surface: on the same side of the same edge (mouth; stop with its cylinder) only the
    deepest counts. A segment that leaves the circle with its end so hands over to the sphere there, without a jump of the force."""
    cdef int i, j, found = 0
    cdef bint covered, deeper
    for i in range(count):
        covered = False
        if out[i].kind != FACE or out[i].index == 2:
            for j in range(count):
                if j != i and out[j].index == out[i].index and (out[j].kind != FACE or out[j].index == 2):
                    deeper = out[j].depth > out[i].depth or (out[j].depth == out[i].depth and j < i)
                    if deeper and dot(vec(out[i].n), vec(out[j].n)) > 0.0:
                        covered = True
        if not covered:
            out[found] = out[i]
            found += 1
    return found


cdef inline void drop_latch_energy(HeadState *s, int k) noexcept nogil:
    # what the spring of latch k had stored is lost
    s.lost[3] += s.latch_energy[k]
    s.latch_energy[k] = 0.0


cdef inline int hold_latch(const HeadParams *p, HeadState *s, const HeadPose *H, int k, double h, HeadLoads *loads) noexcept nogil:
    """A fired latch: points L2, L3 on the reverse cone, radius stop_radius + (x - stop_x) tan. Number of contacts."""
    cdef Contact contact
    cdef Vec3 P
    cdef double depth, d
    cdef double c45 = 1.0 / sqrt(1.0 + p.reverse_tan * p.reverse_tan)
    cdef int j, n = 0
    s.latch[k] = ratchet(p, H, k, s.latch[k])
    for j in range(2, 4):
        P = turned_point(p, H, k, j, s.latch[k])
        depth = reverse_depth(p, P)
        d = from_axis(P)
        if depth > 0.0 and depth < p.depth_limit and d > p.stop_radius and P.x > p.stop_x - p.depth_limit:
            contact.depth = depth
            put(xyz(-p.reverse_tan * c45, c45 * P.y / d, c45 * P.z / d), contact.n)
            put(P, contact.r)
            push(p, &contact, H, s, h, loads)
            n += 1
    return n


cdef inline int press_latch(const HeadParams *p, HeadState *s, const HeadPose *H, int k, HeadLoads *loads) noexcept nogil:
    """A latch before firing: its place on the stop circle and the force of its spring, or it fires. Number of contacts."""
    cdef Contact contact
    cdef Vec3 P, M, axis
    cdef double arm, angle
    cdef int i = latch_position(p, H, k, &contact)
    s.latch[k] = p.turn[i]
    # free because L2 has come behind the stop, pressed or not: the spring throws the latch out, its energy is lost
    P = turned_point(p, H, k, 2, s.latch[k])
    if P.x > p.stop_x and (i > 0 or P.y * P.y + P.z * P.z > p.stop_radius * p.stop_radius):
        s.fired[k] = 1.0
        s.latch[k] = p.turn[1 << p.latch_levels]
        drop_latch_energy(s, k)
        return 0
    if i == 0:
        drop_latch_energy(s, k)
        return 0
    # moment of the spring over the arm of the normal about the pivot, in the latch plane
    M = cross(sub(vec(contact.r), latch_point(p, H, k, p.pivot[0], p.pivot[1])), vec(contact.n))
    axis = mat_vec(H.R, xyz(0.0, -p.latch_axis[k][1], p.latch_axis[k][0]))
    arm = fabs(dot(M, axis))
    if arm < 1e-3:
        arm = 1e-3
    # between the last position with contact and the first without: by the penetration over the arm
    angle = p.turn[i - 1] + contact.depth / arm
    if angle < s.latch[k]:
        s.latch[k] = angle
    give(mul((p.latch_moment + p.latch_rate * s.latch[k]) / arm, vec(contact.n)), vec(contact.r), H, loads)
    s.latch_energy[k] = latch_spring(p, s.latch[k])
    loads.stored += s.latch_energy[k]
    return 1


cdef inline Wrench swing_head(const HeadParams *p, HeadState *s, const MechanismInput *inp, HeadLoads *loads) noexcept nogil:
    """Both axes of the hinge, the second turned by the first angle. F_A at and in A: what accelerates the head does not reach the base."""
    cdef double h = inp.dt
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Vec3 f = rotate_back(X_TA.q, loads.F_H.f)
    # moments in the axes of the hinge: of all loads, and of what is not a contact spring
    cdef Vec3 M = mat_transposed_vec(p.R_azimuth, rotate_back(X_TA.q, loads.F_H.m))
    cdef Vec3 D = mat_transposed_vec(p.R_azimuth, rotate_back(X_TA.q, loads.D_H))
    cdef Vec3 axis
    cdef double sp, cp, rate, moment, before
    cdef int j
    sincos(s.angle[0], &sp, &cp)
    for j in range(2):
        axis = xyz(0.0, 1.0, 0.0) if j == 0 else xyz(sp, 0.0, cp)
        rate = s.rate[j]
        moment = dot(axis, M)
        before = swing_energy(p, s, j)
        swing_step(h, p.inertia, p.stiffness, p.damping, p.free_angle, moment, &s.rate[j], &s.angle[j])
        # powers at the middle of the step: contacts took this much less, stops (with the damping of their implicit step) keep the rest
        s.lost[1] -= 0.5 * h * dot(axis, D) * (s.rate[j] - rate)
        s.lost[2] += 0.5 * h * moment * (rate + s.rate[j]) - (swing_energy(p, s, j) - before)
        # the base feels the moment less what accelerated the head
        M = add(M, mul(-p.inertia * (s.rate[j] - rate) / h, axis))
        loads.kinetic += 0.5 * p.inertia * s.rate[j] * s.rate[j]
        loads.stored += swing_energy(p, s, j) - 0.5 * p.inertia * s.rate[j] * s.rate[j]
    return wrench_of(f, add(mat_vec(p.R_azimuth, M), cross(xyz(p.hinge_x, 0.0, 0.0), f)))


cdef inline void head_events(const HeadParams *p, HeadState *s, double h, int contacts, int fired, MechanismOutput *out) noexcept nogil:
    """First times of the events, signals, status, analogue values. `fired`: latches that were behind the stop before this tick."""
    cdef int i, k
    s.time += h
    if contacts > 0 and s.contact_time < 0.0:
        s.contact_time = s.time
    if fired == LATCHES and s.capture_time < 0.0:
        s.capture_time = s.time
    out.signals = 0
    if s.contact_time >= 0.0:
        out.signals |= MECHANISM_SIGNAL_DK1
    if s.capture_time >= 0.0 and fired == LATCHES:
        out.signals |= MECHANISM_SIGNAL_DSG
    for k in range(LATCHES):
        if s.fired[k] != 0.0:
            out.signals |= MECHANISM_SIGNAL_LATCH1 << k
    out.status = MECHANISM_STATUS_OUT_OF_RANGE if s.depth_peak > p.depth_limit else 0
    for i in range(8):
        out.analog[i] = s.angle[i] if i < 2 else 0.0


cdef inline void head_report(const HeadState *s, int contacts, const HeadLoads *loads, HeadRecord *record) noexcept nogil:
    cdef int j, k
    for j in range(2):
        record.hinge_angle[j] = s.angle[j]
        record.hinge_rate[j] = s.rate[j]
    for k in range(LATCHES):
        record.latch_angle[k] = s.latch[k]
        record.latch_fired[k] = s.fired[k]
    record.contacts = contacts
    record.depth_peak = s.depth_peak
    record.first_contact_time = s.contact_time
    record.capture_time = s.capture_time
    record.energy_supplied = s.supplied
    record.energy_kinetic = loads.kinetic
    record.energy_stored = loads.stored
    record.energy_lost_contact = s.lost[0]
    record.energy_lost_friction = s.lost[1]
    record.energy_lost_hinge = s.lost[2]
    record.energy_lost_latch = s.lost[3]


cdef void head_advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef HeadSelf *m = <HeadSelf *> self
    cdef const HeadParams *p = &m.p
    cdef HeadState *s = &m.s
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA)
    cdef HeadPose H = head_pose(p, s, X_TA, V_TA)
    cdef HeadLoads loads
    cdef Contact found[16]
    cdef int i, k, n, fired = 0
    memset(&loads, 0, sizeof(HeadLoads))
    n = head_contacts(p, &H, found)
    for i in range(n):
        push(p, &found[i], &H, s, inp.dt, &loads)
    for k in range(LATCHES):
        if k + 1 == p.latch_jammed or inp.commands & MECHANISM_COMMAND_RELEASE and k + 1 != p.latch_stays:
            s.fired[k] = 0.0
            s.latch[k] = 0.0
            drop_latch_energy(s, k)
        elif s.fired[k] != 0.0:
            n += hold_latch(p, s, &H, k, inp.dt, &loads)
            fired += 1
        else:
            n += press_latch(p, s, &H, k, &loads)
    # work of the target, whose surface moves at -V relative to the base
    s.supplied += inp.dt * (dot(loads.F_T.f, sub(V_TA.v, cross(V_TA.w, X_TA.p))) + dot(loads.F_T.m, V_TA.w))
    put_wrench(loads.F_T, out.F_T)
    put_wrench(swing_head(p, s, inp, &loads), out.F_A)
    head_events(p, s, inp.dt, n, fired, out)
    head_report(s, n, &loads, <HeadRecord *> aux)


cdef class BerthingHead(MechanismPart):
    """Small probe-type berthing unit (Yaskevich 2020, 5.5, 8.4)."""

    PARAMETERS = (
        number("plane_x_m", "m", "rim plane of the cone in the target port", -1.0, 1.0),
        number("plane_radius_m", "m", "outer radius of the rim plane", 0.0, 2.0),
        number("mouth_radius_m", "m", "mouth of the cone, R_CONE", 1e-3, 2.0),
        number("cone_height_m", "m", "mouth to socket entry, H_CONE", 1e-3, 2.0),
        number("stop_radius_m", "m", "socket entry and edge of the stop, R_STOP", 1e-3, 1.0),
        number("socket_depth_m", "m", "socket entry to bottom", 1e-3, 1.0),
        number("socket_radius_m", "m", "socket behind the stop", 1e-3, 1.0),
        number("stop_thickness_m", "m", "length of the stop's edge cylinder", 0.0, 0.1),
        number("reverse_angle_deg", "deg", "reverse cone of the stop, from the axis' normal plane", 0.0, 80.0),
        Parameter("sphere_x_m", "floats", "m", "centres of the two head spheres from the hinge", low=0.0, high=2.0, shape=2),
        Parameter("sphere_radius_m", "floats", "m", "radii of the two head spheres", low=1e-3, high=1.0, shape=2),
        Parameter("cone_x_m", "rows", "m", "the two head cones: rows [front x, front radius, rear x, rear radius] from the hinge", low=0.0,
                  high=2.0),
        Parameter("levels", "int", "-", "N: 2^N + 1 generators per cone", default=8, low=2, high=8),
        Parameter("latch_points_m", "rows", "m", "L0..L3 of a latch that is out: rows [axial, radial] from the hinge", low=-1.0, high=2.0),
        Parameter("latch_pivot_m", "floats", "m", "pivot of a latch [axial, radial]", low=-1.0, high=2.0, shape=2),
        number("latch_angle_max_deg", "deg", "greatest retraction of a latch", 1.0, 90.0),
        number("latch_moment_n_m", "N.m", "latch spring when out", 0.0, 1e3),
        number("latch_rate_n_m_per_rad", "N.m/rad", "latch spring rate", 0.0, 1e4),
        Parameter("latch_levels", "int", "-", "N: 2^N + 1 latch positions in the table", default=8, low=2, high=8),
        number("hinge_x_m", "m", "hinge in front of the base", -1.0, 2.0),
        number("hinge_azimuth_deg", "deg", "hinge axes about X", -180.0, 180.0, default=22.5),
        number("hinge_free_angle_deg", "deg", "free angle psi_0", 0.0, 30.0),
        number("hinge_stiffness_n_m_per_rad", "N.m/rad", "stops of the hinge", 0.0, 1e7),
        number("hinge_damping_n_m_s_per_rad", "N.m.s/rad", "damping of the stops", 0.0, 1e5),
        number("head_inertia_kg_m2", "kg.m2", "probe and head about the hinge", 1e-6, 1e3),
        *contact_parameters(effective_mass_kg=20.0),
        # failed parts; a hinge that does not turn has hinge_free_angle_deg 0
        Parameter("latch_jammed", "int", "-", "number of the latch that is jammed inside the head, 0: none", default=0, low=0, high=4),
        Parameter("latch_stays", "int", "-", "number of the latch that the release does not draw in, 0: none", default=0, low=0, high=4),
    )
    PICTURE = BerthingHeadPicture
    AUX = AUX
    LEDGER = ("energy_supplied", ("energy_kinetic", "energy_stored", "energy_lost_contact", "energy_lost_friction", "energy_lost_hinge",
                                  "energy_lost_latch"))

    cdef HeadSelf m

    def __init__(self, **given):
        t = checked(BerthingHead.PARAMETERS, given)
        memset(&self.m, 0, sizeof(HeadSelf))
        cdef HeadParams *p = &self.m.p
        cdef int i, j, k, n
        if not t["stop_radius_m"] < t["mouth_radius_m"] < t["plane_radius_m"]:
            raise ValueError(f"mouth_radius_m: {t['mouth_radius_m']} m, must lie between stop_radius_m and plane_radius_m")
        if not t["socket_radius_m"] > t["stop_radius_m"]:
            raise ValueError(f"socket_radius_m: {t['socket_radius_m']} m, must be > stop_radius_m ({t['stop_radius_m']} m)")
        entry = t["plane_x_m"] + t["cone_height_m"]
        # the head runs in the stop's own radius: the undercut behind it is for the latches only
        profile = [(t["plane_x_m"], t["plane_radius_m"]), (t["plane_x_m"], t["mouth_radius_m"]), (entry, t["stop_radius_m"]),
                   (entry + t["socket_depth_m"], t["stop_radius_m"]), (entry + t["socket_depth_m"], 0.0)]
        p.cavity.count = len(profile)
        for i, (x, r) in enumerate(profile):
            p.cavity.x[i], p.cavity.rho[i] = x, r
        prepare_profile(&p.cavity)
        p.mouth_x, p.mouth_radius = t["plane_x_m"], t["mouth_radius_m"]
        p.stop_x, p.stop_radius = entry + t["stop_thickness_m"], t["stop_radius_m"]
        p.reverse_tan = np.tan(np.radians(90.0 - t["reverse_angle_deg"])) if t["reverse_angle_deg"] > 0 else 1e3
        p.levels, p.latch_levels = t["levels"], t["latch_levels"]
        cones = np.asarray(t["cone_x_m"], dtype=float)
        if cones.shape != (2, 4):
            raise ValueError(f"cone_x_m: shape {cones.shape}, two rows of four needed")
        for i in range(2):
            p.sphere_x[i], p.sphere_radius[i] = t["sphere_x_m"][i], t["sphere_radius_m"][i]
            x1, r1, x2, r2 = cones[i]
            for j in range((1 << p.levels) + 1):
                azimuth = 2.0 * np.pi * j / (1 << p.levels)
                c, s = np.cos(azimuth), np.sin(azimuth)
                p.start[i][j] = xyz(x2, r2 * c, r2 * s)
                p.along[i][j] = xyz(x1 - x2, (r1 - r2) * c, (r1 - r2) * s)
        points = np.asarray(t["latch_points_m"], dtype=float)
        if points.shape != (4, 2):
            raise ValueError(f"latch_points_m: shape {points.shape}, four rows of two needed")
        pivot = np.asarray(t["latch_pivot_m"], dtype=float)
        for i in range(4):
            p.point[i][0], p.point[i][1] = points[i]
        p.pivot[0], p.pivot[1] = pivot
        n = 1 << p.latch_levels
        # retraction turns the nose towards the axis, whichever side of the pivot it is on
        side = -1.0 if points[1, 0] > pivot[0] else 1.0
        p.latch_side = side
        for k in range(n + 1):
            angle = np.radians(t["latch_angle_max_deg"]) * k / n
            c, s = np.cos(angle), np.sin(angle) * side
            R = np.array([[c, -s], [s, c]])
            q = pivot + (points - pivot) @ R.T
            p.turn[k] = angle
            for j in range(2):
                p.turned[k][j][0], p.turned[k][j][1] = q[j]
                p.turned[k][j][2], p.turned[k][j][3] = q[j + 1] - q[j]
        for k in range(LATCHES):
            p.latch_axis[k][0], p.latch_axis[k][1] = np.cos(np.pi / 2 * k), np.sin(np.pi / 2 * k)
        p.latch_moment, p.latch_rate = t["latch_moment_n_m"], t["latch_rate_n_m_per_rad"]
        p.hinge_x = t["hinge_x_m"]
        c, s = np.cos(np.radians(t["hinge_azimuth_deg"])), np.sin(np.radians(t["hinge_azimuth_deg"]))
        p.R_azimuth.xx = 1.0
        p.R_azimuth.yy, p.R_azimuth.yz = c, -s
        p.R_azimuth.zy, p.R_azimuth.zz = s, c
        p.inertia, p.stiffness = t["head_inertia_kg_m2"], t["hinge_stiffness_n_m_per_rad"]
        p.damping, p.free_angle = t["hinge_damping_n_m_s_per_rad"], np.radians(t["hinge_free_angle_deg"])
        p.law.stiffness, p.law.damping, p.law.ramp = t["contact_stiffness_n_per_m"], t["contact_damping_n_s_per_m"], t["contact_ramp_m"]
        p.law.friction, p.law.slip_speed = t["friction"], t["slip_speed_m_s"]
        p.law.viscous_limit = 0.5 * t["effective_mass_kg"] / 1e-3
        p.depth_limit = t["depth_limit_m"]
        p.latch_jammed, p.latch_stays = t["latch_jammed"], t["latch_stays"]
        self.m.s.contact_time = self.m.s.capture_time = -1.0
        self.plug.self = &self.m
        self.plug.state = &self.m.s
        self.plug.state_size = sizeof(HeadState)
        self.plug.advance = head_advance

    def state_fields(self):
        return self.m.s

    def contacts(self, X_TA):
        """List of (depth, n, r) of the head with the base at X_TA (7,), latches not included."""
        cdef double X[7]
        cdef Twist still
        cdef HeadPose H
        cdef Contact found[16]
        cdef int i, n
        for i in range(7):
            X[i] = X_TA[i]
        memset(&still, 0, sizeof(still))
        H = head_pose(&self.m.p, &self.m.s, pose(X), still)
        n = head_contacts(&self.m.p, &H, found)
        return [(found[i].depth, np.array([found[i].n[k] for k in range(3)]),
                 np.array([found[i].r[k] for k in range(3)])) for i in range(n)]

    def max_penetration(self, X_TA):
        """Deepest penetration of the head [m] with the base at X_TA (7,); -1 without contact."""
        return max((c[0] for c in self.contacts(X_TA)), default=-1.0)


def hinge_step(h, inertia, stiffness, damping, free_angle, moment, rate, angle):
    """One implicit Euler step of a hinge axis: (rate, angle)."""
    cdef double w = rate, a = angle
    swing_step(h, inertia, stiffness, damping, free_angle, moment, &w, &a)
    return w, a
