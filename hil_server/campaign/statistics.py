"""What a campaign says: capture probability with its interval, ends, loads, the capture envelope, the worst cases."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hil_server.campaign.case import PEAKS
from hil_server.requirements import MET, VIOLATED

Z95 = 1.959963984540054


def wilson(hits: int, cases: int, z: float = Z95) -> tuple[float, float]:
    """Wilson score interval of a probability (Wilson 1927); sensible at 0 and 1, where the normal one is not."""
    if cases == 0:
        return 0.0, 1.0
    p, n = hits / cases, cases
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (0.0 if hits == 0 else max(0.0, centre - half)), (1.0 if hits == cases else min(1.0, centre + half))


def column(table: Any, name: str) -> np.ndarray:
    """A column of numbers, (cases,) float64; NaN where a case has none."""
    return np.array([math.nan if v is None else v for v in table[name].to_pylist()], float)


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Median, 95 %, 99 % and maximum of what is finite; empty when nothing is."""
    values = values[np.isfinite(values)]
    if not len(values):
        return {}
    p50, p95, p99 = np.percentile(values, (50, 95, 99))
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99), "max": float(values.max())}


def magnitude(table: Any, names: tuple[str, ...]) -> np.ndarray:
    """Root of the sum of squares of a case's peaks, (cases,): not below the greatest force (moment) of the case."""
    found: np.ndarray = np.linalg.norm([np.nan_to_num(column(table, f"peak_{n}")) for n in names], axis=0)
    return found


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's coefficient; ties get their mean rank; 0 when one of both does not vary."""
    a, b = _ranks(x), _ranks(y)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(x: np.ndarray) -> np.ndarray:
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2.0)[place]


def demanded(table: Any, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What became of each requirement over the cases. rows: the requirements as the test has them.

    By name: met, violated, not_judged (cases; an error of a case counts among the last); share of the judged ones that violate it and its
    95 % interval, the share that its file allows, and whether it is kept; margin (p0 is the smallest, p1, p5, p50) and its unit."""
    found: dict[str, Any] = {}
    for row in rows:
        name = row["name"]
        if f"verdict {name}" not in table.column_names:
            continue
        verdicts = table[f"verdict {name}"].to_pylist()
        met, bad = verdicts.count(MET), verdicts.count(VIOLATED)
        margins = column(table, f"margin {name}")
        margins = margins[np.isfinite(margins)]
        places = {"p0": 0, "p1": 1, "p5": 5, "p50": 50}
        allowed = row.get("violated_max", 0.0)
        found[name] = {
            "met": met,
            "violated": bad,
            "not_judged": len(verdicts) - met - bad,
            "share": bad / (met + bad) if met + bad else math.nan,
            "interval_95": wilson(bad, met + bad),
            "violated_max": allowed,
            "kept": bad <= allowed * (met + bad),
            "margin": {key: float(np.percentile(margins, p)) for key, p in places.items()} if len(margins) else {},
            "source": row.get("source", ""),
        }
    return found


def standing(one: Mapping[str, Any]) -> str:
    """In a word, of a row of `demanded`: kept, violated, or not judged, where no case came to what it is about."""
    return "violated" if not one["kept"] else "kept" if one["met"] + one["violated"] else "not judged"


def statistics(table: Any, keys: tuple[str, ...], requirements: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Summary of the result table. captured: whatever happened afterwards; captured_within_limits: and no trip. loads: median, 95 %, 99 %
    and greatest peak of each component over all cases. channels: likewise for the channels of the parts. faults: cases with each.
    requirements: see `demanded`."""
    captured = np.array(table["captured"].to_pylist(), bool)
    ends = table["end"].to_pylist()
    n, hits = len(captured), int(captured.sum())
    within = int(np.sum(captured & (np.array(ends) != "tripped")))
    faults = [name for word in table["faults"].to_pylist() for name in (word or "").split(",") if name]
    loads = {name: found for name in PEAKS if (found := quantiles(column(table, f"peak_{name}")))}
    return {
        "cases": n,
        "captured": hits,
        "capture_probability": hits / n if n else math.nan,
        "capture_interval_95": wilson(hits, n),
        "captured_within_limits": within,
        "within_limits_interval_95": wilson(within, n),
        "capture_after_s": quantiles(column(table, "capture_after_s")[captured]),
        "faults": {name: faults.count(name) for name in sorted(set(faults))},
        "ends": {end: ends.count(end) for end in sorted(set(ends))},
        "loads": loads,
        "channels": {c.removeprefix("peak "): quantiles(column(table, c)) for c in table.column_names if c.startswith("peak ")},
        "errors": sum(1 for e in table["error"].to_pylist() if e),
        "envelope": {key: envelope(column(table, key), captured) for key in keys},
        "requirements": demanded(table, requirements),
    }


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


def worst(table: Any, count: int) -> list[int]:
    """Numbers of the cases to look at: first those with errors and trips, then the greatest force."""
    force = magnitude(table, PEAKS[:3])
    bad = np.array([e in ("error", "tripped") for e in table["end"].to_pylist()])
    order = np.lexsort((-force, ~bad))
    return [int(table["number"][int(i)].as_py()) for i in order[:count]]
