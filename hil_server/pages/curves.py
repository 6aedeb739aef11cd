"""Curves for pages: what a line needs to be drawn and zoomed without its log, as data inside the page; `curves.js` draws it.

A line keeps as few of its points as draw it to within ERROR of its range: the longest stretches of 2^k ticks over which the straight line
between their ends is near enough (a dyadic tree of chords, judged from the top). Where that takes more than `most` points the error is let
grow up to WORST; what is still too many is noise, and of it the smallest and largest value of every stretch are kept (`thinning.thin`).
"""

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from hil_server.pages.html import guarded, text
from hil_server.pages.thinning import LARGEST, thin

ERROR, WORST = 5e-4, 4e-3  # of a line's range
OF_FIGURE = 0.02  # a line that moves less than this share of its figure is drawn as if it moved so much
POINTS = 1200  # of a line
DEEPEST = 12  # longest stretch: 2^12 ticks
GAP = 65535
COLOURS = 8


@dataclass(frozen=True)
class Plot:
    """One diagram over time. time: (n,) s. values: (n, k), a name for each column ("" leaves it out of the key). second: another set of
    columns, dashed and in the same colours (measured beside sent, a prediction beside a run), over `second_time` where it has its own.

    bands: (from s, to s, name), as phases; marks: (s, words, "" or good or bad); limits: (value, words), dashed. group: figures of one
    group are zoomed together; window: what is shown at first; scale: the least range of the values until one zooms.
    lanes: (name, [(from s, to s)], colour) instead of lines."""

    title: str
    unit: str
    time: np.ndarray
    values: np.ndarray | None = None
    names: Sequence[str] = ()
    second: np.ndarray | None = None
    second_time: np.ndarray | None = None
    second_names: Sequence[str] = ()
    bands: Sequence[tuple[float, float, str]] = ()
    marks: Sequence[tuple[float, str, str]] = ()
    limits: Sequence[tuple[float, str]] = ()
    lanes: Sequence[tuple[str, Sequence[tuple[float, float]], int]] = ()
    group: str = "run"
    window: tuple[float, float] | None = None
    scale: tuple[float, float] | None = None
    height: int = 190
    note: str = ""
    most: int = field(default=POINTS)


def drawn(*topics: tuple[str, Callable[[], Sequence[Plot]]]) -> str:
    """Plots as HTML, topic by topic: (name, what makes its plots)."""
    found = []
    for name, make in topics:
        found += guarded(name, lambda make=make: [embedded(one) for one in make()], alone=False)  # type: ignore[misc]
    return "".join(found)


def embedded(plot: Plot) -> str:
    """The diagram as a `figure` element that holds its data."""
    lines, points = _lines(plot)
    start = float(plot.time[0]) if len(plot.time) else 0.0
    times = [plot.time, *([plot.second_time] if plot.second_time is not None else [])]
    stop = max((float(t[-1]) for t in times if len(t)), default=1.0)
    start = min([start, *(float(t[0]) for t in times if len(t))])
    step = max(1e-6, (stop - start) / 4.0e9)
    planes = b"".join(_planes(t, y, line["low"], line["high"], start, step) for (t, y), line in zip(points, lines, strict=True))
    about = {
        "group": plot.group, "from": start, "to": max(stop, start + 1e-3), "start": start, "step": step, "lines": lines,
        "data": base64.b64encode(zlib.compress(planes, 9)).decode() if planes else "",
        "bands": [[round(float(a), 4), round(float(b), 4), name] for a, b, name in plot.bands],
        "marks": [[round(float(t), 4), words, kind] for t, words, kind in plot.marks],
        "limits": [[float(value), words] for value, words in plot.limits],
        "lanes": [{"name": name, "spans": [[round(float(a), 4), round(float(b), 4)] for a, b in spans], "colour": colour % COLOURS}
                  for name, spans, colour in plot.lanes],
        "window": list(plot.window) if plot.window else None, "scale": list(plot.scale) if plot.scale else None,
    }  # fmt: skip
    data = json.dumps(about, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    height = max(plot.height, 18 * len(plot.lanes) + 40) if plot.lanes else plot.height
    unit = f" <span class=note>{text(plot.unit)}</span>" if plot.unit else ""
    note = f'<p class="note">{text(plot.note)}</p>' if plot.note else ""
    return (
        f'<figure class="plot"><figcaption><span><b>{text(plot.title)}</b>{unit}</span><span class="key"></span>'
        f'<button type="button" hidden>whole run</button></figcaption><canvas tabindex="0" role="img" style="height:{height}px" '
        f'aria-label="{text(description(plot))}"></canvas><script type="application/json">{data}</script>{note}</figure>'
    )


def description(plot: Plot) -> str:
    """The diagram in words, for those who do not see it: what it is of, and the extremes of every line with their times."""
    unit = f" {plot.unit}" if plot.unit else ""
    parts = []
    if plot.values is not None and len(plot.values):
        for i in range(plot.values.shape[1]):
            y = np.where(np.abs(plot.values[:, i]) < LARGEST, plot.values[:, i], np.nan)
            if np.isnan(y).all():
                continue
            low, high = int(np.nanargmin(y)), int(np.nanargmax(y))
            name = f"{plot.names[i]} " if i < len(plot.names) and plot.names[i] else ""
            parts.append(f"{name}from {y[low]:.4g}{unit} at {plot.time[low]:.3f} s to {y[high]:.4g}{unit} at {plot.time[high]:.3f} s")
    parts += [f"{name} on {len(spans)} times" if len(spans) != 1 else f"{name} on once" for name, spans, _ in plot.lanes]
    return f"{plot.title} over time: " + ("; ".join(parts) or "nothing")


class Line(TypedDict):
    """A line as `curves.js` takes it; low, high: of its values, as many points follow in the data."""

    name: str
    colour: int
    dash: bool
    points: int
    low: float
    high: float


def _lines(plot: Plot) -> tuple[list[Line], list[tuple[np.ndarray, np.ndarray]]]:
    """Description and points of every line."""
    lines: list[Line] = []
    points: list[tuple[np.ndarray, np.ndarray]] = []
    sets = [(plot.time, plot.values, plot.names, False)]
    if plot.second is not None:
        sets.append((plot.time if plot.second_time is None else plot.second_time, plot.second, plot.second_names, True))
    spans = [_span(values) for _, values, _, _ in sets if values is not None]
    whole = max(spans, default=0.0)
    for time, values, names, dash in sets:
        if values is None or not len(values):
            continue
        grid = _chords(time)
        for i in range(values.shape[1]):
            t, y = grid.kept(values[:, i], plot.most, OF_FIGURE * whole)
            seen = y[~np.isnan(y)]
            low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 0.0)
            lines.append({"name": names[i] if i < len(names) else "", "colour": i % COLOURS, "dash": dash or (not dash and i >= COLOURS),
                          "points": len(t), "low": low, "high": high})  # fmt: skip
            points.append((t, y))
    return lines, points


def _span(values: np.ndarray) -> float:
    """Largest range of a column, of what is drawn of it."""
    if not len(values):
        return 0.0
    low, high = values.min(axis=0), values.max(axis=0)
    spans = np.where((np.abs(low) < LARGEST) & (np.abs(high) < LARGEST), high - low, 0.0)
    return float(spans.max(initial=0.0))


class Chords:
    """Choice of points over one time axis (n,), s: shares of the way along each chord are the same for all its lines."""

    def __init__(self, time: np.ndarray) -> None:
        self.time = np.asarray(time, float)
        last = max(0, len(self.time) - 1)
        self.levels = [k for k in range(1, DEEPEST + 1) if 2**k <= last]
        self._share: dict[int, np.ndarray] = {}

    def kept(self, values: np.ndarray, most: int = POINTS, least_span: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Times and values of the points that draw the line, NaN in gaps. least_span: what its range counts as at least."""
        y = np.asarray(values, float)
        if not len(y):
            return self.time, y
        low, high = float(y.min()), float(y.max())
        if not (abs(low) < LARGEST and abs(high) < LARGEST):
            return thin(self.time, y, most)
        span = max(high - low, least_span)
        if high == low or not self.levels:
            keep = np.unique([0, len(y) - 1]) if high == low else np.arange(len(y))
            return self.time[keep], y[keep]
        errors = {k: self._errors(y, k) for k in self.levels}
        error = ERROR * span
        while True:
            keep = self._starts(errors, error, len(y))
            if len(keep) <= most:
                break
            error *= 2.0
            if error > WORST * span:
                return thin(self.time, y, most)
        keep = np.union1d(keep, [y.argmin(), y.argmax(), len(y) - 1])
        return self.time[keep], y[keep]

    def _errors(self, y: np.ndarray, k: int) -> np.ndarray:
        """Largest distance from its chord of every whole stretch of 2^k ticks."""
        s = 2**k
        m = (len(y) - 1) // s
        if k not in self._share:
            t0, t1 = self.time[0 : m * s : s], self.time[s : m * s + 1 : s]
            self._share[k] = ((self.time[: m * s].reshape(m, s) - t0[:, None]) / np.maximum(t1 - t0, 1e-12)[:, None]).astype(np.float32)
        a, b = y[0 : m * s : s], y[s : m * s + 1 : s]
        away = (y[: m * s].reshape(m, s) - a[:, None]).astype(np.float32)
        away -= (b - a).astype(np.float32)[:, None] * self._share[k]
        largest: np.ndarray = np.maximum(away.max(axis=1), -away.min(axis=1))
        return largest

    def _starts(self, errors: dict[int, np.ndarray], error: float, n: int) -> np.ndarray:
        """First ticks of the stretches that are taken, from the longest to single ticks."""
        kept, open_ = [], np.empty(0, int)
        covered = 0  # stretches of this level that longer ones have decided about
        for k in reversed(self.levels):
            m = len(errors[k])
            asked = np.concatenate([open_, np.arange(covered, m)])
            good = errors[k][asked] <= error
            kept.append(asked[good] * 2**k)
            rest = asked[~good]
            open_ = np.concatenate([2 * rest, 2 * rest + 1])
            covered = 2 * m
        kept += [open_, np.arange(covered, n)]
        return np.sort(np.concatenate(kept))


_last: list[Chords] = []  # most figures of a page have the time axis of the one before


def _chords(time: np.ndarray) -> Chords:
    if not _last or _last[0].time is not time:
        _last[:] = [Chords(time)]
    return _last[0]


def _planes(t: np.ndarray, y: np.ndarray, low: float, high: float, start: float, step: float) -> bytes:
    """A line as `curves.js` reads it: steps in time (four byte planes), steps in value (two)."""
    ticks = np.round((t - start) / step).astype(np.int64)
    moved = np.diff(ticks, prepend=0).astype(np.uint32)
    gap = np.isnan(y)
    level = np.where(gap, GAP, np.round((np.where(gap, low, y) - low) / ((high - low) or 1.0) * (GAP - 1))).astype(np.int64)
    stepped = (np.diff(level, prepend=0) & 0xFFFF).astype(np.uint32)
    return b"".join(((word >> shift) & 0xFF).astype(np.uint8).tobytes() for word, shift in
                    [(moved, 0), (moved, 8), (moved, 16), (moved, 24), (stepped, 0), (stepped, 8)])  # fmt: skip


def unpacked(data: str, points: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The inverse of the planes, as `curves.js` does it: (steps of time since the start, levels 0 … GAP) of every line."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(data)), np.uint8).astype(np.int64)
    found, at = [], 0
    for n in points:
        p = raw[at : at + 6 * n].reshape(6, n)
        found.append((np.cumsum(p[0] + (p[1] << 8) + (p[2] << 16) + (p[3] << 24)), np.cumsum(p[4] + (p[5] << 8)) & 0xFFFF))
        at += 6 * n
    return found


def spark(time: np.ndarray, values: np.ndarray, span: tuple[float, float], scale: tuple[float, float], words: str) -> str:
    """A small curve in a table, as inline SVG. span: s; scale: values at its lower and upper edge; words: what it shows, for everybody."""
    wide, tall = 120.0, 34.0
    t, y = thin(time, values, 160) if len(time) else (time, values)
    up = max(scale[1] - scale[0], 1e-12)
    x = (t - span[0]) / max(span[1] - span[0], 1e-12) * wide
    at = tall - (np.nan_to_num(y) - scale[0]) / up * tall
    drawn = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, at, strict=True))
    return (
        f'<svg role="img" aria-label="{text(words)}" width="{wide:.0f}" height="{tall:.0f}" viewBox="0 -1 {wide:.0f} {tall + 2:.0f}">'
        f"<title>{text(words)}</title>"
        f'<polyline fill="none" stroke="var(--c0)" stroke-width="1.2" points="{drawn}"/></svg>'
    )


def histogram(title: str, unit: str, values: np.ndarray) -> str:
    """How often, over values (n,) from 0.1 on; both axes logarithmic, so that a single large one is seen. Inline SVG."""
    seen = np.maximum(values, 0.1)
    decades = int(np.ceil(max(2.0, np.log10(seen.max() * 1.0001)))) if len(seen) else 2
    counts, edges = np.histogram(np.log10(seen), bins=np.linspace(-1.0, decades, 20 * (decades + 1) + 1))
    wide, tall, left, below = 460.0, 150.0, 44.0, 30.0
    top = max(1.0, float(np.ceil(np.log10(max(int(counts.max(initial=1)), 2)))))

    def x(e: float) -> float:
        return left + (e + 1.0) / (decades + 1.0) * (wide - left)

    def y(c: float) -> float:
        return tall - float(np.log10(c)) / top * (tall - 8.0)

    parts = []
    for e in range(-1, decades + 1):
        parts.append(f'<line x1="{x(e):.1f}" x2="{x(e):.1f}" y1="8" y2="{tall}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{x(e):.1f}" y="{tall + 13}" text-anchor="middle">{10.0**e:g}</text>')
    for c in range(int(top) + 1):
        parts.append(f'<line x1="{left}" x2="{wide}" y1="{y(10.0**c):.1f}" y2="{y(10.0**c):.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{left - 4}" y="{y(10.0**c) + 4:.1f}" text-anchor="end">{10**c}</text>')
    for count, a, b in zip(counts, edges, edges[1:], strict=False):
        if count:
            at = min(y(count), tall - 2.0)  # a single one is seen
            parts.append(f'<rect x="{x(a):.1f}" y="{at:.1f}" width="{x(b) - x(a) - 0.5:.1f}" height="{tall - at:.1f}" fill="var(--c0)"/>')
    largest = f"{values.max():.4g}" if len(values) else "none"
    words = f"{title}: how many ticks by {unit}, both logarithmic; largest {largest} {unit}"
    return (
        f'<svg role="img" aria-label="{text(words)}" viewBox="0 0 {wide + 14:.0f} {tall + below:.0f}" width="{wide + 14:.0f}" '
        f'font-size="11" fill="var(--soft)">{"".join(parts)}<text x="{left + 2}" y="{tall + 27}">{text(title)}, {text(unit)}</text></svg>'
    )
