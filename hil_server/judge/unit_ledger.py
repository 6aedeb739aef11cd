"""Ledger of the docking unit's energy: what was put in against what is stored, moves and was lost.

A unit says which of its channels these are (`LEDGER` of its part). What is left open is an error of its integration: it grows with the step
and is large long before a unit runs away. A thinned log shows the least of it: between its records the ledger may be open further.
"""

from dataclasses import dataclass

import numpy as np

from hil_server import registry
from hil_server.judge.run import Run

OPEN_MAX = 0.10  # of the largest entry


@dataclass(frozen=True)
class UnitLedger:
    """largest_j: largest entry of the ledger; open_j: what is open where it is most, positive where energy is lost from the ledger; time_s:
    of that; share: of the largest entry; at_least: the log is thinned; in_words: one line."""

    largest_j: float
    open_j: float
    time_s: float
    share: float
    limit: float
    closes: bool
    at_least: bool
    in_words: str


def unit_ledger(run: Run) -> UnitLedger | None:
    """The ledger of the run's docking unit; None where the log has no such channels."""
    log = run.log
    ledger = getattr(registry.part_of_table("mechanisms", run.document.get("mechanism")), "LEDGER", ())
    there = {channel.name.partition("#")[0]: channel.name for channel in log.header.aux}  # the unit's are the last of their name
    if not ledger or not log.ticks or any(name not in there for name in (ledger[0], *ledger[1])):
        return None
    put_in, *found = (log.aux(there[name]).reshape(log.ticks) for name in (ledger[0], *ledger[1]))
    entries = [values - values[0] for values in (put_in, *found)]
    numbers = np.isfinite(entries).all(axis=0)  # a unit that runs away ends in what is no number: then all of it is open
    lost_at = log.ticks if numbers.all() else int(np.argmin(numbers))
    entries = [np.nan_to_num(values[: max(1, lost_at)]) for values in entries]
    left = entries[0] - np.sum(entries[1:], axis=0)
    at = int(np.argmax(np.abs(left)))
    largest = float(max(np.abs(values).max() for values in entries))
    share = 1.0 if lost_at < log.ticks else abs(float(left[at])) / largest if largest > 0.0 else 0.0
    closes, at_least = share <= OPEN_MAX, run.thinning > 1
    how_far = f"open by {'at least ' if at_least else ''}{left[at]:+.3g} J of {largest:.3g} J"
    if lost_at < log.ticks:
        how_far += f", no number from {log.time_s[lost_at]:.3f} s on"
    words = f"{how_far} ({100.0 * share:.1f} %, limit {100.0 * OPEN_MAX:g} %) at {log.time_s[at]:.3f} s"
    if not closes:
        words += ": the step is too long for the unit, its loads are not to be relied on; take a higher test.rate_hz or mechanism.substeps"
    return UnitLedger(largest, float(left[at]), float(log.time_s[at]), share, OPEN_MAX, closes, at_least, words)
