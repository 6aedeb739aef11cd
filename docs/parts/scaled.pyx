"""The measured wrench times a constant, the setpoint as it is: what a wrong scale of the force sensor does to a contact."""

from libc.string cimport memset

from my_parts.scaled_parameters cimport ScaledParameters, fill_scaled, tune_scaled
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Parameter, Tunable, checked


cdef struct Self:
    ScaledParameters keys       # made of PARAMETERS by the build
    double loop_delay


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef int i
    for i in range(6):
        sample.F_T_corrected[i] = p.keys.scale * sample.F_T[i]
        sample.lead_offset[i] = 0.0
    # no lead: the setpoint is the simulated pose
    sample.lead[0] = 1.0
    sample.lead[1] = 0.0
    sample.lead[2] = 0.0
    sample.loop_delay = p.loop_delay
    sample.compensation_status = 0


cdef class Scaled(StagePart):
    """Scales the wrench; publishes the delay that it leaves alone."""

    PARAMETERS = (
        Parameter("scale", "float", "-", "factor on force and moment", 1.0, 0.1, 10.0, tunable=Tunable(0.5)),
    )
    CONTEXT = ("delays",)
    cdef Self c

    def __init__(self, *, delays, **given):
        keys = checked(self.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        fill_scaled(&self.c.keys, keys)
        self.c.loop_delay = delays.total_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = NULL
        self.plug.state_size = 0
        self.plug.step = step
        tune_scaled(self, &self.c.keys, keys)

    def fields(self):
        return self.c
