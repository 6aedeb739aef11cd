"""The line of one run and the way of one sample through it."""

from rt_kernels.plugs cimport Clock, Port, Stage
from rt_kernels.ring cimport ControlBlock
from rt_kernels.sample cimport Sample

cdef struct PlacedStage:
    Stage stage
    double *aux         # this part's own auxiliary channels

cdef struct PlacedPort:
    Port port
    double *aux

cdef struct Line:
    Clock clock
    PlacedPort port[16]
    int port_count
    PlacedStage locator
    PlacedStage wrench
    PlacedStage event_detector
    PlacedStage guidance
    PlacedStage compensator
    PlacedStage dynamics
    PlacedStage placer
    PlacedStage safety
    Sample sample       # the working sample: fields keep their last value until their writer is called
    double *aux         # all auxiliary channels
    ControlBlock *block # where samples go; NULL: nowhere

cdef void tick(Line *line) noexcept nogil
