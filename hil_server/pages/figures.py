"""Figures for pages: matplotlib without a display, thinned lines, embedded as images."""

import base64
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito: told apart by everybody
POINTS = 3000  # per line; more is thinned, extremes kept
LARGEST = 1e30  # what a damaged record may hold beyond this leaves a gap: no axis has room for it


def figure(rows: int = 1, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """A figure of `rows` diagrams above each other with one time axis."""
    drawn = Figure(figsize=(10.0, height * rows))
    FigureCanvasAgg(drawn)
    inch = height * rows
    drawn.subplots_adjust(left=0.075, right=0.99, top=1.0 - 0.2 / inch, bottom=0.45 / inch, hspace=0.17)
    axes = drawn.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for one in axes:
        one.grid(True, linewidth=0.4, alpha=0.6)
        one.tick_params(labelsize=8)
    return drawn, list(axes)


def thin(x: np.ndarray, y: np.ndarray, points: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """At most `points` points of a line that keep the smallest and largest value of every stretch, in order. x, y: (n,). Values that are no
    finite number below LARGEST are gaps."""
    gap = ~(np.abs(y) < LARGEST)
    y = np.where(gap, np.nan, y)
    if len(x) <= points:
        return x, y
    stretch = -(-2 * len(x) // points)
    whole = len(x) - len(x) % stretch
    low, high = np.where(gap, np.inf, y), np.where(gap, -np.inf, y)
    start = np.arange(whole // stretch) * stretch
    least, most = low[:whole].reshape(-1, stretch).argmin(axis=1), high[:whole].reshape(-1, stretch).argmax(axis=1)
    keep = np.column_stack([start + least, start + most])
    tail = [] if whole == len(x) else [whole + int(low[whole:].argmin()), whole + int(high[whole:].argmax())]
    order = np.unique(np.concatenate([keep.ravel(), np.array(tail, int), [0, len(x) - 1]]))
    return x[order], y[order]


def lines(axes: Axes, x: np.ndarray, values: np.ndarray, names: Sequence[str], label: str, style: str = "-", faint: bool = False) -> None:
    """Draws the columns of `values`, (n, k), over x."""
    for i, name in enumerate(names):
        at, y = thin(x, values[:, i])
        axes.plot(at, y, style, color=COLOURS[i % len(COLOURS)], linewidth=0.9, alpha=0.55 if faint else 1.0, label=name or None)
    axes.set_ylabel(label, fontsize=9)
    if any(names):
        axes.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=len(names), frameon=False, borderpad=0.2)


def embedded(drawn: Figure) -> str:
    """The figure as an `img` element that needs nothing else."""
    buffer = BytesIO()
    drawn.savefig(buffer, format="png", dpi=110)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
