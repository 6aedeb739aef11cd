"""An ATI F/T sensor with a NETCANOEM board on CAN in software (inline, header only).

Identifier of a frame = base << 4 | opcode; values big-endian; every request is answered with the same base: 0x0 read gages: frame 0x0
with status u16 and gages 0, 2, 4, frame 0x1 with gages 1, 3, 5 (i16); 0x2 row of the matrix: frames 0x2, 0x3, 0x4 with two f32 each; 0x5
serial number; 0x6 select the calibration; 0x7 counts per unit; 0x8 unit codes; 0x9 a diagnostic voltage; 0xC reset; 0xD base and 0xE bit
rate from the next reset on; 0xF firmware. The host makes the wrench: counts = matrix * gages, wrench = counts / counts per unit.

There is no checksum to see (the controllers of the bus have checked the frame) and no counter: a faulty sensor repeats its last gages
(frozen). Noise is an error frame of the bus. A reboot shows as bit 0, watchdog reset, until a reset that was asked for.

Source: ATI 9610-05-1030 as its published drivers use it. What they do not tell and is assumed here: an acknowledgement is an empty frame,
a calibration that is not there sets bit 6.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from drivers.raw_frames.frame_io cimport (
    CAN_EFF_FLAG,
    CAN_ERR_FLAG,
    CAN_ERR_PROT,
    CAN_RTR_FLAG,
    can_frame,
    io_send_frames,
    io_store_be16,
    io_store_be32,
    sockaddr_in,
)
from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults, every

cdef enum:
    NETCANOEM_FRAMES = 64       # that wait for their time
    NETCANOEM_FRAME_BITS = 47   # of a frame beside its data, without stuff bits
    NETCANOEM_FORCE_N = 2       # unit codes
    NETCANOEM_TORQUE_NM = 3

    NETCANOEM_READ = 0x0
    NETCANOEM_READ_ODD = 0x1
    NETCANOEM_MATRIX = 0x2
    NETCANOEM_SERIAL = 0x5
    NETCANOEM_CALIBRATION = 0x6
    NETCANOEM_COUNTS = 0x7
    NETCANOEM_UNITS = 0x8
    NETCANOEM_VOLTAGE = 0x9
    NETCANOEM_RESET = 0xC
    NETCANOEM_SET_BASE = 0xD
    NETCANOEM_SET_RATE = 0xE
    NETCANOEM_FIRMWARE = 0xF

    # bits of the status
    NETCANOEM_WATCHDOG = 0x0001
    NETCANOEM_BAD_CALIBRATION = 0x0040
    NETCANOEM_ERROR = 0x8000
    NETCANOEM_FULL_SCALE = 0x10000  # none of it, on request: every gage at the end of its range


cdef struct Netcanoem:
    int32_t base                # of the identifiers
    int32_t next_base           # after a reset
    int64_t bit_ns
    int64_t free_ns             # the bus is free of what was given to it
    can_frame frame[NETCANOEM_FRAMES]
    int64_t due_ns[NETCANOEM_FRAMES]
    int32_t head
    int32_t tail
    int64_t boot_ns
    int64_t ready_ns            # end of booting
    int32_t watchdog
    int32_t calibration
    float matrix[36]            # counts per gage value
    double gage_of[36]          # gage values per N and N.m
    uint32_t counts_per_force
    uint32_t counts_per_torque
    char serial[8]
    int16_t gage[6]
    int64_t made                # answers to read requests
    int64_t lost_total


cdef inline void netcanoem_power_up(Netcanoem *n, int64_t now) noexcept nogil:
    n.tail = n.head
    n.free_ns = now
    n.base = n.next_base
    n.calibration = 0
    n.ready_ns = now + n.boot_ns


# One frame of an answer, on the bus not before `start`.
cdef inline void netcanoem_put(Netcanoem *n, uint32_t identifier, const uint8_t *data, int length, int64_t start) noexcept nogil:
    cdef int after = (n.head + 1) % NETCANOEM_FRAMES
    cdef can_frame *frame = &n.frame[n.head]
    if after == n.tail:
        n.lost_total += 1
        return
    memset(frame, 0, sizeof(can_frame))
    frame.can_id = identifier
    frame.can_dlc = <uint8_t>length
    memcpy(frame.data, data, <size_t>length)
    if start < n.free_ns:
        start = n.free_ns
    n.free_ns = start + (NETCANOEM_FRAME_BITS + 8 * length) * n.bit_ns
    n.due_ns[n.head] = n.free_ns
    n.head = after


cdef inline int64_t netcanoem_next_ns(const Netcanoem *n, int64_t otherwise) noexcept nogil:
    return n.due_ns[n.tail] if n.head != n.tail and n.due_ns[n.tail] < otherwise else otherwise


cdef inline void netcanoem_send(Netcanoem *n, int fd, const sockaddr_in *peer, int64_t now) noexcept nogil:
    cdef int error
    while n.tail != n.head and n.due_ns[n.tail] <= now:
        if io_send_frames(fd, &n.frame[n.tail], 1, peer, &error) != 1:
            n.lost_total += 1
        n.tail = (n.tail + 1) % NETCANOEM_FRAMES


# Gages that belong to force and torque F [N, N.m], as 16 bits hold them.
cdef inline void netcanoem_measure(Netcanoem *n, const WireFaults *f, const double *F) noexcept nogil:
    cdef double sum
    cdef int i, j
    if f.frozen:
        return
    for i in range(6):
        if f.status_word & NETCANOEM_FULL_SCALE:
            n.gage[i] = 32767
            continue
        sum = 0.0
        for j in range(6):
            sum += n.gage_of[6 * i + j] * F[j]
        n.gage[i] = -32768 if not sum > -32768.0 else 32767 if sum > 32767.0 else <int16_t>(sum + 0.5 if sum >= 0.0 else sum - 0.5)


# Status and gages: two frames, through the faults of the wire.
cdef inline void netcanoem_gages(Netcanoem *n, const WireFaults *f, uint32_t identifier, int64_t now) noexcept nogil:
    cdef uint8_t even[8]
    cdef uint8_t odd[6]
    cdef int status = <int>f.status_word & 0xFFFF
    cdef int i, length, times
    n.made += 1
    if n.watchdog:
        status |= NETCANOEM_WATCHDOG
    if n.calibration:
        status |= NETCANOEM_BAD_CALIBRATION
    if status:
        status |= NETCANOEM_ERROR
    if every(f.drop_every, n.made) or (f.slow and n.made & 1):
        return
    now += f.delay_ns
    io_store_be16(even, <unsigned short>status)
    for i in range(3):
        io_store_be16(even + 2 + 2 * i, <unsigned short>n.gage[2 * i])
        io_store_be16(odd + 2 * i, <unsigned short>n.gage[2 * i + 1])
    if every(f.noise_every, n.made):
        netcanoem_put(n, CAN_ERR_FLAG | CAN_ERR_PROT, b"\0\0\0\0\0\0\0\0", 8, now)
    length = 5 if every(f.cut_every, n.made) else 8
    times = 2 if every(f.duplicate_every, n.made) else 1
    if every(f.reorder_every, n.made):
        netcanoem_put(n, identifier | NETCANOEM_READ_ODD, odd, 6, now)
        netcanoem_put(n, identifier, even, length, now)
        return
    for _ in range(times):
        netcanoem_put(n, identifier, even, length, now)
        netcanoem_put(n, identifier | NETCANOEM_READ_ODD, odd, 6, now)


# Whether a frame asks this sensor for its gages.
cdef inline bint netcanoem_reads(const Netcanoem *n, const can_frame *frame) noexcept nogil:
    return frame.can_id == <uint32_t>n.base << 4 | NETCANOEM_READ


# A frame of the bus. Those for others, of other kinds, and while it boots are not heard.
cdef inline void netcanoem_take(Netcanoem *n, WireFaults *f, const can_frame *frame, int64_t now) noexcept nogil:
    cdef uint8_t answer[8]
    cdef uint32_t identifier = <uint32_t>n.base << 4
    cdef uint32_t bits
    cdef int opcode = <int>frame.can_id & 0xF
    cdef int i, k
    if frame.can_id & (CAN_EFF_FLAG | CAN_RTR_FLAG | CAN_ERR_FLAG) or frame.can_id & ~<uint32_t>0xF != identifier:
        return
    if f.silent or now < n.ready_ns:
        return
    if opcode == NETCANOEM_READ:
        netcanoem_gages(n, f, identifier, now)
    elif opcode == NETCANOEM_MATRIX and frame.can_dlc >= 1 and frame.data[0] < 6:
        for i in range(3):
            for k in range(2):
                memcpy(&bits, &n.matrix[6 * frame.data[0] + 2 * i + k], 4)
                io_store_be32(answer + 4 * k, bits)
            netcanoem_put(n, identifier | <uint32_t>(opcode + i), answer, 8, now)
    elif opcode == NETCANOEM_SERIAL:
        netcanoem_put(n, identifier | <uint32_t>opcode, <const uint8_t *>n.serial, 8, now)
    elif opcode == NETCANOEM_CALIBRATION and frame.can_dlc >= 1 and frame.data[0] < 16:
        n.calibration = frame.data[0]
        netcanoem_put(n, identifier | <uint32_t>opcode, frame.data, 1, now)
    elif opcode == NETCANOEM_COUNTS:
        io_store_be32(answer, n.counts_per_force)
        io_store_be32(answer + 4, n.counts_per_torque)
        netcanoem_put(n, identifier | <uint32_t>opcode, answer, 8, now)
    elif opcode == NETCANOEM_UNITS:
        answer[0], answer[1] = NETCANOEM_FORCE_N, NETCANOEM_TORQUE_NM
        netcanoem_put(n, identifier | <uint32_t>opcode, answer, 2, now)
    elif opcode == NETCANOEM_VOLTAGE and frame.can_dlc >= 1:
        io_store_be16(answer, 2048)
        netcanoem_put(n, identifier | <uint32_t>opcode, answer, 2, now)
    elif opcode == NETCANOEM_RESET:
        n.watchdog = 0
        netcanoem_power_up(n, now)
    elif opcode == NETCANOEM_SET_BASE and frame.can_dlc >= 1 and frame.data[0] < 0x80:
        n.next_base = frame.data[0]
        netcanoem_put(n, identifier | <uint32_t>opcode, answer, 0, now)
    elif opcode == NETCANOEM_SET_RATE and frame.can_dlc >= 1:
        netcanoem_put(n, identifier | <uint32_t>opcode, answer, 0, now)
    elif opcode == NETCANOEM_FIRMWARE:
        answer[0], answer[1] = 2, 4
        io_store_be16(answer + 2, 16)
        netcanoem_put(n, identifier | <uint32_t>opcode, answer, 4, now)
