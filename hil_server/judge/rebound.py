"""Restitution of a contact from the free motion on either side of it: one definition, for the report, the screen and the prediction.

    e = -s_after / s_before        s = u.V speed of the contact point along the screw u

u is the contact's mean wrench with a force of length one, V the twist of A relative to T of the point at T's origin. The contact flag has
thresholds, and at a threshold the motion is not free any more: half of the peak of an elastic contact is one eighth of its energy. So the
ticks are sought outwards from the flag: to where neither the measured force nor the corrected one, which moves the model, stands out of the
noise, and from there on by twice the time in which it rose through the last bit. Where no such ticks are, nothing is measured, and the
reason is given instead.

Control forces change the speed between those ticks and the touch; that change is taken off. In the contact itself they do no work that
counts: between touch and parting the units move in and out again by the same way.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from rt_kernels.compensation.effective_mass import inverse_inertia, rotation
from rt_kernels.context import Vehicles
from rt_kernels.layout import CODES

LEAST_SPEED = 1e-4  # m/s: a contact met more slowly along its own direction has no restitution
LEAST_FORCE = 0.003  # of the peak: a smaller force is none
NOISE = 4.0  # standard deviations that a force must exceed
MOST_NOISE = 0.25  # of the peak: with more noise the ends of the contact cannot be seen
QUIET = 3  # ticks in a row without force
MOST_TIMES = 4  # that `not_measured` names of one reason
NOT_SEPARATED = "not measurable: the bodies do not separate"
WINDOW = 500  # ticks of free motion that noise and offset are taken from


@dataclass(frozen=True)
class Rebound:
    """restitution: e, or None, and then `why` says what it was instead. before, after: rows of free motion on either side, or None."""

    restitution: float | None
    why: str = ""
    before: int | None = None
    after: int | None = None


def speed_along(records: np.ndarray, screw: np.ndarray) -> np.ndarray:
    """u.V of every record, (n,), m/s: V of the point of A at the origin of T."""
    V = records["V_TA"]
    found: np.ndarray = (V[:, :3] - np.cross(V[:, 3:], records["X_TA"][:, :3])) @ screw[:3] + V[:, 3:] @ screw[3:]
    return found


def screw_of(records: np.ndarray, start: int, stop: int) -> np.ndarray | None:
    """Mean wrench (6,) of the rows start...stop-1 with a force of length one; None without a force."""
    mean = records["F_T"][start:stop].mean(axis=0)
    size = float(np.linalg.norm(mean[:3]))
    return mean / size if size > 0.0 else None


def rebound(records: np.ndarray, start: int, stop: int, period_s: float, vehicles: Vehicles | None = None,
            screw: np.ndarray | None = None) -> Rebound:  # fmt: skip
    """e of the contact whose flag is set in the rows start...stop-1. vehicles: the two as rigid bodies, for the share of control
    forces; without it a contact under control forces is not measured. screw (6,): where it is known; none: the mean wrench."""
    screw = screw_of(records, start, stop) if screw is None else screw
    if screw is None:
        return Rebound(None, "no force was measured")
    if stop >= len(records):
        return Rebound(None, "the log ends in it")
    ends = free_motion(records, start, stop, screw)
    if isinstance(ends, str):
        return Rebound(None, ends)
    before, touch, parted, after = ends
    s = speed_along(records[[before, after]], screw)
    pushed = [control_gain(records[i : j + 1], screw, period_s, vehicles) for i, j in ((before, touch), (parted, after))]
    if pushed[0] is None or pushed[1] is None:
        return Rebound(None, "control forces act beside it", before, after)
    if records["capture_time"][after] >= 0.0:
        return Rebound(None, "the latches hold", before, after)
    if abs(s[0]) < LEAST_SPEED:
        return Rebound(None, "a graze", before, after)
    e = -(s[1] - pushed[1]) / (s[0] + pushed[0])
    if e <= 0.0:
        return Rebound(None, NOT_SEPARATED, before, after)
    return Rebound(float(e), "", before, after)


class Measured(TypedDict):
    """What of a contact `not_measured` tells."""

    begin_s: float
    rebound: float | None
    rebound_note: str


def not_measured(contacts: Sequence[Measured]) -> list[str]:
    """A line for each reason for which contacts of a summary have no e: how many, why, when they began. Reasons that differ in their
    figures alone are one, with the figures of the first."""
    found: dict[str, list[Measured]] = {}
    for one in contacts:
        if one["rebound"] is None:
            found.setdefault(re.sub(r"\d[\d.e+-]*", "#", one["rebound_note"]), []).append(one)
    lines = []
    for rows in found.values():
        when = ", ".join(f"{one['begin_s']:.3f}" for one in rows[:MOST_TIMES]) + (" ..." if len(rows) > MOST_TIMES else "")
        lines.append(f"{len(rows)} without e, {rows[0]['rebound_note']}: at {when} s")
    return lines


def free_motion(records: np.ndarray, start: int, stop: int, screw: np.ndarray) -> tuple[int, int, int, int] | str:
    """Rows of the contact start...stop-1: in free motion before it, at the touch, at the parting, in free motion after it; or why there are
    none, in words."""
    closed = (records["motion"] == CODES["motion"]["free"]) | (records["motion"] == CODES["motion"]["close_loop"])
    if not closed[start:stop].all():
        return "the loop was opened in it"
    # as far as the loop is closed and no other contact is flagged
    alone = closed & (records["contact"] == 0)
    low = start - _length(alone[:start][::-1])
    high = stop + _length(alone[stop:])
    part = slice(low, high)
    scale = float(screw @ screw)
    felt, moved = records["F_T"][part] @ screw / scale, records["F_T_corrected"][part] @ screw / scale
    a, b = start - low, stop - low
    offset, noise = _noise(felt[max(0, a - WINDOW) : a], felt[b : b + WINDOW])
    load = np.maximum(np.abs(felt - offset), np.abs(moved - offset))
    peak = float(load[a:b].max())
    level = max(LEAST_FORCE * peak, NOISE * noise)
    if level > MOST_NOISE * peak:
        return f"the force's noise, {noise:.2g} N, hides its ends"
    first = _outwards(load[:b][::-1], b - a, level)
    if first is None:
        return "no free motion before it"
    last = _outwards(load[a:], b - a, level)
    if last is None:
        return "no free motion after it"
    (touch, before), (parted, after) = first, last
    return low + b - 1 - before, low + b - 1 - touch, low + a + parted, low + a + after


def _length(flags: np.ndarray) -> int:
    """How many are set in a row from the first on."""
    clear = np.flatnonzero(~flags)
    return int(clear[0]) if len(clear) else len(flags)


def _noise(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Offset and standard deviation of the force in free motion, robust against the ends of the contact in the windows."""
    window = before if len(before) >= len(after) else after
    if len(window) < 10:
        return 0.0, 0.0
    offset = float(np.median(window))
    return offset, 1.4826 * float(np.median(np.abs(window - offset)))


def _outwards(load: np.ndarray, inside: int, level: float) -> tuple[int, int] | None:
    """Row at which a contact that lies in the first `inside` rows of `load` ends, and one of free motion behind it; None where none is."""
    quiet = load <= level
    run = quiet[: -(QUIET - 1)] & quiet[1 : -(QUIET - 2)] & quiet[QUIET - 1 :] if len(quiet) >= QUIET else np.zeros(0, bool)
    # the flag outlasts the force by its own time: from the last force in it on
    held = int(np.flatnonzero(load[:inside] > level)[-1]) + 1
    ends = np.flatnonzero(run[held:])
    if not len(ends):
        return None
    end = held + int(ends[0])
    # how long the force took from twice the level to the level: about as long as from there to nothing
    loud = np.flatnonzero(load[:end] > 2.0 * level)
    fall = end - (int(loud[-1]) if len(loud) else 0)
    row = end + 2 * fall + 1
    return (end, row) if row < len(load) else None


def control_gain(records: np.ndarray, screw: np.ndarray, period_s: float, vehicles: Vehicles | None) -> float | None:
    """What the control wrenches on both vehicles add to the speed along the screw over these rows, m/s; None where it cannot be told.

    Each wrench, moved from the centre of mass to the origin of T, times the vehicle's inverse inertia there
    (rt_kernels.compensation.effective_mass); the speed is that of A relative to T."""
    if not (records["control_A"].any() or records["control_T"].any()):
        return 0.0
    if vehicles is None:
        return None
    X_TA, X_CA, X_VT = (np.asarray(X, float) for X in (records["X_TA"][0], vehicles.active.X_port, vehicles.target.X_port))
    R_TV = rotation(X_VT[3:]).T
    R_TC = rotation(X_TA[3:]) @ rotation(X_CA[3:]).T
    seconds = period_s * np.maximum(records["periods"][1:], 1)
    gain = 0.0
    for sign, name, vehicle, R, p in (
        (1.0, "control_A", vehicles.active, R_TC, X_TA[:3] - R_TC @ X_CA[:3]),
        (-1.0, "control_T", vehicles.target, R_TV, -R_TV @ X_VT[:3]),
    ):
        f, m = records[name][:, :3] @ R.T, records[name][:, 3:] @ R.T
        W_T = np.hstack([f, m + np.cross(p, f)])
        gain += sign * float((W_T[1:] @ inverse_inertia(vehicle, R, p) @ screw) @ seconds)
    return gain
