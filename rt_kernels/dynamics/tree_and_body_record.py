"""Auxiliary channels of the part. Generated from tree_and_body_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("tree_kernels", "-", "1: kernels generated for the tree, 0: general ones"),
    Aux("joint_deviation", "rad", "largest distance of a joint from its given angle"),
)
