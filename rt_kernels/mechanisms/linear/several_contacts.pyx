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

from rt_kernels.algebra.values cimport (
    Pose, Twist, Vec3, Wrench, add, apply, cross, dot, mul, neg, pose, put, put_wrench, sub, twist, vec, wrench_of, wrench_sum,
    wrench_to_child, xyz,
)
from rt_kernels.codes cimport MECHANISM_SIGNAL_DK1
from rt_kernels.mechanisms.linear.several_contacts_parameters cimport ContactParameters, fill_contact
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked

cdef enum:
    MOST = 16

cdef struct PointOnPlane:
    ContactParameters keys
    double bristle_stiffness    # K_t
    Vec3 n

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


cdef inline double depth_of(const PointOnPlane *c, Vec3 p_TQ) noexcept nogil:
    return dot(c.n, sub(p_TQ, vec(c.keys.plane_point)))


cdef inline Vec3 shortened(Vec3 x, double length) noexcept nogil:
    """D(x, length): the nearest point of the disc."""
    cdef double size2 = dot(x, x)
    return mul(length / sqrt(size2), x) if size2 > length * length else x


cdef inline Vec3 in_plane(Vec3 n, Vec3 x) noexcept nogil:
    return sub(x, mul(dot(n, x), n))


cdef Vec3 press(const PointOnPlane *c, Touch *t, Vec3 p_TQ, Vec3 v_Q, double depth) noexcept nogil:
    """Force of one contact on the target at Q, which moves at v_Q relative to T; the bristle moves on by this step."""
    cdef double normal = c.keys.stiffness * depth + c.keys.damping * dot(c.n, v_Q)
    cdef Vec3 f, z, f_t
    if c.keys.clamp and normal < 0.0:
        normal = 0.0
    f = mul(normal, c.n)
    # the bristle follows the point as far as the cone lets it
    z = in_plane(c.n, add(vec(t.z), sub(p_TQ, vec(t.p_TQ)))) if t.touching else xyz(0.0, 0.0, 0.0)
    put(p_TQ, t.p_TQ)
    t.touching = 1
    if c.keys.friction > 0.0:
        if normal < 0.0:
            normal = 0.0
        z = shortened(z, c.keys.friction * normal / c.bristle_stiffness)
        f_t = add(mul(c.keys.bristle_damping, in_plane(c.n, v_Q)), mul(c.bristle_stiffness, z))
        f = add(f, shortened(f_t, c.keys.friction * normal))
    put(z, t.z)
    return f


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA)
    cdef Wrench F_T = wrench_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0))
    cdef Vec3 p_TQ, v_Q, f
    cdef double depth
    cdef int i
    memset(out, 0, sizeof(MechanismOutput))
    for i in range(p.count):
        p_TQ = apply(X_TA, vec(p.contact[i].keys.contact_point))
        depth = depth_of(&p.contact[i], p_TQ)
        if depth <= 0.0:
            p.state.touch[i].touching = 0
            continue
        v_Q = add(cross(V_TA.w, sub(p_TQ, X_TA.p)), V_TA.v)
        f = press(&p.contact[i], &p.state.touch[i], p_TQ, v_Q, depth)
        F_T = wrench_sum(F_T, wrench_of(f, cross(p_TQ, f)))
        out.signals = MECHANISM_SIGNAL_DK1
    put_wrench(F_T, out.F_T)
    # the reaction on the active unit
    put_wrench(wrench_to_child(X_TA, wrench_of(neg(F_T.f), neg(F_T.m))), out.F_A)


# of one table [[contacts]]
CONTACT_PARAMETERS = (
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
                  of=CONTACT_PARAMETERS),
    )
    cdef Self c

    def __init__(self, **given):
        cdef int k
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
            fill_contact(&c.keys, keys)
            across = keys["bristle_stiffness_n_per_m"]
            c.bristle_stiffness = c.keys.stiffness if across is None else across
            c.n = xyz(n[0], n[1], n[2])
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
        cdef Pose X_ = pose(&X[0])
        cdef int k
        return max([depth_of(&self.c.contact[k], apply(X_, vec(self.c.contact[k].keys.contact_point))) for k in range(self.c.count)])

    def lines(self, X_TA):
        """Screws (n, p x n) of all contacts at the relative pose X_TA (7), at the origin of T: (k, 6)."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef Pose X_ = pose(&X[0])
        rows = np.zeros((self.c.count, 6))
        cdef double[:, ::1] r = rows
        cdef const PointOnPlane *c
        cdef int k
        for k in range(self.c.count):
            c = &self.c.contact[k]
            put_wrench(wrench_of(c.n, cross(apply(X_, vec(c.keys.contact_point)), c.n)), &r[k, 0])
        return rows

    def stored_energy(self, X_TA):
        """Energy in the springs at the relative pose X_TA (7), and in the bristles as they are, J."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef Pose X_ = pose(&X[0])
        cdef double total = 0.0
        cdef int k
        for k in range(self.c.count):
            depth = max(depth_of(&self.c.contact[k], apply(X_, vec(self.c.contact[k].keys.contact_point))), 0.0)
            total += 0.5 * self.c.contact[k].keys.stiffness * depth * depth
            if self.c.state.touch[k].touching:
                total += 0.5 * self.c.contact[k].bristle_stiffness * dot(vec(self.c.state.touch[k].z), vec(self.c.state.touch[k].z))
        return total
