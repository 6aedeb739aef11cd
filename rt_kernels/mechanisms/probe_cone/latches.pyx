"""Latches and capture sensor levers of the head (Yaskevich 2020, 5.3, 6.1.1): pressed into the head by the socket, fired into its grooves.

The laws of one latch stand in rt_kernels.contact.latches; here they act on head and target,
and the ledger takes what a released spring loses.
"""

from libc.math cimport sqrt

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport Mat3, Vec3, add, cross, dot, mat_multiply, mat_vec, mul, put, sub, vec, xyz
from rt_kernels.codes cimport MECHANISM_SIGNAL_DSG, MECHANISM_SIGNAL_LATCH1
from rt_kernels.contact.latches cimport (
    FIRED, FREE, PRESSED, HeadPlane, LatchGeometry, head_point, inside_groove, latch_force, latch_in_groove, pressed_angle,
)
from rt_kernels.contact.primitives cimport Contact
from rt_kernels.mechanisms.probe_cone.contact_sums cimport Body, Sums, apply_force, contact_reaction
from rt_kernels.mechanisms.probe_cone.model cimport BEND_Y, BEND_Z, LATCHES, LEVERS, PART_LATCH, State, Unit
from rt_kernels.mechanisms.probe_cone.record cimport ProbeConeLatch, ProbeConeSensor


cdef void pressed_latch(Unit *u, int k, Body *head, const HeadPlane *H, Vec3 tip, bint clear, Sums *sums) noexcept nogil:
    """Latch k that has not fired: pressed by the socket (massless, spring), or sprung out behind its stop,
    if its locking face is `clear`."""
    cdef State *s = &u.state
    cdef const LatchGeometry *g = &u.latch
    cdef double outwards = (tip.z if k & 1 else tip.y) * (1.0 if k < 2 else -1.0)
    cdef double energy
    cdef Contact touch
    cdef bint bottomed
    cdef ProbeConeLatch *r = &u.record.latch[k]
    s.latch_angle[k] = pressed_angle(&u.cone, u.entry_x, u.entry_radius, H, g, s.latch_angle[k], &touch, &bottomed)
    s.latch_phase[k] = PRESSED if s.latch_angle[k] > 0.0 else FREE
    # tip at rest inside the groove's outline and locking face clear of stop and walls: it springs out behind the stop
    if clear and outwards > u.groove.plane and inside_groove(&u.groove, tip.x - u.groove.stop_x, tip.y if k & 1 else tip.z):
        s.latch_phase[k] = FIRED
        s.latch_angle[k] = 0.0
    elif s.latch_angle[k] > 0.0:
        r.force = latch_force(H, g, s.latch_angle[k], &touch)
        apply_force(head, vec(touch.r), mul(r.force, vec(touch.n)), sums)
        if bottomed:
            r.force += contact_reaction(u, &u.latch_law, &touch, head, sums)
    energy = s.latch_angle[k] * (g.torque_preload + 0.5 * g.torque_rate * s.latch_angle[k])
    if s.latch_phase[k] == FIRED:
        s.lost.latch += s.latch_last[k]
    s.latch_last[k] = energy
    u.record.stored.latch += energy


cdef inline bint one_of(int number, int k) noexcept nogil:
    # whether latch k is the one of this number, from 1, or all are meant
    return number == k + 1 or number > LATCHES


cdef void one_latch(Unit *u, int k, Body *head, const HeadPlane *H, Sums *sums) noexcept nogil:
    """Latch k: pressed or fired (in its groove)."""
    cdef const LatchGeometry *g = &u.latch
    cdef Vec3 tip, inner, outer
    cdef Contact found[2]
    cdef int j, n
    cdef ProbeConeLatch *r = &u.record.latch[k]
    u.touching_part, u.touching_number = PART_LATCH, k + 1
    # drawn into the head by the release command, or jammed there: nothing of it reaches the receptacle
    if u.latches_held and not one_of(u.latch_stays, k) or one_of(u.latch_jammed, k):
        u.state.latch_phase[k] = PRESSED
        u.state.lost.latch += u.state.latch_last[k]
        u.state.latch_last[k] = 0.0
        u.state.latch_angle[k] = r.angle = g.angle_max
        r.phase = u.state.latch_phase[k]
        return
    # outermost point and locking segment at rest, in T
    tip = head_point(H, g.pivot_x + g.tip_x, g.pivot_rho + g.tip_rho)
    inner = head_point(H, g.lock_x, g.lock_rho_inner)
    outer = head_point(H, g.lock_x, g.lock_rho_outer)
    n = latch_in_groove(&u.groove, k, &inner.x, &outer.x, found)
    if u.state.latch_phase[k] != FIRED:
        pressed_latch(u, k, head, H, tip, n == 0, sums)
    if u.state.latch_phase[k] == FIRED:
        u.signals |= MECHANISM_SIGNAL_LATCH1 << k
        for j in range(n):
            r.groove_force += contact_reaction(u, &u.latch_law, &found[j], head, sums)
            r.groove_depth = found[j].depth
    r.angle = u.state.latch_angle[k]
    r.phase = u.state.latch_phase[k]
    put(tip, r.tip)


cdef void one_lever(Unit *u, int k, Body *head, const HeadPlane *H, Sums *sums) noexcept nogil:
    """Capture sensor lever k: pressed by the socket until its circle has passed the release depth."""
    cdef State *s = &u.state
    cdef const LatchGeometry *g = &u.lever
    cdef Vec3 centre = head_point(H, g.pivot_x + g.nose_x, g.pivot_rho + g.nose_rho)
    cdef Contact touch
    cdef bint bottomed
    cdef ProbeConeSensor *r = &u.record.sensor[k]
    if u.latches_held:
        s.lever_phase[k] = FREE
        s.lost.latch += s.lever_last[k]
        s.lever_angle[k] = s.lever_last[k] = 0.0
    elif s.lever_phase[k] != FIRED:
        s.lever_angle[k] = pressed_angle(&u.cone, u.entry_x, u.entry_radius, H, g, s.lever_angle[k], &touch, &bottomed)
        s.lever_phase[k] = PRESSED if s.lever_angle[k] > 0.0 else FREE
        if centre.x >= u.release_x:
            s.lever_phase[k] = FIRED
            s.lever_angle[k] = 0.0
            s.lost.latch += s.lever_last[k]
        elif s.lever_angle[k] > 0.0:
            r.force = latch_force(H, g, s.lever_angle[k], &touch)
            apply_force(head, vec(touch.r), mul(r.force, vec(touch.n)), sums)
        s.lever_last[k] = s.lever_angle[k] * (g.torque_preload + 0.5 * g.torque_rate * s.lever_angle[k])
        u.record.stored.latch += s.lever_last[k]
    r.angle = s.lever_angle[k]
    r.phase = s.lever_phase[k]
    put(centre, r.centre)


cdef void socket_friction(Unit *u, Body *head, Sums *sums) noexcept nogil:
    """Friction of a captured head and its levers along the socket, smooth at rest."""
    cdef double speed = head.v.x
    cdef double friction = u.lever_friction / sqrt(speed * speed + 1e-6)
    if friction > u.lever_viscous:
        friction = u.lever_viscous
    apply_force(head, head.p, mul(friction * speed, xyz(1.0, 0.0, 0.0)), sums)
    u.state.lost.friction += sums.h * friction * speed * speed


cdef inline bint all_fired(const int *phase, int n) noexcept nogil:
    cdef int k
    for k in range(n):
        if phase[k] != FIRED:
            return False
    return True


cdef void latch_contacts(Unit *u, Body *head, Sums *sums) noexcept nogil:
    """Latches and sensor levers of the head; the beam's end slope is 1.5 sin q, so the head frame is turned by another 1.5 sin q - q: what
    they carry moves with it, and works on bending through it."""
    cdef State *s = &u.state
    cdef double s3, c3, s4, c4
    cdef Mat3 R_PH
    cdef HeadPlane H
    cdef Body tip
    cdef Vec3 axis_y, axis_z, m
    cdef int k
    u.tip_moment[0] = u.tip_moment[1] = 0.0
    # far from the last cone nothing can touch
    if head.p.x < u.last_cone_x - 3.0 * u.head_radius:
        for k in range(LATCHES):
            u.record.latch[k].phase = s.latch_phase[k]
        return
    sincos(1.5 * u.motion.sin_bend[0] - s.q[BEND_Y], &s3, &c3)
    sincos(1.5 * u.motion.sin_bend[1] - s.q[BEND_Z], &s4, &c4)
    # (Rz(dq4) Ry(dq3))^T maps the corrected head frame to the probe frame
    R_PH.xx = c4 * c3; R_PH.xy = -s4 * c3; R_PH.xz = s3
    R_PH.yx = s4; R_PH.yy = c4; R_PH.yz = 0.0
    R_PH.zx = -c4 * s3; R_PH.zy = s4 * s3; R_PH.zz = c3
    H.p_TH, H.R_TH = head.p, mat_multiply(head.R, R_PH)
    # what the head frame turns per rate of bending, beyond the probe: d(1.5 sin q - q)/dq about the axes of Ry(dq3) Rz(dq4)
    axis_y = mul(1.5 * sqrt(1.0 - u.motion.sin_bend[0] * u.motion.sin_bend[0]) - 1.0, mat_vec(head.R, xyz(0.0, 1.0, 0.0)))
    axis_z = mul(1.5 * sqrt(1.0 - u.motion.sin_bend[1] * u.motion.sin_bend[1]) - 1.0, mat_vec(head.R, xyz(s3, 0.0, c3)))
    tip = head[0]
    tip.w = add(head.w, add(mul(s.v[BEND_Y], axis_y), mul(s.v[BEND_Z], axis_z)))
    for k in range(LATCHES):
        H.uy, H.uz = u.latch_dir[2 * k], u.latch_dir[2 * k + 1]
        one_latch(u, k, &tip, &H, sums)
    for k in range(LEVERS):
        H.uy, H.uz = u.lever_dir[2 * k], u.lever_dir[2 * k + 1]
        one_lever(u, k, &tip, &H, sums)
    # their moment about the head centre
    m = sub(sub(tip.F.m, head.F.m), cross(sub(head.p, sums.p_TA), sub(tip.F.f, head.F.f)))
    u.tip_moment[0], u.tip_moment[1] = dot(axis_y, m), dot(axis_z, m)
    head.F = tip.F
    # captured: all latches in their grooves and all levers released
    if all_fired(s.lever_phase, LEVERS):
        if all_fired(s.latch_phase, LATCHES) and u.lever_dead == 0:
            u.signals |= MECHANISM_SIGNAL_DSG
        socket_friction(u, head, sums)
