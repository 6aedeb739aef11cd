"""Elastic probe and lateral damper; the equations stand in joints.pyx."""

from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef void joint_forces(Unit *u, double *Q) noexcept nogil
cdef void lateral_losses(Unit *u, double h) noexcept nogil
cdef void accept_joints(Unit *u, double h) noexcept nogil
