"""A spring-damper between a point of the active unit and a plane of the target unit: the contact that formulas are known for.

    depth  = n . (p_TQ - p0)          f = n (K depth + B depth')   on the target at Q, while depth > 0

With `latches` the joint holds both ways from the first touch on, at any depth: the rigid connection of a latched mode.

With `clamp` the damper cannot pull at separation; without it the contact is the linear one of the hybrid-stability notes (5.1), whose
rebound is exp(-pi zeta / sqrt(1 - zeta^2)). Q is fixed to the active unit; n points into the target.
"""

from libc.string cimport memset

import numpy as np

from rt_kernels.algebra.values cimport (
    Pose, Twist, Vec3, Wrench, add, apply, cross, dot, mul, neg, pose, put_wrench, sub, twist, vec, wrench, wrench_of, wrench_to_child,
    xyz,
)
from rt_kernels.codes cimport MECHANISM_SIGNAL_DK1
from rt_kernels.mechanisms.linear.bumper_parameters cimport BumperParameters, fill_bumper
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked


cdef struct State:
    int latched
    int unused

cdef struct Self:
    BumperParameters keys
    Vec3 n
    State state


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA)
    cdef Vec3 p_TQ = apply(X_TA, vec(p.keys.contact_point))
    cdef Vec3 v_Q, f
    cdef Wrench F_T
    cdef double depth = dot(p.n, sub(p_TQ, vec(p.keys.plane_point)))
    cdef double normal
    memset(out, 0, sizeof(MechanismOutput))
    if depth > 0.0 and p.keys.latches:
        p.state.latched = 1
    if depth > 0.0 or p.state.latched:
        # velocity of Q relative to T
        v_Q = add(cross(V_TA.w, sub(p_TQ, X_TA.p)), V_TA.v)
        normal = p.keys.stiffness * depth + p.keys.damping * dot(p.n, v_Q)
        if p.keys.clamp and normal < 0.0:
            normal = 0.0
        f = mul(normal, p.n)
        put_wrench(wrench_of(f, cross(p_TQ, f)), out.F_T)
        out.signals = MECHANISM_SIGNAL_DK1
    # the reaction on the active unit, at and in A
    F_T = wrench(out.F_T)
    put_wrench(wrench_to_child(X_TA, wrench_of(neg(F_T.f), neg(F_T.m))), out.F_A)


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
        keys = checked(Bumper.PARAMETERS, given)
        n = np.asarray(keys["normal"], float)
        if not np.linalg.norm(n) > 1e-9:
            raise ValueError(f"mechanism.normal must not be zero, got {keys['normal']}")
        if keys["latches"] and keys["clamp"]:
            raise ValueError("mechanism.latches: a joint that holds both ways pulls: set mechanism.clamp = false")
        n = n / np.linalg.norm(n)
        memset(&self.c, 0, sizeof(Self))
        fill_bumper(&self.c.keys, keys)
        self.c.n = xyz(n[0], n[1], n[2])
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
        return dot(self.c.n, sub(apply(pose(&X[0]), vec(self.c.keys.contact_point)), vec(self.c.keys.plane_point)))
