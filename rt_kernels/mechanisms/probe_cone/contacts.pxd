"""Contacts of head, limiter, rollers and docking planes; the equations stand in contacts.pyx."""

from rt_kernels.mechanisms.probe_cone.contact_sums cimport Body, Sums
from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef void head_contacts(Unit *u, Body *head, Sums *sums) noexcept nogil
cdef void limiter_contacts(Unit *u, Body *limiter, Sums *sums) noexcept nogil
cdef void roller_contacts(Unit *u, Body *body, Sums *sums) noexcept nogil
cdef void plane_contacts(Unit *u, Body *base, Sums *sums) noexcept nogil
