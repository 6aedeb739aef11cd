"""Contacts of the central unit: head, limiter and rollers in the receptacle, pushers and docking planes (Yaskevich 2020, 5.1, 5.2, 6.1.1).

Each function finds the contacts of one body with the target, whose motion in T it is given, adds the reactions to the body's and the
target's sums, sets the sensors' bits and notes depths and forces in the record.
"""

from libc.math cimport sqrt

from rt_kernels.algebra.values cimport Vec3, add, dot, mat_vec, mul, put, sub, twist_of, vec, xyz
from rt_kernels.contact.planes cimport PlanePlace, plane_place
from rt_kernels.contact.primitives cimport Contact, FACE, fill_contact, segment_circle, sphere_in_cavity
from rt_kernels.codes cimport (MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DK2, MECHANISM_SIGNAL_LEVER1_CONTACT,
                               MECHANISM_SIGNAL_LIMITER_CONTACT, MECHANISM_SIGNAL_PLANES_TOGETHER, MECHANISM_SIGNAL_PUSHERS)
from rt_kernels.mechanisms.probe_cone.contact_sums cimport Body, Sums, apply_force, contact_reaction
from rt_kernels.mechanisms.probe_cone.model cimport (
    LENGTH, LININGS, PART_HEAD, PART_LINING, PART_PLANE, PART_ROLLER, PUSHERS, Unit,
)
from rt_kernels.mechanisms.probe_cone.record cimport ProbeConeRoller, ProbeConeTouch


cdef inline void note_touch(ProbeConeTouch *touch, const Contact *c, double normal) noexcept nogil:
    touch.depth = c.depth
    touch.force = normal
    put(vec(c.n), touch.n)
    put(vec(c.r), touch.r)


cdef void head_contacts(Unit *u, Body *head, Sums *sums) noexcept nogil:
    """Head sphere against cones, edges, socket and bottom; DK1 and DK2."""
    cdef Contact found[4]
    cdef double normal
    cdef int i, n
    u.touching_part, u.touching_number = PART_HEAD, 1
    n = sphere_in_cavity(&u.cone, &head.p.x, u.head_radius, found, 4)
    for i in range(n):
        normal = contact_reaction(u, &u.head_law, &found[i], head, sums)
        if not u.dk1_dead:
            u.signals |= MECHANISM_SIGNAL_DK1
        if found[i].kind == FACE and found[i].index == u.bottom_face and not u.dk2_dead:
            u.signals |= MECHANISM_SIGNAL_DK2
        if i < 3:
            note_touch(&u.record.head_contact[i], &found[i], normal)


cdef inline bint mouth_contact(const Unit *u, Vec3 P, Vec3 L, Contact *found) noexcept nogil:
    """Edge of a lining, from P along L, against the mouth circle. Where the rear end has just passed the plane of the circle the edge
    still lies on it with what is before its end: the line is drawn on by a tenth, and the foot has to be on the lining itself."""
    cdef Vec3 axis = xyz(1.0, 0.0, 0.0), longer = mul(1.1, L)
    if not segment_circle(&P.x, &longer.x, &u.mouth.x, &axis.x, u.mouth_radius, True, 3, found):
        return False
    return dot(sub(vec(found.r), P), L) <= dot(L, L)


cdef inline bint end_in_cone(const Unit *u, Vec3 P, Contact *found) noexcept nogil:
    """End of a lining behind the face of the cone that begins at the mouth."""
    cdef double rho = sqrt(P.y * P.y + P.z * P.z), tx = u.cone.tx[1], tr = u.cone.tr[1]
    cdef double dx = P.x - u.mouth.x, dr = rho - u.mouth_radius
    cdef double along = dx * tx + dr * tr, behind = dr * tx - dx * tr
    if along < 0.0 or along > u.cone.length[1] or behind <= 0.0:
        return False
    fill_contact(&P.x, 0.0, behind, -tr, tx * P.y / rho, tx * P.z / rho, FACE, 1, found)
    return True


cdef void limiter_contacts(Unit *u, Body *limiter, Sums *sums) noexcept nogil:
    """Linings of the limiter: edges against the mouth circle, both end points against cones and rim. An edge that bears on the mouth
    and its rear end behind the cone's face are one contact, the shorter way out: depth and force do not jump where the one follows the
    other."""
    cdef Contact found[4]
    cdef Contact end
    cdef Vec3 front, run, rear
    cdef double normal
    cdef double tilt = limiter.R.yx * limiter.R.yx + limiter.R.zx * limiter.R.zx
    cdef bint bears
    cdef int i, j, n
    # nothing of the limiter has reached the mouth plane
    if limiter.p.x + limiter.R.xx * u.lining_front + sqrt(tilt) * u.lining_reach < u.mouth.x - 1e-3:
        return
    for i in range(LININGS):
        front = add(limiter.p, mat_vec(limiter.R, u.lining[i]))
        run = mat_vec(limiter.R, u.lining_run[i])
        rear = add(front, run)
        n = sphere_in_cavity(&u.cone, &front.x, 0.0, found, 2) if front.x > u.mouth.x else 0
        bears = mouth_contact(u, front, run, &found[n])
        if end_in_cone(u, rear, &end) and not (bears and found[n].depth < end.depth):
            found[n] = end
            n += 1
        elif bears:
            n += 1
        elif rear.x > u.mouth.x:
            n += sphere_in_cavity(&u.cone, &rear.x, 0.0, &found[n], 2)
        u.touching_part, u.touching_number = PART_LINING, i + 1
        for j in range(n):
            normal = contact_reaction(u, &u.limiter_law, &found[j], limiter, sums)
            u.signals |= MECHANISM_SIGNAL_LIMITER_CONTACT
            note_touch(&u.record.lining[i], &found[j], normal)


cdef void roller_contacts(Unit *u, Body *body, Sums *sums) noexcept nogil:
    """Rollers of the alignment levers: centres from the cam over the nut angle, spheres against the cones. The cam moves them with the nut,
    which bears their load."""
    cdef Contact found[2]
    cdef double nut = -u.nut_ratio * (u.state.q[LENGTH] - u.length0)
    cdef double share, x, rho, normal, x_stroke, rho_stroke
    cdef Vec3 centre, per_stroke
    cdef Body moving
    cdef ProbeConeRoller *roller
    cdef int i, j, n, k = 0
    u.roller_load = 0.0
    if u.rollers == 0:
        return
    while k < u.cam_points - 2 and nut > u.cam_nut[k + 1]:
        k += 1
    share = (nut - u.cam_nut[k]) / (u.cam_nut[k + 1] - u.cam_nut[k])
    # metres of the centre per metre of the stroke
    x_stroke = -u.nut_ratio * (u.cam_x[k + 1] - u.cam_x[k]) / (u.cam_nut[k + 1] - u.cam_nut[k])
    rho_stroke = -u.nut_ratio * (u.cam_rho[k + 1] - u.cam_rho[k]) / (u.cam_nut[k + 1] - u.cam_nut[k])
    if share < 0.0 or share > 1.0:
        share = 0.0 if share < 0.0 else 1.0
        x_stroke = rho_stroke = 0.0
    x = u.cam_x[k] + share * (u.cam_x[k + 1] - u.cam_x[k])
    rho = u.cam_rho[k] + share * (u.cam_rho[k + 1] - u.cam_rho[k])
    for i in range(u.rollers):
        centre = add(body.p, mat_vec(body.R, xyz(x, rho * u.roller_dir[2 * i], rho * u.roller_dir[2 * i + 1])))
        roller = &u.record.roller[i]
        put(centre, roller.centre)
        # only inside the cone; the rim plane is not theirs
        if centre.x < u.mouth.x:
            continue
        n = sphere_in_cavity(&u.cone, &centre.x, u.roller_radius, found, 2)
        u.touching_part, u.touching_number = PART_ROLLER, i + 1
        per_stroke = mat_vec(body.R, xyz(x_stroke, rho_stroke * u.roller_dir[2 * i], rho_stroke * u.roller_dir[2 * i + 1]))
        moving = body[0]
        moving.v = add(body.v, mul(u.state.v[LENGTH], per_stroke))
        for j in range(n):
            normal = contact_reaction(u, &u.roller_law, &found[j], &moving, sums)
            u.signals |= MECHANISM_SIGNAL_LEVER1_CONTACT << i
            roller.depth = found[j].depth
            roller.force = normal
            put(vec(found[j].r), roller.r)
        u.roller_load += dot(per_stroke, sub(moving.F.f, body.F.f))
        body.F = moving.F


cdef void plane_contacts(Unit *u, Body *base, Sums *sums) noexcept nogil:
    """Docking planes: four spring pushers on the periphery, and the planes themselves. Together only when all four gaps are closed."""
    cdef PlanePlace q
    cdef double f, widest = -1e9
    cdef int i
    for i in range(PUSHERS):
        q = plane_place(&u.planes, i, base.p, base.R, twist_of(base.v, base.w), 0.5 * sums.h)
        f = q.push
        if q.gap > widest:
            widest = q.gap
        if q.gap < u.planes.pusher_length:
            u.signals |= MECHANISM_SIGNAL_PUSHERS
            u.record.stored.pusher += 0.5 * (f - q.damped) * q.squeeze
            u.state.lost.contact += sums.h * q.damped * q.rate
            apply_force(base, q.p_TQ, xyz(f, 0.0, 0.0), sums)
        if q.pressed:
            u.touching_part, u.touching_number = PART_PLANE, i + 1
            f += contact_reaction(u, &u.planes.law, &q.contact, base, sums)
        u.record.pusher[i].gap = q.gap
        u.record.pusher[i].force = f
    u.record.plane_gap = widest
    if widest <= u.planes.together_gap:
        u.signals |= MECHANISM_SIGNAL_PLANES_TOGETHER
