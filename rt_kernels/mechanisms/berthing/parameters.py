"""Parameters that both berthing devices declare: the reaction at their contacts."""

from typing import Any

from rt_kernels.parameters import Parameter


def number(key: str, unit: str, meaning: str, low: float = 0.0, high: float = 1e9, **more: Any) -> Parameter:
    """A number that may be zero unless `low` says otherwise."""
    return Parameter(key, "float", unit, meaning, low=low, high=high, **more)


def contact_parameters(effective_mass_kg: float) -> tuple[Parameter, ...]:
    """What `ContactLaw` is made of (`rt_kernels.contact.reaction`); effective_mass_kg: the device's own default."""
    return (
        number("contact_stiffness_n_per_m", "N/m", "k_S", 1e3, 1e9),
        number("contact_damping_n_s_per_m", "N.s/m", "c_D", 0.0, 1e6),
        number("contact_ramp_m", "m", "penetration over which the damper comes in", 0.0, 0.01, default=1e-4),
        number("friction", "-", "friction coefficient", 0.0, 1.5, default=0.1),
        number("slip_speed_m_s", "m/s", "regularisation of friction", 1e-6, 0.1, default=5e-4),
        number("effective_mass_kg", "kg", "mass at a contact for the bound on friction per slip speed", 1e-2, 1e6,
               default=effective_mass_kg),
        number("depth_limit_m", "m", "greatest penetration", 1e-4, 0.1, default=0.01),
    )
