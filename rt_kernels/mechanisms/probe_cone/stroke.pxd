"""Stroke of the probe, axial damper, drive and movable limiter; the equations stand in stroke.pyx."""

from libc.stdint cimport uint32_t

from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef void stroke_forces(Unit *u, double *Q) noexcept nogil
cdef void axial_friction(Unit *u, const double *M, double f_H, double h, double *acc) noexcept nogil
cdef void run_drive(Unit *u, uint32_t commands, double h) noexcept nogil
cdef void accept_stroke(Unit *u, double h) noexcept nogil
