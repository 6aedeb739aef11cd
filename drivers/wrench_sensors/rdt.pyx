"""Force/torque sensor on ATI RDT over UDP: Net F/T, Ethernet Axia, OnRobot HEX / OptoForce.

Wire (big-endian): request of 8 bytes `0x1234, command, count`; record of 36 bytes
`rdt_sequence u32, ft_sequence u32, status u32, Fx Fy Fz Tx Ty Tz i32` (ATI 9620-05-NET FT,
ATI 9610-05-Ethernet Axia). The stream is started once (command 2, count 0) and drained at every tick; the
values of the newest record become `wrench_raw`, in counts.

Status: the words of *all* records of a tick are judged, late and repeated ones too. `wrench_status` is their union, `wrench_device_status`
the worst word (the newest of equally bad ones); a tick without a record keeps the newest word. A faulty record's values are used like any
others, for they are the output of the sensor and the log must show them; its status is what keeps anybody from believing them. Only a busy
sensor's values (they may jump, and busy is no fault) do not become `wrench_raw`: the last ones are held, if there are any.

Sequence: `step = (rdt_sequence - last) mod 2^32`. 1 is the next record, 2 ... 2^31 - 1 leaves `step - 1` records missing. A missing one may
only have been overtaken: it is lost when it has not come by the end of the next tick,
or when the numbering is `WINDOW` records ahead of it;
each is counted in `wrench_lost_total`. Step 0 or 2^31 ... is an old record: it fills its gap (late), or says nothing new (repeated); both
are harmless, but where a repeated one is not equal to the first one with its number, byte by byte: one of the two is not the sensor's
(`differs`). `wrench_sequence` is the sum of the steps in 64 bits, so that a roll-over does not show.

A numbering that begins again, or stands still, has only old records: nothing is believed any more, and `stale` follows. While a trip is
recovered from (`safety_state`), a stream that was silent or stale is restarted: the next record is the newest whatever its number, and
none is missing before it; `recover` asks a sensor that is silent for its stream. A datagram that is
no multiple of a record is damaged (`wrench_corrupt_total`). Foreign senders are not heard: the socket is connected,
the kernel discards them.

Ages: kernel receive stamps tell how long a record had waited when it was drained; from there on CLOCK_MONOTONIC counts. Silence of the wire
is `no_data`. Records that come while `ft_sequence` (the sensor's own sample counter) of the newest one has not moved for `stale_ms` are
`stale`. A flood is taken in portions, `MOST_ROUNDS` batches in a tick, in order and without loss; a backlog older than `no_data_ms` is
`no_data`.
"""

import struct

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from drivers.raw_frames.frame_io cimport IO_BATCH, io_load_be32, io_now_ns, io_receive_datagrams
from drivers.wrench_sensors.sensor_output cimport SensorOutput, begin_tick, judge_ages, judge_status, median_age_s, write_output
from rt_kernels.codes cimport (SAFETY_STATE_RECOVERING, SENSOR_STATUS_BUSY, SENSOR_STATUS_CORRUPT, SENSOR_STATUS_DEVICE_FAULT,
                               SENSOR_STATUS_DIFFERS, SENSOR_STATUS_LOST, SENSOR_STATUS_STALE)
from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from drivers.identity import SENSOR_CALIBRATION, SENSOR_SERIAL, checked_count, compare, identity_of_sensor
from drivers.wrench_sensors import rdt_scaling, rdt_status
from rt_kernels.parameters import Parameter, checked
from rt_kernels.doors import select, socket, time

cdef enum:
    RECORD = 36             # bytes of a record
    MOST_RECORDS = 40       # in one datagram of the buffered mode
    DATAGRAM = RECORD * MOST_RECORDS
    MOST_ROUNDS = 8         # batches drained in one tick: bounds the time of a tick when somebody floods the port
    BACKLOG_TURNS = 64      # more than a socket's buffer holds: what is flooded cannot hold up the start
    WINDOW = 64             # newest record numbers of which it is known which are missing
    COMMAND_STOP_STREAM = 0x0000
    COMMAND_START_STREAM = 0x0002
    COMMAND_BIAS = 0x0042
    COMMAND_SET_FILTER = 0x0081     # OnRobot
    COMMAND_SET_PERIOD = 0x0082     # OnRobot
    REQUEST_HEADER = 0x1234


cdef struct RdtParams:
    int fd                          # connected UDP socket, -1 when closed
    int64_t no_data_ns
    int64_t stale_ns
    int64_t busy_hold_ns
    uint32_t mask_of_bit[32]        # bit of the device's word -> sensor_status


cdef struct RdtState:
    SensorOutput out                # moved_ns: last time that ft_sequence moved
    int32_t counts[6]               # newest good record
    uint32_t rdt_sequence           # out.sequence continued without its roll-over
    uint32_t ft_sequence
    uint32_t device_status          # of the newest record
    int32_t busy
    int32_t restart                  # the numbering begins with the next record
    int32_t begun                    # no record since the loop began
    uint64_t missing                # bit k: record number `rdt_sequence - k` has not come yet and is not counted as lost
    uint64_t missing_before         # those of them that were missing at the end of the last tick
    int64_t late_total              # overtaken by a newer one
    int64_t repeated_total          # duplicates, and old ones that are not missing
    int64_t busy_since_ns
    uint64_t kept                   # bit k: record[k] is the newest one with a number that is k modulo WINDOW
    uint8_t record[WINDOW][RECORD]


cdef struct Rdt:
    RdtParams p
    RdtState s
    uint8_t buffer[IO_BATCH * DATAGRAM]


# The device's status word in the words of the table; a word that only sets bits without a class is a device fault.
cdef inline uint32_t translate_status(const RdtParams *p, uint32_t word) noexcept nogil:
    cdef uint32_t found = 0
    cdef int i
    if word == 0:
        return 0
    for i in range(32):
        if word >> i & 1:
            found |= p.mask_of_bit[i]
    return found if found else SENSOR_STATUS_DEVICE_FAULT


# A status word of this tick; what it means.
cdef inline uint32_t judge_word(Rdt *rdt, uint32_t word) noexcept nogil:
    cdef uint32_t found = translate_status(&rdt.p, word)
    judge_status(&rdt.s.out, found, word)
    return found


cdef inline int ones(uint64_t mask) noexcept nogil:
    cdef int count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


# The newest number moves on by `step` >= 1: the numbers between are missing, what leaves the window missing is lost.
cdef inline void advance_window(RdtState *s, uint32_t step) noexcept nogil:
    if step < WINDOW:
        s.out.lost_total += ones(s.missing >> (WINDOW - step))
        s.missing = s.missing << step | ((<uint64_t>1 << step) - 2)
        s.missing_before <<= step
    else:
        s.out.lost_total += ones(s.missing) + <int64_t>step - WINDOW
        s.missing = ~<uint64_t>1
        s.missing_before = 0


# The end of a tick: what was missing at the end of the last one too is lost.
cdef inline void close_window(RdtState *s) noexcept nogil:
    cdef uint64_t gone = s.missing & s.missing_before
    s.out.lost_total += ones(gone)
    s.missing &= ~gone
    s.missing_before = s.missing


# The first record with its number: what repeats it has to be equal.
cdef inline void keep_record(RdtState *s, const uint8_t *record, uint32_t number) noexcept nogil:
    s.kept |= <uint64_t>1 << number % WINDOW
    memcpy(s.record[number % WINDOW], record, RECORD)


# A record `back` numbers behind the newest one: it fills its gap, or says nothing new, or something else than the one with its number.
cdef inline void take_old_record(RdtState *s, const uint8_t *record, uint32_t number, uint32_t back) noexcept nogil:
    cdef const uint8_t *first = s.record[number % WINDOW]
    if back < WINDOW and s.missing >> back & 1:
        s.missing &= ~(<uint64_t>1 << back)
        s.late_total += 1
        keep_record(s, record, number)
        return
    s.repeated_total += 1
    if s.kept >> (number % WINDOW) & 1 and io_load_be32(first) == number and memcmp(first, record, RECORD) != 0:
        s.out.seen |= SENSOR_STATUS_DIFFERS


# One record that arrived at `arrived_ns`.
cdef void take_record(Rdt *rdt, const uint8_t *record, int64_t arrived_ns) noexcept nogil:
    cdef RdtState *s = &rdt.s
    cdef uint32_t rdt_sequence = io_load_be32(record)
    cdef uint32_t ft_sequence = io_load_be32(record + 4)
    cdef uint32_t word = io_load_be32(record + 8)
    cdef uint32_t found = judge_word(rdt, word)
    cdef uint32_t step
    cdef int i
    s.out.heard_ns = arrived_ns

    # Sequence: an old record changes nothing but its gap, a new one may leave others missing.
    if s.out.record_total:
        step = rdt_sequence - s.rdt_sequence
        if s.restart:
            s.missing = s.missing_before = s.kept = 0
            s.out.sequence += 1
        elif step == 0 or step >= <uint32_t>0x80000000:
            take_old_record(s, record, rdt_sequence, s.rdt_sequence - rdt_sequence)
            return
        else:
            if s.begun:
                s.missing = s.missing_before = 0
            else:
                advance_window(s, step)
            s.out.sequence += step
    else:
        s.out.sequence = rdt_sequence
    s.restart = s.begun = 0

    keep_record(s, record, rdt_sequence)

    # The sensor's own counter: a repeated value is an old sample sent again.
    if not s.out.record_total or ft_sequence != s.ft_sequence:
        s.out.moved_ns = arrived_ns
    s.rdt_sequence = rdt_sequence
    s.ft_sequence = ft_sequence
    s.out.received_ns = arrived_ns
    s.device_status = word
    s.out.record_total += 1

    # A busy sensor's data may jump: the last value is held, if there is one.
    if found & SENSOR_STATUS_BUSY and s.out.record_total > 1:
        if not s.busy:
            s.busy_since_ns = arrived_ns
        s.busy = 1
        return
    s.busy = 0
    for i in range(6):
        s.counts[i] = <int32_t>io_load_be32(record + 12 + 4 * i)


# One datagram that arrived at `arrived_ns`: a record, or several back to back; anything else is damaged.
cdef void take_datagram(Rdt *rdt, const uint8_t *bytes, int length, int64_t arrived_ns) noexcept nogil:
    cdef int k
    if length < RECORD or length % RECORD != 0:
        rdt.s.out.corrupt_total += 1
        rdt.s.out.seen |= SENSOR_STATUS_CORRUPT
        return
    for k in range(length // RECORD):
        take_record(rdt, bytes + k * RECORD, arrived_ns)


# Everything that waits in the socket.
cdef void drain(Rdt *rdt) noexcept nogil:
    cdef int length[IO_BATCH]
    cdef int64_t came[IO_BATCH]
    cdef int i, got, error
    for _ in range(MOST_ROUNDS):
        got = io_receive_datagrams(rdt.p.fd, rdt.buffer, DATAGRAM, IO_BATCH, length, came, &error)
        for i in range(got):
            # The wall-clock stamp of the kernel may jump: never before the previous record.
            take_datagram(rdt, rdt.buffer + i * DATAGRAM, length[i], max(came[i], rdt.s.out.heard_ns))
        if got < IO_BATCH:
            break


# The end of a tick's reading: the newest word stands, and what was missing at the end of the last tick too is lost.
cdef inline void close_tick(Rdt *rdt, int64_t lost_before) noexcept nogil:
    judge_word(rdt, rdt.s.device_status)
    close_window(&rdt.s)
    if rdt.s.out.lost_total > lost_before:
        rdt.s.out.seen |= SENSOR_STATUS_LOST


cdef void rdt_read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Rdt *rdt = <Rdt *>self
    cdef RdtState *s = &rdt.s
    cdef int64_t now = io_now_ns()
    cdef int64_t lost_before = s.out.lost_total
    cdef int i

    # A recovery restarts a stream that was no longer believed.
    if sample.safety_state == SAFETY_STATE_RECOVERING and s.out.record_total and (
            now - s.out.received_ns > rdt.p.no_data_ns or now - s.out.moved_ns > rdt.p.stale_ns):
        s.restart = 1

    # Read what came since the last tick; the newest word is still judged while nothing newer comes.
    begin_tick(&s.out)
    if rdt.p.fd >= 0:
        drain(rdt)
        now = io_now_ns()
    close_tick(rdt, lost_before)

    # Ages: silence of the wire, or records that bring nothing new.
    judge_ages(&s.out, rdt.p.fd < 0, rdt.p.no_data_ns, rdt.p.stale_ns, now)
    if s.busy and now - s.busy_since_ns > rdt.p.busy_hold_ns:
        s.out.seen |= SENSOR_STATUS_STALE

    # Counts and status go into the sample.
    for i in range(6):
        sample.wrench_raw[i] = s.counts[i]
    write_output(&s.out, rdt.p.fd >= 0, now, sample)


# A sensor takes nothing out.
cdef void rdt_write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


cdef class RdtPort(PortPart):
    """Reads an RDT force/torque sensor. Writes wrench_raw (counts), wrench_sequence, wrench_age_ns, wrench_lost_total,
    wrench_corrupt_total, wrench_status and wrench_device_status.

    After `open()`: `counts_per_newton`, `counts_per_newton_metre`, `rate_hz` (0 when the device does not tell), `force_unit`,
    `torque_unit`, `serial`, `calibration`, for the wrench stage and the log. `bias()` tares in the device. `counters()` for a report.

    Raises ValueError for a parameter that cannot be, ConnectionError (from `open`) when the sensor or its scaling is not there.
    """

    PARAMETERS = (
        Parameter("variant", "str", "-", "product family: decides the status word and the set-up page", "net_ft",
                  choices=("net_ft", "axia", "onrobot")),
        Parameter("address", "str", "-", "IPv4 address or name of the sensor"),
        Parameter("stream_port", "int", "-", "UDP port of the stream", 49152, 1, 65535),
        Parameter("scaling", "str", "-", "where the scaling is read: the XML page (http), the calibration info (tcp), or given here",
                  "http", choices=("http", "tcp", "given")),
        Parameter("http_port", "int", "-", "TCP port of the XML page", 80, 1, 65535),
        Parameter("calibration_port", "int", "-", "TCP port of the calibration info", 49151, 1, 65535),
        Parameter("counts_per_newton", "float", "1/N", "scaling = given: counts per newton", 1e6, 1e-6, 1e12),
        Parameter("counts_per_newton_metre", "float", "1/(N.m)", "scaling = given: counts per newton metre", 1e6, 1e-6, 1e12),
        Parameter("no_data_ms", "float", "ms", "a silence longer than this is no data", 5.0, 0.5, 10000.0),
        Parameter("stale_ms", "float", "ms", "a sample counter that stands still for longer is stale", 5.0, 0.5, 10000.0),
        Parameter("busy_hold_ms", "float", "ms", "a busy sensor's last value is held this long, then it is stale", 100.0, 1.0, 10000.0),
        Parameter("bias_at_open", "bool", "-", "tare in the device at open", False),
        Parameter("output_rate_hz", "float", "Hz", "onrobot: rate to ask for, 0 leaves it as it is", 0.0, 0.0, 1000.0),
        Parameter("filter_index", "int", "-", "onrobot: filter to ask for, 0 off ... 6 slowest, -1 leaves it as it is", -1, -1, 6),
        Parameter("filter_delay_s", "float", "s", "delay of the filter that is set in the device and of its electronics, for the ledger; "
                  "not given: 0 of an onrobot with filter_index = 0, else not known", None, 0.0, 1.0),
        Parameter("timeout_s", "float", "s", "time for every answer during open", 2.0, 0.05, 60.0),
        identity_of_sensor(SENSOR_SERIAL, SENSOR_CALIBRATION),
    )

    cdef Rdt rdt
    cdef object _socket
    cdef dict _given
    cdef readonly object scaling
    cdef readonly object measured_rate_hz   # of the sample counter, None before `measure`
    cdef object _measured_age               # s

    def __cinit__(self):
        memset(&self.rdt, 0, sizeof(Rdt))
        self.rdt.p.fd = -1

    def __init__(self, **parameters):
        given = checked(RdtPort.PARAMETERS, parameters)
        self._given = given
        checked_count(given["identity"], 1)
        if given["identity"] and self.not_asked:
            raise ValueError(f"identity: {self.not_asked}")
        self.rdt.p.no_data_ns = <int64_t>(given["no_data_ms"] * 1e6)
        self.rdt.p.stale_ns = <int64_t>(given["stale_ms"] * 1e6)
        self.rdt.p.busy_hold_ns = <int64_t>(given["busy_hold_ms"] * 1e6)
        for i, mask in enumerate(rdt_status.masks(given["variant"])):
            self.rdt.p.mask_of_bit[i] = mask
        self.plug.self = &self.rdt
        self.plug.state = &self.rdt.s
        self.plug.state_size = sizeof(RdtState)
        self.plug.read = rdt_read
        self.plug.write = rdt_write

    @property
    def counts_per_newton(self):
        return self._opened().counts_per_newton

    @property
    def counts_per_newton_metre(self):
        return self._opened().counts_per_newton_metre

    @property
    def sensor_scale(self):
        """Counts per N and N.m of the six channels."""
        return [self.counts_per_newton] * 3 + [self.counts_per_newton_metre] * 3

    @property
    def delays(self):
        """What this port adds to the delay ledger: the device's filter as given (0 where it is not), and the age of its newest record at a
        tick: measured by `measure`, before that half a period of its stream."""
        rate = self.rate_hz
        age = self._measured_age if self._measured_age is not None else (0.5 / rate if rate > 0 else 0.0)
        return {"sensor_delay_s": self._given["filter_delay_s"] or 0.0, "sensor_age_s": age}

    @property
    def delay_origins(self):
        return {"sensor_age_s": "derived" if self._measured_age is None else "measured",
                "sensor_delay_s": "derived" if self._given["filter_delay_s"] is None else "configured"}

    @staticmethod
    def own_delay_s(keys):
        """Delay of the device's own filter as it follows from `keys` of the stand file, s: 0 where it is switched off; None: of the others
        only the cut-off is published, not the order."""
        return 0.0 if keys.get("variant") == "onrobot" and keys.get("filter_index") == 0 else None

    def measure(self, reads=250):
        """Measures on the open stream how old the newest record is when it is read, median over reads that have no fixed phase to the
        sensor's clock (however long a machine is held up between two of them), and `measured_rate_hz` by the sensor's own sample counter.
        Returns the age, s. Raises ConnectionError when it is over `no_data_ms`."""
        s = &self.rdt.s
        drain(&self.rdt)
        first, since = s.ft_sequence, s.out.received_ns
        ages = []
        while len(ages) < reads:
            time.sleep(5e-4 * (1.0 + (0.618034 * len(ages)) % 1.0))
            drain(&self.rdt)
            ages.append(io_now_ns() - s.out.received_ns)
        if s.out.received_ns > since and s.ft_sequence != first:
            self.measured_rate_hz = <uint32_t>(s.ft_sequence - first) / (1e-9 * (s.out.received_ns - since))
            self._measured_age = median_age_s(ages, self.rdt.p.no_data_ns)
        return self._measured_age

    @property
    def rate_hz(self):
        return self._opened().rate_hz

    @property
    def force_unit(self):
        return self._opened().force_unit

    @property
    def torque_unit(self):
        return self._opened().torque_unit

    @property
    def serial(self):
        return self._opened().serial

    @property
    def calibration(self):
        return self._opened().calibration

    @property
    def identities(self):
        """Serial number and calibration of the sensor, after `open`."""
        return [] if self.not_asked else [{"serial": self.serial, "calibration": self.calibration}]

    @property
    def not_asked(self):
        """Why the sensor does not say who it is; empty when it does."""
        scaling = self._given["scaling"]
        return "" if scaling == "http" else f'only its XML page has serial number and calibration (scaling = "http", it is "{scaling}")'

    def _opened(self):
        if self.scaling is None:
            raise ValueError("the sensor's scaling is known after open()")
        return self.scaling

    def open(self):
        """Reads the scaling, starts the stream and waits for its first record."""
        self.close()
        given = self._given
        self.scaling = self._read_scaling()
        if not self.not_asked:
            compare(f"force sensor at {given['address']}", 0, self.identities[0], given["identity"])
        try:
            self._socket = _connected(given["address"], given["stream_port"])
            if given["variant"] == "onrobot":
                if given["filter_index"] >= 0:
                    self._request(COMMAND_SET_FILTER, given["filter_index"])
                if given["output_rate_hz"] > 0:
                    self._request(COMMAND_SET_PERIOD, max(1, round(1000 / given["output_rate_hz"])))
            if given["bias_at_open"]:
                self.bias()
            memset(&self.rdt.s, 0, sizeof(RdtState))
            self._request(COMMAND_START_STREAM, 0)
            self._await_record()
        except OSError as error:
            self.close()
            raise ConnectionError(f"no RDT stream from the force sensor at {given['address']}:{given['stream_port']}: {error}") from error
        self.rdt.s.out.opened_ns = io_now_ns()
        self.rdt.p.fd = self._socket.fileno()

    def begin(self):
        """What piled up before the loop is read and forgotten; the counters start at zero, the newest record and its sequence stay.

        What a full buffer had no room for shows only with the next record: that one leaves none missing."""
        s = &self.rdt.s
        if self.rdt.p.fd < 0:
            return
        for _ in range(BACKLOG_TURNS):
            seen = s.out.record_total + s.out.corrupt_total + s.repeated_total + s.late_total
            drain(&self.rdt)
            if seen == s.out.record_total + s.out.corrupt_total + s.repeated_total + s.late_total:
                break
        s.out.lost_total = s.out.corrupt_total = s.repeated_total = s.late_total = 0
        s.missing = s.missing_before = 0
        s.begun = 1
        s.out.record_total = s.out.record_total > 0
        s.out.opened_ns = io_now_ns()

    def recover(self, left_s):
        """Called beside the loop while it recovers: a sensor that is silent (it restarted, another client took the stream) is asked for its
        stream again. Raises ConnectionError when the request cannot be sent."""
        if self.rdt.p.fd >= 0 and io_now_ns() - self.rdt.s.out.heard_ns > self.rdt.p.no_data_ns:
            try:
                self._request(COMMAND_START_STREAM, 0)
            except OSError as error:
                raise ConnectionError(f"no RDT stream from the force sensor at {self._given['address']}: {error}") from error

    def feed(self, datagrams, at_ns=0):
        """Takes `datagrams` (bytes each) as one tick that reads at `at_ns`. Returns the records whose values were used, each with the bits
        of its own status word, and the bits of the tick."""
        s = &self.rdt.s
        cdef bytes datagram
        cdef const uint8_t *data
        cdef int start, piece
        lost_before = s.out.lost_total
        begin_tick(&s.out)
        records = []
        for datagram in datagrams:
            data = datagram
            # record by record, so that each is seen
            piece = RECORD if len(datagram) and len(datagram) % RECORD == 0 else max(1, len(datagram))
            for start in range(0, max(1, len(datagram)), piece):
                before = s.out.record_total
                take_datagram(&self.rdt, data + start, min(piece, len(datagram)), at_ns)
                if s.out.record_total > before and not s.busy:
                    records.append((tuple(s.counts), translate_status(&self.rdt.p, s.device_status)))
        close_tick(&self.rdt, lost_before)
        return records, s.out.seen

    def _read_scaling(self):
        given = self._given
        try:
            if given["scaling"] == "http":
                return rdt_scaling.read_page(given["address"], given["http_port"], given["variant"], given["timeout_s"])
            if given["scaling"] == "tcp":
                return rdt_scaling.read_calibration(given["address"], given["calibration_port"], given["timeout_s"])
        except ValueError as error:
            raise ConnectionError(f"the force sensor at {given['address']} does not tell its scaling: {error}") from error
        return rdt_scaling.scaling_from(given["counts_per_newton"], given["counts_per_newton_metre"], "N", "Nm")

    def _request(self, command, count):
        self._socket.send(struct.pack(">HHI", REQUEST_HEADER, command, count))

    def _await_record(self):
        end = time.monotonic() + self._given["timeout_s"]
        while time.monotonic() < end:
            ready, _, _ = select.select([self._socket], [], [], max(0.0, end - time.monotonic()))
            if ready and len(self._socket.recv(2048, socket.MSG_PEEK)) >= RECORD:
                return
            if ready:
                self._socket.recv(2048)
        raise TimeoutError(f"no record within {self._given['timeout_s']} s")

    def bias(self):
        """Tares in the device (software bias). There is no reply: the data show it."""
        if self._socket is None:
            raise ValueError("bias needs an open sensor")
        self._request(COMMAND_BIAS, 0xFF if self._given["variant"] == "onrobot" else 0)

    def close(self):
        self.rdt.p.fd = -1
        if self._socket is not None:
            try:
                self._request(COMMAND_STOP_STREAM, 0)
            except OSError:
                pass    # the sensor is gone: nothing left to stop
            self._socket.close()
            self._socket = None

    def counters(self):
        """Since the loop began: new records, lost ones, late ones (overtaken, they filled their gap), repeated ones (duplicates, and old
        ones that were not missing), damaged datagrams."""
        return {
            "records": self.rdt.s.out.record_total,
            "lost": self.rdt.s.out.lost_total,
            "late": self.rdt.s.late_total,
            "repeated": self.rdt.s.repeated_total,
            "corrupt": self.rdt.s.out.corrupt_total,
        }


def _connected(address, port):
    """A connected non-blocking UDP socket with kernel receive stamps and room for a stalled loop."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        link.setblocking(False)
        link.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_TIMESTAMPNS", 35), 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        link.connect((address, port))
    except OSError:
        link.close()
        raise
    return link
