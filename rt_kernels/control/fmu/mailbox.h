/* The mailbox between the loop and the process in which an FMU runs: one page of words and values, and room for the FMU's state.
 *
 * The loop writes the inputs and moves `request`; the FMU's process answers by moving `answer` to the same number. Each side may look at its
 * word for a while before it sleeps on it (Linux futex); who sleeps says so, so that nobody wakes one who does not.
 */
#ifndef HIL_FMU_MAILBOX_H
#define HIL_FMU_MAILBOX_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FMU_INPUTS = 256, FMU_OUTPUTS = 64, FMU_STATE_BYTES = 1 << 20, FMU_TEXT = 512 };

/* what is asked for */
enum { FMU_STEP = 1, FMU_SAVE = 2, FMU_RESTORE = 3, FMU_END = 4 };

/* why the FMU gives nothing any more */
enum {
    FMU_WORKS = 0,
    FMU_BAD_STATUS = 1, /* a call returned discard, error or fatal */
    FMU_CRASHED = 2,    /* a signal ended its process, or it called exit */
    FMU_LATE = 3,       /* no answer within the time that it has */
    FMU_NOT_FINITE = 4, /* an output is not a number */
    FMU_ENDED = 5,      /* it asked for the end of the simulation */
    FMU_NOT_MADE = 6    /* set-up: see text */
};

typedef struct {
    uint32_t request __attribute__((aligned(64)));
    uint32_t child_sleeps;
    uint32_t answer __attribute__((aligned(64)));
    uint32_t loop_sleeps;
    int32_t what __attribute__((aligned(64)));
    int32_t steps;       /* communication steps to make with these inputs */
    int64_t first;       /* number of the first of them */
    double step_s;
    int32_t failure;
    int32_t detail;      /* FMI status, or number of the signal */
    int32_t thread;      /* of the FMU, as the kernel counts */
    int32_t confined;    /* SANDBOX_... of sandbox.h: what the kernel keeps the FMU from */
    uint64_t state_bytes;
    double input[FMU_INPUTS];
    double output[FMU_OUTPUTS];
    char text[FMU_TEXT];
    uint8_t state[FMU_STATE_BYTES];
} fmu_mailbox;

static inline int64_t fmu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000LL + (int64_t)t.tv_nsec;
}

/* Moves a word and wakes whoever sleeps on it. */
static inline void fmu_post(uint32_t *word, uint32_t value, uint32_t *sleeps)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(sleeps, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Until the word is no longer `old`: looks for `look_ns`, then sleeps. Returns 0, or 1 after `limit_ns` (none: 0). */
static inline int fmu_await(uint32_t *word, uint32_t old, uint32_t *sleeps, int64_t look_ns, int64_t limit_ns)
{
    int64_t began, spent;
    struct timespec rest;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != old)
        return 0;
    began = fmu_now();
    while (look_ns > 0) {
        for (int i = 0; i < 64; i++) {
            if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != old)
                return 0;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        spent = fmu_now() - began;
        if (limit_ns > 0 && spent > limit_ns)
            return 1;
        if (spent > look_ns)
            break;
    }
    __atomic_store_n(sleeps, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == old) {
        if (limit_ns > 0) {
            spent = limit_ns - (fmu_now() - began);
            if (spent <= 0) {
                __atomic_store_n(sleeps, 0, __ATOMIC_SEQ_CST);
                return 1;
            }
            rest.tv_sec = spent / 1000000000LL;
            rest.tv_nsec = spent % 1000000000LL;
        }
        syscall(SYS_futex, word, FUTEX_WAIT, old, limit_ns > 0 ? &rest : NULL, NULL, 0);
    }
    __atomic_store_n(sleeps, 0, __ATOMIC_SEQ_CST);
    return 0;
}

/* Gives a thread the real-time priority of the caller, and every core but the caller's. Returns 1 when it has another core: then the
 * caller may look for its answer instead of sleeping. */
static inline int fmu_beside(int thread)
{
    struct sched_param own;
    cpu_set_t cores;
    int here = sched_getcpu();
    if (sched_getscheduler(0) == SCHED_FIFO && sched_getparam(0, &own) == 0)
        (void)sched_setscheduler(thread, SCHED_FIFO, &own);
    else
        return 0;
    CPU_ZERO(&cores);
    if (here < 0 || sched_getaffinity(thread, sizeof cores, &cores))
        return 0;
    CPU_CLR(here, &cores);
    return CPU_COUNT(&cores) > 0 && sched_setaffinity(thread, sizeof cores, &cores) == 0;
}

static inline int fmu_kill(int process) { return process > 0 ? kill(process, SIGKILL) : 0; }

#endif
