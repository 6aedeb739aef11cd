"""Stiffness and damping of the link that move on with the arm's configuration, a piece of the work per inner step.

K holds near one configuration. When a joint has moved on by the refresh angle, in turn and one per inner step:

    K = C^-1 at the present joint angles,  A = L^-1 K L^-T with M = L L^T of the payload at E
    sweeps of Jacobi rotations,  A = V diag(w^2) V^T
    D~ = (D^-1 + h M^-1)^-1 = L V diag(c w/(1 + h c w)) V^T L^T,  as D = c M # K = c L A^1/2 L^T
    a blend from the old K and D~ to the new ones
"""

from libc.math cimport fabs, sqrt
from libc.string cimport memcpy

from rt_kernels.dynamics.manipulator.arm cimport Arm, ArmParams, ArmState
from rt_kernels.dynamics.manipulator.compliance cimport arm_compliance, arm_stiffness
from rt_kernels.dynamics.manipulator.resolved_rate cimport rotate_pair

cdef enum:
    SWEEPS = 8
    REFRESH_DONE = 0
    REFRESH_STIFFNESS = 1
    REFRESH_SWEEP = 2                  # and the following, one sweep each


cdef void begin_refresh(Arm *self) noexcept nogil:
    """Stiffness at the present joint angles; `rows` holds their motion."""
    cdef ArmState *s = &self.flat.state
    cdef const ArmParams *p = &self.flat.params
    cdef double C[36]
    cdef double t[36]
    cdef int i, j, k
    arm_compliance(&p.segments, self.rows, C)
    s.refresh = REFRESH_DONE
    if not arm_stiffness(C, s.K_to):
        return
    # A = L^-1 K L^-T
    for i in range(6):
        for j in range(6):
            t[6 * i + j] = 0.0
            for k in range(i + 1):
                t[6 * i + j] += p.L_inverse[6 * i + k] * s.K_to[6 * k + j]
    for i in range(6):
        for j in range(6):
            s.A[i][j] = 0.0
            for k in range(j + 1):
                s.A[i][j] += t[6 * i + k] * p.L_inverse[6 * j + k]
            s.V[i][j] = 1.0 if i == j else 0.0
    memcpy(s.q_next, s.x + p.nq, sizeof(s.q_next))
    s.refresh = REFRESH_SWEEP


cdef void finish_refresh(Arm *self) noexcept nogil:
    """D~ = L V diag(g) V^T L^T with g = c w/(1 + h c w), w^2 the eigenvalues of A; then the blend begins."""
    cdef ArmState *s = &self.flat.state
    cdef const ArmParams *p = &self.flat.params
    cdef double U[36]
    cdef double g[6]
    cdef double w
    cdef int i, j, k
    for i in range(6):
        w = p.decrement * sqrt(s.A[i][i]) if s.A[i][i] > 0.0 else 0.0
        g[i] = w / (1.0 + p.h * w)
    # U = L V
    for i in range(6):
        for j in range(6):
            U[6 * i + j] = 0.0
            for k in range(i + 1):
                U[6 * i + j] += p.L[6 * i + k] * s.V[k][j]
    for i in range(6):
        for j in range(i + 1):
            w = 0.0
            for k in range(6):
                w += U[6 * i + k] * g[k] * U[6 * j + k]
            s.D_to[6 * i + j] = w
            s.D_to[6 * j + i] = w
    memcpy(s.K_from, s.K, sizeof(s.K))
    memcpy(s.D_from, s.D, sizeof(s.D))
    memcpy(s.q_stiffness, s.q_next, sizeof(s.q_next))
    s.blended = 0.0
    s.refreshed += 1.0
    s.refresh = REFRESH_DONE


cdef void follow_configuration(Arm *self) noexcept nogil:
    """One piece of the work per inner step: begin, one sweep of Jacobi rotations, finish, or a step of the blend."""
    cdef ArmState *s = &self.flat.state
    cdef const ArmParams *p = &self.flat.params
    cdef int i, j
    if s.refresh == REFRESH_DONE:
        if s.blended < 1.0:
            s.blended = s.blended + p.blend
            if s.blended > 1.0:
                s.blended = 1.0
            for i in range(36):
                s.K[i] = s.K_from[i] + s.blended * (s.K_to[i] - s.K_from[i])
                s.D[i] = s.D_from[i] + s.blended * (s.D_to[i] - s.D_from[i])
            return
        for i in range(p.n):
            if fabs(s.x[p.nq + i] - s.q_stiffness[i]) > p.keys.refresh_angle:
                s.refresh = REFRESH_STIFFNESS
                return
    elif s.refresh == REFRESH_STIFFNESS:
        begin_refresh(self)
    elif s.refresh < REFRESH_SWEEP + SWEEPS:
        for i in range(5):
            for j in range(i + 1, 6):
                rotate_pair(s.A, s.V, i, j)
        s.refresh += 1
    else:
        finish_refresh(self)
