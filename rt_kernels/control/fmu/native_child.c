/* See slave.h. One FMU in a process: what it does wrong is written into the mailbox, and the process may end. */
#include "rt_kernels/control/fmu/slave.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* ------------------------------------------------------------------------------------------- what FMI 2.0 and 3.0 say */
/* status of a call: the same numbers in both */
enum { FMI_OK = 0, FMI_WARNING = 1, FMI_DISCARD = 2, FMI_ERROR = 3, FMI_FATAL = 4 };

/* 2.0: Real double, Integer and Boolean int, value references unsigned int */
typedef struct {
    void (*logger)(void *environment, const char *instance, int status, const char *category, const char *message, ...);
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
    void (*step_finished)(void *environment, int status);
    void *environment;
} fmi2_callbacks;

/* what all calls have in common: the instance first, a status back */
typedef int (*fmi_call)(void *instance);
typedef int (*fmi_get_state)(void *instance, void **state);
typedef int (*fmi_set_state)(void *instance, void *state);
typedef int (*fmi_state_size)(void *instance, void *state, size_t *size);
typedef int (*fmi_save)(void *instance, void *state, char *bytes, size_t size);
typedef int (*fmi_load)(void *instance, const char *bytes, size_t size, void **state);

typedef void *(*fmi2_instantiate)(const char *name, int type, const char *token, const char *resources, const fmi2_callbacks *functions,
                                  int visible, int logging);
typedef int (*fmi2_experiment)(void *instance, int has_tolerance, double tolerance, double start, int has_stop, double stop);
typedef int (*fmi2_step)(void *instance, double time, double step, int no_going_back);
typedef int (*fmi2_get_real)(void *instance, const unsigned *references, size_t count, double *values);
typedef int (*fmi2_set_real)(void *instance, const unsigned *references, size_t count, const double *values);
typedef int (*fmi2_get_int)(void *instance, const unsigned *references, size_t count, int *values);
typedef int (*fmi2_set_int)(void *instance, const unsigned *references, size_t count, const int *values);
typedef int (*fmi2_boolean_status)(void *instance, int kind, int *value);
enum { FMI2_CO_SIMULATION = 1, FMI2_TERMINATED = 3 };

typedef void *(*fmi3_instantiate)(const char *name, const char *token, const char *resources, bool visible, bool logging, bool events,
                                  bool early_return, const uint32_t *intermediate, size_t intermediate_count, void *environment,
                                  void (*log)(void *environment, int status, const char *category, const char *message), void *update);
typedef int (*fmi3_initialise)(void *instance, bool has_tolerance, double tolerance, double start, bool has_stop, double stop);
typedef int (*fmi3_step)(void *instance, double time, double step, bool no_going_back, bool *event, bool *end, bool *early, double *reached);
/* values of one type: references, their count, values, their count (arrays have more) */
typedef int (*fmi3_get)(void *instance, const uint32_t *references, size_t count, void *values, size_t value_count);
typedef int (*fmi3_set)(void *instance, const uint32_t *references, size_t count, const void *values, size_t value_count);

/* --------------------------------------------------------------------------------------------------------- this process' FMU */
static struct {
    const fmu_wiring *wiring;
    void *library, *instance;
    fmi2_callbacks callbacks;
    fmi2_step step2;
    fmi3_step step3;
    fmi2_boolean_status boolean_status;
    void *get[4], *set[4]; /* by type of variable */
    fmi_get_state get_state;
    fmi_set_state set_state;
    fmi_get_state free_state;
    fmi_state_size state_size;
    fmi_save save;
    fmi_load load;
} it;

static fmu_mailbox *the_box; /* for the handlers below */
static volatile int busy;    /* inside of a call of the FMU */

static int not_made(fmu_mailbox *box, const char *what, const char *detail)
{
    char said[FMU_TEXT / 2]; /* the detail may stand in the text itself */
    snprintf(said, sizeof said, "%.255s", detail ? detail : "");
    box->failure = FMU_NOT_MADE;
    snprintf(box->text, FMU_TEXT, "%.128s%s%s", what, *said ? ": " : "", said);
    return -1;
}

/* ---------------------------------------------------------------------------------------------------- what the FMU says, how it dies */
static void say2(void *environment, const char *instance, int status, const char *category, const char *message, ...)
{
    va_list arguments;
    (void)environment, (void)instance;
    if (status < FMI_DISCARD || message == NULL)
        return;
    va_start(arguments, message);
    vsnprintf(the_box->text, FMU_TEXT, message, arguments);
    va_end(arguments);
    fprintf(stderr, "FMU: %s: %s\n", category ? category : "", the_box->text);
}

static void say3(void *environment, int status, const char *category, const char *message)
{
    (void)environment;
    if (status < FMI_DISCARD || message == NULL)
        return;
    snprintf(the_box->text, FMU_TEXT, "%s", message);
    fprintf(stderr, "FMU: %s: %s\n", category ? category : "", message);
}

static void step_finished(void *environment, int status) { (void)environment, (void)status; }

/* The last thing that this process does: says that the FMU is gone, and with which signal (0: it called exit). */
static void gone(int number)
{
    the_box->detail = number;
    the_box->failure = FMU_CRASHED;
    fmu_post(&the_box->answer, the_box->request, &the_box->loop_sleeps);
    _exit(128 + number);
}

static void left(void)
{
    if (busy)
        gone(0);
}

static void watch(fmu_mailbox *box)
{
    static char stack[65536]; /* of the handler: the FMU's may be used up */
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action;
    the_box = box;
    sigaltstack(&other, NULL);
    memset(&action, 0, sizeof action);
    action.sa_handler = gone;
    action.sa_flags = SA_ONSTACK;
    for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &action, NULL);
    atexit(left);
}

/* ------------------------------------------------------------------------------------------------------------------ values */
static int set_value(fmu_variable v, double value)
{
    const uint32_t *r = &v.reference;
    if (it.wiring->version == 2) {
        int whole = v.type == FMU_BOOLEAN ? value != 0.0 : (int)value;
        return v.type == FMU_REAL ? ((fmi2_set_real)it.set[v.type])(it.instance, r, 1, &value)
                                  : ((fmi2_set_int)it.set[v.type])(it.instance, r, 1, &whole);
    }
    fmi3_set set = (fmi3_set)it.set[v.type];
    if (v.type == FMU_BOOLEAN) {
        bool truth = value != 0.0;
        return set(it.instance, r, 1, &truth, 1);
    }
    if (v.type == FMU_INTEGER) {
        int32_t whole = (int32_t)value;
        return set(it.instance, r, 1, &whole, 1);
    }
    if (v.type == FMU_FLOAT32) {
        float single = (float)value;
        return set(it.instance, r, 1, &single, 1);
    }
    return set(it.instance, r, 1, &value, 1);
}

static int get_value(fmu_variable v, double *value)
{
    const uint32_t *r = &v.reference;
    int status, whole = 0;
    if (it.wiring->version == 2) {
        if (v.type == FMU_REAL)
            return ((fmi2_get_real)it.get[v.type])(it.instance, r, 1, value);
        status = ((fmi2_get_int)it.get[v.type])(it.instance, r, 1, &whole);
        *value = whole;
        return status;
    }
    fmi3_get get = (fmi3_get)it.get[v.type];
    if (v.type == FMU_REAL)
        return get(it.instance, r, 1, value, 1);
    if (v.type == FMU_BOOLEAN) {
        bool truth = false;
        status = get(it.instance, r, 1, &truth, 1);
        *value = truth;
    } else if (v.type == FMU_INTEGER) {
        int32_t number = 0;
        status = get(it.instance, r, 1, &number, 1);
        *value = number;
    } else {
        float single = 0.0f;
        status = get(it.instance, r, 1, &single, 1);
        *value = single;
    }
    return status;
}

/* --------------------------------------------------------------------------------------------------------------------- set-up */
/* A function of the library; NULL after a line about it where it must be there. */
static void *function(fmu_mailbox *box, const char *name, int needed)
{
    void *found = dlsym(it.library, name);
    if (found == NULL && needed)
        not_made(box, "the FMU's library has no function", name);
    return found;
}

/* Is there every function that variables of these types need? */
static int accessors(fmu_mailbox *box)
{
    static const char *const named[2][4] = {{"Real", "Integer", "Boolean", NULL}, {"Float64", "Int32", "Boolean", "Float32"}};
    char name[64];
    for (int type = 0; type < 4; type++) {
        const char *kind = named[it.wiring->version - 2][type];
        if (kind == NULL)
            continue;
        snprintf(name, sizeof name, "fmi%dGet%s", it.wiring->version, kind);
        it.get[type] = function(box, name, 1);
        snprintf(name, sizeof name, "fmi%dSet%s", it.wiring->version, kind);
        it.set[type] = function(box, name, 1);
        if (it.get[type] == NULL || it.set[type] == NULL)
            return -1;
    }
    return 0;
}

int fmu_make(fmu_mailbox *box, const fmu_wiring *wiring, const char *library, const char *name, const char *token, const char *resources)
{
    void *instantiate;
    memset(&it, 0, sizeof it);
    it.wiring = wiring;
    watch(box);
    box->thread = (int32_t)syscall(SYS_gettid);
    busy = 1;
    it.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    busy = 0;
    if (it.library == NULL)
        return not_made(box, "the FMU's library cannot be loaded", dlerror());
    if (accessors(box))
        return -1;
    if (wiring->version == 2) {
        it.step2 = (fmi2_step)function(box, "fmi2DoStep", 1);
        it.boolean_status = (fmi2_boolean_status)function(box, "fmi2GetBooleanStatus", 0);
        it.get_state = (fmi_get_state)function(box, "fmi2GetFMUstate", 0);
        it.set_state = (fmi_set_state)function(box, "fmi2SetFMUstate", 0);
        it.free_state = (fmi_get_state)function(box, "fmi2FreeFMUstate", 0);
        it.state_size = (fmi_state_size)function(box, "fmi2SerializedFMUstateSize", 0);
        it.save = (fmi_save)function(box, "fmi2SerializeFMUstate", 0);
        it.load = (fmi_load)function(box, "fmi2DeSerializeFMUstate", 0);
        instantiate = function(box, "fmi2Instantiate", 1);
    } else {
        it.step3 = (fmi3_step)function(box, "fmi3DoStep", 1);
        it.get_state = (fmi_get_state)function(box, "fmi3GetFMUState", 0);
        it.set_state = (fmi_set_state)function(box, "fmi3SetFMUState", 0);
        it.free_state = (fmi_get_state)function(box, "fmi3FreeFMUState", 0);
        it.state_size = (fmi_state_size)function(box, "fmi3SerializedFMUStateSize", 0);
        it.save = (fmi_save)function(box, "fmi3SerializeFMUState", 0);
        it.load = (fmi_load)function(box, "fmi3DeserializeFMUState", 0);
        instantiate = function(box, "fmi3InstantiateCoSimulation", 1);
    }
    if (box->failure)
        return -1;
    busy = 1;
    if (wiring->version == 2) {
        it.callbacks = (fmi2_callbacks){say2, calloc, free, step_finished, NULL};
        it.instance = ((fmi2_instantiate)instantiate)(name, FMI2_CO_SIMULATION, token, resources, &it.callbacks, 0, 0);
    } else
        it.instance = ((fmi3_instantiate)instantiate)(name, token, resources, false, false, false, false, NULL, 0, NULL, say3, NULL);
    busy = 0;
    return it.instance == NULL ? not_made(box, "the FMU does not instantiate", box->text) : 0;
}

int fmu_start(fmu_mailbox *box, fmu_variable variable, double value)
{
    busy = 1;
    int status = set_value(variable, value);
    busy = 0;
    return status > FMI_WARNING ? not_made(box, "the FMU does not take a start value", box->text) : 0;
}

int fmu_begin(fmu_mailbox *box)
{
    void *exit_mode, *enter, *experiment = NULL;
    int status = 0;
    if (it.wiring->version == 2) {
        experiment = function(box, "fmi2SetupExperiment", 1);
        enter = function(box, "fmi2EnterInitializationMode", 1);
        exit_mode = function(box, "fmi2ExitInitializationMode", 1);
    } else {
        enter = function(box, "fmi3EnterInitializationMode", 1);
        exit_mode = function(box, "fmi3ExitInitializationMode", 1);
    }
    if (box->failure)
        return -1;
    busy = 1;
    if (it.wiring->version == 2) {
        status = ((fmi2_experiment)experiment)(it.instance, 0, 0.0, 0.0, 0, 0.0);
        if (status <= FMI_WARNING)
            status = ((fmi_call)enter)(it.instance);
    } else
        status = ((fmi3_initialise)enter)(it.instance, false, 0.0, 0.0, false, 0.0);
    if (status <= FMI_WARNING)
        status = ((fmi_call)exit_mode)(it.instance);
    busy = 0;
    return status > FMI_WARNING ? not_made(box, "the FMU's initialisation fails", box->text) : 0;
}

/* ------------------------------------------------------------------------------------------------------------------ requests */
/* The inputs, the steps, the outputs. */
static int make_steps(fmu_mailbox *box)
{
    int status;
    for (int i = 0; i < it.wiring->inputs; i++)
        if ((status = set_value(it.wiring->input[i], box->input[i])) > FMI_WARNING)
            return status;
    for (int k = 0; k < box->steps; k++) {
        double time = (double)(box->first + k) * box->step_s;
        bool event = false, end = false, early = false;
        double reached = time;
        int over = 0;
        if (it.wiring->version == 2) {
            status = it.step2(it.instance, time, box->step_s, 1);
            if (status == FMI_DISCARD && it.boolean_status && it.boolean_status(it.instance, FMI2_TERMINATED, &over) == FMI_OK)
                end = over != 0;
        } else
            status = it.step3(it.instance, time, box->step_s, true, &event, &end, &early, &reached);
        if (end)
            box->failure = FMU_ENDED;
        if (end || status > FMI_WARNING)
            return status;
    }
    for (int i = 0; i < it.wiring->outputs; i++)
        if ((status = get_value(it.wiring->output[i], &box->output[i])) > FMI_WARNING)
            return status;
    return FMI_OK;
}

/* The FMU's state into the mailbox, or out of it. A state that does not fit has no bytes. */
static int move_state(fmu_mailbox *box, int saving)
{
    void *state = NULL;
    size_t size = box->state_bytes;
    int status;
    if (!it.get_state || !it.set_state || !it.free_state || !it.state_size || !it.save || !it.load)
        return FMI_ERROR;
    if (saving) {
        box->state_bytes = 0;
        status = it.get_state(it.instance, &state);
        if (status <= FMI_WARNING)
            status = it.state_size(it.instance, state, &size);
        if (status <= FMI_WARNING && size > FMU_STATE_BYTES)
            status = FMI_ERROR;
        if (status <= FMI_WARNING)
            status = it.save(it.instance, state, (char *)box->state, size);
        if (status <= FMI_WARNING)
            box->state_bytes = size;
    } else {
        status = it.load(it.instance, (const char *)box->state, size, &state);
        if (status <= FMI_WARNING)
            status = it.set_state(it.instance, state);
    }
    if (state)
        it.free_state(it.instance, &state);
    return status;
}

static void end_it(void)
{
    fmi_call terminate = (fmi_call)dlsym(it.library, it.wiring->version == 2 ? "fmi2Terminate" : "fmi3Terminate");
    void (*release)(void *) = (void (*)(void *))dlsym(it.library, it.wiring->version == 2 ? "fmi2FreeInstance" : "fmi3FreeInstance");
    if (terminate && terminate(it.instance) <= FMI_ERROR && release)
        release(it.instance);
}

void fmu_serve(fmu_mailbox *box, int64_t look_ns)
{
    uint32_t done = box->answer;
    for (;;) {
        int status = FMI_OK, what;
        fmu_await(&box->request, done, &box->child_sleeps, look_ns, 0);
        done = __atomic_load_n(&box->request, __ATOMIC_ACQUIRE);
        what = box->what;
#if defined(__x86_64__)
        _mm_setcsr(0x1f80); /* as every tick computes: round to nearest, nothing flushed to zero, no exceptions */
#endif
        box->failure = FMU_WORKS;
        busy = 1;
        if (what == FMU_STEP)
            status = make_steps(box);
        else if (what == FMU_SAVE || what == FMU_RESTORE)
            status = move_state(box, what == FMU_SAVE);
        else
            end_it();
        busy = 0;
        box->detail = status;
        if (status > FMI_WARNING && box->failure == FMU_WORKS)
            box->failure = FMU_BAD_STATUS;
        fmu_post(&box->answer, done, &box->loop_sleeps);
        if (what == FMU_END)
            return;
    }
}
