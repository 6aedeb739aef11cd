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

from rt_kernels.algebra cimport vec3
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.mechanisms.probe_cone.chains cimport (
    add_brake_chain, add_cross, add_spring_chain, subtract_brake_chain, subtract_spring_chain, turning_acceleration,
)
from rt_kernels.mechanisms.probe_cone.model cimport DOF, LENGTH, LIMITER, SWING_Y, SWING_Z, Inertias, Motion


cdef void kinematics(const Inertias *p, const double *q, const double *v, const double *w0, Motion *k) noexcept nogil:
    """Axes, points and velocities of all bodies for coordinates q and rates v; w0 absolute rate of the base, A axes."""
    cdef double s1, c1, s2, c2, s3, c3, s4, c4, s5, c5
    cdef double yb[3]
    cdef double zb[3]
    cdef double t[3]
    cdef int i
    sincos(q[0], &s1, &c1)
    sincos(q[1], &s2, &c2)
    sincos(q[2], &s3, &c3)
    sincos(q[3], &s4, &c4)
    sincos(q[4], &s5, &c5)
    k.sin_bend[0] = s3
    k.sin_bend[1] = s4
    # swinging body: about Y, then Z (rows of the passive matrix, element (1,2) is +s2)
    vec3.fill(c1 * c2, s2, -s1 * c2, k.x2)
    vec3.fill(-c1 * s2, c2, s1 * s2, k.y2)
    vec3.fill(s1, 0.0, c1, k.z2)
    # probe relative to the body: about Y, Z, X
    for i in range(3):
        k.x1[i] = c4 * c3 * k.x2[i] + s4 * k.y2[i] - c4 * s3 * k.z2[i]
        yb[i] = -s4 * c3 * k.x2[i] + c4 * k.y2[i] + s4 * s3 * k.z2[i]
        zb[i] = s3 * k.x2[i] + c3 * k.z2[i]
        k.y1[i] = c5 * yb[i] + s5 * zb[i]
        k.z1[i] = -s5 * yb[i] + c5 * zb[i]
    # joint axes
    vec3.fill(0.0, 1.0, 0.0, k.axis)
    vec3.copy(k.z2, k.axis + 3)
    vec3.copy(k.y2, k.axis + 6)
    vec3.copy(zb, k.axis + 9)
    vec3.copy(k.x1, k.axis + 12)
    vec3.scale(p.exit_x, k.x2, k.p_exit)
    vec3.add_scaled(k.p_exit, q[LENGTH], k.x1, k.p_head)
    # rates relative to the base
    vec3.fill(s1 * v[1], v[0], c1 * v[1], k.w2_rel)
    vec3.add_scaled(k.w2_rel, v[2], k.axis + 6, k.w1_rel)
    vec3.add_scaled(k.w1_rel, v[3], k.axis + 9, k.w1_rel)
    vec3.add_scaled(k.w1_rel, v[4], k.axis + 12, k.w1_rel)
    vec3.add(k.w2_rel, w0, k.w2)
    vec3.add(k.w1_rel, w0, k.w1)
    # head: body + probe rotation + extension rate
    vec3.cross(k.w2_rel, k.p_exit, k.v_head)
    vec3.sub(k.p_head, k.p_exit, t)
    add_cross(k.w1_rel, t, k.v_head)
    vec3.add_scaled(k.v_head, v[LENGTH], k.x1, k.v_head)
    k.limiter_x = q[LIMITER]


cdef inline void add_body(
    double m, double Jx, double Jt, const double *x, const double *jv, int nv, const double *axes, int nw, const double *a,
    const double *alpha,
    const double *w, double *M, double *bias
) noexcept nogil:
    """Add one axisymmetric body: jv[nv] partial velocities of its centre (coordinates 0..nv-1), axes[nw] partial angular velocities."""
    cdef double force[3]
    cdef double moment[3]
    cdef double t[3]
    cdef double along[5]
    cdef double dJ = Jx - Jt
    cdef double ax
    cdef int i, j
    # inertia force and moment of the bias motion: m a, J alpha + w x J w
    vec3.scale(m, a, force)
    ax = vec3.dot(x, alpha)
    vec3.scale(Jt, alpha, moment)
    vec3.add_scaled(moment, dJ * ax, x, moment)
    ax = vec3.dot(x, w)
    vec3.scale(dJ * ax, x, t)
    add_cross(w, t, moment)
    for i in range(nw):
        along[i] = vec3.dot(x, axes + 3 * i)
    for i in range(nv):
        bias[i] += vec3.dot(jv + 3 * i, force)
        for j in range(i + 1):
            M[7 * i + j] += m * vec3.dot(jv + 3 * i, jv + 3 * j)
    for i in range(nw):
        bias[i] += vec3.dot(axes + 3 * i, moment)
        for j in range(i + 1):
            M[7 * i + j] += Jt * vec3.dot(axes + 3 * i, axes + 3 * j) + dJ * along[i] * along[j]


cdef inline void carried_rates(const double *v, const double *w0, Motion *k) noexcept nogil:
    """Angular accelerations without q'': each joint axis is carried by what lies before it."""
    cdef double t[3]
    cdef double w[3]
    cdef int i
    vec3.copy(w0, w)
    vec3.fill(0.0, 0.0, 0.0, k.alpha2)
    for i in range(5):
        vec3.scale(v[i], k.axis + 3 * i, t)
        if i == 2:
            vec3.copy(k.alpha2, k.alpha1)
        if i < 2:
            add_cross(w, t, k.alpha2)
        else:
            add_cross(w, t, k.alpha1)
        vec3.add(w, t, w)


cdef inline void add_swinging_body(const Inertias *p, Motion *k) noexcept nogil:
    vec3.scale(p.c2, k.x2, k.c2)
    vec3.fill(0.0, 0.0, 0.0, k.a2)
    turning_acceleration(k.alpha2, k.w2, k.c2, k.a2)
    vec3.cross(k.axis, k.c2, k.jv2)
    vec3.cross(k.axis + 3, k.c2, k.jv2 + 3)
    add_body(p.m2, p.Jx2, p.Jt2, k.x2, k.jv2, 2, k.axis, 2, k.a2, k.alpha2, k.w2, k.M, k.bias)


cdef inline void add_probe(const Inertias *p, const double *q, const double *v, Motion *k) noexcept nogil:
    """Probe with head, and the rotary inertia of nut, gears and brakes, reduced to the stroke."""
    cdef double t[3]
    cdef double s[3]
    cdef int i
    vec3.scale(q[LENGTH] - p.d1, k.x1, s)
    vec3.add(k.p_exit, s, k.c1)
    vec3.fill(0.0, 0.0, 0.0, k.a1)
    turning_acceleration(k.alpha2, k.w2, k.p_exit, k.a1)
    turning_acceleration(k.alpha1, k.w1, s, k.a1)
    vec3.scale(2.0 * v[LENGTH], k.x1, t)
    add_cross(k.w1, t, k.a1)
    vec3.cross(k.axis, k.c1, k.jv1)
    vec3.cross(k.axis + 3, k.c1, k.jv1 + 3)
    for i in range(2, 5):
        vec3.cross(k.axis + 3 * i, s, k.jv1 + 3 * i)
    vec3.copy(k.x1, k.jv1 + 15)
    add_body(p.m1, p.Jx1, p.Jt1, k.x1, k.jv1, 6, k.axis, 5, k.a1, k.alpha1, k.w1, k.M, k.bias)
    k.M[DOF * LENGTH + LENGTH] += p.axial_inertia


cdef inline void add_limiter(const Inertias *p, const double *q, const double *v, Motion *k) noexcept nogil:
    """Movable limiter, which slides along the swinging body."""
    cdef double t[3]
    vec3.scale(q[LIMITER] + p.c3, k.x2, k.c3)
    vec3.fill(0.0, 0.0, 0.0, k.a3)
    turning_acceleration(k.alpha2, k.w2, k.c3, k.a3)
    vec3.scale(2.0 * v[LIMITER], k.x2, t)
    add_cross(k.w2, t, k.a3)
    vec3.cross(k.axis, k.c3, k.jv3)
    vec3.cross(k.axis + 3, k.c3, k.jv3 + 3)
    add_body(p.m3, p.Jx3, p.Jt3, k.x2, k.jv3, 2, k.axis, 2, k.a3, k.alpha2, k.w2, k.M, k.bias)
    k.M[DOF * LIMITER + SWING_Y] = p.m3 * vec3.dot(k.x2, k.jv3)
    k.M[DOF * LIMITER + SWING_Z] = p.m3 * vec3.dot(k.x2, k.jv3 + 3)
    k.M[DOF * LIMITER + LIMITER] = p.m3
    k.bias[LIMITER] += p.m3 * vec3.dot(k.x2, k.a3)


cdef void assemble(const Inertias *p, const double *q, const double *v, const double *w0, Motion *k) noexcept nogil:
    """Mass matrix (lower triangle, row length 7) and bias of all bodies and chains; `kinematics` must have been called."""
    cdef int i
    for i in range(DOF * DOF):
        k.M[i] = 0.0
    for i in range(DOF):
        k.bias[i] = 0.0
    carried_rates(v, w0, k)
    add_swinging_body(p, k)
    add_probe(p, q, v, k)
    if p.dof == DOF:
        add_limiter(p, q, v, k)
    for i in range(2):
        add_spring_chain(&p.spring[i], w0, k, &k.spring[i])
        add_brake_chain(&p.brake[i], w0, k, &k.brake[i])


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
    double m, double Jx, double Jt, const double *x, const double *c, const double *a, const double *alpha, const double *w, double *W
) noexcept nogil:
    # W -= rate of momentum of one body (force, moment about the origin of A)
    cdef double force[3]
    cdef double moment[3]
    cdef double t[3]
    vec3.scale(m, a, force)
    vec3.scale(Jt, alpha, moment)
    vec3.add_scaled(moment, (Jx - Jt) * vec3.dot(x, alpha), x, moment)
    vec3.scale((Jx - Jt) * vec3.dot(x, w), x, t)
    add_cross(w, t, moment)
    add_cross(c, force, moment)
    vec3.sub(W, force, W)
    vec3.sub(W + 3, moment, W + 3)


cdef void base_wrench(const Inertias *p, const double *q, const Motion *k, const double *acc, const double *w0, double *W) noexcept nogil:
    """W enters as the external wrench on all moving bodies (at A, A axes) and leaves as the wrench on the base."""
    cdef double a[3]
    cdef double alpha[3]
    cdef int i
    # swinging body
    vec3.copy(k.alpha2, alpha)
    vec3.copy(k.a2, a)
    for i in range(2):
        vec3.add_scaled(alpha, acc[i], k.axis + 3 * i, alpha)
        vec3.add_scaled(a, acc[i], k.jv2 + 3 * i, a)
    subtract_body(p.m2, p.Jx2, p.Jt2, k.x2, k.c2, a, alpha, k.w2, W)
    if p.dof == DOF:
        vec3.copy(k.a3, a)
        vec3.add_scaled(a, acc[SWING_Y], k.jv3, a)
        vec3.add_scaled(a, acc[SWING_Z], k.jv3 + 3, a)
        vec3.add_scaled(a, acc[LIMITER], k.x2, a)
        subtract_body(p.m3, p.Jx3, p.Jt3, k.x2, k.c3, a, alpha, k.w2, W)
    # probe
    vec3.copy(k.alpha1, alpha)
    vec3.copy(k.a1, a)
    for i in range(5):
        vec3.add_scaled(alpha, acc[i], k.axis + 3 * i, alpha)
    for i in range(6):
        vec3.add_scaled(a, acc[i], k.jv1 + 3 * i, a)
    subtract_body(p.m1, p.Jx1, p.Jt1, k.x1, k.c1, a, alpha, k.w1, W)
    for i in range(2):
        subtract_spring_chain(&p.spring[i], &k.spring[i], acc, W)
        subtract_brake_chain(&p.brake[i], &k.brake[i], acc, w0, W)
