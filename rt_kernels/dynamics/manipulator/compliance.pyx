"""Static compliance of a manipulator at its end effector: virtual work over flexible segments. Yaskevich 2020 (8.2), corrected.

A segment lies along x of its own axes s; its compliance c_s = [P1 P2; P2^T P4] maps the wrench [f; m] at its tip to the displacement
[dl; dphi] there:  P1 = diag(c0, c1, c1),  P2 = [0 0 0; 0 0 c2; 0 -c2 0],  P4 = diag(c3, c4, c4).

    beam    c0 = l/(E A) or 0, c1 = l^3/(3 E I), c2 = l^2/(2 E I), c3 = l/(G J), c4 = l/(E I)     (printed c3 lacks l)
    lumped  angular spring at the start of a rigid length l: c1 = l^2/k_b, c2 = l/k_b, c3 = 1/k_t, c4 = 1/k_b     (printed c4 has l/k_b)
    hinge   of a locked joint about x: c3 = 1/k

    C = sum X^T c_s X,  X = [R_sE 0; d~ R_sE  R_sE],  d from the segment's tip to E, in s;  K = C^-1

C and K are on the axes of E at its origin, order x, y, z, rotations about x, y, z. Rigid parts are the distances between the segments.
"""

import numpy as np

from libc.math cimport sqrt
from libc.string cimport memset

from rt_kernels.algebra.values cimport (
    Mat3, Vec3, cross_columns, mat_multiply, mat_transposed_vec, put_block, sub, transposed, xyz,
)
from rt_kernels.multibody.tree cimport Tree


cdef void arm_compliance(const ArmSegments *arm, const double *rows, double *C) noexcept nogil:
    """C (36) from the rows of the tree's `motion`. Column k: the wrench of unit component k at E is carried to every segment's tip."""
    cdef ArmFrame E = arm_place(&arm.E, rows), tip
    cdef Mat3 R_sE
    cdef Vec3 d
    cdef double X[6][6]
    cdef double Y[6][6]
    cdef const ArmSegment *s
    cdef double total
    cdef int n, i, j, k
    memset(C, 0, 36 * sizeof(double))
    memset(X, 0, sizeof(X))
    for n in range(arm.n):
        s = &arm.segment[n]
        tip = arm_place(&s.tip, rows)
        d = mat_transposed_vec(tip.R, sub(E.p, tip.p))
        R_sE = mat_multiply(transposed(tip.R), E.R)
        put_block(R_sE, &X[0][0])
        put_block(cross_columns(d, R_sE), &X[3][0])
        put_block(R_sE, &X[3][3])
        for k in range(6):
            Y[0][k] = s.c0 * X[0][k]
            Y[1][k] = s.c1 * X[1][k] + s.c2 * X[5][k]
            Y[2][k] = s.c1 * X[2][k] - s.c2 * X[4][k]
            Y[3][k] = s.c3 * X[3][k]
            Y[4][k] = s.c4 * X[4][k] - s.c2 * X[2][k]
            Y[5][k] = s.c4 * X[5][k] + s.c2 * X[1][k]
        for i in range(6):
            for j in range(i, 6):
                total = 0.0
                for k in range(6):
                    total += X[k][i] * Y[k][j]
                C[6 * i + j] += total
    for i in range(6):
        for j in range(i):
            C[6 * i + j] = C[6 * j + i]


cdef int arm_stiffness(const double *C, double *K) noexcept nogil:
    """K = C^-1 (36), symmetric, by Cholesky; 0 when C is not positive definite to 1e-12 of a diagonal element (K then untouched)."""
    cdef double L[36]
    cdef double inverse[36]
    cdef double t
    cdef int i, j, k
    for i in range(6):
        for j in range(i + 1):
            t = C[6 * i + j]
            for k in range(j):
                t -= L[6 * i + k] * L[6 * j + k]
            if i == j:
                if not (t > 1e-12 * C[7 * i]):
                    return 0
                L[7 * i] = sqrt(t)
            else:
                L[6 * i + j] = t / L[7 * j]
    # L^-1, then K = L^-T L^-1
    for j in range(6):
        for i in range(j, 6):
            t = 1.0 if i == j else 0.0
            for k in range(j, i):
                t -= L[6 * i + k] * inverse[6 * k + j]
            inverse[6 * i + j] = t / L[7 * i]
    for i in range(6):
        for j in range(i + 1):
            t = 0.0
            for k in range(i, 6):
                t += inverse[6 * k + i] * inverse[6 * k + j]
            K[6 * i + j] = t
            K[6 * j + i] = t
    return 1


cdef class ArmCompliance:
    """Compliance and stiffness of an arm, given as a `Tree`, at a named frame, from segments of `rt_kernels.model.arm_segments`."""

    def __init__(self, Tree tree, str frame, segments):
        cdef int k
        segments = list(segments)
        if not 0 < len(segments) <= ARM_SEGMENTS:
            raise ValueError(f"segments: {len(segments)}, limits 1...{ARM_SEGMENTS}")
        self.tree = tree
        self.set_place(&self.arm.E, frame, np.eye(3), np.zeros(3))
        self.arm.n = len(segments)
        for k in range(self.arm.n):
            body, tip, axis, c = segments[k]
            # any axes with x along the segment: its compliance is the same about all cross axes
            other = np.eye(3)[np.argmin(np.abs(axis))]
            y = np.cross(other, axis) / np.linalg.norm(np.cross(other, axis))
            self.set_place(&self.arm.segment[k].tip, body, np.stack([axis, y, np.cross(axis, y)], axis=1), tip)
            self.arm.segment[k].c0, self.arm.segment[k].c1, self.arm.segment[k].c2, self.arm.segment[k].c3, self.arm.segment[k].c4 = c

    cdef int set_place(self, ArmPlace *at, name, R, p) except -1:
        # axes and point of a named frame, moved to the aligned frame of its slot
        cdef int i
        f = self.tree.frame(name)
        R, p = f.R_BF @ R, f.R_BF @ p + f.p_BF_B
        at.slot = -1
        if f.body >= 0:
            at.slot = self.tree.slot_of(f.body)
            align = self.tree._align(at.slot).T
            R, p = align @ R, align @ p
        for i in range(9):
            (&at.R.xx)[i] = R[i // 3, i % 3]
        at.p = xyz(p[0], p[1], p[2])
        return 0

    def compliance(self, q):
        """C (6, 6) at joint coordinates q: m/N, 1/N, rad/(N.m); axes and origin of the frame."""
        cdef double[:, ::1] rows = self.tree._motion(q, None)
        cdef double[:, ::1] C = np.empty((6, 6))
        arm_compliance(&self.arm, &rows[0, 0], &C[0, 0])
        return np.asarray(C)

    def stiffness(self, q):
        """K = C^-1 (6, 6); ValueError when some direction has no compliance (give a beam its EA)."""
        cdef double[:, ::1] C = self.compliance(q)
        cdef double[:, ::1] K = np.empty((6, 6))
        if not arm_stiffness(&C[0, 0], &K[0, 0]):
            raise ValueError(f"compliance: condition number {np.linalg.cond(C):.1e}, limit 1e12: a direction is rigid, "
                             "give a beam its EA [N]")
        return np.asarray(K)
