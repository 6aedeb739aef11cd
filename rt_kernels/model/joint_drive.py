"""Parameters of a manipulator's joint drive (`rt_kernels.dynamics.manipulator.joint_drive`), and its gains by payload. Set-up only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rt_kernels.parameters import Parameter

JOINT_DRIVE = (
    Parameter("motor_inertia_kg_m2", "float", "kg.m2", "inertia of the rotor", low=1e-9, high=10.0),
    Parameter("electrical_time_s", "float", "s", "inductance over resistance", low=1e-7, high=1.0),
    Parameter("torque_constant", "float", "N.m/A", "motor torque per current", low=1e-6, high=1e3),
    Parameter("back_emf_constant", "float", "V.s/rad", "voltage per motor rate", low=0.0, high=1e3),
    Parameter("resistance_ohm", "float", "ohm", "winding and leads", low=1e-6, high=1e6),
    Parameter("voltage_max_v", "float", "V", "largest voltage of the controller", 1e6, low=0.0, high=1e6),
    Parameter("torque_max_n_m", "float", "N.m", "current limit times torque constant", 1e6, low=0.0, high=1e6),
    Parameter("friction_n_m", "float", "N.m", "Coulomb friction at the motor", 0.0, low=0.0, high=1e6),
    Parameter("viscous_n_m_s_per_rad", "float", "N.m.s/rad", "viscous friction at the motor", 0.0, low=0.0, high=1e6),
    Parameter("brake_n_m", "float", "N.m", "further friction while the brake is on", 0.0, low=0.0, high=1e6),
    Parameter("gear_ratio", "float", "1", "motor angle per joint angle", low=1.0, high=1e6),
    Parameter("gear_inertia_kg_m2", "float", "kg.m2", "gear inertia at its input", low=0.0, high=10.0),
    Parameter("gear_stiffness_n_m_per_rad", "float", "N.m/rad", "beyond the backlash, at the gear's input", low=1e-6, high=1e9),
    Parameter("backlash_torque_n_m", "float", "N.m", "gear torque at the end of the backlash", low=1e-9, high=1e6),
    Parameter("backlash_rad", "float", "rad", "half width of the backlash at the gear's input", low=1e-9, high=10.0),
    Parameter("gear_damping_n_m_s_per_rad", "float", "N.m.s/rad", "at the gear's input", 0.0, low=0.0, high=1e6),
    Parameter("efficiency", "float", "1", "of the gear", 1.0, low=0.05, high=1.0),
    Parameter("blend_power_w", "float", "W", "the efficiency changes side within +- this power", 1e-3, low=1e-9, high=1e6),
    Parameter("inner_gain", "float", "V.s/rad", "voltage per error of the motor rate", 0.0, low=0.0, high=1e6),
    Parameter("outer_gain", "float", "1", "reference rate per error of the output rate", 0.0, low=0.0, high=1e6),
    Parameter("outer_integral_gain", "float", "1/s", "of the output rate's error", 0.0, low=0.0, high=1e6),
    Parameter("outer_ratio", "int", "1", "inner periods per outer period (8 ms over 0.5 ms)", 16, low=1, high=1000),
    Parameter("regenerative", "bool", "-", "current against the motion is allowed", True),
)


def gains_for_payload(table: Iterable[Sequence[float]], mass_kg: float) -> tuple[float, float]:
    """(K_p, K_i) of the outer loop: the row [mass up to, K_p, K_i] with the smallest mass not below `mass_kg` [kg].

    ValueError beyond the last.
    """
    rows = sorted(tuple(float(x) for x in row) for row in table)
    if not np.isfinite(mass_kg) or mass_kg < 0.0:
        raise ValueError(f"mass_kg: {mass_kg} kg is not a finite number >= 0")
    for limit, K_p, K_i in rows:
        if mass_kg <= limit:
            return K_p, K_i
    limit = max((row[0] for row in rows), default=0.0)
    raise ValueError(f"mass_kg: {mass_kg:g} kg, limit {limit:g} kg (last of {len(rows)} rows of the gain table)")
