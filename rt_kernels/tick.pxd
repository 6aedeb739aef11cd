"""The line of one run and the way of one sample through it. Generated from channels.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.plugs cimport Clock, Port, Stage
from rt_kernels.ring cimport ControlBlock
from rt_kernels.sample cimport Sample

cdef enum:
    PORTS_MAX = 16
    STAGE_COUNT = 9

# places in Line.stage, in the order of the tick
cdef enum:
    STAGE_FORWARD_KINEMATICS = 0
    STAGE_WRENCH = 1
    STAGE_EVENTS = 2
    STAGE_GUIDANCE = 3
    STAGE_CONTROL = 4
    STAGE_COMPENSATION = 5
    STAGE_DYNAMICS = 6
    STAGE_SETPOINT_KINEMATICS = 7
    STAGE_SAFETY = 8

cdef struct PlacedStage:
    Stage stage
    double *aux  # this part's own auxiliary channels

cdef struct PlacedPort:
    Port port
    double *aux

cdef struct Line:
    Clock clock
    PlacedPort port[PORTS_MAX]
    int port_count
    PlacedStage stage[STAGE_COUNT]
    Sample sample  # the working sample: fields keep their last value until their writer is called
    double *aux  # all auxiliary channels
    ControlBlock *block  # where samples go; NULL: nowhere

cdef void tick(Line *line) noexcept nogil
