# distutils: extra_compile_args = -O1
"""The process in which an FMU runs: told on its standard input what to load, then it answers the mailbox. It ends with its parent.

The FMU has one thread of this process for itself; the other waits for the end of the standard input, which comes when the parent closes
it or is gone, so that an FMU that never returns leaves nothing behind.
"""

import json
import os
import sys
import threading

from libc.stdint cimport int64_t

from rt_kernels.host cimport host_map


cdef extern from "sys/mman.h" nogil:
    int mlockall(int flags)
    int MCL_CURRENT

cdef extern from "rt_kernels/control/fmu/slave.h" nogil:
    ctypedef struct fmu_mailbox:
        unsigned int answer
        unsigned int loop_sleeps
    ctypedef struct fmu_variable:
        unsigned int reference
        int type
    ctypedef struct fmu_wiring:
        int version, inputs, outputs
        fmu_variable input[256]
        fmu_variable output[64]
    void fmu_post(unsigned int *word, unsigned int value, unsigned int *sleeps)
    int fmu_make(fmu_mailbox *box, const fmu_wiring *wiring, const char *library, const char *name, const char *token,
                 const char *resources)
    int fmu_start(fmu_mailbox *box, fmu_variable variable, double value)
    int fmu_begin(fmu_mailbox *box)
    void fmu_serve(fmu_mailbox *box, int64_t look_ns)

cdef fmu_mailbox *box = NULL
cdef fmu_wiring wiring


cdef fmu_variable _variable(pair):
    cdef fmu_variable v
    v.reference, v.type = pair
    return v


def _run(job):
    """The FMU's thread: made, begun, answered, until the parent asks for the end. No call of the FMU holds the interpreter: the other
    thread must be able to end the process."""
    named = [os.fsencode(job[key]) for key in ("library", "name", "token", "resources")]
    cdef const char *library = named[0]
    cdef const char *name = named[1]
    cdef const char *token = named[2]
    cdef const char *resources = named[3]
    cdef int64_t look = job["look_ns"]
    cdef int lock_memory = job["lock_memory"]
    cdef int failed
    cdef fmu_variable v
    cdef double x
    with nogil:
        failed = fmu_make(box, &wiring, library, name, token, resources)
    for pair, value in job["start"]:
        v, x = _variable(pair), value
        with nogil:
            failed = failed or fmu_start(box, v, x)
    with nogil:
        failed = failed or fmu_begin(box)
        if lock_memory:
            mlockall(MCL_CURRENT)  # where it is not allowed it does without; what comes later must not fail for it
        fmu_post(&box.answer, 1, &box.loop_sleeps)
        if not failed:
            fmu_serve(box, look)
    os._exit(0)


def main():
    """The whole process. Standard input: one line of JSON (see `rt_kernels.control.fmu.process`), then nothing until it is closed."""
    global box
    job = json.loads(sys.stdin.buffer.readline())
    wiring.version, wiring.inputs, wiring.outputs = job["version"], len(job["inputs"]), len(job["outputs"])
    for i, pair in enumerate(job["inputs"]):
        wiring.input[i] = _variable(pair)
    for i, pair in enumerate(job["outputs"]):
        wiring.output[i] = _variable(pair)
    box = <fmu_mailbox *>host_map(job["bytes"], job["fd"])
    if box == NULL:
        os._exit(1)
    os.close(job["fd"])
    threading.Thread(target=_run, args=(job,), daemon=True).start()
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)
