"""What the banner of every page says: the trip with its first fault and what to do about it, and how the run and the way to it stand.

`trip` is what the publisher puts into its messages once a stop fault is there: tick, time and the stop faults of that very tick.
"""

from typing import TypedDict

import numpy as np

from hil_server.bus.publisher import Trip, first_trip
from hil_server.bus.wire import Message
from hil_server.log.reader import Log
from rt_kernels.codes import code_name
from rt_kernels.layout import FAULTS
from rt_kernels.pictures import Values


class Fault(TypedDict):
    """A fault with its meaning and what to do about it."""

    name: str
    meaning: str
    action: str


class TripShown(TypedDict):
    """A trip for the page: tick, t in s, and the faults of its tick in the order of the table."""

    tick: int
    t: float
    faults: list[Fault]


def in_words(trip: Trip | None) -> TripShown | None:
    """A trip for the page; None without one."""
    if not trip:
        return None
    word = int(trip["faults"])
    faults: list[Fault] = [
        {"name": name.replace("_", " "), "meaning": meaning, "action": action}
        for name, mask, _, meaning, action, _ in FAULTS
        if word & mask
    ]
    return {"tick": int(trip["tick"]), "t": float(trip["t"]), "faults": faults}


def of_log(log: Log) -> TripShown | None:
    """The same of a log."""
    return in_words(first_trip(log.records, np.int64(0)))


def safety(last: Values) -> str:
    """State of the safety stage, and the tick of the trip."""
    state = code_name("safety_state", last["safety_state"]).replace("_", " ")
    if last["trip_tick"] < 0:
        return state
    return f"{state}, {'recovered from the trip' if state == 'following' else 'tripped'} at tick {last['trip_tick']}"


def end_of(last: Values, status: Message) -> str:
    """Why the run ended, "" while it runs as far as is known: its last phase, or the telemetry process's last word."""
    if code_name("phase", last["phase"]) != "ended" and status.get("running", True):
        return ""
    cause = code_name("end_cause", last["end_cause"]).replace("_", " ")
    return "cause not told" if cause == "none" else cause
