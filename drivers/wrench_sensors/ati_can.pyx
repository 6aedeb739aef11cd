"""Force/torque sensor ATI F/T OEM (NETCANOEM) or SCHUNK FTC on CAN: six gauges, asked for once in a tick.

Wire: 11-bit identifiers `base << 4 | opcode`, requests and replies alike, values big-endian. A request 0x0 without data is answered by two
frames: 0x0 `status u16, G0, G2, G4 i16` and 0x1 `G1, G3, G5 i16` (ATI 9610-05-1030). The host applies the calibration matrix, that is read
from the sensor at open with its counts per unit: wrench [counts] = M G.

The request leaves at the end of a tick, so the sample is less than a period old in the next one. It costs 250 ... 306 bit times: 25 ... 31
% of a bus at 1 Mbit/s and 1 kHz.

Pairs: nothing in the two frames says that they belong together. So there is one request at a time: the first half must be followed by the
second one within `pair_ms` (kernel receive stamps), and whatever else comes ends the pair (`corrupt`). A request that is not answered
within `answer_ticks` is lost, and asked again. Its answer may still come, and half of it may pair with half of a later one: for 6 ms
after a lost request no sample is believed, the last one stands (`warning`). Nor is there a sample counter: values that do not move at
all are `stale` (`stale_ms`). The CAN controller refuses a frame whose checksum is wrong; a pair that moved by more than `jump_share` of
the range is not believed until the next one agrees (record_check.pxd).

Status: both supply bits are `supply`, both temperature bits `temperature`, a bus error that the sensor saw is a `warning`, anything else
is a `device_fault`; a gauge at its full count is `saturated`. The bus itself: errors and lost frames are `corrupt`, error-passive is a
`warning`, bus-off is `no_data` until the controller restarted.
"""

import contextlib
import struct
import zlib

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from drivers.raw_frames.bus_errors cimport judge_error_frame
from drivers.raw_frames.frame_io cimport (CAN_ERR_FLAG, IO_BATCH, can_frame, io_load_be16, io_now_ns, io_receive_datagrams,
                                          io_send_frames)
from drivers.wrench_sensors.record_check cimport (RECORD_FIRST, RECORD_TAKEN, CheckParams, CheckState, Reading, judge_record)
from drivers.wrench_sensors.sensor_output cimport SensorOutput, begin_tick, judge_ages, judge_status, median_age_s, write_output
from rt_kernels.codes cimport (SENSOR_STATUS_CORRUPT, SENSOR_STATUS_DEVICE_FAULT, SENSOR_STATUS_LOST, SENSOR_STATUS_OUT_OF_RANGE,
                               SENSOR_STATUS_SATURATED, SENSOR_STATUS_SUPPLY, SENSOR_STATUS_TEMPERATURE, SENSOR_STATUS_WARNING)
from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from drivers.identity import SENSOR_CALIBRATION, SENSOR_SERIAL, WrongDeviceError, checked_count, compare, identity_of_sensor
from drivers.raw_frames.can_library import can
from drivers.raw_frames.can_link import FrameBus, open_link
from drivers.wrench_sensors.rdt_scaling import FORCE_CODES, TORQUE_CODES, newton_metres_per_unit, newtons_per_unit
from rt_kernels.parameters import Parameter, checked
from rt_kernels.doors import socket, time

cdef enum:
    FRAME = 16              # bytes of a struct can_frame
    MOST_ROUNDS = 8
    BACKLOG_TURNS = 64
    FIRST_HALF = 0x0
    SECOND_HALF = 0x1
    IDLE = 0                # nothing was asked
    ASKED = 1
    HALF = 2                # the first half is here
    WATCHDOG_BIT = 1 << 0
    SUPPLY_BITS = 1 << 4 | 1 << 5
    TEMPERATURE_BITS = 1 << 11 | 1 << 12
    BUS_BIT = 1 << 14
    DOUBT_NS = 6000000      # after a lost request its answer may still come
    SUMMARY_BIT = 1 << 15   # says nothing of its own beside another bit

READ_GAUGES, READ_MATRIX, READ_SERIAL, SET_CALIBRATION, READ_COUNTS = 0x0, 0x2, 0x5, 0x6, 0x7
READ_UNITS, RESET, READ_FIRMWARE = 0x8, 0xC, 0xF


cdef struct AtiParams:
    int fd                  # -1 when closed
    uint32_t base           # identifier of opcode 0
    double matrix[36]       # gauges to counts of force and moment, by rows
    double limit[6]         # range, counts
    CheckParams check
    int64_t no_data_ns
    int64_t stale_ns
    int64_t pair_ns
    int32_t answer_ticks


cdef struct AtiState:
    SensorOutput out        # sequence: number of the request that the newest believed pair answered
    CheckState check
    int32_t phase
    int32_t waited          # ticks since the request
    int32_t bus_off
    int16_t gauges[6]
    uint32_t word           # status of the pair that is coming
    int64_t half_ns         # arrival of the first half
    int64_t doubt_ns        # pairs until then may be of two requests
    int64_t request_total
    int64_t suspect_total
    int64_t doubted_total   # whole pairs after a lost request


cdef struct Ati:
    AtiParams p
    AtiState s
    uint8_t buffer[IO_BATCH * FRAME]


# --------------------------------------------------------------------------------------------------------------------------- status


cdef inline uint32_t status_of(uint32_t word) noexcept nogil:
    cdef uint32_t found = 0
    if word & SUPPLY_BITS:
        found |= SENSOR_STATUS_SUPPLY
    if word & TEMPERATURE_BITS:
        found |= SENSOR_STATUS_TEMPERATURE
    if word & BUS_BIT:
        found |= SENSOR_STATUS_WARNING
    if word & ~<uint32_t>(SUPPLY_BITS | TEMPERATURE_BITS | BUS_BIT | SUMMARY_BIT) or word and not found:
        found |= SENSOR_STATUS_DEVICE_FAULT
    return found


cdef inline void count_damage(AtiState *s) noexcept nogil:
    s.out.corrupt_total += 1
    s.out.seen |= SENSOR_STATUS_CORRUPT


# The request that is under way will not be answered any more.
cdef inline void lose_request(AtiState *s, int64_t now) noexcept nogil:
    if s.phase != IDLE:
        s.phase = IDLE
        s.doubt_ns = now + DOUBT_NS
        s.out.lost_total += 1
        s.out.seen |= SENSOR_STATUS_LOST


# --------------------------------------------------------------------------------------------------------------------------- frames


# Both halves are here: gauges to counts, and whether they are believed.
cdef void take_pair(Ati *ati, int64_t arrived_ns) noexcept nogil:
    cdef AtiState *s = &ati.s
    cdef Reading r, before
    cdef int64_t steps
    cdef int i, k, verdict, moved
    r.stamp = 0
    r.word = s.word
    r.found = status_of(s.word)
    for i in range(6):
        r.values[i] = 0.0
        for k in range(6):
            r.values[i] += ati.p.matrix[6 * i + k] * s.gauges[k]
        if not -ati.p.limit[i] <= r.values[i] <= ati.p.limit[i]:
            r.found |= SENSOR_STATUS_OUT_OF_RANGE
        if s.gauges[i] == 32767 or s.gauges[i] == -32768:
            r.found |= SENSOR_STATUS_SATURATED
    s.phase = IDLE

    # Its own status is reported whether it is believed or not.
    judge_status(&s.out, r.found, r.word)
    if arrived_ns < s.doubt_ns:
        s.out.seen |= SENSOR_STATUS_WARNING
        s.doubted_total += 1
        # not believed, but the next one may agree with it
        s.check.suspect = r
        s.check.have_suspect = 1
        return
    before = s.check.last
    verdict = judge_record(&ati.p.check, &s.check, &r, &steps)
    if verdict == RECORD_FIRST:
        return
    if verdict != RECORD_TAKEN:
        s.suspect_total += 1
        count_damage(s)
        return
    moved = s.out.record_total == 0
    for i in range(6):
        moved |= r.values[i] != before.values[i]
    if moved:
        s.out.moved_ns = arrived_ns
    s.out.received_ns = arrived_ns
    s.out.sequence = s.request_total
    s.out.record_total += 1


# One frame that arrived at `arrived_ns`.
cdef void take_frame(Ati *ati, const can_frame *f, int64_t arrived_ns) noexcept nogil:
    cdef AtiState *s = &ati.s
    cdef uint32_t opcode = f.can_id & 0xF
    cdef uint32_t found
    cdef int i
    if f.can_id & CAN_ERR_FLAG:
        found = judge_error_frame(f, &s.bus_off)
        s.out.seen |= found
        s.out.corrupt_total += found & SENSOR_STATUS_CORRUPT != 0
        return
    # other devices, other kinds of frame (flags above the identifier), other opcodes, requests of somebody else
    if f.can_id & ~<uint32_t>0xF != ati.p.base or opcode > SECOND_HALF or f.can_dlc == 0:
        return
    s.bus_off = 0
    s.out.heard_ns = arrived_ns
    if opcode == FIRST_HALF and f.can_dlc == 8 and s.phase == ASKED:
        s.word = io_load_be16(f.data)
        for i in range(3):
            s.gauges[2 * i] = <int16_t>io_load_be16(f.data + 2 + 2 * i)
        s.phase = HALF
        s.half_ns = arrived_ns
    elif opcode == SECOND_HALF and f.can_dlc == 6 and s.phase == HALF and arrived_ns - s.half_ns <= ati.p.pair_ns:
        for i in range(3):
            s.gauges[2 * i + 1] = <int16_t>io_load_be16(f.data + 2 * i)
        take_pair(ati, arrived_ns)
    else:
        # an unexpected half, or of a wrong length: it ends the pair that had begun
        count_damage(s)
        if s.phase == HALF or opcode == FIRST_HALF:
            lose_request(s, arrived_ns)


# Everything that waits, but not more than MOST_ROUNDS batches.
cdef int drain(Ati *ati) noexcept nogil:
    cdef int length[IO_BATCH]
    cdef int64_t came[IO_BATCH]
    cdef int i, got, error, taken = 0
    for _ in range(MOST_ROUNDS):
        got = io_receive_datagrams(ati.p.fd, ati.buffer, FRAME, IO_BATCH, length, came, &error)
        for i in range(got):
            if length[i] != FRAME or (<const can_frame *>(ati.buffer + i * FRAME)).can_dlc > 8:
                count_damage(&ati.s)
                continue
            # The wall-clock stamp of the kernel may jump: never before the previous frame.
            take_frame(ati, <const can_frame *>(ati.buffer + i * FRAME), max(came[i], ati.s.out.heard_ns))
        taken += got
        if got < IO_BATCH:
            break
    return taken


# The end of a tick's reading: a request that has waited too long is lost.
cdef inline void close_tick(AtiParams *p, AtiState *s, int64_t now) noexcept nogil:
    if s.phase != IDLE:
        s.waited += 1
        if s.waited >= p.answer_ticks:
            lose_request(s, now)


# Whether a request leaves now, and that it did.
cdef inline int ask(AtiState *s) noexcept nogil:
    if s.phase != IDLE:
        return 0
    s.phase = ASKED
    s.waited = 0
    s.request_total += 1
    return 1


cdef void ati_read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Ati *ati = <Ati *>self
    cdef AtiState *s = &ati.s
    cdef int64_t now = io_now_ns()
    cdef int i

    # Read what came since the last tick; the newest word is still judged while nothing newer comes.
    begin_tick(&s.out)
    if ati.p.fd >= 0:
        drain(ati)
        close_tick(&ati.p, s, now)
        now = io_now_ns()
    if s.check.have_last:
        judge_status(&s.out, s.check.last.found, s.check.last.word)

    judge_ages(&s.out, ati.p.fd < 0 or s.bus_off, ati.p.no_data_ns, ati.p.stale_ns, now)
    for i in range(6):
        sample.wrench_raw[i] = s.check.last.values[i]
    write_output(&s.out, ati.p.fd >= 0, now, sample)


# The request of the next sample. One that the controller does not take is lost.
cdef void send_request(Ati *ati) noexcept nogil:
    cdef can_frame request
    cdef int error = 0
    if not ask(&ati.s):
        return
    memset(&request, 0, sizeof(can_frame))
    request.can_id = ati.p.base | FIRST_HALF
    if io_send_frames(ati.p.fd, &request, 1, NULL, &error) != 1:
        lose_request(&ati.s, io_now_ns())


cdef void ati_write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Ati *ati = <Ati *>self
    if ati.p.fd >= 0:
        send_request(ati)


cdef class AtiCanPort(PortPart):
    """Reads an ATI or SCHUNK sensor on CAN. Writes wrench_raw (counts), wrench_sequence, wrench_age_ns, wrench_lost_total,
    wrench_corrupt_total, wrench_status and wrench_device_status.

    After `open()`: `counts_per_newton`, `counts_per_newton_metre`, `force_unit`, `torque_unit`, `serial`, `firmware`, `matrix`.

    Raises ValueError for a parameter that cannot be, ConnectionError (from `open`) when the sensor does not answer or says what cannot be.
    """

    PARAMETERS = (
        Parameter("link", "str", "-", "CAN link: interface (can0), udp:127.0.0.1:PORT, or fd:N"),
        Parameter("base_identifier", "int", "-", "upper seven bits of the sensor's identifiers; SCHUNK FTC: 32", 0x7F, 0, 0x7F),
        Parameter("calibration_index", "int", "-", "calibration to make active at open, -1 leaves it as it is", -1, -1, 15),
        Parameter("force_range_n", "floats", "N", "range of Fx, Fy, Fz of the calibration", low=0.1, high=1e6, shape=3),
        Parameter("moment_range_n_m", "floats", "N.m", "range of Mx, My, Mz of the calibration", low=0.01, high=1e5, shape=3),
        Parameter("jump_share", "float", "-", "a channel that moves by more than this share of its range from sample to sample is not "
                  "believed", 0.25, 0.001, 2.0),
        Parameter("pair_ms", "float", "ms", "the second half of a sample comes at most so long after the first one", 2.0, 0.1, 100.0),
        Parameter("answer_ticks", "int", "ticks", "a request that is not answered for so long is lost", 3, 1, 100),
        Parameter("no_data_ms", "float", "ms", "a silence longer than this is no data", 5.0, 0.5, 10000.0),
        Parameter("stale_ms", "float", "ms", "gauges that do not move at all for longer are stale; 0: not judged", 1000.0, 0.0, 60000.0),
        Parameter("filter_delay_s", "float", "s", "delay of the sensor's filter and electronics, for the ledger; not given: not "
                  "known", None, 0.0, 1.0),
        Parameter("timeout_s", "float", "s", "time for every answer during open", 1.0, 0.05, 60.0),
        identity_of_sensor(SENSOR_SERIAL, SENSOR_CALIBRATION),
    )

    cdef Ati ati
    cdef object _socket
    cdef dict _given
    cdef readonly object counts_per_newton, counts_per_newton_metre     # after open()
    cdef readonly object force_unit, torque_unit, serial, firmware, matrix
    cdef readonly list identities   # serial number, checksum of matrix and counts
    cdef object _measured_age       # s

    def __cinit__(self):
        memset(&self.ati, 0, sizeof(Ati))
        self.ati.p.fd = -1

    def __init__(self, **parameters):
        given = checked(AtiCanPort.PARAMETERS, parameters)
        self._given = given
        checked_count(given["identity"], 1)
        self.identities = []
        p = &self.ati.p
        p.base = given["base_identifier"] << 4
        p.no_data_ns = <int64_t>(given["no_data_ms"] * 1e6)
        p.stale_ns = <int64_t>(given["stale_ms"] * 1e6)
        p.pair_ns = <int64_t>(given["pair_ms"] * 1e6)
        p.answer_ticks = given["answer_ticks"]
        self.calibrate([[float(i == k) for k in range(6)] for i in range(6)], 1.0, 1.0)
        self.plug.self = &self.ati
        self.plug.state = &self.ati.s
        self.plug.state_size = sizeof(AtiState)
        self.plug.read = ati_read
        self.plug.write = ati_write

    def calibrate(self, matrix, counts_per_newton, counts_per_newton_metre):
        """Takes a calibration: `matrix` (6, 6) from gauges to counts, and counts per N and per N.m. `open` reads them from the sensor."""
        given = self._given
        ranges = [*given["force_range_n"], *given["moment_range_n_m"]]
        self.matrix = [list(row) for row in matrix]
        self.counts_per_newton, self.counts_per_newton_metre = counts_per_newton, counts_per_newton_metre
        for i in range(6):
            limit = ranges[i] * self.sensor_scale[i]
            self.ati.p.limit[i] = limit
            self.ati.p.check.jump[i] = given["jump_share"] * limit
            for k in range(6):
                self.ati.p.matrix[6 * i + k] = matrix[i][k]

    @property
    def sensor_scale(self):
        """Counts per N and N.m of the six channels."""
        return [self.counts_per_newton] * 3 + [self.counts_per_newton_metre] * 3

    @property
    def delays(self):
        """What this port adds to the delay ledger: the sensor's filter as given (0 where it is not), and the age of its newest sample at
        a tick, once it is measured."""
        return {"sensor_delay_s": self._given["filter_delay_s"] or 0.0, "sensor_age_s": self._measured_age or 0.0}

    @property
    def delay_origins(self):
        return {"sensor_age_s": "derived" if self._measured_age is None else "measured"}

    def measure(self, requests=200, period_s=1e-3):
        """Asks in the loop's rhythm for a while: how old a sample is at the tick after its request, median. Returns it, s. Raises
        ConnectionError when it is over `no_data_ms`."""
        ages = []
        for _ in range(requests):
            send_request(&self.ati)
            time.sleep(period_s)
            seen = self.ati.s.out.record_total
            drain(&self.ati)
            close_tick(&self.ati.p, &self.ati.s, io_now_ns())
            if self.ati.s.out.record_total > seen:
                ages.append(io_now_ns() - self.ati.s.out.received_ns)
        if ages:
            self._measured_age = median_age_s(ages, self.ati.p.no_data_ns)
        return self._measured_age

    # ------------------------------------------------------------------------------------------------------------------------ set-up

    def open(self):
        """Reads who the sensor is, its matrix and its scale, and the first samples."""
        self.close()
        given = self._given
        self._socket = open_link(given["link"])
        try:
            self._set_up(FrameBus(self._socket, given["link"]))
            with contextlib.suppress(OSError):      # not every transport has stamps; a frame then arrived when it was read
                self._socket.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_TIMESTAMPNS", 35), 1)
            memset(&self.ati.s, 0, sizeof(AtiState))
            self.ati.p.fd = self._socket.fileno()
            self._await_samples()
        except WrongDeviceError:
            self.close()
            raise
        except (OSError, ValueError, can.CanError) as error:
            self.close()
            raise ConnectionError(f"no force sensor with base identifier {given['base_identifier']} on {given['link']}: {error}") from error
        self.ati.s.out.opened_ns = io_now_ns()

    def _set_up(self, bus):
        given = self._given
        try:
            self.serial = self._asked(bus, READ_SERIAL, b"", (READ_SERIAL,), 0)[0].decode("ascii", "replace").strip("\0 ")
            self._clear_watchdog(bus)
            major, minor, build = struct.unpack(">BBH", self._asked(bus, READ_FIRMWARE, b"", (READ_FIRMWARE,), 4)[0])
            self.firmware = f"{major}.{minor}.{build}"
            if given["calibration_index"] >= 0:
                index = bytes([given["calibration_index"]])
                active, = self._asked(bus, SET_CALIBRATION, index, (SET_CALIBRATION,), 1)
                if active != index:
                    raise ValueError(f"calibration {given['calibration_index']} cannot be made active, {active[0]} is")
            force, torque = struct.unpack(">II", self._asked(bus, READ_COUNTS, b"", (READ_COUNTS,), 8)[0])
            units = self._asked(bus, READ_UNITS, b"", (READ_UNITS,), 2)[0]
            matrix = [
                [x for half in self._asked(bus, READ_MATRIX, bytes([row]), (0x2, 0x3, 0x4), 8) for x in struct.unpack(">2f", half)]
                for row in range(6)
            ]
        finally:
            bus.shutdown()
        if units[0] not in FORCE_CODES or units[1] not in TORQUE_CODES:
            raise ValueError(f"unit codes {units[0]} (force) and {units[1]} (torque) are unknown")
        if not force or not torque:
            raise ValueError(f"{force} counts per force, {torque} per torque: a scale is above zero")
        if not all(abs(x) < 1e12 for row in matrix for x in row) or not all(any(row) for row in matrix):
            raise ValueError(f"its calibration matrix {matrix} cannot be")
        self.force_unit, self.torque_unit = FORCE_CODES[units[0]], TORQUE_CODES[units[1]]
        held = struct.pack(">36f2I2B", *(x for row in matrix for x in row), force, torque, *units)
        self.identities = [{"serial": self.serial, "calibration": f"crc32 {zlib.crc32(held):08X}"}]
        compare(f"force sensor on {given['link']}", 0, self.identities[0], given["identity"])
        self.calibrate(matrix, force / newtons_per_unit(self.force_unit), torque / newton_metres_per_unit(self.torque_unit))

    def _clear_watchdog(self, bus):
        """A sensor that restarted by itself (brown-out, watchdog) says so until it is reset: it is, and answers again."""
        first, _ = self._asked(bus, READ_GAUGES, b"", (FIRST_HALF, SECOND_HALF), 6)
        if not first[1] & WATCHDOG_BIT:
            return
        bus.send(can.Message(arbitration_id=self.ati.p.base | RESET, is_extended_id=False))
        end = time.monotonic() + self._given["timeout_s"]
        while True:
            try:
                self._asked(bus, READ_SERIAL, b"", (READ_SERIAL,), 0, 0.05)
                return
            except TimeoutError:
                if time.monotonic() >= end:
                    raise

    def _asked(self, bus, opcode, data, replies, fewest, patience_s=None):
        """Sends a request; the data of its replies, each of at least `fewest` bytes. Raises TimeoutError."""
        patience_s = self._given["timeout_s"] if patience_s is None else patience_s
        base = self.ati.p.base
        bus.send(can.Message(arbitration_id=base | opcode, data=data, is_extended_id=False))
        found = {}
        end = time.monotonic() + patience_s
        while len(found) < len(replies):
            message = bus.recv(max(0.0, end - time.monotonic()))
            if message is None and time.monotonic() >= end:
                raise TimeoutError(f"opcode 0x{opcode:X} is not answered within {patience_s} s")
            if message is None or message.is_extended_id or message.is_remote_frame or message.arbitration_id & ~0xF != base:
                continue
            if message.arbitration_id & 0xF in replies and len(message.data) >= max(1, fewest):
                found[message.arbitration_id & 0xF] = bytes(message.data)
        return [found[reply] for reply in replies]

    def _await_samples(self):
        end = time.monotonic() + self._given["timeout_s"]
        while not self.ati.s.out.record_total:
            if time.monotonic() > end:
                raise TimeoutError(f"no two samples of its gauges within {self._given['timeout_s']} s")
            send_request(&self.ati)
            time.sleep(0.001)
            drain(&self.ati)
            close_tick(&self.ati.p, &self.ati.s, io_now_ns())

    def begin(self):
        """What piled up before the loop is read and forgotten, the newest sample stays, the counters start at zero; asks for the first
        one."""
        s = &self.ati.s
        if self.ati.p.fd < 0:
            return
        for _ in range(BACKLOG_TURNS):
            if drain(&self.ati) == 0:
                break
        s.phase = IDLE
        s.request_total = s.out.sequence = s.out.lost_total = s.out.corrupt_total = s.suspect_total = s.doubted_total = 0
        s.out.record_total = s.out.record_total > 0
        s.out.opened_ns = io_now_ns()
        send_request(&self.ati)

    def close(self):
        self.ati.p.fd = -1
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # ------------------------------------------------------------------------------------------------------------------------ tests

    def ask(self):
        """As the end of a tick, without sending: whether a request leaves."""
        return bool(ask(&self.ati.s))

    def feed(self, data, at_ns=0):
        """Takes whole frames (`struct can_frame`, 16 bytes each) as one tick that reads at `at_ns`. Returns the believed samples, each with
        its own bits of sensor_status, and the bits of the tick."""
        s = &self.ati.s
        begin_tick(&s.out)
        records = []
        cdef const uint8_t[:] view = data
        cdef int start
        for start in range(0, len(view), FRAME):
            if len(view) - start < FRAME or view[start + 4] > 8:
                count_damage(s)
                continue
            before = s.out.record_total
            take_frame(&self.ati, <const can_frame *>&view[start], at_ns)
            if s.out.record_total > before:
                records.append((tuple(s.check.last.values), s.check.last.found))
        close_tick(&self.ati.p, s, at_ns)
        return records, s.out.seen

    def counters(self):
        """Since the loop began: believed samples, lost requests, damage (unexpected frames, bus errors), samples that were not
        believed (they are in the damage), whole ones that were not believed after a lost request."""
        s = &self.ati.s
        return {"records": s.out.record_total, "lost": s.out.lost_total, "corrupt": s.out.corrupt_total, "suspect": s.suspect_total,
                "doubted": s.doubted_total}
