# distutils: extra_compile_args = -O1
"""The two processes behind an FMU: a keeper, told on its standard input what to load, and the FMU's own, which answers the mailbox.

The FMU is machine code of somebody else. Its process is confined before the FMU is loaded (sandbox.h) and is a child of the keeper, which
runs nothing of the FMU: the keeper passes on what the FMU prints, up to a limit, and kills it when its own standard input ends, which comes
when the server closes it or is gone. The FMU's process dies with the keeper.
"""

import json
import os
import signal
import sys
import threading

from libc.stdint cimport int64_t, uint64_t

from rt_kernels.host cimport host_map


cdef extern from "sys/mman.h" nogil:
    int mlockall(int flags)
    int MCL_CURRENT

cdef extern from "rt_kernels/control/fmu/slave.h" nogil:
    ctypedef struct fmu_mailbox:
        unsigned int answer
        unsigned int loop_sleeps
        int confined
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

cdef extern from "rt_kernels/control/fmu/sandbox.h" nogil:
    int sandbox_die_with(int parent)
    int sandbox_confine(const char *folder, const char *python, uint64_t most_memory)

MOST_MEMORY = 2 << 30   # bytes of address space beyond those of the interpreter: of the FMU's code, heap and threads
MOST_SAID = 1 << 16     # bytes of what the FMU prints that are passed on

cdef fmu_mailbox *box = NULL
cdef fmu_wiring wiring


cdef fmu_variable _variable(pair):
    cdef fmu_variable v
    v.reference, v.type = pair
    return v


def _run(job):
    """The FMU: made, begun, answered, until the server asks for the end."""
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
    failed = fmu_make(box, &wiring, library, name, token, resources)
    for pair, value in job["start"]:
        v, x = _variable(pair), value
        failed = failed or fmu_start(box, v, x)
    failed = failed or fmu_begin(box)
    if lock_memory:
        mlockall(MCL_CURRENT)  # where it is not allowed it does without; what comes later must not fail for it
    fmu_post(&box.answer, 1, &box.loop_sleeps)
    if not failed:
        fmu_serve(box, look)


def _confined(job, keeper, output):
    """The FMU's process, from the fork on: never returns."""
    cdef bytes folder = os.fsencode(job["folder"])
    cdef bytes python = os.fsencode(os.path.dirname(os.__file__))
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if sandbox_die_with(keeper):
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, 256)
        with open("/proc/self/statm", "rb") as statm:
            here = int(statm.read().split()[0]) * os.sysconf("SC_PAGESIZE")
        box.confined = sandbox_confine(folder, python, here + <uint64_t>job.get("most_memory", MOST_MEMORY))
        _run(job)
        os._exit(0)
    except BaseException as error:  # no caller may continue in this process
        sys.stderr.write(f"FMU: {error!r}\n")
        sys.stderr.flush()
        os._exit(1)


def _pass_on(output):
    """What the FMU prints, to the server's standard error: as text without control characters, and only its beginning."""
    left = MOST_SAID
    while part := os.read(output, 4096):
        if left > 0:
            text = part[:left].decode(errors="replace")
            left -= len(part)
            if left <= 0:
                text += f"\nFMU: prints more than {MOST_SAID} bytes: the rest is dropped\n"
            shown = "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
            try:
                sys.stderr.write(shown)
                sys.stderr.flush()
            except OSError:
                left = 0


def _kill_at_the_end(pid):
    """Until the server closes the standard input, or is gone."""
    while sys.stdin.buffer.read(4096):
        pass
    os.kill(pid, signal.SIGKILL)  # not reaped before this process ends: the number is still its own


def main():
    """The keeper. Standard input: one line of JSON (see `rt_kernels.control.fmu.process`), then nothing until it is closed."""
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
    output, says = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        _confined(job, keeper, says)
    os.close(says)
    relay = threading.Thread(target=_pass_on, args=(output,), daemon=True)
    relay.start()
    threading.Thread(target=_kill_at_the_end, args=(pid,), daemon=True).start()
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # seen, not reaped
    relay.join(1.0)
    os._exit(ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status)
