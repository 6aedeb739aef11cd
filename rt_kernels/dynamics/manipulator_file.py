"""Table [manipulator] of an arm's file: end effector, limits of the joints, drives, gains by payload, flexible segments. Set-up only.

The [[body]] tables of the same file are read by `rt_kernels.multibody.tree_model`. Lists are per joint in the order of the bodies; one
number holds for all joints.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.dynamics.arm_compliance import beam, lumped
from rt_kernels.dynamics.joint_drive import JointDrive
from rt_kernels.parameters import Parameter

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
    Parameter("moment_max_n_m", "float", "N m", "allowed moment at the end effector", low=1e-3, high=1e7),
    Parameter("approach_1_s", "float", "1/s", "rate per distance near a stop and a waypoint", low=1e-3, high=125.0),
    Parameter("gains", "rows", "kg, 1, 1/s, 1", "by payload: rows [mass up to, proportional and integral gain of the outer loop, share of "
              "rate_max and braking]", low=0.0, high=1e6),
)
OUTER_LOOP = ("outer_gain", "outer_integral_gain", "outer_ratio")
TABLES = ("drive", "segment", "synthetic")


@dataclass
class Manipulator:
    """What the table says; angles in rad. drives: keyword arguments of `JointDrive` without the outer loop, one per joint."""

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
    return manipulator_of(tomllib.loads(path.read_text(encoding="utf-8")), path, joints)


def manipulator_of(tables: dict[str, Any], path: Path, joints: int) -> Manipulator:
    """The same from the tables of such a file; `path` names it in errors."""
    data = tables.get("manipulator")
    if not isinstance(data, dict):
        raise ValueError(f"{path.name}: no table [manipulator]: drives, limits and segments of the arm are needed")
    known = {p.key: p for p in PARAMETERS}
    for key in data:
        if key not in known and key not in TABLES:
            raise ValueError(f"{path.name}: manipulator.{key}: unknown key, there are {', '.join((*known, *TABLES))}")
    t = {key: _checked(f"{path.name}: manipulator.{key}", p, data.get(key)) for key, p in known.items()}
    lists = [p for p in PARAMETERS if p.kind == "floats"]
    per_joint = {p.key: _per_joint(f"{path.name}: manipulator.{p.key}", p.unit, t[p.key], joints) for p in lists}
    low, high = np.radians(per_joint["low_deg"]), np.radians(per_joint["high_deg"])
    if not np.all(low < high):
        raise ValueError(f"{path.name}: manipulator.low_deg: {t['low_deg']} deg, limit below high_deg {t['high_deg']} deg in every joint")
    return Manipulator(
        t["end_effector"], low, high, np.radians(per_joint["rate_max_deg_s"]), np.radians(per_joint["braking_deg_s2"]),
        t["linear_rate_max_m_s"], float(np.radians(t["angular_rate_max_deg_s"])), t["length_m"], t["force_max_n"], t["moment_max_n_m"],
        t["approach_1_s"], t["gains"], _drives(path.name, data.get("drive"), joints), _segments(path.name, data.get("segment")),
    )  # fmt: skip


def _checked(what: str, p: Parameter, value: Any) -> Any:
    if value is None:
        raise ValueError(f"{what}: missing key ({p.unit}, {p.meaning})")
    if p.kind == "str":
        if not isinstance(value, str):
            raise ValueError(f"{what}: {value!r} is no text")
        return value
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: {value!r} {p.unit}, numbers are needed") from None
    if p.kind == "float" and numbers.shape != () or p.kind == "rows" and (numbers.ndim != 2 or numbers.shape[1] != 4):
        needed = "one number" if p.kind == "float" else "rows of four numbers"
        raise ValueError(f"{what}: shape {numbers.shape}, {needed}, {p.unit}")
    bad = ~(numbers >= p.low) | ~(numbers <= p.high)
    if np.any(bad):
        raise ValueError(f"{what}: {numbers[bad].reshape(-1)[0]:g} {p.unit}, limits {p.low:g}...{p.high:g} {p.unit}")
    return float(value) if p.kind == "float" else numbers.tolist()


def _per_joint(what: str, unit: str, value: Any, joints: int) -> np.ndarray:
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"{what}: {value!r} {unit}, numbers are needed") from None
    if numbers.size not in (1, joints):
        raise ValueError(f"{what}: {numbers.size} numbers, limit 1 or {joints} (the joints of the arm), {unit}")
    return np.broadcast_to(numbers, (joints,)).copy()


def _drives(file: str, table: Any, joints: int) -> list[dict[str, Any]]:
    if not isinstance(table, dict):
        raise ValueError(f"{file}: no table [manipulator.drive]")
    units = {p.key: p.unit for p in JointDrive.PARAMETERS if p.key not in OUTER_LOOP}
    for key in table:
        if key not in units:
            raise ValueError(f"{file}: manipulator.drive.{key}: unknown key, there are {', '.join(units)}")
    columns = {key: _per_joint(f"{file}: manipulator.drive.{key}", units[key], value, joints) for key, value in table.items()}
    out = []
    for j in range(joints):
        values = {key: bool(column[j]) if key == "regenerative" else float(column[j]) for key, column in columns.items()}
        try:
            JointDrive(**values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file}: manipulator.drive, joint {j}: {error}") from None
        out.append(values)
    return out


KINDS = {
    "beam": (beam, ("body", "start_m", "end_m", "bending_n_m2", "torsion_n_m2"), ("stretching_n",)),
    "lumped": (lumped, ("body", "start_m", "end_m", "bending_n_m_per_rad", "torsion_n_m_per_rad"), ("axis",)),
}


def _segments(file: str, tables: Any) -> list[Any]:
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"{file}: no tables [[manipulator.segment]]: what bends must be given")
    out = []
    for i, table in enumerate(tables):
        what = f"{file}: manipulator.segment {i}"
        if table.get("kind") not in KINDS:
            raise ValueError(f"{what}: kind {table.get('kind')!r}, limit {' or '.join(KINDS)}")
        make, needed, optional = KINDS[table["kind"]]
        for key in needed:
            if key not in table:
                raise ValueError(f"{what}: {key}: missing key")
        for key in table:
            if key not in (*needed, *optional, "kind"):
                raise ValueError(f"{what}: {key}: unknown key, there are {', '.join((*needed, *optional))}")
        try:
            out.append(make(*(table[key] for key in needed), *(table.get(key) for key in optional)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what}: {error}") from None
    return out
