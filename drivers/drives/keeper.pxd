"""Who sends on the buses of the drives, and how the drives are led up and down while no other thread does (inline, no module).

Frames flow from before the drives are enabled until each of them says that it is off. Around the loop a thread sends them, the *keeper*: it
leads the drives up (`LEAD_UP`) and holds them (`LEAD_HOLD`: a drive that then fails is not enabled again) until the loop takes the buses
with its first read. When the loop has left them it leads them down (`LEAD_DOWN`), whatever the other threads do meanwhile. While the loop
has the buses the keeper sleeps.

The keeper runs on the loop's core, which all other threads have left, below the loop's priority: on another core it would wait for each
long system call of a thread there (a disk, memory that is mapped or freed), on a kernel that does not preempt those.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t

from drivers.drives.axis_values cimport RESET_CYCLES, WordDown, WordUp
from drivers.raw_frames.frame_io cimport io_now_ns, io_set_core, io_set_fifo
from rt_kernels.codes cimport SAFETY_STATE_RECOVERING
from rt_kernels.host cimport host_sleep_until

cdef extern from *:
    """
    #include <errno.h>
    #include <limits.h>
    #include <linux/futex.h>
    #include <stdint.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    #include "rt_kernels/doors.h"
    static inline int change_owner(int32_t *owner, int32_t from, int32_t to)
    {
        return __atomic_compare_exchange_n(owner, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    static inline int32_t owner_now(const int32_t *owner) { return __atomic_load_n(owner, __ATOMIC_ACQUIRE); }
    static inline void set_lead(int32_t *lead, int32_t to) { __atomic_store_n(lead, to, __ATOMIC_RELEASE); }
    static inline void sleep_while(int32_t *owner, int32_t is)
    {
        if (IN_A_WORLD) hil_doors->sleep_while(owner, is);
        else syscall(SYS_futex, owner, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0);
    }
    static inline void wake_keeper(int32_t *owner)
    {
        if (IN_A_WORLD) hil_doors->wake(owner);
        else syscall(SYS_futex, owner, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
    static inline int last_error(void) { return errno; }
    """
    bint change_owner(int32_t *owner, int32_t former, int32_t to) noexcept nogil
    int32_t owner_now(const int32_t *owner) noexcept nogil
    void set_lead(int32_t *lead, int32_t to) noexcept nogil
    void sleep_while(int32_t *owner, int32_t same) noexcept nogil
    void wake_keeper(int32_t *owner) noexcept nogil
    int last_error() noexcept nogil

cdef enum:
    # whose the buses are; CLOSED for good
    NO_OWNER = 0
    KEEPER = 1
    LOOP = 2
    CLOSED = 3
    # where the keeper leads the drives
    LEAD_NOWHERE = 0
    LEAD_UP = 1
    LEAD_DOWN = 2
    LEAD_HOLD = 3           # up, and left as it is


cdef struct Keeper:
    int32_t owner
    int32_t lead
    int32_t led             # where it led in its last exchange
    int64_t turns           # exchanges since it leads there
    int64_t recovering      # ticks of a recovery so far


# From now on the keeper leads there.
cdef inline void lead_to(Keeper *k, int32_t lead) noexcept nogil:
    set_lead(&k.lead, lead)


# All drives are up, or one has left its place: they are held, unless somebody has led elsewhere meanwhile.
cdef inline void arrived(Keeper *k) noexcept nogil:
    change_owner(&k.lead, LEAD_UP, LEAD_HOLD)


# The loop takes the buses with its first read, unless the keeper is just exchanging. True once the loop has them.
cdef inline bint loop_has(Keeper *k) noexcept nogil:
    return k.owner == LOOP or change_owner(&k.owner, NO_OWNER, LOOP)


# The loop has ended: the keeper leads the drives down.
cdef inline void loop_leaves(Keeper *k) noexcept nogil:
    if owner_now(&k.owner) != LOOP:
        return
    lead_to(k, LEAD_DOWN)
    change_owner(&k.owner, LOOP, NO_OWNER)
    wake_keeper(&k.owner)


# Whether the bit that resets a fault is set in cycle n: its edge counts, and one a second is enough. A drive that looks every few
# milliseconds sees it.
cdef inline bint reset_now(int64_t n, int64_t period_ns) noexcept nogil:
    cdef int64_t every = 1000000000 // period_ns
    cdef int64_t at = n % (every if every > 3 * RESET_CYCLES else 3 * RESET_CYCLES)
    return RESET_CYCLES <= at < 2 * RESET_CYCLES


# At a tick of the loop: whether the bit that resets a fault is to be set, in a recovery.
cdef inline bint resets_in_recovery(Keeper *k, int safety_state, int64_t period_ns) noexcept nogil:
    k.recovering = k.recovering + 1 if safety_state == SAFETY_STATE_RECOVERING else 0
    return reset_now(k.recovering, period_ns)


# The same exchange every period until `CLOSED`, for a thread of its own. exchange: of the buses, may move the next time.
cdef inline void keep_buses(Keeper *k, void *buses, void (*exchange)(void *, int64_t *) noexcept nogil, int64_t period_ns,
                            int priority, int core) noexcept nogil:
    cdef int64_t now, next_ns = io_now_ns()
    io_set_core(core)
    io_set_fifo(priority)       # where it is not allowed it is a plain thread
    while True:
        if change_owner(&k.owner, NO_OWNER, KEEPER):
            if owner_now(&k.lead) != k.led:
                k.led, k.turns = owner_now(&k.lead), 0
            exchange(buses, &next_ns)
            k.turns += 1
            change_owner(&k.owner, KEEPER, NO_OWNER)
        elif owner_now(&k.owner) == LOOP:
            sleep_while(&k.owner, LOOP)
            next_ns = io_now_ns()
            continue
        else:
            return
        next_ns += period_ns
        now = io_now_ns()
        if now > next_ns:
            next_ns += (now - next_ns) // period_ns * period_ns + period_ns
        host_sleep_until(next_ns)


# Sending has stopped. Waits for the end of an exchange.
cdef inline void close_buses(Keeper *k) noexcept nogil:
    while owner_now(&k.owner) != CLOSED:
        if change_owner(&k.owner, NO_OWNER, CLOSED) or change_owner(&k.owner, LOOP, CLOSED):
            wake_keeper(&k.owner)
        else:
            host_sleep_until(io_now_ns() + 10_000)
