"""A programme as one page: every variant with its verdict, key figures, margins and small curves side by side, and a link to its report."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.errors import attempt
from hil_server.judge.summary import Requirement
from hil_server.judge.verdict import bars, used
from hil_server.log.moments import STAND, Moments
from hil_server.log.reader import Log, read_log
from hil_server.pages.curves import spark
from hil_server.pages.html import Markup, bars_html, document, guarded, pill, section, table_html, text, verdict_html
from hil_server.pages.thinning import thin

PAGE = "programme.html"
BEFORE_S = 1.0  # of the first contact in the small curves
KEPT = 400  # points of a small curve
LEVELS = {"captured": "good", "complete": "good", "separated": "good", "tripped": "bad", "not_aligned": "bad"}
PEAKS = ("impact_force_n", "impact_moment_n_m", "docking_force_n", "docking_moment_n_m")  # of a summary, in the order of the columns
SIDE_BY_SIDE = "side_by_side.html"

Row = Mapping[str, Any]  # of a variant: its summary as JSON has it, with number, expect, verdict, passed, R1


class ProgrammePage:
    """The page of a programme in the folder `out`, written again after every variant.

    name: of the programme; variants: (number, description, expected verdict) of all of them, in order."""

    def __init__(self, name: str, variants: Sequence[tuple[str, str, str]], out: Path) -> None:
        self.name, self.variants, self.path = name, list(variants), out / PAGE
        self._rows: list[Row] = []
        self._missing: list[str] = []
        self._curves: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = {}

    def add(self, row: Row) -> None:
        """A variant that is done: its summary with number, expect, verdict, passed, R1. Its small curves are kept, its log is not."""
        self._rows.append(row)
        if row.get("log"):
            missing: list[dict[str, str]] = []
            courses = attempt("small curves", lambda: _courses(read_log(row["log"])), None, missing)
            if courses is None:
                self._missing.append(f"small curves of {row['number']}: {missing[0]['reason']}")
            else:
                self._curves[row["number"]] = courses

    def write(self, not_run: Sequence[str] = ()) -> Path:
        """Writes the page. not_run: numbers of variants that will not be run any more."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".part")
        temporary.write_text(self.html(not_run), encoding="utf-8")
        os.replace(temporary, self.path)  # a reader sees the old one or the new one
        return self.path

    def html(self, not_run: Sequence[str] = ()) -> str:
        """The whole page."""
        level, word, line = self._verdict(not_run)
        failed = [row for row in self._rows if not _good(row)]
        parts = [
            f"<h1>Programme {text(self.name)}</h1>",
            verdict_html(level, word, line),
            *guarded("What failed", lambda: [_failed(failed)] if failed else []),
            *guarded("Variants", lambda: [section("Variants", self._table(not_run))]),
            *guarded("Requirements", self._requirements),
            *(f'<p class="note">Not available: {text(words)}.</p>' for words in self._missing),
        ]
        if (self.path.parent / SIDE_BY_SIDE).exists():
            parts.append(f'<p><a href="{SIDE_BY_SIDE}">Designs side by side, case by case</a></p>')
        return document(f"Programme {self.name}: {word.lower()}", parts)

    def _verdict(self, not_run: Sequence[str]) -> tuple[str, str, str]:
        done, good = len(self._rows), sum(_good(row) for row in self._rows)
        violated = sum(bool(_violated(row)) for row in self._rows)
        left = len(self.variants) - done
        parts = [f"{sum(row['passed'] for row in self._rows)} of {done} as expected"]
        parts += [f"{violated} with a violated requirement"] if violated else []
        parts += [f"{left} not run" if not_run else f"{left} to come"] if left else []
        level = "bad" if good < done else "warn" if left else "good"
        word = "failed" if good < done else "ended early" if not_run else "under way" if left else "passed"
        return level, word.upper(), "; ".join(parts)

    def _table(self, not_run: Sequence[str]) -> str:
        """All variants, those still to come as well."""
        rows = {row["number"]: row for row in self._rows}
        arms = any((row.get("arm") or {}).get("margin") is not None for row in self._rows)
        judged = any(row.get("requirements") for row in self._rows)
        faults = any(row.get("faults") for row in self._rows)
        head = ["variant", "verdict", "result", *(["smallest margin"] if judged else []), "capture, s", "after contact, s", "impact, N",
                "impact, N.m", "docking, N", "docking, N.m", *(["arm margin"] if arms else []), "R1", *(["faults"] if faults else []),
                "|force|", "|moment|"]  # fmt: skip
        span, tops = self._scales()
        cells: list[list[object]] = []
        for number, description, expect in self.variants:
            row = rows.get(number)
            variant = Markup(f"{self._link(row) if row else text(number)}<small>{text(description)}</small>")
            if row is None:
                state = "not run" if number in not_run else "to come"
                empty: list[object] = [None] * (len(head) - 3)
                cells.append([variant, "", state, *empty])
                continue
            verdict = str(row["verdict"])
            result = pill("good", "passed") if row["passed"] else pill("bad", f"expected {expect}".replace("_", " "))
            contact, capture = row.get("first_contact_time_s"), row.get("capture_time_s")
            cells.append([
                variant, pill(LEVELS.get(verdict, "warn"), verdict.replace("_", " ")), result,
                *([_smallest(row)] if judged else []), capture, capture - contact if capture is not None and contact is not None else None,
                *(_peak(row, key) for key in PEAKS), *([(row.get("arm") or {}).get("margin")] if arms else []), row.get("R1"),
                *([", ".join(row.get("faults") or ())] if faults else []), *self._sparks(number, span, tops),
            ])  # fmt: skip
        parts = (
            '<p class="note">Impact and docking: largest size of the contact force (moment) in impact and damping, and in the whole closed '
            "loop. What the stand does by itself before and after, as opening the latches, is no part of either.</p>"
            '<p class="note screen">A click on a head sorts. Small curves: the closed loop, all on one time axis '
            f"({span[0]:.0f} … {span[1]:.0f} s) and one scale ({tops[0]:.0f} N, {tops[1]:.0f} N.m).</p>"
        )
        return (parts if self._curves else "") + unresolved_html(self._rows) + table_html(head, cells, sortable=True)

    def _link(self, row: Row) -> str:
        if not row.get("report"):
            return text(row["number"])
        return f'<a href="{text(os.path.relpath(row["report"], self.path.parent))}">{text(row["number"])}</a>'

    def _scales(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Common time axis, s from the first contact, and the largest force and moment of all."""
        longest = max((float(t[-1]) for t, *_ in self._curves.values() if len(t)), default=1.0)
        force, moment = (max((float(np.nanmax(c[k], initial=0.0)) for c in self._curves.values()), default=0.0) for k in (1, 3))
        return (-BEFORE_S, longest), (max(force, 1.0), max(moment, 1.0))

    def _sparks(self, number: str, span: tuple[float, float], tops: tuple[float, float]) -> tuple[Markup | None, Markup | None]:
        if number not in self._curves:
            return None, None
        t_force, force, t_moment, moment = self._curves[number]
        made = []
        for t, values, top, words, unit in ((t_force, force, tops[0], "force", "N"), (t_moment, moment, tops[1], "moment", "N.m")):
            most = float(np.nanmax(values, initial=0.0))
            made.append(Markup(spark(t, values, span, (0.0, top), f"contact {words} of {number}, at most {most:.4g} {unit}")))
        return made[0], made[1]

    def _requirements(self) -> list[str]:
        """Every requirement over the variants: how often it failed, and the variant that came nearest to its limit or beyond."""
        found: dict[str, list[tuple[str, Requirement]]] = {}
        for row in self._rows:
            for one in row.get("requirements") or ():
                found.setdefault(one["name"], []).append((row["number"], one))
        if not found:
            return []
        worst: list[Requirement] = []
        rows = []
        for name, every in found.items():
            judged = [(number, one) for number, one in every if one["verdict"] != "not judged"]
            bad = [number for number, one in judged if one["verdict"] == "violated"]
            number, one = min(judged or every, key=lambda pair: _left(pair[1]))
            worst.append({**one, "name": f"{name} ({number})"})
            rows.append((name, pill("bad" if bad else "good", f"{len(bad)} violated") if judged else "not judged", len(judged), number,
                         one.get("value"), one.get("limit"), one.get("margin"), one.get("unit") or "", ", ".join(bad)))  # fmt: skip
        head = ("requirement", "", "judged", "nearest in", "value", "limit", "margin", "unit", "violated in")
        return [section("Requirements", bars_html(bars(worst)) + table_html(head, rows, sortable=True))]


def _failed(rows: Sequence[Row]) -> str:
    """What went wrong, a line a variant."""
    lines = []
    for row in rows:
        parts = [] if row["passed"] else [f"{row['verdict']} instead of {row['expect']}".replace("_", " ")]
        parts += [f"violated: {', '.join(_violated(row))}"] if _violated(row) else []
        cause = (row.get("cause") or {}).get("text")
        parts += [cause] if cause and row["verdict"] == "tripped" else []
        lines.append(f"<li><b>{text(row['number'])}</b> {text('; '.join(parts))}</li>")
    return f'<ul class="next bad">{"".join(lines)}</ul>'


def _violated(row: Row) -> list[str]:
    return [one["name"] for one in row.get("requirements") or () if one["verdict"] == "violated"]


def _good(row: Row) -> bool:
    return bool(row["passed"]) and not _violated(row)


def _left(one: Requirement) -> float:
    """What is left of its limit, for the order: share where there is one, else the margin."""
    share = used(one)
    margin, limit = one.get("margin"), one.get("limit")
    if margin is None:
        return np.inf
    return margin / abs(limit) if share is not None and limit else margin


def _smallest(row: Row) -> Markup | None:
    """The requirement that is nearest to its limit, with what is left of it."""
    judged = [one for one in row.get("requirements") or () if one["verdict"] != "not judged"]
    if not judged:
        return None
    one = min(judged, key=_left)
    share = used(one)
    words = f"{100 * (1.0 - share):.0f} % {one['name']}" if share is not None else str(one["name"])
    return Markup(f'<span class="{"bad" if one["verdict"] == "violated" else "good"}">{text(words)}</span>')


def unresolved_html(rows: Sequence[Row]) -> str:
    """A line for variants whose tick does not resolve the largest moment of their impact; empty without any."""
    blunt = [str(row["number"]) for row in rows if (worth := row.get("moment_worth")) and not worth["resolved"]]
    words = "largest moment of the impact not resolved with this tick (mechanism.moment_step_max_s); compare by the mean of its report"
    return f'<p class="note">{text(", ".join(blunt))}: {words}.</p>' if blunt else ""


def peak(row: Row, which: int) -> float | None:
    """Largest contact force (0) or moment (1) of the impact, by the summary of a run."""
    found = row.get(PEAKS[which])
    return float(found) if isinstance(found, int | float) else None


def _peak(row: Row, key: str) -> object:
    """A figure of the summary; marked where a fault was injected or periods were missed in its window."""
    value = row.get(key)
    moments = [one for one in row.get("peaks") or () if one["moment"] != "stand"]
    if key.startswith("impact"):
        moments = [one for one in moments if one["moment"] == "impact"]
    marks = list(dict.fromkeys(mark for one in moments for mark in one.get("marks") or ()))
    return Markup(f'{text(f"{value:.4g}")} {pill("warn", "; ".join(marks))}') if marks and isinstance(value, int | float) else value


def _courses(log: Log) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times from the first contact and size of the contact force, times and size of the moment, of the closed loop from one second before
    the first contact on."""
    r = log.records
    if not log.ticks:
        return (np.empty(0),) * 4
    contact = float(r["first_contact_time"][-1])
    t = log.time_s - (contact if contact >= 0.0 else float(log.time_s[0]))
    moments = Moments().of(r)
    seen = (t >= -BEFORE_S) & ((moments != STAND) | (moments == STAND).all())
    found: list[np.ndarray] = []
    for part in (slice(0, 3), slice(3, 6)):
        found += thin(t[seen], np.linalg.norm(r["F_T"][seen, part], axis=1), KEPT)
    return found[0], found[1], found[2], found[3]
