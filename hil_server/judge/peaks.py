"""What a peak of the contact wrench is worth, force and moment each: how long it lasts, what it carries, and what a filter leaves of it.

    above half   time and impulse of the stretch around the peak in which the size stays above its half
    mean         largest mean of the size over MEAN_S within the moment of the docking

A peak of a few ticks between two hard parts is a chatter: a step of time, a device or a microsecond more in the loop moves it, its impulse
and its mean stay. The loads of each moment themselves are of `hil_server.log.moments`.
"""

from typing import Literal, NotRequired, TypedDict, cast

import numpy as np

from hil_server.config.model import moment_unresolved
from hil_server.judge.record_time import REMEDY
from hil_server.judge.run import Run
from hil_server.log.moments import MOMENTS

MEAN_S = 0.010
LASTS = 0.8  # of the peak: a mean that reaches this is of a peak that lasts
# of which components, unit in words, unit in keys
OF = {"force": (slice(0, 3), "N", "n"), "moment": (slice(3, 6), "N.m", "n_m")}


class MomentLoads(TypedDict):
    """Largest loads of one moment of the docking (`hil_server.log.moments.Peaks.rows`). marks: what lies in its window and speaks
    against its figures."""

    moment: str
    from_s: float
    to_s: float
    force_n: float
    force_time_s: float
    moment_n_m: float
    moment_time_s: float
    wrench: dict[str, float]
    wrench_time_s: dict[str, float]
    marks: NotRequired[list[str]]


class Worth(TypedDict):
    """What a peak is worth: above_half_s, impulse_n_s, mean_n (over mean_s; of a moment impulse_n_m_s and mean_n_m), lasts (the mean is
    near the peak), resolved (the tick is short enough for the docking unit, as its file says: `moment_step_max_s`), text (one line)."""

    mean_s: float
    above_half_s: float | None
    impulse_n_s: NotRequired[float | None]
    mean_n: NotRequired[float | None]
    impulse_n_m_s: NotRequired[float | None]
    mean_n_m: NotRequired[float | None]
    lasts: bool | None
    resolved: bool
    text: str


def loads_of(run: Run) -> list[MomentLoads]:
    """Of the moments that the run came to, in their order."""
    return cast(list[MomentLoads], run.peaks.rows())


def worth(run: Run, row: MomentLoads, of: Literal["force", "moment"] = "force") -> Worth:
    """Of the largest force (or moment: of) of a moment of the docking. A thinned log that leaves out ticks there has None, and says so."""
    components, unit, key = OF[of]
    log, t = run.log, run.log.time_s
    blunt = moment_unresolved(run.document, log.header.period_ns * 1e-9) if of == "moment" else ""
    resolved, blunt = not blunt, blunt and f"; {blunt}"
    none = {"mean_s": MEAN_S, **dict.fromkeys(("above_half_s", f"impulse_{key}_s", f"mean_{key}", "lasts")), "resolved": resolved}
    rows = np.flatnonzero(run.moments == list(MOMENTS).index(row["moment"]))
    if (row["force_n"] if of == "force" else row["moment_n_m"]) <= 0.0 or not len(rows):
        return cast(Worth, none | {"text": f"no {of}"})
    size = np.linalg.norm(log.records["F_T"][:, components], axis=1)
    at = int(rows[size[rows].argmax()])
    low = high = at
    while low > rows[0] and size[low - 1] >= 0.5 * size[at]:
        low -= 1
    while high < rows[-1] and size[high + 1] >= 0.5 * size[at]:
        high += 1
    what = f"{size[at]:.0f} {unit}{_kind(log.records[at], float(t[at]), of)}"
    begin, end = np.searchsorted(t, (t[at] - MEAN_S, t[at] + MEAN_S))
    if run.left_out[max(0, min(low, begin) - 1) : max(high, end)].any():
        peak = f"{what}: how long it lasts is not available: the log is thinned, {REMEDY}"
        return cast(Worth, none | {"text": peak + blunt})
    step = log.header.period_ns * 1e-9
    lasted = float(t[high] - t[low]) + step
    impulse = float(np.sum(size[low : high + 1])) * step if high == low else float(np.trapezoid(size[low : high + 1], t[low : high + 1]))
    mean = _largest_mean(t[rows], size[rows])
    lasts = mean >= LASTS * size[at]
    word = "it lasts" if lasts else "a short peak: compare runs by the mean, steps of time and delays move the peak itself"
    half = f"above its half for {1e3 * lasted:.3g} ms ({impulse:.3g} {unit}.s)"
    sentence = f"{what}, {half}, mean over {1e3 * MEAN_S:g} ms {mean:.0f} {unit}: {word}{blunt}"
    found = {"above_half_s": lasted, f"impulse_{key}_s": impulse, f"mean_{key}": mean, "lasts": bool(lasts), "text": sentence}
    return cast(Worth, none | found)


def _kind(record: np.void, time_s: float, of: str) -> str:
    """In brackets, what is no push before the capture: a pull (most of the force is along -x of T, out of the units), how long after."""
    words = []
    if of == "force" and record["F_T"][0] < -0.5 * np.linalg.norm(record["F_T"][:3]):
        words.append("a pull")
    if (since := time_s - float(record["capture_time"])) > 0.0 and record["capture_time"] >= 0.0:
        words.append(f"{since:.3g} s after the capture")
    return f" ({', '.join(words)})" if words else ""


def _largest_mean(t: np.ndarray, size: np.ndarray) -> float:
    """Over MEAN_S; of a shorter stretch the mean over MEAN_S with nothing around it."""
    total = np.concatenate([[0.0], np.cumsum(0.5 * (size[1:] + size[:-1]) * np.diff(t))])
    before = np.interp(t - MEAN_S, t, total, left=0.0)
    return float((total - before).max()) / MEAN_S
