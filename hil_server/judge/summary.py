"""The figures of a run, from its log: why it ended, what it cost in time, the loads, the contacts.

`summarise` gives the keys that scripts rely on (`--json` of `run` and `simulate`).
"""

import tomllib
from typing import Any

import numpy as np

from hil_server import registry, requirements
from hil_server.bus.commands import TIME_IS_UP
from hil_server.errors import HilError, VerdictError, attempt
from hil_server.host.late_causes import summed_up
from hil_server.judge.arm_margin import arm_margin
from hil_server.judge.crafts import crafts_of
from hil_server.judge.interventions import Marks, done_to_the_run
from hil_server.judge.peaks import worth
from hil_server.judge.rebound import Rebound, not_measured, rebound, screw_of
from hil_server.judge.record_time import left_out, thinning
from hil_server.judge.unit_ledger import as_json, unit_ledger
from hil_server.log.moments import MOMENTS, WRENCH_NAMES, Moments, peaks_of
from hil_server.log.reader import Log
from hil_server.log.recoveries import recovered, recoveries_of
from rt_kernels.codes import bit_names, code_name
from rt_kernels.context import Vehicles
from rt_kernels.layout import CODES, FAULTS, RUNS

# what of a setpoint may be clipped
CLIPS = {name: mask for name, mask in RUNS["setpoint_status"].items() if name != "blocked"}

PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
END_EXIT = {"tripped": 3, "record_lost": 3, "not_aligned": 1}  # exit code of a run by its end, 0 of every other
# what the devices say, and the loop, when it is the host that stood still
STALLED = {"sensor_no_data", "sensor_stale", "sensor_lost", "drive_no_data", "drive_device_fault", "drive_not_enabled", "drive_lost",
           "drive_not_following", "drive_heartbeat_lost", "bus_fault", "following_error", "signals_no_data", "loop_overrun",
           "supervisor_silent"}  # fmt: skip
STALL_PERIODS, STALL_S = 2, 0.3  # so many periods missed at once are a stall, and so long after it a fault may be its
STOP = {name for name, _, severity, *_ in FAULTS if severity == "stop"}


NO_TIMING: dict[str, Any] = {
    **{key: dict.fromkeys([*PERCENTILES, "max"], 0.0) for key in ("lateness_us", "compute_us", "read_us", "write_us")},
    "margin_us": {"min": 0.0}, "late_causes": {}, "late_named": [], "realtime_mode": 0,
}  # fmt: skip
NO_PEAKS: dict[str, Any] = {
    "peaks": [], "peak_wrench": dict.fromkeys(WRENCH_NAMES), "peak_wrench_time_s": dict.fromkeys(WRENCH_NAMES),
    **dict.fromkeys(("docking_force_n", "docking_moment_n_m", "impact_force_n", "impact_moment_n_m", "peak_worth")),
}  # fmt: skip
NO_LEGS: dict[str, Any] = {"stroke_margin_min_m": 0.0, "following_error_max_m": 0.0, "clipped_ticks": dict.fromkeys(CLIPS, 0)}


def microseconds(nanoseconds: np.ndarray) -> dict[str, float]:
    """p50, p99, p999, p9999 and max of times, in µs; zeros for an empty run."""
    if not len(nanoseconds):
        return dict.fromkeys([*PERCENTILES, "max"], 0.0)
    us = nanoseconds * 1e-3
    return {**{name: float(np.percentile(us, p)) for name, p in PERCENTILES.items()}, "max": float(us.max())}


def faults_of(log: Log) -> list[dict[str, Any]]:
    """Every fault bit of the run, first cause first: name, severity, meaning, action, tick, time_s. In order of the ticks; within one tick
    what stops comes before what holds, and that before notes."""
    words = log.records["faults"]
    found = []
    for name, mask, severity, meaning, action, _ in FAULTS:
        on = np.flatnonzero(words & mask)
        if len(on):
            tick, time_s = int(log.records["tick"][on[0]]), float(log.time_s[on[0]])
            about = {"name": name, "severity": severity, "meaning": meaning, "action": action}
            found.append({**about, "tick": tick, "time_s": time_s})
    return sorted(found, key=lambda fault: (fault["tick"], ("stop", "hold", "note").index(fault["severity"])))


def cause_of(log: Log, faults: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Why the run went wrong: {"text", "tick", "time_s"}, or None for a run without a fault (notes are none).

    The first fault; but where the loop missed periods just before it and the faults are what devices say of a host that stands still, the
    stall: the largest one, with the cause that the clock has for it."""
    if not faults:
        return None
    first = faults[0]
    r = log.records
    stall = np.flatnonzero((r["periods"] > STALL_PERIODS) & (log.time_s <= first["time_s"]) & (log.time_s >= first["time_s"] - STALL_S))
    if first["name"] not in STALLED or not len(stall):
        meaning = _what_was_invalid(log, first) or first["meaning"]
        return {"text": f"{first['name']}: {meaning}", "tick": first["tick"], "time_s": first["time_s"]}
    at = stall[r["periods"][stall].argmax()]
    missed, why = int(r["periods"][at]) - 1, code_name("late_cause", int(r["late_cause"][at])).replace("_", "-")
    after = ", ".join(fault["name"] for fault in faults if fault["name"] in STALLED)
    lost_ms = missed * log.header.period_ns * 1e-6
    named = next((one for one in log.end.get("late", []) if one["tick"] == int(r["tick"][at])), None)
    if named is not None:
        why += f" ({named['cause'].replace('_', ' ')}{': ' * bool(named['who'])}{named['who']})"
    text = f"host too busy: {missed} periods ({lost_ms:.0f} ms) missed, late by {why}; {after} followed from it"
    return {"text": text, "tick": int(r["tick"][at]), "time_s": float(log.time_s[at])}


def _what_was_invalid(log: Log, fault: dict[str, Any]) -> str | None:
    """What left the valid range of its law, and where, from the unit's channels `*.invalid_*`; None where it is another fault or the unit
    does not say. What the codes of `invalid_part` mean, the part's `INVALID` tells."""
    if fault["name"] != "mechanism_invalid":
        return None
    values, unit, at = {}, "", 0
    for channel in log.header.aux:
        prefix, _, name = channel.name.rpartition(".invalid_")
        if prefix:
            unit, values[name] = prefix, float(log.records["aux"][-1, at])
        at += channel.count
    try:
        name = tomllib.loads(log.header.configuration.get("configuration.toml", ""))["mechanism"]["part"]
        named = getattr(registry.part("mechanisms", name), "INVALID", ())
    except (ValueError, KeyError, TypeError, HilError):
        return None
    part = int(values.get("part", 0.0))
    if not 0 < part < len(named):
        return None
    what, measured, si = named[part]
    factor, shown = (1e3, "mm") if si == "m" else (1.0, "" if si == "-" else f" {si}")
    value, limit = (f"{factor * values[key]:.3g} {shown}".strip() for key in ("value", "limit"))
    place = ", ".join(f"{values[f'at_{axis}']:.3f}" for axis in "xyz")
    where = f", at ({place}) m in the target port" if measured == "penetration" else ""
    return f"{unit}: {what} {values['number']:.0f}: {measured} {value}, its law holds to {limit}{where}"


def contacts_of(log: Log) -> list[dict[str, Any]]:
    """Every contact: when, how hard, and whether and how it rebounded.

    moment: of the docking in which it begins. begin_s, duration_s and the peaks are those of the contact flag; speeds, energies and work_j
    (what the energy monitor counted for the corrected wrench, `contact_work`) those of the free motion on either side where there is one,
    else of the ticks next to the flag. rebound is e (`hil_server.judge.rebound`), None where it is not measurable, and rebound_note then
    says why; energy_ratio and energy_ratio_of_contact (1 + work_j/energy_before_j) are given where there is a rebound: a graze or a passage
    has none. rebound_predicted, rebound_in_orbit (without the stand), mode_frequency_hz: of the predicted mode whose direction is nearest.
    """
    r, time_s = log.records, log.time_s
    touching = np.flatnonzero(np.diff(r["contact"] != 0, prepend=False, append=False))
    vehicles = _vehicles(log) if len(touching) and (r["control_A"].any() or r["control_T"].any()) else None
    contacts, gaps, moments = [], left_out(log), Moments().of(r)
    for start, stop in touching.reshape(-1, 2):
        ended = bool(stop < log.ticks)
        e = rebound(r, int(start), int(stop), 1e-9 * log.header.period_ns, vehicles)
        if gaps[max(start - 1, 0) if e.before is None else e.before : stop if e.after is None else e.after].any():
            e = Rebound(None, "the log is thinned: a rebound needs every tick")
        before = max(start - 1, 0) if e.before is None else e.before
        after = stop if e.after is None else e.after
        wrench = np.abs(r["F_T"][start:stop])
        energy_before = float(r["kinetic_energy"][before])
        energy_after = float(r["kinetic_energy"][after]) if ended else None
        judged = e.restitution is not None and energy_before > 0.0
        # the force works on below the threshold that ends the flag
        work = float(r["contact_work"][stop - 1 if e.after is None else e.after])
        contacts.append(
            {
                "begin_s": float(time_s[start]),
                "moment": list(MOMENTS)[moments[start]],
                "duration_s": float(time_s[stop - 1] - time_s[start]),
                "ended": ended,
                "axial_speed_before_m_s": float(r["V_TA"][before, 0]),
                "axial_speed_after_m_s": float(r["V_TA"][after, 0]) if ended else None,
                "peak_force_n": float(np.linalg.norm(r["F_T"][start:stop, :3], axis=1).max()),
                "peak_moment_n_m": float(wrench[:, 3:].max()),
                "energy_before_j": energy_before,
                "energy_after_j": energy_after,
                "energy_ratio": energy_after / energy_before if judged and energy_after is not None else None,
                "work_j": work,
                "energy_ratio_of_contact": 1.0 + work / energy_before if judged else None,
                "rebound": e.restitution,
                "rebound_note": e.why,
                **_foreseen(log, int(start), int(stop), e.restitution),
            }
        )
    return contacts


def _foreseen(log: Log, start: int, stop: int, measured: float | None) -> dict[str, float | None]:
    """What the prediction in the log's header has for a contact that rebounded."""
    nothing = dict.fromkeys(("rebound_predicted", "rebound_in_orbit", "mode_frequency_hz"))
    modes = [m for m in log.header.prediction.get("modes", []) if m["judged"]]
    screw = screw_of(log.records, start, stop)
    if measured is None or screw is None or not modes:
        return nothing
    mode = max(modes, key=lambda m: abs(float(screw[:3] @ np.asarray(m["direction"]))))
    return dict(zip(nothing, (mode["restitution"], mode["ideal"], mode["frequency_hz"]), strict=True))


def _vehicles(log: Log) -> Vehicles | None:
    """The vehicles of the run where they fly free, for the share of their control forces; None where that is not known."""
    from hil_server.line.run_header import configuration

    try:
        config = configuration(log)
    except HilError:
        return None
    dynamics = registry.part("dynamics", config.part("dynamics")[0])
    return config.setup.vehicles if getattr(dynamics, "FREE_VEHICLES", False) else None


def alignment_of(log: Log) -> dict[str, Any] | None:
    """How the docking units stood to each other when the retraction ended; None for a run that did not come to it.

    tilt_deg: angle between the docking axes; roll_deg: about X; offset_m: of the ports, across the axis; each with the limit of the
    guidance (roll has none). gaps_m: of the docking planes, where the unit's channels give them (`*_gap`). missing: what a completed
    docking would have to show and this one does not: signals of the unit at that tick, and limits that are passed.
    """
    r = log.records
    if not log.ticks or int(r["end_cause"][-1]) not in (CODES["end_cause"]["complete"], CODES["end_cause"]["not_aligned"]):
        return None
    try:
        guidance = tomllib.loads(log.header.configuration.get("configuration.toml", "")).get("guidance", {})
        declared: Any = registry.part("guidance", guidance["part"])
    except (ValueError, AttributeError, TypeError, HilError):
        return None  # a configuration that cannot be read says nothing of the units
    defaults = {p.key: p.default for p in declared.PARAMETERS}
    if "complete_tilt_deg" not in defaults:
        return None  # what it completes is no docking: an excitation, an operator's berthing
    last = max(0, int(np.argmax(r["end_cause"] != 0)))
    x, y, z, w = (float(c) for c in r["X_TA"][last, 3:])
    tilt = float(np.degrees(np.arccos(np.clip(1.0 - 2.0 * (y * y + z * z), -1.0, 1.0))))
    roll = float(np.degrees(np.arctan2(2.0 * (w * x - y * z), 1.0 - 2.0 * (x * x + z * z))))
    offset = float(np.hypot(*r["X_TA"][last, 1:3]))
    limits = {key: guidance.get(f"complete_{key}", defaults.get(f"complete_{key}")) for key in ("tilt_deg", "offset_m")}
    on = bit_names("mechanism_signal", int(r["signal_discrete"][last]))
    missing = [name for name in ("DSG", "planes_together") if name not in on]
    found = {"tilt_deg": tilt, "offset_m": offset}
    missing += [f"{key} above {limits[key]:g}" for key, value in found.items() if limits[key] is not None and value > limits[key]]
    names, at = [], 0
    for channel in log.header.aux:
        if channel.name.endswith("_gap") and channel.unit == "m":
            names.append((channel.name, at))
        at += channel.count
    gaps = {name: float(r["aux"][last, place]) for name, place in names}
    return {**found, "roll_deg": roll, "limits": limits, "gaps_m": gaps, "missing": missing, "aligned": not missing}


def summarise(log: Log) -> dict[str, Any]:
    """The run in figures, JSON values only. Facts that the server left at the end of the log (`end`, `exit_code`, ...) take precedence.

    Keys: run, mode, log, complete, incomplete, end, exit_code, captured, alignment, capture_time_s, first_contact_time_s, duration_s,
    ticks, thinned (1, or n of a log that holds one tick in n), missed, overflow, lateness_us, compute_us, read_us, write_us,
    bus_deviation_us (its amount, where the grid follows the clock of a bus), margin_us (p50, p99, p999, p9999, max; margin: min),
    late_causes (where the late ticks lost their time), late_named (why, of a live run: `hil_server.host.late_causes.summed_up`),
    realtime_mode, peaks (the largest loads by moment of the docking: `hil_server.log.moments.Peaks.rows`), impact_force_n,
    impact_moment_n_m, peak_worth (of the impact: `hil_server.judge.peaks`), docking_force_n, docking_moment_n_m, peak_wrench,
    peak_wrench_time_s (of the closed loop; None where it was never closed), stroke_margin_min_m, following_error_max_m, clipped_ticks
    (length, rate, acceleration), faults (names, first cause first) and fault_details, notes_raised and note_details (what was noted and is
    no fault), cause (text, tick, time_s; None without a fault), trip_tick, recoveries (`hil_server.log.recoveries`), recovered,
    contacts, contacts_without_e (a line for each reason), crafts (peaks of joints, sensors, interfaces by name; None where the dynamics
    part has none), arm (`hil_server.judge.arm_margin`; None without a manipulator), unit_ledger (`hil_server.judge.unit_ledger`; None
    where the log has no energies of the unit), loop_delay_s, delay_ledger, delay_origins, delay_in_run (term → mean of the run, s),
    prediction, requirements (`hil_server.requirements.Result` as dicts; one that is violated is exit code 1), synthetic,
    limits (of `hil_server.config.narrowing.signature`: whose the stand's limits are, which of them the test had stricter; None of an old
    log), done_to_the_run (`hil_server.judge.interventions`), not_available (figures that could not be had: figure, reason). Each of
    peaks, contacts and requirements has `marks`: injected faults and missed periods in its window, in words.
    """
    r = log.records
    missing: list[dict[str, str]] = []
    raised = attempt("faults", lambda: faults_of(log), [], missing)
    faults, notes = [f for f in raised if f["severity"] != "note"], [f for f in raised if f["severity"] == "note"]
    done = attempt("what was done to the run", lambda: done_to_the_run(log), [], missing)
    ended = code_name("end_cause", int(r["end_cause"][-1])) if log.ticks else "none"
    if ended == "none":
        ended = "tripped" if any(f["name"] in STOP for f in faults) else "stopped"
    cut = ended == "stopped" and _cut(r)
    ended = "time" if cut else ended
    capture = _positive(r["capture_time"])
    summary: dict[str, Any] = {
        "run": log.header.run_id,
        "mode": log.header.mode,
        "log": str(log.path),
        "complete": log.complete,
        "incomplete": log.incomplete,
        "end": ended,
        "exit_code": VerdictError.exit_code if cut else END_EXIT.get(ended, 0),
        "captured": capture is not None,
        "done_to_the_run": done,
        "alignment": attempt("alignment of the units", lambda: alignment_of(log), None, missing),
        "capture_time_s": capture,
        "first_contact_time_s": _positive(r["first_contact_time"]),
        "duration_s": float(log.time_s[-1] - log.time_s[0]) if log.ticks else 0.0,
        "ticks": log.ticks,
        "missed": int(r["missed_total"][-1]) if log.ticks else 0,
        "overflow": max(int(r["overflow_total"][-1]) if log.ticks else 0, int(log.end.get("overflow", 0))),
        **attempt("time of the loop", lambda: _timing(log), NO_TIMING, missing),
        **attempt("loads by moment", lambda: _peaks(log), NO_PEAKS, missing),
        **attempt("limits of the legs", lambda: _legs(log), NO_LEGS, missing),
        "thinned": thinning(log),
        "faults": [fault["name"] for fault in faults],
        "fault_details": faults,
        "notes_raised": [note["name"] for note in notes],
        "note_details": notes,
        "cause": attempt("cause", lambda: cause_of(log, faults), None, missing),
        "trip_tick": int(r["trip_tick"][-1]) if log.ticks else -1,
        "recoveries": attempt("recoveries", lambda: recoveries_of(r), [], missing),
        "recovered": recovered(r),
        "contacts": attempt("contacts", lambda: contacts_of(log), [], missing),
        "crafts": attempt("loads within the crafts", lambda: crafts_of(log), None, missing),
        "unit_ledger": attempt("ledger of the unit's energy", lambda: as_json(unit_ledger(log)), None, missing),
        "arm": attempt("margin of the arm", lambda: arm_margin(log), None, missing),
        "loop_delay_s": float(r["loop_delay"][-1]) if log.ticks else 0.0,
        "delay_ledger": log.header.delay_ledger,
        "delay_origins": log.header.delay_origins,
        "delay_in_run": attempt("delay in the run", lambda: _delay_in_run(log), {}, missing),
        "prediction": log.header.prediction,
        "requirements": attempt("requirements", lambda: [one.as_dict() for one in requirements.of_log(log)], [], missing),
        "synthetic": log.header.synthetic,
        "limits": attempt("limits", lambda: _limits(log), None, missing),
        "not_available": missing,
    }
    summary["contacts_without_e"] = not_measured(summary["contacts"])
    attempt("marks of the figures", lambda: _mark(log, summary), None, missing)
    if not summary["exit_code"] and requirements.violated(summary["requirements"]):
        summary["exit_code"] = VerdictError.exit_code
    return {**summary, **{key: value for key, value in log.end.items() if key in ("end", "exit_code", "captured", "report")}}


def _limits(log: Log) -> dict[str, Any] | None:
    try:
        document = tomllib.loads(log.header.configuration.get(requirements.CONFIGURATION, ""))
    except tomllib.TOMLDecodeError:
        return None
    record = document.get("stand", {}).get("safety_record")
    return record if isinstance(record, dict) and "state" in record else None


def _cut(r: np.ndarray) -> bool:
    """Whether the end of its time stopped a live run in the middle: the command `park` that the loop gives itself then
    (`rt_kernels.command_latch`) met a phase of motion, and nothing had ended the test before."""
    given = np.flatnonzero((r["command_code"] == CODES["command"]["park"]) & (r["command_arg"][:, 0] == TIME_IS_UP))
    if not len(given):
        return False
    before = r[max(0, int(given[0]) - 1)]
    at_rest = (CODES["phase"]["idle"], CODES["phase"]["ended"])
    return int(before["phase"]) not in at_rest and int(before["end_cause"]) == CODES["end_cause"]["none"]


def _positive(times: np.ndarray) -> float | None:
    return float(times[-1]) if len(times) and times[-1] >= 0.0 else None


def _delay_in_run(log: Log) -> dict[str, float]:
    """What the run itself shows of the ledger: mean age of the force record at the tick, and mean lateness of the ticks, which no ledger
    can know before the run. Means, s: jitter about them does not enter the restitution to first order."""
    if not log.ticks or log.header.mode != "live":
        return {}
    return {name: 1e-9 * float(log.records[field].mean()) for name, field in (("sensor age", "wrench_age_ns"), ("lateness", "lateness_ns"))}


def _timing(log: Log) -> dict[str, Any]:
    r = log.records
    later = r[1:]  # the first record has no tick before it whose times it could carry
    busy = later["read_ns"] + later["compute_ns"] + later["write_ns"]
    margin = log.header.period_ns - r["lateness_ns"][:-1] - busy
    causes = {name: int(np.count_nonzero(r["late_cause"] == code)) for name, code in CODES["late_cause"].items() if code}
    return {
        "lateness_us": microseconds(r["lateness_ns"]),
        "compute_us": microseconds(later["compute_ns"]),
        "read_us": microseconds(later["read_ns"]),
        "write_us": microseconds(later["write_ns"]),
        **({"bus_deviation_us": microseconds(np.abs(log.aux("bus_deviation_ns")))} if "bus_deviation_ns" in log.aux_names else {}),
        "margin_us": {"min": float(margin.min()) * 1e-3 if len(margin) else 0.0},
        "late_causes": causes,
        "late_named": summed_up(log.end.get("late", []), log.end.get("late_more")),
        "realtime_mode": int(r["realtime_mode"][-1]) if log.ticks else 0,
    }


def _peaks(log: Log) -> dict[str, Any]:
    """Loads by moment of the docking (`hil_server.log.moments`)."""
    found = peaks_of(log.records)
    closed, headline = found.closed(), found.headline()
    if closed is None:
        return NO_PEAKS | {"peaks": found.rows()}
    return {
        "peaks": found.rows(),
        "peak_wrench": closed["wrench"],
        "peak_wrench_time_s": closed["wrench_time_s"],
        "docking_force_n": closed["force_n"],
        "docking_moment_n_m": closed["moment_n_m"],
        "impact_force_n": headline and headline["force_n"],
        "impact_moment_n_m": headline and headline["moment_n_m"],
        "peak_worth": headline and worth(log, headline),
    }


def _mark(log: Log, summary: dict[str, Any]) -> None:
    """`marks` of each moment, contact and requirement: what lies in its window and speaks against its figures."""
    marks = Marks(log, summary["done_to_the_run"])
    if not log.ticks:
        return
    begin, end = float(log.time_s[0]), float(log.time_s[-1])
    for row in summary["peaks"]:
        row["marks"] = marks.of(row["from_s"], row["to_s"])
    for contact in summary["contacts"]:
        contact["marks"] = marks.of(contact["begin_s"], contact["begin_s"] + contact["duration_s"])
    for one in summary["requirements"]:
        one["marks"] = [] if one["verdict"] == "not judged" else marks.of(*_window(log, one, begin, end))


def _window(log: Log, one: dict[str, Any], begin: float, end: float) -> tuple[float, float]:
    """From when to when a requirement looks: the phases that it names, else the whole run."""
    phases = [CODES["phase"][word] for word in str(one.get("phase") or "").replace(",", " ").split() if word in CODES["phase"]]
    inside = np.flatnonzero(np.isin(log.records["phase"], phases))
    return (float(log.time_s[inside[0]]), float(log.time_s[inside[-1]])) if len(inside) else (begin, end)


def _legs(log: Log) -> dict[str, Any]:
    r = log.records
    if not log.ticks:
        return NO_LEGS
    return {
        "stroke_margin_min_m": float(r["stroke_margin"].min()),
        "following_error_max_m": float(np.abs(r["following_error"]).max()),
        "clipped_ticks": {name: int(np.count_nonzero(r["setpoint_status"] & mask)) for name, mask in CLIPS.items()},
    }
