"""The port that brings commands and hand controllers from the shared block into the sample: one command a tick,
newest record of each stick.

A command is acknowledged by its sequence number in the sample of the tick that took it.

A hand controller's axes are zero in the sample unless it is armed: its newest record is younger than `stale_s`, its deadman is held, and
since the last fault or release of the deadman it has once been centred with the deadman held. A silent controller, and one of whose records
some were rejected (out of order, two at once, held up on the way), is lost: status bit "stale" until it is back and centred.

A live run has a time after which it is parked (`end_at`): the command `park` then comes from here, with or without an operator.

The same port for a recorded operator: `recorded_operator`.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from rt_kernels.host cimport host_now
from rt_kernels.plugs cimport PortPart
from rt_kernels.ring cimport ControlBlock, HandSlot, SharedBlock, read_hand
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import COUNT, FLAG, TIME_NS, WORD, under
from rt_kernels.parameters import Parameter, checked


cdef struct Self:
    ControlBlock *block
    int64_t stale_ns
    int64_t now_ns
    double centred
    Hand hand[2]
    TimeIsUp up


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef HandSlot newest
    cdef int64_t now
    cdef int k
    take_next_command(p.block, sample)
    end_in_time(&p.up, sample)
    if p.block == NULL:
        return
    now = p.now_ns if p.now_ns else host_now()
    for k in range(2):
        # a writer that is busy at this moment leaves us the previous record
        if read_hand(&p.block.hand[k], &newest):
            p.hand[k].newest = newest
        if p.hand[k].newest.arrival_ns == 0:
            sample.hand_status[k] = 0
            continue
        take_hand(&p.hand[k], k, now - p.hand[k].newest.arrival_ns, p.stale_ns, p.centred, sample)


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


# whole numbers of what is kept of a hand controller
HAND_BOUNDS = {"newest.version": COUNT, "newest.sequence": TIME_NS, "newest.device_time_ns": TIME_NS, "newest.arrival_ns": TIME_NS,
               "newest.buttons": WORD, "newest.status": WORD, "lost": FLAG, "armed": FLAG}


cdef class CommandLatch(PortPart):
    """Commands and hand controllers of a run."""

    PARAMETERS = (
        Parameter("stale_s", "float", "s", "an older hand-controller record is stale", 0.2, low=0.01, high=10.0, stricter="lower"),
        Parameter("centred", "float", "-", "a hand controller counts as centred when all axes are within it", 0.02, low=0.0, high=0.5,
                  stricter="lower"),
    )
    CONTEXT = ("block",)
    cdef Self c
    cdef SharedBlock block

    def __init__(self, *, SharedBlock block, **given):
        keys = checked(CommandLatch.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.block = block
        self.c.block = block.block
        self.c.stale_ns = <int64_t>(keys["stale_s"] * 1e9)
        self.c.centred = keys["centred"]
        self.plug.self = &self.c
        self.plug.state = &self.c.hand
        self.plug.state_size = sizeof(self.c.hand)
        self.plug.read = read
        self.plug.write = write

    @property
    def now_ns(self):
        """Time against which the age of a hand controller's record is taken, ns; 0: the monotonic clock of the host at each read."""
        return self.c.now_ns

    @now_ns.setter
    def now_ns(self, int64_t value):
        self.c.now_ns = value

    def state_fields(self):
        return {"hand": self.c.hand}

    def state_bounds(self):
        return under("hand", HAND_BOUNDS)

    def end_at(self, int64_t park_ns, int64_t abort_ns):
        """The run is parked at its run time park_ns, ns, and aborted at abort_ns where it has not ended by then."""
        self.c.up.park_ns = park_ns
        self.c.up.abort_ns = abort_ns
