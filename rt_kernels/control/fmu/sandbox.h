/* What the process of an FMU may do: compute, read files, write to the pipe that it was given. Not a file, a socket, another process.
 *
 * A filter of system calls (seccomp) that names what is allowed; everything else fails with EPERM (ENOSYS where libraries then take an older
 * call). Where the kernel has Landlock, files are read below the FMU's folder, the system's libraries and Python's only. Both stay for
 * good, for every thread, and need no privilege. Sources: seccomp(2), landlock(7), prctl(2). */
#ifndef HIL_FMU_SANDBOX_H
#define HIL_FMU_SANDBOX_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SANDBOX_FILTER = 1, SANDBOX_LANDLOCK = 2 };

/* dies with the thread that made it; returns 0, or -1 when that one is gone already */
static inline int sandbox_die_with(int parent) { return prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent ? -1 : 0; }

static inline int sandbox_limit(int what, uint64_t most)
{
    struct rlimit limit = {most, most};
    return setrlimit(what, &limit);
}

/* ------------------------------------------------------------------------------------------------------------- Landlock */
/* the numbers of landlock(7), ABI 1: also where the headers are older than the kernel */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446, LANDLOCK_BENEATH = 1 };
enum { LANDLOCK_EXECUTE = 1, LANDLOCK_READ_FILE = 4, LANDLOCK_READ_DIR = 8, LANDLOCK_ALL = (1 << 13) - 1 };

static inline void sandbox_may_read(int rules, const char *path)
{
    struct __attribute__((packed)) {
        uint64_t allowed;
        int32_t parent;
    } beneath = {LANDLOCK_EXECUTE | LANDLOCK_READ_FILE | LANDLOCK_READ_DIR, open(path, O_PATH | O_CLOEXEC)};
    if (beneath.parent < 0)
        return;
    if (syscall(LANDLOCK_ADD, rules, LANDLOCK_BENEATH, &beneath, 0) && errno == EINVAL) { /* a file has no folder's rights */
        beneath.allowed = LANDLOCK_EXECUTE | LANDLOCK_READ_FILE;
        syscall(LANDLOCK_ADD, rules, LANDLOCK_BENEATH, &beneath, 0);
    }
    close(beneath.parent);
}

static inline int sandbox_landlock(const char *folder, const char *python)
{
    static const char *const system[] = {"/usr", "/lib", "/lib64", "/opt", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/null",
                                         "/sys/devices/system/cpu", NULL};
    uint64_t handled = LANDLOCK_ALL;
    int rules = (int)syscall(LANDLOCK_CREATE, &handled, sizeof handled, 0);
    if (rules < 0)
        return 0;
    sandbox_may_read(rules, folder);
    sandbox_may_read(rules, python);
    for (int i = 0; system[i]; i++)
        sandbox_may_read(rules, system[i]);
    int done = syscall(LANDLOCK_RESTRICT, rules, 0) == 0;
    close(rules);
    return done ? SANDBOX_LANDLOCK : 0;
}

/* --------------------------------------------------------------------------------------------------------------- seccomp */
#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef SANDBOX_ARCH
#define S_LOAD(WHAT) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WHAT)
#define S_RETURN(WHAT) BPF_STMT(BPF_RET | BPF_K, WHAT)
#define S_REFUSE(ERROR) S_RETURN(SECCOMP_RET_ERRNO | (ERROR))
#define S_NUMBER offsetof(struct seccomp_data, nr)
#define S_LOW(N) (offsetof(struct seccomp_data, args) + 8 * (N)) /* both machines are little-endian */
#define S_HIGH(N) (S_LOW(N) + 4)
#define S_IF(VALUE, STEPS) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VALUE, 0, STEPS)
#define S_ALLOW(NUMBER) S_IF(NUMBER, 1), S_RETURN(SECCOMP_RET_ALLOW)
/* allowed where (argument N & MASK) == VALUE */
#define S_ALLOW_WHERE(NUMBER, N, MASK, VALUE)                                                                                              \
    S_IF(NUMBER, 5), S_LOAD(S_LOW(N)), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MASK), S_IF(VALUE, 1), S_RETURN(SECCOMP_RET_ALLOW), S_REFUSE(EPERM)

static inline int sandbox_filter(void)
{
    const uint32_t own = (uint32_t)getpid(), writes = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    struct sock_filter program[] = {
        S_LOAD(offsetof(struct seccomp_data, arch)),
        S_IF(SANDBOX_ARCH, 1),
        BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
        S_RETURN(SECCOMP_RET_KILL_PROCESS),
        S_LOAD(S_NUMBER),
        /* waits, time */
        S_ALLOW(SYS_futex), S_ALLOW(SYS_clock_gettime), S_ALLOW(SYS_clock_getres), S_ALLOW(SYS_clock_nanosleep), S_ALLOW(SYS_nanosleep),
        S_ALLOW(SYS_gettimeofday), S_ALLOW(SYS_sched_yield), S_ALLOW(SYS_restart_syscall), S_ALLOW(SYS_ppoll), S_ALLOW(SYS_getrandom),
        /* memory */
        S_ALLOW(SYS_mmap), S_ALLOW(SYS_munmap), S_ALLOW(SYS_mprotect), S_ALLOW(SYS_mremap), S_ALLOW(SYS_madvise), S_ALLOW(SYS_brk),
        S_ALLOW(SYS_mlock), S_ALLOW(SYS_munlock), S_ALLOW(SYS_mlockall), S_ALLOW(SYS_membarrier),
        /* files: to read, and what is open */
        S_ALLOW(SYS_read), S_ALLOW(SYS_readv), S_ALLOW(SYS_pread64), S_ALLOW(SYS_lseek), S_ALLOW(SYS_close), S_ALLOW(SYS_write),
        S_ALLOW(SYS_writev), S_ALLOW(SYS_fstat), S_ALLOW(SYS_newfstatat), S_ALLOW(SYS_statx), S_ALLOW(SYS_faccessat),
        S_ALLOW(SYS_readlinkat), S_ALLOW(SYS_getdents64), S_ALLOW(SYS_getcwd), S_ALLOW(SYS_statfs), S_ALLOW(SYS_fstatfs),
        S_ALLOW_WHERE(SYS_openat, 2, writes, 0),
        S_ALLOW_WHERE(SYS_fcntl, 1, ~(uint32_t)3, 0), /* F_DUPFD, F_GETFD, F_SETFD, F_GETFL: not F_SETOWN, which sends signals */
        /* threads and signals of its own */
        S_ALLOW_WHERE(SYS_clone, 0, CLONE_THREAD, CLONE_THREAD),
        S_IF(SYS_clone3, 1), S_REFUSE(ENOSYS), /* its flags are behind a pointer: libraries take clone then */
        S_ALLOW_WHERE(SYS_tgkill, 0, 0xffffffffu, own),
        S_ALLOW_WHERE(SYS_kill, 0, 0xffffffffu, own),
        S_ALLOW(SYS_rt_sigaction), S_ALLOW(SYS_rt_sigprocmask), S_ALLOW(SYS_rt_sigreturn), S_ALLOW(SYS_sigaltstack),
        S_ALLOW(SYS_set_robust_list), S_ALLOW(SYS_set_tid_address), S_ALLOW(SYS_exit), S_ALLOW(SYS_exit_group),
        /* who and where it is */
        S_ALLOW(SYS_getpid), S_ALLOW(SYS_gettid), S_ALLOW(SYS_getppid), S_ALLOW(SYS_getuid), S_ALLOW(SYS_geteuid), S_ALLOW(SYS_getgid),
        S_ALLOW(SYS_getegid), S_ALLOW(SYS_uname), S_ALLOW(SYS_sysinfo), S_ALLOW(SYS_getcpu), S_ALLOW(SYS_sched_getaffinity),
        S_ALLOW(SYS_sched_getparam), S_ALLOW(SYS_sched_getscheduler), S_ALLOW(SYS_getrusage), S_ALLOW(SYS_times),
        S_IF(SYS_prlimit64, 7), S_LOAD(S_LOW(2)), S_IF(0, 3), S_LOAD(S_HIGH(2)), S_IF(0, 1), S_RETURN(SECCOMP_RET_ALLOW), S_REFUSE(EPERM),
        S_REFUSE(EPERM), /* limits are read, not set */
#ifdef SYS_rseq
        S_ALLOW(SYS_rseq),
#endif
#ifdef SYS_faccessat2
        S_IF(SYS_faccessat2, 1), S_REFUSE(ENOSYS),
#endif
#ifdef SYS_openat2
        S_IF(SYS_openat2, 1), S_REFUSE(ENOSYS),
#endif
#if defined(__x86_64__)
        S_ALLOW(SYS_arch_prctl), S_ALLOW(SYS_time), S_ALLOW(SYS_poll), S_ALLOW(SYS_stat), S_ALLOW(SYS_lstat), S_ALLOW(SYS_access),
        S_ALLOW(SYS_readlink), S_ALLOW_WHERE(SYS_open, 1, writes, 0),
#endif
        S_REFUSE(EPERM),
    };
    struct sock_fprog all = {sizeof program / sizeof *program, program};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0 ? SANDBOX_FILTER : 0;
}
#else
static inline int sandbox_filter(void) { return 0; }
#endif

/* Confines the calling process (one thread) for good. folder: of the FMU; python: of Python's library, for FMUs in Python; most_memory:
 * bytes of address space, 0: as it is. Returns what of SANDBOX_... this kernel has. */
static inline int sandbox_confine(const char *folder, const char *python, uint64_t most_memory)
{
    if (most_memory)
        sandbox_limit(RLIMIT_AS, most_memory);
    sandbox_limit(RLIMIT_FSIZE, 0);
    sandbox_limit(RLIMIT_CORE, 0);
    sandbox_limit(RLIMIT_NOFILE, 64);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 0;
    int found = sandbox_landlock(folder, python);
    return found | sandbox_filter();
}

#endif
