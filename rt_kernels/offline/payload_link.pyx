# distutils: extra_compile_args = -O1
"""Payload as a free body on the elastic end of a manipulator. Yaskevich 2020 (8.2), corrected; frames N inertial, E end effector, G grapple
fixture (on the payload, together with E when nothing is deflected), P payload's centre of mass, B base port.

    r = R_NE^T (p_G - p_E),  phi = vee of the antisymmetric part of R_EG                      deflection, axes of E
    [f; m] = K [r; phi] + D [r'; phi']                                                        on the end effector at E
    on the payload: -f at G, -m;  on the end effector the moment about E is m + r x f, so that both sides balance exactly
    contact, measured on the base port: its negative acts on the payload at the same point, the base port's origin
                                        (printed with opposite signs of force and moment, and on the payload's own port)

One step is semi-implicit Euler, velocity first: explicit Euler would feed h w^2/2 of negative damping into every mode.
"""

import numpy as np

from rt_kernels.algebra cimport pose
from rt_kernels.algebra cimport quat
from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3


cdef struct PayloadLink:
    double mass
    double inertia[9]     # about P, axes of P
    double inverse[9]
    double X_PG[7]
    double K[36]
    double D[36]


cdef struct PayloadState:
    double X_NP[7]
    double v[3]           # of P, N axes
    double w[3]           # axes of P


cdef void link_wrench(const PayloadLink *c, const PayloadState *s, const double *X_NE, const double *V_NE, double *F_E,
                      double *F_P) noexcept nogil:
    """Wrench on the end effector (6: at E, axes of E) and on the payload (6: force and moment about P, N axes).

    X_NE pose and V_NE = [v; w] twist of the end effector, N axes, velocity of the point E.
    """
    cdef double X_NG[7]
    cdef double q_EG[4]
    cdef double R[9]
    cdef double r_N[3]
    cdef double lever[3]
    cdef double w_N[3]
    cdef double t[3]
    cdef double d[6]
    cdef double rate[6]
    cdef int i, j
    pose.multiply(s.X_NP, c.X_PG, X_NG)
    # deflection
    vec3.sub(X_NG, X_NE, r_N)
    quat.rotate_back(X_NE + 3, r_N, d)
    quat.conjugate(X_NE + 3, q_EG)
    quat.multiply(q_EG, X_NG + 3, q_EG)
    quat.to_matrix(q_EG, R)
    d[3] = 0.5 * (R[7] - R[5])
    d[4] = 0.5 * (R[2] - R[6])
    d[5] = 0.5 * (R[3] - R[1])
    # its rate, seen from the turning frame E
    vec3.sub(X_NG, s.X_NP, lever)
    quat.rotate(s.X_NP + 3, s.w, w_N)
    vec3.cross(w_N, lever, t)
    vec3.add(s.v, t, rate)
    vec3.sub(rate, V_NE, rate)
    vec3.cross(V_NE + 3, r_N, t)
    vec3.sub(rate, t, rate)
    vec3.sub(w_N, V_NE + 3, rate + 3)
    quat.rotate_back(X_NE + 3, rate, rate)
    quat.rotate_back(X_NE + 3, rate + 3, rate + 3)
    for i in range(6):
        F_E[i] = 0.0
        for j in range(6):
            F_E[i] += c.K[6 * i + j] * d[j] + c.D[6 * i + j] * rate[j]
    # payload: -f at G and -m
    quat.rotate(X_NE + 3, F_E, t)
    vec3.scale(-1.0, t, F_P)
    vec3.cross(lever, F_P, F_P + 3)
    quat.rotate(X_NE + 3, F_E + 3, t)
    vec3.sub(F_P + 3, t, F_P + 3)
    # the force acts on E at G
    vec3.cross(d, F_E, t)
    vec3.add(F_E + 3, t, F_E + 3)


cdef void add_contact(const PayloadState *s, const double *X_NB, const double *F_B, double *F_P) noexcept nogil:
    """Add the reaction to the measured wrench F_B (6) on the base port (at and in B) to the payload's wrench F_P."""
    cdef double f[3]
    cdef double m[3]
    cdef double lever[3]
    quat.rotate(X_NB + 3, F_B, f)
    quat.rotate(X_NB + 3, F_B + 3, m)
    vec3.sub(F_P, f, F_P)
    vec3.sub(F_P + 3, m, F_P + 3)
    vec3.sub(X_NB, s.X_NP, lever)
    vec3.cross(lever, f, m)
    vec3.sub(F_P + 3, m, F_P + 3)


cdef void payload_step(const PayloadLink *c, PayloadState *s, const double *F_P, double h) noexcept nogil:
    """Velocities, then pose, over h [s]: m v' = f, I w' = m - w x I w."""
    cdef double m[3]
    cdef double L[3]
    cdef double t[3]
    cdef double dq[4]
    vec3.add_scaled(s.v, h / c.mass, F_P, s.v)
    quat.rotate_back(s.X_NP + 3, F_P + 3, m)
    rot3.apply(c.inertia, s.w, L)
    vec3.cross(s.w, L, t)
    vec3.sub(m, t, m)
    rot3.apply(c.inverse, m, t)
    vec3.add_scaled(s.w, h, t, s.w)
    vec3.add_scaled(s.X_NP, h, s.v, s.X_NP)
    vec3.scale(h, s.w, t)
    quat.exponential(t, dq)
    quat.multiply(s.X_NP + 3, dq, s.X_NP + 3)
    quat.renormalize(s.X_NP + 3)


cdef int _copy(double *to, value, shape, what) except -1:
    cdef int i
    numbers = np.asarray(value, dtype=float)
    if numbers.shape != shape or not np.all(np.isfinite(numbers)):
        raise ValueError(f"{what}: shape {numbers.shape}, finite numbers of shape {shape} are needed")
    numbers = numbers.reshape(-1)
    for i in range(numbers.size):
        to[i] = numbers[i]
    return 0


cdef int _put_pose(double *to, value, what) except -1:
    _copy(to, value, (7,), what)
    if not abs(np.linalg.norm(np.asarray(value, dtype=float)[3:]) - 1.0) < 1e-9:
        raise ValueError(f"{what}: norm of the quaternion {np.linalg.norm(np.asarray(value, dtype=float)[3:])}, limit 1 +- 1e-9")
    return 0


cdef class ElasticPayload:
    """Payload on the arm's end. mass kg, inertia (3, 3) kg.m2 about P in P; X_PG (7,); K, D (6, 6) as from `ArmCompliance`,
    `damping_matrix`."""

    cdef PayloadLink c
    cdef PayloadState s

    def __init__(self, double mass, inertia, X_PG, K, D):
        if not (np.isfinite(mass) and mass > 0.0):
            raise ValueError(f"mass: {mass} kg is not a finite number > 0")
        self.c.mass = mass
        _copy(self.c.inertia, inertia, (3, 3), "inertia")
        tensor = np.asarray(inertia, dtype=float)
        if not np.allclose(tensor, tensor.T, rtol=1e-9) or not np.linalg.eigvalsh(tensor).min() > 0.0:
            raise ValueError(f"inertia: {tensor.tolist()} kg.m2 is not symmetric positive definite")
        _copy(self.c.inverse, np.linalg.inv(tensor), (3, 3), "inertia")
        _put_pose(self.c.X_PG, X_PG, "X_PG")
        self.set_link(K, D)
        pose.identity(self.s.X_NP)

    def set_link(self, K, D):
        """New stiffness and damping (6, 6), axes of E: N/m, N/rad, N.m/rad; times s."""
        for what, value in (("K", K), ("D", D)):
            if not np.allclose(value, np.transpose(value), rtol=1e-9, atol=1e-9 * np.abs(value).max()):
                raise ValueError(f"{what}: not symmetric to 1e-9")
        _copy(self.c.K, K, (6, 6), "K")
        _copy(self.c.D, D, (6, 6), "D")

    def set_state(self, X_NP, v=(0.0, 0.0, 0.0), w=(0.0, 0.0, 0.0)):
        """Pose (7,), velocity of P (3,) m/s in N, rates (3,) rad/s in P."""
        _put_pose(self.s.X_NP, X_NP, "X_NP")
        _copy(self.s.v, v, (3,), "v")
        _copy(self.s.w, w, (3,), "w")

    def place(self, X_NE):
        """At rest without deflection: G on E."""
        cdef double X[7]
        cdef double inverse[7]
        _put_pose(X, X_NE, "X_NE")
        pose.inverse(self.c.X_PG, inverse)
        pose.multiply(X, inverse, self.s.X_NP)
        vec3.fill(0.0, 0.0, 0.0, self.s.v)
        vec3.fill(0.0, 0.0, 0.0, self.s.w)

    @property
    def state(self):
        """(X_NP (7,), v (3,), w (3,))"""
        return (np.array([self.s.X_NP[i] for i in range(7)]), np.array([self.s.v[i] for i in range(3)]),
                np.array([self.s.w[i] for i in range(3)]))

    def wrench(self, X_NE, V_NE):
        """(F_E (6,) at and in E, F_P (6,) about P in N) at the present state."""
        cdef double X[7]
        cdef double V[6]
        cdef double[::1] F_E = np.empty(6)
        cdef double[::1] F_P = np.empty(6)
        _put_pose(X, X_NE, "X_NE")
        _copy(V, V_NE, (6,), "V_NE")
        link_wrench(&self.c, &self.s, X, V, &F_E[0], &F_P[0])
        return np.asarray(F_E), np.asarray(F_P)

    def run(self, X_NE, int n, double h, X_NB=None, F_B=None):
        """n steps of h [s] with the end effector held at X_NE (7,), a constant measured wrench F_B (6,) on the base port at X_NB (7,).

        Returns (n, 13): X_NP, v, w after every step.
        """
        cdef double X[7]
        cdef double X_B[7]
        cdef double F_measured[6]
        cdef double V[6]
        cdef double F_E[6]
        cdef double F_P[6]
        cdef double[:, ::1] out = np.empty((n, 13))
        cdef int k, i
        cdef bint contact = F_B is not None
        if not (np.isfinite(h) and h > 0.0):
            raise ValueError(f"h: {h} s is not a finite number > 0")
        _put_pose(X, X_NE, "X_NE")
        _copy(V, np.zeros(6), (6,), "V_NE")
        if contact:
            _put_pose(X_B, X_NB, "X_NB")
            _copy(F_measured, F_B, (6,), "F_B")
        with nogil:
            for k in range(n):
                link_wrench(&self.c, &self.s, X, V, F_E, F_P)
                if contact:
                    add_contact(&self.s, X_B, F_measured, F_P)
                payload_step(&self.c, &self.s, F_P, h)
                for i in range(7):
                    out[k, i] = self.s.X_NP[i]
                for i in range(3):
                    out[k, 7 + i] = self.s.v[i]
                    out[k, 10 + i] = self.s.w[i]
        return np.asarray(out)
