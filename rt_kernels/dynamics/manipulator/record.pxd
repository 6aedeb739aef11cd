"""Auxiliary channels as the kernel writes them.

Generated from record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct ArmRecord:
    double q[7]  # [rad] joint angles at the gears' output
    double rate[7]  # [rad/s] joint rates
    double rate_command[7]  # [rad/s] commanded joint rates
    double motor_torque[7]  # [N.m] torques of the motors, on their side of the gear
    double wrench_E[6]  # [N,N.m] wrench of the payload on the end effector, at and in E
    double deflection[6]  # [m,rad] of the grapple fixture in E
    double X_NE[7]  # [m,-] pose of the end effector in N
    double X_NO[7]  # [m,-] pose of the arm's base in N
    double sigma  # smallest singular value of the scaled Jacobian
    double limiting_joint  # joint whose limit scales the rates, -1: none
    double waypoint  # next waypoint of the stored path
    double energy  # [J] kinetic and elastic energy of payload, arm, rotors, gears, link
    double stiffness_refreshed  # how often the stiffness has followed the configuration
