"""Rows of values in pieces: where a condition begins and ends, and the smallest value in each of many windows."""

from collections.abc import Iterator

import numpy as np


def pieces(inside: np.ndarray, before: bool) -> Iterator[tuple[int, int, bool]]:
    """The row `inside` (n,) in pieces of one value: (first, one behind the last, whether the piece begins here). before: the value that the
    row before this one ended with."""
    edges = [int(i) for i in np.flatnonzero(np.diff(inside, prepend=before))]
    if len(inside) and edges[:1] != [0]:
        yield 0, edges[0] if edges else len(inside), False
    for i, start in enumerate(edges):
        yield start, edges[i + 1] if i + 1 < len(edges) else len(inside), True


def window_min(values: np.ndarray, first: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """Smallest of values[first[i]:behind[i]] for every i, infinity of an empty window, (n,).

    Each window is covered by two of the windows whose length is a power of two, whose smallest values are made from those of half the
    length: n log(longest window) operations, whatever the windows are."""
    length = np.maximum(behind - first, 0)
    found = np.full(len(length), np.inf)
    if not len(values) or not length.any():
        return found
    level = np.where(length > 0, np.frexp(length.astype(float))[1] - 1, -1)  # 2**level <= length < 2**(level + 1)
    table = values
    for k in range(int(level.max()) + 1):
        here = level == k
        if here.any():
            found[here] = np.minimum(table[first[here]], table[behind[here] - (1 << k)])
        if len(table) <= 1 << k:
            break
        table = np.minimum(table[: -(1 << k)], table[1 << k :])
    return found
