"""Structs and functions of `compliance.pyx`."""

from rt_kernels.algebra.values cimport Mat3, Vec3, add, mat, mat_multiply, mat_vec, vec
from rt_kernels.multibody.tree cimport Tree

cdef enum:
    ARM_SEGMENTS = 32


cdef struct ArmPlace:
    int slot              # of the tree, -1 the inertial frame
    Mat3 R                # axes in the aligned frame of the slot
    Vec3 p                # point in it


cdef struct ArmFrame:     # in the inertial frame
    Mat3 R                # axes
    Vec3 p                # point


cdef struct ArmSegment:
    ArmPlace tip
    double c0, c1, c2, c3, c4


cdef struct ArmSegments:
    int n
    ArmSegment segment[ARM_SEGMENTS]
    ArmPlace E


cdef inline ArmFrame arm_place(const ArmPlace *at, const double *rows) noexcept nogil:
    """Axes and point in the inertial frame, from the rows of the tree's `motion`."""
    cdef ArmFrame out
    cdef Mat3 R
    if at.slot < 0:
        out.R = at.R
        out.p = at.p
        return out
    rows += 18 * at.slot
    R = mat(rows)
    out.R = mat_multiply(R, at.R)
    out.p = add(mat_vec(R, at.p), vec(rows + 9))
    return out


cdef void arm_compliance(const ArmSegments *arm, const double *rows, double *C) noexcept nogil
cdef int arm_stiffness(const double *C, double *K) noexcept nogil


cdef class ArmCompliance:
    cdef readonly Tree tree
    cdef ArmSegments arm
    cdef int set_place(self, ArmPlace *at, name, R, p) except -1
