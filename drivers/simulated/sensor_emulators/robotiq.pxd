"""A Robotiq FT 300 in software: Modbus RTU slave 9 on a serial line, and its stream (inline, header only).

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
from drivers.simulated.sensor_emulators.serial_line cimport (
    SerialLine,
    drop_messages,
    next_byte,
    put_message,
    put_record,
    reflected_crc16,
)
from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults

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
    int64_t boot_ns
    int64_t due_ns                  # end of booting, or the next record
    int64_t period_ns
    int64_t made
    int16_t counts[6]               # force [N/100] and torque [N.m/1000] as measured last
    int32_t output                  # register 410
    uint8_t request[ROBOTIQ_REQUEST]
    int32_t bytes
    int64_t heard_ns
    int32_t jam                     # 0xFF in a row


cdef inline int16_t robotiq_counts(double value, const WireFaults *f) noexcept nogil:
    if f.status_word:
        return -32768 if value < 0.0 else 32767
    if not value > -32768.0:
        return -32768
    return 32767 if value > 32767.0 else <int16_t>(value + 0.5 if value >= 0.0 else value - 0.5)


# What it measures now. F: force and torque [N, N.m].
cdef inline void robotiq_measure(Robotiq *r, const WireFaults *f, const double *F) noexcept nogil:
    cdef int i
    if f.frozen:
        return
    for i in range(6):
        r.counts[i] = robotiq_counts((100.0 if i < 3 else 1000.0) * F[i], f)


cdef inline void robotiq_power_up(Robotiq *r, int64_t now) noexcept nogil:
    drop_messages(&r.line, now)
    r.booting, r.streaming, r.output = 1, 0, 0
    r.due_ns = now + r.boot_ns
    r.bytes = r.jam = 0


# A register's value, -1 when there is none. Firmware FTS-2.1.0, serial number FTS-0001, year 2024.
cdef inline int robotiq_register(const Robotiq *r, int number) noexcept nogil:
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


cdef inline void robotiq_send(Robotiq *r, const WireFaults *f, uint8_t *answer, int size, int64_t now) noexcept nogil:
    io_store_le16(answer + size, <unsigned short>reflected_crc16(answer, size, ROBOTIQ_MODBUS))
    if not f.silent:
        put_message(&r.line, answer, size + 2, now)


cdef inline void robotiq_refuse(Robotiq *r, const WireFaults *f, int function, int reason, int64_t now) noexcept nogil:
    cdef uint8_t answer[5]
    answer[0] = ROBOTIQ_SLAVE
    answer[1] = <uint8_t>(function | MODBUS_REFUSED)
    answer[2] = <uint8_t>reason
    robotiq_send(r, f, answer, 3, now)


# A whole request with a right checksum.
cdef inline void robotiq_answer(Robotiq *r, const WireFaults *f, int64_t now) noexcept nogil:
    cdef uint8_t answer[5 + 2 * MODBUS_MOST_READ]
    cdef int function = r.request[1]
    cdef int first = io_load_be16(r.request + 2)
    cdef int count = io_load_be16(r.request + 4)
    cdef int i, value
    answer[0] = ROBOTIQ_SLAVE
    answer[1] = <uint8_t>function
    if function != MODBUS_READ and function != MODBUS_WRITE:
        robotiq_refuse(r, f, function, MODBUS_NO_FUNCTION, now)
    elif function == MODBUS_READ:
        if not 1 <= count <= MODBUS_MOST_READ:
            robotiq_refuse(r, f, function, MODBUS_NO_VALUE, now)
            return
        for i in range(count):
            value = robotiq_register(r, first + i)
            if value < 0:
                robotiq_refuse(r, f, function, MODBUS_NO_REGISTER, now)
                return
            io_store_be16(answer + 3 + 2 * i, <unsigned short>value)
        answer[2] = <uint8_t>(2 * count)
        robotiq_send(r, f, answer, 3 + 2 * count, now)
    elif count != 1 or r.request[6] != 2:
        robotiq_refuse(r, f, function, MODBUS_NO_VALUE, now)
    elif first != 410:
        robotiq_refuse(r, f, function, MODBUS_NO_REGISTER, now)
    else:
        r.output = io_load_be16(r.request + 7)
        memcpy(answer + 2, r.request + 2, 4)
        robotiq_send(r, f, answer, 6, now)
        if r.output == ROBOTIQ_STREAM:
            r.streaming = 1
            r.jam = 0
            r.due_ns = r.line.free_ns + r.period_ns


# Length of the request that begins in the buffer, 0 while that cannot be known.
cdef inline int robotiq_length(const Robotiq *r) noexcept nogil:
    if r.bytes < 2:
        return 0
    if r.request[1] == MODBUS_WRITE:
        return 9 + r.request[6] if r.bytes >= 7 else 0
    return 8


cdef inline void robotiq_byte(Robotiq *r, const WireFaults *f, int byte, int64_t now) noexcept nogil:
    cdef int size
    if r.streaming:
        r.jam = r.jam + 1 if byte == 0xFF else 0
        if r.jam >= ROBOTIQ_JAM:
            r.streaming = r.output = r.bytes = 0
        return
    if r.bytes and 2 * (now - r.heard_ns) > 7 * r.line.byte_ns:     # a silence: what came before was no request
        r.bytes = 0
    r.heard_ns = now
    r.request[r.bytes] = <uint8_t>byte
    r.bytes += 1
    size = robotiq_length(r)
    if 0 < size <= r.bytes:
        if r.request[0] == ROBOTIQ_SLAVE and reflected_crc16(r.request, size - 2, ROBOTIQ_MODBUS) == io_load_le16(r.request + size - 2):
            robotiq_answer(r, f, now)
        r.bytes = 0
    elif r.bytes == ROBOTIQ_REQUEST:
        r.bytes = 0


# What the other end has written.
cdef inline void robotiq_listen(Robotiq *r, const WireFaults *f, int64_t now) noexcept nogil:
    cdef int byte = next_byte(&r.line)
    while byte >= 0:
        if not (r.booting or f.silent):
            robotiq_byte(r, f, byte, now)
        byte = next_byte(&r.line)


# The record of `r.due_ns` from what was measured for it; the next one is due a period later.
cdef inline void robotiq_record(Robotiq *r, WireFaults *f) noexcept nogil:
    cdef uint8_t record[ROBOTIQ_RECORD]
    cdef int64_t now = r.due_ns
    cdef int i
    r.due_ns += r.period_ns * (2 if f.slow else 1)
    r.made += 1
    record[0] = ROBOTIQ_HEADER
    record[1] = 0x4E
    for i in range(6):
        io_store_le16(record + 2 + 2 * i, <unsigned short>r.counts[i])
    io_store_le16(record + 14, <unsigned short>reflected_crc16(record, 14, ROBOTIQ_MODBUS))
    put_record(&r.line, f, record, ROBOTIQ_RECORD, r.made, now, ROBOTIQ_HEADER)
