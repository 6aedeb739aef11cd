"""Dead band and friction of hydraulic legs, compensated at the demand of each leg (Merritt 1967, 11.6; Jelali and Kroll 2003, 6.3).

A valve with overlap passes nothing before its spool has crossed it, and a cylinder moves only when its pressures have taken up the
friction. With the drive's own law u = (k_f r' + k_v (r - y))/K_x - k_p (p_L - p_f) and the legs' wanted rate v,

    s  = v / sqrt(v^2 + v_0^2)                                  sense of the motion, smooth over the rate v_0
    z' = v - s_0 |v| z / g ,  g = F_c + (F_s - F_c)/(1 + (v/v_s)^2) ,  f = s_0 z
                                                                friction to come, of seals that bend first (LuGre, as in the plant)
    o  = (K_x/k_v) (overlap s + k_p (f - f_low)/A_a)  +  f' / (k_v c)

is what the demand needs on top: the first term crosses the overlap, the second takes back what the pressure feedback makes of the
friction's pressure (f_low: f behind the drive's high-pass), the third brings the oil that it is compressed by, c stiffness of the leg's
oil at the momentary stroke. v is the simulated motion, taken ahead by what lies between the demand and the spool. It does not come from
measured values, so that noise cannot make its sense chatter.

The authority is bounded twice: |o| by a length, and its motion by an acceleration (braking in time, as the safety stage has it).
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport pose, put_twist, twist, twist_scaled, twist_sum
from rt_kernels.codes cimport COMPENSATION_STATUS_AUTHORITY_LIMITED, COMPENSATION_STATUS_DEAD_BAND
from rt_kernels.compensation.declarations_parameters cimport LegOffsetParameters, fill_leg_offset
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.mounting cimport Mounting, fill_mounting, platform_twist_of
from rt_kernels.stewart.platform cimport Platform, PlatformParams, leg_rates

cdef struct LegOffsetParams:
    PlatformParams platform
    Mounting mounting
    double period
    int active
    int unused
    LegOffsetParameters keys
    double dead_band[2]         # m, by the sense of the motion: out, in
    double coulomb              # N
    double stiction             # static less Coulomb, N
    double stribeck             # 1/v_s^2
    double bristle              # s_0, N/m
    double pressure[2]          # m/N: K_x k_p/(k_v A_a)
    double high_pass            # rad/s
    double oil_a                # beta A_a^2, N.m2
    double oil_b
    double volume_a             # dead volumes, m3
    double volume_b
    double area_a
    double area_b
    double stroke
    double length_min
    double position_gain        # k_v, 1/s
    double ahead                # s
    double acceleration         # m/s2

cdef struct LegOffsetState:
    double z[6]
    double low[6]
    double friction[6]
    double offset[6]
    double rate[6]


cdef inline uint32_t leg_offset_step(const LegOffsetParams *p, LegOffsetState *s, Sample *o) noexcept nogil:
    """Writes leg_offset. Returns the status bits."""
    cdef double h = p.period * o.periods
    cdef double V_WP[6]
    cdef double lengths[6]
    cdef double rates[6]
    cdef double v, sense, g, f, y, oil, wanted, gap, rate, allowed
    cdef double step = p.acceleration * h
    cdef uint32_t status = 0
    cdef int i, side
    # the platform has a pose from the first setpoint on
    if not (o.X_WP[3] * o.X_WP[3] + o.X_WP[4] * o.X_WP[4] + o.X_WP[5] * o.X_WP[5] + o.X_WP[6] * o.X_WP[6] > 0.5):
        return 0
    # from the relative twist to come
    put_twist(platform_twist_of(&p.mounting, pose(o.X_WP), twist_sum(twist(o.V_TA), twist_scaled(p.ahead, twist(o.A_TA)))), V_WP)
    leg_rates(&p.platform, o.X_WP, V_WP, lengths, rates)
    for i in range(6):
        v = rates[i]
        side = v < 0.0
        sense = v / sqrt(v * v + p.keys.crossing * p.keys.crossing)
        # bristles: implicit, and at rest they stay as they are
        g = p.keys.leg_offset_factor * p.coulomb + p.keys.leg_offset_factor * p.stiction / (1.0 + p.stribeck * v * v)
        if g > 0.0:
            s.z[i] = (s.z[i] + h * v) / (1.0 + h * p.bristle * fabs(v) / g)
        f = p.bristle * s.z[i]
        s.low[i] += p.high_pass * h * (f - s.low[i])
        y = lengths[i] - p.length_min
        oil = p.oil_a / (p.volume_a + p.area_a * y) + p.oil_b / (p.volume_b + p.area_b * (p.stroke - y))
        wanted = p.keys.leg_offset_factor * p.dead_band[side] * sense + p.pressure[side] * (f - s.low[i])
        wanted += (f - s.friction[i]) / (h * p.position_gain * oil)
        s.friction[i] = f
        if not (fabs(wanted) <= p.keys.leg_offset_max):
            wanted = p.keys.leg_offset_max if wanted > 0.0 else (-p.keys.leg_offset_max if wanted < 0.0 else 0.0)
            status |= COMPENSATION_STATUS_AUTHORITY_LIMITED
        # towards it, no faster than can be braked in time
        gap = wanted - s.offset[i]
        rate = gap / h
        allowed = sqrt(step * step + 2.0 * p.acceleration * fabs(gap)) - step
        if allowed < step:
            allowed = step
        if fabs(rate) > allowed:
            rate = allowed if rate > 0.0 else -allowed
        if rate > s.rate[i] + step:
            rate = s.rate[i] + step
        elif rate < s.rate[i] - step:
            rate = s.rate[i] - step
        s.rate[i] = rate
        s.offset[i] += h * rate
        o.leg_offset[i] = s.offset[i]
    return status | COMPENSATION_STATUS_DEAD_BAND


cdef inline int set_up_leg_offset(LegOffsetParams *p, LegOffsetState *s, dict keys, double period_s, constants, Platform legs,
                                  mounting) except -1:
    """From the keys of LEG_OFFSET_PARAMETERS and the constants of a leg (declarations.leg_constants); inactive without them, or where the
    keys say so."""
    cdef int side
    memset(p, 0, sizeof(LegOffsetParams))
    memset(s, 0, sizeof(LegOffsetState))
    p.period = period_s
    p.active = constants is not None and keys["dead_band"]
    if not p.active:
        return 0
    p.platform = legs.params
    fill_mounting(&p.mounting, mounting)
    fill_leg_offset(&p.keys, keys)
    for side in range(2):
        p.dead_band[side] = constants["dead_band_m"][side]
        p.pressure[side] = constants["pressure_m_per_n"][side]
    p.coulomb, p.stiction = constants["coulomb_n"], constants["stiction_n"]
    p.stribeck, p.bristle, p.high_pass = constants["stribeck"], constants["bristle_n_per_m"], constants["high_pass"]
    p.area_a, p.area_b, p.volume_a, p.volume_b = constants["areas_and_volumes"]
    p.oil_a, p.oil_b = constants["oil"]
    p.length_min, p.stroke = legs.params.length_min[0], legs.params.length_max[0] - legs.params.length_min[0]
    p.position_gain = constants["position_gain"]
    p.ahead = constants["ahead_s"] + 2.0 * period_s
    acceleration = keys["leg_offset_acceleration_max_m_s2"]
    p.acceleration = 0.5 * legs.params.acceleration_max if acceleration is None else acceleration
    return 0
