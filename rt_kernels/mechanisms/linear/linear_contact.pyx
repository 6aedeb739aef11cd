"""One linear contact along a screw: the contact that the prediction plays in the place of the docking unit.

    depth  = u . d          d small motion of A in T from the pose of the touch X_0, of the point of A that lies at the origin of T
    rate   = u . V          V twist of A relative to T of the same point
    F_T    = u (K depth + B rate)        while depth > 0

u = (n, m) is the wrench of the contact with a force of one newton (or a moment of one newton metre where there is no force), at and in T:
a line of force through p along n has u = (n, p x n), and what presses along several lines at once has a pitch, too. Two rigid vehicles of
the inverse inertia L^-1 (rt_kernels.compensation.effective_mass) see one mode, w^2 = K u L^-1 u, whose restitution is
exp(-pi zeta / sqrt(1 - zeta^2)) (hybrid-stability notes 5.1). The damper may pull at separation, as in that formula. Small motions: the
screw does not turn with the units.

A screw has two sides everywhere, and a stand that comes from afar may lie on the wrong one. The contact is there only from the moment on
at which the units have stood apart near X_wait, the pose in which the approach begins: nearer to it than half its way to X_0 (metres and
radians together).
"""

from libc.string cimport memset

import numpy as np

from rt_kernels.algebra.values cimport (
    Pose, Twist, Vec3, Wrench, add, conjugate, cross, dot, logarithm, mul, pose, power, put_wrench, quat_multiply, sub, twist,
    twist_of, wrench, wrench_of, wrench_to_child,
)
from rt_kernels.codes cimport MECHANISM_SIGNAL_DK1
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart


cdef struct State:
    int there           # the units have waited: what is pressed in now is a contact
    int unused

cdef struct Self:
    double stiffness    # N/m, or N.m/rad
    double damping
    Wrench u
    Pose X_0
    Pose X_wait
    double near2        # square of half the way from X_wait to X_0
    State state


cdef inline Twist motion_between(Pose X_0, Pose X_TA) noexcept nogil:
    """Small motion from X_0 to X_TA of the point of A at the origin of T, T axes: translation first."""
    cdef Vec3 phi = logarithm(quat_multiply(X_TA.q, conjugate(X_0.q)))
    return twist_of(add(sub(X_TA.p, X_0.p), cross(X_TA.p, phi)), phi)


cdef inline double square(Twist d) noexcept nogil:
    return dot(d.v, d.v) + dot(d.w, d.w)


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA), V
    cdef double depth = power(motion_between(p.X_0, X_TA), p.u)
    cdef double f
    memset(out, 0, sizeof(MechanismOutput))
    if depth <= 0.0:
        if not p.state.there:
            p.state.there = square(motion_between(p.X_wait, X_TA)) <= p.near2
        return
    if not p.state.there:
        return
    # twist of the same point
    V = twist_of(add(cross(X_TA.p, V_TA.w), V_TA.v), V_TA.w)
    f = p.stiffness * depth + p.damping * power(V, p.u)
    put_wrench(wrench_of(mul(f, p.u.f), mul(f, p.u.m)), out.F_T)
    put_wrench(wrench_to_child(X_TA, wrench_of(mul(-f, p.u.f), mul(-f, p.u.m))), out.F_A)
    out.signals = MECHANISM_SIGNAL_DK1


cdef class LinearContact(MechanismPart):
    """stiffness (N/m), damping (N.s/m) along `screw` (6,) from the pose `X_TA` (7,) on, approached from `X_wait` (7,). Raises ValueError
    for a stiffness that is not above zero or a screw that is not finite."""

    cdef Self c

    def __init__(self, *, double stiffness, double damping, screw, X_TA, X_wait):
        cdef double[::1] screw_ = np.ascontiguousarray(screw, dtype=float).reshape(6)
        cdef double[::1] X_0 = np.ascontiguousarray(X_TA, dtype=float).reshape(7)
        cdef double[::1] X_w = np.ascontiguousarray(X_wait, dtype=float).reshape(7)
        if not stiffness > 0.0 or not damping >= 0.0 or not np.all(np.isfinite(screw)):
            raise ValueError(f"stiffness {stiffness} must be above 0, damping {damping} not below, the screw {screw} finite")
        memset(&self.c, 0, sizeof(Self))
        self.c.stiffness, self.c.damping = stiffness, damping
        self.c.u, self.c.X_0, self.c.X_wait = wrench(&screw_[0]), pose(&X_0[0]), pose(&X_w[0])
        self.c.near2 = 0.25 * square(motion_between(self.c.X_0, self.c.X_wait))
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance
