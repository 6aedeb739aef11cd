"""Dependent chains of the lateral damper; the equations stand in chains.pyx.

Inline here: what the inner loops of dynamics and joints take of them, four times and more in every sub-step.
"""

from rt_kernels.algebra.values cimport Vec3, Wrench, add, cross, dot
from rt_kernels.mechanisms.probe_cone.model cimport BrakeChain, ChainMotion, Motion, SpringChain


cdef void add_spring_chain(const SpringChain *p, Motion *k, ChainMotion *c) noexcept nogil
cdef void add_brake_chain(const BrakeChain *p, Motion *k, ChainMotion *c) noexcept nogil
cdef void subtract_spring_chain(const SpringChain *p, const ChainMotion *c, const double *acc, Wrench *W) noexcept nogil
cdef void subtract_brake_chain(const BrakeChain *p, const Motion *k, const ChainMotion *c, const double *acc, Wrench *W) noexcept nogil


cdef inline double spring_gain(const ChainMotion *c, int i) noexcept nogil:
    # rate of the stroke per rate of swing coordinate i
    return dot(c.e, c.db[i])


cdef inline double brake_gain(const ChainMotion *c, int i) noexcept nogil:
    # rate of the crank angle per rate of swing coordinate i
    return dot(c.e, c.db[i]) / dot(c.e, c.t)


cdef inline Vec3 point_acceleration(Vec3 a, Vec3 alpha, Vec3 w, Vec3 r) noexcept nogil:
    # a + alpha x r + w x (w x r): of the point at r of a body whose origin has the acceleration a
    return add(add(a, cross(alpha, r)), cross(w, cross(w, r)))
