"""The sensor of wrist.pyx in software, for the virtual stand: a record in each period from a byte 1 on, until a byte 0."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from drivers.raw_frames.frame_io cimport io_receive_from, io_store_le32
from drivers.simulated.emulated_sensor cimport NEVER, EmulatedSensor, SensorWire, put
from drivers.simulated.sensor_emulators.wire_faults cimport every

from rt_kernels.parameters import Parameter, checked

cdef enum:
    RECORD = 28     # bytes

cdef struct Self:
    int64_t period_ns
    double counts_per_unit
    uint32_t number


cdef void power_up(void *self, SensorWire *w) noexcept nogil:
    (<Self *>self).number = 0


cdef void listen(void *self, SensorWire *w) noexcept nogil:
    """Requests; who asked last has the records."""
    cdef uint8_t request[8]
    cdef int size = io_receive_from(w.fd, request, 8, &w.peer)
    while size >= 0:
        if size == 1:
            w.record_ns = w.now if request[0] else NEVER
        size = io_receive_from(w.fd, request, 8, &w.peer)


cdef void record(void *self, SensorWire *w) noexcept nogil:
    """The record of now, through the faults of the wire that it can show."""
    cdef Self *p = <Self *>self
    cdef uint8_t bytes[RECORD]
    cdef int i
    w.record_ns += p.period_ns
    p.number += 1
    if w.lost or w.faults.silent or every(w.faults.drop_every, p.number):
        return
    io_store_le32(bytes, p.number)
    for i in range(6):
        io_store_le32(bytes + 4 + 4 * i, <uint32_t><int32_t>min(2e9, max(-2e9, p.counts_per_unit * w.F[i])))
    put(w, bytes, RECORD, w.now + w.faults.delay_ns, 0)


cdef class EmulatedWrist(EmulatedSensor):
    """The wrist's sensor on UDP."""

    PARAMETERS = (
        Parameter("port", "int", "-", "UDP port, 0: any", 0, 0, 65535),
        Parameter("rate_hz", "float", "Hz", "records in a second", 1000.0, 1.0, 8000.0),
        Parameter("counts_per_unit", "float", "1/N", "scale, of moments per N.m", 1000.0, 1e-3, 1e9),
    )
    cdef Self c

    def __init__(self, **given):
        self.keys = checked(self.PARAMETERS, given)
        self.c.period_ns = <int64_t>(1e9 / self.keys["rate_hz"])
        self.c.counts_per_unit = self.keys["counts_per_unit"]
        self.plug.self, self.plug.power_up, self.plug.record, self.plug.listen = &self.c, power_up, record, listen

    def open(self, str address, str variant, scale):
        return {"address": address, "port": self.on_udp(address, self.keys["port"])}
