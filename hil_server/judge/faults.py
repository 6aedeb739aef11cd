"""Faults of a run in their order, and why it went wrong."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from hil_server import registry
from hil_server.log.reader import Log
from rt_kernels.codes import code_name
from rt_kernels.layout import FAULTS

# what the devices say, and the loop, when it is the host that stood still
STALLED = {"sensor_no_data", "sensor_stale", "sensor_lost", "drive_no_data", "drive_device_fault", "drive_not_enabled", "drive_lost",
           "drive_not_following", "drive_heartbeat_lost", "bus_fault", "following_error", "signals_no_data", "loop_overrun",
           "supervisor_silent"}  # fmt: skip
STALL_PERIODS, STALL_S = 2, 0.3  # so many periods missed at once are a stall, and so long after it a fault may be its
STOP = {name for name, _, severity, *_ in FAULTS if severity == "stop"}


class Fault(TypedDict):
    """A fault bit of a run: when it was first set, and the words of the table of faults."""

    name: str
    severity: str
    meaning: str
    action: str
    tick: int
    time_s: float


class Cause(TypedDict):
    """Why a run went wrong, in one line, and since when."""

    text: str
    tick: int
    time_s: float


def faults_of(log: Log) -> list[Fault]:
    """Every fault bit of the run, first cause first: name, severity, meaning, action, tick, time_s. In order of the ticks; within one tick
    what stops comes before what holds, and that before notes."""
    words = log.records["faults"]
    found: list[Fault] = []
    for name, mask, severity, meaning, action, _ in FAULTS:
        on = np.flatnonzero(words & mask)
        if len(on):
            tick, time_s = int(log.records["tick"][on[0]]), float(log.time_s[on[0]])
            found.append({"name": name, "severity": severity, "meaning": meaning, "action": action, "tick": tick, "time_s": time_s})
    return sorted(found, key=lambda fault: (fault["tick"], ("stop", "hold", "note").index(fault["severity"])))


def cause_of(log: Log, faults: Sequence[Fault], document: Mapping[str, object]) -> Cause | None:
    """Why the run went wrong, None for a run without a fault (notes are none). document: its configuration as plain tables.

    The first fault; but where the loop missed periods just before it and the faults are what devices say of a host that stands still, the
    stall: the largest one, with the cause that the clock has for it."""
    if not faults:
        return None
    first = faults[0]
    r = log.records
    stall = np.flatnonzero((r["periods"] > STALL_PERIODS) & (log.time_s <= first["time_s"]) & (log.time_s >= first["time_s"] - STALL_S))
    if first["name"] not in STALLED or not len(stall):
        meaning = _what_was_invalid(log, first, document) or first["meaning"]
        return {"text": f"{first['name']}: {meaning}", "tick": first["tick"], "time_s": first["time_s"]}
    at = stall[r["periods"][stall].argmax()]
    missed, why = int(r["periods"][at]) - 1, code_name("late_cause", int(r["late_cause"][at])).replace("_", "-")
    after = ", ".join(fault["name"] for fault in faults if fault["name"] in STALLED)
    lost_ms = missed * log.header.period_ns * 1e-6
    named = next((one for one in log.end.get("late", []) if one["tick"] == int(r["tick"][at])), None)
    if named is not None:
        why += f" ({named['cause'].replace('_', ' ')}{': ' * bool(named['who'])}{named['who']})"
    text = f"host too busy: {missed} periods ({lost_ms:.0f} ms) missed, late by {why}; {after} followed from it"
    return {"text": text, "tick": int(r["tick"][at]), "time_s": float(log.time_s[at])}


def _what_was_invalid(log: Log, fault: Fault, document: Mapping[str, object]) -> str | None:
    """What left the valid range of its law, and where, from the unit's channels `*.invalid_*`; None where it is another fault or the unit
    does not say. What the codes of `invalid_part` mean, the part's `INVALID` tells."""
    if fault["name"] != "mechanism_invalid":
        return None
    values, unit = {}, ""
    for channel in log.header.aux:
        prefix, _, name = channel.name.rpartition(".invalid_")
        if prefix:
            unit, values[name] = prefix, float(log.records["aux"][-1, channel.offset])
    named = getattr(registry.part_of_table("mechanisms", document.get("mechanism")), "INVALID", ())
    part = int(values.get("part", 0.0))
    if not 0 < part < len(named):
        return None
    what, measured, si = named[part]
    factor, shown = (1e3, "mm") if si == "m" else (1.0, "" if si == "-" else f" {si}")
    value, limit = (f"{factor * values[key]:.3g} {shown}".strip() for key in ("value", "limit"))
    place = ", ".join(f"{values[f'at_{axis}']:.3f}" for axis in "xyz")
    where = f", at ({place}) m in the target port" if measured == "penetration" else ""
    return f"{unit}: {what} {values['number']:.0f}: {measured} {value}, its law holds to {limit}{where}"
