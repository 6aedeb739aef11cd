"""Functions of `free_root.pyx`."""

from rt_kernels.algebra.values cimport Pose
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport Arm, ArmState


cdef void rigid_inertia(const two_bodies.Vehicle *vehicle, Pose X, double *S) noexcept nogil
cdef void add_vehicle_bias(const ArmState *s, double *bias) noexcept nogil
cdef void inertia_with_vehicle(Arm *self) noexcept nogil
cdef void integrate_root(Arm *self) noexcept nogil
cdef void join(Arm *self, bint joined) noexcept nogil
