"""An RDT sensor on UDP in software: ATI Net F/T, Axia, OnRobot.

Requests, 8 bytes big-endian: 0x1234, command u16, count u32; 0 stop, 2 stream (Axia: 1 too), 3 stream in datagrams of several records, 0x42
bias, OnRobot 0x81 filter and 0x82 period. A record, 36 bytes big-endian: RDT sequence, F/T sequence, status word, six counts i32. The
newest client has the stream. Before the run it answers by HTTP and TCP (`rdt_set_up`).

Source: ATI 9620-05-NET FT, 9610-05-Ethernet Axia; OnRobot as `drivers.wrench_sensors.rdt` reads it.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from drivers.raw_frames.frame_io cimport io_load_be16, io_load_be32, io_receive_from, io_store_be32, sockaddr_in
from drivers.simulated.emulated_sensor cimport NEVER, EmulatedSensor, SensorWire, drop_messages, put, rounded
from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults, every, noise_byte

from drivers.simulated.sensor_emulators.rdt_set_up import SetUpServers, counts_per_unit
from rt_kernels.parameters import Parameter, checked

cdef enum:
    RECORD = 36


cdef struct Rdt:
    int32_t remaining           # records still to send, -1 without end
    int32_t records_per_datagram
    int32_t buffer_size         # of the buffered mode
    int32_t single_command      # 1: the family knows command 1 (axia)
    int32_t onrobot             # 1: the family sets rate and filter, and takes its bias back
    double cut_off_hz           # of that filter, 0 off
    double filtered[6]
    int64_t period_ns
    uint32_t rdt_sequence
    uint32_t ft_sequence
    double bias[6]
    uint8_t datagram[RECORD * 40]
    int32_t filled              # records in the datagram
    int64_t made                # records since start
    uint8_t held[RECORD * 40]   # the one that leaves after its successor
    int32_t held_bytes


cdef void send(SensorWire *w, const uint8_t *data, int size) noexcept nogil:
    if not w.faults.taken_over and not w.faults.silent:
        put(w, data, size, w.now + w.faults.delay_ns, 0)


# A finished datagram on its way out, through the faults of the network.
cdef void emit(Rdt *r, SensorWire *w, const uint8_t *data, int size) noexcept nogil:
    cdef const WireFaults *f = &w.faults
    if every(f.drop_every, r.made):
        return
    if every(f.noise_every, r.made):
        send_noise(w)
    if every(f.cut_every, r.made):
        size = size - 16
    if every(f.reorder_every, r.made) and r.held_bytes == 0:
        memcpy(r.held, data, <size_t>size)
        r.held_bytes = size
        return
    send(w, data, size)
    if every(f.duplicate_every, r.made):
        send(w, data, size)
    if r.held_bytes:
        send(w, r.held, r.held_bytes)
        r.held_bytes = 0


# Of the way to a new value that the filter goes in a period: a low-pass of the first order.
cdef inline double filter_share(const Rdt *r) noexcept nogil:
    cdef double angle = 6.283185307179586e-9 * r.cut_off_hz * <double>r.period_ns
    return angle / (1.0 + angle) if r.cut_off_hz > 0.0 else 1.0


# Cut-off of an OnRobot filter, Hz.
cdef inline double cut_off(uint32_t index) noexcept nogil:
    if index == 1:
        return 500.0
    if index == 2:
        return 150.0
    if index == 3:
        return 50.0
    if index == 4:
        return 15.0
    return 5.0 if index == 5 else 1.5 if index == 6 else 0.0


# A datagram of noise in the place of a record.
cdef void send_noise(SensorWire *w) noexcept nogil:
    cdef uint8_t noise[64]
    cdef int i, size = 1 + noise_byte(&w.faults) % 64
    for i in range(size):
        noise[i] = <uint8_t>noise_byte(&w.faults)
    send(w, noise, size if size != RECORD else size - 1)


# One record of what the gauges say now.
cdef void record(void *self, SensorWire *w) noexcept nogil:
    cdef Rdt *r = <Rdt *>self
    cdef uint8_t *at = r.datagram + r.filled * RECORD
    cdef int i
    w.record_ns += r.period_ns * (2 if w.faults.slow else 1)
    r.rdt_sequence += 1
    if w.lost or not w.faults.frozen:
        r.ft_sequence += 1
    if w.lost:
        return
    io_store_be32(at, r.rdt_sequence)
    io_store_be32(at + 4, r.ft_sequence)
    io_store_be32(at + 8, w.faults.status_word)
    for i in range(6):
        r.filtered[i] += filter_share(r) * (w.gauge[i] - r.filtered[i])
        io_store_be32(at + 12 + 4 * i, <uint32_t>rounded(r.filtered[i] - r.bias[i]))
    r.filled += 1
    r.made += 1
    if r.filled >= r.records_per_datagram:
        emit(r, w, r.datagram, r.filled * RECORD)
        r.filled = 0
    if r.remaining > 0:
        r.remaining -= 1
        if r.remaining == 0:
            w.record_ns = NEVER


# A request. Malformed ones and unknown commands are ignored; the newest client has the stream.
cdef void take_request(Rdt *r, SensorWire *w, const uint8_t *request, int size, const sockaddr_in *sender) noexcept nogil:
    cdef int command, i
    cdef uint32_t count
    if size != 8 or io_load_be16(request) != 0x1234:
        return
    command = io_load_be16(request + 2)
    count = io_load_be32(request + 4)
    if command == 0x0000:
        w.record_ns = NEVER
    elif command == 0x0042:
        for i in range(6):
            r.bias[i] = 0.0 if r.onrobot and count == 0 else w.gauge[i]
    elif command == 0x0081 and r.onrobot:
        r.cut_off_hz = cut_off(count)
    elif command == 0x0082 and r.onrobot:
        if 1 <= count <= 254:
            r.period_ns = <int64_t>count * 1000000
    elif command == 0x0002 or command == 0x0003 or (command == 0x0001 and r.single_command):
        w.peer = sender[0]
        r.records_per_datagram = r.buffer_size if command == 0x0003 else 1
        r.filled = 0
        r.held_bytes = 0
        drop_messages(w)
        r.rdt_sequence = w.faults.first_sequence
        r.remaining = -1 if count == 0 else <int32_t>(count & 0x7FFFFFFF)
        w.record_ns = w.now


cdef void listen(void *self, SensorWire *w) noexcept nogil:
    cdef uint8_t request[64]
    cdef sockaddr_in sender
    cdef int size = io_receive_from(w.fd, request, 64, &sender)
    while size >= 0:
        take_request(<Rdt *>self, w, request, size, &sender)
        size = io_receive_from(w.fd, request, 64, &sender)


cdef void power_up(void *self, SensorWire *w) noexcept nogil:
    (<Rdt *>self).ft_sequence = 0


# class of the status word → its word; and what ATI's sensors cannot do wrong
NET_FT = {
    "sensor_saturated": 0x80020000,
    "sensor_out_of_range": 0x80020000,
    "sensor_device_fault": 0x90000000,
    "sensor_busy": 0,
    "sensor_broken_gauge": 0x80020000,
    "sensor_threshold": 0x80010000,
    "sensor_supply": 0x80000020,
    "sensor_temperature": 0x80000004,
}
AXIA = {
    "sensor_saturated": 0x88000000,
    "sensor_out_of_range": 0xC0000000,
    "sensor_device_fault": 0x80000020,
    "sensor_busy": 0x00000008,
    "sensor_broken_gauge": 0x80000004,
    "sensor_threshold": 0x80010000,
    "sensor_supply": 0x80000002,
    "sensor_temperature": 0x80000001,
}
ONROBOT = dict.fromkeys(
    ("sensor_saturated", "sensor_out_of_range", "sensor_device_fault", "sensor_broken_gauge", "sensor_supply", "sensor_temperature"), 1
)
NOT_OF_ATI = frozenset(("sensor_noise", "sensor_checksum", "sensor_slow", "sensor_reboot"))


cdef class EmulatedRdt(EmulatedSensor):
    """An RDT sensor on UDP, with the servers of its set-up."""

    PARAMETERS = (
        Parameter("rate_hz", "float", "Hz", "of its stream", 2000.0, 1.0, 8000.0),
        Parameter("counts_per_force", "int", "-", "what it states, per force_unit; 0: as the plant makes its counts", 0, 0, 2**32 - 1),
        Parameter("counts_per_torque", "int", "-", "the same per torque_unit", 0, 0, 2**32 - 1),
        Parameter("force_unit", "str", "-", "unit of force as it prints it", "N"),
        Parameter("torque_unit", "str", "-", "unit of torque as it prints it", "Nm"),
        Parameter("buffer_size", "int", "-", "records in a datagram of the buffered mode", 10, 1, 40),
        Parameter("serial", "str", "-", "serial number", "SIM00001"),
        Parameter("calibration", "str", "-", "name of the calibration", "simulated stand"),
        Parameter("stream_port", "int", "-", "UDP port, 0: any", 0, 0, 65535),
        Parameter("http_port", "int", "-", "TCP port of the XML page, 0: any", 0, 0, 65535),
        Parameter("calibration_port", "int", "-", "TCP port of the calibration info, 0: any", 0, 0, 65535),
    )
    VARIANTS = {"net_ft": (NET_FT, NOT_OF_ATI), "axia": (AXIA, NOT_OF_ATI), "onrobot": (ONROBOT, frozenset(("sensor_checksum",)))}
    TABLE = ""
    BARE_GAUGES = True
    cdef Rdt c

    def __init__(self, **given):
        self.keys = checked(self.PARAMETERS, given)
        counts_per_unit(self.keys, [1e3] * 6)       # units that it can print
        self.c.period_ns = <int64_t>(1e9 / self.keys["rate_hz"])
        self.c.buffer_size = self.keys["buffer_size"]
        self.plug.self, self.plug.power_up, self.plug.record, self.plug.listen = &self.c, power_up, record, listen

    def open(self, str address, str variant, scale):
        self.c.single_command, self.c.onrobot = variant == "axia", variant == "onrobot"
        port = self.on_udp(address, self.keys["stream_port"])
        servers = SetUpServers(address, variant, self.keys, counts_per_unit(self.keys, scale), self.gauge)
        self.closing.callback(servers.close)
        return {"variant": variant, "address": address, "stream_port": port,
                "http_port": servers.http_port, "calibration_port": servers.calibration_port}
