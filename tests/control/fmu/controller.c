/* A controller as a user may have it: press thrust and an attitude hold, exported as an FMU of version FMI (2 or 3, by the compiler).
 *
 *   x' = (w - x) / T        rates w of the craft through a lag, one Euler step a communication step
 *   torque = -gain x        thrust = force while `press` is true
 *
 * From fail_time on it does what `fail` says: 1 gives NaN, 2 writes to address 0, 3 returns an error, 4 never returns, 5 calls abort, 6 calls
 * exit, 7 asks for the end of the simulation. fail_time < 0: while it is made. From 20 on it tries what an FMU must not do, on the file that
HIL_TESTS_VICTIM names and on the process HIL_TESTS_SERVER, and returns an error where that works; 40 prints without end.
 * With LAW, a header, another controller in its place. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef LAW
#include LAW
#else
enum { W0, W1, W2, PRESS, TORQUE0, TORQUE1, TORQUE2, THRUST, GAIN, FORCE, LAG, FAIL_TIME, FAIL, COUNT, PUSHING };

typedef struct {
    double v[COUNT]; /* by value reference; Boolean and Integer as numbers */
    double x[3];
} model;

static model *create(void)
{
    model *m = calloc(1, sizeof *m);
    m->v[GAIN] = 50.0;
    m->v[FORCE] = 100.0;
    m->v[LAG] = 0.05;
    m->v[FAIL_TIME] = 1e9;
    return m;
}

static void outputs(model *m)
{
    for (int i = 0; i < 3; i++)
        m->v[TORQUE0 + i] = -m->v[GAIN] * m->x[i];
    m->v[THRUST] = m->v[PRESS] != 0.0 ? m->v[FORCE] : 0.0;
}

/* 1: it worked */
static int hostile(int act)
{
    const char *victim = getenv("HIL_TESTS_VICTIM"), *said = getenv("HIL_TESTS_SERVER");
    char other[512];
    struct rlimit wide = {RLIM_INFINITY, RLIM_INFINITY};
    pid_t server = said ? atoi(said) : 0;
    if (!victim || server < 2)
        return 1;
    snprintf(other, sizeof other, "%s.new", victim);
    switch (act) {
    case 20: return open(other, O_WRONLY | O_CREAT, 0600) >= 0;
    case 21: return open(victim, O_RDWR) >= 0;
    case 22: return open(victim, O_RDONLY | O_TRUNC) >= 0;
    case 23: return unlink(victim) == 0 || rename(victim, other) == 0 || truncate(victim, 0) == 0;
    case 24: return mkdir(other, 0700) == 0 || symlink("/", other) == 0 || link(victim, other) == 0;
    case 25: return chmod(victim, 0777) == 0 || syscall(SYS_memfd_create, "x", 0) >= 0;
    case 26: return kill(server, SIGCONT) == 0 || kill(getppid(), SIGCONT) == 0 || syscall(SYS_tkill, server, SIGCONT) == 0;
    case 27: return ptrace(PTRACE_SEIZE, server, 0, 0) == 0;
    case 28: {
        char byte = 0;
        struct iovec ours = {&byte, 1}, theirs = {(void *)hostile, 1};
        snprintf(other, sizeof other, "/proc/%d/mem", (int)getppid());
        return process_vm_readv(getppid(), &ours, 1, &theirs, 1, 0) == 1 || open(other, O_RDWR) >= 0;
    }
    case 29: {
        pid_t made = fork();
        if (made == 0)
            _exit(0);
        return made > 0;
    }
    case 30: return vfork() > 0;
    case 31: return execl("/bin/true", "true", NULL) == 0;
    case 32: return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_DGRAM, 0) >= 0 || socket(AF_NETLINK, SOCK_RAW, 0) >= 0;
    case 33: return setrlimit(RLIMIT_AS, &wide) == 0 || prctl(PR_SET_PDEATHSIG, 0) == 0 || setsid() > 0;
    case 34: {
        struct sched_param first = {.sched_priority = 0};
        return sched_setscheduler(getppid(), SCHED_OTHER, &first) == 0;
    }
    case 35: { /* as much memory as there is: more than 8 GiB is too much */
        size_t had = 0;
        while (had < (8UL << 30) && mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
            had += 64 << 20;
        return had >= (8UL << 30);
    }
    case 36: return open(victim, O_RDONLY) >= 0; /* reads somebody's file: kept from it where the kernel has Landlock */
    case 37: return syscall(SYS_io_uring_setup, 4, NULL) >= 0 || errno != EPERM;
    case 38: return dup2(open("/dev/zero", O_RDONLY), 0) >= 0 || fcntl(1, F_SETOWN, getppid()) == 0;
    default: return 0;
    }
}

static int advance(model *m, double t, double h, int *end)
{
    for (int i = 0; i < 3; i++)
        m->x[i] += h / m->v[LAG] * (m->v[W0 + i] - m->x[i]);
    outputs(m);
    if (t < m->v[FAIL_TIME] - 1e-9)
        return 0;
    switch ((int)m->v[FAIL]) {
    case 1: m->v[TORQUE1] = NAN; break;
    case 2: *(volatile int *)0 = 1; break;
    case 3: return 3;
    case 4: for (volatile int on = 1; on;) { } break;
    case 5: abort();
    case 6: exit(0);
    case 7: *end = 1; break;
    case 40:
        for (;;)
            printf("\033]0;a title for the terminal\007 and as much text as it likes\n");
    default:
        if (m->v[FAIL] >= 20.0 && hostile((int)m->v[FAIL]))
            return 3;
    }
    return 0;
}

static int begin(model *m)
{
    int end;
    return m->v[FAIL_TIME] < 0.0 ? advance(m, 0.0, 0.0, &end) : 0;
}

static double value(const model *m, unsigned r) { return r == PUSHING ? m->v[PRESS] != 0.0 : m->v[r]; }
#endif

#define EXPORT __attribute__((visibility("default")))
#if FMI == 2
#define ABSENT(NAME) EXPORT int fmi2##NAME(void) { return 3; }
typedef struct { void *logger, *allocate, *release, *finished, *environment; } callbacks;
static const char *const token = "{controller-2}";

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT int fmi2SetDebugLogging(void *c, int on, size_t n, const char *const *names) { return 0; }
EXPORT void *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const callbacks *f, int visible, int log)
{
    return type == 1 && strcmp(guid, token) == 0 && strncmp(resources, "file:", 5) == 0 ? create() : NULL;
}
EXPORT void fmi2FreeInstance(void *c) { free(c); }
EXPORT int fmi2SetupExperiment(void *c, int tol, double tolerance, double start, int stop, double end) { return 0; }
EXPORT int fmi2EnterInitializationMode(void *c) { return begin(c); }
EXPORT int fmi2ExitInitializationMode(void *c) { outputs(c); return 0; }
EXPORT int fmi2Terminate(void *c) { return 0; }
EXPORT int fmi2Reset(void *c) { return 3; }
EXPORT int fmi2DoStep(void *c, double t, double h, int no_back)
{
    int end = 0, status = advance(c, t, h, &end);
    return end ? 2 : status;
}
EXPORT int fmi2GetBooleanStatus(void *c, int kind, int *v) { *v = kind == 3; return 0; }
EXPORT int fmi2GetReal(void *c, const unsigned *r, size_t n, double *v) { for (size_t i = 0; i < n; i++) v[i] = value(c, r[i]); return 0; }
EXPORT int fmi2SetReal(void *c, const unsigned *r, size_t n, const double *v) { for (size_t i = 0; i < n; i++) ((model *)c)->v[r[i]] = v[i]; return 0; }
EXPORT int fmi2GetInteger(void *c, const unsigned *r, size_t n, int *v) { for (size_t i = 0; i < n; i++) v[i] = (int)value(c, r[i]); return 0; }
EXPORT int fmi2SetInteger(void *c, const unsigned *r, size_t n, const int *v) { for (size_t i = 0; i < n; i++) ((model *)c)->v[r[i]] = v[i]; return 0; }
EXPORT int fmi2GetBoolean(void *c, const unsigned *r, size_t n, int *v) { return fmi2GetInteger(c, r, n, v); }
EXPORT int fmi2SetBoolean(void *c, const unsigned *r, size_t n, const int *v) { return fmi2SetInteger(c, r, n, v); }
EXPORT int fmi2GetFMUstate(void *c, void **s) { if (!*s) *s = malloc(sizeof(model)); memcpy(*s, c, sizeof(model)); return 0; }
EXPORT int fmi2SetFMUstate(void *c, void *s) { memcpy(c, s, sizeof(model)); return 0; }
EXPORT int fmi2FreeFMUstate(void *c, void **s) { free(*s); *s = NULL; return 0; }
EXPORT int fmi2SerializedFMUstateSize(void *c, void *s, size_t *n) { *n = sizeof(model); return 0; }
EXPORT int fmi2SerializeFMUstate(void *c, void *s, char *b, size_t n) { memcpy(b, s, n); return 0; }
EXPORT int fmi2DeSerializeFMUstate(void *c, const char *b, size_t n, void **s)
{
    if (n != sizeof(model))
        return 3;
    *s = malloc(n);
    memcpy(*s, b, n);
    return 0;
}

/* what this controller has no use for; fmpy wants every function of the standard to be there */
ABSENT(CancelStep) ABSENT(CompletedIntegratorStep) ABSENT(EnterContinuousTimeMode) ABSENT(EnterEventMode) ABSENT(GetContinuousStates)
ABSENT(GetDerivatives) ABSENT(GetDirectionalDerivative) ABSENT(GetEventIndicators) ABSENT(GetIntegerStatus)
ABSENT(GetNominalsOfContinuousStates) ABSENT(GetRealOutputDerivatives) ABSENT(GetRealStatus) ABSENT(GetStatus) ABSENT(GetString)
ABSENT(GetStringStatus) ABSENT(NewDiscreteStates) ABSENT(SetContinuousStates) ABSENT(SetRealInputDerivatives) ABSENT(SetString)
ABSENT(SetTime)
#else
#define ABSENT(NAME) EXPORT int fmi3##NAME(void) { return 3; }
static const char *const token = "{controller-3}";

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT int fmi3SetDebugLogging(void *c, bool on, size_t n, const char *const *names) { return 0; }
EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *guid, const char *resources, bool visible, bool log, bool events,
                                         bool early, const uint32_t *r, size_t n, void *environment, void *logger, void *update)
{
    return strcmp(guid, token) == 0 && !events && !early ? create() : NULL;
}
EXPORT void fmi3FreeInstance(void *c) { free(c); }
EXPORT int fmi3EnterInitializationMode(void *c, bool tol, double tolerance, double start, bool stop, double end)
{
    return begin(c);
}
EXPORT int fmi3ExitInitializationMode(void *c) { outputs(c); return 0; }
EXPORT int fmi3Terminate(void *c) { return 0; }
EXPORT int fmi3Reset(void *c) { return 3; }
EXPORT int fmi3DoStep(void *c, double t, double h, bool no_back, bool *event, bool *end, bool *early, double *reached)
{
    int over = 0, status = advance(c, t, h, &over);
    *event = *early = false;
    *end = over;
    *reached = t + h;
    return status;
}
#define ACCESS(NAME, TYPE) \
    EXPORT int fmi3Get##NAME(void *c, const uint32_t *r, size_t n, TYPE *v, size_t k) { for (size_t i = 0; i < n; i++) v[i] = (TYPE)value(c, r[i]); return 0; } \
    EXPORT int fmi3Set##NAME(void *c, const uint32_t *r, size_t n, const TYPE *v, size_t k) { for (size_t i = 0; i < n; i++) ((model *)c)->v[r[i]] = v[i]; return 0; }
ACCESS(Float64, double)
ACCESS(Float32, float)
ACCESS(Int32, int32_t)
ACCESS(Boolean, bool)
EXPORT int fmi3GetFMUState(void *c, void **s) { if (!*s) *s = malloc(sizeof(model)); memcpy(*s, c, sizeof(model)); return 0; }
EXPORT int fmi3SetFMUState(void *c, void *s) { memcpy(c, s, sizeof(model)); return 0; }
EXPORT int fmi3FreeFMUState(void *c, void **s) { free(*s); *s = NULL; return 0; }
EXPORT int fmi3SerializedFMUStateSize(void *c, void *s, size_t *n) { *n = sizeof(model); return 0; }
EXPORT int fmi3SerializeFMUState(void *c, void *s, uint8_t *b, size_t n) { memcpy(b, s, n); return 0; }
EXPORT int fmi3DeserializeFMUState(void *c, const uint8_t *b, size_t n, void **s)
{
    if (n != sizeof(model))
        return 3;
    *s = malloc(n);
    memcpy(*s, b, n);
    return 0;
}

/* what this controller has no use for; fmpy wants every function of the standard to be there */
ABSENT(ActivateModelPartition) ABSENT(CompletedIntegratorStep) ABSENT(EnterConfigurationMode) ABSENT(EnterContinuousTimeMode)
ABSENT(EnterEventMode) ABSENT(EnterStepMode) ABSENT(EvaluateDiscreteStates) ABSENT(ExitConfigurationMode) ABSENT(GetAdjointDerivative)
ABSENT(GetBinary) ABSENT(GetClock) ABSENT(GetContinuousStateDerivatives) ABSENT(GetContinuousStates) ABSENT(GetDirectionalDerivative)
ABSENT(GetEventIndicators) ABSENT(GetInt16) ABSENT(GetInt64) ABSENT(GetInt8) ABSENT(GetIntervalDecimal) ABSENT(GetIntervalFraction)
ABSENT(GetNominalsOfContinuousStates) ABSENT(GetNumberOfContinuousStates) ABSENT(GetNumberOfEventIndicators)
ABSENT(GetNumberOfVariableDependencies) ABSENT(GetOutputDerivatives) ABSENT(GetShiftDecimal) ABSENT(GetShiftFraction) ABSENT(GetString)
ABSENT(GetUInt16) ABSENT(GetUInt32) ABSENT(GetUInt64) ABSENT(GetUInt8) ABSENT(GetVariableDependencies) ABSENT(InstantiateModelExchange)
ABSENT(InstantiateScheduledExecution) ABSENT(SetBinary) ABSENT(SetClock) ABSENT(SetContinuousStates) ABSENT(SetInt16) ABSENT(SetInt64)
ABSENT(SetInt8) ABSENT(SetIntervalDecimal) ABSENT(SetIntervalFraction) ABSENT(SetShiftDecimal) ABSENT(SetShiftFraction) ABSENT(SetString)
ABSENT(SetTime) ABSENT(SetUInt16) ABSENT(SetUInt32) ABSENT(SetUInt64) ABSENT(SetUInt8) ABSENT(UpdateDiscreteStates)
#endif
