"""Functions of the time since an event, as `rt_kernels.model.profiles` sets them up; value and rate in a step, nothing allocated."""

from libc.math cimport floor

from rt_kernels.algebra.sincos cimport sincos

cdef enum:
    ROW = 5                     # t, c0, c1, c2, c3


cdef struct Profile:
    int first                   # row of the pool
    int rows                    # 0: a sine
    double period               # s, 0: once
    double frequency            # Hz
    double phase                # turns


cdef inline void follow(const Profile *p, const double *pool, double t, double *x, double *rate) noexcept nogil:
    """Value and rate of the profile at the time t since its event."""
    cdef const double *row
    cdef double s, c
    cdef int low, high, middle
    if p.rows == 0:
        s = p.frequency * t + p.phase
        sincos(6.283185307179586 * (s - floor(s)), &s, &c)
        x[0] = s
        rate[0] = 6.283185307179586 * p.frequency * c
        return
    if p.period > 0.0:
        t -= p.period * floor(t / p.period)
    # the last row that begins no later than t; of rows at one time the last
    low = p.first
    high = p.first + p.rows
    while high - low > 1:
        middle = (low + high) // 2
        if pool[ROW * middle] <= t:
            low = middle
        else:
            high = middle
    row = pool + ROW * low
    s = t - row[0]
    if s < 0.0:
        x[0] = row[1]
        rate[0] = 0.0
        return
    x[0] = row[1] + s * (row[2] + s * (row[3] + s * row[4]))
    rate[0] = row[2] + s * (2.0 * row[3] + 3.0 * s * row[4])
