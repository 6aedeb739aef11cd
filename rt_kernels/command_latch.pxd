"""What a port of commands and hand controllers does with a record, wherever it comes from. Rules: command_latch.pyx."""

from libc.stdint cimport int64_t

from rt_kernels.codes cimport COMMAND_ABORT, COMMAND_PARK, HAND_BUTTON_DEADMAN, HAND_STATUS_REJECTED, HAND_STATUS_STALE
from rt_kernels.ring cimport CommandRecord, ControlBlock, HandSlot, take_command
from rt_kernels.sample cimport Sample

cdef struct Hand:
    HandSlot newest
    int lost
    int armed


cdef inline bint is_centred(const HandSlot *record, double limit) noexcept nogil:
    cdef int i
    for i in range(6):
        if not -limit <= record.axis[i] <= limit:
            return False
    return True


cdef inline void arm(Hand *hand, bint fresh, double limit) noexcept nogil:
    """Loses a hand controller at a fault, and has it back only centred; the deadman alone disarms without a fault."""
    cdef bint held = hand.newest.buttons & HAND_BUTTON_DEADMAN
    cdef bint good = fresh and not hand.newest.status & HAND_STATUS_REJECTED
    if not good:
        hand.lost = 1
    if not good or not held:
        hand.armed = 0
    if good and is_centred(&hand.newest, limit):
        hand.lost = 0
        hand.armed = held


cdef inline void take_hand(Hand *hand, int k, int64_t age_ns, int64_t stale_ns, double centred, Sample *sample) noexcept nogil:
    """The newest record of hand controller k into the sample: its axes only while it is armed."""
    cdef int i
    sample.hand_sequence[k] = hand.newest.sequence
    sample.hand_age_ns[k] = age_ns
    sample.hand_buttons[k] = hand.newest.buttons
    arm(hand, age_ns <= stale_ns, centred)
    sample.hand_status[k] = hand.newest.status | (HAND_STATUS_STALE if hand.lost else 0)
    for i in range(6):
        sample.hand_axis[6 * k + i] = hand.newest.axis[i] if hand.armed else 0.0


cdef struct TimeIsUp:
    int64_t park_ns         # run time from which a run still in progress is parked, 0: never
    int64_t abort_ns        # and aborted, where that has not ended it
    int given               # of the two commands


cdef inline void end_in_time(TimeIsUp *up, Sample *sample) noexcept nogil:
    """A run whose time is up is led home by a command, which the log has like any other; its first argument, -1, says who gave it: in
    other commands that is a name in bytes. One that comes from outside at the same tick goes before it."""
    if up.park_ns == 0 or up.given == 2 or sample.command_code != 0:
        return
    if up.given == 1 and sample.time_ns >= up.abort_ns:
        sample.command_code = COMMAND_ABORT
    elif up.given == 0 and sample.time_ns >= up.park_ns:
        sample.command_code = COMMAND_PARK
    else:
        return
    sample.command_arg[0] = -1.0
    up.given += 1


cdef inline void take_next_command(ControlBlock *block, Sample *sample) noexcept nogil:
    """The oldest waiting command into the sample, or none."""
    cdef CommandRecord record
    cdef int i
    sample.command_code = 0
    for i in range(8):
        sample.command_arg[i] = 0.0
    if block != NULL and take_command(block, &record):
        sample.command_code = record.code
        sample.command_sequence = record.sequence
        for i in range(8):
            sample.command_arg[i] = record.arg[i]
