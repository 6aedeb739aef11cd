"""Keys that several compensators share, and the constants they are filled from."""

import math
from dataclasses import replace

import numpy as np

from rt_kernels.compensation.effective_mass import at_active_port, relative_inverse_inertia
from rt_kernels.model.modal_spring import modal_spring
from rt_kernels.parameters import Parameter, Tunable

LEAD_PARAMETERS = (
    Parameter("order", "int", "-", "1: velocity lead, 2: velocity and acceleration lead", 2, low=1, high=2),
    Parameter("lead_factor", "float", "-", "multiplies both leads: 1 unless the effect of a wrong drive model is studied", 1.0,
              low=0.0, high=2.0, tunable=Tunable(0.5)),
    Parameter("lead_rate_max_m_s", "float", "m/s", "the lead moves no faster; none: the legs' own limit", None, low=1e-4, high=10.0,
              tunable=Tunable(0.5, low=0.005, of_configured=1.0)),
    Parameter("lead_acceleration_max_m_s2", "float", "m/s2", "nor with more acceleration; none: the legs' own limit", None,
              low=1e-3, high=1e4),
)  # fmt: skip

# the factor of an adaptive lead is where its fit starts: nothing reads it later
ADAPTIVE_LEAD_PARAMETERS = tuple(replace(p, tunable=None) if p.key == "lead_factor" else p for p in LEAD_PARAMETERS)

POSE_FORCE_PARAMETERS = (
    Parameter("stiffness_n_per_m", "float", "N/m", "stiffness of the contact along its own direction (prior)", 0.0, low=0.0, high=1e10),
    Parameter("stiffness_rows", "rows", "N/m, N, N.m", "6x6 stiffness at and in T instead of the scalar; none: along the wrench",
              None, shape=(6, 6)),
    Parameter("damping_n_s_per_m", "float", "N.s/m", "damping of the contact", 0.0, low=0.0, high=1e8,
              tunable=Tunable(500.0, high=1e5)),
    Parameter("estimate", "bool", "-", "the stiffness follows a recursive estimate, within 0.5...1.5 of the prior", False),
    Parameter("forgetting", "float", "-", "of the estimate, per tick that is learnt from", 0.998, low=0.9, high=1.0),
    Parameter("excitation_m", "float", "m", "in the estimate the prior counts as ten motions of this size", 1e-5, low=1e-9, high=0.1),
    Parameter("stiffness_factor", "float", "-", "multiplies the stiffness: 1 unless the effect of a wrong one is studied", 1.0,
              low=0.0, high=3.0, tunable=Tunable(0.5, low=0.1)),
)  # fmt: skip

LEG_OFFSET_PARAMETERS = (
    Parameter("dead_band", "bool", "-", "the legs' demand crosses dead band and friction where the stand has a [stand_model]", True),
    Parameter("leg_offset_max_m", "float", "m", "no leg's demand is moved further by that", 5e-4, low=0.0, high=0.01,
              tunable=Tunable(5e-4, of_configured=1.0)),
    Parameter("leg_offset_acceleration_max_m_s2", "float", "m/s2", "nor with more acceleration; none: half the legs' own limit", None,
              low=1e-3, high=1e4),
    Parameter("crossing_m_s", "float", "m/s", "a leg's motion changes its sense over this rate", 1e-3, low=1e-6, high=0.1),
    Parameter("leg_offset_factor", "float", "-", "multiplies dead band and friction: 1 unless the effect of wrong ones is studied", 1.0,
              low=0.0, high=2.0, tunable=Tunable(0.5)),
)  # fmt: skip

OBSERVER_PARAMETERS = (
    Parameter("structure", "bool", "-", "the ports are observed on the modes that [stand_model] has of what carries them", True),
    Parameter("structure_max_m", "float", "m", "no port is moved further by that on its spring, nor turned by it over 1 m", 5e-3, low=1e-6,
              high=0.1),
)  # fmt: skip
MODE_MIN_HZ = 15.0  # a slower mode would have to be led, too


def carried_ports(model, mounting, keys):
    """For the active unit and the target: None for a rigid one, else (M^-1, K, C, X_BP, whether its foot is the platform, highest w) of the
    body that carries the port, from the keys of [stand_model] (drivers/simulated/structure.pyx). Raises ValueError for what cannot be
    observed."""
    ports = [None, None]
    if not model or not keys["structure"]:
        return ports
    given = [name for name in ("unit", "base", "cell")
             if model.get(f"{name}_mode_hz") is not None or model.get(f"{name}_stiffness") is not None]  # fmt: skip
    if "base" in given and "cell" in given:
        raise ValueError("compensation.structure: stand_model has modes of base and cell, one on the other; limit one of the two")
    on_cell = 1 if mounting.unit_on_load_cell == "target" else 0
    cell_moves = mounting.load_cell_on == "platform"
    for name in given:
        carried, com, inertia = _body(name, model, mounting)
        M = np.zeros((6, 6))
        M[:3, :3], M[3:, 3:] = carried * np.eye(3), inertia
        try:
            K, C = modal_spring(carried, inertia, model.get(f"{name}_mode_hz"), model[f"{name}_mode_damping"],
                                model.get(f"{name}_mode_shapes"), model.get(f"{name}_stiffness"))  # fmt: skip
        except ValueError as error:
            raise ValueError(f"compensation.structure: stand_model.{name}: {error}") from None
        inverse = np.linalg.inv(M)
        w = np.sqrt(np.linalg.eigvals(inverse @ K).real)
        if w.min() < 2.0 * math.pi * MODE_MIN_HZ:
            raise ValueError(f"compensation.structure: stand_model.{name} has a mode at {w.min() / (2.0 * math.pi):.3g} Hz, "
                             f"limit {MODE_MIN_HZ:g} Hz and above")
        if name == "unit":
            ports[1 - on_cell] = (inverse, K, C, [*(-com), 0.0, 0.0, 0.0, 1.0], not cell_moves, float(w.max()))
        else:
            X = np.array(mounting.X_S_port, float)
            X[:3] -= com
            ports[on_cell] = (inverse, K, C, X, cell_moves, float(w.max()))
    return ports


def _body(name, model, mounting):
    """Mass, centre and inertia about it of what a spring carries, axes of its port or of S; the base with what stands rigidly on it."""
    carried, c = float(mounting.carried_mass_kg), np.asarray(mounting.carried_com_m, float)
    J = np.zeros((3, 3)) if mounting.carried_inertia_kg_m2 is None else np.asarray(mounting.carried_inertia_kg_m2, float)
    if name == "cell":
        return carried, c, J
    mass, com = model[f"{name}_mass_kg"], np.asarray(model[f"{name}_com_m"], float)
    inertia = np.asarray(model[f"{name}_inertia_kg_m2"], float)
    if name == "unit":
        return mass, com, inertia
    whole = (mass * com + carried * c) / (mass + carried)
    return mass + carried, whole, _moved(inertia, mass, com - whole) + _moved(J, carried, c - whole)


def _moved(inertia, mass, r):
    """Inertia about a point at r from the centre of mass."""
    return inertia + mass * (r @ r * np.eye(3) - np.outer(r, r))


def leg_constants(model):
    """Of one hydraulic leg with its drive, from the keys of [stand_model] (formulas: leg_offset.pxd, drivers/simulated/hydraulic_machine).
    Pairs: with the rod going out, going in."""
    area_a, area_b = model["piston_area_a_m2"], model["piston_area_b_m2"]
    share = area_b / area_a
    gain = model["valve_flow_m3_per_s"] / math.sqrt(0.5 * model["valve_pressure_drop_pa"])
    supply, tank = model["supply_pressure_pa"], model["tank_pressure_pa"]
    # no-load speed at full spool over the position gain: what the demand must move for a spool that is full open
    reach = [gain / area_a * math.sqrt(drop / (1.0 + share**3)) / model["position_gain_per_s"]
             for drop in (supply - share * tank, share * supply - tank)]  # fmt: skip
    oil = model["bulk_modulus_pa"]
    spool = 2.0 * model["valve_damping"] / (2.0 * math.pi * model["valve_frequency_hz"])
    return {
        "dead_band_m": [x * model["valve_overlap"] for x in reach],
        "pressure_m_per_n": [x * model["pressure_gain_per_pa"] / area_a for x in reach],
        "coulomb_n": model["friction_coulomb_n"],
        "stiction_n": max(0.0, model["friction_static_n"] - model["friction_coulomb_n"]),
        "stribeck": 1.0 / model["friction_stribeck_m_s"] ** 2,
        "bristle_n_per_m": model["friction_bristle_n_per_m"],
        "high_pass": 2.0 * math.pi * model["pressure_highpass_hz"],
        "areas_and_volumes": (area_a, area_b, model["dead_volume_a_m3"], model["dead_volume_b_m3"]),
        "oil": (oil * area_a**2, oil * area_b**2),
        "position_gain": model["position_gain_per_s"],
        # the feed-forward of the demand's rate leads by k_f/k_v, drive and spool are late
        "ahead_s": model["drive_delay_s"] + spool - model["velocity_feedforward"] / model["position_gain_per_s"],
    }


def lead_inertia(vehicles, start):
    """Wrench on the target at and in T to relative acceleration as in A_TA, (6, 6), at the nominal first contact."""
    return at_active_port(start.X_TA) @ relative_inverse_inertia(vehicles, start.X_TA)
