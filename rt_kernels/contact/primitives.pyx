# distutils: extra_compile_args = -O1
"""`def` wrappers of the contact kernels: arrays in, arrays out, for tests, first-contact search and offline use.

Equations, frames and sources are in `primitives.pxd`, `reaction.pxd` and `latches.pxd`; the wrappers call the same inline steps.
"""


import numpy as np

from rt_kernels.algebra.values cimport Vec3, mat, put, vec, xyz
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react
from rt_kernels.contact.latches cimport (
    Groove, HeadPlane, LatchGeometry, inside_groove, latch_force, latch_in_groove, latch_penetration, pressed_angle,
)


cdef _vector(value, str name):
    array = np.ascontiguousarray(value, dtype=float)
    if array.shape != (3,) or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be three finite numbers, got {value!r}")
    return array


cdef int _fill_profile(vertices, Profile *p) except -1:
    rows = np.asarray(vertices, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != 2 or not 2 <= rows.shape[0] <= MAX_VERTICES or not np.all(np.isfinite(rows)):
        raise ValueError(f"profile must be 2 to {MAX_VERTICES} rows (x, rho) of finite numbers, got shape {rows.shape}")
    if np.any(np.hypot(*np.diff(rows, axis=0).T) < 1e-9):
        raise ValueError("profile has two neighbouring vertices in the same place (closer than 1e-9 m)")
    if np.any(rows[:, 1] < 0.0):
        raise ValueError("profile has a negative radius")
    cdef int i
    p.count = rows.shape[0]
    for i in range(p.count):
        p.x[i] = rows[i, 0]
        p.rho[i] = rows[i, 1]
    prepare_profile(p)
    return 0


cdef _record(const Contact *c):
    return {"depth": c.depth, "n": np.array([c.n[0], c.n[1], c.n[2]]), "r": np.array([c.r[0], c.r[1], c.r[2]]), "kind": c.kind,
            "index": c.index}


cdef class Cavity:
    """Cavity of revolution about X, given by its meridian `vertices` (x, rho) in m from the outer rim to the middle of the bottom.

    Raises ValueError for a wrong shape, a negative radius or two vertices in one place.
    """

    cdef Profile profile

    def __cinit__(self, vertices):
        _fill_profile(vertices, &self.profile)

    def convex(self):
        """For every vertex: does it stick out into the cavity?"""
        return [bool(self.profile.convex[i]) for i in range(self.profile.count)]

    def sphere(self, centre, double radius):
        """Contacts of a sphere: list of dict(depth [m], n [3], r [3] m, kind, index); radius 0 is a point."""
        if not radius >= 0.0:
            raise ValueError(f"radius must be at least 0 m, got {radius}")
        cdef double[::1] c = _vector(centre, "centre")
        cdef Contact found[MAX_VERTICES]
        cdef int i, n = sphere_in_cavity(&self.profile, &c[0], radius, found, MAX_VERTICES)
        return [_record(&found[i]) for i in range(n)]

    def spheres(self, centres, double radius):
        """Deepest contact of each centre (n, 3): array (n, 9) of depth (0: none), n, r, kind, index."""
        cdef double[:, ::1] c = np.ascontiguousarray(centres, dtype=float)
        out = np.zeros((c.shape[0], 9))
        cdef double[:, ::1] o = out
        cdef Contact found[MAX_VERTICES]
        cdef int i, j, k, n
        for i in range(c.shape[0]):
            n = sphere_in_cavity(&self.profile, &c[i, 0], radius, found, MAX_VERTICES)
            for j in range(n):
                if found[j].depth > o[i, 0]:
                    o[i, 0] = found[j].depth
                    for k in range(3):
                        o[i, 1 + k] = found[j].n[k]
                        o[i, 4 + k] = found[j].r[k]
                    o[i, 7] = found[j].kind
                    o[i, 8] = found[j].index
        return out


def segment_with_circle(P1, L, centre, axis, double radius, bint active_is_line=True, int refinements=0):
    """Segment P1 + t L [m] against a circle (centre [m], axis, radius [m]): dict(depth, n, r, kind, index) or None.

    `refinements` 0 is the form of Yaskevich 2020 (5.2); 3 give the exact distance. The axis is normalised.
    """
    cdef double[::1] p = _vector(P1, "P1")
    cdef double[::1] l = _vector(L, "L")
    cdef double[::1] c = _vector(centre, "centre")
    unit = _vector(axis, "axis")
    length = float(np.linalg.norm(unit))
    if length == 0.0 or not radius > 0.0:
        raise ValueError(f"axis must not be zero and radius must be above 0 m, got {axis!r} and {radius}")
    cdef double[::1] a = unit / length
    cdef Contact out
    if segment_circle(&p[0], &l[0], &c[0], &a[0], radius, active_is_line, refinements, &out):
        return _record(&out)
    return None


def segment_with_segment(OA, LA, OP, LP, reference):
    """Active OA + t LA against target OP + s LP (m): (touching, dict). `depth` < 0 is the gap, -1 without a crossing inside both."""
    cdef double[::1] oa = _vector(OA, "OA")
    cdef double[::1] la = _vector(LA, "LA")
    cdef double[::1] op = _vector(OP, "OP")
    cdef double[::1] lp = _vector(LP, "LP")
    cdef double[::1] ref = _vector(reference, "reference")
    cdef Contact out
    out.depth = 0.0
    out.kind = LINE_LINE
    out.index = 0
    put(xyz(0.0, 0.0, 0.0), out.n)
    put(xyz(0.0, 0.0, 0.0), out.r)
    cdef bint touching = segment_segment(&oa[0], &la[0], &op[0], &lp[0], &ref[0], &out)
    return bool(touching), _record(&out)


cdef struct _Table:
    const double *values
    int measured


cdef double _from_table(const void *family, int i) noexcept nogil:
    (<_Table *>family).measured += 1
    return (<_Table *>family).values[i]


def deepest_index(values, bint climb=True):
    """Dichotomy over a family given by its measures (2^N + 1 numbers): (index, value, halvings, how many were measured)."""
    cdef double[::1] v = np.ascontiguousarray(values, dtype=float)
    cdef int levels = (v.shape[0] - 1).bit_length() - 1
    if v.shape[0] < 3 or v.shape[0] != (1 << levels) + 1:
        raise ValueError(f"a family has 2^N + 1 members with N >= 1, got {v.shape[0]}")
    cdef _Table table
    table.values = &v[0]
    table.measured = 0
    cdef double value
    cdef int halvings
    cdef int best = deepest_of_family(_from_table, &table, levels, climb, &value, &halvings)
    return best, value, halvings, table.measured


cdef class Law:
    """Contact law: stiffness [N/m], damping [N.s/m], friction, slip_speed [m/s], ramp [m], viscous_limit [N.s/m].
    Raises ValueError on negative numbers."""

    cdef ContactLaw law

    def __cinit__(self, double stiffness, double damping=0.0, double friction=0.0, double slip_speed=1e-3, double ramp=0.0,
                  double viscous_limit=1e300):
        for name, value, low in (("stiffness", stiffness, True), ("damping", damping, False), ("friction", friction, False),
                                 ("slip_speed", slip_speed, True),
                                 ("ramp", ramp, False), ("viscous_limit", viscous_limit, False)):
            if not (value > 0.0 if low else value >= 0.0):
                raise ValueError(f"{name} must be {'above' if low else 'at least'} 0, got {value}")
        self.law = ContactLaw(stiffness=stiffness, damping=damping, ramp=ramp, friction=friction, slip_speed=slip_speed,
                              viscous_limit=viscous_limit)

    def react(self, double depth, normal, v_active, v_passive):
        """(force on the target body [3] N, normal force N, damper loss W, friction loss W) for the velocities [m/s] of the contact
        point."""
        cdef double[::1] n = _vector(normal, "normal")
        cdef double[::1] va = _vector(v_active, "v_active")
        cdef double[::1] vp = _vector(v_passive, "v_passive")
        cdef Contact c
        cdef Reaction out
        c.depth = depth
        put(vec(&n[0]), c.n)
        react(&self.law, &c, &va[0], &vp[0], &out)
        return np.array([out.force[0], out.force[1], out.force[2]]), out.normal, out.damped_power, out.friction_power


LATCH_KEYS = ("pivot_x", "pivot_rho", "nose_x", "nose_rho", "tip_x", "tip_rho", "radius", "angle_max", "torque_preload", "torque_rate",
              "lock_x", "lock_rho_inner", "lock_rho_outer")
GROOVE_KEYS = ("stop_x", "plane", "narrow", "wide", "ramp_start", "ramp_end", "length")


cdef HeadPlane _plane(p_TH, R_TH, direction) except *:
    cdef double[::1] p = _vector(p_TH, "p_TH")
    cdef double[::1] R = np.ascontiguousarray(R_TH, dtype=float).reshape(9)
    return HeadPlane(p_TH=vec(&p[0]), R_TH=mat(&R[0]), uy=direction[0], uz=direction[1])


cdef class LatchInSocket:
    """One massless latch (or, with radius > 0, a sensor lever) against a cavity; keys of `geometry`: `LATCH_KEYS`, m, rad, N.m."""

    cdef Profile profile
    cdef LatchGeometry geometry
    cdef double entry_x, entry_R

    def __cinit__(self, vertices, entry, geometry):
        _fill_profile(vertices, &self.profile)
        self.entry_x, self.entry_R = entry
        if set(geometry) != set(LATCH_KEYS):
            raise ValueError(f"a latch needs exactly the keys {LATCH_KEYS}, got {sorted(geometry)}")
        self.geometry = geometry

    def penetration(self, p_TH, R_TH, direction, double phi):
        """Greatest penetration [m] at angle phi [rad] of the latch in the head half-plane `direction` (y, z)."""
        cdef HeadPlane H = _plane(p_TH, R_TH, direction)
        cdef Contact deepest
        return latch_penetration(&self.profile, self.entry_x, self.entry_R, &H, &self.geometry, phi, &deepest)

    def press(self, p_TH, R_TH, direction, double previous=0.0):
        """(phi [rad], force along the contact normal [N], contact dict or None, bottomed) for a head pose."""
        cdef HeadPlane H = _plane(p_TH, R_TH, direction)
        cdef Contact deepest
        cdef bint bottomed
        cdef double phi = pressed_angle(&self.profile, self.entry_x, self.entry_R, &H, &self.geometry, previous, &deepest, &bottomed)
        if phi == 0.0:
            return 0.0, 0.0, None, False
        force = latch_force(&H, &self.geometry, phi, &deepest)
        return phi, force, _record(&deepest), bool(bottomed)


def groove_contacts(groove, int k, inner, outer):
    """Contacts of the locking segment inner-outer (m, T axes) of fired latch k (0..3) with its groove (keys `GROOVE_KEYS`, m)."""
    if not 0 <= k < 4:
        raise ValueError(f"groove must be 0 to 3, got {k}")
    cdef Groove g = groove
    cdef double[::1] a = _vector(inner, "inner")
    cdef double[::1] b = _vector(outer, "outer")
    cdef Contact out[2]
    cdef int i, n = latch_in_groove(&g, k, &a[0], &b[0], out)
    return [_record(&out[i]) for i in range(n)]


def in_groove(groove, double along, double lateral):
    """Is the point `along` from the stop and `lateral` from the middle (m) inside the groove's outline?"""
    cdef Groove g = groove
    return bool(inside_groove(&g, along, lateral))


def bounce(double mass, double speed, Law law, double dt, int most=10000000):
    """A free mass [kg] meets a wall at `speed` [m/s] under the contact law: (restitution, separation time s, peak force N,
    greatest depth m, loss J).

    Velocity Verlet with step dt, for comparison with the closed form of the clamped spring-damper.
    """
    cdef double x = 0.0, v = speed, t = 0.0, peak = 0.0, deepest = 0.0, loss = 0.0, v_half
    cdef Vec3 v_active = xyz(v, 0.0, 0.0), v_passive = xyz(0.0, 0.0, 0.0)
    cdef Contact c
    cdef Reaction out
    put(xyz(1.0, 0.0, 0.0), c.n)
    c.depth = 0.0
    react(&law.law, &c, &v_active.x, &v_passive.x, &out)
    peak = out.normal
    for _ in range(most):
        v_half = v - 0.5 * dt * out.normal / mass
        x += dt * v_half
        # the velocity-dependent part is iterated once at the end of the step
        v = v_half - 0.5 * dt * out.normal / mass
        c.depth = x
        v_active.x = v
        react(&law.law, &c, &v_active.x, &v_passive.x, &out)
        v = v_half - 0.5 * dt * out.normal / mass
        v_active.x = v
        react(&law.law, &c, &v_active.x, &v_passive.x, &out)
        v = v_half - 0.5 * dt * out.normal / mass
        t += dt
        loss += out.damped_power * dt
        peak = max(peak, out.normal)
        deepest = max(deepest, x)
        if out.normal <= 0.0:
            # parted; the massless spring of a contact still pressed when its force vanishes keeps what is left in it
            if x > 0.0:
                loss += 0.5 * law.law.stiffness * x * x
            break
    return -v / speed, t, peak, deepest, loss
