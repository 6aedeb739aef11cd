# distutils: extra_compile_args = -O3
# cython: wraparound=True
"""Set-up and Python access to the hysteresis kernels of `hysteresis.pxd`: tables checked, single steps, stored energy."""

import numpy as np


def _branch(name, rows):
    points = np.asarray(rows, dtype=float)
    rows_of_two = points.ndim == 2 and points.shape[1] == 2
    if not rows_of_two or points.shape[0] < 2 or 2 * points.shape[0] > CURVE_POINTS or not np.all(np.isfinite(points)):
        raise ValueError(f"{name}: a branch is 2 to {CURVE_POINTS // 2} rows (deformation, reaction) of finite numbers, "
                         f"got shape {points.shape}")
    if points[0, 0] < 0 or points[0, 1] != 0 or np.any(np.diff(points[:, 0]) <= 0) or np.any(np.diff(points[:, 1]) < 0):
        raise ValueError(f"{name}: a branch starts at (q >= 0, 0) and rises with the deformation, got {points.tolist()}")
    return points


def _check_pair(name, forward, backward):
    """F >= B >= 0, common first segment and end: otherwise the element would generate energy."""
    if not np.array_equal(forward[:2], backward[:2]):
        raise ValueError(f"{name}: the first two points of the two branches must be the same, "
                         f"got {forward[:2].tolist()} and {backward[:2].tolist()}")
    if not np.array_equal(forward[-1], backward[-1]):
        raise ValueError(f"{name}: the branches must end in the same point, got {forward[-1].tolist()} and {backward[-1].tolist()}")
    q = np.union1d(forward[:, 0], backward[:, 0])
    excess = np.interp(q, backward[:, 0], backward[:, 1]) - np.interp(q, forward[:, 0], forward[:, 1])
    worst = int(np.argmax(excess))
    if excess[worst] > 1e-12 * max(1.0, forward[-1, 1]):
        raise ValueError(f"{name}: the return branch is above the forward branch by {excess[worst]:g} at {q[worst]:g}: "
                         "the element would generate energy")


def _slope_max(*branches):
    return max(float(np.max(np.diff(b[:, 1]) / np.diff(b[:, 0]))) for b in branches)


cdef void _fill_curve(Curve *c, negative, positive, double slope_below, double slope_beyond):
    cdef int i, j
    points = np.vstack([-negative[::-1], positive]) if negative[0, 0] > 0 or positive[0, 0] > 0 else np.vstack([-negative[:0:-1], positive])
    c.n = points.shape[0]
    for i in range(c.n):
        c.q[i] = points[i, 0]
        c.Q[i] = points[i, 1]
    c.slope[0] = slope_below
    c.slope[c.n] = slope_beyond
    for i in range(1, c.n):
        c.slope[i] = (c.Q[i] - c.Q[i - 1]) / (c.q[i] - c.q[i - 1])
    # area from zero: the reaction vanishes between the two first points, so start at the first positive one
    j = c.n - positive.shape[0]
    c.area[j] = 0.0
    for i in range(j + 1, c.n):
        c.area[i] = c.area[i - 1] + 0.5 * (c.Q[i] + c.Q[i - 1]) * (c.q[i] - c.q[i - 1])
    for i in range(j - 1, -1, -1):
        c.area[i] = c.area[i + 1] - 0.5 * (c.Q[i] + c.Q[i + 1]) * (c.q[i + 1] - c.q[i])


cdef int fill_table(HysteresisTable *h, str name, forward, backward, forward_negative, backward_negative, bint slips) except -1:
    f_pos, b_pos = _branch(name, forward), _branch(name, backward)
    f_neg = f_pos if forward_negative is None else _branch(name + " (negative)", forward_negative)
    b_neg = b_pos if backward_negative is None else _branch(name + " (negative)", backward_negative)
    _check_pair(name, f_pos, b_pos)
    _check_pair(name + " (negative)", f_neg, b_neg)
    h.slope_max = _slope_max(f_pos, b_pos, f_neg, b_neg)
    cdef double end = 0.0 if slips else h.slope_max
    _fill_curve(&h.up, b_neg, f_pos, end, end)
    _fill_curve(&h.lo, f_neg, b_pos, end, end)
    h.slip_high = f_pos[-1, 0] if slips else 1e300
    h.slip_low = -f_neg[-1, 0] if slips else -1e300
    return 0


cdef int fill_series_clutch(SeriesClutch *c, str name, forward, backward, double moment1_in, double moment1_out, double stroke1,
                            double moment2_in, double moment2_out) except -1:
    fill_table(&c.train, name, forward, backward, None, None, False)
    for key, value in (("moment1_in", moment1_in), ("moment1_out", moment1_out), ("stroke1", stroke1)):
        if not value > 0.0:
            raise ValueError(f"{name}: {key} must be above 0, got {value}")
    if not (moment2_in > moment1_in and moment2_out > moment1_out):
        raise ValueError(f"{name}: brake 2 ({moment2_in} in, {moment2_out} out) must be stronger than brake 1 "
                         f"({moment1_in} in, {moment1_out} out)")
    c.moment1_in = moment1_in
    c.moment1_out = moment1_out
    c.stroke1 = stroke1
    c.moment2_in = moment2_in
    c.moment2_out = moment2_out
    return 0


cdef class Hysteresis:
    """One element: branches as rows (deformation, reaction) for positive deformation; the negative side is odd-symmetric unless given.

    `slips`: a friction clutch holds the last reaction beyond the ends (M10); otherwise the curve continues with the greatest slope (M9).
    Raises ValueError if the tables could generate energy.
    """

    cdef HysteresisTable table
    cdef HysteresisState state

    def __cinit__(self, forward, backward, forward_negative=None, backward_negative=None, bint slips=False):
        fill_table(&self.table, "hysteresis", forward, backward, forward_negative, backward_negative, slips)

    def step(self, double q):
        """Accept the deformation and return the reaction."""
        return hysteresis_step(&self.table, &self.state, q)

    def path(self, q):
        """Accept a sequence of deformations; the reactions as an array."""
        return np.array([hysteresis_step(&self.table, &self.state, value) for value in q])

    @property
    def slip(self):
        return self.state.slip

    @property
    def slope_max(self):
        return self.table.slope_max

    @property
    def stored(self):
        """Energy that a monotonic unloading to zero gives back."""
        return stored_energy(&self.table, self.state.q - self.state.slip, self.state.Q)


cdef class TwoBrakes:
    """Gear train with two friction brakes in series (modified axial damper): brake 1 with a limited one-way stroke, brake 2 without."""

    cdef SeriesClutch clutch
    cdef HysteresisState state

    def __cinit__(self, forward, backward, double moment1_in, double moment1_out, double stroke1, double moment2_in, double moment2_out):
        fill_series_clutch(&self.clutch, "two brakes", forward, backward, moment1_in, moment1_out, stroke1, moment2_in, moment2_out)

    def step(self, double q):
        return series_clutch_step(&self.clutch, &self.state, q)

    def path(self, q):
        return np.array([series_clutch_step(&self.clutch, &self.state, value) for value in q])

    @property
    def slip1(self):
        return self.state.slip1

    @property
    def slip2(self):
        return self.state.slip

    @property
    def stored(self):
        return stored_energy(&self.clutch.train, self.state.q - self.state.slip - self.state.slip1, self.state.Q)
