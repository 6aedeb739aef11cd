"""Table [manipulator] of an arm's file: end effector, limits of the joints, drives, gains by payload, flexible segments. Set-up only.

The [[body]] tables of the same file are read by `rt_kernels.model.bodies`. Lists are per joint in the order of the bodies; one
number holds for all joints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.extends import read_tables
from rt_kernels.model.arm_segments import beam, lumped
from rt_kernels.model.joint_drive import JOINT_DRIVE
from rt_kernels.parameters import Parameter, checked, shown

PARAMETERS = (
    Parameter("end_effector", "str", "-", "body at the arm's end; its frame is E"),
    Parameter("low_deg", "floats", "deg", "lower stops", low=-1e4, high=1e4),
    Parameter("high_deg", "floats", "deg", "upper stops", low=-1e4, high=1e4),
    Parameter("rate_max_deg_s", "floats", "deg/s", "joint rates", low=1e-6, high=1e3),
    Parameter("braking_deg_s2", "floats", "deg/s2", "deceleration in front of a stop and a waypoint", low=1e-6, high=1e4),
    Parameter("linear_rate_max_m_s", "float", "m/s", "commanded velocity of the controlled point", low=1e-6, high=10.0),
    Parameter("angular_rate_max_deg_s", "float", "deg/s", "commanded angular rate", low=1e-6, high=100.0),
    Parameter("length_m", "float", "m", "makes metres and radians comparable where singularities are judged", low=0.01, high=100.0),
    Parameter("force_max_n", "float", "N", "allowed force at the end effector", low=1e-3, high=1e7),
    Parameter("moment_max_n_m", "float", "N.m", "allowed moment at the end effector", low=1e-3, high=1e7),
    Parameter("approach_per_s", "float", "1/s", "rate per distance near a stop and a waypoint", low=1e-3, high=125.0),
    Parameter("gains", "rows", "kg, 1, 1/s, 1", "by payload: rows [mass up to, proportional and integral gain of the outer loop, share of "
              "rate_max and braking]", low=0.0, high=1e6, shape=(None, 4)),
)
# the outer loop follows the gains by payload
DRIVE = tuple(p for p in JOINT_DRIVE if p.key not in ("outer_gain", "outer_integral_gain", "outer_ratio"))
SEGMENT = (
    Parameter("body", "str", "-", "body of the arm that bends"),
    Parameter("start_m", "floats", "m", "where it begins, body frame", shape=3),
    Parameter("end_m", "floats", "m", "where it ends", shape=3),
)
# kind -> function that makes it, and its keys in the order of the function's arguments
SEGMENTS: dict[str, tuple[Any, tuple[Parameter, ...]]] = {
    "beam": (beam, (
        *SEGMENT,
        Parameter("bending_n_m2", "float", "N.m2", "bending stiffness EI"),
        Parameter("torsion_n_m2", "float", "N.m2", "torsional stiffness GJ"),
        Parameter("stretching_n", "float", "N", "stiffness along its length EA; left away: rigid", default=None),
    )),
    "lumped": (lumped, (
        *SEGMENT,
        Parameter("bending_n_m_per_rad", "float", "N.m/rad", "angular stiffness across"),
        Parameter("torsion_n_m_per_rad", "float", "N.m/rad", "angular stiffness along"),
        Parameter("axis", "floats", "-", "its direction, needed when it has no length", default=None, shape=3),
    )),
}  # fmt: skip
# further tables of [manipulator]
TABLES = ("drive", "segment", "synthetic")


@dataclass
class Manipulator:
    """What the table says; angles in rad. drives: keyword arguments of `joint_drive.JointDrive` without the outer loop, one per joint."""

    end_effector: str
    low: np.ndarray
    high: np.ndarray
    rate_max: np.ndarray
    braking: np.ndarray
    linear_rate_max: float
    angular_rate_max: float
    length: float
    force_max: float
    moment_max: float
    approach: float
    gains: list[list[float]]
    drives: list[dict[str, Any]]
    segments: list[Any]


def read_manipulator(path: Path, joints: int) -> Manipulator:
    """The table of an arm of `joints` joints out of its file. Raises ValueError that names file, key, value, limit."""
    return manipulator_of(read_tables(path), path, joints)


def manipulator_of(tables: dict[str, Any], path: Path, joints: int) -> Manipulator:
    """The same from the tables of such a file; `path` names it in errors."""
    data = tables.get("manipulator")
    if not isinstance(data, dict):
        raise ValueError(f"{path.name}: no table [manipulator]: drives, limits and segments of the arm are needed")
    where = f"{path.name}: manipulator"
    lists = {p.key for p in PARAMETERS if p.kind == "floats"}
    # one number holds for all joints
    given = {key: [value] * joints if key in lists and isinstance(value, int | float) else value for key, value in data.items()}
    declared = tuple(replace(p, shape=joints) if p.key in lists else p for p in PARAMETERS)
    t = checked(declared, {key: value for key, value in given.items() if key not in TABLES}, where)
    low, high = np.radians(t["low_deg"]), np.radians(t["high_deg"])
    if not np.all(low < high):
        raise ValueError(f"{where}.low_deg: {data['low_deg']} deg, limit below high_deg {data['high_deg']} deg in every joint")
    return Manipulator(
        t["end_effector"], low, high, np.radians(t["rate_max_deg_s"]), np.radians(t["braking_deg_s2"]),
        t["linear_rate_max_m_s"], float(np.radians(t["angular_rate_max_deg_s"])), t["length_m"], t["force_max_n"], t["moment_max_n_m"],
        t["approach_per_s"], t["gains"], _drives(path.name, data.get("drive"), joints), _segments(path.name, data.get("segment")),
    )  # fmt: skip


def _drives(file: str, table: Any, joints: int) -> list[dict[str, Any]]:
    """Keyword arguments of the joint drive for each joint: a key of the drive has one value for all joints or a list of one for each."""
    where = f"{file}: manipulator.drive"
    if not isinstance(table, dict):
        raise ValueError(f"{where}: required table is missing")
    for key, value in table.items():
        if isinstance(value, list) and len(value) != joints:
            raise ValueError(f"{where}.{key}: must be one value or {joints}, one for each joint, got {len(value)}: {shown(value)}")
    out = []
    for j in range(joints):
        try:
            drive = checked(DRIVE, {key: value[j] if isinstance(value, list) else value for key, value in table.items()})
        except ValueError as error:
            raise ValueError(f"{where}, joint {j}: {error}") from None
        out.append({key: drive[key] for key in table})
    return out


def _segments(file: str, tables: Any) -> list[Any]:
    where = f"{file}: manipulator.segment"
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"{where}: required tables are missing: what bends must be given")
    out = []
    for i, table in enumerate(tables):
        kind = table.get("kind") if isinstance(table, dict) else None
        if kind not in SEGMENTS:
            raise ValueError(f"{where}[{i}].kind: must be one of {', '.join(SEGMENTS)}, got {shown(kind)}")
        make, declared = SEGMENTS[kind]
        t = checked(declared, {key: value for key, value in table.items() if key != "kind"}, f"{where}[{i}]")
        try:
            out.append(make(*t.values()))
        except ValueError as error:
            raise ValueError(f"{where}[{i}]: {error}") from None
    return out
