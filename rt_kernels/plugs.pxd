"""The three plugs of the line, and the mechanism that a stand or a simulation carries.

A plug is a plain C struct of function pointers, all `noexcept nogil`, with a pointer to the part's own struct (`self`: constants and
state; constants were made with the mathematics library of the machine that ran, so the log keeps them too) and to the part of it that
changes (`state`, `state_size`: one flat block without pointers, so that a snapshot is one copy and two runs of the same inputs give the
same bytes). An extension class owns the memory and fills the plug in its constructor.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t

from rt_kernels.sample cimport Sample


# Computes: reads the sample, writes only the fields whose writer it is; `aux` points at the part's own auxiliary channels.
cdef struct Stage:
    void *self
    size_t self_size    # constants and state, one flat block without pointers: what the log keeps; 0 when the part has pointers
    void *state
    size_t state_size
    void (*step)(void *self, Sample *sample, double *aux) noexcept nogil


# Touches the world: `read` fills input fields before the tick, `write` takes outputs away after it; `leave`, where a port has it, is called
# that no tick follows.
cdef struct Port:
    void *self
    void *state
    size_t state_size
    void (*read)(void *self, Sample *sample, double *aux) noexcept nogil
    void (*write)(void *self, const Sample *sample, double *aux) noexcept nogil
    void (*leave)(void *self) noexcept nogil    # NULL: nothing to do then


# Knows time: `wait` returns 0 at the next tick, 1 when the run is over, 2 when it pauses before the next tick; `mark` is called when
# reading, computing, writing is done, and when the run is over.
cdef enum:
    MARK_READ = 0
    MARK_COMPUTED = 1
    MARK_WRITTEN = 2
    MARK_END = 3

cdef struct Clock:
    void *self
    int (*wait)(void *self, Sample *sample) noexcept nogil
    void (*mark)(void *self, int point) noexcept nogil


# A docking mechanism in software: contact and internal dynamics between the two ports.
cdef struct MechanismInput:
    double X_TA[7]      # pose of the active unit's base in the target port
    double V_TA[6]      # d/dt of the position, relative angular velocity, both in T axes
    double w_A[3]       # absolute angular velocity of the active vehicle in A axes
    double dt           # step, s
    uint32_t commands   # bits of Sample.mechanism_command

cdef struct MechanismOutput:
    double F_T[6]       # wrench that the active unit exerts on the target unit, at and in T
    double F_A[6]       # wrench that the mechanism exerts on the active vehicle, at and in A
    double analog[8]    # analogue signals
    uint32_t signals    # bits of mechanism_signal in the table
    uint32_t status     # bit 0 out of the valid range

cdef struct Mechanism:
    void *self
    void *state
    size_t state_size
    void (*advance)(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil


# Owners of the plugs. An implementation derives from one of these and from nothing else.
cdef class StagePart:
    cdef Stage plug
    cdef readonly list tunables     # TunedParameter: what of this part can be changed in a run
    cdef int let_tune(self, str key, const double *place, double value, low=*, high=*, double scale=*) except -1

cdef class PortPart:
    cdef Port plug

cdef class ClockPart:
    cdef Clock plug

cdef class MechanismPart:
    cdef Mechanism plug
