"""A run beside what was foreseen of it: its restitution, and the log of its simulation where there is one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hil_server.errors import HilError
from hil_server.judge.run import Run
from hil_server.judge.summary import Summary
from hil_server.log.reader import read_log
from hil_server.pages.curves import embedded
from hil_server.pages.html import table_html, text
from hil_server.report import comparison

MOST_CONTACTS = 40
REBOUND_COLUMNS = {
    "begin_s": "begin, s",
    "rebound": "e measured",
    "rebound_predicted": "e predicted",
    "rebound_in_orbit": "e in orbit",
    "mode_frequency_hz": "mode, Hz",
}


@dataclass(frozen=True)
class Foreseen:
    """body: the section of the report as HTML, empty where nothing was foreseen and nothing rebounded; worst: the largest difference
    between run and prediction, in words, empty where nothing can be compared."""

    body: str = ""
    worst: str = ""

    @classmethod
    def of(cls, run: Run, s: Summary, prediction: str | os.PathLike[str] | None = None) -> "Foreseen":
        """prediction: log of the simulated variant, else the one that the run was started with (`--prediction`)."""
        body, worst = _rebounds(s)
        named = prediction or s.prediction.get("log")
        if named and run.log.ticks:
            more, further = _simulated(run, str(named))
            body, worst = more + body, further or worst
        return cls(body, worst)


def _rebounds(s: Summary) -> tuple[str, str]:
    """Restitution of every contact that rebounded beside what was predicted before the run."""
    predicted = s.prediction.get("verdict")
    rows = [contact for contact in s.contacts[:MOST_CONTACTS] if contact["rebound"] is not None]
    if not predicted and not rows:
        return "", ""
    by = s.prediction.get("compensator", "?")
    verdict_text = f"Predicted before the run, with {by}: {predicted}." if predicted else "Not predicted."
    if not rows:
        return f'<p class="note">{text(verdict_text)} No contact rebounded.</p>', ""
    about = "e: speed along the contact in free motion, after over before."
    cells: list[Mapping[str, object]] = [*rows]
    there = [key for key in REBOUND_COLUMNS if any(row[key] not in (None, "") for row in cells)]
    table = table_html([REBOUND_COLUMNS[key] for key in there], [[row[key] for key in there] for row in cells])
    both = [(row["begin_s"], e, p) for row in rows if (e := row["rebound"]) is not None and (p := row["rebound_predicted"]) is not None]
    worst = ""
    if both:
        begin, e, p = max(both, key=lambda one: abs(one[1] - one[2]))
        worst = f"contact at {begin:.3f} s rebounded with e = {e:.3f}, predicted {p:.3f}"
    return f'<p class="note">{text(verdict_text)} {about}</p>{table}', worst


def _simulated(run: Run, named: str) -> tuple[str, str]:
    """Curves and differences of the run and its simulation, aligned at the first contact."""
    path = Path(named)
    if not path.is_file():
        path = run.log.path.parent / named  # beside it, when both were moved
    try:
        other = Run(read_log(path))
        result = comparison.compare_runs(run, other)
    except HilError as error:
        return f'<p class="note">The prediction {text(named)} cannot be laid beside it: {text(error)}.</p>', ""
    marks = [f"not the same variant: {line}" for line in result.variant]
    marks += [f"prediction incomplete: {line}" for line in other.log.incomplete]
    banners = "".join(f'<p class="banner">{text(mark)}.</p>' for mark in marks)
    about = (
        f"Simulated before the run: {result.b} ({named}), aligned at {result.aligned}. Lines: this run; dashed: the prediction. "
        "Shares of the group's are of the largest peak of the group (force, moment, ...) in this run."
    )
    drawn = "".join(embedded(one) for one in comparison.plots(run.log, other.log, result)[:4])
    most = max(result.channels, key=lambda c: c.share or 0.0)
    worst = f"largest difference from the prediction: {most.name}, {100 * (most.share or 0.0):.1f} % of the largest {most.group}"
    return f'{banners}<p class="note">{text(about)}</p>{drawn}{comparison.difference_table(result)}', worst
