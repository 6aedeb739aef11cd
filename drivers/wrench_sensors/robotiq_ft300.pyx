"""Force/torque sensor Robotiq FT 300 or FT 300-S on RS-485: Modbus RTU for the set-up, then its own stream.

Stream (little-endian), 16 bytes, 100 times a second at 19200 bit/s, 8N1:

    0   u16    header 20 4E
    2   i16 x6 Fx Fy Fz [N/100], Mx My Mz [N.m/1000]
    14  u16    CRC-16/Modbus over bytes 0 ... 13

Source: Robotiq FT 300 instruction manual. Set-up by Modbus RTU, slave 9: what streams is stopped by half a second of FF; registers 510 ...
513 are the serial number (three letters, and 32 bits with the low word first); 0x0200 written to register 410 (function 16) starts the
stream. Two requests outside the loop: no Modbus library is asked for them.

The stream has neither stamp nor status. So a sensor that stands still is known by six values that do not move at all (`stale_ms`; a true
one has noise), lost records by their number in a second, and a full count is `saturated`. A record that is sent twice is two records. At
100 Hz and with 8 ms on the line this sensor watches; a loop that is closed over contact wants a faster one.
"""

import struct

from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t

from drivers.raw_frames.frame_io cimport io_load_le16
from drivers.wrench_sensors.record_check cimport Reading
from drivers.wrench_sensors.serial_stream cimport SerialSensor
from rt_kernels.codes cimport SENSOR_STATUS_SATURATED

from drivers.identity import SENSOR_SERIAL, checked_count, compare, identity_of_sensor
from drivers.wrench_sensors.serial_stream import LINE_PARAMETERS, checksum_of
from rt_kernels.parameters import Parameter, checked
from rt_kernels.doors import time

CRC_GENERATOR = 0xA001
COUNTS_PER_NEWTON, COUNTS_PER_NEWTON_METRE = 100, 1000
READ_REGISTERS, WRITE_REGISTERS, ERROR = 3, 16, 0x80
STREAM_REGISTER, STREAM_ON, SERIAL_REGISTER = 410, 0x0200, 510
STOP = b"\xff" * 50
FIRST_RECORDS = 10
WINDOW_S = 1.0
RATE_TOLERANCE = 0.2   # by arrivals through an adapter


cdef void decode(const uint8_t *record, Reading *r) noexcept nogil:
    cdef int16_t count
    cdef int i
    r.found = 0
    r.word = 0
    for i in range(6):
        count = <int16_t>io_load_le16(record + 2 + 2 * i)
        if count == 32767 or count == -32768:
            r.word |= <uint32_t>1 << i
            r.found |= SENSOR_STATUS_SATURATED
        r.values[i] = count / (100.0 if i < 3 else 1000.0)


cdef class RobotiqFt300Port(SerialSensor):
    """Reads a Robotiq FT 300. `wrench_device_status`: bit n is a full count of channel n. After `open()`: `serial`.

    Raises ValueError for a parameter that cannot be, ConnectionError (from `open`) when it does not answer or stream.
    """

    PARAMETERS = (
        *LINE_PARAMETERS,
        Parameter("baud", "int", "bit/s", "bit rate of the line", 19200, 1200, 4_000_000),
        Parameter("slave", "int", "-", "Modbus address of the sensor", 9, 1, 247),
        Parameter("configure", "bool", "-", "ask for serial number and stream at open; false: it streams", True),
        Parameter("stream_rate_hz", "float", "Hz", "rate of the stream, looked at while it runs; 0: not", 100.0, 0.0, 1000.0),
        Parameter("force_range_n", "floats", "N", "range of Fx, Fy, Fz", (300.0,) * 3, 1.0, 327.0, shape=3),
        Parameter("moment_range_n_m", "floats", "N.m", "range of Mx, My, Mz", (30.0,) * 3, 0.1, 32.7, shape=3),
        Parameter("no_data_ms", "float", "ms", "a silence longer than this is no data", 50.0, 0.5, 10000.0),
        Parameter("stale_ms", "float", "ms", "six values that do not move for longer are stale; 0: not judged", 1000.0, 0.0, 60000.0),
        identity_of_sensor(SENSOR_SERIAL),
    )

    cdef readonly object serial
    cdef readonly list identities       # after `open`: its serial number
    cdef readonly str not_asked         # why it does not say who it is

    def __init__(self, **parameters):
        given = checked(RobotiqFt300Port.PARAMETERS, parameters)
        self._given = given
        checked_count(given["identity"], 1)
        self.identities = []
        self.not_asked = "" if given["configure"] else "with configure = false it is asked nothing"
        if given["identity"] and self.not_asked:
            raise ValueError(f"identity: {self.not_asked}")
        self.prepare(decode)
        self._set_framing(header=b"\x20\x4e", record_length=16, crc_begin=0, generator=CRC_GENERATOR, invert=0, baud=given["baud"])
        self._set_limits([*given["force_range_n"], *given["moment_range_n_m"]], given["jump_share"])
        self.stream.p.no_data_ns = <int64_t>(given["no_data_ms"] * 1e6)
        self.stream.p.stale_ns = <int64_t>(given["stale_ms"] * 1e6)
        if given["stream_rate_hz"] > 0:
            self.stream.p.window_ns = <int64_t>(WINDOW_S * 1e9)
            self.stream.p.window_records = <int64_t>(WINDOW_S * given["stream_rate_hz"] + 0.5)

    @property
    def rate_hz(self):
        return self._given["stream_rate_hz"]

    def _set_up(self):
        """Asks for the serial number and the stream, if it is to. Raises TimeoutError, ConnectionError."""
        if self._given["configure"]:
            self._stop_stream()
            first, second, low, high = self._read(SERIAL_REGISTER, 4)
            number = high << 16 | low
            letters = bytes([first >> 8, first & 0xFF, second >> 8]).decode("ascii", "replace")
            self.serial = f"{letters}-{number:04d}" if number else "unknown"
            self.identities = [{"serial": self.serial}]
            compare(f"force sensor on {self._given['device']}", 0, self.identities[0], self._given["identity"])
            self._write(STREAM_REGISTER, STREAM_ON)

    def _await_stream(self):
        """The first records and their rate. Raises TimeoutError."""
        _, period_s = self._begin_stream(FIRST_RECORDS)
        expected = self._given["stream_rate_hz"]
        if expected > 0 and not abs(period_s * expected - 1.0) < RATE_TOLERANCE:
            raise TimeoutError(f"{1.0 / max(period_s, 1e-9):.0f} records/s, stream_rate_hz = {expected:.0f}")

    def _stop_stream(self):
        self._line.write(STOP)
        self._line.flush()
        time.sleep(10 * len(STOP) / self._given["baud"] + 0.05)
        self._line.reset_input_buffer()

    def _request(self, function, body, length):
        """One Modbus request and its reply's body. Raises TimeoutError without a reply, ConnectionError for one that cannot be."""
        frame = bytes([self._given["slave"], function]) + body
        self._line.write(frame + struct.pack("<H", checksum_of(frame, CRC_GENERATOR, 0)))
        self._line.timeout = self._answer_s()
        # an exception has 5 bytes: slave, function with the error bit, code, checksum
        reply = self._line.read(5)
        if len(reply) == 5 and not reply[1] & ERROR:
            reply += self._line.read(length - 1)
        end = len(reply) - 2
        if end < 3:
            raise TimeoutError(f"no Modbus answer from slave {self._given['slave']} within {self._line.timeout:.3g} s")
        if checksum_of(reply[:end], CRC_GENERATOR, 0) != int.from_bytes(reply[end:], "little"):
            raise ConnectionError(f"Modbus answer with a wrong checksum: {reply.hex(' ')}")
        if reply[0] != self._given["slave"] or reply[1] != function:
            raise ConnectionError(f"Modbus answer {reply.hex(' ')} to function {function}")
        return reply[2:end]

    def _read(self, first, count):
        body = self._request(READ_REGISTERS, struct.pack(">HH", first, count), 1 + 2 * count)
        return struct.unpack(f">{count}H", body[1:])

    def _write(self, register, value):
        self._request(WRITE_REGISTERS, struct.pack(">HHBH", register, 1, 2, value), 4)

    def close(self):
        """Stops the stream and lets go of the line."""
        self.stream.p.fd = -1
        if self._line is not None and self._line.is_open and self._given["configure"]:
            try:
                self._line.write(STOP)
                self._line.flush()
            except OSError:
                pass    # the line is gone: nothing left to stop
        SerialSensor.close(self)
