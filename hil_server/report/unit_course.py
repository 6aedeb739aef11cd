"""What the docking unit did over a run: its sensors and switches, its state as it declares it (`rt_kernels.pictures.Diagram`), and a list
of all that happened, in order."""

import numpy as np

from drivers.simulated.unit_channels import NOT_MEASURED, are_of_unit
from hil_server import registry
from hil_server.judge.run import Run
from hil_server.log.reader import Log
from hil_server.log.record import scalar_names
from hil_server.pages.curves import Plot
from hil_server.report.pictures import events as events_of
from hil_server.report.pictures import plot
from rt_kernels.layout import BITS, CODES
from rt_kernels.pictures import Diagram, Picture

SPANS_MOST = 300  # of one sensor
EVENTS_MOST = 400  # a switch that chatters is not listed without end


def switchings(words: np.ndarray, names: dict[str, int]) -> list[tuple[int, str, bool]]:
    """(index, name, on) of every change of a bit in words (n,), in order; the first value is no change."""
    words = words.astype(np.int64)
    found = []
    for name, mask in names.items():
        on = (words & mask) != 0
        found += [(int(i) + 1, name, bool(on[i + 1])) for i in np.flatnonzero(np.diff(on.astype(np.int8)))]
    return sorted(found)


def events(run: Run) -> list[tuple[float, str]]:
    """(run time s, what happened): phases, first contact, capture, sensors, commands to the unit, faults, in order."""
    log = run.log
    if not log.ticks:
        return []
    r, t = log.records, log.time_s
    phases = {number: name for name, number in CODES["phase"].items()}
    change = np.flatnonzero(np.diff(r["phase"], prepend=r["phase"][:1] - 1))
    found = [(float(t[i]), f"phase {phases.get(int(r['phase'][i]), '?')}") for i in change]
    for field, words in (("first_contact_time", "first contact"), ("capture_time", "capture")):
        if r[field][-1] >= 0.0:
            found.append((float(r[field][-1]), words))
    for field, group, prefix in (("signal_discrete", "mechanism_signal", ""), ("mechanism_command", "mechanism_command", "command ")):
        found += [(float(t[i]), f"{prefix}{name} {'on' if on else 'off'}") for i, name, on in switchings(r[field], BITS[group])]
    found += [(float(f["time_s"]), f"{f['severity']}: {f['name']}") for f in run.faults]
    return sorted(found, key=lambda event: event[0])


def diagrams(run: Run) -> tuple[Diagram, ...]:
    """What the unit of this run declares; none for one that is not in software."""
    part = registry.part_of_table("mechanisms", run.document.get("mechanism"))
    found: tuple[Diagram, ...] = getattr(part, "PICTURE", Picture).DIAGRAMS
    return found


def sensors(log: Log) -> Plot | None:
    """Bars where each sensor of the unit is on, those that switched in the run, in the order of their first switching; None without any."""
    seen = switchings(log.records["signal_discrete"], BITS["mechanism_signal"])
    order = list(dict.fromkeys(name for _, name, _ in seen))
    if not order:
        return None
    words = log.records["signal_discrete"].astype(np.int64)
    lanes = [(name, _spans(log.time_s, (words & BITS["mechanism_signal"][name]) != 0), 0) for name in order]
    return Plot("Sensors of the docking unit", "", log.time_s, lanes=lanes, marks=events_of(log))


def _spans(time: np.ndarray, on: np.ndarray) -> list[tuple[float, float]]:
    """(from s, to s) of the times at which it is on; of one that chatters the first SPANS_MOST."""
    edges = np.flatnonzero(np.diff(on.astype(np.int8), prepend=0, append=0))
    spans = zip(edges[::2], edges[1::2], strict=True)
    return [(float(time[a]), float(time[min(b, len(time) - 1)])) for a, b in spans][:SPANS_MOST]


def _series(log: Log, one: Diagram) -> tuple[np.ndarray, list[str]] | None:
    """Columns (ticks, k) of a diagram with their labels; None when the run has none of them."""
    there = {c.name: c.count for c in log.header.aux}
    columns, names = [], []
    for channel, label in one.channels.items():
        if channel in there:
            columns.append(log.aux(channel).reshape(log.ticks, -1))
            names += [label or channel] if there[channel] == 1 else [
                f"{label or name} {i + 1}" if label else name for i, name in enumerate(scalar_names(channel, there[channel]))
            ]  # fmt: skip
    return (np.hstack(columns), names) if columns else None


def state(run: Run) -> list[Plot]:
    """The diagrams of the unit that the run has something for and in which something moves."""
    log, found = run.log, []
    note = NOT_MEASURED if are_of_unit(channel.meaning for channel in log.header.aux) else ""
    for one in diagrams(run):
        series = _series(log, one)
        if series is None or not np.ptp(series[0], axis=0).any():
            continue
        values, names = series
        if one.flags:
            lanes = [(name, _spans(log.time_s, values[:, i] > 0.5), i) for i, name in enumerate(names)]
            found.append(Plot(one.label, "", log.time_s, lanes=lanes, marks=events_of(log), note=note))
        else:
            # zero in the whole run: a part that the unit does not have, or that nothing touched
            there = np.flatnonzero(values.any(axis=0))
            found.append(plot(log, one.label, "", one.factor * values[:, there], [names[i] for i in there], note=note))
    return found
