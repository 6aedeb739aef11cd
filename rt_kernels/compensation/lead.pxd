"""Setpoint lead with limits, for the compensators that have one.

    d = l1 V_TA + l2 A_TA                       what the setpoint kinematics add to the simulated pose (T axes)

On a stand whose platform answers differently in its six directions the ledger has matrices, d = L1 V_TA + L2 A_TA. The scalars stay those
of the docking axis, what the matrices add goes into lead_offset, and lead_offset_rate makes the demanded twist that of the whole lead.

The lead runs before the dynamics: what V and A will be at the end of this tick is foreseen from the change of the contact wrench and the
inverse inertia of the two vehicles, A' = A - L^-1 (F' - F), V' = V + h A'. If d' would move faster than the limits allow, it comes after
as fast as the acceleration limit can still stop it there (as the safety stage follows a demand), and the setpoint kinematics get the
difference between the limited and the foreseen lead as its offset. Unlimited and without matrices, the offset is exactly zero.
"""

from libc.math cimport sqrt
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from rt_kernels.algebra.values cimport Twist, Vec3, add, div, mul, norm, put_twist, sub, twist, twist_of, twist_scaled, twist_sum
from rt_kernels.codes cimport COMPENSATION_STATUS_ACCELERATION_LIMITED, COMPENSATION_STATUS_RATE_LIMITED, MOTION_FREE
from rt_kernels.compensation.declarations_parameters cimport LeadParameters, fill_lead
from rt_kernels.sample cimport Sample

cdef struct LeadParams:
    LeadParameters keys
    double l1                   # s
    double l2                   # s2
    double rate_max             # of the lead's translation, m/s; of its rotation, divided by the lever
    double acceleration_max
    double lever                # m
    double period
    double inverse_inertia[36]  # wrench on the target at and in T -> relative acceleration as in A_TA
    double L1[36]               # s, where `matrices` is set
    double L2[36]               # s2
    int matrices
    int unused

cdef struct LeadState:
    Twist d
    Twist rate
    Twist wanted                # lead of the tick before, as it was foreseen
    double F[6]
    int started
    int unused


cdef inline Twist difference(Twist a, Twist b) noexcept nogil:
    return twist_of(sub(a.v, b.v), sub(a.w, b.w))


cdef inline Twist change_rate(Twist before, Twist now, double h) noexcept nogil:
    return twist_of(div(sub(now.v, before.v), h), div(sub(now.w, before.w), h))


cdef inline double limited(Vec3 *v, double limit) noexcept nogil:
    """Shortens v to `limit`. Returns its length before."""
    cdef double n = norm(v[0])
    if n > limit:
        v[0] = mul(limit / n, v[0])
    return n


cdef inline bint come_after(Vec3 *rate, Vec3 target_rate, double h, double acceleration) noexcept nogil:
    """Shortens what rate is above that of its target to what `acceleration` stops there. True where that took something."""
    cdef double step = acceleration * h
    cdef Vec3 excess = sub(rate[0], target_rate)
    cdef double gap = h * norm(excess)
    cdef double allowed = sqrt(step * step + 2.0 * acceleration * gap) - step
    if allowed < step:
        allowed = step
    if not (limited(&excess, allowed) > allowed):
        return False
    rate[0] = add(target_rate, excess)
    return True


cdef inline Twist foreseen_acceleration(const LeadParams *p, const LeadState *s, const Sample *o) noexcept nogil:
    """A' = A - L^-1 (F' - F) at the end of this tick."""
    cdef double A[6]
    cdef int i, j
    for i in range(6):
        A[i] = o.A_TA[i]
        if o.motion == MOTION_FREE:
            for j in range(6):
                A[i] -= p.inverse_inertia[6 * i + j] * (o.F_T_corrected[j] - s.F[j])
    return twist(A)


cdef inline Twist matrix_lead(const LeadParams *p, Twist V_TA, Twist A_TA) noexcept nogil:
    # L1 V + L2 A
    cdef double V[6]
    cdef double A[6]
    cdef double d[6]
    cdef int i, j
    put_twist(V_TA, V)
    put_twist(A_TA, A)
    for i in range(6):
        d[i] = 0.0
        for j in range(6):
            d[i] += p.keys.lead_factor * p.L1[6 * i + j] * V[j] + p.keys.lead_factor * p.L2[6 * i + j] * A[j]
    return twist(d)


cdef inline uint32_t lead_step(const LeadParams *p, LeadState *s, Sample *o) noexcept nogil:
    """Writes lead and lead_offset; F_T_corrected must be there already. Returns the status bits."""
    cdef double h = p.period * o.periods
    cdef double l1 = p.keys.lead_factor * p.l1, l2 = p.keys.lead_factor * p.l2
    cdef Twist A = foreseen_acceleration(p, s, o)
    cdef Twist V = twist_sum(twist(o.V_TA), twist_scaled(h, A))
    # what the setpoint kinematics add by the scalars alone, and the whole lead
    cdef Twist axis = twist_sum(twist_scaled(l1, V), twist_scaled(l2, A))
    cdef Twist d = matrix_lead(p, V, A) if p.matrices else axis
    cdef Twist target_rate = change_rate(s.wanted, d, h)
    cdef Twist rate, change, led
    cdef uint32_t status = 0
    o.lead[0] = 1.0
    o.lead[1] = l1
    o.lead[2] = l2
    memcpy(s.F, o.F_T_corrected, sizeof(s.F))
    memset(&rate, 0, sizeof(rate))
    s.wanted = d
    if s.started:
        # translation and rotation are limited each: the sums leave none of the two out
        rate = change_rate(s.d, d, h)
        if come_after(&rate.v, target_rate.v, h, p.acceleration_max) + \
                come_after(&rate.w, target_rate.w, h, p.acceleration_max / p.lever):
            status |= COMPENSATION_STATUS_ACCELERATION_LIMITED
        if (limited(&rate.v, p.rate_max) > p.rate_max) + (limited(&rate.w, p.rate_max / p.lever) > p.rate_max / p.lever):
            status |= COMPENSATION_STATUS_RATE_LIMITED
        change = change_rate(s.rate, rate, h)
        if (limited(&change.v, p.acceleration_max) > p.acceleration_max) + \
                (limited(&change.w, p.acceleration_max / p.lever) > p.acceleration_max / p.lever):
            status |= COMPENSATION_STATUS_ACCELERATION_LIMITED
            rate = twist_sum(s.rate, twist_scaled(h, change))
    led = twist_sum(s.d, twist_scaled(h, rate)) if status else d
    put_twist(difference(led, axis), o.lead_offset)
    if p.matrices:
        put_twist(difference(rate, twist_scaled(l1, A)), o.lead_offset_rate)
    s.d = led
    s.rate = rate
    s.started = 1
    return status


cdef inline int set_up_lead(LeadParams *p, LeadState *s, dict keys, double period_s, delays, inverse_inertia, platform_limits) except -1:
    """From the keys of LEAD_PARAMETERS, the ledger, L^-1 (6, 6) and the legs' (rate, acceleration) limits. Matrices where the ledger has
    them."""
    cdef int i
    memset(p, 0, sizeof(LeadParams))
    memset(s, 0, sizeof(LeadState))
    l1, l2 = lead_coefficients(delays)
    fill_lead(&p.keys, keys)
    p.l1 = l1
    p.l2 = l2 if p.keys.order == 2 else 0.0
    p.matrices = delays.lead_rate is not None
    if p.matrices:
        for i in range(36):
            p.L1[i] = delays.lead_rate[i]
            p.L2[i] = delays.lead_acceleration[i] if p.keys.order == 2 else 0.0
    rate, acceleration = keys["lead_rate_max_m_s"], keys["lead_acceleration_max_m_s2"]
    p.rate_max = platform_limits[0] if rate is None else rate
    p.acceleration_max = platform_limits[1] if acceleration is None else acceleration
    p.lever, p.period = 1.0, period_s
    for i in range(36):
        p.inverse_inertia[i] = inverse_inertia.flat[i]
    return 0


cdef inline tuple lead_coefficients(delays):
    """(l1 [s], l2 [s2]) of a second-order drive behind the ledger's pure delay."""
    cdef double tau = delays.transport_s, w, zeta = delays.drive_damping
    if not delays.drive_frequency_hz > 0.0:
        return tau, 0.5 * tau * tau
    w = 6.283185307179586 * delays.drive_frequency_hz
    return tau + 2.0 * zeta / w, 1.0 / (w * w) + 2.0 * zeta * tau / w + 0.5 * tau * tau
