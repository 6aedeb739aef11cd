"""A run beside what was foreseen of it: its restitution, and the log of its simulation where there is one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil_server.errors import HilError
from hil_server.log.reader import Log, read_log
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
    def of(cls, log: Log, s: Mapping[str, Any], prediction: str | os.PathLike[str] | None = None) -> "Foreseen":
        """prediction: log of the simulated variant, else the one that the run was started with (`--prediction`)."""
        body, worst = _rebounds(s)
        named = prediction or log.header.prediction.get("log")
        if named and log.ticks:
            more, further = _simulated(log, str(named))
            body, worst = more + body, further or worst
        return cls(body, worst)


def _rebounds(s: Mapping[str, Any]) -> tuple[str, str]:
    """Restitution of every contact that rebounded beside what was predicted before the run."""
    predicted = s["prediction"].get("verdict")
    rows = [contact for contact in s["contacts"][:MOST_CONTACTS] if contact["rebound"] is not None]
    if not predicted and not rows:
        return "", ""
    by = s["prediction"].get("compensator", "?")
    verdict_text = f"Predicted before the run, with {by}: {predicted}." if predicted else "Not predicted."
    if not rows:
        return f'<p class="note">{text(verdict_text)} No contact rebounded.</p>', ""
    about = "e: speed along the contact in free motion, after over before."
    there = [key for key in REBOUND_COLUMNS if any(row[key] not in (None, "") for row in rows)]
    table = table_html([REBOUND_COLUMNS[key] for key in there], [[row[key] for key in there] for row in rows])
    both = [row for row in rows if row["rebound_predicted"] is not None]
    worst = ""
    if both:
        row = max(both, key=lambda one: abs(one["rebound"] - one["rebound_predicted"]))
        worst = f"contact at {row['begin_s']:.3f} s rebounded with e = {row['rebound']:.3f}, predicted {row['rebound_predicted']:.3f}"
    return f'<p class="note">{text(verdict_text)} {about}</p>{table}', worst


def _simulated(log: Log, named: str) -> tuple[str, str]:
    """Curves and differences of the run and its simulation, aligned at the first contact."""
    path = Path(named)
    if not path.is_file():
        path = log.path.parent / named  # beside it, when both were moved
    try:
        other = read_log(path)
        result = comparison.compare_logs(log, other)
    except HilError as error:
        return f'<p class="note">The prediction {text(named)} cannot be laid beside it: {text(error)}.</p>', ""
    marks = [f"not the same variant: {line}" for line in result.variant] + [f"prediction incomplete: {line}" for line in other.incomplete]
    banners = "".join(f'<p class="banner">{text(mark)}.</p>' for mark in marks)
    about = (
        f"Simulated before the run: {result.b} ({named}), aligned at {result.aligned}. Lines: this run; dashed: the prediction. "
        "Shares of the group's are of the largest peak of the group (force, moment, ...) in this run."
    )
    drawn = "".join(embedded(one) for one in comparison.plots(log, other, result)[:4])
    most = max(result.channels, key=lambda c: c.share or 0.0)
    worst = f"largest difference from the prediction: {most.name}, {100 * (most.share or 0.0):.1f} % of the largest {most.group}"
    return f'{banners}<p class="note">{text(about)}</p>{drawn}{comparison.difference_table(result)}', worst
