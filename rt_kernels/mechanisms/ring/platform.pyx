# distutils: extra_compile_args = -O3
"""Dynamics of a docking ring on up to six legs (Gough-Stewart, Hunt), reduced to the six degrees of freedom of the ring.

Source: Yaskevich 2020, ch. 1 (1.3.4), (1.4) and ch. 2 (2.3.4), (2.4), corrected:

* the ring-side point has its own centripetal acceleration: p'' = C_d^-1 (C_i u' + c), c = w_N x (w_N x l) - w_n (printed c = w_n, sign +);
* the chain's acceleration contains eps x r, and moments of prismatic joints use the whole vector between joints;
* leg angles by square roots of sums, not by ctg p1, which divides by zero in the nominal pose; the spin of a link is about its x axis;
* the ring's reaction on the last link is part of the wrench on the base (printed: zero).

Frames: everything is resolved in the base frame 0 (on the active craft: A), X along the docking axis. Ring: pose X_0N, velocities relative
to the base u = [v_N; w_N], both in base axes. Joint coordinates p: angles [rad], strokes [m]; p' = H u, p'' = H u' + h.
Reduction: A* = M_R + sum H^T A_k H, b* = s_R + sum H^T (b_k - A_k h_k), A* u' = b*; A_k, b_k from Kane's sums over the bodies with mass.
A moving base enters with its absolute angular velocity, its derivative, and the acceleration of its origin (less gravity).

Wrench on the base, at O_0: sum over legs of the ring's reaction lambda on the leg, less the rate of momentum of the leg's bodies. It equals
the external wrench on the ring less the rate of momentum of the whole mechanism.

Leg kinds: UPS, SPU, UCU (struts), RUS, RSU (crank and link). A differential ball screw joins stroke p3 and spin p4 of a UCU leg:
p_N = s i_N p3 + p4 turns the nut, i_N = 2 pi/lead, s = +1 or -1 the hand: A += I_N H_N^T H_N, b += H_N^T m_N, H_N = [0, 0, s i_N, 1],
m_N = s f_S/i_N; the spring feels p3 + s p4/i_N. (The text mixes the two hands: its p3 - p4/i_N is right for s = -1 only.)
The axial part of the joint effort contains the nut's inertia torque: it comes out of lambda by itself.
"""

import numpy as np

from libc.math cimport sqrt
from libc.string cimport memset

from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3
from rt_kernels.algebra.sincos cimport atan2


cdef inline bint place_leg(const Leg *leg, const double *p_0N, const double *R_0N, LegMotion *m) noexcept nogil:
    """Joint coordinates of a ring pose in closed form. False if the pose is outside the leg's workspace (then the last one is kept)."""
    cdef double d[3]
    cdef double r[3]
    cdef double e[3]
    cdef double L, rho, planar, c1, s1, c2, s2, l12, l23, l23F2, h
    rot3.apply(R_0N, leg.p_NQ, d)
    vec3.add(p_0N, d, d)
    vec3.sub(d, leg.p_0J, d)
    rot3.apply_transposed(leg.R_0J, d, r)
    if leg.kind == RUS or leg.kind == RSU:
        # crank in the hinge plane, link to a point at height h above it
        l12 = leg.link[0][0]
        l23 = leg.link[leg.joints - 1][0]
        h = r[2]
        l23F2 = l23 * l23 - h * h
        planar = r[0] * r[0] + r[1] * r[1]
        if not (l23F2 > 0.0 and planar > 0.0):
            return False
        rho = sqrt(planar)
        c1 = (l12 * l12 + planar - l23F2) / (2.0 * l12 * rho)
        if not (c1 > -1.0 and c1 < 1.0):
            return False
        s1 = leg.elbow * sqrt((1.0 - c1) * (1.0 + c1))
        m.c[0] = (c1 * r[0] - s1 * r[1]) / rho
        m.s[0] = (s1 * r[0] + c1 * r[1]) / rho
        # direction of the link in the frame of its universal (or spherical) joint on the crank
        vec3.fill(m.c[0] * r[0] + m.s[0] * r[1] - l12, -m.s[0] * r[0] + m.c[0] * r[1], r[2], e)
        rot3.apply_transposed(leg.R_LU, e, e)
        rho = sqrt(e[0] * e[0] + e[1] * e[1])
        if not (rho > 1e-9 * l23):
            return False
        m.c[1] = e[0] / rho
        m.s[1] = e[1] / rho
        m.c[2] = rho / l23
        m.s[2] = -e[2] / l23
        m.p[0] = atan2(m.s[0], m.c[0])
        m.p[1] = atan2(m.s[1], m.c[1])
        m.p[2] = atan2(m.s[2], m.c[2])
    else:
        L = vec3.norm(r)
        rho = sqrt(r[0] * r[0] + r[2] * r[2])
        if not (rho > 1e-9 * L):
            return False
        m.c[0] = r[0] / rho
        m.s[0] = -r[2] / rho
        m.c[1] = rho / L
        m.s[1] = r[1] / L
        m.p[0] = atan2(m.s[0], m.c[0])
        m.p[1] = atan2(m.s[1], m.c[1])
        m.p[leg.stroke] = L - leg.length0
    if leg.spin >= 0:
        # ring-side axis in the link at zero spin: the link's y axis must be square to it
        leg_frame_at_zero_spin(leg, m, d, e, r)
        rot3.apply(R_0N, leg.e_N, d)
        c2 = vec3.dot(r, d)
        s2 = -vec3.dot(e, d)
        L = sqrt(c2 * c2 + s2 * s2)
        if not (L > 1e-9):
            return False
        m.c[leg.spin] = c2 / L
        m.s[leg.spin] = s2 / L
        m.p[leg.spin] = atan2(s2, c2)
    return True


cdef inline void leg_frame_at_zero_spin(const Leg *leg, const LegMotion *m, double *x, double *y, double *z) noexcept nogil:
    """Axes of the link before its spin, in the base."""
    cdef double R[9]
    cdef double T[9]
    cdef int j
    for j in range(9):
        R[j] = leg.R_0J[j]
    for j in range(leg.joints):
        if j == 1 and leg.turned:
            rot3.multiply(R, leg.R_LU, T)
            R[0] = T[0]; R[1] = T[1]; R[2] = T[2]; R[3] = T[3]; R[4] = T[4]; R[5] = T[5]; R[6] = T[6]; R[7] = T[7]; R[8] = T[8]
        if not leg.prismatic[j] and j != leg.spin:
            turn(R, leg.axis[j], m.s[j], m.c[j])
    vec3.fill(R[0], R[3], R[6], x)
    vec3.fill(R[1], R[4], R[7], y)
    vec3.fill(R[2], R[5], R[8], z)


cdef inline void turn(double *R, int axis, double s, double c) noexcept nogil:
    """R <- R Rot(axis): only two columns change."""
    cdef int a = 1 if axis == 0 else (2 if axis == 1 else 0)
    cdef int b = 2 if axis == 0 else (0 if axis == 1 else 1)
    cdef int i
    cdef double u, v
    for i in range(3):
        u = R[3 * i + a]
        v = R[3 * i + b]
        R[3 * i + a] = c * u + s * v
        R[3 * i + b] = c * v - s * u


cdef inline void spread_leg(const Leg *leg, LegMotion *m) noexcept nogil:
    """Axes, joint centres and body frames in the base, from the joint coordinates."""
    cdef double R[9]
    cdef double T[9]
    cdef double d[3]
    cdef double O[3]
    cdef int i, j
    for i in range(9):
        R[i] = leg.R_0J[i]
    vec3.copy(leg.p_0J, O)
    for j in range(leg.joints):
        if j == 1 and leg.turned:
            rot3.multiply(R, leg.R_LU, T)
            for i in range(9):
                R[i] = T[i]
        vec3.fill(R[leg.axis[j]], R[3 + leg.axis[j]], R[6 + leg.axis[j]], m.axis[j])
        if leg.prismatic[j]:
            vec3.add_scaled(O, m.p[j], m.axis[j], O)
        else:
            turn(R, leg.axis[j], m.s[j], m.c[j])
        vec3.copy(O, m.pole[j])
        for i in range(9):
            m.R[j][i] = R[i]
        rot3.apply(R, leg.link[j], d)
        vec3.add(O, d, O)
    vec3.copy(O, m.cut)


cdef inline void close_leg(const Leg *leg, const double *R_0N, const double *v_N, const double *w_N, LegMotion *m) noexcept nogil:
    """H, h, p_rate: p' = H u, p'' = H u' + h with u = [v_N; w_N] relative to the base, base axes."""
    cdef double l[3]
    cdef double column[3][3]
    cdef double row[3][3]
    cdef double arm[3]
    cdef double c[3]
    cdef double e1[3]
    cdef double e2[3]
    cdef double t[3]
    cdef double bias[3]
    cdef double spin_bias[3]
    cdef double w_last[3]
    cdef double n_rate[3]
    cdef double det, share, c4
    cdef int i, j, k = 0
    # position rows: velocity of the cut point per joint, the spin joint has none
    for j in range(leg.joints):
        if j == leg.spin:
            continue
        m.position_joint[k] = j
        if leg.prismatic[j]:
            vec3.copy(m.axis[j], column[k])
        else:
            vec3.sub(m.cut, m.pole[j], arm)
            vec3.cross(m.axis[j], arm, column[k])
        k += 1
    vec3.cross(column[1], column[2], row[0])
    vec3.cross(column[2], column[0], row[1])
    vec3.cross(column[0], column[1], row[2])
    det = 1.0 / vec3.dot(column[0], row[0])
    for k in range(3):
        vec3.scale(det, row[k], row[k])
        vec3.copy(row[k], m.inverse + 3 * k)
    # H row of a position joint: row . (v + w x l) = [row, l x row]
    rot3.apply(R_0N, leg.p_NQ, l)
    for k in range(3):
        j = m.position_joint[k]
        vec3.copy(row[k], m.H[j])
        vec3.cross(l, row[k], m.H[j] + 3)
        m.p_rate[j] = vec3.dot(m.H[j], v_N) + vec3.dot(m.H[j] + 3, w_N)
    # universal joint at the ring: no relative rotation about n_R = e1 x e2
    if leg.spin >= 0:
        j = leg.joints - 1
        vec3.fill(m.R[j][1], m.R[j][4], m.R[j][7], e1)
        rot3.apply(R_0N, leg.e_N, e2)
        vec3.cross(e1, e2, m.normal)
        share = 1.0 / vec3.dot(m.normal, m.axis[leg.spin])
        for i in range(3):
            m.H[leg.spin][i] = 0.0
            m.H[leg.spin][3 + i] = share * m.normal[i]
        for k in range(3):
            j = m.position_joint[k]
            if not leg.prismatic[j]:
                c4 = share * vec3.dot(m.normal, m.axis[j])
                for i in range(6):
                    m.H[leg.spin][i] -= c4 * m.H[j][i]
        m.p_rate[leg.spin] = vec3.dot(m.H[leg.spin], v_N) + vec3.dot(m.H[leg.spin] + 3, w_N)
    # accelerations at u' = 0, relative to the base: the node's centripetal term less the chain's
    bias_motion(leg, m, bias, spin_bias, w_last)
    vec3.cross(w_N, l, t)
    vec3.cross(w_N, t, t)
    vec3.sub(t, bias, c)
    for k in range(3):
        m.h[m.position_joint[k]] = vec3.dot(row[k], c)
    if leg.spin >= 0:
        # n_R_rate = (w_n x e1) x e2 + e1 x (w_N x e2)
        vec3.cross(w_last, e1, t)
        vec3.cross(t, e2, n_rate)
        vec3.cross(w_N, e2, t)
        vec3.cross(e1, t, t)
        vec3.add(n_rate, t, n_rate)
        vec3.sub(w_last, w_N, t)
        c4 = -(vec3.dot(m.normal, spin_bias) + vec3.dot(n_rate, t))
        for k in range(3):
            j = m.position_joint[k]
            if not leg.prismatic[j]:
                c4 -= vec3.dot(m.normal, m.axis[j]) * m.h[j]
        m.h[leg.spin] = share * c4


cdef inline void bias_motion(const Leg *leg, const LegMotion *m, double *accel, double *spin_accel, double *w_last) noexcept nogil:
    """Acceleration of the cut point, and angular acceleration and velocity of the last body, at p'' = 0 and base at rest."""
    cdef double w[3]
    cdef double eps[3]
    cdef double from_pole[3]
    cdef double r[3]
    cdef double t[3]
    cdef int j
    vec3.fill(0.0, 0.0, 0.0, w)
    vec3.fill(0.0, 0.0, 0.0, eps)
    vec3.fill(0.0, 0.0, 0.0, accel)
    vec3.copy(leg.p_0J, from_pole)
    for j in range(leg.joints):
        vec3.sub(m.pole[j], from_pole, r)
        carry(eps, w, r, accel)
        vec3.cross(w, m.axis[j], t)
        if leg.prismatic[j]:
            vec3.add_scaled(accel, 2.0 * m.p_rate[j], t, accel)
        else:
            vec3.add_scaled(eps, m.p_rate[j], t, eps)
            vec3.add_scaled(w, m.p_rate[j], m.axis[j], w)
        vec3.copy(m.pole[j], from_pole)
    vec3.sub(m.cut, from_pole, r)
    carry(eps, w, r, accel)
    vec3.copy(eps, spin_accel)
    vec3.copy(w, w_last)


cdef inline void carry(const double *eps, const double *w, const double *r, double *accel) noexcept nogil:
    # acceleration of another point of the same body: + eps x r + w x (w x r)
    cdef double t[3]
    vec3.cross(eps, r, t)
    vec3.add(accel, t, accel)
    vec3.cross(w, r, t)
    vec3.cross(w, t, t)
    vec3.add(accel, t, accel)


cdef inline void leg_inertia(const Leg *leg, const BaseMotion *base, LegMotion *m) noexcept nogil:
    """A and b of A p'' = b of one leg: Kane's sums over the bodies with mass, absolute motion of a moving base, ball screw."""
    cdef double w[3]
    cdef double eps[3]
    cdef double accel[3]
    cdef double from_pole[3]
    cdef double r[3]
    cdef double t[3]
    cdef double a_c[3]
    cdef double torque[3]
    cdef double v[MAX_JOINTS][3]
    cdef double Iw[MAX_JOINTS][3]
    cdef double g
    cdef int i, j, k, n = leg.joints
    for i in range(n * n):
        m.A[i] = 0.0
    for j in range(n):
        m.b[j] = m.force[j]
    # the base: its angular motion, and the acceleration of the first joint
    vec3.copy(base.w, w)
    vec3.copy(base.alpha, eps)
    vec3.copy(base.accel, accel)
    carry(eps, w, leg.p_0J, accel)
    vec3.copy(leg.p_0J, from_pole)
    for j in range(n):
        vec3.sub(m.pole[j], from_pole, r)
        carry(eps, w, r, accel)
        vec3.cross(w, m.axis[j], t)
        if leg.prismatic[j]:
            vec3.add_scaled(accel, 2.0 * m.p_rate[j], t, accel)
        else:
            vec3.add_scaled(eps, m.p_rate[j], t, eps)
            vec3.add_scaled(w, m.p_rate[j], m.axis[j], w)
        vec3.copy(m.pole[j], from_pole)
        if leg.mass[j] == 0.0:
            continue
        # centre of mass at zero p'', inertia torque
        rot3.apply(m.R[j], leg.centre[j], r)
        vec3.copy(accel, a_c)
        carry(eps, w, r, a_c)
        vec3.copy(a_c, m.bias_accel[j])
        vec3.copy(eps, m.bias_spin[j])
        vec3.copy(w, m.spin_rate[j])
        vec3.add(m.pole[j], r, r)
        apply_inertia(m.R[j], leg.inertia[j], eps, torque)
        apply_inertia(m.R[j], leg.inertia[j], w, t)
        vec3.cross(w, t, t)
        vec3.add(torque, t, torque)
        # partial velocities of the joints before this body
        for i in range(j + 1):
            if leg.prismatic[i]:
                vec3.copy(m.axis[i], v[i])
                m.b[i] -= leg.mass[j] * vec3.dot(v[i], a_c)
            else:
                vec3.sub(r, m.pole[i], t)
                vec3.cross(m.axis[i], t, v[i])
                apply_inertia(m.R[j], leg.inertia[j], m.axis[i], Iw[i])
                m.b[i] -= leg.mass[j] * vec3.dot(v[i], a_c) + vec3.dot(m.axis[i], torque)
            for k in range(i + 1):
                g = leg.mass[j] * vec3.dot(v[i], v[k])
                if not leg.prismatic[i] and not leg.prismatic[k]:
                    g += vec3.dot(m.axis[k], Iw[i])
                m.A[n * i + k] += g
    # nut of the differential screw: p_N = s i_N p3 + p4
    if leg.i_N > 0.0:
        i = leg.stroke
        m.A[n * i + i] += leg.nut_inertia * leg.i_N * leg.i_N
        if leg.spin >= 0:
            k = leg.spin
            m.A[n * k + k] += leg.nut_inertia
            if k > i:
                m.A[n * k + i] += leg.nut_inertia * leg.hand * leg.i_N
            else:
                m.A[n * i + k] += leg.nut_inertia * leg.hand * leg.i_N
    for i in range(n):
        for k in range(i):
            m.A[n * k + i] = m.A[n * i + k]


cdef inline void apply_inertia(const double *R, const double *I, const double *w, double *out) noexcept nogil:
    # R I R^T w; out may be w
    rot3.apply_transposed(R, w, out)
    rot3.apply(I, out, out)
    rot3.apply(R, out, out)


cdef inline void reduce_leg(const Leg *leg, const LegMotion *m, double *A, double *b) noexcept nogil:
    """A += H^T A_k H (lower triangle, 6x6 by rows), b += H^T (b_k - A_k h_k)."""
    cdef double AH[6]
    cdef double rest
    cdef int i, j, k, n = leg.joints
    for j in range(n):
        rest = m.b[j]
        for i in range(6):
            AH[i] = 0.0
        for k in range(n):
            rest -= m.A[n * j + k] * m.h[k]
            for i in range(6):
                AH[i] += m.A[n * j + k] * m.H[k][i]
        for i in range(6):
            b[i] += m.H[j][i] * rest
            for k in range(i + 1):
                A[6 * i + k] += m.H[j][i] * AH[k]


cdef inline void ring_terms(const RingBody *ring, const BaseMotion *base, const double *p_0N, const double *R_0N, const double *v_N,
                            const double *w_N, const double *F_ring, double *A, double *b) noexcept nogil:
    """M_R and s_R: the ring's own inertia, and the wrench `F_ring` on it (force and moment about its centre, base axes),
    moving base included."""
    cdef double a[3]
    cdef double t[3]
    cdef double w[3]
    cdef double torque[3]
    cdef double column[3]
    cdef int i, k
    for i in range(36):
        A[i] = 0.0
    A[0] = ring.mass; A[7] = ring.mass; A[14] = ring.mass
    for k in range(3):
        vec3.fill(1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0, t)
        apply_inertia(R_0N, ring.inertia, t, column)
        for i in range(3):
            A[6 * (3 + i) + 3 + k] = column[i]
    # transport and Coriolis acceleration of the centre
    vec3.copy(base.accel, a)
    carry(base.alpha, base.w, p_0N, a)
    vec3.cross(base.w, v_N, t)
    vec3.add_scaled(a, 2.0, t, a)
    vec3.add_scaled(F_ring, -ring.mass, a, b)
    # m - w_a x I w_a - I (alpha_0 + w_0 x w_N)
    vec3.add(w_N, base.w, w)
    apply_inertia(R_0N, ring.inertia, w, torque)
    vec3.cross(w, torque, torque)
    vec3.cross(base.w, w_N, t)
    vec3.add(base.alpha, t, t)
    apply_inertia(R_0N, ring.inertia, t, t)
    vec3.add(torque, t, torque)
    vec3.sub(F_ring + 3, torque, b + 3)


cdef bint solve_ring(const double *A, const double *b, double *x) noexcept nogil:
    """x of A x = b by Cholesky, A from its lower triangle. False if A is not positive definite."""
    cdef double L[36]
    cdef double s
    cdef int i, j, k
    for i in range(6):
        for j in range(i + 1):
            s = A[6 * i + j]
            for k in range(j):
                s -= L[6 * i + k] * L[6 * j + k]
            if i == j:
                if not (s > 0.0):
                    return False
                L[7 * i] = sqrt(s)
            else:
                L[6 * i + j] = s / L[7 * j]
    for i in range(6):
        s = b[i]
        for k in range(i):
            s -= L[6 * i + k] * x[k]
        x[i] = s / L[7 * i]
    for i in range(5, -1, -1):
        s = x[i]
        for k in range(i + 1, 6):
            s -= L[6 * k + i] * x[k]
        x[i] = s / L[7 * i]
    return True


cdef inline void react_on_base(const Leg *leg, const double *accel, LegMotion *m, double *W) noexcept nogil:
    """Joint accelerations, reaction of the ring on the leg, and the leg's part of the wrench on the base, added to W (at O_0, base axes).

    accel = [v_N'; w_N'] relative to the base. lambda = C_d^-T (A p'' - b); what the ring gives the leg and the leg's bodies do not need for
    their acceleration, the base gets.
    """
    cdef double residual[MAX_JOINTS]
    cdef double a[3]
    cdef double alpha[3]
    cdef double r[3]
    cdef double t[3]
    cdef double torque[3]
    cdef double share
    cdef int i, j, k, n = leg.joints
    for j in range(n):
        m.p_accel[j] = m.h[j] + vec3.dot(m.H[j], accel) + vec3.dot(m.H[j] + 3, accel + 3)
    for j in range(n):
        residual[j] = -m.b[j]
        for k in range(n):
            residual[j] += m.A[n * j + k] * m.p_accel[k]
    # C_d^T lambda = residual: the spin row first, then the three position rows
    m.reaction[3] = 0.0
    if leg.spin >= 0:
        m.reaction[3] = residual[leg.spin] / vec3.dot(m.normal, m.axis[leg.spin])
    vec3.fill(0.0, 0.0, 0.0, m.reaction)
    for k in range(3):
        j = m.position_joint[k]
        share = residual[j]
        if leg.spin >= 0 and not leg.prismatic[j]:
            share -= m.reaction[3] * vec3.dot(m.normal, m.axis[j])
        vec3.add_scaled(m.reaction, share, m.inverse + 3 * k, m.reaction)
    vec3.add(W, m.reaction, W)
    vec3.cross(m.cut, m.reaction, t)
    vec3.add(W + 3, t, W + 3)
    if leg.spin >= 0:
        vec3.add_scaled(W + 3, m.reaction[3], m.normal, W + 3)
    for j in range(n):
        if leg.mass[j] == 0.0:
            continue
        # true acceleration of the body: bias plus joint accelerations
        rot3.apply(m.R[j], leg.centre[j], r)
        vec3.add(m.pole[j], r, r)
        vec3.copy(m.bias_accel[j], a)
        vec3.copy(m.bias_spin[j], alpha)
        for i in range(j + 1):
            if leg.prismatic[i]:
                vec3.add_scaled(a, m.p_accel[i], m.axis[i], a)
            else:
                vec3.sub(r, m.pole[i], t)
                vec3.cross(m.axis[i], t, t)
                vec3.add_scaled(a, m.p_accel[i], t, a)
                vec3.add_scaled(alpha, m.p_accel[i], m.axis[i], alpha)
        vec3.scale(leg.mass[j], a, a)
        apply_inertia(m.R[j], leg.inertia[j], alpha, torque)
        apply_inertia(m.R[j], leg.inertia[j], m.spin_rate[j], t)
        vec3.cross(m.spin_rate[j], t, t)
        vec3.add(torque, t, torque)
        vec3.sub(W, a, W)
        vec3.cross(r, a, t)
        vec3.add(torque, t, torque)
        vec3.sub(W + 3, torque, W + 3)


cdef bint close_legs(const Leg *legs, const double *X_0N, const double *R_0N, const double *v_N, const double *w_N,
                     LegMotion *motion) noexcept nogil:
    """Joint coordinates and rates of all legs for the ring's pose and velocities; their forces start at zero.
    False outside the workspace."""
    cdef int j, k
    for k in range(MAX_LEGS):
        if not place_leg(&legs[k], X_0N, R_0N, &motion[k]):
            return False
        spread_leg(&legs[k], &motion[k])
        close_leg(&legs[k], R_0N, v_N, w_N, &motion[k])
        for j in range(legs[k].joints):
            motion[k].force[j] = 0.0
    return True


cdef void reduce_to_ring(const Leg *legs, const RingBody *ring, const BaseMotion *base, const double *p_0N, const double *R_0N,
                         const double *v_N,
                         const double *w_N, const double *F_ring, LegMotion *motion, double *A, double *b) noexcept nogil:
    """A* (36) and b* (6) of the ring with all legs, under the wrench F_ring about its centre (base axes) and the legs' joint forces."""
    cdef int k
    ring_terms(ring, base, p_0N, R_0N, v_N, w_N, F_ring, A, b)
    for k in range(MAX_LEGS):
        leg_inertia(&legs[k], base, &motion[k])
        reduce_leg(&legs[k], &motion[k], A, b)


cdef void react_all_on_base(const Leg *legs, const double *accel, LegMotion *motion, double *W) noexcept nogil:
    """Wrench of all legs on the base, at its origin, added to W (6), with the ring's accelerations [v'; w']."""
    cdef int k
    for k in range(MAX_LEGS):
        react_on_base(&legs[k], accel, &motion[k], W)


# ---------------------------------------------------------------------------------- set-up, and access from Python

KINDS = {"UPS": UPS, "UCU": UCU, "SPU": SPU, "RUS": RUS, "RSU": RSU}
# joints of each kind: axis letters, P for the stroke (along x)
_JOINTS = {"UPS": "yzP", "UCU": "yzPx", "SPU": "yzxP", "RUS": "zzy", "RSU": "zzyx"}
_SPIN = {"UPS": -1, "UCU": 3, "SPU": 2, "RUS": -1, "RSU": 3}


cdef void _copy(object values, double *out, int n) except *:
    cdef double[::1] a = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    cdef int i
    if a.shape[0] != n:
        raise ValueError(f"{n} numbers needed, {a.shape[0]} given")
    for i in range(n):
        if not (a[i] == a[i] and -1e300 < a[i] < 1e300):
            raise ValueError(f"number {i} is not finite: {a[i]}")
        out[i] = a[i]


def leg_axes(p_base, p_ring, hint=(0.0, 0.3, 1.0)):
    """R_0J (3, 3) of a leg whose x axis points from its base joint to the nominal ring joint, y square to `hint` and x."""
    x = np.asarray(p_ring, dtype=float) - np.asarray(p_base, dtype=float)
    x = x / np.linalg.norm(x)
    y = np.cross(hint, x)
    if np.linalg.norm(y) < 1e-6:
        raise ValueError(f"hint: {tuple(hint)} is parallel to the leg")
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


cdef void build_leg(object table, Leg *leg) except *:
    """Fill `leg` from a table: kind, p_0J (3,), R_0J (3, 3), links (list of offsets along x, or vectors), bodies (list of None or
    (mass kg, centre (3,), inertia about the centre (3, 3))), p_NQ (3,), e_N (3,) for UCU, SPU, RSU, lead, hand, nut_inertia, elbow,
    R_LU."""
    cdef int j
    memset(leg, 0, sizeof(Leg))
    kind = table["kind"]
    if kind not in KINDS:
        raise ValueError(f"kind: {kind!r} is not one of {', '.join(KINDS)}")
    joints = _JOINTS[kind]
    leg.kind = KINDS[kind]
    leg.joints = len(joints)
    leg.spin = _SPIN[kind]
    leg.stroke = joints.find("P")
    leg.elbow = float(table.get("elbow", 1.0))
    leg.turned = kind in ("RUS", "RSU")
    _copy(table["R_0J"], leg.R_0J, 9)
    _copy(table.get("R_LU", np.eye(3)), leg.R_LU, 9)
    _copy(table["p_0J"], leg.p_0J, 3)
    _copy(table["p_NQ"], leg.p_NQ, 3)
    _copy(table.get("e_N", np.zeros(3)), leg.e_N, 3)
    if leg.spin >= 0 and abs(np.linalg.norm(table.get("e_N", np.zeros(3))) - 1.0) > 1e-9:
        raise ValueError("e_N: a unit vector is needed for a leg with a universal joint at the ring")
    for j in range(leg.joints):
        leg.prismatic[j] = joints[j] == "P"
        leg.axis[j] = "xyz".index("x" if joints[j] == "P" else joints[j])
        link = np.atleast_1d(np.asarray(table["links"][j], dtype=float))
        _copy(np.array([link[0], 0.0, 0.0]) if link.size == 1 else link, leg.link[j], 3)
        if leg.link[j][1] != 0.0 or leg.link[j][2] != 0.0:
            raise ValueError(f"links: joint {j}: offsets along x only, given {link.tolist()}")
        leg.length0 += leg.link[j][0]
        body = table["bodies"][j]
        if body is not None:
            mass, centre, inertia = body
            if not mass > 0.0:
                raise ValueError(f"bodies: mass {mass} kg of body {j} must be > 0 (None for a fictitious one)")
            leg.mass[j] = mass
            _copy(centre, leg.centre[j], 3)
            _copy(inertia, leg.inertia[j], 9)
    lead = float(table.get("lead", 0.0))
    if lead < 0.0:
        raise ValueError(f"lead: {lead} m, must be >= 0 m")
    leg.i_N = 2.0 * np.pi / lead if lead > 0.0 else 0.0
    leg.hand = float(table.get("hand", 1.0))
    leg.nut_inertia = float(table.get("nut_inertia", 0.0))
    if leg.hand not in (1.0, -1.0):
        raise ValueError(f"hand: {leg.hand}, must be +1 or -1")
    if leg.i_N > 0.0 and leg.stroke < 0:
        raise ValueError("lead: only a leg with a stroke has a ball screw")


cdef class RingPlatform:
    """A ring on legs, for tests and offline use; every call runs the kernels of the header.

    legs: tables, see `build_leg`. ring_mass [kg], ring_inertia (3, 3) about the centre, ring axes [kg.m2].
    """

    cdef Leg leg[MAX_LEGS]
    cdef LegMotion motion[MAX_LEGS]
    cdef RingBody ring
    cdef readonly int count

    def __init__(self, legs, ring_mass, ring_inertia):
        if not 1 <= len(legs) <= MAX_LEGS:
            raise ValueError(f"legs: {len(legs)}, between 1 and {MAX_LEGS} needed")
        self.count = len(legs)
        for k, table in enumerate(legs):
            try:
                build_leg(table, &self.leg[k])
            except ValueError as error:
                raise ValueError(f"leg {k}: {error}") from None
        if not ring_mass > 0.0:
            raise ValueError(f"ring_mass: {ring_mass} kg, must be > 0 kg")
        self.ring.mass = ring_mass
        _copy(ring_inertia, self.ring.inertia, 9)

    def place(self, p_0N, R_0N):
        """Joint coordinates of every leg (list of arrays) and cut points (L, 3) from the chain. Raises ValueError outside the workspace."""
        cdef double p[3]
        cdef double R[9]
        cdef int k
        _copy(p_0N, p, 3)
        _copy(R_0N, R, 9)
        for k in range(self.count):
            if not place_leg(&self.leg[k], p, R, &self.motion[k]):
                raise ValueError(f"leg {k}: the pose is outside its workspace")
            spread_leg(&self.leg[k], &self.motion[k])
        return ([np.array([self.motion[k].p[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
                np.array([[self.motion[k].cut[i] for i in range(3)] for k in range(self.count)]))

    def evaluate(self, p_0N, R_0N, v_N, w_N, F_ring, forces, base_w=(0, 0, 0), base_alpha=(0, 0, 0), base_accel=(0, 0, 0)):
        """Everything of one state: v_N, w_N relative to the base, F_ring (6,) about the ring's centre, all in base axes; forces: per leg,
        one number per joint. Returns a dict: u_dot (6,), A (6, 6), b (6,), base_wrench (6,), p, p_rate, p_accel, reaction (lists)."""
        cdef double p[3]
        cdef double R[9]
        cdef double v[3]
        cdef double w[3]
        cdef double F[6]
        cdef double A[36]
        cdef double b[6]
        cdef double u[6]
        cdef double W[6]
        cdef BaseMotion base
        cdef int i, j, k
        self.place(p_0N, R_0N)
        _copy(p_0N, p, 3); _copy(R_0N, R, 9); _copy(v_N, v, 3); _copy(w_N, w, 3); _copy(F_ring, F, 6)
        _copy(base_w, base.w, 3); _copy(base_alpha, base.alpha, 3); _copy(base_accel, base.accel, 3)
        ring_terms(&self.ring, &base, p, R, v, w, F, A, b)
        for k in range(self.count):
            for j in range(self.leg[k].joints):
                self.motion[k].force[j] = forces[k][j]
            close_leg(&self.leg[k], R, v, w, &self.motion[k])
            leg_inertia(&self.leg[k], &base, &self.motion[k])
            reduce_leg(&self.leg[k], &self.motion[k], A, b)
        if not solve_ring(A, b, u):
            raise ValueError("generalised inertia is not positive definite")
        for i in range(6):
            W[i] = 0.0
        for k in range(self.count):
            react_on_base(&self.leg[k], u, &self.motion[k], W)
        full = np.array([[A[6 * max(i, j) + min(i, j)] for j in range(6)] for i in range(6)])
        return {
            "u_dot": np.array([u[i] for i in range(6)]), "A": full, "b": np.array([b[i] for i in range(6)]),
            "base_wrench": np.array([W[i] for i in range(6)]),
            "p": [np.array([self.motion[k].p[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
            "p_rate": [np.array([self.motion[k].p_rate[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
            "p_accel": [np.array([self.motion[k].p_accel[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
            "reaction": [np.array([self.motion[k].reaction[j] for j in range(4)]) for k in range(self.count)],
            "leg_A": [np.array([self.motion[k].A[i] for i in range(self.leg[k].joints**2)]).reshape(self.leg[k].joints, -1)
                      for k in range(self.count)],
            "leg_b": [np.array([self.motion[k].b[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
        }

    def momentum(self, p_0N, R_0N, v_N, w_N, base_w=(0, 0, 0), base_v=(0, 0, 0)):
        """Linear and angular momentum (6,) of ring and legs about the base origin, base axes, absolute motion (slow twin for tests)."""
        cdef double p[3]
        cdef double R[9]
        cdef double v[3]
        cdef double w[3]
        cdef int j, k
        self.place(p_0N, R_0N)
        _copy(p_0N, p, 3); _copy(R_0N, R, 9); _copy(v_N, v, 3); _copy(w_N, w, 3)
        w0, v0 = np.asarray(base_w, dtype=float), np.asarray(base_v, dtype=float)
        P, Q = np.asarray(p_0N, dtype=float), np.asarray(R_0N, dtype=float).reshape(3, 3)
        I = np.array([self.ring.inertia[j] for j in range(9)]).reshape(3, 3)
        linear = self.ring.mass * (np.asarray(v_N) + v0 + np.cross(w0, P))
        total = np.concatenate([linear, np.cross(P, linear) + Q @ I @ Q.T @ (np.asarray(w_N) + w0)])
        for k in range(self.count):
            close_leg(&self.leg[k], R, v, w, &self.motion[k])
            spin, speed, pole = w0.copy(), v0 + np.cross(w0, np.array(self.leg[k].p_0J)), np.array(self.leg[k].p_0J)
            for j in range(self.leg[k].joints):
                axis, here = np.array(self.motion[k].axis[j]), np.array(self.motion[k].pole[j])
                speed = speed + np.cross(spin, here - pole)
                if self.leg[k].prismatic[j]:
                    speed = speed + axis * self.motion[k].p_rate[j]
                else:
                    spin = spin + axis * self.motion[k].p_rate[j]
                pole = here
                if self.leg[k].mass[j] > 0.0:
                    B = np.array(self.motion[k].R[j]).reshape(3, 3)
                    arm = B @ np.array(self.leg[k].centre[j])
                    linear = self.leg[k].mass[j] * (speed + np.cross(spin, arm))
                    J = B @ np.array(self.leg[k].inertia[j]).reshape(3, 3) @ B.T
                    total += np.concatenate([linear, np.cross(pole + arm, linear) + J @ spin])
        return total
