"""Auxiliary channels as the kernel writes them.

Generated from head_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct HeadRecord:
    double hinge_angle[2]  # [rad] psi, theta
    double hinge_rate[2]  # [rad/s] of the same
    double latch_angle[4]  # [rad] retraction of the four latches
    double latch_fired[4]  # [1] latches behind the stop
    double contacts  # [1] number of contacts
    double depth_peak  # [m] greatest penetration so far
    double first_contact_time  # [s] since the start, -1 before
    double capture_time  # [s] all four latches; -1 before
    double energy_supplied  # [J] work of the target, moved against the base
    double energy_kinetic  # [J] of the head on its hinge
    double energy_stored  # [J] in contacts, latches, stops of the hinge
    double energy_lost_contact  # [J] normal contact damping
    double energy_lost_friction  # [J] contact friction
    double energy_lost_hinge  # [J] stops of the hinge
    double energy_lost_latch  # [J] latches at firing or release
