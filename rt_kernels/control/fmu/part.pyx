# distutils: extra_compile_args = -O1
"""A controller from outside: an FMU for co-simulation (FMI 2.0 or 3.0) in a process of its own, asked once a communication step.

    u        inputs: fields of this tick (of the dynamics: of the tick before), channels of the dynamics part of the tick before
    y        outputs of doStep(t, h) with u held: fields of the control, from this tick on, held until the next step
    t = k h  k counts the steps, h = step_ticks periods; after skipped periods the steps that are due are made with the same u

The FMU runs in another process: what it does to its memory stays there. Loop and FMU meet in a mailbox of shared memory (mailbox.h); the
call is one wake-up there and one back, and takes the interpreter on neither side. These are the system calls that no other stage makes: a
controller that has to be kept apart costs them.

A signal, an error status, an output that is no number, or no answer in time is a failure: outputs are zero from then on, `control_status`
says failed, the safety stage trips. Nothing is asked of the FMU any more.

Constants and counters are one flat block; the FMU's own state is part of a snapshot where the FMU can give it. A replay restarts the FMU.
"""

import os

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from rt_kernels.algebra.values cimport Quat, Vec3, dot, quat, rotate_back, vec
from rt_kernels.codes cimport CONTROL_STATUS_FAILED
from rt_kernels.control.outputs cimport no_control
from rt_kernels.host cimport host_map, host_unmap
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import COUNT, COUNT_32
from rt_kernels.control.fmu import description
from rt_kernels.control.fmu.process import Process, cause_of, memory_file
from rt_kernels.parameters import Aux, Parameter, checked

cdef extern from "rt_kernels/control/fmu/mailbox.h" nogil:
    enum:
        FMU_STATE_BYTES, FMU_TEXT
        FMU_STEP, FMU_SAVE, FMU_RESTORE
        FMU_WORKS, FMU_CRASHED, FMU_LATE, FMU_NOT_FINITE
    ctypedef struct fmu_mailbox:
        uint32_t request, child_sleeps, answer, loop_sleeps
        int32_t what, steps
        int64_t first
        double step_s
        int32_t failure, detail, thread, confined
        uint64_t state_bytes
        double input[256]
        double output[64]
        char text[512]
        uint8_t state[1]
    void fmu_post(uint32_t *word, uint32_t value, uint32_t *sleeps)
    int fmu_await(uint32_t *word, uint32_t old, uint32_t *sleeps, int64_t look_ns, int64_t limit_ns)
    int fmu_beside(int thread)
    int fmu_kill(int process)

# what stands in a sample: as `rt_kernels.control.fmu.description` counts them
cdef enum:
    F8 = 0
    I8 = 1
    I4 = 2
    U4 = 3
    BIT = 4
    CHANNEL = 5         # of the dynamics part: a number
    JOINT = 6           # a number, and the bit that says it is one
    ACTUATOR = 7        # torque of a wheel or thrust of a thruster, and its wrench on the craft

# what the FMU's process is kept from, by the bits of sandbox.h
SANDBOX = (
    "trusted, not sandboxed: this kernel has no filter of system calls (seccomp); the FMU has all rights of its user",
    "sandboxed: no files written, no network, no other process; it can read what its user can (the kernel has no Landlock)",
    "trusted, not sandboxed: this kernel has no filter of system calls (seccomp); the FMU reads its own and the system's files only",
    "sandboxed: no files written, none read but its own and the system's, no network, no other process",
)

cdef enum:
    SKIPPED_MAX = 10000     # periods at once that are made up: the safety stage has tripped at fewer

cdef struct Wire:
    int offset          # in the sample, bytes; CHANNEL: number of the channel
    int kind
    uint32_t mask       # of a bit; JOINT: in its word of joint_controlled; ACTUATOR: in control_status, at its limit
    int target          # ACTUATOR: 1 of the target craft
    double wrench[6]    # ACTUATOR: of a unit, at and in the centre of mass
    double low          # and what it gives
    double high
    double inertia      # of a wheel, and the momentum that it takes; 0: no wheel
    double momentum

cdef struct Constants:
    int inputs
    int outputs
    int step_ticks
    double step_s
    uint8_t sha256[32]  # of the FMU: another one is another part
    Wire input[256]
    Wire output[64]

cdef struct State:
    int64_t steps       # communication steps made
    int due             # periods since the last one
    int failure
    int detail          # FMI status, or number of the signal
    double output[64]   # of the last step

cdef struct Block:
    Constants c
    State s

cdef struct Self:
    Block block         # first: what a log keeps
    fmu_mailbox *box
    uint32_t number     # of the last request; the mailbox itself is open to what the FMU does
    int process
    int live
    int placed          # the FMU's thread beside the loop's
    int thread          # the FMU's, as it was after set-up
    const double *channels  # of the dynamics part
    int64_t look_ns     # how long the loop looks for the answer before it sleeps
    int64_t limit_ns    # time for an answer


cdef inline double taken(const char *sample, const double *channels, const Wire *w) noexcept nogil:
    """What stands at a place of the sample or of the channels, as a number."""
    if w.kind == CHANNEL:
        return channels[w.offset]
    cdef const char *at = sample + w.offset
    if w.kind == F8:
        return (<const double *>at)[0]
    if w.kind == I8:
        return <double>(<const int64_t *>at)[0]
    if w.kind == I4:
        return <double>(<const int32_t *>at)[0]
    if w.kind == U4:
        return <double>(<const uint32_t *>at)[0]
    return 1.0 if (<const uint32_t *>at)[0] & w.mask else 0.0


cdef inline void put(Sample *o, const Wire *w, double value) noexcept nogil:
    """An output to its place: a number, or a bit that is set or left."""
    cdef char *at = <char *>o + w.offset
    if w.kind == BIT:
        if value != 0.0:
            (<uint32_t *>at)[0] |= w.mask
        return
    (<double *>at)[0] = value
    if w.kind == JOINT:
        o.joint_controlled[(<double *>at - o.joint_target) >> 5] |= w.mask


cdef inline bint is_full(const Sample *o, const Wire *w, const double *at, double torque) noexcept nogil:
    """Whether a wheel has all the momentum about its axis that it takes, and the torque would add to it. at: its torque in the sample."""
    cdef Quat q = quat(&o.X_NV[3] if w.target else &o.X_NC[3])
    cdef Vec3 w_craft = rotate_back(q, vec(&o.V_NV[3] if w.target else &o.V_NC[3]))
    cdef double rate = o.wheel_rate_T[at - &o.wheel_torque_T[0]] if w.target else o.wheel_rate_A[at - &o.wheel_torque_A[0]]
    cdef double momentum = w.inertia * (rate - dot(vec(w.wrench + 3), w_craft))
    return fabs(momentum) >= w.momentum and momentum * torque > 0.0


cdef inline void act(Sample *o, const Wire *w, double value) noexcept nogil:
    """An actuator within its limits, with what it does to the craft."""
    cdef double *wrench = &o.control_T[0] if w.target else &o.control_A[0]
    cdef double *at = <double *>(<char *>o + w.offset)
    cdef double given = min(max(value, w.low), w.high)
    cdef int i
    if w.momentum > 0.0 and is_full(o, w, at, given):
        given = 0.0
    if given != value:
        o.control_status |= w.mask
    at[0] = given
    for i in range(6):
        wrench[i] += given * w.wrench[i]


cdef int asked(Self *p, int what) noexcept nogil:
    """One request and its answer; 0, or 1 when none came in time: the process is then killed, it would keep its core."""
    cdef fmu_mailbox *box = p.box
    p.number += 1
    box.what = what
    fmu_post(&box.request, p.number, &box.child_sleeps)
    if fmu_await(&box.answer, p.number - 1, &box.loop_sleeps, p.look_ns, p.limit_ns) or box.answer != p.number:
        fmu_kill(p.process)
        return 1
    return 0


cdef void communicate(Self *p, const Sample *o, int steps) noexcept nogil:
    """Inputs there, `steps` communication steps, outputs back into the state."""
    cdef const Constants *c = &p.block.c
    cdef State *s = &p.block.s
    cdef fmu_mailbox *box = p.box
    cdef int i
    for i in range(c.inputs):
        box.input[i] = taken(<const char *>o, p.channels, &c.input[i])
    box.steps = steps
    box.first = s.steps
    box.step_s = c.step_s
    if asked(p, FMU_STEP):
        s.failure = FMU_LATE
        return
    s.steps += steps
    s.failure = box.failure
    s.detail = box.detail
    if s.failure != FMU_WORKS:
        return
    for i in range(c.outputs):
        s.output[i] = box.output[i]
        if not isfinite(s.output[i]):
            s.failure = FMU_NOT_FINITE


cdef void step(void *self, Sample *o, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef const Constants *c = &p.block.c
    cdef State *s = &p.block.s
    cdef int i, steps
    no_control(o)
    # a live loop has become what it is by its first tick: the FMU's thread goes beside it
    if p.live and not p.placed:
        p.placed = 1
        p.look_ns = p.limit_ns if fmu_beside(p.thread) else 0
    # the communication steps that are due
    s.due += o.periods if 0 <= o.periods <= SKIPPED_MAX else 0
    steps = s.due // c.step_ticks
    if s.failure == FMU_WORKS and steps > 0:
        s.due -= steps * c.step_ticks
        communicate(p, o, steps)
    # what the FMU wants, or nothing
    if s.failure == FMU_WORKS:
        for i in range(c.outputs):
            put(o, &c.output[i], s.output[i])
        for i in range(c.outputs):
            if c.output[i].kind == ACTUATOR:
                act(o, &c.output[i], s.output[i])
    else:
        o.control_status = CONTROL_STATUS_FAILED
        s.due = 0
    aux[0] = s.failure
    aux[1] = s.detail
    aux[2] = <double>s.steps * c.step_s


cdef void _fill(Wire *w, wire):
    cdef int i
    w.offset, w.kind, w.mask, w.target, wrench, w.low, w.high, w.inertia, w.momentum = wire.place
    for i in range(6):
        w.wrench[i] = wrench[i]


cdef class Fmu(StagePart):
    """A controller from outside as an FMU, in a process of its own.

    trusted: SHA-256 of the FMUs that may run, None where the person who runs the test named this one. dynamics: the part whose channels it
    may look at and whose joints and actuators it may name. notes: one line about the FMU and
    what its process is kept from, for the log. Raises ValueError that names the key for an FMU that is not the one meant (`sha256`), that
    this machine cannot run, or whose variables do not fit.
    """

    PARAMETERS = (
        Parameter("file", "str", "-", "the FMU, FMI 2.0 or 3.0 for co-simulation"),
        Parameter("sha256", "str", "-", "SHA-256 of the file, 64 hexadecimal digits"),
        Parameter("inputs", "table", "-", "variable of the FMU = field of the sample, field[index] or field.bit; channel of the dynamics "
                  "part, channel[index] or channel[name]", None),
        Parameter("outputs", "table", "-", "variable of the FMU = field that the control writes, field[index], field[name] or field.bit"),
        Parameter("start", "table", "-", "variable of the FMU = its value before the first step", None),
        Parameter("step_ticks", "int", "-", "periods of the loop in one communication step", 1, low=1, high=1000),
        Parameter("deadline_ms", "float", "ms", "time for an answer in a live run", 50.0, low=0.05, high=1000.0),
        Parameter("patience_s", "float", "s", "the same in a simulation or a replay, which wait for a busy machine", 10.0, low=0.1,
                  high=600.0),
        Parameter("look_us", "float", "us", "how long the FMU's process looks for the next step before it sleeps: more than a period keeps "
                  "its core busy", 0.0, low=0.0, high=100000.0),
    )
    AUX = (
        Aux("fmu.failure", "-", "0 none, 1 error status, 2 crashed, 3 no answer in time, 4 output not a number, 5 asked for the end"),
        Aux("fmu.detail", "-", "FMI status of the last step; crashed: number of the signal, 0 for exit"),
        Aux("fmu.time", "s", "how far the FMU has come"),
    )
    CONTEXT = ("period_s", "folders", "live", "trusted", "dynamics")
    FILES = ("file",)
    cdef Self c
    cdef object found, process
    cdef double[::1] channels
    cdef readonly tuple notes

    def __cinit__(self):
        memset(&self.c, 0, sizeof(Self))

    def __init__(self, *, period_s, folders, live, trusted=None, dynamics=None, **given):
        keys = checked(self.PARAMETERS, given)
        cdef Constants *c = &self.c.block.c
        c.step_ticks = keys["step_ticks"]
        c.step_s = keys["step_ticks"] * period_s
        found = self.found = description.described(
            keys["file"], folders, keys["sha256"], keys["inputs"] or {}, keys["outputs"], keys["start"] or {}, c.step_s, trusted,
            dynamics
        )
        c.inputs, c.outputs = len(found.inputs), len(found.outputs)
        for i, wire in enumerate(found.inputs):
            _fill(&c.input[i], wire)
        for i, wire in enumerate(found.outputs):
            _fill(&c.output[i], wire)
        # of a part that is in no line
        self.look_at(np.zeros(max(1, sum(channel.count for channel in getattr(dynamics, "AUX", ())))))
        digest = bytes.fromhex(found.sha256)
        memcpy(c.sha256, PyBytes_AS_STRING(digest), 32)
        self.c.block.s.due = c.step_ticks - 1  # the first tick is a communication point
        self.c.live = live
        self.c.limit_ns = <int64_t>(1e6 * keys["deadline_ms"] if live else 1e9 * keys["patience_s"])
        self._begin(found, int(1e3 * keys["look_us"]))
        self.notes = (f"{found.note}; {SANDBOX[self.c.box.confined & 3]}",)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Block)
        self.plug.state = &self.c.block.s
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def look_at(self, channels):
        if len(channels):
            self.channels = channels
            self.c.channels = &self.channels[0]

    def _begin(self, found, look_ns):
        """The FMU's process, up to its first step."""
        fd = memory_file(sizeof(fmu_mailbox))
        try:
            self.c.box = <fmu_mailbox *>host_map(sizeof(fmu_mailbox), fd)
            if self.c.box == NULL:
                raise MemoryError("no memory for the mailbox of an FMU")
            memset(self.c.box, 0, sizeof(fmu_mailbox))
            self.c.box.request = self.c.number = 1  # answered by the FMU that is ready
            job = {
                "bytes": sizeof(fmu_mailbox), "version": found.version, "library": found.library, "name": "hil_server",
                "token": found.token, "resources": found.resources, "look_ns": look_ns, "lock_memory": bool(self.c.live),
                "inputs": [(w.reference, w.type) for w in found.inputs], "outputs": [(w.reference, w.type) for w in found.outputs],
                "start": [((s.reference, s.type), s.value) for s in found.start], "folder": str(found.folder),
            }
            self.process = Process(job, fd, found.folder)
        finally:
            os.close(fd)
        wrong = self.process.wait(self._answered)
        if not wrong and self.c.box.failure == FMU_CRASHED:
            wrong = f"its process ended with {cause_of(self.c.box.detail)} while the FMU was made"
        elif not wrong and self.c.box.failure != FMU_WORKS:
            text = (<const char *>self.c.box.text)[:FMU_TEXT].partition(b"\0")[0].decode(errors="replace")
            wrong = "".join(c if c.isprintable() else "?" for c in text)
        self.c.thread = self.c.box.thread
        if not wrong and not self.process.has_thread(self.c.thread):
            wrong = f"the FMU names a thread that is not its own: {self.c.thread}"
        if wrong:
            self.process.close()
            raise ValueError(f"file: {wrong}: value {str(found.path)!r}, limit an FMU that can be set up")
        self.c.process = self.process.pid

    def _answered(self):
        return self.c.box.answer != 0

    def __dealloc__(self):
        if self.c.box != NULL:
            host_unmap(self.c.box, sizeof(fmu_mailbox))

    def fields(self):
        return self.c.block

    def state_fields(self):
        return self.c.block.s

    def state_bounds(self):
        return {"steps": COUNT, "due": (0, self.c.block.c.step_ticks + SKIPPED_MAX), "failure": COUNT_32, "detail": (-2**31, 2**31 - 1)}

    def snapshot(self):
        """State of the part and of the FMU. Raises ValueError for an FMU that cannot give its state."""
        return StagePart.snapshot(self) + self._state(FMU_SAVE)

    def restore(self, bytes snapshot):
        """Raises ValueError for an FMU that cannot take a state, or for a snapshot of something else."""
        cdef size_t size = sizeof(State)
        if <size_t>len(snapshot) < size or <size_t>len(snapshot) - size > FMU_STATE_BYTES:
            raise ValueError(f"snapshot has {len(snapshot)} bytes, this part's state has at least {size}")
        self.c.box.state_bytes = len(snapshot) - size
        memcpy(self.c.box.state, PyBytes_AS_STRING(snapshot) + size, len(snapshot) - size)
        self._state(FMU_RESTORE)
        StagePart.restore(self, snapshot[:size])

    def _state(self, int what):
        """The FMU's own state out of it or into it, through the mailbox."""
        cdef int late
        cdef uint64_t size
        if not self.found.keeps_state:
            raise ValueError(f"the FMU {self.found.name} can neither give nor take its state (canGetAndSetFMUstate, canSerializeFMUstate): "
                             "the part cannot be put back in the middle of a run")
        if self.c.block.s.failure != FMU_WORKS:
            raise ValueError(f"the FMU {self.found.name} has failed: it has no state to give or to take")
        with nogil:
            late = asked(&self.c, what)
        size = self.c.box.state_bytes  # once: the FMU can write it at any time
        if late or self.c.box.failure == FMU_CRASHED:
            self.c.block.s.failure = FMU_LATE if late else FMU_CRASHED
        if late or self.c.box.failure != FMU_WORKS or size > <uint64_t>FMU_STATE_BYTES:
            raise ValueError(f"the FMU {self.found.name} does not {'give' if what == FMU_SAVE else 'take'} its state, or more than "
                             f"{FMU_STATE_BYTES} bytes of it")
        return PyBytes_FromStringAndSize(<const char *>self.c.box.state, size)
