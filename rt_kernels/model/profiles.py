"""Profiles: functions of the time since an event, by which joints are moved and bodies loaded. Set-up only.

A profile is a sine (frequency_hz, phase_deg), or pieces through points (times_s, values; from a CSV of two columns: file), straight or a
cubic spline, once or repeated. It has no unit: what uses it says what 1 is. Before the first point and behind the last one it stays where
it is. The kernel reads it as rows [t, c0, c1, c2, c3]: c0 + c1 s + c2 s^2 + c3 s^3 with s = time - t, from t to that of the next row
(`rt_kernels.dynamics.profile`).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.parameters import Parameter, checked

POINTS_MAX = 20_000
KEYS = (
    Parameter("name", "str", "-", "name of the profile"),
    Parameter("frequency_hz", "float", "Hz", "of a sine; 0: the profile goes through points", 0.0, 0.0, 1e3),
    Parameter("phase_deg", "float", "deg", "of the sine at the event; 90: a cosine", 0.0, -360.0, 360.0),
    Parameter("times_s", "floats", "s", "of the points, since the event; a time that stands twice: a jump", (), 0.0, 1e6),
    Parameter("values", "floats", "-", "at these times", (), -1e9, 1e9),
    Parameter("file", "str", "-", "CSV with two columns, times and values, in the place of both keys", ""),
    Parameter("interpolation", "str", "-", "between the points: straight, or a cubic spline at rest at both ends", "linear",
              choices=("linear", "cubic")),
    Parameter("repeats", "bool", "-", "true: from the last point on as from the time 0", False),
)  # fmt: skip


def with_data(table: Any, folder: Path) -> Any:
    """A table of a profile with the points of its file, which the configuration keeps; what has no file stays as it is. Raises ValueError;
    OSError for a file that cannot be read."""
    if not isinstance(table, dict) or not isinstance(table.get("file"), str) or not table["file"]:
        return table
    file = folder / table["file"]
    with file.open(newline="") as text:
        rows = [row for row in csv.reader(text) if row and not row[0].lstrip().startswith("#")]
    points = []
    for number, row in enumerate(rows):
        try:
            time, value = (float(cell) for cell in row)
        except ValueError:
            if number == 0 and len(row) == 2:
                continue  # the names of the columns
            raise ValueError(f"{file.name}: row {number + 1}: {','.join(row)!r:.60}, limit two numbers: time in s, value") from None
        points.append((time, value))
    rest = {key: value for key, value in table.items() if key != "file"}
    return rest | {"times_s": [time for time, _ in points], "values": [value for _, value in points]}


class Profile:
    """One profile as its table says. frequency_hz 0: by `rows` (n, 5), else a sine with `phase` in turns; period_s 0: once.

    Raises ValueError with where, key, value and limit."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        given = checked(KEYS, table, where)
        self.name: str = given["name"]
        self.frequency_hz: float = given["frequency_hz"]
        self.phase: float = given["phase_deg"] / 360.0
        self.period_s = 0.0
        self.rows = np.zeros((0, 5))
        times, values = given["times_s"], given["values"]
        if self.frequency_hz and (times or values):
            raise ValueError(f"{where}.frequency_hz: a profile is a sine or goes through points, limit one of the two")
        if self.frequency_hz:
            return
        if not times and not values:
            raise ValueError(f"{where}.times_s: points are missing: times_s and values, or frequency_hz")
        if not 2 <= len(times) <= POINTS_MAX or len(values) != len(times):
            raise ValueError(f"{where}.values: {len(values)} values at {len(times)} times, limit as many, 2 ... {POINTS_MAX}")
        if np.any(np.diff(times) < 0.0):
            number = int(np.argmax(np.diff(times) < 0.0)) + 1
            raise ValueError(f"{where}.times_s[{number}]: {times[number]:g} s, limit not before {times[number - 1]:g} s")
        if given["repeats"]:
            self.period_s = times[-1]
        if given["repeats"] and not self.period_s > 0.0:
            raise ValueError(f"{where}.repeats: the last of times_s is {times[-1]:g} s, limit above 0")
        self.rows = _cubic(times, values, given["repeats"], where) if given["interpolation"] == "cubic" else _linear(times, values)

    @property
    def jumps(self) -> bool:
        """Whether its value does, between two points or where it begins again."""
        if self.frequency_hz:
            return False
        ends = self._at(np.append(np.diff(self.rows[:, 0]), 0.0))
        again = self.period_s > 0.0 and not np.isclose(ends[-1], self.rows[0, 1], rtol=1e-9, atol=1e-12)
        return bool(again or not np.allclose(ends[:-1], self.rows[1:, 1], rtol=1e-9, atol=1e-12))

    def range(self) -> tuple[float, float]:
        """Least and largest value; of a spline at 33 places between points."""
        if self.frequency_hz:
            return -1.0, 1.0
        lengths = np.append(np.diff(self.rows[:, 0]), 0.0)
        found = np.array([self._at(share * lengths) for share in np.linspace(0.0, 1.0, 33)])
        return float(found.min()), float(found.max())

    def fastest(self) -> float:
        """Largest rate, 1/s, likewise."""
        if self.frequency_hz:
            return 2.0 * np.pi * self.frequency_hz
        _, _, c1, c2, c3 = self.rows.T
        lengths = np.append(np.diff(self.rows[:, 0]), 0.0)
        return float(max(np.abs(c1 + s * (2.0 * c2 + 3.0 * s * c3)).max() for s in np.linspace(0.0, 1.0, 33)[:, None] * lengths))

    def _at(self, s: np.ndarray) -> np.ndarray:
        _, c0, c1, c2, c3 = self.rows.T
        found: np.ndarray = c0 + s * (c1 + s * (c2 + s * c3))
        return found


def _linear(times: Sequence[float], values: Sequence[float]) -> np.ndarray:
    t, x = np.array(times), np.array(values)
    rows = np.zeros((len(t), 5))
    rows[:, 0], rows[:, 1] = t, x
    lengths = np.diff(t)
    rows[:-1, 2] = np.divide(np.diff(x), lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return rows


def _cubic(times: Sequence[float], values: Sequence[float], repeats: bool, where: str) -> np.ndarray:
    from scipy.interpolate import CubicSpline

    t, x = np.array(times), np.array(values)
    if np.any(np.diff(t) <= 0.0):
        raise ValueError(f"{where}.times_s: {t[int(np.argmax(np.diff(t) <= 0.0))]:g} s stands twice, limit once with interpolation 'cubic'")
    if repeats and (t[0] != 0.0 or x[0] != x[-1]):
        raise ValueError(f"{where}.values: from {x[0]:g} at {t[0]:g} s to {x[-1]:g}, limit of a spline that repeats: from the time 0 on, "
                         "with the same value at both ends")  # fmt: skip
    pieces = CubicSpline(t, x, bc_type="periodic" if repeats else "clamped").c
    rows = np.zeros((len(t), 5))
    rows[:, 0], rows[:, 1] = t, x
    rows[:-1, 1:] = pieces[::-1].T
    return rows
