"""Auxiliary channels as the kernel writes them.

Generated from pose_force_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct PoseForceRecord:
    double contact_stiffness  # [N/m] stiffness that the force correction uses
