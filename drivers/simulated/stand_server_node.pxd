"""A CANopen node in software (inline, header only): object dictionary, expedited SDO server, NMT, PDOs, heartbeat, emergency messages, and
the state machines of a CiA 402 and a CiA 408 axis. One struct per node, no allocation; frames to send go to an outbox.

A node may be an axis of a loaded machine (`rated_force` above 0): it then says force, pressures and spool, too, by the objects of its
profile (CiA 402 6076h, 6077h, 6078h; CiA 408 6301h, 6381h with unit and prefix by CiA 303-2) and by a record of its own, 2600h: 1 force in
10 N, 2 and 3 chamber pressures in kPa, 4 spool in 1/16384, 5 supply pressure in kPa, 6 bits: 0 valve at its end, 1 supply low, 2 blocking
valves closed. CiA 402 leaves bits 8, 14 and 15 of the status word to the manufacturer: here they are the same three. It has four TPDOs.

Its own protection: the consumer heartbeat (1016h) of one node, watched from its first heartbeat on; lost, it sends emergency 8130h, leaves
the operational state as 1029h says, and an axis does what 6007h says (CiA 402) or goes to its fault state (CiA 408). RPDOs have their event
timer. CiA 402 keeps its target within 607Dh and takes only the option codes that the standard has.

It is the other end of `drivers.drives` and `drivers.mechanism_signals` and knows nothing of them: it follows CiA 301, CiA 402 and CiA 408
as a device would, and refuses (SDO abort) what a device would refuse.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from drivers.raw_frames.frame_io cimport (
    CAN_EFF_FLAG, CAN_ERR_FLAG, CAN_RTR_FLAG, can_frame, io_load_le16, io_load_le32, io_store_le16, io_store_le32,
)


cdef enum:
    OBJECTS = 192
    PDO_ENTRIES = 8
    RPDOS = 2
    TPDOS = 4
    OUTBOX = 64

    NMT_STOPPED = 0x04
    NMT_OPERATIONAL = 0x05
    NMT_PRE_OPERATIONAL = 0x7F

    PDO_MAPPING = 0x200             # in the index of a PDO's object: its mapping, else its communication

    # first byte of an SDO
    SDO_SIZED = 0x01
    SDO_EXPEDITED = 0x02
    SDO_UPLOADED = 0x43

    # SDO abort codes
    ABORT_COMMAND = 0x05040001
    ABORT_READ_ONLY = 0x06010002
    ABORT_NO_OBJECT = 0x06020000
    ABORT_NOT_MAPPABLE = 0x06040041
    ABORT_MAPPING_LENGTH = 0x06040042
    ABORT_LENGTH = 0x06070010
    ABORT_NO_SUB_INDEX = 0x06090011
    ABORT_VALUE = 0x06090030
    ABORT_STATE = 0x08000022

    # states of a CiA 402 axis: the status word's state bits
    DRIVE_SWITCH_ON_DISABLED = 0x40
    DRIVE_READY = 0x21
    DRIVE_SWITCHED_ON = 0x23
    DRIVE_ENABLED = 0x27
    DRIVE_FAULT = 0x08
    DRIVE_QUICK_STOP = 0x07

    # bits of a CiA 402 control word and status word
    SWITCH_ON = 0x01
    ENABLE_VOLTAGE = 0x02
    QUICK_STOP = 0x04               # active low
    ENABLE_OPERATION = 0x08
    FAULT_RESET = 0x80              # edge
    VOLTAGE_ENABLED = 0x0010
    REMOTE = 0x0200
    INTERNAL_LIMIT = 0x0800
    TARGET_USED = 0x1000
    FOLLOWING_ERROR = 0x2000
    DRIVE_VALVE_AT_END = 0x0100     # the manufacturer's
    DRIVE_SUPPLY_LOW = 0x4000
    DRIVE_BLOCKED = 0x8000

    # bits of a CiA 408 control word (D H M, R resets by its edge) and status word
    VALVE_D = 0x1
    VALVE_H = 0x2
    VALVE_M = 0x4
    VALVE_R = 0x8
    VALVE_LOCAL = 0x0010
    VALVE_LIMIT = 0x0400
    VALVE_DEVIATION = 0x0800

    # states of a CiA 408 axis: bits R M H D
    VALVE_INIT = 0x8
    VALVE_DISABLED = 0x9
    VALVE_HOLD = 0xB
    VALVE_ACTIVE = 0xF
    VALVE_FAULT_DISABLED = 0x1
    VALVE_FAULT_HOLD = 0x3

    # bits of 2600h:6
    BIT_VALVE_AT_END = 0x1
    BIT_SUPPLY_LOW = 0x2
    BIT_BLOCKED = 0x4

    UNIT_PASCAL = 0x22              # CiA 303-2
    PREFIX_KILO = 3

    EMERGENCY_KIND = 0xF000         # of an emergency code
    EMERGENCY_OF_BUS = 0x8000
    EMERGENCY_LENGTH = 0x8210       # RPDO of the wrong length
    EMERGENCY_TIMEOUT = 0x8250      # RPDO time-out
    EMERGENCY_HEARTBEAT = 0x8130    # a heartbeat that is watched
    EMERGENCY_DEVICE = 0xFF00       # a fault of the device itself


cdef struct Object:
    uint16_t index
    uint8_t sub
    uint8_t size            # bytes
    uint8_t writable
    uint32_t value


cdef struct NodePdo:
    int32_t on
    int32_t count
    int32_t entry[PDO_ENTRIES]      # places in Node.object
    int32_t bytes
    int32_t every_sync              # transmission type 1...240
    int32_t sync_count
    int32_t waiting                 # RPDO: data wait for SYNC
    uint8_t data[8]
    uint32_t cob_id
    int64_t deadline_ns             # RPDO: time-out, 0 none
    int64_t last_ns                 # RPDO: newest, 0 before the first


cdef struct Outbox:
    can_frame frame[OUTBOX]
    int32_t count
    int32_t lost


cdef struct Node:
    int32_t id
    int32_t link
    int32_t kind                    # 402, 408, 401
    int32_t nmt
    int32_t objects
    Object object[OBJECTS]
    NodePdo rpdo[RPDOS]
    NodePdo tpdo[TPDOS]
    int64_t heartbeat_due_ns
    int64_t watched_ns              # newest heartbeat of the node that 1016h names, 0 before the first
    int64_t frame_ns                # newest setpoint frame
    int64_t longest_ns              # the longest time without one while it was enabled
    # places of the objects that the application uses, -1 not there
    int32_t control
    int32_t status
    int32_t target
    int32_t actual
    int32_t velocity
    int32_t mode
    int32_t mode_display
    int32_t device_mode
    int32_t window
    int32_t lowest                  # position limits 607Dh:1, the other follows
    int32_t error_code
    int32_t force                   # first of what a loaded machine says: CiA 402 6077h, 6078h; CiA 408 6301h:1
    int32_t load_pressure           # CiA 408 6381h:1
    int32_t record                  # 2600h:1, the others follow
    double rated_force              # N, 0: says nothing of it
    # the axis
    int32_t state
    int32_t control_before
    uint32_t emergency
    # injected faults
    int32_t silent
    int32_t local_control
    int32_t deviation
    int32_t limit
    int32_t stuck_fault             # a fault that a reset does not clear
    int32_t wrong_length
    int32_t not_following           # enabled, but the setpoints are ignored
    int32_t no_heartbeat
    int32_t sparse                  # of so many actual values only one is sent
    int32_t sparse_count


# ------------------------------------------------------------------------------------------------------------ dictionary
cdef inline int add_object(Node *n, int index, int sub, int size, int writable, uint32_t value) noexcept nogil:
    if n.objects >= OBJECTS:
        return -1
    n.object[n.objects].index = <uint16_t>index
    n.object[n.objects].sub = <uint8_t>sub
    n.object[n.objects].size = <uint8_t>size
    n.object[n.objects].writable = <uint8_t>writable
    n.object[n.objects].value = value
    n.objects += 1
    return n.objects - 1


cdef inline int find_object(const Node *n, int index, int sub) noexcept nogil:
    cdef int i
    for i in range(n.objects):
        if n.object[i].index == index and n.object[i].sub == sub:
            return i
    return -1


cdef inline bint has_index(const Node *n, int index) noexcept nogil:
    cdef int i
    for i in range(n.objects):
        if n.object[i].index == index:
            return True
    return False


cdef inline uint32_t value_of(const Node *n, int index, int sub) noexcept nogil:
    cdef int i = find_object(n, index, sub)
    return n.object[i].value if i >= 0 else 0


# Sub-indices 1...count of one size, and their number at 0. Returns the place of the first.
cdef inline int add_array(Node *n, int index, int count, int size, int writable) noexcept nogil:
    cdef int k, first
    add_object(n, index, 0, 1, 0, <uint32_t>count)
    first = n.objects
    for k in range(count):
        add_object(n, index, k + 1, size, writable, 0)
    return first


# Communication and mapping of one PDO, switched off.
cdef inline void add_pdo(Node *n, bint receive, int number) noexcept nogil:
    cdef int k, communication = (0x1400 if receive else 0x1800) + number
    add_object(n, communication, 0, 1, 0, 5)
    add_object(n, communication, 1, 4, 1, <uint32_t>0x80000000 | <uint32_t>((0x200 if receive else 0x180) + 0x100 * number + n.id))
    add_object(n, communication, 2, 1, 1, 255)
    if receive:
        add_object(n, communication, 5, 2, 1, 0)
    for k in range(PDO_ENTRIES + 1):
        add_object(n, communication + PDO_MAPPING, k, 4 if k else 1, 1, 0)


# What an axis of a loaded machine says beside its position.
cdef inline void add_machine_objects(Node *n) noexcept nogil:
    cdef double rated = n.rated_force * 1000.0
    cdef int k, place
    if n.kind == 402:
        add_object(n, 0x6076, 0, 4, 0, <uint32_t>rated if rated < 4294967295.0 else 0xFFFFFFFFu)
        n.force = add_object(n, 0x6077, 0, 2, 0, 0)
        add_object(n, 0x6078, 0, 2, 0, 0)
    else:
        add_object(n, 0x6301, 0, 1, 0, 3)
        n.force = add_object(n, 0x6301, 1, 2, 0, 0)
        add_object(n, 0x6301, 2, 1, 0, 0)               # a share: no unit
        add_object(n, 0x6301, 3, 1, 0, 0)
        add_object(n, 0x6381, 0, 1, 0, 3)
        n.load_pressure = add_object(n, 0x6381, 1, 2, 0, 0)
        add_object(n, 0x6381, 2, 1, 0, UNIT_PASCAL)
        add_object(n, 0x6381, 3, 1, 0, PREFIX_KILO)
    add_object(n, 0x2600, 0, 1, 0, 6)
    for k in range(6):
        place = add_object(n, 0x2600, k + 1, 2, 0, 0)
        if k == 0:
            n.record = place


# What a CiA 402 drive has for its own protection, as it comes from its maker, and its scale: a turn of the shaft is 10 mm.
cdef inline void add_drive_protection(Node *n) noexcept nogil:
    cdef int k
    add_object(n, 0x6007, 0, 2, 1, 0)
    add_object(n, 0x605A, 0, 2, 1, 2)
    for k in range(4):
        add_object(n, 0x605B + k, 0, 2, 1, 2 if k == 3 else k > 0)
    add_object(n, 0x6066, 0, 2, 1, 0)
    add_object(n, 0x607D, 0, 1, 0, 2)
    n.lowest = add_object(n, 0x607D, 1, 4, 1, 0x80000000)
    add_object(n, 0x607D, 2, 4, 1, 0x7FFFFFFF)
    add_object(n, 0x607F, 0, 4, 1, 0xFFFFFFFF)
    add_object(n, 0x6080, 0, 4, 1, 0xFFFFFFFF)
    add_object(n, 0x6085, 0, 4, 1, 0xFFFFFFFF)
    add_object(n, 0x6092, 0, 1, 0, 2)
    add_object(n, 0x6092, 1, 4, 1, 0)
    add_object(n, 0x6092, 2, 4, 1, 1)
    add_object(n, 0x60C5, 0, 4, 1, 0xFFFFFFFF)
    add_object(n, 0x60C6, 0, 4, 1, 0xFFFFFFFF)


# Whether an option code is one that the standard has.
cdef inline bint option_known(int index, int32_t code) noexcept nogil:
    if index == 0x6007:
        return 0 <= code <= 3
    if index == 0x605A:
        return 0 <= code <= 8 and code != 4
    if index == 0x605B or index == 0x605C:
        return 0 <= code <= 1
    return 1 <= code <= 4 if index == 0x605D else 0 <= code <= 4 if index == 0x605E else True


# Power-up state of a node: dictionary with default PDOs (all switched off except TPDO1/RPDO1 as CiA 301 presets them), pre-operational.
cdef inline void make_node(Node *n, int kind, int node_id, int link, uint32_t window_counts, double rated_force) noexcept nogil:
    cdef int i
    memset(n, 0, sizeof(Node))
    n.id, n.link, n.kind, n.nmt = node_id, link, kind, NMT_PRE_OPERATIONAL
    n.control = n.status = n.target = n.actual = n.velocity = n.mode = n.mode_display = n.device_mode = n.window = n.error_code = -1
    n.force = n.load_pressure = n.record = n.lowest = -1
    n.rated_force = rated_force
    add_object(n, 0x1000, 0, 4, 0, <uint32_t>kind)
    add_object(n, 0x1001, 0, 1, 0, 0)
    add_object(n, 0x1006, 0, 4, 1, 0)
    add_object(n, 0x1016, 0, 1, 0, 1)
    add_object(n, 0x1016, 1, 4, 1, 0)
    add_object(n, 0x1017, 0, 2, 1, 0)
    add_object(n, 0x1018, 0, 1, 0, 4)
    add_object(n, 0x1018, 1, 4, 0, 0x00000DAC)
    add_object(n, 0x1018, 2, 4, 0, <uint32_t>kind)
    add_object(n, 0x1018, 3, 4, 0, 1)
    add_object(n, 0x1018, 4, 4, 0, <uint32_t>node_id)
    add_object(n, 0x1029, 0, 1, 0, 1)
    add_object(n, 0x1029, 1, 1, 1, 0)
    for i in range(1 if kind == 401 else RPDOS):
        add_pdo(n, True, i)
    for i in range(3 if kind == 401 else TPDOS if rated_force > 0.0 else 2):
        add_pdo(n, False, i)
    if kind == 401:
        n.status = add_array(n, 0x6000, 4, 1, 0)        # bytes of inputs
        n.actual = add_array(n, 0x6401, 8, 2, 0)        # analogue inputs
        n.target = add_array(n, 0x6200, 4, 1, 1)        # bytes of outputs
        return
    n.control = add_object(n, 0x6040, 0, 2, 1, 0)
    n.status = add_object(n, 0x6041, 0, 2, 0, 0)
    if kind == 402:
        n.state = DRIVE_SWITCH_ON_DISABLED
        n.mode = add_object(n, 0x6060, 0, 1, 1, 0)
        n.mode_display = add_object(n, 0x6061, 0, 1, 0, 0)
        n.target = add_object(n, 0x607A, 0, 4, 1, 0)
        n.actual = add_object(n, 0x6064, 0, 4, 0, 0)
        n.velocity = add_object(n, 0x60B1, 0, 4, 1, 0)
        n.window = add_object(n, 0x6065, 0, 4, 1, window_counts)
        add_drive_protection(n)
        add_object(n, 0x60C2, 0, 1, 0, 2)
        add_object(n, 0x60C2, 1, 1, 1, 1)
        add_object(n, 0x60C2, 2, 1, 1, <uint32_t>(-3) & 0xFF)
        n.error_code = add_object(n, 0x603F, 0, 2, 0, 0)
        add_object(n, 0x60FE, 0, 1, 0, 2)               # digital outputs, and which of them the bus commands
        add_object(n, 0x60FE, 1, 4, 1, 0)
        add_object(n, 0x60FE, 2, 4, 1, 0)
    else:
        n.state = VALVE_INIT
        n.device_mode = add_object(n, 0x6042, 0, 1, 1, 1)
        n.mode = add_object(n, 0x6043, 0, 1, 1, 0)
        n.target = add_object(n, 0x6600, 1, 4, 1, 0)
        n.actual = add_object(n, 0x6601, 1, 4, 0, 0)
        n.window = add_object(n, 0x6354, 1, 4, 1, window_counts)
        add_object(n, 0x5700, 0, 1, 1, 1)
        add_object(n, 0x585C, 0, 1, 1, 0)
        add_object(n, 0x2831, 1, 4, 0, 0)
    if rated_force > 0.0:
        add_machine_objects(n)


# ----------------------------------------------------------------------------------------------------------------- output
cdef inline can_frame *new_frame(Node *n, Outbox *out, uint32_t cob_id, int length) noexcept nogil:
    cdef can_frame *f
    if n.silent or out.count >= OUTBOX:
        out.lost += not n.silent
        return NULL
    f = &out.frame[out.count]
    out.count += 1
    memset(f, 0, sizeof(can_frame))
    f.can_id = cob_id
    f.can_dlc = <uint8_t>length
    return f


cdef inline void send_heartbeat(Node *n, Outbox *out, int state) noexcept nogil:
    cdef can_frame *f = new_frame(n, out, <uint32_t>(0x700 + n.id), 1)
    if f != NULL:
        f.data[0] = <uint8_t>state


cdef inline void send_emergency(Node *n, Outbox *out, int code) noexcept nogil:
    cdef can_frame *f
    cdef int register_place = find_object(n, 0x1001, 0)
    n.emergency = <uint32_t>code
    if code and n.error_code >= 0:
        n.object[n.error_code].value = <uint32_t>code
    n.object[register_place].value = 0 if code == 0 else 0x11 if code & EMERGENCY_KIND == EMERGENCY_OF_BUS else 0x01
    f = new_frame(n, out, <uint32_t>(0x080 + n.id), 8)
    if f != NULL:
        io_store_le16(f.data, <uint16_t>code)
        f.data[2] = <uint8_t>n.object[register_place].value


# ------------------------------------------------------------------------------------------------------------------- axis
cdef inline bint axis_enabled(const Node *n) noexcept nogil:
    return n.state == (DRIVE_ENABLED if n.kind == 402 else VALVE_ACTIVE)


# Enabled, and its setpoint is used.
cdef inline bint axis_follows(const Node *n) noexcept nogil:
    return axis_enabled(n) and not n.not_following


cdef inline bint axis_in_fault(const Node *n) noexcept nogil:
    return n.state == DRIVE_FAULT if n.kind == 402 else n.state & VALVE_R == 0


cdef inline void axis_fault(Node *n, Outbox *out, int code) noexcept nogil:
    if n.kind == 401:
        send_emergency(n, out, code)
        return
    if not axis_in_fault(n):
        if n.kind == 402:
            n.state = DRIVE_FAULT
        else:
            n.state = VALVE_FAULT_HOLD if n.state == VALVE_ACTIVE or n.state == VALVE_HOLD else VALVE_FAULT_DISABLED
    send_emergency(n, out, code)


# Target in counts, within the limits of the drive.
cdef inline int32_t axis_target(const Node *n) noexcept nogil:
    cdef int32_t low, high, target = <int32_t>n.object[n.target].value
    if n.lowest < 0:
        return target
    low, high = <int32_t>n.object[n.lowest].value, <int32_t>n.object[n.lowest + 1].value
    if low >= high:
        return target
    return low if target < low else high if target > high else target


# The connection is lost: 6007h, and 605Ah where that asks for a quick stop.
cdef inline void abort_connection(Node *n, Outbox *out, int code) noexcept nogil:
    cdef int option = <int>value_of(n, 0x6007, 0) if n.kind == 402 else 1
    if option == 1 and axis_enabled(n):
        axis_fault(n, out, code)
        return
    send_emergency(n, out, code)
    if n.kind == 402 and option >= 2 and n.state != DRIVE_FAULT:
        n.state = DRIVE_QUICK_STOP if option == 3 and axis_enabled(n) and value_of(n, 0x605A, 0) >= 5 else DRIVE_SWITCH_ON_DISABLED


# Control word of a CiA 402 axis.
cdef inline void control_drive(Node *n, Outbox *out, int word) noexcept nogil:
    if n.state == DRIVE_FAULT:
        if word & FAULT_RESET and not n.control_before & FAULT_RESET and not n.stuck_fault:
            n.state = DRIVE_SWITCH_ON_DISABLED
            send_emergency(n, out, 0)
    elif not (word & ENABLE_VOLTAGE and word & QUICK_STOP):     # disable voltage, quick stop
        n.state = DRIVE_SWITCH_ON_DISABLED
    elif not word & SWITCH_ON:                                  # shutdown
        n.state = DRIVE_READY
    elif not word & ENABLE_OPERATION:                           # switch on, disable operation
        if n.state == DRIVE_READY or n.state == DRIVE_ENABLED:
            n.state = DRIVE_SWITCHED_ON
    elif n.object[n.mode].value == 8:                           # enable operation, only in the mode that there is
        if n.state == DRIVE_SWITCHED_ON:
            n.state = DRIVE_ENABLED


# Control word of a CiA 408 axis. Upwards one state at a time.
cdef inline void control_valve(Node *n, Outbox *out, int word) noexcept nogil:
    cdef int wanted = word & (VALVE_D | VALVE_H | VALVE_M)
    if n.state & VALVE_R == 0:
        if word & VALVE_R and not n.control_before & VALVE_R and not n.stuck_fault and wanted == (n.state & (VALVE_D | VALVE_H)):
            n.state |= VALVE_R
            send_emergency(n, out, 0)
    elif wanted == 0:
        n.state = VALVE_INIT
    elif wanted == VALVE_D:
        n.state = VALVE_DISABLED
    elif wanted == VALVE_D | VALVE_H:
        if n.state != VALVE_INIT:
            n.state = VALVE_HOLD
    elif wanted == VALVE_D | VALVE_H | VALVE_M:
        if n.state == VALVE_HOLD:
            n.state = VALVE_ACTIVE


cdef inline void control_axis(Node *n, Outbox *out) noexcept nogil:
    cdef int word = <int>n.object[n.control].value
    if n.kind == 402:
        control_drive(n, out, word)
    else:
        control_valve(n, out, word)
    n.control_before = word


# Whether the axis has power, so that its blocking valve is open: in CiA 408 HOLD is position control at the hold setpoint.
cdef inline bint axis_powered(const Node *n) noexcept nogil:
    return n.state == DRIVE_ENABLED if n.kind == 402 else n.state & VALVE_H != 0


# Status word as it is now.
cdef inline void update_status(Node *n) noexcept nogil:
    cdef uint32_t word, machine = n.object[n.record + 5].value if n.record >= 0 else 0
    cdef int64_t error
    cdef bint deviates, local
    if n.kind == 401:
        return
    error = <int64_t><int32_t>n.object[n.target].value - <int64_t><int32_t>n.object[n.actual].value
    deviates = n.deviation or (axis_enabled(n) and (error if error >= 0 else -error) > <int64_t>n.object[n.window].value)
    local = n.local_control or (n.device_mode >= 0 and n.object[n.device_mode].value != 1)
    if n.kind == 402:
        word = <uint32_t>n.state | VOLTAGE_ENABLED
        word |= 0 if local else REMOTE
        word |= INTERNAL_LIMIT if n.limit or axis_target(n) != <int32_t>n.object[n.target].value else 0
        word |= FOLLOWING_ERROR if deviates else 0
        word |= TARGET_USED if axis_follows(n) else 0
        word |= DRIVE_VALVE_AT_END if machine & BIT_VALVE_AT_END else 0
        word |= DRIVE_SUPPLY_LOW if machine & BIT_SUPPLY_LOW else 0
        word |= DRIVE_BLOCKED if machine & BIT_BLOCKED else 0
    else:
        word = <uint32_t>n.state
        word |= VALVE_LOCAL if local else 0
        word |= VALVE_LIMIT if n.limit else 0
        word |= VALVE_DEVIATION if deviates else 0
    n.object[n.status].value = word


# -------------------------------------------------------------------------------------------------------------------- PDO
# Resolves the mapping of a PDO that is switched on. Returns 0 or an SDO abort code.
cdef inline uint32_t switch_pdo_on(Node *n, bint receive, int number) noexcept nogil:
    cdef NodePdo *pdo = &n.rpdo[number] if receive else &n.tpdo[number]
    cdef int communication = (0x1400 if receive else 0x1800) + number
    cdef int mapping = (0x1600 if receive else 0x1A00) + number
    cdef int count = <int>value_of(n, mapping, 0)
    cdef uint32_t entry, kind = value_of(n, communication, 2)
    cdef int i, place
    pdo.bytes = 0
    pdo.count = count
    for i in range(count):
        entry = value_of(n, mapping, i + 1)
        place = find_object(n, <int>(entry >> 16), <int>(entry >> 8 & 0xFF))
        if place < 0 or entry & 0xFF != 8 * <uint32_t>n.object[place].size or (receive and not n.object[place].writable):
            return ABORT_NOT_MAPPABLE
        pdo.entry[i] = place
        pdo.bytes += n.object[place].size
    if pdo.bytes > 8:
        return ABORT_MAPPING_LENGTH
    pdo.cob_id = value_of(n, communication, 1) & 0x7FF
    pdo.every_sync = <int>kind if 1 <= kind <= 240 else 0
    pdo.sync_count = 0
    pdo.waiting = 0
    pdo.last_ns = 0
    pdo.deadline_ns = <int64_t>value_of(n, communication, 5) * 1000000 if receive else 0
    pdo.on = 1
    return 0


# What a received PDO says goes into the objects.
cdef inline void apply_rpdo(Node *n, Outbox *out, NodePdo *pdo) noexcept nogil:
    cdef int i, k, at = 0
    cdef uint32_t value
    cdef bint controlled = False
    for i in range(pdo.count):
        value = 0
        for k in range(n.object[pdo.entry[i]].size):
            value |= <uint32_t>pdo.data[at] << 8 * k
            at += 1
        n.object[pdo.entry[i]].value = value
        controlled = controlled or pdo.entry[i] == n.control
    pdo.waiting = 0
    if controlled:
        control_axis(n, out)


cdef inline void send_tpdo(Node *n, Outbox *out, NodePdo *pdo) noexcept nogil:
    cdef can_frame *f = new_frame(n, out, pdo.cob_id, pdo.bytes)
    cdef int i, k, at = 0
    if f == NULL:
        return
    for i in range(pdo.count):
        for k in range(n.object[pdo.entry[i]].size):
            f.data[at] = <uint8_t>(n.object[pdo.entry[i]].value >> 8 * k)
            at += 1
    if n.wrong_length and f.can_dlc > 0:
        f.can_dlc -= 1


# First half of SYNC: the setpoints that wait take effect.
cdef inline void sync_setpoints(Node *n, Outbox *out) noexcept nogil:
    cdef int i
    if n.nmt != NMT_OPERATIONAL:
        return
    for i in range(RPDOS):
        if n.rpdo[i].on and n.rpdo[i].waiting:
            apply_rpdo(n, out, &n.rpdo[i])


# Second half of SYNC, after the application wrote the actual values: they are sent.
cdef inline void sync_actual_values(Node *n, Outbox *out) noexcept nogil:
    cdef NodePdo *pdo
    cdef int i
    update_status(n)
    if n.nmt != NMT_OPERATIONAL:
        return
    if n.sparse > 0:
        n.sparse_count = (n.sparse_count + 1) % n.sparse
        if n.sparse_count:
            return
    for i in range(TPDOS):
        pdo = &n.tpdo[i]
        if not pdo.on or pdo.every_sync == 0:
            continue
        pdo.sync_count += 1
        if pdo.sync_count >= pdo.every_sync:
            pdo.sync_count = 0
            send_tpdo(n, out, pdo)


# -------------------------------------------------------------------------------------------------------------------- SDO
cdef inline void send_sdo(Node *n, Outbox *out, uint8_t command, const uint8_t *address, uint32_t value) noexcept nogil:
    cdef can_frame *f = new_frame(n, out, <uint32_t>(0x580 + n.id), 8)
    if f != NULL:
        f.data[0] = command
        memcpy(f.data + 1, address, 3)
        io_store_le32(f.data + 4, value)


# Consequences of a written object. `before` is its old value. Returns 0 or an abort code (the caller restores the old value).
cdef inline uint32_t object_written(Node *n, Outbox *out, int place, int64_t now_ns) noexcept nogil:
    cdef int index = n.object[place].index, sub = n.object[place].sub, number
    cdef uint32_t value = n.object[place].value
    cdef bint receive = 0x1400 <= index < 0x1800
    cdef NodePdo *pdo
    if 0x1400 <= index < 0x1C00:
        number = index & 0x1FF
        receive = index < 0x1800
        pdo = &n.rpdo[number] if receive else &n.tpdo[number]
        if index & PDO_MAPPING:
            if pdo.on:
                return ABORT_STATE
            if sub == 0:
                if value > PDO_ENTRIES:
                    return ABORT_VALUE
            elif value_of(n, index, 0) != 0:
                return ABORT_STATE
            elif find_object(n, <int>(value >> 16), <int>(value >> 8 & 0xFF)) < 0:
                return ABORT_NOT_MAPPABLE
        elif sub == 1:
            if value & <uint32_t>0x80000000:
                pdo.on = 0
            else:
                return switch_pdo_on(n, receive, number)
        elif pdo.on and sub == 2:
            return ABORT_STATE
        elif pdo.on and sub == 5:
            pdo.deadline_ns = <int64_t>value * 1000000
    elif index == 0x1017:
        n.heartbeat_due_ns = now_ns if value else 0
    elif place == n.control:
        control_axis(n, out)
    elif index == 0x1016:
        n.watched_ns = 0
    elif n.kind == 402 and not option_known(index, <int32_t>(<uint32_t>value << 16) >> 16):
        return ABORT_VALUE
    elif place == n.mode and n.mode_display >= 0:
        if value != 8:
            return ABORT_VALUE
        n.object[n.mode_display].value = value
    return 0


cdef inline void serve_sdo(Node *n, Outbox *out, const can_frame *f, int64_t now_ns) noexcept nogil:
    cdef int index = io_load_le16(f.data + 1), sub = f.data[3], place, size
    cdef uint8_t command = f.data[0]
    cdef uint32_t failed, before
    if f.can_dlc != 8 or command >> 5 == 4:          # a client's abort has no answer
        return
    if command >> 5 != 1 and command >> 5 != 2:
        send_sdo(n, out, 0x80, f.data + 1, ABORT_COMMAND)
        return
    place = find_object(n, index, sub)
    if place < 0:
        send_sdo(n, out, 0x80, f.data + 1, ABORT_NO_SUB_INDEX if has_index(n, index) else ABORT_NO_OBJECT)
        return
    if command >> 5 == 2:                            # upload
        update_status(n)
        size = n.object[place].size
        send_sdo(n, out, <uint8_t>(SDO_UPLOADED | (4 - size) << 2), f.data + 1, n.object[place].value)
        return
    size = 4 - (command >> 2 & 3) if command & SDO_SIZED else n.object[place].size
    if not command & SDO_EXPEDITED:                              # only expedited transfers: nothing here is longer than four bytes
        failed = ABORT_COMMAND
    elif not n.object[place].writable:
        failed = ABORT_READ_ONLY
    elif size != n.object[place].size:
        failed = ABORT_LENGTH
    else:
        before = n.object[place].value
        n.object[place].value = io_load_le32(f.data + 4) & (<uint32_t>0xFFFFFFFF >> (32 - 8 * size))
        failed = object_written(n, out, place, now_ns)
        if failed:
            n.object[place].value = before
    send_sdo(n, out, 0x80 if failed else 0x60, f.data + 1, failed)


# -------------------------------------------------------------------------------------------------------------------- NMT
# What a device keeps without power: who it is, and its scale.
cdef inline void keep_stored(const Node *n, Node *fresh) noexcept nogil:
    cdef int i
    for i in range(n.objects):
        if n.object[i].index == 0x1018 or n.object[i].index == 0x6092:
            fresh.object[i].value = n.object[i].value


cdef inline void start_up(Node *n, Outbox *out, int64_t now_ns) noexcept nogil:
    cdef uint32_t window = n.object[n.window].value if n.window >= 0 else 0
    cdef Node fresh
    make_node(&fresh, n.kind, n.id, n.link, window, n.rated_force)
    fresh.silent, fresh.local_control, fresh.deviation, fresh.limit = n.silent, n.local_control, n.deviation, n.limit
    fresh.stuck_fault, fresh.wrong_length = n.stuck_fault, n.wrong_length
    fresh.not_following, fresh.no_heartbeat, fresh.sparse = n.not_following, n.no_heartbeat, n.sparse
    fresh.longest_ns = n.longest_ns
    if n.kind != 401:
        keep_stored(n, &fresh)
    if n.actual >= 0 and n.kind != 401:
        fresh.object[fresh.actual].value = n.object[n.actual].value
    n[0] = fresh
    send_heartbeat(n, out, 0)


cdef inline void command_nmt(Node *n, Outbox *out, int command, int64_t now_ns) noexcept nogil:
    cdef int i
    if command == 1:
        n.nmt = NMT_OPERATIONAL
        for i in range(RPDOS):
            n.rpdo[i].last_ns = 0
            n.rpdo[i].waiting = 0
    elif command == 2:
        n.nmt = NMT_STOPPED
    elif command == 128:
        n.nmt = NMT_PRE_OPERATIONAL
    elif command == 129 or command == 130:
        start_up(n, out, now_ns)


# ----------------------------------------------------------------------------------------------------------------- frames
# A setpoint frame came: how long the axis was enabled without one.
cdef inline void setpoint_came(Node *n, int64_t now_ns) noexcept nogil:
    if axis_enabled(n) and n.frame_ns and now_ns - n.frame_ns > n.longest_ns:
        n.longest_ns = now_ns - n.frame_ns
    n.frame_ns = now_ns


# One frame on the node's link, except SYNC (which the stand splits in two halves).
cdef inline void take_node_frame(Node *n, Outbox *out, const can_frame *f, int64_t now_ns) noexcept nogil:
    cdef NodePdo *pdo
    cdef int i
    if n.silent or f.can_id & (CAN_ERR_FLAG | CAN_EFF_FLAG | CAN_RTR_FLAG):
        return
    if f.can_id >> 7 == 0xE and f.can_id & 0x7F == value_of(n, 0x1016, 1) >> 16:
        n.watched_ns = now_ns
    if f.can_id == 0:
        if f.can_dlc == 2 and (f.data[1] == 0 or f.data[1] == n.id):
            command_nmt(n, out, f.data[0], now_ns)
    elif f.can_id == <uint32_t>(0x600 + n.id):
        if n.nmt != NMT_STOPPED:
            serve_sdo(n, out, f, now_ns)
    elif n.nmt == NMT_OPERATIONAL:
        for i in range(RPDOS):
            pdo = &n.rpdo[i]
            if not pdo.on or f.can_id != pdo.cob_id:
                continue
            if f.can_dlc < pdo.bytes:
                send_emergency(n, out, EMERGENCY_LENGTH)
                continue
            if i == 0:
                setpoint_came(n, now_ns)
            memcpy(pdo.data, f.data, 8)
            pdo.waiting = 1
            pdo.last_ns = now_ns
            if pdo.every_sync == 0:
                apply_rpdo(n, out, pdo)


# Heartbeat and receive time-outs. To be called after all waiting frames were taken.
cdef inline void node_timers(Node *n, Outbox *out, int64_t now_ns) noexcept nogil:
    cdef NodePdo *pdo
    cdef int64_t period = <int64_t>value_of(n, 0x1017, 0) * 1000000
    cdef int64_t watched = <int64_t>(value_of(n, 0x1016, 1) & 0xFFFF) * 1000000
    cdef int i
    if watched and n.watched_ns and now_ns - n.watched_ns > watched:
        n.watched_ns = 0
        if n.kind == 401:
            send_emergency(n, out, EMERGENCY_HEARTBEAT)
        else:
            abort_connection(n, out, EMERGENCY_HEARTBEAT)
        if n.nmt == NMT_OPERATIONAL and value_of(n, 0x1029, 1) != 1:
            n.nmt = NMT_PRE_OPERATIONAL if value_of(n, 0x1029, 1) == 0 else NMT_STOPPED
    if n.heartbeat_due_ns and now_ns >= n.heartbeat_due_ns:
        if not n.no_heartbeat:
            send_heartbeat(n, out, n.nmt)
        n.heartbeat_due_ns += period
        if n.heartbeat_due_ns < now_ns:
            n.heartbeat_due_ns = now_ns + period
    if n.nmt != NMT_OPERATIONAL:
        return
    for i in range(RPDOS):
        pdo = &n.rpdo[i]
        if pdo.on and pdo.deadline_ns and pdo.last_ns and now_ns - pdo.last_ns > pdo.deadline_ns:
            pdo.last_ns = 0
            if axis_enabled(n):
                axis_fault(n, out, EMERGENCY_TIMEOUT)
