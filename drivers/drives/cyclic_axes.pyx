"""Cyclic part of CANopen axes on one to three buses, shared by CiA 402 and CiA 408.

One tick k:

    read    take what waits: actual values (status word u16, position i32) that the axes sampled at SYNC k-1, emergency messages,
            heartbeats, error frames; then SYNC k on every bus: all axes latch the setpoints of tick k-1 and sample their position at one
            instant
    write   setpoints (control word u16, position i32, optionally velocity i32 in a second frame) of tick k, which act at SYNC k+1

So the dead time is one period, constant, whatever the order of the frames on the bus (transmission type 1 both ways). The waiting frames
are taken before SYNC leaves so that the answer to SYNC k can never be mistaken for one to SYNC k-1, however fast the axes are.

Nothing that comes between two ticks is lost. All status words of a tick are judged: `drive_status` is their union, `drive_device_status`
the worst of them (the newest of equally bad ones) beside the newest error code of the tick; a tick without an actual value keeps the newest
word. An emergency message shows in its tick also when it was taken back in the same one, and after it until its error register is empty
(CiA 301: code 0 with a register that is not empty says that one error went and others stand). A heartbeat that is not `operational` shows
in its tick, and until the next one that is.

Before the loop and after it the keeper (`drivers.drives.keeper`) exchanges the same frames in the same order. It leads the axes up by
their control words, the target of an axis being where it stands until it is enabled, and lets all of them take the last step together,
when two positions in a row of each are within a millimetre of each other. An axis that is enabled and, before the first setpoint, more than
a millimetre from where it is held has a following error: the keeper takes its power, the loop trips. The loop has the buses from its first
read on; when it leaves them the keeper leads the axes down, state by state, their targets as they were (of an axis that is more than a
millimetre away: where it is), and frames flow until each has arrived.

Watchdog (`drivers.watchdog_output`): where one drive has its output, that drive's second setpoint frame carries digital outputs, behind the
velocity if there is one. They act with the setpoints; the keeper sends zeros.

Our heartbeat (CiA 301: 0x700 + `server_node`, operational) goes out behind the setpoints of every `beat_every`-th SYNC: an axis that
misses it detects the loss of its master.

In the first tick positions and status are the keeper's, or, where it has not been, the set-up's; they may be old, and are `stale`.

Lost: each SYNC whose answer has not come by the next one (`drive_lost_total`; one that comes later is used, but was late). TPDO1 is the
only actual value that the set-up switches on. An axis answers a SYNC once: one answer more than it owes, and with another position, is
somebody else's, or the one before it was (`differs`); one that was lost is owed until `no_data_periods` SYNCs in a row have had one each.
Damaged: a frame of the axis with a wrong length, and, for all axes of the link, records that
are no frame and bus errors that the controller reports (`drive_corrupt_total`). Frames for no axis, extended and remote frames are ignored
and counted. A flood is taken in portions, `MOST_ROUNDS` batches a tick, in order; while frames are left waiting the link is `stale`, after
`no_data_periods` such ticks in a row it has no data.

What the axes say beside their position (`drive_channels`: force, pressures, spool, supply, a word of the hydraulics) comes with every n-th
SYNC in frames of its own and is held between. Such a frame that has not come for two of its periods is lost, one more for each further
period; after `no_data_periods` of them the axis has no data. An axis that the safety stage blocks gets the control word that takes its
power off; its blocking valves then close.

Recovery (`safety_state`): each axis is led up from the state that it is in, out of a fault too, one state after the other by its control
word; it is enabled when its setpoint is where it stands. When a recovery is given up, an axis that it has not enabled keeps the word that
it had: nothing enables it later by surprise. A node that has lost its set-up (restart, new supply) gets it again beside the loop, which
continues: what the node says to a set-up is copied to it (`set_up_again`).

Heartbeats: a drive whose last one is older than the consumer heartbeat time is `heartbeat_lost`, whatever else it sends. Time is the time
of the run, so that a loop that stood still hears first and judges then. From the second answer after the first setpoints on a drive must
follow (`not_following`, CiA 402 status bit 12).

`measured_leg_rate` is a difference quotient over the last `rate_window` samples and the true time between their SYNCs; its delay is half
that window, its quantum one count divided by the window.

COB-IDs of node n: SYNC 0x080, emergency 0x080 + n, TPDO1 0x180 + n, RPDO1 0x200 + n, RPDO2 0x300 + n, TPDO3 0x380 + n, TPDO4 0x480 + n,
heartbeat 0x700 + n (CiA 301).
"""

from libc.string cimport memset

from drivers.drives.axis_values cimport (HEARD_PERIODS, command_axis, counts_rate, in_place, keep_position, left_place, rank,
                                         to_counts)
from drivers.drives.keeper cimport (CLOSED, LEAD_DOWN, LEAD_HOLD, LEAD_NOWHERE, LEAD_UP, LOOP, NO_OWNER, arrived, close_buses, keep_buses,
                                    lead_to, loop_has, loop_leaves, owner_now, reset_now, resets_in_recovery)
from drivers.watchdog_output cimport watchdog_bits
from drivers.raw_frames.frame_io cimport (
    CAN_EFF_FLAG,
    CAN_ERR_BUSERROR,
    CAN_ERR_BUSOFF,
    CAN_ERR_CRTL,
    CAN_ERR_CRTL_RX_OVERFLOW,
    CAN_ERR_CRTL_RX_PASSIVE,
    CAN_ERR_CRTL_TX_PASSIVE,
    CAN_ERR_FLAG,
    CAN_ERR_PROT,
    CAN_ERR_RESTARTED,
    CAN_RTR_FLAG,
    EAGAIN,
    ENOBUFS,
    IO_BATCH,
    can_frame,
    io_load_le16,
    io_load_le32,
    io_now_ns,
    io_receive_frames,
    io_send_frames,
    io_store_le16,
    io_store_le32,
)
from rt_kernels.codes cimport (DRIVE_STATUS_BUS_FAULT, DRIVE_STATUS_CORRUPT, DRIVE_STATUS_DEVICE_FAULT, DRIVE_STATUS_DIFFERS,
                               DRIVE_STATUS_EMERGENCY, DRIVE_STATUS_HEARTBEAT_LOST, DRIVE_STATUS_HYDRAULICS_BLOCKED, DRIVE_STATUS_LOST,
                               DRIVE_STATUS_NOT_ENABLED, DRIVE_STATUS_NOT_FOLLOWING, DRIVE_STATUS_NO_DATA,
                               DRIVE_STATUS_STALE, DRIVE_STATUS_SUPPLY_LOW, DRIVE_STATUS_TX_DROP, DRIVE_STATUS_VALVE_SATURATED,
                               DRIVE_STATUS_WARNING)

cdef enum:
    KIND_ACTUAL = 0         # TPDO1: status word, position
    KIND_EMERGENCY = 1
    KIND_HEARTBEAT = 2
    KIND_SLOW = 3           # TPDO3, and one more TPDO4
    ERROR_CLASS = 0xFF00    # of an emergency code: 0, when it takes one back
    COB_SYNC = 0x080
    COB_TPDO1 = 0x180
    COB_RPDO1 = 0x200
    COB_RPDO2 = 0x300
    COB_TPDO3 = 0x380       # and TPDO4 0x100 further
    COB_SDO_ANSWER = 0x580
    COB_HEARTBEAT = 0x700
    FUNCTION_CODE = 0x780
    NMT_BOOT_UP = 0
    NMT_OPERATIONAL = 5
    GENERIC_ERROR = 0x1000  # emergency code of an error that only the error register tells
    ANSWERS_TO_FOLLOW = 2   # the first answer after setpoints took effect may have been made before the drive looked at them
    MOST_ROUNDS = 8         # batches taken from one link in one tick: bounds the time when somebody floods the bus
    BACKLOG_TURNS = 64      # more than a socket's buffer holds: what is flooded cannot hold up the start
    PDO_BYTES = 6
    OWED_AT_START = 64      # answers to what the set-up has asked may still come
    HEARTBEAT_FRAME = 1     # and the setpoints of all axes, in two frames each, are what leaves in a tick


cdef inline uint32_t bit(int number) noexcept nogil:
    return <uint32_t>1 << number


# What the bits of the drive's own words say of its hydraulics: status word in the lower half, CHANNEL_STATUS in the upper one.
cdef inline uint32_t hydraulic_status(const AxesParams *p, uint32_t words) noexcept nogil:
    cdef uint32_t status = 0
    if p.hydraulic_bit[0] >= 0 and words >> p.hydraulic_bit[0] & 1:
        status |= DRIVE_STATUS_VALVE_SATURATED
    if p.hydraulic_bit[1] >= 0 and words >> p.hydraulic_bit[1] & 1:
        status |= DRIVE_STATUS_SUPPLY_LOW
    if p.hydraulic_bit[2] >= 0 and words >> p.hydraulic_bit[2] & 1:
        status |= DRIVE_STATUS_HYDRAULICS_BLOCKED
    return status


# A status word of this tick: the union of the bits, and the worst word (the newest of equally bad ones).
cdef inline void judge_word(AxisState *a, uint16_t word, uint32_t found) noexcept nogil:
    a.seen |= found
    if rank(found) >= a.worst_rank:
        a.worst_rank = rank(found)
        a.worst_word = word


# Whether a drive can be expected to follow: setpoints have been sent, and have acted.
cdef inline bint follows(const AxesState *s) noexcept nogil:
    return s.first_command > 0 and s.cycles >= s.first_command + ANSWERS_TO_FOLLOW


# An actual value: status word and position.
cdef inline void take_actual(Axes *axes, int link, AxisState *a, const can_frame *f) noexcept nogil:
    cdef bint other = a.counts != <int32_t>io_load_le32(f.data + 2)
    a.answers += 1
    if a.owed > 0:
        a.owed -= 1
    elif other:
        a.seen |= DRIVE_STATUS_DIFFERS
    a.status_word = io_load_le16(f.data)
    a.status = axes.p.decode(a.status_word) & ~axes.p.not_judged | hydraulic_status(&axes.p, a.status_word)
    if not follows(&axes.s):
        a.status &= ~DRIVE_STATUS_NOT_FOLLOWING
    judge_word(a, a.status_word, a.status)
    a.counts = <int32_t>io_load_le32(f.data + 2)
    a.fresh = 1
    a.silent_periods = 0
    if axes.s.sync_ns[link] > 0:
        keep_position(&a.history, a.counts, axes.s.sync_ns[link])


# A SYNC has left: one more answer is owed, and those of before no longer once the axis has answered some SYNCs in a row, each once.
cdef inline void owe_answer(const AxesParams *p, AxisState *a) noexcept nogil:
    a.calm = a.calm + 1 if a.answers == 1 else 0
    if a.calm >= p.no_data_periods:
        a.owed = 0
    a.owed += 1
    a.answers = 0


# What an axis says beside its position: counts of two or four bytes, one after the other. All words of a tick are judged, as above.
cdef inline void take_slow(Axes *axes, AxisState *a, const SlowPdo *pdo, int number, const can_frame *f) noexcept nogil:
    cdef const SlowValue *v
    cdef int32_t counts
    cdef int i, at = 0
    for i in range(pdo.count):
        v = &pdo.value[i]
        if v.bytes == 2:
            counts = <int16_t>io_load_le16(f.data + at)
        else:
            counts = <int32_t>io_load_le32(f.data + at)
        at += v.bytes
        if v.channel == CHANNEL_STATUS:
            a.hydraulic_word = <uint32_t>counts & 0xFFFF
            a.seen |= hydraulic_status(&axes.p, a.hydraulic_word << 16)
        else:
            a.channel[v.channel] = <double>counts * v.unit
    a.slow_silent[number] = 0


# An emergency message: an error, or (code 0) one that went; then the error register tells whether others stand.
cdef inline void take_emergency(AxisState *a, const can_frame *f) noexcept nogil:
    cdef uint16_t code = io_load_le16(f.data)
    if code & ERROR_CLASS:
        a.emergency = code
    elif f.data[2] == 0:
        a.emergency = 0
    elif a.emergency == 0:
        a.emergency = GENERIC_ERROR
    if a.emergency:
        a.emergency_seen = a.emergency
        a.seen |= DRIVE_STATUS_EMERGENCY | DRIVE_STATUS_DEVICE_FAULT


# A heartbeat or boot-up message: its NMT state. A node that starts sends an emergency message of each error that it still has (CiA 301).
cdef inline void take_heartbeat(AxisState *a, const can_frame *f) noexcept nogil:
    a.nmt_state = f.data[0] & 0x7F
    if a.nmt_state == NMT_BOOT_UP:
        a.emergency = 0
    a.beat = 1
    if a.nmt_state != NMT_OPERATIONAL:
        a.seen |= DRIVE_STATUS_NOT_ENABLED


# An error frame of the controller: bus-off lasts until it restarted (and shows in its tick also when it has), error-passive is a warning of
# this tick; bus errors and a controller that lost frames are damage.
cdef inline void take_error_frame(AxesState *s, int link, const can_frame *f) noexcept nogil:
    if f.can_id & CAN_ERR_BUSOFF:
        s.link_latched[link] |= DRIVE_STATUS_BUS_FAULT
        s.link_seen[link] |= DRIVE_STATUS_BUS_FAULT
    if f.can_id & CAN_ERR_RESTARTED:
        s.link_latched[link] = 0
    if f.can_id & CAN_ERR_CRTL and f.data[1] & (CAN_ERR_CRTL_RX_PASSIVE | CAN_ERR_CRTL_TX_PASSIVE):
        s.link_seen[link] |= DRIVE_STATUS_WARNING
    if f.can_id & (CAN_ERR_PROT | CAN_ERR_BUSERROR) or f.can_id & CAN_ERR_CRTL and f.data[1] & CAN_ERR_CRTL_RX_OVERFLOW:
        s.bus_error_total[link] += 1
        s.link_seen[link] |= DRIVE_STATUS_CORRUPT


# One frame to whom it may concern.
cdef void take_frame(Axes *axes, int link, const can_frame *f) noexcept nogil:
    cdef AxesState *s = &axes.s
    cdef AxisState *a
    cdef const SlowPdo *slow = NULL
    cdef int who, kind
    if f.can_id & CAN_ERR_FLAG:
        take_error_frame(s, link, f)
        return
    who = 0 if f.can_id & (CAN_EFF_FLAG | CAN_RTR_FLAG) else axes.p.receiver[link][f.can_id & 0x7FF]
    if who == 0:
        s.ignored_total[link] += 1
        return
    a = &s.axis[(who - 1) // KINDS]
    kind = (who - 1) % KINDS
    if kind >= KIND_SLOW:
        slow = &axes.p.axis[(who - 1) // KINDS].slow[kind - KIND_SLOW]

    # A frame of the wrong length is damaged, whatever it says.
    if f.can_dlc != (PDO_BYTES if kind == KIND_ACTUAL else 8 if kind == KIND_EMERGENCY else 1 if kind == KIND_HEARTBEAT else slow.bytes):
        a.corrupt_total += 1
        a.seen |= DRIVE_STATUS_CORRUPT
    elif kind == KIND_ACTUAL:
        take_actual(axes, link, a, f)
    elif kind == KIND_EMERGENCY:
        take_emergency(a, f)
    elif kind == KIND_HEARTBEAT:
        take_heartbeat(a, f)
    else:
        take_slow(axes, a, slow, kind - KIND_SLOW, f)


# What a set-up beside the loop waits for: answers to its requests, heartbeats, emergency messages.
cdef void copy_frames(Axes *axes, int link, const can_frame *frames, int count) noexcept nogil:
    cdef int i, error = 0
    cdef uint32_t kind
    if not axes.p.copies or axes.p.copy_fd[link] < 0:
        return
    for i in range(count):
        kind = frames[i].can_id & FUNCTION_CODE
        if frames[i].can_id <= 0x7FF and (kind == COB_SDO_ANSWER or kind == COB_HEARTBEAT or kind == COB_SYNC):
            io_send_frames(axes.p.copy_fd[link], &frames[i], 1, NULL, &error)


# Everything that waits on one link, but not more than MOST_ROUNDS batches. Returns whether others may wait.
cdef bint drain(Axes *axes, int link) noexcept nogil:
    cdef can_frame frames[IO_BATCH]
    cdef int i, got, more = 0, error = 0
    cdef int64_t bad = 0
    for _ in range(MOST_ROUNDS):
        got = io_receive_frames(axes.p.fd[link], frames, &bad, NULL, &more, &error)
        for i in range(got):
            take_frame(axes, link, &frames[i])
        copy_frames(axes, link, frames, got)
        if error:
            axes.s.link_seen[link] |= DRIVE_STATUS_BUS_FAULT
        if not more:
            break
    if bad:
        axes.s.corrupt_total[link] += bad
        axes.s.link_seen[link] |= DRIVE_STATUS_CORRUPT
    return more


# What waits on one link at a tick. Values behind a flood are old: after a while they are none.
cdef void receive(Axes *axes, int link) noexcept nogil:
    cdef AxesState *s = &axes.s
    if not drain(axes, link):
        s.behind[link] = 0
        return
    s.behind[link] += 1
    s.link_seen[link] |= DRIVE_STATUS_STALE
    if s.behind[link] >= axes.p.no_data_periods:
        s.link_seen[link] |= DRIVE_STATUS_NO_DATA


# Sends; what the queue does not take is dropped and counted, never tried again inside the tick.
cdef void send(Axes *axes, int link, const can_frame *frames, int count) noexcept nogil:
    cdef int error = 0
    cdef int sent = io_send_frames(axes.p.fd[link], frames, count, NULL, &error)
    if sent == count:
        return
    axes.s.drop_total[link] += count - sent
    axes.s.link_seen[link] |= DRIVE_STATUS_TX_DROP
    if error != EAGAIN and error != ENOBUFS:
        axes.s.link_seen[link] |= DRIVE_STATUS_BUS_FAULT


# Slow actual values that did not come: lost for the second time that one should have, and for each one after it.
cdef inline uint32_t slow_silence(const Axes *axes, const AxisParams *p, AxisState *a) noexcept nogil:
    cdef uint32_t status = 0
    cdef int k, every = axes.p.slow_every
    for k in range(SLOW_PDOS):
        if p.slow[k].count == 0:
            continue
        a.slow_silent[k] += 1
        if a.slow_silent[k] >= 2 * every and a.slow_silent[k] % every == 0:
            a.lost_total += 1
            status |= DRIVE_STATUS_LOST
        if a.slow_silent[k] >= (1 + axes.p.no_data_periods) * every:
            a.slow_silent[k] = (1 + axes.p.no_data_periods) * every + a.slow_silent[k] % every
            status |= DRIVE_STATUS_NO_DATA
    return status


# Status bits of one axis for the tick at run time `time_ns`.
cdef uint32_t axis_status(Axes *axes, int i, uint32_t link_bits, int64_t time_ns) noexcept nogil:
    cdef AxisState *a = &axes.s.axis[i]
    cdef uint32_t status = link_bits

    # Silence: from the second tick on an actual value belongs to every tick; in the first one it is the set-up's.
    if not a.fresh and axes.s.cycles == 0:
        status |= DRIVE_STATUS_STALE
    elif not a.fresh:
        a.silent_periods += 1
        a.lost_total += 1
        status |= DRIVE_STATUS_LOST
        if a.silent_periods >= axes.p.no_data_periods:
            status |= DRIVE_STATUS_NO_DATA

    if axes.s.cycles > 0:
        status |= slow_silence(axes, &axes.p.axis[i], a)

    # Heartbeats: heard in this tick, or too long ago. The set-up has heard one of every axis.
    if a.beat or axes.s.cycles == 0:
        a.heartbeat_ns = time_ns
    elif time_ns - a.heartbeat_ns > axes.p.heartbeat_timeout_ns:
        status |= DRIVE_STATUS_HEARTBEAT_LOST

    # What stands: the newest word, an emergency, a node that restarted or left the operational state.
    judge_word(a, a.status_word, a.status)
    status |= a.seen | hydraulic_status(&axes.p, a.hydraulic_word << 16)
    if a.emergency:
        status |= DRIVE_STATUS_EMERGENCY | DRIVE_STATUS_DEVICE_FAULT
    if a.nmt_state != NMT_OPERATIONAL:
        status |= DRIVE_STATUS_NOT_ENABLED
    return status | left_place(&a.out, a.counts, axes.p.axis[i].held_within)


# The findings of a tick are reported: the next tick begins without any.
cdef inline void begin_tick(AxisState *a) noexcept nogil:
    a.seen = 0
    a.worst_word = 0
    a.worst_rank = 0
    a.emergency_seen = 0
    a.fresh = 0
    a.beat = 0


# What the drives say beside their position; a channel that none of them sends stays as it is.
cdef inline void show_channels(const Axes *axes, Sample *sample) noexcept nogil:
    cdef uint32_t sent = axes.p.channels
    cdef int i
    if sent == 0:
        return
    for i in range(AXES):
        if sent >> CHANNEL_FORCE & 1:
            sample.leg_force[i] = axes.s.axis[i].channel[CHANNEL_FORCE]
        if sent >> CHANNEL_PRESSURE_A & 1:
            sample.leg_pressure_a[i] = axes.s.axis[i].channel[CHANNEL_PRESSURE_A]
        if sent >> CHANNEL_PRESSURE_B & 1:
            sample.leg_pressure_b[i] = axes.s.axis[i].channel[CHANNEL_PRESSURE_B]
        if sent >> CHANNEL_VALVE & 1:
            sample.leg_valve[i] = axes.s.axis[i].channel[CHANNEL_VALVE]
    if axes.p.supply_axis >= 0:
        sample.supply_pressure = axes.s.axis[axes.p.supply_axis].channel[CHANNEL_SUPPLY]


# What the axes answered to the last SYNC, then the next one: the setpoints that were sent before it act now. link_bits: what is to be
# reported of every axis of a link.
cdef void listen_and_sync(Axes *axes, uint32_t *link_bits) noexcept nogil:
    cdef AxesState *s = &axes.s
    cdef can_frame sync
    cdef int link, i
    memset(&sync, 0, sizeof(sync))
    sync.can_id = COB_SYNC
    for link in range(axes.p.links):
        if axes.p.fd[link] >= 0:
            receive(axes, link)
        link_bits[link] = s.link_seen[link] | s.link_latched[link]
        s.link_seen[link] = 0
    for link in range(axes.p.links):
        if axes.p.fd[link] >= 0:
            send(axes, link, &sync, 1)
            s.sync_ns[link] = io_now_ns()
        else:
            link_bits[link] |= DRIVE_STATUS_NO_DATA
    for i in range(AXES):
        owe_answer(&axes.p, &s.axis[i])
    s.sent += 1


# Control words and setpoints of all axes as they stand, and our heartbeat.
cdef void send_setpoints(Axes *axes) noexcept nogil:
    cdef can_frame frames[2 * AXES + HEARTBEAT_FRAME]
    cdef const AxisState *a
    cdef const AxisParams *p
    cdef bint beat = axes.p.beat_every > 0 and axes.s.sent % axes.p.beat_every == 0
    cdef int i, n, link
    for link in range(axes.p.links):
        if axes.p.fd[link] < 0:
            continue
        n = 0
        for i in range(AXES):
            p = &axes.p.axis[i]
            a = &axes.s.axis[i]
            if p.link != link:
                continue
            memset(&frames[n], 0, sizeof(can_frame))
            frames[n].can_id = <uint32_t>(COB_RPDO1 + p.node)
            frames[n].can_dlc = PDO_BYTES
            io_store_le16(frames[n].data, a.out.word_out)
            io_store_le32(frames[n].data + 2, <uint32_t>a.out.target)
            n += 1
            if axes.p.feed_forward or i == axes.p.watchdog_axis:
                memset(&frames[n], 0, sizeof(can_frame))
                frames[n].can_id = <uint32_t>(COB_RPDO2 + p.node)
                if axes.p.feed_forward:
                    io_store_le32(frames[n].data, <uint32_t>a.target_rate)
                    frames[n].can_dlc = 4
                if i == axes.p.watchdog_axis:
                    io_store_le32(frames[n].data + frames[n].can_dlc, axes.s.output_bits)
                    frames[n].can_dlc += 4
                n += 1
        if beat:
            memset(&frames[n], 0, sizeof(can_frame))
            frames[n].can_id = <uint32_t>(COB_HEARTBEAT + axes.p.server_node)
            frames[n].can_dlc = 1
            frames[n].data[0] = NMT_OPERATIONAL
            n += 1
        send(axes, link, frames, n)


cdef inline bint enabled(const Axes *axes, const AxisState *a) noexcept nogil:
    return axes.p.decode(a.status_word) & DRIVE_STATUS_NOT_ENABLED == 0


# What the keeper asks of the axes next.
cdef void lead(Axes *axes) noexcept nogil:
    cdef AxisState *a
    cdef bint reset = reset_now(axes.keeper.turns, axes.p.period_ns), all_ready = True, off = False
    cdef bint may_enable, stands
    cdef int i
    if axes.keeper.led == LEAD_NOWHERE:
        return
    for i in range(AXES):
        a = &axes.s.axis[i]
        if a.silent_periods == 0:
            a.out.stood = in_place(a.out.target, a.counts, axes.p.axis[i].counts_per_metre)
        all_ready = (all_ready and a.silent_periods <= HEARD_PERIODS and a.out.stood
                     and axes.p.words.up(a.status_word, False, True) == axes.p.words.enabled)
    for i in range(AXES):
        a = &axes.s.axis[i]
        a.target_rate = 0
        if axes.keeper.led == LEAD_DOWN:
            if axes.keeper.turns == 0 and not in_place(a.out.target, a.counts, axes.p.axis[i].counts_per_metre):
                a.out.target = a.counts
            a.out.word = axes.p.word_down(a.status_word, &off)
            a.off = off
        elif enabled(axes, a) and left_place(&a.out, a.counts, axes.p.axis[i].held_within):
            a.out.word = axes.p.words.blocking
            arrived(&axes.keeper)
        elif axes.keeper.led == LEAD_UP:
            # the last step is not taken back from an axis that stands in its place and whose answer is from before it
            stands = a.out.word_out == axes.p.words.enabled and a.out.stood
            if not stands:
                a.out.target = a.counts
                a.out.held = True
            may_enable = all_ready or stands
            a.out.word = axes.p.words.up(a.status_word, reset, may_enable) if a.silent_periods <= HEARD_PERIODS else a.out.word_out
        a.out.word_out = a.out.word


# One exchange of the keeper's. What it sees of the way up is not the loop's, which judges what came since all axes were enabled.
cdef void exchange(void *self, int64_t *next_ns) noexcept nogil:
    cdef Axes *axes = <Axes *>self
    cdef AxisState *a
    cdef uint32_t link_bits[LINKS]
    cdef bint up = True, before
    cdef int i
    listen_and_sync(axes, link_bits)
    for i in range(AXES):
        up = up and enabled(axes, &axes.s.axis[i])
    before = not up or owner_now(&axes.keeper.lead) == LEAD_UP      # of several words of this exchange the newest counts
    for i in range(AXES):
        a = &axes.s.axis[i]
        a.silent_periods = 0 if a.fresh else a.silent_periods + 1
        if before:
            begin_tick(a)
        a.fresh = a.beat = 0
    if up:
        arrived(&axes.keeper)
    lead(axes)
    axes.s.output_bits = 0
    send_setpoints(axes)


cdef void axes_leave(void *self) noexcept nogil:
    loop_leaves(&(<Axes *>self).keeper)


cdef void axes_read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Axes *axes = <Axes *>self
    cdef AxesState *s = &axes.s
    cdef AxisState *a
    cdef const AxisParams *p
    cdef uint32_t link_bits[LINKS]
    cdef int i
    if loop_has(&axes.keeper):
        listen_and_sync(axes, link_bits)
    else:
        for i in range(LINKS):          # in the middle of an exchange of the keeper's
            link_bits[i] = DRIVE_STATUS_STALE if axes.keeper.owner != CLOSED else DRIVE_STATUS_NO_DATA

    # Measured legs and status.
    for i in range(AXES):
        a = &s.axis[i]
        p = &axes.p.axis[i]
        sample.drive_status[i] = axis_status(axes, i, link_bits[p.link], sample.time_ns)
        sample.drive_device_status[i] = <uint32_t>a.worst_word | <uint32_t>(a.emergency_seen if a.emergency_seen else a.emergency) << 16
        sample.drive_lost_total[i] = a.lost_total
        sample.drive_corrupt_total[i] = a.corrupt_total + s.corrupt_total[p.link] + s.bus_error_total[p.link]
        begin_tick(a)
        sample.measured_leg[i] = p.zero_m + <double>a.counts / p.counts_per_metre
        sample.measured_leg_rate[i] = counts_rate(&a.history, axes.p.rate_window) / p.counts_per_metre
    show_channels(axes, sample)
    s.cycles += 1


cdef void axes_write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Axes *axes = <Axes *>self
    cdef AxisState *a
    cdef const AxisParams *p
    cdef int i
    cdef bint reset
    if axes.keeper.owner != LOOP:
        return
    reset = resets_in_recovery(&axes.keeper, sample.safety_state, axes.p.period_ns)
    for i in range(AXES):
        p = &axes.p.axis[i]
        a = &axes.s.axis[i]
        command_axis(sample, i, p.zero_m, p.counts_per_metre, a.status_word, a.counts, reset, &axes.p.words, &a.out)

        # Velocity feed-forward in counts per second.
        if axes.p.feed_forward:
            a.target_rate = to_counts(sample.leg_rate_setpoint[i] * p.counts_per_metre, 0)
    if axes.p.watchdog_axis >= 0:
        axes.s.output_bits = watchdog_bits(&axes.p.outputs, &axes.s.watchdog, sample)
    send_setpoints(axes)
    if axes.s.first_command == 0:
        axes.s.first_command = axes.s.cycles


cdef uint32_t decode_nothing(uint16_t status_word) noexcept nogil:
    return 0


cdef uint16_t no_word(uint16_t status_word, bint reset, bint may_enable) noexcept nogil:
    return 0


cdef uint16_t no_word_down(uint16_t status_word, bint *off) noexcept nogil:
    off[0] = True
    return 0


cdef class CyclicAxes:
    """Owner of the cyclic part: a profile's port configures it, starts it on open descriptors and stops it."""

    def __cinit__(self):
        memset(&self.axes, 0, sizeof(Axes))
        for link in range(LINKS):
            self.axes.p.fd[link] = self.axes.p.copy_fd[link] = -1
        self.axes.p.supply_axis = self.axes.p.watchdog_axis = -1
        for k in range(3):
            self.axes.p.hydraulic_bit[k] = -1
        self.axes.p.decode = decode_nothing
        self.axes.p.words.up = no_word
        self.axes.p.word_down = no_word_down
        self.axes.p.period_ns = 1000000
        self.axes.keeper.owner = CLOSED

    def configure(self, links, nodes, counts_per_metre, zero_m, double held_within_m, int control_word, int blocking_word,
                  bint feed_forward, int rate_window, int no_data_periods, int64_t heartbeat_timeout_ns, int64_t period_ns,
                  int server_node, int beat_every):
        """links, nodes, counts_per_metre, zero_m: six each. beat_every: periods from one of our heartbeats to the next. Raises ValueError
        when two axes share a link and a node, or no axis uses a link."""
        if len(set(zip(links, nodes, strict=True))) != AXES:
            raise ValueError(f"axis_link = {list(links)}, axis_node = {list(nodes)}: two axes share a node on one link")
        memset(self.axes.p.receiver, 0, sizeof(self.axes.p.receiver))
        self.axes.p.links = max(links) + 1
        for i in range(AXES):
            self.axes.p.axis[i].link = links[i]
            self.axes.p.axis[i].node = nodes[i]
            self.axes.p.axis[i].counts_per_metre = counts_per_metre[i]
            self.axes.p.axis[i].zero_m = zero_m[i]
            self.axes.p.axis[i].held_within = held_within_m * counts_per_metre[i]
            for kind, base in ((KIND_ACTUAL, COB_TPDO1), (KIND_EMERGENCY, COB_SYNC), (KIND_HEARTBEAT, COB_HEARTBEAT)):
                self.axes.p.receiver[<int>links[i]][<int>(base + nodes[i])] = 1 + KINDS * i + kind
        self.axes.p.words.enabled = control_word
        self.axes.p.words.blocking = blocking_word
        self.axes.p.feed_forward = feed_forward
        self.axes.p.rate_window = rate_window
        self.axes.p.no_data_periods = no_data_periods
        self.axes.p.heartbeat_timeout_ns = heartbeat_timeout_ns
        self.axes.p.period_ns = period_ns
        self.axes.p.server_node = server_node
        self.axes.p.beat_every = beat_every

    def watchdog(self, int axis, int toggle_bit, int healthy_bit):
        """The drive of this axis has the watchdog's output: bits of its digital outputs, -1 not wired."""
        self.axes.p.watchdog_axis = axis
        self.axes.p.outputs.toggle_bit, self.axes.p.outputs.healthy_bit = toggle_bit, healthy_bit

    def listen(self, channels):
        """channels: DriveChannels after the set-up: what the axes say beside their position. To be called before `start`."""
        p = &self.axes.p
        p.slow_every, p.channels, p.supply_axis = channels.every, 0, -1
        for k in range(3):
            p.hydraulic_bit[k] = channels.bits[k]
        for i, layouts in enumerate(channels.layouts()):
            memset(p.axis[i].slow, 0, sizeof(p.axis[i].slow))
            for k, (size, values) in enumerate(layouts):
                p.axis[i].slow[k].bytes, p.axis[i].slow[k].count = size, len(values)
                for j, (number, bytes, unit) in enumerate(values):
                    p.axis[i].slow[k].value[j].channel = number
                    p.axis[i].slow[k].value[j].bytes = bytes
                    p.axis[i].slow[k].value[j].unit = unit
                    p.channels |= <uint32_t>1 << <int>number
                    if number == CHANNEL_SUPPLY:
                        p.supply_axis = i
                p.receiver[p.axis[i].link][<int>(COB_TPDO3 + 0x100 * k + p.axis[i].node)] = <int8_t>(1 + KINDS * i + KIND_SLOW + k)

    def start(self, descriptors, status_words, positions, first_values=((),) * 6, emergencies=(0,) * 6):
        """Takes over open descriptors, one per link, with the status words, positions [counts], values of channels (per axis: number of
        the channel, SI units) and pending emergency codes that the set-up read last."""
        memset(&self.axes.s, 0, sizeof(AxesState))
        for i in range(AXES):
            self.axes.s.axis[i].out.word = self.axes.p.words.enabled
            self.axes.s.axis[i].emergency = emergencies[i]
            self.axes.s.axis[i].status_word = status_words[i]
            self.axes.s.axis[i].status = (self.axes.p.decode(status_words[i]) & ~DRIVE_STATUS_NOT_FOLLOWING
                                          | hydraulic_status(&self.axes.p, status_words[i]))
            self.axes.s.axis[i].counts = positions[i]
            self.axes.s.axis[i].out.target = positions[i]
            self.axes.s.axis[i].nmt_state = NMT_OPERATIONAL
            self.axes.s.axis[i].owed = OWED_AT_START
            for number, value in first_values[i]:
                if number == CHANNEL_STATUS:
                    self.axes.s.axis[i].hydraulic_word = <uint32_t>value
                else:
                    self.axes.s.axis[i].channel[<int>number] = value
        for link in range(self.axes.p.links):
            self.axes.p.fd[link] = descriptors[link]
        lead_to(&self.axes.keeper, LEAD_NOWHERE)
        self.axes.keeper.owner = NO_OWNER

    def keep(self, int priority=0, int core=-1):
        """Exchanges frames until `stop`, but while the loop does: for a thread. priority: of SCHED_FIFO, where allowed;
        core: that of the loop, which does not need it meanwhile, -1 any."""
        with nogil:
            keep_buses(&self.axes.keeper, &self.axes, exchange, self.axes.p.period_ns, priority, core)

    def lead_up(self):
        """The keeper takes all axes to the state in which they follow, out of a fault too."""
        lead_to(&self.axes.keeper, LEAD_UP)

    def lead_down(self):
        """The keeper takes the power off all axes, state by state; a loop that still has the buses loses them."""
        if self.axes.keeper.lead != LEAD_DOWN:
            lead_to(&self.axes.keeper, LEAD_DOWN)
        loop_leaves(&self.axes.keeper)

    @property
    def in_loop(self):
        """Whether the loop has the buses."""
        return owner_now(&self.axes.keeper.owner) == LOOP

    @property
    def up(self):
        """Whether the keeper has led all axes up."""
        return owner_now(&self.axes.keeper.lead) == LEAD_HOLD

    def standing(self, int axis):
        """(status word, emergency code that stands or 0, enabled, led down and off, periods since its last answer) of one axis."""
        a = &self.axes.s.axis[axis]
        return a.status_word, a.emergency, enabled(&self.axes, a), bool(a.off), a.silent_periods

    def lost_set_up(self):
        """Numbers of the axes whose node has left the operational state: its set-up is lost, or not valid."""
        return [i for i in range(AXES) if self.axes.s.axis[i].nmt_state != NMT_OPERATIONAL]

    def copy_to(self, descriptors):
        """Copies what nodes say to a set-up to these descriptors, one per link, which stay open until `stop`; () ends it."""
        if descriptors:
            for link in range(self.axes.p.links):
                self.axes.p.copy_fd[link] = descriptors[link]
        self.axes.p.copies = len(descriptors) > 0

    def begin(self):
        """Takes what piled up since `start`, so that no backlog stands before the first answers; damage is forgotten, what the drives
        reported is judged in the first tick."""
        s = &self.axes.s
        for link in range(self.axes.p.links):
            for _ in range(BACKLOG_TURNS):
                if self.axes.p.fd[link] < 0 or not drain(&self.axes, link):
                    break
            s.corrupt_total[link] = s.bus_error_total[link] = s.ignored_total[link] = 0
            s.link_seen[link] &= ~DRIVE_STATUS_CORRUPT
        for i in range(AXES):
            s.axis[i].corrupt_total = 0
            s.axis[i].seen &= ~DRIVE_STATUS_CORRUPT

    def stop(self):
        """Ends the exchange of frames and lets go of the descriptors (does not close them)."""
        close_buses(&self.axes.keeper)
        for link in range(LINKS):
            self.axes.p.fd[link] = self.axes.p.copy_fd[link] = -1
        self.axes.p.copies = 0

    def counters(self):
        """Sums since the loop began: per axis lost and damaged actual values; per link records that are no frame, bus errors, ignored and
        not sent frames; cycles."""
        s = &self.axes.s
        n = self.axes.p.links
        return {
            "cycles": s.cycles,
            "axis_lost": [s.axis[i].lost_total for i in range(AXES)],
            "axis_corrupt": [s.axis[i].corrupt_total for i in range(AXES)],
            "link_corrupt": [s.corrupt_total[k] for k in range(n)],
            "link_bus_errors": [s.bus_error_total[k] for k in range(n)],
            "link_ignored": [s.ignored_total[k] for k in range(n)],
            "link_not_sent": [s.drop_total[k] for k in range(n)],
        }
