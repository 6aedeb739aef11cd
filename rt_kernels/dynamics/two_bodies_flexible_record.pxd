"""Auxiliary channels as the kernel writes them.

Generated from two_bodies_flexible_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct FlexibleRecord:
    double active_port_displacement[6]  # [m,rad] displacement and rotation of the active craft's port from its modes, undeformed port axes
    double active_port_rate[6]  # [m/s,rad/s] their rates
    double target_port_displacement[6]  # [m,rad] displacement and rotation of the target craft's port from its modes, undeformed port axes
    double target_port_rate[6]  # [m/s,rad/s] their rates
