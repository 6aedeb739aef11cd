"""Auxiliary channels as the kernel writes them.

Generated from record.toml by tools/generate_channels.py: do not edit.
"""

from rt_kernels.mechanisms.ring.record cimport RingRecord


cdef struct ElasticRecord:
    RingRecord ring
    double compression[6]  # [m] of the six springs from the forward position
    double spring_branch[6]  # [1] state of the six accumulators: 0 1 2 3 4 5 11 12
    double clutch_blocked[6]  # [1] recoil blocked, six struts
    double initial_position[6]  # [1] switches of the initial position
    double cable_tension[3]  # [N] of the three cables
    double cable_joined[3]  # [1] drum cam turns with the gear cam
    double drum_angle[3]  # [rad] phi_CamR of the three drums
    double phase  # [1] of the sequence: 0 retracted, 1 extending, 2 ready, 3 thrown, 4 captured, 5 retracting, 6 done
    double drive_rate  # [rad/s] of the retraction drive
    double gear_cam  # [rad] phi_CamG without tension
    double release_time  # [s] loss of the initial position, clutches open; -1 before
    double aligned_time  # [s] three alignment sensors, clutches blocked; -1 before
    double done_time  # [s] planes mated; -1 before
    double given_to_cables  # [J] by the ring: stored and lost there; negative while the drive draws it in
    double wheel_rate[2]  # [rad/s] wheels of the two motors
