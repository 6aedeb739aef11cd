"""Polynomial extrapolation of the setpoint (Horiuchi and Konno 2001; hybrid-stability notes 5.4 (2)).

    x_c = sum_i c_i x(t - i h)        c_i = prod_{j != i} (r + j)/(j - i),   r = T/h

the polynomial of order n through the last n + 1 simulated poses at the spacing h, read off at the horizon T = total loop delay. It needs
no model of the drive, and compensates delay only, not the drive's gain.

The newest pose belongs to the end of this tick, which the compensator does not have yet: with x_new = x + Ts v_new the sum is
x_new + (c_0 - 1) Ts v_new + sum_{i>0} c_i (x(t_new - i h) - x), so that (c_0 - 1) Ts goes out as velocity lead and the rest as offset.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Pose, Twist, conjugate, logarithm, pose, put_twist, quat_multiply, sub, twist_of, twist_scaled,
                                        twist_sum)
from rt_kernels.compensation.polynomial_parameters cimport PolynomialParameters, fill_polynomial, tune_polynomial
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import COUNT, code_range
from rt_kernels.parameters import Parameter, Tunable, checked

cdef enum:
    HISTORY = 512
    MAX_ORDER = 4

cdef struct State:
    Pose X[512]
    int64_t count
    int motion
    int unused

cdef struct Self:
    PolynomialParameters keys
    double made_for             # the factor for which c was made
    double c[5]
    double period
    double loop_delay
    int spacing                 # ticks
    int unused
    State state


cdef inline Twist difference(Pose X_from, Pose X_to) noexcept nogil:
    return twist_of(sub(X_to.p, X_from.p), logarithm(quat_multiply(X_to.q, conjugate(X_from.q))))


cdef void coefficients(Self *p) noexcept nogil:
    """c_0...c_n of the extrapolation r spacings ahead."""
    cdef double r = p.loop_delay * p.keys.lead_factor / (p.spacing * p.period)
    cdef double c
    cdef int i, j
    for i in range(p.keys.order + 1):
        c = 1.0
        for j in range(p.keys.order + 1):
            if j != i:
                c *= (r + j) / (j - i)
        p.c[i] = c
    p.made_for = p.keys.lead_factor


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef State *s = &p.state
    cdef int n = sample.periods if 1 <= sample.periods <= HISTORY else 1
    cdef int i
    cdef Pose X = pose(sample.X_TA)
    cdef Twist offset
    if p.keys.lead_factor != p.made_for:
        coefficients(p)
    for i in range(6):
        sample.F_T_corrected[i] = sample.F_T[i]
    memset(&offset, 0, sizeof(offset))
    while n > 0:
        s.X[s.count % HISTORY] = X
        s.count += 1
        n -= 1
    # a change of the motion's source puts a corner into the past: extrapolation begins again behind it
    if s.motion != sample.motion:
        s.motion = sample.motion
        s.count = 1
        s.X[0] = X
    sample.lead[0] = 1.0
    sample.lead[1] = p.loop_delay
    sample.lead[2] = 0.0
    if s.count > p.keys.order * p.spacing:
        sample.lead[1] = (p.c[0] - 1.0) * p.period
        for i in range(1, p.keys.order + 1):
            offset = twist_sum(offset, twist_scaled(p.c[i], difference(X, s.X[(s.count - i * p.spacing) % HISTORY])))
    put_twist(offset, sample.lead_offset)
    sample.loop_delay = p.loop_delay
    sample.compensation_status = 0


cdef class Polynomial(StagePart):
    """Extrapolates the setpoint over the loop's delay."""

    PARAMETERS = (
        Parameter("order", "int", "-", "order of the polynomial", 3, low=1, high=4),
        Parameter("spacing_ticks", "int", "-", "spacing of the poses it goes through; 0: the delay itself, which is best with noise", 0,
                  low=0, high=100),
        Parameter("lead_factor", "float", "-", "multiplies the horizon: 1 unless the effect of a wrong delay is studied", 1.0,
                  low=0.0, high=2.0, tunable=Tunable(0.2)),
    )
    CONTEXT = ("period_s", "delays")
    cdef Self c

    def __init__(self, *, period_s, delays, **given):
        keys = checked(Polynomial.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        fill_polynomial(&self.c.keys, keys)
        horizon, order = delays.total_s * self.c.keys.lead_factor, self.c.keys.order
        self.c.spacing = self.c.keys.spacing_ticks or max(1, round(horizon / period_s))
        if order * self.c.spacing + 2 > HISTORY:
            raise ValueError(f"compensation.spacing_ticks: {self.c.spacing} ticks times order {order} is more than {HISTORY - 2} ticks")
        self.c.period = period_s
        self.c.loop_delay = delays.total_s
        coefficients(&self.c)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        tune_polynomial(self, &self.c.keys, keys)

    def state_bounds(self):
        return {"count": COUNT, "motion": code_range("motion")}

    def fields(self):
        return self.c
