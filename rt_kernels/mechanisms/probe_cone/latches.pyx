"""Latches and capture sensor levers of the head (Yaskevich 2020, 5.3, 6.1.1): pressed into the head by the socket, fired into its grooves.

The laws of one latch stand in rt_kernels.contact.latches; here they act on head and target,
and the ledger takes what a released spring loses.
"""

from libc.math cimport sqrt

from rt_kernels.algebra cimport rot3, vec3
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.codes cimport MECHANISM_SIGNAL_DSG, MECHANISM_SIGNAL_LATCH1
from rt_kernels.contact.latches cimport FIRED, FREE, PRESSED, LatchGeometry, inside_groove, latch_force, latch_in_groove, pressed_angle
from rt_kernels.contact.primitives cimport Contact
from rt_kernels.mechanisms.probe_cone.contact_sums cimport Body, Sums, apply_force, contact_reaction
from rt_kernels.mechanisms.probe_cone.model cimport BEND_Y, BEND_Z, LATCHES, LEVERS, PART_LATCH, State, Unit
from rt_kernels.mechanisms.probe_cone.record cimport ProbeConeLatch, ProbeConeSensor


cdef inline void head_point(const Body *head, const double *R_TH, double x, double rho, double uy, double uz, double *p) noexcept nogil:
    """Point (x, rho) of the half-plane with direction (uy, uz) of the head frame, in T."""
    cdef double local[3]
    vec3.fill(x, uy * rho, uz * rho, local)
    rot3.apply(R_TH, local, p)
    vec3.add(p, head.p, p)


cdef void pressed_latch(Unit *u, int k, Body *head, const double *R_TH, const double *tip, bint clear, Sums *sums) noexcept nogil:
    """Latch k that has not fired: pressed by the socket (massless, spring), or sprung out behind its stop,
    if its locking face is `clear`."""
    cdef State *s = &u.state
    cdef const LatchGeometry *g = &u.latch
    cdef double uy = u.latch_dir[2 * k], uz = u.latch_dir[2 * k + 1]
    cdef double force[3]
    cdef double f, energy
    cdef Contact touch
    cdef bint bottomed
    cdef ProbeConeLatch *r = &u.record.latch[k]
    s.latch_angle[k] = pressed_angle(&u.cone, u.entry_x, u.entry_radius, head.p, R_TH, uy, uz, g, s.latch_angle[k], &touch, &bottomed)
    s.latch_phase[k] = PRESSED if s.latch_angle[k] > 0.0 else FREE
    # tip at rest inside the groove's outline and locking face clear of stop and walls: it springs out behind the stop
    if clear and tip[1 + (k & 1)] * (1.0 if k < 2 else -1.0) > u.groove.plane and inside_groove(
        &u.groove, tip[0] - u.groove.stop_x, tip[2 - (k & 1)]
    ):
        s.latch_phase[k] = FIRED
        s.latch_angle[k] = 0.0
    elif s.latch_angle[k] > 0.0:
        f = latch_force(head.p, R_TH, uy, uz, g, s.latch_angle[k], &touch)
        vec3.scale(f, touch.n, force)
        apply_force(head, touch.r, force, sums)
        r.force = f
        if bottomed:
            r.force += contact_reaction(u, &u.latch_law, &touch, head, sums)
    energy = s.latch_angle[k] * (g.torque_preload + 0.5 * g.torque_rate * s.latch_angle[k])
    if s.latch_phase[k] == FIRED:
        s.lost.latch += s.latch_last[k]
    s.latch_last[k] = energy
    u.record.stored.latch += energy


cdef void one_latch(Unit *u, int k, Body *head, const double *R_TH, Sums *sums) noexcept nogil:
    """Latch k: pressed or fired (in its groove)."""
    cdef const LatchGeometry *g = &u.latch
    cdef double uy = u.latch_dir[2 * k], uz = u.latch_dir[2 * k + 1]
    cdef double tip[3]
    cdef double inner[3]
    cdef double outer[3]
    cdef Contact found[2]
    cdef int j, n
    cdef ProbeConeLatch *r = &u.record.latch[k]
    u.touching_part, u.touching_number = PART_LATCH, k + 1
    # drawn into the head by the release command, or jammed there: nothing of it reaches the receptacle
    if u.latches_held or u.latch_jammed == k + 1 or u.latch_jammed > LATCHES:
        u.state.latch_phase[k] = PRESSED
        u.state.lost.latch += u.state.latch_last[k]
        u.state.latch_last[k] = 0.0
        u.state.latch_angle[k] = r.angle = g.angle_max
        r.phase = u.state.latch_phase[k]
        return
    # outermost point and locking segment at rest, in T
    head_point(head, R_TH, g.pivot_x + g.tip_x, g.pivot_rho + g.tip_rho, uy, uz, tip)
    head_point(head, R_TH, g.lock_x, g.lock_rho_inner, uy, uz, inner)
    head_point(head, R_TH, g.lock_x, g.lock_rho_outer, uy, uz, outer)
    n = latch_in_groove(&u.groove, k, inner, outer, found)
    if u.state.latch_phase[k] != FIRED:
        pressed_latch(u, k, head, R_TH, tip, n == 0, sums)
    if u.state.latch_phase[k] == FIRED:
        u.signals |= MECHANISM_SIGNAL_LATCH1 << k
        for j in range(n):
            r.groove_force += contact_reaction(u, &u.latch_law, &found[j], head, sums)
            r.groove_depth = found[j].depth
    r.angle = u.state.latch_angle[k]
    r.phase = u.state.latch_phase[k]
    vec3.copy(tip, r.tip)


cdef void one_lever(Unit *u, int k, Body *head, const double *R_TH, Sums *sums) noexcept nogil:
    """Capture sensor lever k: pressed by the socket until its circle has passed the release depth."""
    cdef State *s = &u.state
    cdef const LatchGeometry *g = &u.lever
    cdef double uy = u.lever_dir[2 * k], uz = u.lever_dir[2 * k + 1]
    cdef double centre[3]
    cdef double force[3]
    cdef double f
    cdef Contact touch
    cdef bint bottomed
    cdef ProbeConeSensor *r = &u.record.sensor[k]
    head_point(head, R_TH, g.pivot_x + g.nose_x, g.pivot_rho + g.nose_rho, uy, uz, centre)
    if u.latches_held:
        s.lever_phase[k] = FREE
        s.lost.latch += s.lever_last[k]
        s.lever_angle[k] = s.lever_last[k] = 0.0
    elif s.lever_phase[k] != FIRED:
        s.lever_angle[k] = pressed_angle(&u.cone, u.entry_x, u.entry_radius, head.p, R_TH, uy, uz, g, s.lever_angle[k], &touch, &bottomed)
        s.lever_phase[k] = PRESSED if s.lever_angle[k] > 0.0 else FREE
        if centre[0] >= u.release_x:
            s.lever_phase[k] = FIRED
            s.lever_angle[k] = 0.0
            s.lost.latch += s.lever_last[k]
        elif s.lever_angle[k] > 0.0:
            f = latch_force(head.p, R_TH, uy, uz, g, s.lever_angle[k], &touch)
            vec3.scale(f, touch.n, force)
            apply_force(head, touch.r, force, sums)
            r.force = f
        s.lever_last[k] = s.lever_angle[k] * (g.torque_preload + 0.5 * g.torque_rate * s.lever_angle[k])
        u.record.stored.latch += s.lever_last[k]
    r.angle = s.lever_angle[k]
    r.phase = s.lever_phase[k]
    vec3.copy(centre, r.centre)


cdef void socket_friction(Unit *u, Body *head, Sums *sums) noexcept nogil:
    """Friction of a captured head and its levers along the socket, smooth at rest."""
    cdef double speed = head.v[0]
    cdef double friction = u.lever_friction / sqrt(speed * speed + 1e-6)
    cdef double axis[3]
    cdef double force[3]
    if friction > u.lever_viscous:
        friction = u.lever_viscous
    vec3.fill(1.0, 0.0, 0.0, axis)
    vec3.scale(friction * speed, axis, force)
    apply_force(head, head.p, force, sums)
    u.state.lost.friction += sums.h * friction * speed * speed


cdef inline bint all_fired(const int *phase, int n) noexcept nogil:
    cdef int k
    for k in range(n):
        if phase[k] != FIRED:
            return False
    return True


cdef void latch_contacts(Unit *u, Body *head, Sums *sums) noexcept nogil:
    """Latches and sensor levers of the head; the beam's end slope is 1.5 sin q, so the head frame is turned by another 1.5 sin q - q."""
    cdef State *s = &u.state
    cdef double s3, c3, s4, c4
    cdef double A[9]
    cdef double R_TH[9]
    cdef int k
    # far from the last cone nothing can touch
    if head.p[0] < u.last_cone_x - 3.0 * u.head_radius:
        for k in range(LATCHES):
            u.record.latch[k].phase = s.latch_phase[k]
        return
    sincos(1.5 * u.motion.sin_bend[0] - s.q[BEND_Y], &s3, &c3)
    sincos(1.5 * u.motion.sin_bend[1] - s.q[BEND_Z], &s4, &c4)
    # A = (Rz(dq4) Ry(dq3))^T maps the corrected head frame to the probe frame
    A[0] = c4 * c3; A[1] = -s4 * c3; A[2] = s3
    A[3] = s4; A[4] = c4; A[5] = 0.0
    A[6] = -c4 * s3; A[7] = s4 * s3; A[8] = c3
    rot3.multiply(head.R, A, R_TH)
    for k in range(LATCHES):
        one_latch(u, k, head, R_TH, sums)
    for k in range(LEVERS):
        one_lever(u, k, head, R_TH, sums)
    # captured: all latches in their grooves and all levers released
    if all_fired(s.lever_phase, LEVERS):
        if all_fired(s.latch_phase, LATCHES) and u.lever_dead == 0:
            u.signals |= MECHANISM_SIGNAL_DSG
        socket_friction(u, head, sums)
