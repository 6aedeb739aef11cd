"""Mechanism signals and the independent emergency chain from a CiA 401 input module on a CAN link of its own.

Objects (CiA 401): digital inputs 0x6000:1...4 (8 bits each), analogue inputs 0x6401:1...8 (i16). TPDO1 carries the four bytes, TPDO2 and
TPDO3 the analogue inputs 1-4 and 5-8; RPDO1, when configured, groups of digital outputs 0x6200: commands, watchdog. All take effect or
are sampled at SYNC (transmission type 1), which this port sends at every tick after it has taken what came on the last one: one period of
dead time, constant. `value = offset + scale * counts`.

The emergency chain: healthy, tripped, hydraulics blocked; emergency stop and guard, two channels each, that read 1 while they are closed;
the hydraulic unit: on, low, high pressure, interlock. What is wired is judged by the safety stage (`limits.emergency_stop`, `guard`,
`hydraulic_unit`).

Watchdog (`drivers.watchdog_output`): one output that changes with every healthy tick, one that is on with it.

Nothing that comes between two ticks is lost. Signals and values are the newest ones; of the emergency chain the worst of the tick counts
(what is healthy, closed or on only when every record says so, what is wrong when one does). An emergency message shows in its tick also
when it was taken back in the same one, and until its error register is empty; so does a heartbeat that is not `operational`. A heartbeat
that stops is a fault of the module, whatever else it sends. `silent_periods` goes up with each tick without a whole record and down with
each tick with one, so that a module of which most records are missing has no data, as a silent one. Error frames of the controller:
bus-off is `no_data` until it restarted, bus errors are `corrupt`, error-passive is a `warning`.

The link is the module's own: sharing a drive's bus would make two ports read one descriptor.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from drivers.raw_frames.bus_errors cimport judge_error_frame
from drivers.raw_frames.frame_io cimport (
    CAN_EFF_FLAG,
    CAN_ERR_FLAG,
    CAN_RTR_FLAG,
    IO_BATCH,
    can_frame,
    io_load_le16,
    io_load_le32,
    io_receive_frames,
    io_send_frames,
)
from drivers.watchdog_output cimport WatchdogOutput, watchdog_bits
from rt_kernels.codes cimport (ANALOGUE_CHAIN_EMERGENCY_STOP_A, ANALOGUE_CHAIN_EMERGENCY_STOP_B, ANALOGUE_CHAIN_GUARD_A,
                               ANALOGUE_CHAIN_GUARD_B, ANALOGUE_CHAIN_HEALTHY, ANALOGUE_CHAIN_UNIT_ON, SENSOR_STATUS_CORRUPT,
                               SENSOR_STATUS_DEVICE_FAULT, SENSOR_STATUS_LOST,
                               SENSOR_STATUS_NO_DATA, SENSOR_STATUS_OUT_OF_RANGE, SENSOR_STATUS_STALE)
from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from drivers.drives.axes_session import heartbeat_timeout_ns, whole
from drivers.drives.canopen_setup import DriveSetupError, Link, Pdo
from drivers.identity import checked_count, compare, identity_of_nodes
from drivers.raw_frames.can_link import link_names, open_link
from rt_kernels.parameters import Parameter, checked

cdef enum:
    INPUTS = 32
    ANALOG = 8
    CHAIN = 11              # inputs of the emergency chain, in the order of the bits of analogue_chain
    OUTPUT_GROUP = 8        # digital outputs in one
    INPUTS_CAME = 1         # TPDOs of a tick: digital inputs, analogue values 0-3, analogue values 4-7
    FIRST_ANALOG_CAME = 2
    LAST_ANALOG_CAME = 4
    ALL_CAME = 7
    NODE_ID = 0x07F         # parts of a CAN identifier
    FUNCTION_CODE = 0x780
    ERROR_CLASS = 0xFF00    # of an emergency code: 0, when it takes one back
    NMT_OPERATIONAL = 5
    MOST_ROUNDS = 4         # batches taken in one tick: bounds its time when somebody floods the link
    BACKLOG_TURNS = 64      # more than a socket's buffer holds
    REPEAT_COMMAND = 64     # ticks

# inputs of the chain that are on while all is well; the others say that something is wrong
cdef uint32_t WELL = (ANALOGUE_CHAIN_HEALTHY | ANALOGUE_CHAIN_EMERGENCY_STOP_A | ANALOGUE_CHAIN_EMERGENCY_STOP_B | ANALOGUE_CHAIN_GUARD_A
                      | ANALOGUE_CHAIN_GUARD_B | ANALOGUE_CHAIN_UNIT_ON)


cdef struct ModuleParams:
    int32_t fd
    int32_t node
    int32_t no_data_periods
    int32_t command_output          # 1: mechanism_command goes out
    int32_t watchdog                # 1: the watchdog goes out: a group of outputs behind that of the commands
    WatchdogOutput outputs          # in its group
    int64_t heartbeat_timeout_ns
    uint32_t invert                 # inputs that are active low
    int32_t signal_bit[INPUTS]      # input -> bit of mechanism_signal, -1 not used
    int32_t chain_input[CHAIN]      # bit of analogue_chain -> input, -1 not wired
    int32_t range_input             # input that says that the unit is outside its valid range, -1 not wired
    double scale[ANALOG]
    double offset[ANALOG]


cdef struct ModuleState:
    uint32_t inputs
    int16_t counts[ANALOG]
    uint32_t emergency              # an error stands
    uint32_t seen                   # bits of sensor_status found while receiving in this tick
    uint32_t chain                  # of this tick, bits of analogue_chain
    int32_t nmt_state               # of the newest heartbeat, 5 operational
    int32_t beat                    # a heartbeat came in this tick
    int32_t behind                  # ticks in a row in which frames were left waiting
    int64_t heartbeat_ns            # run time of the tick that took the newest heartbeat
    int32_t fresh                   # TPDOs that came in this tick
    int32_t silent_periods
    int32_t bus_off
    uint32_t sent_command
    uint32_t watchdog               # of the last tick
    int64_t cycles
    int64_t lost_total
    int64_t corrupt_total


cdef struct Module:
    ModuleParams p
    ModuleState s


cdef inline uint32_t bit(int number) noexcept nogil:
    return <uint32_t>1 << number


# The emergency chain as the newest inputs say it.
cdef inline uint32_t chain_of(const Module *m) noexcept nogil:
    cdef uint32_t inputs = m.s.inputs ^ m.p.invert, chain = 0
    cdef int i
    for i in range(CHAIN):
        if m.p.chain_input[i] >= 0 and inputs >> m.p.chain_input[i] & 1:
            chain |= bit(i)
    return chain


# Digital inputs: the newest, and the chain's worst: what is well falls, the others rise.
cdef inline void take_inputs(Module *m, const can_frame *f) noexcept nogil:
    cdef uint32_t chain
    m.s.inputs = io_load_le32(f.data)
    chain = chain_of(m)
    m.s.chain = chain if not m.s.fresh & INPUTS_CAME else (
        (m.s.chain | chain) & ~WELL | m.s.chain & chain & WELL
    )
    m.s.fresh |= INPUTS_CAME


# An emergency message: an error, or (code 0) one that went; then the error register tells whether others stand.
cdef inline void take_emergency(Module *m, const can_frame *f) noexcept nogil:
    m.s.emergency = io_load_le16(f.data) & ERROR_CLASS or f.data[2] != 0
    if m.s.emergency:
        m.s.seen |= SENSOR_STATUS_DEVICE_FAULT


# A heartbeat or boot-up message: its NMT state.
cdef inline void take_heartbeat(Module *m, const can_frame *f) noexcept nogil:
    m.s.nmt_state = f.data[0] & 0x7F
    m.s.beat = 1
    if m.s.nmt_state != NMT_OPERATIONAL:
        m.s.seen |= SENSOR_STATUS_DEVICE_FAULT


# One frame.
cdef void take_frame(Module *m, const can_frame *f) noexcept nogil:
    cdef uint32_t kind
    cdef uint32_t found
    cdef int i, first
    if f.can_id & CAN_ERR_FLAG:
        found = judge_error_frame(f, &m.s.bus_off)
        m.s.seen |= found
        m.s.corrupt_total += found & SENSOR_STATUS_CORRUPT != 0
        return
    if f.can_id & (CAN_EFF_FLAG | CAN_RTR_FLAG):
        return
    if f.can_id & NODE_ID != <uint32_t>m.p.node:
        return
    kind = f.can_id & FUNCTION_CODE
    if kind == 0x180 and f.can_dlc == 4:
        take_inputs(m, f)
    elif (kind == 0x280 or kind == 0x380) and f.can_dlc == 8:
        first = 0 if kind == 0x280 else 4
        for i in range(4):
            m.s.counts[first + i] = <int16_t>io_load_le16(f.data + 2 * i)
        m.s.fresh |= FIRST_ANALOG_CAME if first == 0 else LAST_ANALOG_CAME
    elif kind == 0x080 and f.can_dlc == 8:
        take_emergency(m, f)
    elif kind == 0x700 and f.can_dlc == 1:
        take_heartbeat(m, f)
    elif kind == 0x180 or kind == 0x280 or kind == 0x380 or kind == 0x080 or kind == 0x700:
        m.s.corrupt_total += 1
        m.s.seen |= SENSOR_STATUS_CORRUPT


# Everything that waits, but not more than MOST_ROUNDS batches. Returns whether others may wait.
cdef bint drain(Module *m) noexcept nogil:
    cdef can_frame frames[IO_BATCH]
    cdef int i, got, more = 0, error = 0
    cdef int64_t bad = 0
    for _ in range(MOST_ROUNDS):
        got = io_receive_frames(m.p.fd, frames, &bad, NULL, &more, &error)
        for i in range(got):
            take_frame(m, &frames[i])
        if not more:
            break
    if bad:
        m.s.corrupt_total += bad
        m.s.seen |= SENSOR_STATUS_CORRUPT
    return more


# Status bits of this tick.
cdef uint32_t module_status(Module *m, int64_t time_ns) noexcept nogil:
    cdef uint32_t status = m.s.seen

    # Silence: all three groups belong to every tick but the first.
    if m.s.fresh == ALL_CAME:
        m.s.silent_periods -= m.s.silent_periods > 0
    elif m.s.cycles > 0:
        m.s.silent_periods += m.s.silent_periods < m.p.no_data_periods
        m.s.lost_total += 1
        status |= SENSOR_STATUS_LOST
    if m.p.fd < 0 or m.s.bus_off or m.s.silent_periods >= m.p.no_data_periods or m.s.behind >= m.p.no_data_periods:
        status |= SENSOR_STATUS_NO_DATA

    # Heartbeat: heard in this tick, or too long ago. The set-up has heard one.
    if m.s.beat or m.s.cycles == 0:
        m.s.heartbeat_ns = time_ns
    elif time_ns - m.s.heartbeat_ns > m.p.heartbeat_timeout_ns:
        status |= SENSOR_STATUS_DEVICE_FAULT

    # What stands: an emergency, a module that restarted or left the operational state.
    if m.s.emergency or (m.p.fd >= 0 and m.s.nmt_state != NMT_OPERATIONAL):
        status |= SENSOR_STATUS_DEVICE_FAULT
    if m.s.behind:
        status |= SENSOR_STATUS_STALE
    return status


cdef void module_read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Module *m = <Module *>self
    cdef can_frame sync
    cdef uint32_t inputs, discrete = 0
    cdef int i, error = 0

    # What the module answered to the last SYNC, then SYNC of this tick.
    if m.p.fd >= 0:
        m.s.behind = m.s.behind + 1 if drain(m) else 0
        memset(&sync, 0, sizeof(sync))
        sync.can_id = 0x080
        io_send_frames(m.p.fd, &sync, 1, NULL, &error)
    sample.signal_status = module_status(m, sample.time_ns)

    # Inputs to signals, emergency chain, analogue values.
    inputs = m.s.inputs ^ m.p.invert
    for i in range(INPUTS):
        if m.p.signal_bit[i] >= 0 and inputs >> i & 1:
            discrete |= bit(m.p.signal_bit[i])
    if m.p.range_input >= 0 and inputs >> m.p.range_input & 1:
        sample.signal_status |= SENSOR_STATUS_OUT_OF_RANGE
    for i in range(ANALOG):
        sample.signal_analog[i] = m.p.offset[i] + m.p.scale[i] * m.s.counts[i]
    sample.signal_discrete = discrete
    sample.analogue_chain = m.s.chain if m.s.fresh & INPUTS_CAME else chain_of(m)

    # The next tick begins with nothing.
    m.s.seen = 0
    m.s.fresh = 0
    m.s.beat = 0
    m.s.cycles += 1


# Commands to the docking mechanism and the watchdog, where outputs are configured for them: they act at the next SYNC. Commands alone are
# sent when they change, and now and then for a module that missed one; the watchdog with every tick.
cdef void module_write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Module *m = <Module *>self
    cdef can_frame f
    cdef int error = 0
    cdef int n = 0
    if m.p.fd < 0 or not (m.p.command_output or m.p.watchdog):
        return
    if not m.p.watchdog and sample.mechanism_command == m.s.sent_command and m.s.cycles % REPEAT_COMMAND != 1:
        return
    m.s.sent_command = sample.mechanism_command
    memset(&f, 0, sizeof(f))
    f.can_id = <uint32_t>(0x200 + m.p.node)
    if m.p.command_output:
        f.data[n] = <uint8_t>sample.mechanism_command
        n += 1
    if m.p.watchdog:
        f.data[n] = <uint8_t>watchdog_bits(&m.p.outputs, &m.s.watchdog, sample)
        n += 1
    f.can_dlc = <uint8_t>n
    io_send_frames(m.p.fd, &f, 1, NULL, &error)


cdef class Cia401Port(PortPart):
    """Writes signal_discrete, signal_analog, signal_status and analogue_chain.

    Before `open()` and until the first record the chain reads 0: not healthy. Raises ValueError for a parameter that cannot be,
    DriveSetupError (a ConnectionError, from `open`) when the module is not there.
    """

    PARAMETERS = (
        Parameter("link", "str", "-", "CAN link of the module: interface (can2), udp:127.0.0.1:PORT, or fd:N"),
        Parameter("node", "int", "-", "CANopen node of the module", 10, 1, 127),
        Parameter("signal_bits", "floats", "-", "mechanism_signal bit of each digital input from input 0 on, -1 not used",
                  tuple(range(19)), -1, 31),
        Parameter("active_low_inputs", "floats", "-", "digital inputs that read 0 when the signal is there", (), 0, 31),
        Parameter("chain_inputs", "floats", "-",
                  "digital inputs of the emergency chain: healthy, tripped, hydraulics blocked; -1 not wired",
                  (24, 25, 26), -1, 31, shape=3),
        Parameter("emergency_stop_inputs", "floats", "-",
                  "digital inputs of the two channels of the emergency stop, 1 while they are closed; -1 not wired",
                  (-1, -1), -1, 31, shape=2),
        Parameter("guard_inputs", "floats", "-", "digital inputs of the two channels of the guard, 1 while they are closed; -1 not wired",
                  (-1, -1), -1, 31, shape=2),
        Parameter("unit_inputs", "floats", "-", "digital inputs of the hydraulic unit: on, low pressure, high pressure, interlock; -1 not "
                  "wired", (-1, -1, -1, -1), -1, 31, shape=4),
        Parameter("range_input", "int", "-",
                  "digital input that says that the docking unit (or its model) has left its valid range; -1 not wired",
                  -1, -1, 31),
        Parameter("command_output", "int", "-", "digital output group (0x6200:n, 8 bits) that carries mechanism_command, 0: none", 0, 0, 4),
        Parameter("watchdog_outputs", "floats", "-",
                  "digital outputs, from 0: one that changes with every healthy tick, one that is on with it; of one group of eight, "
                  "another one than that of the commands; -1 not wired", (-1, -1), -1, 31, shape=2),
        Parameter("analog_scale", "floats", "unit/count", "analogue value per count", (1.0,) * 8, -1e9, 1e9, shape=8),
        Parameter("analog_offset", "floats", "unit", "analogue value at 0 counts", (0.0,) * 8, -1e9, 1e9, shape=8),
        Parameter("no_data_periods", "int", "periods", "so many periods without a whole record are no data (those with one taken off)",
                  3, 1,
                  1000),
        Parameter("heartbeat_ms", "int", "ms", "heartbeat of the module", 100, 10, 10000),
        Parameter("heartbeat_timeout_ms", "int", "ms", "a heartbeat silent for longer is a fault of the module; 0: three heartbeats", 0, 0,
                  60000),
        Parameter("timeout_s", "float", "s", "time for every answer during set-up", 1.0, 0.05, 60.0),
        identity_of_nodes("the module, one table"),
    )

    cdef Module module
    cdef dict _given
    cdef object _socket
    cdef int _watchdog_group            # 0x6200:n, 0: none
    cdef readonly list identities       # after `open`: what the module says of itself

    def __cinit__(self):
        memset(&self.module, 0, sizeof(Module))
        self.module.p.fd = -1

    def __init__(self, **parameters):
        given = self._given = checked(Cia401Port.PARAMETERS, parameters)
        checked_count(given["identity"], 1)
        self.identities = []
        if len(link_names(given["link"])) != 1:
            raise ValueError(f"link = {given['link']!r}: the module is on exactly one link")
        if len(given["signal_bits"]) > INPUTS:
            raise ValueError(f"signal_bits has {len(given['signal_bits'])} entries: at most {INPUTS} inputs")
        p = &self.module.p
        p.node = given["node"]
        p.no_data_periods = given["no_data_periods"]
        p.heartbeat_timeout_ns = heartbeat_timeout_ns(given["heartbeat_ms"], given["heartbeat_timeout_ms"])
        p.command_output = given["command_output"] > 0
        for i in range(INPUTS):
            p.signal_bit[i] = whole("signal_bits", given["signal_bits"][i]) if i < len(given["signal_bits"]) else -1
        wired = [(key, number) for key in ("chain_inputs", "emergency_stop_inputs", "guard_inputs", "unit_inputs") for number in given[key]]
        for i in range(CHAIN):
            p.chain_input[i] = whole(*wired[i])
        self._watchdog_group = _group_of([whole("watchdog_outputs", x) for x in given["watchdog_outputs"]], given["command_output"])
        p.watchdog = self._watchdog_group > 0
        p.outputs.toggle_bit, p.outputs.healthy_bit = (int(x) % OUTPUT_GROUP if x >= 0 else -1 for x in given["watchdog_outputs"])
        p.range_input = given["range_input"]
        for number in given["active_low_inputs"]:
            p.invert |= <uint32_t>1 << <int>whole("active_low_inputs", number)
        for i in range(ANALOG):
            p.scale[i] = given["analog_scale"][i]
            p.offset[i] = given["analog_offset"][i]
        self.module.s.inputs = p.invert     # nothing read yet: no signal is there
        self.plug.self = &self.module
        self.plug.state = &self.module.s
        self.plug.state_size = sizeof(ModuleState)
        self.plug.read = module_read
        self.plug.write = module_write

    def open(self):
        """Sets the module up, reads all inputs once and starts it."""
        self.close()
        given = self._given
        self._socket = open_link(given["link"])
        try:
            network = Link(given["link"], self._socket, given["timeout_s"])
            try:
                self._bring_up(network.node(given["node"]))
            finally:
                network.disconnect()
        except Exception:
            self._drop()
            raise
        self.module.p.fd = self._socket.fileno()

    def _bring_up(self, node):
        given = self._given
        node.command_nmt("PRE-OPERATIONAL")
        node.write(0x1017, 0, 2, given["heartbeat_ms"], "heartbeat time")
        kind = node.read(0x1000, 0, 4, "device type") & 0xFFFF
        if kind != 401:
            raise DriveSetupError(f"{node} is not a CiA 401 module: its type is {kind}")
        self.identities = [node.identity()]
        compare(node, 0, self.identities[0], given["identity"])
        n = node.id
        node.set_pdo(Pdo(False, 1, 0x180 + n, tuple((0x6000, k, 8) for k in range(1, 5))))
        node.set_pdo(Pdo(False, 2, 0x280 + n, tuple((0x6401, k, 16) for k in range(1, 5))))
        node.set_pdo(Pdo(False, 3, 0x380 + n, tuple((0x6401, k, 16) for k in range(5, 9))))
        if groups := [group for group in (given["command_output"], self._watchdog_group) if group]:
            node.set_pdo(Pdo(True, 1, 0x200 + n, tuple((0x6200, group, 8) for group in groups)))
        node.await_nmt("PRE-OPERATIONAL")
        memset(&self.module.s, 0, sizeof(ModuleState))
        self.module.s.inputs = sum(node.read(0x6000, k + 1, 1, "digital inputs") << 8 * k for k in range(4))
        for k in range(ANALOG):
            self.module.s.counts[k] = node.read(0x6401, k + 1, -2, "analogue input")
        node.command_nmt("OPERATIONAL")
        node.await_nmt("OPERATIONAL")
        self.module.s.nmt_state = NMT_OPERATIONAL

    def begin(self):
        """What piled up since `open` is taken, so that it does not stand before the first answers; damage is forgotten, what the module
        reported is judged in the first tick."""
        for _ in range(BACKLOG_TURNS):
            if self.module.p.fd < 0 or not drain(&self.module):
                break
        self.module.s.corrupt_total = 0
        self.module.s.fresh = 0
        self.module.s.seen &= ~SENSOR_STATUS_CORRUPT

    def close(self):
        self.module.p.fd = -1
        if self._socket is None:
            return
        try:
            network = Link(self._given["link"], self._socket, self._given["timeout_s"])
            try:
                network.node(self._given["node"]).command_nmt("PRE-OPERATIONAL")
            finally:
                network.disconnect()
        except Exception:   # the module only reads: when its bus is gone there is nothing to make safe
            pass
        self._drop()

    def _drop(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def counters(self):
        """Ticks without a whole record, and damaged frames, since open."""
        return {"lost": self.module.s.lost_total, "corrupt": self.module.s.corrupt_total}


def _group_of(outputs, command_group):
    """Group (0x6200:n) of the wired ones of these outputs, 0 where none is. Raises ValueError."""
    groups = {1 + number // OUTPUT_GROUP for number in outputs if number >= 0}
    if len(groups) > 1:
        raise ValueError(f"watchdog_outputs = {outputs}: must be of one group of {OUTPUT_GROUP} outputs, as 8 and 9")
    if command_group in groups:
        raise ValueError(f"watchdog_outputs = {outputs}: are in group {command_group}, which carries mechanism_command (command_output); "
                         "take another group")
    return max(groups, default=0)
