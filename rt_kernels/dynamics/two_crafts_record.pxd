"""Auxiliary channels as the kernel writes them.

Generated from two_crafts_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct CraftsRecord:
    double joint_position[12]  # [rad,m] joints of the active craft, then of the target craft, in the order of the part's notes
    double joint_rate[12]  # [rad/s,m/s] their rates
    # [N.m,N] force through the joint over the tick: of spring, damper, friction and drive, or what a given or locked joint needs
    double joint_torque[12]
    double joint_mode[12]  # code of joint_mode: 0 locked, 1 free, 2 given, 3 driven
    double modal_energy[2]  # [J] strain and kinetic energy of the modal coordinates, active craft, target craft
    # [m/s2] acceleration of the sensors' points over the tick, axes of their bodies, three each, in the order of the part's notes
    double sensor_acceleration[18]
    double sensor_rate[18]  # [rad/s] angular rate of the sensors' bodies at the start of the tick, their axes
    # [N,N.m] wrench through the named joints on the outer body, its axes, at its origin, six each, in the order of the part's notes
    double interface_wrench[24]
    # [N,N.m] joined: wrench of the latches on the target craft, at and in T; the impulse of latching is that of its first tick
    double latch_wrench[6]
    double latch_drift[2]  # [m,rad] joined: distance of the ports from the pose in which they were latched
