"""Latch law of a docking unit: the axial force that it needs to be captured, over miss and tilt, from its own kernel.

The base of the active unit is led straight along the docking axis at a constant slow speed, miss and tilt held, from the first touch to the
capture. The largest axial force on the way is what an arm or a thruster has to bring (an arm: `hil_server.judge.arm_margin`). What gives
way aside is the unit alone: one without lateral springs needs more here than on an arm that yields. The miss lies along Y of the target
port; the tilt is about Z, a head that is carried beside the axis pointing further aside.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hil_server.line.initial_conditions import first_contact
from rt_kernels.algebra.arrays import quat_from_yaw_pitch_roll
from rt_kernels.layout import BITS

SPEED_M_S = 0.005  # inertia and dampers of a unit add little
STEP_S = 0.0005
CLEAR_M = 0.1  # in front of the first touch of the bodies, which the latches precede
FURTHEST_M = 0.5  # of a way without capture
STIFFEST_N = 5000.0  # more is no insertion: the units jam
CAPTURED = BITS["mechanism_signal"]["DSG"]
MISSES_M = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02)
TILTS_DEG = (0.0, 0.25, 0.5, 1.0)


class Insertion(NamedTuple):
    """One way in. force_n: largest axial force before the capture; aside_n: largest force across. captured: the way ended so."""

    miss_m: float
    tilt_deg: float
    force_n: float
    aside_n: float
    captured: bool


def insertion(part: Any, miss_m: float, tilt_deg: float) -> Insertion:
    """Leads a unit (`rt_kernels.plugs.MechanismPart` with `max_penetration`) in once; the part is left as it was given. Raises
    ConfigurationError where the units do not touch."""
    q = quat_from_yaw_pitch_roll(0.0, np.radians(tilt_deg), 0.0)

    def pose_at(x: float) -> np.ndarray:
        return np.array([x, miss_m, 0.0, *q])

    before = part.snapshot()
    X = pose_at(first_contact(lambda x: part.max_penetration(pose_at(x)), 1e-4) - CLEAR_M)
    force = aside = travel = 0.0
    captured = False
    while not captured and force < STIFFEST_N and travel < FURTHEST_M:
        X, rows = part.glide(X, [SPEED_M_S, 0.0, 0.0, 0.0, 0.0, 0.0], STEP_S, 400)
        travel += 400 * STEP_S * SPEED_M_S
        on = (rows[:, 12].astype(int) & CAPTURED) != 0
        captured = bool(on.any())
        rows = rows[: int(np.argmax(on))] if captured else rows
        if len(rows):
            force = max(force, float(rows[:, 0].max()))
            aside = max(aside, float(np.linalg.norm(rows[:, 1:3], axis=1).max()))
    part.restore(before)
    return Insertion(miss_m, tilt_deg, force, aside, captured)


def insertion_law(part: Any, misses_m: Sequence[float] = MISSES_M, tilts_deg: Sequence[float] = TILTS_DEG) -> list[Insertion]:
    """Every miss with every tilt."""
    return [insertion(part, miss, tilt) for miss in misses_m for tilt in tilts_deg]


def in_words(law: Sequence[Insertion]) -> list[str]:
    """Table of the force, N, a row for each miss and a column for each tilt."""
    tilts = list(dict.fromkeys(one.tilt_deg for one in law))
    rows = ["axial force until the capture, N, led straight in", "miss, mm  tilt " + "".join(f"{tilt:>9g}" for tilt in tilts) + " deg"]
    for miss in dict.fromkeys(one.miss_m for one in law):
        row = [one for one in law if one.miss_m == miss]
        shown = [f"{one.force_n:.0f}" if one.captured else "jams" if one.force_n >= STIFFEST_N else "none" for one in row]
        rows.append(f"{1e3 * miss:8g}       " + "".join(f"{text:>9s}" for text in shown))
    return rows
