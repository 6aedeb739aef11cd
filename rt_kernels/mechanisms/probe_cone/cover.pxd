"""Hatch cover of stand tests; the equations stand in cover.pyx."""

from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef void cover_step(Unit *u, double force, double h) noexcept nogil
