"""Clocks: wall (absolute grid, real time or soft) and free-running (simulation, replay).

The grid is `start + k * period`. A clock never runs catch-up steps: when the next grid time has passed, whole periods are skipped and
counted, and `periods` tells the dynamics how much true time to integrate. The wall clock's grid may follow the clock of a field bus
(`rt_kernels.grid_reference`): its start then moves by what that asks for in each tick.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from rt_kernels.clocks_parameters cimport WallClockPartParameters, fill_wall_clock_part
from rt_kernels.codes cimport LATE_CAUSE_COMPUTE, LATE_CAUSE_IO, LATE_CAUSE_NONE, LATE_CAUSE_WAKE_UP
from rt_kernels.grid_reference cimport GridLock, GridReference, grid_next, grid_step
from rt_kernels.host cimport (atomic_get, host_fifo, host_now, host_pause, host_pin, host_sleep_until, host_timer_slack,
                              host_touch_stack, host_set_float_mode, host_usage, host_thread_usage)
from rt_kernels.late_ticks cimport (LateBlock, LateTick, LateTicks, host_account, host_close_account, host_open_account,
                                    host_read_account, host_thread_number, record_late)
from rt_kernels.plugs cimport MARK_END, ClockPart
from rt_kernels.ring cimport ControlBlock, SharedBlock
from rt_kernels.sample cimport Sample

import numpy as np

from rt_kernels.layout import SAMPLE_DTYPE
from rt_kernels.parameters import Parameter, checked


cdef struct FreeClock:
    int64_t period_ns
    int64_t tick
    int64_t last_tick       # the run ends here when nothing else ends it
    int extended            # 1: it may be extended there, and only pauses
    int64_t pause_every     # ticks between two pauses, 0: none, also at events
    int64_t next_pause
    int paused
    int phase               # of the run, as it was at the last tick
    int safety
    int known               # bits: first contact, capture have been
    ControlBlock *block     # NULL, or the ring that must not overflow


cdef inline int known_events(const Sample *s) noexcept nogil:
    return (s.first_contact_time >= 0.0) | (s.capture_time >= 0.0) << 1


cdef bint pause_due(FreeClock *c, const Sample *s) noexcept nogil:
    """Between two ticks: after every so many, and after one that brought a phase, a state of the safety stage, first contact or capture."""
    cdef int known = known_events(s)
    cdef bint due = c.tick >= c.next_pause or s.phase != c.phase or s.safety_state != c.safety or known != c.known
    c.phase = s.phase
    c.safety = s.safety_state
    c.known = known
    if due:
        c.next_pause = (c.tick // c.pause_every + 1) * c.pause_every
    return due


cdef int free_wait(void *self, Sample *s) noexcept nogil:
    cdef FreeClock *c = <FreeClock *>self
    if c.tick == 0:
        host_set_float_mode()
    if c.tick >= c.last_tick:
        return 2 if c.extended else 1
    # who continues after a pause has seen this one
    if c.paused:
        c.paused = 0
    elif c.pause_every > 0 and pause_due(c, s):
        c.paused = 1
        return 2
    # not in real time: it waits for its reader instead of dropping samples
    if c.block != NULL:
        while c.block.head - atomic_get(&c.block.tail) >= c.block.capacity:
            if atomic_get(&c.block.stop_request):
                return 1
            host_sleep_until(host_now() + 100_000)
        if atomic_get(&c.block.stop_request):
            return 1
    s.tick = c.tick
    s.time_ns = c.tick * c.period_ns
    s.periods = 1
    s.realtime_mode = 0
    c.tick += 1
    return 0


cdef void free_mark(void *self, int point) noexcept nogil:
    pass


cdef class FreeRunningClock(ClockPart):
    """Time advances by one period a tick, as fast as the line (and the reader of its ring) goes."""

    PARAMETERS = (
        Parameter("period_ns", "int", "ns", "period of the loop", low=50_000, high=1_000_000_000),
        Parameter("duration_ns", "int", "ns", "the run ends here at the latest", low=0),
    )
    cdef FreeClock c
    cdef SharedBlock block

    def __init__(self, *, SharedBlock block=None, **given):
        keys = checked(FreeRunningClock.PARAMETERS, given)
        cdef int64_t period_ns = keys["period_ns"], duration_ns = keys["duration_ns"]
        self.block = block
        self.c.block = block.block if block is not None else NULL
        self.c.period_ns = period_ns
        self.c.tick = 0
        self.c.last_tick = (duration_ns + period_ns - 1) // period_ns
        self.c.pause_every = 0
        self.c.paused = 0
        self.plug.self = &self.c
        self.plug.wait = free_wait
        self.plug.mark = free_mark

    def extend(self, int64_t ticks):
        """`run` of the line returns so many ticks from now: who acts between ticks (devices in a test) runs it a tick at a time."""
        self.c.last_tick = self.c.tick + ticks
        self.c.extended = 1

    def restart(self):
        """The next run begins at tick 0 again."""
        self.c.tick = 0

    def begin_at(self, int64_t tick):
        """The run continues with this tick."""
        self.c.tick = tick

    def pause_every(self, int64_t ticks, sample):
        """The run pauses (`run` of the line returns, and continues when it is called again) before the next tick, after every so many ticks
        and after one in which something has happened. sample: that of the line; ticks 0: never."""
        cdef const unsigned char[::1] view = np.ascontiguousarray(sample, SAMPLE_DTYPE).reshape(1).view(np.uint8)
        cdef const Sample *s = <const Sample *>&view[0]
        self.c.pause_every = ticks
        self.c.next_pause = (self.c.tick // max(ticks, 1) + 1) * ticks
        self.c.phase = s.phase
        self.c.safety = s.safety_state
        self.c.known = known_events(s)
        self.c.paused = 0

    @property
    def tick(self):
        """The tick that comes next."""
        return self.c.tick

    @property
    def paused(self):
        """Whether the line stands at a pause, and not at its end."""
        return bool(self.c.paused)


cdef struct WallClock:
    WallClockPartParameters keys
    int64_t period_ns
    int64_t start_ns        # CLOCK_MONOTONIC of tick 0
    int64_t first           # tick with which the run begins
    int64_t tick
    int64_t last_tick
    int64_t missed
    int64_t late_bar_ns     # later than this is a late tick with a cause
    int64_t wake_ns
    int64_t point_ns[3]     # when reading, computing, writing was done
    int begun
    int mode
    int fifo_error
    int pin_error
    ControlBlock *block
    host_usage usage_start
    host_usage usage_end
    int64_t late_ticks[4]   # by cause
    GridLock *reference     # NULL, or what the grid follows
    int64_t moved_before    # its moves before this clock had it
    LateBlock *late         # where they are recorded
    LateTick newest
    int account             # descriptor of what the kernel counts of this thread
    host_account seen       # as it was when last looked at, and when that was
    int64_t seen_ns


cdef inline void look_at_account(WallClock *c, int64_t now) noexcept nogil:
    """What the kernel has counted of this thread since the last look goes into `newest`."""
    cdef host_account last = c.seen
    host_read_account(c.account, &c.seen)
    c.newest.span_ns = now - c.seen_ns
    c.newest.during.run_ns = c.seen.run_ns - last.run_ns
    c.newest.during.delay_ns = c.seen.delay_ns - last.delay_ns
    c.newest.during.faults_minor = c.seen.faults_minor - last.faults_minor
    c.newest.during.faults_major = c.seen.faults_major - last.faults_major
    c.newest.during.switches_voluntary = c.seen.switches_voluntary - last.switches_voluntary
    c.newest.during.switches_involuntary = c.seen.switches_involuntary - last.switches_involuntary
    c.seen_ns = now


cdef void wall_begin(WallClock *c) noexcept nogil:
    # on the loop thread itself: policy and mask are not inherited from anywhere
    host_set_float_mode()
    if c.keys.cpu >= 0:
        c.pin_error = host_pin(c.keys.cpu)
    host_timer_slack(1)
    if c.keys.priority > 0:
        c.fifo_error = host_fifo(c.keys.priority)
        c.mode = 2 if c.fifo_error == 0 else 1
    else:
        c.mode = 1
    host_touch_stack()
    c.account = host_open_account()
    c.late.accounted = c.account >= 0
    c.late.thread = host_thread_number()
    c.seen_ns = host_now()
    host_read_account(c.account, &c.seen)
    c.start_ns = host_now() + 10_000_000
    if c.reference != NULL:
        c.start_ns = grid_next(c.reference, c.start_ns, c.period_ns)
        c.moved_before = c.reference.moved_ns
    c.start_ns -= c.first * c.period_ns
    c.tick = c.first - 1
    c.begun = 1


cdef int wall_wait(void *self, Sample *s) noexcept nogil:
    cdef WallClock *c = <WallClock *>self
    cdef int64_t now, target, missed_point, next_tick, lateness, in_step, in_io
    if not c.begun:
        wall_begin(c)
        now = host_now()
    else:
        # the step is done: where it took too long, what was counted during it says why
        now = host_now()
        look_at_account(c, now)
    # the grid follows its reference
    if c.reference != NULL and c.tick >= c.first:
        c.start_ns -= grid_step(c.reference)
    # next point of the grid; whole periods that have passed are skipped and counted
    next_tick = c.tick + 1
    target = c.start_ns + next_tick * c.period_ns
    missed_point = target
    s.periods = 1
    in_step = 0
    in_io = 0
    if c.tick >= c.first:
        s.read_ns = c.point_ns[0] - c.wake_ns
        s.compute_ns = c.point_ns[1] - c.point_ns[0]
        s.write_ns = c.point_ns[2] - c.point_ns[1]
        in_step = s.compute_ns
        in_io = s.read_ns + s.write_ns
        if now > target + c.period_ns:
            s.periods = <int>((now - target) // c.period_ns) + 1
            next_tick += s.periods - 1
            target = c.start_ns + next_tick * c.period_ns
            c.missed += s.periods - 1
    if next_tick >= c.last_tick:
        return 1
    # why this tick will be late, if the step before it took too long
    s.late_cause = LATE_CAUSE_NONE
    if now > target:
        s.late_cause = LATE_CAUSE_COMPUTE if in_step > in_io else LATE_CAUSE_IO
    else:
        host_sleep_until(target - c.keys.spin)
        now = host_now()
        while now < target:
            host_pause()
            now = host_now()
    lateness = now - target
    if c.tick < c.first:
        # the grid begins where the first tick came (one that follows has its place): start-up does not count as lateness
        if c.reference == NULL:
            c.start_ns += lateness
        lateness = 0
    # a wake-up that came after whole periods: those are skipped too
    if lateness > c.period_ns:
        if s.late_cause == LATE_CAUSE_NONE:
            s.late_cause = LATE_CAUSE_WAKE_UP
        s.periods += <int>(lateness // c.period_ns)
        c.missed += lateness // c.period_ns
        next_tick += lateness // c.period_ns
        lateness = lateness % c.period_ns
    elif lateness > c.late_bar_ns and s.late_cause == LATE_CAUSE_NONE:
        s.late_cause = LATE_CAUSE_WAKE_UP
    if lateness <= c.late_bar_ns and s.periods == 1:
        s.late_cause = LATE_CAUSE_NONE
    c.late_ticks[s.late_cause] += 1
    if s.late_cause != LATE_CAUSE_NONE and c.tick >= c.first:
        if s.late_cause == LATE_CAUSE_WAKE_UP:
            look_at_account(c, now)
        c.newest.tick = next_tick
        c.newest.target_ns = missed_point
        c.newest.late_ns = now - missed_point
        c.newest.where = s.late_cause
        record_late(c.late, &c.newest)
    if c.tick < c.first:
        host_thread_usage(&c.usage_start)
    c.tick = next_tick
    c.wake_ns = now
    if c.reference != NULL:
        c.reference.planned_ns = c.start_ns + next_tick * c.period_ns
    s.tick = next_tick
    s.time_ns = next_tick * c.period_ns
    s.lateness_ns = lateness
    s.missed_total = c.missed
    s.realtime_mode = c.mode
    if c.block != NULL:
        s.supervisor_age_ns = now - atomic_get(&c.block.heartbeat_ns)
        s.overflow_total = c.block.overflow
        if atomic_get(&c.block.stop_request):
            return 1
    return 0


cdef void wall_mark(void *self, int point) noexcept nogil:
    cdef WallClock *c = <WallClock *>self
    if point == MARK_END:
        # what this thread does now must not keep the core from the owner of the devices
        if c.keys.priority > 0:
            host_fifo(0)
        host_thread_usage(&c.usage_end)
        host_close_account(c.account)
        c.account = -1
    else:
        c.point_ns[point] = host_now()


cdef class WallClockPart(ClockPart):
    """Absolute grid on CLOCK_MONOTONIC. `block` (SharedBlock) brings the supervisor's heartbeat and the stop word; `reference`
    (GridReference): what the grid follows, None: nothing.

    late: the late ticks (LateTicks), each with what the kernel counted of the loop's thread meanwhile."""

    PARAMETERS = (
        Parameter("period_ns", "int", "ns", "period of the loop", low=100_000, high=1_000_000_000),
        Parameter("duration_ns", "int", "ns", "the run ends here at the latest", low=0),
        Parameter("priority", "int", "-", "SCHED_FIFO priority of the loop thread, 0 none (soft mode)", 80, low=0, high=98),
        Parameter("cpu", "int", "-", "core of the loop thread, -1 any", -1, low=-1, high=4095),
        Parameter("spin_ns", "int", "ns", "the last part of the wait is spun, not slept", 0, low=0, high=200_000),
        Parameter("late_bar_ns", "int", "ns", "later than this is a late tick and gets a cause", 100_000, low=1_000),
    )
    cdef WallClock c
    cdef SharedBlock block
    cdef GridReference reference
    cdef readonly LateTicks late

    def __init__(self, *, SharedBlock block=None, GridReference reference=None, **given):
        keys = checked(WallClockPart.PARAMETERS, given)
        cdef int64_t period_ns = keys["period_ns"], duration_ns = keys["duration_ns"]
        memset(&self.c, 0, sizeof(WallClock))
        fill_wall_clock_part(&self.c.keys, keys)
        self.c.period_ns = period_ns
        self.c.last_tick = (duration_ns + period_ns - 1) // period_ns
        self.c.late_bar_ns = keys["late_bar_ns"]
        self.block = block
        self.c.block = block.block if block is not None else NULL
        self.reference = reference
        self.c.reference = &reference.lock if reference is not None else NULL
        self.late = LateTicks.create()
        self.c.late = self.late.block
        self.c.account = -1
        self.plug.self = &self.c
        self.plug.wait = wall_wait
        self.plug.mark = wall_mark

    def begin_at(self, int64_t tick):
        """The run begins with this tick: it continues where another one was. Call before it runs."""
        self.c.first = tick

    def wake_ups(self, int64_t count):
        """Runs the clock alone, without a line, on the calling thread. Returns the lateness of `count` wake-ups in ns, whole periods that
        were skipped included, an int64 array; shorter when the duration is over or the block asks to stop."""
        out = np.zeros(count, np.int64)
        cdef int64_t[::1] ns = out
        cdef int64_t done = 0
        cdef Sample s
        memset(&s, 0, sizeof(Sample))
        with nogil:
            while done < count and wall_wait(&self.c, &s) == 0:
                ns[done] = s.lateness_ns + (s.periods - 1) * self.c.period_ns
                done += 1
                self.c.point_ns[0] = self.c.point_ns[1] = self.c.point_ns[2] = host_now()
            wall_mark(&self.c, MARK_END)
        return out[:done]

    def facts(self):
        """What the run got: mode, errors of the operating system, page faults and switches of the loop thread, late ticks by cause; of a
        grid that follows a reference, by how much it came earlier for it in all, and per time: what the reference gains on this machine's
        clock."""
        followed = {}
        if self.reference is not None:
            moved_ns = self.reference.lock.moved_ns - self.c.moved_before
            rate_ppm = 1e6 * moved_ns / (max(1, self.c.tick - self.c.first) * self.c.period_ns)
            followed = {"grid": {"reference_gains_ppm": rate_ppm, "moved_ns": moved_ns}}
        return followed | {
            "mode": {0: "not started", 1: "soft", 2: "realtime"}[self.c.mode],
            "fifo_error": self.c.fifo_error,
            "pin_error": self.c.pin_error,
            "missed": self.c.missed,
            "page_faults": (self.c.usage_end.faults_minor - self.c.usage_start.faults_minor
                            + self.c.usage_end.faults_major - self.c.usage_start.faults_major),
            "involuntary_switches": self.c.usage_end.switches_involuntary - self.c.usage_start.switches_involuntary,
            "late_ticks": {"wake_up": self.c.late_ticks[1], "compute": self.c.late_ticks[2], "io": self.c.late_ticks[3]},
        }
