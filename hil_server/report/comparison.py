"""Two runs side by side: a test and its prediction, or two tests. Aligned at first contact, forces first.

Both are logs of the same form, so one tool compares stand, simulation and flight telemetry. Forces and moments come first because
kinematics is their consequence. Time is counted from each run's own first contact up to the end of the closed loop, because what the
programme mode does afterwards belongs to no contact (when one of them has no contact: the whole runs from their start, and the result says
so). The second run is brought onto the ticks of the first by linear interpolation inside the time that both cover; nothing is extrapolated.

For every channel: root mean square and peak of the difference, the peaks of both, and for wrenches the impulse (the integral over the
common time), which does not mind a small shift of a short contact. Then the moments at which the sensors of the docking unit first
switched, and any auxiliary channel that both logs have and that was asked for. What makes the runs different variants is named.

`judged` holds the differences against tolerances: shares of the largest peak of a group (force, moment, ...) in the first run, because a
component that is nearly zero has no share of itself worth a limit.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.config.model import moment_unresolved
from hil_server.errors import HilError, UsageError
from hil_server.judge.peaks import loads_of
from hil_server.judge.record_time import in_words
from hil_server.judge.run import Run
from hil_server.log.moments import MOMENTS, STAND
from hil_server.log.reader import Log, read_log
from hil_server.log.record import scalar_names
from hil_server.pages.curves import Plot, embedded
from hil_server.pages.html import document, guarded, percent, pill, section, table_html, text, verdict_html
from hil_server.requirements.angles import yaw_pitch_roll
from rt_kernels.layout import BITS

BEFORE_CONTACT_S = 1.0


@dataclass(frozen=True)
class ChannelDifference:
    """One scalar in both runs over their common time, of a group (force, moment, ...). relative: peak difference over the peak of the
    first, None when that is zero; share, rms_share: peak and root mean square of the difference over the largest peak of the group in
    the first run, None when that is zero. All three are fractions.

    impulse_a, impulse_b: integrals over the common time (wrench channels), else None.
    """

    group: str
    name: str
    unit: str
    peak_a: float
    peak_b: float
    rms_difference: float
    peak_difference: float
    relative: float | None
    share: float | None
    rms_share: float | None
    impulse_a: float | None
    impulse_b: float | None


@dataclass(frozen=True)
class Comparison:
    """a, b: names of the runs. aligned: "first contact" or "start of run". window_s: common time, from the moment of alignment.

    first_contact_s, capture_s: of each run, None where it did not happen; capture counts from first contact. absorbed_j: of each run by
    itself, energy of relative motion at its first contact (its start, where it has none) less that at the end of its own closed loop.
    moments: largest force and moment of both runs by moment of the docking, (moment, force_a, force_b, moment_a, moment_b), None where a
    run did not come to it. cautions: what a thinned log does not hold, what a tick does not resolve. channels: forces first. signals:
    (name, first time on in a, in b), from the moment of alignment, of every sensor of the docking unit that switched in either. variant:
    keys in which they are different variants (`hil_server.judge.loads`), empty when they are the same or a log does not say.
    """

    a: str
    b: str
    aligned: str
    window_s: tuple[float, float]
    first_contact_s: tuple[float | None, float | None]
    capture_s: tuple[float | None, float | None]
    channels: tuple[ChannelDifference, ...]
    signals: tuple[tuple[str, float | None, float | None], ...] = ()
    variant: tuple[str, ...] = ()
    absorbed_j: tuple[float, float] = (0.0, 0.0)
    moments: tuple[tuple[str, float | None, float | None, float | None, float | None], ...] = ()
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain tables and lists, for JSON."""
        return asdict(self)


# name of the group, unit, names of the scalars, is it a wrench; in the order of importance
GROUPS = (
    ("force", "N", ("Fx", "Fy", "Fz"), True),
    ("moment", "N.m", ("Mx", "My", "Mz"), True),
    ("velocity", "m/s", ("vx", "vy", "vz"), False),
    ("angular velocity", "rad/s", ("wx", "wy", "wz"), False),
    ("position", "m", ("x", "y", "z"), False),
    ("attitude", "rad", ("yaw", "pitch", "roll"), False),
    ("energy", "J", ("kinetic energy",), False),
)


def quantities(log: Log, asked: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The compared channels of a run by group, each (n, k). asked: auxiliary channels beside. Raises UsageError when one is not there."""
    r = log.records
    angles = np.unwrap(yaw_pitch_roll(r["X_TA"]), axis=0) if log.ticks else np.zeros((0, 3))
    return {
        "force": r["F_T"][:, :3],
        "moment": r["F_T"][:, 3:],
        "velocity": r["V_TA"][:, :3],
        "angular velocity": r["V_TA"][:, 3:],
        "position": r["X_TA"][:, :3],
        "attitude": angles,
        "energy": r["kinetic_energy"][:, None],
        **{name: _asked(log, name) for name in asked},
    }


def _asked(log: Log, name: str) -> np.ndarray:
    try:
        return log.aux(name).reshape(log.ticks, -1)
    except KeyError as error:
        near = get_close_matches(name, [channel.name for channel in log.header.aux], n=3)
        raise UsageError(f"{log.path}: no auxiliary channel {name!r}" + (f", did you mean {', '.join(near)}?" if near else "")) from error


def groups(log: Log, asked: Sequence[str]) -> list[tuple[str, str, tuple[str, ...], bool]]:
    """GROUPS and the channels that were asked for, in the same form."""
    more = [c for name in asked for c in log.header.aux if c.name == name]
    return [*GROUPS, *((c.name, c.unit, tuple(scalar_names(c.name, c.count)), False) for c in more)]


def compare_runs(a: Run, b: Run, before_s: float = BEFORE_CONTACT_S, asked: Sequence[str] = ()) -> Comparison:
    """Compares two runs. before_s: how much of the approach counts; asked: auxiliary channels beside. Raises UsageError when they share no
    time or a channel is not in both."""
    logs = a.log, b.log
    contacts, captures = [_moments(log) for log in logs], []
    aligned = all(contact is not None for contact, _ in contacts)
    zero = [contact if aligned and contact is not None else _start(log) for log, (contact, _) in zip(logs, contacts, strict=True)]
    for contact, capture in contacts:
        captures.append(None if capture is None or contact is None else capture - contact)
    time_a, time_b, window = _common_time(a, b, zero, before_s if aligned else None)
    inside, inside_b = ((t >= window[0]) & (t <= window[1]) for t in (time_a, time_b))
    found = []
    of_a, of_b = (quantities(log, asked) for log in logs)
    for group, unit, names, is_wrench in groups(a.log, asked):
        largest = float(np.abs(of_a[group][inside]).max(initial=0.0))
        for i, name in enumerate(names):
            ours = of_a[group][inside, i]
            theirs = np.interp(time_a[inside], time_b, of_b[group][:, i])
            # its own ticks: a peak may lie between those of the first
            peak = float(np.abs(of_b[group][inside_b, i]).max(initial=np.abs(theirs).max()))
            found.append(_difference(group, name, unit, time_a[inside], ours, theirs, is_wrench, peak, largest))
    return Comparison(
        a=a.log.header.run_id,
        b=b.log.header.run_id,
        aligned="first contact" if aligned else "start of run",
        window_s=window,
        first_contact_s=(contacts[0][0], contacts[1][0]),
        capture_s=(captures[0], captures[1]),
        channels=tuple(found),
        signals=_signals(*logs, zero, window),
        variant=_variant(a, b),
        absorbed_j=(_absorbed(a, contacts[0][0]), _absorbed(b, contacts[1][0])),
        moments=_by_moment(a, b),
        cautions=tuple(f"{run.log.header.run_id}: {words}" for run in (a, b)
                     for words in (in_words(run), moment_unresolved(run.document, run.log.header.period_ns * 1e-9)) if words),  # fmt: skip
    )


def _absorbed(run: Run, contact_s: float | None) -> float:
    """Energy of relative motion at the first contact (without one: at the run's start) less that at the end of the run's closed loop, J:
    the other run has no part in it."""
    log = run.log
    ends = (_start(log) if contact_s is None else contact_s, _loop_end(run, log.time_s))
    before, after = np.interp(ends, log.time_s, log.records["kinetic_energy"])
    return float(before - after)


def _by_moment(a: Run, b: Run) -> tuple[tuple[str, float | None, float | None, float | None, float | None], ...]:
    of_a, of_b = ({row["moment"]: row for row in loads_of(run)} for run in (a, b))
    found = []
    for moment in (name for name in MOMENTS if name in of_a or name in of_b):
        (force_a, moment_a), (force_b, moment_b) = (
            (rows[moment]["force_n"], rows[moment]["moment_n_m"]) if moment in rows else (None, None) for rows in (of_a, of_b)
        )
        found.append((moment, force_a, force_b, moment_a, moment_b))
    return tuple(found)


def _signals(a: Log, b: Log, zero: list[float], window: tuple[float, float]) -> tuple[tuple[str, float | None, float | None], ...]:
    """First time on, in the window, of every sensor of the docking unit, in their order."""
    found = []
    for name, mask in BITS["mechanism_signal"].items():
        times = []
        for log, start in zip((a, b), zero, strict=True):
            seen = log.time_s - start
            inside = (seen >= window[0]) & (seen <= window[1])
            on = log.records["signal_discrete"][inside] & mask != 0
            # what was on before has not switched
            times.append(float(seen[inside][np.argmax(on)]) if on.any() and not on[0] else None)
        if times != [None, None]:
            found.append((name, times[0], times[1]))
    return tuple(sorted(found, key=lambda row: min(t for t in row[1:] if t is not None)))


def _variant(a: Run, b: Run) -> tuple[str, ...]:
    from hil_server.judge.loads import differences

    try:
        return tuple(differences(a.configuration, b.configuration))
    except HilError:
        return ()


def _start(log: Log) -> float:
    return float(log.time_s[0]) if log.ticks else 0.0


def _moments(log: Log) -> tuple[float | None, float | None]:
    """First contact and capture, run time, s."""
    if not log.ticks:
        return None, None
    last = log.records[-1]
    contact, capture = float(last["first_contact_time"]), float(last["capture_time"])
    return (contact if contact >= 0.0 else None, capture if capture >= 0.0 else None)


def _common_time(a: Run, b: Run, zero: list[float], before_s: float | None) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    if not a.log.ticks or not b.log.ticks:
        raise UsageError(f"{(b if a.log.ticks else a).log.path}: the log holds no tick")
    time_a, time_b = a.log.time_s - zero[0], b.log.time_s - zero[1]
    start = max(float(time_a[0]), float(time_b[0]), -np.inf if before_s is None else -before_s)
    stop = min(float(time_a[-1]), float(time_b[-1]))
    if before_s is not None:
        stop = min(stop, *(_loop_end(run, times) for run, times in ((a, time_a), (b, time_b))))
    if stop <= start:
        raise UsageError(f"{a.log.path} and {b.log.path} share no time around their alignment")
    return time_a, time_b, (start, stop)


def _loop_end(run: Run, times: np.ndarray) -> float:
    """Last time in the closed loop, or of the log when it was never closed (a recording)."""
    closed = np.flatnonzero(run.moments != STAND)
    return float(times[closed[-1]] if len(closed) else times[-1])


def _difference(group: str, name: str, unit: str, t: np.ndarray, a: np.ndarray, b: np.ndarray, is_wrench: bool, peak_b: float,
                largest: float) -> ChannelDifference:  # fmt: skip
    difference = b - a
    peak_a, peak = float(np.abs(a).max()), float(np.abs(difference).max())
    rms = float(np.sqrt(np.mean(difference**2)))
    return ChannelDifference(
        group=group,
        name=name,
        unit=unit,
        peak_a=peak_a,
        peak_b=peak_b,
        rms_difference=rms,
        peak_difference=peak,
        relative=peak / peak_a if peak_a > 0.0 else None,
        share=peak / largest if largest > 0.0 else None,
        rms_share=rms / largest if largest > 0.0 else None,
        impulse_a=_integral(a, t) if is_wrench else None,
        impulse_b=_integral(b, t) if is_wrench else None,
    )


def _integral(values: np.ndarray, t: np.ndarray) -> float:
    """Trapezoids."""
    return float(0.5 * np.sum((values[1:] + values[:-1]) * np.diff(t)))


# -------------------------------------------------------------------------------------------------------------- tolerances

MEASURES = {"peak": "share", "rms": "rms_share"}


def tolerances(asked: Sequence[str]) -> dict[str, float]:
    """`5%` or `0.05` for all channels, `force=5%`, `Fx=0.1` for a group or a channel; the narrower one counts. Raises UsageError."""
    found = {}
    for one in asked:
        name, _, words = one.rpartition("=")
        try:
            value = 0.01 * float(words[:-1]) if words.endswith("%") else float(words)
        except ValueError:
            value = -1.0
        if not 0.0 <= value < np.inf:
            raise UsageError(f"--tolerance {one}: must be a share as 5% or 0.05, or GROUP=SHARE, CHANNEL=SHARE")
        found[name] = value
    return found


@dataclass(frozen=True)
class Judgement:
    """verdict: "within", "beyond" or "not judged"; beyond: (channel, share of its group, tolerance) of what is not within, worst first."""

    verdict: str
    beyond: tuple[tuple[str, float, float], ...] = ()
    judged: int = 0
    measure: str = "peak"

    def __str__(self) -> str:
        if self.verdict == "not judged":
            return "not judged: no tolerance given"
        if not self.beyond:
            return f"within tolerance: {self.judged} channels ({self.measure} of the difference)"
        listed = ", ".join(f"{name} {100 * share:.2f} % (tolerance {100 * limit:g} %)" for name, share, limit in self.beyond[:4])
        more = f" and {len(self.beyond) - 4} more" if len(self.beyond) > 4 else ""
        return f"beyond tolerance: {listed}{more}"


def judged(result: Comparison, limits: Mapping[str, float], measure: str = "peak") -> Judgement:
    """Whether every channel that has a tolerance is within it. measure: peak or rms of the difference. A group that is zero throughout the
    first run is within when it is zero in the second, too. Raises UsageError for a name that is neither a group nor a channel."""
    known = {c.name for c in result.channels} | {c.group for c in result.channels} | {""}
    for name in limits:
        if name not in known:
            near = get_close_matches(name, known - {""}, n=3)
            raise UsageError(f"--tolerance {name}: no such channel or group" + (f", did you mean {', '.join(near)}?" if near else ""))
    beyond, count = [], 0
    for c in result.channels:
        limit = next((limits[name] for name in (c.name, c.group, "") if name in limits), None)
        if limit is None:
            continue
        count += 1
        share = getattr(c, MEASURES[measure])
        share = (np.inf if c.peak_difference > 0.0 else 0.0) if share is None else share
        if not share <= limit:
            beyond.append((c.name, float(share), limit))
    if not count:
        return Judgement("not judged", measure=measure)
    return Judgement("beyond" if beyond else "within", tuple(sorted(beyond, key=lambda row: row[2] - row[1])), count, measure)


# ------------------------------------------------------------------------------------------------------------------ page


def compare(path_a: str | os.PathLike[str], path_b: str | os.PathLike[str], out: str | os.PathLike[str] | None = None,
            asked: Sequence[str] = (), tolerance: Sequence[str] = (), measure: str = "peak") -> dict[str, Any]:  # fmt: skip
    """Compares two logs; with `out`, also writes a self-contained HTML page there. Returns the figures, with `page` when written; `verdict`
    and `beyond` are of the tolerances (`tolerances`).

    Raises LogError, UsageError.
    """
    limits = tolerances(tolerance)
    a, b = (Run(read_log(path)) for path in (path_a, path_b))
    result = compare_runs(a, b, asked=asked)
    found = judged(result, limits, measure)
    figures = result.to_dict() | {"tolerances": limits, "measure": measure, "verdict": found.verdict, "text": str(found),
                                  "beyond": [list(row) for row in found.beyond]}  # fmt: skip
    if out is not None:
        path = Path(out)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(comparison_page(a.log, b.log, result, asked, found), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from error
        figures["page"] = str(path)
    return figures


def in_percent(share: float | None) -> str:
    """A share as the page writes it, for the screen; empty where there is none."""
    return str(percent(share) or "")


def difference_table(result: Comparison, found: Judgement | None = None) -> str:
    """Every channel with its peaks and differences, as HTML; a channel beyond its tolerance is marked."""
    beyond = {name for name, *_ in found.beyond} if found else set()
    head = ("channel", "unit", f"peak of {result.a}", f"peak of {result.b}", "rms difference", "peak difference", "of its own peak",
            "of its group's", "impulse", "of the other")  # fmt: skip
    rows = [
        (pill("bad", c.name) if c.name in beyond else c.name, c.unit, c.peak_a, c.peak_b, c.rms_difference, c.peak_difference,
         percent(c.relative), percent(c.share), c.impulse_a, c.impulse_b)
        for c in result.channels
    ]  # fmt: skip
    return table_html(head, rows, sortable=True)


def comparison_page(a: Log, b: Log, result: Comparison, asked: Sequence[str] = (), found: Judgement | None = None) -> str:
    """Verdict, table and curves of a comparison as HTML."""
    found = found or Judgement("not judged")
    title = f"{result.a} and {result.b}"
    level = {"within": "good", "beyond": "bad"}.get(found.verdict, "warn")
    marks = [f"synthetic geometry in {log.header.run_id}: {log.header.synthetic}" for log in (a, b) if log.header.synthetic]
    marks += [f"not the same variant: {line}" for line in result.variant]
    marks += list(result.cautions)
    marks += [f"{log.header.run_id} is incomplete: {'; '.join(log.incomplete)}" for log in (a, b) if log.incomplete]
    moments = [
        ("first contact, run time s", *result.first_contact_s),
        ("capture after first contact, s", *result.capture_s),
        ("energy absorbed, J", *result.absorbed_j),
    ]
    loads = [(MOMENTS[moment], *values) for moment, *values in result.moments]
    head = ("largest load", f"force of {result.a}, N", f"of {result.b}", f"moment of {result.a}, N.m", f"of {result.b}")
    switched = table_html(("first switching after alignment, s", result.a, result.b), result.signals) if result.signals else ""
    body = [
        f"<h1>{text(title)}</h1>",
        verdict_html(level, found.verdict.upper(), str(found).partition(": ")[2]),
        f'<p class="note">Aligned at {result.aligned}; common time {result.window_s[0]:.3f}...{result.window_s[1]:.3f} s from there. '
        f"Lines: {text(result.a)}; dashed: {text(result.b)}.</p>",
        *guarded("Loads by moment", lambda: [section("Loads by moment", table_html(head, loads))]),
        *guarded("Differences", lambda: [section("Differences", difference_table(result, found))]),
        *(f'<p class="banner">{text(mark)}.</p>' for mark in marks),
        *guarded("Curves", lambda: [section("Curves", "".join(embedded(one) for one in plots(a, b, result, asked)))]),
        *guarded("Moments", lambda: [section("Moments", table_html(("", result.a, result.b), moments) + switched)]),
    ]
    return document(f"{title}: {found.verdict}", body)


def plots(a: Log, b: Log, result: Comparison, asked: Sequence[str] = ()) -> list[Plot]:
    """Each group of both runs on one time axis: the first as lines, the second dashed."""
    zero = [log_zero if log_zero is not None else _start(log) for log_zero, log in zip(result.first_contact_s, (a, b), strict=True)]
    if result.aligned != "first contact":
        zero = [_start(a), _start(b)]
    of_a, of_b = quantities(a, asked), quantities(b, asked)
    marks = [(0.0, "first contact", "")] if result.aligned == "first contact" else []
    low, high = result.window_s
    chosen = [(log.time_s - start >= low - 1.0) & (log.time_s - start <= high + 1.0) for log, start in zip((a, b), zero, strict=True)]
    times = [(log.time_s - start)[part] for log, start, part in zip((a, b), zero, chosen, strict=True)]
    return [
        Plot(group.capitalize(), unit, times[0], of_a[group][chosen[0]], names, second=of_b[group][chosen[1]], second_time=times[1],
             marks=marks, group="comparison", window=result.window_s)
        for group, unit, names, _ in groups(a, asked)
    ]  # fmt: skip
