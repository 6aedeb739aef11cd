"""The report of a run: one HTML page with figures and pictures, that needs nothing but a browser."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.analysis.crafts import is_names
from hil_server.analysis.summary import summarise
from hil_server.errors import UsageError
from hil_server.pages.figures import embedded
from hil_server.pages.html import document, section, table_html, text
from hil_server.telemetry.log_file import Log, open_log
from rt_kernels.codes import bit_names, code_name

MOST_CONTACTS = 40
BEFORE_TRIP_S = 1.0
CONTACT_COLUMNS = {
    "begin_s": "begin, s",
    "duration_s": "for, s",
    "axial_speed_before_m_s": "vx before, m/s",
    "axial_speed_after_m_s": "after",
    "peak_force_n": "peak, N",
    "peak_moment_n_m": "peak, N.m",
    "energy_before_j": "energy before, J",
    "energy_after_j": "after",
    "energy_ratio": "ratio",
    "rebound": "restitution",
    "rebound_note": "no restitution:",
    "work_j": "work, J",
    "energy_ratio_of_contact": "ratio of the contact alone",
}
REBOUND_COLUMNS = {
    "begin_s": "begin, s",
    "rebound": "e measured",
    "rebound_predicted": "e predicted",
    "rebound_in_orbit": "e in orbit",
    "mode_frequency_hz": "mode, Hz",
}

# kind of a part of a craft → its columns, and where each number's time stands
CRAFT_COLUMNS = {
    "joints": {
        "position_min": "smallest, rad or m",
        "position_max": "largest",
        "rate_peak": "rate, per s",
        "rate_time_s": "at s",
        "torque_peak": "torque, N.m or N",
        "torque_time_s": "at s",
    },
    "sensors": {"acceleration_peak_m_s2": "acceleration, m/s²", "acceleration_time_s": "at s"},
    "interfaces": {
        "force_peak_n": "force, N",
        "force_time_s": "at s",
        "moment_peak_n_m": "moment, N.m",
        "moment_time_s": "at s",
    },
}


def make_report(log_path: str | os.PathLike[str], out_dir: str | os.PathLike[str] | None = None) -> Path:
    """Writes `<log>.html` into out_dir (default: beside the log). Returns its path. Raises LogError, UsageError."""
    log = open_log(log_path)
    folder = Path(out_dir) if out_dir is not None else Path(log_path).parent
    path = folder / f"{Path(log_path).stem}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(page(log), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    return path


def page(log: Log) -> str:
    """The whole report as HTML."""
    s = summarise(log)
    parts = [
        f"<h1>Run {text(s['run'])}</h1>",
        f'<p class="note">{text(s["mode"] or "run")} · build {text(log.header.build_id or "unknown")} · log {text(log.path.name)}</p>',
        *_banners(log, s),
        section("Outcome", _outcome(log, s)),
        section("Faults", _faults(s)),
        *_before_trip(log, s),
        *_rehearsal(log),
        section("Contacts", _contacts(s)),
        *_crafts(log, s),
        *_unit(log),
        *_pictures(log),
        section("Time", _time(log, s)),
        section("Configuration", _configuration(log)),
    ]
    return document(f"Run {s['run']}: {s['end']}", parts)


# --------------------------------------------------------------------------------------------------------------- pieces


def _banners(log: Log, s: dict[str, Any]) -> list[str]:
    found = []
    if s["synthetic"]:
        found.append(f'<p class="banner">Made with synthetic geometry: {text(s["synthetic"])}. Figures are those of an invented unit.</p>')
    if not s["complete"]:
        reasons = "; ".join(s["incomplete"])
        found.append(f'<p class="banner bad">This run is incomplete: {text(reasons)}.</p>')
    if s["realtime_mode"] == 1:
        found.append('<p class="banner">Ran without real-time privileges (soft mode): times are those of a busy desk computer.</p>')
    found += [f'<p class="banner">{text(note)}</p>' for note in log.header.notes if not is_names(note)]
    return found


def _outcome(log: Log, s: dict[str, Any]) -> str:
    rows: list[tuple[str, Any]] = [
        ("end", s["end"]),
        ("captured", s["captured"]),
        *_alignment(s["alignment"]),
        ("capture, run time s", s["capture_time_s"]),
        ("first contact, run time s", s["first_contact_time_s"]),
        ("duration, s", s["duration_s"]),
        ("ticks", s["ticks"]),
        ("last phase", code_name("phase", int(log.records["phase"][-1])) if log.ticks else "none"),
        ("contacts", len(s["contacts"])),
        ("smallest stroke margin, m", s["stroke_margin_min_m"]),
        ("largest following error, m", s["following_error_max_m"]),
        *((f"ticks with clipped leg {what}", count) for what, count in s["clipped_ticks"].items()),
    ]
    names = {"fx_n": "Fx, N", "fy_n": "Fy, N", "fz_n": "Fz, N", "mx_n_m": "Mx, N.m", "my_n_m": "My, N.m", "mz_n_m": "Mz, N.m"}
    peaks = [(names[name], value, s["peak_wrench_time_s"][name]) for name, value in s["peak_wrench"].items()]
    return table_html((), rows) + table_html(("peak wrench at T", "value", "at s"), peaks)


def _alignment(found: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """How the units stood to each other at the end of the retraction."""
    if found is None:
        return []
    rows = [
        ("docking planes", "together and aligned" if found["aligned"] else f"not aligned: {', '.join(found['missing'])}"),
        ("tilt of the docking axes, deg", found["tilt_deg"]),
        ("roll, deg", found["roll_deg"]),
        ("offset of the ports, m", found["offset_m"]),
    ]
    return rows + [(f"{name}, m", gap) for name, gap in found["gaps_m"].items()]


def _faults(s: dict[str, Any]) -> str:
    """The cause, the faults in their order, and what was only noted."""
    head = ("severity", "tick", "s", "meaning", "what to do")
    faults, notes = ([(f["name"], *(f[k] for k in ("severity", "tick", "time_s", "meaning", "action"))) for f in s[key]]
                     for key in ("fault_details", "note_details"))  # fmt: skip
    cause = s["cause"]
    said = f'<p class="bad">{text(cause["text"])} (tick {cause["tick"]}, {cause["time_s"]:.3f} s).</p>' if cause else ""
    body = said + table_html(("fault", *head), faults) if faults else '<p class="good">None.</p>'
    return body + (table_html(("note, no fault", *head), notes) if notes else "")


def _before_trip(log: Log, s: dict[str, Any]) -> list[str]:
    """What a person wants to see first after a trip: the wrench and the legs around the stop, and what touched."""
    at = np.flatnonzero((log.records["tick"] == s["trip_tick"]) & (s["trip_tick"] >= 0))
    if not len(at):
        return []
    from hil_server.analysis import pictures

    row = log.records[at[0]]
    centre = float(log.time_s[at[0]])
    second = log.records[(log.time_s > centre - BEFORE_TRIP_S) & (log.time_s <= centre)]
    stop = [f["name"] for f in s["fault_details"] if f["severity"] == "stop"]
    rows: list[tuple[str, Any]] = [
        ("stopped by", ", ".join(stop)),
        ("tick", s["trip_tick"]),
        ("phase", code_name("phase", int(row["phase"]))),
        ("in contact", bool(row["contact"])),
        ("mechanism signals on", ", ".join(bit_names("mechanism_signal", int(row["signal_discrete"]))) or "none"),
        ("mechanism signals in the second before", ", ".join(_any_bits(second["signal_discrete"])) or "none"),
        ("force sensor status", ", ".join(bit_names("sensor_status", int(row["wrench_fault"] | row["wrench_status"]))) or "none"),
        ("drive status", ", ".join(_any_bits(np.atleast_1d(row["drive_status"]), "drive_status")) or "none"),
        ("late ticks in the second before", int(np.count_nonzero(second["late_cause"]))),
        ("largest force in the second before, N", float(np.linalg.norm(second["F_T"][:, :3], axis=1).max())),
    ]
    body = table_html((), rows) + embedded(pictures.around(log, centre, BEFORE_TRIP_S))
    return [section("The last second before the trip", body)]


def _any_bits(words: np.ndarray, group: str = "mechanism_signal") -> list[str]:
    return bit_names(group, int(np.bitwise_or.reduce(words))) if len(words) else []


def _rehearsal(log: Log) -> list[str]:
    """Score sheet and pictures of a berthing run."""
    from hil_server.analysis import rehearsal

    if not rehearsal.is_rehearsal(log):
        return []
    from hil_server.analysis.rehearsal_page import sections

    return sections(log)


def _contacts(s: dict[str, Any]) -> str:
    contacts = s["contacts"]
    if not contacts:
        return "<p>No contact.</p>"
    note = '<p class="note">Energies include what control forces add during a contact; work is that of the corrected wrench alone.</p>'
    more = len(contacts) - MOST_CONTACTS
    rest = f'<p class="note">and {more} more</p>' if more > 0 else ""
    return _columns(CONTACT_COLUMNS, contacts[:MOST_CONTACTS]) + note + rest + _rebounds(s)


def _columns(columns: dict[str, str], rows: list[dict[str, Any]]) -> str:
    """A table of the columns that have something in any row."""
    there = [key for key in columns if any(row[key] not in (None, "") for row in rows)]
    return table_html([columns[key] for key in there], [[row[key] for key in there] for row in rows])


def _rebounds(s: dict[str, Any]) -> str:
    """Restitution of every contact that rebounded beside what was predicted before the run."""
    verdict = s["prediction"].get("verdict")
    said = f"Predicted before the run, with {s['prediction']['compensator']}: {verdict}." if verdict else "Not predicted."
    rows = [contact for contact in s["contacts"][:MOST_CONTACTS] if contact["rebound"] is not None]
    if not rows:
        return f'<p class="note">{text(said)} No contact rebounded.</p>'
    about = "e: speed along the contact in free motion, after over before."
    return f'<p class="note">{text(said)} {about}</p>' + _columns(REBOUND_COLUMNS, rows)


def _crafts(log: Log, s: dict[str, Any]) -> list[str]:
    """Peaks of joints, measured points and interfaces of the crafts by name, and their course."""
    if s["crafts"] is None:
        return []
    from hil_server.analysis import pictures

    body = ""
    for kind, columns in CRAFT_COLUMNS.items():
        rows = [[row["name"], *(row.get(key) for key in columns)] for row in s["crafts"][kind]]
        if rows:
            body += table_html((kind, *columns.values()), rows)
    drawn = (pictures.joints(log), pictures.structure(log))
    return [section("Loads and motion within the crafts", body + "".join(embedded(one) for one in drawn if one is not None))]


def _unit(log: Log) -> list[str]:
    """Sensors and state of the docking unit over the run, and the list of events."""
    if not log.ticks:
        return []
    from hil_server.analysis import unit_course

    drawn = (unit_course.sensors(log), unit_course.state(log))
    body = "".join(embedded(one) for one in drawn if one is not None)
    happened = unit_course.events(log)
    rows = [(f"{at:.3f}", what) for at, what in happened[: unit_course.EVENTS_MOST]]
    more = f"<p>{len(happened) - len(rows)} more are in the log.</p>" if len(happened) > len(rows) else ""
    listed = f"<details><summary>{len(happened)} events</summary>{table_html(('run time, s', ''), rows)}{more}</details>"
    return [section("Docking unit", body + listed)]


def _pictures(log: Log) -> list[str]:
    if not log.ticks:
        return ["<p>The log holds no tick.</p>"]
    from hil_server.analysis import pictures

    topics: list[tuple[str, Callable[[Log], Any]]] = [
        ("Phases", pictures.phases),
        ("Contact wrench", pictures.wrench),
        ("Relative pose", pictures.relative_pose),
        ("Relative twist", pictures.relative_twist),
        ("Legs", pictures.legs),
        ("Energy", pictures.energy),
    ]
    if log.records["realtime_mode"].any():
        topics.append(("Lateness", pictures.lateness))
    return [section(title, embedded(draw(log))) for title, draw in topics]


def _time(log: Log, s: dict[str, Any]) -> str:
    percentiles = ("p50", "p99", "p999", "p9999", "max")
    rows = [(name.removesuffix("_us"), *(s[name][p] for p in percentiles)) for name in ("lateness_us", "read_us", "compute_us", "write_us")]
    counts: list[tuple[str, Any]] = [
        ("period, ms", log.header.period_ns * 1e-6),
        ("smallest margin to the end of the period, µs", s["margin_us"]["min"]),
        ("periods missed", s["missed"]),
        ("samples lost in the ring", s["overflow"]),
        *((f"late by {cause.replace('_', '-')}", count) for cause, count in s["late_causes"].items()),
        ("mode", ("free-running", "soft, no real-time privilege", "real time")[s["realtime_mode"] % 3]),
    ]
    origins, seen = s["delay_origins"], s["delay_in_run"]
    ledger = [
        (term.replace("_", " "), 1e3 * value, origins.get(term, ""), 1e3 * seen[term] if term in seen else None)
        for term, value in s["delay_ledger"].items()
    ]
    ledger += [(name, None, "not in the sum", 1e3 * value) for name, value in seen.items() if name not in s["delay_ledger"]]
    if s["realtime_mode"]:
        body = table_html(("µs", "p50", "p99", "p99.9", "p99.99", "max"), rows) + table_html((), counts)
    else:
        factor = log.end.get("realtime_factor")
        body = "<p>Free-running: no lateness. " + (f"{factor:.0f} times real time.</p>" if isinstance(factor, int | float) else "</p>")
    if ledger:
        total = ("sum that the compensator used", 1e3 * s["loop_delay_s"], "", None)
        body += table_html(("delay ledger", "ms", "origin", "mean in the run, ms"), [*ledger, total])
    return body


def _configuration(log: Log) -> str:
    files = "".join(
        f"<details><summary>{text(name)}</summary><pre>{text(words)}</pre></details>" for name, words in log.header.configuration.items()
    )
    host = table_html((), [(key, str(value)) for key, value in log.header.host.items()])
    return files + (f"<details><summary>host</summary>{host}</details>" if log.header.host else "")
