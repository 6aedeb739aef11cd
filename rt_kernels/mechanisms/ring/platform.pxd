"""A ring on up to six legs: loop closure, reduction to the ring, wrench on the base. Equations, frames and units: ring_platform.pyx."""

from libc.math cimport sqrt, fabs

from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3
from rt_kernels.algebra.sincos cimport atan2

cdef enum:
    MAX_LEGS = 6
    MAX_JOINTS = 4

cdef enum LegKind:
    UPS = 0
    UCU = 1
    SPU = 2
    RUS = 3
    RSU = 4


# Constants of one leg.
cdef struct Leg:
    int kind
    int joints                  # 3, or 4 for a universal joint at the ring
    int spin                    # joint that turns the link about its own x axis through the cut point; -1 for a spherical joint at the ring
    int stroke                  # prismatic joint, or -1
    bint prismatic[MAX_JOINTS]
    int axis[MAX_JOINTS]        # 0 x, 1 y, 2 z of the joint frame
    bint turned                 # joint 2 has a frame of its own on link 1 (RUS, RSU)
    double R_0J[9]              # frame of joint 1 in the base
    double R_LU[9]              # frame of joint 2 on link 1, if turned
    double p_0J[3]              # joint 1 in the base
    double link[MAX_JOINTS][3]  # from joint j to joint j + 1 in body j; last: to the cut point
    double length0              # length at zero stroke
    double elbow                # +1 or -1, RUS and RSU
    double mass[MAX_JOINTS]     # body behind joint j; 0: fictitious
    double centre[MAX_JOINTS][3]
    double inertia[MAX_JOINTS][9]  # about the centre of mass, body axes
    double p_NQ[3]              # cut point in the ring
    double e_N[3]               # ring-side axis of the universal joint, ring axes
    # differential ball screw between stroke and spin
    double i_N                  # 2 pi / lead, rad/m; 0: none
    double hand                 # s = +1 or -1
    double nut_inertia          # nut and all that is geared to it, at the nut


# What changes with the pose: filled by `place_leg` and `move_leg`.
cdef struct LegMotion:
    double p[MAX_JOINTS]
    double p_rate[MAX_JOINTS]
    double p_accel[MAX_JOINTS]
    double s[MAX_JOINTS]
    double c[MAX_JOINTS]
    double axis[MAX_JOINTS][3]       # joint axes, base axes
    double pole[MAX_JOINTS][3]       # joint centres from the base origin
    double R[MAX_JOINTS][9]          # body frames in the base
    double cut[3]                    # cut point from the base origin
    double H[MAX_JOINTS][6]          # joint rates from [v_N; w_N], base axes
    double h[MAX_JOINTS]
    double inverse[9]                # of the three position rows of C_d, rows for the joints without the spin
    int position_joint[3]
    double normal[3]                 # n_R of a universal joint
    double A[16]
    double b[MAX_JOINTS]
    double bias_accel[MAX_JOINTS][3]  # of the centre of mass of body j at zero p_accel (absolute, with the base motion)
    double bias_spin[MAX_JOINTS][3]
    double spin_rate[MAX_JOINTS][3]  # absolute angular velocity of body j
    double force[MAX_JOINTS]         # active joint forces and torques, positive when they increase p
    double reaction[4]               # of the ring on the leg: force in base axes, torque about n_R


cdef struct BaseMotion:
    double w[3]       # absolute angular velocity of the base, base axes
    double alpha[3]   # its derivative
    double accel[3]   # acceleration of the base origin, less gravity


cdef struct RingBody:
    double mass
    double inertia[9]  # about the centre, ring axes


cdef inline bint place_leg(const Leg *leg, const double *p_0N, const double *R_0N, LegMotion *m) noexcept nogil:
    """Joint coordinates of a ring pose in closed form. False if the pose is outside the leg's workspace (then the last one is kept)."""
    cdef double d[3]
    cdef double r[3]
    cdef double e[3]
    cdef double L, rho, planar, c1, s1, c2, s2, l12, l23, l23F2, h
    cdef int a = 0
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
    cdef double vQ[3]
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


cdef inline void screw_force(const Leg *leg, double f_S, LegMotion *m) noexcept nogil:
    """Spring force f_S (positive pushes the rod out) on stroke and spin: b += H_N^T m_Nut with m_Nut = s f_S / i_N."""
    m.force[leg.stroke] += f_S
    if leg.spin >= 0 and leg.i_N > 0.0:
        m.force[leg.spin] += leg.hand * f_S / leg.i_N


cdef inline double effective_stroke(const Leg *leg, const double *p) noexcept nogil:
    # what the nut feels: p3 + s p4 / i_N (for coordinates and for rates)
    if leg.spin >= 0 and leg.i_N > 0.0:
        return p[leg.stroke] + leg.hand * p[leg.spin] / leg.i_N
    return p[leg.stroke]


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
    """M_R and s_R: the ring's own inertia, and the wrench `F_ring` on it (force and moment about its centre, base axes), moving base included."""
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


cdef inline bint solve_ring(const double *A, const double *b, double *x) noexcept nogil:
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


# set-up, with the interpreter
cdef void build_leg(object table, Leg *leg) except *
