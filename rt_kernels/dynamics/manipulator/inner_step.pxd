"""Struct and function of `inner_step.pyx`."""

from rt_kernels.algebra.values cimport Vec3
from rt_kernels.dynamics.manipulator.arm cimport Arm
from rt_kernels.sample cimport Sample


cdef struct Contact:                   # wrench on the payload, acting at the point p, N axes
    Vec3 f
    Vec3 m
    Vec3 p
    Vec3 moment                        # about the payload's centre of mass


cdef void inner_step(Arm *self, const Sample *sample, Contact *contact) noexcept nogil
