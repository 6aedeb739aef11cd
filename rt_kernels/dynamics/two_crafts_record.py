"""Auxiliary channels of the part. Generated from two_crafts_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("joint_position", "rad,m", "joints of the active craft, then of the target craft, in the order of the part's notes", 12),
    Aux("joint_rate", "rad/s,m/s", "their rates", 12),
    Aux("joint_torque", "N.m,N", "force through the joint over the tick: of spring, damper, friction and drive, or what a given or locked joint needs", 12),  # noqa: E501
    Aux("joint_mode", "-", "code of joint_mode: 0 locked, 1 free, 2 given, 3 driven", 12),
    Aux("modal_energy", "J", "strain and kinetic energy of the modal coordinates, active craft, target craft", 2),
    Aux("sensor_acceleration", "m/s2", "acceleration of the sensors' points over the tick, axes of their bodies, three each, in the order of the part's notes", 18),  # noqa: E501
    Aux("sensor_rate", "rad/s", "angular rate of the sensors' bodies at the start of the tick, their axes", 18),
    Aux("interface_wrench", "N,N.m", "wrench through the named joints on the outer body, its axes, at its origin, six each, in the order of the part's notes", 24),  # noqa: E501
    Aux("latch_wrench", "N,N.m", "joined: wrench of the latches on the target craft, at and in T; the impulse of latching is that of its first tick", 6),  # noqa: E501
    Aux("latch_drift", "m,rad", "joined: distance of the ports from the pose in which they were latched", 2),
)
