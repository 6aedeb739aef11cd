"""Static compliance of a manipulator at its end effector: virtual work over flexible segments. Dissertation (8.2), corrected.

A segment lies along x of its own axes s; its compliance c_s = [P1 P2; P2^T P4] maps the wrench [f; m] at its tip to the displacement
[dl; dphi] there:  P1 = diag(c0, c1, c1),  P2 = [0 0 0; 0 0 c2; 0 -c2 0],  P4 = diag(c3, c4, c4).

    beam    c0 = l/(E A) or 0, c1 = l^3/(3 E I), c2 = l^2/(2 E I), c3 = l/(G J), c4 = l/(E I)     (printed c3 lacks l)
    lumped  angular spring at the start of a rigid length l: c1 = l^2/k_b, c2 = l/k_b, c3 = 1/k_t, c4 = 1/k_b     (printed c4 has l/k_b)
    hinge   of a locked joint about x: c3 = 1/k

    C = sum X^T c_s X,  X = [R_sE 0; d~ R_sE  R_sE],  d from the segment's tip to E, in s;  K = C^-1

C and K are on the axes of E at its origin, order x, y, z, rotations about x, y, z. Rigid parts are the distances between the segments.
"""

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
