"""The one evaluation of requirements: fed with the records of a run in any pieces, asked for the results at any time.

A run is judged in stretches: the ticks in the requirement's phases (of one contact, where it says so) that follow each other. Of several
stretches the worst counts. With m = min(signal - low, high - signal), the distance from the nearer bound, positive where it is kept:

    no time         min of m over the stretch
    within_s = w    max of m over the first w seconds: it becomes true in time
    for_s = h       max over t of min of m over [t, t + h]: it holds for so long
    both            the same, t within the first w seconds

which is the robustness of "always", "eventually", "eventually always" in signal temporal logic (Donze and Maler 2010). Time is that of the
ticks, in whole nanoseconds: ticks that were skipped or left out of a thinned log leave longer steps. The margin is never made of more
than one stretch, and is the same for any division of the records into pieces.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil_server.requirements.declaration import Requirement, came
from hil_server.requirements.figures import FIGURES, LATE, Gathered
from hil_server.requirements.result import MET, NOT_JUDGED, VIOLATED, Result, finite
from hil_server.requirements.window import pieces, window_min
from rt_kernels.codes import code_name
from rt_kernels.layout import CODES

WORST = -np.inf


@dataclass
class Worst:
    """Where a requirement was nearest to its bound, or farthest beyond. open: it may still become true, so nothing is violated yet."""

    margin: float
    value: float
    time_s: float | None
    phase: str
    open: bool = False
    note: str = ""


class Watch:
    """Requirements against one run. missing: ticks of the run that it was not shown, which the results say."""

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self.requirements = tuple(requirements)
        self._judges = [_judge(one) for one in requirements]
        self._gathered = Gathered()
        self._late = any(one.figure in LATE for one in requirements)
        self._figures = any(one.figure for one in requirements)
        self.missing = 0

    def see(self, records: np.ndarray) -> None:
        """Takes the next records of the run, in order."""
        if not len(records) or not self.requirements:
            return
        if self._figures:
            self._gathered.see(records, self._late)
        for judge in self._judges:
            judge.see(records)

    def results(self, final: bool = True) -> list[Result]:
        """What the records so far say. final: the run is over, nothing that is still open will come."""
        found = []
        for one, judge in zip(self.requirements, self._judges, strict=True):
            worst = _of_figure(one, self._gathered, final) if one.figure else judge.worst(final)
            found.append(_result(one, worst, self.missing))
        return found


def _judge(one: Requirement) -> "Judge":
    if one.figure or one.absent:
        return Judge(one)
    if one.at:
        return Moment(one)
    if one.formula is not None:
        return Formula(one)
    return Nearest(one) if one.within_s is None and one.for_s is None else Held(one)


class Judge:
    """One requirement's state. This one sees nothing: a figure is made of what all figures share."""

    def __init__(self, one: Requirement) -> None:
        self.one = one

    def see(self, records: np.ndarray) -> None:
        """Takes the next records."""

    def worst(self, final: bool) -> Worst | None:
        """Where it stands; None: what it speaks of did not come."""


class Moment(Judge):
    """The signal at one moment of the run."""

    found: Worst | None = None

    def see(self, records: np.ndarray) -> None:
        """Takes the next records; keeps the one in which the event comes first, of `end` the newest."""
        if self.one.at == "end":
            at = len(records) - 1
        elif self.found is None and len(there := np.flatnonzero(came(self.one.at, records))):
            at = int(there[0])
        else:
            return
        here = records[at : at + 1]
        signal, bounds = self.one.signal, self.one.bounds
        assert signal is not None and bounds is not None
        value = signal.values(here)
        self.found = Worst(float(bounds.margins(value)[0]), float(value[0]), *_when(here[0]))

    def worst(self, final: bool) -> Worst | None:
        """What it was at that moment."""
        return self.found


class Stretches(Judge):
    """What is judged in stretches: cuts them out of the records."""

    def __init__(self, one: Requirement) -> None:
        super().__init__(one)
        self._codes = np.array([CODES["phase"][name] for name in one.phases])
        self._inside = False
        self._kept: Worst | None = None  # of the stretches that are over

    def see(self, records: np.ndarray) -> None:
        """Takes the next records."""
        inside = np.isin(records["phase"], self._codes) if len(self._codes) else np.ones(len(records), bool)
        if self.one.per_contact:
            inside &= records["contact"] != 0
        if not self._inside and not inside.any():
            return
        for start, stop, begins in pieces(inside, self._inside):
            if begins:
                self._change(bool(inside[start]))
            if self._inside:
                self.add(records[start:stop])

    def _change(self, inside: bool) -> None:
        """A stretch begins, or ends."""
        if self._inside:
            self._keep(self.standing(closed=True))
        self._inside = inside
        if inside:
            self.begin()

    def _keep(self, worst: Worst | None) -> None:
        self._kept = _worse(self._kept, worst)

    def worst(self, final: bool) -> Worst | None:
        """The worst of the stretches that are over and of the one that is not."""
        return _worse(self._kept, self.standing(closed=final)) if self._inside else self._kept

    def begin(self) -> None:
        """A new stretch."""

    def add(self, records: np.ndarray) -> None:
        """Records of the stretch."""

    def standing(self, closed: bool) -> Worst | None:
        """Of the present stretch. closed: no more records come."""


class Nearest(Stretches):
    """The signal in every tick."""

    _here: Worst | None = None

    def begin(self) -> None:
        """A new stretch."""
        self._here = None

    def add(self, records: np.ndarray) -> None:
        """Records of the stretch."""
        signal, bounds = self.one.signal, self.one.bounds
        assert signal is not None and bounds is not None
        values = signal.values(records)
        margins = bounds.margins(values)
        at = int(margins.argmin())
        if self._here is None or margins[at] < self._here.margin:
            self._here = Worst(float(margins[at]), float(values[at]), *_when(records[at]))

    def standing(self, closed: bool) -> Worst | None:
        """Of the present stretch."""
        return self._here


class Held(Stretches):
    """The signal within a time, for a time. Keeps the ticks whose window [t, t + for_s] is not whole yet."""

    def __init__(self, one: Requirement) -> None:
        super().__init__(one)
        self._within = None if one.within_s is None else round(one.within_s * 1e9)
        self._for = round((one.for_s or 0.0) * 1e9)
        self.begin()

    def begin(self) -> None:
        """A new stretch."""
        self._began: int | None = None
        self._newest = 0
        self._times, self._phases = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self._values, self._margins = np.zeros(0), np.zeros(0)
        self._best: Worst | None = None

    def add(self, records: np.ndarray) -> None:
        """Records of the stretch; judges the windows that are whole with them."""
        signal, bounds = self.one.signal, self.one.bounds
        assert signal is not None and bounds is not None
        values = signal.values(records)
        self._began = int(records["time_ns"][0]) if self._began is None else self._began
        self._newest = int(records["time_ns"][-1])
        self._times = np.concatenate([self._times, records["time_ns"]])
        self._phases = np.concatenate([self._phases, records["phase"]])
        self._values = np.concatenate([self._values, values])
        self._margins = np.concatenate([self._margins, bounds.margins(values)])
        whole = int(np.searchsorted(self._times, self._newest - self._for, side="right"))
        if self._within is not None:
            self._judge(min(whole, int(np.searchsorted(self._times, self._began + self._within, side="right"))))
        else:
            self._judge(whole)
        for name in ("_times", "_phases", "_values", "_margins"):
            setattr(self, name, getattr(self, name)[whole:])

    def _judge(self, count: int) -> None:
        """The windows that begin with the first `count` ticks."""
        if not count:
            return
        first = np.arange(count)
        behind = np.searchsorted(self._times, self._times[:count] + self._for, side="right")
        lowest = window_min(self._margins, first, behind)
        best = int(lowest.argmax())
        if self._best is None or lowest[best] > self._best.margin:
            at = best + int(self._margins[best : behind[best]].argmin())
            phase = code_name("phase", int(self._phases[at]))
            self._best = Worst(float(lowest[best]), float(self._values[at]), float(self._times[at]) * 1e-9, phase)

    def standing(self, closed: bool) -> Worst | None:
        """Of the present stretch: the best window so far."""
        if self._began is None:
            return None
        over = closed or self._within is not None and self._newest - self._began >= self._within + self._for
        best = self._best
        if best is None:
            note = f"lasted {(self._newest - self._began) * 1e-9:.3f} s"
            return Worst(WORST, np.nan, self._newest * 1e-9, "", open=not over, note=note)
        return Worst(best.margin, best.value, best.time_s, best.phase, open=best.margin < 0.0 and not over)


class Formula(Stretches):
    """A formula of signal temporal logic from the beginning of the stretch. Keeps the signals of the whole stretch."""

    SHARE = 0.1  # of the time at most that a live watch spends on it

    def __init__(self, one: Requirement) -> None:
        super().__init__(one)
        assert one.formula is not None
        self._formula = one.formula
        self._next_look = 0.0
        self.begin()

    def begin(self) -> None:
        """A new stretch."""
        self._times: list[np.ndarray] = []
        self._signals: list[np.ndarray] = []
        self._phase = ""
        self._last: Worst | None = None
        self._next_look = 0.0

    def add(self, records: np.ndarray) -> None:
        """Records of the stretch."""
        self._phase = self._phase or code_name("phase", int(records["phase"][0]))
        self._times.append(records["time_ns"].copy())
        self._signals.append(self._formula.signals(records))

    def standing(self, closed: bool) -> Worst | None:
        """Of the present stretch; while it lasts, as often as the time that it takes allows."""
        began = time.monotonic()
        if not self._times:
            return None
        if not closed and self._last is not None and began < self._next_look:
            return self._last
        times, signals = np.concatenate(self._times), np.hstack(self._signals)
        self._times, self._signals = [times], [signals]
        low, high = self._formula.robustness(times, signals, closed)
        unsure = low < 0.0 <= high
        margin = low if low >= 0.0 or closed else high if high < 0.0 else self._formula.robustness(times, signals, True)[0]
        self._last = Worst(margin, margin, float(times[0]) * 1e-9, self._phase, open=unsure)
        self._next_look = time.monotonic() + (time.monotonic() - began) / self.SHARE
        return self._last


def _worse(a: Worst | None, b: Worst | None) -> Worst | None:
    """The one with the smaller margin, of equals the first; what is violated for good before what is open."""
    if a is None or b is None:
        return b if a is None else a
    return b if (b.margin >= 0.0 or b.open, b.margin) < (a.margin >= 0.0 or a.open, a.margin) else a


def _when(record: np.void) -> tuple[float, str]:
    """Run time and phase of one record."""
    return float(record["time_ns"]) * 1e-9, code_name("phase", int(record["phase"]))


def _of_figure(one: Requirement, gathered: Gathered, final: bool) -> Worst | None:
    """A figure of the run; of several contacts the worst. An event that has to come and did not is violated when the run is over."""
    figure, bounds = FIGURES[one.figure], one.bounds
    assert bounds is not None
    found = figure.of(gathered) if gathered.records else []
    if not found:
        return Worst(WORST, np.nan, None, "", open=not final, note=figure.event) if figure.event and gathered.records else None
    factor = one.figure_factor
    worst = None
    for value, time_s in found:
        si = value * factor
        worst = _worse(worst, Worst(float(bounds.margins(np.array(si))), si, time_s, ""))
    return worst


def _result(one: Requirement, worst: Worst | None, missing: int) -> Result:
    """The result with its words."""
    about = {"name": one.name, "source": one.source}
    factor, unit = (one.bounds.unit.factor, one.bounds.unit.text) if one.bounds is not None else (1.0, "")
    if one.bounds is None:
        low, high = 0.0, np.inf
    else:
        low, high = one.bounds.limits
    if one.absent:
        words = f"{one.what}: the docking unit's channel {one.absent!r} is not recorded on this stand, where the unit is not computed"
        return Result(verdict=NOT_JUDGED, value=None, limit=None, margin=None, unit="", time_s=None, phase="", words=words, **about)
    if worst is None:
        where = f"at {one.at.replace('_', ' ')}" if one.at else "in contact" if one.per_contact else "in " + ", ".join(one.phases)
        limit = finite(low) if not np.isfinite(high) else finite(high)
        return Result(verdict=NOT_JUDGED, value=None, limit=limit, margin=None, unit=_shown(unit), time_s=None, phase="",
                      words=f"{one.what}: no tick {where}" if one.at or one.phases or one.per_contact else f"{one.what}: not measured",
                      **about)  # fmt: skip
    value, margin = worst.value / factor, worst.margin / factor
    verdict = MET if worst.margin >= 0.0 else NOT_JUDGED if worst.open else VIOLATED
    nearer = low if not np.isfinite(high) or np.isfinite(low) and value - low < high - value else high
    sentence = _words(one, verdict, value, (low, high), margin, _shown(unit), worst)
    if missing:
        sentence += f"; {missing} ticks were not seen"
    return Result(verdict=verdict, value=finite(value), limit=finite(nearer), margin=finite(margin), unit=_shown(unit),
                  time_s=worst.time_s, phase=worst.phase, words=sentence, **about)  # fmt: skip


def _shown(unit: str) -> str:
    """The unit in words: a number without one has none."""
    return "" if unit in ("-", "1") else unit


def _words(one: Requirement, verdict: str, value: float, limits: tuple[float, float], margin: float, unit: str, worst: Worst) -> str:
    """A sentence: what was reached, when, against what, and how far off."""
    of = f" {unit}" if unit else ""
    low, high = limits
    bound = " and ".join([f"at least {low:g}"] * bool(np.isfinite(low)) + [f"at most {high:g}"] * bool(np.isfinite(high))) + of
    times = (f" within {one.within_s:g} s" if one.within_s is not None else "") + (f" for {one.for_s:g} s" if one.for_s is not None else "")
    if one.formula is not None:
        state = {MET: "holds", VIOLATED: "does not hold", NOT_JUDGED: "is open"}[verdict]
        return f"{one.what} {state}: robustness {margin:.4g}"
    if not np.isfinite(value):
        why = worst.note or "is no number"
        return f"{one.what}: {why}; required {bound}{times}" + ("" if verdict == VIOLATED else ", still open")
    when = "" if worst.time_s is None else f" at {worst.time_s:.3f} s" + (f" ({worst.phase})" if worst.phase else "")
    state = f"margin {margin:.4g}{of}" if margin >= 0.0 else f"off by {-margin:.4g}{of}" + (", still open" if verdict == NOT_JUDGED else "")
    return f"{one.what} {value:.4g}{of}{when}, required {bound}{times}: {state}"
