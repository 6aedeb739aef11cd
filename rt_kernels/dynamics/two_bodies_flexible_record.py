"""Auxiliary channels of the part. Generated from two_bodies_flexible_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("active_port_displacement", "m,rad", "displacement and rotation of the active craft's port from its modes, undeformed port axes", 6),  # noqa: E501
    Aux("active_port_rate", "m/s,rad/s", "their rates", 6),
    Aux("target_port_displacement", "m,rad", "displacement and rotation of the target craft's port from its modes, undeformed port axes", 6),  # noqa: E501
    Aux("target_port_rate", "m/s,rad/s", "their rates", 6),
)
