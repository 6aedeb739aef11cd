"""Sequence of operation and cable retraction of the elastic-adaptive mechanism. Equations: elastic_retraction.pyx."""

from libc.math cimport sqrt

from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3

cdef enum:
    CABLES = 3
    STRUTS = 6

cdef enum Phase:
    RETRACTED = 0
    EXTENDING = 1
    READY = 2
    THROWN = 3          # "CONTACT" of the text: the ring is on its way forward
    CAPTURED = 4
    RETRACTING = 5
    DONE = 6


cdef struct Sequencer:
    double ready_stroke           # stroke of the initial position
    double ready_stroke_min       # below it the switch of the initial position opens
    double retract_delay          # s
    double drive_rate             # rad/s
    double gear_cam_max           # rad


cdef struct SequencerState:
    int phase
    int blocked[STRUTS]
    int in_position[STRUTS]
    double time                   # in this phase, s
    double drive_command          # rad/s


cdef struct Retraction:
    double drum[CABLES][3]        # take-off points in the base
    double eye[CABLES][3]         # cable ends in the ring
    double length_in[CABLES]      # free length with the planes mated
    double roll_radius
    double gear_ratio
    double cam_gap                # dphi_Cam
    double stiffness              # cable and flexible shaft in series
    double shaft_share            # of the tension to the gear cam angle: R_Roll / (i_G^2 k_FS)
    double damping
    double drive_gain             # N m s/rad
    double drive_inertia
    double efficiency


cdef struct Cable:
    double length
    double length_join
    double phi_join
    double tension
    double cam                    # phi_CamR
    int joined


cdef struct RetractionState:
    Cable cable[CABLES]
    double phi                    # drive angle, positive pays out
    double omega
    double load                   # on the drive, N m


cdef inline void sequence(const Sequencer *q, SequencerState *s, const double *stroke, const bint *aligned, bint extend, double gear_cam,
                          bint mated, double dt) noexcept nogil:
    """One step of the controller: switches, sensors and timers to clutches and drive."""
    cdef int k, ready = 0, lost = 0, before = s.phase
    cdef bint all_aligned = aligned[0] and aligned[1] and aligned[2]
    for k in range(STRUTS):
        s.in_position[k] = stroke[k] >= q.ready_stroke_min
        if not s.in_position[k]:
            lost += 1
    s.time += dt
    if s.phase == RETRACTED:
        block_all(s, 1)
        s.drive_command = 0.0
        if extend:
            s.phase = EXTENDING
            block_all(s, 0)
    elif s.phase == EXTENDING:
        s.drive_command = q.drive_rate
        for k in range(STRUTS):
            if stroke[k] >= q.ready_stroke:
                s.blocked[k] = 1
            ready += s.blocked[k]
        if ready == STRUTS:
            s.phase = READY
    elif s.phase == READY:
        s.drive_command = q.drive_rate if gear_cam < q.gear_cam_max else 0.0
        if all_aligned:
            s.phase = CAPTURED
        elif lost > 0:
            s.phase = THROWN
            block_all(s, 0)
    elif s.phase == THROWN:
        s.drive_command = 0.0
        if all_aligned:
            s.phase = CAPTURED
            block_all(s, 1)
    elif s.phase == CAPTURED:
        s.drive_command = 0.0
        if s.time >= q.retract_delay:
            s.phase = RETRACTING
    elif s.phase == RETRACTING:
        s.drive_command = -q.drive_rate
        if mated:
            s.phase = DONE
    else:
        s.drive_command = 0.0
    if s.phase != before:
        s.time = 0.0


cdef inline void block_all(SequencerState *s, int blocked) noexcept nogil:
    cdef int k
    for k in range(STRUTS):
        s.blocked[k] = blocked


cdef inline void pull(const Retraction *r, RetractionState *s, const double *p_0N, const double *R_0N, const double *v_N, const double *w_N,
                      double *F_ring, double *W) noexcept nogil:
    """Cable tensions of a pose; adds to the wrench on the ring (about its centre, base axes) and on the base (at its origin)."""
    cdef double eye[3]
    cdef double n[3]
    cdef double v[3]
    cdef double t[3]
    cdef double gear = s.phi / r.gear_ratio
    cdef double gear_rate = s.omega / r.gear_ratio
    cdef double stretch
    cdef Cable *c
    cdef int i
    s.load = 0.0
    for i in range(CABLES):
        c = &s.cable[i]
        rot3.apply(R_0N, r.eye[i], eye)
        vec3.add(p_0N, eye, n)
        vec3.sub(n, r.drum[i], n)
        c.length = vec3.norm(n)
        vec3.scale(1.0 / c.length, n, n)
        c.cam = (c.length - r.length_in[i]) / r.roll_radius
        c.tension = 0.0
        # joined while the gear cam, through the intermediate one, touches the drum cam (7.5.1)
        if gear < c.cam + 2.0 * r.cam_gap:
            if not c.joined:
                c.joined = 1
                c.length_join = c.length
                c.phi_join = gear
            stretch = (c.length - c.length_join) - r.roll_radius * (gear - c.phi_join)
            vec3.cross(w_N, eye, v)
            vec3.add(v_N, v, v)
            c.tension = r.stiffness * stretch + r.damping * (vec3.dot(n, v) - r.roll_radius * gear_rate)
            if c.tension < 0.0 or stretch <= 0.0:
                c.tension = 0.0
            vec3.add_scaled(F_ring, -c.tension, n, F_ring)
            vec3.cross(eye, n, t)
            vec3.add_scaled(F_ring + 3, -c.tension, t, F_ring + 3)
            vec3.add_scaled(W, c.tension, n, W)
            vec3.cross(r.drum[i], n, t)
            vec3.add_scaled(W + 3, c.tension, t, W + 3)
            s.load += c.tension * r.roll_radius / (r.gear_ratio * r.efficiency)
        else:
            c.joined = 0


cdef inline void drive_step(const Retraction *r, RetractionState *s, double command, double dt) noexcept nogil:
    """Speed-controlled drive, implicit; the planetary gears lock it when it stands, and tension only brakes winding in."""
    if command == 0.0:
        s.omega = 0.0
        return
    s.omega = (s.omega + dt / r.drive_inertia * (r.drive_gain * command + (s.load if command < 0.0 else 0.0))) / (
        1.0 + dt * r.drive_gain / r.drive_inertia)
    if s.omega * command < 0.0:
        s.omega = 0.0
    s.phi += dt * s.omega


# set-up, with the interpreter
cdef void fill_retraction(object t, object p_eyes, Retraction *r, Sequencer *q) except *
