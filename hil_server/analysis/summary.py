"""The figures of a run, from its log: why it ended, what it cost in time, the loads, the contacts.

`summarise` gives the keys that scripts rely on (`--json` of `run` and `simulate`).
"""

import tomllib
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.telemetry.log_file import Log
from rt_kernels.layout import CODES, FAULTS

WRENCH_NAMES = ("fx_N", "fy_N", "fz_N", "mx_N_m", "my_N_m", "mz_N_m")
CLIPPED = {"length": 0x3F, "rate": 0x3F00, "acceleration": 0x3F0000}  # bits of `setpoint_status`
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
LEAST_SPEED = 1e-4  # m/s: a contact met more slowly along its own direction has no restitution
END_EXIT = {"tripped": 3, "record_lost": 3, "not_aligned": 1}  # exit code of a run by its end, 0 of every other
STOP = {name for name, _, severity, _, _ in FAULTS if severity == "stop"}


def name_of(group: str, value: int) -> str:
    """Name of a code of the table, or the number as text."""
    return next((name for name, code in CODES[group].items() if code == value), str(value))


def bits_of(group: str, word: int) -> list[str]:
    """Names of the bits that are set in a word of the table."""
    return [name for name, bit in CODES[group].items() if word >> bit & 1]


def microseconds(nanoseconds: np.ndarray) -> dict[str, float]:
    """p50, p99, p999, p9999 and max of times, in µs; zeros for an empty run."""
    if not len(nanoseconds):
        return dict.fromkeys([*PERCENTILES, "max"], 0.0)
    us = nanoseconds * 1e-3
    return {**{name: float(np.percentile(us, p)) for name, p in PERCENTILES.items()}, "max": float(us.max())}


def faults_of(log: Log) -> list[dict[str, Any]]:
    """Every fault of the run in order of appearance: name, severity, meaning, action, tick, time_s."""
    words = log.records["faults"]
    found = []
    for name, bit, severity, meaning, action in FAULTS:
        on = np.flatnonzero(words >> bit & 1)
        if len(on):
            tick, time_s = int(log.records["tick"][on[0]]), float(log.time_s[on[0]])
            about = {"name": name, "severity": severity, "meaning": meaning, "action": action}
            found.append({**about, "tick": tick, "time_s": time_s})
    return sorted(found, key=lambda fault: fault["tick"])


def contacts_of(log: Log) -> list[dict[str, Any]]:
    """Every contact: when, how hard, and what it did to the energy of relative motion.

    energy_before_J and energy_after_J are `kinetic_energy` at the last tick before and the first after the contact; energy_ratio their
    quotient, restitution its root (the coefficient of restitution of a contact along one direction); None while in contact at the end.
    They include what control forces add during the contact. work_J is what the energy monitor counted for the corrected wrench alone
    (`contact_work` at the last tick of the contact), and energy_ratio_of_contact is 1 + work_J/energy_before_J.
    rebound and what belongs to it: see `rebound_of`.
    """
    r, time_s = log.records, log.time_s
    touching = np.flatnonzero(np.diff(r["contact"] != 0, prepend=False, append=False))
    contacts = []
    for start, stop in touching.reshape(-1, 2):
        before = max(start - 1, 0)
        ended = stop < log.ticks
        wrench = np.abs(r["F_T"][start:stop])
        energy_before = float(r["kinetic_energy"][before])
        energy_after = float(r["kinetic_energy"][stop]) if ended else None
        ratio = energy_after / energy_before if energy_after is not None and energy_before > 0.0 else None
        work = float(r["contact_work"][stop - 1])
        contacts.append(
            {
                "begin_s": float(time_s[start]),
                "duration_s": float(time_s[stop - 1] - time_s[start]),
                "ended": bool(ended),
                "axial_speed_before_m_per_s": float(r["V_TA"][before, 0]),
                "axial_speed_after_m_per_s": float(r["V_TA"][stop, 0]) if ended else None,
                "peak_force_N": float(np.linalg.norm(r["F_T"][start:stop, :3], axis=1).max()),
                "peak_moment_N_m": float(wrench[:, 3:].max()),
                "energy_before_J": energy_before,
                "energy_after_J": energy_after,
                "energy_ratio": ratio,
                "restitution": None if ratio is None or ratio < 0.0 else float(np.sqrt(ratio)),
                "work_J": work,
                "energy_ratio_of_contact": 1.0 + work / energy_before if energy_before > 0.0 else None,
                **rebound_of(log, int(start), int(stop)),
            }
        )
    return contacts


def rebound_of(log: Log, start: int, stop: int) -> dict[str, float | None]:
    """Restitution e of the contact of the ticks start...stop-1, measured, and as the prediction in the log's header has it.

    rebound: -s_after/s_before, s = u.V the speed of the contact point along the contact's screw u (its mean wrench, force of length one;
    V the twist at the origin of T), before the force began to rise and after the contact flag has fallen and what moves the model has
    died away (a predictor's filter outlasts the contact). rebound_predicted,
    rebound_in_orbit (without the stand), mode_frequency_hz: of the predicted mode whose direction is nearest to u. None where the contact
    has not ended, was hardly met head on (below 0.1 mm/s), was no rebound (the latches hold, or the motion goes on inwards), or was not
    predicted.
    """
    r = log.records
    nothing = dict.fromkeys(("rebound", "rebound_predicted", "rebound_in_orbit", "mode_frequency_hz"))
    mean = r["F_T"][start:stop].mean(axis=0)
    size = float(np.linalg.norm(mean[:3]))
    if stop >= log.ticks or size == 0.0:
        return nothing
    screw = mean / size
    force = r["F_T"] @ screw
    while start > 0 and 0.0 < force[start - 1] < force[start]:
        start -= 1

    def speed(k: int) -> float:
        V = r["V_TA"][k]
        return float(screw[:3] @ (V[:3] - np.cross(V[3:], r["X_TA"][k, :3])) + screw[3:] @ V[3:])

    moving = np.abs(r["F_T_corrected"] @ screw)
    least = 0.01 * moving[start:stop].max()
    while stop < log.ticks - 1 and moving[stop] > least and not r["contact"][stop]:
        stop += 1
    before, after = speed(max(start - 1, 0)), speed(stop)
    latched = r["capture_time"][stop] >= 0.0
    if abs(before) < LEAST_SPEED or before * after >= 0.0 or latched:
        return nothing
    modes = [m for m in log.header.prediction.get("modes", []) if m["judged"]]
    mode = max(modes, key=lambda m: abs(float(screw[:3] @ np.asarray(m["direction"])))) if modes else None
    expected = (mode["restitution"], mode["ideal"], mode["frequency_hz"]) if mode else (None, None, None)
    return dict(zip(nothing, (-after / before, *expected), strict=True))


def alignment_of(log: Log) -> dict[str, Any] | None:
    """How the docking units stood to each other when the retraction ended; None for a run that did not come to it.

    tilt_deg: angle between the docking axes; roll_deg: about X; offset_m: of the ports, across the axis; each with the limit of the
    guidance (roll has none). gaps_m: of the docking planes, where the unit's channels give them (`*_gap`). missing: what a completed
    docking would have to show and this one does not: signals of the unit at that tick, and limits that are passed.
    """
    r = log.records
    if not log.ticks or int(r["end_cause"][-1]) not in (CODES["end_cause"]["complete"], CODES["end_cause"]["not_aligned"]):
        return None
    last = max(0, int(np.argmax(r["end_cause"] != 0)))
    x, y, z, w = (float(c) for c in r["X_TA"][last, 3:])
    tilt = float(np.degrees(np.arccos(np.clip(1.0 - 2.0 * (y * y + z * z), -1.0, 1.0))))
    roll = float(np.degrees(np.arctan2(2.0 * (w * x - y * z), 1.0 - 2.0 * (x * x + z * z))))
    offset = float(np.hypot(*r["X_TA"][last, 1:3]))
    guidance = tomllib.loads(log.header.configuration.get("configuration.toml", "")).get("guidance", {})
    defaults = {p.key: p.default for p in registry.part("guidance", guidance.get("part", "docking")).PARAMETERS}
    limits = {key: guidance.get(f"complete_{key}", defaults.get(f"complete_{key}")) for key in ("tilt_deg", "offset_m")}
    on = bits_of("mechanism_signal", int(r["signal_discrete"][last]))
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
    ticks, missed, overflow, lateness_us, compute_us, read_us, write_us, margin_us (p50, p99, p999, p9999, max; margin: min), late_causes,
    realtime_mode, peak_wrench, peak_wrench_time_s, stroke_margin_min_m, following_error_max_m, clipped_ticks (length, rate,
    acceleration), faults (names), fault_details, trip_tick, contacts, loop_delay_s, delay_ledger, delay_origins, delay_in_run (term →
    mean of the run, s), prediction, synthetic.
    """
    r = log.records
    faults = faults_of(log)
    ended = name_of("end_cause", int(r["end_cause"][-1])) if log.ticks else "none"
    if ended == "none":
        ended = "tripped" if any(f["name"] in STOP for f in faults) else "stopped"
    capture = _positive(r["capture_time"])
    summary: dict[str, Any] = {
        "run": log.header.run_id,
        "mode": log.header.mode,
        "log": str(log.path),
        "complete": log.complete,
        "incomplete": log.incomplete,
        "end": ended,
        "exit_code": END_EXIT.get(ended, 0),
        "captured": capture is not None,
        "alignment": alignment_of(log),
        "capture_time_s": capture,
        "first_contact_time_s": _positive(r["first_contact_time"]),
        "duration_s": float(log.time_s[-1] - log.time_s[0]) if log.ticks else 0.0,
        "ticks": log.ticks,
        "missed": int(r["missed_total"][-1]) if log.ticks else 0,
        "overflow": max(int(r["overflow_total"][-1]) if log.ticks else 0, int(log.end.get("overflow", 0))),
        **_timing(log),
        **_loads(log),
        "faults": [fault["name"] for fault in faults],
        "fault_details": faults,
        "trip_tick": int(r["trip_tick"][-1]) if log.ticks else -1,
        "contacts": contacts_of(log),
        "loop_delay_s": float(r["loop_delay"][-1]) if log.ticks else 0.0,
        "delay_ledger": log.header.delay_ledger,
        "delay_origins": log.header.delay_origins,
        "delay_in_run": _delay_in_run(log),
        "prediction": log.header.prediction,
        "synthetic": log.header.synthetic,
    }
    return {**summary, **{key: value for key, value in log.end.items() if key in ("end", "exit_code", "captured", "report")}}


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
        "margin_us": {"min": float(margin.min()) * 1e-3 if len(margin) else 0.0},
        "late_causes": causes,
        "realtime_mode": int(r["realtime_mode"][-1]) if log.ticks else 0,
    }


def _loads(log: Log) -> dict[str, Any]:
    r = log.records
    if not log.ticks:
        zeros: dict[str, float] = dict.fromkeys(WRENCH_NAMES, 0.0)
        nothing = {"stroke_margin_min_m": 0.0, "following_error_max_m": 0.0, "clipped_ticks": dict.fromkeys(CLIPPED, 0)}
        return {"peak_wrench": zeros, "peak_wrench_time_s": dict(zeros), **nothing}
    at = np.abs(r["F_T"]).argmax(axis=0)
    return {
        "peak_wrench": {name: float(r["F_T"][at[i], i]) for i, name in enumerate(WRENCH_NAMES)},
        "peak_wrench_time_s": {name: float(log.time_s[at[i]]) for i, name in enumerate(WRENCH_NAMES)},
        "stroke_margin_min_m": float(r["stroke_margin"].min()),
        "following_error_max_m": float(np.abs(r["following_error"]).max()),
        "clipped_ticks": {name: int(np.count_nonzero(r["setpoint_status"] & mask)) for name, mask in CLIPPED.items()},
    }
