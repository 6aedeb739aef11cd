"""What the grid of the loop may follow: a clock of the field bus, whose deviation somebody measures. Description in the .pyx."""

from libc.stdint cimport int32_t, int64_t


cdef enum:
    USUAL_STEP_NS = 20000   # unusual by more than this is an accident, and counts as so much
    USUAL_TICKS = 128       # of the mean


cdef struct GridLock:
    double gain             # share of the deviation that one tick takes back
    double integral_gain
    double integral_max_ns
    double step_max_ns
    double integral_ns      # ns a tick: what the two clocks differ in rate
    double rest_ns          # of corrections, below one ns
    int64_t deviation_ns    # newest measured: positive, when the frame was late
    int64_t error_ns        # of it, what is the grid's
    double usual_ns         # how long after its point of the grid a frame usually leaves
    int64_t planned_ns      # CLOCK_MONOTONIC of the newest point of the grid, 0: unknown
    int64_t measured        # how many there have been
    int64_t taken           # of these
    int64_t moved_ns        # sum of the corrections: by how much the grid came earlier
    int64_t point_ns        # CLOCK_MONOTONIC of some point of a grid that followed already
    int32_t begun           # such a point is known


# To half a period on both sides.
cdef inline int64_t grid_wrapped(int64_t deviation_ns, int64_t period_ns) noexcept nogil:
    cdef int64_t e = deviation_ns % period_ns
    if e < 0:
        e += period_ns
    return e - period_ns if 2 * e >= period_ns else e


# A measured deviation; host_ns: how long after its point of the grid the frame had left. What is unusual of that is not the grid's.
cdef inline void grid_measured(GridLock *g, int64_t deviation_ns, int64_t period_ns, int64_t host_ns) noexcept nogil:
    cdef double unusual
    if g.measured == 0:
        g.usual_ns = <double>host_ns
    unusual = <double>host_ns - g.usual_ns
    g.deviation_ns = grid_wrapped(deviation_ns, period_ns)
    g.error_ns = grid_wrapped(deviation_ns - <int64_t>unusual, period_ns)
    g.usual_ns += min(max(unusual, -<double>USUAL_STEP_NS), <double>USUAL_STEP_NS) / <double>USUAL_TICKS
    g.measured += 1


# What the grid is to come earlier, ns; 0 as long as nothing new was measured.
cdef inline int64_t grid_step(GridLock *g) noexcept nogil:
    cdef double e, step
    cdef int64_t whole
    if g.taken == g.measured:
        return 0
    g.taken = g.measured
    e = <double>g.error_ns
    step = g.gain * e + g.integral_ns
    # One late frame says nothing about the rate: what is clipped is not integrated.
    if step > g.step_max_ns:
        step = g.step_max_ns
    elif step < -g.step_max_ns:
        step = -g.step_max_ns
    else:
        g.integral_ns += g.integral_gain * e
    if g.integral_ns > g.integral_max_ns:
        g.integral_ns = g.integral_max_ns
    elif g.integral_ns < -g.integral_max_ns:
        g.integral_ns = -g.integral_max_ns

    # A clock knows whole nanoseconds: the rest is not lost.
    step += g.rest_ns
    whole = <int64_t>(step + 0.5 if step >= 0.0 else step - 0.5)
    g.rest_ns = step - <double>whole
    g.moved_ns += whole
    return whole


# The point of the known grid at or after `earliest`; `earliest` itself when none is known.
cdef inline int64_t grid_next(const GridLock *g, int64_t earliest, int64_t period_ns) noexcept nogil:
    cdef int64_t behind
    if not g.begun:
        return earliest
    behind = (earliest - g.point_ns) % period_ns
    if behind < 0:
        behind += period_ns
    return earliest + (period_ns - behind if behind else 0)


cdef class GridReference:
    cdef GridLock lock
