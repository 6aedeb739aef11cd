"""The port that brings commands and hand controllers from the shared block into the sample: one command a tick, newest record of each stick.

A command is acknowledged by its sequence number in the sample of the tick that took it. A hand controller whose newest record is older
than `stale_s` gets the status bit "stale"; what that means for the motion is the guidance's business.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from rt_kernels.host cimport host_now
from rt_kernels.plugs cimport PortPart
from rt_kernels.ring cimport CommandRecord, ControlBlock, HandSlot, SharedBlock, read_hand, take_command
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Parameter


cdef struct Self:
    ControlBlock *block
    int64_t stale_ns
    HandSlot hand[2]


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef CommandRecord record
    cdef HandSlot newest
    cdef int i, k
    sample.command_code = 0
    for i in range(8):
        sample.command_arg[i] = 0.0
    if p.block == NULL:
        return
    if take_command(p.block, &record):
        sample.command_code = record.code
        sample.command_sequence = record.sequence
        for i in range(8):
            sample.command_arg[i] = record.arg[i]
    for k in range(2):
        # a writer that is busy at this moment leaves us the previous record
        if read_hand(&p.block.hand[k], &newest):
            p.hand[k] = newest
        if p.hand[k].sequence == 0:
            sample.hand_status[k] = 0
            continue
        sample.hand_sequence[k] = p.hand[k].sequence
        sample.hand_age_ns[k] = host_now() - p.hand[k].arrival_ns
        sample.hand_buttons[k] = p.hand[k].buttons
        sample.hand_status[k] = p.hand[k].status | (2 if sample.hand_age_ns[k] > p.stale_ns else 0)
        for i in range(6):
            sample.hand_axis[6 * k + i] = p.hand[k].axis[i]


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


cdef class CommandLatch(PortPart):
    """Commands and hand controllers of a run."""

    PARAMETERS = (
        Parameter("stale_s", "float", "s", "an older hand-controller record is stale", 0.2, low=0.01, high=10.0),
    )
    CONTEXT = ("block",)
    cdef Self c
    cdef SharedBlock block

    def __init__(self, *, SharedBlock block, stale_s=0.2):
        memset(&self.c, 0, sizeof(Self))
        self.block = block
        self.c.block = block.block
        self.c.stale_ns = <int64_t>(stale_s * 1e9)
        self.plug.self = &self.c
        self.plug.state = &self.c.hand
        self.plug.state_size = sizeof(self.c.hand)
        self.plug.read = read
        self.plug.write = write
