"""The port that brings commands and hand controllers from the shared block into the sample: one command a tick, newest record of each stick.

A command is acknowledged by its sequence number in the sample of the tick that took it.

A hand controller's axes are zero in the sample unless it is armed: its newest record is younger than `stale_s`, its deadman is held, and
since the last fault or release of the deadman it has once been centred with the deadman held. A silent controller, and one of whose records
some were rejected (out of order, two at once, held up on the way), is lost: status bit "stale" until it is back and centred.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from rt_kernels.host cimport host_now
from rt_kernels.plugs cimport PortPart
from rt_kernels.ring cimport CommandRecord, ControlBlock, HandSlot, SharedBlock, read_hand, take_command
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Parameter


cdef enum:
    STALE = 2                   # bits of hand_status
    REJECTED = 4
    DEADMAN = 1                 # bit of hand_buttons

cdef struct Hand:
    HandSlot newest
    int lost
    int armed

cdef struct Self:
    ControlBlock *block
    int64_t stale_ns
    double centred
    Hand hand[2]


cdef inline bint is_centred(const HandSlot *record, double limit) noexcept nogil:
    cdef int i
    for i in range(6):
        if not -limit <= record.axis[i] <= limit:
            return False
    return True


cdef inline void arm(Hand *hand, bint fresh, double limit) noexcept nogil:
    """Loses a hand controller at a fault, and has it back only centred; the deadman alone disarms without a fault."""
    cdef bint held = hand.newest.buttons & DEADMAN
    cdef bint good = fresh and not hand.newest.status & REJECTED
    if not good:
        hand.lost = 1
    if not good or not held:
        hand.armed = 0
    if good and is_centred(&hand.newest, limit):
        hand.lost = 0
        hand.armed = held


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef CommandRecord record
    cdef HandSlot newest
    cdef Hand *hand
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
            p.hand[k].newest = newest
        hand = &p.hand[k]
        if hand.newest.arrival_ns == 0:
            sample.hand_status[k] = 0
            continue
        sample.hand_sequence[k] = hand.newest.sequence
        sample.hand_age_ns[k] = host_now() - hand.newest.arrival_ns
        sample.hand_buttons[k] = hand.newest.buttons
        arm(hand, sample.hand_age_ns[k] <= p.stale_ns, p.centred)
        sample.hand_status[k] = hand.newest.status | (STALE if hand.lost else 0)
        for i in range(6):
            sample.hand_axis[6 * k + i] = hand.newest.axis[i] if hand.armed else 0.0


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


cdef class CommandLatch(PortPart):
    """Commands and hand controllers of a run."""

    PARAMETERS = (
        Parameter("stale_s", "float", "s", "an older hand-controller record is stale", 0.2, low=0.01, high=10.0),
        Parameter("centred", "float", "-", "a hand controller counts as centred when all axes are within it", 0.02, low=0.0, high=0.5),
    )
    CONTEXT = ("block",)
    cdef Self c
    cdef SharedBlock block

    def __init__(self, *, SharedBlock block, stale_s=0.2, centred=0.02):
        memset(&self.c, 0, sizeof(Self))
        self.block = block
        self.c.block = block.block
        self.c.stale_ns = <int64_t>(stale_s * 1e9)
        self.c.centred = centred
        self.plug.self = &self.c
        self.plug.state = &self.c.hand
        self.plug.state_size = sizeof(self.c.hand)
        self.plug.read = read
        self.plug.write = write
