"""The device's end of a serial line, a pseudo-terminal's master (inline, header only).

Bytes take the time that they take on a line of 8 data bits without parity and one stop bit: a message is written when its last bit would
have arrived, the next one follows it. What is not read is lost when the terminal is full, as on a line without handshake.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from posix.unistd cimport read, write

from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults, every, noise_byte

cdef enum:
    BITS_PER_BYTE = 10
    MESSAGE = 160               # most bytes of one message
    MESSAGES = 256              # that wait for their time
    MOST_NOISE = 24             # bytes
    HEARD = 64                  # bytes read at once


cdef struct SerialLine:
    int32_t fd
    int64_t byte_ns
    int64_t free_ns             # the last bit of what was given to the line has left
    int64_t due_ns[MESSAGES]
    int32_t bytes[MESSAGES]
    uint8_t data[MESSAGES][MESSAGE]
    int32_t head
    int32_t tail
    int64_t sent_total          # messages
    int64_t lost_total          # that found no room
    uint8_t heard[HEARD]        # from the other end
    int32_t heard_count
    int32_t heard_at


cdef inline void set_line_rate(SerialLine *line, int64_t bits_per_second) noexcept nogil:
    line.byte_ns = BITS_PER_BYTE * <int64_t>1000000000 // bits_per_second


# One message, on the line not before `start`.
cdef inline void put_message(SerialLine *line, const uint8_t *data, int size, int64_t start) noexcept nogil:
    cdef int after = (line.head + 1) % MESSAGES
    if after == line.tail:
        line.lost_total += 1
        return
    if start < line.free_ns:
        start = line.free_ns
    line.free_ns = start + size * line.byte_ns
    line.due_ns[line.head] = line.free_ns
    line.bytes[line.head] = size
    memcpy(line.data[line.head], data, <size_t>size)
    line.head = after


# A finished record through the faults of the wire. `made`: its number. `header`: a byte that noise contains more often than others.
cdef inline void put_record(SerialLine *line, WireFaults *f, uint8_t *record, int size, int64_t made, int64_t now,
                            int header) noexcept nogil:
    cdef uint8_t noise[MOST_NOISE]
    cdef int i, count
    if f.silent or every(f.drop_every, made):
        return
    now += f.delay_ns
    if every(f.noise_every, made):
        count = 1 + noise_byte(f) % MOST_NOISE
        for i in range(count):
            noise[i] = <uint8_t>(header if noise_byte(f) < 32 else noise_byte(f))
        put_message(line, noise, count, now)
    if every(f.checksum_every, made):
        record[size - 1] ^= 0x5A
    if every(f.cut_every, made):
        size -= 1 + noise_byte(f) % (size - 1)
    put_message(line, record, size, now)
    if every(f.duplicate_every, made):
        put_message(line, record, size, now)


cdef inline int64_t next_message_ns(const SerialLine *line, int64_t otherwise) noexcept nogil:
    return line.due_ns[line.tail] if line.head != line.tail and line.due_ns[line.tail] < otherwise else otherwise


# Everything whose last bit has left by now.
cdef inline void send_messages(SerialLine *line, int64_t now) noexcept nogil:
    while line.tail != line.head and line.due_ns[line.tail] <= now:
        if write(line.fd, line.data[line.tail], <size_t>line.bytes[line.tail]) == line.bytes[line.tail]:
            line.sent_total += 1
        else:
            line.lost_total += 1
        line.tail = (line.tail + 1) % MESSAGES


# The line without what waits on it: power was lost.
cdef inline void drop_messages(SerialLine *line, int64_t now) noexcept nogil:
    line.tail = line.head
    line.free_ns = now


# The next byte that has come, -1 when none waits.
cdef inline int next_byte(SerialLine *line) noexcept nogil:
    if line.heard_at >= line.heard_count:
        line.heard_at = 0
        line.heard_count = <int32_t>read(line.fd, line.heard, HEARD)
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
