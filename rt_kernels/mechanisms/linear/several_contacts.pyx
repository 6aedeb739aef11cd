"""Several contacts at once, each a point of the active unit on a plane of the target unit, with friction: how units really touch.

For each contact, Q fixed to the active unit, plane through p0 with the unit normal n into the target, both fixed to T:

    depth  = n . (p_TQ - p0)
    N      = K depth + B depth'                       while depth > 0; with `clamp` never below zero
    z     <- D(z + ds, mu N / K_t)                    bristle: ds the way of Q in the plane since the step before
    f_t    = D(K_t z + B_t v_t, mu N)                 v_t velocity of Q in the plane
    f      = N n + f_t                                on the target at Q

D(x, r) is x or, where it is longer than r, x shortened to the length r: Coulomb's cone. In the cone the bristle is a spring and the
contact sticks without creeping; on the cone it slips, and what the bristle is shortened by is lost. D is a projection on a convex set, so
(f_t - K_t z) . v_t >= 0, and K_t z . v_t is at least the rate of K_t z^2 / 2: the friction takes energy or stores it and never gives more
than it has stored (Simo and Hughes 1998, 1.2: return mapping). A contact that parts forgets its bristle; with B and without `clamp` its
damper may pull, and then there is no friction.

With B = 0 and mu = 0 the contacts are springs in parallel: along and about an axis sum K and sum K r^2.
"""

from libc.math cimport sqrt
from libc.string cimport memset

import numpy as np

from rt_kernels.algebra cimport pose, vec3
from rt_kernels.codes cimport MECHANISM_SIGNAL_DK1
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked

cdef enum:
    MOST = 16

cdef struct PointOnPlane:
    double stiffness            # K
    double damping              # B
    double friction             # mu
    double bristle_stiffness    # K_t
    double bristle_damping      # B_t
    double p0[3]                # a point of the plane, T
    double n[3]
    double p_AQ[3]
    int clamp
    int unused

cdef struct Touch:
    double p_TQ[3]              # where Q was in the step before
    double z[3]                 # bristle, in the plane, T axes
    int touching
    int unused

cdef struct State:
    Touch touch[16]

cdef struct Self:
    PointOnPlane contact[16]
    int count
    int unused
    State state


cdef inline double depth_of(const PointOnPlane *c, const double *X_TA, double *p_TQ) noexcept nogil:
    cdef double d[3]
    pose.apply(X_TA, c.p_AQ, p_TQ)
    vec3.sub(p_TQ, c.p0, d)
    return vec3.dot(c.n, d)


cdef inline void shorten(double *x, double length) noexcept nogil:
    """D(x, length): the nearest point of the disc."""
    cdef double size2 = vec3.dot(x, x)
    if size2 > length * length:
        vec3.scale(length / sqrt(size2), x, x)


cdef inline void into_plane(const double *n, double *x) noexcept nogil:
    vec3.add_scaled(x, -vec3.dot(n, x), n, x)


cdef void press(const PointOnPlane *c, Touch *t, const MechanismInput *inp, const double *p_TQ, double depth, double *f) noexcept nogil:
    """Force of one contact on the target at Q; the bristle goes on by this step."""
    cdef double v[3]
    cdef double r[3]
    cdef double normal
    # velocity of Q relative to T: along the normal and in the plane
    vec3.sub(p_TQ, inp.X_TA, r)
    vec3.cross(inp.V_TA + 3, r, v)
    vec3.add(v, inp.V_TA, v)
    normal = c.stiffness * depth + c.damping * vec3.dot(c.n, v)
    if c.clamp and normal < 0.0:
        normal = 0.0
    vec3.scale(normal, c.n, f)
    # the bristle follows the point as far as the cone lets it
    if t.touching:
        vec3.sub(p_TQ, t.p_TQ, r)
        vec3.add(t.z, r, t.z)
        into_plane(c.n, t.z)
    else:
        vec3.fill(0.0, 0.0, 0.0, t.z)
    vec3.copy(p_TQ, t.p_TQ)
    t.touching = 1
    if c.friction <= 0.0:
        return
    if normal < 0.0:
        normal = 0.0
    shorten(t.z, c.friction * normal / c.bristle_stiffness)
    into_plane(c.n, v)
    vec3.scale(c.bristle_damping, v, v)
    vec3.add_scaled(v, c.bristle_stiffness, t.z, v)
    shorten(v, c.friction * normal)
    vec3.add(f, v, f)


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef double p_TQ[3]
    cdef double f[3]
    cdef double m[3]
    cdef double minus[6]
    cdef double depth
    cdef int i
    memset(out, 0, sizeof(MechanismOutput))
    for i in range(p.count):
        depth = depth_of(&p.contact[i], inp.X_TA, p_TQ)
        if depth <= 0.0:
            p.state.touch[i].touching = 0
            continue
        press(&p.contact[i], &p.state.touch[i], inp, p_TQ, depth, f)
        vec3.cross(p_TQ, f, m)
        vec3.add(out.F_T, f, out.F_T)
        vec3.add(out.F_T + 3, m, out.F_T + 3)
        out.signals = MECHANISM_SIGNAL_DK1
    # the reaction on the active unit
    for i in range(6):
        minus[i] = -out.F_T[i]
    pose.wrench_to_child(inp.X_TA, minus, out.F_A)


# of one table [[contacts]]
CONTACT = (
    Parameter("stiffness_n_per_m", "float", "N/m", "contact stiffness", low=1.0, high=1e10),
    Parameter("damping_n_s_per_m", "float", "N.s/m", "contact damping", 0.0, low=0.0, high=1e8),
    Parameter("friction", "float", "-", "coefficient of Coulomb friction", 0.0, low=0.0, high=2.0),
    Parameter("bristle_stiffness_n_per_m", "float", "N/m", "stiffness across the normal while the contact sticks; none: as along it", None,
              low=1.0, high=1e10),
    Parameter("bristle_damping_n_s_per_m", "float", "N.s/m", "damping across the normal while it sticks", 0.0, low=0.0, high=1e8),
    Parameter("plane_point_m", "floats", "m", "a point of the target's plane, T axes", (0.0, 0.0, 0.0), low=-10.0, high=10.0, shape=3),
    Parameter("normal", "floats", "-", "normal into the target, T axes", (1.0, 0.0, 0.0), low=-1e3, high=1e3, shape=3),
    Parameter("contact_point_m", "floats", "m", "contact point of the active unit, A axes", (0.0, 0.0, 0.0), low=-10.0, high=10.0, shape=3),
    Parameter("clamp", "bool", "-", "the damper does not pull", True),
)


cdef class SeveralContacts(MechanismPart):
    """Contacts in parallel. Raises ValueError for no contact, more than 16, or a normal of length zero."""

    PARAMETERS = (
        Parameter("contacts", "tables", "-", "the contacts, tables [[contacts]]: a point of the active unit on a plane of the target unit",
                  of=CONTACT),
    )
    cdef Self c

    def __init__(self, **given):
        cdef int i, k
        cdef PointOnPlane *c
        tables = checked(SeveralContacts.PARAMETERS, given)["contacts"]
        if not 1 <= len(tables) <= MOST:
            raise ValueError(f"mechanism.contacts: must be 1 ... {MOST} tables, got {len(tables)}")
        memset(&self.c, 0, sizeof(Self))
        self.c.count = len(tables)
        for k, keys in enumerate(tables):
            n = np.asarray(keys["normal"], float)
            if not np.linalg.norm(n) > 1e-9:
                raise ValueError(f"contacts[{k}].normal must not be zero, got {keys['normal']}")
            n = n / np.linalg.norm(n)
            c = &self.c.contact[k]
            c.stiffness, c.damping, c.friction = keys["stiffness_n_per_m"], keys["damping_n_s_per_m"], keys["friction"]
            across = keys["bristle_stiffness_n_per_m"]
            c.bristle_stiffness, c.bristle_damping = c.stiffness if across is None else across, keys["bristle_damping_n_s_per_m"]
            c.clamp = keys["clamp"]
            for i in range(3):
                c.p0[i], c.n[i], c.p_AQ[i] = keys["plane_point_m"][i], n[i], keys["contact_point_m"][i]
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance

    def state_fields(self):
        return self.c.state

    def state_bounds(self):
        return {"touch.touching": FLAG}

    def max_penetration(self, X_TA):
        """Depth of the deepest contact point at the relative pose X_TA (7), m; negative: a gap."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef double p_TQ[3]
        return max(depth_of(&self.c.contact[k], &X[0], p_TQ) for k in range(self.c.count))

    def lines(self, X_TA):
        """Screws (n, p x n) of all contacts at the relative pose X_TA (7), at the origin of T: (k, 6)."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef double p_TQ[3]
        cdef double m[3]
        rows = np.zeros((self.c.count, 6))
        for k in range(self.c.count):
            depth_of(&self.c.contact[k], &X[0], p_TQ)
            vec3.cross(p_TQ, self.c.contact[k].n, m)
            for i in range(3):
                rows[k, i], rows[k, 3 + i] = self.c.contact[k].n[i], m[i]
        return rows

    def stored_energy(self, X_TA):
        """Energy in the springs at the relative pose X_TA (7), and in the bristles as they are, J."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef double p_TQ[3]
        cdef double total = 0.0
        cdef int k
        for k in range(self.c.count):
            depth = max(depth_of(&self.c.contact[k], &X[0], p_TQ), 0.0)
            total += 0.5 * self.c.contact[k].stiffness * depth * depth
            if self.c.state.touch[k].touching:
                total += 0.5 * self.c.contact[k].bristle_stiffness * vec3.dot(self.c.state.touch[k].z, self.c.state.touch[k].z)
        return total
