# distutils: extra_compile_args = -O3
"""Where two ring units meet when the ring is drawn in: docking planes with pushers, guide pins in sockets, the nest of the ring.

Planes and pushers: contact.planes, the law of the central unit (Yaskevich 2020, 6.1). Pins with spherical ends against the cone, the edge
and the cylinder of their sockets: (5.5), by the primitive sphere in a cavity (5.2); they take out miss and roll. Reactions: (4.4). The text
gives a ring unit neither planes nor connectors: the places, the pins and the nest are of this project.

Nest: three seats under the ring. Before its latches close a seat only bears, f = k (x_nest - x) - c x' while the ring's place is below it.
When the drive has drawn the planes together, all places touching with the stated force between them, it is stopped and the latches hold
the ring where it is: f = -k (p_AP - p_AP') - c p_AP'' for each seat P, p_AP' its place at that moment.

Frames: A base, T target port, N ring; H the pose of the ring in which it is held.
"""

import numpy as np

from libc.string cimport memset

from rt_kernels.algebra.values cimport (
    Pose, Twist, Vec3, Wrench, add, apply, cross, mat_vec, mul, neg, put, rotate_back, sub, to_matrix, vec, wrench_of, wrench_sum, xyz,
)
from rt_kernels.contact.planes cimport PLACES, PlanePlace, fill_planes, plane_place
from rt_kernels.contact.primitives cimport Contact, prepare_profile, sphere_in_cavity
from rt_kernels.contact.reaction cimport Reaction, react
from rt_kernels.mechanisms.ring.planes_record cimport PlanesRecord
from rt_kernels.mechanisms.ring.platform cimport RingPose

from rt_kernels.contact.restitution import damping


cdef inline void push_apart(Pose X_TA, Vec3 p_TQ, Vec3 f, InterfaceTouch *out) noexcept nogil:
    # force f (T axes) on the target at p_TQ, its opposite on the base
    cdef Vec3 f_A = rotate_back(X_TA.q, neg(f)), p_AQ = rotate_back(X_TA.q, sub(p_TQ, X_TA.p))
    out.F_T = wrench_sum(out.F_T, wrench_of(f, cross(p_TQ, f)))
    out.F_A = wrench_sum(out.F_A, wrench_of(f_A, cross(p_AQ, f_A)))


cdef inline double press(const Interface *g, const Contact *c, Pose X_TA, Twist V_TA, InterfaceTouch *out) noexcept nogil:
    """Reaction at one contact of the base with the target, which rests in T. Returns the normal force."""
    cdef Vec3 p_TQ = vec(c.r), rest = xyz(0.0, 0.0, 0.0)
    cdef Vec3 v = add(V_TA.v, cross(V_TA.w, sub(p_TQ, X_TA.p)))
    cdef Reaction reaction
    react(&g.planes.law, c, &v.x, &rest.x, &reaction)
    push_apart(X_TA, p_TQ, vec(reaction.force), out)
    out.lost_power += reaction.damped_power + reaction.friction_power
    out.stored += 0.5 * g.planes.law.stiffness * c.depth * c.depth
    if c.depth > out.depth:
        out.depth = c.depth
    return reaction.normal


cdef void interface_touch(const Interface *g, Pose X_TA, Twist V_TA, InterfaceTouch *out) noexcept nogil:
    """Pushers, planes and pins with the base at X_TA."""
    cdef PlanePlace q
    cdef Contact found[4]
    cdef Vec3 centre
    cdef int i, j, n
    memset(out, 0, sizeof(InterfaceTouch))
    for i in range(PLACES):
        q = plane_place(&g.planes, i, X_TA.p, to_matrix(X_TA.q), V_TA, 0.0)
        out.gap[i] = q.gap
        out.push[i] = q.push
        if q.push > 0.0:
            push_apart(X_TA, q.p_TQ, xyz(q.push, 0.0, 0.0), out)
            out.stored += 0.5 * (q.push - q.damped) * q.squeeze
            out.lost_power += q.damped * q.rate
        if q.pressed:
            out.plane[i] = press(g, &q.contact, X_TA, V_TA, out)
            out.force += out.plane[i]
            out.pressed += 1
    for i in range(PINS):
        # spherical end in the socket's own frame: T moved to the mouth
        centre = sub(apply(X_TA, g.nose[i]), g.mouth[i])
        if centre.x + g.nose_radius <= 0.0:
            continue
        n = sphere_in_cavity(&g.socket, &centre.x, g.nose_radius, found, 4)
        for j in range(n):
            put(add(vec(found[j].r), g.mouth[i]), found[j].r)
            out.pin[i] += press(g, &found[j], X_TA, V_TA, out)


cdef Wrench nest_hold(const Interface *g, const InterfaceState *s, const RingPose *N, Wrench *W) noexcept nogil:
    """Forces of the seats: wrench on the ring about its centre, base axes; the one on the base, at its origin, added to W.
    N: ring in the base."""
    cdef Wrench F = wrench_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0))
    cdef Vec3 arm, p_AP, v, f
    cdef double depth
    cdef int i
    for i in range(SEATS):
        arm = mat_vec(N.R, g.seat[i])
        p_AP = add(N.p, arm)
        v = add(N.v, cross(N.w, arm))
        if s.held:
            f = add(mul(-g.nest_stiffness, sub(p_AP, apply(s.X_AH, g.seat[i]))), mul(-g.nest_damping, v))
        else:
            depth = g.nest_x - p_AP.x
            f = xyz(g.nest_stiffness * depth - g.nest_damping * v.x, 0.0, 0.0)
            if depth <= 0.0 or f.x <= 0.0:
                continue
        F = wrench_sum(F, wrench_of(f, cross(arm, f)))
        W.f = sub(W.f, f)
        W.m = sub(W.m, cross(p_AP, f))
    return F


cdef void interface_account(const Interface *g, InterfaceState *s, const InterfaceTouch *touch, Pose X_AN, bint drawing,
                            double h) noexcept nogil:
    """Losses of a sub-step; the nest's latches close when the running drive has pressed the planes together: not in the blow of their
    closing."""
    s.lost += h * touch.lost_power
    if touch.depth > s.depth_peak:
        s.depth_peak = touch.depth
    s.pressed = s.pressed + h if touch.pressed == PLACES and touch.force >= g.preload else 0.0
    if drawing and not s.held and not g.latches_dead and s.pressed >= g.press:
        s.held = 1
        s.X_AH = X_AN


cdef void interface_report(const Interface *g, const InterfaceState *s, Pose X_TA, Twist V_TA, PlanesRecord *record) noexcept nogil:
    """Channels, with the base at the end of the tick."""
    cdef InterfaceTouch now
    cdef int i
    interface_touch(g, X_TA, V_TA, &now)
    for i in range(PLACES):
        record.place[i].gap = now.gap[i]
        record.place[i].force = now.plane[i]
        record.place[i].pusher = now.push[i]
    for i in range(PINS):
        record.pin_force[i] = now.pin[i]
    record.plane_force = now.force
    record.plane_depth = now.depth
    record.nest_held = s.held
    record.stored_planes = now.stored
    record.lost_planes = s.lost
    record.given_to_nest = s.given_to_nest


# ------------------------------------------------------------------------------- set-up


def socket_profile(mouth, bore, depth, land):
    """Meridian (x, rho) of a pin's socket: land around the mouth, cone of 45 deg, cylinder of radius `bore`, bottom at `depth`. All m."""
    return np.array([[0.0, mouth + land], [0.0, mouth], [mouth - bore, bore], [depth, bore], [depth, 0.0]])


cdef void fill_interface(object t, Interface *g) except *:
    """Constants from a table of RING_PARAMETERS; without its key `plane_x_m` the unit has no interface."""
    cdef int i
    memset(g, 0, sizeof(Interface))
    g.fitted = t["plane_x_m"] is not None
    if not g.fitted:
        return
    fill_planes(&g.planes, t, damping(t["plane_stiffness_n_per_m"], t["plane_mass_kg"] / PLACES, t["plane_restitution"]), 0.0)
    g.depth_limit, g.preload, g.press = t["plane_depth_max_m"], t["plane_preload_n"], t["plane_press_s"]
    g.latches_dead = t["nest_latches_dead"]
    bore, mouth = t["pin_nose_radius_m"] + t["pin_clearance_m"], t["socket_mouth_m"]
    if not mouth > bore or not t["pin_length_m"] > mouth - bore:
        raise ValueError(f"socket_mouth_m: {mouth} m, must be > {bore:.4f} m, the cylinder of the socket, and its cone shorter than "
                         f"pin_length_m ({t['pin_length_m']} m)")
    g.nose_radius = t["pin_nose_radius_m"]
    for i in range(PINS):
        side = t["pusher_radius_m"] * (1 if i == 0 else -1) * float(np.sqrt(0.5))
        g.nose[i] = xyz(t["plane_x_m"] + t["pin_length_m"] - t["pin_nose_radius_m"], side, side)
        g.mouth[i] = xyz(0.0, side, side)
    profile = socket_profile(mouth, bore, t["pin_length_m"] + 0.01, mouth)
    g.socket.count = len(profile)
    for i in range(g.socket.count):
        g.socket.x[i], g.socket.rho[i] = profile[i]
    prepare_profile(&g.socket)
    g.nest_x, g.nest_stiffness, g.nest_damping = t["nest_x_m"], t["nest_stiffness_n_per_m"], t["nest_damping_n_s_per_m"]
    if not g.nest_x < g.planes.x:
        raise ValueError(f"nest_x_m: {g.nest_x} m, must be < plane_x_m ({g.planes.x} m): the ring lies behind the docking plane")
    for i in range(SEATS):
        azimuth = 2.0 * np.pi * i / SEATS
        g.seat[i] = xyz(0.0, t["ring_joint_radius_m"] * np.cos(azimuth), t["ring_joint_radius_m"] * np.sin(azimuth))


cdef class RingInterface:
    """Planes, pushers and pins on arrays, for tests: from the parameter table of a ring unit (keys with units)."""

    cdef Interface interface

    def __init__(self, table):
        fill_interface(table, &self.interface)
        if not self.interface.fitted:
            raise ValueError("plane_x_m: without it a ring unit has no interface")

    @property
    def plane_damping(self):
        """Damper of one place of the planes [N.s/m]."""
        return self.interface.planes.law.damping

    def touch(self, X_TA, V_TA=(0, 0, 0, 0, 0, 0)):
        """dict of F_T (6,), F_A (6,), stored [J], lost_power [W], force [N], gaps (4,), pushers (4,), pins (2,) with the base at X_TA (7,)
        and its twist V_TA (6,)."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, dtype=float)
        cdef double[::1] V = np.ascontiguousarray(V_TA, dtype=float)
        cdef InterfaceTouch out
        cdef int i
        interface_touch(&self.interface, (<Pose *> &X[0])[0], (<Twist *> &V[0])[0], &out)
        return {"F_T": np.array([(<double *> &out.F_T)[i] for i in range(6)]),
                "F_A": np.array([(<double *> &out.F_A)[i] for i in range(6)]),
                "stored": out.stored, "lost_power": out.lost_power, "force": out.force, "depth": out.depth,
                "gaps": np.array([out.gap[i] for i in range(PLACES)]), "pushers": np.array([out.push[i] for i in range(PLACES)]),
                "pins": np.array([out.pin[i] for i in range(PINS)])}
