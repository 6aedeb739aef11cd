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
from libc.string cimport memset

from rt_kernels.codes cimport COMPENSATION_STATUS_ACCELERATION_LIMITED, COMPENSATION_STATUS_RATE_LIMITED, MOTION_FREE
from rt_kernels.sample cimport Sample

cdef struct LeadParams:
    double factor               # of both leads
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
    double d[6]
    double rate[6]
    double wanted[6]            # lead of the tick before, as it was foreseen
    double F[6]
    int started
    int unused


cdef inline double limited(double *v, double limit) noexcept nogil:
    """Shortens the 3-vector v to `limit`. Returns its length before."""
    cdef double n = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    cdef double k
    if n > limit:
        k = limit / n
        v[0] *= k; v[1] *= k; v[2] *= k
    return n


cdef inline bint come_after(double *rate, const double *target_rate, double h, double acceleration) noexcept nogil:
    """Shortens what the 3-vector rate is above that of its target to what `acceleration` stops there. True where that took something."""
    cdef double step = acceleration * h
    cdef double excess[3]
    cdef double gap, allowed
    cdef int i
    for i in range(3):
        excess[i] = rate[i] - target_rate[i]
    gap = h * sqrt(excess[0] * excess[0] + excess[1] * excess[1] + excess[2] * excess[2])
    allowed = sqrt(step * step + 2.0 * acceleration * gap) - step
    if allowed < step:
        allowed = step
    if not (limited(excess, allowed) > allowed):
        return False
    for i in range(3):
        rate[i] = target_rate[i] + excess[i]
    return True


cdef inline void foresee(const LeadParams *p, const LeadState *s, const Sample *o, double h, double *V, double *A) noexcept nogil:
    """Relative twist and its derivative at the end of this tick."""
    cdef double a
    cdef int i, j
    for i in range(6):
        a = o.A_TA[i]
        if o.motion == MOTION_FREE:
            for j in range(6):
                a -= p.inverse_inertia[6 * i + j] * (o.F_T_corrected[j] - s.F[j])
        V[i] = o.V_TA[i] + h * a
        A[i] = a


cdef inline uint32_t lead_step(const LeadParams *p, LeadState *s, Sample *o) noexcept nogil:
    """Writes lead and lead_offset; F_T_corrected must be there already. Returns the status bits."""
    cdef double h = p.period * o.periods
    cdef double V[6]
    cdef double A[6]
    cdef double d[6]
    cdef double axis[6]         # what the setpoint kinematics add by the scalars alone
    cdef double rate[6]
    cdef double target_rate[6]
    cdef double change[6]
    cdef uint32_t status = 0
    cdef double l1 = p.factor * p.l1, l2 = p.factor * p.l2
    cdef double k
    cdef int i, j
    o.lead[0] = 1.0
    o.lead[1] = l1
    o.lead[2] = l2
    foresee(p, s, o, h, V, A)
    for i in range(6):
        axis[i] = l1 * V[i] + l2 * A[i]
        d[i] = axis[i]
        if p.matrices:
            d[i] = 0.0
            for j in range(6):
                d[i] += p.factor * p.L1[6 * i + j] * V[j] + p.factor * p.L2[6 * i + j] * A[j]
    for i in range(6):
        s.F[i] = o.F_T_corrected[i]
        rate[i] = (d[i] - s.d[i]) / h if s.started else 0.0
        target_rate[i] = (d[i] - s.wanted[i]) / h
        s.wanted[i] = d[i]
    if s.started:
        if come_after(rate, target_rate, h, p.acceleration_max) or \
                come_after(rate + 3, target_rate + 3, h, p.acceleration_max / p.lever):
            status |= COMPENSATION_STATUS_ACCELERATION_LIMITED
        if limited(rate, p.rate_max) > p.rate_max or limited(rate + 3, p.rate_max / p.lever) > p.rate_max / p.lever:
            status |= COMPENSATION_STATUS_RATE_LIMITED
        for i in range(6):
            change[i] = (rate[i] - s.rate[i]) / h
        if limited(change, p.acceleration_max) > p.acceleration_max or \
                limited(change + 3, p.acceleration_max / p.lever) > p.acceleration_max / p.lever:
            status |= COMPENSATION_STATUS_ACCELERATION_LIMITED
            for i in range(6):
                rate[i] = s.rate[i] + h * change[i]
    for i in range(6):
        k = s.d[i] + h * rate[i] if status else d[i]
        o.lead_offset[i] = k - axis[i]
        if p.matrices:
            o.lead_offset_rate[i] = rate[i] - l1 * A[i]
        s.d[i] = k
        s.rate[i] = rate[i]
    s.started = 1
    return status


cdef inline int fill_lead(LeadParams *p, LeadState *s, dict keys, double period_s, delays, inverse_inertia, platform_limits) except -1:
    """From the keys of LEAD_PARAMETERS, the ledger, L^-1 (6, 6) and the legs' (rate, acceleration) limits. Matrices where the ledger has
    them."""
    cdef int i
    memset(p, 0, sizeof(LeadParams))
    memset(s, 0, sizeof(LeadState))
    l1, l2 = lead_coefficients(delays)
    p.factor = keys["lead_factor"]
    p.l1 = l1
    p.l2 = l2 if keys["order"] == 2 else 0.0
    p.matrices = delays.lead_rate is not None
    if p.matrices:
        for i in range(36):
            p.L1[i] = delays.lead_rate[i]
            p.L2[i] = delays.lead_acceleration[i] if keys["order"] == 2 else 0.0
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
