"""Parameters that change during a run: what the loop does at the top of a tick. Rules: tuning.pyx."""

from libc.math cimport fabs
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy

from rt_kernels.codes cimport (COMMAND_TUNE, TUNE_ANSWER_NONE, TUNE_ANSWER_NOT_IN_THIS_PHASE, TUNE_ANSWER_OUT_OF_LIMITS,
                               TUNE_ANSWER_TAKEN, TUNE_ANSWER_UNKNOWN)
from rt_kernels.sample cimport Sample

cdef enum:
    TUNABLES_MAX = 24           # shape of Sample.tuned

cdef extern from *:
    """
    #define TUNING_SMOOTHING 0.02
    #define TUNING_ARRIVED 1e-12
    """
    const double SMOOTHING "TUNING_SMOOTHING"   # s, time constant of each of the three low-passes behind the ramp
    const double ARRIVED "TUNING_ARRIVED"       # of the span of a parameter: nearer than this it is there

cdef struct TunableSlot:
    double *place               # in the block of the stage that reads it; NULL: no stage of this line has it
    double scale                # the stage reads value * scale
    double low
    double high
    double rate                 # per second
    uint32_t phases             # bit n: phase n; 0: every one

cdef struct TuningState:
    double target[24]
    double ramp[24]             # goes to the target at the declared rate
    double first[24]            # low-passes of the ramp, one behind the other
    double second[24]
    double value[24]            # the third one: in force
    int32_t moving[24]

cdef struct TuningTable:
    TunableSlot slot[24]
    double period               # s
    int count
    int unused
    TuningState state


cdef inline bint may_change(const TunableSlot *slot, int phase) noexcept nogil:
    return slot.phases == 0 or (0 <= phase < 32 and (slot.phases >> phase) & 1)


cdef inline int obey_tune(TuningTable *t, const Sample *o) noexcept nogil:
    """Takes the command's value as the new target, or says why not."""
    cdef double number = o.command_arg[0]
    cdef double value = o.command_arg[1]
    cdef const TunableSlot *slot
    cdef int i
    if not 0.0 <= number < t.count:
        return TUNE_ANSWER_UNKNOWN
    i = <int>number
    slot = &t.slot[i]
    # a number that is none is not within any limits either
    if not slot.low <= value <= slot.high:
        return TUNE_ANSWER_OUT_OF_LIMITS
    if not may_change(slot, o.phase):
        return TUNE_ANSWER_NOT_IN_THIS_PHASE
    t.state.target[i] = value
    t.state.moving[i] = 1
    return TUNE_ANSWER_TAKEN


cdef inline void move_value(const TunableSlot *slot, TuningState *s, int i, double dt) noexcept nogil:
    """One tick of a value on its way: a ramp at the declared rate, smoothed three times."""
    cdef double most = slot.rate * dt
    cdef double left = s.target[i] - s.ramp[i]
    cdef double keep = dt / (SMOOTHING + dt)
    cdef double near = ARRIVED * (slot.high - slot.low)
    s.ramp[i] = s.target[i] if fabs(left) <= most else s.ramp[i] + (most if left > 0.0 else -most)
    s.first[i] += keep * (s.ramp[i] - s.first[i])
    s.second[i] += keep * (s.first[i] - s.second[i])
    s.value[i] += keep * (s.second[i] - s.value[i])
    if fabs(s.target[i] - s.first[i]) <= near and fabs(s.target[i] - s.second[i]) <= near and fabs(s.target[i] - s.value[i]) <= near:
        s.ramp[i] = s.first[i] = s.second[i] = s.value[i] = s.target[i]
        s.moving[i] = 0


cdef inline void tune(TuningTable *t, Sample *o) noexcept nogil:
    """Between the ports and the first stage: the command of this tick, the values that are on their way, the record of all of them."""
    cdef TuningState *s = &t.state
    cdef double dt = t.period * o.periods
    cdef int i
    o.tune_answer = obey_tune(t, o) if o.command_code == COMMAND_TUNE else TUNE_ANSWER_NONE
    for i in range(t.count):
        if s.moving[i] and may_change(&t.slot[i], o.phase):
            move_value(&t.slot[i], s, i, dt)
            if t.slot[i].place != NULL:
                t.slot[i].place[0] = s.value[i] * t.slot[i].scale
    memcpy(o.tuned, s.value, sizeof(s.value))


cdef class Tuning:
    cdef TuningTable table
    cdef readonly list tunables
    cdef dict stages
    cdef void _put(self, int i) noexcept
