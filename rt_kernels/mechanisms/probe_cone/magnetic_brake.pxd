"""Torque of a magnetic brake over its speed (Yaskevich 2020, 6.1.5).

A header: `table_torque` is inlined in the forces of joints and stroke, twice in every sub-step.
"""

cdef enum:
    TABLE_POINTS = 12


cdef struct TorqueTable:
    int n
    double speed[TABLE_POINTS]
    double torque[TABLE_POINTS]
    double slope[TABLE_POINTS]


cdef inline double table_torque(const TorqueTable *t, double speed) noexcept nogil:
    """Torque at |speed|; the last slope continues beyond the table."""
    cdef int i = 0
    while i < t.n - 2 and speed > t.speed[i + 1]:
        i += 1
    return t.torque[i] + t.slope[i] * (speed - t.speed[i])
