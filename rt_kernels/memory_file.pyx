# distutils: extra_compile_args = -O1
"""Memory that two processes share: a file without a place in any folder (`memfd`), inherited by file descriptor; nothing is left behind
when the processes are gone. Base of the blocks that lie in one; each says what it holds and which version of it.
"""

import os

from libc.string cimport memset

from rt_kernels.host cimport host_lock_memory, host_map, host_unmap


cdef class MemoryFile:
    """Nothing yet; `make` or `take_over` gives it memory."""

    def __cinit__(self):
        self.fd = -1

    cdef int make(self, str name, size_t size) except -1:
        """`size` bytes of zeros. Raises OSError, MemoryError."""
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC)
        self._owner = True
        os.ftruncate(self.fd, size)
        self._map(size)
        # touching every page now keeps page faults out of the loop
        memset(self.memory, 0, size)
        host_lock_memory(self.memory, size)
        return 0

    cdef int take_over(self, int fd, size_t least, str what) except -1:
        """The memory behind an inherited descriptor. Raises ValueError for fewer than `least` bytes, OSError, MemoryError."""
        self.fd = fd
        size = os.fstat(fd).st_size
        if size < least:
            raise ValueError(f"descriptor {fd} holds no {what}: {size} bytes")
        self._map(size)
        return 0

    def _map(self, size_t size):
        self.memory = host_map(size, self.fd)
        if self.memory == NULL:
            raise MemoryError(f"cannot map {size} bytes of shared memory")
        self.size = size

    def __dealloc__(self):
        if self.memory != NULL:
            host_unmap(self.memory, self.size)
        if self._owner and self.fd >= 0:
            os.close(self.fd)
