"""Auxiliary channels of the part. Generated from record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("arm_q", "rad", "joint angles at the gears' output", 7),
    Aux("arm_rate", "rad/s", "joint rates", 7),
    Aux("arm_rate_command", "rad/s", "commanded joint rates", 7),
    Aux("arm_motor_torque", "N.m", "torques of the motors, on their side of the gear", 7),
    Aux("arm_wrench_E", "N,N.m", "wrench of the payload on the end effector, at and in E", 6),
    Aux("arm_deflection", "m,rad", "of the grapple fixture in E", 6),
    Aux("arm_X_NE", "m,-", "pose of the end effector in N", 7),
    Aux("arm_X_NO", "m,-", "pose of the arm's base in N", 7),
    Aux("arm_sigma", "-", "smallest singular value of the scaled Jacobian"),
    Aux("arm_limiting_joint", "-", "joint whose limit scales the rates, -1: none"),
    Aux("arm_waypoint", "-", "next waypoint of the stored path"),
    Aux("arm_energy", "J", "kinetic and elastic energy of payload, arm, rotors, gears, link"),
    Aux("arm_stiffness_refreshed", "-", "how often the stiffness has followed the configuration"),
)
