"""The report of a run: one HTML page with figures and pictures, that needs nothing but a browser.

It opens with the verdict, the margins and what to look at next (`hil_server.report.opening`); the rest is there to look things up.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hil_server.config.files import Done, no_progress, whole
from hil_server.errors import UsageError, attempt
from hil_server.judge.alignment import Alignment
from hil_server.judge.contacts import Contact
from hil_server.judge.crafts import is_names
from hil_server.judge.run import Run
from hil_server.judge.summary import Requirement, Summary, summarise
from hil_server.judge.verdict import Verdict, bars, margin_bars, next_looks, stand_margins, verdict
from hil_server.log.moments import MOMENTS
from hil_server.log.reader import Log, read_log
from hil_server.pages.curves import Plot, drawn, histogram
from hil_server.pages.html import bars_html, document, guarded, pill, section, table_html, text
from hil_server.report import pictures, reliance
from hil_server.report.foreseen import Foreseen
from hil_server.report.opening import opening
from rt_kernels.codes import bit_names, code_name

FIRST_CONTACTS, MOST_CONTACTS = 10, 40
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
    "moment": "moment of the docking",
    "marks": "in its window",
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


def make_report(log_path: str | os.PathLike[str], out_dir: str | os.PathLike[str] | None = None, run: Run | None = None,
                summary: Summary | None = None, prediction: str | os.PathLike[str] | None = None,
                done: Done = no_progress) -> Path:  # fmt: skip
    """Writes `<log>.html` into out_dir (default: beside the log). Returns its path. Raises LogError, UsageError.

    run, summary: where they are there already; prediction: log of the simulated variant, else the one that the run names; done:
    called with the amount done and the total."""
    run = Run(read_log(log_path)) if run is None else run
    folder = Path(out_dir) if out_dir is not None else Path(log_path).parent
    path = folder / f"{Path(log_path).stem}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole(path) as unfinished:
            unfinished.write_text(page(run, summary, prediction, done), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    return path


def page(run: Run, summary: Summary | None = None, prediction: str | os.PathLike[str] | None = None, done: Done = no_progress) -> str:
    """The whole report as HTML. summary: of `summarise` where it is there already; prediction: as above."""
    log, s = run.log, summarise(run) if summary is None else summary
    missing: list[dict[str, str]] = []
    found = attempt("Verdict", lambda: verdict(s), Verdict("warn", s.end, ""), missing)
    stand = attempt("Limits of the stand", lambda: stand_margins(run), [], missing)
    foreseen = attempt("Prediction", lambda: Foreseen.of(run, s, prediction), Foreseen(), missing)
    looks = attempt("What to look at next", lambda: next_looks(s, log, stand, foreseen.worst), [], missing)
    made: list[tuple[str, Callable[[], list[str]]]] = [
        ("Opening", lambda: opening(run, s, found, stand, looks)),
        ("Banners", lambda: _banners(log, s)),
        ("Not available", lambda: _missing([*s.not_available, *missing])),
        ("Outcome", lambda: [section("Outcome", _outcome(log, s))]),
        ("Loads by moment", lambda: [section("Loads by moment", _by_moment(s))]),
        ("Requirements", lambda: [section("Requirements", _requirements(s.requirements))] if s.requirements else []),
        ("Limits of the stand", lambda: [section("Limits of the stand", bars_html(margin_bars(stand)), "margins")] if stand else []),
        ("Faults", lambda: [section("Faults", _faults(s))]),
        ("Done to the run", lambda: _done(s)),
        ("The last second before the trip", lambda: _before_trip(log, s)),
        ("Prediction", lambda: [section("Prediction", foreseen.body)] if foreseen.body else []),
        ("Rehearsal", lambda: _rehearsal(run)),
        ("Contacts", lambda: [section("Contacts", _contacts(s))]),
        ("Loads and motion within the crafts", lambda: _crafts(log, s)),
        ("Docking unit", lambda: _unit(run)),
        ("In space", lambda: _scene(run)),
        ("Pictures", lambda: _pictures(log)),
        ("Time", lambda: [section("Time", _time(log, s))]),
        ("Safety", lambda: [section("Safety", reliance.body(run.document, log.header.devices))]),
        ("Configuration", lambda: [section("Configuration", _configuration(log))]),
    ]
    parts: list[str] = []
    for i, (name, make) in enumerate(made, 1):
        parts += guarded(name, make)
        done(i, len(made))
    title = run.document.get("test", {}).get("name") or s.run
    return document(f"{title}: {found.word}", [part for part in parts if part])


# --------------------------------------------------------------------------------------------------------------- pieces


def _banners(log: Log, s: Summary) -> list[str]:
    found = []
    if not s.complete:
        reasons = "; ".join(s.incomplete)
        found.append(f'<p class="banner bad">This run is incomplete: {text(reasons)}.</p>')
    if s.not_confirmed:
        found.append(f'<p class="banner bad">Not confirmed when the power was taken off: {text("; ".join(s.not_confirmed))}.</p>')
    if s.synthetic:
        found.append(f'<p class="banner">Made with synthetic geometry: {text(s.synthetic)}. Figures are those of an invented unit.</p>')
    if s.realtime_mode == 1:
        found.append('<p class="banner">Ran without real-time privileges (soft mode): times are those of a busy desk computer.</p>')
    found += [f'<p class="banner">{text(note)}</p>' for note in log.header.notes if not is_names(note)]
    return found


def _outcome(log: Log, s: Summary) -> str:
    rows: list[tuple[str, object]] = [
        ("end", s.end),
        ("captured", s.captured),
        *_alignment(s.alignment),
        ("capture, run time s", s.capture_time_s),
        ("first contact, run time s", s.first_contact_time_s),
        ("duration, s", s.duration_s),
        ("ticks", s.ticks),
        ("last phase", code_name("phase", int(log.records["phase"][-1])) if log.ticks else "none"),
        ("contacts", len(s.contacts)),
        ("smallest stroke margin, m", s.stroke_margin_min_m),
        ("largest following error, m", s.following_error_max_m),
        *((f"ticks with clipped leg {what}", count) for what, count in s.clipped_ticks.items()),
    ]
    names = {"fx_n": "Fx, N", "fy_n": "Fy, N", "fz_n": "Fz, N", "mx_n_m": "Mx, N.m", "my_n_m": "My, N.m", "mz_n_m": "Mz, N.m"}
    peaks = [(names[name], value, s.peak_wrench_time_s[name]) for name, value in s.peak_wrench.items()]
    loads = table_html(("peak wrench at T, closed loop", "value", "at s"), peaks)
    return f'<div class="columns"><div>{table_html((), rows)}</div><div>{loads}</div></div>'


def _by_moment(s: Summary) -> str:
    """The largest loads of each moment of the docking, the impact first of all in words, and what its peak is worth."""
    rows = []
    for row in s.peaks:
        marks = "; ".join(row.get("marks") or ())
        name = pill("warn", row["moment"]) if marks else row["moment"]
        loads = (row["force_n"], row["force_time_s"], row["moment_n_m"], row["moment_time_s"], *row["wrench"].values())
        rows.append((name, MOMENTS[row["moment"]], row["from_s"], row["to_s"], *loads, marks))
    head = ("moment", "", "from s", "to s", "force, N", "at s", "moment, N.m", "at s", *pictures.FORCE, *pictures.MOMENT, "in its window")
    worth = [text(one["text"]) for one in (s.peak_worth, s.moment_worth) if one]
    intro = "".join(f"<p>Peak of the impact: {words}.</p>" for words in worth) or "<p>No impact.</p>"
    note = '<p class="note">Force and moment: size of the contact wrench on the target port. What the stand does by itself, before and '
    note += "after the closed loop, is no load of the docking: it stands here and counts nowhere else.</p>"
    return intro + table_html(head, rows) + note


def _done(s: Summary) -> list[str]:
    """Commands, tunes, injections, recoveries, what was forced: all of it."""
    rows = [(row["time_s"], row["tick"], row["kind"], row["what"], row["by"], row["old"], row["new"], row["unit"], row["answer"])
            for row in s.done_to_the_run]  # fmt: skip
    head = ("at s", "tick", "", "what", "by", "old", "new", "unit", "answer")
    return [section("Done to the run", table_html(head, rows), "done")] if rows else []


def _missing(rows: Sequence[Mapping[str, str]]) -> list[str]:
    return [f'<p class="banner">{text(row["figure"])}: not available: {text(row["reason"])}.</p>' for row in rows]


def _requirements(requirements: Sequence[Requirement]) -> str:
    """All of them: bars, and a table with what each was judged by."""
    head = ("requirement", "verdict", "value", "limit", "margin", "unit", "at s", "phase", "source")
    level = {"met": "good", "violated": "bad"}

    def shown(one: Requirement) -> str:
        return pill("warn" if one.get("marks") and one["verdict"] == "met" else level.get(one["verdict"], ""), one["verdict"])

    rows = [
        (one["name"], shown(one), one.get("value"), one.get("limit"), one.get("margin"),
         one.get("unit") or "", one.get("time_s"), one.get("phase") or "", one.get("source") or "")
        for one in requirements
    ]  # fmt: skip
    words = [(one["name"], one["words"]) for one in requirements if one.get("words")]
    words += [(one["name"], f"in its window: {'; '.join(one['marks'])}") for one in requirements if one.get("marks")]
    intro = "".join(f'<p class="note">{text(name)}: {text(line)}</p>' for name, line in words)
    return bars_html(bars(requirements)) + table_html(head, rows, sortable=True) + intro


def _alignment(found: Alignment | None) -> list[tuple[str, object]]:
    """How the units stood to each other at the end of the retraction."""
    if found is None:
        return []
    rows: list[tuple[str, object]] = [
        ("docking planes", "together and aligned" if found["aligned"] else f"not aligned: {', '.join(found['missing'])}"),
        ("tilt of the docking axes, deg", found["tilt_deg"]),
        ("roll, deg", found["roll_deg"]),
        ("offset of the ports, m", found["offset_m"]),
    ]
    return rows + [(f"{name}, m", gap) for name, gap in found["gaps_m"].items()]


def _faults(s: Summary) -> str:
    """The cause, the faults in their order, and what was only noted."""
    head = ("severity", "tick", "s", "meaning", "what to do")
    faults, notes = ([(f["name"], f["severity"], f["tick"], f["time_s"], f["meaning"], f["action"]) for f in found]
                     for found in (s.fault_details, s.note_details))  # fmt: skip
    cause = s.cause
    intro = f'<p class="bad">{text(cause["text"])} (tick {cause["tick"]}, {cause["time_s"]:.3f} s).</p>' if cause else ""
    body = intro + table_html(("fault", *head), faults) if faults else '<p class="good">None.</p>'
    return body + (table_html(("note, no fault", *head), notes) if notes else "")


def _before_trip(log: Log, s: Summary) -> list[str]:
    """What a person wants to see first after a trip: the wrench and the legs around the stop, and what touched."""
    at = np.flatnonzero((log.records["tick"] == s.trip_tick) & (s.trip_tick >= 0))
    if not len(at):
        return []
    row = log.records[at[0]]
    centre = float(log.time_s[at[0]])
    second = log.records[(log.time_s > centre - BEFORE_TRIP_S) & (log.time_s <= centre)]
    stop = [f["name"] for f in s.fault_details if f["severity"] == "stop"]
    rows: list[tuple[str, object]] = [
        ("stopped by", ", ".join(stop)),
        ("tick", s.trip_tick),
        ("phase", code_name("phase", int(row["phase"]))),
        ("in contact", bool(row["contact"])),
        ("mechanism signals on", ", ".join(bit_names("mechanism_signal", int(row["signal_discrete"]))) or "none"),
        ("mechanism signals in the second before", ", ".join(_any_bits(second["signal_discrete"])) or "none"),
        ("force sensor status", ", ".join(bit_names("sensor_status", int(row["wrench_fault"] | row["wrench_status"]))) or "none"),
        ("drive status", ", ".join(_any_bits(np.atleast_1d(row["drive_status"]), "drive_status")) or "none"),
        ("late ticks in the second before", int(np.count_nonzero(second["late_cause"]))),
        ("largest force in the second before, N", float(np.linalg.norm(second["F_T"][:, :3], axis=1).max())),
    ]
    body = table_html((), rows) + drawn(("Curves", lambda: pictures.around(log, centre, BEFORE_TRIP_S)))
    return [section("The last second before the trip", body, "trip")]


def _any_bits(words: np.ndarray, group: str = "mechanism_signal") -> list[str]:
    return bit_names(group, int(np.bitwise_or.reduce(words))) if len(words) else []


def _rehearsal(run: Run) -> list[str]:
    """Score sheet and pictures of a berthing run."""
    from hil_server.judge import rehearsal

    if not rehearsal.is_rehearsal(run):
        return []
    from hil_server.report.rehearsal_page import sections

    return sections(run)


def _contacts(s: Summary) -> str:
    contacts = s.contacts
    if not contacts:
        return "<p>No contact.</p>"
    note = '<p class="note">Energies include what control forces add during a contact; work is that of the corrected wrench alone.</p>'
    more = len(contacts) - MOST_CONTACTS
    rest = f'<p class="note">and {more} more in the log</p>' if more > 0 else ""
    table = _columns(CONTACT_COLUMNS, contacts[:FIRST_CONTACTS])
    if len(contacts) > FIRST_CONTACTS:
        # of the docking, where there is one of it
        hardest = max([c for c in contacts if c.get("moment") != "stand"] or contacts, key=lambda one: one["peak_force_n"])
        intro = f"Of {len(contacts)} contacts, the hardest began at {hardest['begin_s']:.3f} s with {hardest['peak_force_n']:.0f} N."
        later = _columns(CONTACT_COLUMNS, contacts[FIRST_CONTACTS:MOST_CONTACTS]) + rest
        numbers = f"{FIRST_CONTACTS + 1} to {min(len(contacts), MOST_CONTACTS)}"
        table = f"<p>{intro}</p>{table}<details><summary>contacts {numbers}</summary>{later}</details>"
    why = "".join(f"<li>{text(line)}</li>" for line in s.contacts_without_e)
    return (f"<ul>{why}</ul>" if why else "") + table + note


def _columns(columns: dict[str, str], rows: list[Contact]) -> str:
    """A table of the columns that have something in any row."""
    shown: list[dict[str, object]] = [{**row, "marks": "; ".join(row.get("marks") or ())} for row in rows]
    there = [key for key in columns if any(row.get(key) not in (None, "") for row in shown)]
    return table_html([columns[key] for key in there], [[row.get(key) for key in there] for row in shown])


def _crafts(log: Log, s: Summary) -> list[str]:
    """Peaks of joints, measured points and interfaces of the crafts by name, and their course."""
    if s.crafts is None:
        return []
    body = ""
    for kind, columns in CRAFT_COLUMNS.items():
        rows = [[row["name"], *(row.get(key) for key in columns)] for row in s.crafts[kind]]
        if rows:
            body += table_html((kind, *columns.values()), rows)
    body += drawn(("Joints", lambda: pictures.joints(log)), ("Structure", lambda: pictures.structure(log)))
    return [section("Loads and motion within the crafts", body, "crafts")]


def _unit(run: Run) -> list[str]:
    """Sensors and state of the docking unit over the run, and the list of events."""
    log = run.log
    if not log.ticks:
        return []
    from hil_server.report import unit_course

    body = drawn(("Sensors", lambda: [on] if (on := unit_course.sensors(log)) else []), ("State", lambda: unit_course.state(run)))
    happened = unit_course.events(run)
    rows = [(f"{at:.3f}", what) for at, what in happened[: unit_course.EVENTS_MOST]]
    more = f"<p>{len(happened) - len(rows)} more are in the log.</p>" if len(happened) > len(rows) else ""
    listed = f"<details><summary>{len(happened)} events</summary>{table_html(('run time, s', ''), rows)}{more}</details>"
    return [section("Docking unit", body + listed)]


def _scene(run: Run) -> list[str]:
    """The units, the stand and the crafts in three dimensions, over the run."""
    from hil_server.report import scene

    figures = (("Docking units", scene.scene), ("Crafts", scene.crafts_scene)) if run.log.ticks else ()
    whole = "".join(line for title, make in figures for line in guarded(title, lambda make=make: [make(run)], False))  # type: ignore[misc]
    return [section("In space", whole, "space")] if whole else []


def _pictures(log: Log) -> list[str]:
    if not log.ticks:
        return ["<p>The log holds no tick.</p>"]
    topics: list[tuple[str, Callable[[Log], list[Plot]]]] = [
        ("Wrench", pictures.wrench), ("Motion", pictures.relative_motion), ("Legs", pictures.legs), ("Energy", pictures.energy),
    ]  # fmt: skip
    found: list[str] = [section(title, drawn((title, lambda make=make: make(log)))) for title, make in topics]  # type: ignore[misc]
    if log.records["realtime_mode"].any():
        us = [(1e-3 * log.records[f"{name}_ns"], words) for name, words in (("lateness", "lateness"), ("compute", "computing"))]
        counted = guarded("Histograms", lambda: [histogram(words, "µs", values) for values, words in us], alone=False)
        found.append(section("Lateness", drawn(("Lateness", lambda: pictures.lateness(log))) + "".join(counted)))
    return found


def _time(log: Log, s: Summary) -> str:
    percentiles = ("p50", "p99", "p999", "p9999", "max")
    times = {"lateness": s.lateness_us, "read": s.read_us, "compute": s.compute_us, "write": s.write_us,
             "deviation from the clock of the bus": s.bus_deviation_us}  # fmt: skip
    rows = [(words, *(values[p] for p in percentiles)) for words, values in times.items() if values is not None]
    counts: list[tuple[str, object]] = [
        ("period, ms", log.header.period_ns * 1e-6),
        ("smallest margin to the end of the period, µs", s.margin_us["min"]),
        ("periods missed", s.missed),
        ("samples lost in the ring", s.overflow),
        *((f"late by {cause.replace('_', '-')}", count) for cause, count in s.late_causes.items()),
        *(("the clock of the bus gains, ppm", grid["reference_gains_ppm"]) for grid in [log.end.get("grid")] if isinstance(grid, dict)),
        ("mode", ("free-running", "soft, no real-time privilege", "real time")[s.realtime_mode % 3]),
    ]
    origins, seen = s.delay_origins, s.delay_in_run
    ledger: list[tuple[object, ...]] = [
        (term.replace("_", " "), 1e3 * value, origins.get(term, ""), 1e3 * seen[term] if term in seen else None)
        for term, value in s.delay_ledger.items()
        if isinstance(value, int | float)
    ]
    ledger += [(name, None, "not in the sum", 1e3 * value) for name, value in seen.items() if name not in s.delay_ledger]
    if s.realtime_mode:
        body = table_html(("µs", "p50", "p99", "p99.9", "p99.99", "max"), rows) + table_html((), counts)
        named = [(one["cause"].replace("_", " "), one["who"], one["ticks"], one["worst_us"], one["remedy"]) for one in s.late_named]
        if named:
            body += table_html(("why ticks were late", "who or what", "ticks", "worst, µs", "remedy"), named)
    else:
        factor = log.end.get("realtime_factor")
        body = "<p>Free-running: no lateness. " + (f"{factor:.0f} times real time.</p>" if isinstance(factor, int | float) else "</p>")
    if ledger:
        total = ("sum that the compensator used", 1e3 * s.loop_delay_s, "", None)
        body += table_html(("delay ledger", "ms", "origin", "mean in the run, ms"), [*ledger, total])
    return body


def _configuration(log: Log) -> str:
    files = "".join(
        f"<details><summary>{text(name)}</summary><pre>{text(words)}</pre></details>" for name, words in log.header.configuration.items()
    )
    host = table_html((), [(key, str(value)) for key, value in log.header.host.items()])
    return files + (f"<details><summary>host</summary>{host}</details>" if log.header.host else "")
