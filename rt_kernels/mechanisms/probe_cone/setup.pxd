"""Set-up of the central unit."""

from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef int fill_unit(Unit *u, v) except -1
