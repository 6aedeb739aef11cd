"""Auxiliary channels as the kernel writes them.

Generated from record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct RingRecord:
    double ring_position[3]  # [m] ring centre in the base
    double ring_quaternion[4]  # [1] ring in the base, x y z w
    double ring_velocity[3]  # [m/s] relative to the base, base axes
    double ring_rate[3]  # [rad/s] relative to the base, base axes
    double stroke[6]  # [m] of the six rods, from the initial position
    double spring_force[6]  # [N] on the six rods, positive outwards
    double latch_compression[6]  # [m] of the six latches
    double latch_fired[6]  # [1] latches behind their stops
    double plunger[3]  # [m] compression of the three alignment sensors
    double contacts  # [1] number of ring contacts
    double depth  # [m] deepest penetration
    double kinetic_energy  # [J] of ring and legs relative to the base
    double work_in  # [J] put in by the target that moves against the base
    double lost_contact  # [J] friction and damping of the contacts
    double given_to_springs  # [J] stored and lost in the legs
    double stored_contact  # [J] contact springs, plungers, latches
    double first_contact_time  # [s] since the start, -1 before
    double capture_time  # [s] since the start, -1 before
