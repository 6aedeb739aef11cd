"""Auxiliary channels of the part. Generated from record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("ring_position", "m", "ring centre in the base", 3),
    Aux("ring_quaternion", "1", "ring in the base, x y z w", 4),
    Aux("ring_velocity", "m/s", "relative to the base, base axes", 3),
    Aux("ring_rate", "rad/s", "relative to the base, base axes", 3),
    Aux("stroke", "m", "of the six rods, from the initial position", 6),
    Aux("spring_force", "N", "on the six rods, positive outwards", 6),
    Aux("latch_compression", "m", "of the six latches", 6),
    Aux("latch_fired", "1", "latches behind their stops", 6),
    Aux("plunger", "m", "compression of the three alignment sensors", 3),
    Aux("contacts", "1", "number of ring contacts"),
    Aux("depth", "m", "deepest penetration"),
    Aux("kinetic_energy", "J", "of ring and legs relative to the base"),
    Aux("work_in", "J", "put in by the target that moves against the base"),
    Aux("lost_contact", "J", "friction and damping of the contacts"),
    Aux("given_to_springs", "J", "stored and lost in the legs"),
    Aux("stored_contact", "J", "contact springs, plungers, latches"),
    Aux("first_contact_time", "s", "since the start, -1 before"),
    Aux("capture_time", "s", "since the start, -1 before"),
)
