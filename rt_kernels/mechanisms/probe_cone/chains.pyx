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

from rt_kernels.algebra.values cimport Vec3, Wrench, add, cross, dot, mul, norm, sub, xyz
from rt_kernels.mechanisms.probe_cone.model cimport SWING_Y, SWING_Z, BrakeChain, ChainMotion, Motion, SpringChain


cdef inline Vec3 body_point(const Motion *k, Vec3 r) noexcept nogil:
    # point r of body 2 in A
    return add(add(mul(r.x, k.x2), mul(r.y, k.y2)), mul(r.z, k.z2))


cdef inline void chain_end(const Motion *k, Vec3 r, ChainMotion *c) noexcept nogil:
    """End b of a chain on the body, where it is the point r: place, partial velocities, bias acceleration."""
    cdef int i
    c.b = body_point(k, r)
    for i in range(2):
        c.db[i] = cross(k.axis[i], c.b)
    c.b_bias = point_acceleration(xyz(0.0, 0.0, 0.0), k.alpha2, k.w2, c.b)


cdef inline Vec3 end_acceleration(const ChainMotion *c, const double *acc) noexcept nogil:
    # b'' from the accelerations of the swing
    return add(add(c.b_bias, mul(acc[SWING_Y], c.db[0])), mul(acc[SWING_Z], c.db[1]))


# ------------------------------------------------------------------------------------------------------------------------ spring chain

cdef inline Vec3 direction_acceleration(const ChainMotion *c, Vec3 b_acc) noexcept nogil:
    # e'' = (b'' - a'' - L'' e - 2 L' e')/L
    cdef Vec3 ab_acc = sub(b_acc, c.base_acc)
    cdef double L_acc = dot(c.e, ab_acc) + c.value * dot(c.e_rate, c.e_rate)
    return mul(1.0 / c.value, sub(sub(ab_acc, mul(L_acc, c.e)), mul(2.0 * c.rate, c.e_rate)))


cdef inline void close_spring_chain(const SpringChain *p, const Motion *k, ChainMotion *c) noexcept nogil:
    """Stroke, direction and their rates for the present swing, acceleration of a."""
    cdef Vec3 ab, a_rate, b_rate
    chain_end(k, p.b, c)
    ab = sub(c.b, p.a)
    c.value = norm(ab)
    c.e = mul(1.0 / c.value, ab)
    c.rate = dot(c.e, cross(k.w2_rel, c.b))
    # absolute: e' = (b' - a' - L' e)/L
    a_rate = cross(k.w0, p.a)
    b_rate = cross(k.w2, c.b)
    c.e_rate = mul(1.0 / c.value, sub(sub(b_rate, a_rate), mul(c.rate, c.e)))
    c.base_acc = cross(k.w0, a_rate)


cdef void add_spring_chain(const SpringChain *p, Motion *k, ChainMotion *c) noexcept nogil:
    """Stroke and direction of the chain for the present swing; adds cylinder and rod to mass matrix and bias."""
    cdef Vec3 e_acc, cylinder_acc, rod_acc
    cdef Vec3 de[2]
    cdef Vec3 drod[2]
    cdef double J_a = p.m1 * p.s1 * p.s1 + p.J
    cdef int i, j
    close_spring_chain(p, k, c)
    # bias: what the links need when q'' = 0
    e_acc = direction_acceleration(c, c.b_bias)
    cylinder_acc = add(c.base_acc, mul(p.s1, e_acc))
    rod_acc = sub(c.b_bias, mul(p.d2, e_acc))
    # partial velocities: direction, cylinder s1 de, rod db - d2 de
    for i in range(2):
        de[i] = mul(1.0 / c.value, sub(c.db[i], mul(dot(c.e, c.db[i]), c.e)))
        drod[i] = sub(c.db[i], mul(p.d2, de[i]))
    for i in range(2):
        k.bias[i] += p.m1 * p.s1 * dot(cylinder_acc, de[i]) + p.m2 * dot(rod_acc, drod[i]) + p.J * dot(e_acc, de[i])
        for j in range(i + 1):
            k.M[7 * i + j] += J_a * dot(de[i], de[j]) + p.m2 * dot(drod[i], drod[j])


cdef void subtract_spring_chain(const SpringChain *p, const ChainMotion *c, const double *acc, Wrench *W) noexcept nogil:
    """W -= rate of momentum of cylinder and rod, and of their turning (force, moment about the origin of A)."""
    cdef Vec3 b_acc = end_acceleration(c, acc)
    cdef Vec3 e_acc = direction_acceleration(c, b_acc)
    cdef Vec3 p_cylinder = add(p.a, mul(p.s1, c.e)), p_rod = sub(c.b, mul(p.d2, c.e))
    cdef Vec3 f_cylinder = mul(p.m1, add(c.base_acc, mul(p.s1, e_acc))), f_rod = mul(p.m2, sub(b_acc, mul(p.d2, e_acc)))
    cdef Vec3 turning = mul(p.J, cross(c.e, e_acc))
    W.f = sub(sub(W.f, f_cylinder), f_rod)
    W.m = sub(W.m, add(add(turning, cross(p_cylinder, f_cylinder)), cross(p_rod, f_rod)))


# ------------------------------------------------------------------------------------------------------------------------- brake chain

cdef struct BrakeAccelerations:
    double p         # crank angle
    Vec3 d           # rod direction
    Vec3 c           # rod centre


cdef inline BrakeAccelerations brake_accelerations(const BrakeChain *p, const ChainMotion *c, Vec3 b_acc) noexcept nogil:
    # p'' from the closure, then tip, rod direction and rod centre
    cdef BrakeAccelerations acc
    cdef Vec3 tip_acc
    acc.p = (dot(c.e, sub(b_acc, c.base_acc)) + p.rod * dot(c.e_rate, c.e_rate)) / dot(c.e, c.t)
    tip_acc = add(c.base_acc, mul(acc.p, c.t))
    acc.d = mul(1.0 / p.rod, sub(b_acc, tip_acc))
    acc.c = add(tip_acc, mul(p.fraction, sub(b_acc, tip_acc)))
    return acc


cdef inline Vec3 crank_arm(const BrakeChain *p, ChainMotion *c) noexcept nogil:
    """Angle of the crank: triangle of crank, rod and hinge-to-end distance in the plane normal to the hinge. Returns hinge to tip."""
    cdef Vec3 ab = sub(c.b, p.a)
    cdef double h = dot(p.n, ab)
    cdef Vec3 u = sub(ab, mul(h, p.n))
    cdef double F2 = dot(u, u)
    cdef double F = sqrt(F2)
    cdef double l23F2 = p.rod * p.rod - h * h
    cdef double cf1 = (p.arm * p.arm + F2 - l23F2) / (2.0 * p.arm * F)
    cdef double cf2 = dot(p.ex, u) / F, sf2 = dot(p.ey, u) / F
    cdef double sf1
    c.out_of_reach = 0.0
    if cf1 > 1.0 or cf1 < -1.0:
        c.out_of_reach = 1.0
        cf1 = 0.999999 if cf1 > 1.0 else -0.999999
    sf1 = p.elbow * sqrt(1.0 - cf1 * cf1)
    c.cosine = cf2 * cf1 - sf2 * sf1
    c.sine = sf2 * cf1 + cf2 * sf1
    return add(mul(p.arm * c.cosine, p.ex), mul(p.arm * c.sine, p.ey))


cdef inline void close_brake_chain(const BrakeChain *p, const Motion *k, ChainMotion *c) noexcept nogil:
    """Places, rates and the tip's acceleration without p'' for the present swing."""
    cdef Vec3 arm, tip_rate, b_rate
    chain_end(k, p.b, c)
    arm = crank_arm(p, c)
    c.tip = add(p.a, arm)
    c.t = cross(p.n, arm)
    # rod direction and rates
    c.e = mul(1.0 / p.rod, sub(c.b, c.tip))
    c.rate = dot(c.e, cross(k.w2_rel, c.b)) / dot(c.e, c.t)
    tip_rate = add(mul(c.rate, c.t), cross(k.w0, c.tip))
    b_rate = cross(k.w2, c.b)
    c.e_rate = mul(1.0 / p.rod, sub(b_rate, tip_rate))
    # acceleration of the tip without p'': base rotation, Coriolis, centripetal
    c.base_acc = sub(cross(k.w0, add(cross(k.w0, c.tip), mul(2.0 * c.rate, c.t))), mul(c.rate * c.rate, arm))


cdef void add_brake_chain(const BrakeChain *p, Motion *k, ChainMotion *c) noexcept nogil:
    """Crank angle and rod of the chain for the present swing; adds rotor and rod to mass matrix and bias."""
    cdef BrakeAccelerations bias
    cdef double dp[2]
    cdef Vec3 dd[2]
    cdef Vec3 dc[2]
    cdef Vec3 dtip, drod
    cdef int i, j
    close_brake_chain(p, k, c)
    # bias: what rotor and rod need when q'' = 0
    bias = brake_accelerations(p, c, c.b_bias)
    # partial velocities of crank angle, rod centre and rod direction
    for i in range(2):
        dp[i] = brake_gain(c, i)
        dtip = mul(dp[i], c.t)
        drod = sub(c.db[i], dtip)
        dc[i] = add(dtip, mul(p.fraction, drod))
        dd[i] = mul(1.0 / p.rod, drod)
    for i in range(2):
        k.bias[i] += p.I * bias.p * dp[i] + p.m * dot(bias.c, dc[i]) + p.J * dot(bias.d, dd[i])
        for j in range(i + 1):
            k.M[7 * i + j] += p.I * dp[i] * dp[j] + p.m * dot(dc[i], dc[j]) + p.J * dot(dd[i], dd[j])


cdef void subtract_brake_chain(const BrakeChain *p, const Motion *k, const ChainMotion *c, const double *acc, Wrench *W) noexcept nogil:
    """W -= rate of momentum of the rotor about its axis and of the rod."""
    cdef BrakeAccelerations now = brake_accelerations(p, c, end_acceleration(c, acc))
    cdef double spin = c.rate + dot(k.w0, p.n)
    cdef Vec3 rotor = add(mul(p.I * spin, cross(k.w0, p.n)), mul(p.I * now.p, p.n))
    cdef Vec3 turning = mul(p.J, cross(c.e, now.d))
    cdef Vec3 f_rod = mul(p.m, now.c), p_rod = add(c.tip, mul(p.fraction * p.rod, c.e))
    W.f = sub(W.f, f_rod)
    W.m = sub(W.m, add(add(rotor, turning), cross(p_rod, f_rod)))
