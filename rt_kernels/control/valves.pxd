"""Thrusters as valves: on or off for whole ticks, a shortest opening, a delay, a rise of first order; inlined.

    command        open as long as the mean of the openings is behind what is asked for, and for `shortest` ticks at least
    delay          the nozzle sees the command `delay` ticks later
    rise           T x' = u - x, u 0 or 1: over a tick x has the mean u + (x0 - u) T/h (1 - exp(-h/T)), and ends at u + (x0 - u) exp(-h/T)

The thrust of a tick is that mean: what the dynamics hold over the tick has the impulse of the thruster, so every pulse has the impulse of
its opening, later by the delay. A thruster that opens on credit (`owed`) answers in the tick in which it is asked.
"""

from libc.stdint cimport int32_t, uint64_t

cdef enum:
    THRUSTERS_MAX = 64
    QUEUE = 512                 # ticks that a command can be under way; a power of two

cdef struct Thruster:
    double wrench[6]            # at full thrust, at and in the centre of mass
    double thrust               # N
    double rise                 # T, s
    double end                  # exp(-h/T)
    double mean                 # T/h (1 - exp(-h/T))
    int32_t delay               # ticks
    int32_t shortest            # ticks

cdef struct Valve:
    double owed                 # openings asked for and not yet given, ticks
    double level                # thrust at the end of the tick, share of the full one
    int32_t open
    int32_t left                # ticks that it must stay open
    int32_t under_way           # ticks of opening that the nozzle has not seen yet
    int32_t unused

cdef struct Valves:
    Valve valve[64]
    uint64_t queue[512]         # commands of the last ticks, a bit for each thruster
    int32_t head
    int32_t unused


cdef inline bint command(Valve *v, double asked, int shortest) noexcept nogil:
    """Open in this tick? asked: share of the time, 0...1."""
    if asked > 0.0:
        v.owed += asked
    elif v.left == 0:
        v.owed = 0.0
        v.open = 0
        return 0
    if v.left > 0:
        v.left -= 1
    elif v.owed > 1e-9:
        if not v.open:
            v.left = shortest - 1
            v.open = 1
    else:
        v.open = 0
    if v.open:
        v.owed -= 1.0
    return v.open


cdef inline int fire(const Thruster *t, Valves *s, int n, const double *asked, int periods, double *thrust) noexcept nogil:
    """All thrusters over a tick of `periods` periods: mean thrust of each, N. Returns the number of openings that their nozzles saw."""
    cdef int j, commanded, arrived, openings = 0
    cdef uint64_t word
    for j in range(n):
        thrust[j] = 0.0
    for _ in range(periods):
        word = 0
        for j in range(n):
            commanded = command(&s.valve[j], asked[j], t[j].shortest)
            word |= <uint64_t>commanded << j
            s.valve[j].under_way += commanded
        s.queue[s.head] = word
        for j in range(n):
            arrived = s.queue[(s.head - t[j].delay) & (QUEUE - 1)] >> j & 1
            s.valve[j].under_way -= arrived
            openings += arrived
            thrust[j] += t[j].thrust * (arrived + (s.valve[j].level - arrived) * t[j].mean) / periods
            s.valve[j].level = arrived + (s.valve[j].level - arrived) * t[j].end
            if s.valve[j].level < 1e-12:
                s.valve[j].level = 0.0
        s.head = (s.head + 1) & (QUEUE - 1)
    return openings


cdef inline double to_come(const Thruster *t, const Valve *v, double h) noexcept nogil:
    """Seconds of full thrust that have been commanded and not yet been given: openings under way, the rest of the shortest one, and
    what flows on while the thrust falls."""
    return h * (v.under_way + v.left) + t.rise * v.level
