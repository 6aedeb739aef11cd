"""Physics of the virtual stand: six drives, platform, mechanism, load cell. Advanced in fixed steps; no wire, no clock of its own."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from drivers.simulated.hydraulic_machine cimport Hydraulic, HydraulicMachine
from drivers.simulated.injections cimport (INJECTION_CHAIN_DISCREPANT, INJECTION_EMERGENCY_STOP, INJECTION_GUARD_OPEN,
                                            INJECTION_UNIT_FAULT)
from drivers.simulated.plant_parameters cimport PlantParameters, TransducerParameters
from drivers.simulated.structure cimport StructureParams, StructureState
from rt_kernels.codes cimport (ANALOGUE_CHAIN_EMERGENCY_STOP_A, ANALOGUE_CHAIN_EMERGENCY_STOP_B, ANALOGUE_CHAIN_GUARD_A,
                               ANALOGUE_CHAIN_GUARD_B, ANALOGUE_CHAIN_UNIT_ON)
from rt_kernels.algebra.values cimport Pose, Vec3
from rt_kernels.plugs cimport Mechanism, MechanismInput, MechanismOutput
from rt_kernels.stewart.mounting cimport Mounting
from rt_kernels.stewart.platform cimport PlatformParams

cdef enum:
    TARGET_QUEUE = 128          # setpoints on their way to the drives
    WRENCH_HISTORY = 1024       # plant steps that the sensor's delay can reach back

# what cannot be simulated any more
cdef enum:
    PLANT_LEGS_DO_NOT_CLOSE = 1
    PLANT_SINGULAR = 2
    PLANT_MECHANISM_INVALID = 4     # the mechanism's model has left its valid range

cdef struct DriveParams:
    double frequency            # rad/s, 0: ideal
    double damping
    double feedforward          # share of the velocity setpoint that the drive uses
    double rate_max
    double acceleration_max
    double dead_band
    double a[4]                 # exact one-step transition of (length, rate) for a held input
    double b[2]
    double b_rate[2]            # and of the velocity setpoint
    int64_t delay_steps
    int exact                   # no limit acts: the exact step may be used

cdef struct PlantParams:
    PlantParameters keys
    TransducerParameters transducers
    PlatformParams platform
    Mounting mounting
    StructureParams structure   # what hangs on springs, and the load cell
    DriveParams drive[6]
    Mechanism mechanism
    double *mechanism_aux       # room for its auxiliary channels
    double dt
    Pose X_S                    # load cell in W or on the platform
    Pose X_S_port               # port of the carried unit in S
    double carried_mass
    Vec3 com_S
    Vec3 gravity_W
    double acceleration_noise[6]    # m/s2, rad/s2
    double counts[36]           # wrench to counts (inverse calibration)
    double noise[6]             # N, N.m
    double full_scale           # counts
    int64_t force_delay_steps
    int64_t acceleration_delay_steps
    int on_platform
    int target_on_cell

cdef struct TargetEntry:
    int64_t due                 # plant step at which the drives see it
    double leg[6]
    double rate[6]

cdef struct PlantState:
    double leg[6]
    double leg_rate[6]
    double input_leg[6]
    double input_rate[6]
    double X_WP[7]
    double V_WP[6]
    double V_WP_previous[6]
    double A_WP[6]
    double J_inverse[36]
    double X_TA[7]
    double V_TA[6]
    double slow[6]
    double transducer_offset[6]
    double sensor_bias[6]
    double external[6]
    double gauge_clip[6]
    double run_rate[6]          # m/s, of a leg that runs away
    double drift_rate[6]        # of the sensor, injected
    int64_t drift_step[6]       # since when
    double gain_from[6]         # reading at which the injected gain began
    double gain                 # share of the wrench's changes since, 1: whole
    double frozen_counts[6]
    double history[1024][6]     # wrench on the load cell
    double accelerations[1024][6]   # of what it carries, as accelerometers feel them
    StructureState structure
    TargetEntry queue[128]
    int64_t queue_head
    int64_t queue_tail
    int64_t step
    int64_t jacobian_step
    uint64_t random
    uint32_t signals
    uint32_t commands
    uint32_t stuck
    uint32_t broken
    uint32_t saturated
    uint32_t chain              # bits of analogue_chain
    uint32_t status             # PLANT_..., all stay
    uint32_t unpowered          # linear drives without power: held by their brakes
    uint32_t runs               # legs that run away
    uint32_t exchanged          # components of the wrench exchanged with the next
    uint32_t frozen             # 1: the sensor's next values are its last, 2: they are
    uint32_t gained             # 1: the gain begins with the next values, 2: it acts
    uint32_t unused
    double analog[8]

cdef struct Plant:
    PlantParams params
    PlantState state
    Hydraulic *machine          # what moves the platform; NULL: the linear drives

# what a loaded machine says of itself beside lengths and rates
cdef struct MachineReadings:
    double force[6]             # N
    double pressure_a[6]        # Pa
    double pressure_b[6]
    double valve[6]             # -1...1
    double supply_pressure
    uint32_t status[6]          # bits of drive_status

cdef void plant_set_target(Plant *plant, const double *leg, const double *leg_rate) noexcept nogil
cdef void plant_set_commands(Plant *plant, uint32_t commands) noexcept nogil
cdef void plant_advance(Plant *plant, int64_t steps) noexcept nogil
cdef void plant_measure_legs(Plant *plant, double *leg) noexcept nogil
cdef void plant_measure_wrench(Plant *plant, double *counts) noexcept nogil
cdef void plant_measure_acceleration(Plant *plant, double *out) noexcept nogil
cdef void plant_measure(Plant *plant, double *leg, double *leg_rate, double *counts, uint32_t *signals, double *analog,
                        uint32_t *chain) noexcept nogil
cdef void plant_measure_machine(Plant *plant, MachineReadings *out) noexcept nogil
cdef void plant_block(Plant *plant, uint32_t legs) noexcept nogil
# What an injection does to the inputs of an emergency chain, bits of analogue_chain: those that open, or say that something is wrong.
cdef inline uint32_t chain_inputs_of(int number, int index) noexcept nogil:
    if number == INJECTION_EMERGENCY_STOP:
        return ANALOGUE_CHAIN_EMERGENCY_STOP_A | ANALOGUE_CHAIN_EMERGENCY_STOP_B
    if number == INJECTION_GUARD_OPEN:
        return ANALOGUE_CHAIN_GUARD_A | ANALOGUE_CHAIN_GUARD_B
    if number == INJECTION_CHAIN_DISCREPANT:
        return ANALOGUE_CHAIN_GUARD_A if index == 1 else ANALOGUE_CHAIN_EMERGENCY_STOP_A
    if number == INJECTION_UNIT_FAULT and 0 <= index < 4:
        return <uint32_t>ANALOGUE_CHAIN_UNIT_ON << index
    return 0

cdef void plant_inject(Plant *plant, int code, int index, double value) noexcept nogil

cdef class PlantPart:
    cdef Plant plant
    cdef readonly HydraulicMachine machine  # None: linear drives
    cdef readonly object mechanism
    cdef readonly object mechanism_aux     # what the mechanism last wrote to its auxiliary channels
    cdef readonly double step_s
    cdef readonly object sensor_scale
