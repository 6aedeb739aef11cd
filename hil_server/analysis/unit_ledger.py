"""Ledger of the docking unit's energy: what was put in against what is stored, moves and was lost.

A unit says which of its channels these are (`LEDGER` of its part). What is left open is an error of its integration: it grows with the step
and is large long before a unit runs away.
"""

import tomllib
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.requirements import CONFIGURATION
from hil_server.telemetry.log_file import Log

OPEN_MAX = 0.10  # of the largest entry


def unit_ledger(log: Log) -> dict[str, Any] | None:
    """JSON values: largest_j (largest entry of the ledger), open_j (what is open where it is most, with its sign: positive is energy lost
    from the ledger), time_s of that, share (of the largest entry), limit, closes, said (one line). None where the log has no such
    channels."""
    try:
        mechanism = tomllib.loads(log.header.configuration.get(CONFIGURATION, "")).get("mechanism")
    except tomllib.TOMLDecodeError:
        return None
    ledger = getattr(registry.part_of_table("mechanisms", mechanism), "LEDGER", ())
    there = {channel.name.partition("#")[0]: channel.name for channel in log.header.aux}  # the unit's are the last of their name
    if not ledger or not log.ticks or any(name not in there for name in (ledger[0], *ledger[1])):
        return None
    put_in, *found = (log.aux(there[name]).reshape(log.ticks) for name in (ledger[0], *ledger[1]))
    entries = [values - values[0] for values in (put_in, *found)]
    left = entries[0] - np.sum(entries[1:], axis=0)
    at = int(np.argmax(np.abs(left)))
    largest = float(max(np.abs(values).max() for values in entries))
    share = abs(float(left[at])) / largest if largest > 0.0 else 0.0
    closes = share <= OPEN_MAX
    said = f"open by {left[at]:+.3g} J of {largest:.3g} J ({100.0 * share:.1f} %, limit {100.0 * OPEN_MAX:g} %) at {log.time_s[at]:.3f} s"
    if not closes:
        said += ": the step is too long for the unit, its loads are not to be relied on; take a higher test.rate_hz or mechanism.substeps"
    return {"largest_j": largest, "open_j": float(left[at]), "time_s": float(log.time_s[at]), "share": share, "limit": OPEN_MAX,
            "closes": closes, "said": said}  # fmt: skip
