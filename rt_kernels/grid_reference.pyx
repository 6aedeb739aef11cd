# distutils: extra_compile_args = -O1
"""A clock that the grid of the loop follows, as the distributed clock of an EtherCAT segment.

Somebody (a port) measures once a tick by how much the grid is late against the reference, e. The next period is shortened by

    u = clip(Kp e + I, step_max),    I += Ki e where u is not clipped,    |I| <= integral_max

With Ki = Kp^2 / 4 both poles of the loop e(k+1) = e(k) + d - u(k) (d: difference of the rates, ns a tick) lie at z = 1 - Kp/2, so that

    e(k) = (e0 + k (d - e0 Kp/2) / z) z^k    from e(0) = e0, I(0) = 0, inside the clips,    and I -> d

What a tick that was itself late adds to e is not the grid's: the frame left h after its point of the grid, the host says, and only the
usual h, a slow mean, belongs to e; u is formed of e - (h - mean h).

A tick that measured nothing (a lost frame) moves nothing. Corrections are whole nanoseconds, the rest is carried on.
"""


cdef class GridReference:
    """gain: Kp a tick; integral_max_ns, step_max_ns: limits, ns a tick. Raises ValueError when a gain or limit is not positive or the gain
    is 1 or more."""

    def __init__(self, double gain=0.05, double integral_max_ns=500.0, double step_max_ns=2000.0):
        if not 0.0 < gain < 1.0:
            raise ValueError(f"gain = {gain}: must be above 0 and below 1")
        if not (integral_max_ns > 0.0 and step_max_ns > 0.0):
            raise ValueError(f"integral_max_ns = {integral_max_ns}, step_max_ns = {step_max_ns}: must be positive")
        self.lock.gain = gain
        self.lock.integral_gain = 0.25 * gain * gain
        self.lock.integral_max_ns = integral_max_ns
        self.lock.step_max_ns = step_max_ns

    def measured(self, int64_t deviation_ns, int64_t period_ns, int64_t host_ns=0):
        """Tells by how much a frame was late against the reference (wrapped to half a period on both sides), and how long after its point
        of the grid it had left."""
        grid_measured(&self.lock, deviation_ns, period_ns, host_ns)

    def step(self):
        """What the next point of the grid is to come earlier, ns."""
        return grid_step(&self.lock)

    def begin(self, int64_t point_ns):
        """A grid that follows has a point here (CLOCK_MONOTONIC): the next one continues in its phase."""
        self.lock.point_ns = point_ns
        self.lock.begun = 1

    def plan(self, int64_t point_ns):
        """The newest point of the grid (CLOCK_MONOTONIC), by which a frame leaves early or late."""
        self.lock.planned_ns = point_ns

    def next_point(self, int64_t earliest_ns, int64_t period_ns):
        """Where a grid that begins not before `earliest_ns` begins."""
        return grid_next(&self.lock, earliest_ns, period_ns)

    @property
    def deviation_ns(self):
        """Newest measured deviation, ns."""
        return self.lock.deviation_ns

    @property
    def moved_ns(self):
        """By how much the grid came earlier in all, ns."""
        return self.lock.moved_ns

    @property
    def rate_ns(self):
        """What the reference gains on CLOCK_MONOTONIC, ns a tick (I)."""
        return self.lock.integral_ns
