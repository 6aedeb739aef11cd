"""Parameters that change during a run.

A part declares which of its parameters are tunable (`Parameter(..., tunable=Tunable(...))`) and names the double in its block that its step
reads (`let_tune`). Command `tune` (number in the run's list, value) is taken in the tick of its acknowledgement, between the ports and the
first stage, and the first stage of that tick already sees the value move. What is not in the list, not within the limits, or not allowed in
the present phase changes nothing; `tune_answer` says so.

The value does not jump. A ramp goes to the target at the declared rate r, and three low-passes of the time constant s = 20 ms follow it
one behind the other,

    x0' = +-r until the target,   x1' = (x0 - x1)/s,   x2' = (x1 - x2)/s,   x3' = (x2 - x3)/s        value: x3

so that the value never moves faster than r, has no overshoot, and its first and second derivative have no step; it lags by 3 s. (Discrete:
x += k (in - x), k = dt/(s + dt), which is stable for any dt.) Nearer to the target than 1e-12 of the span of its limits it is set to it.
Outside of the phases in which it may change a changing value stands still, and continues when they come again.

State is one flat block, part of the line's snapshot; the addresses are made again at set-up and never restored. A log's command_arg brings
the changes of a run back in its replay.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy, memset

from dataclasses import replace

from rt_kernels.plugs cimport StagePart

from rt_kernels.layout import CODES
from rt_kernels.stages import STAGE_ROLES


def tunables_of(stages):
    """What can be changed of these stages (dict role -> StagePart): list of TunedParameter, in the order of the tick, each named
    ROLE.KEY."""
    return [replace(one, name=f"{role}.{one.name}") for role in STAGE_ROLES for one in stages[role].tunables]


cdef class Tuning:
    """The tunable parameters of a line.

    period_s: of the loop. stages: dict role -> StagePart. listed: TunedParameter of a logged run, whose numbers and limits are kept: one
    that these stages do not have is moved and recorded all the same; None: those of the stages. Raises ValueError for more than there is
    room for."""

    def __init__(self, double period_s, dict stages, listed=None):
        cdef TunableSlot *slot
        cdef StagePart part
        cdef int i
        here = {one.name: one for one in tunables_of(stages)}
        self.tunables = list(here.values()) if listed is None else [
            replace(one, offset=-1) if one.name not in here
            else replace(one, value=here[one.name].value, offset=here[one.name].offset, scale=here[one.name].scale)
            for one in listed
        ]
        if len(self.tunables) > TUNABLES_MAX:
            raise ValueError(f"{len(self.tunables)} tunable parameters, a run has room for {TUNABLES_MAX}")
        self.stages = stages        # their blocks must live as long as this
        memset(&self.table, 0, sizeof(TuningTable))
        self.table.period = period_s
        self.table.count = len(self.tunables)
        for i, one in enumerate(self.tunables):
            slot = &self.table.slot[i]
            slot.low, slot.high, slot.rate, slot.scale = one.low, one.high, one.rate_per_s, one.scale
            for phase in one.phases:
                slot.phases |= <unsigned int>1 << <int>CODES["phase"][phase]
            if one.offset >= 0:
                part = stages[one.name.partition(".")[0]]
                slot.place = <double *>(<char *>part.plug.self + <Py_ssize_t>one.offset)
            self.table.state.target[i] = self.table.state.ramp[i] = self.table.state.first[i] = one.value
            self.table.state.second[i] = self.table.state.value[i] = one.value

    def snapshot(self):
        """Targets and values on their way, as bytes."""
        return PyBytes_FromStringAndSize(<const char *>&self.table.state, sizeof(TuningState))

    def take_over(self, Tuning other, names):
        """The named parameters, which both have, as they are in `other`: value, way and target. One whose limits here are too narrow for
        that stays as configured. Returns the names of those that were taken."""
        cdef TuningState *s = &self.table.state
        cdef TuningState *o = &other.table.state
        cdef int i, k
        here = [one.name for one in self.tunables]
        there = [one.name for one in other.tunables]
        taken = []
        for name in names:
            i, k = here.index(name), there.index(name)
            one = self.tunables[i]
            if not all(one.low <= x <= one.high for x in (o.target[k], o.ramp[k], o.first[k], o.second[k], o.value[k])):
                continue
            s.target[i], s.ramp[i], s.first[i], s.second[i] = o.target[k], o.ramp[k], o.first[k], o.second[k]
            s.value[i], s.moving[i] = o.value[k], o.moving[k]
            self._put(i)
            taken.append(name)
        return taken

    cdef void _put(self, int i) noexcept:
        """The value in force into the block of its stage."""
        if self.table.slot[i].place != NULL:
            self.table.slot[i].place[0] = self.table.state.value[i] * self.table.slot[i].scale

    def restore(self, bytes snapshot):
        """Puts them back, into the stages too. Raises ValueError for another size, and for a value beyond its limits."""
        cdef TuningState state
        cdef int i
        if len(snapshot) != sizeof(TuningState):
            raise ValueError(f"snapshot has {len(snapshot)} bytes, the tuning's state has {sizeof(TuningState)}")
        memcpy(&state, PyBytes_AS_STRING(snapshot), sizeof(TuningState))
        for i, one in enumerate(self.tunables):
            for x in (state.target[i], state.ramp[i], state.first[i], state.second[i], state.value[i]):
                if not one.low <= x <= one.high:
                    raise ValueError(f"{one.name}: {x:g} is not within {one.low:g} ... {one.high:g}")
        self.table.state = state
        for i in range(self.table.count):
            self._put(i)
