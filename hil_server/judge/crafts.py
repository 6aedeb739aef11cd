"""What moves and bears load within the crafts: joints, measured points and named interfaces, from the channels of a dynamics part.

A part that has them logs `joint_position`, `joint_rate`, `joint_torque` (one each), `sensor_acceleration` (three each) and
`interface_wrench` (six each), for the active craft first; its notes in the log say which is which: `joints active arm_1, target wing_2`,
likewise `sensors ...`, `interfaces ...`, `modes ...` (of `modal_coordinate`). What the notes do not name is unused room in the channels
and is left out.
"""

import re
from collections.abc import Iterable

import numpy as np

from hil_server.judge.run import Run
from hil_server.log.moments import STAND
from hil_server.log.reader import Log

KINDS = ("joints", "sensors", "interfaces")
NOTE = re.compile(rf"(?:dynamics: )+({'|'.join([*KINDS, 'modes'])}) (\S.*)")
Crafts = dict[str, list[dict[str, str | float]]]  # kind → rows by name
WIDTH = {"joint_position": 1, "joint_rate": 1, "joint_torque": 1, "sensor_acceleration": 3, "interface_wrench": 6}


def names_in(notes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Names of the joints, sensors and interfaces in the order of their channels; a kind that no note tells of is not in it."""
    found = (NOTE.fullmatch(note) for note in notes)
    return {match[1]: tuple(match[2].split(", ")) for match in found if match}


def is_names(note: str) -> bool:
    """Whether a note is for this module and not for people."""
    return NOTE.fullmatch(note) is not None


def series(log: Log, channel: str, count: int) -> np.ndarray | None:
    """(n, count, width) of a channel's first `count` entries, None where the log has no such channel or too little of it."""
    width = WIDTH[channel]
    if channel not in {one.name for one in log.header.aux} or not count:
        return None
    values = log.aux(channel).reshape(log.ticks, -1)
    return values[:, : count * width].reshape(log.ticks, count, width) if values.shape[1] >= count * width else None


def crafts_of(run: Run) -> Crafts | None:
    """Peaks of the closed loop (of a run in which it was never closed: of all) by name, JSON values; None for a run whose dynamics part
    has no such channels.

    joints: name, position_min, position_max, rate_peak, torque_peak (with sign) and rate_time_s, torque_time_s; sensors: name,
    acceleration_peak_m_s2 and acceleration_time_s; interfaces: name, force_peak_n, moment_peak_n_m and force_time_s, moment_time_s. Joints:
    rad, rad/s, N.m, or m, m/s, N of a joint that slides. A value that is no finite number is passed over.
    """
    log, names = run.log, names_in(run.log.header.notes)
    if not names or not log.ticks:
        return None
    moments = run.moments
    closed = np.flatnonzero(moments != STAND) if (moments != STAND).any() else np.arange(log.ticks)
    rows: Crafts = {kind: [{"name": name} for name in names.get(kind, ())] for kind in KINDS}
    joints, sensors, interfaces = rows.values()
    position = series(log, "joint_position", len(joints))
    if position is not None:
        for row, course in zip(joints, position[closed, :, 0].T, strict=True):
            known = course[np.isfinite(course)]
            if len(known):
                row |= {"position_min": float(known.min()), "position_max": float(known.max())}
    for what in ("rate", "torque"):
        _peaks(log, closed, joints, f"joint_{what}", slice(0, 1), f"{what}_peak", f"{what}_time_s", signed=True)
    _peaks(log, closed, sensors, "sensor_acceleration", slice(0, 3), "acceleration_peak_m_s2", "acceleration_time_s")
    _peaks(log, closed, interfaces, "interface_wrench", slice(0, 3), "force_peak_n", "force_time_s")
    _peaks(log, closed, interfaces, "interface_wrench", slice(3, 6), "moment_peak_n_m", "moment_time_s")
    return rows


def _peaks(log: Log, closed: np.ndarray, rows: list[dict[str, str | float]], channel: str, part: slice, value: str, at: str,
           signed: bool = False) -> None:  # fmt: skip
    """The largest length of the vector `part` of each entry in the records `closed`, and when; signed: of a number, with its sign."""
    values = series(log, channel, len(rows))
    if values is None:
        return
    for i, row in enumerate(rows):
        size = np.linalg.norm(values[closed, i, part], axis=1)
        size[~np.isfinite(size)] = -1.0
        peak = float(size.max(initial=-1.0))
        if peak >= 0.0:
            most = int(closed[size.argmax()])
            row |= {value: float(values[most, i, part.start]) if signed else peak, at: float(log.time_s[most])}
