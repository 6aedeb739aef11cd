"""Dependent chains of the lateral damper, closed analytically (Yaskevich 2020, 1.4, 2.5), with slender links
(no inertia about their own axes).

    spring chain U-P-S: cylinder and rod along e = (b - a)/L:
                        L'' = e.(b'' - a'') + L |e'|^2,  e'' from b'' - a'' = L'' e + 2 L' e' + L e''
    brake chain  R-U-S: crank of angle p about a fixed axis, rod of fixed length:
                        d.(b' - t p') = 0,  d.(b'' - tip'') + |b' - tip'|^2 / l = 0

a lies on the base, b on the swinging body; everything is in axes of the base A. The chains follow the two coordinates of the swing and add
to their rows of M and bias what their links weigh (Kane, as dynamics.pyx).
"""

from libc.math cimport sqrt

from rt_kernels.algebra cimport vec3
from rt_kernels.mechanisms.probe_cone.model cimport SWING_Y, SWING_Z, BrakeChain, ChainMotion, Motion, SpringChain


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


cdef void add_spring_chain(const SpringChain *p, const double *w0, Motion *k, ChainMotion *c) noexcept nogil:
    """Stroke and direction of the chain for the present swing; adds cylinder and rod to mass matrix and bias."""
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


cdef inline void crank_arm(const BrakeChain *p, ChainMotion *c, double *arm) noexcept nogil:
    """Angle of the crank: triangle of crank, rod and hinge-to-end distance in the plane normal to the hinge; arm: from hinge to tip."""
    cdef double u[3]
    cdef double h, F2, F, l23F2, cf1, sf1, cf2, sf2
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


cdef inline void close_brake_chain(const BrakeChain *p, const double *w0, const Motion *k, ChainMotion *c) noexcept nogil:
    """Places, rates and the tip's acceleration without p'' for the present swing."""
    cdef double v[3]
    cdef double v_rel[3]
    cdef double arm[3]
    cdef double tip_v[3]
    cdef double t[3]
    chain_end(k, p.b, c, v, v_rel)
    crank_arm(p, c, arm)
    # rod direction and rates
    vec3.sub(c.b, c.tip, c.e)
    vec3.scale(1.0 / p.rod, c.e, c.e)
    c.rate = vec3.dot(c.e, v_rel) / vec3.dot(c.e, c.t)
    vec3.scale(c.rate, c.t, tip_v)
    add_cross(w0, c.tip, tip_v)
    vec3.sub(v, tip_v, v)
    vec3.scale(1.0 / p.rod, v, c.e_rate)
    # acceleration of the tip without p'': base rotation, Coriolis, centripetal
    vec3.cross(w0, c.tip, t)
    vec3.add_scaled(t, 2.0 * c.rate, c.t, t)
    vec3.cross(w0, t, c.base_acc)
    vec3.add_scaled(c.base_acc, -c.rate * c.rate, arm, c.base_acc)


cdef void add_brake_chain(const BrakeChain *p, const double *w0, Motion *k, ChainMotion *c) noexcept nogil:
    """Crank angle and rod of the chain for the present swing; adds rotor and rod to mass matrix and bias."""
    cdef double d_acc[3]
    cdef double c_acc[3]
    cdef double tip_acc[3]
    cdef double dp[2]
    cdef double dtip[3]
    cdef double dc[6]
    cdef double dd[6]
    cdef double along, p_acc
    cdef int i, j
    close_brake_chain(p, w0, k, c)
    # bias: what rotor and rod need when q'' = 0
    brake_accelerations(p, c, c.b_bias, &p_acc, tip_acc, d_acc, c_acc)
    # partial velocities of crank angle, rod centre and rod direction
    along = vec3.dot(c.e, c.t)
    for i in range(2):
        dp[i] = vec3.dot(c.e, c.db + 3 * i) / along
        vec3.scale(dp[i], c.t, dtip)
        vec3.sub(c.db + 3 * i, dtip, dd + 3 * i)
        vec3.add_scaled(dtip, p.fraction, dd + 3 * i, dc + 3 * i)
        vec3.scale(1.0 / p.rod, dd + 3 * i, dd + 3 * i)
    for i in range(2):
        k.bias[i] += p.I * p_acc * dp[i] + p.m * vec3.dot(c_acc, dc + 3 * i) + p.J * vec3.dot(d_acc, dd + 3 * i)
        for j in range(i + 1):
            k.M[7 * i + j] += p.I * dp[i] * dp[j] + p.m * vec3.dot(dc + 3 * i, dc + 3 * j) + p.J * vec3.dot(dd + 3 * i, dd + 3 * j)


cdef inline void end_acceleration(const ChainMotion *c, const double *acc, double *b_acc) noexcept nogil:
    # acceleration of b from those of the swing
    vec3.copy(c.b_bias, b_acc)
    vec3.add_scaled(b_acc, acc[SWING_Y], c.db, b_acc)
    vec3.add_scaled(b_acc, acc[SWING_Z], c.db + 3, b_acc)


cdef void subtract_spring_chain(const SpringChain *p, const ChainMotion *c, const double *acc, double *W) noexcept nogil:
    """W -= rate of momentum of cylinder and rod, and of their turning (force, moment about the origin of A)."""
    cdef double a[3]
    cdef double e_acc[3]
    cdef double moment[3]
    cdef double t[3]
    cdef double r[3]
    cdef double L_acc
    end_acceleration(c, acc, a)
    spring_direction_acceleration(c, a, &L_acc, e_acc)
    vec3.cross(c.e, e_acc, moment)
    vec3.scale(p.J, moment, moment)
    vec3.add_scaled(c.base_acc, p.s1, e_acc, t)
    vec3.scale(p.m1, t, t)
    vec3.add_scaled(p.a, p.s1, c.e, r)
    add_cross(r, t, moment)
    vec3.sub(W, t, W)
    vec3.add_scaled(a, -p.d2, e_acc, t)
    vec3.scale(p.m2, t, t)
    vec3.add_scaled(c.b, -p.d2, c.e, r)
    add_cross(r, t, moment)
    vec3.sub(W, t, W)
    vec3.sub(W + 3, moment, W + 3)


cdef void subtract_brake_chain(const BrakeChain *p, const ChainMotion *c, const double *acc, const double *w0, double *W) noexcept nogil:
    """W -= rate of momentum of the rotor about its axis and of the rod."""
    cdef double a[3]
    cdef double tip_acc[3]
    cdef double e_acc[3]
    cdef double c_acc[3]
    cdef double moment[3]
    cdef double t[3]
    cdef double r[3]
    cdef double p_acc, spin
    end_acceleration(c, acc, a)
    brake_accelerations(p, c, a, &p_acc, tip_acc, e_acc, c_acc)
    spin = c.rate + vec3.dot(w0, p.n)
    vec3.cross(w0, p.n, moment)
    vec3.scale(p.I * spin, moment, moment)
    vec3.add_scaled(moment, p.I * p_acc, p.n, moment)
    vec3.cross(c.e, e_acc, t)
    vec3.add_scaled(moment, p.J, t, moment)
    vec3.scale(p.m, c_acc, t)
    vec3.add_scaled(c.tip, p.fraction * p.rod, c.e, r)
    add_cross(r, t, moment)
    vec3.sub(W, t, W)
    vec3.sub(W + 3, moment, W + 3)
