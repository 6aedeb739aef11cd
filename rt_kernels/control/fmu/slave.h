/* An FMU for co-simulation, 2.0 or 3.0, behind one set of functions: loaded, made, stepped. The prototypes are written after the text of
 * the standards (FMI 2.0.4, 4.2; FMI 3.0.1, 4.2 and 2.2-2.3). For use by one thread. */
#ifndef HIL_FMU_SLAVE_H
#define HIL_FMU_SLAVE_H
#include "rt_kernels/control/fmu/mailbox.h"

/* types of variables */
enum { FMU_REAL = 0, FMU_INTEGER = 1, FMU_BOOLEAN = 2, FMU_FLOAT32 = 3 };

typedef struct {
    uint32_t reference;
    int32_t type;
} fmu_variable;

typedef struct {
    int version; /* 2 or 3 */
    int inputs, outputs;
    fmu_variable input[FMU_INPUTS];
    fmu_variable output[FMU_OUTPUTS];
} fmu_wiring;

/* Loads the library and makes the instance; 0, or -1 with the reason in the mailbox. resources: URI (2.0) or path (3.0). */
int fmu_make(fmu_mailbox *box, const fmu_wiring *wiring, const char *library, const char *name, const char *token, const char *resources);

/* Before `fmu_begin`: a start value. */
int fmu_start(fmu_mailbox *box, fmu_variable variable, double value);

/* Through the initialisation, to the first step. */
int fmu_begin(fmu_mailbox *box);

/* Answers requests until `FMU_END`; returns then. */
void fmu_serve(fmu_mailbox *box, int64_t look_ns);

#endif
