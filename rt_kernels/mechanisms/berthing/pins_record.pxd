"""Auxiliary channels as the kernel writes them.

Generated from pins_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct PinsRecord:
    double lock_depth  # [m] torus centre behind the target plane
    double lock_force  # [N] of ball and lock along X, on the target
    double contacts  # [1] number of contacts
    double depth_peak  # [m] greatest penetration so far
    double first_contact_time  # [s] -1 before
    double cylinder_time  # [s] lock enters its cylinder; -1 before
    double capture_time  # [s] -1 before
    double plane_time  # [s] docking planes touch; -1 before
    double energy_supplied  # [J] work of the target, moved against the base
    double energy_stored  # [J] in contacts and lock
    double energy_lost_contact  # [J] normal contact damping
    double energy_lost_friction  # [J] contact friction
    double energy_lost_lock  # [J] spring ball, and the lock when released stretched
