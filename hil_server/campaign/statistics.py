"""What a campaign says: capture probability with its interval, ends, loads, the capture envelope, the worst cases."""

import math
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from hil_server.campaign.case import PEAKS, SIZES
from hil_server.requirements import MET, VIOLATED
from hil_server.requirements.figures import FIGURES
from hil_server.values import Document, Given

if TYPE_CHECKING:
    import pyarrow as pa

# faults of the model, not of the docking
NO_VERDICT = frozenset({"mechanism_invalid", "divergence", "setpoint_not_finite", "control_failed"})
Z95 = 1.959963984540054


def wilson(hits: int, cases: int, z: float = Z95) -> tuple[float, float]:
    """Wilson score interval of a probability (Wilson 1927); sensible at 0 and 1, where the normal one is not."""
    if cases == 0:
        return 0.0, 1.0
    p, n = hits / cases, cases
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (0.0 if hits == 0 else max(0.0, centre - half)), (1.0 if hits == cases else min(1.0, centre + half))


def column(table: "pa.Table", name: str) -> np.ndarray:
    """A column of numbers, (cases,) float64; NaN where a case has none."""
    return np.array([math.nan if v is None else v for v in table[name].to_pylist()], float)


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Median, 95 %, 99 % and maximum of what is finite; empty when nothing is."""
    values = values[np.isfinite(values)]
    if not len(values):
        return {}
    p50, p95, p99 = np.percentile(values, (50, 95, 99))
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99), "max": float(values.max())}


def magnitude(table: "pa.Table", name: str) -> np.ndarray:
    """Largest force or moment of each case, (cases,): a column of `hil_server.campaign.case.SIZES`, 0 of a case that has none."""
    found: np.ndarray = np.nan_to_num(column(table, name))
    return found


def unjudged(table: "pa.Table") -> np.ndarray:
    """Cases without a verdict, (cases,) bool: an error, or a trip because a model left the range in which it holds (NO_VERDICT): what the
    docking would have come to is not known."""
    faults = [set((word or "").split(",")) for word in table["faults"].to_pylist()]
    errors = table["error"].to_pylist()
    return np.array([bool(error) or bool(names & NO_VERDICT) for names, error in zip(faults, errors, strict=True)], bool)


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's coefficient; ties get their mean rank; 0 when one of both does not vary."""
    a, b = _ranks(x), _ranks(y)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(x: np.ndarray) -> np.ndarray:
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2.0)[place]


def demanded(table: "pa.Table", rows: Sequence[Given]) -> Document:
    """Verdicts on each requirement over the cases. rows: the requirements as the test has them.

    By name: met, violated, not_judged (cases; among the last an error, and a case whose model left its range before the verdict was final:
    `_final`); share of the judged ones that violate it and its 95 % interval, the share that its file allows, and whether it is kept;
    margin of the judged ones (p0 is the smallest, p1, p5, p50)."""
    found: Document = {}
    cut = unjudged(table)
    for row in rows:
        name = row["name"]
        if f"verdict {name}" not in table.column_names:
            continue
        verdicts, margins = table[f"verdict {name}"].to_pylist(), column(table, f"margin {name}")
        judged = [not c or _final(row, v, m) for v, m, c in zip(verdicts, margins, cut, strict=True)]
        verdicts, margins = list(compress(verdicts, judged)), margins[judged & np.isfinite(margins)]
        met, bad = verdicts.count(MET), verdicts.count(VIOLATED)
        places = {"p0": 0, "p1": 1, "p5": 5, "p50": 50}
        allowed = row.get("violated_max", 0.0)
        found[name] = {
            "met": met,
            "violated": bad,
            "not_judged": len(table) - met - bad,
            "share": bad / (met + bad) if met + bad else math.nan,
            "interval_95": wilson(bad, met + bad),
            "violated_max": allowed,
            "kept": bad <= allowed * (met + bad),
            "margin": {key: float(np.percentile(margins, p)) for key, p in places.items()} if len(margins) else {},
            "source": row.get("source", ""),
        }
    return found


def _final(row: Given, verdict: str | None, margin: float) -> bool:
    """Whether a verdict holds whatever the rest of the run would have brought: a bound once broken is, and what came in time did."""
    awaited = "value" in row and FIGURES[row["value"]].event
    if verdict == VIOLATED:
        return not awaited or math.isfinite(margin)
    return bool(awaited) or "within_s" in row or row.get("at", "end") != "end"


def standing(one: Given) -> str:
    """In a word, of a row of `demanded`: kept, violated, or not judged, where no case came to what it is about."""
    return "violated" if not one["kept"] else "kept" if one["met"] + one["violated"] else "not judged"


def statistics(table: "pa.Table", keys: tuple[str, ...], requirements: Sequence[Given] = ()) -> Document:
    """Summary of the result table. captured: whatever happened afterwards; captured_within_limits: and no trip. no_verdict: cases that
    ended with an error or because a model left its valid range (`unjudged`), by reason; judged: cases with a verdict on the capture,
    which has come in a case that failed after it; judged_within_limits: on the limits. Probabilities and intervals are of the judged
    ones. loads: median, 95 %, 99 % and greatest peak of each component and of SIZES over all cases with a verdict on the limits.
    channels: likewise for the channels of the parts. faults: cases with each. requirements: see `demanded`."""
    captured = np.array(table["captured"].to_pylist(), bool)
    ends = table["end"].to_pylist()
    n, hits = len(captured), int(captured.sum())
    invalid = unjudged(table)
    judged, judged_within = captured | ~invalid, ~invalid
    within = int(np.sum(captured & ~invalid & (np.array(ends) != "tripped")))
    faults = [name for word in table["faults"].to_pylist() for name in (word or "").split(",") if name]
    columns = {**{name: f"peak_{name}" for name in PEAKS}, **{name: name for name in SIZES if name in table.column_names}}
    loads = {name: found for name, one in columns.items() if (found := quantiles(column(table, one)[judged_within]))}
    return {
        "cases": n,
        "captured": hits,
        "judged": int(judged.sum()),
        "judged_within_limits": int(judged_within.sum()),
        "no_verdict": _reasons(table, ~judged),
        "capture_probability": hits / int(judged.sum()) if judged.any() else math.nan,
        "capture_interval_95": wilson(hits, int(judged.sum())),
        "captured_within_limits": within,
        "within_limits_interval_95": wilson(within, int(judged_within.sum())),
        "capture_after_s": quantiles(column(table, "capture_after_s")[captured]),
        "faults": {name: faults.count(name) for name in sorted(set(faults))},
        "ends": {end: ends.count(end) for end in sorted(set(ends))},
        "loads": loads,
        "channels": {c.removeprefix("peak "): quantiles(column(table, c)[judged_within])
                     for c in table.column_names if c.startswith("peak ")},  # fmt: skip
        "errors": sum(1 for e in table["error"].to_pylist() if e),
        "envelope": {key: envelope(column(table, key)[judged], captured[judged]) for key in keys},
        "requirements": demanded(table, requirements),
    }


def _reasons(table: "pa.Table", which: np.ndarray) -> dict[str, int]:
    """Cases by what took their verdict: the first fault of the model, or `error`."""
    found: dict[str, int] = {}
    for words, error, one in zip(table["faults"].to_pylist(), table["error"].to_pylist(), which, strict=True):
        if one:
            reason = "error" if error else next(name for name in words.split(",") if name in NO_VERDICT)
            found[reason] = found.get(reason, 0) + 1
    return dict(sorted(found.items()))


def envelope(values: np.ndarray, captured: np.ndarray, bins: int = 10) -> list[dict[str, float]]:
    """Capture probability over one parameter, in bins of equal width, with intervals."""
    if len(values) == 0 or np.ptp(values) == 0:
        return []
    edges = np.linspace(values.min(), values.max(), bins + 1)
    index = np.clip(np.digitize(values, edges) - 1, 0, bins - 1)
    rows = []
    for b in range(bins):
        inside = index == b
        low, high = wilson(int(captured[inside].sum()), int(inside.sum()))
        p = float(captured[inside].mean()) if inside.any() else math.nan
        place = {"from": float(edges[b]), "to": float(edges[b + 1]), "cases": int(inside.sum())}
        rows.append(place | {"probability": p, "low": low, "high": high})
    return rows


def worst(table: "pa.Table", count: int) -> list[int]:
    """Numbers of the cases to look at: first those with errors and trips, then the greatest force."""
    force = magnitude(table, "peak_force_n")
    bad = np.array([e in ("error", "tripped") for e in table["end"].to_pylist()])
    order = np.lexsort((-force, ~bad))
    return [int(table["number"][int(i)].as_py()) for i in order[:count]]
