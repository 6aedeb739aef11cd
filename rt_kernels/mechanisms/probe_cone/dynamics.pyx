"""Multibody dynamics of the central (probe-cone) mechanism: swinging body, elastic probe, movable limiter, four dependent chains
(chains.pyx).

Everything is in axes of the base frame A (origin: hinge of the swinging body, X along the mechanism). Seven coordinates:

    0, 1  swing of the body about Y, then Z          2, 3, 4  bending of the probe about Y, then Z, and its torsion about X
    5     free length L of the probe (exit bearing to head centre)          6  position of the movable limiter along the body

Equations of motion by partial velocities (Kane): M q'' = Q - bias. Unlike the text, the translation of the probe is part of the tree, so
that nothing of its inertia is dropped; only the rotary inertia of nut, gears and brakes enters as `axial_inertia` = I i^2 on coordinate 5.
The base may turn at a constant absolute rate w_0; the acceleration of its origin is left out (Yaskevich 2020 (4.4), transport terms).

Wrench on the base = external wrench - rate of momentum of all bodies (M6, M7 with the reactions of the cut joints included).
"""

from libc.math cimport sqrt

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport Vec3, Wrench, add, cross, dot, mul, sub, xyz
from rt_kernels.mechanisms.probe_cone.chains cimport (
    add_brake_chain, add_spring_chain, point_acceleration, subtract_brake_chain, subtract_spring_chain,
)
from rt_kernels.mechanisms.probe_cone.model cimport DOF, LENGTH, LIMITER, SWING_Y, SWING_Z, Inertias, Motion


cdef void kinematics(const Inertias *p, const double *q, const double *v, Vec3 w0, Motion *k) noexcept nogil:
    """Axes, points and velocities of all bodies for coordinates q and rates v; w0 absolute rate of the base, A axes."""
    cdef double s1, c1, s2, c2, s3, c3, s4, c4, s5, c5
    cdef Vec3 yb, zb
    k.w0 = w0
    sincos(q[0], &s1, &c1)
    sincos(q[1], &s2, &c2)
    sincos(q[2], &s3, &c3)
    sincos(q[3], &s4, &c4)
    sincos(q[4], &s5, &c5)
    k.sin_bend[0] = s3
    k.sin_bend[1] = s4
    # swinging body: about Y, then Z (rows of the passive matrix, element (1,2) is +s2)
    k.x2 = xyz(c1 * c2, s2, -s1 * c2)
    k.y2 = xyz(-c1 * s2, c2, s1 * s2)
    k.z2 = xyz(s1, 0.0, c1)
    # probe relative to the body: about Y, Z, X
    k.x1 = sub(add(mul(c4 * c3, k.x2), mul(s4, k.y2)), mul(c4 * s3, k.z2))
    yb = add(add(mul(-s4 * c3, k.x2), mul(c4, k.y2)), mul(s4 * s3, k.z2))
    zb = add(mul(s3, k.x2), mul(c3, k.z2))
    k.y1 = add(mul(c5, yb), mul(s5, zb))
    k.z1 = add(mul(-s5, yb), mul(c5, zb))
    # joint axes
    k.axis[0] = xyz(0.0, 1.0, 0.0)
    k.axis[1] = k.z2
    k.axis[2] = k.y2
    k.axis[3] = zb
    k.axis[4] = k.x1
    k.p_exit = mul(p.exit_x, k.x2)
    k.p_head = add(k.p_exit, mul(q[LENGTH], k.x1))
    # rates relative to the base, and absolute
    k.w2_rel = xyz(s1 * v[1], v[0], c1 * v[1])
    k.w1_rel = add(add(add(k.w2_rel, mul(v[2], k.axis[2])), mul(v[3], k.axis[3])), mul(v[4], k.axis[4]))
    k.w2 = add(k.w2_rel, w0)
    k.w1 = add(k.w1_rel, w0)
    # head: body + probe rotation + extension rate
    k.v_head = add(add(cross(k.w2_rel, k.p_exit), cross(k.w1_rel, sub(k.p_head, k.p_exit))), mul(v[LENGTH], k.x1))
    k.limiter_x = q[LIMITER]


cdef inline Vec3 inertia_moment(double Jx, double Jt, Vec3 x, Vec3 alpha, Vec3 w) noexcept nogil:
    # J alpha + w x J w of an axisymmetric body: J = Jt 1 + (Jx - Jt) x x^T
    cdef double dJ = Jx - Jt
    return add(add(mul(Jt, alpha), mul(dJ * dot(x, alpha), x)), cross(w, mul(dJ * dot(x, w), x)))


cdef inline void add_body(
    double m, double Jx, double Jt, const Vec3 *x, const Vec3 *jv, int nv, const Vec3 *axis, int nw, const Vec3 *a, const Vec3 *alpha,
    const Vec3 *w, double *M, double *bias
) noexcept nogil:
    """Add one axisymmetric body: jv[nv] partial velocities of its centre (coordinates 0..nv-1), axis[nw] partial angular velocities."""
    # inertia force and moment of the bias motion
    cdef Vec3 force = mul(m, a[0]), moment = inertia_moment(Jx, Jt, x[0], alpha[0], w[0])
    cdef double dJ = Jx - Jt
    cdef double along[5]
    cdef int i, j
    for i in range(nw):
        along[i] = dot(x[0], axis[i])
    for i in range(nv):
        bias[i] += dot(jv[i], force)
        for j in range(i + 1):
            M[7 * i + j] += m * dot(jv[i], jv[j])
    for i in range(nw):
        bias[i] += dot(axis[i], moment)
        for j in range(i + 1):
            M[7 * i + j] += Jt * dot(axis[i], axis[j]) + dJ * along[i] * along[j]


cdef inline void carried_rates(const double *v, Motion *k) noexcept nogil:
    """Angular accelerations without q'': each joint axis is carried by what lies before it."""
    cdef Vec3 w = k.w0, alpha = xyz(0.0, 0.0, 0.0), rate
    cdef int i
    for i in range(5):
        if i == 2:
            k.alpha2 = alpha
        rate = mul(v[i], k.axis[i])
        alpha = add(alpha, cross(w, rate))
        w = add(w, rate)
    k.alpha1 = alpha


cdef inline void add_swinging_body(const Inertias *p, Motion *k) noexcept nogil:
    cdef int i
    k.c2 = mul(p.c2, k.x2)
    k.a2 = point_acceleration(xyz(0.0, 0.0, 0.0), k.alpha2, k.w2, k.c2)
    for i in range(2):
        k.jv2[i] = cross(k.axis[i], k.c2)
    add_body(p.m2, p.Jx2, p.Jt2, &k.x2, k.jv2, 2, k.axis, 2, &k.a2, &k.alpha2, &k.w2, k.M, k.bias)


cdef inline void add_probe(const Inertias *p, const double *q, const double *v, Motion *k) noexcept nogil:
    """Probe with head, and the rotary inertia of nut, gears and brakes, reduced to the stroke."""
    # from the exit bearing to the centre of mass
    cdef Vec3 s = mul(q[LENGTH] - p.d1, k.x1)
    cdef Vec3 a_exit = point_acceleration(xyz(0.0, 0.0, 0.0), k.alpha2, k.w2, k.p_exit)
    cdef int i
    k.c1 = add(k.p_exit, s)
    k.a1 = add(point_acceleration(a_exit, k.alpha1, k.w1, s), cross(k.w1, mul(2.0 * v[LENGTH], k.x1)))
    for i in range(2):
        k.jv1[i] = cross(k.axis[i], k.c1)
    for i in range(2, 5):
        k.jv1[i] = cross(k.axis[i], s)
    k.jv1[LENGTH] = k.x1
    add_body(p.m1, p.Jx1, p.Jt1, &k.x1, k.jv1, 6, k.axis, 5, &k.a1, &k.alpha1, &k.w1, k.M, k.bias)
    k.M[DOF * LENGTH + LENGTH] += p.axial_inertia


cdef inline void add_limiter(const Inertias *p, const double *q, const double *v, Motion *k) noexcept nogil:
    """Movable limiter, which slides along the swinging body."""
    cdef int i
    k.c3 = mul(q[LIMITER] + p.c3, k.x2)
    k.a3 = add(point_acceleration(xyz(0.0, 0.0, 0.0), k.alpha2, k.w2, k.c3), cross(k.w2, mul(2.0 * v[LIMITER], k.x2)))
    for i in range(2):
        k.jv3[i] = cross(k.axis[i], k.c3)
    add_body(p.m3, p.Jx3, p.Jt3, &k.x2, k.jv3, 2, k.axis, 2, &k.a3, &k.alpha2, &k.w2, k.M, k.bias)
    for i in range(2):
        k.M[DOF * LIMITER + i] = p.m3 * dot(k.x2, k.jv3[i])
    k.M[DOF * LIMITER + LIMITER] = p.m3
    k.bias[LIMITER] += p.m3 * dot(k.x2, k.a3)


cdef void assemble(const Inertias *p, const double *q, const double *v, Motion *k) noexcept nogil:
    """Mass matrix (lower triangle, row length 7) and bias of all bodies and chains; `kinematics` must have been called."""
    cdef int i
    for i in range(DOF * DOF):
        k.M[i] = 0.0
    for i in range(DOF):
        k.bias[i] = 0.0
    carried_rates(v, k)
    add_swinging_body(p, k)
    add_probe(p, q, v, k)
    if p.dof == DOF:
        add_limiter(p, q, v, k)
    for i in range(2):
        add_spring_chain(&p.spring[i], k, &k.spring[i])
        add_brake_chain(&p.brake[i], k, &k.brake[i])


cdef void factor(int n, double *M) noexcept nogil:
    """Cholesky factor of the symmetric positive definite M (lower triangle, row length 7), in place; the diagonal holds 1/L_ii."""
    cdef int i, j, l
    cdef double s
    for j in range(n):
        s = M[8 * j]
        for l in range(j):
            s -= M[7 * j + l] * M[7 * j + l]
        s = 1.0 / sqrt(s)
        M[8 * j] = s
        for i in range(j + 1, n):
            for l in range(j):
                M[7 * i + j] -= M[7 * i + l] * M[7 * j + l]
            M[7 * i + j] *= s


cdef void solve(int n, const double *L, double *x) noexcept nogil:
    # x := M^-1 x with the factor of `factor`
    cdef int i, l
    for i in range(n):
        for l in range(i):
            x[i] -= L[7 * i + l] * x[l]
        x[i] *= L[8 * i]
    for i in range(n - 1, -1, -1):
        for l in range(i + 1, n):
            x[i] -= L[7 * l + i] * x[l]
        x[i] *= L[8 * i]


cdef inline void subtract_body(
    double m, double Jx, double Jt, Vec3 x, Vec3 c, Vec3 a, Vec3 alpha, Vec3 w, Wrench *W
) noexcept nogil:
    # W -= rate of momentum of one body (force, moment about the origin of A)
    cdef Vec3 force = mul(m, a)
    W.f = sub(W.f, force)
    W.m = sub(W.m, add(inertia_moment(Jx, Jt, x, alpha, w), cross(c, force)))


cdef Wrench base_wrench(const Inertias *p, const Motion *k, const double *acc, Wrench external) noexcept nogil:
    """Wrench on the base; `external`: the wrench on all moving bodies (both at A, A axes)."""
    cdef Wrench W = external
    cdef Vec3 a = k.a2, alpha = k.alpha2
    cdef int i
    # swinging body
    for i in range(2):
        alpha = add(alpha, mul(acc[i], k.axis[i]))
        a = add(a, mul(acc[i], k.jv2[i]))
    subtract_body(p.m2, p.Jx2, p.Jt2, k.x2, k.c2, a, alpha, k.w2, &W)
    if p.dof == DOF:
        a = add(add(add(k.a3, mul(acc[SWING_Y], k.jv3[0])), mul(acc[SWING_Z], k.jv3[1])), mul(acc[LIMITER], k.x2))
        subtract_body(p.m3, p.Jx3, p.Jt3, k.x2, k.c3, a, alpha, k.w2, &W)
    # probe
    alpha, a = k.alpha1, k.a1
    for i in range(5):
        alpha = add(alpha, mul(acc[i], k.axis[i]))
    for i in range(6):
        a = add(a, mul(acc[i], k.jv1[i]))
    subtract_body(p.m1, p.Jx1, p.Jt1, k.x1, k.c1, a, alpha, k.w1, &W)
    for i in range(2):
        subtract_spring_chain(&p.spring[i], &k.spring[i], acc, &W)
        subtract_brake_chain(&p.brake[i], k, &k.brake[i], acc, &W)
    return W
