"""Memory that two processes share by an inherited file descriptor (memory_file.pyx)."""

from libc.stddef cimport size_t


cdef class MemoryFile:
    cdef void *memory       # NULL while there is none
    cdef size_t size        # bytes
    cdef readonly int fd
    cdef bint _owner

    cdef int make(self, str name, size_t size) except -1
    cdef int take_over(self, int fd, size_t least, str what) except -1
