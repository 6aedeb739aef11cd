"""Multibody dynamics of the central (probe-cone) mechanism: swinging body, elastic probe, movable limiter, four dependent chains.

Everything is in axes of the base frame A (origin: hinge of the swinging body, X along the mechanism). Seven coordinates:

    0, 1  swing of the body about Y, then Z          2, 3, 4  bending of the probe about Y, then Z, and its torsion about X
    5     free length L of the probe (exit bearing to head centre)          6  position of the movable limiter along the body

Equations of motion by partial velocities (Kane): M q'' = Q - bias. Unlike the text, the translation of the probe is part of the tree, so
that nothing of its inertia is dropped; only the rotary inertia of nut, gears and brakes enters as `axial_inertia` = I i^2 on coordinate 5.
The base may turn at a constant absolute rate w_0; the acceleration of its origin is left out (dissertation (4.4), transport terms).

Dependent chains of the lateral damper (dissertation ch. 1.4, 2.5) are closed analytically, with slender links (no inertia about their own axes):

    spring chain U-P-S: cylinder and rod along e = (b - a)/L     L'' = e.(b'' - a'') + L |e'|^2     e'' from b'' - a'' = L'' e + 2 L' e' + L e''
    brake chain  R-U-S: crank of angle p about a fixed axis, rod of fixed length:  d.(b' - t p') = 0,  d.(b'' - tip'') + |b' - tip'|^2 / l = 0

Wrench on the base = external wrench - rate of momentum of all bodies (M6, M7 with the reactions of the cut joints included).
"""

from libc.math cimport sqrt
from rt_kernels.algebra cimport vec3
from rt_kernels.algebra.sincos cimport sincos

cdef enum:
    DOF = 7
    SWING_Y = 0
    SWING_Z = 1
    BEND_Y = 2
    BEND_Z = 3
    TWIST = 4
    LENGTH = 5
    LIMITER = 6


cdef struct SpringChain:
    double a[3]            # joint centre on the base
    double b[3]            # joint centre on the swinging body, body axes
    double m1, s1          # cylinder: mass, distance of its centre of mass from a
    double m2, d2          # rod: mass, distance of its centre of mass from b
    double J               # sum of the transverse central inertias
    double length0


cdef struct BrakeChain:
    double a[3]            # crank hinge on the base
    double n[3]            # hinge axis
    double ex[3]           # crank direction at zero angle
    double ey[3]           # n x ex
    double b[3]            # rod end on the swinging body, body axes
    double arm, rod        # lengths
    double elbow           # +1 or -1
    double I               # crank and brake rotor about n
    double m, fraction, J  # rod: mass, place of its centre of mass from the crank tip, transverse central inertia


cdef struct Inertias:
    double exit_x          # L_M: hinge to exit bearing
    double m2, c2, Jx2, Jt2      # swinging body: mass, centre of mass on its axis, inertia about it and across (central)
    double m1, d1, Jx1, Jt1      # probe with head: centre of mass d1 behind the head centre
    double m3, c3, Jx3, Jt3      # movable limiter: centre of mass c3 in front of its origin
    double axial_inertia
    SpringChain spring[2]
    BrakeChain brake[2]
    int dof                # 6: limiter fixed to the body, 7: movable


cdef struct ChainMotion:
    # spring: length, rate; brake: angle as (cos, sin), rate
    double value, rate, cosine, sine
    double e[3]
    double e_rate[3]
    double tip[3]          # brake: crank tip
    double t[3]            # brake: n x arm
    double b[3]
    double db[6]           # two columns: partial velocities of b
    double b_bias[3]
    double base_acc[3]     # spring: acceleration of a; brake: of the tip without p''
    double out_of_reach


cdef struct Motion:
    # axes of body 2 and probe 1 in A
    double x2[3]
    double y2[3]
    double z2[3]
    double x1[3]
    double y1[3]
    double z1[3]
    double axis[15]        # joint axes 0..4
    double p_exit[3]
    double p_head[3]
    double w2_rel[3]       # relative to the base
    double w1_rel[3]
    double w2[3]           # absolute
    double w1[3]
    double v_head[3]       # relative to the base
    double sin_bend[2]
    double c2[3]
    double c1[3]
    double c3[3]
    double alpha2[3]
    double alpha1[3]
    double a2[3]
    double a1[3]
    double a3[3]
    double jv2[6]
    double jv1[18]
    double jv3[6]
    double M[49]
    double bias[7]
    ChainMotion spring[2]
    ChainMotion brake[2]
    double limiter_x


cdef inline void add_cross(const double *a, const double *b, double *out) noexcept nogil:
    # out += a x b
    cdef double t[3]
    vec3.cross(a, b, t)
    vec3.add(out, t, out)


cdef inline void turning_acceleration(const double *alpha, const double *w, const double *r, double *out) noexcept nogil:
    # out += alpha x r + w x (w x r)
    cdef double t[3]
    add_cross(alpha, r, out)
    vec3.cross(w, r, t)
    add_cross(w, t, out)


cdef inline void add_body(
    double m, double Jx, double Jt, const double *x, const double *jv, int nv, const double *axes, int nw, const double *a, const double *alpha,
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


cdef inline void body_point(const Motion *k, const double *local, double *out) noexcept nogil:
    # local coordinates of body 2 to A axes
    cdef int i
    for i in range(3):
        out[i] = k.x2[i] * local[0] + k.y2[i] * local[1] + k.z2[i] * local[2]


cdef inline void chain_end(const Motion *k, const double *local, ChainMotion *c, double *v, double *v_rel) noexcept nogil:
    """End b of a chain on the body: place, partial velocities, absolute and relative velocity, bias acceleration."""
    body_point(k, local, c.b)
    vec3.cross(k.axis, c.b, c.db)
    vec3.cross(k.axis + 3, c.b, c.db + 3)
    vec3.cross(k.w2, c.b, v)
    vec3.cross(k.w2_rel, c.b, v_rel)
    vec3.fill(0.0, 0.0, 0.0, c.b_bias)
    turning_acceleration(k.alpha2, k.w2, c.b, c.b_bias)


cdef inline void spring_direction_acceleration(const ChainMotion *c, const double *b_acc, double *L_acc, double *e_acc) noexcept nogil:
    # L'' and e'' from the acceleration of b
    cdef double rel[3]
    vec3.sub(b_acc, c.base_acc, rel)
    L_acc[0] = vec3.dot(c.e, rel) + c.value * vec3.dot(c.e_rate, c.e_rate)
    vec3.add_scaled(rel, -L_acc[0], c.e, rel)
    vec3.add_scaled(rel, -2.0 * c.rate, c.e_rate, rel)
    vec3.scale(1.0 / c.value, rel, e_acc)


cdef inline void add_spring_chain(const SpringChain *p, const double *w0, Motion *k, ChainMotion *c) noexcept nogil:
    cdef double v[3]
    cdef double v_rel[3]
    cdef double t[3]
    cdef double e_acc[3]
    cdef double c1[3]
    cdef double c2[3]
    cdef double de[6]
    cdef double dL[2]
    cdef double L_acc, u
    cdef int i, j
    chain_end(k, p.b, c, v, v_rel)
    # closed form of the stroke and its rate; direction rate absolute
    vec3.sub(c.b, p.a, t)
    c.value = vec3.norm(t)
    vec3.scale(1.0 / c.value, t, c.e)
    c.rate = vec3.dot(c.e, v_rel)
    vec3.cross(w0, p.a, t)
    vec3.sub(v, t, v)
    vec3.add_scaled(v, -c.rate, c.e, v)
    vec3.scale(1.0 / c.value, v, c.e_rate)
    vec3.cross(w0, t, c.base_acc)
    # bias: what the links need when q'' = 0
    spring_direction_acceleration(c, c.b_bias, &L_acc, e_acc)
    vec3.add_scaled(c.base_acc, p.s1, e_acc, c1)
    vec3.add_scaled(c.b_bias, -p.d2, e_acc, c2)
    for i in range(2):
        dL[i] = vec3.dot(c.e, c.db + 3 * i)
        vec3.add_scaled(c.db + 3 * i, -dL[i], c.e, de + 3 * i)
        vec3.scale(1.0 / c.value, de + 3 * i, de + 3 * i)
    u = p.m1 * p.s1 * p.s1 + p.J
    for i in range(2):
        # cylinder s1 de, rod db - d2 de, both turn with de
        vec3.add_scaled(c.db + 3 * i, -p.d2, de + 3 * i, t)
        k.bias[i] += p.m1 * p.s1 * vec3.dot(c1, de + 3 * i) + p.m2 * vec3.dot(c2, t) + p.J * vec3.dot(e_acc, de + 3 * i)
        for j in range(i + 1):
            vec3.add_scaled(c.db + 3 * j, -p.d2, de + 3 * j, v)
            k.M[7 * i + j] += u * vec3.dot(de + 3 * i, de + 3 * j) + p.m2 * vec3.dot(t, v)


cdef inline void add_brake_chain(const BrakeChain *p, const double *w0, Motion *k, ChainMotion *c) noexcept nogil:
    cdef double v[3]
    cdef double v_rel[3]
    cdef double u[3]
    cdef double arm[3]
    cdef double t[3]
    cdef double tip_v[3]
    cdef double d_acc[3]
    cdef double c_acc[3]
    cdef double tip_acc[3]
    cdef double dp[2]
    cdef double dtip[3]
    cdef double dc[6]
    cdef double dd[6]
    cdef double h, F2, F, l23F2, cf1, sf1, cf2, sf2, dt_, p_acc
    cdef int i, j
    chain_end(k, p.b, c, v, v_rel)
    # crank angle: triangle of crank, rod and hinge-to-end distance in the plane normal to the hinge
    vec3.sub(c.b, p.a, u)
    h = vec3.dot(p.n, u)
    vec3.add_scaled(u, -h, p.n, u)
    F2 = vec3.dot(u, u)
    F = sqrt(F2)
    l23F2 = p.rod * p.rod - h * h
    cf1 = (p.arm * p.arm + F2 - l23F2) / (2.0 * p.arm * F)
    c.out_of_reach = 0.0
    if cf1 > 1.0 or cf1 < -1.0:
        c.out_of_reach = 1.0
        cf1 = 0.999999 if cf1 > 1.0 else -0.999999
    sf1 = p.elbow * sqrt(1.0 - cf1 * cf1)
    cf2 = vec3.dot(p.ex, u) / F
    sf2 = vec3.dot(p.ey, u) / F
    c.cosine = cf2 * cf1 - sf2 * sf1
    c.sine = sf2 * cf1 + cf2 * sf1
    vec3.scale(p.arm * c.cosine, p.ex, arm)
    vec3.add_scaled(arm, p.arm * c.sine, p.ey, arm)
    vec3.add(p.a, arm, c.tip)
    vec3.cross(p.n, arm, c.t)
    # rod direction and rates
    vec3.sub(c.b, c.tip, c.e)
    vec3.scale(1.0 / p.rod, c.e, c.e)
    dt_ = vec3.dot(c.e, c.t)
    c.rate = vec3.dot(c.e, v_rel) / dt_
    vec3.scale(c.rate, c.t, tip_v)
    add_cross(w0, c.tip, tip_v)
    vec3.sub(v, tip_v, v)
    vec3.scale(1.0 / p.rod, v, c.e_rate)
    # acceleration of the tip without p'': base rotation, Coriolis, centripetal
    vec3.cross(w0, c.tip, t)
    vec3.add_scaled(t, 2.0 * c.rate, c.t, t)
    vec3.cross(w0, t, c.base_acc)
    vec3.add_scaled(c.base_acc, -c.rate * c.rate, arm, c.base_acc)
    brake_accelerations(p, c, c.b_bias, &p_acc, tip_acc, d_acc, c_acc)
    for i in range(2):
        dp[i] = vec3.dot(c.e, c.db + 3 * i) / dt_
        vec3.scale(dp[i], c.t, dtip)
        vec3.sub(c.db + 3 * i, dtip, dd + 3 * i)
        vec3.add_scaled(dtip, p.fraction, dd + 3 * i, dc + 3 * i)
        vec3.scale(1.0 / p.rod, dd + 3 * i, dd + 3 * i)
    for i in range(2):
        k.bias[i] += p.I * p_acc * dp[i] + p.m * vec3.dot(c_acc, dc + 3 * i) + p.J * vec3.dot(d_acc, dd + 3 * i)
        for j in range(i + 1):
            k.M[7 * i + j] += p.I * dp[i] * dp[j] + p.m * vec3.dot(dc + 3 * i, dc + 3 * j) + p.J * vec3.dot(dd + 3 * i, dd + 3 * j)


cdef inline void brake_accelerations(
    const BrakeChain *p, const ChainMotion *c, const double *b_acc, double *p_acc, double *tip_acc, double *d_acc, double *c_acc
) noexcept nogil:
    # p'' from the closure, then tip, rod direction and rod centre
    cdef double t[3]
    vec3.sub(b_acc, c.base_acc, t)
    p_acc[0] = (vec3.dot(c.e, t) + p.rod * vec3.dot(c.e_rate, c.e_rate)) / vec3.dot(c.e, c.t)
    vec3.add_scaled(c.base_acc, p_acc[0], c.t, tip_acc)
    vec3.sub(b_acc, tip_acc, t)
    vec3.scale(1.0 / p.rod, t, d_acc)
    vec3.add_scaled(tip_acc, p.fraction, t, c_acc)


cdef inline double chain_gain(const ChainMotion *c, int i, bint is_brake) noexcept nogil:
    # rate of stroke (spring) or crank angle (brake) per rate of swing coordinate i
    if is_brake:
        return vec3.dot(c.e, c.db + 3 * i) / vec3.dot(c.e, c.t)
    return vec3.dot(c.e, c.db + 3 * i)


cdef inline void place(const Inertias *p, const double *q, const double *v, const double *w0, Motion *k) noexcept nogil:
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
    vec3.add_scaled(k.p_exit, q[5], k.x1, k.p_head)
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
    vec3.add_scaled(k.v_head, v[5], k.x1, k.v_head)
    k.limiter_x = q[6]


cdef inline void assemble(const Inertias *p, const double *q, const double *v, const double *w0, Motion *k) noexcept nogil:
    """Mass matrix (lower triangle, row length 7) and bias of all bodies and chains; `place` must have been called."""
    cdef double t[3]
    cdef double s[3]
    cdef double w[3]
    cdef int i
    for i in range(49):
        k.M[i] = 0.0
    for i in range(7):
        k.bias[i] = 0.0
    # angular accelerations without q'': each joint axis is carried by what lies before it
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
    # swinging body
    vec3.scale(p.c2, k.x2, k.c2)
    vec3.fill(0.0, 0.0, 0.0, k.a2)
    turning_acceleration(k.alpha2, k.w2, k.c2, k.a2)
    vec3.cross(k.axis, k.c2, k.jv2)
    vec3.cross(k.axis + 3, k.c2, k.jv2 + 3)
    add_body(p.m2, p.Jx2, p.Jt2, k.x2, k.jv2, 2, k.axis, 2, k.a2, k.alpha2, k.w2, k.M, k.bias)
    # probe with head
    vec3.scale(q[5] - p.d1, k.x1, s)
    vec3.add(k.p_exit, s, k.c1)
    vec3.fill(0.0, 0.0, 0.0, k.a1)
    turning_acceleration(k.alpha2, k.w2, k.p_exit, k.a1)
    turning_acceleration(k.alpha1, k.w1, s, k.a1)
    vec3.scale(2.0 * v[5], k.x1, t)
    add_cross(k.w1, t, k.a1)
    vec3.cross(k.axis, k.c1, k.jv1)
    vec3.cross(k.axis + 3, k.c1, k.jv1 + 3)
    for i in range(2, 5):
        vec3.cross(k.axis + 3 * i, s, k.jv1 + 3 * i)
    vec3.copy(k.x1, k.jv1 + 15)
    add_body(p.m1, p.Jx1, p.Jt1, k.x1, k.jv1, 6, k.axis, 5, k.a1, k.alpha1, k.w1, k.M, k.bias)
    # rotary inertia of nut, gears and brakes, reduced to the stroke
    k.M[7 * 5 + 5] += p.axial_inertia
    # movable limiter
    if p.dof == 7:
        vec3.scale(q[6] + p.c3, k.x2, k.c3)
        vec3.fill(0.0, 0.0, 0.0, k.a3)
        turning_acceleration(k.alpha2, k.w2, k.c3, k.a3)
        vec3.scale(2.0 * v[6], k.x2, t)
        add_cross(k.w2, t, k.a3)
        vec3.cross(k.axis, k.c3, k.jv3)
        vec3.cross(k.axis + 3, k.c3, k.jv3 + 3)
        add_body(p.m3, p.Jx3, p.Jt3, k.x2, k.jv3, 2, k.axis, 2, k.a3, k.alpha2, k.w2, k.M, k.bias)
        k.M[7 * 6] = p.m3 * vec3.dot(k.x2, k.jv3)
        k.M[7 * 6 + 1] = p.m3 * vec3.dot(k.x2, k.jv3 + 3)
        k.M[7 * 6 + 6] = p.m3
        k.bias[6] += p.m3 * vec3.dot(k.x2, k.a3)
    for i in range(2):
        add_spring_chain(&p.spring[i], w0, k, &k.spring[i])
        add_brake_chain(&p.brake[i], w0, k, &k.brake[i])


cdef inline void factor(int n, double *M) noexcept nogil:
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


cdef inline void solve(int n, const double *L, double *x) noexcept nogil:
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


cdef inline void base_wrench(const Inertias *p, const double *q, const Motion *k, const double *acc, const double *w0, double *W) noexcept nogil:
    """W enters as the external wrench on all moving bodies (at A, A axes) and leaves as the wrench on the base."""
    cdef double a[3]
    cdef double alpha[3]
    cdef double t[3]
    cdef double r[3]
    cdef double e_acc[3]
    cdef double tip_acc[3]
    cdef double c_acc[3]
    cdef double moment[3]
    cdef double L_acc, spin
    cdef const ChainMotion *c
    cdef const SpringChain *s
    cdef const BrakeChain *b
    cdef int i, j
    # swinging body
    vec3.copy(k.alpha2, alpha)
    vec3.copy(k.a2, a)
    for i in range(2):
        vec3.add_scaled(alpha, acc[i], k.axis + 3 * i, alpha)
        vec3.add_scaled(a, acc[i], k.jv2 + 3 * i, a)
    subtract_body(p.m2, p.Jx2, p.Jt2, k.x2, k.c2, a, alpha, k.w2, W)
    if p.dof == 7:
        vec3.copy(k.a3, a)
        vec3.add_scaled(a, acc[0], k.jv3, a)
        vec3.add_scaled(a, acc[1], k.jv3 + 3, a)
        vec3.add_scaled(a, acc[6], k.x2, a)
        subtract_body(p.m3, p.Jx3, p.Jt3, k.x2, k.c3, a, alpha, k.w2, W)
    # probe
    vec3.copy(k.alpha1, alpha)
    vec3.copy(k.a1, a)
    for i in range(5):
        vec3.add_scaled(alpha, acc[i], k.axis + 3 * i, alpha)
    for i in range(6):
        vec3.add_scaled(a, acc[i], k.jv1 + 3 * i, a)
    subtract_body(p.m1, p.Jx1, p.Jt1, k.x1, k.c1, a, alpha, k.w1, W)
    for j in range(2):
        # spring chain: cylinder, rod, their turning
        c = &k.spring[j]
        s = &p.spring[j]
        vec3.copy(c.b_bias, a)
        vec3.add_scaled(a, acc[0], c.db, a)
        vec3.add_scaled(a, acc[1], c.db + 3, a)
        spring_direction_acceleration(c, a, &L_acc, e_acc)
        vec3.cross(c.e, e_acc, moment)
        vec3.scale(s.J, moment, moment)
        vec3.add_scaled(c.base_acc, s.s1, e_acc, t)
        vec3.scale(s.m1, t, t)
        vec3.add_scaled(s.a, s.s1, c.e, r)
        add_cross(r, t, moment)
        vec3.sub(W, t, W)
        vec3.add_scaled(a, -s.d2, e_acc, t)
        vec3.scale(s.m2, t, t)
        vec3.add_scaled(c.b, -s.d2, c.e, r)
        add_cross(r, t, moment)
        vec3.sub(W, t, W)
        vec3.sub(W + 3, moment, W + 3)
        # brake chain: rotor about its axis, rod
        c = &k.brake[j]
        b = &p.brake[j]
        vec3.copy(c.b_bias, a)
        vec3.add_scaled(a, acc[0], c.db, a)
        vec3.add_scaled(a, acc[1], c.db + 3, a)
        brake_accelerations(b, c, a, &L_acc, tip_acc, e_acc, c_acc)
        spin = c.rate + vec3.dot(w0, b.n)
        vec3.cross(w0, b.n, moment)
        vec3.scale(b.I * spin, moment, moment)
        vec3.add_scaled(moment, b.I * L_acc, b.n, moment)
        vec3.cross(c.e, e_acc, t)
        vec3.add_scaled(moment, b.J, t, moment)
        vec3.scale(b.m, c_acc, t)
        vec3.add_scaled(c.tip, b.fraction * b.rod, c.e, r)
        add_cross(r, t, moment)
        vec3.sub(W, t, W)
        vec3.sub(W + 3, moment, W + 3)
