"""How a report opens: verdict, what was run, margins, what to look at next, and three pictures that tell the run."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hil_server.config import criticality
from hil_server.judge.margins import Margin
from hil_server.judge.run import Run
from hil_server.judge.summary import Requirement, Summary
from hil_server.judge.verdict import Verdict, bars, margin_bars
from hil_server.log.reader import Log
from hil_server.pages.curves import Plot, drawn
from hil_server.pages.html import Markup, bars_html, facts_html, guarded, text, verdict_html
from hil_server.report import pictures, unit_course

DONE_SHOWN = 8
SHOWN = 5  # requirements in the opening; all of them stand in their section
OF_STAND = 3
HOST = ("free-running", "soft, no real-time privilege", "real time")


def opening(run: Run, s: Summary, found: Verdict, stand: Sequence[Margin], looks: Sequence[tuple[str, str, str]]) -> list[str]:
    """The first elements of the report. stand, looks: of `hil_server.judge.verdict`."""
    log = run.log
    title = run.document.get("test", {}).get("name") or s.run
    parts = [
        f'<h1>{text(title)} <span class="note">{text(s.run) if s.run != title else ""}</span></h1>',
        verdict_html(found.level, found.word.upper(), found.line),
        '<div class="columns">',
        f'<div class="first">{_made("Margins", lambda: _margins(s.requirements, stand))}{_made("Done to the run", lambda: _done(s))}</div>',
        f"<div>{_made('Facts', lambda: facts_html(facts(run, s)))}{_made('Next', lambda: _next(looks))}</div>",
        "</div>",
    ]
    if log.ticks:
        shown = drawn(("Contact force", lambda: [pictures.force_with_phases(log)]), ("Approach", lambda: [pictures.approach(log)]),
                      ("Third picture", lambda: [telling(run)]))  # fmt: skip
        parts.append(f'<div class="pictures">{shown}</div>')
        parts.append(
            '<p class="note screen">Drag across a curve to zoom, double-click for the whole run; arrows, + and − from the keyboard; '
            "a click on a name hides its line. All curves of the run zoom together. They are the log's to within 0.4 % of their range, "
            "most to within 0.05 %; of noise, the largest and the smallest value of every stretch are kept.</p>"
        )
    return parts


def _made(what: str, make: Callable[[], str]) -> str:
    return "".join(guarded(what, lambda: [make()], alone=False))


def _done(s: Summary) -> str:
    """What was done to the run by hand or by its files, the first lines of it."""
    rows = s.done_to_the_run
    if not rows:
        return ""
    # what changes the figures first, then plain commands, each in the order of time
    ordered = sorted(rows, key=lambda row: row["kind"] == "command")
    lines = "".join(f'<li class="{"" if row["kind"] == "command" else "warn"}">{text(row["text"])}</li>' for row in ordered[:DONE_SHOWN])
    more = f'<p class="note"><a href="#done">all {len(rows)}</a></p>' if len(rows) > DONE_SHOWN else ""
    return f'<h3>Done to the run</h3><ul class="next">{lines}</ul>{more}'


def _margins(requirements: Sequence[Requirement], stand: Sequence[Margin]) -> str:
    parts = []
    if requirements:
        more = len(requirements) - SHOWN
        rest = f'<p class="note"><a href="#requirements">all {len(requirements)} requirements</a></p>' if more > 0 else ""
        parts.append(f"<h3>Requirements</h3>{bars_html(bars(requirements)[:SHOWN])}{rest}")
    if stand:
        parts.append(f"<h3>Limits of the stand</h3>{bars_html(margin_bars(stand[: OF_STAND if requirements else SHOWN]))}")
    if not requirements:
        parts.append('<p class="note">The test states no requirement.</p>')
    return "".join(parts)


def _next(looks: Sequence[tuple[str, str, str]]) -> str:
    if not looks:
        return ""
    rows = "".join(f'<li class="{level}"><a href="#{anchor}">{text(words)}</a></li>' for level, words, anchor in looks)
    return f'<h3>What to look at next</h3><ol class="next">{rows}</ol>'


def facts(run: Run, s: Summary) -> list[tuple[str, object]]:
    """Date, test, stand, operator, conditions: (name, value) of what the log knows."""
    log, document = run.log, run.document
    test = document.get("test", {})
    crafts = [_craft(document.get(key, {})) for key in ("active_vehicle", "target_vehicle")]
    unit = document.get("mechanism", {}).get("name", "")
    stand = document.get("stand", {}).get("name", "") or test.get("stand", "")
    where = {"live": "live", "simulation": "simulation"}.get(s.mode, s.mode or "run")
    host = HOST[s.realtime_mode % 3] if s.mode == "live" and log.ticks else ""
    compensation = document.get("compensation", {}).get("part", "")
    delay = f", {1e3 * s.loop_delay_s:.2f} ms delay" if s.loop_delay_s else ""
    return [
        ("Date", Markup(f'<time datetime="{_date(log, "%Y-%m-%dT%H:%M:%SZ")}">{_date(log, "%Y-%m-%d %H:%M UTC")}</time>')),
        ("Test", test.get("description", "")),
        ("Stand", ", ".join(word for word in (stand, where, host) if word)),
        ("Operator", test.get("operator") or "none named"),
        ("Crafts", " to ".join(craft for craft in crafts if craft)),
        ("Unit", unit),
        ("Conditions", conditions(document.get("initial_conditions", {}))),
        ("Compensation", f"{compensation}{delay}" if compensation else ""),
        ("Impact", _impact(s)),
        ("Duration", f"{s.duration_s:.2f} s, {len(s.contacts)} contact{'' if len(s.contacts) == 1 else 's'}"),
        ("Notes", test.get("notes", "")),
    ]


def _impact(s: Summary) -> str:
    if s.impact_force_n is None:
        return ""
    marks = next((row.get("marks") for row in s.peaks if row["moment"] == "impact"), None)
    force, moment = s.peak_worth and s.peak_worth.get("mean_n"), s.moment_worth and s.moment_worth.get("mean_n_m")
    means = ([] if force is None else [f"{force:.0f} N"]) + ([] if moment is None else [f"{moment:.0f} N.m"])
    worth = f"; mean over 10 ms {', '.join(means)}" if means else ""
    blunt = "" if s.moment_worth is None or s.moment_worth["resolved"] else " (not resolved with this tick)"
    return f"{s.impact_force_n:.0f} N, {s.impact_moment_n_m:.0f} N.m{blunt}{worth}" + (f" ({'; '.join(marks)})" if marks else "")


def _date(log: Log, form: str) -> str:
    return time.strftime(form, time.gmtime(log.header.created))


def _craft(vehicle: Mapping[str, object]) -> str:
    mass = vehicle.get("mass_kg")
    weight = f" ({mass / 1000:.4g} t)" if isinstance(mass, int | float) else ""
    return f"{vehicle['name']}{weight}" if vehicle.get("name") else ""


def conditions(initial: Mapping[str, Any]) -> str:
    """Initial conditions in one line: misses, angles, speeds, rates, and how critical they are (R1, R2)."""
    if not initial:
        return ""
    value = {key: float(initial.get(key) or 0.0) for key in (
        "lateral_y_m", "lateral_z_m", "yaw_deg", "pitch_deg", "roll_deg", "velocity_x_m_s", "velocity_y_m_s", "velocity_z_m_s",
        "rate_x_deg_s", "rate_y_deg_s", "rate_z_deg_s")}  # fmt: skip
    parts = [f"closing {value['velocity_x_m_s']:.3g} m/s"]
    lateral = math.hypot(value["lateral_y_m"], value["lateral_z_m"])
    if lateral:
        parts.append(f"miss {1e3 * lateral:.0f} mm")
    angles = [f"{name} {value[f'{name}_deg']:.3g}°" for name in ("yaw", "pitch", "roll") if value[f"{name}_deg"]]
    parts += [", ".join(angles)] if angles else []
    speed, rate = math.hypot(value["velocity_y_m_s"], value["velocity_z_m_s"]), math.hypot(*(value[f"rate_{a}_deg_s"] for a in "xyz"))
    parts += [f"lateral {1e3 * speed:.0f} mm/s"] if speed else []
    parts += [f"turning {rate:.2g}°/s"] if rate else []
    try:
        r1, r2 = criticality(initial)
    except (KeyError, TypeError, ZeroDivisionError):
        return "; ".join(parts)
    return "; ".join([*parts, f"R1 {r1:.2f}, R2 {r2:.2f}"])


def telling(run: Run) -> Plot:
    """The picture beside force and approach, of what this kind of run is about: an arm's motors, flexible parts and joints of a craft, the
    docking unit's travel, the legs' following, else the energy."""
    log = run.log
    third: Plot | None = None
    if any(channel.name == "arm_motor_torque" for channel in log.header.aux):
        torque = log.aux("arm_motor_torque").reshape(log.ticks, -1)
        third = pictures.plot(log, "Arm: motors' torques", "N.m", torque, tuple(f"joint {j + 1}" for j in range(torque.shape[1])))
    topics: tuple[Callable[[], list[Plot]], ...] = (
        lambda: pictures.structure(log), lambda: pictures.joints(log), lambda: unit_course.state(run),
    )  # fmt: skip
    for made in topics:
        third = third or next((one for one in made() if one.values is not None), None)
    if third is None and not log.records["contact"].any() and np.ptp(log.records["leg_setpoint"], axis=0).any():
        third = pictures.legs(log)[1 if log.records["following_error"].any() else 0]
    return third or pictures.energy(log)[0]
