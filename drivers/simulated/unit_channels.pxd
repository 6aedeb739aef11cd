"""Channels of the docking unit of a virtual stand that is a process of its own, in memory shared with the server."""

from libc.stdint cimport int64_t

from rt_kernels.memory_file cimport MemoryFile

# the newest values, guarded by a version that is odd while they are written; `count` of them follow
cdef struct UnitBlock:
    int64_t version
    int64_t count

cdef void put_channels(UnitBlock *block, const double *values) noexcept nogil

cdef class UnitMemory(MemoryFile):
    cdef UnitBlock *block
