"""Inputs by script: a port behind those of a stand that overwrites single input fields at given ticks, and keeps what went by.

For tests that drive a whole line through a bad day: any field can take any bits (a NaN, a status word, a stall as `periods`) at any tick.
What is overwritten lasts for its tick; the port before it writes the field again in the next one.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from rt_kernels.layout import FIELDS, SAMPLE_DTYPE

EVENT_DTYPE = np.dtype([("tick", "<i8"), ("offset", "<i8"), ("size", "<i8"), ("bits", "<u8")])
INPUTS = frozenset(field[0] for field in FIELDS if field[6] == "input")

cdef struct Event:
    int64_t tick
    int64_t offset              # in the sample, bytes
    int64_t size                # 4 or 8
    uint64_t bits

cdef struct Self:
    const Event *event
    int64_t events
    int64_t next
    Sample *kept
    int64_t room
    int64_t count


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef const Event *e
    # a stall may have skipped ticks, and what was meant for them
    while p.next < p.events and p.event[p.next].tick <= sample.tick:
        e = p.event + p.next
        if e.tick == sample.tick:
            memcpy(<unsigned char *>sample + e.offset, &e.bits, e.size)
        p.next += 1


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    if p.count < p.room:
        p.kept[p.count] = sample[0]
        p.count += 1


def events(tick, field, index, values):
    """Records of EVENT_DTYPE: at each of the ticks, element `index` of the input field takes the value of the same place.

    tick, values: arrays of shape (n,), or numbers. Raises ValueError for a field that is no input."""
    if field not in INPUTS:
        raise ValueError(f"{field!r} is not an input of the table")
    kind, offset = SAMPLE_DTYPE.fields[field][:2]
    values = np.atleast_1d(np.asarray(values, kind.base))
    tick = np.broadcast_to(np.atleast_1d(tick), values.shape) if values.size > 1 else np.atleast_1d(tick)
    out = np.zeros(tick.shape[0], EVENT_DTYPE)
    out["tick"], out["size"], out["offset"] = tick, kind.base.itemsize, offset + index * kind.base.itemsize
    out["bits"] = np.broadcast_to(values.view(f"<u{kind.base.itemsize}"), out.shape)
    return out


cdef class ScriptedInputs(PortPart):
    """room: samples that can be kept."""

    cdef Self c
    cdef object _events
    cdef object _kept

    def __init__(self, int64_t room):
        memset(&self.c, 0, sizeof(Self))
        self._kept = np.zeros(max(room, 1), SAMPLE_DTYPE)
        cdef unsigned char[::1] view = self._kept.view(np.uint8)
        self.c.kept, self.c.room = <Sample *>&view[0], room
        self.load([])
        self.plug.self = &self.c
        self.plug.read = read
        self.plug.write = write

    def load(self, parts):
        """Starts again with these arrays of events, in any order; of two for the same field and tick the later one counts."""
        joined = np.concatenate([np.zeros(0, EVENT_DTYPE), *parts])
        beyond = (joined["offset"] < 0) | (joined["offset"] + joined["size"] > SAMPLE_DTYPE.itemsize) | (joined["size"] > 8)
        if beyond.any():
            raise ValueError("an event lies outside the sample: make events with `events`")
        self._events = np.append(joined[np.argsort(joined["tick"], kind="stable")], np.zeros(1, EVENT_DTYPE))
        cdef const unsigned char[::1] view = self._events.view(np.uint8)
        self.c.event, self.c.events = <const Event *>&view[0], self._events.shape[0] - 1
        self.c.next = self.c.count = 0

    @property
    def kept(self):
        """The samples that went by since `load`: a view, valid until the next run."""
        return self._kept[: self.c.count]
