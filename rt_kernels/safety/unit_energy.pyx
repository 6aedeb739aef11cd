"""What an active docking unit may put into the motion of the craft, bounded at every tick from what its sensors say.

Springs wound before the contact and drives add energy that no contact has put in: a thrown ring is no unstable stand. The unit declares the
springs of its struts (recoil branch, compression where the stroke is zero), the dampers beside them and the power of its drives
(`rt_kernels.context.UnitEnergy`, the mechanism's `gives`); the strokes come as its analogue signals, on hardware as in a simulation.

    S(t) = sum over struts of  U(d_0 - stroke),     U(d) = integral of the recoil branch from 0 to d
    D(t) = sum over struts and windows of  c max(0, |change of the stroke| - resolution)^2 / window

A spring between a recoil and a loading branch is passive with U as its storage: what it gives is at most what S falls by. The damper
takes at least D: over a window the mean of the squared rate is not below the square of the mean (Jensen), and what the strokes'
resolution leaves open counts for nothing. So the ring, and through it the craft, has had at most S(start) - S(t) - D(t) of the springs;
less than that is in fact given, since contacts and screws rub.

A tank keeps the balance. It begins with nothing when the loop closes. A contact that is over takes out what it has had, and what it has
put into the springs counts no more: it is the next contact's to take. What a ring has in its own motion between two contacts is still
there for the second one.

Drives: their power for as long as they say that they run. What was not drawn is not saved up, but for that of the last second.
"""

from libc.math cimport fabs
from libc.string cimport memset

from rt_kernels.codes cimport MECHANISM_SIGNAL_DRIVE_RUNNING
from rt_kernels.sample cimport Sample

import numpy as np

cdef double WINDOW = 0.005      # s: over which a stroke's rate is taken
cdef double SAVED_UP = 1.0      # s: of the drives' power
cdef double LONGEST = 10.0      # m: no strut is compressed that far


cdef double stored(const UnitEnergyParams *p, double d) noexcept nogil:
    """U: energy of one spring at the compression d. Beyond the table the last force holds; below 0, and for what is no stroke, 0."""
    cdef int i = 1
    cdef double x
    if not (0.0 < d < LONGEST):
        return 0.0
    while i < p.rows and d > p.q[i]:
        i += 1
    if i == p.rows:
        return p.U[i - 1] + p.Q[i - 1] * (d - p.q[i - 1])
    x = d - p.q[i - 1]
    return p.U[i - 1] + x * (p.Q[i - 1] + 0.5 * x * (p.Q[i] - p.Q[i - 1]) / (p.q[i] - p.q[i - 1]))


cdef double in_springs(const UnitEnergyParams *p, const Sample *o) noexcept nogil:
    """S of the strokes as measured."""
    cdef double S = 0.0
    cdef int i
    for i in range(p.springs):
        S += stored(p, p.compression - o.signal_analog[i])
    return S


cdef void begin_window(const UnitEnergyParams *p, UnitEnergyState *s, const Sample *o) noexcept nogil:
    cdef int i
    s.window = 0.0
    for i in range(p.springs):
        s.stroke[i] = o.signal_analog[i]


cdef void unit_begin(const UnitEnergyParams *p, UnitEnergyState *s, const Sample *o) noexcept nogil:
    """The loop is open or closes now: nothing has been given yet."""
    memset(s, 0, sizeof(UnitEnergyState))
    s.energy = in_springs(p, o)
    begin_window(p, s, o)
    s.started = 1


cdef double damped(const UnitEnergyParams *p, const UnitEnergyState *s, const Sample *o) noexcept nogil:
    """What the dampers took in the window at the least, J."""
    cdef double D = 0.0, way
    cdef int i
    for i in range(p.springs):
        way = fabs(o.signal_analog[i] - s.stroke[i]) - p.resolution
        if way > 0.0:
            D += p.damping * way * way / s.window
    return D


cdef double unit_may_give(const UnitEnergyParams *p, UnitEnergyState *s, const Sample *o, double work, double dt) noexcept nogil:
    """J that the unit may have given the craft in this contact, whose work so far is `work` (0 without one); called at every tick with
    the loop closed."""
    cdef double energy, given
    if not s.started:
        unit_begin(p, s, o)
    energy = in_springs(p, o)
    s.springs += s.energy - energy
    s.energy = energy
    s.window += dt
    if s.window >= WINDOW:
        s.springs -= damped(p, s, o)
        begin_window(p, s, o)
    given = s.springs if s.springs > 0.0 else 0.0
    # drives: no more in hand than what was drawn, and one second's worth
    if work - given > s.drawn:
        s.drawn = work - given
    if o.signal_discrete & MECHANISM_SIGNAL_DRIVE_RUNNING:
        s.drive += p.drive_power * dt
        if s.drive > s.drawn + p.drive_power * SAVED_UP:
            s.drive = s.drawn + p.drive_power * SAVED_UP
    return given + s.drive


cdef void unit_contact_over(UnitEnergyState *s, double work) noexcept nogil:
    """A contact that is over has had `work` out of the tank; what it put in is the next one's to take."""
    if work > 0.0:
        s.springs -= work
    if s.springs < 0.0:
        s.springs = 0.0
    s.drive = 0.0
    s.drawn = 0.0


cdef void fill_unit_energy(object gives, UnitEnergyParams *p) except *:
    """Raises ValueError for a declaration that does not fit the signals."""
    cdef int i
    memset(p, 0, sizeof(UnitEnergyParams))
    if gives is None:
        return
    p.drive_power = gives.drive_power_w
    p.springs = gives.struts
    if not 0 <= p.springs <= SPRINGS:
        raise ValueError(f"mechanism: {gives.struts} sprung struts, the analogue signals hold the strokes of {SPRINGS}")
    rows = np.asarray(gives.recoil_n, float).reshape(-1, 2)
    if p.springs and not 2 <= len(rows) <= SPRING_ROWS:
        raise ValueError(f"mechanism: recoil branch of {len(rows)} rows, 2 to {SPRING_ROWS} needed")
    p.rows = len(rows)
    p.compression, p.damping, p.resolution = gives.compression_m, gives.damping_n_s_per_m, gives.resolution_m
    for i in range(p.rows):
        p.q[i], p.Q[i] = rows[i]
        p.U[i] = 0.0 if i == 0 else p.U[i - 1] + 0.5 * (p.Q[i] + p.Q[i - 1]) * (p.q[i] - p.q[i - 1])
