"""What the kernel counts of the loop's thread, and the late ticks with what it counted during each: from which the cause is named."""

from libc.stdint cimport int64_t

from rt_kernels.memory_file cimport MemoryFile

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <fcntl.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/resource.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    #include "rt_kernels/doors.h"

    typedef struct {
        int64_t run_ns, delay_ns, faults_minor, faults_major, switches_voluntary, switches_involuntary;
    } host_account;

    static inline int64_t host_thread_number(void) { return IN_A_WORLD ? 0 : (int64_t)syscall(SYS_gettid); }
    /* run time and run delay of the calling thread, kept open: a read is a microsecond */
    static inline int host_open_account(void) { return IN_A_WORLD ? -1 : open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); }
    static inline void host_close_account(int fd) { if (fd >= 0) close(fd); }
    static inline void host_read_account(int fd, host_account *a) {
        char text[64]; struct rusage r; int64_t number[2] = {0, 0}; int which = 0;
        ssize_t n = fd >= 0 ? pread(fd, text, sizeof text, 0) : 0;
        for (ssize_t i = 0; i < n && which < 2; i++) {
            if (text[i] == ' ') which++;
            else number[which] = 10 * number[which] + (text[i] - '0');
        }
        a->run_ns = number[0]; a->delay_ns = number[1];
        memset(&r, 0, sizeof r);
        if (!IN_A_WORLD) getrusage(RUSAGE_THREAD, &r);
        a->faults_minor = r.ru_minflt; a->faults_major = r.ru_majflt;
        a->switches_voluntary = r.ru_nvcsw; a->switches_involuntary = r.ru_nivcsw;
    }
    """
    ctypedef struct host_account:
        int64_t run_ns, delay_ns                            # on a core; ready to run, but another one had the core
        int64_t faults_minor, faults_major
        int64_t switches_voluntary, switches_involuntary    # slept or waited; was put off the core
    int64_t host_thread_number() noexcept nogil
    int host_open_account() noexcept nogil
    void host_close_account(int fd) noexcept nogil
    void host_read_account(int fd, host_account *account) noexcept nogil

cdef struct LateTick:
    int64_t tick
    int64_t target_ns           # CLOCK_MONOTONIC of the point of the grid that was missed
    int64_t late_ns             # from there to the beginning of the tick, periods that were skipped included
    int64_t where               # code late_cause: in the wake-up, in the step before (computing, input and output)
    int64_t span_ns             # length of that wake-up or step; what follows was counted during it
    host_account during

cdef struct LateBlock:
    int64_t magic
    int64_t capacity
    int64_t thread              # number of the loop's thread, 0 before it runs
    int64_t accounted           # 1: the kernel tells run time and run delay
    int64_t head                # late ticks ever recorded
    int64_t unused[11]

cdef void record_late(LateBlock *block, const LateTick *late) noexcept nogil

cdef class LateTicks(MemoryFile):
    cdef LateBlock *block
    cdef int64_t _taken
