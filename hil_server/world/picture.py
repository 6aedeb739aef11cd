"""Who did what when in a run: text for a terminal."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hil_server.config import TestConfig
from hil_server.log.reader import read_log
from hil_server.world.events import Event
from hil_server.world.flight import fly
from rt_kernels.codes import code_name, fault_names

TURNS, COLUMNS = 2_000_000, 72
SHADES = " .:-=+*#%@"


def picture(config: TestConfig, seed: int, events: Sequence[Event], **flown: Any) -> str:
    """Of a flight (flown: as `fly` takes them): events, changes of phase and state, faults as they came, and how often each task had the
    baton, by time."""
    with TemporaryDirectory(prefix="world-") as folder:
        flight = fly(config, seed, Path(folder) / f"seed-{seed}", events, turns=TURNS, **flown)
        lines = [(e.from_s, f"event  {e!r}") for e in flight.events]
        if flight.log.exists() and (log := read_log(flight.log)).ticks:
            lines += _course(log.records)
    text = [f"seed {seed}: {flight.summary.get('end', flight.error)}, faults {flight.summary.get('faults', [])}"]
    text += [f"{at:9.4f} s  {words}" for at, words in sorted(lines)]
    t = flight.turns
    if len(t) and t["at_ns"][-1] > t["at_ns"][0]:
        place = ((t["at_ns"] - t["at_ns"][0]) * COLUMNS // (t["at_ns"][-1] - t["at_ns"][0] + 1)).astype(int)
        for task in np.unique(t["task"]):
            counts = np.bincount(place[t["task"] == task], minlength=COLUMNS)
            shade = (np.ceil(counts / max(1, counts.max()) * (len(SHADES) - 1))).astype(int)
            text.append(f"{flight.names.get(int(task), str(task))[:24]:24s} |{''.join(SHADES[k] for k in shade)}|")
    return "\n".join(text)


def _course(records: np.ndarray) -> list[tuple[float, str]]:
    found = []
    for name in ("phase", "safety_state"):
        changes = np.flatnonzero(np.diff(records[name], prepend=records[name][0] - 1))
        found += [(1e-9 * records["time_ns"][k], f"{name}  {code_name(name, int(records[name][k]))}") for k in changes]
    faults = records["faults"]
    for k in np.flatnonzero(np.diff(faults, prepend=0)):
        found.append((1e-9 * records["time_ns"][k], f"faults  {', '.join(fault_names(int(faults[k]))) or 'none'}"))
    return found
