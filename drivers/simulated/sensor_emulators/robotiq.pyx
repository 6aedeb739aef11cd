"""A Robotiq FT 300 in software: Modbus RTU slave 9 on a serial line, and its stream.

Functions 3 (read holding registers) and 16 (write them): 180-182 force [N/100], 183-185 torque [N.m/1000], 190-192 acceleration [g/1000],
410 output (0x0200: stream), 500-502 firmware, 510-513 serial number, 514 year. A request with a wrong checksum or for another slave is
not answered, one for what is not there with an exception (1 function, 2 register, 3 value). A silence of three and a half characters ends
a request.

The stream: 16 bytes at 100 Hz: 0x20 0x4E, force and torque 6 x i16 little-endian in the registers' units, CRC-16/Modbus of the 14 bytes
before it. While it streams the sensor hears nothing but 0xFF: 50 of them in a row end the stream.

There is no counter and no status word: a faulty sensor repeats its last record (frozen), one at its range sends full scale.

Source: Robotiq FT 300 instruction manual and its published ROS driver. What they do not tell and is assumed here: after power-up it does
not stream.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from drivers.raw_frames.frame_io cimport io_load_be16, io_load_le16, io_store_be16, io_store_le16
from drivers.simulated.emulated_sensor cimport NEVER, EmulatedSensor, SensorWire
from drivers.simulated.sensor_emulators.serial_line cimport SerialLine, next_byte, put_message, put_record, reflected_crc16, set_line_rate

from drivers.simulated.emulated_sensor import ON_THE_NETWORK
from rt_kernels.parameters import Parameter, checked

cdef enum:
    ROBOTIQ_RECORD = 16
    ROBOTIQ_HEADER = 0x20
    ROBOTIQ_SLAVE = 9
    ROBOTIQ_MODBUS = 0xA001         # 0x8005 reflected
    ROBOTIQ_STREAM = 0x0200         # value of register 410
    ROBOTIQ_JAM = 50                # characters that end the stream
    ROBOTIQ_REQUEST = 272

    MODBUS_READ = 3
    MODBUS_WRITE = 16
    MODBUS_REFUSED = 0x80           # bit of the function in an exception
    MODBUS_NO_FUNCTION = 1
    MODBUS_NO_REGISTER = 2
    MODBUS_NO_VALUE = 3
    MODBUS_MOST_READ = 64           # registers in one answer: what a message holds


cdef struct Robotiq:
    SerialLine line
    int32_t booting
    int32_t streaming
    int64_t period_ns
    int64_t made
    int16_t counts[6]               # force [N/100] and torque [N.m/1000] as measured last
    int32_t output                  # register 410
    uint8_t request[ROBOTIQ_REQUEST]
    int32_t bytes
    int64_t heard_ns
    int32_t jam                     # 0xFF in a row


cdef inline int16_t robotiq_counts(double value, const SensorWire *w) noexcept nogil:
    if w.faults.status_word:
        return -32768 if value < 0.0 else 32767
    if not value > -32768.0:
        return -32768
    return 32767 if value > 32767.0 else <int16_t>(value + 0.5 if value >= 0.0 else value - 0.5)


# What it measures now.
cdef void robotiq_measure(Robotiq *r, const SensorWire *w) noexcept nogil:
    cdef int i
    if w.faults.frozen:
        return
    for i in range(6):
        r.counts[i] = robotiq_counts((100.0 if i < 3 else 1000.0) * w.F[i], w)


cdef void power_up(void *self, SensorWire *w) noexcept nogil:
    cdef Robotiq *r = <Robotiq *>self
    r.booting, r.streaming, r.output = 1, 0, 0
    w.record_ns = w.now + w.boot_ns
    r.bytes = r.jam = 0


# A register's value, -1 when there is none. Firmware FTS-2.1.0, serial number FTS-0001, year 2024.
cdef int robotiq_register(const Robotiq *r, int number) noexcept nogil:
    if 180 <= number <= 185:
        return <int>r.counts[number - 180] & 0xFFFF
    if 186 <= number <= 191:
        return 0
    if number == 192:
        return 1000
    if number == 410:
        return r.output
    if number == 500 or number == 510:
        return 0x4654
    if number == 501:
        return 0x5302
    if number == 502:
        return 0x0100
    if number == 511:
        return 0x5300
    if number == 512:
        return 1
    if number == 513:
        return 0
    if number == 514:
        return 2024
    return -1


cdef void robotiq_send(Robotiq *r, SensorWire *w, uint8_t *answer, int size) noexcept nogil:
    io_store_le16(answer + size, <unsigned short>reflected_crc16(answer, size, ROBOTIQ_MODBUS))
    if not w.faults.silent:
        put_message(&r.line, w, answer, size + 2, w.now)


cdef void robotiq_refuse(Robotiq *r, SensorWire *w, int function, int reason) noexcept nogil:
    cdef uint8_t answer[5]
    answer[0] = ROBOTIQ_SLAVE
    answer[1] = <uint8_t>(function | MODBUS_REFUSED)
    answer[2] = <uint8_t>reason
    robotiq_send(r, w, answer, 3)


# A whole request with a right checksum.
cdef void robotiq_answer(Robotiq *r, SensorWire *w) noexcept nogil:
    cdef uint8_t answer[5 + 2 * MODBUS_MOST_READ]
    cdef int function = r.request[1]
    cdef int first = io_load_be16(r.request + 2)
    cdef int count = io_load_be16(r.request + 4)
    cdef int i, value
    answer[0] = ROBOTIQ_SLAVE
    answer[1] = <uint8_t>function
    if function != MODBUS_READ and function != MODBUS_WRITE:
        robotiq_refuse(r, w, function, MODBUS_NO_FUNCTION)
    elif function == MODBUS_READ:
        if not 1 <= count <= MODBUS_MOST_READ:
            robotiq_refuse(r, w, function, MODBUS_NO_VALUE)
            return
        for i in range(count):
            value = robotiq_register(r, first + i)
            if value < 0:
                robotiq_refuse(r, w, function, MODBUS_NO_REGISTER)
                return
            io_store_be16(answer + 3 + 2 * i, <unsigned short>value)
        answer[2] = <uint8_t>(2 * count)
        robotiq_send(r, w, answer, 3 + 2 * count)
    elif count != 1 or r.request[6] != 2:
        robotiq_refuse(r, w, function, MODBUS_NO_VALUE)
    elif first != 410:
        robotiq_refuse(r, w, function, MODBUS_NO_REGISTER)
    else:
        r.output = io_load_be16(r.request + 7)
        memcpy(answer + 2, r.request + 2, 4)
        robotiq_send(r, w, answer, 6)
        if r.output == ROBOTIQ_STREAM:
            r.streaming = 1
            r.jam = 0
            w.record_ns = w.free_ns + r.period_ns


# Length of the request that begins in the buffer, 0 while that cannot be known.
cdef inline int robotiq_length(const Robotiq *r) noexcept nogil:
    if r.bytes < 2:
        return 0
    if r.request[1] == MODBUS_WRITE:
        return 9 + r.request[6] if r.bytes >= 7 else 0
    return 8


cdef void robotiq_byte(Robotiq *r, SensorWire *w, int byte) noexcept nogil:
    cdef int size
    if r.streaming:
        r.jam = r.jam + 1 if byte == 0xFF else 0
        if r.jam >= ROBOTIQ_JAM:
            r.streaming = r.output = r.bytes = 0
            w.record_ns = NEVER
        return
    if r.bytes and 2 * (w.now - r.heard_ns) > 7 * r.line.byte_ns:     # a silence: what came before was no request
        r.bytes = 0
    r.heard_ns = w.now
    r.request[r.bytes] = <uint8_t>byte
    r.bytes += 1
    size = robotiq_length(r)
    if 0 < size <= r.bytes:
        if r.request[0] == ROBOTIQ_SLAVE and reflected_crc16(r.request, size - 2, ROBOTIQ_MODBUS) == io_load_le16(r.request + size - 2):
            robotiq_answer(r, w)
        r.bytes = 0
    elif r.bytes == ROBOTIQ_REQUEST:
        r.bytes = 0


# What the other end has written.
cdef void listen(void *self, SensorWire *w) noexcept nogil:
    cdef Robotiq *r = <Robotiq *>self
    cdef int byte = next_byte(&r.line, w)
    robotiq_measure(r, w)
    while byte >= 0:
        if not (r.booting or w.faults.silent):
            robotiq_byte(r, w, byte)
        byte = next_byte(&r.line, w)


# The end of booting, from where on it hears; then a record.
cdef void record(void *self, SensorWire *w) noexcept nogil:
    cdef Robotiq *r = <Robotiq *>self
    cdef uint8_t bytes[ROBOTIQ_RECORD]
    cdef int i
    if r.booting:
        r.booting = 0
        w.record_ns = NEVER
        return
    w.record_ns += r.period_ns * (2 if w.faults.slow else 1)
    if w.lost:
        return
    robotiq_measure(r, w)
    r.made += 1
    bytes[0] = ROBOTIQ_HEADER
    bytes[1] = 0x4E
    for i in range(6):
        io_store_le16(bytes + 2 + 2 * i, <unsigned short>r.counts[i])
    io_store_le16(bytes + 14, <unsigned short>reflected_crc16(bytes, 14, ROBOTIQ_MODBUS))
    put_record(&r.line, w, bytes, ROBOTIQ_RECORD, r.made, ROBOTIQ_HEADER)


cdef class EmulatedRobotiq(EmulatedSensor):
    """A Robotiq FT 300 on a serial line."""

    PARAMETERS = (
        Parameter("rate_hz", "float", "Hz", "of its stream", 100.0, 1.0, 100.0),
        Parameter("bits_per_second", "int", "bit/s", "rate of the line", 19200, 19200, 115200),
    )
    # no status word: every channel at full scale
    VARIANTS = {"robotiq": ({"sensor_saturated": 1}, ON_THE_NETWORK | {"sensor_status_word"})}
    cdef Robotiq c

    def __init__(self, **given):
        self.keys = checked(self.PARAMETERS, given)
        self.c.period_ns = <int64_t>(1e9 / self.keys["rate_hz"])
        set_line_rate(&self.c.line, self.keys["bits_per_second"])
        self.plug.self, self.plug.power_up, self.plug.record, self.plug.listen = &self.c, power_up, record, listen
