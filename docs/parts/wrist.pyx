"""Six-axis sensor on UDP, little-endian: number u32, then Fx Fy Fz Mx My Mz as i32 counts. A byte 1 starts it, 0 ends it."""

import contextlib
import socket

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from drivers.raw_frames.frame_io cimport io_load_le32, io_now_ns, io_receive_datagrams
from drivers.wrench_sensors.sensor_output cimport SensorOutput, begin_tick, judge_ages, write_output
from rt_kernels.codes cimport SENSOR_STATUS_CORRUPT, SENSOR_STATUS_LOST
from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Parameter, checked

cdef enum:
    RECORD = 28     # bytes
    ROOM = 64
    MOST = 64       # records in one tick

cdef struct State:
    SensorOutput out
    double counts[6]
    uint32_t number     # of the newest record

cdef struct Self:
    int fd
    int64_t no_data_ns
    State state

# keys and functions of a device on UDP
UDP = (
    Parameter("address", "str", "-", "IPv4 address"),
    Parameter("port", "int", "-", "UDP port", low=1, high=65535),
    Parameter("no_data_ms", "float", "ms", "longest silence", 5.0, 0.5, 10000.0),
    Parameter("timeout_s", "float", "s", "time for the first answer", 2.0, 0.05, 60.0),
)


def connected(keys, bytes first):
    """Socket of a device that has answered `first`. Raises ConnectionError."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.settimeout(keys["timeout_s"])
    try:
        link.connect((keys["address"], keys["port"]))
        link.send(first)
        link.recv(ROOM)
    except OSError as error:
        link.close()
        raise ConnectionError(f"no answer from {keys['address']}:{keys['port']}: {error}") from error
    link.setblocking(False)
    return link


def drain(link):
    """Drops what has arrived."""
    with contextlib.suppress(BlockingIOError):
        for _ in range(100000):
            link.recv(ROOM)


cdef void take(State *s, const uint8_t *record, int length, int64_t now) noexcept nogil:
    """One datagram."""
    cdef uint32_t ahead
    cdef int i
    if length != RECORD:
        s.out.corrupt_total += 1
        s.out.seen |= SENSOR_STATUS_CORRUPT
        return
    s.out.heard_ns = now
    ahead = io_load_le32(record) - s.number if s.out.record_total else 1
    # doubled, or later than a newer one
    if ahead == 0 or ahead >= <uint32_t>0x80000000:
        return
    if ahead > 1:
        s.out.lost_total += ahead - 1
        s.out.seen |= SENSOR_STATUS_LOST
    s.number = io_load_le32(record)
    s.out.sequence += ahead
    s.out.record_total += 1
    s.out.received_ns = now
    for i in range(6):
        s.counts[i] = <int32_t>io_load_le32(record + 4 + 4 * i)


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef uint8_t record[ROOM]
    cdef int64_t came, now = io_now_ns()
    cdef int i, length, error
    begin_tick(&p.state.out)
    for i in range(MOST if p.fd >= 0 else 0):
        if not io_receive_datagrams(p.fd, record, ROOM, 1, &length, &came, &error):
            break
        take(&p.state, record, length, came)
    now = io_now_ns()
    # silence is reported, the last values stay
    judge_ages(&p.state.out, p.fd < 0, p.no_data_ns, 0, now)
    for i in range(6):
        sample.wrench_raw[i] = p.state.counts[i]
    write_output(&p.state.out, p.fd >= 0, now, sample)


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


cdef class WristPort(PortPart):
    """The sensor. `open` raises ConnectionError without an answer."""

    PARAMETERS = (*UDP, Parameter("counts_per_unit", "float", "1/N", "scale, of moments per N.m", 1000.0, 1e-3, 1e9))
    cdef Self c
    cdef dict keys
    cdef object link

    def __init__(self, **given):
        self.keys = checked(self.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.c.fd = -1
        self.c.no_data_ns = <int64_t>(self.keys["no_data_ms"] * 1e6)
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.read = read
        self.plug.write = write

    @property
    def sensor_scale(self):
        """Counts per N and N.m of the six channels."""
        return [self.keys["counts_per_unit"]] * 6

    def open(self):
        self.close()
        self.link = connected(self.keys, b"\x01")
        self.begin()
        self.c.fd = self.link.fileno()

    def begin(self):
        drain(self.link)
        memset(&self.c.state, 0, sizeof(State))
        self.c.state.out.opened_ns = io_now_ns()

    def close(self):
        self.c.fd = -1
        if self.link is not None:
            with contextlib.suppress(OSError):
                self.link.send(b"\x00")
            self.link.close()
            self.link = None
