"""Piecewise-linear hysteresis of deformable elements, with constant parameters or behind friction clutches.

Yaskevich 2020, ch. 3. The branch table of the text (states 0, 1, 2, 3, 10) is, because the transition slope is not less than any other, a
play operator between two curves:

    Q_new = min(up(x), max(lo(x), Q_old + k_max (x - x_old)))

It needs no branch logic, no velocity and no stop condition, and is exact for any step inside a monotonic move. A friction clutch in series
shifts the tables by its slip D: x = q - D.

Inline, and so in the `.pxd`: a few operations each, called for every rod, rail and brake in the innermost loops of the units. Tables are
checked and filled in `hysteresis.pyx`.
"""

cdef enum:
    CURVE_POINTS = 24

cdef struct Curve:
    int n
    double q[CURVE_POINTS]
    double Q[CURVE_POINTS]
    double slope[CURVE_POINTS + 1]    # slope[i] from point i-1 to i; slope[0] below the first point, slope[n] beyond the last
    double area[CURVE_POINTS]         # integral of Q from q = 0 to point i


cdef struct HysteresisTable:
    Curve up                          # forward (loading) branch for q > 0, return branch for q < 0
    Curve lo                          # return branch for q > 0, forward branch for q < 0
    double slope_max                  # k_3 of the transition lines
    double slip_high                  # x beyond which the clutch slips (infinite without a clutch)
    double slip_low


cdef struct SeriesClutch:
    # two friction brakes behind one gear train: brake 1 with a limited one-way stroke, brake 2 without
    HysteresisTable train
    double moment1_in                 # slip moment of brake 1 in compression
    double moment1_out                # and back, in tension, as a positive number
    double stroke1
    double moment2_in
    double moment2_out


cdef struct HysteresisState:
    double q                          # last accepted deformation
    double Q                          # last reaction
    double slip                       # D (brake 2 of a series clutch)
    double slip1                      # brake 1 of a series clutch, 0 .. stroke1


cdef inline int curve_segment(const Curve *c, double q) noexcept nogil:
    # index i of the slope that holds at q: number of points not above q
    cdef int i = 0
    while i < c.n and q > c.q[i]:
        i += 1
    return i


cdef inline double curve_value(const Curve *c, double q) noexcept nogil:
    cdef int i = curve_segment(c, q)
    cdef int base = i - 1 if i > 0 else 0
    return c.Q[base] + c.slope[i] * (q - c.q[base])


cdef inline double curve_area(const Curve *c, double q) noexcept nogil:
    # integral from 0 to q
    cdef int i = curve_segment(c, q)
    cdef int base = i - 1 if i > 0 else 0
    cdef double d = q - c.q[base]
    return c.area[base] + d * (c.Q[base] + 0.5 * c.slope[i] * d)


cdef inline double curve_inverse(const Curve *c, double Q) noexcept nogil:
    """Deformation nearest to zero at which a rising curve has the value Q (not zero)."""
    cdef int i
    if Q > 0.0:
        for i in range(c.n):
            if c.Q[i] >= Q:
                return c.q[i] - (c.Q[i] - Q) / c.slope[i]
        return c.q[c.n - 1] + (Q - c.Q[c.n - 1]) / c.slope[c.n]
    for i in range(c.n - 1, -1, -1):
        if c.Q[i] <= Q:
            return c.q[i] + (Q - c.Q[i]) / c.slope[i + 1]
    return c.q[0] + (Q - c.Q[0]) / c.slope[0]


cdef inline bint beyond_table(const HysteresisTable *h, double x) noexcept nogil:
    """Is the deformation x outside the table, where its reaction is only a continuation? Clutches slip there instead."""
    return x < h.up.q[0] or x > h.up.q[h.up.n - 1]


cdef inline double hysteresis_trial(const HysteresisTable *h, double x_old, double Q_old, double x) noexcept nogil:
    cdef double Q = Q_old + h.slope_max * (x - x_old)
    cdef double bound = curve_value(&h.lo, x)
    if Q < bound:
        Q = bound
    bound = curve_value(&h.up, x)
    if Q > bound:
        Q = bound
    return Q


cdef inline double hysteresis_step(const HysteresisTable *h, HysteresisState *s, double q) noexcept nogil:
    """Accept the deformation q and return the reaction; with a clutch the slip is carried along continuously."""
    cdef double x = q - s.slip
    s.Q = hysteresis_trial(h, s.q - s.slip, s.Q, x)
    if x > h.slip_high:
        s.slip += x - h.slip_high
    elif x < h.slip_low:
        s.slip += x - h.slip_low
    s.q = q
    return s.Q


cdef inline double series_clutch_step(const SeriesClutch *c, HysteresisState *s, double q) noexcept nogil:
    """Accept the deformation q of the gear train with its two brakes in series and return the moment.

    A brake slips by what the train would need beyond the brake's moment: exact in one step of any size inside a monotonic move.
    """
    cdef double slipped = s.slip + s.slip1
    cdef double x_old = s.q - slipped
    cdef double x = q - slipped
    cdef double Q = hysteresis_trial(&c.train, x_old, s.Q, x)
    cdef double target, d
    if Q > c.moment1_in and s.slip1 < c.stroke1:
        target = reach(&c.train.up, &c.train, x_old, s.Q, c.moment1_in)
        d = x - target
        if d > c.stroke1 - s.slip1:
            d = c.stroke1 - s.slip1
        s.slip1 += d
        x -= d
        Q = hysteresis_trial(&c.train, x_old, s.Q, x)
    elif Q < -c.moment1_out and s.slip1 > 0.0:
        target = reach(&c.train.lo, &c.train, x_old, s.Q, -c.moment1_out)
        d = x - target
        if d < -s.slip1:
            d = -s.slip1
        s.slip1 += d
        x -= d
        Q = hysteresis_trial(&c.train, x_old, s.Q, x)
    if Q > c.moment2_in:
        target = reach(&c.train.up, &c.train, x_old, s.Q, c.moment2_in)
        s.slip += x - target
        Q = c.moment2_in
    elif Q < -c.moment2_out:
        target = reach(&c.train.lo, &c.train, x_old, s.Q, -c.moment2_out)
        s.slip += x - target
        Q = -c.moment2_out
    s.q = q
    s.Q = Q
    return Q


cdef inline double reach(const Curve *branch, const HysteresisTable *h, double x_old, double Q_old, double Q) noexcept nogil:
    """Deformation at which a monotonic move from (x_old, Q_old) towards `branch` reaches the reaction Q."""
    cdef double on_branch = curve_inverse(branch, Q)
    cdef double on_line = x_old + (Q - Q_old) / h.slope_max
    if Q > 0.0:
        return on_branch if on_branch > on_line else on_line
    return on_branch if on_branch < on_line else on_line


cdef inline double stored_energy(const HysteresisTable *h, double x, double Q) noexcept nogil:
    """Energy that comes back when the element at (x, Q) is unloaded monotonically to zero: transition line, then return branch."""
    cdef const Curve *branch
    cdef double meet, gap, slope
    cdef int i, base
    if Q == 0.0:
        return 0.0
    branch = &h.lo if Q > 0.0 else &h.up
    # where the line of slope k_max through (x, Q) meets the return branch, walking from x towards zero
    meet = x
    i = curve_segment(branch, meet)
    gap = Q - curve_value(branch, meet)
    while True:
        base = i - 1 if i > 0 else 0
        slope = h.slope_max - branch.slope[i]
        if slope > 0.0:
            # the gap closes at this rate while moving back
            x_end_meet(branch, i, Q, &meet, &gap, slope)
        if Q > 0.0:
            if gap <= 0.0 or i == 0 or meet <= 0.0:
                break
            if slope <= 0.0:
                meet = branch.q[base]
            i -= 1
        else:
            if gap >= 0.0 or i == branch.n or meet >= 0.0:
                break
            if slope <= 0.0:
                meet = branch.q[i]
            i += 1
    # trapezium under the line plus the area under the return branch
    return 0.5 * (Q + Q - h.slope_max * (x - meet)) * (x - meet) + curve_area(branch, meet)


cdef inline void x_end_meet(const Curve *branch, int i, double Q, double *meet, double *gap, double slope) noexcept nogil:
    # move `meet` inside segment i until the gap closes or the end of the segment nearer to zero is reached
    cdef double reach_back = gap[0] / slope
    cdef double end
    if Q > 0.0:
        end = branch.q[i - 1] if i > 0 else meet[0]
        if meet[0] - reach_back >= end:
            meet[0] -= reach_back
            gap[0] = 0.0
        else:
            gap[0] -= slope * (meet[0] - end)
            meet[0] = end
    else:
        end = branch.q[i] if i < branch.n else meet[0]
        if meet[0] - reach_back <= end:
            meet[0] -= reach_back
            gap[0] = 0.0
        else:
            gap[0] -= slope * (meet[0] - end)
            meet[0] = end


# set-up, with the interpreter: raises ValueError that names the table, the point and the rule
cdef int fill_table(HysteresisTable *h, str name, forward, backward, forward_negative, backward_negative, bint slips) except -1
cdef int fill_series_clutch(SeriesClutch *c, str name, forward, backward, double moment1_in, double moment1_out, double stroke1,
                            double moment2_in, double moment2_out) except -1
