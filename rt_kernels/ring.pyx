"""The block of shared memory between the loop and the telemetry process.

* Samples: a ring of fixed slots with one writer (the loop) and one reader (the telemetry process). A slot is filled in place and
  published by moving `head`; when the ring is full the *newest* sample is dropped and counted, the loop never waits. Others may look at
  the samples without taking them (`look`): nothing that they do or leave undone changes the ring.
* Commands: two lanes, one producer each (telemetry process, server), fixed records; the loop takes at most one command a tick. A record
  carries the time until which it is valid; one that the loop comes to later, and one that waits while an abort is taken, never acts
  (`command_state` says so).
* Hand controllers: one latest-value slot for each of two stations, guarded by a version (odd while it is written).
* Supervisor: a heartbeat word and a stop word.

The block lives in a memory file, inherited by file descriptor.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy

from rt_kernels.codes cimport COMMAND_ABORT, COMMAND_RECORD_LOST
from rt_kernels.host cimport atomic_fence, atomic_get, atomic_set, host_now
from rt_kernels.memory_file cimport MemoryFile

from rt_kernels.layout import LAYOUT_HASH

cdef int64_t MAGIC = 0x4B434F4C424C4948   # "HILBLOCK"
cdef int64_t VERSION = 2


cdef inline char *slot_of(ControlBlock *block, int64_t index) noexcept nogil:
    return <char *>block + ((sizeof(ControlBlock) + 4095) // 4096) * 4096 + (index % block.capacity) * block.record_size


cdef void publish(ControlBlock *block, const Sample *sample, const double *aux) noexcept nogil:
    """Puts one sample into the ring, or counts it as overflow."""
    cdef int64_t head = block.head
    cdef char *slot
    if head - atomic_get(&block.tail) >= block.capacity:
        block.overflow += 1
        return
    slot = slot_of(block, head)
    memcpy(slot, sample, sizeof(Sample))
    memcpy(slot + sizeof(Sample), aux, <size_t>block.aux_count * sizeof(double))
    atomic_set(&block.head, head + 1)


cdef bint take_command(ControlBlock *block, CommandRecord *record) noexcept nogil:
    """Takes the oldest waiting command that is still valid, the server's own lane first. False when there is none."""
    cdef int i
    cdef CommandLane *lane
    cdef CommandRecord *oldest
    cdef int64_t head
    for i in range(1, -1, -1):
        lane = &block.lane[i]
        head = atomic_get(&lane.head)
        while lane.tail < head:
            oldest = &lane.slot[lane.tail % 32]
            if oldest.expires_ns > 0 and host_now() > oldest.expires_ns:
                oldest.expires_ns = COMMAND_EXPIRED
            record[0] = oldest[0]
            atomic_set(&lane.tail, lane.tail + 1)
            if record.expires_ns < 0:
                continue
            if record.code == COMMAND_ABORT:
                void_waiting(&block.lane[0])
                void_waiting(&block.lane[1])
            return True
    return False


cdef void void_waiting(CommandLane *lane) noexcept nogil:
    """What waits was given by somebody who did not know of the abort: none of it may act behind it, but another abort, and that there is no
    record any more."""
    cdef int64_t k
    for k in range(lane.tail, atomic_get(&lane.head)):
        if lane.slot[k % 32].code != COMMAND_ABORT and lane.slot[k % 32].code != COMMAND_RECORD_LOST:
            lane.slot[k % 32].expires_ns = COMMAND_VOID


cdef bint read_hand(const HandSlot *slot, HandSlot *copy) noexcept nogil:
    """Copies a hand controller's newest record; False when the writer was busy (the caller keeps the previous one)."""
    cdef int64_t before = atomic_get(&slot.version)
    if before & 1:
        return False
    memcpy(copy, slot, sizeof(HandSlot))
    atomic_fence()
    return atomic_get(&slot.version) == before


cdef void copy_records(ControlBlock *block, char *p, int64_t index, int64_t count) noexcept nogil:
    """The records number index...index + count - 1 to p, in at most two copies: up to the end of the ring, and from its start."""
    cdef size_t record = <size_t>block.record_size
    cdef int64_t first = block.capacity - index % block.capacity
    if first > count:
        first = count
    memcpy(p, slot_of(block, index), first * record)
    if count > first:
        memcpy(p + first * record, slot_of(block, index + first), (count - first) * record)


cdef int64_t take(ControlBlock *block, char *p, int64_t most) noexcept nogil:
    """Moves up to `most` waiting records to p, returns how many."""
    cdef int64_t tail = block.tail
    cdef int64_t count = atomic_get(&block.head) - tail
    if count > most:
        count = most
    if count <= 0:
        return 0
    copy_records(block, p, tail, count)
    atomic_set(&block.tail, tail + count)
    return count


cdef class SharedBlock(MemoryFile):
    """Owner or guest of the shared block. `create` on the server, `attach(fd)` elsewhere.

    record_size: bytes of a sample and its auxiliary channels; capacity: slots.
    """

    @staticmethod
    def create(int64_t capacity, int64_t aux_count=0):
        """A new block. capacity: slots (8192 are eight seconds at 1 kHz). Raises ValueError, OSError, MemoryError."""
        if capacity < 2 or aux_count < 0 or aux_count > 100000:
            raise ValueError(f"ring: capacity must be at least 2 and aux_count 0...100000, got {capacity}, {aux_count}")
        cdef SharedBlock self = SharedBlock.__new__(SharedBlock)
        cdef int64_t record = sizeof(Sample) + aux_count * sizeof(double)
        self.make("hil-server-block", ((sizeof(ControlBlock) + 4095) // 4096) * 4096 + <size_t>(capacity * record))
        self.block = <ControlBlock *>self.memory
        self.block.magic = MAGIC
        self.block.version = VERSION
        memcpy(self.block.layout_hash, PyBytes_AS_STRING(LAYOUT_HASH.encode()), 16)
        self.block.record_size = record
        self.block.capacity = capacity
        self.block.aux_count = aux_count
        self.block.heartbeat_ns = host_now()
        return self

    @staticmethod
    def attach(int fd):
        """The block behind an inherited file descriptor. Raises ValueError when it is not one of this layout."""
        cdef SharedBlock self = SharedBlock.__new__(SharedBlock)
        self.take_over(fd, sizeof(ControlBlock), "shared block")
        self.block = <ControlBlock *>self.memory
        if self.block.magic != MAGIC or self.block.version != VERSION:
            raise ValueError(f"descriptor {fd} is not a shared block of version {VERSION}")
        other = (<bytes>self.block.layout_hash[:16]).decode()
        if other != LAYOUT_HASH:
            raise ValueError(f"shared block has layout {other}, this process has {LAYOUT_HASH}: two installations?")
        return self

    # ---------------------------------------------------------------------------------------------- samples, reader
    def drain(self, int64_t max_records=4096):
        """All waiting records, at most `max_records`, as one bytes object of whole records."""
        cdef int64_t count = atomic_get(&self.block.head) - self.block.tail
        if count > max_records:
            count = max_records
        if count <= 0:
            return b""
        out = PyBytes_FromStringAndSize(NULL, count * <int64_t>self.block.record_size)
        take(self.block, PyBytes_AS_STRING(out), count)
        return out

    def drain_into(self, unsigned char[::1] out):
        """As `drain`, as many as fit into `out` (no memory is taken). Returns the number of records."""
        if out.shape[0] < <int64_t>self.block.record_size:
            raise ValueError(f"{out.shape[0]} bytes do not hold a record of {self.block.record_size}")
        return take(self.block, <char *>&out[0], out.shape[0] // <int64_t>self.block.record_size)

    def look(self, int64_t first, int64_t max_records=4096):
        """(n, bytes): whole records from number n on, at most `max_records`, without taking them. n is `first`, or higher when the loop
        has written over older ones meanwhile."""
        cdef int64_t head = atomic_get(&self.block.head)
        cdef int64_t count, gone
        # the slot of the oldest record may be the one that is being filled
        first = max(first, head - self.block.capacity + 1, 0)
        count = min(head - first, max_records)
        if count <= 0:
            return first, b""
        out = PyBytes_FromStringAndSize(NULL, count * <int64_t>self.block.record_size)
        copy_records(self.block, PyBytes_AS_STRING(out), first, count)
        atomic_fence()
        gone = min(max(atomic_get(&self.block.head) - self.block.capacity + 1 - first, 0), count)
        return first + gone, out[gone * self.block.record_size :] if gone else out

    def push_records(self, const unsigned char[::1] records, int64_t record_size):
        """Puts whole records into the ring as the loop would (playback of a log). Returns how many there was room for."""
        if record_size != self.block.record_size or records.shape[0] % record_size:
            raise ValueError(f"records of {record_size} bytes do not fit slots of {self.block.record_size}")
        cdef int64_t i, n = records.shape[0] // record_size
        for i in range(n):
            if self.block.head - atomic_get(&self.block.tail) >= self.block.capacity:
                return i
            memcpy(slot_of(self.block, self.block.head), &records[i * record_size], record_size)
            atomic_set(&self.block.head, self.block.head + 1)
        return n

    def newest(self):
        """A copy of the newest record without taking it (for a progress line), or None. May be torn if the ring wraps meanwhile."""
        cdef int64_t head = atomic_get(&self.block.head)
        if head == 0:
            return None
        return PyBytes_FromStringAndSize(slot_of(self.block, head - 1), self.block.record_size)

    # ------------------------------------------------------------------------------------------------ commands, writers
    def push_command(self, int code, arguments=(), int source=0, int64_t expires_ns=0):
        """Puts a command into the lane of `source` (0 telemetry process, 1 server). expires_ns: CLOCK_MONOTONIC after which the loop takes
        it no more, 0: never. Returns its sequence number, positive and unique between the lanes: its appearance in `command_sequence` of
        a sample is the acknowledgement. Raises BufferError when the lane is full, ValueError for more than eight arguments and for a
        time before 0."""
        if source not in (0, 1):
            raise ValueError(f"command source must be 0 or 1, got {source}")
        if len(arguments) > 8:
            raise ValueError(f"a command takes at most 8 arguments, got {len(arguments)}")
        if expires_ns < 0:
            raise ValueError(f"expires_ns: {expires_ns}, limit 0 or a time of CLOCK_MONOTONIC")
        cdef CommandLane *lane = &self.block.lane[source]
        cdef int64_t head = lane.head
        cdef int i
        if head - atomic_get(&lane.tail) >= 32:
            raise BufferError("the loop does not take commands: 32 are waiting")
        cdef CommandRecord *record = &lane.slot[head % 32]
        record.sequence = 2 * (head + 1) + source
        record.code = code
        record.source = source
        record.expires_ns = expires_ns
        for i in range(8):
            record.arg[i] = arguments[i] if i < len(arguments) else 0.0
        atomic_set(&lane.head, head + 1)
        return record.sequence

    def command_state(self, int64_t sequence):
        """State of a command by the number that `push_command` gave: "waiting", "taken", "expired" (the loop came to it after its
        time) or "void" (an abort was taken first); "unknown" when 32 younger ones lie above it."""
        cdef CommandLane *lane = &self.block.lane[sequence % 2]
        cdef int64_t place = sequence // 2 - 1
        cdef CommandRecord *record = &lane.slot[place % 32]
        if atomic_get(&lane.tail) <= place < atomic_get(&lane.head):
            return "waiting"
        if place < 0 or record.sequence != sequence:
            return "unknown"
        return {COMMAND_EXPIRED: "expired", COMMAND_VOID: "void"}.get(record.expires_ns, "taken")

    def put_hand(self, int station, int64_t sequence, int64_t device_time_ns, axes, unsigned int buttons, unsigned int status=1,
                 int64_t arrival_ns=0):
        """Newest record of hand controller `station` (0 or 1). axes: six numbers, -1...1. arrival_ns: monotonic clock of the host, 0 for
        now. Single producer."""
        if station not in (0, 1) or len(axes) != 6:
            raise ValueError("station must be 0 or 1 and axes six numbers")
        cdef HandSlot *slot = &self.block.hand[station]
        cdef int i
        atomic_set(&slot.version, slot.version + 1)
        slot.sequence = sequence
        slot.device_time_ns = device_time_ns
        slot.arrival_ns = arrival_ns or host_now()
        for i in range(6):
            slot.axis[i] = axes[i]
        slot.buttons = buttons
        slot.status = status
        atomic_set(&slot.version, slot.version + 1)

    def hand(self, int station):
        """(axes, buttons, status, age in s) of the newest record of hand controller `station`, None before its first. For who waits before
        the loop runs; the loop reads it itself."""
        cdef HandSlot newest
        if not read_hand(&self.block.hand[station], &newest) or newest.arrival_ns == 0:
            return None
        return [newest.axis[i] for i in range(6)], newest.buttons, newest.status, (host_now() - newest.arrival_ns) * 1e-9

    @property
    def commands_waiting(self):
        """Commands that the loop has not taken yet."""
        return sum(atomic_get(&self.block.lane[i].head) - atomic_get(&self.block.lane[i].tail) for i in range(2))

    def heartbeat(self):
        """The supervisor is alive."""
        atomic_set(&self.block.heartbeat_ns, host_now())

    def request_stop(self):
        """The loop ends at its next tick, without parking: for tests and for the last resort."""
        atomic_set(&self.block.stop_request, 1)

    # ------------------------------------------------------------------------------------------------------------ state
    @property
    def head(self):
        return atomic_get(&self.block.head)

    @property
    def tail(self):
        return atomic_get(&self.block.tail)

    @property
    def overflow(self):
        return self.block.overflow

    @property
    def capacity(self):
        return self.block.capacity

    @property
    def aux_count(self):
        return self.block.aux_count

    @property
    def record_size(self):
        return self.block.record_size

    @property
    def finished(self):
        return bool(atomic_get(&self.block.finished))

    @finished.setter
    def finished(self, value):
        atomic_set(&self.block.finished, 1 if value else 0)
