"""The virtual stand in process: one port instead of drives, force sensor and mechanism signals.

`read` advances the plant to the time of the tick and measures it; `write` hands it the setpoints, which the drives see after their
transport delay (`setpoint_delay_ticks` mirrors a bus on which setpoints act at the next synchronisation). Measured legs may be one tick
old in the same way (`measured_leg_delay_ticks`). Faults are injected by configuration (`faults`, with times) or by the command
`inject_fault` (arguments: the fault, index, value).
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from drivers.simulated.injections cimport *
from drivers.simulated.plant cimport (MachineReadings, PLANT_MECHANISM_INVALID, Plant, PlantPart, chain_inputs_of, plant_advance,
                                      plant_block, plant_inject, plant_measure, plant_measure_acceleration, plant_measure_machine,
                                      plant_set_commands, plant_set_target)
from rt_kernels.codes cimport *
from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from drivers.simulated.injections import HYDRAULIC, IN_PROCESS, scheduled
from drivers.simulated.plant import MACHINES
from drivers.simulated.unit_channels import of_unit
from rt_kernels.block_check import COUNT, FLAG, WORD
from rt_kernels.parameters import Command, Parameter, checked

cdef enum:
    MAX_SCHEDULED = 32
    ALL_LEGS = 0x3F

cdef double IN_PLACE = 1e-3     # m: a drive is enabled where its setpoint is no further from its leg

cdef struct Scheduled:
    int64_t time_ns
    int code
    int index
    double value

cdef struct Params:
    int64_t steps_per_period
    int64_t period_ns
    double period
    int leg_delay
    int setpoint_delay
    uint32_t chain_inputs       # of a chain that is whole, bits of analogue_chain
    uint32_t chain_wired        # inputs that there are
    int scheduled_count
    int unused
    Scheduled scheduled[32]

cdef struct State:
    double leg_old[6]           # measured one tick ago
    double rate_old[6]
    double setpoint[6]          # waiting for the next synchronisation
    double setpoint_rate[6]
    double leg_last[6]
    int64_t sequence
    int64_t lost
    int64_t corrupt
    uint32_t sensor_wire        # bits of sensor_status
    uint32_t drive_wire[6]      # bits of drive_status
    int64_t drive_lost[6]
    int64_t drive_corrupt[6]
    uint32_t signal_wire
    uint32_t chain_unread
    uint32_t opened             # inputs of the chain that are open, or say something (injected), bits of analogue_chain
    int unused
    int have_setpoint
    int started
    int next_scheduled

cdef struct Self:
    Params params
    State state
    Plant *plant
    int64_t unit_channels       # numbers that the mechanism says of itself


cdef void inject(Self *self, int number, int index, double value) noexcept nogil:
    """One fault: physics goes to the plant, what a device or its wire would report to the status words."""
    cdef State *s = &self.state
    cdef int i
    if number == INJECTION_CLEAR:
        s.sensor_wire = 0
        s.signal_wire = 0
        s.chain_unread = 0
        s.opened = 0
        for i in range(6):
            s.drive_wire[i] = 0
    if number <= INJECTIONS_PLANT_LAST:
        plant_inject(self.plant, number, index, value)
        return
    if index < 0 or index > 5:
        return
    if number == INJECTION_SENSOR_SILENT:
        s.sensor_wire |= SENSOR_STATUS_NO_DATA
    elif number == INJECTION_SENSOR_STALE:
        s.sensor_wire |= SENSOR_STATUS_STALE
    elif number == INJECTION_SENSOR_LOST:
        s.sensor_wire |= SENSOR_STATUS_LOST
    elif number == INJECTION_SENSOR_CORRUPT:
        s.sensor_wire |= SENSOR_STATUS_CORRUPT
    elif number == INJECTION_SENSOR_DEVICE_FAULT:
        s.sensor_wire |= SENSOR_STATUS_DEVICE_FAULT
    elif number == INJECTION_SENSOR_BUSY:
        s.sensor_wire |= SENSOR_STATUS_BUSY
    elif number == INJECTION_DRIVE_SILENT:
        s.drive_wire[index] |= DRIVE_STATUS_NO_DATA
    elif number == INJECTION_DRIVE_FAULT:
        s.drive_wire[index] |= DRIVE_STATUS_DEVICE_FAULT
    elif number == INJECTION_DRIVE_DISABLED:
        s.drive_wire[index] |= DRIVE_STATUS_NOT_ENABLED
    elif number == INJECTION_DRIVE_FOLLOWING_ERROR:
        s.drive_wire[index] |= DRIVE_STATUS_FOLLOWING_ERROR
    elif number == INJECTION_DRIVE_LIMIT_TOUCHED:
        s.drive_wire[index] |= DRIVE_STATUS_LIMIT_TOUCHED
    elif number == INJECTION_DRIVE_LOCAL:
        s.drive_wire[index] |= DRIVE_STATUS_LOCAL_CONTROL
    elif number == INJECTION_DRIVE_EMERGENCY:
        s.drive_wire[index] |= DRIVE_STATUS_EMERGENCY
    elif number == INJECTION_BUS_FAULT:
        s.drive_wire[index] |= DRIVE_STATUS_BUS_FAULT
    elif number == INJECTION_DRIVE_LOST:
        s.drive_wire[index] |= DRIVE_STATUS_LOST
    elif number == INJECTION_DRIVE_CORRUPT:
        s.drive_wire[index] |= DRIVE_STATUS_CORRUPT
    elif number == INJECTION_DRIVE_NOT_FOLLOWING:
        s.drive_wire[index] |= DRIVE_STATUS_NOT_FOLLOWING
    elif number == INJECTION_DRIVE_HEARTBEAT_LOST:
        s.drive_wire[index] |= DRIVE_STATUS_HEARTBEAT_LOST
    elif number == INJECTION_SIGNALS_SILENT:
        s.signal_wire |= SENSOR_STATUS_NO_DATA
    elif number == INJECTION_ANALOGUE_CHAIN_UNREAD:
        s.chain_unread = 1
    else:
        s.opened |= chain_inputs_of(number, index)


cdef void read_machine(const Self *self, Sample *sample) noexcept nogil:
    """What drives of a loaded machine send beside lengths and rates; a drive that sends nothing leaves its last values."""
    cdef MachineReadings machine
    cdef int i
    plant_measure_machine(self.plant, &machine)
    sample.supply_pressure = machine.supply_pressure
    for i in range(6):
        sample.drive_status[i] |= machine.status[i]
        if self.state.drive_wire[i] & DRIVE_STATUS_NO_DATA:
            continue
        sample.leg_force[i] = machine.force[i]
        sample.leg_pressure_a[i] = machine.pressure_a[i]
        sample.leg_pressure_b[i] = machine.pressure_b[i]
        sample.leg_valve[i] = machine.valve[i]


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *me = <Self *>self
    cdef Params *p = &me.params
    cdef State *s = &me.state
    cdef double leg[6]
    cdef double rate[6]
    cdef double counts[6]
    cdef double analog[8]
    cdef uint32_t signals, chain
    cdef int i
    # faults that are due
    while s.next_scheduled < p.scheduled_count and p.scheduled[s.next_scheduled].time_ns <= sample.time_ns:
        inject(me, p.scheduled[s.next_scheduled].code, p.scheduled[s.next_scheduled].index, p.scheduled[s.next_scheduled].value)
        s.next_scheduled += 1
    # the plant has moved on since the previous tick; setpoints that waited for the synchronisation act now
    if s.started:
        plant_advance(me.plant, p.steps_per_period * sample.periods)
        if s.have_setpoint and p.setpoint_delay:
            plant_set_target(me.plant, s.setpoint, s.setpoint_rate)
            s.have_setpoint = 0
    plant_measure(me.plant, leg, rate, counts, &signals, analog, &chain)
    memcpy(aux, me.plant.params.mechanism_aux, me.unit_channels * sizeof(double))
    # leg rates are differences of the measured lengths, as a drive's master forms them
    for i in range(6):
        rate[i] = (leg[i] - s.leg_last[i]) / (p.period * sample.periods) if s.started else 0.0
        s.leg_last[i] = leg[i]
    if not s.started:
        memcpy(s.leg_old, leg, sizeof(leg))
        memset(s.rate_old, 0, sizeof(s.rate_old))
    for i in range(6):
        sample.drive_status[i] = s.drive_wire[i]
        if me.plant.state.unpowered >> i & 1:
            sample.drive_status[i] |= DRIVE_STATUS_NOT_ENABLED
        s.drive_lost[i] += s.drive_wire[i] & DRIVE_STATUS_LOST != 0
        s.drive_corrupt[i] += s.drive_wire[i] & DRIVE_STATUS_CORRUPT != 0
        sample.drive_lost_total[i] = s.drive_lost[i]
        sample.drive_corrupt_total[i] = s.drive_corrupt[i]
        if s.drive_wire[i] & DRIVE_STATUS_NO_DATA:
            continue
        if p.leg_delay:
            sample.measured_leg[i] = s.leg_old[i]
            sample.measured_leg_rate[i] = s.rate_old[i]
        else:
            sample.measured_leg[i] = leg[i]
            sample.measured_leg_rate[i] = rate[i]
    memcpy(s.leg_old, leg, sizeof(leg))
    memcpy(s.rate_old, rate, sizeof(rate))
    s.started = 1
    if me.plant.machine != NULL:
        read_machine(me, sample)
    # force sensor
    sample.wrench_status = s.sensor_wire
    if not (s.sensor_wire & (SENSOR_STATUS_NO_DATA | SENSOR_STATUS_STALE | SENSOR_STATUS_BUSY)):
        memcpy(sample.wrench_raw, counts, sizeof(counts))
        s.sequence += 1
        sample.wrench_age_ns = 0
    else:
        sample.wrench_age_ns += p.period_ns * sample.periods
    if me.plant.params.keys.accelerometers:
        plant_measure_acceleration(me.plant, sample.cell_acceleration)
    if s.sensor_wire & SENSOR_STATUS_LOST:
        s.lost += 1
    if s.sensor_wire & SENSOR_STATUS_CORRUPT:
        s.corrupt += 1
    sample.wrench_sequence = s.sequence
    sample.wrench_lost_total = s.lost
    sample.wrench_corrupt_total = s.corrupt
    # mechanism signals and the analogue chain; a mechanism that has left its valid range says so
    sample.signal_status = s.signal_wire
    if me.plant.state.status & PLANT_MECHANISM_INVALID:
        sample.signal_status |= SENSOR_STATUS_OUT_OF_RANGE
    if not s.signal_wire:
        sample.signal_discrete = signals
        memcpy(sample.signal_analog, analog, sizeof(analog))
    sample.analogue_chain = 0 if s.chain_unread else chain | p.chain_inputs ^ s.opened & p.chain_wired


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Self *me = <Self *>self
    cdef State *s = &me.state
    cdef uint32_t blocked
    cdef int i
    if sample.command_code == COMMAND_INJECT_FAULT:
        inject(me, <int>sample.command_arg[0], <int>sample.command_arg[1], sample.command_arg[2])
    elif sample.command_code == COMMAND_CLEAR_INJECTION:
        inject(me, INJECTION_CLEAR, 0, 0.0)
    plant_set_commands(me.plant, sample.mechanism_command)
    # what the safety stage blocks has no power any more; a linear drive gets it back where its setpoint is where it stands
    blocked = sample.setpoint_status // SETPOINT_STATUS_BLOCKED1 & ALL_LEGS
    for i in range(6):
        if me.plant.state.unpowered >> i & 1 and fabs(sample.leg_setpoint[i] - me.plant.state.leg[i]) > IN_PLACE:
            blocked |= 1u << i
    plant_block(me.plant, blocked)
    # before the legs are known there is nothing to send
    if sample.safety_state == SAFETY_STATE_NOT_ARMED:
        return
    if me.params.setpoint_delay:
        memcpy(s.setpoint, sample.leg_setpoint, sizeof(s.setpoint))
        memcpy(s.setpoint_rate, sample.leg_rate_setpoint, sizeof(s.setpoint_rate))
        s.have_setpoint = 1
    else:
        plant_set_target(me.plant, sample.leg_setpoint, sample.leg_rate_setpoint)


# what the port itself needs beside its plant
PORT_PARAMETERS = (
    Parameter("setpoint_delay_ticks", "int", "-", "setpoints act this many ticks after they were computed", 1, low=0, high=1),
    Parameter("measured_leg_delay_ticks", "int", "-", "measured legs are this many ticks old", 1, low=0, high=1),
    Parameter("faults", "tables", "-",
              "faults to inject: tables with fault (a name of the table of injected faults, or clear), at_s, index, value",
              ()),
)


cdef class VirtualStandPort(PortPart):
    """Drives, sensor, signals and mechanism in process."""

    PARAMETERS = MACHINES["linear"] + PORT_PARAMETERS
    MACHINE = "linear"
    INJECTIONS = IN_PROCESS
    COMMANDS = (Command("inject_fault", numbers=tuple(IN_PROCESS.values())), Command("clear_injection"))
    CONTEXT = ("period_s", "platform", "mounting", "mechanism", "limits")
    cdef Self c
    cdef readonly PlantPart plant
    cdef readonly tuple AUX

    def __init__(self, *, period_s, platform, mounting, mechanism, limits=None, **given):
        cdef int i
        keys = checked(self.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        of_plant = {p.key: keys[p.key] for p in MACHINES[self.MACHINE]}
        self.plant = PlantPart(platform=platform, mounting=mounting, mechanism=mechanism, machine=self.MACHINE, **of_plant)
        self.c.plant = &self.plant.plant
        self.AUX = of_unit(mechanism)
        self.c.unit_channels = sum(channel.count for channel in self.AUX)
        steps = period_s / self.plant.step_s
        if abs(steps - round(steps)) > 1e-6 or round(steps) < 1:
            raise ValueError(f"virtual.plant_step_s: {self.plant.step_s} s does not divide the period of the loop, {period_s} s")
        self.c.params.steps_per_period = round(steps)
        self.c.params.period = period_s
        self.c.params.period_ns = round(period_s * 1e9)
        self.c.params.leg_delay = keys["measured_leg_delay_ticks"]
        self.c.params.setpoint_delay = keys["setpoint_delay_ticks"]
        if limits is not None and limits.emergency_stop:
            self.c.params.chain_inputs |= ANALOGUE_CHAIN_EMERGENCY_STOP_A | ANALOGUE_CHAIN_EMERGENCY_STOP_B
        if limits is not None and limits.guard:
            self.c.params.chain_inputs |= ANALOGUE_CHAIN_GUARD_A | ANALOGUE_CHAIN_GUARD_B
        self.c.params.chain_wired = self.c.params.chain_inputs
        if limits is not None and limits.hydraulic_unit:
            self.c.params.chain_inputs |= ANALOGUE_CHAIN_UNIT_ON
            self.c.params.chain_wired |= (ANALOGUE_CHAIN_UNIT_ON | ANALOGUE_CHAIN_UNIT_LOW | ANALOGUE_CHAIN_UNIT_HIGH
                                          | ANALOGUE_CHAIN_UNIT_INTERLOCK)
        faults = keys["faults"]
        if len(faults) > MAX_SCHEDULED:
            raise ValueError(f"virtual.faults: must be at most {MAX_SCHEDULED} tables, got {len(faults)}")
        self.c.params.scheduled_count = len(faults)
        for i, (at_s, number, index, value) in enumerate(sorted(scheduled(faults, self.INJECTIONS))):
            self.c.params.scheduled[i].time_ns = round(at_s * 1e9)
            self.c.params.scheduled[i].code = number
            self.c.params.scheduled[i].index = index
            self.c.params.scheduled[i].value = value
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.read = read
        self.plug.write = write

    def state_fields(self):
        return self.c.state

    def state_bounds(self):
        counts = ("sequence", "lost", "corrupt", "drive_lost", "drive_corrupt")
        words = ("sensor_wire", "drive_wire", "signal_wire", "chain_unread", "opened")
        return ({name: COUNT for name in counts} | {name: WORD for name in words}
                | {"have_setpoint": FLAG, "started": FLAG, "next_scheduled": (0, self.c.params.scheduled_count)})

    @property
    def inner(self):
        machine = {} if self.plant.machine is None else {"machine": self.plant.machine}
        return {"plant": self.plant, **machine, "mechanism": self.plant.mechanism}

    @property
    def sensor_scale(self):
        return self.plant.sensor_scale

    @property
    def delays(self):
        """What this port adds to the delay ledger."""
        return {
            "sensor_delay_s": self.plant.plant.params.force_delay_steps * self.plant.step_s,
            "setpoint_ticks": self.c.params.setpoint_delay,
            "measured_leg_delay_s": self.c.params.leg_delay * self.c.params.period,
        }


cdef class HydraulicStandPort(VirtualStandPort):
    """The same with a platform on hydraulic legs (drivers.simulated.hydraulic_machine) in the place of the linear drives."""

    PARAMETERS = MACHINES["hydraulic"] + PORT_PARAMETERS
    MACHINE = "hydraulic"
    SAYS = ("leg_force", "leg_pressure_a", "leg_pressure_b", "leg_valve", "supply_pressure")
    INJECTIONS = HYDRAULIC
    COMMANDS = (Command("inject_fault", numbers=tuple(HYDRAULIC.values())), Command("clear_injection"))
