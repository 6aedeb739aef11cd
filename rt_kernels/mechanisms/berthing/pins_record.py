"""Auxiliary channels of the part. Generated from pins_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("lock_depth", "m", "torus centre behind the target plane"),
    Aux("lock_force", "N", "of ball and lock along X, on the target"),
    Aux("contacts", "1", "number of contacts"),
    Aux("depth_peak", "m", "greatest penetration so far"),
    Aux("first_contact_time", "s", "-1 before"),
    Aux("cylinder_time", "s", "lock enters its cylinder; -1 before"),
    Aux("capture_time", "s", "-1 before"),
    Aux("plane_time", "s", "docking planes touch; -1 before"),
    Aux("energy_supplied", "J", "work of the target, moved against the base"),
    Aux("energy_stored", "J", "in contacts and lock"),
    Aux("energy_lost_contact", "J", "normal contact damping"),
    Aux("energy_lost_friction", "J", "contact friction"),
    Aux("energy_lost_lock", "J", "spring ball, and the lock when released stretched"),
)
