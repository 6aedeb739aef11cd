"""Contacts of the central unit: head, limiter and rollers in the receptacle, pushers and docking planes (Yaskevich 2020, 5.1, 5.2, 6.1.1).

Each function finds the contacts of one body with the target, whose motion in T it is given, adds the reactions to the body's and the
target's sums, sets the sensors' bits and notes depths and forces in the record.
"""

from libc.math cimport sqrt

from rt_kernels.algebra cimport rot3, vec3
from rt_kernels.contact.primitives cimport Contact, FACE, segment_circle, sphere_in_cavity
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
    vec3.copy(c.n, touch.n)
    vec3.copy(c.r, touch.r)


cdef void head_contacts(Unit *u, Body *head, Sums *sums) noexcept nogil:
    """Head sphere against cones, edges, socket and bottom; DK1 and DK2."""
    cdef Contact found[4]
    cdef double normal
    cdef int i, n
    u.touching_part, u.touching_number = PART_HEAD, 1
    n = sphere_in_cavity(&u.cone, head.p, u.head_radius, found, 4)
    for i in range(n):
        normal = contact_reaction(u, &u.head_law, &found[i], head, sums)
        if not u.dk1_dead:
            u.signals |= MECHANISM_SIGNAL_DK1
        if found[i].kind == FACE and found[i].index == u.bottom_face and not u.dk2_dead:
            u.signals |= MECHANISM_SIGNAL_DK2
        if i < 3:
            note_touch(&u.record.head_contact[i], &found[i], normal)


cdef inline bint mouth_contact(const Unit *u, const double *P, const double *L, Contact *found) noexcept nogil:
    """Edge of a lining, from P along L, against the mouth circle. Where the rear end has just passed the plane of the circle the edge
    still lies on it with what is before its end: the line is drawn on by a tenth, and the foot has to be on the lining itself."""
    cdef double axis[3]
    cdef double longer[3]
    cdef double foot[3]
    vec3.fill(1.0, 0.0, 0.0, axis)
    vec3.scale(1.1, L, longer)
    if not segment_circle(P, longer, u.mouth, axis, u.mouth_radius, True, 3, found):
        return False
    vec3.sub(found.r, P, foot)
    return vec3.dot(foot, L) <= vec3.dot(L, L)


cdef void limiter_contacts(Unit *u, Body *limiter, Sums *sums) noexcept nogil:
    """Linings of the limiter: edges against the mouth circle, both end points against cones and rim."""
    cdef Contact found[4]
    cdef double rear[3]
    cdef double P[3]
    cdef double L[3]
    cdef double normal
    cdef double tilt = limiter.R[3] * limiter.R[3] + limiter.R[6] * limiter.R[6]
    cdef int i, j, n
    # nothing of the limiter has reached the mouth plane
    if limiter.p[0] + limiter.R[0] * u.lining_front + sqrt(tilt) * u.lining_reach < u.mouth[0] - 1e-3:
        return
    for i in range(LININGS):
        rot3.apply(limiter.R, u.lining + 3 * i, P)
        vec3.add(P, limiter.p, P)
        rot3.apply(limiter.R, u.lining_run + 3 * i, L)
        vec3.add(P, L, rear)
        n = sphere_in_cavity(&u.cone, P, 0.0, found, 2) if P[0] > u.mouth[0] else 0
        if mouth_contact(u, P, L, &found[n]):
            n += 1
        elif rear[0] > u.mouth[0]:
            n += sphere_in_cavity(&u.cone, rear, 0.0, &found[n], 2)
        u.touching_part, u.touching_number = PART_LINING, i + 1
        for j in range(n):
            normal = contact_reaction(u, &u.limiter_law, &found[j], limiter, sums)
            u.signals |= MECHANISM_SIGNAL_LIMITER_CONTACT
            note_touch(&u.record.lining[i], &found[j], normal)


cdef void roller_contacts(Unit *u, Body *body, Sums *sums) noexcept nogil:
    """Rollers of the alignment levers: centres from the cam over the nut angle, spheres against the cones."""
    cdef Contact found[2]
    cdef double nut = -u.nut_ratio * (u.state.q[LENGTH] - u.length0)
    cdef double share, x, rho, normal
    cdef double local[3]
    cdef double P[3]
    cdef ProbeConeRoller *roller
    cdef int i, j, n, k = 0
    if u.rollers == 0:
        return
    while k < u.cam_points - 2 and nut > u.cam_nut[k + 1]:
        k += 1
    share = (nut - u.cam_nut[k]) / (u.cam_nut[k + 1] - u.cam_nut[k])
    if share < 0.0:
        share = 0.0
    elif share > 1.0:
        share = 1.0
    x = u.cam_x[k] + share * (u.cam_x[k + 1] - u.cam_x[k])
    rho = u.cam_rho[k] + share * (u.cam_rho[k + 1] - u.cam_rho[k])
    for i in range(u.rollers):
        vec3.fill(x, rho * u.roller_dir[2 * i], rho * u.roller_dir[2 * i + 1], local)
        rot3.apply(body.R, local, P)
        vec3.add(P, body.p, P)
        roller = &u.record.roller[i]
        vec3.copy(P, roller.centre)
        # only inside the cone; the rim plane is not theirs
        if P[0] < u.mouth[0]:
            continue
        n = sphere_in_cavity(&u.cone, P, u.roller_radius, found, 2)
        u.touching_part, u.touching_number = PART_ROLLER, i + 1
        for j in range(n):
            normal = contact_reaction(u, &u.roller_law, &found[j], body, sums)
            u.signals |= MECHANISM_SIGNAL_LEVER1_CONTACT << i
            roller.depth = found[j].depth
            roller.force = normal
            vec3.copy(found[j].r, roller.r)


cdef void plane_contacts(Unit *u, Body *base, Sums *sums) noexcept nogil:
    """Docking planes: four spring pushers on the periphery, and the planes themselves. Together only when all four gaps are closed."""
    cdef double local[3]
    cdef double P[3]
    cdef double force[3]
    cdef double gap, f, squeeze
    cdef double widest = -1e9
    cdef Contact c
    cdef int i
    for i in range(PUSHERS):
        vec3.fill(u.plane_x, 0.0, 0.0, local)
        local[1 + (i & 1)] = u.pusher_radius if i < 2 else -u.pusher_radius
        rot3.apply(base.R, local, P)
        vec3.add(P, base.p, P)
        gap = -P[0]
        f = 0.0
        if gap > widest:
            widest = gap
        if gap < u.pusher_length:
            squeeze = u.pusher_length - gap
            f = u.pusher_stiffness * squeeze
            u.signals |= MECHANISM_SIGNAL_PUSHERS
            u.record.stored.pusher += 0.5 * f * squeeze
            vec3.fill(f, 0.0, 0.0, force)
            apply_force(base, P, force, sums)
            if gap < 0.0:
                c.depth = -gap
                vec3.fill(1.0, 0.0, 0.0, c.n)
                vec3.copy(P, c.r)
                u.touching_part, u.touching_number = PART_PLANE, i + 1
                f += contact_reaction(u, &u.plane_law, &c, base, sums)
        u.record.pusher[i].gap = gap
        u.record.pusher[i].force = f
    u.record.plane_gap = widest
    if widest <= u.together_gap:
        u.signals |= MECHANISM_SIGNAL_PLANES_TOGETHER
