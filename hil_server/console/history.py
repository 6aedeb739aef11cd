"""The last minute of every channel of a live run: smallest and largest value behind each `slow` message.

A page that chooses a channel gets its past at once, and one that was slow gets all that it missed: nothing between two pictures is lost.
"""

import math
from collections.abc import Sequence

import numpy as np

from rt_kernels.pictures import Values

POINTS = 2000  # a minute of `slow` at 33 messages a second


class History:
    """names: scalar channels (`name` or `name[i]`) in the order of the columns. count: messages taken since the run's first."""

    def __init__(self, points: int = POINTS) -> None:
        self._points = points
        self.clear()

    def clear(self) -> None:
        """Forgets everything: another run."""
        self.names: list[str] = []
        self._columns: dict[str, int] = {}
        self._shape: list[tuple[str, int]] = []
        self.count = 0

    def add(self, t: float, last: Values, minimum: Values, maximum: Values) -> None:
        """Takes a message: run time [s], newest, smallest and largest values by channel; a word of bits has its newest for all three."""
        shape = [(name, len(value) if isinstance(value, list) else 0) for name, value in last.items()]
        if shape != self._shape:
            self.clear()
            self._shape = shape
            self.names = [name if not size else f"{name}[{i}]" for name, size in shape for i in range(size or 1)]
            self._columns = {name: i for i, name in enumerate(self.names)}
            self._t = np.zeros(self._points)
            self._values = np.zeros((self._points, 2, len(self.names)))
        row = self.count % self._points
        self._t[row] = t
        self._values[row, 0] = _flat(last, minimum)
        self._values[row, 1] = _flat(last, maximum)
        self.count += 1

    def rows(self, names: Sequence[str], since: int = 0) -> list[list[float | None]]:
        """[t, smallest, largest of the first name, of the second ...] of every message from number `since` on that is still kept; None for
        what is no number or not a channel of this run."""
        first = max(since, self.count - self._points)
        columns = [self._columns.get(name) for name in names]
        found = []
        for number in range(first, self.count):
            row = number % self._points
            part: list[float | None] = [round(float(self._t[row]), 4)]
            for column in columns:
                part += [None, None] if column is None else [_short(float(value)) for value in self._values[row, :, column]]
            found.append(part)
        return found


def _flat(last: Values, chosen: Values) -> list[float]:
    """All values in the order of `last`, those of `chosen` where it has them."""
    found: list[float] = []
    for name, value in last.items():
        value = chosen.get(name, value)
        found += value if isinstance(value, list) else [value]
    return found


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
