"""Auxiliary channels as the kernel writes them.

Generated from tree_and_body_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct TreeRecord:
    double tree_kernels  # 1: kernels generated for the tree, 0: general ones
    double joint_deviation  # [rad] largest distance of a joint from its given angle
