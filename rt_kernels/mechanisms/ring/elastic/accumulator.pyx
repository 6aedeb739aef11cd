# distutils: extra_compile_args = -O3
"""Energy accumulator of a strut of the elastic-adaptive mechanism.

Source: Yaskevich 2020 (7.4), tables 7.4.1 and 7.4.2 completed (rows for states 4, 5, 11 and entry data of state 2 are not printed).

d: compression of the strut from the forward position PP [m], f: force on the rod, positive outwards [N]. With the clutch open (L = 0) the
force lies between the recoil branch 2 and the loading branch 1; with it blocked (L = 1) only the loading branch bounds it: on return the
force falls on a stiff line to zero, then comes backlash, tension, and at -f_FR_max the clutch slips. All transitions have the slope k_Stop,
which is no less than any slope of the branches, so the state machine is a play operator between limits,

    f = min(load(d - D), max(low, k_Stop (d - d4B))),   low = recoil(d - D) for L = 0, else backlash and tension line, >= -f_FR_max

with two states: d4B (zero of the stiff line) and D (shift of the branches by slip). It has no chatter at d' = 0,
no event order and any step size.
The stops (rod fully in, rod fully out) are fixed and act in parallel; the text shifts them with the branch nodes.
A clutch that opens under a strut whose force is below branch 2 (a case without a row in the tables) reaches it over a ramp of release_time.
"""

import numpy as np

from rt_kernels.mechanisms.common.hysteresis cimport curve_value


cdef double accumulator_step(const Accumulator *a, AccumulatorState *s, double d, bint blocked, double dt) noexcept nogil:
    """Accept the compression d and the state of the clutch; returns the force. Exact for any step inside a monotonic move."""
    # the spring is compressed no further than the fixed stops let it: they are not moved by slip
    cdef double x = d
    cdef double stop = 0.0
    cdef double load, recoil, f
    if x > a.rod_in:
        stop = a.stiffness * (x - a.rod_in)
        x = a.rod_in
    elif x < a.rod_out:
        stop = a.stiffness * (x - a.rod_out)
        x = a.rod_out
    # a clutch that opens lets the force go up to the recoil branch over the ramp
    if blocked:
        s.release = 0.0
        s.release_force = s.f
    elif s.release < 1.0:
        s.release += dt / a.release_time
        if s.release > 1.0:
            s.release = 1.0
    load = curve_value(&a.load, x - s.shift)
    recoil = curve_value(&a.recoil, x - s.shift)
    f = a.stiffness * (x - s.zero)
    s.branch = TRANSITION
    if blocked:
        s.branch = UNLOADING
    if f > load:
        # branch 1: the spring is wound up
        f = load
        s.branch = LOADING
        s.zero = x - f / a.stiffness
    elif not blocked and recoil > 0.0:
        # branch 2: the spring pushes back, from the force at release to the branch
        if s.release < 1.0 and s.release_force < recoil:
            recoil = s.release_force + (recoil - s.release_force) * s.release
        if f < recoil:
            f = recoil
            s.branch = RECOIL
            s.zero = x - f / a.stiffness
    if f < 0.0:
        # backlash, tension, slip of the clutch
        f = a.stiffness * (x - (s.zero - a.backlash))
        s.branch = TENSION
        if f > 0.0:
            f = 0.0
            s.branch = BACKLASH
        elif f < -a.slip_force:
            f = -a.slip_force
            stretch(a, s, x + a.slip_force / a.stiffness + a.backlash)
            s.branch = SLIP
    if stop > 0.0:
        s.branch = STOP
    s.d = d
    s.blocked = blocked
    s.f = f + stop
    return s.f


cdef inline void stretch(const Accumulator *a, AccumulatorState *s, double zero) noexcept nogil:
    # slip moves the line and the branches together; the wind-up of the spring stays
    cdef double d_T = zero - s.zero
    s.zero = zero
    s.shift += d_T
    s.slipped -= d_T


from libc.string cimport memset


cdef void _curve(object key, object rows, double below, Curve *c) except *:
    cdef int i
    points = np.asarray(rows, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or not 2 <= points.shape[0] <= 12 or not np.all(np.isfinite(points)):
        raise ValueError(f"{key}: 2 to 12 rows [compression m, force N] needed")
    if np.any(np.diff(points[:, 0]) <= 0.0) or points[0, 0] != 0.0:
        raise ValueError(f"{key}: compressions must begin with 0 and ascend")
    if np.any(np.diff(points[:, 1]) < 0.0) or points[0, 1] <= 0.0:
        raise ValueError(f"{key}: forces must be > 0 N and not fall")
    c.n = points.shape[0]
    for i in range(c.n):
        c.q[i], c.Q[i] = points[i]
    c.slope[0] = below
    for i in range(1, c.n):
        c.slope[i] = (c.Q[i] - c.Q[i - 1]) / (c.q[i] - c.q[i - 1])
    c.slope[c.n] = c.slope[c.n - 1]


cdef void fill_accumulator(object t, Accumulator *a) except *:
    memset(a, 0, sizeof(Accumulator))
    a.stiffness = t["stop_stiffness_n_per_m"]
    a.backlash = t["backlash_m"]
    a.slip_force = t["slip_force_n"]
    a.rod_in = t["stroke_m"]
    a.release_time = t["release_time_s"]
    for key, low in (("stop_stiffness_n_per_m", 0.0), ("slip_force_n", 0.0), ("stroke_m", 0.0), ("release_time_s", 0.0)):
        if not t[key] > low:
            raise ValueError(f"{key}: {t[key]}, must be > {low:g}")
    if a.backlash < 0.0:
        raise ValueError(f"backlash_m: {a.backlash} m, must be >= 0 m")
    _curve("spring_load_n", t["spring_load_n"], a.stiffness, &a.load)
    _curve("spring_recoil_n", t["spring_recoil_n"], a.stiffness, &a.recoil)
    load, recoil = np.asarray(t["spring_load_n"], dtype=float), np.asarray(t["spring_recoil_n"], dtype=float)
    x = np.union1d(load[:, 0], recoil[:, 0])
    if np.any(np.interp(x, recoil[:, 0], recoil[:, 1]) > np.interp(x, load[:, 0], load[:, 1]) + 1e-9):
        raise ValueError("spring_recoil_n: the recoil branch is above the loading branch: the spring would generate energy")
    steepest = max(np.max(np.diff(b[:, 1]) / np.diff(b[:, 0])) for b in (load, recoil))
    if steepest > a.stiffness:
        raise ValueError(f"stop_stiffness_n_per_m: {a.stiffness:g} N/m is below the steepest branch ({steepest:g} N/m)")
    if load[-1, 0] < a.rod_in or recoil[-1, 0] < a.rod_in:
        raise ValueError(f"spring_load_n, spring_recoil_n: the tables end before the stroke of {a.rod_in} m")
    a.rod_out = -(recoil[0, 1] / a.stiffness + a.backlash) - 1e-4


cdef class EnergyAccumulator:
    """One accumulator, for tests and tables: keys spring_load_n, spring_recoil_n (rows [m, N]), stop_stiffness_n_per_m, backlash_m,
    slip_force_n, stroke_m, release_time_s."""

    cdef Accumulator law
    cdef AccumulatorState state

    def __init__(self, table, d=0.0):
        fill_accumulator(table, &self.law)
        self.state.d = d
        self.state.zero = d

    def step(self, double d, bint blocked, double dt=5e-4):
        """Accept compression d [m] and clutch state; returns the force [N]."""
        return accumulator_step(&self.law, &self.state, d, blocked, dt)

    @property
    def branch(self):
        """Number of the state in Yaskevich 2020: 0, 1, 2, 3, 4, 5, 11, 12."""
        return int(self.state.branch)

    @property
    def slipped(self):
        """Total slip of the clutch [m]."""
        return self.state.slipped

    def limits(self, double d):
        """Loading and recoil branch at d (after slip) [N]."""
        return curve_value(&self.law.load, d - self.state.shift), curve_value(&self.law.recoil, d - self.state.shift)
