"""What no single key can tell: whether masses, inertias, poses and limits make sense together."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hil_server.config.checks import join, line
from hil_server.config.tables import ELEVEN
from rt_kernels.algebra.arrays import pose_multiply, quat_from_yaw_pitch_roll


def inertia_faults(rows: Any, file: str, path: str) -> list[str]:
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


def vehicle_faults(vehicle: Mapping[str, Any], file: str, path: str) -> list[str]:
    """What is wrong with a vehicle's inertia and port compliance, one line each."""
    return [
        *inertia_faults(vehicle["inertia_kg_m2"], file, join(path, "inertia_kg_m2")),
        *compliance_faults(vehicle.get("port_compliance_rows"), file, join(path, "port_compliance_rows")),
    ]


def compliance_faults(rows: Any, file: str, path: str) -> list[str]:
    """A passive structure: symmetric, and no wrench that would not yield."""
    if rows is None:
        return []
    C = np.asarray(rows, float)
    size = np.sqrt(np.abs(np.diag(C)))
    scaled = C / np.maximum(np.outer(size, size), 1e-300)
    if np.allclose(C, C.T, rtol=1e-9, atol=0.0) and np.linalg.eigvalsh(0.5 * (scaled + scaled.T)).min() >= -1e-9:
        return []
    return [line(file, path, "no compliance of a structure", rows, limit="symmetric, no negative eigenvalue", unit="m/N, rad/(N.m)")]


def mounting_faults(mounting: Mapping[str, Any], file: str, path: str) -> list[str]:
    """Nothing hangs on the cell (mass 0, no inertia), or a body does."""
    rows = mounting["carried_inertia_kg_m2"]
    if not np.any(rows):
        return []
    return inertia_faults(rows, file, join(path, "carried_inertia_kg_m2"))


def limits_faults(limits: Mapping[str, Any], file: str, path: str) -> list[str]:
    """The computer must stop the stand before the independent analogue chain does (R-St-30)."""
    found = []
    for soft, hard, unit in (("force_limit_n", "analogue_force_n", "N"), ("moment_limit_n_m", "analogue_moment_n_m", "N.m")):
        for i, (limit, threshold) in enumerate(zip(limits[soft], limits[hard], strict=True)):
            if limit >= threshold:
                where = join(path, f"{soft}[{i}]")
                found.append(line(file, where, "not below the analogue threshold", limit, limit=f"below {threshold:g}", unit=unit))
    return found


def criticality(initial_conditions: Mapping[str, Any]) -> tuple[float, float]:
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


def mounting_poses(mounting: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """X_WF port of the fixed unit in W, X_PM port of the moving unit on P, X_S load cell in W or on P; each of shape (7,)."""
    X_S, X_measured, X_other = (
        pose(mounting[f"{name}_position_m"], mounting[f"{name}_angles_deg"]) for name in ("load_cell", "measured_port", "other_port")
    )
    behind_cell = multiply(X_S, X_measured)
    on_floor = mounting["load_cell_on"] == "floor"
    return {"X_WF": behind_cell if on_floor else X_other, "X_PM": X_other if on_floor else behind_cell, "X_S": X_S}
