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

from rt_kernels.algebra cimport pose, quat, vec3
from rt_kernels.codes cimport MECHANISM_SIGNAL_DK1
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart


cdef struct State:
    int there           # the units have waited: what is pressed in now is a contact
    int unused

cdef struct Self:
    double stiffness    # N/m, or N.m/rad
    double damping
    double u[6]
    double X_0[7]
    double X_wait[7]
    double near2        # square of half the way from X_wait to X_0
    State state


cdef inline void motion_between(const double *X_0, const double *X_TA, double *d) noexcept nogil:
    """Small motion from X_0 to X_TA of the point of A at the origin of T, T axes: translation first."""
    cdef double inverse[4]
    cdef double dq[4]
    cdef double t[3]
    quat.conjugate(X_0 + 3, inverse)
    quat.multiply(X_TA + 3, inverse, dq)
    quat.logarithm(dq, d + 3)
    vec3.sub(X_TA, X_0, d)
    vec3.cross(X_TA, d + 3, t)
    vec3.add(d, t, d)


cdef inline double square(const double *d) noexcept nogil:
    return vec3.dot(d, d) + vec3.dot(d + 3, d + 3)


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef double d[6]
    cdef double V[6]
    cdef double minus[6]
    cdef double depth = 0.0, rate = 0.0, f
    cdef int i
    memset(out, 0, sizeof(MechanismOutput))
    motion_between(p.X_0, inp.X_TA, d)
    for i in range(6):
        depth += p.u[i] * d[i]
    if depth <= 0.0:
        if not p.state.there:
            motion_between(p.X_wait, inp.X_TA, d)
            p.state.there = square(d) <= p.near2
        return
    if not p.state.there:
        return
    # twist of the same point
    vec3.cross(inp.X_TA, inp.V_TA + 3, V)
    vec3.add(V, inp.V_TA, V)
    vec3.copy(inp.V_TA + 3, V + 3)
    for i in range(6):
        rate += p.u[i] * V[i]
    f = p.stiffness * depth + p.damping * rate
    for i in range(6):
        out.F_T[i] = f * p.u[i]
        minus[i] = -out.F_T[i]
    pose.wrench_to_child(inp.X_TA, minus, out.F_A)
    out.signals = MECHANISM_SIGNAL_DK1


cdef class LinearContact(MechanismPart):
    """stiffness (N/m), damping (N.s/m) along `screw` (6,) from the pose `X_TA` (7,) on, approached from `X_wait` (7,). Raises ValueError
    for a stiffness that is not above zero or a screw that is not finite."""

    cdef Self c

    def __init__(self, *, double stiffness, double damping, screw, X_TA, X_wait):
        cdef int i
        cdef double d[6]
        if not stiffness > 0.0 or not damping >= 0.0 or not np.all(np.isfinite(screw)):
            raise ValueError(f"stiffness {stiffness} must be above 0, damping {damping} not below, the screw {screw} finite")
        memset(&self.c, 0, sizeof(Self))
        self.c.stiffness, self.c.damping = stiffness, damping
        for i in range(6):
            self.c.u[i] = screw[i]
        for i in range(7):
            self.c.X_0[i] = X_TA[i]
            self.c.X_wait[i] = X_wait[i]
        motion_between(self.c.X_0, self.c.X_wait, d)
        self.c.near2 = 0.25 * square(d)
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance
