"""A line with fewer points that looks the same: the extremes of every stretch are kept."""

import numpy as np

POINTS = 3000  # per line; more is thinned, extremes kept
LARGEST = 1e30  # what a damaged record may hold beyond this leaves a gap: no axis has room for it


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
