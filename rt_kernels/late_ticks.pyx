# distutils: extra_compile_args = -O1
"""The late ticks of a run, in a memory file of their own: the loop writes them, another process reads them and names their causes.

One writer; each reader keeps its own place. The newest `capacity` are there, older ones are written over: a reader that was held up misses
them, the loop never waits.
"""

from libc.string cimport memcpy

from rt_kernels.host cimport atomic_fence, atomic_get, atomic_set
from rt_kernels.memory_file cimport MemoryFile

import numpy as np

cdef int64_t MAGIC = 0x4B4349544554414C   # "LATETICK"

LATE_TICK = np.dtype([(name, "<i8") for name in (
    "tick", "target_ns", "late_ns", "where", "span_ns",
    "run_ns", "delay_ns", "faults_minor", "faults_major", "switches_voluntary", "switches_involuntary",
)])


cdef inline LateTick *slot_of(LateBlock *block, int64_t index) noexcept nogil:
    return <LateTick *>(<char *>block + sizeof(LateBlock)) + index % block.capacity


cdef void record_late(LateBlock *block, const LateTick *late) noexcept nogil:
    """Adds one, over the oldest when there is no room."""
    slot_of(block, block.head)[0] = late[0]
    atomic_set(&block.head, block.head + 1)


cdef class LateTicks(MemoryFile):
    """`create` where the loop is, `attach(fd)` elsewhere."""

    @staticmethod
    def create(int64_t capacity=1024):
        """An empty one. Raises ValueError, OSError, MemoryError."""
        if not 1 <= capacity <= 1_000_000:
            raise ValueError(f"late ticks: capacity must be 1...1000000, got {capacity}")
        cdef LateTicks self = LateTicks.__new__(LateTicks)
        self.make("hil-server-late-ticks", sizeof(LateBlock) + <size_t>capacity * sizeof(LateTick))
        self.block = <LateBlock *>self.memory
        self.block.magic = MAGIC
        self.block.capacity = capacity
        return self

    @staticmethod
    def attach(int fd):
        """Those behind an inherited file descriptor. Raises ValueError when it is something else."""
        cdef LateTicks self = LateTicks.__new__(LateTicks)
        self.take_over(fd, sizeof(LateBlock), "late ticks")
        self.block = <LateBlock *>self.memory
        if self.block.magic != MAGIC or self.size != sizeof(LateBlock) + <size_t>self.block.capacity * sizeof(LateTick):
            raise ValueError(f"descriptor {fd} holds no late ticks of this version")
        return self

    def take(self):
        """Those that this reader has not seen, oldest first: an array of LATE_TICK. Those written over meanwhile are left out."""
        cdef int64_t head = atomic_get(&self.block.head)
        cdef int64_t first = max(self._taken, head - self.block.capacity, 0)
        cdef int64_t i, gone
        cdef LateTick copy
        out = np.empty(head - first, LATE_TICK)
        cdef unsigned char[::1] view = out.view(np.uint8)
        for i in range(head - first):
            copy = slot_of(self.block, first + i)[0]
            memcpy(&view[i * <int64_t>sizeof(LateTick)], &copy, sizeof(LateTick))
        atomic_fence()
        # the slot after the newest one may be the one that is being filled
        gone = min(max(atomic_get(&self.block.head) + 1 - self.block.capacity - first, 0), head - first)
        self._taken = head
        return out[gone:]

    def put(self, record):
        """Adds one record of LATE_TICK as the loop would (tests)."""
        cdef const unsigned char[::1] view = np.ascontiguousarray(record, LATE_TICK).reshape(1).view(np.uint8)
        record_late(self.block, <const LateTick *>&view[0])

    @property
    def thread(self):
        """Number of the loop's thread, 0 before it runs."""
        return atomic_get(&self.block.thread)

    @property
    def accounted(self):
        """Whether the kernel tells run time and run delay of a thread (`CONFIG_SCHED_INFO`)."""
        return bool(atomic_get(&self.block.accounted))

    @property
    def recorded(self):
        """Late ticks so far."""
        return atomic_get(&self.block.head)
