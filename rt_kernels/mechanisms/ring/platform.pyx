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

from rt_kernels.algebra.sincos cimport atan2
from rt_kernels.algebra.values cimport (Mat3, Twist, Vec3, Wrench, add, cross, dot, mat_multiply, mat_transposed_vec, mat_vec, mul, norm,
                                        put, sub, twist, vec, xyz)


cdef inline Vec3 column(Mat3 R, int i) noexcept nogil:
    if i == 0:
        return xyz(R.xx, R.yx, R.zx)
    if i == 1:
        return xyz(R.xy, R.yy, R.zy)
    return xyz(R.xz, R.yz, R.zz)


cdef inline Mat3 turn(Mat3 R, int axis, double s, double c) noexcept nogil:
    """R Rot(axis): only two columns change."""
    cdef Vec3 x = column(R, 0), y = column(R, 1), z = column(R, 2)
    if axis == 0:
        return of_columns(x, add(mul(c, y), mul(s, z)), sub(mul(c, z), mul(s, y)))
    if axis == 1:
        return of_columns(sub(mul(c, x), mul(s, z)), y, add(mul(c, z), mul(s, x)))
    return of_columns(add(mul(c, x), mul(s, y)), sub(mul(c, y), mul(s, x)), z)


cdef inline Mat3 of_columns(Vec3 x, Vec3 y, Vec3 z) noexcept nogil:
    cdef Mat3 R
    R.xx = x.x; R.xy = y.x; R.xz = z.x
    R.yx = x.y; R.yy = y.y; R.yz = z.y
    R.zx = x.z; R.zy = y.z; R.zz = z.z
    return R


cdef inline bint place_leg(const Leg *leg, const RingPose *N, LegMotion *m) noexcept nogil:
    """Joint coordinates of a ring pose in closed form. False if the pose is outside the leg's workspace (then the last one is kept)."""
    # the cut point from joint 1, in the frame of joint 1
    cdef Vec3 r = mat_transposed_vec(leg.R_0J, sub(add(N.p, mat_vec(N.R, leg.p_NQ)), leg.p_0J))
    cdef Vec3 e
    cdef Mat3 R
    cdef double L, rho, planar, c1, s1, c2, s2, l12, l23, l23F2, h
    if leg.kind == RUS or leg.kind == RSU:
        # crank in the hinge plane, link to a point at height h above it
        l12 = leg.link[0].x
        l23 = leg.link[leg.joints - 1].x
        h = r.z
        l23F2 = l23 * l23 - h * h
        planar = r.x * r.x + r.y * r.y
        if not (l23F2 > 0.0 and planar > 0.0):
            return False
        rho = sqrt(planar)
        c1 = (l12 * l12 + planar - l23F2) / (2.0 * l12 * rho)
        if not (c1 > -1.0 and c1 < 1.0):
            return False
        s1 = leg.elbow * sqrt((1.0 - c1) * (1.0 + c1))
        m.c[0] = (c1 * r.x - s1 * r.y) / rho
        m.s[0] = (s1 * r.x + c1 * r.y) / rho
        # direction of the link in the frame of its universal (or spherical) joint on the crank
        e = xyz(m.c[0] * r.x + m.s[0] * r.y - l12, -m.s[0] * r.x + m.c[0] * r.y, r.z)
        e = mat_transposed_vec(leg.R_LU, e)
        rho = sqrt(e.x * e.x + e.y * e.y)
        if not (rho > 1e-9 * l23):
            return False
        m.c[1] = e.x / rho
        m.s[1] = e.y / rho
        m.c[2] = rho / l23
        m.s[2] = -e.z / l23
        m.p[0] = atan2(m.s[0], m.c[0])
        m.p[1] = atan2(m.s[1], m.c[1])
        m.p[2] = atan2(m.s[2], m.c[2])
    else:
        L = norm(r)
        rho = sqrt(r.x * r.x + r.z * r.z)
        if not (rho > 1e-9 * L):
            return False
        m.c[0] = r.x / rho
        m.s[0] = -r.z / rho
        m.c[1] = rho / L
        m.s[1] = r.y / L
        m.p[0] = atan2(m.s[0], m.c[0])
        m.p[1] = atan2(m.s[1], m.c[1])
        m.p[leg.stroke] = L - leg.length0
    if leg.spin >= 0:
        # ring-side axis in the link at zero spin: the link's y axis must be square to it
        R = link_at_zero_spin(leg, m)
        e = mat_vec(N.R, leg.e_N)
        c2 = dot(column(R, 2), e)
        s2 = -dot(column(R, 1), e)
        L = sqrt(c2 * c2 + s2 * s2)
        if not (L > 1e-9):
            return False
        m.c[leg.spin] = c2 / L
        m.s[leg.spin] = s2 / L
        m.p[leg.spin] = atan2(s2, c2)
    return True


cdef inline Mat3 link_at_zero_spin(const Leg *leg, const LegMotion *m) noexcept nogil:
    """Frame of the link before its spin, in the base."""
    cdef Mat3 R = leg.R_0J
    cdef int j
    for j in range(leg.joints):
        if j == 1 and leg.turned:
            R = mat_multiply(R, leg.R_LU)
        if not leg.prismatic[j] and j != leg.spin:
            R = turn(R, leg.axis[j], m.s[j], m.c[j])
    return R


cdef inline void spread_leg(const Leg *leg, LegMotion *m) noexcept nogil:
    """Axes, joint centres and body frames in the base, from the joint coordinates."""
    cdef Mat3 R = leg.R_0J
    cdef Vec3 O = leg.p_0J
    cdef int j
    for j in range(leg.joints):
        if j == 1 and leg.turned:
            R = mat_multiply(R, leg.R_LU)
        m.axis[j] = column(R, leg.axis[j])
        if leg.prismatic[j]:
            O = add(O, mul(m.p[j], m.axis[j]))
        else:
            R = turn(R, leg.axis[j], m.s[j], m.c[j])
        m.pole[j] = O
        m.R[j] = R
        O = add(O, mat_vec(R, leg.link[j]))
    m.cut = O


cdef inline double row_times(const double *H_j, Vec3 v, Vec3 w) noexcept nogil:
    # H_j [v; w]
    return dot(vec(H_j), v) + dot(vec(H_j + 3), w)


cdef inline void close_leg(const Leg *leg, const RingPose *N, LegMotion *m) noexcept nogil:
    """H, h, p_rate: p' = H u, p'' = H u' + h with u = [v_N; w_N] relative to the base, base axes."""
    cdef Vec3 C[3]
    cdef Vec3 row[3]
    cdef Vec3 l, c, e1, e2, n_rate
    cdef BodyMotion last
    cdef double det, share = 0.0, c4
    cdef int i, j, k = 0
    # position rows: velocity of the cut point per joint, the spin joint has none
    for j in range(leg.joints):
        if j == leg.spin:
            continue
        m.position_joint[k] = j
        C[k] = m.axis[j] if leg.prismatic[j] else cross(m.axis[j], sub(m.cut, m.pole[j]))
        k += 1
    row[0] = cross(C[1], C[2])
    row[1] = cross(C[2], C[0])
    row[2] = cross(C[0], C[1])
    det = 1.0 / dot(C[0], row[0])
    # H row of a position joint: row . (v + w x l) = [row, l x row]
    l = mat_vec(N.R, leg.p_NQ)
    for k in range(3):
        row[k] = mul(det, row[k])
        m.inverse[k] = row[k]
        j = m.position_joint[k]
        put(row[k], m.H[j])
        put(cross(l, row[k]), m.H[j] + 3)
        m.p_rate[j] = row_times(m.H[j], N.v, N.w)
    # universal joint at the ring: no relative rotation about n_R = e1 x e2
    if leg.spin >= 0:
        e1 = column(m.R[leg.joints - 1], 1)
        e2 = mat_vec(N.R, leg.e_N)
        m.normal = cross(e1, e2)
        share = 1.0 / dot(m.normal, m.axis[leg.spin])
        put(xyz(0.0, 0.0, 0.0), m.H[leg.spin])
        put(mul(share, m.normal), m.H[leg.spin] + 3)
        for k in range(3):
            j = m.position_joint[k]
            if not leg.prismatic[j]:
                c4 = share * dot(m.normal, m.axis[j])
                for i in range(6):
                    m.H[leg.spin][i] -= c4 * m.H[j][i]
        m.p_rate[leg.spin] = row_times(m.H[leg.spin], N.v, N.w)
    # accelerations at u' = 0, relative to the base: the node's centripetal term less the chain's
    last = bias_motion(leg, m)
    c = sub(cross(N.w, cross(N.w, l)), last.accel)
    for k in range(3):
        m.h[m.position_joint[k]] = dot(row[k], c)
    if leg.spin >= 0:
        # n_R_rate = (w_n x e1) x e2 + e1 x (w_N x e2)
        n_rate = add(cross(cross(last.w, e1), e2), cross(e1, cross(N.w, e2)))
        c4 = -(dot(m.normal, last.alpha) + dot(n_rate, sub(last.w, N.w)))
        for k in range(3):
            j = m.position_joint[k]
            if not leg.prismatic[j]:
                c4 -= dot(m.normal, m.axis[j]) * m.h[j]
        m.h[leg.spin] = share * c4


cdef inline BodyMotion moved(BodyMotion body, Vec3 r) noexcept nogil:
    """The same body and its point farther by r: a + eps x r + w x (w x r)."""
    body.accel = add(add(body.accel, cross(body.alpha, r)), cross(body.w, cross(body.w, r)))
    return body


cdef inline BodyMotion behind_joint(const Leg *leg, const LegMotion *m, int j, BodyMotion body) noexcept nogil:
    """The body behind joint j at p'' = 0, from the body before it; both at the joint's centre."""
    cdef Vec3 t = cross(body.w, m.axis[j])
    if leg.prismatic[j]:
        body.accel = add(body.accel, mul(2.0 * m.p_rate[j], t))
    else:
        body.alpha = add(body.alpha, mul(m.p_rate[j], t))
        body.w = add(body.w, mul(m.p_rate[j], m.axis[j]))
    return body


cdef inline BodyMotion bias_motion(const Leg *leg, const LegMotion *m) noexcept nogil:
    """Motion of the last body at the cut point, at p'' = 0 and base at rest."""
    cdef BodyMotion body
    cdef Vec3 pole = leg.p_0J
    cdef int j
    memset(&body, 0, sizeof(body))
    for j in range(leg.joints):
        body = behind_joint(leg, m, j, moved(body, sub(m.pole[j], pole)))
        pole = m.pole[j]
    return moved(body, sub(m.cut, pole))


cdef inline void leg_inertia(const Leg *leg, const BodyMotion *base, LegMotion *m) noexcept nogil:
    """A and b of A p'' = b of one leg: Kane's sums over the bodies with mass, absolute motion of a moving base, ball screw."""
    cdef BodyMotion body
    cdef Vec3 v[MAX_JOINTS]
    cdef Vec3 Iw[MAX_JOINTS]
    cdef Vec3 pole, r, torque
    cdef double g
    cdef int i, j, k, n = leg.joints
    for i in range(n * n):
        m.A[i] = 0.0
    for j in range(n):
        m.b[j] = m.force[j]
    # the base: its angular motion, and the acceleration of the first joint
    body = moved(base[0], leg.p_0J)
    pole = leg.p_0J
    for j in range(n):
        body = behind_joint(leg, m, j, moved(body, sub(m.pole[j], pole)))
        pole = m.pole[j]
        if leg.mass[j] == 0.0:
            continue
        # centre of mass at zero p'', inertia torque
        r = mat_vec(m.R[j], leg.centre[j])
        m.bias[j] = moved(body, r)
        r = add(m.pole[j], r)
        torque = inertia_torque(m.R[j], leg.inertia[j], body.w, body.alpha)
        # partial velocities of the joints before this body
        for i in range(j + 1):
            if leg.prismatic[i]:
                v[i] = m.axis[i]
                m.b[i] -= leg.mass[j] * dot(v[i], m.bias[j].accel)
            else:
                v[i] = cross(m.axis[i], sub(r, m.pole[i]))
                Iw[i] = times_inertia(m.R[j], leg.inertia[j], m.axis[i])
                m.b[i] -= leg.mass[j] * dot(v[i], m.bias[j].accel) + dot(m.axis[i], torque)
            for k in range(i + 1):
                g = leg.mass[j] * dot(v[i], v[k])
                if not leg.prismatic[i] and not leg.prismatic[k]:
                    g += dot(m.axis[k], Iw[i])
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


cdef inline Vec3 times_inertia(Mat3 R, Mat3 I, Vec3 w) noexcept nogil:
    # R I R^T w
    return mat_vec(R, mat_vec(I, mat_transposed_vec(R, w)))


cdef inline Vec3 inertia_torque(Mat3 R, Mat3 I, Vec3 w, Vec3 alpha) noexcept nogil:
    # I alpha + w x I w
    return add(times_inertia(R, I, alpha), cross(w, times_inertia(R, I, w)))


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


cdef inline void ring_terms(const RingBody *ring, const BodyMotion *base, const RingPose *N, Wrench F_ring, double *A,
                            double *b) noexcept nogil:
    """M_R and s_R: the ring's own inertia, and the wrench `F_ring` on it (force and moment about its centre, base axes),
    moving base included."""
    cdef Vec3 a, w, torque, column
    cdef int i, k
    for i in range(36):
        A[i] = 0.0
    A[0] = ring.mass; A[7] = ring.mass; A[14] = ring.mass
    for k in range(3):
        column = times_inertia(N.R, ring.inertia, xyz(k == 0, k == 1, k == 2))
        A[21 + k] = column.x; A[27 + k] = column.y; A[33 + k] = column.z
    # transport and Coriolis acceleration of the centre
    a = add(moved(base[0], N.p).accel, mul(2.0, cross(base.w, N.v)))
    put(add(F_ring.f, mul(-ring.mass, a)), b)
    # m - w_a x I w_a - I (alpha_0 + w_0 x w_N)
    w = add(N.w, base.w)
    torque = cross(w, times_inertia(N.R, ring.inertia, w))
    torque = add(torque, times_inertia(N.R, ring.inertia, add(base.alpha, cross(base.w, N.w))))
    put(sub(F_ring.m, torque), b + 3)


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


cdef inline void react_on_base(const Leg *leg, Twist accel, LegMotion *m, Wrench *W) noexcept nogil:
    """Joint accelerations, reaction of the ring on the leg, and the leg's part of the wrench on the base, added to W (at O_0, base axes).

    accel = [v_N'; w_N'] relative to the base. lambda = C_d^-T (A p'' - b); what the ring gives the leg and the leg's bodies do not need for
    their acceleration, the base gets.
    """
    cdef double residual[MAX_JOINTS]
    cdef Vec3 a, alpha, r, f
    cdef double share
    cdef int i, j, k, n = leg.joints
    for j in range(n):
        m.p_accel[j] = m.h[j] + dot(vec(m.H[j]), accel.v) + dot(vec(m.H[j] + 3), accel.w)
    for j in range(n):
        residual[j] = -m.b[j]
        for k in range(n):
            residual[j] += m.A[n * j + k] * m.p_accel[k]
    # C_d^T lambda = residual: the spin row first, then the three position rows
    m.reaction_torque = 0.0
    if leg.spin >= 0:
        m.reaction_torque = residual[leg.spin] / dot(m.normal, m.axis[leg.spin])
    m.reaction = xyz(0.0, 0.0, 0.0)
    for k in range(3):
        j = m.position_joint[k]
        share = residual[j]
        if leg.spin >= 0 and not leg.prismatic[j]:
            share -= m.reaction_torque * dot(m.normal, m.axis[j])
        m.reaction = add(m.reaction, mul(share, m.inverse[k]))
    W.f = add(W.f, m.reaction)
    W.m = add(W.m, cross(m.cut, m.reaction))
    if leg.spin >= 0:
        W.m = add(W.m, mul(m.reaction_torque, m.normal))
    for j in range(n):
        if leg.mass[j] == 0.0:
            continue
        # true acceleration of the body: bias plus joint accelerations
        r = add(m.pole[j], mat_vec(m.R[j], leg.centre[j]))
        a = m.bias[j].accel
        alpha = m.bias[j].alpha
        for i in range(j + 1):
            if leg.prismatic[i]:
                a = add(a, mul(m.p_accel[i], m.axis[i]))
            else:
                a = add(a, mul(m.p_accel[i], cross(m.axis[i], sub(r, m.pole[i]))))
                alpha = add(alpha, mul(m.p_accel[i], m.axis[i]))
        f = mul(leg.mass[j], a)
        W.f = sub(W.f, f)
        W.m = sub(W.m, add(inertia_torque(m.R[j], leg.inertia[j], m.bias[j].w, alpha), cross(r, f)))


cdef bint close_legs(const Leg *legs, const RingPose *N, LegMotion *motion) noexcept nogil:
    """Joint coordinates and rates of all legs for the ring's pose and velocities; their forces start at zero.
    False outside the workspace."""
    cdef int j, k
    for k in range(MAX_LEGS):
        if not place_leg(&legs[k], N, &motion[k]):
            return False
        spread_leg(&legs[k], &motion[k])
        close_leg(&legs[k], N, &motion[k])
        for j in range(legs[k].joints):
            motion[k].force[j] = 0.0
    return True


cdef void reduce_to_ring(const Leg *legs, const RingBody *ring, const BodyMotion *base, const RingPose *N, Wrench F_ring, LegMotion *motion,
                         double *A, double *b) noexcept nogil:
    """A* (36) and b* (6) of the ring with all legs, under the wrench F_ring about its centre (base axes) and the legs' joint forces."""
    cdef int k
    ring_terms(ring, base, N, F_ring, A, b)
    for k in range(MAX_LEGS):
        leg_inertia(&legs[k], base, &motion[k])
        reduce_leg(&legs[k], &motion[k], A, b)


cdef void react_all_on_base(const Leg *legs, Twist accel, LegMotion *motion, Wrench *W) noexcept nogil:
    """Wrench of all legs on the base, at its origin, added to W, with the ring's accelerations [v'; w']."""
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


cdef object _numbers(const double *values, int n):
    return np.array([values[i] for i in range(n)])


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
    leg.active = max(leg.stroke, 0)
    _copy(table["R_0J"], <double *> &leg.R_0J, 9)
    _copy(table.get("R_LU", np.eye(3)), <double *> &leg.R_LU, 9)
    _copy(table["p_0J"], &leg.p_0J.x, 3)
    _copy(table["p_NQ"], &leg.p_NQ.x, 3)
    _copy(table.get("e_N", np.zeros(3)), &leg.e_N.x, 3)
    if leg.spin >= 0 and abs(np.linalg.norm(table.get("e_N", np.zeros(3))) - 1.0) > 1e-9:
        raise ValueError("e_N: a unit vector is needed for a leg with a universal joint at the ring")
    for j in range(leg.joints):
        leg.prismatic[j] = joints[j] == "P"
        leg.axis[j] = "xyz".index("x" if joints[j] == "P" else joints[j])
        link = np.atleast_1d(np.asarray(table["links"][j], dtype=float))
        _copy(np.array([link[0], 0.0, 0.0]) if link.size == 1 else link, &leg.link[j].x, 3)
        if leg.link[j].y != 0.0 or leg.link[j].z != 0.0:
            raise ValueError(f"links: joint {j}: offsets along x only, given {link.tolist()}")
        leg.length0 += leg.link[j].x
        body = table["bodies"][j]
        if body is not None:
            mass, centre, inertia = body
            if not mass > 0.0:
                raise ValueError(f"bodies: mass {mass} kg of body {j} must be > 0 (None for a fictitious one)")
            leg.mass[j] = mass
            _copy(centre, &leg.centre[j].x, 3)
            _copy(inertia, <double *> &leg.inertia[j], 9)
    leg.lever = leg.link[0].x if leg.turned else 1.0
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
        _copy(ring_inertia, <double *> &self.ring.inertia, 9)

    def place(self, p_0N, R_0N):
        """Joint coordinates of every leg (list of arrays) and cut points (L, 3) from the chain. Raises ValueError outside the workspace."""
        cdef RingPose N
        cdef int k
        _copy(p_0N, &N.p.x, 3)
        _copy(R_0N, <double *> &N.R, 9)
        for k in range(self.count):
            if not place_leg(&self.leg[k], &N, &self.motion[k]):
                raise ValueError(f"leg {k}: the pose is outside its workspace")
            spread_leg(&self.leg[k], &self.motion[k])
        return ([_numbers(self.motion[k].p, self.leg[k].joints) for k in range(self.count)],
                np.array([_numbers(&self.motion[k].cut.x, 3) for k in range(self.count)]))

    def evaluate(self, p_0N, R_0N, v_N, w_N, F_ring, forces, base_w=(0, 0, 0), base_alpha=(0, 0, 0), base_accel=(0, 0, 0)):
        """Everything of one state: v_N, w_N relative to the base, F_ring (6,) about the ring's centre, all in base axes; forces: per leg,
        one number per joint. Returns a dict: u_dot (6,), A (6, 6), b (6,), base_wrench (6,), p, p_rate, p_accel, reaction (lists)."""
        cdef RingPose N
        cdef Wrench F, W
        cdef BodyMotion base
        cdef double A[36]
        cdef double b[6]
        cdef double u[6]
        cdef int i, j, k
        self.place(p_0N, R_0N)
        _copy(p_0N, &N.p.x, 3); _copy(R_0N, <double *> &N.R, 9); _copy(v_N, &N.v.x, 3); _copy(w_N, &N.w.x, 3)
        _copy(F_ring, <double *> &F, 6)
        _copy(base_w, &base.w.x, 3); _copy(base_alpha, &base.alpha.x, 3); _copy(base_accel, &base.accel.x, 3)
        ring_terms(&self.ring, &base, &N, F, A, b)
        for k in range(self.count):
            for j in range(self.leg[k].joints):
                self.motion[k].force[j] = forces[k][j]
            close_leg(&self.leg[k], &N, &self.motion[k])
            leg_inertia(&self.leg[k], &base, &self.motion[k])
            reduce_leg(&self.leg[k], &self.motion[k], A, b)
        if not solve_ring(A, b, u):
            raise ValueError("generalised inertia is not positive definite")
        memset(&W, 0, sizeof(W))
        for k in range(self.count):
            react_on_base(&self.leg[k], twist(u), &self.motion[k], &W)
        full = np.array([[A[6 * max(i, j) + min(i, j)] for j in range(6)] for i in range(6)])
        return {
            "u_dot": _numbers(u, 6), "A": full, "b": _numbers(b, 6), "base_wrench": _numbers(<double *> &W, 6),
            "p": [_numbers(self.motion[k].p, self.leg[k].joints) for k in range(self.count)],
            "p_rate": [_numbers(self.motion[k].p_rate, self.leg[k].joints) for k in range(self.count)],
            "p_accel": [_numbers(self.motion[k].p_accel, self.leg[k].joints) for k in range(self.count)],
            "reaction": [np.append(_numbers(&self.motion[k].reaction.x, 3), self.motion[k].reaction_torque) for k in range(self.count)],
            "leg_A": [_numbers(self.motion[k].A, self.leg[k].joints**2).reshape(self.leg[k].joints, -1) for k in range(self.count)],
            "leg_b": [_numbers(self.motion[k].b, self.leg[k].joints) for k in range(self.count)],
        }

    def momentum(self, p_0N, R_0N, v_N, w_N, base_w=(0, 0, 0), base_v=(0, 0, 0)):
        """Linear and angular momentum (6,) of ring and legs about the base origin, base axes, absolute motion (slow twin for tests)."""
        cdef RingPose N
        cdef int j, k
        self.place(p_0N, R_0N)
        _copy(p_0N, &N.p.x, 3); _copy(R_0N, <double *> &N.R, 9); _copy(v_N, &N.v.x, 3); _copy(w_N, &N.w.x, 3)
        w0, v0 = np.asarray(base_w, dtype=float), np.asarray(base_v, dtype=float)
        P, Q = np.asarray(p_0N, dtype=float), np.asarray(R_0N, dtype=float).reshape(3, 3)
        I = _numbers(<double *> &self.ring.inertia, 9).reshape(3, 3)
        linear = self.ring.mass * (np.asarray(v_N) + v0 + np.cross(w0, P))
        total = np.concatenate([linear, np.cross(P, linear) + Q @ I @ Q.T @ (np.asarray(w_N) + w0)])
        for k in range(self.count):
            close_leg(&self.leg[k], &N, &self.motion[k])
            pole = _numbers(&self.leg[k].p_0J.x, 3)
            spin, speed = w0.copy(), v0 + np.cross(w0, pole)
            for j in range(self.leg[k].joints):
                axis, here = _numbers(&self.motion[k].axis[j].x, 3), _numbers(&self.motion[k].pole[j].x, 3)
                speed = speed + np.cross(spin, here - pole)
                if self.leg[k].prismatic[j]:
                    speed = speed + axis * self.motion[k].p_rate[j]
                else:
                    spin = spin + axis * self.motion[k].p_rate[j]
                pole = here
                if self.leg[k].mass[j] > 0.0:
                    B = _numbers(<double *> &self.motion[k].R[j], 9).reshape(3, 3)
                    arm = B @ _numbers(&self.leg[k].centre[j].x, 3)
                    linear = self.leg[k].mass[j] * (speed + np.cross(spin, arm))
                    J = B @ _numbers(<double *> &self.leg[k].inertia[j], 9).reshape(3, 3) @ B.T
                    total += np.concatenate([linear, np.cross(pole + arm, linear) + J @ spin])
        return total
