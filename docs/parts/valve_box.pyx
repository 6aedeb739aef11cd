"""Six valves behind one box on UDP, words i32 little-endian, µm: takes six setpoints, answers with six measured lengths. A datagram of one
byte asks for the lengths alone.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from drivers.raw_frames.frame_io cimport io_load_le32, io_now_ns, io_receive_datagrams, io_send, io_store_le32
from rt_kernels.codes cimport DRIVE_STATUS_CORRUPT, DRIVE_STATUS_NO_DATA, SAFETY_STATE_NOT_ARMED
from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from my_parts.wrist import UDP, connected, drain
from rt_kernels.parameters import checked

cdef enum:
    RECORD = 24     # bytes
    ROOM = 64
    MOST = 64       # answers in one tick

cdef struct State:
    int64_t heard_ns
    int64_t corrupt
    double leg[6]
    double rate[6]
    int known

cdef struct Self:
    int fd
    int64_t no_data_ns
    double period
    State state


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef State *s = &p.state
    cdef uint8_t record[ROOM]
    cdef double before[6]
    cdef int64_t came, now = io_now_ns()
    cdef uint32_t status = 0
    cdef int i, k, length, error, known = s.known
    memcpy(before, s.leg, sizeof(before))
    for k in range(MOST if p.fd >= 0 else 0):
        if not io_receive_datagrams(p.fd, record, ROOM, 1, &length, &came, &error):
            break
        if length != RECORD:
            s.corrupt += 1
            status |= DRIVE_STATUS_CORRUPT
            continue
        s.known = 1
        s.heard_ns = now
        for i in range(6):
            s.leg[i] = 1e-6 * <int32_t>io_load_le32(record + 4 * i)
    if not s.known or now - s.heard_ns > p.no_data_ns:
        status |= DRIVE_STATUS_NO_DATA
    for i in range(6):
        if known and s.heard_ns == now and sample.periods > 0:
            s.rate[i] = (s.leg[i] - before[i]) / (p.period * sample.periods)
        sample.measured_leg[i] = s.leg[i]
        sample.measured_leg_rate[i] = s.rate[i]
        sample.drive_corrupt_total[i] = s.corrupt
        sample.drive_status[i] = status


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef uint8_t record[RECORD]
    cdef double micrometres
    cdef int i
    memset(record, 0, RECORD)
    # no setpoints before the platform is armed
    if sample.safety_state == SAFETY_STATE_NOT_ARMED:
        io_send(p.fd, record, 1)
        return
    for i in range(6):
        micrometres = 1e6 * sample.leg_setpoint[i]
        io_store_le32(record + 4 * i, <uint32_t><int32_t>(micrometres + (0.5 if micrometres > 0.0 else -0.5)))
    io_send(p.fd, record, RECORD)


cdef class ValveBoxPort(PortPart):
    """The box. `open` raises ConnectionError without an answer."""

    PARAMETERS = UDP
    CONTEXT = ("period_s",)
    cdef Self c
    cdef dict keys
    cdef object link

    def __init__(self, *, period_s, **given):
        self.keys = checked(self.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.c.fd = -1
        self.c.period = period_s
        self.c.no_data_ns = <int64_t>(self.keys["no_data_ms"] * 1e6)
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.read = read
        self.plug.write = write

    @property
    def delays(self):
        """A measured length is one tick old."""
        return {"measured_leg_delay_s": self.c.period}

    def open(self):
        self.close()
        self.link = connected(self.keys, b"\x00")
        self.begin()
        self.c.fd = self.link.fileno()

    def begin(self):
        drain(self.link)
        memset(&self.c.state, 0, sizeof(State))

    def close(self):
        self.c.fd = -1
        if self.link is not None:
            self.link.close()
            self.link = None
