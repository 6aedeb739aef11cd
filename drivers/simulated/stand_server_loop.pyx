"""The loop of the stand in software as a process of its own: one thread, no interpreter, the protocols of the real devices.

The drives are six CANopen nodes, or six EtherCAT slaves on a raw socket (`ethercat_segment`): these take their setpoints and measure with
SYNC0 of their distributed clocks, at whose moment the plant then stands. The force sensor is any that has the plug of
`drivers.simulated.emulated_sensor`, on its own wire.

One pass: wait until a datagram comes or a record is due; advance the plant in 50 us steps up to now; serve what came (CAN frames, the
sensor's requests, control datagrams); send the records that are due, each with the plant advanced to its own time; heartbeats, time-outs,
faults whose time has come. After a stall of the machine the records that a sensor would have sent meanwhile are sent in a burst, and
receive time-outs are looked at only after the waiting setpoints were taken.

Control datagram, 40 bytes little-endian: magic u32, command u32 (1 inject, 2 clear, 3 clear all, 4 stop, 5 are you there), number i32,
index i32 (-1 all), value f64, at f64 [s after the first SYNC, 0 now], reserved u64. Answer, 16 bytes: magic, command, result i32 (0 done, 1
not known), 0.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from drivers.raw_frames.ethercat_frame cimport COMMAND_LRW
from drivers.raw_frames.frame_io cimport (
    IO_BATCH,
    POLLIN,
    can_frame,
    io_load_le16,
    io_load_le32,
    io_now_ns,
    io_receive_frames_stamped,
    io_receive_datagrams,
    io_receive_from,
    io_send,
    io_send_frames,
    io_send_to,
    io_set_core,
    io_set_fifo,
    io_store_le32,
    io_wait_readable,
    pollfd,
    sockaddr_in,
)
from drivers.simulated.emulated_sensor cimport (
    NEVER,
    EmulatedSensor,
    SensorPlug,
    SensorWire,
    drop_messages,
    rounded,
    send_messages,
    sensor_next_ns,
)
from drivers.simulated.ethercat_segment cimport (
    SLAVE_FMMUS,
    EtherCatSegment,
    Segment,
    segment_al_error,
    segment_drift,
    segment_frame,
    segment_next_sync,
    segment_timers,
)
from drivers.simulated.injections cimport *
from drivers.simulated.plant cimport (
    PLANT_MECHANISM_INVALID,
    MachineReadings,
    Plant,
    PlantPart,
    chain_inputs_of,
    plant_advance,
    plant_block,
    plant_inject,
    plant_measure,
    plant_measure_machine,
    plant_set_commands,
    plant_set_target,
)
from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults, every
from drivers.simulated.unit_channels cimport UnitBlock, UnitMemory, put_channels
from drivers.simulated.stand_server_node cimport (
    BIT_BLOCKED,
    BIT_SUPPLY_LOW,
    BIT_VALVE_AT_END,
    DRIVE_SWITCH_ON_DISABLED,
    EMERGENCY_DEVICE,
    OUTBOX,
    VALVE_DISABLED,
    Node,
    Outbox,
    axis_fault,
    axis_follows,
    axis_in_fault,
    axis_powered,
    axis_target,
    find_object,
    make_node,
    node_timers,
    send_emergency,
    start_up,
    sync_actual_values,
    sync_setpoints,
    take_node_frame,
)
from rt_kernels.codes cimport (ANALOGUE_CHAIN_EMERGENCY_STOP_A, ANALOGUE_CHAIN_EMERGENCY_STOP_B, ANALOGUE_CHAIN_GUARD_A,
                               ANALOGUE_CHAIN_GUARD_B, ANALOGUE_CHAIN_UNIT_ON, DRIVE_STATUS_HYDRAULICS_BLOCKED, DRIVE_STATUS_SUPPLY_LOW,
                               DRIVE_STATUS_VALVE_SATURATED)

cdef enum:
    AXES = 6
    MODULE = 6                  # place of the input module among the nodes
    NODES = 7
    LINKS = 4                   # three of the drives, one of the module
    DRIVES_ON_WIRE = -2         # the link of EtherCAT drives
    PENDING = 64                # faults that wait for their time
    MOST_BURST = 400            # records in one pass after a stall
    OF_SEGMENT = 100            # and the place of a slave
    MOST_ADVANCE_STEPS = 40000  # 2 s: a longer stall is not made up for
    ANALOG = 8
    INPUTS = 32
    CHAIN = 11                  # bits of analogue_chain
    OF_PLANT = 3                # of these the plant knows
    CONTROL_BYTES = 40
    MAGIC = 0x53444E54
    COB_SYNC = 0x080
    WIRE_FRAME = 1514
    WIRE_QUEUE = 16             # delayed EtherCAT frames
    WIRE_ROUNDS = 16            # frames in one pass
    TRUTH = 19                  # time, legs, their rates, twist of the platform in W
    STATES = 6                  # time, axis, state of the drive, of its node, ns since its newest frame, longest time without while enabled
    STATE_ROWS = 8192

CHAIN_KEYS = ("chain_inputs", "emergency_stop_inputs", "guard_inputs", "unit_inputs")

cdef int64_t STEP_NS = 50000
cdef int64_t LONGER_NS = 1000000

# of what a loaded machine says: see stand_server_node.pxd
cdef double FORCE_UNIT = 10.0           # N
cdef double PRESSURE_UNIT = 1000.0      # Pa
cdef double SPOOL_COUNTS = 16384.0


cdef struct TimedFault:
    int32_t number
    int32_t index
    int32_t on
    int32_t used
    double value
    double at_s


# The raw socket of the EtherCAT slaves and what happens to frames on it.
cdef struct Wire:
    Segment *segment            # NULL: the drives are on CAN
    int32_t fd
    int64_t sync_ns             # next SYNC0, 0: none
    int64_t read_ns             # all that had come by then is read
    int64_t frames
    # faults
    int32_t cut
    int32_t drop_every
    int32_t double_every
    double forged_mm            # 0: no other device answers
    int64_t delay_ns
    int64_t queue_due[WIRE_QUEUE]
    int32_t queue_bytes[WIRE_QUEUE]
    uint8_t queue_data[WIRE_QUEUE][WIRE_FRAME]
    int32_t queue_head
    int32_t queue_tail


cdef struct Stand:
    Plant *plant
    UnitBlock *unit             # where its unit's channels go, NULL: nowhere
    int64_t plant_ns
    SensorPlug *sensor
    double counts_per_unit[6]   # of the plant's gauges: per N and N.m
    Node node[NODES]
    int32_t nodes               # 6, or 7 with an input module
    int32_t first_node          # on CAN: 0, or 6 where the drives are on EtherCAT
    int32_t links
    int32_t link_fd[LINKS]
    int32_t link_known[LINKS]
    sockaddr_in link_peer[LINKS]
    Outbox outbox[LINKS]
    Wire wire
    Outbox nowhere              # what EtherCAT drives would say on CAN
    int32_t control_fd
    volatile int32_t stop
    double counts_per_metre
    double zero_m[AXES]
    double leg[AXES]
    double analog[ANALOG]
    uint32_t signals
    uint32_t chain
    uint32_t shut               # axes whose blocking valves are closed
    uint32_t outputs            # of the input module: commands to the mechanism
    double target[AXES]
    double target_rate[AXES]
    int64_t target_ns[AXES]     # SYNC at which the target was latched
    int32_t was_enabled[AXES]
    int32_t signal_bit[INPUTS]
    int32_t chain_input[CHAIN]  # inputs of the module, in the order of the bits of analogue_chain; -1: not wired
    uint32_t chain_well         # inputs that are on while all is well, of those that the plant does not know
    uint32_t opened             # injected: inputs that are open, or say that something is wrong
    int32_t watchdog_node       # whose digital outputs have it, -1: not wired; OF_SEGMENT and its place: a slave on EtherCAT
    int32_t watchdog_place      # of the outputs among its objects
    int32_t watchdog_mask       # of the object that says which of them the bus commands, -1: all
    int32_t watchdog_bit
    int32_t watchdog_level
    int64_t watchdog_ns         # SYNC that brought its newest edge, 0 before the first
    int64_t relay_ns            # a relay falls when no edge has come for so long
    int32_t relay               # 1: on
    int32_t relay_input         # of the module, its feedback contact; -1: not wired
    int32_t range_input         # says that the mechanism's model has left its valid range, -1: not wired
    double analog_scale[ANALOG]
    double analog_offset[ANALOG]
    int64_t first_sync_ns
    int64_t sync_total
    double *truth               # rows of TRUTH numbers, one for each SYNC on the first link; NULL: not kept
    int64_t truth_rows
    int64_t truth_used
    int64_t *states             # rows of STATES numbers, one for each change of a drive's state
    int64_t states_used
    int32_t drive_state[AXES]   # as they were looked at last
    int32_t node_state[AXES]
    int64_t longest_told[AXES]  # the longest time without a frame in its newest row
    int64_t frame_total
    int64_t bad_total
    int64_t stall_total         # passes that found more than 5 ms gone
    TimedFault pending[PENDING]


# ------------------------------------------------------------------------------------------------------------------ plant


cdef inline Node *drive(Stand *s, int i) noexcept nogil:
    return &s.node[i] if s.wire.segment == NULL else &s.wire.segment.slave[i].node


# Up to `now`, by way of every SYNC0 until then, with which EtherCAT drives measure and take their setpoints.
cdef void advance_plant(Stand *s, int64_t now) noexcept nogil:
    while s.wire.sync_ns and s.wire.sync_ns <= now:
        advance_steps(s, s.wire.sync_ns)
        measure(s)
        sample_legs(s)
        set_targets(s, DRIVES_ON_WIRE, True, s.wire.sync_ns)
        s.wire.sync_ns = segment_next_sync(s.wire.segment, s.wire.sync_ns)
    advance_steps(s, now)


# Whole steps up to `now`; a stall beyond the limit is left out.
cdef void advance_steps(Stand *s, int64_t now) noexcept nogil:
    cdef int64_t steps = (now - s.plant_ns) // STEP_NS
    if steps <= 0:
        return
    s.plant_ns += steps * STEP_NS
    plant_advance(s.plant, steps if steps < MOST_ADVANCE_STEPS else MOST_ADVANCE_STEPS)


cdef inline int32_t clamp16(double x) noexcept nogil:
    cdef int32_t whole = rounded(x)
    return -32768 if whole < -32768 else 32767 if whole > 32767 else whole


cdef inline void put16(Node *n, int place, double counts) noexcept nogil:
    n.object[place].value = <uint32_t>clamp16(counts) & 0xFFFF


# What the drives of a loaded machine say beside lengths; those of the linear one have no such objects.
cdef void measure_machine(Stand *s) noexcept nogil:
    cdef MachineReadings machine
    cdef Node *n
    cdef int i
    if s.plant.machine == NULL or s.wire.segment != NULL:
        return
    plant_measure_machine(s.plant, &machine)
    for i in range(AXES):
        n = &s.node[i]
        if n.kind == 402:
            put16(n, n.force, 1000.0 * machine.force[i] / n.rated_force)
            put16(n, n.force + 1, 1000.0 * machine.valve[i])
        else:
            put16(n, n.force, SPOOL_COUNTS * machine.valve[i])
            put16(n, n.load_pressure, (machine.pressure_a[i] - machine.pressure_b[i]) / PRESSURE_UNIT)
        put16(n, n.record, machine.force[i] / FORCE_UNIT)
        put16(n, n.record + 1, machine.pressure_a[i] / PRESSURE_UNIT)
        put16(n, n.record + 2, machine.pressure_b[i] / PRESSURE_UNIT)
        put16(n, n.record + 3, SPOOL_COUNTS * machine.valve[i])
        put16(n, n.record + 4, machine.supply_pressure / PRESSURE_UNIT)
        n.object[n.record + 5].value = ((BIT_VALVE_AT_END if machine.status[i] & DRIVE_STATUS_VALVE_SATURATED else 0)
                                        | (BIT_SUPPLY_LOW if machine.status[i] & DRIVE_STATUS_SUPPLY_LOW else 0)
                                        | (BIT_BLOCKED if machine.status[i] & DRIVE_STATUS_HYDRAULICS_BLOCKED else 0))


# Lengths of the legs, as measured last, into the drives.
cdef void sample_legs(Stand *s) noexcept nogil:
    cdef Node *n
    cdef int i
    for i in range(AXES):
        n = drive(s, i)
        n.object[n.actual].value = <uint32_t>rounded((s.leg[i] - s.zero_m[i]) * s.counts_per_metre)


# Everything that can be measured, into the objects of the nodes.
cdef void measure(Stand *s) noexcept nogil:
    cdef SensorWire *w = &s.sensor.wire
    cdef double rate[AXES]
    cdef uint32_t inputs = 0
    cdef Node *n
    cdef int i
    plant_measure(s.plant, s.leg, rate, w.gauge, &s.signals, s.analog, &s.chain)
    for i in range(6):
        w.F[i] = w.gauge[i] / s.counts_per_unit[i]
    if s.wire.sync_ns == 0:
        sample_legs(s)
    measure_machine(s)
    if s.nodes <= MODULE:
        return

    # Input module: discrete signals, the emergency chain, analogue values.
    n = &s.node[MODULE]
    for i in range(INPUTS):
        if s.signal_bit[i] >= 0:
            inputs |= (s.signals >> s.signal_bit[i] & 1) << i
    s.chain |= (s.chain_well ^ s.opened) & ~<uint32_t>((1 << OF_PLANT) - 1)
    for i in range(CHAIN):
        if s.chain_input[i] >= 0:
            inputs = (inputs & ~(<uint32_t>1 << s.chain_input[i])) | (s.chain >> i & 1) << s.chain_input[i]
    if s.range_input >= 0:
        inputs = (inputs & ~(<uint32_t>1 << s.range_input)) | (s.plant.state.status & PLANT_MECHANISM_INVALID != 0) << s.range_input
    if s.relay_input >= 0:
        inputs = (inputs & ~(<uint32_t>1 << s.relay_input)) | <uint32_t>s.relay << s.relay_input
    for i in range(4):
        n.object[n.status + i].value = inputs >> 8 * i & 0xFF
    for i in range(ANALOG):
        n.object[n.actual + i].value = <uint32_t>clamp16((s.analog[i] - s.analog_offset[i]) / s.analog_scale[i]) & 0xFFFF


# The blocking valve, or the brake, of an axis without power is closed.
cdef void set_blocking(Stand *s) noexcept nogil:
    cdef uint32_t shut = 0
    cdef int i
    for i in range(AXES):
        if not axis_powered(drive(s, i)):
            shut |= <uint32_t>1 << i
    if shut != s.shut:
        s.shut = shut
        plant_block(s.plant, shut)
        if s.plant.machine != NULL:
            measure_machine(s)


# Targets of the axes: the setpoint while it is used, the place where it was otherwise.
cdef void set_targets(Stand *s, int link, bint at_sync, int64_t now) noexcept nogil:
    cdef Node *n
    cdef double leg
    cdef int i
    cdef bint changed = False
    set_blocking(s)
    for i in range(AXES):
        n = drive(s, i)
        if axis_follows(n):
            if n.link == link and (at_sync or not s.was_enabled[i]):
                leg = s.zero_m[i] + <double>axis_target(n) / s.counts_per_metre
                s.target_rate[i] = 0.0
                if n.velocity >= 0 and n.rpdo[1].on:
                    s.target_rate[i] = <double><int32_t>n.object[n.velocity].value / s.counts_per_metre
                elif s.was_enabled[i] and 0 < now - s.target_ns[i] < 100000000:
                    s.target_rate[i] = (leg - s.target[i]) * 1e9 / <double>(now - s.target_ns[i])
                s.target[i] = leg
                s.target_ns[i] = now
                changed = True
            s.was_enabled[i] = 1
        elif s.was_enabled[i] or s.target_ns[i] == 0:
            s.was_enabled[i] = 0
            s.target[i] = s.leg[i]
            s.target_rate[i] = 0.0
            s.target_ns[i] = now
            changed = True
    if changed:
        plant_set_target(s.plant, s.target, s.target_rate)


# ----------------------------------------------------------------------------------------------------------------- sensor
# Everything of the sensor whose time has come: all records that are due, each with the plant advanced to its time.
cdef void serve_sensor(Stand *s, int64_t now) noexcept nogil:
    cdef SensorWire *w = &s.sensor.wire
    cdef int burst = 0
    while w.record_ns <= now:
        w.now = w.record_ns
        w.lost = burst >= MOST_BURST        # a stall too long to make up for
        if not w.lost:
            advance_plant(s, w.now)
            measure(s)
        s.sensor.record(s.sensor.self, w)
        w.record_ns = max(w.record_ns, w.now + STEP_NS)
        burst += 1
    send_messages(w, now)


# Power to the sensor, after it was gone or at the start.
cdef void power_up_sensor(Stand *s, int64_t now) noexcept nogil:
    s.sensor.wire.now = now
    s.sensor.wire.record_ns = NEVER
    drop_messages(&s.sensor.wire)
    s.sensor.power_up(s.sensor.self, &s.sensor.wire)


# ----------------------------------------------------------------------------------------------------------------- faults
cdef int inject_axis(Stand *s, int number, int i, double value, bint on) noexcept nogil:
    cdef Node *n = drive(s, i)
    cdef Outbox *out = &s.outbox[n.link] if s.wire.segment == NULL else &s.nowhere
    s.nowhere.count = 0
    if s.wire.segment != NULL and number in (INJECTION_DRIVE_SILENT, INJECTION_DRIVE_EMERGENCY, INJECTION_DRIVE_WRONG_LENGTH,
                                             INJECTION_DRIVE_RESTART, INJECTION_DRIVE_HEARTBEAT_LOST, INJECTION_DRIVE_LOST):
        return 1        # of CAN alone
    if number == INJECTION_DRIVE_SILENT:
        n.silent = on
    elif number == INJECTION_DRIVE_EMERGENCY:
        send_emergency(n, out, <int>value if on else 0)
    elif number == INJECTION_DRIVE_FAULT:
        n.stuck_fault = on
        if on:
            axis_fault(n, out, EMERGENCY_DEVICE)
    elif number == INJECTION_DRIVE_DISABLED:
        if on and not axis_in_fault(n):
            n.state = DRIVE_SWITCH_ON_DISABLED if n.kind == 402 else VALVE_DISABLED
    elif number == INJECTION_DRIVE_LOCAL:
        n.local_control = on
    elif number == INJECTION_DRIVE_FOLLOWING_ERROR:
        n.deviation = on
    elif number == INJECTION_DRIVE_LIMIT_TOUCHED:
        n.limit = on
    elif number == INJECTION_DRIVE_WRONG_LENGTH:
        n.wrong_length = on
    elif number == INJECTION_DRIVE_RESTART:
        if on:
            start_up(n, out, s.plant_ns)
    elif number == INJECTION_DRIVE_NOT_FOLLOWING and n.kind == 402:
        n.not_following = on
    elif number == INJECTION_DRIVE_HEARTBEAT_LOST:
        n.no_heartbeat = on
    elif number == INJECTION_DRIVE_LOST:
        n.sparse = <int>value if on else 0
    else:
        return 1
    return 0


cdef int inject_sensor(Stand *s, int number, double value, bint on) noexcept nogil:
    cdef WireFaults *f = &s.sensor.wire.faults
    cdef int count = <int>value if on else 0
    if number == INJECTION_SENSOR_LOST:
        f.drop_every = count
    elif number == INJECTION_SENSOR_DUPLICATE:
        f.duplicate_every = count
    elif number == INJECTION_SENSOR_DELAY:
        f.delay_ns = <int64_t>(value * 1e6) if on else 0
    elif number == INJECTION_SENSOR_REORDER:
        f.reorder_every = count
    elif number == INJECTION_SENSOR_ROLLOVER:
        f.first_sequence = <uint32_t>0 - <uint32_t>count if on else 0
    elif number == INJECTION_SENSOR_STALE:
        f.frozen = on
    elif number == INJECTION_SENSOR_STATUS_WORD:
        f.status_word = <uint32_t>value if on else 0
    elif number == INJECTION_SENSOR_CORRUPT:
        f.cut_every = count
    elif number == INJECTION_SENSOR_TAKEN_OVER:
        f.taken_over = on
    elif number == INJECTION_SENSOR_SILENT:
        f.silent = on
    elif number == INJECTION_SENSOR_NOISE:
        f.noise_every = count
    elif number == INJECTION_SENSOR_CHECKSUM:
        f.checksum_every = count
    elif number == INJECTION_SENSOR_SLOW:
        f.slow = on
    elif number == INJECTION_SENSOR_REBOOT:
        if on:
            power_up_sensor(s, s.plant_ns)
    else:
        return 1
    return 0


# Faults of the EtherCAT line: of all frames, or of one slave (index; -1: all).
cdef int inject_wire(Stand *s, int number, int index, double value, bint on, int64_t now) noexcept nogil:
    cdef Wire *w = &s.wire
    cdef int i, count = <int>value if on else 0
    if w.segment == NULL or index >= AXES:
        return 1
    if number == INJECTION_FRAMES_LOST:
        w.drop_every = count
    elif number == INJECTION_FRAMES_DOUBLED:
        w.double_every = count
    elif number == INJECTION_FRAMES_LATE:
        w.delay_ns = <int64_t>(value * 1e6) if on else 0
    elif number == INJECTION_FRAMES_SPOOFED:
        w.forged_mm = value if on else 0.0
    elif number == INJECTION_CABLE_CUT:
        w.cut = on
    elif number == INJECTION_SLAVE_LOST:
        w.segment.lost_from = max(0, index) if on else w.segment.slaves
    elif number == INJECTION_CLOCK_DRIFT:
        segment_drift(w.segment, 0, value * 1e-6 if on else 0.0, now)
    elif number == INJECTION_WORKING_COUNTER or number == INJECTION_AL_ERROR:
        for i in range(AXES):
            if index < 0 or index == i:
                if number == INJECTION_AL_ERROR:
                    segment_al_error(w.segment, i, count)
                else:
                    w.segment.slave[i].wkc_short = on
    else:
        return 1
    return 0


# Injects or clears one fault. Returns 0, or 1 when there is no such fault or index.
cdef int set_fault(Stand *s, int number, int index, double value, bint on) noexcept nogil:
    cdef int i, result = 0
    if s.plant.machine == NULL and INJECTION_SUPPLY_LOSS <= number <= INJECTION_VALVE_STUCK:
        return 1        # the linear drives have no oil
    if INJECTIONS_PLANT_FIRST <= number <= INJECTIONS_PLANT_LAST:
        # Taking one fault of the plant back makes the whole plant whole: that is what it offers.
        plant_inject(s.plant, number if on else INJECTION_CLEAR, index if index >= 0 else 0, value)
        return 1 if index >= AXES else 0
    if INJECTIONS_DRIVE_FIRST <= number <= INJECTIONS_DRIVE_LAST:
        if index >= AXES:
            return 1
        for i in range(AXES):
            if index < 0 or index == i:
                result |= inject_axis(s, number, i, value, on)
        return result
    if INJECTIONS_LINE_FIRST <= number <= INJECTIONS_LINE_LAST:
        return inject_wire(s, number, index, value, on, io_now_ns())
    if number == INJECTION_LINK_SILENT:
        for i in range(s.nodes):
            if index < 0 or s.node[i].link == index:
                s.node[i].silent = on
        return 0
    if INJECTION_EMERGENCY_STOP <= number <= INJECTION_UNIT_FAULT:
        if s.nodes <= MODULE:
            return 1
        s.opened = s.opened | chain_inputs_of(number, index) if on else s.opened & ~chain_inputs_of(number, index)
        return 0
    if number == INJECTION_SIGNALS_SILENT or number == INJECTION_SIGNALS_FAULT:
        if s.nodes <= MODULE:
            return 1
        if number == INJECTION_SIGNALS_SILENT:
            s.node[MODULE].silent = on
        else:
            send_emergency(&s.node[MODULE], &s.outbox[s.node[MODULE].link], <int>value if on else 0)
        return 0
    return inject_sensor(s, number, value, on)


cdef void clear_all_faults(Stand *s) noexcept nogil:
    cdef int number, i
    for i in range(PENDING):
        s.pending[i].used = 0
    for number in range(INJECTIONS_SENSOR_FIRST, INJECTIONS_SENSOR_LAST + 1):
        inject_sensor(s, number, 0.0, False)
    if s.wire.segment != NULL:
        for number in range(INJECTIONS_LINE_FIRST, INJECTIONS_LINE_LAST + 1):
            inject_wire(s, number, -1, 0.0, False, io_now_ns())
        for number in range(INJECTIONS_DRIVE_FIRST, INJECTIONS_DRIVE_LAST + 1):
            for i in range(AXES):
                inject_axis(s, number, i, 0.0, False)
    for i in range(s.first_node, s.nodes):
        s.node[i].silent = 0
        s.node[i].local_control = s.node[i].deviation = s.node[i].limit = s.node[i].stuck_fault = s.node[i].wrong_length = 0
        s.node[i].not_following = s.node[i].no_heartbeat = s.node[i].sparse = 0
        if s.node[i].emergency and (s.node[i].kind == 401 or not axis_in_fault(&s.node[i])):
            send_emergency(&s.node[i], &s.outbox[s.node[i].link], 0)
    s.opened = 0
    plant_inject(s.plant, INJECTION_CLEAR, 0, 0.0)


# Keeps a fault until its time after the first SYNC. Returns 1 when there is no room.
cdef int set_fault_later(Stand *s, int number, int index, double value, bint on, double at_s) noexcept nogil:
    cdef int i
    for i in range(PENDING):
        if not s.pending[i].used:
            s.pending[i].used = 1
            s.pending[i].number, s.pending[i].index, s.pending[i].on = number, index, on
            s.pending[i].value, s.pending[i].at_s = value, at_s
            return 0
    return 1


cdef void due_faults(Stand *s, int64_t now) noexcept nogil:
    cdef TimedFault *f
    cdef int i
    if s.first_sync_ns == 0:
        return
    for i in range(PENDING):
        f = &s.pending[i]
        if f.used and <double>(now - s.first_sync_ns) >= f.at_s * 1e9:
            f.used = 0
            set_fault(s, f.number, f.index, f.value, f.on)


cdef void take_control(Stand *s) noexcept nogil:
    cdef uint8_t request[64]
    cdef uint8_t answer[16]
    cdef sockaddr_in sender
    cdef double value, at_s
    cdef uint32_t command
    cdef int32_t number, index
    cdef int size, result
    while True:
        size = io_receive_from(s.control_fd, request, 64, &sender)
        if size < 0:
            return
        if size != CONTROL_BYTES or io_load_le32(request) != MAGIC:
            s.bad_total += 1
            continue
        command = io_load_le32(request + 4)
        number = <int32_t>io_load_le32(request + 8)
        index = <int32_t>io_load_le32(request + 12)
        memcpy(&value, request + 16, 8)
        memcpy(&at_s, request + 24, 8)
        result = 0
        if not (-2147483000.0 < value < 4294967295.5):
            result = 1
        elif command == 1 or command == 2:
            if at_s > 0.0:
                result = set_fault_later(s, number, index, value, command == 1, at_s)
            else:
                result = set_fault(s, number, index, value, command == 1)
        elif command == 3:
            clear_all_faults(s)
        elif command == 4:
            s.stop = 1
        elif command != 5:
            result = 1
        io_store_le32(answer, MAGIC)
        io_store_le32(answer + 4, command)
        io_store_le32(answer + 8, <uint32_t>result)
        io_store_le32(answer + 12, 0)
        io_send_to(s.control_fd, answer, 16, &sender)


# ------------------------------------------------------------------------------------------------------------------ links
cdef void flush(Stand *s, int link) noexcept nogil:
    cdef Outbox *out = &s.outbox[link]
    cdef int at = 0, n, error = 0
    while at < out.count and s.link_known[link]:
        n = out.count - at
        io_send_frames(s.link_fd[link], &out.frame[at], n if n < IO_BATCH else IO_BATCH, &s.link_peer[link], &error)
        at += IO_BATCH
    out.count = 0


# Where the plant truly is, whatever its devices say.
cdef inline void keep_truth(Stand *s, int64_t now) noexcept nogil:
    cdef double *row
    if s.truth == NULL or s.truth_used >= s.truth_rows:
        return
    row = s.truth + TRUTH * s.truth_used
    row[0] = <double>(now - s.first_sync_ns) * 1e-9
    memcpy(row + 1, s.plant.state.leg, 6 * sizeof(double))
    memcpy(row + 7, s.plant.state.leg_rate, 6 * sizeof(double))
    memcpy(row + 13, s.plant.state.V_WP, 6 * sizeof(double))
    s.truth_used += 1


# The relay behind the watchdog's output: on with an edge, off when none has come for too long. Its changes stand in the drives' own log, as
# those of axis MODULE: time, axis, on, state of the module, ns since the newest edge.
cdef void set_relay(Stand *s, int on, int64_t now) noexcept nogil:
    cdef int64_t *row
    s.relay = on
    if s.states_used < STATE_ROWS:
        row = s.states + STATES * s.states_used
        row[0], row[1], row[2], row[3], row[4], row[5] = now, MODULE, on, s.node[MODULE].nmt, now - s.watchdog_ns, 0
        s.states_used += 1


cdef inline Node *watchdog_device(Stand *s) noexcept nogil:
    return &s.wire.segment.slave[s.watchdog_node - OF_SEGMENT].node if s.watchdog_node >= OF_SEGMENT else &s.node[s.watchdog_node]


cdef void watch_edges(Stand *s, int64_t now) noexcept nogil:
    cdef const Node *n = watchdog_device(s)
    cdef uint32_t outputs = n.object[s.watchdog_place].value
    cdef int32_t level
    if s.watchdog_mask >= 0:
        outputs &= n.object[s.watchdog_mask].value
    level = <int32_t>(outputs >> s.watchdog_bit & 1)
    if level == s.watchdog_level:
        return
    s.watchdog_level, s.watchdog_ns = level, now
    if not s.relay:
        set_relay(s, 1, now)


cdef void take_sync(Stand *s, int link, int64_t now, int64_t came) noexcept nogil:
    cdef int i
    if s.first_sync_ns == 0:
        s.first_sync_ns = now
    s.sync_total += 1
    if link == 0:
        keep_truth(s, now)
    for i in range(s.nodes):
        if s.node[i].link == link and not s.node[i].silent:
            sync_setpoints(&s.node[i], &s.outbox[link])
    set_targets(s, link, True, now)
    if s.nodes > MODULE and s.node[MODULE].link == link and s.node[MODULE].object[s.node[MODULE].target].value != s.outputs:
        s.outputs = s.node[MODULE].object[s.node[MODULE].target].value
        plant_set_commands(s.plant, s.outputs)
    if 0 <= s.watchdog_node < OF_SEGMENT and s.node[s.watchdog_node].link == link:
        watch_edges(s, came)
    for i in range(s.nodes):
        if s.node[i].link == link and not s.node[i].silent:
            sync_actual_values(&s.node[i], &s.outbox[link])


# The drives' own log: which changed its state, or was without a frame for a millisecond longer than ever, and when.
cdef void keep_states(Stand *s, int64_t now) noexcept nogil:
    cdef const Node *n
    cdef int64_t *row
    cdef int32_t node
    cdef int i
    for i in range(AXES):
        n = drive(s, i)
        node = n.nmt if s.wire.segment == NULL else s.wire.segment.slave[i].state
        if n.state == s.drive_state[i] and node == s.node_state[i] and n.longest_ns < s.longest_told[i] + LONGER_NS:
            continue
        s.longest_told[i] = n.longest_ns
        s.drive_state[i], s.node_state[i] = n.state, node
        if s.states_used < STATE_ROWS:
            row = s.states + STATES * s.states_used
            row[0], row[1], row[2], row[3] = now, i, n.state, node
            row[4] = now - n.frame_ns if n.frame_ns else -1
            row[5] = n.longest_ns
            s.states_used += 1


cdef void take_link(Stand *s, int link, int64_t now) noexcept nogil:
    cdef can_frame frames[IO_BATCH]
    cdef int64_t came[IO_BATCH]
    cdef int i, k, got, more = 1, error = 0, rounds = 0
    while more and rounds < 8:
        rounds += 1
        got = io_receive_frames_stamped(s.link_fd[link], frames, came, &s.bad_total, &s.link_peer[link], &more, &error)
        for i in range(got):
            s.frame_total += 1
            s.link_known[link] = 1
            if frames[i].can_id == COB_SYNC:
                take_sync(s, link, now, came[i])
            else:
                for k in range(s.nodes):
                    if s.node[k].link == link:
                        take_node_frame(&s.node[k], &s.outbox[link], &frames[i], came[i])
                keep_states(s, came[i])
                set_targets(s, link, False, now)
            if s.outbox[link].count > OUTBOX - 16:
                flush(s, link)
    flush(s, link)


# --------------------------------------------------------------------------------------------------------------- EtherCAT
# A frame on its way back.
cdef void send_back(Wire *w, const uint8_t *frame, int size, int64_t now) noexcept nogil:
    cdef int after = (w.queue_head + 1) % WIRE_QUEUE
    w.frames += 1
    if every(w.drop_every, w.frames):
        return
    if w.delay_ns > 0:
        if after != w.queue_tail:
            memcpy(w.queue_data[w.queue_head], frame, <size_t>size)
            w.queue_bytes[w.queue_head] = size
            w.queue_due[w.queue_head] = now + w.delay_ns
            w.queue_head = after
        return
    io_send(w.fd, frame, size)
    if every(w.double_every, w.frames):
        io_send(w.fd, frame, size)


# Somebody else's answer before the slaves': the same frame with every position moved by `counts`.
cdef void send_forged(Wire *w, const uint8_t *frame, int size, int32_t counts) noexcept nogil:
    cdef uint8_t forged[WIRE_FRAME]
    cdef uint8_t *at
    cdef const uint8_t *f
    cdef int i, k, length, place, head = 16
    memcpy(forged, frame, <size_t>size)
    while head + 12 <= size:
        length = io_load_le16(forged + head + 6) & 0x7FF
        for i in range(AXES):
            for k in range(SLAVE_FMMUS):
                # a map of a slave's inputs: status word, then position
                f = w.segment.slave[i].memory + 0x600 + 16 * k
                place = <int>io_load_le32(f) - <int>io_load_le32(forged + head + 2)
                if forged[head] != COMMAND_LRW or not f[12] & 1 or not f[11] & 1 or io_load_le16(f + 4) < 8 \
                        or place < 0 or place + 6 > length:
                    continue
                at = forged + head + 10 + place + 2
                io_store_le32(at, io_load_le32(at) + <uint32_t>counts)
        head += 12 + length
    io_send(w.fd, forged, size)


cdef void send_late(Wire *w, int64_t now) noexcept nogil:
    while w.queue_tail != w.queue_head and w.queue_due[w.queue_tail] <= now:
        io_send(w.fd, w.queue_data[w.queue_tail], w.queue_bytes[w.queue_tail])
        w.queue_tail = (w.queue_tail + 1) % WIRE_QUEUE


# Frames of the master pass the slaves, each at the time of its arrival in the kernel, however late this process woke, in the order of SYNC0
# and of the sensor's records. What frames ask for begins with the next SYNC0, or at once where there is none.
cdef void take_wire(Stand *s) noexcept nogil:
    cdef uint8_t frame[WIRE_FRAME]
    cdef Wire *w = &s.wire
    cdef int size, error = 0
    cdef int64_t now, at, came
    for _ in range(WIRE_ROUNDS):
        now = io_now_ns()
        if io_receive_datagrams(w.fd, frame, WIRE_FRAME, 1, &size, &came, &error) < 1:
            break
        at = max(w.read_ns, min(now, came))  # it was not there when the last one was read
        w.read_ns = at
        if w.cut or size <= 0:
            continue
        serve_sensor(s, at)
        advance_plant(s, at)
        size = segment_frame(w.segment, frame, size, at)
        if s.watchdog_node >= OF_SEGMENT:
            watch_edges(s, at)
        if size > 0 and w.forged_mm != 0.0:
            send_forged(w, frame, size, <int32_t>(w.forged_mm * 1e-3 * s.counts_per_metre))
        if size > 0:
            send_back(w, frame, size, now)
        w.sync_ns = segment_next_sync(w.segment, at)
    else:
        now = w.read_ns                                         # there may be more
    w.read_ns = now
    set_targets(s, DRIVES_ON_WIRE, w.sync_ns == 0, now)


# ------------------------------------------------------------------------------------------------------------------- loop
cdef void one_pass(Stand *s, pollfd *fds, int64_t *last) noexcept nogil:
    cdef int64_t due, now = io_now_ns()
    cdef int i

    # Wait: a record is due, a delayed one is due, or at most 5 ms for the timers.
    due = sensor_next_ns(&s.sensor.wire, now + 5000000)
    if s.wire.queue_head != s.wire.queue_tail and s.wire.queue_due[s.wire.queue_tail] < due:
        due = s.wire.queue_due[s.wire.queue_tail]
    io_wait_readable(fds, s.links + 2 + (s.wire.segment != NULL), due - now)
    now = io_now_ns()
    if now - last[0] > 10000000:
        s.stall_total += 1
    last[0] = now

    # EtherCAT frames first: they came before now.
    if s.wire.segment != NULL:
        take_wire(s)

    # The plant up to now, measured once for everything that is asked in this pass.
    serve_sensor(s, now)
    advance_plant(s, now)
    if s.unit != NULL:
        put_channels(s.unit, s.plant.params.mechanism_aux)
    measure(s)
    if s.wire.segment != NULL:
        send_late(&s.wire, now)
        segment_timers(s.wire.segment, now)
    for i in range(s.links):
        if fds[i].revents:
            take_link(s, i, now)
    if fds[s.links].revents:
        s.sensor.wire.now = now
        s.sensor.listen(s.sensor.self, &s.sensor.wire)
    if fds[s.links + 1].revents:
        take_control(s)

    # Faults whose time has come, heartbeats, receive time-outs.
    due_faults(s, now)
    for i in range(s.first_node, s.nodes):
        node_timers(&s.node[i], &s.outbox[s.node[i].link], now)
    keep_states(s, now)
    if s.relay and now - s.watchdog_ns > s.relay_ns:
        set_relay(s, 0, now)
    set_targets(s, -1, False, now)
    for i in range(s.links):
        flush(s, i)


cdef void run_stand(Stand *s) noexcept nogil:
    cdef pollfd fds[LINKS + 3]
    cdef int64_t last = io_now_ns()
    cdef int i
    for i in range(s.links):
        fds[i].fd = s.link_fd[i]
    fds[s.links].fd = s.sensor.wire.fd
    fds[s.links + 1].fd = s.control_fd
    fds[s.links + 2].fd = s.wire.fd
    for i in range(s.links + 3):
        fds[i].events = POLLIN
        fds[i].revents = 0
    s.plant_ns = last
    measure(s)
    power_up_sensor(s, last - s.sensor.wire.boot_ns)      # ready at the first request
    while not s.stop:
        one_pass(s, fds, &last)


cdef class StandLoop:
    """The stand's loop on sockets that Python has bound. `run()` blocks, without the GIL, until `stop()` or the stop command.

    plant: a PlantPart. link_fds: one bound UDP socket per link (drives' links first, the module's last when there is one). sensor: an
    EmulatedSensor that is open, boot_s from power-up to its first word. wire_fd: raw socket of the drives where they are on EtherCAT, -1
    where on CAN. drives, module: tables as in `stand_server.DEFAULTS` (module None: no input module). faults: (number, index, value, at_s,
    duration_s). truth_s: for so long it keeps the true motion at each SYNC. unit: a UnitMemory for the channels of its docking unit.
    """

    cdef Stand stand
    cdef PlantPart _plant
    cdef EmulatedSensor _sensor
    cdef object _truth
    cdef object _states
    cdef EtherCatSegment _line
    cdef UnitMemory _unit

    def __init__(self, PlantPart plant, link_fds, EmulatedSensor sensor, double boot_s, int control_fd, drives, module, faults=(),
                 double truth_s=0.0, int wire_fd=-1, UnitMemory unit=None):
        cdef Stand *s = &self.stand
        memset(s, 0, sizeof(Stand))
        self._plant = plant
        s.plant = &plant.plant
        self._unit = unit
        s.unit = NULL if unit is None else unit.block
        self._sensor = sensor
        s.sensor = &sensor.plug
        s.sensor.wire.boot_ns = <int64_t>(1e9 * boot_s)
        for i in range(6):
            s.counts_per_unit[i] = 1.0 if plant.sensor_scale is None else plant.sensor_scale[i]
        s.control_fd = control_fd
        # room for a SYNC every 250 us
        self._truth = np.zeros((int(4000 * truth_s), TRUTH))
        cdef double[:, ::1] truth = self._truth
        if truth_s > 0.0:
            s.truth, s.truth_rows = &truth[0, 0], truth.shape[0]
        self._states = np.zeros((STATE_ROWS, STATES), np.int64)
        cdef int64_t[:, ::1] states = self._states
        s.states = &states[0, 0]
        s.links = len(link_fds)
        for i, fd in enumerate(link_fds):
            s.link_fd[i] = fd
        s.wire.fd = wire_fd
        if wire_fd >= 0:
            self._line = EtherCatSegment(
                drives["slaves"], drives["following_window_m"] * drives["counts_per_metre"], drives["terminal_slave"]
            )
            s.wire.segment = self._line.g
        self._make_nodes(drives, module)
        for number, index, value, at_s, duration_s in faults:
            if at_s <= 0.0:
                failed = set_fault(s, number, index, value, True)
            else:
                failed = set_fault_later(s, number, index, value, True, at_s)
            if not failed and duration_s > 0:
                failed = set_fault_later(s, number, index, value, False, at_s + duration_s)
            if failed:
                raise ValueError(f"fault number {number}, index {index}: not known, or more than {PENDING} timed faults")

    def _make_nodes(self, drives, module):
        cdef Stand *s = &self.stand
        cdef Node *n
        s.counts_per_metre = drives["counts_per_metre"]
        window = rounded(drives["following_window_m"] * s.counts_per_metre)
        s.nodes = AXES if module is None else NODES
        s.first_node = 0 if s.wire.segment == NULL else AXES
        for i in range(AXES):
            s.zero_m[i] = drives["zero_m"][i]
            s.node[i].link = -1
            if s.wire.segment != NULL:
                s.wire.segment.slave[i].node.link = DRIVES_ON_WIRE
                continue
            make_node(&s.node[i], 402 if drives["profile"] == "cia402" else 408, drives["axis_node"][i], drives["axis_link"][i], window,
                      s.plant.params.platform.force_max if s.plant.machine != NULL else 0.0)
        for i in range(AXES):
            n = drive(s, i)
            for sub in range(4):
                n.object[find_object(n, 0x1018, sub + 1)].value = drives["identity"][i][sub]
            if n.kind == 402:
                n.object[find_object(n, 0x6092, 1)].value = <uint32_t>rounded(drives["feed_m"] * s.counts_per_metre)
        s.watchdog_node, s.watchdog_bit = drives["watchdog_axis"], drives["watchdog_outputs"][0]
        if drives["terminal_slave"] >= 0:
            s.watchdog_node, s.watchdog_mask = OF_SEGMENT + drives["terminal_slave"], -1
            s.watchdog_place = watchdog_device(s).target
        elif s.watchdog_node >= 0:
            n = drive(s, s.watchdog_node)
            s.watchdog_place, s.watchdog_mask = find_object(n, 0x60FE, 1), find_object(n, 0x60FE, 2)
        for i in range(INPUTS):
            s.signal_bit[i] = -1
        if module is None:
            return
        make_node(&s.node[MODULE], 401, module["node"], s.links - 1, 0, 0.0)
        for i, number in enumerate(module["signal_bits"]):
            s.signal_bit[i] = number
        for i, number in enumerate(x for key in CHAIN_KEYS for x in module[key]):
            s.chain_input[i] = number
            if number >= 0 and i >= OF_PLANT:
                s.chain_well |= 1 << i
        s.chain_well &= (ANALOGUE_CHAIN_EMERGENCY_STOP_A | ANALOGUE_CHAIN_EMERGENCY_STOP_B | ANALOGUE_CHAIN_GUARD_A | ANALOGUE_CHAIN_GUARD_B
                         | ANALOGUE_CHAIN_UNIT_ON)
        output = module["watchdog_outputs"][0]
        if output >= 0 and s.watchdog_node < 0:
            s.watchdog_node, s.watchdog_place, s.watchdog_mask = MODULE, s.node[MODULE].target + output // 8, -1
            s.watchdog_bit = output % 8
        s.relay_ns, s.relay_input = <int64_t>(1e6 * module["relay_ms"]), module["relay_input"]
        s.range_input = module["range_input"]
        for i in range(ANALOG):
            s.analog_scale[i] = module["analog_scale"][i]
            s.analog_offset[i] = module["analog_offset"][i]

    def run(self, int priority=0, int core=-1):
        """Runs in the calling thread. Returns (error of FIFO, error of the core), each 0 when it was given."""
        cdef int fifo, pinned
        with nogil:
            pinned = io_set_core(core)
            fifo = io_set_fifo(priority)
            run_stand(&self.stand)
            io_set_fifo(0)
        return fifo, pinned

    def stop(self):
        self.stand.stop = 1

    def truth(self):
        """True motion at each SYNC on the first link, rows of: s since the first one, six legs [m], their rates [m/s], twist of P in W."""
        return self._truth[:self.stand.truth_used].copy()

    def states(self):
        """The drives' own log, a row for each change, and where a drive was without a frame for longer than ever: time [ns,
        CLOCK_MONOTONIC], axis, state of the drive, NMT or AL state, ns since its newest setpoint frame (-1: none yet), the longest time
        without one while it was enabled, ns."""
        return self._states[:self.stand.states_used].copy()

    def counters(self):
        """Messages of the sensor sent, SYNCs, frames, malformed datagrams, stalls of more than 10 ms, frames that found the outbox full."""
        s = &self.stand
        return {
            "records": s.sensor.wire.sent_total,
            "syncs": s.sync_total,
            "frames": s.frame_total,
            "malformed": s.bad_total + s.sensor.wire.bad_total,
            "stalls": s.stall_total,
            "not_sent": sum(s.outbox[i].lost for i in range(s.links)),
            "line_frames": s.wire.frames,
        }
