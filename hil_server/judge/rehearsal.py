"""The rehearsal record: what an operator did in one berthing attempt, in figures out of its log, and over many attempts.

Everything is counted while the loop is closed (`motion` free). The hand controllers are weighed as they reached the loop, after deadman and
age checks: use of a stick is the integral of its deflection (full deflection for a second is 1 s), like fuel; overshoots are the times that
an axis went from one side to the other.

An operator whose loop is unstable keeps a stick going to and fro (a limit cycle); one that is stable steps it, and lets the step die away.
`oscillation` tells them apart by the spectrum.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from hil_server import registry
from hil_server.judge.record_time import integral
from hil_server.judge.run import Run
from hil_server.log.reader import Log
from hil_server.requirements.angles import yaw_pitch_roll
from rt_kernels.codes import code_name
from rt_kernels.layout import BITS, CODES

# key of the score sheet → title of its column in the trend, and how to write it
TREND = {
    "captured": ("captured", ""),
    "time_to_capture_s": ("to capture, s", ".1f"),
    "lateral_miss_m": ("miss, mm", "1000.1f"),
    "angle_miss_deg": ("angle, deg", ".2f"),
    "closing_speed_m_s": ("closing, mm/s", "1000.1f"),
    "peak_contact_force_n": ("contact, N", ".0f"),
    "peak_load_part": ("arm load of limit", ".2f"),
    "stick_translation_s": ("translation stick, s", ".1f"),
    "stick_rotation_s": ("rotation stick, s", ".1f"),
    "overshoots": ("overshoots", ".0f"),
    "stick_oscillation": ("stick oscillation", ".2f"),
    "stops": ("stops", ".0f"),
}

SPECTRUM_S = 20.0  # window of a spectrum; the second of two has to hold what the first one does
SPECTRUM_HZ = 10.0  # samples
FASTEST_HZ = 2.0  # of a hand
FINER = 4  # frequencies between those of the window, so that none is missed


def is_rehearsal(run: Run) -> bool:
    """Whether operators flew the run."""
    return bool(getattr(registry.part_of_table("guidance", run.document.get("guidance")), "FLOWN", False))


def arm_limits(run: Run) -> tuple[float, float] | None:
    """Allowed force (N) and moment (N.m) at the end effector, from the file of the arm that the run was made with; None without one."""
    dynamics = run.document.get("dynamics", {})
    part: Any = registry.part_of_table("dynamics", dynamics)
    if not getattr(part, "MANIPULATOR", False):
        return None
    table = part.model_tables(dynamics["model"], dynamics.get("model_data")).get("manipulator", {})
    return (float(table["force_max_n"]), float(table["moment_max_n_m"])) if "force_max_n" in table else None


def flight(run: Run) -> np.ndarray:
    """Which ticks were flown: the loop closed. (n,) bool."""
    found: np.ndarray = run.log.records["motion"] == CODES["motion"]["free"]
    return found


def arm_load(run: Run) -> np.ndarray | None:
    """Wrench at the end effector, (n, 6); None when the run had no manipulator."""
    log, names = run.log, run.log.aux_names
    if "arm_wrench_E[0]" not in names:
        return None
    first = names.index("arm_wrench_E[0]")
    return log.records["aux"][:, first : first + 6]


def sticks(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Translation and rotation deflections as the guidance took them, each (n, 3), -1...1."""
    log, source = run.log, run.document.get("guidance", {}).get("rotation_from", "right")
    right = {"right": 9, "right_first": 6, "left": 3}[source]
    return log.records["hand_axis"][:, :3], log.records["hand_axis"][:, right : right + 3]


def reversals(axes: np.ndarray) -> int:
    """How often an axis went from one side to the other, its rests left out. axes: (n, k)."""
    count = 0
    for column in axes.T:
        side = np.sign(column[column != 0.0])
        count += int(np.count_nonzero(side[1:] != side[:-1]))
    return count


def oscillation(t: np.ndarray, axes: np.ndarray) -> float:
    """Amplitude of the strongest sinusoid that a stick keeps up, in parts of full deflection; 0 for less than two windows of it.

    Spectra of windows of 20 s with their mean and slope taken away (Hann, at 10 Hz, from two periods in the window to 2 Hz); of each
    frequency the smaller amplitude of two windows that follow each other, so that a step, or its return, is not taken for one. Largest
    over frequencies, axes and times. t: (n,) s; axes: (n, k).
    """
    from scipy.signal import detrend

    n = round(SPECTRUM_S * SPECTRUM_HZ)
    grid = np.arange(t[0], t[-1], 1.0 / SPECTRUM_HZ) if len(t) else t
    if len(grid) < 2 * n:
        return 0.0
    held = axes[np.searchsorted(t, grid, side="right") - 1]
    taper = np.hanning(n + 1)[:-1, None]
    seen = slice(2 * FINER, int(FASTEST_HZ * SPECTRUM_S) * FINER + 1)
    starts = range(0, len(grid) - n + 1, round(SPECTRUM_HZ))
    amplitude = np.array([np.abs(np.fft.rfft(detrend(held[k : k + n], axis=0) * taper, FINER * n, axis=0))[seen] for k in starts])
    one_later = round(SPECTRUM_S)
    return float(2.0 / taper.sum() * np.minimum(amplitude[:-one_later], amplitude[one_later:]).max())


def onsets(on: np.ndarray) -> int:
    """How often a condition began. on: (n,) bool."""
    return int(np.count_nonzero(np.diff(on, prepend=False) & on))


class Miss(TypedDict, total=False):
    """How the units met at the first contact; None without one."""

    first_contact_s: float | None
    lateral_miss_m: float | None
    yaw_miss_deg: float | None
    pitch_miss_deg: float | None
    roll_miss_deg: float | None
    angle_miss_deg: float | None
    closing_speed_m_s: float | None
    lateral_speed_m_s: float | None
    turn_rate_deg_s: float | None


class Felt(TypedDict, total=False):
    """Peaks of the flight; peak_load_part: of the arm's limit."""

    peak_contact_force_n: float
    peak_contact_moment_n_m: float
    peak_load_force_n: float | None
    peak_load_moment_n_m: float | None
    peak_load_part: float | None


class Stops(TypedDict, total=False):
    """Steps and Inserts begun, and what stopped the flight, how often."""

    commands: int
    stops: int
    stopped_by: dict[str, int]


class Sheet(Miss, Felt, Stops, total=False):
    """One attempt in figures (`score_sheet`); of one that was not flown only the first ones."""

    operator: str
    test: str
    run: str
    created: float
    end: str
    captured: bool
    flown_s: float
    time_to_capture_s: float | None
    stick_translation_s: float
    stick_rotation_s: float
    commanded_m: float
    commanded_deg: float
    uncertain: dict[str, float]
    overshoots: int
    stick_oscillation: float


def score_sheet(run: Run) -> Sheet:
    """One attempt in figures, JSON values only; None where there was nothing to measure (no contact, no capture, no arm).

    operator, test, run, created (s since 1970), end, captured; flown_s, time_to_capture_s (from the closing of the loop);
    lateral_miss_m, yaw/pitch/roll_miss_deg, angle_miss_deg (all three), closing_speed_m_s, lateral_speed_m_s, turn_rate_deg_s at the first
    contact; peak_contact_force_n, peak_contact_moment_n_m, peak_load_force_n, peak_load_moment_n_m, peak_load_part (of the arm's limit, the
    larger of force and moment); stick_translation_s, stick_rotation_s, commanded_m, commanded_deg, and how uncertain these are in a thinned
    log (`uncertain`: key → bound in the same unit); overshoots; commands (Step, Insert
    begun); stops and of what: overload, joint_stop, aborted, hand_controller, hold.
    """
    log, config, flown = run.log, run.document, flight(run)
    r, t = log.records[flown], log.time_s[flown]
    sheet: Sheet = {
        "operator": config.get("test", {}).get("operator", ""),
        "test": config.get("test", {}).get("name", ""),
        "run": log.header.run_id,
        "created": log.header.created,
        "end": code_name("end_cause", int(log.records["end_cause"][-1])) if log.ticks else "none",
        "captured": bool(log.ticks and log.records["capture_time"][-1] >= 0.0),
        "flown_s": float(t[-1] - t[0]) if len(t) else 0.0,
        "time_to_capture_s": None,
    }
    if not len(t):
        return sheet
    if sheet["captured"]:
        sheet["time_to_capture_s"] = float(log.records["capture_time"][-1] - t[0])
    whole, rate = sticks(run), log.records["operator_rate"]
    courses = {
        "stick_translation_s": np.abs(whole[0]).sum(axis=1),
        "stick_rotation_s": np.abs(whole[1]).sum(axis=1),
        "commanded_m": np.linalg.norm(rate[:, :3], axis=1),
        "commanded_deg": np.degrees(np.linalg.norm(rate[:, 3:], axis=1)),
    }
    used = {key: integral(run, course, flown) for key, course in courses.items()}
    return {
        **sheet,
        **_first_contact(r, t, run.log),
        **_loads(run, flown),
        "stick_translation_s": used["stick_translation_s"][0],
        "stick_rotation_s": used["stick_rotation_s"][0],
        "commanded_m": used["commanded_m"][0],
        "commanded_deg": used["commanded_deg"][0],
        "uncertain": {key: bound for key, (_, bound) in used.items() if bound > 0.0},
        "overshoots": reversals(whole[0][flown]) + reversals(whole[1][flown]),
        "stick_oscillation": oscillation(t, np.hstack(whole)[flown]),
        **_stops(r),
    }


def _first_contact(r: np.ndarray, t: np.ndarray, log: Log) -> Miss:
    moment = float(log.records["first_contact_time"][-1])
    if moment < 0.0:
        return {"first_contact_s": None, "lateral_miss_m": None, "yaw_miss_deg": None, "pitch_miss_deg": None, "roll_miss_deg": None,
                "angle_miss_deg": None, "closing_speed_m_s": None, "lateral_speed_m_s": None, "turn_rate_deg_s": None}  # fmt: skip
    # the tick before: the contact has not changed it yet
    s = r[max(int(np.searchsorted(t, moment)) - 1, 0)]
    yaw, pitch, roll = map(float, np.degrees(yaw_pitch_roll(s["X_TA"][None])[0]))
    return {
        "first_contact_s": moment - float(t[0]),
        "lateral_miss_m": float(np.hypot(*s["X_TA"][1:3])),
        "yaw_miss_deg": yaw,
        "pitch_miss_deg": pitch,
        "roll_miss_deg": roll,
        "angle_miss_deg": float(np.degrees(2.0 * np.arctan2(np.linalg.norm(s["X_TA"][3:6]), abs(s["X_TA"][6])))),
        "closing_speed_m_s": float(s["V_TA"][0]),
        "lateral_speed_m_s": float(np.hypot(*s["V_TA"][1:3])),
        "turn_rate_deg_s": float(np.degrees(np.linalg.norm(s["V_TA"][3:]))),
    }


def _loads(run: Run, flown: np.ndarray) -> Felt:
    force, moment = (np.linalg.norm(run.log.records["F_T"][flown, i : i + 3], axis=1).max() for i in (0, 3))
    found: Felt = {"peak_contact_force_n": float(force), "peak_contact_moment_n_m": float(moment), "peak_load_force_n": None,
                   "peak_load_moment_n_m": None, "peak_load_part": None}  # fmt: skip
    load = arm_load(run)
    if load is not None:
        peak = [float(np.linalg.norm(load[flown, i : i + 3], axis=1).max()) for i in (0, 3)]
        found["peak_load_force_n"], found["peak_load_moment_n_m"] = peak
        limits = arm_limits(run)
        if limits is not None:
            found["peak_load_part"] = max(peak[0] / limits[0], peak[1] / limits[1])
    return found


def _stops(r: np.ndarray) -> Stops:
    supervisory, status = CODES["supervisory"], r["dynamics_status"]
    begun = sum(onsets(r["supervisory"] == supervisory[name]) for name in ("step", "insert"))
    of = {
        "overload": onsets(status & BITS["dynamics_status"]["overload"] != 0),
        "joint_stop": onsets(status & BITS["dynamics_status"]["joint_near_stop"] != 0),
        "aborted": onsets(r["supervisory"] == supervisory["aborted"]),
        "hand_controller": onsets(r["guidance_fault"] & BITS["guidance_fault"]["hand_controller_stale"] != 0),
        "hold": onsets(r["phase"] == CODES["phase"]["hold"]),
    }
    return {"commands": begun, "stops": sum(of.values()), "stopped_by": of}


def trend(sheets: Sequence[Sheet]) -> dict[str, list[Sheet]]:
    """Operator → score sheets in the order in which they were flown."""
    ordered = sorted(sheets, key=lambda sheet: sheet["created"])
    return {name: [s for s in ordered if s["operator"] == name] for name in dict.fromkeys(s["operator"] for s in ordered)}


def shown(sheet: Mapping[str, object], key: str) -> str:
    """A value of the score sheet as the trend writes it."""
    value, form = sheet.get(key), TREND[key][1]
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    assert isinstance(value, int | float)
    scale = 1000.0 if form.startswith("1000") else 1.0
    return format(scale * value, form.removeprefix("1000"))
