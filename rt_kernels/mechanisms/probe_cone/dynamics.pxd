"""Multibody dynamics of the mechanism; the equations stand in dynamics.pyx."""

from rt_kernels.algebra.values cimport Vec3, Wrench
from rt_kernels.mechanisms.probe_cone.model cimport Inertias, Motion


cdef void kinematics(const Inertias *p, const double *q, const double *v, Vec3 w0, Motion *k) noexcept nogil
cdef void assemble(const Inertias *p, const double *q, const double *v, Motion *k) noexcept nogil
cdef void factor(int n, double *M) noexcept nogil
cdef void solve(int n, const double *L, double *x) noexcept nogil
cdef Wrench base_wrench(const Inertias *p, const Motion *k, const double *acc, Wrench external) noexcept nogil
