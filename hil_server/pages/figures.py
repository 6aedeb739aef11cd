"""Figures for pages: matplotlib without a display, thinned lines, embedded as images."""

import base64
from collections.abc import Sequence
from io import BytesIO

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil_server.pages.html import text
from hil_server.pages.thinning import thin

matplotlib.rcParams["text.parse_math"] = False  # a name may have dollar signs: it is no formula
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito: told apart by everybody


def figure(rows: int = 1, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """A figure of `rows` diagrams above each other with one time axis."""
    drawn = Figure(figsize=(10.0, height * rows))
    inch = height * rows
    drawn.subplots_adjust(left=0.075, right=0.99, top=1.0 - 0.2 / inch, bottom=0.45 / inch, hspace=0.17)
    axes = drawn.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for one in axes:
        one.grid(True, linewidth=0.4, alpha=0.6)
        one.tick_params(labelsize=8)
    return drawn, list(axes)


def lines(axes: Axes, x: np.ndarray, values: np.ndarray, names: Sequence[str], label: str, style: str = "-", faint: bool = False) -> None:
    """Draws the columns of `values`, (n, k), over x."""
    for i, name in enumerate(names):
        at, y = thin(x, values[:, i])
        axes.plot(at, y, style, color=COLOURS[i % len(COLOURS)], linewidth=0.9, alpha=0.55 if faint else 1.0, label=name or None)
    axes.set_ylabel(label, fontsize=9)
    if any(names):
        axes.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=len(names), frameon=False, borderpad=0.2)


def embedded(drawn: Figure, alt: str) -> str:
    """The figure as an `img` element that needs nothing else. alt: what it shows, for those who do not see it."""
    buffer = BytesIO()
    drawn.savefig(buffer, format="png", dpi=110)
    return f'<img alt="{text(alt)}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
