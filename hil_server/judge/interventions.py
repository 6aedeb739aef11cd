"""What was done to a run, by whom, when, and from what to what: commands, tunes, injected faults, recoveries, forced or confirmed loads.

Commands stand in the samples (`command_code`, `command_arg`; the desk puts the client's name behind a command's own arguments), faults that
the stand's file injects in the configuration, what was forced or confirmed before the start in the notes of the log.

A fault that was injected, and periods that the loop missed, belong to every figure in whose window they lie: `marks` names them.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from hil_server.bus.commands import ARGUMENTS, TIME_IS_UP
from hil_server.judge.run import Run
from hil_server.log.header import CONFIRMED, FORCED
from hil_server.log.reader import Log
from hil_server.log.recoveries import name_of_arguments, recoveries_of
from rt_kernels.codes import code_name
from rt_kernels.layout import CODES, INJECTIONS

SERVER_LANE = 1  # of the parity of a command's sequence number
COMMAND = CODES["command"]
INJECTED = {number: name for name, number, *_ in INJECTIONS}
# kind of a note by its beginning; the last one is of logs written before
BEFORE = {FORCED: "forced", CONFIRMED: "confirmed", "armed all the same, confirmed with: ": "confirmed"}
SHOWN = 12


class Given(TypedDict):
    """Who gave a command, and when."""

    by: str
    tick: int
    time_s: float


class Intervention(TypedDict):
    """Something that was done to a run (`done_to_the_run`)."""

    kind: str
    what: str
    by: str
    tick: int | None
    time_s: float | None
    old: float | None
    new: float | None
    unit: str
    answer: str
    text: str


def done_to_the_run(run: Run) -> list[Intervention]:
    """JSON values, in the order of time: kind (forced, confirmed, branch, injection, tune, recovery, command), what, by ("" where the log
    does not know), tick and time_s (None: before the start), old and new (value or None), unit, answer ("" where it was simply taken), text
    (one line)."""
    found = [*_before(run), *_configured(run), *_commands(run.log)]
    return sorted(found, key=lambda row: (row["time_s"] is not None, row["time_s"] or 0.0))


def _row(kind: str, what: str, *, by: str = "", tick: int | None = None, time_s: float | None = None, old: float | None = None,
         new: float | None = None, unit: str = "", answer: str = "") -> Intervention:  # fmt: skip
    unit = "" if unit == "-" else unit
    values = "" if new is None else f" {_number(new)}" if old is None else f" {_number(old)} → {_number(new)}"
    sentence = f"{what}{values}{f' {unit}' if unit and values else ''}"
    sentence += f", by {by}" if by else ""
    sentence += ", before the start" if time_s is None else f", at {time_s:.3f} s"
    sentence += f" ({answer})" if answer else ""
    return {"kind": kind, "what": what, "by": by, "tick": tick, "time_s": time_s, "old": old, "new": new, "unit": unit, "answer": answer,
            "text": sentence}  # fmt: skip


def _number(value: float) -> str:
    return f"{value:.6g}"


def _before(run: Run) -> list[Intervention]:
    log, operator = run.log, str(run.document.get("test", {}).get("operator") or "")
    rows = []
    for note in log.header.notes:
        kind = next((kind for start, kind in BEFORE.items() if note.startswith(start)), None)
        if kind:
            rows.append(_row(kind, note, by=operator))
    branch = log.header.branch
    if branch:
        changed = ", ".join(map(str, branch.get("set") or branch.get("changed") or ())) or "nothing changed"
        words = f"continued from {branch.get('run', 'another run')}: {changed}"
        rows.append(_row("branch", words, by=operator, tick=int(branch.get("tick", 0)), time_s=float(branch.get("time_s", 0.0))))
    return rows


def _configured(run: Run) -> list[Intervention]:
    """Faults that the stand's file injects, those whose time came."""
    log = run.log
    faults = run.document.get("stand", {}).get("virtual", {}).get("faults", ())
    if not log.ticks or not isinstance(faults, list):
        return []
    rows = []
    for fault in faults:
        at, name = float(fault.get("at_s", 0.0)), str(fault.get("fault", "?"))
        if not log.time_s[0] <= at <= log.time_s[-1]:
            continue
        tick = int(log.records["tick"][min(int(np.searchsorted(log.time_s, at)), log.ticks - 1)])
        value = fault.get("value")
        rows.append(_row("injection", _injection(name, int(fault.get("index", 0))), by="the stand's file", tick=tick, time_s=at,
                         new=None if value is None else float(value)))  # fmt: skip
    return rows


def _injection(name: str, index: int) -> str:
    return "injected faults cleared" if name == "clear" else f"injected {name}[{index}]"


CLEARED = _injection("clear", 0)  # what a row of this kind has that takes them back


def _commands(log: Log) -> list[Intervention]:
    r = log.records
    recoveries = {one["tick"]: one for one in recoveries_of(r)}
    rows = []
    for i in np.flatnonzero(r["command_code"] != 0):
        record, code = r[i], int(r["command_code"][i])
        name = code_name("command", code)
        arguments = ARGUMENTS.get(name, ())
        values = [float(v) for v in record["command_arg"][: len(arguments)]]
        client = name_of_arguments(record["command_arg"][len(arguments) :])
        by = "the server" if int(record["command_sequence"]) % 2 == SERVER_LANE else client
        if not arguments and record["command_arg"][0] == TIME_IS_UP:
            by = "the end of its time"
        about: Given = {"by": by, "tick": int(record["tick"]), "time_s": float(log.time_s[i])}
        if name == "tune":
            rows.append(_tune(log, int(i), values, about))
        elif name == "inject_fault":
            fault = INJECTED.get(int(values[0]), str(int(values[0])))
            rows.append(_row("injection", _injection(fault, int(values[1])), new=values[2], **about))
        elif name == "clear_injection":
            rows.append(_row("injection", CLEARED, **about))
        elif name == "recover":
            if one := recoveries.get(about["tick"]):
                cleared = f": {', '.join(one['cleared'])} cleared" if one["cleared"] else ""
                rows.append(_row("recovery", "recover", answer=f"{one['outcome'].replace('_', ' ')}{cleared}", **about))
        else:
            given = " ".join(f"{a.name}={_number(v)}" for a, v in zip(arguments, values, strict=True))
            rows.append(_row("command", f"{name} {given}".strip(), **about))
    return rows


def _tune(log: Log, i: int, values: list[float], about: Given) -> Intervention:
    record, number = log.records[i], int(values[0])
    listed = log.header.tunables
    entry = listed[number] if 0 <= number < len(listed) else {"name": f"parameter {number}", "unit": "-"}
    answer = code_name("tune_answer", int(record["tune_answer"]))
    before = log.records["tuned"][i - 1, number] if i and number < len(listed) else entry.get("value")
    return _row("tune", f"tuned {entry['name']}", old=None if before is None else float(before), new=values[1], unit=entry["unit"],
                answer="" if answer == "taken" else f"refused: {answer.replace('_', ' ')}", **about)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- marks of figures


class Marks:
    """What speaks against the figures of a run, by their window."""

    def __init__(self, log: Log, done: Sequence[Intervention]) -> None:
        self._injected: list[tuple[str, float, float]] = []  # words, from s, to s
        for row in done:
            if row["kind"] == "injection" and (at := row["time_s"]) is not None:
                if row["what"] == CLEARED:
                    self._injected = [(words, a, min(b, at)) for words, a, b in self._injected]
                else:
                    self._injected.append((row["what"], at, np.inf))
        r = log.records
        self._time = log.time_s
        missed = np.maximum(r["periods"].astype(np.int64) - 1, 0) if log.ticks else np.zeros(0, np.int64)
        self._missed = np.concatenate([[0], np.cumsum(missed)])

    def of(self, begin_s: float, end_s: float) -> list[str]:
        """In words, of what lies within begin ... end, run time."""
        found = [f"{words} at {a:.3f} s" for words, a, b in self._injected if a <= end_s and b >= begin_s]
        first, behind = np.searchsorted(self._time, begin_s, "left"), np.searchsorted(self._time, end_s, "right")
        missed = int(self._missed[behind] - self._missed[first])
        return found + ([f"{missed} period{'' if missed == 1 else 's'} missed"] if missed else [])
