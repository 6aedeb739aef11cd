"""A record as scalar columns for people and other tools: names, units, angles."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hil_server.telemetry.log_file import Log
from hil_server.telemetry.record import scalar_names
from rt_kernels.layout import FIELDS


@dataclass(frozen=True)
class Column:
    """One scalar channel of a log. values: (n,), contiguous."""

    name: str
    channel: str
    unit: str
    frame: str
    role: str
    meaning: str
    values: np.ndarray


def scalar_units(unit: str, count: int) -> list[str]:
    """Unit of each component of a channel: "N,N.m" of six is three and three, "m,-" of a pose three and four, "-,s,s2" one each."""
    parts = unit.split(",")
    if count == 1:
        return [unit]  # of one that may be either, as "m,rad"
    if len(parts) == 1:
        return parts * count
    if len(parts) == count:
        return parts
    if len(parts) == 2 and count in (6, 7):
        return [parts[0]] * 3 + [parts[1]] * (count - 3)
    raise ValueError(f"unit {unit!r} does not say which of {count} components it is for")


def columns(log: Log) -> Iterator[Column]:
    """Every scalar of the log: the fields in the order of the tick, then the auxiliary channels."""
    for name, _, count, unit, frame, _, role, _, meaning in FIELDS:
        data = log.records[name].reshape(log.ticks, count)
        for i, (scalar, part) in enumerate(zip(scalar_names(name, count), scalar_units(unit, count), strict=True)):
            yield Column(scalar, name, part, frame, role, meaning, np.ascontiguousarray(data[:, i]))
    for channel in log.header.aux:
        for i, scalar in enumerate(scalar_names(channel.name, channel.count)):
            values = np.ascontiguousarray(log.records["aux"][:, channel.offset + i])
            yield Column(scalar, channel.name, channel.unit, "", "auxiliary", channel.meaning, values)


def yaw_pitch_roll(pose: np.ndarray) -> np.ndarray:
    """Angles for people from poses (n, 7): yaw about Y, pitch about Z, roll about X, in that order of rotation, rad, (n, 3).

    R = R_y(yaw) R_z(pitch) R_x(roll), so R[1,0] = sin(pitch), R[2,0]/R[0,0] = -tan(yaw), R[1,2]/R[1,1] = -tan(roll).
    """
    x, y, z, w = pose[:, 3:].T
    pitch = np.arcsin(np.clip(2.0 * (x * y + w * z), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * y - x * z), 1.0 - 2.0 * (y * y + z * z))
    roll = np.arctan2(2.0 * (w * x - y * z), 1.0 - 2.0 * (x * x + z * z))
    return np.column_stack([yaw, pitch, roll])
