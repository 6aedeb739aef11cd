"""Recoveries after a trip, as the samples tell them: who asked, what was cleared, what still stood.

The name of the client travels with each command, in those of its eight arguments that it does not need: six bytes of it in each, as a
whole number. All eight are free in the command `recover`.
"""

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from rt_kernels.codes import fault_names
from rt_kernels.layout import CODES, FAULTS

RECOVER = CODES["command"]["recover"]
RECOVERING, FOLLOWING = (CODES["safety_state"][name] for name in ("recovering", "following"))
STOP = sum(mask for _, mask, severity, *_ in FAULTS if severity == "stop")
ABOUT = {name: meaning for name, _, _, meaning, *_ in FAULTS}
ARGUMENTS, BYTES = 8, 6


def name_as_arguments(name: str) -> tuple[float, ...]:
    """The first 48 bytes of a client's name as the eight arguments of a command."""
    data = name.encode()[: ARGUMENTS * BYTES].ljust(ARGUMENTS * BYTES, b"\0")
    return tuple(float(int.from_bytes(data[i : i + BYTES], "little")) for i in range(0, len(data), BYTES))


def name_of_arguments(arguments: ArrayLike) -> str:
    """The name that `name_as_arguments` has put there; "" without one."""
    values = np.asarray(arguments, np.float64)
    if not (np.isfinite(values).all() and (values >= 0.0).all() and (values < 2.0 ** (8 * BYTES)).all()):
        return ""
    data = b"".join(int(value).to_bytes(BYTES, "little") for value in values)
    return data.rstrip(b"\0").decode(errors="ignore")


def with_name(own: tuple[float, ...], name: str) -> tuple[float, ...]:
    """A command's own arguments, and as much of the client's name as the free ones behind them hold: six bytes in each."""
    return (*own, *name_as_arguments(name)[: ARGUMENTS - len(own)])


def why_not_begun(record: np.void) -> str:
    """Why the command `recover` of this record has begun nothing; "" when it has."""
    state = int(record["safety_state"])
    names = fault_names(int(record["faults"]))
    if state == RECOVERING:
        return ""
    if lost := [name for name in ("record_lost", "record_required") if name in names]:
        return f"{lost[0]}: {ABOUT[lost[0]]}; without a record nothing moves in this run again"
    if state == CODES["safety_state"]["not_armed"]:
        return "the setpoints had not started: nothing is to be taken back, end this run and start the next one"
    if state == CODES["safety_state"]["decelerating"]:
        return "the setpoints do not rest yet: ask again in a moment"
    return "nothing has tripped"


def standing_in_words(faults: int) -> str:
    """The stop faults of the word, each with its meaning."""
    names = fault_names(faults & STOP)
    return "; ".join(f"{name} ({ABOUT[name]})" for name in names) or "the setpoints did not come to rest where the legs are"


class Recovery(TypedDict):
    """A command `recover` of a run. by: name of the client. outcome: recovered, given_up (a cause stood until the time was over, or an
    abort came), refused (it began nothing) or under_way (the log ends). cleared: names of the stop faults that it cleared; standing: those
    that were there at its end."""

    tick: int
    time_s: float
    by: str
    outcome: str
    ended_s: float
    cleared: list[str]
    standing: list[str]


def recoveries_of(records: np.ndarray) -> list[Recovery]:
    """Every command `recover` of a run."""
    found: list[Recovery] = []
    state = records["safety_state"]
    for i in np.flatnonzero(records["command_code"] == RECOVER):
        if i and state[i] == RECOVERING == state[i - 1]:
            continue  # given again while it runs
        after = np.flatnonzero(state[i:] != RECOVERING)
        end = int(i + after[0]) if len(after) else len(records) - 1
        if state[i] != RECOVERING:
            outcome = "refused"
        elif not len(after):
            outcome = "under_way"
        else:
            outcome = "recovered" if state[end] == FOLLOWING else "given_up"
        before, now = int(records["faults"][max(end - 1, 0)]), int(records["faults"][end])
        cleared = fault_names(before & ~now & STOP) if outcome == "recovered" else []
        found.append({
            "tick": int(records["tick"][i]), "time_s": float(records["time_ns"][i]) * 1e-9,
            "by": name_of_arguments(records["command_arg"][i]), "outcome": outcome, "ended_s": float(records["time_ns"][end]) * 1e-9,
            "cleared": cleared, "standing": fault_names(now & STOP),
        })  # fmt: skip
    return found


def recovered(records: np.ndarray) -> bool:
    """Whether a run that tripped ended with the stand moving again, no stop fault standing."""
    if not len(records) or records["trip_tick"][-1] < 0:
        return False
    return int(records["safety_state"][-1]) == FOLLOWING and not int(records["faults"][-1]) & STOP
