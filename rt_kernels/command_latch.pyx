"""The port that brings commands and hand controllers from the shared block into the sample: one command a tick, newest record of each stick.

A command is acknowledged by its sequence number in the sample of the tick that took it.

A hand controller's axes are zero in the sample unless it is armed: its newest record is younger than `stale_s`, its deadman is held, and
since the last fault or release of the deadman it has once been centred with the deadman held. A silent controller, and one of whose records
some were rejected (out of order, two at once, held up on the way), is lost: status bit "stale" until it is back and centred.

`Script` is the same port for a recorded operator: hand-controller records and commands that are due at given run times.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t
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


cdef inline void take_hand(Hand *hand, int k, int64_t age_ns, int64_t stale_ns, double centred, Sample *sample) noexcept nogil:
    """The newest record of hand controller k into the sample: its axes only while it is armed."""
    cdef int i
    sample.hand_sequence[k] = hand.newest.sequence
    sample.hand_age_ns[k] = age_ns
    sample.hand_buttons[k] = hand.newest.buttons
    arm(hand, age_ns <= stale_ns, centred)
    sample.hand_status[k] = hand.newest.status | (STALE if hand.lost else 0)
    for i in range(6):
        sample.hand_axis[6 * k + i] = hand.newest.axis[i] if hand.armed else 0.0


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


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef HandSlot newest
    cdef int k
    take_next_command(p.block, sample)
    if p.block == NULL:
        return
    for k in range(2):
        # a writer that is busy at this moment leaves us the previous record
        if read_hand(&p.block.hand[k], &newest):
            p.hand[k].newest = newest
        if p.hand[k].newest.arrival_ns == 0:
            sample.hand_status[k] = 0
            continue
        take_hand(&p.hand[k], k, host_now() - p.hand[k].newest.arrival_ns, p.stale_ns, p.centred, sample)


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


# --------------------------------------------------------------------------------------------------------- recorded operator

cdef enum:
    PRESENT = 1
    COMMAND = 2                 # what of a script's row: 0 and 1 are the stations
    SILENT = 1                  # flag of a row: the station sends nothing from here on

cdef struct Row:
    int64_t time_ns
    double value[8]             # six axes, or the arguments of a command
    int32_t what
    int32_t code                # of a command
    uint32_t buttons
    uint32_t silent

cdef struct ScriptState:
    Hand hand[2]
    int64_t silent_since[2]     # -1: it sends
    int64_t next                # row

cdef struct ScriptSelf:
    ControlBlock *block
    const Row *row
    int64_t rows
    int64_t repeat_ns
    int64_t stale_ns
    double centred
    ScriptState state


cdef void read_script(void *self, Sample *sample, double *aux) noexcept nogil:
    """Rows that are due, one command a tick; commands from outside (Ctrl-C, a client) go before those of the script."""
    cdef ScriptSelf *p = <ScriptSelf *>self
    cdef ScriptState *s = &p.state
    cdef const Row *row
    cdef HandSlot *newest
    cdef int64_t age
    cdef int i, k
    take_next_command(p.block, sample)
    while s.next < p.rows and p.row[s.next].time_ns <= sample.time_ns:
        row = &p.row[s.next]
        if row.what == COMMAND:
            if sample.command_code != 0:
                break
            sample.command_code = row.code
            sample.command_sequence = s.next
            for i in range(8):
                sample.command_arg[i] = row.value[i]
        elif row.silent:
            s.silent_since[row.what] = row.time_ns
        else:
            s.silent_since[row.what] = -1
            newest = &s.hand[row.what].newest
            for i in range(6):
                newest.axis[i] = row.value[i]
            newest.buttons = row.buttons
            newest.status = PRESENT
            newest.sequence = s.next
            newest.arrival_ns = row.time_ns
        s.next += 1
    for k in range(2):
        newest = &s.hand[k].newest
        if newest.status == 0:
            sample.hand_status[k] = 0
            continue
        # between two rows the device repeats the last one, as a station does
        age = sample.time_ns - newest.arrival_ns
        if s.silent_since[k] < 0:
            age %= p.repeat_ns
        else:
            age = sample.time_ns - s.silent_since[k]
        take_hand(&s.hand[k], k, age, p.stale_ns, p.centred, sample)


ROW_DTYPE = np.dtype([("time_ns", "<i8"), ("value", "<f8", (8,)), ("what", "<i4"), ("code", "<i4"), ("buttons", "<u4"), ("silent", "<u4")])


cdef class Script(PortPart):
    """Hand-controller records and commands by run time. rows: array of ROW_DTYPE in order of time (what: station 0 or 1, or 2 for a
    command); a station repeats its last row 50 times a second until the next. Raises ValueError for rows out of order."""

    cdef ScriptSelf c
    cdef SharedBlock block
    cdef object rows

    def __init__(self, rows, SharedBlock block=None, stale_s=0.2, centred=0.02):
        if len(rows) and (np.any(np.diff(rows["time_ns"]) < 0) or np.any((rows["what"] < 0) | (rows["what"] > COMMAND))):
            raise ValueError("script: rows must be in order of time and be of station 0, station 1 or a command")
        memset(&self.c, 0, sizeof(ScriptSelf))
        # one row more, so that an empty script has an address too
        self.rows = np.zeros(len(rows) + 1, ROW_DTYPE)
        self.rows[: len(rows)] = rows
        cdef const unsigned char[::1] view = self.rows.view(np.uint8)
        self.c.row = <const Row *>&view[0]
        self.c.rows = len(rows)
        self.c.repeat_ns = 20_000_000
        self.c.stale_ns = <int64_t>(stale_s * 1e9)
        self.c.centred = centred
        self.c.state.silent_since[0] = self.c.state.silent_since[1] = -1
        self.block = block
        self.c.block = block.block if block is not None else NULL
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(ScriptState)
        self.plug.read = read_script
        self.plug.write = write
