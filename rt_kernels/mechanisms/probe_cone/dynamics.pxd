"""Multibody dynamics of the mechanism; the equations stand in dynamics.pyx."""

from rt_kernels.mechanisms.probe_cone.model cimport Inertias, Motion


cdef void kinematics(const Inertias *p, const double *q, const double *v, const double *w0, Motion *k) noexcept nogil
cdef void assemble(const Inertias *p, const double *q, const double *v, const double *w0, Motion *k) noexcept nogil
cdef void factor(int n, double *M) noexcept nogil
cdef void solve(int n, const double *L, double *x) noexcept nogil
cdef void base_wrench(const Inertias *p, const double *q, const Motion *k, const double *acc, const double *w0, double *W) noexcept nogil
