"""The moments of a docking, as the samples tell them, and the largest loads of each.

    stand        the loop is open: the stand moves by itself, before and after the docking (the retreat opens the latches, too)
    approach     the loop is closed, nothing has touched yet
    impact       from the first contact (or a capture before it) on: impact and damping
    retraction   from the capture on: the drive draws the units together
    closure      in the retraction, from the first "planes together" on
    docked       the sequence is complete, or the model is joined
    release      after a capture: the unit is commanded to release, until the contact that follows has ended
    separation   after it; also a retreat without a capture

They come in this order and none comes back while the loop is closed: the moment of a record is the latest that has begun. Loads of the
docking are those of the closed loop; its headline is the impact. A force is the length of F_T[:3], a moment that of F_T[3:].
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rt_kernels.layout import BITS, CODES

MOMENTS = {
    "stand": "the stand's own motion",
    "approach": "closed loop before the first contact",
    "impact": "impact and damping",
    "retraction": "retraction",
    "closure": "closure",
    "docked": "docked",
    "release": "release",
    "separation": "separation",
}
STAND, APPROACH, IMPACT, RETRACTION, CLOSURE, DOCKED, RELEASE, SEPARATION = range(len(MOMENTS))
HEADLINE = "impact"
WRENCH_NAMES = ("fx_n", "fy_n", "fz_n", "mx_n_m", "my_n_m", "mz_n_m")
WHEN = {"force_n": "force_time_s", "moment_n_m": "moment_time_s"}
NO_BLOW_S = 1.0  # a release that nothing is felt of ends after so long
OPEN = [CODES["motion"][name] for name in ("follow_profile", "freeze")]
JOINED = CODES["motion"]["joined"]
SEQUENCE, COMMAND = CODES["sequence"], BITS["mechanism_command"]
TOGETHER = BITS["mechanism_signal"]["planes_together"]
Row = dict[str, Any]  # the loads of a moment, as `Peaks.rows` names them
FIELDS = ("time_ns", "motion", "first_contact_time", "capture_time", "sequence", "mechanism_command", "signal_discrete", "contact")


class Moments:
    """Tells the moment of each record of a run. Records come in their order, all at once or in blocks."""

    def __init__(self) -> None:
        self._latest = APPROACH
        self._released_ns: int | None = None
        self._felt = False

    def of(self, records: np.ndarray | Mapping[str, np.ndarray]) -> np.ndarray:
        """Place in MOMENTS of each record, (n,). records: (n,), or their columns FIELDS."""
        r = {name: np.asarray(records[name]) for name in FIELDS}
        closed = ~np.isin(r["motion"], OPEN)
        captured = closed & (r["capture_time"] >= 0.0)
        begun = captured | (closed & (r["first_contact_time"] >= 0.0))
        found = np.where(begun, IMPACT, APPROACH)
        drive, extend, release = ((r["mechanism_command"] & COMMAND[name]) != 0 for name in ("drive", "extend", "release"))
        found[captured & ((r["sequence"] == SEQUENCE["retract"]) | (drive & ~extend))] = RETRACTION
        drawn = self._progress(found) >= RETRACTION
        found[drawn & closed & ((r["signal_discrete"] & TOGETHER) != 0)] = CLOSURE
        found[closed & ((r["sequence"] == SEQUENCE["complete"]) | (r["motion"] == JOINED))] = DOCKED
        found[captured & ((r["sequence"] == SEQUENCE["separation"]) | release)] = RELEASE
        found[closed & (r["sequence"] == SEQUENCE["retreat"])] = SEPARATION
        found[~closed] = APPROACH
        progress = self._progress(found)
        progress = np.where(closed & self._apart(r, progress), SEPARATION, progress)
        progress = np.maximum.accumulate(progress)
        if len(progress):
            self._latest = int(progress[-1])
        moments: np.ndarray = np.where(closed, progress, STAND)
        return moments

    def _progress(self, found: np.ndarray) -> np.ndarray:
        latest: np.ndarray = np.maximum(np.maximum.accumulate(found), self._latest)
        return latest

    def _apart(self, r: Mapping[str, np.ndarray], progress: np.ndarray) -> np.ndarray:
        """Whether the contact that followed the release has ended, (n,)."""
        released: np.ndarray = progress == RELEASE
        if not released.any():
            return released
        first = int(np.argmax(released))
        if self._released_ns is None:
            self._released_ns = int(r["time_ns"][first])
        touching = released & (r["contact"] != 0)
        felt = np.maximum.accumulate(touching) | self._felt
        self._felt = bool(felt[-1])
        waited = (r["time_ns"] - self._released_ns) * 1e-9 > NO_BLOW_S
        found: np.ndarray = released & (r["contact"] == 0) & (felt | waited)
        return found


class Peaks:
    """The largest loads of each moment of a run, gathered from records in their order."""

    def __init__(self) -> None:
        self._moments = Moments()
        self._rows: dict[int, Row] = {}

    def see(self, records: np.ndarray) -> np.ndarray:
        """Takes the next records; gives their moments, places in MOMENTS, (n,)."""
        found = self._moments.of(records)
        time_s, F = records["time_ns"] * 1e-9, records["F_T"]
        sizes = {"force_n": np.linalg.norm(F[:, :3], axis=1), "moment_n_m": np.linalg.norm(F[:, 3:], axis=1)}
        for place in np.unique(found):
            inside = np.flatnonzero(found == place)
            row = self._rows.get(int(place))
            if row is None:
                row = self._rows[int(place)] = {
                    "moment": list(MOMENTS)[place], "from_s": float(time_s[inside[0]]), "to_s": 0.0,
                    "force_n": -1.0, "force_time_s": 0.0, "moment_n_m": -1.0, "moment_time_s": 0.0,
                    "wrench": dict.fromkeys(WRENCH_NAMES, 0.0), "wrench_time_s": dict.fromkeys(WRENCH_NAMES, float(time_s[inside[0]])),
                }  # fmt: skip
            row["to_s"] = float(time_s[inside[-1]])
            for name, size in sizes.items():
                at = inside[np.nanargmax(size[inside])] if np.isfinite(size[inside]).any() else inside[0]
                if size[at] > row[name]:
                    row[name], row[WHEN[name]] = float(size[at]), float(time_s[at])
            for i, name in enumerate(WRENCH_NAMES):
                at = inside[np.abs(F[inside, i]).argmax()]
                if abs(F[at, i]) > abs(row["wrench"][name]):
                    row["wrench"][name], row["wrench_time_s"][name] = float(F[at, i]), float(time_s[at])
        return found

    def rows(self) -> list[Row]:
        """Those that the run came to, in the order of MOMENTS: moment, from_s, to_s, force_n and force_time_s, moment_n_m and
        moment_time_s, wrench and wrench_time_s (components by WRENCH_NAMES, with their sign)."""
        return [self._rows[place] for place in sorted(self._rows)]

    def closed(self) -> Row | None:
        """The same of the whole closed loop; None where it never was closed."""
        rows = [row for row in self.rows() if row["moment"] != "stand"]
        if not rows:
            return None
        force, moment = (max(rows, key=lambda row: row[name]) for name in ("force_n", "moment_n_m"))
        most = {name: max(rows, key=lambda row: abs(row["wrench"][name])) for name in WRENCH_NAMES}
        return {
            "from_s": min(row["from_s"] for row in rows), "to_s": max(row["to_s"] for row in rows),
            "force_n": force["force_n"], "force_time_s": force["force_time_s"],
            "moment_n_m": moment["moment_n_m"], "moment_time_s": moment["moment_time_s"],
            "wrench": {name: row["wrench"][name] for name, row in most.items()},
            "wrench_time_s": {name: row["wrench_time_s"][name] for name, row in most.items()},
        }  # fmt: skip

    def headline(self) -> Row | None:
        """The row of the impact; None for a run without one."""
        return next((row for row in self.rows() if row["moment"] == HEADLINE), None)


def peaks_of(records: np.ndarray) -> Peaks:
    """Of a whole run's records, (n,)."""
    found = Peaks()
    if len(records):
        found.see(records)
    return found
