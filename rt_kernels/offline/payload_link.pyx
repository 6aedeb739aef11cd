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

from rt_kernels.algebra.values cimport (
    Mat3, Pose, Twist, Vec3, Wrench, add, antisymmetric_part, compose, conjugate, cross, exponential, inverse, mat_vec, mul, pose_of, put,
    put_pose, put_wrench, quat_multiply, renormalized, rotate, rotate_back, sub, to_matrix, wrench, xyz, xyzw,
)


cdef struct PayloadLink:
    double mass
    Mat3 inertia          # about P, axes of P
    Mat3 inverse
    Pose X_PG
    double K[36]
    double D[36]


cdef struct PayloadState:
    Pose X_NP
    Vec3 v                # of P, N axes
    Vec3 w                # axes of P


cdef void link_wrench(const PayloadLink *c, const PayloadState *s, Pose X_NE, Twist V_NE, Wrench *F_E, Wrench *F_P) noexcept nogil:
    """Wrench on the end effector (at E, axes of E) and on the payload (force and moment about P, N axes).

    X_NE pose and V_NE = [v; w] twist of the end effector, N axes, velocity of the point E.
    """
    cdef Pose X_NG = compose(s.X_NP, c.X_PG)
    cdef Vec3 r_N = sub(X_NG.p, X_NE.p)
    cdef Vec3 lever = sub(X_NG.p, s.X_NP.p)
    cdef Vec3 w_N = rotate(s.X_NP.q, s.w)
    cdef Vec3 v_G = add(s.v, cross(w_N, lever))
    cdef Vec3 r = rotate_back(X_NE.q, r_N)
    cdef double d[6]
    cdef double rate[6]
    cdef double F[6]
    cdef int i, j
    # deflection, and its rate seen from the turning frame E
    put(r, d)
    put(antisymmetric_part(to_matrix(quat_multiply(conjugate(X_NE.q), X_NG.q))), d + 3)
    put(rotate_back(X_NE.q, sub(sub(v_G, V_NE.v), cross(V_NE.w, r_N))), rate)
    put(rotate_back(X_NE.q, sub(w_N, V_NE.w)), rate + 3)
    for i in range(6):
        F[i] = 0.0
        for j in range(6):
            F[i] += c.K[6 * i + j] * d[j] + c.D[6 * i + j] * rate[j]
    F_E[0] = wrench(F)
    # payload: -f at G and -m
    F_P.f = mul(-1.0, rotate(X_NE.q, F_E.f))
    F_P.m = sub(cross(lever, F_P.f), rotate(X_NE.q, F_E.m))
    # the force acts on E at G
    F_E.m = add(F_E.m, cross(r, F_E.f))


cdef void add_contact(const PayloadState *s, Pose X_NB, Wrench F_B, Wrench *F_P) noexcept nogil:
    """Add the reaction to the measured wrench F_B on the base port (at and in B) to the payload's wrench F_P."""
    cdef Vec3 f = rotate(X_NB.q, F_B.f)
    F_P.f = sub(F_P.f, f)
    F_P.m = sub(sub(F_P.m, rotate(X_NB.q, F_B.m)), cross(sub(X_NB.p, s.X_NP.p), f))


cdef void payload_step(const PayloadLink *c, PayloadState *s, Wrench F_P, double h) noexcept nogil:
    """Velocities, then pose, over h [s]: m v' = f, I w' = m - w x I w."""
    cdef Vec3 m = rotate_back(s.X_NP.q, F_P.m)
    s.v = add(s.v, mul(h / c.mass, F_P.f))
    s.w = add(s.w, mul(h, mat_vec(c.inverse, sub(m, cross(s.w, mat_vec(c.inertia, s.w))))))
    s.X_NP.p = add(s.X_NP.p, mul(h, s.v))
    s.X_NP.q = renormalized(quat_multiply(s.X_NP.q, exponential(mul(h, s.w))))


cdef int _copy(double *to, value, shape, what) except -1:
    cdef int i
    numbers = np.asarray(value, dtype=float)
    if numbers.shape != shape or not np.all(np.isfinite(numbers)):
        raise ValueError(f"{what}: shape {numbers.shape}, finite numbers of shape {shape} are needed")
    numbers = numbers.reshape(-1)
    for i in range(numbers.size):
        to[i] = numbers[i]
    return 0


cdef int _put_pose(Pose *to, value, what) except -1:
    _copy(&to.p.x, value, (7,), what)
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
        _copy(&self.c.inertia.xx, inertia, (3, 3), "inertia")
        tensor = np.asarray(inertia, dtype=float)
        if not np.allclose(tensor, tensor.T, rtol=1e-9) or not np.linalg.eigvalsh(tensor).min() > 0.0:
            raise ValueError(f"inertia: {tensor.tolist()} kg.m2 is not symmetric positive definite")
        _copy(&self.c.inverse.xx, np.linalg.inv(tensor), (3, 3), "inertia")
        _put_pose(&self.c.X_PG, X_PG, "X_PG")
        self.set_link(K, D)
        self.s.X_NP = pose_of(xyz(0.0, 0.0, 0.0), xyzw(0.0, 0.0, 0.0, 1.0))

    def set_link(self, K, D):
        """New stiffness and damping (6, 6), axes of E: N/m, N/rad, N.m/rad; times s."""
        for what, value in (("K", K), ("D", D)):
            if not np.allclose(value, np.transpose(value), rtol=1e-9, atol=1e-9 * np.abs(value).max()):
                raise ValueError(f"{what}: not symmetric to 1e-9")
        _copy(self.c.K, K, (6, 6), "K")
        _copy(self.c.D, D, (6, 6), "D")

    def set_state(self, X_NP, v=(0.0, 0.0, 0.0), w=(0.0, 0.0, 0.0)):
        """Pose (7,), velocity of P (3,) m/s in N, rates (3,) rad/s in P."""
        _put_pose(&self.s.X_NP, X_NP, "X_NP")
        _copy(&self.s.v.x, v, (3,), "v")
        _copy(&self.s.w.x, w, (3,), "w")

    def place(self, X_NE):
        """At rest without deflection: G on E."""
        cdef Pose X
        _put_pose(&X, X_NE, "X_NE")
        self.s.X_NP = compose(X, inverse(self.c.X_PG))
        self.s.v = self.s.w = xyz(0.0, 0.0, 0.0)

    @property
    def state(self):
        """(X_NP (7,), v (3,), w (3,))"""
        cdef double[::1] X = np.empty(7), v = np.empty(3), w = np.empty(3)
        put_pose(self.s.X_NP, &X[0])
        put(self.s.v, &v[0])
        put(self.s.w, &w[0])
        return np.asarray(X), np.asarray(v), np.asarray(w)

    def wrench(self, X_NE, V_NE):
        """(F_E (6,) at and in E, F_P (6,) about P in N) at the present state."""
        cdef Pose X
        cdef Twist V
        cdef Wrench F_E, F_P
        cdef double[:, ::1] out = np.empty((2, 6))
        _put_pose(&X, X_NE, "X_NE")
        _copy(&V.v.x, V_NE, (6,), "V_NE")
        link_wrench(&self.c, &self.s, X, V, &F_E, &F_P)
        put_wrench(F_E, &out[0, 0])
        put_wrench(F_P, &out[1, 0])
        return np.asarray(out)[0], np.asarray(out)[1]

    def run(self, X_NE, int n, double h, X_NB=None, F_B=None):
        """n steps of h [s] with the end effector held at X_NE (7,), a constant measured wrench F_B (6,) on the base port at X_NB (7,).

        Returns (n, 13): X_NP, v, w after every step.
        """
        cdef Pose X, X_B
        cdef Wrench F_measured, F_E, F_P
        cdef Twist V
        cdef double[:, ::1] out = np.empty((n, 13))
        cdef int k
        cdef bint contact = F_B is not None
        if not (np.isfinite(h) and h > 0.0):
            raise ValueError(f"h: {h} s is not a finite number > 0")
        _put_pose(&X, X_NE, "X_NE")
        V.v = V.w = xyz(0.0, 0.0, 0.0)
        if contact:
            _put_pose(&X_B, X_NB, "X_NB")
            _copy(&F_measured.f.x, F_B, (6,), "F_B")
        with nogil:
            for k in range(n):
                link_wrench(&self.c, &self.s, X, V, &F_E, &F_P)
                if contact:
                    add_contact(&self.s, X_B, F_measured, &F_P)
                payload_step(&self.c, &self.s, F_P, h)
                put_pose(self.s.X_NP, &out[k, 0])
                put(self.s.v, &out[k, 7])
                put(self.s.w, &out[k, 10])
        return np.asarray(out)
