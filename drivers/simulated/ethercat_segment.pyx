"""A line of EtherCAT slaves in software, each a CiA 402 drive: what one frame does as it passes all of them and comes back.

Source of registers, working counters and states: ETG.1000, as the Beckhoff ESC data sheets describe them. A slave has four FMMUs, four sync
managers (mailbox out 1000h, mailbox in 1080h, outputs 1100h, inputs 1400h), an SII of identity, mailboxes and sync managers, a CoE server
(expedited and normal upload and download, aborts), PDO mapping, a distributed clock of its own and a CSP drive. One place may have an
output terminal instead (ETG.5001: outputs 0x7000:1, one byte; no inputs), whose outputs are off below Operational.

The line's frame passes the slaves in their order, all ports being closed behind the last. Clocks are counted in ns; `now_ns` is the true
time at which the frame leaves the master.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from posix.unistd cimport read, write

from drivers.raw_frames.frame_io cimport (
    POLLIN, io_load_be16, io_load_le16, io_load_le32, io_now_ns, io_store_le16, io_store_le32, io_wait_readable, pollfd,
)
from drivers.simulated.stand_server_node cimport (
    ABORT_COMMAND,
    ABORT_LENGTH,
    ABORT_NOT_MAPPABLE,
    ABORT_NO_OBJECT,
    ABORT_NO_SUB_INDEX,
    ABORT_READ_ONLY,
    ABORT_STATE,
    ABORT_VALUE,
    DRIVE_SWITCH_ON_DISABLED,
    SDO_EXPEDITED,
    Node,
    Outbox,
    add_drive_protection,
    add_object,
    axis_follows,
    axis_target,
    control_axis,
    find_object,
    has_index,
    option_known,
    setpoint_came,
    update_status,
    value_of,
)


cdef enum:
    ETHERNET_HEADER = 14
    ETHERTYPE = 0x88A4
    FRAME_BYTES = 1514

    NOP = 0
    APRD = 1
    FPRD = 4
    BRD = 7
    BRW = 9
    LRD = 10
    LWR = 11
    LRW = 12
    ARMW = 13
    FRMW = 14

    SYNC0_ACTIVE = 3         # of 0x981: cyclic, and SYNC0
    SYNC0_CYCLE_MIN = 50000  # ns

    AL_ACKNOWLEDGE = 0x10   # of 0x120
    MAILBOX_FULL = 0x08     # of the status of a sync manager
    FMMU_OUTPUTS = 0x02     # of the type of an FMMU
    SDO_COMPLETE_ACCESS = 0x10
    MORE_FOLLOW = 0x8000    # of the length of a datagram
    RETURNED = 0x02         # of the first byte of the source

    WAS_READ = 1            # what a logical access has done, and counts for in LRW
    WAS_WRITTEN = 2

    STATE_INIT = 1
    STATE_PREOP = 2
    STATE_SAFEOP = 4
    STATE_OP = 8

    MAILBOX_OUT = 0x1000
    MAILBOX_IN = 0x1080
    OUTPUTS = 0x1100
    INPUTS = 0x1400

    COE = 3
    SDO_REQUEST = 2
    SDO_RESPONSE = 3
    MAILBOX_HEADER = 6
    ABORT_UNSUPPORTED_ACCESS = 0x06010000


cdef inline int64_t load64(const uint8_t *p) noexcept nogil:
    return <int64_t>(<uint64_t>io_load_le32(p) | (<uint64_t>io_load_le32(p + 4) << 32))


cdef inline void store64(uint8_t *p, int64_t value) noexcept nogil:
    io_store_le32(p, <uint32_t>value)
    io_store_le32(p + 4, <uint32_t>(value >> 32))


cdef inline bint touches(int start, int length, int address, int size) noexcept nogil:
    return start < address + size and address < start + length


# -------------------------------------------------------------------------------------------------------------- power-up
# Device type and identity.
cdef void add_head(Node *n, uint32_t device_type, uint32_t product, int position) noexcept nogil:
    add_object(n, 0x1000, 0, 4, 0, device_type)
    add_object(n, 0x1001, 0, 1, 0, 0)
    add_object(n, 0x1018, 0, 1, 0, 4)
    add_object(n, 0x1018, 1, 4, 0, 0x00000DAC)
    add_object(n, 0x1018, 2, 4, 0, product)
    add_object(n, 0x1018, 3, 4, 0, 1)
    add_object(n, 0x1018, 4, 4, 0, <uint32_t>(position + 1))


# The dictionary of an output terminal: its one PDO is fixed.
cdef void make_terminal(Node *n, int position) noexcept nogil:
    cdef int k
    memset(n, 0, sizeof(Node))
    n.kind, n.id, n.silent = 401, position, 1
    n.state = DRIVE_SWITCH_ON_DISABLED
    add_head(n, 0x00001389, 0x00000007, position)
    add_object(n, 0x1600, 0, 1, 0, 1)
    add_object(n, 0x1600, 1, 4, 0, 0x70000108)
    add_object(n, 0x1C00, 0, 1, 0, 4)
    for k in range(4):
        add_object(n, 0x1C00, k + 1, 1, 0, <uint32_t>(k + 1) if k < 3 else 0)
    add_object(n, 0x1C12, 0, 1, 0, 1)
    add_object(n, 0x1C12, 1, 2, 0, 0x1600)
    add_object(n, 0x1C13, 0, 1, 0, 0)
    n.target = add_object(n, 0x7000, 1, 1, 1, 0)


# The dictionary of a drive: identity, PDO mapping and assignment, synchronisation, and the axis.
cdef void make_drive(Node *n, uint32_t window_counts, int position) noexcept nogil:
    cdef int k
    memset(n, 0, sizeof(Node))
    n.kind, n.id, n.silent = 402, position, 1           # silent: it sends no CAN frame
    n.device_mode = n.force = n.load_pressure = n.record = n.lowest = -1
    n.state = DRIVE_SWITCH_ON_DISABLED
    add_head(n, 0x00020192, 0x00000402, position)
    for k in range(9):
        add_object(n, 0x1600, k, 4 if k else 1, 1, 0)
    for k in range(9):
        add_object(n, 0x1A00, k, 4 if k else 1, 1, 0)
    add_object(n, 0x1C00, 0, 1, 0, 4)
    for k in range(4):
        add_object(n, 0x1C00, k + 1, 1, 0, <uint32_t>(k + 1))
    add_object(n, 0x1C12, 0, 1, 1, 1)
    add_object(n, 0x1C12, 1, 2, 1, 0x1600)
    add_object(n, 0x1C13, 0, 1, 1, 1)
    add_object(n, 0x1C13, 1, 2, 1, 0x1A00)
    for k in range(2):
        add_object(n, 0x1C32 + k, 0, 1, 0, 6)
        add_object(n, 0x1C32 + k, 1, 2, 1, 0)
        add_object(n, 0x1C32 + k, 2, 4, 1, 1000000)
        add_object(n, 0x1C32 + k, 6, 4, 0, 50000)
    n.error_code = add_object(n, 0x603F, 0, 2, 0, 0)
    n.control = add_object(n, 0x6040, 0, 2, 1, 0)
    n.status = add_object(n, 0x6041, 0, 2, 0, 0)
    n.mode = add_object(n, 0x6060, 0, 1, 1, 0)
    n.mode_display = add_object(n, 0x6061, 0, 1, 0, 0)
    n.actual = add_object(n, 0x6064, 0, 4, 0, 0)
    n.window = add_object(n, 0x6065, 0, 4, 1, window_counts)
    add_drive_protection(n)
    add_object(n, 0x606C, 0, 4, 0, 0)
    add_object(n, 0x6077, 0, 2, 0, 0)
    n.target = add_object(n, 0x607A, 0, 4, 1, 0)
    n.velocity = add_object(n, 0x60B1, 0, 4, 1, 0)
    add_object(n, 0x60B2, 0, 2, 1, 0)
    add_object(n, 0x60C2, 0, 1, 0, 2)
    add_object(n, 0x60C2, 1, 1, 1, 1)
    add_object(n, 0x60C2, 2, 1, 1, 0xFD)
    add_object(n, 0x60F4, 0, 4, 0, 0)
    add_object(n, 0x6502, 0, 4, 0, 0x80)                # cyclic synchronous position alone
    set_value(n, 0x1600, 0, 3)
    set_value(n, 0x1600, 1, 0x60400010)
    set_value(n, 0x1600, 2, 0x607A0020)
    set_value(n, 0x1600, 3, 0x60600008)
    set_value(n, 0x1A00, 0, 5)
    set_value(n, 0x1A00, 1, 0x60410010)
    set_value(n, 0x1A00, 2, 0x60640020)
    set_value(n, 0x1A00, 3, 0x606C0020)
    set_value(n, 0x1A00, 4, 0x60770010)
    set_value(n, 0x1A00, 5, 0x60610008)


cdef void set_value(Node *n, int index, int sub, uint32_t value) noexcept nogil:
    cdef int place = find_object(n, index, sub)
    if place >= 0:
        n.object[place].value = value


# Bytes of the PDO that is assigned (0x1C12, 0x1C13), 0 where none is.
cdef int pdo_bytes(const Node *n, int assignment) noexcept nogil:
    cdef int k, bits = 0, mapping
    if value_of(n, assignment, 0) == 0:
        return 0
    mapping = <int>value_of(n, assignment, 1)
    for k in range(<int>value_of(n, mapping, 0)):
        bits += <int>(value_of(n, mapping, k + 1) & 0xFF)
    return bits // 8


cdef void make_slave(Slave *s, int position, uint32_t window_counts, bint terminal) noexcept nogil:
    cdef uint8_t *m = s.memory
    cdef uint8_t *c
    memset(s, 0, sizeof(Slave))
    if terminal:
        make_terminal(&s.node, position)
    else:
        make_drive(&s.node, window_counts, position)
    s.state = STATE_INIT
    m[0], m[2] = 0x11, 1                                # type, build
    m[4], m[5], m[6], m[7] = SLAVE_FMMUS, SLAVE_SYNC_MANAGERS, 8, 0x0F
    m[8] = 0x0C                                         # distributed clock, of 64 bits
    m[0x130] = STATE_INIT
    io_store_le16(m + 0x400, 2498)
    io_store_le16(m + 0x410, 1000)
    io_store_le16(m + 0x420, 1000)
    io_store_le16(m + 0x930, 0x1000)
    # SII: identity in words 8...15, mailboxes in 24...28, category 41, end mark
    c = s.sii
    io_store_le32(c + 16, 0x00000DAC)
    io_store_le32(c + 20, value_of(&s.node, 0x1018, 2))
    io_store_le32(c + 24, 1)
    io_store_le32(c + 28, <uint32_t>(position + 1))
    io_store_le16(c + 48, MAILBOX_OUT)
    io_store_le16(c + 50, SLAVE_MAILBOX)
    io_store_le16(c + 52, MAILBOX_IN)
    io_store_le16(c + 54, SLAVE_MAILBOX)
    io_store_le16(c + 56, 4)                            # CoE
    # the categories from word 64 on: `sii_byte`


# Byte of the SII: the stored words, then the one category (sync managers) and 0xFFFF to the end.
cdef uint8_t sii_byte(const Slave *s, int address) noexcept nogil:
    cdef int k, at = address - 128
    cdef int start
    cdef int length
    if address < SLAVE_SII:
        return s.sii[address]
    if at == 0:
        return 41
    if at == 2:
        return 16                                       # words of the category
    if at < 4:
        return 0
    k = (at - 4) // 8
    at = (at - 4) % 8
    if k >= SLAVE_SYNC_MANAGERS:
        return 0xFF
    start = MAILBOX_OUT if k == 0 else MAILBOX_IN if k == 1 else OUTPUTS if k == 2 else INPUTS
    length = SLAVE_MAILBOX if k < 2 else (1 if k == 2 else 0) if s.node.kind == 401 else (7 if k == 2 else 13)
    if at < 2:
        return <uint8_t>((start >> 8 * at) & 0xFF)
    if at < 4:
        return <uint8_t>((length >> 8 * (at - 2)) & 0xFF)
    if at == 4:
        return 0x26 if k == 0 else 0x22 if k == 1 else 0x64 if k == 2 else 0x20
    if at == 6:
        return length > 0                               # enabled
    return <uint8_t>(k + 1) if at == 7 and length > 0 else 0


cdef void segment_start(Segment *g, int slaves, double counts_window, int terminal) noexcept nogil:
    cdef int i
    memset(g, 0, sizeof(Segment))
    g.slaves = g.lost_from = slaves
    for i in range(slaves):
        make_slave(&g.slave[i], i, <uint32_t>counts_window, i == terminal)
        g.slave[i].cable_ns = 500


# ----------------------------------------------------------------------------------------------------------------- clock
cdef inline int64_t local_time(const Slave *s, int64_t now_ns) noexcept nogil:
    return now_ns + s.start_ns + <int64_t>(s.drift * <double>now_ns)


cdef inline int64_t correction(const Slave *s, int64_t now_ns) noexcept nogil:
    cdef double since = <double>(now_ns - s.steered_ns) if s.steered_ns else 0.0
    return <int64_t>(s.correction_ns + s.rate * since)


cdef inline int64_t system_time(const Slave *s, int64_t now_ns) noexcept nogil:
    return local_time(s, now_ns) + load64(s.memory + 0x920) + correction(s, now_ns)


# The first SYNC0 of the line after `now_ns`, on the machine's clock; 0 where no slave has one. The slaves' clocks are one clock.
cdef int64_t segment_next_sync(const Segment *g, int64_t now_ns) noexcept nogil:
    cdef const Slave *s
    cdef int64_t cycle, since
    cdef int i
    for i in range(g.lost_from):
        s = &g.slave[i]
        cycle = io_load_le32(s.memory + 0x9A0)
        if s.memory[0x981] & SYNC0_ACTIVE == SYNC0_ACTIVE and cycle >= SYNC0_CYCLE_MIN:
            since = system_time(s, now_ns) - load64(s.memory + 0x990)
            return now_ns + (-since if since < 0 else cycle - since % cycle)
    return 0


# Another rate of a clock, which continues from its present reading.
cdef void segment_drift(Segment *g, int position, double drift, int64_t now_ns) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    s.start_ns += <int64_t>(s.drift * <double>now_ns) - <int64_t>(drift * <double>now_ns)
    s.drift = drift


# Steering by the time of the reference: the difference to our own (0x92C, sign and amount) moves phase and rate of the correction.
cdef void steer(Slave *s, uint32_t reference, int64_t now_ns) noexcept nogil:
    cdef uint32_t own = <uint32_t>system_time(s, now_ns)
    cdef int32_t difference = <int32_t>(own - reference - io_load_le32(s.memory + 0x928))
    cdef double since = <double>(now_ns - s.steered_ns) if s.steered_ns else 0.0
    cdef uint32_t amount = <uint32_t>(difference if difference >= 0 else -<int64_t>difference)
    io_store_le32(s.memory + 0x92C, (amount & 0x7FFFFFFF) | (<uint32_t>0x80000000 if difference < 0 else 0))
    s.correction_ns += s.rate * since - 0.25 * <double>difference
    if since >= 1000.0:
        s.rate -= 0.03 * <double>difference / since
        s.rate = min(max(s.rate, -0.001), 0.001)
    s.steered_ns = now_ns


# A write to 0x900 latches the times at which the frame passed the ports: 0 on its way out, 1 on its way back.
cdef void latch(Segment *g, int position, int64_t at_ns) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    cdef int64_t back_ns = at_ns
    cdef int i
    for i in range(position + 1, g.lost_from):
        back_ns += 2 * g.slave[i].cable_ns
    io_store_le32(s.memory + 0x900, <uint32_t>local_time(s, at_ns))
    io_store_le32(s.memory + 0x904, <uint32_t>local_time(s, back_ns))
    store64(s.memory + 0x918, local_time(s, at_ns))


# ---------------------------------------------------------------------------------------------------------- AL states
cdef void enter(Slave *s, int state, int code) noexcept nogil:
    s.state = state
    s.al_error = 1 if code else 0
    s.memory[0x130] = <uint8_t>(state | (0x10 if code else 0))
    io_store_le16(s.memory + 0x134, <uint16_t>code)
    if state < STATE_OP and s.node.kind == 401:
        s.node.object[s.node.target].value = 0
    elif state < STATE_OP and s.node.state != DRIVE_SWITCH_ON_DISABLED:     # without fresh outputs there is no motion
        s.node.object[s.node.control].value = 0
        control_drive_off(s)


# An error of one slave (its AL status code) that an acknowledge does not clear; 0 ends it.
cdef void segment_al_error(Segment *g, int position, int code) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    s.stuck_al = code
    if code:
        enter(s, min(s.state, STATE_SAFEOP), code)


cdef void control_drive_off(Slave *s) noexcept nogil:
    cdef Outbox none
    none.count = none.lost = 0
    control_axis(&s.node, &none)
    update_status(&s.node)


# Whether sync manager k is on and lies as the slave needs it.
cdef bint manager_fits(const Slave *s, int k, int start, int length) noexcept nogil:
    cdef const uint8_t *m = s.memory + 0x800 + 8 * k
    return io_load_le16(m) == start and io_load_le16(m + 2) == length and m[6] & 1


# AL status code that refuses a step from the present state, 0 where it is allowed.
cdef int refusal(const Slave *s, int wanted) noexcept nogil:
    cdef int outputs, inputs
    if wanted == STATE_INIT:
        return 0
    if wanted != STATE_PREOP and wanted != STATE_SAFEOP and wanted != STATE_OP:
        return 0x13 if wanted == 3 else 0x12            # no bootstrap; no such state
    if wanted > 2 * s.state:
        return 0x11
    if wanted == STATE_PREOP and s.state == STATE_INIT:
        if not (manager_fits(s, 0, MAILBOX_OUT, SLAVE_MAILBOX) and manager_fits(s, 1, MAILBOX_IN, SLAVE_MAILBOX)):
            return 0x16
    if wanted == STATE_SAFEOP and s.state == STATE_PREOP:
        outputs, inputs = pdo_bytes(&s.node, 0x1C12), pdo_bytes(&s.node, 0x1C13)
        if not manager_fits(s, 2, OUTPUTS, outputs):
            return 0x1D
        if inputs and not manager_fits(s, 3, INPUTS, inputs):
            return 0x1E
        if s.memory[0x981] & SYNC0_ACTIVE == SYNC0_ACTIVE and io_load_le32(s.memory + 0x9A0) < SYNC0_CYCLE_MIN:
            return 0x30 if io_load_le32(s.memory + 0x9A0) == 0 else 0x35
    return 0


cdef void control_state(Slave *s, int64_t now_ns) noexcept nogil:
    cdef int word = s.memory[0x120], wanted = word & 0x0F, code
    if s.stuck_al:
        enter(s, min(s.state, STATE_SAFEOP), s.stuck_al)
        return
    if s.al_error and not word & AL_ACKNOWLEDGE and wanted > s.state:
        return                                          # an error is acknowledged first
    code = refusal(s, wanted)
    if code:
        enter(s, s.state, code)
        return
    if wanted == STATE_OP and s.state != STATE_OP:
        s.outputs_ns = now_ns
    enter(s, wanted, 0)
    if wanted == STATE_INIT:
        s.memory[0x805] = s.memory[0x80D] = 0           # the mailboxes are empty


# The watchdog of the outputs: nothing new for 0x420 steps of 0x400 (each + 2 times 40 ns) ends OP.
cdef void segment_timers(Segment *g, int64_t now_ns) noexcept nogil:
    cdef Slave *s
    cdef int i
    cdef int64_t limit
    for i in range(g.slaves):
        s = &g.slave[i]
        limit = <int64_t>io_load_le16(s.memory + 0x420) * (io_load_le16(s.memory + 0x400) + 2) * 40
        if s.state == STATE_OP and limit and now_ns - s.outputs_ns > limit:
            enter(s, STATE_SAFEOP, 0x1B)


# ------------------------------------------------------------------------------------------------------------- mailbox
cdef void answer(Slave *s, const uint8_t *sdo, int length) noexcept nogil:
    cdef uint8_t *box = s.memory + MAILBOX_IN
    memset(box, 0, SLAVE_MAILBOX)
    s.mailbox_counter = s.mailbox_counter % 7 + 1
    io_store_le16(box, <uint16_t>(length + 2))
    box[5] = <uint8_t>(COE | (s.mailbox_counter << 4))
    io_store_le16(box + 6, SDO_RESPONSE << 12)
    memcpy(box + 8, sdo, length)
    s.memory[0x80D] |= MAILBOX_FULL


cdef void answer_abort(Slave *s, const uint8_t *request, uint32_t code) noexcept nogil:
    cdef uint8_t sdo[8]
    sdo[0] = 0x80
    memcpy(sdo + 1, request + 1, 3)
    io_store_le32(sdo + 4, code)
    answer(s, sdo, 8)
    s.memory[MAILBOX_IN + 7] = SDO_REQUEST << 4         # an abort is an SDO request (kickcat 2.5 overlooks it, pysoem takes no other)


# What a write does beside storing; abort code where it is refused.
cdef uint32_t written(Slave *s, int index, int sub, uint32_t value) noexcept nogil:
    cdef Node *n = &s.node
    cdef int place
    if index >> 4 == 0x1C1 or index >> 8 == 0x16 or index >> 8 == 0x1A:
        if s.state != STATE_PREOP:
            return ABORT_STATE
        if index == 0x1C12 or index == 0x1C13:
            if sub == 0 and value > 1:
                return ABORT_VALUE
            if sub == 1 and value != (0x1600 if index == 0x1C12 else 0x1A00):
                return ABORT_VALUE
        elif sub == 0:
            if value > 8:
                return ABORT_VALUE
        elif value:
            place = find_object(n, <int>(value >> 16), <int>((value >> 8) & 0xFF))
            if value >> 16 == 0:                         # a gap
                return 0 if (value & 0xFF) % 8 == 0 and value & 0xFF else ABORT_NOT_MAPPABLE
            if place < 0 or <uint32_t>n.object[place].size * 8 != (value & 0xFF):
                return ABORT_NOT_MAPPABLE
            if index < 0x1A00 and not n.object[place].writable:
                return ABORT_NOT_MAPPABLE
    elif index == 0x6060:
        if value != 0 and value != 8:
            return ABORT_VALUE
    elif not option_known(index, <int32_t>(<uint32_t>value << 16) >> 16):
        return ABORT_VALUE
    return 0


# One SDO request: expedited and normal upload, expedited and normal download (in one mailbox), no complete access, no segments.
cdef void serve_sdo(Slave *s, const uint8_t *sdo, int length) noexcept nogil:
    cdef Node *n = &s.node
    cdef uint8_t out[32]
    cdef uint32_t value = 0, code
    cdef int command = sdo[0], index = io_load_le16(sdo + 1), sub = sdo[3], place, size, k
    cdef const uint8_t *data = sdo + 4
    cdef const char *name = "HIL emulated servo drive"
    if command >> 5 == 4:                               # the master aborts: no answer
        return
    if command >> 5 != 1 and command >> 5 != 2:
        answer_abort(s, sdo, ABORT_COMMAND)
        return
    if command & SDO_COMPLETE_ACCESS:
        answer_abort(s, sdo, ABORT_UNSUPPORTED_ACCESS)
        return
    if index == 0x1008 and sub == 0 and command >> 5 == 2:
        out[0] = 0x41
        memcpy(out + 1, sdo + 1, 3)
        io_store_le32(out + 4, 24)
        memcpy(out + 8, name, 24)
        answer(s, out, 32)
        return
    place = find_object(n, index, sub)
    if place < 0:
        answer_abort(s, sdo, ABORT_NO_SUB_INDEX if has_index(n, index) else ABORT_READ_ONLY if index == 0x1008 else ABORT_NO_OBJECT)
        return
    size = n.object[place].size
    memset(out, 0, 32)
    memcpy(out + 1, sdo + 1, 3)
    if command >> 5 == 2:
        out[0] = <uint8_t>(0x43 | ((4 - size) << 2))
        io_store_le32(out + 4, n.object[place].value)
        answer(s, out, 8)
        return
    if not n.object[place].writable:
        answer_abort(s, sdo, ABORT_READ_ONLY)
        return
    if command & SDO_EXPEDITED:
        k = 4 - ((command >> 2) & 3) if command & 1 else size
    else:
        k = <int>min(io_load_le32(sdo + 4), <uint32_t>1000)
        data = sdo + 8
    if k != size or (data - sdo) + k > length:
        answer_abort(s, sdo, ABORT_LENGTH)
        return
    for k in range(size):
        value |= <uint32_t>data[k] << (8 * k)
    code = written(s, index, sub, value)
    if code:
        answer_abort(s, sdo, code)
        return
    n.object[place].value = value
    out[0] = 0x60
    answer(s, out, 8)


# The mailbox out went full: serve it at once. What is no CoE request of SDO kind gets the mailbox error that says so.
cdef void serve_mailbox(Slave *s) noexcept nogil:
    cdef const uint8_t *box = s.memory + MAILBOX_OUT
    cdef int length = io_load_le16(box)
    cdef uint8_t *error
    if (box[5] & 0x0F) == COE and 10 <= length <= SLAVE_MAILBOX - MAILBOX_HEADER and io_load_le16(box + 6) >> 12 == SDO_REQUEST:
        serve_sdo(s, box + 8, length - 2)
        return
    error = s.memory + MAILBOX_IN
    memset(error, 0, SLAVE_MAILBOX)
    s.mailbox_counter = s.mailbox_counter % 7 + 1
    io_store_le16(error, 4)
    error[5] = <uint8_t>(s.mailbox_counter << 4)
    io_store_le16(error + 6, 1)
    io_store_le16(error + 8, 2 if (box[5] & 0x0F) != COE else 8)    # protocol not supported, invalid size
    s.memory[0x80D] |= MAILBOX_FULL


# ---------------------------------------------------------------------------------------------------------------- memory
# Whether the mailboxes let an access pass. out: the access fills mailbox 0, or empties mailbox 1.
cdef bint passes(const Slave *s, int address, int length, bint writes, bint *whole) noexcept nogil:
    whole[0] = False
    if touches(address, length, MAILBOX_OUT, SLAVE_MAILBOX):
        if not writes or not s.memory[0x806] & 1 or address != MAILBOX_OUT or s.memory[0x80D] & MAILBOX_FULL or s.state == STATE_INIT:
            return False
        whole[0] = address + length >= MAILBOX_OUT + SLAVE_MAILBOX
    elif touches(address, length, MAILBOX_IN, SLAVE_MAILBOX):
        if writes or not s.memory[0x80E] & 1 or address != MAILBOX_IN or not s.memory[0x80D] & MAILBOX_FULL:
            return False
        whole[0] = address + length >= MAILBOX_IN + SLAVE_MAILBOX
    return True


cdef inline bint writable(int a) noexcept nogil:
    return not (a < 0x10 or 0x110 <= a < 0x112 or 0x130 <= a < 0x136 or 0x900 <= a < 0x920 or 0x92C <= a < 0x930
                or (0x800 <= a < 0x820 and a & 7 == 5))


# Registers that are made when they are read.
cdef void refresh(Segment *g, int position, int address, int length, int64_t at_ns) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    if touches(address, length, 0x110, 2):
        # port 0 open with signal; port 1 closed at the end of the line; 2 and 3 closed
        io_store_le16(s.memory + 0x110, <uint16_t>(0x5611 if position == g.lost_from - 1 else 0x5A31))
    if touches(address, length, 0x910, 8):
        store64(s.memory + 0x910, system_time(s, at_ns))
    if touches(address, length, INPUTS, 256):
        make_inputs(s)


# False where the slave does not take the access: no counting.
cdef bint read_memory(Segment *g, int position, int address, int length, uint8_t *to, bint union_, int64_t at_ns) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    cdef bint whole
    cdef int k
    if address + length > SLAVE_MEMORY or not passes(s, address, length, False, &whole):
        return False
    refresh(g, position, address, length, at_ns)
    for k in range(length):
        to[k] = (to[k] | s.memory[address + k]) if union_ else s.memory[address + k]
    if whole:
        s.memory[0x80D] &= <uint8_t>~MAILBOX_FULL
    return True


cdef bint write_memory(Segment *g, int position, int address, int length, const uint8_t *data, int64_t at_ns) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    cdef bint whole
    cdef int k
    if address + length > SLAVE_MEMORY or not passes(s, address, length, True, &whole):
        return False
    for k in range(length):
        if writable(address + k):
            s.memory[address + k] = data[k]
    if whole:
        serve_mailbox(s)
    if touches(address, length, 0x120, 1):
        control_state(s, at_ns)
    if touches(address, length, 0x502, 1):
        read_sii(s)
    if touches(address, length, 0x900, 1):
        latch(g, position, at_ns)
    if address == 0x910 and length >= 4:
        steer(s, io_load_le32(data), at_ns)
    if touches(address, length, 0x930, 2):
        s.rate = 0.0
    if touches(address, length, OUTPUTS, max(1, pdo_bytes(&s.node, 0x1C12))) and s.memory[0x816] & 1:
        s.outputs_fresh = 1
        s.outputs_ns = at_ns
        if s.node.kind != 401:
            setpoint_came(&s.node, at_ns)
    return True


cdef void read_sii(Slave *s) noexcept nogil:
    cdef int k, at
    cdef uint8_t *m = s.memory
    if m[0x503] & 1:
        at = 2 * <int>(io_load_le32(m + 0x504) & 0x7FFF)
        for k in range(8):
            m[0x508 + k] = sii_byte(s, at + k)
    m[0x502] = 0x40                                     # reads 8 bytes
    m[0x503] = 0


# ---------------------------------------------------------------------------------------------------------- the drive
# Process data by the PDO that is assigned; outputs count in OP alone.
cdef void take_outputs(Slave *s) noexcept nogil:
    cdef Node *n = &s.node
    cdef Outbox none
    cdef int k, b, place, bytes, at = OUTPUTS
    cdef uint32_t entry, value
    if s.state != STATE_OP or not s.outputs_fresh:
        return
    s.outputs_fresh = 0
    for k in range(<int>value_of(n, 0x1600, 0)):
        entry = value_of(n, 0x1600, k + 1)
        place = find_object(n, <int>(entry >> 16), <int>((entry >> 8) & 0xFF))
        bytes = <int>(entry & 0xFF) // 8
        if place >= 0:
            value = 0
            for b in range(bytes):
                value |= <uint32_t>s.memory[at + b] << (8 * b)
            n.object[place].value = value
        at += bytes
    none.count = none.lost = 0
    if n.kind != 401:
        control_axis(n, &none)


cdef void make_inputs(Slave *s) noexcept nogil:
    cdef Node *n = &s.node
    cdef int k, b, place, bytes, at = INPUTS
    cdef uint32_t entry
    if n.kind == 401:
        return
    n.object[n.mode_display].value = n.object[n.mode].value
    set_value(n, 0x60F4, 0, n.object[n.target].value - n.object[n.actual].value)
    update_status(n)
    for k in range(<int>value_of(n, 0x1A00, 0)):
        entry = value_of(n, 0x1A00, k + 1)
        place = find_object(n, <int>(entry >> 16), <int>((entry >> 8) & 0xFF))
        bytes = <int>(entry & 0xFF) // 8
        for b in range(bytes):
            s.memory[at + b] = <uint8_t>((n.object[place].value >> (8 * b)) & 0xFF) if place >= 0 else 0
        at += bytes


# ---------------------------------------------------------------------------------------------------------- datagrams
# Logical access by the FMMUs that are on (whole bytes): 1 something was read, 2 something was written.
cdef int logical(Segment *g, int position, int command, uint32_t address, int length, uint8_t *data, const uint8_t *sent,
                 int64_t at_ns) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    cdef const uint8_t *f
    cdef int k, done = 0, physical
    cdef int64_t start, end, first
    if s.wkc_short:
        return 0
    for k in range(SLAVE_FMMUS):
        f = s.memory + 0x600 + 16 * k
        if not f[12] & 1 or f[6] != 0 or f[7] != 7 or f[10] != 0:
            continue
        first = io_load_le32(f)
        start = max(first, <int64_t>address)
        end = min(first + io_load_le16(f + 4), <int64_t>address + length)
        if end <= start:
            continue
        physical = io_load_le16(f + 8) + <int>(start - first)
        if f[11] & 1 and command != LWR:
            if s.state >= STATE_SAFEOP or not touches(physical, <int>(end - start), INPUTS, 256):
                if read_memory(g, position, physical, <int>(end - start), data + (start - address), False, at_ns):
                    done |= WAS_READ
        if f[11] & FMMU_OUTPUTS and command != LRD:
            if write_memory(g, position, physical, <int>(end - start), sent + (start - address), at_ns):
                done |= WAS_WRITTEN
    return done


# One datagram at one slave; returns what it adds to the working counter.
cdef int datagram(Segment *g, int position, uint8_t *d, int length, const uint8_t *sent, int64_t at_ns) noexcept nogil:
    cdef Slave *s = &g.slave[position]
    cdef int command = d[0], adp = io_load_le16(d + 2), ado = io_load_le16(d + 4), kind, done, count = 0
    cdef bint mine
    cdef uint8_t *data = d + 10
    if command == NOP or command > FRMW:
        return 0
    if LRD <= command <= LRW:
        done = logical(g, position, command, io_load_le32(d + 2), length, data, sent, at_ns)
        return done & WAS_READ if command == LRD else (done & WAS_WRITTEN) >> 1 if command == LWR else done
    if command == ARMW or command < FPRD:
        mine = adp == 0
        io_store_le16(d + 2, <uint16_t>((adp + 1) & 0xFFFF))
    elif command == FRMW or command < BRD:
        mine = adp == io_load_le16(s.memory + 0x10) or (s.memory[0x103] & 1 and adp == io_load_le16(s.memory + 0x12))
    else:
        mine = True
        io_store_le16(d + 2, <uint16_t>((adp + 1) & 0xFFFF))
    if command >= ARMW:                                 # one reads, the others write what it read
        if mine:
            return read_memory(g, position, ado, length, data, False, at_ns)
        return write_memory(g, position, ado, length, data, at_ns)
    if not mine:
        return 0
    kind = (command - 1) % 3                            # 0 read, 1 write, 2 both
    if kind != 1 and read_memory(g, position, ado, length, data, command >= BRD, at_ns):
        count += 1
    if kind != 0 and write_memory(g, position, ado, length, sent, at_ns):
        count += 2 if kind == 2 else 1
    return count


# A frame of `length` bytes from the master, changed in place as by a passage out and back; 0 where it is no EtherCAT frame (unchanged).
cdef int segment_frame(Segment *g, uint8_t *frame, int length, int64_t now_ns) noexcept nogil:
    cdef uint8_t sent[FRAME_BYTES]
    cdef int at, end, size, i, word
    cdef int64_t at_ns
    cdef uint8_t *d
    if length < 28 or length > FRAME_BYTES or io_load_be16(frame + 12) != ETHERTYPE:
        g.refused += 1
        return 0
    word = io_load_le16(frame + 14)
    end = 16 + (word & 0x7FF)
    if word >> 12 != 1 or end > length:
        g.refused += 1
        return 0
    segment_timers(g, now_ns)
    at = 16
    while at + 12 <= end:
        d = frame + at
        size = io_load_le16(d + 6) & 0x7FF
        if at + 12 + size > end:
            break                                       # the rest is cut: it passes unchanged
        at_ns = now_ns
        memcpy(sent, d + 10, size)
        for i in range(g.lost_from):
            at_ns += g.slave[i].cable_ns
            word = io_load_le16(d + 10 + size) + datagram(g, i, d, size, sent, at_ns)
            io_store_le16(d + 10 + size, <uint16_t>(word & 0xFFFF))
        if not io_load_le16(d + 6) & MORE_FOLLOW:
            break
        at += 12 + size
    for i in range(g.lost_from):
        take_outputs(&g.slave[i])
    if g.lost_from > 0:
        frame[6] |= RETURNED
    g.frames += 1
    return length


cdef class EtherCatSegment:
    """A line of `slaves` emulated drives; terminal: place of an output terminal, -1: none. Not for several threads but for `stop`.

    `exchange` passes one frame through (bytes in, bytes out; None where it is no EtherCAT frame of a master); `serve` does so for all that
    come by a raw socket. Raises ValueError for a number of slaves that cannot be.
    """

    def __cinit__(self, int slaves, double window_counts=2e5, int terminal=-1):
        if not 1 <= slaves <= SEGMENT_SLAVES:
            raise ValueError(f"slaves = {slaves}: must be 1...{SEGMENT_SLAVES}")
        self.g = <Segment *>calloc(1, sizeof(Segment))
        if self.g == NULL:
            raise MemoryError
        segment_start(self.g, slaves, window_counts, terminal)

    def __dealloc__(self):
        free(self.g)

    cdef Slave *at(self, int position) except NULL:
        if not 0 <= position < self.g.slaves:
            raise ValueError(f"position = {position}: must be 0...{self.g.slaves - 1}")
        return &self.g.slave[position]

    def exchange(self, frame: bytes, int64_t now_ns):
        """The frame as it comes back when it leaves the master at `now_ns`, or None."""
        cdef uint8_t buffer[FRAME_BYTES]
        cdef const uint8_t[::1] view = frame if len(frame) else b"\0"
        cdef int length = <int>len(frame)
        if length == 0 or length > FRAME_BYTES:
            self.g.refused += 1
            return None
        memcpy(buffer, &view[0], length)
        length = segment_frame(self.g, buffer, length, now_ns)
        return bytes(buffer[:length]) if length else None

    def serve(self, int fd):
        """Answers what comes by the raw socket `fd` until `stop` of another thread. Drives follow their targets at once."""
        cdef uint8_t buffer[FRAME_BYTES]
        cdef pollfd waiting
        cdef Py_ssize_t count
        cdef int64_t now
        cdef int i
        cdef Node *n
        waiting.fd, waiting.events = fd, POLLIN
        with nogil:
            while not self.stopping:
                io_wait_readable(&waiting, 1, 20000000)
                now = io_now_ns()
                count = read(fd, buffer, FRAME_BYTES)
                segment_timers(self.g, now)
                if count > 0 and segment_frame(self.g, buffer, <int>count, now):
                    write(fd, buffer, count)
                for i in range(self.g.slaves):
                    n = &self.g.slave[i].node
                    if n.kind != 401 and axis_follows(n):
                        n.object[n.actual].value = <uint32_t>axis_target(n)

    def stop(self):
        """Ends `serve` within 20 ms."""
        self.stopping = 1

    def set_clock(self, int position, double drift=0.0, int64_t start_ns=0, int64_t cable_ns=500):
        """Clock of one slave: `drift` (1e-6: 1 ppm), what it shows at time 0 [ns], cable from its neighbour towards the master [ns]."""
        cdef Slave *s = self.at(position)
        s.drift, s.start_ns, s.cable_ns = drift, start_ns, cable_ns

    def set_actual(self, int position, int32_t counts):
        """Position that the drive measures."""
        cdef Node *n = &self.at(position).node
        n.object[n.actual].value = <uint32_t>counts

    def inject(self, str fault, int position=0, int value=1):
        """A fault of one slave, ended by value 0: wkc_short, al_error (value: AL status code), not_following, lost (it and all behind)."""
        cdef Slave *s = self.at(position)
        if fault == "wkc_short":
            s.wkc_short = value
        elif fault == "al_error":
            segment_al_error(self.g, position, value)
        elif fault == "not_following":
            s.node.not_following = value
        elif fault == "lost":
            self.g.lost_from = position if value else self.g.slaves
        else:
            raise ValueError(f"fault = {fault!r}: must be wkc_short, al_error, not_following or lost")

    def outputs(self, int position):
        """The outputs of the terminal at this place."""
        cdef Node *n = &self.at(position).node
        return n.object[n.target].value

    def drive(self, int position):
        """State of one drive: AL state and status code, status word, target and actual position [counts]."""
        cdef Slave *s = self.at(position)
        cdef Node *n = &s.node
        update_status(n)
        return {
            "al_state": s.state,
            "al_code": io_load_le16(s.memory + 0x134),
            "status": n.object[n.status].value,
            "target": <int32_t>n.object[n.target].value,
            "actual": <int32_t>n.object[n.actual].value,
        }

    def counters(self):
        """Frames passed and frames refused."""
        return {"frames": self.g.frames, "refused": self.g.refused}
