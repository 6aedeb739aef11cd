"""Time and derivatives out of the records of any log: whole, thinned, cut, branched or imported.

The time of a record is its `time_ns`. What lies between two records is known where they follow each other in the loop (periods that it
skipped are part of the step); where the log leaves ticks out it is not: a thinned log has no accelerations, and a stretch that is missing
ends a derivative on either side of it.
"""

import tomllib
from typing import Any, Literal

import numpy as np

from hil_server.errors import UsageError
from hil_server.line.run_header import CONFIGURATION
from hil_server.log.reader import Log

REMEDY = "simulate it with --set telemetry.log_every=1"


def configured(log: Log) -> dict[str, Any]:
    """The whole configuration of the run as plain tables; empty when the log has none."""
    try:
        return tomllib.loads(log.header.configuration.get(CONFIGURATION, ""))
    except tomllib.TOMLDecodeError:
        return {}  # what cannot be read says nothing


def left_out(log: Log) -> np.ndarray:
    """Whether the log leaves out ticks between a record and the next one, (n - 1,) bool."""
    r = log.records
    found: np.ndarray = np.diff(r["tick"]) > np.maximum(r["periods"][1:], 1)
    return found


def thinning(log: Log) -> int:
    """1 where the log holds every tick that was run, n of a thinned one that holds one tick in n (and those in which something changes)."""
    every = configured(log).get("telemetry", {}).get("log_every", 1)
    gaps = left_out(log)
    if not isinstance(every, int) or every <= 1 or not gaps.any():
        # a log that somebody else has thinned: most of its steps leave something out
        every = int(np.median(np.diff(log.records["tick"]))) if len(gaps) and gaps.mean() > 0.5 else 1
    return every


def in_words(log: Log) -> str:
    """What a thinned log does not hold, for the page of a figure that is made from it; "" for one with every tick."""
    every = thinning(log)
    step = 1e3 * every * log.header.period_ns * 1e-9
    return f"thinned log, one tick in {every}: peaks and switchings are the run's, what else happened within {step:.3g} ms is not in it" \
        if every > 1 else ""  # fmt: skip


def every_tick(log: Log, what: str) -> None:
    """Raises UsageError for a thinned log. what: the figures that need every tick, as "accelerations"."""
    if (every := thinning(log)) > 1:
        raise UsageError(f"{log.path}: a thinned log (telemetry.log_every = {every}) has no {what}: {REMEDY}")


def derivative(log: Log, values: np.ndarray, apart: np.ndarray | None = None) -> np.ndarray:
    """d/dt of values (n,) or (n, k) of the log's records: second order on uneven steps, one-sided at the ends and beside a stretch that is
    missing; NaN of a record that stands alone. apart (n - 1,) bool: where the values are set and do not move from a record to the
    next one. Raises UsageError for a thinned log."""
    every_tick(log, "accelerations")
    found = np.full(values.shape, np.nan)
    breaks = left_out(log) if apart is None else left_out(log) | apart
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), log.ticks]
    for a, b in zip(edges, edges[1:], strict=False):
        if b - a >= 2:
            edge_order: Literal[1, 2] = 2 if b - a > 2 else 1
            found[a:b] = np.gradient(values[a:b], log.time_s[a:b], axis=0, edge_order=edge_order)
    return found


def integral(log: Log, values: np.ndarray, inside: np.ndarray) -> tuple[float, float]:
    """Integral of values (n,) over the records `inside` (n,) bool, by trapezoids between neighbours that both are; and by how much ticks
    that a thinned log leaves out may change it where the values go from one record to the next without turning (0 of a whole log)."""
    step = np.diff(log.time_s) * (inside[1:] & inside[:-1])
    total = float(0.5 * np.sum((values[1:] + values[:-1]) * step))
    return total, float(0.5 * np.sum(np.abs(np.diff(values)) * step * left_out(log)))
