"""Physics of the virtual stand.

One step of dt (50 us by default):

1. setpoints that are due reach the drives (transport delay, zero-order hold);
2. drives: y'' = w^2 (u - y) + 2 zeta w (k_v u' - y'), exactly over the step while no limit acts, else semi-implicitly with dead band,
   rate and acceleration limits; an ideal drive is y = u;
   A loaded machine (`machine = "hydraulic"`: drivers.simulated.hydraulic_machine) takes the place of steps 2 and 3: its legs move the
   platform against weight, inertia and the contact wrench of the step before (at the new pose: a symplectic pair);
3. platform: one chord step of the forward kinematics with the inverse Jacobian, which is made again every 20 steps, where a full Newton
   solution also takes away what the chord steps have left;
4. mechanism between the two ports, with the relative pose and twist that the mounting gives;
5. wrench on the load cell: contact, weight and (on a moving platform) inertia of the carried unit, kept for the sensor's delay; and what
   accelerometers on the carried unit feel.

Where the stand has elastic bodies (structure.pyx), they move between 3 and 4 and carry the ports; the load cell is the spring of what
hangs on it, and a loaded machine feels what its platform carries on springs.

The default drive, second order 13.25 Hz, zeta 0.784, has -2 dB and -70 degrees at 10 Hz: what hydraulic docking stands are built to
(hybrid-stability notes 0.3). Noise is a sum of twelve uniform numbers of a xorshift generator: the same on every machine.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport fabs, floor
from libc.string cimport memcpy, memset

import numpy as np

from drivers.simulated.hydraulic_machine cimport (HydraulicMachine, MACHINE_SINGULAR, hydraulic_advance, hydraulic_blocked,
                                                  hydraulic_inject, hydraulic_supply_low)
from drivers.simulated.injections cimport *
from drivers.simulated.plant_parameters cimport fill_plant, fill_transducer
from rt_kernels.algebra.values cimport (Pose, Vec3, Wrench, apply, cross, mul, pose, pose_of, put_pose, put_twist, put_wrench,
                                        quat_multiply, rotate, rotate_back, wrench, wrench_of, wrench_sum, wrench_to_parent)
from rt_kernels.codes cimport (ANALOGUE_CHAIN_HEALTHY, ANALOGUE_CHAIN_HYDRAULICS_BLOCKED, ANALOGUE_CHAIN_TRIPPED,
                               DRIVE_STATUS_HYDRAULICS_BLOCKED, DRIVE_STATUS_SUPPLY_LOW, DRIVE_STATUS_VALVE_SATURATED,
                               MECHANISM_STATUS_OUT_OF_RANGE)
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart
from drivers.simulated.structure cimport (BASE, CELL, Motion, fill_structure, structure_acceleration, structure_advance, structure_cell,
                                          structure_forces, structure_relative, structure_rest, structure_state)
from rt_kernels.stewart.mounting cimport fill_mounting, relative_pose, relative_twist
from rt_kernels.stewart.platform cimport (Platform, forward, forward_chord, inverse_jacobian, leg_lengths)

from drivers.simulated.hydraulic_machine import HYDRAULIC_PARAMETERS
from drivers.simulated.structure import STRUCTURE_PARAMETERS
from rt_kernels.block_check import COUNT, WORD
from rt_kernels.parameters import Parameter, checked

cdef enum:
    JACOBIAN_EVERY = 20

cdef double BRAKE = 10.0        # m/s2, of a linear drive without power


# -------------------------------------------------------------------------------------------------------------- noise

cdef inline uint64_t next_random(uint64_t *state) noexcept nogil:
    # xorshift64* (Marsaglia 2003; Vigna 2016)
    cdef uint64_t x = state[0]
    x ^= x >> 12
    x ^= x << 25
    x ^= x >> 27
    state[0] = x
    return x * <uint64_t>2685821657736338717ULL


cdef inline double normal_noise(uint64_t *state) noexcept nogil:
    """Mean 0, variance 1: twelve uniform numbers of 16 bits, less 6."""
    cdef uint64_t r
    cdef double sum = 0.0
    for _ in range(3):
        r = next_random(state)
        sum += <double>(r & 0xFFFF) + <double>((r >> 16) & 0xFFFF) + <double>((r >> 32) & 0xFFFF) + <double>(r >> 48)
    return sum / 65536.0 - 6.0 + 6.0 / 65536.0


# -------------------------------------------------------------------------------------------------------------- drives

cdef inline double clip(double x, double limit) noexcept nogil:
    return -limit if x < -limit else (limit if x > limit else x)


cdef inline void advance_drive(const DriveParams *d, double u, double u_rate, double dt, double *y, double *v) noexcept nogil:
    cdef double e, a, y0
    if d.frequency == 0.0:
        v[0] = u_rate
        y[0] = u
        return
    if d.exact:
        y0 = y[0] - u
        e = d.a[0] * y0 + d.a[1] * v[0] + d.b_rate[0] * u_rate
        v[0] = d.a[2] * y0 + d.a[3] * v[0] + d.b_rate[1] * u_rate
        y[0] = u + e
        return
    # dead band on the error, then acceleration and rate limits
    e = u - y[0]
    if fabs(e) <= d.dead_band:
        e = 0.0
    elif e > 0.0:
        e -= d.dead_band
    else:
        e += d.dead_band
    a = d.frequency * d.frequency * e + 2.0 * d.damping * d.frequency * (d.feedforward * u_rate - v[0])
    v[0] = clip(v[0] + clip(a, d.acceleration_max) * dt, d.rate_max)
    y[0] += v[0] * dt


cdef inline void take_setpoints(PlantState *s) noexcept nogil:
    """What has arrived at the drives."""
    cdef TargetEntry *entry
    while s.queue_tail < s.queue_head and s.queue[s.queue_tail % TARGET_QUEUE].due <= s.step:
        entry = &s.queue[s.queue_tail % TARGET_QUEUE]
        memcpy(s.input_leg, entry.leg, sizeof(entry.leg))
        memcpy(s.input_rate, entry.rate, sizeof(entry.rate))
        s.queue_tail += 1


cdef void advance_drives(const PlantParams *p, PlantState *s) noexcept nogil:
    cdef int i
    cdef double before
    for i in range(6):
        if (s.stuck >> i) & 1 or s.chain & ANALOGUE_CHAIN_HYDRAULICS_BLOCKED:
            # a blocked leg stands
            s.leg_rate[i] = 0.0
            continue
        before = s.leg[i]
        if (s.unpowered >> i) & 1:
            # the brake stops, it does not push
            s.leg_rate[i] -= clip(s.leg_rate[i], BRAKE * p.dt)
            s.leg[i] += s.leg_rate[i] * p.dt
            continue
        if (s.runs >> i) & 1:
            s.leg_rate[i] = s.run_rate[i]
            s.leg[i] += s.leg_rate[i] * p.dt
            continue
        advance_drive(&p.drive[i], s.input_leg[i], s.input_rate[i], p.dt, &s.leg[i], &s.leg_rate[i])
        if s.slow[i] < 1.0:
            s.leg[i] = before + s.slow[i] * (s.leg[i] - before)
            s.leg_rate[i] *= s.slow[i]


# ------------------------------------------------------------------------------------------------------------ platform

cdef void advance_platform(const PlantParams *p, PlantState *s) noexcept nogil:
    cdef int i, j
    cdef double sum
    if s.step >= s.jacobian_step:
        # a full solution now and then; between them the chord is good to a nanometre
        if forward(&p.platform, s.leg, s.X_WP, 3) != 0:
            s.status |= PLANT_LEGS_DO_NOT_CLOSE
        if inverse_jacobian(&p.platform, s.X_WP, s.J_inverse) != 0:
            s.status |= PLANT_SINGULAR
        s.jacobian_step = s.step + JACOBIAN_EVERY
    else:
        forward_chord(&p.platform, s.leg, s.J_inverse, s.X_WP)
    for i in range(6):
        sum = 0.0
        for j in range(6):
            sum += s.J_inverse[6 * i + j] * s.leg_rate[j]
        s.A_WP[i] = (sum - s.V_WP[i]) / p.dt
        s.V_WP[i] = sum


# ------------------------------------------------------------------------------------------------------ loaded machine

cdef void advance_machine(Plant *plant) noexcept nogil:
    """A step of the machine with the setpoints that have arrived and the wrench of `load_machine`."""
    cdef PlantState *s = &plant.state
    memcpy(plant.machine.state.target, s.input_leg, sizeof(s.input_leg))
    memcpy(plant.machine.state.target_rate, s.input_rate, sizeof(s.input_rate))
    plant.machine.state.blocked = s.chain & ANALOGUE_CHAIN_HYDRAULICS_BLOCKED
    hydraulic_advance(plant.machine)
    memcpy(s.leg, plant.machine.state.legs.length, sizeof(s.leg))
    memcpy(s.leg_rate, plant.machine.state.leg_rate, sizeof(s.leg_rate))
    memcpy(s.X_WP, plant.machine.state.X_WP, sizeof(s.X_WP))
    memcpy(s.V_WP, plant.machine.state.V_WP, sizeof(s.V_WP))
    memcpy(s.A_WP, plant.machine.state.A_WP, sizeof(s.A_WP))
    if plant.machine.state.status & MACHINE_SINGULAR:
        s.status |= PLANT_SINGULAR


cdef inline Pose from_P(Pose X_WP, Pose X_P) noexcept nogil:
    # a place on the platform from P, in W axes
    return pose_of(rotate(X_WP.q, X_P.p), quat_multiply(X_WP.q, X_P.q))


cdef void load_machine(Plant *plant, const MechanismOutput *m) noexcept nogil:
    """What the platform feels in the next step, at P in W axes: the contact on the unit that rides on it, and what else pulls at a load
    cell there."""
    cdef const PlantParams *p = &plant.params
    cdef PlantState *s = &plant.state
    cdef Pose X_WP = pose(s.X_WP)
    cdef Wrench W
    if p.structure.elastic:
        W = s.structure.on_platform
    else:
        W = wrench_to_parent(from_P(X_WP, pose(p.mounting.X_PM)), wrench(m.F_A) if p.mounting.target_fixed else wrench(m.F_T))
        if p.on_platform:
            W = wrench_sum(W, wrench_to_parent(from_P(X_WP, p.X_S), wrench(s.external)))
    put_wrench(W, plant.machine.state.wrench)


# ------------------------------------------------------------------------------------------------- mechanism, load cell

cdef void load_on_cell(const PlantParams *p, PlantState *s, const MechanismOutput *m, double *F_S) noexcept nogil:
    """Contact, weight and, where it moves, inertia of what the cell carries, at and in S."""
    cdef Wrench external = wrench(s.external)
    cdef Wrench F = wrench_to_parent(p.X_S_port, wrench(m.F_T) if p.target_on_cell else wrench(m.F_A))
    cdef Vec3 f
    if p.structure.elastic or p.on_platform:
        # the springs find their new forces
        if p.structure.elastic:
            structure_forces(&p.structure, &s.structure, s.X_WP, s.V_WP, m, s.external)
        put_wrench(structure_cell(&p.structure, &s.structure, s.X_WP, s.V_WP, s.A_WP, wrench_sum(F, external)), F_S)
        return
    if p.carried_mass > 0.0:
        f = rotate_back(p.X_S.q, mul(p.carried_mass, p.gravity_W))
        F = wrench_sum(F, wrench_of(f, cross(p.com_S, f)))
    put_wrench(wrench_sum(F, external), F_S)


cdef void watch_chain(const PlantParams *p, PlantState *s, const double *F_S) noexcept nogil:
    """The analogue chain acts on the cells directly, whatever the server does; once tripped it stays and blocks the hydraulics."""
    cdef int i
    for i in range(3):
        if fabs(F_S[i]) > p.keys.chain_force or fabs(F_S[3 + i]) > p.keys.chain_moment:
            s.chain |= ANALOGUE_CHAIN_TRIPPED | ANALOGUE_CHAIN_HYDRAULICS_BLOCKED


cdef void plant_advance(Plant *plant, int64_t steps) noexcept nogil:
    cdef const PlantParams *p = &plant.params
    cdef PlantState *s = &plant.state
    cdef MechanismInput inp
    cdef MechanismOutput out
    cdef Motion relative
    cdef double *F_S
    memset(inp.w_A, 0, sizeof(inp.w_A))
    inp.dt = p.dt
    inp.commands = s.commands
    for _ in range(steps):
        s.step += 1
        take_setpoints(s)
        if plant.machine == NULL:
            advance_drives(p, s)
            advance_platform(p, s)
        else:
            advance_machine(plant)
        if p.structure.elastic:
            structure_advance(&p.structure, &s.structure)
            relative = structure_relative(&p.structure, &s.structure, s.X_WP, s.V_WP)
            put_pose(relative.X, s.X_TA)
            put_twist(relative.V, s.V_TA)
        else:
            relative_pose(&p.mounting, s.X_WP, s.X_TA)
            relative_twist(&p.mounting, s.X_WP, s.V_WP, s.X_TA, s.V_TA)
        put_pose(pose(s.X_TA), inp.X_TA)
        memcpy(inp.V_TA, s.V_TA, sizeof(inp.V_TA))
        p.mechanism.advance(p.mechanism.self, &inp, &out, p.mechanism_aux)
        # kept from every step, not from the last one before the server looks
        if out.status & MECHANISM_STATUS_OUT_OF_RANGE:
            s.status |= PLANT_MECHANISM_INVALID
        F_S = s.history[s.step % WRENCH_HISTORY]
        load_on_cell(p, s, &out, F_S)
        if p.keys.accelerometers:
            structure_acceleration(&p.structure, &s.structure, s.X_WP, s.V_WP, s.A_WP, s.accelerations[s.step % WRENCH_HISTORY])
        if plant.machine != NULL:
            load_machine(plant, &out)
        watch_chain(p, s, F_S)
    if steps > 0:
        s.signals = out.signals
        memcpy(s.analog, out.analog, sizeof(out.analog))


# ----------------------------------------------------------------------------------------------------------- interface

cdef void plant_set_target(Plant *plant, const double *leg, const double *leg_rate) noexcept nogil:
    """New setpoints; the drives see them after their transport delay. The newest are dropped when too many are on their way."""
    cdef PlantState *s = &plant.state
    cdef TargetEntry *entry
    if s.queue_head - s.queue_tail >= TARGET_QUEUE:
        return
    entry = &s.queue[s.queue_head % TARGET_QUEUE]
    entry.due = s.step + 1 + plant.params.drive[0].delay_steps
    memcpy(entry.leg, leg, sizeof(entry.leg))
    memcpy(entry.rate, leg_rate, sizeof(entry.rate))
    s.queue_head += 1


cdef void plant_set_commands(Plant *plant, uint32_t commands) noexcept nogil:
    plant.state.commands = commands


cdef void plant_measure_legs(Plant *plant, double *leg) noexcept nogil:
    """Lengths as the transducers give them: noise, quantisation, and what is injected."""
    cdef PlantState *s = &plant.state
    cdef double step = plant.params.keys.leg_resolution
    cdef double x
    cdef int i
    for i in range(6):
        x = s.leg[i] + s.transducer_offset[i]
        if plant.params.keys.leg_noise > 0.0:
            x += plant.params.keys.leg_noise * normal_noise(&s.random)
        leg[i] = floor(x / step + 0.5) * step if step > 0.0 else x


cdef inline void wrong_sensor(PlantState *s, double dt, double *F) noexcept nogil:
    """What was injected into the sensor: drift, a wrong gain from the reading on at which it began, exchanged components."""
    cdef double x
    cdef int i, k
    for i in range(6):
        F[i] += s.drift_rate[i] * ((s.step - s.drift_step[i]) * dt)
    if s.gained == 1:
        memcpy(s.gain_from, F, sizeof(s.gain_from))
        s.gained = 2
    if s.gained:
        for i in range(6):
            F[i] = s.gain_from[i] + s.gain * (F[i] - s.gain_from[i])
    if s.exchanged:
        for i in range(6):
            if (s.exchanged >> i) & 1:
                k = i - i % 3 + (i + 1) % 3
                x = F[i]
                F[i] = F[k]
                F[k] = x


cdef void plant_measure_wrench(Plant *plant, double *counts) noexcept nogil:
    """Counts of the load cell: the wrench of `force_delay` ago with bias, drift, noise and dead zone, through the inverse
    calibration, rounded."""
    cdef const PlantParams *p = &plant.params
    cdef PlantState *s = &plant.state
    cdef int64_t then = s.step - p.force_delay_steps
    cdef double F[6]
    cdef double sum, t = s.step * p.dt
    cdef int i, j
    if then < 0:
        then = 0
    for i in range(6):
        F[i] = s.history[then % WRENCH_HISTORY][i] + p.keys.sensor_bias[i] + p.keys.sensor_drift[i] * t + s.sensor_bias[i]
        if p.noise[i] > 0.0:
            F[i] += p.noise[i] * normal_noise(&s.random)
    wrong_sensor(s, p.dt, F)
    for i in range(3):
        if -p.keys.sensor_dead_zone < F[i] < p.keys.sensor_dead_zone:
            F[i] = 0.0
    for i in range(6):
        sum = 0.0
        for j in range(6):
            sum += p.counts[6 * i + j] * F[j]
        sum = floor(sum + 0.5)
        if (s.broken >> i) & 1:
            sum = p.full_scale
        if (s.saturated >> i) & 1:
            sum = clip(s.gauge_clip[i], p.full_scale)
        counts[i] = clip(sum, p.full_scale)
    if s.frozen == 1:
        memcpy(s.frozen_counts, counts, sizeof(s.frozen_counts))
        s.frozen = 2
    elif s.frozen == 2:
        memcpy(counts, s.frozen_counts, sizeof(s.frozen_counts))


cdef void plant_measure_acceleration(Plant *plant, double *out) noexcept nogil:
    """Accelerometers at the load cell: those of their delay ago, with bias and noise; zero where the stand has none."""
    cdef const PlantParams *p = &plant.params
    cdef PlantState *s = &plant.state
    cdef int64_t then = s.step - p.acceleration_delay_steps
    cdef int i
    if then < 0:
        then = 0
    for i in range(6):
        out[i] = s.accelerations[then % WRENCH_HISTORY][i] + p.keys.accelerometer_bias[i]
        if p.acceleration_noise[i] > 0.0:
            out[i] += p.acceleration_noise[i] * normal_noise(&s.random)


cdef void plant_measure(Plant *plant, double *leg, double *leg_rate, double *counts, uint32_t *signals, double *analog,
                        uint32_t *chain) noexcept nogil:
    plant_measure_legs(plant, leg)
    memcpy(leg_rate, plant.state.leg_rate, sizeof(plant.state.leg_rate))
    plant_measure_wrench(plant, counts)
    signals[0] = plant.state.signals
    memcpy(analog, plant.state.analog, sizeof(plant.state.analog))
    chain[0] = plant.state.chain


cdef void plant_measure_machine(Plant *plant, MachineReadings *out) noexcept nogil:
    """Forces, pressures, valves and supply of a loaded machine with the noise of their transducers, and what its drives say of them; zeros
    of the linear drives."""
    cdef double noise, area_a, area_b
    cdef uint32_t all_legs
    cdef int i
    memset(out, 0, sizeof(MachineReadings))
    if plant.machine == NULL:
        return
    memcpy(out.force, plant.machine.state.force, sizeof(out.force))
    memcpy(out.pressure_a, plant.machine.state.pressure_a, sizeof(out.pressure_a))
    memcpy(out.pressure_b, plant.machine.state.pressure_b, sizeof(out.pressure_b))
    memcpy(out.valve, plant.machine.state.spool, sizeof(out.valve))
    out.supply_pressure = 0.0 if plant.machine.params.electric else plant.machine.state.line
    noise = plant.params.transducers.pressure_noise
    area_a, area_b = plant.machine.params.keys.piston_area_a, plant.machine.params.keys.piston_area_b
    if noise > 0.0 and not plant.machine.params.electric:
        out.supply_pressure += noise * normal_noise(&plant.state.random)
        for i in range(6):
            out.pressure_a[i] += noise * normal_noise(&plant.state.random)
            out.pressure_b[i] += noise * normal_noise(&plant.state.random)
            # a drive has its force from its pressures
            out.force[i] = area_a * out.pressure_a[i] - area_b * out.pressure_b[i]
    if plant.params.transducers.valve_noise > 0.0:
        for i in range(6):
            out.valve[i] += plant.params.transducers.valve_noise * normal_noise(&plant.state.random)
    all_legs = DRIVE_STATUS_SUPPLY_LOW if hydraulic_supply_low(plant.machine) else 0
    for i in range(6):
        out.status[i] = all_legs
        if hydraulic_blocked(plant.machine, i):
            out.status[i] |= DRIVE_STATUS_HYDRAULICS_BLOCKED
        if (plant.machine.state.saturated >> i) & 1:
            out.status[i] |= DRIVE_STATUS_VALVE_SATURATED


cdef void plant_block(Plant *plant, uint32_t legs) noexcept nogil:
    """The drives of these legs (bit i: leg i) have no power, all others have: blocking valves of a loaded machine, brakes of linear
    drives follow it."""
    if plant.machine != NULL:
        plant.machine.state.shut = legs
    else:
        plant.state.unpowered = legs


cdef void plant_inject(Plant *plant, int code, int index, double value) noexcept nogil:
    cdef PlantState *s = &plant.state
    cdef int i
    if index < 0 or index > 5:
        return
    if plant.machine != NULL:
        hydraulic_inject(plant.machine, code, index, value)
    if code == INJECTION_CLEAR:
        s.stuck = 0
        s.broken = 0
        s.saturated = 0
        s.runs = s.exchanged = s.frozen = s.gained = 0
        s.chain = ANALOGUE_CHAIN_HEALTHY
        for i in range(6):
            s.slow[i] = 1.0
            s.transducer_offset[i] = 0.0
            s.sensor_bias[i] = 0.0
            s.drift_rate[i] = 0.0
            s.external[i] = 0.0
    elif code == INJECTION_LEG_STUCK:
        s.stuck |= 1u << index
    elif code == INJECTION_LEG_SLOW:
        s.slow[index] = value
    elif code == INJECTION_TRANSDUCER_OFFSET:
        s.transducer_offset[index] = value
    elif code == INJECTION_GAUGE_BROKEN:
        s.broken |= 1u << index
    elif code == INJECTION_GAUGE_SATURATED:
        s.saturated |= 1u << index
        s.gauge_clip[index] = value
    elif code == INJECTION_SENSOR_BIAS:
        s.sensor_bias[index] = value
    elif code == INJECTION_LEG_RUNAWAY:
        s.runs |= 1u << index
        s.run_rate[index] = value
    elif code == INJECTION_SENSOR_FROZEN:
        s.frozen = 1
    elif code == INJECTION_SENSOR_GAIN:
        s.gained = 1
        s.gain = value
    elif code == INJECTION_SENSOR_DRIFT:
        s.drift_rate[index] = value
        s.drift_step[index] = s.step
    elif code == INJECTION_SENSOR_EXCHANGED:
        s.exchanged |= 1u << index
    elif code == INJECTION_EXTERNAL_FORCE:
        s.external[index] = value
    elif code == INJECTION_CHAIN_TRIPPED:
        s.chain |= ANALOGUE_CHAIN_TRIPPED | ANALOGUE_CHAIN_HYDRAULICS_BLOCKED
    elif code == INJECTION_CHAIN_UNHEALTHY:
        s.chain &= ~ANALOGUE_CHAIN_HEALTHY


# what only the linear drives have
LINEAR_PARAMETERS = (
    Parameter("drive_frequency_hz", "float", "Hz", "natural frequency of a drive, 0: ideal", 13.25, low=0.0, high=500.0),
    Parameter("drive_damping", "float", "-", "damping ratio of a drive", 0.784, low=0.01, high=5.0),
    Parameter("drive_feedforward", "float", "-", "share of the velocity setpoint that a drive uses", 0.0, low=0.0, high=1.0),
    Parameter("drive_rate_max_m_s", "float", "m/s", "rate limit of a drive, none: unlimited", None, low=1e-3, high=10.0),
    Parameter("drive_acceleration_max_m_s2", "float", "m/s2", "acceleration limit of a drive, none: unlimited", None, low=1e-2, high=1e3),
    Parameter("drive_dead_band_m", "float", "m", "dead band of a drive", 0.0, low=0.0, high=0.01),
    Parameter("drive_spread", "floats", "-", "natural frequency of each drive against drive_frequency_hz", (1.0,) * 6, low=0.5, high=2.0,
              shape=6),
)

# of every machine
PLANT_PARAMETERS = (
    Parameter("drive_delay_s", "float", "s", "transport delay of a drive", 0.002, low=0.0, high=0.1),
    Parameter("leg_noise_m", "float", "m", "noise on the measured length, rms", 0.0, low=0.0, high=0.01),
    Parameter("leg_resolution_m", "float", "m", "resolution of the measured length, 0: none", 1e-6, low=0.0, high=0.001),
    Parameter("force_noise_n", "float", "N", "noise of each force channel, rms", 0.0, low=0.0, high=1e3),
    Parameter("moment_noise_n_m", "float", "N.m", "noise of each moment channel, rms", 0.0, low=0.0, high=1e3),
    Parameter("sensor_bias", "floats", "N, N.m", "constant error of the sensor", (0.0,) * 6, low=-1e6, high=1e6, shape=6),
    Parameter("sensor_drift", "floats", "N/s, N.m/s", "drift of the sensor", (0.0,) * 6, low=-1e6, high=1e6, shape=6),
    Parameter("sensor_delay_s", "float", "s", "delay of the sensor", 0.0, low=0.0, high=0.045),
    Parameter("sensor_dead_zone_n", "float", "N", "a force channel of the sensor reads zero below this; for studies of what it does", 0.0,
              low=0.0, high=1e4),
    Parameter("counts_per_newton", "float", "1/N", "scale of the force channels", 1e5, low=1.0, high=1e9),
    Parameter("counts_per_newton_metre", "float", "1/(N.m)", "scale of the moment channels", 1e5, low=1.0, high=1e9),
    Parameter("gauge_matrix", "rows", "N/count, N.m/count", "counts of six gauges to wrench; none: a ready six-axis record", None,
              shape=(6, 6)),
    Parameter("chain_force_n", "float", "N", "threshold of the analogue chain", 6000.0, low=0.0, high=1e7),
    Parameter("chain_moment_n_m", "float", "N.m", "threshold of the analogue chain", 4000.0, low=0.0, high=1e7),
    Parameter("plant_step_s", "float", "s", "step of the plant", 5e-5, low=1e-6, high=1e-3),
    Parameter("seed", "int", "-", "seed of the noise", 1, low=1, high=2**31 - 1),
    Parameter("accelerometers", "bool", "-", "the stand has accelerometers on what the load cell carries", False),
    Parameter("accelerometer_noise_m_s2", "float", "m/s2", "noise of each linear axis, rms", 0.0, low=0.0, high=10.0),
    Parameter("accelerometer_noise_rad_s2", "float", "rad/s2", "noise of each angular axis, rms", 0.0, low=0.0, high=100.0),
    Parameter("accelerometer_bias", "floats", "m/s2, rad/s2", "constant error of the accelerometers", (0.0,) * 6, low=-10.0,
              high=10.0, shape=6),
    Parameter("accelerometer_delay_s", "float", "s", "delay of the accelerometers; none: that of the load cell", None, low=0.0, high=0.045),
) + STRUCTURE_PARAMETERS

# what only a loaded machine's drives measure
TRANSDUCER_PARAMETERS = (
    Parameter("pressure_noise_pa", "float", "Pa", "noise of each pressure transducer, rms", 0.0, low=0.0, high=1e6),
    Parameter("valve_noise", "float", "-", "noise on the measured spool, rms", 0.0, low=0.0, high=0.1),
)
# machine → keys of its plant, shared by the virtual stand's port and its process
MACHINES = {
    "linear": LINEAR_PARAMETERS + PLANT_PARAMETERS,
    "hydraulic": PLANT_PARAMETERS + TRANSDUCER_PARAMETERS + HYDRAULIC_PARAMETERS,
}


cdef void fill_drive(DriveParams *d, double frequency_hz, double damping, double feedforward, double dt):
    """Exact transition of the state (y - u, y') over dt with u held and the velocity setpoint as a second held input."""
    cdef int i
    d.frequency = 2.0 * np.pi * frequency_hz
    d.damping = damping
    d.feedforward = feedforward
    if frequency_hz > 0.0:
        w = d.frequency
        A = np.array([[0.0, 1.0, 0.0], [-w * w, -2 * damping * w, 2 * damping * w * feedforward], [0.0, 0.0, 0.0]])
        from scipy.linalg import expm  # late: it takes longer to load than the plant to build

        E = expm(A * dt)
        for i in range(2):
            d.a[2 * i], d.a[2 * i + 1] = E[i, 0], E[i, 1]
            d.b_rate[i] = E[i, 2]


cdef class PlantPart:
    """The plant of a stand. mechanism: MechanismPart; platform: Platform; mounting: the assembly's dict; machine: what moves the platform,
    "linear" or "hydraulic", with the keys of `MACHINES`. Starts at the neutral pose."""

    PARAMETERS = MACHINES["linear"]

    def __init__(self, *, platform, mounting, MechanismPart mechanism, machine="linear", **given):
        cdef PlantParams *p = &self.plant.params
        cdef PlantState *s = &self.plant.state
        cdef int i
        cdef MechanismOutput nothing
        cdef double inf = float("inf")
        cdef Vec3 com_P
        if machine not in MACHINES:
            raise ValueError(f"machine: must be one of {', '.join(MACHINES)}, got {machine!r}")
        keys = checked(MACHINES[machine], given)
        memset(&self.plant, 0, sizeof(Plant))
        self.mechanism = mechanism
        p.mechanism = mechanism.plug
        # as many auxiliary channels as the mechanism declares
        self.mechanism_aux = np.zeros(max(1, sum(channel.count for channel in mechanism.AUX)))
        cdef double[::1] aux = self.mechanism_aux
        p.mechanism_aux = &aux[0]
        p.platform = (<Platform?>platform).params
        fill_mounting(&p.mounting, mounting)
        fill_plant(&p.keys, keys)
        p.dt = self.step_s = p.keys.plant_step
        for i in range(6):
            p.drive[i].delay_steps = round(keys["drive_delay_s"] / self.step_s)
            if machine == "linear":
                fill_drive(&p.drive[i], keys["drive_frequency_hz"] * keys["drive_spread"][i], keys["drive_damping"],
                           keys["drive_feedforward"], self.step_s)
                p.drive[i].rate_max = inf if keys["drive_rate_max_m_s"] is None else keys["drive_rate_max_m_s"]
                p.drive[i].acceleration_max = inf if keys["drive_acceleration_max_m_s2"] is None else keys["drive_acceleration_max_m_s2"]
                p.drive[i].dead_band = keys["drive_dead_band_m"]
                p.drive[i].exact = (keys["drive_rate_max_m_s"] is None and keys["drive_acceleration_max_m_s2"] is None
                                    and keys["drive_dead_band_m"] == 0.0)
            p.noise[i] = p.keys.force_noise if i < 3 else p.keys.moment_noise
            s.slow[i] = 1.0
        if keys["gauge_matrix"] is None:
            self.sensor_scale = [keys["counts_per_newton"]] * 3 + [keys["counts_per_newton_metre"]] * 3
            counts = np.diag(self.sensor_scale)
        else:
            self.sensor_scale = None
            counts = np.linalg.inv(np.asarray(keys["gauge_matrix"], float))
        for i in range(36):
            p.counts[i] = counts.flat[i]
        p.full_scale = 2147483647.0
        p.force_delay_steps = round(keys["sensor_delay_s"] / self.step_s)
        if p.force_delay_steps >= WRENCH_HISTORY:
            raise ValueError(f"virtual.sensor_delay_s: {keys['sensor_delay_s']} s is more than {WRENCH_HISTORY - 1} steps of "
                             f"{self.step_s} s")
        delay = keys["sensor_delay_s"] if keys["accelerometer_delay_s"] is None else keys["accelerometer_delay_s"]
        p.acceleration_delay_steps = round(delay / self.step_s)
        if p.acceleration_delay_steps >= WRENCH_HISTORY:
            raise ValueError(f"virtual.accelerometer_delay_s: {delay} s is more than {WRENCH_HISTORY - 1} steps of {self.step_s} s")
        for i in range(6):
            p.acceleration_noise[i] = p.keys.accelerometer_noise_m_s2 if i < 3 else p.keys.accelerometer_noise_rad_s2
        if p.drive[0].delay_steps * self.step_s > 0.1:
            raise ValueError(f"virtual.drive_delay_s: {keys['drive_delay_s']} s is above 0.1 s")
        fill_structure(&p.structure, keys, mounting, p.platform.neutral, self.step_s)
        cdef double[::1] X_S = np.array(mounting.X_S, float)
        p.X_S, p.X_S_port = pose(&X_S[0]), p.structure.X_S_port
        p.carried_mass, p.com_S, p.gravity_W = p.structure.carried_mass, p.structure.com_S, p.structure.gravity_W
        p.on_platform = mounting.load_cell_on == "platform"
        p.target_on_cell = mounting.unit_on_load_cell == "target"
        # stands in the neutral pose
        memcpy(s.X_WP, p.platform.neutral, sizeof(s.X_WP))
        structure_rest(&p.structure, &s.structure, s.X_WP)
        if machine != "linear":
            # what hangs on a load cell on the platform rides there, unless on springs of its own; on a floor it does not
            rides = p.on_platform and not (p.structure.body[BASE].present or p.structure.body[CELL].present)
            com_P = apply(p.X_S, p.com_S)
            self.machine = HydraulicMachine(
                platform=platform, gravity_m_s2=mounting.gravity_m_s2, step_s=self.step_s,
                carried_mass_kg=p.carried_mass if rides else 0.0, carried_com_m=[com_P.x, com_P.y, com_P.z],
                **{q.key: keys[q.key] for q in HYDRAULIC_PARAMETERS})
            self.plant.machine = &self.machine.machine
            fill_transducer(&p.transducers, keys)
            if p.structure.elastic:
                # its legs carry what hangs on it from the start
                self.machine.set_wrench([(<double *> &s.structure.on_platform)[i] for i in range(6)])
                self.machine.rest()
        leg_lengths(&p.platform, s.X_WP, s.leg)
        for i in range(6):
            s.input_leg[i] = s.leg[i]
        inverse_jacobian(&p.platform, s.X_WP, s.J_inverse)
        relative_pose(&p.mounting, s.X_WP, s.X_TA)
        # the cell feels the weight from the start
        memset(&nothing, 0, sizeof(nothing))
        load_on_cell(p, s, &nothing, s.history[0])
        if p.keys.accelerometers:
            structure_acceleration(&p.structure, &s.structure, s.X_WP, s.V_WP, s.A_WP, s.accelerations[0])
        s.random = <uint64_t>keys["seed"] * <uint64_t>0x9E3779B97F4A7C15ULL
        s.chain = ANALOGUE_CHAIN_HEALTHY

    def advance(self, int64_t steps):
        """`steps` plant steps."""
        with nogil:
            plant_advance(&self.plant, steps)

    def set_target(self, leg, rate=(0.0,) * 6):
        """Setpoints of the drives (6,), m, and their rates, m/s."""
        cdef double l[6]
        cdef double v[6]
        cdef int i
        for i in range(6):
            l[i], v[i] = leg[i], rate[i]
        plant_set_target(&self.plant, l, v)

    def inject(self, int code, int index=0, double value=0.0):
        plant_inject(&self.plant, code, index, value)

    def snapshot(self):
        """State of the plant without its machine and its mechanism, which have their own, as bytes."""
        return PyBytes_FromStringAndSize(<const char *>&self.plant.state, sizeof(PlantState)) + self.mechanism_aux.tobytes()

    def restore(self, bytes snapshot):
        """Takes back what `snapshot` gave. Raises ValueError for one of another size."""
        cdef size_t size = sizeof(PlantState)
        if <size_t>len(snapshot) != size + <size_t>self.mechanism_aux.nbytes:
            raise ValueError(f"snapshot has {len(snapshot)} bytes, the plant's state has {size + self.mechanism_aux.nbytes}")
        memcpy(&self.plant.state, PyBytes_AS_STRING(snapshot), size)
        self.mechanism_aux[:] = np.frombuffer(snapshot[size:])

    def state_fields(self):
        """What `snapshot` holds, by name; `waiting`: set points in the queue."""
        cdef PlantState *s = &self.plant.state
        return {**s[0], "waiting": s.queue_head - s.queue_tail, "mechanism_aux": self.mechanism_aux.tolist()}

    def state_bounds(self):
        words = ("signals", "commands", "stuck", "broken", "saturated", "chain", "status", "unpowered", "runs", "exchanged", "frozen",
                 "gained", "unused")
        counts = ("queue_head", "queue_tail", "step", "jacobian_step", "queue.due", "drift_step")
        return ({name: WORD for name in words} | {name: COUNT for name in counts}
                | {"waiting": (0, TARGET_QUEUE), "random": (0, 2**64 - 1)})

    def state(self):
        """True state of the plant: legs, pose, twist, relative pose and twist, wrench on the cell, chain, status."""
        cdef PlantState *s = &self.plant.state
        cdef PlantParams *p = &self.plant.params
        names = {"leg": 6, "leg_rate": 6, "X_WP": 7, "V_WP": 6, "X_TA": 7, "V_TA": 6}
        cdef double *fields[6]
        fields[0], fields[1], fields[2], fields[3], fields[4], fields[5] = s.leg, s.leg_rate, s.X_WP, s.V_WP, s.X_TA, s.V_TA
        out = {}
        for k, (name, n) in enumerate(names.items()):
            out[name] = np.array([fields[k][i] for i in range(n)])
        out["F_S"] = np.array([s.history[s.step % WRENCH_HISTORY][i] for i in range(6)])
        out["cell_acceleration"] = np.array([s.accelerations[s.step % WRENCH_HISTORY][i] for i in range(6)])
        out["bodies"] = structure_state(&p.structure, &s.structure)
        out["time"] = s.step * self.step_s
        out["chain"], out["status"], out["signals"] = s.chain, s.status, s.signals
        return out
