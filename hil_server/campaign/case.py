"""One case of a campaign: the line in process, no log, one row of figures. Imported by the workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hil_server.config import TestConfig, test_from_toml
from hil_server.errors import HilError
from hil_server.line import assembly
from hil_server.line.free_run import blocks
from hil_server.log.moments import STAND, WRENCH_NAMES, Peaks
from hil_server.log.reader import read_log
from hil_server.log.record import aux_channels, scalar_names
from hil_server.requirements import Watch
from hil_server.run import branch
from hil_server.run.branch import Resumed
from hil_server.values import Document
from rt_kernels.layout import CODES, FAULTS

END = {number: name for name, number in CODES["end_cause"].items()}
PEAKS = WRENCH_NAMES
SIZES = ("impact_force_n", "impact_moment_n_m", "peak_force_n", "peak_moment_n_m")


class Beginning(NamedTuple):
    """A tick of a logged run that every case continues from. log: its file; time_s: run time; settings: overrides of all cases from there
    on; state: 16 hexadecimal digits over the state of the line there."""

    log: str
    tick: int
    time_s: float
    settings: tuple[str, ...]
    state: str


def run_case(text: str, number: int, keys: Sequence[str], values: Sequence[float], settings: Sequence[str],
             begin: Beginning | None = None) -> Document:  # fmt: skip
    """Runs one case. text: the base test (`TestConfig.as_toml()`); keys, values: columns of the row that say what is varied; settings: the
    same as `--set` would say it; begin: where the case continues from, None: from its start.

    Returns a row: number, conditions, end, captured, times, peak loads per component in the closed loop, largest force and moment
    (SIZES: of the impact, and of the closed loop; `hil_server.log.moments`), largest strokes (analogue), largest magnitude of
    every named channel of the parts (columns such as `peak probe.stroke`), of every requirement its verdict and margin (`verdict NAME`,
    `margin NAME`), faults. An error of the case is its result, not the campaign's."""
    row: Document = {"number": number, **{key: float(v) for key, v in zip(keys, values, strict=True)}}
    try:
        config = test_from_toml(text, settings, label=f"case {number}")
        test = assembly.simulation(config) if begin is None else gone_on(begin, config, settings).test
    except HilError as error:
        return row | _empty() | {"end": "error", "error": str(error)}
    channels = [f"peak {name}" for c in aux_channels(test.aux) for name in scalar_names(c.name, c.count)]
    analog, aux = np.zeros(8), np.zeros(len(channels))
    watch, peaks = Watch(test.requirements), Peaks()
    for records in blocks(test):
        watch.see(records)
        inside = np.flatnonzero(peaks.see(records) != STAND)
        if len(inside):
            part = records[inside[0] : inside[-1] + 1]  # the loop is closed once in a run
            for most, field in ((analog, "signal_analog"), (aux, "aux")):
                np.maximum(most, np.abs(part[field]).max(axis=0), out=most)
    last = test.line.sample[0]
    captured = last["capture_time"] >= 0.0
    first = float(last["first_contact_time"])
    results = watch.results()
    judged: Document = {f"verdict {one.name}": one.verdict for one in results}
    judged |= {f"margin {one.name}": float("nan") if one.margin is None else one.margin for one in results}
    return row | {
        "end": END.get(int(last["end_cause"]), "time") if last["end_cause"] else "time",
        "captured": bool(captured),
        "first_contact_s": first,
        "capture_after_s": float(last["capture_time"]) - first if captured else float("nan"),
        "faults": ",".join(name for name, mask, severity, *_ in FAULTS if int(last["faults"]) & mask and severity != "note"),
        **_loads(peaks),
        **{f"peak_analog{i}": float(v) for i, v in enumerate(analog)},
        **dict(zip(channels, aux.tolist(), strict=True)),
        **judged,
        "error": "",
    }


def _loads(peaks: Peaks) -> dict[str, float]:
    """Magnitudes: components and sizes of the closed loop, sizes of the impact; 0 of what the case did not come to."""
    closed, impact = peaks.closed(), peaks.headline()
    found = {f"peak_{name}": abs(closed["wrench"][name]) if closed else 0.0 for name in PEAKS}
    sizes = [row[key] if row else 0.0 for row in (impact, closed) for key in ("force_n", "moment_n_m")]
    return found | dict(zip(SIZES, sizes, strict=True))


def gone_on(begin: Beginning, config: TestConfig, settings: Sequence[str]) -> Resumed:
    """The line of a case that continues a logged run. config: of the case; settings: what it changes beside the campaign's own
    overrides. Raises as `hil_server.run.branch.changed` does."""
    return branch.changed(_put_back(begin.log, begin.tick), (*begin.settings, *settings), config)


@lru_cache(1)
def _put_back(log: str, tick: int) -> Resumed:
    """The logged run at this tick: once in a worker."""
    return branch.at_tick(read_log(log), tick)


def _empty() -> Document:
    nan = float("nan")
    return {
        "end": "error",
        "captured": False,
        "first_contact_s": nan,
        "capture_after_s": nan,
        "faults": "",
        **{f"peak_{name}": nan for name in PEAKS},
        **dict.fromkeys(SIZES, nan),
        **{f"peak_analog{i}": nan for i in range(8)},
        "error": "",
    }


@dataclass(frozen=True)
class Job:
    """Several cases for one worker: what `run_case` takes, of each."""

    text: str
    numbers: Sequence[int]
    keys: Sequence[str]
    conditions: Sequence[Sequence[float]]
    settings: Sequence[Sequence[str]]
    begin: Beginning | None = None


def run_chunk(job: Job) -> list[Document]:
    """The cases, one after another, in this process."""
    each = zip(job.numbers, job.conditions, job.settings, strict=True)
    return [run_case(job.text, n, job.keys, c, s, job.begin) for n, c, s in each]


def failed_chunk(job: Job, why: str) -> list[Document]:
    """Rows of cases whose workers died again and again."""
    return [
        {"number": n, **{k: float(v) for k, v in zip(job.keys, c, strict=True)}, **_empty(), "error": why}
        for n, c in zip(job.numbers, job.conditions, strict=True)
    ]
