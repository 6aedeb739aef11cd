"""What `tools/papers.py` puts on its page: blocks of text, tables with a verdict on every row, pictures.

A block is a function that returns lines of Markdown. On the page it stands between `<!-- NAME -->` and `<!-- /NAME -->`, so that one paper
or block can be made again without the others. A block made with `live=True` holds times of this machine or takes long: the command makes
it, tests do not.
"""

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "papers.md"
PICTURES = PAGE.parent / "pictures" / "papers"
INK, BLUE, ORANGE, GREEN, GREY = "#263238", "#1565c0", "#ef6c00", "#2e7d32", "#90a4ae"


@dataclass
class Context:
    """draw: write the picture files; unexplained: rows that differ from print without a reason, by name."""

    draw: bool = False
    unexplained: list[str] = field(default_factory=list)

    def compare(self, what: str, printed: float, here: float, tolerance: float, digits: str, because: str = "") -> list[str]:
        """A row: what, printed, here, verdict. tolerance: relative; digits: format of both; because: why it may differ."""
        error = here / printed - 1.0
        if abs(error) <= tolerance:
            verdict = "agrees" if tolerance < 1e-8 else f"agrees within {100.0 * tolerance:.3g} %"
        else:
            verdict = f"differs by {100.0 * error:+.2g} %: " + (because or "NOT EXPLAINED")
            if not because:
                self.unexplained.append(what)
        return [what, format(printed, digits), format(here, digits), verdict]

    def holds(self, what: str, printed: str, true: bool, here: str, because: str = "") -> list[str]:
        """A row about a statement: it holds, or it does not (because: the erratum or reason)."""
        if not true and not because:
            self.unexplained.append(what)
        return [what, printed, here, "agrees" if true else "differs: " + (because or "NOT EXPLAINED")]

    def zero(self, what: str, error: float, limit: float) -> list[str]:
        """A row about an identity: the largest error and the limit under which it counts as rounding."""
        if error <= limit:
            return [what, "(identity)", f"below {limit:.0e}", "agrees"]
        self.unexplained.append(what)
        return [what, "(identity)", f"{error:.1e}", "NOT EXPLAINED"]

    def picture(self, name: str, text: str, figure: Callable) -> list[str]:
        """Lines that show docs/pictures/papers/NAME.svg; `figure()` returns a matplotlib figure and is called when pictures are drawn."""
        if self.draw:
            import matplotlib

            PICTURES.mkdir(parents=True, exist_ok=True)
            with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "papers", "path.simplify": True}):
                figure().savefig(PICTURES / f"{name}.svg", metadata={"Date": None, "Creator": None})
        return ["", f"<!-- picture: pictures/papers/{name}.svg -->", f"*{text}* (picture: `make docs` draws it)", ""]


@dataclass(frozen=True)
class Block:
    """name: mark on the page, `PAPER.WORD`; make: Context -> lines; live: by the command alone."""

    name: str
    make: Callable[[Context], list[str]]
    live: bool = False

    @property
    def paper(self) -> str:
        return self.name.split(".")[0]

    def on_page(self, lines: list[str]) -> str:
        """The block with its marks."""
        text = "\n".join([f"<!-- {self.name} -->", *lines, f"<!-- /{self.name} -->"])
        return re.sub(r"\n{3,}", "\n\n", text)

    def found(self, text: str) -> str | None:
        """The block as it stands in a page's text, None where it does not."""
        first, last = f"<!-- {self.name} -->", f"<!-- /{self.name} -->"
        if first not in text or last not in text:
            return None
        return text[text.index(first): text.index(last) + len(last)]


def prose(text: str) -> list[str]:
    """A paragraph, its lines as wide as the tree's."""
    return textwrap.wrap(" ".join(text.split()), 140, break_long_words=False, break_on_hyphens=False)


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    return ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows), ""]


def compared(rows: list[list[str]]) -> list[str]:
    """Rows of a comparison: those that agree as a sentence for each verdict, the others as a list."""
    lines: list[str] = []
    good = [row for row in rows if row[3].startswith("agrees")]
    for verdict in dict.fromkeys(row[3] for row in good):
        listed = [what if here == "same" else f"{what} ({here})" for what, _, here, *found in good if found[0] == verdict]
        lines += ["", *prose(f"Agree{verdict.removeprefix('agrees')}: {'; '.join(listed)}.")]
    rest = [f"* {what}: printed {printed}, here {here}; {verdict}" for what, printed, here, verdict in rows if verdict[:6] != "agrees"]
    return [*lines, "", *rest, ""]


def panels(count: int, columns: int = 1, height: float = 1.9):
    """(figure, axes list): `count` panels of one width, small letters, a grid."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    figure = Figure(figsize=(7.6, 0.5 + height * rows), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(rows, columns, sharex=True)).ravel())
    for one in axes:
        one.grid(True, linewidth=0.4, alpha=0.6)
        one.tick_params(labelsize=7)
    for one in axes[count:]:
        one.remove()
    return figure, axes[:count]


def thin(*arrays, most: int = 500):
    """Every k-th entry, so that a curve of a picture has at most `most` points."""
    k = max(1, -(-len(arrays[0]) // most))
    return [np.asarray(x)[::k] for x in arrays]
