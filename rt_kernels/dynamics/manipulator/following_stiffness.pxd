"""Functions of `following_stiffness.pyx`."""

from rt_kernels.dynamics.manipulator.arm cimport Arm


cdef void follow_configuration(Arm *self) noexcept nogil
