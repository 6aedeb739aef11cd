"""Auxiliary channels of the part. Generated from pose_force_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("contact_stiffness", "N/m", "stiffness that the force correction uses"),
)
