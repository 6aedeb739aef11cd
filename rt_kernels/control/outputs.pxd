"""What every control part begins with; inlined."""

from libc.string cimport memset

from rt_kernels.sample cimport Sample


cdef inline void no_control(Sample *o) noexcept nogil:
    """All actuators of both crafts at rest, their joints left alone."""
    memset(o.control_A, 0, sizeof(o.control_A))
    memset(o.control_T, 0, sizeof(o.control_T))
    memset(o.thruster_A, 0, sizeof(o.thruster_A))
    memset(o.thruster_T, 0, sizeof(o.thruster_T))
    memset(o.wheel_torque_A, 0, sizeof(o.wheel_torque_A))
    memset(o.wheel_torque_T, 0, sizeof(o.wheel_torque_T))
    memset(o.joint_target, 0, sizeof(o.joint_target))
    memset(o.joint_controlled, 0, sizeof(o.joint_controlled))
    o.control_status = 0


cdef inline void thrust_along(const double *axis, double thrust, double *wrench) noexcept nogil:
    """The force thrust x axis; nothing where the axis has none, so that a zero keeps its sign."""
    cdef int i
    for i in range(3):
        if axis[i] != 0.0:
            wrench[i] = thrust * axis[i]
