"""No compensation: the measured wrench goes to the dynamics as it is, the setpoint is the simulated pose."""

from libc.string cimport memset

from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample


cdef struct Self:
    double loop_delay


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef int i
    for i in range(6):
        sample.F_T_corrected[i] = sample.F_T[i]
        sample.lead_offset[i] = 0.0
    sample.lead[0] = 1.0
    sample.lead[1] = 0.0
    sample.lead[2] = 0.0
    sample.loop_delay = (<Self *>self).loop_delay
    sample.compensation_status = 0


cdef class NoCompensator(StagePart):
    """Passes the wrench through; publishes the delay that it leaves alone."""

    CONTEXT = ("delays",)
    cdef Self c

    def __init__(self, *, delays):
        memset(&self.c, 0, sizeof(Self))
        self.c.loop_delay = delays.total_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = NULL
        self.plug.state_size = 0
        self.plug.step = step

    def fields(self):
        return self.c
