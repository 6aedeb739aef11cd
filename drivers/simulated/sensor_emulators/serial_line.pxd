"""The device's end of a serial line, a pseudo-terminal's master (inline, header only).

Bytes take the time that they take on a line of 8 data bits without parity and one stop bit. What is not read is lost when the terminal is
full, as on a line without handshake.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from posix.unistd cimport read

from drivers.simulated.emulated_sensor cimport SensorWire, put
from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults, every, noise_byte

cdef enum:
    BITS_PER_BYTE = 10
    MOST_NOISE = 24             # bytes
    HEARD = 64                  # bytes read at once


cdef struct SerialLine:
    int64_t byte_ns
    uint8_t heard[HEARD]        # from the other end
    int32_t heard_count
    int32_t heard_at


cdef inline void set_line_rate(SerialLine *line, int64_t bits_per_second) noexcept nogil:
    line.byte_ns = BITS_PER_BYTE * <int64_t>1000000000 // bits_per_second


# One message, on the line not before `start`.
cdef inline void put_message(SerialLine *line, SensorWire *w, const uint8_t *data, int size, int64_t start) noexcept nogil:
    put(w, data, size, start, size * line.byte_ns)


# A finished record of now through the faults of the wire. `made`: its number. `header`: a byte that noise contains more often than others.
cdef inline void put_record(SerialLine *line, SensorWire *w, uint8_t *record, int size, int64_t made, int header) noexcept nogil:
    cdef uint8_t noise[MOST_NOISE]
    cdef WireFaults *f = &w.faults
    cdef int64_t start = w.now + f.delay_ns
    cdef int i, count
    if f.silent or every(f.drop_every, made):
        return
    if every(f.noise_every, made):
        count = 1 + noise_byte(f) % MOST_NOISE
        for i in range(count):
            noise[i] = <uint8_t>(header if noise_byte(f) < 32 else noise_byte(f))
        put_message(line, w, noise, count, start)
    if every(f.checksum_every, made):
        record[size - 1] ^= 0x5A
    if every(f.cut_every, made):
        size -= 1 + noise_byte(f) % (size - 1)
    put_message(line, w, record, size, start)
    if every(f.duplicate_every, made):
        put_message(line, w, record, size, start)


# The next byte that has come, -1 when none waits.
cdef inline int next_byte(SerialLine *line, const SensorWire *w) noexcept nogil:
    if line.heard_at >= line.heard_count:
        line.heard_at = 0
        line.heard_count = <int32_t>read(w.fd, line.heard, HEARD)
        if line.heard_count <= 0:
            return -1
    line.heard_at += 1
    return line.heard[line.heard_at - 1]


# CRC of 16 bits, reflected, starting from all ones (bit by bit: a record in a millisecond).
cdef inline int reflected_crc16(const uint8_t *data, int size, int polynomial) noexcept nogil:
    cdef int crc = 0xFFFF
    cdef int i
    for i in range(size):
        crc ^= data[i]
        for _ in range(8):
            crc = crc >> 1 ^ polynomial if crc & 1 else crc >> 1
    return crc
