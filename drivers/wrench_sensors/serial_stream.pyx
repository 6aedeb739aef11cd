"""What the ports of serial force sensors share: records in a stream of bytes, whether they are believed, and how old they are.

Framing: a record is a header, values and a 16-bit checksum (little-endian). A header may stand inside values too: a candidate is a record
only when its checksum is right, else it is moved on by one byte and judged again, so that no whole record that follows damage is missed. A
run of bytes that belongs to no record counts once in `wrench_corrupt_total`.

Belief: record_check.pxd. A record with a right checksum that does not continue the last one (stamp, jump) is not used and counts as
damage (`corrupt`). Values beyond the range are used and reported (`out_of_range`), as are those of a record whose own status word is a
fault: they are the output of the sensor and the log must show them. A value that is no number is never used: `device_fault`.

Lost: where the device stamps its records, the periods missing between two of them. Where it does not, records are counted over a second:
too few are lost, too many are a `warning` (somebody else writes on the line, or the stream is not at the rate that is configured); and so
are six values that an earlier one of sixteen records had: a piece of the stream that came twice. One record alone that is missing shows in
the age only.

Ages: a terminal gives no stamps. A record was read when its last byte was, less the time of the bytes that were read behind it at the rate
of the line. Where the device stamps its records, this machine's clock less the device's is followed by its least value (a record that was
read at once; it may rise by 100 us in a second, for clocks that drift), and a record arrived at its own stamp plus that: to the
microsecond, however late it was read. Elsewhere it arrived when it was read. So an age is never more than the truth, and without stamps it
may be less by the time between two reads. From there on CLOCK_MONOTONIC counts. The time that a record needs on the line is in the delay
ledger. Silence is `no_data`, at once when the line is hung up (adapter unplugged). Records that come and bring nothing new that is
believed are `stale`.
"""

import contextlib
import math
import termios

import serial

from libc.errno cimport EAGAIN, EINTR, errno
from libc.string cimport memset
from posix.unistd cimport read

from drivers.raw_frames.frame_io cimport io_now_ns
from drivers.wrench_sensors.record_check cimport RECORD_FIRST, RECORD_OLD, RECORD_SUSPECT, RECORD_TAKEN, judge_record
from drivers.wrench_sensors.sensor_output cimport begin_tick, judge_ages, judge_status, median_age_s, write_output
from rt_kernels.codes cimport (SENSOR_STATUS_CORRUPT, SENSOR_STATUS_DEVICE_FAULT, SENSOR_STATUS_LOST, SENSOR_STATUS_OUT_OF_RANGE,
                               SENSOR_STATUS_WARNING)
from rt_kernels.sample cimport Sample

from drivers.identity import WrongDeviceError
from rt_kernels.parameters import Parameter
from rt_kernels.doors import select, time

cdef enum:
    BACKLOG_TURNS = 64
    BITS_OF_A_BYTE = 10     # 8N1
    DRIFT = 10000           # the clocks of device and machine drift by less than one part in so many
    LONGEST_GAP_NS = 1000000000

LEAVE_S = 0.02  # a tick that reads the line is over by then

cdef double WINDOW_TOLERANCE = 0.1  # share of the records of a window that may be missing or too many: the device's clock is its own

# Keys of every serial sensor.
LINE_PARAMETERS = (
    Parameter("device", "str", "-", "serial line, best by its lasting name: /dev/serial/by-id/..."),
    Parameter("jump_share", "float", "-", "a channel that moves by more than this share of its range from record to record is not believed",
              0.25, 0.001, 2.0),
    Parameter("filter_delay_s", "float", "s", "delay of the filter that is set in the device and of its electronics, for the ledger; not "
              "given: as it follows from the settings, else not known", None, 0.0, 1.0),
    Parameter("timeout_s", "float", "s", "time for every answer during open", 2.0, 0.05, 60.0),
)


def checksum_of(data: bytes, generator: int, invert: int) -> int:
    """16-bit checksum of `data`: reflected `generator`, begun with 0xFFFF, the result combined with `invert`."""
    return checksum(data, len(data), generator, invert)


# --------------------------------------------------------------------------------------------------------------------------- framing


cdef uint16_t checksum(const uint8_t *bytes, int count, uint16_t generator, uint16_t invert) noexcept nogil:
    cdef uint16_t value = 0xFFFF
    cdef int i
    for i in range(count):
        value ^= bytes[i]
        for _ in range(8):
            value = (value >> 1) ^ generator if value & 1 else value >> 1
    return value ^ invert


# Whether the candidate may still become a record: 0 no, 1 it is too short to say, 2 it is one.
cdef inline int judge_candidate(const Framing *f, const FramingState *s) noexcept nogil:
    cdef int end = f.record_length - 2
    cdef int i
    for i in range(f.header_length if f.header_length < s.count else s.count):
        if s.bytes[i] != f.header[i]:
            return 0
    if s.count < f.record_length:
        return 1
    cdef uint16_t told = <uint16_t>(s.bytes[end] | s.bytes[end + 1] << 8)
    return 2 if checksum(s.bytes + f.crc_begin, end - f.crc_begin, f.crc_generator, f.crc_invert) == told else 0


# One byte of the stream. 1: s.bytes holds a whole record with a right checksum, and the next byte begins a new candidate.
cdef inline int take_byte(const Framing *f, FramingState *s, uint8_t byte) noexcept nogil:
    cdef int verdict, i
    s.bytes[s.count] = byte
    s.count += 1
    verdict = judge_candidate(f, s)
    # what cannot be a record is moved on by one byte, so that a record that began inside it is found
    while verdict == 0:
        for i in range(1, s.count):
            s.bytes[i - 1] = s.bytes[i]
        s.count -= 1
        s.skipped_total += 1
        if not s.out_of_step:
            s.damage_total += 1
            s.out_of_step = 1
        verdict = judge_candidate(f, s) if s.count else 1
    if verdict == 1:
        return 0
    s.count = 0
    s.out_of_step = 0
    return 1


# --------------------------------------------------------------------------------------------------------------------------- records


cdef inline int is_number(double x) noexcept nogil:
    return x - x == 0.0


cdef inline int same_values(const double *a, const double *b) noexcept nogil:
    cdef int i
    for i in range(6):
        if a[i] != b[i]:
            return 0
    return 1


# Whether the values of an earlier record come again, to the bit in six channels: a piece of the stream that came twice, most likely.
cdef inline int came_before(const StreamState *s, const Reading *r) noexcept nogil:
    cdef int i
    for i in range(HISTORY if HISTORY < s.history_count else s.history_count):
        if same_values(s.history[i], r.values):
            return 1
    return 0


# When a believed record arrived that was read at `read_ns`, by the device's own clock (stamps in us).
cdef inline int64_t arrival_of(StreamState *s, const Reading *before, const Reading *r, int64_t read_ns) noexcept nogil:
    cdef int64_t passed = <int64_t><uint32_t>(r.stamp - before.stamp) * 1000
    cdef int64_t offset
    s.device_ns += passed
    offset = read_ns - s.device_ns
    s.offset_ns += passed // DRIFT
    # the first record, a device that began again, and every record that was read sooner than those before it
    if not s.has_offset or passed > LONGEST_GAP_NS or offset < s.offset_ns:
        s.offset_ns = offset
        s.has_offset = 1
    return s.device_ns + s.offset_ns


# A record with a right checksum that arrived at `arrived_ns`.
cdef void take_record(Stream *stream, const uint8_t *record, int64_t arrived_ns) noexcept nogil:
    cdef StreamState *s = &stream.s
    cdef Reading r, before
    cdef int64_t steps
    cdef int i, verdict
    memset(&r, 0, sizeof(Reading))
    stream.p.decode(record, &r)
    s.out.heard_ns = arrived_ns
    s.window_count += 1
    for i in range(6):
        if not is_number(r.values[i]):
            r.found |= SENSOR_STATUS_DEVICE_FAULT
            judge_status(&s.out, r.found, r.word)
            return
        if not -stream.p.limit[i] <= r.values[i] <= stream.p.limit[i]:
            r.found |= SENSOR_STATUS_OUT_OF_RANGE

    # Without stamps nothing else tells an old record from a new one. The very last one again says nothing wrong.
    if stream.p.check.period <= 0.0 and s.check.have_last and not same_values(s.check.last.values, r.values) and came_before(s, &r):
        r.found |= SENSOR_STATUS_WARNING

    # Its own status is reported whether it is believed or not: an overload may well jump.
    judge_status(&s.out, r.found, r.word)
    before = s.check.last
    verdict = judge_record(&stream.p.check, &s.check, &r, &steps)
    if verdict == RECORD_OLD:
        s.repeated_total += 1
        return
    if verdict == RECORD_FIRST or verdict == RECORD_SUSPECT and s.restart:
        return
    if verdict != RECORD_TAKEN:
        s.suspect_total += 1
        s.out.corrupt_total += 1
        s.out.seen |= SENSOR_STATUS_CORRUPT
        return

    # Believed: what is missing before it, and whether anything moved.
    if s.restart:
        steps = 1
        s.restart = 0
    s.out.sequence += steps
    if s.out.record_total and steps > 1:
        s.out.lost_total += steps - 1
        s.out.seen |= SENSOR_STATUS_LOST
    if s.out.record_total == 0 or stream.p.check.period > 0.0 or not same_values(before.values, r.values):
        s.out.moved_ns = arrived_ns
    s.out.received_ns = arrival_of(s, &before, &r, arrived_ns) if stream.p.check.period > 0.0 else arrived_ns
    s.history[s.history_count % HISTORY] = r.values
    s.history_count = s.history_count + 1 if s.history_count < 2 * HISTORY - 1 else HISTORY
    s.out.record_total += 1


# `count` bytes of which the last one was read at `now`.
cdef void take_bytes(Stream *stream, const uint8_t *bytes, int count, int64_t now) noexcept nogil:
    cdef StreamState *s = &stream.s
    cdef int64_t damage = s.framing.damage_total
    cdef int64_t arrived
    cdef int i
    for i in range(count):
        if take_byte(&stream.p.framing, &s.framing, bytes[i]):
            arrived = now - <int64_t>((count - 1 - i) * stream.p.byte_ns)
            take_record(stream, s.framing.bytes, arrived if arrived > s.out.heard_ns else s.out.heard_ns)
    if s.framing.damage_total > damage:
        s.out.corrupt_total += s.framing.damage_total - damage
        s.out.seen |= SENSOR_STATUS_CORRUPT


# Everything that waits on the line, at most READ_SIZE bytes: more than any line brings in a tick. Returns the bytes taken.
cdef int drain(Stream *stream) noexcept nogil:
    cdef int count = 0
    cdef ssize_t got
    # a terminal may hand out less than waits
    while count < READ_SIZE:
        got = read(stream.p.fd, stream.buffer + count, READ_SIZE - count)
        if got <= 0:
            # an end of the file, or an error other than "nothing waits": the line is gone
            if got == 0 or errno != EAGAIN and errno != EINTR:
                stream.s.gone = 1
            break
        count += <int>got
    take_bytes(stream, stream.buffer, count, io_now_ns())
    return count


# Records of a window against how many should have come.
cdef inline void judge_window(const StreamParams *p, StreamState *s, int64_t now) noexcept nogil:
    if now - s.window_began_ns < p.window_ns:
        return
    # a window that a stalled loop ended late has more of them
    cdef int64_t expected = <int64_t>(p.window_records * (<double>(now - s.window_began_ns) / p.window_ns))
    if s.window_count < (1.0 - WINDOW_TOLERANCE) * expected:
        s.out.lost_total += expected - s.window_count
        s.out.sequence += expected - s.window_count
        s.out.seen |= SENSOR_STATUS_LOST
    elif s.window_count > (1.0 + WINDOW_TOLERANCE) * expected + 1.0:
        s.out.seen |= SENSOR_STATUS_WARNING
    s.window_began_ns = now
    s.window_count = 0


cdef void stream_read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Stream *stream = <Stream *>self
    cdef StreamState *s = &stream.s
    cdef int64_t now
    cdef int i

    # Read what came since the last tick; the newest word is still judged while nothing newer comes.
    begin_tick(&s.out)
    if stream.p.fd >= 0:
        drain(stream)
    now = io_now_ns()
    if s.check.have_last:
        judge_status(&s.out, s.check.last.found, s.check.last.word)
    if stream.p.fd >= 0 and stream.p.window_ns > 0:
        judge_window(&stream.p, s, now)

    judge_ages(&s.out, stream.p.fd < 0 or s.gone, stream.p.no_data_ns, stream.p.stale_ns, now)

    # Values and status go into the sample.
    for i in range(6):
        sample.wrench_raw[i] = s.check.last.values[i]
    write_output(&s.out, stream.p.fd >= 0, now, sample)


# A sensor takes nothing out.
cdef void stream_write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


cdef class SerialSensor(PortPart):
    """Base of the ports of serial sensors that stream wrenches in N and N.m. Writes wrench_raw (N, N.m), wrench_sequence, wrench_age_ns,
    wrench_lost_total, wrench_corrupt_total, wrench_status and wrench_device_status. A port of a protocol gives framing, decoder, limits and
    the set-up dialogue.
    """

    sensor_scale = (1.0,) * 6   # wrench_raw is in N and N.m already

    def __cinit__(self):
        memset(&self.stream, 0, sizeof(Stream))
        self.stream.p.fd = -1

    cdef void prepare(self, Decode decode):
        self.stream.p.decode = decode
        self.plug.self = &self.stream
        self.plug.state = &self.stream.s
        self.plug.state_size = sizeof(StreamState)
        self.plug.read = stream_read
        self.plug.write = stream_write

    def _set_framing(self, *, header, record_length, crc_begin, generator, invert, baud):
        f = &self.stream.p.framing
        f.header_length = len(header)
        for i, byte in enumerate(header):
            f.header[i] = byte
        f.record_length = record_length
        f.crc_begin = crc_begin
        f.crc_generator = generator
        f.crc_invert = invert
        self.stream.p.byte_ns = BITS_OF_A_BYTE * 1e9 / baud

    def _set_limits(self, ranges, jump_share):
        for i, limit in enumerate(ranges):
            self.stream.p.limit[i] = limit
            self.stream.p.check.jump[i] = jump_share * limit

    @property
    def line_delay_s(self):
        """Time of one record on the line, s."""
        return 1e-9 * self.stream.p.byte_ns * self.stream.p.framing.record_length

    @property
    def received_ns(self):
        """Arrival of the last believed record, by this machine's monotonic clock."""
        return self.stream.s.out.received_ns

    @property
    def rate_hz(self):
        """Records per second as they are configured; 0 if not configured."""
        return 0.0

    @property
    def delays(self):
        """What this port adds to the delay ledger: the device's filter as given or as it follows from its settings (0 where neither) and
        the record's way over the line, and the age of its newest record at a tick: measured by `measure`, before that half a period of its
        stream."""
        rate = self.rate_hz
        given = self._given["filter_delay_s"]
        own = given if given is not None else self.own_delay_s(self._given) or 0.0
        age = self._measured_age if self._measured_age is not None else (0.5 / rate if rate > 0 else 0.0)
        return {"sensor_delay_s": own + self.line_delay_s, "sensor_age_s": age}

    @property
    def delay_origins(self):
        return {"sensor_age_s": "derived" if self._measured_age is None else "measured",
                "sensor_delay_s": "derived" if self._given["filter_delay_s"] is None else "configured"}

    @staticmethod
    def own_delay_s(keys):
        """Delay of the device's own filter as it follows from `keys` of the stand file, s; None: it does not follow from them."""
        return None

    def measure(self, reads=250):
        """Measures on the open stream how old the newest record is when it is read, median over reads that have no fixed phase to the
        sensor's clock, and `measured_rate_hz`, records by the clock of this machine. Returns the age, s. Raises ConnectionError when it
        is over `no_data_ms`."""
        s = &self.stream.s
        drain(&self.stream)
        first, since = s.out.sequence, s.out.received_ns
        ages = []
        while len(ages) < reads:
            time.sleep(5e-4 * (1.0 + (0.618034 * len(ages)) % 1.0))
            drain(&self.stream)
            ages.append(io_now_ns() - s.out.received_ns)
        if s.out.received_ns > since and s.out.sequence > first:
            self.measured_rate_hz = (s.out.sequence - first) / (1e-9 * (s.out.received_ns - since))
            self._measured_age = median_age_s(ages, self.stream.p.no_data_ns)
        return self._measured_age

    def open(self):
        """Sets the sensor up and waits for its first records."""
        self.close()
        self._left_s = lambda: math.inf
        try:
            self._open_line()
            self._set_up()
            self._await_stream()
        except WrongDeviceError:
            self.close()
            raise
        except (OSError, termios.error) as error:
            self.close()
            raise self._no_stream(error) from error
        self._opened = True

    def recover(self, left_s):
        """Called beside the loop while it recovers: a sensor that is silent (it restarted, its adapter was unplugged) has its line opened
        and is set up again. left_s(): seconds that the recovery still has. Raises ConnectionError."""
        s = &self.stream.s
        if not self._opened or self.stream.p.fd >= 0 and not s.gone and io_now_ns() - s.out.heard_ns <= self.stream.p.no_data_ns:
            return
        self.stream.p.fd = -1
        self._left_s = left_s
        time.sleep(LEAVE_S)
        self._hang_up()
        try:
            self._open_line()
            self._set_up()
            fd = self._raw_line()
        except (OSError, termios.error) as error:
            self._hang_up()
            raise self._no_stream(error) from error
        self._forget_line()
        s.gone = 0
        self.stream.p.fd = fd

    def _no_stream(self, error):
        given = self._given
        return ConnectionError(f"no stream from the force sensor on {given['device']} at {given['baud']} bit/s: {error}")

    def _open_line(self):
        """The line, raw, 8N1, ours alone, reads that do not wait. Raises OSError."""
        given = self._given
        try:
            self._line = serial.Serial(given["device"], given["baud"], timeout=given["timeout_s"], write_timeout=given["timeout_s"],
                                       exclusive=True)  # fmt: skip
        except (ValueError, termios.error) as error:
            raise ConnectionError(f"it cannot be opened: {error}") from error
        # an adapter that has it hands bytes over at once and not every 16 ms; pyserial says in three ways that this one has not
        with contextlib.suppress(OSError, ValueError, NotImplementedError):
            self._line.set_low_latency_mode(True)

    def _raw_line(self):
        """Descriptor of the line for the loop: a read without bytes is "nothing waits", an end of the file is a line that is gone."""
        fd = self._line.fileno()
        attributes = termios.tcgetattr(fd)
        attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 1, 0
        termios.tcsetattr(fd, termios.TCSANOW, attributes)
        return fd

    def _forget_line(self):
        """The next bytes have nothing to do with those before: a cut record is no damage, the numbering begins with the next record."""
        s = &self.stream.s
        s.restart = 1
        s.check.have_suspect = 0
        s.framing.out_of_step = 1

    def _ask(self, command, answer, what):
        """Sends `command` and reads up to `answer`, over whatever else is on its way. Raises TimeoutError."""
        self._line.write(command)
        self._line.timeout = self._answer_s()
        if not self._line.read_until(answer).endswith(answer):
            raise TimeoutError(f"no answer to {what} within {self._line.timeout:.3g} s")

    def _answer_s(self):
        """How long the next answer may take. Raises TimeoutError when the recovery is over."""
        if (left_s := self._left_s()) <= 0.0:
            raise TimeoutError("the set-up was broken off, the recovery is over")
        return min(self._given["timeout_s"], left_s)

    def _begin_stream(self, fewest):
        """From here on the line is read in C: forgets all state and waits for `fewest` believed records after the first ones. Returns the
        mean of the device's stamps and of the arrivals from record to record (s). Raises TimeoutError."""
        s = &self.stream.s
        memset(s, 0, sizeof(StreamState))
        self.stream.p.fd = fd = self._raw_line()
        end = time.monotonic() + self._given["timeout_s"]
        heard = first_count = first_stamp = first_arrival = 0
        # those of the first read may have waited together: they tell no rate
        while not first_count or s.out.record_total - first_count < fewest:
            left = end - time.monotonic()
            if left <= 0 or s.gone:
                came = f"{heard} bytes came, {s.framing.skipped_total} of them in no record" if heard else "nothing came"
                raise TimeoutError(f"no {fewest} good records within {self._given['timeout_s']} s: {came}")
            select.select([fd], [], [], min(left, 0.05))
            heard += drain(&self.stream)
            if s.out.record_total and not first_count:
                first_count, first_stamp, first_arrival = s.out.record_total, s.check.last.stamp, s.out.received_ns
        count = s.out.record_total - first_count
        return ((s.check.last.stamp - first_stamp) % (1 << 32)) / count, 1e-9 * (s.out.received_ns - first_arrival) / count

    def begin(self):
        """What piled up before the loop is read and forgotten; the newest record stays, its sequence and the counters start at zero. A line
        that was not read for long has lost records and cut one: neither is damage of this run."""
        s = &self.stream.s
        if self.stream.p.fd < 0:
            return
        for _ in range(BACKLOG_TURNS):
            if drain(&self.stream) == 0:
                break
        s.out.lost_total = s.out.corrupt_total = s.repeated_total = s.suspect_total = 0
        s.out.record_total = s.out.record_total > 0
        s.out.sequence = s.window_count = 0
        s.framing.skipped_total = 0
        self._forget_line()
        s.out.opened_ns = s.window_began_ns = io_now_ns()

    def feed(self, data, at_ns=0):
        """Takes `data` as if it had been read at `at_ns`. Returns the believed records that ended in it, each with its own bits of
        sensor_status, and the bits that the tick of this read would show."""
        s = &self.stream.s
        begin_tick(&s.out)
        cdef const uint8_t[:] view = data
        records = []
        for i in range(len(view)):
            before = s.out.record_total
            take_bytes(&self.stream, &view[i], 1, at_ns)
            if s.out.record_total > before:
                records.append((tuple(s.check.last.values), s.check.last.found))
        return records, s.out.seen

    def close(self):
        self._opened = False
        self.stream.p.fd = -1
        self._hang_up()

    def _hang_up(self):
        if self._line is not None:
            with contextlib.suppress(OSError, termios.error):
                self._line.close()
            self._line = None

    def counters(self):
        """Since the loop began: believed records, lost ones, runs of damage, records without anything new, records with a right checksum
        that were not believed (they are in the damage), bytes in no record."""
        s = &self.stream.s
        return {
            "records": s.out.record_total,
            "lost": s.out.lost_total,
            "corrupt": s.out.corrupt_total,
            "repeated": s.repeated_total,
            "suspect": s.suspect_total,
            "skipped_bytes": s.framing.skipped_total,
        }
