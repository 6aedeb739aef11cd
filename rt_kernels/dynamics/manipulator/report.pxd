"""Functions of `report.pyx`."""

from rt_kernels.dynamics.manipulator.arm cimport Arm
from rt_kernels.dynamics.manipulator.record cimport ArmRecord
from rt_kernels.sample cimport Sample

cdef enum:
    ARM_JOINTS_SHOWN = 7               # as the record has places


cdef void report(Arm *self, Sample *sample, ArmRecord *record) noexcept nogil
