"""Structs and functions of `compliance.pyx`."""

from rt_kernels.multibody.tree cimport Tree

cdef enum:
    ARM_SEGMENTS = 32


cdef struct ArmPlace:
    int slot              # of the tree, -1 the inertial frame
    double R[9]           # axes in the aligned frame of the slot
    double p[3]           # point in it


cdef struct ArmSegment:
    ArmPlace tip
    double c0, c1, c2, c3, c4


cdef struct ArmSegments:
    int n
    ArmSegment segment[ARM_SEGMENTS]
    ArmPlace E


cdef void arm_place(const ArmPlace *at, const double *rows, double *R, double *p) noexcept nogil
cdef void arm_compliance(const ArmSegments *arm, const double *rows, double *C) noexcept nogil
cdef int arm_stiffness(const double *C, double *K) noexcept nogil


cdef class ArmCompliance:
    cdef readonly Tree tree
    cdef ArmSegments arm
    cdef int put(self, ArmPlace *at, name, R, p) except -1
