"""Dependent chains of the lateral damper; the equations stand in chains.pyx.

Inline here: what the inner loops of dynamics and joints take of them, four times and more in every sub-step.
"""

from rt_kernels.algebra cimport vec3
from rt_kernels.mechanisms.probe_cone.model cimport BrakeChain, ChainMotion, Motion, SpringChain


cdef void add_spring_chain(const SpringChain *p, const double *w0, Motion *k, ChainMotion *c) noexcept nogil
cdef void add_brake_chain(const BrakeChain *p, const double *w0, Motion *k, ChainMotion *c) noexcept nogil
cdef void subtract_spring_chain(const SpringChain *p, const ChainMotion *c, const double *acc, double *W) noexcept nogil
cdef void subtract_brake_chain(const BrakeChain *p, const ChainMotion *c, const double *acc, const double *w0, double *W) noexcept nogil


cdef inline double spring_gain(const ChainMotion *c, int i) noexcept nogil:
    # rate of the stroke per rate of swing coordinate i
    return vec3.dot(c.e, c.db + 3 * i)


cdef inline double brake_gain(const ChainMotion *c, int i) noexcept nogil:
    # rate of the crank angle per rate of swing coordinate i
    return vec3.dot(c.e, c.db + 3 * i) / vec3.dot(c.e, c.t)


cdef inline void add_cross(const double *a, const double *b, double *out) noexcept nogil:
    # out += a x b
    cdef double t[3]
    vec3.cross(a, b, t)
    vec3.add(out, t, out)


cdef inline void turning_acceleration(const double *alpha, const double *w, const double *r, double *out) noexcept nogil:
    # out += alpha x r + w x (w x r)
    cdef double t[3]
    add_cross(alpha, r, out)
    vec3.cross(w, r, t)
    add_cross(w, t, out)
