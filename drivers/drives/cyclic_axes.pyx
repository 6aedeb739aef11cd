"""Cyclic part of CANopen axes on one to three buses, shared by CiA 402 and CiA 408.

One tick k:

    read    take what waits: actual values (status word u16, position i32) that the axes sampled at SYNC k-1, emergency messages, heartbeats,
            error frames; then SYNC k on every bus: all axes latch the set points of tick k-1 and sample their position at one instant
    write   set points (control word u16, position i32, optionally velocity i32 in a second frame) of tick k, which act at SYNC k+1

So the dead time is one period, constant, whatever the order of the frames on the bus (transmission type 1 both ways). The waiting frames are
taken before SYNC leaves so that the answer to SYNC k can never be mistaken for one to SYNC k-1, however fast the axes are.

`measured_leg_rate` is a difference quotient over the last `rate_window` samples and the true time between their SYNCs; its delay is half
that window, its quantum one count divided by the window.

COB-IDs of node n: SYNC 0x080, emergency 0x080 + n, TPDO1 0x180 + n, RPDO1 0x200 + n, RPDO2 0x300 + n, heartbeat 0x700 + n (CiA 301).
"""

from libc.string cimport memset

from drivers.raw_frames.frame_io cimport (
    CAN_EFF_FLAG,
    CAN_ERR_BUSOFF,
    CAN_ERR_CRTL,
    CAN_ERR_CRTL_RX_PASSIVE,
    CAN_ERR_CRTL_TX_PASSIVE,
    CAN_ERR_FLAG,
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
from rt_kernels.faults cimport (
    DRIVE_STATUS_BUS_FAULT,
    DRIVE_STATUS_CORRUPT,
    DRIVE_STATUS_DEVICE_FAULT,
    DRIVE_STATUS_EMERGENCY,
    DRIVE_STATUS_LOST,
    DRIVE_STATUS_NO_DATA,
    DRIVE_STATUS_NOT_ENABLED,
    DRIVE_STATUS_TX_DROP,
    DRIVE_STATUS_WARNING,
)

cdef enum:
    KIND_ACTUAL = 0         # TPDO1: status word, position
    KIND_EMERGENCY = 1
    KIND_HEARTBEAT = 2
    COB_SYNC = 0x080
    COB_TPDO1 = 0x180
    COB_RPDO1 = 0x200
    COB_RPDO2 = 0x300
    COB_HEARTBEAT = 0x700
    NMT_OPERATIONAL = 5
    MOST_ROUNDS = 8         # batches taken from one link in one tick: bounds the time when somebody floods the bus
    PDO_BYTES = 6


cdef inline uint32_t bit(int number) noexcept nogil:
    return <uint32_t>1 << number


# Nearest count; a length beyond 32 bits or not a number keeps the old target.
cdef inline int32_t to_counts(double value, int32_t otherwise) noexcept nogil:
    if not (-2147483000.0 < value < 2147483000.0):
        return otherwise
    return <int32_t>(value + 0.5 if value >= 0.0 else value - 0.5)


# A new position: the newest place of the history, replaced when a second one came for the same SYNC.
cdef inline void keep_position(AxisState *a, int64_t sampled_ns) noexcept nogil:
    cdef int newest = (a.history_count - 1) & (HISTORY - 1)
    if a.history_count > 0 and a.past_ns[newest] == sampled_ns:
        a.past_counts[newest] = a.counts
        return
    a.past_counts[a.history_count & (HISTORY - 1)] = a.counts
    a.past_ns[a.history_count & (HISTORY - 1)] = sampled_ns
    a.history_count += 1
    if a.history_count >= 2 * HISTORY:
        a.history_count -= HISTORY


# Counts per second over the last `window` samples, 0 before there are two.
cdef inline double counts_rate(const AxisState *a, int window) noexcept nogil:
    cdef int newest, oldest, back
    cdef int64_t elapsed
    if a.history_count < 2:
        return 0.0
    back = window if window < a.history_count else a.history_count - 1
    newest = (a.history_count - 1) & (HISTORY - 1)
    oldest = (a.history_count - 1 - back) & (HISTORY - 1)
    elapsed = a.past_ns[newest] - a.past_ns[oldest]
    if elapsed <= 0:
        return 0.0
    return (<double>a.past_counts[newest] - <double>a.past_counts[oldest]) * 1e9 / <double>elapsed


# An error frame of the controller: bus-off lasts until it restarted, error-passive is a warning of this tick.
cdef inline void take_error_frame(AxesState *s, int link, const can_frame *f) noexcept nogil:
    if f.can_id & CAN_ERR_BUSOFF:
        s.link_latched[link] |= bit(DRIVE_STATUS_BUS_FAULT)
    if f.can_id & CAN_ERR_RESTARTED:
        s.link_latched[link] = 0
    if f.can_id & CAN_ERR_CRTL and f.data[1] & (CAN_ERR_CRTL_RX_PASSIVE | CAN_ERR_CRTL_TX_PASSIVE):
        s.link_seen[link] |= bit(DRIVE_STATUS_WARNING)


# One frame to whom it may concern.
cdef void take_frame(Axes *axes, int link, const can_frame *f) noexcept nogil:
    cdef AxesState *s = &axes.s
    cdef AxisState *a
    cdef int who, kind
    if f.can_id & CAN_ERR_FLAG:
        take_error_frame(s, link, f)
        return
    who = 0 if f.can_id & (CAN_EFF_FLAG | CAN_RTR_FLAG) else axes.p.receiver[link][f.can_id & 0x7FF]
    if who == 0:
        s.ignored_total[link] += 1
        return
    a = &s.axis[(who - 1) >> 2]
    kind = (who - 1) & 3

    # A frame of the wrong length is damaged, whatever it says.
    if f.can_dlc != (PDO_BYTES if kind == KIND_ACTUAL else 8 if kind == KIND_EMERGENCY else 1):
        a.corrupt_total += 1
        a.seen |= bit(DRIVE_STATUS_CORRUPT)
        return
    if kind == KIND_ACTUAL:
        a.status_word = io_load_le16(f.data)
        a.counts = <int32_t>io_load_le32(f.data + 2)
        a.fresh = 1
        a.silent_periods = 0
        if s.sync_ns[link] > 0:
            keep_position(a, s.sync_ns[link])
    elif kind == KIND_EMERGENCY:
        a.emergency = io_load_le16(f.data)
    else:
        a.nmt_state = f.data[0] & 0x7F


# Everything that waits on one link.
cdef void drain(Axes *axes, int link) noexcept nogil:
    cdef can_frame frames[IO_BATCH]
    cdef int i, got, turn, more = 0, error = 0
    cdef int64_t bad = 0
    for turn in range(MOST_ROUNDS):
        got = io_receive_frames(axes.p.fd[link], frames, &bad, NULL, &more, &error)
        for i in range(got):
            take_frame(axes, link, &frames[i])
        if error:
            axes.s.link_seen[link] |= bit(DRIVE_STATUS_BUS_FAULT)
        if not more:
            break
    if bad:
        axes.s.corrupt_total[link] += bad
        axes.s.link_seen[link] |= bit(DRIVE_STATUS_CORRUPT)


# Sends; what the queue does not take is dropped and counted, never tried again inside the tick.
cdef void send(Axes *axes, int link, const can_frame *frames, int count) noexcept nogil:
    cdef int error = 0
    cdef int sent = io_send_frames(axes.p.fd[link], frames, count, NULL, &error)
    if sent == count:
        return
    axes.s.drop_total[link] += count - sent
    axes.s.link_seen[link] |= bit(DRIVE_STATUS_TX_DROP)
    if error != EAGAIN and error != ENOBUFS:
        axes.s.link_seen[link] |= bit(DRIVE_STATUS_BUS_FAULT)


# Status bits of one axis for this tick.
cdef uint32_t axis_status(Axes *axes, int i, uint32_t link_bits) noexcept nogil:
    cdef AxisState *a = &axes.s.axis[i]
    cdef uint32_t status = a.seen | link_bits | axes.p.decode(a.status_word)
    a.seen = 0

    # Silence: from the second tick on an actual value belongs to every tick.
    if not a.fresh and axes.s.cycles > 0:
        a.silent_periods += 1
        a.lost_total += 1
        status |= bit(DRIVE_STATUS_LOST)
        if a.silent_periods >= axes.p.no_data_periods:
            status |= bit(DRIVE_STATUS_NO_DATA)
    a.fresh = 0

    # Emergency message pending, or the node restarted or left the operational state.
    if a.emergency:
        status |= bit(DRIVE_STATUS_EMERGENCY) | bit(DRIVE_STATUS_DEVICE_FAULT)
    if a.nmt_state != NMT_OPERATIONAL:
        status |= bit(DRIVE_STATUS_NOT_ENABLED)
    return status


cdef void axes_read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Axes *axes = <Axes *>self
    cdef AxesState *s = &axes.s
    cdef AxisState *a
    cdef const AxisParams *p
    cdef can_frame sync
    cdef uint32_t link_bits[LINKS]
    cdef int i, link

    # What the axes answered to the last SYNC.
    for link in range(axes.p.links):
        if axes.p.fd[link] >= 0:
            drain(axes, link)
        link_bits[link] = s.link_seen[link] | s.link_latched[link]
        s.link_seen[link] = 0

    # SYNC of this tick: the set points of the last tick act now.
    memset(&sync, 0, sizeof(sync))
    sync.can_id = COB_SYNC
    for link in range(axes.p.links):
        if axes.p.fd[link] >= 0:
            send(axes, link, &sync, 1)
            s.sync_ns[link] = io_now_ns()
        else:
            link_bits[link] |= bit(DRIVE_STATUS_NO_DATA)

    # Measured legs and status.
    for i in range(AXES):
        a = &s.axis[i]
        p = &axes.p.axis[i]
        sample.drive_status[i] = axis_status(axes, i, link_bits[p.link])
        sample.drive_device_status[i] = <uint32_t>a.status_word | <uint32_t>a.emergency << 16
        sample.measured_leg[i] = p.zero_m + <double>a.counts / p.counts_per_metre
        sample.measured_leg_rate[i] = counts_rate(a, axes.p.rate_window) / p.counts_per_metre
    s.cycles += 1


cdef void axes_write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Axes *axes = <Axes *>self
    cdef AxisState *a
    cdef const AxisParams *p
    cdef can_frame frames[2 * AXES]
    cdef int i, n, link

    for link in range(axes.p.links):
        if axes.p.fd[link] < 0:
            continue
        n = 0
        for i in range(AXES):
            p = &axes.p.axis[i]
            if p.link != link:
                continue
            a = &axes.s.axis[i]

            # Position set point in counts, with the control word that keeps the axis enabled.
            a.target = to_counts((sample.leg_setpoint[i] - p.zero_m) * p.counts_per_metre, a.target)
            memset(&frames[n], 0, sizeof(can_frame))
            frames[n].can_id = <uint32_t>(COB_RPDO1 + p.node)
            frames[n].can_dlc = PDO_BYTES
            io_store_le16(frames[n].data, axes.p.control_word)
            io_store_le32(frames[n].data + 2, <uint32_t>a.target)
            n += 1

            # Velocity feed-forward in counts per second.
            if axes.p.feed_forward:
                a.target_rate = to_counts(sample.leg_rate_setpoint[i] * p.counts_per_metre, 0)
                memset(&frames[n], 0, sizeof(can_frame))
                frames[n].can_id = <uint32_t>(COB_RPDO2 + p.node)
                frames[n].can_dlc = 4
                io_store_le32(frames[n].data, <uint32_t>a.target_rate)
                n += 1
        send(axes, link, frames, n)


cdef uint32_t decode_nothing(uint16_t status_word) noexcept nogil:
    return 0


cdef class CyclicAxes:
    """Owner of the cyclic part: a profile's port configures it, starts it on open descriptors and stops it."""

    def __cinit__(self):
        memset(&self.axes, 0, sizeof(Axes))
        for link in range(LINKS):
            self.axes.p.fd[link] = -1
        self.axes.p.decode = decode_nothing

    def configure(self, links, nodes, counts_per_metre, zero_m, int control_word, bint feed_forward, int rate_window, int no_data_periods):
        """links, nodes, counts_per_metre, zero_m: six each. Raises ValueError when two axes share a link and a node, or nobody uses a link."""
        if len(set(zip(links, nodes, strict=True))) != AXES:
            raise ValueError(f"axis_link = {list(links)}, axis_node = {list(nodes)}: two axes share a node on one link")
        memset(self.axes.p.receiver, 0, sizeof(self.axes.p.receiver))
        self.axes.p.links = max(links) + 1
        for i in range(AXES):
            self.axes.p.axis[i].link = links[i]
            self.axes.p.axis[i].node = nodes[i]
            self.axes.p.axis[i].counts_per_metre = counts_per_metre[i]
            self.axes.p.axis[i].zero_m = zero_m[i]
            for kind, base in ((KIND_ACTUAL, COB_TPDO1), (KIND_EMERGENCY, COB_SYNC), (KIND_HEARTBEAT, COB_HEARTBEAT)):
                self.axes.p.receiver[<int>links[i]][<int>(base + nodes[i])] = 1 + 4 * i + kind
        self.axes.p.control_word = control_word
        self.axes.p.feed_forward = feed_forward
        self.axes.p.rate_window = rate_window
        self.axes.p.no_data_periods = no_data_periods

    def start(self, descriptors, status_words, positions):
        """Takes over open descriptors, one per link, with the status words and positions [counts] that the set-up read last."""
        memset(&self.axes.s, 0, sizeof(AxesState))
        for i in range(AXES):
            self.axes.s.axis[i].status_word = status_words[i]
            self.axes.s.axis[i].counts = positions[i]
            self.axes.s.axis[i].target = positions[i]
            self.axes.s.axis[i].nmt_state = NMT_OPERATIONAL
        for link in range(self.axes.p.links):
            self.axes.p.fd[link] = descriptors[link]

    def stop(self):
        """Lets go of the descriptors (does not close them)."""
        for link in range(LINKS):
            self.axes.p.fd[link] = -1

    def counters(self):
        """Sums since start: per axis lost and damaged actual values; per link damaged, ignored and not sent frames; cycles."""
        s = &self.axes.s
        n = self.axes.p.links
        return {
            "cycles": s.cycles,
            "axis_lost": [s.axis[i].lost_total for i in range(AXES)],
            "axis_corrupt": [s.axis[i].corrupt_total for i in range(AXES)],
            "link_corrupt": [s.corrupt_total[k] for k in range(n)],
            "link_ignored": [s.ignored_total[k] for k in range(n)],
            "link_not_sent": [s.drop_total[k] for k in range(n)],
        }
