"""Latches and sensor levers of the head; the equations stand in latches.pyx."""

from rt_kernels.mechanisms.probe_cone.contact_sums cimport Body, Sums
from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef void latch_contacts(Unit *u, Body *head, Sums *sums) noexcept nogil
