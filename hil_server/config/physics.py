"""What no single key can tell: whether masses, inertias, poses and limits make sense together."""

import math
from collections.abc import Sequence

import numpy as np

from hil_server.config.checks import join, line
from hil_server.config.tables import EARTH_M3_S2, EARTH_RADIUS_KM, ELEVEN
from hil_server.values import Given
from rt_kernels.algebra.arrays import pose_multiply, quat_from_yaw_pitch_roll


def inertia_faults(rows: Sequence[Sequence[float]], file: str, path: str) -> list[str]:
    """A rigid body's inertia is symmetric, positive definite, and each principal moment is at most the sum of the other two."""
    inertia = np.array(rows, dtype=float)
    if not np.allclose(inertia, inertia.T, rtol=1e-9, atol=0.0):
        return [line(file, path, "not symmetric", rows, limit="equal to its transpose", unit="kg.m2")]
    a, b, c = np.linalg.eigvalsh(inertia)
    if a <= 0.0:
        return [line(file, path, "not positive definite", float(a), limit="every principal moment above 0", unit="kg.m2")]
    if c > (a + b) * (1.0 + 1e-9):
        limit = f"largest principal moment at most {a + b:.6g}, the sum of the other two"
        return [line(file, path, "violates the triangle inequality of principal moments", float(c), limit=limit, unit="kg.m2")]
    return []


def vehicle_faults(vehicle: Given, file: str, path: str) -> list[str]:
    """What is wrong with a vehicle's inertia and port compliance, one line each."""
    return [
        *inertia_faults(vehicle["inertia_kg_m2"], file, join(path, "inertia_kg_m2")),
        *compliance_faults(vehicle.get("port_compliance_rows"), file, join(path, "port_compliance_rows")),
    ]


def compliance_faults(rows: Sequence[Sequence[float]] | None, file: str, path: str) -> list[str]:
    """A passive structure: symmetric, and no wrench that would not yield."""
    if rows is None:
        return []
    C = np.asarray(rows, float)
    size = np.sqrt(np.abs(np.diag(C)))
    scaled = C / np.maximum(np.outer(size, size), 1e-300)
    if np.allclose(C, C.T, rtol=1e-9, atol=0.0) and np.linalg.eigvalsh(0.5 * (scaled + scaled.T)).min() >= -1e-9:
        return []
    return [line(file, path, "no compliance of a structure", rows, limit="symmetric, no negative eigenvalue", unit="m/N, rad/(N.m)")]


def mounting_faults(mounting: Given, file: str, path: str) -> list[str]:
    """Nothing hangs on the cell (mass 0, no inertia), or a body does."""
    rows = mounting["carried_inertia_kg_m2"]
    if not np.any(rows):
        return []
    return inertia_faults(rows, file, join(path, "carried_inertia_kg_m2"))


def tare_faults(stand: Given, file: str, path: str) -> list[str]:
    """The weight on the load cell is taken off once: by a tare in the device when it is opened, or by the server as `carried_mass_kg`."""
    mass, gravity = stand["mounting"]["carried_mass_kg"], stand["mounting"]["gravity_m_s2"]
    if not (stand["wrench_sensor"].get("bias_at_open") and mass and any(gravity)):
        return []
    where, weight = join(path, "wrench_sensor.bias_at_open"), mass * float(np.linalg.norm(gravity))
    limit = f"false, or mounting.carried_mass_kg = 0 (now {mass:g} kg)"
    return [line(file, where, f"the device's tare and the server both take off the weight of {weight:.0f} N", True, limit=limit, unit="-")]


def limits_faults(limits: Given, file: str, path: str) -> list[str]:
    """The computer must stop the stand before the independent analogue chain does (R-St-30)."""
    found = []
    for soft, hard, unit in (("force_limit_n", "analogue_force_n", "N"), ("moment_limit_n_m", "analogue_moment_n_m", "N.m")):
        for i, (limit, threshold) in enumerate(zip(limits[soft], limits[hard], strict=True)):
            if limit >= threshold:
                where = join(path, f"{soft}[{i}]")
                found.append(line(file, where, "not below the analogue threshold", limit, limit=f"below {threshold:g}", unit=unit))
    return found


ORBITAL_RATE_MAX_RAD_S = 0.01  # of initial_conditions.orbital_rate_rad_s
ORBITAL_RATE_AGREES = 0.01  # share by which a given orbital rate may differ from that of the orbit


def stand_model_faults(model: Given, file: str, path: str) -> list[str]:
    """Of an identified machine: as many damping ratios as modes, standard deviations of its own keys."""
    found = []
    if len(model["mode_hz"]) != len(model["mode_damping"]):
        found.append(line(file, join(path, "mode_damping"), "a damping ratio for each of mode_hz", len(model["mode_damping"]),
                          limit=str(len(model["mode_hz"])), unit="-"))  # fmt: skip
    found += [line(file, join(path, f"sigma.{key}"), "standard deviation of a key that the model does not have", value,
                   limit="a key of the model", unit="-") for key, value in model["sigma"].items() if key not in model]  # fmt: skip
    return found


def orbit_faults(orbit: Given, file: str, path: str) -> list[str]:
    """Two directions that span a plane, and a place outside of the planet."""
    R, F = (np.asarray(orbit[f"{name}_direction"], float) for name in ("radius", "flight"))
    if not np.linalg.norm(R) > 0.0:
        return [line(file, join(path, "radius_direction"), "no direction", R.tolist(), limit="a vector that is not zero", unit="-")]
    if not np.linalg.norm(np.cross(R, F)) > 0.01 * np.linalg.norm(R) * np.linalg.norm(F):
        limit = "0.6 deg and more from the radius"
        return [line(file, join(path, "flight_direction"), "no direction across the radius", F.tolist(), limit=limit, unit="-")]
    if orbit["gravitational_parameter_m3_per_s2"] == EARTH_M3_S2 and orbit["radius_km"] < EARTH_RADIUS_KM:
        limit = f"at least {EARTH_RADIUS_KM:g}, from the centre and not from the ground"
        return [line(file, join(path, "radius_km"), "inside of the Earth", orbit["radius_km"], limit=limit, unit="km")]
    rate = float(np.linalg.norm(orbital_rate(orbit)))
    if rate > ORBITAL_RATE_MAX_RAD_S:
        return [line(file, join(path, "radius_km"), f"orbital rate {rate:.3g} rad/s", orbit["radius_km"],
                     limit=f"where it is at most {ORBITAL_RATE_MAX_RAD_S:g} rad/s", unit="km")]  # fmt: skip
    return []


def orbital_state(orbit: Given) -> tuple[np.ndarray, np.ndarray]:
    """Position (3,) [m] and velocity (3,) [m/s] of the target from the planet's centre when the loop closes, in its axes (those of N).

    V_r = mu/h e sin(anomaly), V_t = h/r with h = sqrt(mu r (1 + e cos(anomaly))) (Battin 1999)."""
    r, e = 1e3 * orbit["radius_km"], orbit["eccentricity"]
    mu, anomaly = orbit["gravitational_parameter_m3_per_s2"], math.radians(orbit["true_anomaly_deg"])
    radial = np.asarray(orbit["radius_direction"], float)
    radial = radial / np.linalg.norm(radial)
    across = np.asarray(orbit["flight_direction"], float)
    across = across - (across @ radial) * radial
    across = across / np.linalg.norm(across)
    h = math.sqrt(mu * r * (1.0 + e * math.cos(anomaly)))
    return r * radial, mu / h * e * math.sin(anomaly) * radial + h / r * across


def orbital_rate(orbit: Given) -> np.ndarray:
    """(3,) [rad/s], R x V / |R|^2: at which the radius turns when the loop closes, in the target's axes."""
    R, V = orbital_state(orbit)
    found: np.ndarray = np.cross(R, V) / (R @ R)
    return found


def orbital_rate_faults(orbit: Given, given: Sequence[float], file: str, path: str) -> list[str]:
    """A rate that is given beside the orbit must be that of the orbit."""
    own = np.zeros(3) if orbit["target_attitude"] == "inertial" else orbital_rate(orbit)
    if not np.any(given) or np.linalg.norm(own - given) <= ORBITAL_RATE_AGREES * np.linalg.norm(own):
        return []
    limit = f"zero, or {[float(f'{x:.6g}') for x in own]} of [orbit] within {100 * ORBITAL_RATE_AGREES:g} %"
    return [line(file, path, "not that of the orbit", list(given), limit=limit, unit="rad/s")]


def criticality(initial_conditions: Given) -> tuple[float, float]:
    """R1 (root of the sum of squares) and R2 (sum of magnitudes) of a variant's deviations from the nominal approach.

    Each deviation counts as a part of its largest value. Below 1: nominal approach.
    (Yaskevich 2020, 4.5; magnitudes in R2, because signed terms would cancel.)"""
    limits = initial_conditions["limits"]
    parts = []
    for key in ELEVEN:
        nominal = limits["velocity_x_nominal_m_s"] if key == "velocity_x_m_s" else 0.0
        parts.append(abs(initial_conditions[key] - nominal) / limits[key])
    return math.hypot(*parts), sum(parts)


def pose(position_m: Sequence[float], angles_deg: Sequence[float]) -> np.ndarray:
    """X_AB, shape (7,), position and quaternion [x, y, z, w], from position and yaw (Y), pitch (Z), roll (X) of B in A.

    R_AB = Ry(yaw) Rz(pitch) Rx(roll), the transpose of the direction cosine matrix of Yaskevich 2020, (4.2.2)."""
    q = quat_from_yaw_pitch_roll(*np.radians(angles_deg))
    return np.concatenate([np.asarray(position_m, dtype=float), q if q[3] >= 0.0 else -q])


def multiply(X_AB: np.ndarray, X_BC: np.ndarray) -> np.ndarray:
    """X_AC of two poses, shape (7,)."""
    found: np.ndarray = pose_multiply(np.asarray(X_AB, float), np.asarray(X_BC, float))
    return found


def mounting_poses(mounting: Given) -> dict[str, np.ndarray]:
    """X_WF port of the fixed unit in W, X_PM port of the moving unit on P, X_S load cell in W or on P; each of shape (7,)."""
    X_S, X_measured, X_other = (
        pose(mounting[f"{name}_position_m"], mounting[f"{name}_angles_deg"]) for name in ("load_cell", "measured_port", "other_port")
    )
    behind_cell = multiply(X_S, X_measured)
    on_floor = mounting["load_cell_on"] == "floor"
    return {"X_WF": behind_cell if on_floor else X_other, "X_PM": X_other if on_floor else behind_cell, "X_S": X_S}
