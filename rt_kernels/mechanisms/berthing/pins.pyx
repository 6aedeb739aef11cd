"""Manual-type berthing unit with two guide pins and a lock (USA, active; USP, target).

Source: Yaskevich 2020 (5.5), (8.4), corrected: velocities of pins and lock contain w x l (not printed for the pins).

Frames: T target port, X into the sockets, docking plane x = 0; A active base with the same axes when mated, its plane at x = 0 of A.
Sockets of the pins at (0, -pin_offset, 0) and (0, +pin_offset, 0), the lock's socket on X. Pin ends: spheres against cone, edge, cylinder
(one profile each).
Lock face: a torus about X of A, a family of 2^N + 1 spheres in four or eight sectors with common ends; the deepest by halving against every
face and edge of the profile of the lock's socket. One velocity for the whole torus (arm of a few millimetres).
Pin cylinders in the socket cylinders are not modelled.
Spring-ball lock: resists insertion between two depths of the torus; capture when the lock is deeper than the roller exit; after it only a
one-sided force along X pulls back (the lock can move along the cylinder only). Planes: four points of the active plane against x = 0.
Command bit 2 releases the lock.
Energy ledger: supplied = stored (contacts, lock) + lost (contact damping, friction, spring ball, lock when released); nothing else moves.
"""

import numpy as np

from libc.math cimport sqrt
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Mat3, Pose, Twist, Vec3, Wrench, add, cross, dot, mat_vec, neg, pose, put, put_wrench, quat, sub,
                                        to_matrix, twist, vec, wrench_of, wrench_to_child, xyz)
from rt_kernels.codes cimport (MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DK2, MECHANISM_SIGNAL_DSG,
                               MECHANISM_STATUS_OUT_OF_RANGE)
from rt_kernels.contact.primitives cimport Contact, FACE, Profile, deepest_of_family, prepare_profile, sphere_in_cavity
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react
from rt_kernels.mechanisms.berthing.pins_record cimport PinsRecord
from rt_kernels.mechanisms.berthing.shared cimport add_wrench
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.mechanisms.berthing.pins_picture import BerthingPinsPicture
from rt_kernels.mechanisms.berthing.pins_record import AUX
from rt_kernels.mechanisms.berthing.parameters import contact_parameters, number
from rt_kernels.parameters import Parameter, checked

cdef enum:
    SPHERES = 257
    PLANE = 100                           # index of the first contact of the docking planes


cdef struct PinParams:
    Profile pin_socket                    # coaxial with its own axis
    Profile lock_socket
    double pin_offset
    double pin_x, pin_radius              # centre of the spherical end in A
    double lock_x                         # torus centre in A
    double torus_radius, tube_radius
    int levels
    double circle[SPHERES][2]             # y, z of the sphere centres
    double entry_sin, entry_cos           # normal of the entry cone
    double cylinder_x                     # where the lock's cylinder begins
    double ball_begin, ball_end, ball_force
    double roller_exit                    # depth of the torus centre at capture
    double lock_stiffness
    double plane[4][2]
    ContactLaw law
    double depth_limit

cdef struct PinState:
    double time
    double contact_time
    double cylinder_time                  # lock in its cylinder
    double capture_time
    double plane_time                     # docking planes touch
    double locked
    double depth_peak
    double supplied                       # work of the target, moved against the base, J
    double lost[3]                        # contact damping, friction, ball and lock, J
    double lock_energy                    # of the stretched lock, J

cdef struct PinSelf:
    PinParams p
    PinState s

cdef struct TorusFamily:
    const PinParams *p
    Vec3 centre
    Mat3 R
    double s, c                           # direction of the measure in the meridian
    int edge                              # vertex of the socket's profile whose distance is measured, 0: a direction
    int first


cdef inline Vec3 torus_sphere(const TorusFamily *f, int i) noexcept nogil:
    return add(f.centre, mat_vec(f.R, xyz(0.0, f.p.circle[i][0], f.p.circle[i][1])))


cdef double torus_measure(const void *family, int i) noexcept nogil:
    # how far a sphere reaches along the outward normal of a face of the socket, or how near it is to one of its edges
    cdef const TorusFamily *f = <const TorusFamily *> family
    cdef Vec3 P = torus_sphere(f, f.first + i)
    cdef double rho = sqrt(P.y * P.y + P.z * P.z)
    cdef double x
    if f.edge == 0:
        return f.s * P.x + f.c * rho
    x = P.x - f.p.lock_socket.x[f.edge]
    rho -= f.p.lock_socket.rho[f.edge]
    return -(x * x + rho * rho)


cdef inline int torus_contacts(const PinParams *p, Vec3 centre, Mat3 R, Contact *out) noexcept nogil:
    """Deepest sphere of the torus against the lock's socket: rim plane, mouth edge, cone, its inner edge, cylinder; at most 4 contacts.

    Of contacts on the same side (normals less than a right angle apart) only the deepest counts: one region, one point.
    """
    cdef TorusFamily family
    cdef Contact touch[3]
    cdef Vec3 P
    cdef double value, best
    cdef int sector, depth, i, j, k, n, face, halvings, found = 0
    # before the rim plane: nothing can touch
    if centre.x < -p.torus_radius - p.tube_radius:
        return 0
    family.p = p
    family.centre = centre
    family.R = R
    for face in range(5):
        family.edge = face - 2 if face > 2 else 0
        family.s = 1.0 if face == 0 else (p.entry_sin if face == 1 else 0.0)
        family.c = 0.0 if face == 0 else (p.entry_cos if face == 1 else 1.0)
        best = -1e9
        k = 0
        # sectors so small that the measure has one maximum in each
        depth = 3 if face > 2 else 2
        for sector in range(1 << depth):
            family.first = sector << (p.levels - depth)
            i = deepest_of_family(torus_measure, &family, p.levels - depth, True, &value, &halvings)
            if value > best:
                best = value
                k = family.first + i
        P = torus_sphere(&family, k)
        n = sphere_in_cavity(&p.lock_socket, &P.x, p.tube_radius, touch, 3)
        for i in range(n):
            for j in range(found):
                if dot(vec(out[j].n), vec(touch[i].n)) > 1e-9:
                    if touch[i].depth > out[j].depth:
                        out[j] = touch[i]
                    break
            else:
                if found < 4:
                    out[found] = touch[i]
                    found += 1
    return found


cdef inline int pin_contacts(const PinParams *p, Vec3 p_TA, Mat3 R, Contact *out) noexcept nogil:
    """Pins, lock and planes; at most 14 contacts, in T."""
    cdef Vec3 c
    cdef double offset
    cdef int k, i, n, found = 0
    for k in range(2):
        offset = p.pin_offset if k else -p.pin_offset
        c = add(p_TA, mat_vec(R, xyz(p.pin_x, offset, 0.0)))
        # into the axes of its own socket and back
        c.y -= offset
        n = sphere_in_cavity(&p.pin_socket, &c.x, p.pin_radius, out + found, 3)
        for i in range(n):
            out[found + i].r[1] += offset
        found += n
    found += torus_contacts(p, add(p_TA, mat_vec(R, xyz(p.lock_x, 0.0, 0.0))), R, out + found)
    for k in range(4):
        c = add(p_TA, mat_vec(R, xyz(0.0, p.plane[k][0], p.plane[k][1])))
        if c.x > 0.0:
            out[found].depth = c.x
            put(xyz(1.0, 0.0, 0.0), out[found].n)
            put(c, out[found].r)
            out[found].kind = FACE
            out[found].index = PLANE + k
            found += 1
    return found


cdef inline void add_contacts(const PinParams *p, PinState *s, const MechanismInput *inp, const Contact *found, int n, Wrench *F_T,
                              double *stored) noexcept nogil:
    """Wrench of the contacts on the target, T axes, their share of the ledger, the greatest penetration."""
    cdef Vec3 p_TA = vec(inp.X_TA), v, zero = xyz(0.0, 0.0, 0.0)
    cdef Twist V_TA = twist(inp.V_TA)
    cdef Reaction reaction
    cdef int i
    for i in range(n):
        v = add(V_TA.v, cross(V_TA.w, sub(vec(found[i].r), p_TA)))
        react(&p.law, &found[i], &v.x, &zero.x, &reaction)
        add_wrench(vec(reaction.force), vec(found[i].r), 1.0, F_T)
        s.lost[0] += inp.dt * reaction.damped_power
        s.lost[1] += inp.dt * reaction.friction_power
        stored[0] += 0.5 * p.law.stiffness * found[i].depth * found[i].depth
        if found[i].depth > s.depth_peak:
            s.depth_peak = found[i].depth


cdef inline double lock_along(const PinParams *p, PinState *s, const MechanismInput *inp, Mat3 R, Vec3 *torus, Wrench *F_T,
                              double *stored) noexcept nogil:
    """Spring ball and lock: their force along X on the target [N], added to F_T; `torus` gets the centre of the torus in T."""
    cdef Vec3 arm = mat_vec(R, xyz(p.lock_x, 0.0, 0.0))
    # depth of the torus centre along X, and its speed
    cdef double depth, slide = inp.V_TA[0] + cross(vec(inp.V_TA + 3), arm).x, force = 0.0
    torus[0] = add(vec(inp.X_TA), arm)
    depth = torus.x
    if inp.commands & MECHANISM_COMMAND_RELEASE:
        s.locked = 0.0
        s.lost[2] += s.lock_energy
    elif s.locked == 0.0 and depth >= p.roller_exit:
        s.locked = 1.0
    if s.locked == 0.0 and p.ball_begin < depth < p.ball_end:
        # the spring ball resists insertion and withdrawal alike: bounded, smooth at zero speed
        force = p.ball_force * slide / sqrt(slide * slide + p.law.slip_speed * p.law.slip_speed)
        s.lost[2] += inp.dt * force * slide
    elif s.locked != 0.0 and depth < p.roller_exit:
        force = p.lock_stiffness * (depth - p.roller_exit)
    s.lock_energy = -0.5 * force * (p.roller_exit - depth) if s.locked != 0.0 else 0.0
    stored[0] += s.lock_energy
    if force != 0.0:
        add_wrench(xyz(force, 0.0, 0.0), torus[0], 1.0, F_T)
    return force


cdef inline void pin_events(const PinParams *p, PinState *s, double dt, int contacts, int planes, Vec3 torus,
                            MechanismOutput *out) noexcept nogil:
    """First times of the events, signals, status, analogue values."""
    cdef int i
    s.time += dt
    if contacts > 0 and s.contact_time < 0.0:
        s.contact_time = s.time
    if (s.cylinder_time < 0.0 and torus.x > p.cylinder_x
            and torus.y * torus.y + torus.z * torus.z < p.lock_socket.rho[2] * p.lock_socket.rho[2]):
        s.cylinder_time = s.time
    if s.capture_time < 0.0 and s.locked != 0.0:
        s.capture_time = s.time
    if s.plane_time < 0.0 and planes > 0:
        s.plane_time = s.time
    out.signals = 0
    if s.contact_time >= 0.0:
        out.signals |= MECHANISM_SIGNAL_DK1
    if s.locked != 0.0:
        out.signals |= MECHANISM_SIGNAL_DSG
    if planes > 0:
        out.signals |= MECHANISM_SIGNAL_DK2
    out.status = MECHANISM_STATUS_OUT_OF_RANGE if s.depth_peak > p.depth_limit else 0
    for i in range(8):
        out.analog[i] = 0.0
    out.analog[0] = torus.x


cdef void pin_advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef PinSelf *m = <PinSelf *> self
    cdef const PinParams *p = &m.p
    cdef PinState *s = &m.s
    cdef PinsRecord *record = <PinsRecord *> aux
    cdef Contact found[16]
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA)
    cdef Mat3 R = to_matrix(X_TA.q)
    cdef Vec3 torus
    cdef Wrench F_T
    cdef double stored = 0.0
    cdef int i, n, planes = 0
    memset(&F_T, 0, sizeof(F_T))
    n = pin_contacts(p, X_TA.p, R, found)
    for i in range(n):
        planes += found[i].index >= PLANE
    add_contacts(p, s, inp, found, n, &F_T, &stored)
    record.lock_force = lock_along(p, s, inp, R, &torus, &F_T, &stored)
    # work of the target, whose surface moves at -V relative to the base
    s.supplied += inp.dt * (dot(F_T.f, sub(V_TA.v, cross(V_TA.w, X_TA.p))) + dot(F_T.m, V_TA.w))
    put_wrench(F_T, out.F_T)
    # no moving part has mass: the base gets the opposite
    put_wrench(wrench_to_child(X_TA, wrench_of(neg(F_T.f), neg(F_T.m))), out.F_A)
    pin_events(p, s, inp.dt, n, planes, torus, out)
    record.lock_depth = torus.x
    record.contacts = n
    record.depth_peak = s.depth_peak
    record.first_contact_time = s.contact_time
    record.cylinder_time = s.cylinder_time
    record.capture_time = s.capture_time
    record.plane_time = s.plane_time
    record.energy_supplied = s.supplied
    record.energy_stored = stored
    record.energy_lost_contact = s.lost[0]
    record.energy_lost_friction = s.lost[1]
    record.energy_lost_lock = s.lost[2]


cdef void fill_socket(Profile *profile, double mouth, double entry, double cone, double depth, double rim) noexcept:
    # rim plane x = 0, cone from the mouth to the cylinder, bottom
    profile.count = 5
    profile.x[0], profile.rho[0] = 0.0, rim
    profile.x[1], profile.rho[1] = 0.0, mouth
    profile.x[2], profile.rho[2] = cone, entry
    profile.x[3], profile.rho[3] = depth, entry
    profile.x[4], profile.rho[4] = depth, 0.0
    prepare_profile(profile)


cdef class BerthingPins(MechanismPart):
    """Berthing unit of two guide pins and a lock (Yaskevich 2020, 5.5: USA/USP)."""

    PARAMETERS = (
        number("pin_offset_m", "m", "pins from the lock along Y", 1e-3, 2.0, default=0.260),
        number("pin_centre_x_m", "m", "centre of a pin's spherical end before the active plane", 0.0, 1.0),
        number("pin_radius_m", "m", "of the spherical end", 1e-3, 0.2),
        number("pin_mouth_radius_m", "m", "mouth of a pin's cone", 1e-3, 0.5),
        number("pin_socket_radius_m", "m", "cylinder of a pin's socket", 1e-3, 0.5),
        number("pin_cone_depth_m", "m", "mouth to cylinder", 1e-3, 0.5),
        number("pin_socket_depth_m", "m", "mouth to bottom", 1e-3, 1.0),
        number("lock_centre_x_m", "m", "torus centre before the active plane", 0.0, 1.0),
        number("torus_radius_m", "m", "centre line of the torus", 1e-4, 0.1, default=0.005),
        number("tube_radius_m", "m", "spheres of the torus", 1e-4, 0.1),
        number("lock_mouth_radius_m", "m", "mouth of the lock's entry cone", 1e-3, 0.5),
        number("lock_socket_radius_m", "m", "cylinder of the lock's socket", 1e-3, 0.5),
        number("lock_cone_depth_m", "m", "mouth to cylinder", 1e-3, 0.5),
        number("lock_socket_depth_m", "m", "mouth to bottom", 1e-3, 1.0),
        number("plane_radius_m", "m", "rim plane around each mouth", 1e-3, 1.0),
        Parameter("plane_points_m", "rows", "m", "four points of the active plane: rows [y, z]", low=-2.0, high=2.0),
        Parameter("levels", "int", "-", "N: 2^N + 1 spheres of the torus", default=8, low=4, high=8),
        number("ball_begin_m", "m", "depth of the torus centre at which the spring ball begins to resist", 0.0, 1.0),
        number("ball_end_m", "m", "depth at which it ends", 0.0, 1.0),
        number("ball_force_n", "N", "its resistance", 0.0, 1e5),
        number("roller_exit_m", "m", "depth of capture", 0.0, 1.0),
        number("lock_stiffness_n_per_m", "N/m", "one-sided lock along X", 1.0, 1e9),
        *contact_parameters(effective_mass_kg=100.0),
    )
    PICTURE = BerthingPinsPicture
    AUX = AUX
    LEDGER = ("energy_supplied", ("energy_stored", "energy_lost_contact", "energy_lost_friction", "energy_lost_lock"))

    cdef PinSelf m

    def __init__(self, **given):
        t = checked(BerthingPins.PARAMETERS, given)
        memset(&self.m, 0, sizeof(PinSelf))
        cdef PinParams *p = &self.m.p
        cdef int i
        for name in ("pin", "lock"):
            mouth, entry, cone, depth = (t[f"{name}_{key}_m"] for key in ("mouth_radius", "socket_radius", "cone_depth", "socket_depth"))
            if not entry < mouth < t["plane_radius_m"]:
                raise ValueError(f"{name}_mouth_radius_m: {mouth} m, must lie between {name}_socket_radius_m and plane_radius_m")
            if not cone < depth:
                raise ValueError(f"{name}_cone_depth_m: {cone} m, must be < {name}_socket_depth_m ({depth} m)")
            fill_socket(&p.pin_socket if name == "pin" else &p.lock_socket, mouth, entry, cone, depth, t["plane_radius_m"])
        if not t["tube_radius_m"] + t["torus_radius_m"] < t["lock_socket_radius_m"]:
            raise ValueError(f"tube_radius_m: {t['tube_radius_m']} m, "
                             f"the torus does not fit lock_socket_radius_m ({t['lock_socket_radius_m']} m)")
        p.pin_offset, p.pin_x, p.pin_radius = t["pin_offset_m"], t["pin_centre_x_m"], t["pin_radius_m"]
        p.lock_x, p.torus_radius, p.tube_radius = t["lock_centre_x_m"], t["torus_radius_m"], t["tube_radius_m"]
        p.levels = t["levels"]
        for i in range((1 << p.levels) + 1):
            azimuth = 2.0 * np.pi * i / (1 << p.levels)
            p.circle[i][0], p.circle[i][1] = p.torus_radius * np.cos(azimuth), p.torus_radius * np.sin(azimuth)
        slope = np.arctan2(t["lock_mouth_radius_m"] - t["lock_socket_radius_m"], t["lock_cone_depth_m"])
        p.entry_sin, p.entry_cos = np.sin(slope), np.cos(slope)
        p.cylinder_x = t["lock_cone_depth_m"]
        p.ball_begin, p.ball_end, p.ball_force = t["ball_begin_m"], t["ball_end_m"], t["ball_force_n"]
        if not p.ball_begin < p.ball_end <= t["roller_exit_m"]:
            raise ValueError(f"ball_end_m: {p.ball_end} m, needed ball_begin_m < ball_end_m <= roller_exit_m")
        p.roller_exit, p.lock_stiffness = t["roller_exit_m"], t["lock_stiffness_n_per_m"]
        plane = np.asarray(t["plane_points_m"], dtype=float)
        if plane.shape != (4, 2):
            raise ValueError(f"plane_points_m: shape {plane.shape}, four rows of two needed")
        for i in range(4):
            p.plane[i][0], p.plane[i][1] = plane[i]
        p.law.stiffness, p.law.damping, p.law.ramp = t["contact_stiffness_n_per_m"], t["contact_damping_n_s_per_m"], t["contact_ramp_m"]
        p.law.friction, p.law.slip_speed = t["friction"], t["slip_speed_m_s"]
        p.law.viscous_limit = 0.5 * t["effective_mass_kg"] / 1e-3
        p.depth_limit = t["depth_limit_m"]
        self.m.s.contact_time = self.m.s.cylinder_time = self.m.s.capture_time = self.m.s.plane_time = -1.0
        self.plug.self = &self.m
        self.plug.state = &self.m.s
        self.plug.state_size = sizeof(PinState)
        self.plug.advance = pin_advance

    def state_fields(self):
        return self.m.s

    def contacts(self, X_TA):
        """List of (depth, n, r, index) with the base at X_TA (7,); index >= 100: docking planes."""
        cdef double X[7]
        cdef Contact found[16]
        cdef int i, n
        for i in range(7):
            X[i] = X_TA[i]
        n = pin_contacts(&self.m.p, vec(X), to_matrix(quat(X + 3)), found)
        return [(found[i].depth, np.array([found[i].n[k] for k in range(3)]), np.array([found[i].r[k] for k in range(3)]), found[i].index)
                for i in range(n)]

    def max_penetration(self, X_TA):
        """Deepest penetration [m] with the base at X_TA (7,); -1 without contact."""
        return max((c[0] for c in self.contacts(X_TA)), default=-1.0)
