"""A platform on six loaded legs: structs and the step. Equations, units and sources: hydraulic_machine.pyx."""

from libc.stdint cimport int64_t, uint32_t

from drivers.simulated.hydraulic_machine_parameters cimport HydraulicParameters
from rt_kernels.algebra.values cimport Vec3
from rt_kernels.stewart.legs cimport Legs
from rt_kernels.stewart.platform cimport PlatformParams

# what cannot be simulated any more
cdef enum:
    MACHINE_SINGULAR = 1        # the mass matrix has no inverse, or a number is not finite

# energies of the ledger, J; all are sums since the start or the last `rest`
cdef enum:
    ENERGY_SUPPLY               # pump into the accumulator, or a stiff supply into the valves
    ENERGY_LINES                # lost in the supply and return lines, and what flows to the tank at its pressure
    ENERGY_THROTTLING           # lost over the edges of the valves and through a burst line
    ENERGY_LEAKAGE
    ENERGY_FRICTION             # all that friction takes, the bend of the bristles included
    ENERGY_CUSHION              # all that the cushions take, their springs included
    ENERGY_LEGS                 # work of the actuators on the rods
    ENERGY_CONTACT              # work of the wrench on the platform
    ENERGY_CARRIED              # what a constant bulk modulus leaves out of V p^2 / (2 beta): less the integral of V' p^2 / (2 beta)
    ENERGY_CAVITATION           # put in where a pressure was kept from falling below zero
    ENERGIES

cdef struct HydraulicParams:
    HydraulicParameters keys
    PlatformParams platform
    double dt
    # platform with what it carries: inertia about P in P axes (see rt_kernels.algebra.spatial), gravity in W
    double inertia_P[10]
    Vec3 gravity_W
    # legs as bodies
    double cylinder_moment      # mass times distance of its centre from the base joint, kg.m
    double swing_inertia        # of cylinder and rod, less what the rod's mass does by its distance, kg.m2
    double leg_mass
    # cylinder
    double stroke
    # valve
    double flow_gain            # m3/(s sqrt(Pa)) at full spool
    double laminar2             # square of the transition pressure
    double valve_stiffness      # w^2 dt
    double valve_keep           # 1 / (1 + 2 zeta w dt)
    double stiction             # static less Coulomb
    double stribeck             # 1 / v_s^2
    # drive
    double highpass             # w dt
    double speed_inverse[2]     # 1 / no-load speed at full spool: out, in
    # electric cylinder
    double per_motor_mass
    double motor_keep           # 1 / (1 + dt d_m / m_m)
    double speed_gain           # k_w / F_max
    double per_reset            # dt / T_n
    int64_t electric
    double line_gain
    double blocking_rate        # share of the opening lost in a step

cdef struct HydraulicState:
    double X_WP[7]
    double V_WP[6]
    double A_WP[6]
    double wrench[6]            # on the platform at P, W axes
    double target[6]            # setpoints of the drives, joint to joint
    double target_rate[6]
    double hold[6]              # what the drives follow of them
    double hold_rate[6]
    double leg_rate[6]
    Legs legs                   # at X_WP
    double pressure_a[6]
    double pressure_b[6]
    double spool[6]
    double spool_rate[6]
    double command[6]           # to the valve, within -1...1
    double highpass[6]
    double bristle[6]           # bend, m
    double motor[6]             # place of an electric cylinder's motor, as a leg length
    double motor_rate[6]
    double integral[6]          # of its speed controller, share of the current's limit
    double force[6]             # of the actuators on the rods: A_a p_a - A_b p_b
    double friction[6]          # of the seals on the rods, and of the cushions
    double open[6]              # of the blocking valves of each leg, 0...1
    double share[6]             # what is left of the opening of each valve's edges (injected)
    double spool_free[6]        # 0: the spool stands (injected)
    double run_rate[6]          # m/s, of a leg that runs away (injected)
    double burst[6]             # flow gain of a burst line of chamber A
    double blocking             # opening of the blocking valves of all legs, 1: open
    double own_valve[6]         # opening of each leg's own blocking valves, 1: open
    double supply               # pressure of the accumulator
    double gas                  # its volume
    double line                 # pressure at the valves
    double back                 # return pressure at the valves
    double supply_lost          # 1 / time constant of a loss of supply, 0: none
    double energy[10]           # ENERGY_..., J
    double stored_start
    int64_t cavitation          # times a pressure was kept from falling below zero
    int64_t step
    uint32_t held               # legs whose own blocking valves are shut (injected)
    uint32_t shut               # legs whose drives have no power: their own blocking valves shut, too
    uint32_t broken             # legs with a burst line
    uint32_t saturated          # legs whose command or spool is at its end
    uint32_t blocked            # the chain has shut the blocking valves
    uint32_t status
    uint32_t runs               # legs whose drives follow run_rate, not their setpoints (injected)
    uint32_t unused

cdef struct Hydraulic:
    HydraulicParams params
    HydraulicState state

cdef void hydraulic_advance(Hydraulic *machine) noexcept nogil
cdef void hydraulic_inject(Hydraulic *machine, int code, int index, double value) noexcept nogil
cdef int hydraulic_blocked(const Hydraulic *machine, int leg) noexcept nogil
cdef int hydraulic_supply_low(const Hydraulic *machine) noexcept nogil


cdef class HydraulicMachine:
    cdef Hydraulic machine
    cdef readonly object platform
    cdef readonly double step_s
    cdef readonly dict keys
