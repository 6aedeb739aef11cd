"""Functions of `inner_step.pyx`."""

from rt_kernels.dynamics.manipulator.arm cimport Arm
from rt_kernels.sample cimport Sample


cdef void inner_step(Arm *self, const Sample *sample, const double *f_contact, const double *p_contact,
                     const double *m_contact) noexcept nogil
