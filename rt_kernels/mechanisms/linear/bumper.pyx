"""A spring-damper between a point of the active unit and a plane of the target unit: the contact that formulas are known for.

    depth  = n . (p_TQ - p0)          f = n (K depth + B depth')   on the target at Q, while depth > 0

With `latches` the joint holds both ways from the first touch on, at any depth: the rigid connection of a latched mode.

With `clamp` the damper cannot pull at separation; without it the contact is the linear one of the hybrid-stability notes (5.1), whose
rebound is exp(-pi zeta / sqrt(1 - zeta^2)). Q is fixed to the active unit; n points into the target.
"""

from libc.string cimport memset

import numpy as np

from rt_kernels.algebra cimport pose, vec3
from rt_kernels.codes cimport MECHANISM_SIGNAL_DK1
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked


cdef struct State:
    int latched
    int unused

cdef struct Self:
    double stiffness
    double damping
    double p0[3]        # point of the plane, T
    double n[3]
    double p_AQ[3]
    int clamp
    int latches
    State state


cdef double penetration(const Self *p, const double *X_TA, double *p_TQ) noexcept nogil:
    cdef double d[3]
    pose.apply(X_TA, p.p_AQ, p_TQ)
    vec3.sub(p_TQ, p.p0, d)
    return vec3.dot(p.n, d)


cdef void reaction_on_active(const double *X_TA, const double *F_T, double *F_A) noexcept nogil:
    """The opposite wrench, at and in A."""
    cdef double minus[6]
    cdef int i
    for i in range(6):
        minus[i] = -F_T[i]
    pose.wrench_to_child(X_TA, minus, F_A)


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef double p_TQ[3]
    cdef double r[3]
    cdef double v[3]
    cdef double depth, f
    memset(out, 0, sizeof(MechanismOutput))
    depth = penetration(p, inp.X_TA, p_TQ)
    if depth > 0.0 and p.latches:
        p.state.latched = 1
    if depth > 0.0 or p.state.latched:
        # velocity of Q relative to T
        vec3.sub(p_TQ, inp.X_TA, r)
        vec3.cross(inp.V_TA + 3, r, v)
        vec3.add(v, inp.V_TA, v)
        f = p.stiffness * depth + p.damping * vec3.dot(p.n, v)
        if p.clamp and f < 0.0:
            f = 0.0
        vec3.scale(f, p.n, out.F_T)
        vec3.cross(p_TQ, out.F_T, out.F_T + 3)
        out.signals = MECHANISM_SIGNAL_DK1
    reaction_on_active(inp.X_TA, out.F_T, out.F_A)


cdef class Bumper(MechanismPart):
    """Linear contact, one-sided unless it latches. Raises ValueError for a normal of length zero, or a clamped joint."""

    PARAMETERS = (
        Parameter("stiffness_n_per_m", "float", "N/m", "contact stiffness", low=1.0, high=1e10),
        Parameter("damping_n_s_per_m", "float", "N.s/m", "contact damping", 0.0, low=0.0, high=1e8),
        Parameter("plane_point_m", "floats", "m", "a point of the target's plane, T axes", (0.0, 0.0, 0.0), shape=3),
        Parameter("normal", "floats", "-", "normal into the target, T axes", (1.0, 0.0, 0.0), shape=3),
        Parameter("contact_point_m", "floats", "m", "contact point of the active unit, A axes", (0.0, 0.0, 0.0), shape=3),
        Parameter("clamp", "bool", "-", "the damper does not pull", True),
        Parameter("latches", "bool", "-", "from the first touch on the spring also pulls; clamp must be false", False),
    )
    cdef Self c

    def __init__(self, **given):
        cdef int i
        keys = checked(Bumper.PARAMETERS, given)
        n = np.asarray(keys["normal"], float)
        if not np.linalg.norm(n) > 1e-9:
            raise ValueError(f"mechanism.normal must not be zero, got {keys['normal']}")
        if keys["latches"] and keys["clamp"]:
            raise ValueError("mechanism.latches: a joint that holds both ways pulls: set mechanism.clamp = false")
        n = n / np.linalg.norm(n)
        memset(&self.c, 0, sizeof(Self))
        self.c.stiffness, self.c.damping = keys["stiffness_n_per_m"], keys["damping_n_s_per_m"]
        self.c.clamp, self.c.latches = keys["clamp"], keys["latches"]
        for i in range(3):
            self.c.p0[i], self.c.n[i], self.c.p_AQ[i] = keys["plane_point_m"][i], n[i], keys["contact_point_m"][i]
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance

    def state_fields(self):
        return self.c.state

    def state_bounds(self):
        return {"latched": FLAG}

    def max_penetration(self, X_TA):
        """Depth of the contact point at the relative pose X_TA (7), m; negative: a gap."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef double p_TQ[3]
        return penetration(&self.c, &X[0], p_TQ)
