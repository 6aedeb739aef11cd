"""Tables for people at a terminal."""

import textwrap
from collections.abc import Sequence

WIDTH = 110


def print_table(rows: Sequence[tuple[str, ...]], heads: tuple[str, ...]) -> None:
    """Columns as wide as needed; the last one is wrapped."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads) - 1)]
    left = sum(widths) + 2 * len(widths)
    for row in (heads, tuple("-" * w for w in (*widths, len(heads[-1]))), *rows):
        first, *more = textwrap.wrap(row[-1], max(WIDTH - left, 30)) or [""]
        print("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), first]).rstrip())
        for text in more:
            print(" " * left + text)
