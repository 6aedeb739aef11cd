"""What the docking unit in software says of itself (ring pose, cables, clutches, latches, travels), for the log of a run on the stand.

A unit in hardware has no such channels: nothing of the line reads them, and every one is marked as not measured. In process the port of the
virtual stand copies them out of its plant. A stand of its own process puts them after every advance of its plant into memory that the
server shares with it, beside the wires, and a port of the line takes the newest once a tick: recorded inputs like those of any device.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

import numpy as np

from rt_kernels.host cimport atomic_fence, atomic_get, atomic_set
from rt_kernels.memory_file cimport MemoryFile
from rt_kernels.plugs cimport PortPart
from rt_kernels.sample cimport Sample

from rt_kernels.parameters import Aux

NOT_MEASURED = "virtual stand, not measured"


def of_unit(mechanism):
    """The auxiliary channels of a mechanism as a stand hands them to the log: marked as not measured."""
    return tuple(Aux(one.name, one.unit, f"{NOT_MEASURED}: {one.meaning}", one.count) for one in mechanism.AUX)


def are_of_unit(meanings):
    """Whether a run with channels of these meanings has those of a docking unit in software."""
    return any(meaning.startswith(NOT_MEASURED) for meaning in meanings)


cdef inline double *values_of(UnitBlock *block) noexcept nogil:
    return <double *>(block + 1)


cdef void put_channels(UnitBlock *block, const double *values) noexcept nogil:
    """New values, by the only writer."""
    atomic_set(&block.version, block.version + 1)
    atomic_fence()
    memcpy(values_of(block), values, block.count * sizeof(double))
    atomic_set(&block.version, block.version + 1)


cdef class UnitMemory(MemoryFile):
    """The memory: `create` in the server, `attach(fd)` in the stand. count: numbers."""

    @staticmethod
    def create(int64_t count):
        """Memory for `count` numbers, 0 at first. Raises ValueError, OSError, MemoryError."""
        if count < 1:
            raise ValueError(f"channels of the unit: {count}, limit 1 or more")
        cdef UnitMemory self = UnitMemory.__new__(UnitMemory)
        self.make("hil-server-unit", sizeof(UnitBlock) + <size_t>count * sizeof(double))
        self.block = <UnitBlock *>self.memory
        self.block.count = count
        return self

    @staticmethod
    def attach(int fd, int64_t count):
        """The memory behind an inherited descriptor. Raises ValueError when it is not for `count` numbers."""
        cdef UnitMemory self = UnitMemory.__new__(UnitMemory)
        self.take_over(fd, sizeof(UnitBlock) + <size_t>count * sizeof(double), "channels of the unit")
        self.block = <UnitBlock *>self.memory
        if self.block.count != count:
            raise ValueError(f"descriptor {fd} is for {self.block.count} channels of the unit, its mechanism has {count}")
        return self

    def put(self, const double[::1] values):
        """New values, as many as there are channels. Raises ValueError."""
        if values.shape[0] != self.block.count:
            raise ValueError(f"{values.shape[0]} values for {self.block.count} channels of the unit")
        put_channels(self.block, &values[0])


cdef struct Self:
    UnitBlock *block
    double *taken               # what of it was last read whole


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    """The newest values; those of the tick before while the stand writes."""
    cdef Self *me = <Self *>self
    cdef int64_t before = atomic_get(&me.block.version)
    if before & 1:
        return
    memcpy(me.taken, values_of(me.block), me.block.count * sizeof(double))
    atomic_fence()
    if atomic_get(&me.block.version) == before:
        memcpy(aux, me.taken, me.block.count * sizeof(double))


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


cdef class UnitChannelsPort(PortPart):
    """Reads them once a tick. memory: UnitMemory of the stand; mechanism: its unit, for the names."""

    cdef Self c
    cdef UnitMemory _memory
    cdef object _taken
    cdef readonly tuple AUX

    def __init__(self, UnitMemory memory, mechanism):
        self.AUX = of_unit(mechanism)
        if sum(channel.count for channel in self.AUX) != memory.block.count:
            raise ValueError(f"the stand has a unit with {memory.block.count} channels, not that of the test")
        self._memory = memory
        self._taken = np.zeros(memory.block.count)
        cdef double[::1] taken = self._taken
        memset(&self.c, 0, sizeof(Self))
        self.c.block, self.c.taken = memory.block, &taken[0]
        self.plug.self = &self.c
        self.plug.read = read
        self.plug.write = write
