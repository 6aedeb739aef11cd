# distutils: extra_compile_args = -O1
"""Owners of the plugs: what every part has in common (snapshot, restore, single calls for tests and set-up)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy, memset

import numpy as np

from rt_kernels.algebra.values cimport Pose, Quat, Twist, add, exponential, mul, pose_from, pose_of, put_pose, quat_multiply, twist

from rt_kernels.block_check import first_beyond, first_difference
from rt_kernels.layout import SAMPLE_DTYPE
from rt_kernels.parameters import tuned_parameter

cdef bytes _copy_out(const void *state, size_t size):
    return PyBytes_FromStringAndSize(<const char *>state, size) if size else b""


cdef int _copy_in(void *state, size_t size, bytes snapshot) except -1:
    if <size_t>len(snapshot) != size:
        raise ValueError(f"snapshot has {len(snapshot)} bytes, this part's state has {size}")
    if size:
        memcpy(state, PyBytes_AS_STRING(snapshot), size)
    return 0


def restore_checked(part, bytes snapshot):
    """What a file says was a part's state, into the part. Raises ValueError for a state that the part cannot have; it is then as it was.

    The state of a part goes through memory as it is: what a part says of it (`state_fields`, a C struct as Cython converts it) is looked
    at before anything runs on it."""
    kept = part.snapshot()
    part.restore(snapshot)
    found = part.state_fields()
    wrong = "its state cannot come out of a file" if found is None and kept else first_beyond(found or {}, part.state_bounds())
    if wrong:
        part.restore(kept)
        raise ValueError(wrong)


def _arrays(sample, aux, declared):
    """The sample as a writable array of one record, and a buffer for the auxiliary channels."""
    if sample.dtype != SAMPLE_DTYPE or sample.shape != (1,):
        raise ValueError("sample must be an array of one record of rt_kernels.layout.SAMPLE_DTYPE")
    count = sum(channel.count for channel in declared)
    if aux is None:
        aux = np.zeros(max(count, 1))
    if aux.dtype != np.float64 or aux.shape[0] < count:
        raise ValueError(f"aux must be at least {count} float64")
    return sample, aux


cdef class StagePart:
    """A stage: `step(sample)` runs it once on an array of one record (tests, set-up)."""

    PARAMETERS = ()
    AUX = ()
    COMMANDS = ()

    def __cinit__(self):
        self.tunables = []

    cdef int let_tune(self, str key, const double *place, double value, low=None, high=None, double scale=1.0) except -1:
        """For constructors, behind the plug: the step reads the declared parameter `key` as value * scale from `place` in this part's block
        whenever it needs it, so that the loop may change it there. low, high: limits of this run, narrower than the declared ones."""
        cdef Py_ssize_t offset = <const char *>place - <const char *>self.plug.self
        if not 0 <= offset <= <Py_ssize_t>self.plug.self_size - <Py_ssize_t>sizeof(double) or place[0] != value * scale:
            raise ValueError(f"{key}: its place is not in the part's block, or does not hold its value")
        found = tuned_parameter(self.PARAMETERS, key, value, offset, low, high, scale)
        if found is not None:
            self.tunables.append(found)
        return 0

    def look_at(self, channels):
        """Of a line that runs: the dynamics part's own channels, (n,), which hold those of the tick before when the control is called.
        Most parts look at fields of the sample alone."""

    def step(self, sample, aux=None):
        sample, aux = _arrays(sample, aux, self.AUX)
        cdef unsigned char[::1] s = sample.view(np.uint8)
        cdef double[::1] a = aux
        self.plug.step(self.plug.self, <Sample *>&s[0], &a[0])
        return aux

    def through(self, samples, aux=None):
        """One step on each record of an array, shape (n,), in place and in C, without the GIL."""
        if samples.dtype != SAMPLE_DTYPE or samples.ndim != 1 or not samples.flags.c_contiguous:
            raise ValueError("samples must be a contiguous array of records of rt_kernels.layout.SAMPLE_DTYPE")
        aux = np.zeros(max(sum(channel.count for channel in self.AUX), 1)) if aux is None else aux
        cdef unsigned char[::1] s = samples.view(np.uint8)
        cdef double[::1] a = aux
        cdef Py_ssize_t i, n = samples.shape[0]
        with nogil:
            for i in range(n):
                self.plug.step(self.plug.self, <Sample *>&s[i * <Py_ssize_t>sizeof(Sample)], &a[0])
        return aux

    def repeat(self, sample, long count, aux=None):
        """`count` steps on the same sample, in C, without the GIL."""
        sample, aux = _arrays(sample, aux, self.AUX)
        cdef unsigned char[::1] s = sample.view(np.uint8)
        cdef double[::1] a = aux
        with nogil:
            for _ in range(count):
                self.plug.step(self.plug.self, <Sample *>&s[0], &a[0])
        return aux

    def snapshot(self):
        return _copy_out(self.plug.state, self.plug.state_size)

    def restore(self, bytes snapshot):
        """Takes back what `snapshot` gave in this process; what a file holds goes through `restore_checked`."""
        _copy_in(self.plug.state, self.plug.state_size, snapshot)

    def state_fields(self):
        """What `snapshot` holds, by name, as `fields` says it. None: the part does not say."""
        found = self.fields()
        return None if found is None or self.plug.state_size == 0 else found["state"]

    def state_bounds(self):
        """Field of `state_fields` → smallest and largest whole number that it can have."""
        return {}

    def dump(self):
        """Constants and state as bytes; with them another machine computes the same bits."""
        if self.plug.self_size == 0:
            return self.snapshot()
        return _copy_out(self.plug.self, self.plug.self_size)

    def fields(self):
        """What `dump` holds, by name: numbers, whole numbers, lists and tables of them (a C struct as Cython converts it). None: the part
        does not say, and only the block that it builds itself can be put back."""
        return None

    def load_unchecked(self, bytes block):
        """Takes a block of `dump` as it is: only what this process made itself. Raises ValueError for one of another size."""
        if self.plug.self_size == 0:
            self.restore(block)
        else:
            _copy_in(self.plug.self, self.plug.self_size, block)

    def load(self, bytes block):
        """Constants and initial state as a log keeps them. A log is not trusted: whole numbers steer (counts, offsets, indices, modes) and
        must be those that this part has built itself; numbers may differ by what another machine's mathematics library rounds otherwise.
        Raises ValueError that names the first field that is otherwise; the part is then as it was."""
        kept, built = self.dump(), self.fields()
        self.load_unchecked(block)
        found = self.fields()
        wrong = first_difference(kept if built is None else built, block if found is None else found)
        if wrong:
            self.load_unchecked(kept)
            raise ValueError(wrong)


cdef class PortPart:
    """A port: `open()` before the run, `close()` after it; `read` and `write` by hand for tests."""

    PARAMETERS = ()
    AUX = ()
    COMMANDS = ()
    soft_realtime = False

    @property
    def inner(self):
        """name -> part with a state of its own that this port holds (plant, machine, mechanism of a simulated stand)."""
        return {}

    def open(self):
        """Finds and sets up the device. Raises hil_server.errors.DeviceError through the caller when it is not there."""

    def begin(self):
        """The loop is about to start: throws away what has piled up since `open`."""

    def close(self):
        """Leaves the device safe and lets go of it. May be called twice."""

    def read(self, sample, aux=None):
        sample, aux = _arrays(sample, aux, self.AUX)
        cdef unsigned char[::1] s = sample.view(np.uint8)
        cdef double[::1] a = aux
        self.plug.read(self.plug.self, <Sample *>&s[0], &a[0])
        return aux

    def write(self, sample, aux=None):
        sample, aux = _arrays(sample, aux, self.AUX)
        cdef unsigned char[::1] s = sample.view(np.uint8)
        cdef double[::1] a = aux
        self.plug.write(self.plug.self, <Sample *>&s[0], &a[0])
        return aux

    def snapshot(self):
        return _copy_out(self.plug.state, self.plug.state_size)

    def restore(self, bytes snapshot):
        """Takes back what `snapshot` gave in this process; what a file holds goes through `restore_checked`."""
        _copy_in(self.plug.state, self.plug.state_size, snapshot)

    def state_fields(self):
        """What `snapshot` holds, by name (a C struct as Cython converts it). None: the part does not say."""
        return None

    def state_bounds(self):
        """Field of `state_fields` → smallest and largest whole number that it can have."""
        return {}


cdef class ClockPart:
    """A clock."""

    PARAMETERS = ()
    AUX = ()
    paused = False


cdef class MechanismPart:
    """A docking mechanism in software: `advance` runs it once (tests, first-contact search).

    LEDGER: its channels of energy: what was put in, and where it is or went; empty without them."""

    PARAMETERS = ()
    AUX = ()
    LEDGER = ()

    def advance(self, X_TA, V_TA, double dt, w_A=(0.0, 0.0, 0.0), unsigned int commands=0, aux=None):
        """One step. Returns a dict with F_T, F_A, signals, analog, status; shapes (6,), (6,), int, (8,), int."""
        cdef MechanismInput inp
        cdef MechanismOutput out
        cdef int i
        count = sum(channel.count for channel in self.AUX)
        cdef double[::1] a = np.zeros(max(count, 1)) if aux is None else aux
        if a.shape[0] < count:
            raise ValueError(f"aux must be at least {count} float64")
        for i in range(7):
            inp.X_TA[i] = X_TA[i]
        for i in range(6):
            inp.V_TA[i] = V_TA[i]
        for i in range(3):
            inp.w_A[i] = w_A[i]
        inp.dt = dt
        inp.commands = commands
        self.plug.advance(self.plug.self, &inp, &out, &a[0])
        return {
            "F_T": np.array([out.F_T[i] for i in range(6)]),
            "F_A": np.array([out.F_A[i] for i in range(6)]),
            "analog": np.array([out.analog[i] for i in range(8)]),
            "signals": out.signals,
            "status": out.status,
        }

    def glide(self, X_TA, V_TA, double dt, int ticks, unsigned int commands=0, int every=1):
        """`ticks` steps with the base on the constant twist V_TA from the pose X_TA, in C, without the GIL. Returns (pose
        after it, samples): every `every`-th tick a row of F_T 6, F_A 6, signals, then the auxiliary channels."""
        if ticks < 0 or every < 1 or not dt > 0.0:
            raise ValueError(f"glide needs ticks >= 0, every >= 1 and dt > 0 s, got {ticks}, {every}, {dt}")
        cdef MechanismInput inp
        cdef MechanismOutput out
        cdef Pose X = pose_from(X_TA)
        cdef Twist V
        cdef Quat turn
        cdef int i, n = 0, count = sum(channel.count for channel in self.AUX)
        rows = np.zeros((ticks // every, 13 + count))
        cdef double[:, ::1] r = rows
        cdef double[::1] aux = np.zeros(max(count, 1))
        memset(&inp, 0, sizeof(inp))
        put_pose(X, inp.X_TA)
        for i in range(6):
            inp.V_TA[i] = V_TA[i]
        inp.dt = dt
        inp.commands = commands
        V = twist(inp.V_TA)
        turn = exponential(mul(dt, V.w))
        with nogil:
            for i in range(ticks):
                self.plug.advance(self.plug.self, &inp, &out, &aux[0])
                X = pose_of(add(X.p, mul(dt, V.v)), quat_multiply(turn, X.q))
                put_pose(X, inp.X_TA)
                if (i + 1) % every == 0:
                    memcpy(&r[n, 0], out.F_T, sizeof(out.F_T))
                    memcpy(&r[n, 6], out.F_A, sizeof(out.F_A))
                    r[n, 12] = out.signals
                    if count:
                        memcpy(&r[n, 13], &aux[0], sizeof(double) * count)
                    n += 1
        return np.array([inp.X_TA[i] for i in range(7)]), rows

    def snapshot(self):
        return _copy_out(self.plug.state, self.plug.state_size)

    def restore(self, bytes snapshot):
        """Takes back what `snapshot` gave in this process; what a file holds goes through `restore_checked`."""
        _copy_in(self.plug.state, self.plug.state_size, snapshot)

    def state_fields(self):
        """What `snapshot` holds, by name (a C struct as Cython converts it). None: the part does not say."""
        return None

    def state_bounds(self):
        """Field of `state_fields` → smallest and largest whole number that it can have."""
        return {}
