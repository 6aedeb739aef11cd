"""Auxiliary channels of the part. Generated from head_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("hinge_angle", "rad", "psi, theta", 2),
    Aux("hinge_rate", "rad/s", "of the same", 2),
    Aux("latch_angle", "rad", "retraction of the four latches", 4),
    Aux("latch_fired", "1", "latches behind the stop", 4),
    Aux("contacts", "1", "number of contacts"),
    Aux("depth_peak", "m", "greatest penetration so far"),
    Aux("first_contact_time", "s", "since the start, -1 before"),
    Aux("capture_time", "s", "all four latches; -1 before"),
    Aux("energy_supplied", "J", "work of the target, moved against the base"),
    Aux("energy_kinetic", "J", "of the head on its hinge"),
    Aux("energy_stored", "J", "in contacts, latches, stops of the hinge"),
    Aux("energy_lost_contact", "J", "normal contact damping"),
    Aux("energy_lost_friction", "J", "contact friction"),
    Aux("energy_lost_hinge", "J", "stops of the hinge"),
    Aux("energy_lost_latch", "J", "latches at firing or release"),
)
