"""The loop: wait, read, tune, tick, write, publish; live, in simulation and in replay.

`LoopLine` owns the parts and the working sample; `run` blocks the calling Python thread with the interpreter lock released.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

import numpy as np

from rt_kernels.codes cimport PHASE_ENDED, SAFETY_STATE_DECELERATING, SAFETY_STATE_FOLLOWING
from rt_kernels.host cimport host_now
from rt_kernels.plugs cimport MARK_COMPUTED, MARK_END, MARK_READ, MARK_WRITTEN, ClockPart, PortPart, StagePart
from rt_kernels.ring cimport SharedBlock, publish
from rt_kernels.sample cimport Sample
from rt_kernels.tick cimport PORTS_MAX, Line, tick
from rt_kernels.tuning cimport Tuning, TuningTable, tune

from rt_kernels.layout import CODES, INITIAL, SAMPLE_DTYPE, WORDS
from rt_kernels.plugs import restore_checked
from rt_kernels.stages import STAGE_ROLES

cdef enum:
    REST_WITHIN_NS = 5_000_000_000

cdef double REST_RATE = 1e-4    # m/s: far below what a leg may change in one frame


cdef inline void tuned_tick(Line *line, TuningTable *tuning) noexcept nogil:
    """Parameters that are to change, then the stages."""
    if tuning != NULL:
        tune(tuning, &line.sample)
    tick(line)


cdef inline bint rests(const Sample *sample) noexcept nogil:
    """Whether the setpoints move no more, or the safety stage has taken them over and holds them."""
    cdef int i
    if sample.safety_state != SAFETY_STATE_FOLLOWING and sample.safety_state != SAFETY_STATE_DECELERATING:
        return True
    for i in range(6):
        if not -REST_RATE <= sample.leg_rate_setpoint[i] <= REST_RATE:
            return False
    return True


cdef void run_line(Line *line, TuningTable *tuning) noexcept nogil:
    """Until the clock pauses or ends the run, or the guidance ends it and the setpoints have come to rest."""
    cdef int i, over
    cdef int64_t ended_ns = -1
    while True:
        over = line.clock.wait(line.clock.self, &line.sample)
        if over:
            break
        for i in range(line.port_count):
            line.port[i].port.read(line.port[i].port.self, &line.sample, line.port[i].aux)
        line.clock.mark(line.clock.self, MARK_READ)
        tuned_tick(line, tuning)
        line.clock.mark(line.clock.self, MARK_COMPUTED)
        for i in range(line.port_count):
            line.port[i].port.write(line.port[i].port.self, &line.sample, line.port[i].aux)
        line.clock.mark(line.clock.self, MARK_WRITTEN)
        if line.block != NULL:
            publish(line.block, &line.sample, line.aux)
        if line.sample.phase == PHASE_ENDED:
            if ended_ns < 0:
                ended_ns = line.sample.time_ns
            if rests(&line.sample) or line.sample.time_ns - ended_ns > REST_WITHIN_NS:
                over = 1
                break
    if over == 1:
        for i in range(line.port_count):
            if line.port[i].port.leave != NULL:
                line.port[i].port.leave(line.port[i].port.self)
    line.clock.mark(line.clock.self, MARK_END)


cdef class LoopLine:
    """One assembled line.

    clock: ClockPart; ports: list of PortPart in reading order (writing order is the same); stages: dict role -> StagePart for every
    role of STAGE_ROLES; block: SharedBlock or None; tuning: Tuning of these stages, None: nothing changes while it runs. Raises
    ValueError for a missing role or too many ports.
    """

    cdef Line line
    cdef readonly object clock
    cdef readonly list ports
    cdef readonly dict stages
    cdef readonly list aux_channels     # (name, unit, meaning) of every auxiliary double, in order
    cdef readonly Tuning tuning
    cdef TuningTable *_tuning
    cdef object _block
    cdef object _aux
    cdef object _of_dynamics            # its channels among them

    def __init__(self, ClockPart clock, list ports, dict stages, SharedBlock block=None, Tuning tuning=None):
        cdef PortPart port
        cdef StagePart stage
        cdef int i
        cdef size_t offset = 0
        if set(stages) != set(STAGE_ROLES):
            raise ValueError(f"a line needs the roles {', '.join(STAGE_ROLES)}; got {', '.join(stages)}")
        if len(ports) > PORTS_MAX:
            raise ValueError(f"a line has at most {PORTS_MAX} ports, got {len(ports)}")
        self.clock, self.ports, self.stages, self._block = clock, list(ports), dict(stages), block
        self.tuning = tuning
        self._tuning = NULL if tuning is None else &tuning.table
        self.aux_channels = []
        for part in [*ports, *(stages[role] for role in STAGE_ROLES)]:
            for channel in part.AUX:
                for i in range(channel.count):
                    name = channel.name if channel.count == 1 else f"{channel.name}[{i}]"
                    self.aux_channels.append((name, channel.unit, channel.meaning))
        self._aux = np.zeros(max(len(self.aux_channels), 1))
        cdef double[::1] aux = self._aux
        memset(&self.line, 0, sizeof(Line))
        self.line.aux = &aux[0]
        self.line.clock = clock.plug
        self.line.port_count = len(ports)
        for i in range(self.line.port_count):
            port = ports[i]
            self.line.port[i].port = port.plug
            self.line.port[i].aux = &aux[0] + offset
            offset += sum(channel.count for channel in port.AUX)
        for i, role in enumerate(STAGE_ROLES):
            stage = stages[role]
            self.line.stage[i].stage = stage.plug
            self.line.stage[i].aux = &aux[0] + offset
            count = sum(channel.count for channel in stage.AUX)
            if role == "dynamics":
                self._of_dynamics = self._aux[offset:offset + count]
            offset += count
        if block is not None:
            if block.aux_count != len(self.aux_channels):
                raise ValueError(f"the shared block has {block.aux_count} auxiliary channels, the line {len(self.aux_channels)}")
            self.line.block = block.block
        self.reset_sample()

    def reset_sample(self):
        """The sample before the first tick: zeros, and what the table gives otherwise (identity poses, nothing happened yet)."""
        sample = np.zeros(1, SAMPLE_DTYPE)
        for field, value in INITIAL.items():
            sample[field] = value
        self.sample = sample

    @property
    def sample(self):
        """A copy of the working sample, an array of one record."""
        out = np.zeros(1, SAMPLE_DTYPE)
        cdef unsigned char[::1] view = out.view(np.uint8)
        memcpy(&view[0], &self.line.sample, sizeof(Sample))
        return out

    @sample.setter
    def sample(self, value):
        cdef const unsigned char[::1] view = np.ascontiguousarray(value, SAMPLE_DTYPE).reshape(1).view(np.uint8)
        memcpy(&self.line.sample, &view[0], sizeof(Sample))

    @property
    def aux(self):
        """The auxiliary channels themselves, not a copy: shape (n,), those of the ports first."""
        return self._aux[: len(self.aux_channels)]

    def port_parts(self):
        """(name, part) of every port and of what it holds: plant, machine, mechanism of a simulated stand."""
        for i, port in enumerate(self.ports):
            yield f"port.{i}", port
            for name, part in port.inner.items():
                yield f"port.{i}.{name}", part

    def snapshot(self):
        """Sample, tuning and the state of every part: a dict of bytes that `restore` takes back."""
        state = {f"stage.{role}": part.snapshot() for role, part in self.stages.items()}
        state |= {name: part.snapshot() for name, part in self.port_parts()}
        state["sample"] = self.sample.tobytes()
        state["aux"] = self._aux.tobytes()
        if self.tuning is not None:
            state["tuning"] = self.tuning.snapshot()
        return state

    def restore(self, state, bint checked=False):
        """Takes back what `snapshot` gave. checked: the bytes come out of a file, and every part refuses what its state cannot be. Raises
        ValueError that names the part; the line must not run then."""
        if checked:
            self._restore_checked(state)
            return
        for role, part in self.stages.items():
            part.restore(state[f"stage.{role}"])
        for name, part in self.port_parts():
            part.restore(state[name])
        self.sample = np.frombuffer(state["sample"], SAMPLE_DTYPE)
        self._aux[:] = np.frombuffer(state["aux"])
        if self.tuning is not None:
            self.tuning.restore(state["tuning"])

    def _restore_checked(self, state):
        parts = {f"stage.{role}": part for role, part in self.stages.items()} | dict(self.port_parts())
        for name, part in parts.items():
            try:
                restore_checked(part, state[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        if len(state["sample"]) != SAMPLE_DTYPE.itemsize:
            raise ValueError(f"sample: {len(state['sample'])} bytes, limit {SAMPLE_DTYPE.itemsize}")
        sample = np.frombuffer(state["sample"], SAMPLE_DTYPE)
        for name, (kind, group) in WORDS.items():
            if kind == "code" and int(sample[name][0]) not in CODES[group].values():
                raise ValueError(f"sample: {name} is {int(sample[name][0])}, limit a number of the table's {group}")
        self.sample = sample
        aux = np.frombuffer(state["aux"])
        if aux.shape != self._aux.shape or not np.isfinite(aux).all():
            raise ValueError(f"aux: limit {len(self._aux)} finite numbers")
        self._aux[:] = aux
        if self.tuning is not None:
            self.tuning.restore(state["tuning"])

    def _show_channels(self):
        """The control runs before the dynamics: what it finds in its channels is of the tick before. Stages may be in several lines."""
        self.stages["control"].look_at(self._of_dynamics)

    def run(self):
        """Runs until the clock or the guidance ends it, without the GIL; then marks the shared block finished. A clock may
        pause the run (`paused`): called again, it continues."""
        self._show_channels()
        with nogil:
            run_line(&self.line, self._tuning)
        if self._block is not None and not self.clock.paused:
            self._block.finished = True

    def tick_once(self):
        """Tuning and all stages once on the working sample, without clock and ports (benchmarks, tests)."""
        self._show_channels()
        with nogil:
            tuned_tick(&self.line, self._tuning)

    def time_ticks(self, int64_t count):
        """Runs tuning and tick `count` times and returns the nanoseconds of each, an int64 array (benchmarks)."""
        self._show_channels()
        out = np.zeros(count, np.int64)
        cdef int64_t[::1] ns = out
        cdef int64_t i, t
        with nogil:
            for i in range(count):
                t = host_now()
                tuned_tick(&self.line, self._tuning)
                ns[i] = host_now() - t
        return out
