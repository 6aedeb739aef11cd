"""Limits: the last look at the set points before they leave, the fault bits, the trip, and the energy monitor.

A demanded leg length is followed inside three limits, in this order: stroke (never faster than can still be braked before its end),
rate, acceleration. A trip brings every leg to rest with the braking acceleration and holds it there; a set point never jumps.

Fault bits are latched for the run. The independent analogue chain is read and recorded; nothing here can override it.

Energy monitor (hybrid-stability notes 5.4 (5), R-St-32): work of the corrected wrench (what moves the model) on its relative motion,
since the contact began, against the kinetic energy of relative motion at its start.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from rt_kernels.algebra cimport vec3
from rt_kernels.faults cimport *
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.platform cimport Platform

from rt_kernels.parameters import Parameter

cdef enum:
    FOLLOWING = 0
    DECELERATING = 1
    HELD = 2

cdef struct Params:
    double period
    double leg_min[6]
    double leg_max[6]
    double rate_max
    double acceleration_max
    double braking
    double stroke_reserve       # a demand nearer to the end than this is a fault
    double force_max[3]
    double moment_max[3]
    double following_max
    double following_time       # beyond following_max for this long
    double drive_lag            # expected delay of the measured length, s
    double rate_excess_time     # a demand beyond the rate limit for this long is a fault
    double condition_max
    double drift_max            # mean force without contact that raises a warning
    double drift_time
    double energy_warn          # relative gain of a contact
    double energy_trip
    double energy_floor         # J: contacts below it are not judged
    double damaged_max          # ticks with lost or damaged records in a second
    int64_t supervisor_ns
    int periods_max             # skipped at once
    int missing_sensor          # periods without a record
    int missing_drive
    int missing_signals

cdef struct State:
    double leg[6]
    double rate[6]
    double excess_time[6]
    double following_time[6]
    double F_previous[6]
    double V_previous[6]
    double drift[3]
    double energy_at_start
    double lost_rate            # ticks with a loss in about the last second
    double corrupt_rate
    double bus_rate
    int64_t faults
    int64_t trip_tick
    int armed                   # set points have been taken from the measured legs
    int mode
    int sensor_silent
    int signals_silent
    int drive_silent[6]
    int in_contact

cdef struct Self:
    Params params
    State state


# ---------------------------------------------------------------------------------------------------------- set points

cdef inline double clip(double x, double low, double high) noexcept nogil:
    return low if x < low else (high if x > high else x)


cdef inline double braking_rate(double distance, double deceleration, double dt) noexcept nogil:
    """Largest rate from which a leg stops within `distance` when it brakes from the next step on: v dt + v^2/(2 d) = distance."""
    cdef double a = deceleration * dt
    if distance <= 0.0:
        return 0.0
    return sqrt(a * a + 2.0 * deceleration * distance) - a


cdef uint32_t follow_leg(const Params *p, State *s, int i, double demand, double dt) noexcept nogil:
    """One step of leg i towards `demand`. Returns the clip bits of this leg: 0 length, 8 rate, 16 acceleration."""
    cdef uint32_t clipped = 0
    cdef double low = p.leg_min[i], high = p.leg_max[i]
    cdef double wanted = demand
    cdef double rate, allowed, change
    if not (low <= demand <= high):
        wanted = clip(demand, low, high)
        clipped |= 1u
    rate = (wanted - s.leg[i]) / dt
    if fabs(rate) > p.rate_max:
        rate = clip(rate, -p.rate_max, p.rate_max)
        clipped |= 1u << 8
    # never faster than can be braked before the end of the stroke
    allowed = braking_rate(high - s.leg[i], p.braking, dt)
    if rate > allowed:
        rate = allowed
    allowed = braking_rate(s.leg[i] - low, p.braking, dt)
    if rate < -allowed:
        rate = -allowed
    change = rate - s.rate[i]
    if fabs(change) > p.acceleration_max * dt:
        rate = s.rate[i] + clip(change, -p.acceleration_max * dt, p.acceleration_max * dt)
        clipped |= 1u << 16
    s.leg[i] = clip(s.leg[i] + rate * dt, low, high)
    s.rate[i] = rate
    return clipped << i


cdef bint brake_legs(const Params *p, State *s, double dt) noexcept nogil:
    """All legs towards rest; the slowest-to-stop leg sets the pace so that the platform keeps its direction. True when at rest."""
    cdef int i
    cdef double fastest = 0.0
    cdef double keep
    for i in range(6):
        if fabs(s.rate[i]) > fastest:
            fastest = fabs(s.rate[i])
    if fastest <= p.braking * dt:
        for i in range(6):
            s.rate[i] = 0.0
        return True
    keep = (fastest - p.braking * dt) / fastest
    for i in range(6):
        s.rate[i] *= keep
        s.leg[i] = clip(s.leg[i] + s.rate[i] * dt, p.leg_min[i], p.leg_max[i])
    return False


# -------------------------------------------------------------------------------------------------------------- faults

cdef inline bint too_often(const Params *p, double *rate, bint now, int periods) noexcept nogil:
    """Ticks with a damage in about the last second (first-order fading), against the number allowed."""
    rate[0] *= 1.0 - clip(p.period * periods, 0.0, 1.0)
    if now:
        rate[0] += 1.0
    return rate[0] > p.damaged_max


cdef int64_t sensor_faults(const Params *p, State *s, const Sample *o) noexcept nogil:
    cdef uint32_t w = o.wrench_fault
    cdef int64_t f = 0
    s.sensor_silent = s.sensor_silent + o.periods if (w >> SENSOR_STATUS_NO_DATA) & 1 else 0
    if s.sensor_silent >= p.missing_sensor:
        f |= FAULT_SENSOR_NO_DATA
    if (w >> SENSOR_STATUS_STALE) & 1:
        f |= FAULT_SENSOR_STALE
    # single losses and damages are counted, a rate of them trips
    if too_often(p, &s.lost_rate, (w >> SENSOR_STATUS_LOST) & 1, o.periods):
        f |= FAULT_SENSOR_LOST
    if too_often(p, &s.corrupt_rate, (w >> SENSOR_STATUS_CORRUPT) & 1, o.periods):
        f |= FAULT_SENSOR_CORRUPT
    if (w >> SENSOR_STATUS_SATURATED) & 1:
        f |= FAULT_SENSOR_SATURATED
    if (w >> SENSOR_STATUS_OUT_OF_RANGE) & 1:
        f |= FAULT_SENSOR_OUT_OF_RANGE
    if (w >> SENSOR_STATUS_DEVICE_FAULT) & 1 or (w >> SENSOR_STATUS_SUPPLY) & 1 or (w >> SENSOR_STATUS_TEMPERATURE) & 1:
        f |= FAULT_SENSOR_DEVICE_FAULT
    if (w >> SENSOR_STATUS_BROKEN_WIRE) & 1:
        f |= FAULT_SENSOR_BROKEN_WIRE
    if (w >> SENSOR_STATUS_BUSY) & 1:
        f |= FAULT_SENSOR_BUSY
    s.signals_silent = s.signals_silent + o.periods if (o.signal_status >> SENSOR_STATUS_NO_DATA) & 1 else 0
    if s.signals_silent >= p.missing_signals or (o.signal_status >> SENSOR_STATUS_DEVICE_FAULT) & 1:
        f |= FAULT_SIGNALS_NO_DATA
    if o.analogue_chain & 7 != 1:
        f |= FAULT_ANALOGUE_CHAIN
    return f


cdef int64_t drive_faults(const Params *p, State *s, const Sample *o) noexcept nogil:
    cdef int64_t f = 0
    cdef int i
    cdef uint32_t d
    cdef bint damaged = False
    for i in range(6):
        d = o.drive_status[i]
        s.drive_silent[i] = s.drive_silent[i] + o.periods if (d >> DRIVE_STATUS_NO_DATA) & 1 else 0
        if s.drive_silent[i] >= p.missing_drive:
            f |= FAULT_DRIVE_NO_DATA
        if (d >> DRIVE_STATUS_DEVICE_FAULT) & 1 or (d >> DRIVE_STATUS_EMERGENCY) & 1:
            f |= FAULT_DRIVE_DEVICE_FAULT
        if (d >> DRIVE_STATUS_NOT_ENABLED) & 1:
            f |= FAULT_DRIVE_NOT_ENABLED
        if (d >> DRIVE_STATUS_FOLLOWING_ERROR) & 1:
            f |= FAULT_FOLLOWING_ERROR
        if (d >> DRIVE_STATUS_BUS_FAULT) & 1:
            f |= FAULT_BUS_FAULT
        if (d >> DRIVE_STATUS_CORRUPT) & 1:
            damaged = True
        if (d >> DRIVE_STATUS_LIMIT_TOUCHED) & 1:
            f |= FAULT_DRIVE_LIMIT_TOUCHED
        if (d >> DRIVE_STATUS_LOCAL_CONTROL) & 1:
            f |= FAULT_DRIVE_LOCAL_CONTROL
    if too_often(p, &s.bus_rate, damaged, o.periods):
        f |= FAULT_BUS_FAULT
    return f


cdef int64_t wrench_faults(const Params *p, State *s, const Sample *o) noexcept nogil:
    """Force and moment limits per component (below the analogue thresholds), and the drift warning without contact."""
    cdef int64_t f = 0
    cdef int i
    for i in range(3):
        if not (fabs(o.F_S[i]) <= p.force_max[i]):
            f |= FAULT_FORCE_LIMIT
        if not (fabs(o.F_S[3 + i]) <= p.moment_max[i]):
            f |= FAULT_MOMENT_LIMIT
    # mean force while nothing touches: a wrong tare drives the model away (starting from zero, the mean never overstates); once the
    # latches hold, small forces are theirs
    if PHASE_POSITION <= o.phase <= PHASE_CONTACT and not o.contact and not (o.mechanism_state >> MECHANISM_SIGNAL_DSG) & 1:
        for i in range(3):
            s.drift[i] += clip(p.period * o.periods / p.drift_time, 0.0, 1.0) * (o.F_T[i] - s.drift[i])
        if sqrt(s.drift[0] * s.drift[0] + s.drift[1] * s.drift[1] + s.drift[2] * s.drift[2]) > p.drift_max:
            f |= FAULT_TARE_DRIFT
    return f


cdef inline int64_t record_faults(const Sample *o) noexcept nogil:
    """The run can no longer be recorded: guidance parks, or asks for a trip."""
    cdef int64_t f = 0
    if o.guidance_fault & 16:
        f |= FAULT_RECORD_LOST
    if o.guidance_fault & 32:
        f |= FAULT_RECORD_REQUIRED
    return f


cdef int64_t motion_faults(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Reach, singularity, following error, dynamics, loop and supervisor."""
    cdef int64_t f = 0
    cdef int i
    for i in range(6):
        # where the leg should be by now: the set point less what the drive is expected to lag behind
        o.following_error[i] = s.leg[i] - s.rate[i] * p.drive_lag - o.measured_leg[i]
        s.following_time[i] = s.following_time[i] + dt if fabs(o.following_error[i]) > p.following_max else 0.0
        if s.following_time[i] > p.following_time:
            f |= FAULT_FOLLOWING_ERROR
        if not (o.leg_demand[i] >= p.leg_min[i] + p.stroke_reserve and o.leg_demand[i] <= p.leg_max[i] - p.stroke_reserve):
            f |= FAULT_STROKE_LIMIT
        if not (fabs(o.leg_demand[i]) < 1e6) or not (fabs(o.leg_rate_demand[i]) < 1e6):
            f |= FAULT_SETPOINT_NOT_FINITE
    if o.place_status & 1:
        f |= FAULT_WORKSPACE
    if o.place_status & 2 or not (o.condition <= p.condition_max):
        f |= FAULT_NEAR_SINGULAR
    if o.place_status & 4:
        f |= FAULT_SETPOINT_NOT_FINITE
    if o.locate_status & 3:
        f |= FAULT_PLATFORM_UNKNOWN
    if o.dynamics_status & 3:
        f |= FAULT_DIVERGENCE
    if o.dynamics_status & 64:
        f |= FAULT_ARM_OVERLOAD
    if o.guidance_fault & 1:
        f |= FAULT_OPERATOR_STOP
    if o.guidance_fault & 2:
        f |= FAULT_HAND_CONTROLLER_STALE
    if o.guidance_fault & 8:
        f |= FAULT_PROGRAMME_NOT_REACHED
    f |= record_faults(o)
    if o.compensator_status & 4:
        f |= FAULT_COMPENSATOR_CLIPPED
    if o.periods > p.periods_max:
        f |= FAULT_LOOP_OVERRUN
    if o.supervisor_age_ns > p.supervisor_ns:
        f |= FAULT_SUPERVISOR_SILENT
    return f


cdef inline double contact_power(const double *F_T, const double *X_TA, const double *V_TA) noexcept nogil:
    """Power that the active unit puts into the contact: wrench at T times the relative twist of the point of A at T's origin."""
    cdef double v[3]
    vec3.cross(V_TA + 3, X_TA, v)
    vec3.sub(V_TA, v, v)
    return vec3.dot(F_T, v) + vec3.dot(F_T + 3, V_TA + 3)


cdef int64_t energy_faults(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Energy that the contact has given the model, against the energy of relative motion when the contact began.

    Only the work of the contact wrench counts, at the simulated port: as the compensator has corrected it, for that is what moves the
    model. Thrust may add energy during a contact, the contact may not. Trapezoid in the force, mean velocity of the step
    (hybrid-stability notes 5.4 (5)).
    """
    cdef int64_t f = 0
    cdef int i
    cdef double F[6]
    cdef double V[6]
    cdef double ahead
    if o.motion != MOTION_FREE:
        s.in_contact = 0
        return 0
    if o.contact and not s.in_contact:
        s.in_contact = 1
        s.energy_at_start = o.kinetic_energy
        o.contact_work = 0.0
    for i in range(6):
        F[i] = 0.5 * (s.F_previous[i] + o.F_T_corrected[i])
        V[i] = 0.5 * (s.V_previous[i] + o.V_TA[i])
        s.F_previous[i] = o.F_T_corrected[i]
        s.V_previous[i] = o.V_TA[i]
    if s.in_contact:
        o.contact_work -= contact_power(F, o.X_TA, V) * dt
        if s.energy_at_start > p.energy_floor:
            o.contact_energy_ratio = 1.0 + o.contact_work / s.energy_at_start
            # where the next tick would lead at this power: the trip comes before the limit is passed
            ahead = o.contact_energy_ratio - contact_power(o.F_T_corrected, o.X_TA, o.V_TA) * dt / s.energy_at_start
            if ahead > 1.0 + p.energy_trip:
                f |= FAULT_ENERGY_GAIN
            elif o.contact_energy_ratio > 1.0 + p.energy_warn:
                f |= FAULT_ENERGY_WARNING
        # latched units stay in contact however small the force: their springs give back what this contact has put in
        if not o.contact and not (o.mechanism_state >> MECHANISM_SIGNAL_DSG) & 1:
            s.in_contact = 0
    return f


# ------------------------------------------------------------------------------------------------------------ the step

cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double dt = p.period * sample.periods
    cdef int64_t f
    cdef uint32_t clipped = 0
    cdef int i
    cdef bint legs_known = True
    # set points start where the legs are
    if not s.armed:
        for i in range(6):
            if not (sample.measured_leg[i] > 0.0) or (sample.drive_status[i] >> DRIVE_STATUS_NO_DATA) & 1:
                legs_known = False
        if legs_known:
            for i in range(6):
                s.leg[i] = clip(sample.measured_leg[i], p.leg_min[i], p.leg_max[i])
                s.rate[i] = 0.0
            s.armed = 1
    f = sensor_faults(p, s, sample) | drive_faults(p, s, sample)
    if s.armed and sample.phase != PHASE_IDLE:
        f |= wrench_faults(p, s, sample) | motion_faults(p, s, sample, dt) | energy_faults(p, s, sample, dt)
    else:
        f |= record_faults(sample)
        if sample.guidance_fault & 1:
            f |= FAULT_OPERATOR_STOP
    # a trip is taken once and not taken back
    s.faults |= f
    if s.faults & FAULTS_STOP and s.mode == FOLLOWING:
        s.mode = DECELERATING
        s.trip_tick = sample.tick
    if s.mode == FOLLOWING and s.armed:
        for i in range(6):
            clipped |= follow_leg(p, s, i, sample.leg_demand[i] if sample.phase != PHASE_IDLE else s.leg[i], dt)
            s.excess_time[i] = s.excess_time[i] + dt if (clipped >> (8 + i)) & 1 else 0.0
            if s.excess_time[i] > p.rate_excess_time:
                s.faults |= FAULT_RATE_LIMIT
        if clipped >> 16:
            s.faults |= FAULT_ACCELERATION_LIMIT
        if s.faults & FAULTS_STOP:
            s.mode = DECELERATING
            s.trip_tick = sample.tick
    elif s.mode == DECELERATING:
        if brake_legs(p, s, dt):
            s.mode = HELD
    for i in range(6):
        sample.leg_setpoint[i] = s.leg[i]
        sample.leg_rate_setpoint[i] = s.rate[i]
    sample.setpoint_status = clipped
    sample.faults = s.faults
    sample.trip_tick = s.trip_tick
    sample.safety_state = s.mode


cdef class SafetyLimits(StagePart):
    """Limits, faults and trip. Software limits on the wrench must lie below the thresholds of the analogue chain."""

    PARAMETERS = (
        Parameter("braking_m_s2", "float", "m/s2", "deceleration of a trip", 4.0, low=0.01, high=100.0),
        Parameter("stroke_reserve_m", "float", "m", "a demand nearer to a stroke end is a fault", 0.01, low=0.0, high=1.0),
        Parameter("following_max_m", "float", "m", "following error", 0.02, low=1e-5, high=1.0),
        Parameter("following_time_s", "float", "s", "following error for this long", 0.05, low=0.0, high=10.0),
        Parameter("rate_excess_s", "float", "s", "demand beyond the rate limit for this long", 0.05, low=0.0, high=10.0),
        Parameter("condition_max", "float", "-", "condition number of the scaled Jacobian", 30.0, low=1.0, high=1e6),
        Parameter("drift_max_n", "float", "N", "mean force without contact that raises a warning", 0.5, low=0.0, high=1e4),
        Parameter("drift_time_s", "float", "s", "averaging time of the drift warning", 1.0, low=0.01, high=100.0),
        Parameter("energy_warn", "float", "-", "energy gain of a contact that raises a warning", 0.05, low=0.0, high=10.0),
        Parameter("energy_trip", "float", "-", "energy gain of a contact that trips (0.21 is a rebound of 1.1)", 0.2, low=0.0, high=1e6),
        Parameter("energy_floor_j", "float", "J", "contacts with less energy are not judged", 0.05, low=0.0, high=1e6),
        Parameter("supervisor_s", "float", "s", "silence of the supervisor", 5.0, low=0.1, high=60.0),
        Parameter("skipped_periods_max", "int", "-", "periods skipped at once that trip", 50, low=1, high=10000),
        Parameter("damaged_per_s_max", "float", "1/s", "ticks with lost or damaged records in a second that are tolerated", 5.0, low=0.0, high=1e4),
        Parameter("sensor_missing_periods", "int", "-", "periods without a sensor record that trip", 1, low=1, high=1000),
        Parameter("drive_missing_periods", "int", "-", "periods without a drive's answer that trip", 3, low=1, high=1000),
        Parameter("signals_missing_periods", "int", "-", "periods without the mechanism's signals that trip", 3, low=1, high=1000),
    )
    CONTEXT = ("period_s", "platform", "delays", "limits")
    cdef Self c

    def __init__(self, *, period_s, platform, delays, limits, braking_m_s2=4.0,
                 stroke_reserve_m=0.01, following_max_m=0.02, following_time_s=0.05, rate_excess_s=0.05, condition_max=30.0, drift_max_n=0.5,
                 drift_time_s=1.0, energy_warn=0.05, energy_trip=0.2, energy_floor_j=0.05, supervisor_s=5.0, skipped_periods_max=50,
                 damaged_per_s_max=5.0, sensor_missing_periods=1, drive_missing_periods=3,
                 signals_missing_periods=3):
        cdef Params *p = &self.c.params
        cdef int i
        memset(&self.c, 0, sizeof(Self))
        p.period = period_s
        cdef Platform legs = platform
        for i in range(6):
            p.leg_min[i], p.leg_max[i] = legs.params.length_min[i], legs.params.length_max[i]
        p.rate_max, p.acceleration_max, p.braking = legs.params.rate_max, legs.params.acceleration_max, braking_m_s2
        if braking_m_s2 > p.acceleration_max:
            raise ValueError(f"safety.braking_m_s2: {braking_m_s2} m/s2 is above the legs' limit, {p.acceleration_max} m/s2")
        p.stroke_reserve, p.following_max, p.following_time = stroke_reserve_m, following_max_m, following_time_s
        p.drive_lag = delays["drive_lag_s"] + delays["measured_leg_delay_s"]
        p.rate_excess_time, p.condition_max = rate_excess_s, condition_max
        for i in range(3):
            p.force_max[i], p.moment_max[i] = limits["force_limit_n"][i], limits["moment_limit_n_m"][i]
        p.drift_max, p.drift_time = drift_max_n, drift_time_s
        p.energy_warn, p.energy_trip, p.energy_floor = energy_warn, energy_trip, energy_floor_j
        p.damaged_max = damaged_per_s_max
        p.supervisor_ns = <int64_t>(supervisor_s * 1e9)
        p.periods_max, p.missing_sensor, p.missing_drive = skipped_periods_max, sensor_missing_periods, drive_missing_periods
        p.missing_signals = signals_missing_periods
        self.c.state.trip_tick = -1
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def fields(self):
        return self.c
