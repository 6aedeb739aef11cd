"""Outcome of a run in one line, and what to check next: the first line of a report, from its summary."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil_server.judge.interventions import CLEARED
from hil_server.judge.margins import FIELDS, Margin, margins
from hil_server.judge.run import Run
from hil_server.judge.summary import Requirement, Summary
from hil_server.log.reader import Log
from rt_kernels.codes import code_name
from rt_kernels.layout import CODES

NEAR = 0.8  # of a limit: what comes nearer is worth a look
FAULTS_SHOWN = 4
LEVELS = ("good", "warn", "bad")
# end of a run → level and word, without further findings
ENDS = {
    "captured": ("good", "captured"),
    "complete": ("good", "complete"),
    "separated": ("good", "separated"),
    "not_aligned": ("bad", "not aligned"),
    "tripped": ("bad", "tripped"),
    "record_lost": ("bad", "record lost"),
    "stopped": ("warn", "stopped"),
}
WHY = {"time": "time is up", "region": "it left the region of the contact", "overload": "overload", "retreated": "retreated"}


@dataclass(frozen=True)
class Verdict:
    """level: good, warn or bad; word: outcome; line: reason, in one sentence."""

    level: str
    word: str
    line: str

    def __str__(self) -> str:
        return f"{self.word.upper()}: {self.line}" if self.line else self.word.upper()


def verdict(s: Summary) -> Verdict:
    """Of a run by its summary."""
    level, word = ENDS.get(s.end, ("good", "captured") if s.captured else ("warn", "not captured"))
    stalled = not s.captured and s.arm is not None and s.arm["outcome"] == "stalled"
    if stalled and level != "bad":
        level, word = "warn", "stalled"
    parts = [line] if (line := _why(s, word)) else []
    if s.faults and s.end != "tripped":
        level = _worse(level, "warn")
        parts.append(f"{_counted(len(s.faults), 'fault')}: {', '.join(s.faults[:3])}")
    if s.missed:
        level = _worse(level, "warn")
        parts.append(f"{_counted(s.missed, 'period')} missed")
    if not s.complete:
        level = _worse(level, "warn")
        parts.append("the log is incomplete")
    if s.not_confirmed:
        level = "bad"
        parts.append(f"not confirmed when the power was taken off: {s.not_confirmed[0]}")
    if injected := sum(row["kind"] == "injection" and row["what"] != CLEARED for row in s.done_to_the_run):
        level = _worse(level, "warn")
        parts.append(f"{_counted(injected, 'fault')} injected")
    if s.unit_ledger is not None and not s.unit_ledger.closes:
        level = _worse(level, "warn")
        parts.append(f"energy of the docking unit {s.unit_ledger.in_words}")
    if s.not_available:
        level = _worse(level, "warn")
        parts.append(f"not available: {', '.join(one['figure'] for one in s.not_available[:3])}")
    violated = [one["name"] for one in s.requirements if one["verdict"] == "violated"]
    judged = [one for one in s.requirements if one["verdict"] != "not judged"]
    if violated:
        level, word = "bad", f"{word}, requirement violated" if level != "bad" else word
        parts.append(f"{len(violated)} of {_counted(len(judged), 'requirement')} violated: {', '.join(violated[:3])}")
    elif judged:
        parts.append(f"all {len(judged)} requirements met" if len(judged) > 1 else "its requirement is met")
    return Verdict(level, word, "; ".join(parts))


def _why(s: Summary, word: str) -> str:
    if s.end == "tripped" and s.cause:
        return f"{s.cause['text']} at {s.cause['time_s']:.3f} s (tick {s.cause['tick']})"
    if s.end == "record_lost":
        return s.record_lost or "the run could not be recorded to its end"
    if s.alignment:
        found = s.alignment
        state = "docking planes together and aligned" if found["aligned"] else f"missing {', '.join(found['missing'])}"
        return f"{state}, tilt {found['tilt_deg']:.2f}°, offset {1e3 * found['offset_m']:.1f} mm"
    contact = s.first_contact_time_s
    if word == "captured" and s.capture_time_s is not None:
        after = f", {s.capture_time_s - contact:.2f} s after first contact" if contact is not None else ""
        return f"at {s.capture_time_s:.2f} s{after}"
    ended = WHY.get(s.end, "")
    if contact is None:
        return f"no contact in {s.duration_s:.1f} s" + (f", {ended}" if ended else "")
    return f"first contact at {contact:.2f} s, end at {s.duration_s:.1f} s" + (f": {ended}" if ended else "")



def _worse(a: str, b: str) -> str:
    return max(a, b, key=LEVELS.index)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


# --------------------------------------------------------------------------------------------------------------------- margins


def used(one: Requirement) -> float | None:
    """Share of its limit that a requirement uses: 1 at the limit, more beyond it; None where it has no limit to compare with. Of a value
    that is to be at least its limit: limit over value, so that twice the limit uses half of it."""
    limit, margin = one.get("limit"), one.get("margin")
    if limit is None or margin is None or not limit or not np.isfinite(margin):
        return None
    if at_least(one) and margin > 0.0 and limit > 0.0:
        return float(limit / (limit + margin))
    return float(max(0.0, 1.0 - margin / abs(limit)))


def at_least(one: Requirement) -> bool:
    """Whether its limit is a lower bound: the margin says so."""
    value, limit, margin = one.get("value"), one.get("limit"), one.get("margin")
    return value is not None and limit is not None and margin is not None and margin * (value - limit) > 0.0


def bars(requirements: Sequence[Requirement]) -> list[tuple[str, str, float | None, str]]:
    """Rows of `hil_server.pages.html.bars_html` for the requirements, violated ones first, then by what is left of the limit."""
    rows = []
    for one in requirements:
        share = used(one)
        unit = f" {one['unit']}" if one.get("unit") and one["unit"] != "-" else ""
        if one["verdict"] == "not judged":
            words, level = str(one.get("words") or "not judged"), ""
        else:
            value, limit = _written(one.get("value")), _written(one.get("limit"))
            plain = f"{value or _written(one.get('margin'))}{unit}".strip()
            bound = f"{value}, at least {limit}" if at_least(one) else f"{value} of {limit}"
            words = f"{bound}{unit}" if value and limit else plain or str(one.get("words") or "")
            marks = "; ".join(one.get("marks") or ())
            level = "bad" if one["verdict"] == "violated" else "warn" if marks or (share is not None and share > NEAR) else "good"
            words += f" ({marks})" if marks else ""
        rows.append((str(one["name"]), words, share, level))
    return sorted(rows, key=lambda row: (("bad", "warn", "good", "").index(row[3]), -(row[2] or 0.0)))


def _written(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def stand_margins(run: Run) -> list[Margin]:
    """How near the closed loop came to the limits of its stand, nearest first; nothing without a configuration that can be read. A
    rehearsal has no stand that moves: its bars would say nothing."""
    log, config = run.log, run.config
    if config is None or not log.ticks or config.test.get("rehearsal"):
        return []
    closed = log.records["motion"] == CODES["motion"]["free"]
    if not closed.any():
        return []
    columns = {name: log.records[name][closed] for name in FIELDS}
    return [one for one in margins(columns, config, log.header.period_ns * 1e-9) if one.reached or one.share]


def margin_bars(found: Sequence[Margin]) -> list[tuple[str, str, float | None, str]]:
    """Rows of `bars_html` for margins to the stand's limits."""
    return [
        (one.name, f"{_written(one.reached)} of {_written(one.limit)} {one.unit}".strip(), one.share, _level(one)) for one in found
    ]


def _level(one: Margin) -> str:
    """Rates and accelerations that the limits clip for a moment stop nothing."""
    return "good" if one.share <= NEAR else "warn" if one.share < 1.0 or not one.stops else "bad"


# ----------------------------------------------------------------------------------------------------------------- what is next


def next_looks(s: Summary, log: Log, stand: Sequence[Margin], worst: str = "") -> list[tuple[str, str, str]]:
    """(level, words, anchor of the section) of what is worth a look, the worst first: incomplete, faults in their order, smallest margins,
    worst comparison with the prediction (`worst`, in words), largest lateness, what was only noted."""
    found = [("bad", f"incomplete: {reason}", "faults") for reason in s.incomplete]
    for fault in s.fault_details[:FAULTS_SHOWN]:
        at = f"at {fault['time_s']:.3f} s, tick {fault['tick']}"
        found.append(("bad", f"{fault['name']} ({fault['severity']}) {at}: {fault['meaning']}", "faults"))
    if len(s.fault_details) > FAULTS_SHOWN:
        found.append(("bad", f"{len(s.fault_details) - FAULTS_SHOWN} more faults", "faults"))
    for name, words, share, level in bars(s.requirements)[:2]:
        if level:
            left = f", {100 * share:.0f} % of the limit used" if share is not None and share <= 1.0 else ""
            found.append((level, f"requirement {name}: {words}{left}", "requirements"))
    for name, words, share, level in margin_bars(stand)[:1]:
        found.append((level, f"nearest limit of the stand: {name}, {words} ({100 * (share or 0.0):.0f} %)", "margins"))
    if s.alignment is None and log.ticks and s.stroke_margin_min_m < 0.0:
        found.append(("bad", f"a leg passed its stroke by {-1e3 * s.stroke_margin_min_m:.0f} mm", "legs"))
    if worst:
        found.append(("", worst, "prediction"))
    if log.ticks and s.realtime_mode:
        row = int(log.records["lateness_ns"].argmax())
        cause = code_name("late_cause", int(log.records["late_cause"][row])).replace("_", "-")
        late = s.lateness_us["max"]
        level = "warn" if s.missed or 1e3 * late > 0.5 * log.header.period_ns else "good"
        why = f", by {cause}" if cause not in ("none", "") else ""
        found.append((level, f"largest lateness {late:.0f} µs at {log.time_s[row]:.3f} s (tick {int(log.records['tick'][row])}){why}; "
                             f"{_counted(s.missed, 'period')} missed", "time"))  # fmt: skip
    for note in s.note_details[:2]:
        found.append(("", f"noted: {note['name']} at {note['time_s']:.3f} s, tick {note['tick']}", "faults"))
    return sorted(found, key=lambda look: ("bad", "warn").index(look[0]) if look[0] in ("bad", "warn") else 2)
