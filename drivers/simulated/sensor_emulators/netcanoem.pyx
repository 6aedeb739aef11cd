"""An ATI F/T sensor with a NETCANOEM board on CAN in software.

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
    IO_BATCH,
    can_frame,
    io_receive_frames,
    io_store_be16,
    io_store_be32,
)
from drivers.simulated.emulated_sensor cimport EmulatedSensor, SensorWire, drop_messages, put
from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults, every

import numpy as np

from rt_kernels.parameters import Parameter, checked

cdef enum:
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
    int64_t ready_ns            # end of booting
    int32_t powered             # it was on before
    int32_t watchdog
    int32_t calibration
    float matrix[36]            # counts per gage value
    double gage_of[36]          # gage values per N and N.m
    uint32_t counts_per_force
    uint32_t counts_per_torque
    char serial[8]
    int16_t gage[6]
    int64_t made                # answers to read requests


cdef void power_up(void *self, SensorWire *w) noexcept nogil:
    cdef Netcanoem *n = <Netcanoem *>self
    n.watchdog, n.powered = n.powered, 1
    n.base = n.next_base
    n.calibration = 0
    n.ready_ns = w.now + w.boot_ns


# One frame of an answer, on the bus not before `start`.
cdef void netcanoem_put(Netcanoem *n, SensorWire *w, uint32_t identifier, const uint8_t *data, int length, int64_t start) noexcept nogil:
    cdef can_frame frame
    memset(&frame, 0, sizeof(can_frame))
    frame.can_id = identifier
    frame.can_dlc = <uint8_t>length
    memcpy(frame.data, data, <size_t>length)
    put(w, &frame, sizeof(can_frame), start, (NETCANOEM_FRAME_BITS + 8 * length) * n.bit_ns)


# Gages that belong to force and torque, as 16 bits hold them.
cdef void netcanoem_measure(Netcanoem *n, const SensorWire *w) noexcept nogil:
    cdef double sum
    cdef int i, j
    if w.faults.frozen:
        return
    for i in range(6):
        if w.faults.status_word & NETCANOEM_FULL_SCALE:
            n.gage[i] = 32767
            continue
        sum = 0.0
        for j in range(6):
            sum += n.gage_of[6 * i + j] * w.F[j]
        n.gage[i] = -32768 if not sum > -32768.0 else 32767 if sum > 32767.0 else <int16_t>(sum + 0.5 if sum >= 0.0 else sum - 0.5)


# Status and gages: two frames, through the faults of the wire.
cdef void netcanoem_gages(Netcanoem *n, SensorWire *w, uint32_t identifier) noexcept nogil:
    cdef const WireFaults *f = &w.faults
    cdef int64_t now = w.now + f.delay_ns
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
    io_store_be16(even, <unsigned short>status)
    for i in range(3):
        io_store_be16(even + 2 + 2 * i, <unsigned short>n.gage[2 * i])
        io_store_be16(odd + 2 * i, <unsigned short>n.gage[2 * i + 1])
    if every(f.noise_every, n.made):
        netcanoem_put(n, w, CAN_ERR_FLAG | CAN_ERR_PROT, b"\0\0\0\0\0\0\0\0", 8, now)
    length = 5 if every(f.cut_every, n.made) else 8
    times = 2 if every(f.duplicate_every, n.made) else 1
    if every(f.reorder_every, n.made):
        netcanoem_put(n, w, identifier | NETCANOEM_READ_ODD, odd, 6, now)
        netcanoem_put(n, w, identifier, even, length, now)
        return
    for _ in range(times):
        netcanoem_put(n, w, identifier, even, length, now)
        netcanoem_put(n, w, identifier | NETCANOEM_READ_ODD, odd, 6, now)


# Whether a frame asks this sensor for its gages.
cdef inline bint netcanoem_reads(const Netcanoem *n, const can_frame *frame) noexcept nogil:
    return frame.can_id == <uint32_t>n.base << 4 | NETCANOEM_READ


# A frame of the bus. Those for others, of other kinds, and while it boots are not heard.
cdef void netcanoem_take(Netcanoem *n, SensorWire *w, const can_frame *frame) noexcept nogil:
    cdef uint8_t answer[8]
    cdef uint32_t identifier = <uint32_t>n.base << 4
    cdef uint32_t bits
    cdef int opcode = <int>frame.can_id & 0xF
    cdef int i, k
    if frame.can_id & (CAN_EFF_FLAG | CAN_RTR_FLAG | CAN_ERR_FLAG) or frame.can_id & ~<uint32_t>0xF != identifier:
        return
    if w.faults.silent or w.now < n.ready_ns:
        return
    if opcode == NETCANOEM_READ:
        netcanoem_gages(n, w, identifier)
    elif opcode == NETCANOEM_MATRIX and frame.can_dlc >= 1 and frame.data[0] < 6:
        for i in range(3):
            for k in range(2):
                memcpy(&bits, &n.matrix[6 * frame.data[0] + 2 * i + k], 4)
                io_store_be32(answer + 4 * k, bits)
            netcanoem_put(n, w, identifier | <uint32_t>(opcode + i), answer, 8, w.now)
    elif opcode == NETCANOEM_SERIAL:
        netcanoem_put(n, w, identifier | <uint32_t>opcode, <const uint8_t *>n.serial, 8, w.now)
    elif opcode == NETCANOEM_CALIBRATION and frame.can_dlc >= 1 and frame.data[0] < 16:
        n.calibration = frame.data[0]
        netcanoem_put(n, w, identifier | <uint32_t>opcode, frame.data, 1, w.now)
    elif opcode == NETCANOEM_COUNTS:
        io_store_be32(answer, n.counts_per_force)
        io_store_be32(answer + 4, n.counts_per_torque)
        netcanoem_put(n, w, identifier | <uint32_t>opcode, answer, 8, w.now)
    elif opcode == NETCANOEM_UNITS:
        answer[0], answer[1] = NETCANOEM_FORCE_N, NETCANOEM_TORQUE_NM
        netcanoem_put(n, w, identifier | <uint32_t>opcode, answer, 2, w.now)
    elif opcode == NETCANOEM_VOLTAGE and frame.can_dlc >= 1:
        io_store_be16(answer, 2048)
        netcanoem_put(n, w, identifier | <uint32_t>opcode, answer, 2, w.now)
    elif opcode == NETCANOEM_RESET:
        n.powered = 0
        drop_messages(w)
        power_up(n, w)
    elif opcode == NETCANOEM_SET_BASE and frame.can_dlc >= 1 and frame.data[0] < 0x80:
        n.next_base = frame.data[0]
        netcanoem_put(n, w, identifier | <uint32_t>opcode, answer, 0, w.now)
    elif opcode == NETCANOEM_SET_RATE and frame.can_dlc >= 1:
        netcanoem_put(n, w, identifier | <uint32_t>opcode, answer, 0, w.now)
    elif opcode == NETCANOEM_FIRMWARE:
        answer[0], answer[1] = 2, 4
        io_store_be16(answer + 2, 16)
        netcanoem_put(n, w, identifier | <uint32_t>opcode, answer, 4, w.now)


# What has come. Of read requests that waited together the newest is answered: the board keeps one.
cdef void listen(void *self, SensorWire *w) noexcept nogil:
    cdef Netcanoem *n = <Netcanoem *>self
    cdef can_frame frames[IO_BATCH]
    cdef int i, got, more = 1, error = 0, rounds = 0
    netcanoem_measure(n, w)
    while more and rounds < 8:
        rounds += 1
        got = io_receive_frames(w.fd, frames, &w.bad_total, &w.peer, &more, &error)
        for i in range(got):
            if i + 1 == got or not netcanoem_reads(n, &frames[i]) or not netcanoem_reads(n, &frames[i + 1]):
                netcanoem_take(n, w, &frames[i])


cdef void record(void *self, SensorWire *w) noexcept nogil:
    pass


def gages(board):
    """Calibration matrix of a NETCANOEM board (counts per gage value, 6 x 6, single precision as the device holds it), and the gage values
    per N and N.m that it inverts.

    Three beams at 120 degrees: a gage on each for what bends it out of the plane (Fz, Mx, My), one for what bends it in the plane (Fx, Fy,
    Mz). All components at their ranges together stay within 16 bits.
    """
    angle = np.radians([0.0, 120.0, 240.0])
    sine, cosine, one, none = np.sin(angle), np.cos(angle), np.ones(3), np.zeros(3)
    out_of_plane = np.stack([none, none, one, sine, -cosine, none], axis=1)
    in_plane = np.stack([-sine, cosine, none, none, none, one], axis=1)
    share = np.empty((6, 6))
    share[0::2], share[1::2] = out_of_plane, in_plane
    per_unit = 1.0 / np.repeat([board["force_range_n"], board["torque_range_n_m"]], 3)
    gage_of = 13000.0 * share * per_unit
    counts = np.repeat([board["counts_per_force"], board["counts_per_torque"]], 3)
    return (counts[:, None] * np.linalg.inv(gage_of)).astype(np.float32), gage_of


cdef class EmulatedNetcanoem(EmulatedSensor):
    """An ATI F/T sensor with a NETCANOEM board on CAN."""

    PARAMETERS = (
        Parameter("base", "int", "-", "upper seven bits of its identifiers", 127, 0, 127),
        Parameter("port", "int", "-", "UDP port of its bus, 0: any", 0, 0, 65535),
        Parameter("bits_per_second", "int", "bit/s", "rate of the bus", 1000000, 125000, 1000000),
        Parameter("counts_per_force", "int", "-", "counts per N", 1000, 1, 2**31 - 1),
        Parameter("counts_per_torque", "int", "-", "counts per N.m", 1000, 1, 2**31 - 1),
        Parameter("force_range_n", "float", "N", "force at which the gages are near the end of their range", 3000.0, 1.0, 1e6),
        Parameter("torque_range_n_m", "float", "N.m", "torque at which they are", 600.0, 0.1, 1e6),
        Parameter("serial", "str", "-", "serial number, the first eight characters", "FT00001"),
    )
    # the word is of 16 bits; the next one is every gage at full scale
    VARIANTS = {"netcanoem": (
        {"sensor_saturated": 0x10000, "sensor_device_fault": 0x8008, "sensor_supply": 0x8010, "sensor_temperature": 0x8800},
        frozenset(("sensor_rollover", "sensor_taken_over", "sensor_checksum")),
    )}
    PATIENCE = {"answer_ticks": 100}
    cdef Netcanoem c

    def __init__(self, **given):
        cdef Netcanoem *n = &self.c
        self.keys = board = checked(self.PARAMETERS, given)
        matrix, gage_of = (np.ravel(rows) for rows in gages(board))
        n.next_base = board["base"]
        n.bit_ns = <int64_t>(1e9 / board["bits_per_second"])
        n.counts_per_force, n.counts_per_torque = board["counts_per_force"], board["counts_per_torque"]
        for i in range(36):
            n.matrix[i], n.gage_of[i] = matrix[i], gage_of[i]
        for i, c in enumerate(board["serial"].encode("ascii").ljust(8)[:8]):
            n.serial[i] = c
        self.plug.self, self.plug.power_up, self.plug.record, self.plug.listen = n, power_up, record, listen

    def open(self, str address, str variant, scale):
        return {"link": f"udp:{address}:{self.on_udp(address, self.keys['port'])}", "base_identifier": self.keys["base"]}
