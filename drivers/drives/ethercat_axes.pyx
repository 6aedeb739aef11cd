"""Cyclic part of EtherCAT axes in cyclic synchronous position mode: one frame of ours a tick, sent after the step, read before the next.

The frame has four datagrams:

    LRW   the process image: outputs of all axes (control word u16, target i32, mode i8), inputs (status word u16, position i32, velocity
          i32, torque i16, mode i8), where the set-up's FMMUs have put them
    FRMW  0x910, the time of the reference clock, which the others take over
    BRD   0x130, AL status of all slaves ORed: must be exactly 8
    FPRD  0x130, AL status and its code of one slave after the other: which one, and why

One tick k:

    read    everything that waits; the answer to the frame of tick k-1 is known by its index
    write   frame k

A frame with a command, length or index that is not ours, or that is not marked as returned, is not used. One that comes after the next was
sent is late and not used (`bus_late_total`), also a round of the indices later: the time of the reference clock in it is then older than
that of the answer before. One that came already is doubled, and where its inputs are others one of the two is not the slaves' (`differs`).
An answer with a working counter that is too small has no input that can be trusted: it is damage (`drive_corrupt_total`), and the inputs
stay. Without an answer the inputs stay (`lost`), after `no_data_periods` such ticks there are no data. AL status: a slave that is not
operational is `not_enabled`, its error bit an `emergency` with the AL status code in `drive_device_status`; at once, before it is known
which one, `bus_fault` for all.

Watchdog (`drivers.watchdog_output`): bits in the outputs of a slave that is no axis; the keeper sends zeros.

Before the loop begins, and after it, the keeper (`drivers.drives.keeper`) exchanges the same frames: a slave without frames leaves the
operational state. It leads the axes up and down; the loop takes the bus from it with its first read, and one that falls into an exchange of
the keeper's is `stale`.

Time of the reference clock: e = wrap(t910 - phase) is how late the frame passed it, which `grid_reference` gets, with the
time that it left after its point of the grid.
"""

from libc.string cimport memcmp, memcpy, memset

from drivers.drives.axis_values cimport HEARD_PERIODS, command_axis, counts_rate, in_place, keep_position, left_place
from drivers.drives.cia402_words cimport OPERATION_ENABLED, STATE_MASK, word_down, word_up
from drivers.drives.ethercat_record cimport EthercatRecord
from drivers.drives.keeper cimport (CLOSED, LEAD_DOWN, LEAD_HOLD, LEAD_NOWHERE, LEAD_UP, LOOP, NO_OWNER, arrived, close_buses, keep_buses,
                                    last_error, lead_to, loop_has, loop_leaves, owner_now, reset_now, resets_in_recovery)
from drivers.raw_frames.ethercat_frame cimport (COMMAND_BRD, COMMAND_FPRD, COMMAND_FRMW, COMMAND_LRW, DATAGRAM_HEADER, FRAME_HEADER,
                                                FRAME_LEAST, RETURNED_BIT, WENT_ROUND_HIGH, frame_add, frame_begin, frame_counter)
from drivers.raw_frames.frame_io cimport (EAGAIN, ENOBUFS, IO_BATCH, io_load_le16, io_load_le32, io_now_ns, io_receive_datagrams, io_send,
                                          io_store_le16, io_store_le32)
from rt_kernels.codes cimport (DRIVE_STATUS_BUS_FAULT, DRIVE_STATUS_CORRUPT, DRIVE_STATUS_DIFFERS, DRIVE_STATUS_EMERGENCY,
                               DRIVE_STATUS_LOST, DRIVE_STATUS_NOT_ENABLED, DRIVE_STATUS_NOT_FOLLOWING, DRIVE_STATUS_NO_DATA,
                               DRIVE_STATUS_STALE, DRIVE_STATUS_TX_DROP, DRIVE_STATUS_WARNING)
from drivers.watchdog_output cimport watchdog_bits
from rt_kernels.grid_reference cimport GridReference, grid_measured, grid_step

cdef enum:
    FIRST_INDEX = 0x80
    REGISTER_TIME = 0x910
    REGISTER_AL = 0x130
    AL_BYTES = 6                    # status, two unused bytes, code
    AL_OPERATIONAL = 8
    AL_ERROR = 0x10
    CYCLIC_SYNCHRONOUS_POSITION = 8
    MOST_ROUNDS = 4                 # batches taken in one tick
    ANSWERS_TO_FOLLOW = 3           # frame, answer, and one in between
    CLOCK_BACK_NS = 1_000_000_000
    # in the outputs and inputs of an axis
    OUT_TARGET = 2
    OUT_MODE = 6
    IN_POSITION = 2
    IN_TORQUE = 10
    IN_MODE = 12

OUT_BYTES, IN_BYTES = 7, INPUT_BYTES


# The frame as it will be sent: outputs into the image, one index, whose turn it is to say its AL status. What slaves write is zero in it:
# answers come into a buffer of their own.
cdef void fill(Ethercat *b) noexcept nogil:
    cdef uint8_t *f = b.frame
    cdef uint8_t *image = f + b.p.lrw + DATAGRAM_HEADER
    cdef uint8_t index = <uint8_t>(FIRST_INDEX + b.s.sent % INDICES)
    cdef const EthercatAxisParams *p
    cdef EthercatAxisState *a
    cdef int i
    f[b.p.lrw + 1] = f[b.p.frmw + 1] = f[b.p.brd + 1] = f[b.p.fprd + 1] = index
    io_store_le16(f + b.p.fprd + 2, b.p.axis[b.s.sent % AXES].station)
    for i in range(AXES):
        p = &b.p.axis[i]
        a = &b.s.axis[i]
        io_store_le16(image + p.out, a.out.word_out)
        io_store_le32(image + p.out + OUT_TARGET, <uint32_t>a.out.target)
        image[p.out + OUT_MODE] = CYCLIC_SYNCHRONOUS_POSITION
    for i in range(b.p.watchdog_bytes):
        image[b.p.watchdog + i] = <uint8_t>(b.s.output_bits >> 8 * i & 0xFF)


# Sends the frame; what the queue does not take is dropped and counted.
cdef void send(Ethercat *b) noexcept nogil:
    cdef int place = <int>(b.s.sent % INDICES), error
    b.s.waiting[place] = 1
    b.s.believed[place] = 0
    b.s.sent_ns[place] = io_now_ns()
    b.s.host_ns[place] = b.s.sent_ns[place] - b.grid.planned_ns if b.grid.planned_ns else 0
    b.s.sent += 1
    if io_send(b.p.fd, b.frame, b.p.size) != b.p.size:
        error = last_error()
        b.s.waiting[place] = 0
        b.s.drop_total += 1
        b.s.seen |= DRIVE_STATUS_TX_DROP
        if error != EAGAIN and error != ENOBUFS:
            b.s.seen |= DRIVE_STATUS_BUS_FAULT


# Whether a frame is one of ours, come back: the headers of its datagrams are those that were sent.
cdef bint ours(const Ethercat *b, const uint8_t *f, int length) noexcept nogil:
    cdef int at, i
    if length < b.p.size or not f[6] & RETURNED_BIT or io_load_le16(f + 12) != io_load_le16(b.frame + 12):
        return False
    if io_load_le16(f + 14) != io_load_le16(b.frame + 14):
        return False
    for i in range(4):
        at = b.p.lrw if i == 0 else b.p.frmw if i == 1 else b.p.brd if i == 2 else b.p.fprd
        # command, one index for all, length
        if f[at] != b.frame[at] or f[at + 1] != f[b.p.lrw + 1]:
            return False
        if f[at + 6] != b.frame[at + 6] or (f[at + 7] ^ b.frame[at + 7]) & ~WENT_ROUND_HIGH:
            return False
    return f[b.p.lrw + 1] >= FIRST_INDEX


# When a frame passed the reference clock, in its time; 0 when not all clocks have had it: a slave without one passes it on.
cdef int64_t reference_time(const Ethercat *b, const uint8_t *f) noexcept nogil:
    cdef const uint8_t *at = f + b.p.frmw + DATAGRAM_HEADER
    if b.p.clocks == 0 or frame_counter(f, b.p.frmw) != b.p.clocks:
        return 0
    return <int64_t>io_load_le32(at) | <int64_t>io_load_le32(at + 4) << 32


# Whether an answer belongs to a frame of an earlier round of the indices: it passed the reference clock before the newest answer. A
# clock that is further back has been set.
cdef bint outdated(const Ethercat *b, const uint8_t *f) noexcept nogil:
    cdef int64_t time = reference_time(b, f)
    return 0 < time < b.s.newest_ns < time + CLOCK_BACK_NS


# The answer to the newest frame.
cdef void take(Ethercat *b, const uint8_t *f) noexcept nogil:
    cdef const uint8_t *image = f + b.p.lrw + DATAGRAM_HEADER
    cdef const uint8_t *at
    cdef EthercatAxisState *a
    cdef int64_t time, sampled
    cdef int i, n
    cdef uint16_t station
    b.s.working_counter = frame_counter(f, b.p.lrw)
    b.s.clocks_counter = frame_counter(f, b.p.frmw)
    b.s.al_or = io_load_le16(f + b.p.brd + DATAGRAM_HEADER)
    n = (f[b.p.lrw + 1] - FIRST_INDEX) % INDICES

    time = reference_time(b, f)
    if time:
        b.s.newest_ns = time
        grid_measured(b.grid, time - b.p.phase_ns, b.p.period_ns, b.s.host_ns[n])
        b.s.deviation_ns = b.grid.deviation_ns
        b.s.error_ns = b.grid.error_ns
    elif b.p.clocks > 0:
        b.s.seen |= DRIVE_STATUS_WARNING

    # AL status: of all, and of the one whose turn it was.
    if b.s.al_or != AL_OPERATIONAL or frame_counter(f, b.p.brd) != b.p.slaves:
        b.s.seen |= DRIVE_STATUS_BUS_FAULT
    station = io_load_le16(f + b.p.fprd + 2)
    for i in range(AXES):
        if b.p.axis[i].station == station and frame_counter(f, b.p.fprd) == 1:
            b.s.axis[i].al_status = f[b.p.fprd + DATAGRAM_HEADER]
            b.s.axis[i].al_code = io_load_le16(f + b.p.fprd + DATAGRAM_HEADER + 4)

    # Inputs: all, or none.
    if b.s.working_counter != b.p.expected:
        b.s.short_total += 1
        b.s.seen |= DRIVE_STATUS_CORRUPT
        for i in range(AXES):
            b.s.axis[i].corrupt_total += 1
        return
    sampled = b.s.sent_ns[n]
    for i in range(AXES):
        a = &b.s.axis[i]
        at = image + b.p.axis[i].into
        a.status_word = io_load_le16(at)
        a.counts = <int32_t>io_load_le32(at + IN_POSITION)
        a.force = <int16_t>io_load_le16(at + IN_TORQUE)
        a.mode = <int8_t>at[IN_MODE]
        keep_position(&a.history, a.counts, sampled)
        memcpy(b.s.inputs_of[n][i], at, INPUT_BYTES)
    b.s.believed[n] = 1
    b.s.fresh = 1


# A second answer to a frame whose inputs are taken: where it says others, one of the two is not the slaves'.
cdef void take_again(Ethercat *b, const uint8_t *f, int place) noexcept nogil:
    cdef const uint8_t *image = f + b.p.lrw + DATAGRAM_HEADER
    cdef int i
    b.s.doubled_total += 1
    if not b.s.believed[place] or frame_counter(f, b.p.lrw) != b.p.expected:
        return
    for i in range(AXES):
        if memcmp(image + b.p.axis[i].into, b.s.inputs_of[place][i], INPUT_BYTES) != 0:
            b.s.seen |= DRIVE_STATUS_DIFFERS


# Everything that waits.
cdef void receive(Ethercat *b) noexcept nogil:
    cdef uint8_t buffer[IO_BATCH][FRAME_MOST]
    cdef int length[IO_BATCH]
    cdef int64_t came[IO_BATCH]
    cdef int i, got, place, error = 0
    for _ in range(MOST_ROUNDS):
        got = io_receive_datagrams(b.p.fd, &buffer[0][0], FRAME_MOST, IO_BATCH, length, came, &error)
        for i in range(got):
            if not ours(b, buffer[i], length[i]):
                # what has not been marked by a slave went past all of them: no slave is there
                if length[i] >= FRAME_HEADER and not buffer[i][6] & RETURNED_BIT:
                    b.s.ignored_total += 1
                else:
                    b.s.corrupt_total += 1
                    b.s.seen |= DRIVE_STATUS_CORRUPT
                continue
            place = (buffer[i][b.p.lrw + 1] - FIRST_INDEX) % INDICES
            if not b.s.waiting[place]:
                take_again(b, buffer[i], place)
                continue
            if outdated(b, buffer[i]):
                b.s.late_total += 1
                continue
            b.s.waiting[place] = 0
            if place != (b.s.sent - 1) % INDICES:
                b.s.late_total += 1
                continue
            b.s.answered += 1
            b.s.round_trip_ns = came[i] - b.s.sent_ns[place]
            take(b, buffer[i])
        if error:
            b.s.seen |= DRIVE_STATUS_BUS_FAULT
        if got < IO_BATCH:
            break


# Status bits of one axis.
cdef uint32_t axis_status(Ethercat *b, int i, uint32_t common) noexcept nogil:
    cdef EthercatAxisState *a = &b.s.axis[i]
    a.status = b.p.decode(a.status_word) & ~b.p.not_judged
    if b.s.first_command == 0 or b.s.cycles < b.s.first_command + ANSWERS_TO_FOLLOW:
        a.status &= ~<uint32_t>DRIVE_STATUS_NOT_FOLLOWING
    if a.mode != CYCLIC_SYNCHRONOUS_POSITION or a.al_status & 0x0F != AL_OPERATIONAL:
        a.status |= DRIVE_STATUS_NOT_ENABLED
    if a.al_status & AL_ERROR:
        a.status |= DRIVE_STATUS_EMERGENCY
    a.status |= left_place(&a.out, a.counts, b.p.axis[i].held_within)
    return a.status | common


cdef void ethercat_read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Ethercat *b = <Ethercat *>self
    cdef EthercatRecord *record = <EthercatRecord *>aux
    cdef EthercatAxisState *a
    cdef const EthercatAxisParams *p
    cdef uint32_t common
    cdef int i

    # The loop takes the bus with its first read; inside an exchange of the keeper's it waits for its next tick.
    if loop_has(&b.keeper):
        b.s.fresh = 0
        receive(b)
    common = b.s.seen
    b.s.seen = 0
    if b.p.fd < 0:
        common |= DRIVE_STATUS_NO_DATA

    # Silence: from the second tick on an answer belongs to every one; what there is in the first is the keeper's.
    if b.s.fresh:
        b.s.silent_periods = 0
    elif b.s.cycles == 0:
        common |= DRIVE_STATUS_STALE
    else:
        b.s.silent_periods += 1
        common |= DRIVE_STATUS_LOST
        if b.s.silent_periods >= b.p.no_data_periods:
            common |= DRIVE_STATUS_NO_DATA

    for i in range(AXES):
        a = &b.s.axis[i]
        p = &b.p.axis[i]
        if common & DRIVE_STATUS_LOST:
            a.lost_total += 1
        sample.drive_status[i] = axis_status(b, i, common)
        sample.drive_device_status[i] = <uint32_t>a.status_word | <uint32_t>a.al_code << 16
        sample.drive_lost_total[i] = a.lost_total
        sample.drive_corrupt_total[i] = a.corrupt_total + b.s.corrupt_total
        sample.measured_leg[i] = p.zero_m + <double>a.counts / p.counts_per_metre
        sample.measured_leg_rate[i] = counts_rate(&a.history, b.p.rate_window) / p.counts_per_metre
        if p.force_unit_n != 0.0:
            sample.leg_force[i] = <double>a.force * p.force_unit_n
    record.bus_deviation_ns = <double>b.s.deviation_ns
    record.bus_grid_error_ns = <double>b.s.error_ns
    record.bus_round_trip_ns = <double>b.s.round_trip_ns
    record.bus_working_counter = b.s.working_counter
    record.bus_al_status = b.s.al_or
    record.bus_late_total = <double>b.s.late_total
    record.bus_doubled_total = <double>b.s.doubled_total
    b.s.cycles += 1


cdef void ethercat_write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Ethercat *b = <Ethercat *>self
    cdef EthercatAxisState *a
    cdef const EthercatAxisParams *p
    cdef int i
    cdef bint reset
    if b.keeper.owner != LOOP:
        return
    reset = resets_in_recovery(&b.keeper, sample.safety_state, b.p.period_ns)
    for i in range(AXES):
        a = &b.s.axis[i]
        p = &b.p.axis[i]
        command_axis(sample, i, p.zero_m, p.counts_per_metre, a.status_word, a.counts, reset, &b.p.words, &a.out)
    if b.p.watchdog_bytes > 0:
        b.s.output_bits = watchdog_bits(&b.p.outputs, &b.s.watchdog, sample)
    fill(b)
    send(b)
    if b.s.first_command == 0:
        b.s.first_command = b.s.cycles


# What the keeper asks of the axes next: nothing before a request, then up or down.
cdef void lead(Ethercat *b) noexcept nogil:
    cdef EthercatAxisState *a
    cdef bint reset = reset_now(b.keeper.turns, b.p.period_ns), up = True, off = False
    cdef bint heard = b.s.silent_periods <= HEARD_PERIODS, all_ready = heard
    cdef int i
    for i in range(AXES):
        a = &b.s.axis[i]
        if b.s.silent_periods == 0:
            a.out.stood = in_place(a.out.target, a.counts, b.p.axis[i].counts_per_metre)
        all_ready = all_ready and a.out.stood and word_up(a.status_word, False, True) == b.p.words.enabled
        up = up and a.status_word & STATE_MASK == OPERATION_ENABLED
    if up:
        arrived(&b.keeper)
    for i in range(AXES):
        a = &b.s.axis[i]
        if b.keeper.led == LEAD_DOWN:
            if b.keeper.turns == 0 and not in_place(a.out.target, a.counts, b.p.axis[i].counts_per_metre):
                a.out.target = a.counts
            a.out.word_out = word_down(a.status_word, &off)
            a.off = off
            continue
        if a.status_word & STATE_MASK != OPERATION_ENABLED:
            if b.keeper.led != LEAD_HOLD and not (a.out.word_out == b.p.words.enabled and a.out.stood):
                a.out.target = a.counts
                a.out.held = b.keeper.led == LEAD_UP
        elif left_place(&a.out, a.counts, b.p.axis[i].held_within):
            a.out.word_out = b.p.words.blocking
            arrived(&b.keeper)
            continue
        if b.keeper.led == LEAD_UP and heard:
            a.out.word_out = word_up(a.status_word, reset, all_ready)


# One exchange of the keeper's, on a grid of its own that follows the reference.
cdef void exchange(void *self, int64_t *next_ns) noexcept nogil:
    cdef Ethercat *b = <Ethercat *>self
    b.s.fresh = 0
    receive(b)
    b.s.silent_periods = 0 if b.s.fresh else b.s.silent_periods + 1
    b.s.seen = 0
    b.grid.planned_ns = next_ns[0]
    next_ns[0] -= grid_step(b.grid)
    lead(b)
    b.s.output_bits = 0
    fill(b)
    send(b)
    b.grid.point_ns = next_ns[0]
    b.grid.begun = 1


cdef void ethercat_leave(void *self) noexcept nogil:
    loop_leaves(&(<Ethercat *>self).keeper)


cdef uint32_t decode_nothing(uint16_t status_word) noexcept nogil:
    return 0


cdef class EthercatAxes:
    """Owner of the cyclic part: the port configures it, the set-up starts it on an open socket and stops it."""

    def __cinit__(self):
        memset(&self.bus, 0, sizeof(Ethercat))
        self.grid_reference = GridReference()
        self.bus.grid = &self.grid_reference.lock
        self.bus.p.fd = -1
        self.bus.p.decode = decode_nothing
        self.bus.keeper.owner = CLOSED

    def configure(self, counts_per_metre, zero_m, double held_within_m, force_unit_n, int control_word, int blocking_word, int rate_window,
                  int no_data_periods, int64_t period_ns):
        """counts_per_metre, zero_m, force_unit_n: six each."""
        for i in range(AXES):
            self.bus.p.axis[i].counts_per_metre = counts_per_metre[i]
            self.bus.p.axis[i].zero_m = zero_m[i]
            self.bus.p.axis[i].held_within = held_within_m * counts_per_metre[i]
            self.bus.p.axis[i].force_unit_n = force_unit_n[i]
        self.bus.p.words.enabled = control_word
        self.bus.p.words.blocking = blocking_word
        self.bus.p.words.up = word_up
        self.bus.p.rate_window = rate_window
        self.bus.p.no_data_periods = no_data_periods
        self.bus.p.period_ns = period_ns

    def watchdog(self, int toggle_bit, int healthy_bit):
        """Bits of the outputs of the slave that has the watchdog (its place: the layout of `start`), -1 not wired."""
        self.bus.p.outputs.toggle_bit, self.bus.p.outputs.healthy_bit = toggle_bit, healthy_bit

    def start(self, int fd, bytes source, layout):
        """Takes over an open socket. source: its address, six bytes; layout: EthercatLayout of the set-up. Raises ValueError when the
        process image does not fit into one frame."""
        cdef EthercatParams *p = &self.bus.p
        cdef uint8_t *f = self.bus.frame
        cdef int end
        memset(&self.bus.s, 0, sizeof(EthercatState))
        p.image = layout.image
        size = FRAME_HEADER + 4 * 12 + layout.image + 8 + 2 + AL_BYTES
        if size > FRAME_MOST:
            raise ValueError(f"a process image of {layout.image} bytes does not fit into one frame")
        for i in range(AXES):
            p.axis[i].station, p.axis[i].out, p.axis[i].into = layout.stations[i], layout.outputs[i], layout.inputs[i]
            if not (0 <= p.axis[i].out <= p.image - OUT_BYTES and 0 <= p.axis[i].into <= p.image - IN_BYTES):
                raise ValueError(f"axis {i}: its process data are not within the image of {p.image} bytes")
        p.watchdog, p.watchdog_bytes = layout.watchdog, min(layout.watchdog_bytes, 4)
        if p.watchdog_bytes and not 0 <= p.watchdog <= p.image - p.watchdog_bytes:
            raise ValueError(f"the watchdog's outputs are not within the image of {p.image} bytes")
        p.expected, p.clocks, p.slaves, p.phase_ns = layout.expected, layout.clocks, layout.slaves, layout.phase_ns
        p.lrw = frame_begin(f, <const uint8_t *><const char *>source)
        p.frmw = frame_add(f, p.lrw, 0, COMMAND_LRW, layout.logical, p.image)
        p.brd = frame_add(f, p.frmw, p.lrw, COMMAND_FRMW, layout.reference | <uint32_t>REGISTER_TIME << 16, 8)
        p.fprd = frame_add(f, p.brd, p.frmw, COMMAND_BRD, <uint32_t>REGISTER_AL << 16, 2)
        end = frame_add(f, p.fprd, p.brd, COMMAND_FPRD, <uint32_t>REGISTER_AL << 16, AL_BYTES)
        p.size = max(end, FRAME_LEAST)
        for i in range(AXES):
            self.bus.s.axis[i].out.word = p.words.enabled
        p.fd = fd
        lead_to(&self.bus.keeper, LEAD_NOWHERE)
        self.bus.keeper.owner = NO_OWNER

    def keep(self, int priority=0, int core=-1):
        """Exchanges frames until `stop`, but while the loop does: for a thread. priority: of SCHED_FIFO, where allowed;
        core: that of the loop, which does not need it meanwhile, -1 any."""
        with nogil:
            keep_buses(&self.bus.keeper, &self.bus, exchange, self.bus.p.period_ns, priority, core)

    def lead_up(self):
        """The keeper takes all axes to operation enabled, out of a fault too."""
        lead_to(&self.bus.keeper, LEAD_UP)

    def lead_down(self):
        """The keeper takes the power off all axes, state by state; a loop that still has the bus loses it."""
        if self.bus.keeper.lead != LEAD_DOWN:
            lead_to(&self.bus.keeper, LEAD_DOWN)
        loop_leaves(&self.bus.keeper)

    def standing(self, int axis):
        """(status word, emergency code: 0, enabled, led down and off, periods since the last answer) of one axis."""
        a = &self.bus.s.axis[axis]
        return a.status_word, 0, a.status_word & STATE_MASK == OPERATION_ENABLED, bool(a.off), self.bus.s.silent_periods

    @property
    def in_loop(self):
        """Whether the loop has the bus."""
        return owner_now(&self.bus.keeper.owner) == LOOP

    @property
    def up(self):
        """Whether the keeper has led all axes up."""
        return owner_now(&self.bus.keeper.lead) == LEAD_HOLD

    def stop(self):
        """Ends the exchange and lets go of the socket (does not close it)."""
        close_buses(&self.bus.keeper)
        self.bus.p.fd = -1

    def begin(self):
        """What was counted in the set-up is forgotten."""
        s = &self.bus.s
        s.late_total = s.doubled_total = s.corrupt_total = s.short_total = s.drop_total = s.ignored_total = 0
        for i in range(AXES):
            s.axis[i].lost_total = s.axis[i].corrupt_total = 0

    def frame(self):
        """The frame that would be sent now, as bytes."""
        fill(&self.bus)
        return bytes(self.bus.frame[:self.bus.p.size])

    # ------------------------------------------------------------------------------------------------ for the set-up
    @property
    def answered(self):
        """Frames that have come back in time since `start`."""
        return self.bus.s.answered

    @property
    def working_counters(self):
        """Of the newest answer: process data, clocks, as they came and as they should be."""
        s, p = &self.bus.s, &self.bus.p
        return s.working_counter, s.clocks_counter, p.expected, p.clocks

    @property
    def phase_ns(self):
        """Reference time, modulo the period, at which a frame is to pass the reference."""
        return self.bus.p.phase_ns

    @property
    def deviation_ns(self):
        """How late the newest frame passed the reference clock."""
        return self.bus.s.deviation_ns

    def inputs(self, int axis):
        """(status word, position in counts, mode) of one axis as the newest good answer has them."""
        a = &self.bus.s.axis[axis]
        return a.status_word, a.counts, a.mode

    def counters(self):
        """Sums since the loop began."""
        s = &self.bus.s
        return {
            "cycles": s.cycles,
            "axis_lost": [s.axis[i].lost_total for i in range(AXES)],
            "bus_answered": s.answered,
            "bus_late": s.late_total,
            "bus_doubled": s.doubled_total,
            "bus_corrupt": s.corrupt_total,
            "bus_short": s.short_total,
            "bus_not_sent": s.drop_total,
            "bus_not_returned": s.ignored_total,
        }
