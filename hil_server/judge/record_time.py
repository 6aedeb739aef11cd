"""Time and derivatives out of the records of any log: whole, thinned, cut, branched or imported.

The time of a record is its `time_ns`. What lies between two records is known where they follow each other in the loop (periods that it
skipped are part of the step); where the log leaves ticks out it is not: a thinned log has no accelerations, and a stretch that is missing
ends a derivative on either side of it.
"""

from typing import Literal

import numpy as np

from hil_server.errors import UsageError
from hil_server.judge.run import Run

REMEDY = "simulate it with --set telemetry.log_every=1"


def in_words(run: Run) -> str:
    """What a thinned log does not hold, for the page of a figure that is made from it; "" for one with every tick."""
    every = run.thinning
    step = 1e3 * every * run.log.header.period_ns * 1e-9
    return f"thinned log, one tick in {every}: peaks and switchings are the run's, what else happened within {step:.3g} ms is not in it" \
        if every > 1 else ""  # fmt: skip


def every_tick(run: Run, what: str) -> None:
    """Raises UsageError for a thinned log. what: the figures that need every tick, as "accelerations"."""
    if (every := run.thinning) > 1:
        raise UsageError(f"{run.log.path}: a thinned log (telemetry.log_every = {every}) has no {what}: {REMEDY}")


def derivative(run: Run, values: np.ndarray, apart: np.ndarray | None = None) -> np.ndarray:
    """d/dt of values (n,) or (n, k) of the log's records: second order on uneven steps, one-sided at the ends and beside a stretch that is
    missing; NaN of a record that stands alone. apart (n - 1,) bool: where the values are set and do not move from a record to the
    next one. Raises UsageError for a thinned log."""
    every_tick(run, "accelerations")
    found = np.full(values.shape, np.nan)
    breaks = run.left_out if apart is None else run.left_out | apart
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), run.log.ticks]
    for a, b in zip(edges, edges[1:], strict=False):
        if b - a >= 2:
            edge_order: Literal[1, 2] = 2 if b - a > 2 else 1
            found[a:b] = np.gradient(values[a:b], run.log.time_s[a:b], axis=0, edge_order=edge_order)
    return found


def integral(run: Run, values: np.ndarray, inside: np.ndarray) -> tuple[float, float]:
    """Integral of values (n,) over the records `inside` (n,) bool, by trapezoids between neighbours that both are; and by how much ticks
    that a thinned log leaves out may change it where the values go from one record to the next without turning (0 of a whole log)."""
    step = np.diff(run.log.time_s) * (inside[1:] & inside[:-1])
    total = float(0.5 * np.sum((values[1:] + values[:-1]) * step))
    return total, float(0.5 * np.sum(np.abs(np.diff(values)) * step * run.left_out))
