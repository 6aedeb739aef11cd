"""What a campaign says: capture probability with its interval, ends, loads, the capture envelope, the worst cases."""

import base64
import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.campaign.case import PEAKS

Z95 = 1.959963984540054


def wilson(hits: int, cases: int, z: float = Z95) -> tuple[float, float]:
    """Wilson score interval of a probability (Wilson 1927); sensible at 0 and 1, where the normal one is not."""
    if cases == 0:
        return 0.0, 1.0
    p, n = hits / cases, cases
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (0.0 if hits == 0 else max(0.0, centre - half)), (1.0 if hits == cases else min(1.0, centre + half))


def statistics(table: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Summary of the result table. loads: median, 95 %, 99 % and greatest peak of each component over all cases."""
    captured = np.array(table["captured"].to_pylist(), bool)
    ends = table["end"].to_pylist()
    n, hits = len(captured), int(captured.sum())
    after = np.array(table["capture_after_s"].to_pylist(), float)[captured]
    loads = {}
    for name in PEAKS:
        values = np.array(table[f"peak_{name}"].to_pylist(), float)
        values = values[np.isfinite(values)]
        if len(values):
            loads[name] = {"p50": float(np.median(values)), "p95": float(np.percentile(values, 95)),
                           "p99": float(np.percentile(values, 99)), "max": float(values.max())}  # fmt: skip
    return {
        "cases": n,
        "captured": hits,
        "capture_probability": hits / n if n else math.nan,
        "capture_interval_95": wilson(hits, n),
        "capture_after_s": {"p50": float(np.median(after)), "max": float(after.max())} if len(after) else {},
        "ends": {end: ends.count(end) for end in sorted(set(ends))},
        "loads": loads,
        "errors": sum(1 for e in table["error"].to_pylist() if e),
        "envelope": {key: envelope(np.array(table[key].to_pylist(), float), captured) for key in keys},
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
    force = np.linalg.norm([np.nan_to_num(np.array(table[f"peak_{n}"].to_pylist(), float)) for n in PEAKS[:3]], axis=0)
    bad = np.array([e in ("error", "tripped") for e in table["end"].to_pylist()])
    order = np.lexsort((-force, ~bad))
    return [int(table["number"][int(i)].as_py()) for i in order[:count]]


def write_report(table: Any, summary: dict[str, Any], keys: tuple[str, ...], name: str, synthetic: str, file: Path) -> None:
    """One HTML file without a network: figures and pictures."""
    import html

    quantiles = ("p50", "p95", "p99", "max")
    rows = "".join(
        f"<tr><td>{n}</td>" + "".join(f"<td>{v[k]:.4g}</td>" for k in quantiles) + "</tr>" for n, v in summary["loads"].items()
    )
    low, high = summary["capture_interval_95"]
    mark = f"<p><b>Made with synthetic geometry: {html.escape(synthetic)}</b></p>" if synthetic else ""
    ends = ", ".join(f"{k} {v}" for k, v in summary["ends"].items())
    file.write_text(
        f"<!doctype html><meta charset=utf-8><title>{html.escape(name)}</title>"
        "<style>body{font:15px sans-serif;max-width:1000px;margin:2em auto}"
        f"td,th{{padding:2px 10px;text-align:right}}</style><h1>{html.escape(name)}</h1>{mark}"
        f"<p>{summary['cases']} cases, {summary['captured']} captured: probability {summary['capture_probability']:.4f}, "
        f"95 % interval {low:.4f}...{high:.4f}. Ends: {html.escape(ends)}.</p>"
        f"<table><tr><th>peak load</th><th>median</th><th>95 %</th><th>99 %</th><th>max</th></tr>{rows}</table>"
        f"<img alt='capture envelope' src='data:image/png;base64,{_picture(table, summary, keys)}'>"
    )


def _picture(table: Any, summary: dict[str, Any], keys: tuple[str, ...]) -> str:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    captured = np.array(table["captured"].to_pylist(), bool)
    figure, axes = plt.subplots(len(keys) + 1, 1, figsize=(9, 2.3 * (len(keys) + 1)), constrained_layout=True)
    for axis, key in zip(np.atleast_1d(axes), keys, strict=False):
        bins = [b for b in summary["envelope"][key] if b["cases"]]
        x = [(b["from"] + b["to"]) / 2 for b in bins]
        p = np.array([b["probability"] for b in bins])
        error = np.maximum([p - [b["low"] for b in bins], np.array([b["high"] for b in bins]) - p], 0.0) if bins else None
        axis.errorbar(x, p, yerr=error, fmt="o-", capsize=3)
        axis.set(xlabel=key, ylabel="capture probability", ylim=(-0.05, 1.05))
    last = np.atleast_1d(axes)[-1]
    force = np.linalg.norm([np.nan_to_num(np.array(table[f"peak_{n}"].to_pylist(), float)) for n in PEAKS[:3]], axis=0)
    last.hist([force[captured], force[~captured]], bins=40, stacked=True, label=["captured", "not captured"])
    last.set(xlabel="peak force, N", ylabel="cases")
    last.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=90)
    plt.close(figure)
    return base64.b64encode(buffer.getvalue()).decode()
