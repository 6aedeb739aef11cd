"""What the loop asks of the operating system: the clock, absolute sleep, atomics between two threads or processes."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <pthread.h>
    #include <sched.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/prctl.h>
    #include <sys/resource.h>
    #include <time.h>
    #include "rt_kernels/doors.h"
    #if defined(__x86_64__)
    #include <xmmintrin.h>
    static inline void host_pause(void) { _mm_pause(); }
    /* round to nearest, no flush to zero, all exceptions masked: the mode that every tick computes in */
    static inline void host_set_float_mode(void) { _mm_setcsr(0x1f80); }
    #else
    static inline void host_pause(void) { }
    static inline void host_set_float_mode(void) { }
    #endif

    static inline int64_t host_now(void) {
        if (IN_A_WORLD) return hil_doors->clock_ns(0);
        struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000LL + (int64_t)t.tv_nsec;
    }
    static inline void host_sleep_until(int64_t when) {
        if (IN_A_WORLD) { hil_doors->sleep_until(when); return; }
        struct timespec t; t.tv_sec = when / 1000000000LL; t.tv_nsec = when % 1000000000LL;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) { }
    }
    static inline int host_fifo(int priority) {
        if (IN_A_WORLD) return EPERM;
        struct sched_param p; memset(&p, 0, sizeof p); p.sched_priority = priority;
        return pthread_setschedparam(pthread_self(), priority > 0 ? SCHED_FIFO : SCHED_OTHER, &p);
    }
    static inline int host_pin(int cpu) {
        if (IN_A_WORLD) return EPERM;
        cpu_set_t s; CPU_ZERO(&s); CPU_SET(cpu, &s);
        return pthread_setaffinity_np(pthread_self(), sizeof s, &s);
    }
    static inline void host_timer_slack(long ns) { prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0); }
    static void __attribute__((noinline, unused)) host_touch_stack(void) {
        volatile char page[262144]; for (int i = 0; i < 262144; i += 4096) page[i] = 1; page[262143] = page[0];
    }
    static inline void *host_map(size_t size, int fd) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    static inline void host_unmap(void *p, size_t size) { munmap(p, size); }
    static inline int host_lock_memory(const void *p, size_t size) { return mlock(p, size) ? errno : 0; }
    typedef struct { long faults_minor, faults_major, switches_voluntary, switches_involuntary; } host_usage;
    static inline void host_thread_usage(host_usage *u) {
        struct rusage r; memset(&r, 0, sizeof r);
        if (!IN_A_WORLD) getrusage(RUSAGE_THREAD, &r);
        u->faults_minor = r.ru_minflt; u->faults_major = r.ru_majflt;
        u->switches_voluntary = r.ru_nvcsw; u->switches_involuntary = r.ru_nivcsw;
    }
    static inline int64_t atomic_get(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
    static inline void atomic_set(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
    static inline void atomic_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
    """
    int64_t host_now() noexcept nogil
    void host_sleep_until(int64_t when) noexcept nogil
    void host_pause() noexcept nogil
    void host_set_float_mode() noexcept nogil
    int host_fifo(int priority) noexcept nogil
    int host_pin(int cpu) noexcept nogil
    void host_timer_slack(long ns) noexcept nogil
    void host_touch_stack() noexcept nogil
    void *host_map(size_t size, int fd) noexcept nogil
    void host_unmap(void *p, size_t size) noexcept nogil
    int host_lock_memory(const void *p, size_t size) noexcept nogil
    ctypedef struct host_usage:
        long faults_minor, faults_major, switches_voluntary, switches_involuntary
    void host_thread_usage(host_usage *u) noexcept nogil
    int64_t atomic_get(const int64_t *p) noexcept nogil
    void atomic_set(int64_t *p, int64_t v) noexcept nogil
    void atomic_fence() noexcept nogil
