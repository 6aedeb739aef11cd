"""Limits: the last look at the setpoints before they leave, the fault bits, the trip, and the energy monitor.

**Start.** Nothing of ours is sent before the legs are known (`not_armed`): `leg_setpoint` shows what the drives report, the ports send
that or nothing. The setpoints start at the six measured lengths, unchanged, when for two ticks running all six are finite, inside their
strokes and fresh, a pose of the platform fits them, and each is within `limits.start_tolerance_m` of the configured start
(`limits.start_leg_m`, else the neutral pose). What is not so for `arming_s` is a fault, and no setpoint is ever sent in that run.

**Setpoints.** One frame a tick goes to the drives, whatever time has passed since the last one: a stall is not travelled. Each frame
moves a leg from y, v (length and rate of the frame before) to

    v' = wanted, clipped to +-v_max and to -b(y - low)...b(high - y), then to v - A...v + A
    y' = y + v' T                       b(s) = sqrt(a^2 + 2 d s) - a

T period, A = T x acceleration limit, d braking deceleration, a = d T <= A; b(s) is the largest rate that stops within s when it brakes
from the next frame on: v T + v^2/(2 d) = s. Following a demand and braking differ in `wanted` only. What holds for every frame in IEEE
arithmetic, whatever the demand (NaN too), for |v| <= v_max and low <= y <= high, and holds again for y', v':

    (1) y', v' finite, low <= y' <= high, |v'| <= v_max, v - A <= v' <= v + A (as rounded)
    (2) v - A <= b(high - y), -(v + A) <= b(y - low): both clips can be had at once, a leg can always brake before its stroke ends

(1) needs (2) of the frame before, and v' <= b(high - y). (2) for y', v', with u = 2^-53, the rounding of one operation, and
H = max |stroke end|: v' <= b(high - y) gives (v' + a)^2 <= (a^2 + 2 d (high - y)) (1 + 13 u), and with y' <= y + v' T + 2 u (H + v_max T)
the number under the new root is

    x' >= a^2 + 2 d (high - y) - 2 a v' - rounding >= v'^2 + a^2 - 32 u ((v_max + a)^2 + d (H + v_max T))

so a^2 >= 32 u (...), which the constructor demands, gives x' >= v'^2; sqrt and the subtractions are rounded monotonically, hence
b(high - y') >= v' - a >= v' - A. `tools/prove_limits.py` proves (1) bit by bit and the inequalities of (2) by solvers.

A demand is met in one frame where the limits allow. A gap that they do not allow at once (after a stall, or a jump of the demand) is
closed at most as fast as half the acceleration limit can stop it, on top of the demand's own rate: no overshoot.

**Trip.** All legs come to rest in the ratio of their rates, the fastest with the braking acceleration, and are held. Fault bits are
latched. The independent analogue chain is read and recorded; nothing here can override it.

**Recovery.** Nothing but the command `recover`, given while the setpoints rest, ends a trip. The setpoints then go to the measured legs,
inside the limits of every frame, and stay there (`recovering`); the ports enable their drives again; no motion is programmed by anybody
else. A leg whose drive has no power yet may still move: its setpoint goes with it, and the programmed pose is taken again. A leg whose
drive has power, and which is not where it was sent, is left alone: it, or its transducer, is a cause that stands. Records lost before are
forgotten, what is lost now counts, against the share of the tolerated rate that belongs to `recover_fresh_s`. When for `recover_fresh_s` no
stop fault has stood and the setpoints have rested, the stop faults are cleared and the setpoints follow the demand again. When that has not
come after `recover_limit_s`, or on an abort, the setpoints are held as before, and `faults` shows of the stop faults those that stood last:
the causes to be cleared. Without a record there is no recovery: `record_lost` and `record_required` refuse it at once. So does a trip
before the start, which has sent nothing.

**Does it make sense.** Readings that no stand can have are faults, each of its own. `leg_jump`: a measured leg further from its last fresh
length than twice the rate limit leads in the time between, and `leg_jump_m`. `tare_wrong`: the mean force before the loop is closed is
above `tare_max_n`. `force_without_contact`: a contact, by the threshold of the events, while the ports are `apart_m` short of the nominal
first contact and have not been nearer since the loop was closed. `contact_without_force`: the prediction of the run says, as
`course_force_n`, how much axial force there is at least when the units are for the first time this deep in each other (every
`course_step_m` behind the nominal first contact); the fault is less than `course_share` of it for COURSE_TIME, measured within
COURSE_MEMORY. Both sides only look at the deepest place so far: what bounces behind it is not predictable. With the signal of capture this
begins again, against `captured_force_n` for what pushes, and against `pulled_force_n` for what pulls, by the way out from the end of the
course of `captured_force_n`, where the units are further out than before since the capture. A force across the axis that is not measured
lets them go aside: the fault is also more than ASIDE_SHARE times `course_aside_m` and ASIDE_SLACK. `force_beyond_prediction`: more
than `predicted_share` of `predicted_force_n`. What a run has no prediction of is not judged.

`leg_forces_differ`: where the drives say their forces f_i, the legs and the load cell weigh the same contact. With n_i the leg's direction,
c the contact force on the platform by the load cell, v the platform's velocity,

    sum n_i (f_i - friction_i) + c - m v'  =  the weight on the legs

whose mean before the loop is closed is the zero. In the closed loop the difference from it, low-passed over `leg_balance_s` (v' is then the
high-passed v), is to stay within `leg_balance_n`, beyond what friction hides: known while a leg slides, up to its static value either way
while it is slower than STICK_RATE. Weights of the legs that shift with their directions, and what turns with the platform, are not taken
off: they belong into `leg_balance_n`.

**Power.** The table gives each stop a category (IEC 60204-1): power kept, taken off when the setpoints rest, taken off at once. With
`limits.power_off = "axis"` a fault of one drive takes the power off its own axis, and the others decelerate inside their limits; a fault of
no single drive, and any with `"all"`, off all six. A drive that left its state by itself is such a fault: its enabling word is withdrawn,
so that it does not come back by itself. The ports obey `setpoint_status`, bits `blocked`; what a drive says once it has lost its power is
no further fault. Nothing but a recovery gives power back, and only once: it is given up at once when an axis that it has enabled leaves
that state again, or runs away.

**Watchdog.** `watchdog` counts ticks that are on time and judged here, while the drives may have power: an output of which bit 0 toggles.

**Chain.** `chain_state` is what its inputs say; an input with two channels (emergency stop, guard) is closed when both are, a discrepancy
after `limits.discrepancy_s`. The hydraulic unit is off, low, high or interlocked. With `limits.proof_test` the setpoints do not start
before each of the inputs has been seen open and closed again on both channels.

**Hydraulics.** What the drives say of force, spool and supply has limits of its own: the legs' greatest force, the lowest supply pressure
(`limits.supply_pressure_min_pa`), and how long a spool may stay at its end. What a stand does not measure is zero and has none of these
faults. Where the drives may not follow (these limits, a leg behind its setpoint), decelerating setpoints take the speed off as far as the
drives still do. A stand with blocking valves (`limits.blocking_valves`) does more: of a leg that is behind its setpoint, once the trip has
come, of all legs when the setpoints have rested for `blocking_delay_s`, or when a drive says that its hydraulics are blocked, the ports
take the power off the drives (`setpoint_status`, bits `blocked`), which closes the valves. What a drive says once it has lost its power is
no further fault.

**Energy monitor** (hybrid-stability notes 5.4 (5), R-St-32): work of the corrected wrench (what moves the model) on its relative motion
from the free motion before a contact to the free motion after it, against the kinetic energy of that free motion before. What the springs
and drives of an active docking unit may have given is not the stand's: `unit_energy`. See `energy_faults`.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Pose, Twist, Vec3, Wrench, add, cross, div, dot, mul, norm, pose, quat, quat_multiply, rotate, sub,
                                        twist, twist_scaled, twist_sum, vec, wrench, xyz)
from rt_kernels.codes cimport *
from rt_kernels.plugs cimport StagePart
from rt_kernels.recovery cimport NOT_FRESH, starts_from_here
from rt_kernels.safety.limits_parameters cimport SafetyLimitsParameters, fill_safety_limits, tune_safety_limits
from rt_kernels.safety.unit_energy cimport (UnitEnergyParams, UnitEnergyState, fill_unit_energy, unit_begin, unit_contact_over,
                                            unit_may_give)
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.legs cimport Legs, all_legs
from rt_kernels.stewart.mounting cimport Mounting, fill_mounting
from rt_kernels.stewart.platform cimport Platform, PlatformParams, leg_lengths

import numpy as np

from rt_kernels.block_check import COUNT, COUNT_32, FLAG, WORD, code_range
from rt_kernels.parameters import Parameter, Tunable, checked


cdef enum:
    ALL_AXES = 0x3F
    LEVELS = 18                 # of the quiet force: 1/16 N, 1/8 N, ... 8192 N

cdef double LOWEST_LEVEL = 0.0625
cdef double QUIET_SHARE = 0.125     # of the force at which the contact was noticed: less is free motion
cdef double APPROACH_TIME = 0.5     # a force takes no longer than this, s, to rise to the threshold or to die away after it

# faults of drives that may not follow: resting setpoints do not hold them
cdef int64_t MAY_NOT_FOLLOW = FAULT_SUPPLY_PRESSURE | FAULT_FOLLOWING_ERROR | FAULT_VALVE_SATURATED | FAULT_LEG_FORCE_LIMIT

# without a record nothing moves again
cdef int64_t NOT_IN_SESSION = FAULT_RECORD_LOST | FAULT_RECORD_REQUIRED

# faults of one drive: they take its axis, where the stand's power is taken by axis
cdef int64_t OF_ONE_DRIVE = (FAULT_DRIVE_NO_DATA | FAULT_DRIVE_DEVICE_FAULT | FAULT_DRIVE_NOT_ENABLED | FAULT_FOLLOWING_ERROR
                             | FAULT_DRIVE_LOCAL_CONTROL | FAULT_DRIVE_NOT_FOLLOWING | FAULT_DRIVE_HEARTBEAT_LOST | FAULT_LEG_JUMP)

cdef enum:
    POWER_NONE = 0              # which axes lose their power
    POWER_AXIS = 1
    POWER_ALL = 2
    COURSE_POINTS = 256
    COURSE_BEFORE = 0
    COURSE_CAPTURED = 1
    COURSE_PULLED = 2

cdef double COURSE_TIME = 0.004     # s that a force may be too small
cdef double COURSE_MEMORY = 0.02    # s in which the largest force counts
cdef double ASIDE_SHARE = 1.25
cdef double ASIDE_SLACK = 0.005     # m
cdef double COURSE_LEAST = 20.0     # N: less than a quarter of the course's greatest force is not judged, nor less than this,
cdef double COURSE_MOST = 100.0     # more than this always
cdef double NEAR_DEEPEST = 1e-4     # m
cdef double PREDICTED_FLOOR = 200.0     # N: less is not beyond a prediction
cdef double STICK_RATE = 0.005      # m/s: a slower leg may stick
cdef double WEIGHT_TIME = 1.0       # s over which the legs' load before the loop is closed is averaged

cdef uint32_t STOP_CHANNELS = ANALOGUE_CHAIN_EMERGENCY_STOP_A | ANALOGUE_CHAIN_EMERGENCY_STOP_B
cdef uint32_t GUARD_CHANNELS = ANALOGUE_CHAIN_GUARD_A | ANALOGUE_CHAIN_GUARD_B
cdef uint32_t UNIT_FAULTS = CHAIN_STATE_UNIT_OFF | CHAIN_STATE_UNIT_LOW | CHAIN_STATE_UNIT_HIGH | CHAIN_STATE_UNIT_INTERLOCK

cdef double IN_PLACE = 1e-9         # m: a setpoint no further than this from where it is led has arrived

cdef uint32_t NOT_JUDGED = DRIVE_STATUS_NO_DATA | DRIVE_STATUS_STALE | DRIVE_STATUS_LOST | DRIVE_STATUS_CORRUPT
cdef uint32_t WITHOUT_POWER = DRIVE_STATUS_NOT_ENABLED | DRIVE_STATUS_DEVICE_FAULT | DRIVE_STATUS_HYDRAULICS_BLOCKED
# what drives say whose power we took ourselves
cdef uint32_t AFTER_BLOCKING = DRIVE_STATUS_NOT_ENABLED | DRIVE_STATUS_NOT_FOLLOWING | DRIVE_STATUS_HYDRAULICS_BLOCKED

cdef struct Params:
    SafetyLimitsParameters keys
    double period               # T: of one frame
    double leg_min[6]
    double leg_max[6]
    double start_leg[6]         # where the platform is parked before a run
    double start_tolerance
    double rate_max
    double rate_step            # A: change of the rate in one frame
    double braking_step         # a = d T
    double closing              # deceleration with which a gap to the demand is closed
    double closing_step
    double force_max[3]
    double moment_max[3]
    double drive_lag            # expected delay of the measured length, s
    UnitEnergyParams unit       # what the docking unit may give
    double leg_force_max        # N, of a leg's actuator
    double supply_min           # Pa, 0: not judged
    int64_t supervisor_ns
    double contact_x            # of the nominal first contact along X_T
    double course[3][256]       # N, least axial force at each depth: before the capture, since, and the pull by the way out since
    double course_step          # m
    double course_floor[3]      # N: less is not judged
    double force_predicted      # N, already times the share; 0: not judged
    double discrepancy          # s
    PlatformParams platform
    Pose X_PM                   # port on the platform
    Pose X_WF                   # fixed port
    int target_fixed
    int course_points[3]
    double aside[256]           # m, greatest distance of the ports across the axis at each depth
    int aside_points
    int power                   # POWER_...
    int emergency_stop
    int guard
    int hydraulic_unit
    int proof_test
    int blocking_valves         # 1: the stand has some

# Records of one kind: their total at the tick before, and about how many came in the last second.
cdef struct Count:
    int64_t total
    double in_a_second

# The furthest place that the units have come to, and the force there.
cdef struct Front:
    double furthest             # m
    double force[2]             # N, largest of the present and of the past COURSE_MEMORY
    double force_time           # s of the present one
    double lacking_time         # s for which the force has been too small

cdef struct State:
    double leg[6]               # the newest frame: lengths
    double rate[6]              # and rates
    double demand[6]            # demand of the tick before
    double excess_time[6]
    double following_time[6]
    Twist V_previous
    Vec3 drift
    double arming_time          # spent before the start
    double work                 # of the corrected wrench on the model
    double quiet_work[LEVELS]   # the same at the last tick with a force of at most level i
    double quiet_age[LEVELS]    # s since that tick
    Vec3 quiet_mean[LEVELS]     # mean force of the free motion at that tick
    double free_force           # the present contact is over when its force is not above this,
    Vec3 free_mean              # beside this mean
    double noticed_time         # s for which the threshold has noticed it
    double lost_time            # s since the threshold lost it
    double energy_at_start
    UnitEnergyState unit
    Count sensor_lost
    Count sensor_corrupt
    Count drive_lost[6]
    Count drive_corrupt[6]
    int64_t sensor_silent       # periods without a record
    int64_t signals_silent
    int64_t drive_silent[6]
    double saturated_time[6]    # s for which each valve has been at its end
    double held_time            # s since the setpoints have come to rest after a trip
    double target[6]            # recovering: lengths that the setpoints are led to
    double fresh_leg[6]         # measured length when it was fresh last
    double fresh_age[6]         # s since, negative: never
    Front push                  # by the depth behind the nominal first contact, before the capture or since
    Front pull                  # by the way out, since the capture
    Vec3 balance                # N, low-passed: force of the legs and of the contact on the platform, W axes
    Vec3 balance_rate           # m/s, low-passed: velocity of the platform
    Vec3 balance_slack          # N, low-passed: what friction may hide
    Vec3 weight                 # N: the balance before the loop was closed
    double differs_time[2]      # s for which the channels of the emergency stop and of the guard have differed
    double recover_time         # s since the command
    double fresh_time           # s since the last stop fault
    int64_t standing            # stop faults of the newest tick of the recovery that had any
    int64_t of_axis[6]          # stop faults of this tick that are one drive's
    int64_t faults
    int64_t trip_tick
    uint32_t blocked            # bit i: the drive of leg i is to have no power
    uint32_t enabled            # bit i: in this recovery the drive of leg i has had power
    uint32_t turned_off         # bit i: it was blocked before, and has not answered so yet
    uint32_t chain              # bits of chain_state
    uint32_t watchdog
    int mode                    # safety_state of the table
    int good_ticks              # running, with legs that can be started from
    int counting                # the totals of the tick before are known
    int in_contact
    int tripped                 # and not recovered
    int led                     # recovering: there is a target
    int weighed                 # the balance has begun
    int captured                # the course is that behind the capture

cdef struct Self:
    Params params
    State state


# ------------------------------------------------------------------------------------------------------------- the start

cdef int64_t start_legs(const Params *p, State *s, const Sample *o, double dt) noexcept nogil:
    """Takes the setpoints from the measured legs when those can be believed, two ticks running. Returns the fault when time is over."""
    cdef int64_t f = 0
    cdef int i
    for i in range(6):
        # a comparison with a NaN is false
        if o.drive_status[i] & NOT_FRESH or not (p.leg_min[i] <= o.measured_leg[i] <= p.leg_max[i]):
            f |= FAULT_START_LEGS_UNKNOWN
        elif not (fabs(o.measured_leg[i] - p.start_leg[i]) <= p.start_tolerance):
            f |= FAULT_START_POSE_DISAGREES
    if f == 0 and o.forward_kinematics_status != 0:
        f |= FAULT_START_POSE_DISAGREES
    s.good_ticks = s.good_ticks + 1 if f == 0 else 0
    s.arming_time += dt
    if s.good_ticks == 2:
        for i in range(6):
            s.leg[i] = o.measured_leg[i]
            s.demand[i] = s.leg[i]
        s.mode = SAFETY_STATE_FOLLOWING
    return f if s.arming_time > p.keys.arming else 0


# ---------------------------------------------------------------------------------------------------------- setpoints

cdef inline double clip(double x, double low, double high) noexcept nogil:
    return low if x < low else (high if x > high else x)


cdef inline Vec3 nearer(Vec3 mean, Vec3 now, double share) noexcept nogil:
    """One tick of a low-pass."""
    return add(mean, mul(share, sub(now, mean)))


cdef inline double braking_rate(double distance, double deceleration, double step) noexcept nogil:
    """b: largest rate from which a leg stops within `distance` when it brakes from the next frame on. step: deceleration times period."""
    cdef double rate = sqrt(step * step + 2.0 * deceleration * distance) - step
    return rate if rate > 0.0 else 0.0


cdef uint32_t move_leg(const Params *p, State *s, int i, double wanted) noexcept nogil:
    """The next frame of leg i, as near to the rate `wanted` as the limits allow. Returns the bits of setpoint_status."""
    cdef uint32_t clipped = 0
    cdef double low = p.leg_min[i], high = p.leg_max[i]
    cdef double y = s.leg[i], v = s.rate[i]
    cdef double rate = wanted
    # what is not a number stops the leg
    if not (rate - rate == 0.0):
        rate = 0.0
    if fabs(rate) > p.rate_max:
        rate = clip(rate, -p.rate_max, p.rate_max)
        clipped |= SETPOINT_STATUS_RATE1
    # never faster than can be braked before the end of the stroke
    rate = clip(rate, -braking_rate(y - low, p.keys.braking, p.braking_step), braking_rate(high - y, p.keys.braking, p.braking_step))
    if not (v - p.rate_step <= rate <= v + p.rate_step):
        rate = clip(rate, v - p.rate_step, v + p.rate_step)
        clipped |= SETPOINT_STATUS_ACCELERATION1
    # the clip takes off what rounding may have put beyond the end, no more
    s.leg[i] = clip(y + rate * p.period, low, high)
    s.rate[i] = rate
    return clipped << i


cdef inline double rate_towards(const Params *p, double gap, double demand_rate) noexcept nogil:
    """Rate that closes the gap to a demand which moves on at `demand_rate`: in one frame when that is one step of the rate away, else
    what half the acceleration limit can still stop at the demand."""
    cdef double rate = gap / p.period
    cdef double excess = rate - demand_rate
    cdef double allowed
    if not (fabs(excess) > p.rate_step):
        return rate
    allowed = braking_rate(fabs(excess) * p.period, p.closing, p.closing_step)
    if allowed < p.rate_step:
        allowed = p.rate_step
    return demand_rate + (allowed if excess > 0.0 else -allowed)


cdef uint32_t follow_leg(const Params *p, State *s, int i, double demand, int periods) noexcept nogil:
    """The next frame of leg i towards `demand`, which has moved for `periods`. Returns the clip bits of this leg: 0 length, 8, 16."""
    cdef uint32_t clipped = 0
    cdef double target = demand
    cdef double moved
    if not (p.leg_min[i] <= demand <= p.leg_max[i]):
        clipped = 1u << i
        target = clip(demand, p.leg_min[i], p.leg_max[i]) if demand == demand else s.leg[i]
    moved = target - s.demand[i]
    s.demand[i] = target
    return clipped | move_leg(p, s, i, rate_towards(p, target - s.leg[i], moved / (p.period * periods)))


cdef bint lead_legs(const Params *p, State *s) noexcept nogil:
    """All legs towards their targets, which stand still, inside the limits. True when they are there, at rest."""
    cdef int i
    cdef bint there = True
    for i in range(6):
        move_leg(p, s, i, rate_towards(p, s.target[i] - s.leg[i], 0.0))
        if fabs(s.target[i] - s.leg[i]) > IN_PLACE or fabs(s.rate[i]) * p.period > IN_PLACE:
            there = False
    return there


cdef bint brake_legs(const Params *p, State *s) noexcept nogil:
    """All legs towards rest; the slowest-to-stop leg sets the pace so that the platform keeps its direction. True when at rest."""
    cdef int i
    cdef double fastest = 0.0
    cdef double keep = 0.0
    cdef bint at_rest = True
    for i in range(6):
        if fabs(s.rate[i]) > fastest:
            fastest = fabs(s.rate[i])
    if fastest > p.braking_step:
        keep = (fastest - p.braking_step) / fastest
    for i in range(6):
        move_leg(p, s, i, keep * s.rate[i])
        if s.rate[i] != 0.0:
            at_rest = False
    return at_rest


# -------------------------------------------------------------------------------------------------------------- faults

cdef inline bint too_often(const Params *p, Count *c, int64_t total, bint seen, bint counting, int periods, double allowed) noexcept nogil:
    """Records counted in about the last second (first-order fading), against the number allowed. seen: at least one at this tick, whatever
    the total says; counting: false at the first tick, whose total is where the count begins."""
    cdef double new = <double>total - <double>c.total if counting and total > c.total else 0.0
    c.total = total
    if seen and new < 1.0:
        new = 1.0
    c.in_a_second *= 1.0 - clip(p.period * periods, 0.0, 1.0)
    c.in_a_second += new
    return c.in_a_second > allowed


cdef inline double share_of_a_second(const Params *p, const State *s) noexcept nogil:
    """Of what is tolerated in a second: a recovery, whose count restarts, has to see in its own time what comes too often."""
    return p.keys.recover_fresh if s.mode == SAFETY_STATE_RECOVERING and p.keys.recover_fresh < 1.0 else 1.0


cdef int64_t sensor_faults(const Params *p, State *s, const Sample *o) noexcept nogil:
    cdef uint32_t w = o.wrench_fault
    cdef int64_t f = 0
    cdef double damaged_max = share_of_a_second(p, s) * p.keys.damaged_max
    s.sensor_silent = s.sensor_silent + o.periods if w & SENSOR_STATUS_NO_DATA else 0
    if s.sensor_silent >= p.keys.sensor_missing_periods:
        f |= FAULT_SENSOR_NO_DATA
    if w & SENSOR_STATUS_STALE:
        f |= FAULT_SENSOR_STALE
    # single losses and damages are counted, a rate of them trips
    if too_often(p, &s.sensor_lost, o.wrench_lost_total, w & SENSOR_STATUS_LOST, s.counting, o.periods, damaged_max):
        f |= FAULT_SENSOR_LOST
    if too_often(p, &s.sensor_corrupt, o.wrench_corrupt_total, w & SENSOR_STATUS_CORRUPT, s.counting, o.periods, damaged_max):
        f |= FAULT_SENSOR_CORRUPT
    if w & SENSOR_STATUS_SATURATED:
        f |= FAULT_SENSOR_SATURATED
    if w & SENSOR_STATUS_OUT_OF_RANGE:
        f |= FAULT_SENSOR_OUT_OF_RANGE
    if w & SENSOR_STATUS_DEVICE_FAULT or w & SENSOR_STATUS_SUPPLY or w & SENSOR_STATUS_TEMPERATURE:
        f |= FAULT_SENSOR_DEVICE_FAULT
    if w & SENSOR_STATUS_BROKEN_WIRE:
        f |= FAULT_SENSOR_BROKEN_WIRE
    if w & SENSOR_STATUS_BUSY:
        f |= FAULT_SENSOR_BUSY
    if w & SENSOR_STATUS_FROZEN:
        f |= FAULT_SENSOR_FROZEN
    if w & SENSOR_STATUS_DIFFERS:
        f |= FAULT_RECORDS_DIFFER
    s.signals_silent = s.signals_silent + o.periods if o.signal_status & SENSOR_STATUS_NO_DATA else 0
    if s.signals_silent >= p.keys.signals_missing_periods or o.signal_status & SENSOR_STATUS_DEVICE_FAULT:
        f |= FAULT_SIGNALS_NO_DATA
    if o.signal_status & SENSOR_STATUS_OUT_OF_RANGE:
        f |= FAULT_MECHANISM_INVALID
    if o.analogue_chain & (ANALOGUE_CHAIN_HEALTHY | ANALOGUE_CHAIN_TRIPPED | ANALOGUE_CHAIN_HYDRAULICS_BLOCKED) != ANALOGUE_CHAIN_HEALTHY:
        f |= FAULT_ANALOGUE_CHAIN
    return f


cdef inline uint32_t channels(Params *p, State *s, uint32_t inputs, int which, uint32_t a, uint32_t b, double dt) noexcept nogil:
    """An input with two channels, `which` 0 the emergency stop, 1 the guard. Returns its bits of chain_state; the proof test sees here that
    both were open, and closed after it."""
    cdef uint32_t state = 0
    cdef uint32_t seen = CHAIN_STATE_STOP_SEEN_OPEN << which
    if inputs & (a | b) != a | b:
        state |= CHAIN_STATE_EMERGENCY_STOP << which
    if (inputs & a != 0) == (inputs & b != 0):
        s.differs_time[which] = 0.0
    else:
        s.differs_time[which] += dt
        if s.differs_time[which] > p.discrepancy:
            state |= CHAIN_STATE_EMERGENCY_STOP_DIFFERS << which
    if s.chain & seen or not inputs & (a | b):
        state |= seen
    return state


cdef int64_t chain_faults(Params *p, State *s, const Sample *o, double dt) noexcept nogil:
    """Emergency stop, guard and hydraulic unit, as far as the stand has them; where a proof test is asked for, before it is done, an open
    input is what it waits for."""
    cdef uint32_t inputs = o.analogue_chain, state = 0, lacking = 0
    cdef int64_t f = 0
    if p.emergency_stop:
        state |= channels(p, s, inputs, 0, ANALOGUE_CHAIN_EMERGENCY_STOP_A, ANALOGUE_CHAIN_EMERGENCY_STOP_B, dt)
        lacking |= CHAIN_STATE_STOP_SEEN_OPEN & ~state
    if p.guard:
        state |= channels(p, s, inputs, 1, ANALOGUE_CHAIN_GUARD_A, ANALOGUE_CHAIN_GUARD_B, dt)
        lacking |= CHAIN_STATE_GUARD_SEEN_OPEN & ~state
    if p.hydraulic_unit:
        if not inputs & ANALOGUE_CHAIN_UNIT_ON:
            state |= CHAIN_STATE_UNIT_OFF
        if inputs & ANALOGUE_CHAIN_UNIT_LOW:
            state |= CHAIN_STATE_UNIT_LOW
        if inputs & ANALOGUE_CHAIN_UNIT_HIGH:
            state |= CHAIN_STATE_UNIT_HIGH
        if inputs & ANALOGUE_CHAIN_UNIT_INTERLOCK:
            state |= CHAIN_STATE_UNIT_INTERLOCK
    state |= s.chain & CHAIN_STATE_PROVEN
    if not lacking and not state & (CHAIN_STATE_EMERGENCY_STOP | CHAIN_STATE_GUARD_OPEN) and (p.emergency_stop or p.guard):
        state |= CHAIN_STATE_PROVEN
    if state & (CHAIN_STATE_EMERGENCY_STOP_DIFFERS | CHAIN_STATE_GUARD_DIFFERS):
        f |= FAULT_CHAIN_DISCREPANCY
    if p.proof_test and not state & CHAIN_STATE_PROVEN:
        state |= CHAIN_STATE_PROOF_ASKED
    elif state & (CHAIN_STATE_EMERGENCY_STOP | CHAIN_STATE_GUARD_OPEN):
        f |= FAULT_ANALOGUE_CHAIN
    if state & UNIT_FAULTS:
        f |= FAULT_HYDRAULIC_UNIT
    s.chain = state
    return f


cdef int64_t drive_faults(const Params *p, State *s, const Sample *o) noexcept nogil:
    """What the drives say of themselves; `of_axis` begins with it."""
    cdef int64_t f = 0
    cdef int64_t one
    cdef int i
    cdef uint32_t d
    cdef double share = share_of_a_second(p, s)
    for i in range(6):
        one = 0
        d = o.drive_status[i]
        if s.blocked >> i & 1:
            d &= ~AFTER_BLOCKING
        s.drive_silent[i] = s.drive_silent[i] + o.periods if d & DRIVE_STATUS_NO_DATA else 0
        if s.drive_silent[i] >= p.keys.drive_missing_periods:
            one |= FAULT_DRIVE_NO_DATA
        if d & DRIVE_STATUS_DEVICE_FAULT or d & DRIVE_STATUS_EMERGENCY:
            one |= FAULT_DRIVE_DEVICE_FAULT
        if d & DRIVE_STATUS_NOT_ENABLED:
            one |= FAULT_DRIVE_NOT_ENABLED
        if d & DRIVE_STATUS_FOLLOWING_ERROR:
            one |= FAULT_FOLLOWING_ERROR
        if d & DRIVE_STATUS_BUS_FAULT:
            one |= FAULT_BUS_FAULT
        if d & DRIVE_STATUS_NOT_FOLLOWING:
            one |= FAULT_DRIVE_NOT_FOLLOWING
        if d & DRIVE_STATUS_HEARTBEAT_LOST:
            one |= FAULT_DRIVE_HEARTBEAT_LOST
        if too_often(p, &s.drive_lost[i], o.drive_lost_total[i], d & DRIVE_STATUS_LOST, s.counting, o.periods,
                     share * p.keys.drive_lost_max):
            one |= FAULT_DRIVE_LOST
        if too_often(p, &s.drive_corrupt[i], o.drive_corrupt_total[i], d & DRIVE_STATUS_CORRUPT, s.counting, o.periods,
                     share * p.keys.damaged_max):
            one |= FAULT_BUS_FAULT
        if d & DRIVE_STATUS_LIMIT_TOUCHED:
            one |= FAULT_DRIVE_LIMIT_TOUCHED
        if d & DRIVE_STATUS_LOCAL_CONTROL:
            one |= FAULT_DRIVE_LOCAL_CONTROL
        if d & DRIVE_STATUS_SUPPLY_LOW or d & DRIVE_STATUS_HYDRAULICS_BLOCKED:
            one |= FAULT_SUPPLY_PRESSURE
        if d & DRIVE_STATUS_DIFFERS:
            one |= FAULT_RECORDS_DIFFER
        s.of_axis[i] = one
        f |= one
    return f


cdef int64_t hydraulic_faults(const Params *p, State *s, const Sample *o, double dt) noexcept nogil:
    """Force of each actuator, spools at their end, supply pressure; what is not a number is beyond its limit."""
    cdef int64_t f = 0
    cdef int i
    for i in range(6):
        if not (fabs(o.leg_force[i]) <= p.leg_force_max):
            f |= FAULT_LEG_FORCE_LIMIT
        if fabs(o.leg_valve[i]) < p.keys.valve_end and not o.drive_status[i] & DRIVE_STATUS_VALVE_SATURATED:
            s.saturated_time[i] = 0.0
        else:
            # the time before the tick that first shows it is not counted
            s.saturated_time[i] += dt if s.saturated_time[i] > 0.0 else p.period
        if s.saturated_time[i] > p.keys.valve_saturated:
            f |= FAULT_VALVE_SATURATED
    if p.supply_min > 0.0 and not (o.supply_pressure >= p.supply_min) and s.mode != SAFETY_STATE_BLOCKED:
        f |= FAULT_SUPPLY_PRESSURE
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
    # latches hold, small forces are theirs; before the loop is closed, what the threshold takes for a contact belongs to it, too
    if PHASE_POSITION <= o.phase <= PHASE_CONTACT and (not o.contact or o.phase < PHASE_CLOSING) \
            and not o.mechanism_state & MECHANISM_SIGNAL_DSG:
        s.drift = nearer(s.drift, vec(o.F_T), clip(p.period * o.periods / p.keys.drift_time, 0.0, 1.0))
        if norm(s.drift) > p.keys.drift_max:
            f |= FAULT_TARE_DRIFT
            if p.keys.tare_max > 0.0 and o.phase <= PHASE_CLOSING and norm(s.drift) > p.keys.tare_max:
                f |= FAULT_TARE_WRONG
    # units that have been nearer may touch at any distance: jammed latches drag, a thrown ring follows the target
    if p.keys.apart > 0.0 and o.contact and o.motion == MOTION_FREE and not o.mechanism_state & MECHANISM_SIGNAL_DSG \
            and (s.captured or s.push.furthest <= -p.keys.apart) and o.X_TA_measured[0] < p.contact_x - p.keys.apart:
        f |= FAULT_FORCE_WITHOUT_CONTACT
    if p.force_predicted > 0.0 and o.motion == MOTION_FREE and norm(vec(o.F_T)) > p.force_predicted:
        f |= FAULT_FORCE_BEYOND_PREDICTION
    return f


cdef inline void front_begins(Front *front, double furthest) noexcept nogil:
    front.furthest = furthest
    front.force[0] = front.force[1] = front.force_time = front.lacking_time = 0.0


# Whether the force lacks where the units are further than before. which: of the three courses; place: m, on it.
cdef bint force_lacks(const Params *p, Front *front, int which, double place, double force, double dt) noexcept nogil:
    cdef int points = p.course_points[which]
    cdef double x, least
    front.force_time += dt
    if front.force_time > COURSE_MEMORY:
        front.force[1] = front.force[0]
        front.force[0] = front.force_time = 0.0
    if force > front.force[0]:
        front.force[0] = force
    if place > front.furthest:
        front.furthest = place
    if points == 0 or place < front.furthest - NEAR_DEEPEST or place <= 0.0:
        front.lacking_time = 0.0
        return False
    # behind its end the course stays as it is there
    x = place / p.course_step
    least = p.course[which][points - 1 if x >= points else <int>x]
    if least < p.course_floor[which] or front.force[0] >= p.keys.course_share * least or front.force[1] >= p.keys.course_share * least:
        front.lacking_time = 0.0
        return False
    front.lacking_time += dt
    return front.lacking_time > COURSE_TIME


cdef bint aside(const Params *p, const Sample *o, double depth) noexcept nogil:
    cdef double x = depth / p.course_step
    cdef double most = p.aside[p.aside_points - 1 if x >= p.aside_points else <int>x] if depth > 0.0 else INFINITY
    return not (sqrt(o.X_TA_measured[1] * o.X_TA_measured[1] + o.X_TA_measured[2] * o.X_TA_measured[2]) <= ASIDE_SHARE * most + ASIDE_SLACK)


cdef int64_t course_faults(const Params *p, State *s, const Sample *o, double dt) noexcept nogil:
    """The axial force against the prediction's, where the units get further than ever before: into each other before the capture, and
    either way since."""
    cdef double depth = o.X_TA_measured[0] - p.contact_x
    cdef bint captured = o.mechanism_state & MECHANISM_SIGNAL_DSG != 0
    cdef bint lacks
    if o.motion != MOTION_FREE or captured != s.captured:
        s.captured = captured
        front_begins(&s.push, -p.keys.apart)
        front_begins(&s.pull, 0.0)
        if o.motion != MOTION_FREE:
            return 0
    lacks = force_lacks(p, &s.push, COURSE_CAPTURED if captured else COURSE_BEFORE, depth, o.F_T[0], dt)
    if captured:
        lacks |= force_lacks(p, &s.pull, COURSE_PULLED, p.course_points[COURSE_CAPTURED] * p.course_step - depth, -o.F_T[0], dt)
    return FAULT_CONTACT_WITHOUT_FORCE if lacks or p.aside_points > 0 and aside(p, o, depth) else 0


cdef inline bint legs_say_force(const Sample *o) noexcept nogil:
    """Whether the drives say forces at all, and those are numbers."""
    cdef double most = 0.0
    cdef int i
    for i in range(6):
        if not (fabs(o.leg_force[i]) < 1e9 and fabs(o.measured_leg_rate[i]) < 1e6 and fabs(o.F_T[i]) < 1e12):
            return False
        if fabs(o.leg_force[i]) > most:
            most = fabs(o.leg_force[i])
    return most > 0.0


cdef inline void push_of_legs(const Params *p, const Sample *o, Vec3 *push, Vec3 *slack) noexcept nogil:
    """Force of the six legs on the platform without their friction, W axes; what friction may hide of it, each axis."""
    cdef Legs legs
    cdef Vec3 u
    cdef double rate, force, hidden
    cdef int i
    all_legs(&p.platform, o.X_WP_measured, &legs)
    push[0] = slack[0] = xyz(0.0, 0.0, 0.0)
    for i in range(6):
        rate = o.measured_leg_rate[i]
        force = o.leg_force[i] - p.keys.leg_friction * clip(rate / STICK_RATE, -1.0, 1.0) - p.keys.leg_viscous * rate
        hidden = p.keys.leg_stiction if fabs(rate) < STICK_RATE else p.keys.leg_stiction - p.keys.leg_friction
        u = xyz(legs.ux[i], legs.uy[i], legs.uz[i])
        push[0] = add(push[0], mul(force, u))
        slack[0] = add(slack[0], mul(hidden, xyz(fabs(u.x), fabs(u.y), fabs(u.z))))


cdef inline Vec3 contact_on_platform(const Params *p, const Sample *o) noexcept nogil:
    """Contact force on what the platform carries, by the load cell, W axes."""
    if p.target_fixed:
        return mul(-1.0, rotate(p.X_WF.q, vec(o.F_T)))
    return rotate(quat_multiply(quat(o.X_WP_measured + 3), p.X_PM.q), vec(o.F_T))


cdef inline double beyond(double difference, double slack) noexcept nogil:
    return fabs(difference) - slack if fabs(difference) - slack > 0.0 else 0.0


cdef int64_t balance_faults(const Params *p, State *s, const Sample *o, double dt) noexcept nogil:
    """Forces of the legs against the load cell: see the docstring."""
    cdef Vec3 push, slack, load, v, now, left
    cdef double near = clip(dt / p.keys.leg_balance_s, 0.0, 1.0), slow = clip(dt / WEIGHT_TIME, 0.0, 1.0)
    if p.keys.leg_balance_n <= 0.0 or o.forward_kinematics_status != 0 or not legs_say_force(o):
        return 0
    push_of_legs(p, o, &push, &slack)
    load = add(push, contact_on_platform(p, o))
    v = vec(o.V_WP_measured)
    if not s.weighed:
        s.balance = s.weight = load
        s.balance_rate = v
        s.balance_slack = slack
    s.weighed = 1
    s.balance = nearer(s.balance, load, near)
    s.balance_rate = nearer(s.balance_rate, v, near)
    s.balance_slack = nearer(s.balance_slack, slack, near)
    now = sub(s.balance, div(mul(p.keys.moved_mass, sub(v, s.balance_rate)), p.keys.leg_balance_s))
    if o.motion != MOTION_FREE:
        s.weight = nearer(s.weight, now, slow)
        return 0
    left = sub(now, s.weight)
    left = xyz(beyond(left.x, s.balance_slack.x), beyond(left.y, s.balance_slack.y), beyond(left.z, s.balance_slack.z))
    return FAULT_LEG_FORCES_DIFFER if dot(left, left) > p.keys.leg_balance_n * p.keys.leg_balance_n else 0


cdef int64_t leg_jumps(const Params *p, State *s, const Sample *o, double dt) noexcept nogil:
    """Measured legs that moved faster than legs can since they were fresh last. What is not a number is for others to judge, and so is
    what comes before the setpoints start."""
    cdef int64_t f = 0
    cdef double moved
    cdef int i
    if p.keys.leg_jump <= 0.0:
        return 0
    for i in range(6):
        s.fresh_age[i] += dt
        if o.drive_status[i] & NOT_FRESH or not (fabs(o.measured_leg[i]) < 1e6):
            continue
        moved = fabs(o.measured_leg[i] - s.fresh_leg[i])
        if s.mode != SAFETY_STATE_NOT_ARMED and s.fresh_age[i] > 0.0 and moved > p.keys.leg_jump + 2.0 * p.rate_max * s.fresh_age[i]:
            s.of_axis[i] |= FAULT_LEG_JUMP
            f |= FAULT_LEG_JUMP
        s.fresh_leg[i] = o.measured_leg[i]
        s.fresh_age[i] = 0.0
    return f


cdef int64_t guidance_faults(const Sample *o) noexcept nogil:
    """What the guidance saw."""
    cdef int64_t f = 0
    if o.guidance_fault & GUIDANCE_FAULT_OPERATOR_STOP:
        f |= FAULT_OPERATOR_STOP
    if o.guidance_fault & GUIDANCE_FAULT_HAND_CONTROLLER_STALE:
        f |= FAULT_HAND_CONTROLLER_STALE
    if o.guidance_fault & GUIDANCE_FAULT_PROGRAMME_NOT_REACHED:
        f |= FAULT_PROGRAMME_NOT_REACHED
    if o.guidance_fault & GUIDANCE_FAULT_RECORD_LOST:
        f |= FAULT_RECORD_LOST
    if o.guidance_fault & GUIDANCE_FAULT_RECORD_REQUIRED:
        f |= FAULT_RECORD_REQUIRED
    if o.guidance_fault & GUIDANCE_FAULT_HOLD_TOUCHES:
        f |= FAULT_HOLD_TOUCHES
    if o.guidance_fault & GUIDANCE_FAULT_SEQUENCE_INTERVAL:
        f |= FAULT_SEQUENCE_INTERVAL
    return f


cdef int64_t motion_faults(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Reach, singularity, following error, dynamics, compensator, loop and supervisor."""
    cdef int64_t f = 0
    cdef int i
    # where a leg should be by now: the setpoint less what the drive is expected to lag behind; after a stall the drives stand
    cdef double lag = p.drive_lag if o.periods == 1 else 0.0
    for i in range(6):
        o.following_error[i] = s.leg[i] - s.rate[i] * lag - o.measured_leg[i]
        if fabs(o.following_error[i]) <= p.keys.following_max:  # a length that is not a number is no length that follows
            s.following_time[i] = 0.0
        else:
            # the time before the tick that first shows the error is not counted
            s.following_time[i] += dt if s.following_time[i] > 0.0 else p.period
        # a leg whose power was taken stays behind its setpoint: no further fault
        if s.following_time[i] > p.keys.following_time and (p.power == POWER_NONE or not s.blocked >> i & 1):
            f |= FAULT_FOLLOWING_ERROR
            s.of_axis[i] |= FAULT_FOLLOWING_ERROR
        if not (o.leg_demand[i] >= p.leg_min[i] + p.keys.stroke_reserve and o.leg_demand[i] <= p.leg_max[i] - p.keys.stroke_reserve):
            f |= FAULT_STROKE_LIMIT
        if not (fabs(o.leg_demand[i]) < 1e6) or not (fabs(o.leg_rate_demand[i]) < 1e6):
            f |= FAULT_SETPOINT_NOT_FINITE
    if o.setpoint_kinematics_status & SETPOINT_KINEMATICS_STATUS_OUT_OF_REACH:
        f |= FAULT_WORKSPACE
    if o.setpoint_kinematics_status & SETPOINT_KINEMATICS_STATUS_NEAR_SINGULAR or not (o.condition <= p.keys.condition_max):
        f |= FAULT_NEAR_SINGULAR
    if o.setpoint_kinematics_status & SETPOINT_KINEMATICS_STATUS_NOT_FINITE:
        f |= FAULT_SETPOINT_NOT_FINITE
    if o.forward_kinematics_status & (FORWARD_KINEMATICS_STATUS_NOT_CONVERGED | FORWARD_KINEMATICS_STATUS_NEAR_SINGULAR):
        f |= FAULT_PLATFORM_UNKNOWN
    if o.dynamics_status & (DYNAMICS_STATUS_NOT_FINITE | DYNAMICS_STATUS_OUT_OF_RANGE | DYNAMICS_STATUS_JOINT_ENERGY):
        f |= FAULT_DIVERGENCE
    if o.dynamics_status & DYNAMICS_STATUS_OVERLOAD:
        f |= FAULT_ARM_OVERLOAD
    if o.control_status & CONTROL_STATUS_FAILED:
        f |= FAULT_CONTROL_FAILED
    if o.compensation_status & COMPENSATION_STATUS_CLIPPED:
        f |= FAULT_COMPENSATOR_CLIPPED
    if o.periods > p.keys.skipped_periods_max:
        f |= FAULT_LOOP_OVERRUN
    if o.supervisor_age_ns > p.supervisor_ns:
        f |= FAULT_SUPERVISOR_SILENT
    return f


cdef inline double contact_power(const Sample *o, Twist V_TA) noexcept nogil:
    """Power that the active unit puts into the contact: wrench at T times the relative twist of the point of A at T's origin."""
    cdef Wrench F = wrench(o.F_T_corrected)
    return dot(F.f, sub(V_TA.v, cross(V_TA.w, vec(o.X_TA)))) + dot(F.m, V_TA.w)


cdef inline void forget_work(State *s) noexcept nogil:
    """The model's motion is not its own: no work counts, none is kept from before."""
    cdef int i
    s.in_contact = 0
    s.work = 0.0
    for i in range(LEVELS):
        s.quiet_work[i] = 0.0
        s.quiet_age[i] = 0.0
        s.quiet_mean[i] = s.drift


cdef inline void keep_quiet_work(State *s, double force, double dt) noexcept nogil:
    """For each level of force: the work done until it was last not exceeded, and how long ago that is."""
    cdef double level = LOWEST_LEVEL
    cdef int i
    for i in range(LEVELS):
        if force <= level:
            s.quiet_work[i] = s.work
            s.quiet_age[i] = 0.0
            s.quiet_mean[i] = s.drift
        else:
            s.quiet_age[i] += dt
        level *= 2.0


cdef inline double begin_contact(State *s, double force) noexcept nogil:
    """The threshold notices a contact with `force`: the work that it has done up to now, and what it has to fall to.

    The contact began when the force was last below a small share of that: a level of 1/16...1/8 of it, which leaves 1.6 % of the work
    below the threshold uncounted at most (work goes with the square of a spring's force). Where the force has not been that low for
    APPROACH_TIME (a threshold in the noise, or beside a wrong tare) the beginning is not known: nothing is added, before or after.
    """
    cdef double level = LOWEST_LEVEL
    cdef int i = 0
    while i + 1 < LEVELS and 2.0 * level <= QUIET_SHARE * force:
        level *= 2.0
        i += 1
    s.in_contact = 1
    s.noticed_time = 0.0
    s.free_force = level
    s.free_mean = s.quiet_mean[i]
    if s.quiet_age[i] <= APPROACH_TIME:
        return s.work - s.quiet_work[i]
    s.free_force = 1e300
    return 0.0


cdef inline bint contact_is_over(State *s, const Sample *o, double dt) noexcept nogil:
    """The threshold has lost it, and its force has died away; which takes no longer than the contact has lasted, nor than APPROACH_TIME."""
    # latched units stay in contact however small the force: their springs give back what this contact has put in
    if o.contact or o.mechanism_state & MECHANISM_SIGNAL_DSG:
        s.noticed_time += dt
        s.lost_time = 0.0
        return False
    s.lost_time += dt
    return norm(sub(vec(o.F_T_corrected), s.free_mean)) <= s.free_force or s.lost_time > s.noticed_time or s.lost_time > APPROACH_TIME


cdef int64_t energy_faults(const Params *p, State *s, Sample *o, double dt) noexcept nogil:
    """Energy that the contact has given the model, against the energy of the free motion before it.

    Only the work of the contact wrench counts, at the simulated port: as the compensator has corrected it, for that is what moves the
    model. Thrust may add energy during a contact, the contact may not. The model takes the force of a tick for the whole step before its
    new state: force of the tick times mean velocity of the step is the change of its kinetic energy exactly (the mean of two ticks' forces,
    hybrid-stability notes 5.4 (5), is half a tick late: 1 % of gain at 1 Hz and 1 kHz, 10 % at 10 Hz).

    The contact is noticed at a threshold and lost at another; below them its force has worked, too. What it did before is added when it
    is noticed (`begin_contact`), and counting continues after the threshold has lost it until the force has died away (`contact_is_over`).
    Force means here what is over the mean force of the free motion: a wrong tare counts for no contact, and noise works only while one
    lasts. The energy before is the kinetic energy less that work.

    Judged is what the work is above that which the docking unit's springs and drives may have given by now (`unit_energy_ratio`); the
    logged work and ratio are the whole.
    """
    cdef int64_t f = 0
    cdef Twist V_TA = twist(o.V_TA)
    cdef Twist V_mean = twist_scaled(0.5, twist_sum(s.V_previous, V_TA))
    cdef double work, force, ahead, given
    s.V_previous = V_TA
    if o.motion != MOTION_FREE:
        forget_work(s)
        unit_begin(&p.unit, &s.unit, o)
        return 0
    work = -contact_power(o, V_mean) * dt
    s.work += work
    force = norm(sub(vec(o.F_T_corrected), s.drift))
    if s.in_contact:
        o.contact_work += work
    elif o.contact:
        o.contact_work = begin_contact(s, force)
        s.energy_at_start = o.kinetic_energy - o.contact_work
    keep_quiet_work(s, force, dt)
    given = unit_may_give(&p.unit, &s.unit, o, o.contact_work if s.in_contact else 0.0, dt)
    if not s.in_contact:
        return 0
    if s.energy_at_start > p.keys.energy_floor:
        o.contact_energy_ratio = 1.0 + o.contact_work / s.energy_at_start
        o.unit_energy_ratio = given = given / s.energy_at_start
        # where the next tick would lead at this power: the trip comes before the limit is passed
        ahead = o.contact_energy_ratio - contact_power(o, V_TA) * dt / s.energy_at_start
        if ahead > 1.0 + p.keys.energy_trip + given:
            f |= FAULT_ENERGY_GAIN
        elif o.contact_energy_ratio > 1.0 + p.keys.energy_warn + given:
            f |= FAULT_ENERGY_WARNING
    if contact_is_over(s, o, dt):
        s.in_contact = 0
        unit_contact_over(&s.unit, o.contact_work)
    return f


# ------------------------------------------------------------------------------------------------------------ the step

cdef inline void trip(State *s, int64_t tick) noexcept nogil:
    """Taken once; only a recovery takes it back. Before the start there is nothing to bring to rest, and no start any more."""
    if s.faults & FAULTS_STOP and not s.tripped:
        s.tripped = 1
        s.trip_tick = tick
        if s.mode == SAFETY_STATE_FOLLOWING:
            s.mode = SAFETY_STATE_DECELERATING


cdef inline uint32_t without_power(const Params *p, State *s, int64_t now) noexcept nogil:
    """Axes that the stop categories of the faults leave without power: `now` those of this tick, beside the latched ones."""
    cdef int64_t off = FAULTS_POWER_OFF
    cdef uint32_t axes = 0
    cdef int i
    if s.mode == SAFETY_STATE_HELD and s.held_time > p.keys.blocking_delay or s.mode == SAFETY_STATE_NOT_ARMED:
        off |= FAULTS_POWER_THEN_OFF
    for i in range(6):
        if s.of_axis[i] & off & OF_ONE_DRIVE:
            axes |= 1u << i
    if (s.faults | now) & off & ~OF_ONE_DRIVE or p.power == POWER_ALL and (axes or s.faults & off):
        axes = ALL_AXES
    return axes


cdef inline void block(const Params *p, State *s, const Sample *o, int64_t now) noexcept nogil:
    """Takes the power off axes after a trip: by the stop categories; where there are blocking valves, of a leg that is behind its setpoint
    at once, of all where drives may not follow some time after the setpoints have come to rest, or when those of a drive are closed without
    us. now: faults of this tick."""
    cdef bint all_axes
    cdef int i
    if s.mode == SAFETY_STATE_HELD:
        s.held_time += p.period * o.periods
    if not s.tripped or s.mode == SAFETY_STATE_FOLLOWING or s.mode == SAFETY_STATE_RECOVERING:
        return
    if p.power != POWER_NONE:
        s.blocked |= without_power(p, s, now)
        if s.blocked == ALL_AXES and s.mode != SAFETY_STATE_NOT_ARMED:
            s.mode = SAFETY_STATE_BLOCKED
    if not p.blocking_valves or not s.faults & MAY_NOT_FOLLOW or s.mode == SAFETY_STATE_NOT_ARMED:
        return
    all_axes = s.held_time > p.keys.blocking_delay
    for i in range(6):
        if o.drive_status[i] & DRIVE_STATUS_HYDRAULICS_BLOCKED and not s.blocked >> i & 1:
            all_axes = True
    for i in range(6):
        if all_axes or s.following_time[i] > p.keys.following_time or o.drive_status[i] & DRIVE_STATUS_FOLLOWING_ERROR:
            s.blocked |= 1u << i
    if all_axes:
        s.mode = SAFETY_STATE_BLOCKED


# ------------------------------------------------------------------------------------------------------------ recovery

cdef void begin_recovery(State *s) noexcept nogil:
    """The command `recover`: from rest after a trip, and where it is recorded. What was counted until now does not count any more."""
    cdef int i
    if not s.tripped or s.faults & NOT_IN_SESSION or not (s.mode == SAFETY_STATE_HELD or s.mode == SAFETY_STATE_BLOCKED):
        return
    s.mode = SAFETY_STATE_RECOVERING
    s.turned_off = s.blocked
    s.blocked = s.enabled = 0
    s.held_time = s.recover_time = s.fresh_time = 0.0
    s.standing = 0
    s.led = 0
    s.sensor_lost.in_a_second = s.sensor_corrupt.in_a_second = 0.0
    for i in range(6):
        s.target[i] = s.leg[i]
        s.drive_lost[i].in_a_second = s.drive_corrupt[i].in_a_second = 0.0
        s.following_time[i] = s.saturated_time[i] = s.excess_time[i] = 0.0


cdef bint left_by_itself(State *s, const Sample *o) noexcept nogil:
    """Whether a drive that has had its power in this recovery is without: what took it may do so again, and its leg may be moving."""
    cdef bint found = False
    cdef int i
    for i in range(6):
        if o.drive_status[i] & NOT_JUDGED:
            continue
        if o.drive_status[i] & WITHOUT_POWER:
            s.turned_off &= ~(1u << i)
            found |= s.enabled >> i & 1
        elif not s.turned_off >> i & 1:
            s.enabled |= 1u << i
    return found


cdef bint runs_away(const Params *p, const State *s, const Sample *o) noexcept nogil:
    """Whether an axis that has its power again, and was where it was sent, leaves it."""
    cdef int i
    for i in range(6):
        if not o.drive_status[i] & (NOT_FRESH | DRIVE_STATUS_NOT_ENABLED | DRIVE_STATUS_HYDRAULICS_BLOCKED) and s.rate[i] == 0.0 \
                and s.following_time[i] > p.keys.following_time:
            return True
    return False


cdef void recover(const Params *p, State *s, const Sample *o, int64_t found, double dt) noexcept nogil:
    """One tick of a recovery. found: the faults of this tick alone; the latched ones stay until it ends."""
    cdef int64_t stop = found & FAULTS_STOP
    cdef bint far[6]
    cdef int i
    for i in range(6):
        far[i] = not (fabs(o.following_error[i]) <= p.keys.following_max)
        # after a jump a length far from the setpoint is no place to lead a leg to: a wrong transducer would move it there
        if far[i]:
            stop |= s.faults & FAULT_LEG_JUMP
    if starts_from_here(o, s.led):
        for i in range(6):
            if far[i] and s.faults & FAULT_LEG_JUMP:
                continue
            # a leg that its drive holds is not sent its own noise, nor after a transducer that disagrees with where it was sent
            if not o.drive_status[i] & (DRIVE_STATUS_NOT_ENABLED | DRIVE_STATUS_HYDRAULICS_BLOCKED) and (s.led or far[i]):
                continue
            # a comparison with a NaN is false
            if not o.drive_status[i] & NOT_FRESH and p.leg_min[i] <= o.measured_leg[i] <= p.leg_max[i]:
                s.target[i] = o.measured_leg[i]
        s.led = 1
    s.recover_time += dt
    if stop:
        s.standing = stop
        s.fresh_time = 0.0
    elif s.led:
        s.fresh_time += dt
    if found & (FAULT_OPERATOR_STOP | NOT_IN_SESSION):
        s.faults |= found
        s.mode = SAFETY_STATE_DECELERATING
    elif s.fresh_time >= p.keys.recover_fresh and s.led:
        s.faults = (s.faults | found) & ~FAULTS_STOP
        s.tripped = 0
        s.mode = SAFETY_STATE_FOLLOWING
        forget_work(s)
        for i in range(6):
            s.demand[i] = o.leg_demand[i]
    elif left_by_itself(s, o) or s.recover_time >= p.keys.recover_limit or p.power != POWER_NONE and runs_away(p, s, o):
        if s.standing:
            s.faults = s.faults & ~FAULTS_STOP | s.standing
        s.mode = SAFETY_STATE_DECELERATING


cdef uint32_t next_frame(const Params *p, State *s, const Sample *o) noexcept nogil:
    """Setpoints of this tick, moved by one period's worth however many have passed. Returns the clip bits."""
    cdef uint32_t clipped = 0
    cdef int i
    if s.mode == SAFETY_STATE_FOLLOWING:
        for i in range(6):
            clipped |= follow_leg(p, s, i, o.leg_demand[i] if o.phase != PHASE_IDLE else s.leg[i], o.periods)
            s.excess_time[i] = s.excess_time[i] + p.period if clipped & SETPOINT_STATUS_RATE1 << i else 0.0
            if s.excess_time[i] > p.keys.rate_excess:
                s.faults |= FAULT_RATE_LIMIT
        if clipped & SETPOINT_STATUS_ACCELERATION:
            s.faults |= FAULT_ACCELERATION_LIMIT
    elif s.mode == SAFETY_STATE_DECELERATING:
        if brake_legs(p, s):
            s.mode = SAFETY_STATE_HELD
    elif s.mode == SAFETY_STATE_BLOCKED:
        brake_legs(p, s)
    elif s.mode == SAFETY_STATE_RECOVERING:
        if not lead_legs(p, s):
            s.fresh_time = 0.0
    return clipped


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double dt = p.period * sample.periods
    cdef int64_t found
    cdef int i
    found = sensor_faults(p, s, sample) | drive_faults(p, s, sample) | hydraulic_faults(p, s, sample, dt) | guidance_faults(sample)
    found |= chain_faults(p, s, sample, dt) | leg_jumps(p, s, sample, dt)
    s.counting = 1
    # setpoints start where the legs are; after a trip they do not start any more
    if s.mode == SAFETY_STATE_NOT_ARMED and not s.tripped and not ((s.faults | found) & FAULTS_STOP) \
            and not s.chain & CHAIN_STATE_PROOF_ASKED:
        found |= start_legs(p, s, sample, dt)
    if s.mode != SAFETY_STATE_NOT_ARMED and sample.phase != PHASE_IDLE:
        found |= wrench_faults(p, s, sample) | motion_faults(p, s, sample, dt) | energy_faults(p, s, sample, dt)
        found |= course_faults(p, s, sample, dt) | balance_faults(p, s, sample, dt)
    if s.mode == SAFETY_STATE_RECOVERING:
        recover(p, s, sample, found, dt)
    else:
        s.faults |= found
    trip(s, sample.tick)
    block(p, s, sample, found)
    if sample.command_code == COMMAND_RECOVER:
        begin_recovery(s)
    sample.setpoint_status = next_frame(p, s, sample) | s.blocked * SETPOINT_STATUS_BLOCKED1
    trip(s, sample.tick)
    for i in range(6):
        if s.mode == SAFETY_STATE_NOT_ARMED:
            # what the drive reports, for the record
            s.leg[i] = sample.measured_leg[i] if fabs(sample.measured_leg[i]) < 1e6 else 0.0
        sample.leg_setpoint[i] = s.leg[i]
        sample.leg_rate_setpoint[i] = s.rate[i]
    if s.blocked != ALL_AXES and sample.periods <= p.keys.skipped_periods_max:
        s.watchdog += 1
    sample.faults = s.faults
    sample.trip_tick = s.trip_tick
    sample.safety_state = s.mode
    sample.chain_state = s.chain
    sample.watchdog = s.watchdog


cdef _room_for_rounding(const Params *p):
    """Raises ValueError where rounding could eat what braking leaves: a^2 >= 32 u ((v_max + a)^2 + d (H + v_max T)), see the docstring."""
    cdef double a = p.braking_step
    cdef double H = 0.0
    cdef int i
    for i in range(6):
        H = max(H, fabs(p.leg_min[i]), fabs(p.leg_max[i]))
    least = 32.0 * 2.0**-53 * ((p.rate_max + a) ** 2 + p.keys.braking * (H + p.rate_max * p.period))
    if not a * a >= least:
        raise ValueError(f"safety.braking_m_s2: {p.keys.braking} m/s2 at a period of {p.period} s is lost in rounding beside legs of {H} m "
                         f"at {p.rate_max} m/s: at least {least**0.5 / p.period:.1e} m/s2")


cdef class SafetyLimits(StagePart):
    """Limits, faults and trip. Software limits on the wrench must lie below the thresholds of the analogue chain."""

    PARAMETERS = (
        Parameter("braking_m_s2", "float", "m/s2", "deceleration of a trip", 4.0, low=0.01, high=100.0, stricter="higher"),
        Parameter("stroke_reserve_m", "float", "m", "a demand nearer to a stroke end is a fault", 0.01, low=0.0, high=1.0,
                  stricter="higher"),
        Parameter("following_max_m", "float", "m", "following error", 0.02, low=1e-5, high=1.0,
                  tunable=Tunable(0.02, low=1e-3, of_configured=1.0), stricter="lower"),
        Parameter("following_time_s", "float", "s", "following error for this long", 0.05, low=0.0, high=10.0, stricter="lower"),
        Parameter("rate_excess_s", "float", "s", "demand beyond the rate limit for this long", 0.05, low=0.0, high=10.0,
                  stricter="lower"),
        Parameter("condition_max", "float", "-", "condition number of the scaled Jacobian", 30.0, low=1.0, high=1e6, stricter="lower"),
        Parameter("drift_max_n", "float", "N", "mean force without contact that raises a warning", 0.5, low=0.0, high=1e4,
                  stricter="lower"),
        Parameter("drift_time_s", "float", "s", "averaging time of the drift warning", 1.0, low=0.01, high=100.0, stricter="lower"),
        Parameter("tare_max_n", "float", "N", "mean force before the loop is closed that trips; 0: not judged", 10.0, low=0.0, high=1e4,
                  stricter="equal"),
        Parameter("leg_jump_m", "float", "m", "a measured leg this far beyond what its rate limit explains; 0: not judged", 0.005, low=0.0,
                  high=1.0, stricter="equal"),
        Parameter("apart_m", "float", "m", "a contact this far before the nominal first contact is none; 0: not judged", 0.03, low=0.0,
                  high=10.0, stricter="equal"),
        Parameter("course_force_n", "floats", "N", "of the prediction: least axial force when the units are this deep in each other for "
                  "the first time, one number a course_step_m; none: not judged", None, low=0.0, high=1e7, stricter="higher"),
        Parameter("captured_force_n", "floats", "N", "the same, once the signal of capture has come", None, low=0.0, high=1e7,
                  stricter="higher"),
        Parameter("pulled_force_n", "floats", "N", "the same of the pull, by the way out from the end of captured_force_n", None, low=0.0,
                  high=1e7, stricter="higher"),
        Parameter("course_aside_m", "floats", "m", "of the prediction: greatest distance of the ports across the axis at each depth", None,
                  low=0.0, high=100.0, stricter="lower"),
        Parameter("course_step_m", "float", "m", "depth between two of them", None, low=1e-5, high=1.0, stricter="lower"),
        Parameter("course_share", "float", "-", "less than this share of it is a fault", 0.75, low=0.0, high=1.0, stricter="higher"),
        Parameter("predicted_force_n", "float", "N", "of the prediction: greatest contact force; none: not judged", None, low=1e-3,
                  high=1e7, stricter="lower"),
        Parameter("predicted_share", "float", "-", "more than this share of it is a fault (never below 200 N)", 1.2, low=1.0, high=10.0,
                  stricter="lower"),
        Parameter("leg_balance_n", "float", "N", "force by which the legs and the load cell may differ in the closed loop, where drives "
                  "say their forces; 0: not judged", 0.0, low=0.0, high=1e7, stricter="equal"),
        Parameter("leg_balance_s", "float", "s", "averaging time of this difference", 0.05, low=1e-3, high=10.0, stricter="equal"),
        Parameter("moved_mass_kg", "float", "kg", "what the legs move, for this difference: platform, carried unit, rods", 0.0, low=0.0,
                  high=1e7, stricter="equal"),
        Parameter("leg_friction_n", "float", "N", "friction of a leg that slides, for this difference", 0.0, low=0.0, high=1e6,
                  stricter="equal"),
        Parameter("leg_stiction_n", "float", "N", "friction of a leg that rests, at most, for this difference", 0.0, low=0.0, high=1e6,
                  stricter="equal"),
        Parameter("leg_viscous_n_s_per_m", "float", "N.s/m", "friction of a leg that grows with its rate, for this difference", 0.0,
                  low=0.0, high=1e8, stricter="equal"),
        Parameter("energy_warn", "float", "-", "energy gain of a contact that raises a warning", 0.05, low=0.0, high=10.0,
                  stricter="lower"),
        Parameter("energy_trip", "float", "-", "energy gain of a contact that trips (0.21 is a rebound of 1.1)", 0.2, low=0.0, high=1e6,
                  tunable=Tunable(0.5, low=0.01, of_configured=1.0), stricter="lower"),
        Parameter("energy_floor_j", "float", "J", "contacts with less energy are not judged", 0.05, low=0.0, high=1e6, stricter="lower"),
        Parameter("supervisor_s", "float", "s", "silence of the supervisor", 5.0, low=0.1, high=60.0, stricter="lower"),
        Parameter("skipped_periods_max", "int", "-", "periods skipped at once that trip", 50, low=1, high=10000, stricter="lower"),
        Parameter("damaged_max_per_s", "float", "1/s", "lost, or damaged, records in a second that are tolerated", 5.0, low=0.0, high=1e4,
                  stricter="lower"),
        Parameter("drive_lost_max_per_s", "float", "1/s", "answers of a drive missing in a second that are tolerated", 5.0, low=0.0,
                  high=1e4, stricter="lower"),
        Parameter("arming_s", "float", "s", "legs that cannot be started from for this long are a fault", 0.5, low=0.0, high=60.0,
                  stricter="lower"),
        Parameter("valve_end", "float", "-", "a spool beyond this share of its way is at its end", 0.98, low=0.1, high=1.0,
                  stricter="lower"),
        Parameter("valve_saturated_s", "float", "s", "a servo valve at its end for this long", 0.1, low=0.0, high=10.0, stricter="lower"),
        Parameter("blocking_delay_s", "float", "s", "resting setpoints of drives that may not follow, before their blocking valves close",
                  0.08, low=0.0, high=1.0, stricter="equal"),
        Parameter("recover_fresh_s", "float", "s", "a recovery asks for so long without a stop fault before motion is let go", 0.5,
                  low=0.01, high=60.0, stricter="higher"),
        Parameter("recover_limit_s", "float", "s", "a recovery that has not come to that is given up after so long", 2.0, low=0.1,
                  high=60.0, stricter="lower"),
        Parameter("sensor_missing_periods", "int", "-", "periods without a sensor record that trip", 1, low=1, high=1000,
                  stricter="lower"),
        Parameter("drive_missing_periods", "int", "-", "periods without a drive's answer that trip", 3, low=1, high=1000,
                  stricter="lower"),
        Parameter("signals_missing_periods", "int", "-", "periods without the mechanism's signals that trip", 3, low=1, high=1000,
                  stricter="lower"),
    )
    CONTEXT = ("period_s", "platform", "delays", "limits", "mechanism", "start", "mounting")
    cdef Self c

    def __init__(self, *, period_s, platform, delays, limits, mechanism=None, start=None, mounting=None, **given):
        cdef Params *p = &self.c.params
        cdef Mounting hung
        cdef int i
        keys = checked(SafetyLimits.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        fill_safety_limits(&p.keys, keys)
        p.period = period_s
        cdef Platform legs = platform
        for i in range(6):
            p.leg_min[i], p.leg_max[i] = legs.params.length_min[i], legs.params.length_max[i]
        if keys["braking_m_s2"] > legs.params.acceleration_max:
            raise ValueError(f"safety.braking_m_s2: {keys['braking_m_s2']} m/s2 is above the legs' limit, "
                             f"{legs.params.acceleration_max} m/s2")
        p.rate_max, p.rate_step = legs.params.rate_max, legs.params.acceleration_max * period_s
        p.braking_step = p.keys.braking * period_s
        p.closing = 0.5 * legs.params.acceleration_max
        p.closing_step = p.closing * period_s
        _room_for_rounding(p)
        # where the platform is parked
        neutral = np.empty(6)
        cdef double[::1] parked = neutral
        leg_lengths(&legs.params, legs.params.neutral, &parked[0])
        for i in range(6):
            p.start_leg[i] = parked[i] if limits.start_leg_m is None else limits.start_leg_m[i]
            if not p.leg_min[i] <= p.start_leg[i] <= p.leg_max[i]:
                raise ValueError(f"stand.limits.start_leg_m[{i}]: {p.start_leg[i]} m is outside the stroke, "
                                 f"{p.leg_min[i]}...{p.leg_max[i]} m")
        p.start_tolerance = limits.start_tolerance_m
        p.drive_lag = delays.drive_lag_s + delays.measured_leg_delay_s
        for i in range(3):
            p.force_max[i], p.moment_max[i] = limits.force_limit_n[i], limits.moment_limit_n_m[i]
        fill_unit_energy(getattr(mechanism, "gives", None), &p.unit)
        p.leg_force_max, p.supply_min = legs.params.force_max, limits.supply_pressure_min_pa
        p.blocking_valves = limits.blocking_valves
        p.supervisor_ns = <int64_t>(p.keys.supervisor * 1e9)
        if not p.keys.recover_fresh < p.keys.recover_limit:
            raise ValueError(f"safety.recover_limit_s: {p.keys.recover_limit} s leaves no room for recover_fresh_s = "
                             f"{p.keys.recover_fresh} s: must be longer")
        p.keys.apart, p.contact_x = (0.0, 0.0) if start is None else (p.keys.apart, start.X_TA[0])
        p.course_step = keys["course_step_m"] or 0.0
        for which, key in enumerate(("course_force_n", "captured_force_n", "pulled_force_n")):
            course = keys[key] or ()
            if course and keys["course_step_m"] is None:
                raise ValueError(f"safety.{key}: needs course_step_m, the depth between two of its numbers")
            if len(course) > COURSE_POINTS:
                raise ValueError(f"safety.{key}: {len(course)} numbers, limit {COURSE_POINTS}: a larger course_step_m")
            p.course_points[which] = len(course) if start is not None else 0
            for i in range(p.course_points[which]):
                p.course[which][i] = course[i]
            p.course_floor[which] = min(max(0.25 * max(course, default=0.0), COURSE_LEAST), COURSE_MOST)
        aside_m = keys["course_aside_m"] or ()
        if aside_m and (keys["course_step_m"] is None or len(aside_m) > COURSE_POINTS):
            raise ValueError(f"safety.course_aside_m: needs course_step_m, and at most {COURSE_POINTS} numbers (has {len(aside_m)})")
        p.aside_points = len(aside_m) if start is not None else 0
        for i in range(p.aside_points):
            p.aside[i] = aside_m[i]
        if keys["predicted_force_n"] is not None:
            p.force_predicted = max(keys["predicted_share"] * keys["predicted_force_n"], PREDICTED_FLOOR)
        if mounting is None:
            p.keys.leg_balance_n = 0.0
        else:
            fill_mounting(&hung, mounting)
            p.target_fixed = hung.target_fixed
            p.X_PM, p.X_WF = pose(hung.X_PM), pose(hung.X_WF)
        p.platform = legs.params
        if p.keys.leg_stiction < p.keys.leg_friction:
            raise ValueError(f"safety.leg_stiction_n: {p.keys.leg_stiction} N is below leg_friction_n = {p.keys.leg_friction} N: "
                             "a leg that rests holds at least what one that slides does")
        p.power = {"none": POWER_NONE, "axis": POWER_AXIS, "all": POWER_ALL}[limits.power_off]
        p.emergency_stop, p.guard, p.hydraulic_unit = limits.emergency_stop, limits.guard, limits.hydraulic_unit
        p.discrepancy, p.proof_test = limits.discrepancy_s, limits.proof_test
        if p.proof_test and not (p.emergency_stop or p.guard):
            raise ValueError("stand.limits.proof_test: there is no input with two channels to test: set emergency_stop or guard")
        for i in range(6):
            self.c.state.fresh_age[i] = -1e300
        self.c.state.push.furthest = -p.keys.apart
        self.c.state.trip_tick = -1
        self.c.state.mode = SAFETY_STATE_NOT_ARMED
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        # supervision may only become stricter while it runs
        tune_safety_limits(self, &p.keys, keys)

    def state_bounds(self):
        counts = ("sensor_lost", "sensor_corrupt", "drive_lost", "drive_corrupt")
        flags = ("unit.started", "counting", "in_contact", "tripped", "led", "weighed", "captured")
        words = ("standing", "faults", "of_axis")
        return ({f"{name}.total": COUNT for name in counts} | {name: FLAG for name in flags} | {name: (0, 2**63 - 1) for name in words}
                | {f"{name}_silent": COUNT for name in ("sensor", "signals", "drive")}
                | {name: WORD for name in ("blocked", "enabled", "turned_off", "chain", "watchdog")}
                | {"trip_tick": (-1, COUNT[1]), "mode": code_range("safety_state"), "good_ticks": COUNT_32})

    def fields(self):
        return self.c

    def move(self, legs, rates, wanted):
        """One frame of leg 0 from each state: lengths, rates, wanted rates, shape (n,). Returns (lengths, rates, clip bits)."""
        cdef State s
        cdef const double[::1] y = np.ascontiguousarray(legs, np.float64), v = np.ascontiguousarray(rates, np.float64)
        cdef const double[::1] w = np.ascontiguousarray(wanted, np.float64)
        out = np.empty((2, y.shape[0]))
        bits = np.empty(y.shape[0], np.uint32)
        cdef double[:, ::1] o = out
        cdef uint32_t[::1] b = bits
        cdef Py_ssize_t k
        for k in range(y.shape[0]):
            s.leg[0], s.rate[0] = y[k], v[k]
            b[k] = move_leg(&self.c.params, &s, 0, w[k])
            o[0, k], o[1, k] = s.leg[0], s.rate[0]
        return out[0], out[1], bits

    def follow(self, legs, rates, demands, demands_before, periods):
        """One frame of leg 0 towards each demand; arrays of shape (n,). Returns (lengths, rates, clip bits)."""
        cdef State s
        cdef const double[::1] y = np.ascontiguousarray(legs, np.float64), v = np.ascontiguousarray(rates, np.float64)
        cdef const double[::1] w = np.ascontiguousarray(demands, np.float64), w_before = np.ascontiguousarray(demands_before, np.float64)
        cdef const int[::1] n = np.ascontiguousarray(periods, np.intc)
        out = np.empty((2, y.shape[0]))
        bits = np.empty(y.shape[0], np.uint32)
        cdef double[:, ::1] o = out
        cdef uint32_t[::1] b = bits
        cdef Py_ssize_t k
        for k in range(y.shape[0]):
            s.leg[0], s.rate[0], s.demand[0] = y[k], v[k], w_before[k]
            b[k] = follow_leg(&self.c.params, &s, 0, w[k], n[k])
            o[0, k], o[1, k] = s.leg[0], s.rate[0]
        return out[0], out[1], bits

    def brake(self, legs, rates):
        """One frame of a trip from each state: lengths and rates of shape (n, 6). Returns (lengths, rates, at rest)."""
        cdef State s
        cdef const double[:, ::1] y = np.ascontiguousarray(legs, np.float64), v = np.ascontiguousarray(rates, np.float64)
        out = np.empty((2, y.shape[0], 6))
        rest = np.empty(y.shape[0], np.uint8)
        cdef double[:, :, ::1] o = out
        cdef unsigned char[::1] r = rest
        cdef Py_ssize_t k
        cdef int i
        for k in range(y.shape[0]):
            for i in range(6):
                s.leg[i], s.rate[i] = y[k, i], v[k, i]
            r[k] = brake_legs(&self.c.params, &s)
            for i in range(6):
                o[0, k, i], o[1, k, i] = s.leg[i], s.rate[i]
        return out[0], out[1], rest.astype(bool)

    @property
    def constants(self):
        """Constants of the setpoint formulas, the names of `Params`; stroke ends of leg 0."""
        p = &self.c.params
        return {"period": p.period, "leg_min": p.leg_min[0], "leg_max": p.leg_max[0], "rate_max": p.rate_max, "rate_step": p.rate_step,
                "braking": p.keys.braking, "braking_step": p.braking_step, "closing": p.closing, "closing_step": p.closing_step}
