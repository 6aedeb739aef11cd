"""The block of shared memory between the loop and the telemetry process: samples out, commands and hand controllers in."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from rt_kernels.memory_file cimport MemoryFile
from rt_kernels.sample cimport Sample

cdef struct CommandRecord:
    int64_t sequence
    int32_t code
    int32_t source
    int64_t expires_ns          # CLOCK_MONOTONIC, 0: never; of one that the loop did not take: COMMAND_EXPIRED, COMMAND_VOID
    double arg[8]

# single producer, single consumer
cdef struct CommandLane:
    int64_t head
    int64_t unused_head[15]     # own cache lines
    int64_t tail
    int64_t unused_tail[15]
    CommandRecord slot[32]

# latest value, guarded by a version that is odd while it is written
cdef struct HandSlot:
    int64_t version
    int64_t sequence
    int64_t device_time_ns
    int64_t arrival_ns          # CLOCK_MONOTONIC of the host
    double axis[6]
    uint32_t buttons
    uint32_t status
    int64_t unused[3]

cdef struct ControlBlock:
    int64_t magic
    int64_t version
    char layout_hash[16]
    int64_t record_size
    int64_t capacity
    int64_t aux_count
    int64_t unused[9]
    int64_t head                # written by the loop
    int64_t overflow
    int64_t finished
    int64_t unused_head[13]
    int64_t tail                # written by the reader
    int64_t unused_tail[15]
    int64_t heartbeat_ns        # supervisor's sign of life, CLOCK_MONOTONIC
    int64_t stop_request
    int64_t unused_heartbeat[14]
    CommandLane lane[2]         # 0 telemetry process, 1 the server itself
    HandSlot hand[2]

cdef enum:
    COMMAND_EXPIRED = -1        # taken out of the lane after its time
    COMMAND_VOID = -2           # given before an abort that the loop took first

cdef void publish(ControlBlock *block, const Sample *sample, const double *aux) noexcept nogil
cdef bint take_command(ControlBlock *block, CommandRecord *record) noexcept nogil
cdef bint read_hand(const HandSlot *slot, HandSlot *copy) noexcept nogil

cdef class SharedBlock(MemoryFile):
    cdef ControlBlock *block
