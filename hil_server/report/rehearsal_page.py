"""The rehearsal record for people: score sheet and pictures of one run for its report, and the page of the trend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hil_server.judge import rehearsal
from hil_server.judge.arm_margin import arm_margin
from hil_server.judge.record_time import in_words
from hil_server.judge.run import Run
from hil_server.pages.curves import Plot, drawn
from hil_server.pages.html import document, guarded, section, table_html, text
from hil_server.report import pictures
from hil_server.requirements.angles import yaw_pitch_roll

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = (
    ("operator", "operator", 1.0),
    ("end", "end", 1.0),
    ("captured", "captured", 1.0),
    ("flown, s", "flown_s", 1.0),
    ("time to capture, s", "time_to_capture_s", 1.0),
    ("first contact after, s", "first_contact_s", 1.0),
    ("lateral miss there, mm", "lateral_miss_m", 1e3),
    ("yaw there, deg", "yaw_miss_deg", 1.0),
    ("pitch there, deg", "pitch_miss_deg", 1.0),
    ("roll there, deg", "roll_miss_deg", 1.0),
    ("closing speed there, mm/s", "closing_speed_m_s", 1e3),
    ("lateral speed there, mm/s", "lateral_speed_m_s", 1e3),
    ("turning there, deg/s", "turn_rate_deg_s", 1.0),
    ("largest contact force, N", "peak_contact_force_n", 1.0),
    ("largest contact moment, N.m", "peak_contact_moment_n_m", 1.0),
    ("largest force on the arm, N", "peak_load_force_n", 1.0),
    ("largest moment on the arm, N.m", "peak_load_moment_n_m", 1.0),
    ("the same, of the arm's limit", "peak_load_part", 1.0),
    ("translation stick, full deflection for s", "stick_translation_s", 1.0),
    ("rotation stick, full deflection for s", "stick_rotation_s", 1.0),
    ("commanded travel, m", "commanded_m", 1.0),
    ("commanded turn, deg", "commanded_deg", 1.0),
    ("overshoots (an axis changed its side)", "overshoots", 1.0),
    ("stick oscillation, of full deflection", "stick_oscillation", 1.0),
    ("Steps and Inserts", "commands", 1.0),
    ("stops by limits", "stops", 1.0),
)


def sections(run: Run) -> list[str]:
    """Score sheet and pictures of a berthing run, as sections of its report."""
    found = guarded("Score sheet", lambda: [section("Score sheet", _sheet(run))])
    if rehearsal.flight(run).any():
        found.append(section("Flight", drawn(("Flight", lambda: flight(run)))))
    return found + guarded("Arm", lambda: _arm(run))


def _sheet(run: Run) -> str:
    sheet = rehearsal.score_sheet(run)
    rows = [(title, _scaled(sheet.get(key), factor)) for title, key, factor in ROWS]
    rows += [(f"… by {name.replace('_', ' ')}", count) for name, count in sheet.get("stopped_by", {}).items() if count]
    sentence = in_words(run)
    return table_html((), rows) + (f'<p class="note">{text(sentence)}.</p>' if sentence else "")


def _arm(run: Run) -> list[str]:
    margin = arm_margin(run)
    if margin is None:
        return []
    joints = [(name, 100.0 * margin["joints"][name], 100.0 * margin["motors"][name]) for name in margin["joints"]]
    body = f"<p>{text(margin['text'])}</p>" + table_html(("joint", "gear, % of its torque", "motor, % of its torque"), joints)
    return [section("Arm", body + drawn(("Compliance and loads", lambda: arm(run))))]


def _scaled(value: object, factor: float) -> object:
    return factor * value if isinstance(value, float) else value


def flight(run: Run) -> list[Plot]:
    """Relative pose, the operator's sticks and demanded rates, loads against the arm's limits, from the closing of the loop on."""
    log, flown = run.log, rehearsal.flight(run)
    r, t = log.records[flown], log.time_s[flown]
    load, limits = rehearsal.arm_load(run), rehearsal.arm_limits(run)
    translation, rotation = (axis[flown] for axis in rehearsal.sticks(run))
    contact = [np.linalg.norm(r["F_T"][:, i : i + 3], axis=1)[:, None] for i in (0, 3)]
    rows: list[tuple[str, str, np.ndarray, tuple[str, ...], float | None]] = [
        ("Position of A in T", "mm", 1e3 * r["X_TA"][:, :3], ("x", "y", "z"), None),
        ("Attitude of A in T", "deg", np.degrees(yaw_pitch_roll(r["X_TA"])), ("yaw ψ", "pitch θ", "roll φ"), None),
        ("Left hand", "", translation, ("HL x", "HL y", "HL z"), None),
        ("Right hand", "", rotation, ("HR roll", "HR yaw", "HR pitch"), None),
        ("Contact force", "N", contact[0], ("force",), None),
        ("Contact moment", "N.m", contact[1], ("moment",), None),
    ]
    for i, (what, unit) in enumerate((("Force", "N"), ("Moment", "N.m"))):
        if load is not None:
            size = np.linalg.norm(load[flown, 3 * i : 3 * i + 3], axis=1)[:, None]
            rows.append((f"{what} at the arm's end", unit, size, (what.lower(),), limits[i] if limits else None))
    return [Plot(title, unit, t, values, names, marks=pictures.events(log), limits=[(limit, "limit of the arm")] if limit else ())
            for title, unit, values, names, limit in rows]  # fmt: skip


def arm(run: Run) -> list[Plot]:
    """Compliance and loads, from the closing of the loop on: how far the arm gives at the payload's grapple fixture, the wrench there, the
    motors' torques, and the loads of the payload's docking interface."""
    log, flown = run.log, rehearsal.flight(run)
    r, t = log.records[flown], log.time_s[flown]
    give, load, motor = (log.aux(f"arm_{name}")[flown] for name in ("deflection", "wrench_E", "motor_torque"))
    force, moment = ("Fx", "Fy", "Fz"), ("Mx", "My", "Mz")
    rows = (
        ("Arm gives at the fixture", "mm", 1e3 * give[:, :3], ("x", "y", "z")),
        ("Arm turns at the fixture", "deg", np.degrees(give[:, 3:]), ("x", "y", "z")),
        ("Force at the fixture", "N", load[:, :3], force),
        ("Moment at the fixture", "N.m", load[:, 3:], moment),
        ("Motors' torques", "N.m", motor, tuple(f"joint {j + 1}" for j in range(motor.shape[1]))),
        ("Force at the interface", "N", r["F_T"][:, :3], force),
        ("Moment at the interface", "N.m", r["F_T"][:, 3:], moment),
    )
    return [Plot(*row[:2], t, *row[2:], marks=pictures.events(log)) for row in rows]


def page(sheets: Sequence[rehearsal.Sheet]) -> str:
    """The trend over every operator's attempts as one HTML page that needs nothing but a browser."""
    from hil_server.pages import figures

    parts = ["<h1>Rehearsals</h1>"]
    for name, attempts in rehearsal.trend(sheets).items():
        rows = [(n, s["run"], s["test"], *(rehearsal.shown(s, key) for key in rehearsal.TREND)) for n, s in enumerate(attempts, start=1)]
        head = ("attempt", "run", "test", *(title for title, _ in rehearsal.TREND.values()))
        captured = sum(s["captured"] for s in attempts)
        note = f"<p>{captured} of {len(attempts)} captured.</p>"
        shown = figures.embedded(trend_picture(attempts), "Time to capture, miss, contact force and use of the stick over the attempts")
        body = note + table_html(head, rows, sortable=True) + shown
        parts.append(section(f"Operator {name or '(no name)'}", body))
    return document("Rehearsals", parts)


def trend_picture(attempts: Sequence[rehearsal.Sheet]) -> "Figure":
    """Time, miss, load and use of the sticks over the attempts; a ring marks one without capture."""
    from hil_server.pages import figures

    topics = (
        ([s.get("time_to_capture_s") for s in attempts], "to capture, s", 1.0),
        ([s.get("lateral_miss_m") for s in attempts], "miss at contact, mm", 1e3),
        ([s.get("peak_contact_force_n") for s in attempts], "contact force, N", 1.0),
        ([s.get("stick_translation_s") for s in attempts], "translation stick, s", 1.0),
    )
    drawn, axes = figures.figure(len(topics), 1.8)
    number = np.arange(1, len(attempts) + 1)
    captured = np.array([s["captured"] for s in attempts])
    for one, (course, label, factor) in zip(axes, topics, strict=True):
        values = np.array([np.nan if value is None else factor * value for value in course])
        one.plot(number, values, "-", color=figures.COLOURS[0], linewidth=0.8)
        one.plot(number[captured], values[captured], "o", color=figures.COLOURS[2], markersize=5)
        one.plot(number[~captured], values[~captured], "o", color=figures.COLOURS[1], markersize=6, fillstyle="none")
        one.set_ylabel(label, fontsize=9)
        one.set_ylim(bottom=0.0)
    axes[-1].set_xticks(number)
    axes[-1].set_xlabel("attempt", fontsize=9)
    return drawn
