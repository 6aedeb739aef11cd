"""A recorded operator as a port: hand-controller records and commands that are due at given run times (hil_server.operator_desk.script).

Handling of a record in the sample: `command_latch`. Time is the sample's, so that a simulation gives the same bits every time.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from rt_kernels.codes cimport HAND_STATUS_PRESENT
from rt_kernels.command_latch cimport Hand, TimeIsUp, end_in_time, take_hand, take_next_command
from rt_kernels.plugs cimport PortPart
from rt_kernels.ring cimport ControlBlock, HandSlot, SharedBlock
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import TIME_NS, under
from rt_kernels.command_latch import HAND_BOUNDS
from rt_kernels.command_latch import CommandLatch
from rt_kernels.parameters import checked


cdef enum:
    COMMAND = 2                 # what of a script's row: 0 and 1 are the stations

cdef struct Row:
    int64_t time_ns
    double value[8]             # six axes, or the arguments of a command
    int32_t what
    int32_t code                # of a command
    uint32_t buttons
    uint32_t silent

cdef struct State:
    Hand hand[2]
    int64_t silent_since[2]     # -1: it sends
    int64_t next                # row

cdef struct Self:
    ControlBlock *block
    const Row *row
    int64_t rows
    int64_t repeat_ns
    int64_t stale_ns
    double centred
    State state
    TimeIsUp up


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    """Rows that are due, one command a tick; commands from outside (Ctrl-C, a client) go before those of the script."""
    cdef Self *p = <Self *>self
    cdef State *s = &p.state
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
            newest.status = HAND_STATUS_PRESENT
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
    end_in_time(&p.up, sample)


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


ROW_DTYPE = np.dtype([("time_ns", "<i8"), ("value", "<f8", (8,)), ("what", "<i4"), ("code", "<i4"), ("buttons", "<u4"), ("silent", "<u4")])


cdef class Script(PortPart):
    """Hand-controller records and commands by run time. rows: array of ROW_DTYPE in order of time (what: station 0 or 1, or 2 for a
    command); a station repeats its last row 50 times a second until the next; further keys as those of the command latch.
    Raises ValueError for rows out of order."""

    PARAMETERS = CommandLatch.PARAMETERS
    cdef Self c
    cdef SharedBlock block
    cdef object rows

    def __init__(self, rows, SharedBlock block=None, **given):
        keys = checked(Script.PARAMETERS, given)
        if len(rows) and (np.any(np.diff(rows["time_ns"]) < 0) or np.any((rows["what"] < 0) | (rows["what"] > COMMAND))):
            raise ValueError("script: rows must be in order of time and be of station 0, station 1 or a command")
        memset(&self.c, 0, sizeof(Self))
        # one row more, so that an empty script has an address too
        self.rows = np.zeros(len(rows) + 1, ROW_DTYPE)
        self.rows[: len(rows)] = rows
        cdef const unsigned char[::1] view = self.rows.view(np.uint8)
        self.c.row = <const Row *>&view[0]
        self.c.rows = len(rows)
        self.c.repeat_ns = 20_000_000
        self.c.stale_ns = <int64_t>(keys["stale_s"] * 1e9)
        self.c.centred = keys["centred"]
        self.c.state.silent_since[0] = self.c.state.silent_since[1] = -1
        self.block = block
        self.c.block = block.block if block is not None else NULL
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.read = read
        self.plug.write = write

    def state_fields(self):
        return self.c.state

    def state_bounds(self):
        return under("hand", HAND_BOUNDS) | {"silent_since": TIME_NS, "next": (0, self.c.rows)}

    def end_at(self, int64_t park_ns, int64_t abort_ns):
        """The run is parked at its run time park_ns, ns, and aborted at abort_ns where it has not ended by then."""
        self.c.up.park_ns = park_ns
        self.c.up.abort_ns = abort_ns
