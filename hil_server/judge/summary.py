"""The figures of a run, from its log: why it ended, what it cost in time, the loads, the contacts.

`Summary.as_json` has the keys that scripts rely on (`--json` of `run` and `simulate`).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NotRequired, TypedDict

import numpy as np

from hil_server.bus.commands import TIME_IS_UP
from hil_server.errors import DeviceError, VerdictError, attempt
from hil_server.host.late_causes import summed_up
from hil_server.judge.alignment import Alignment, alignment_of
from hil_server.judge.arm_margin import ArmMargin, arm_margin
from hil_server.judge.contacts import Contact
from hil_server.judge.crafts import Crafts, crafts_of
from hil_server.judge.faults import STOP, Cause, Fault, cause_of
from hil_server.judge.interventions import Intervention, Marks, done_to_the_run
from hil_server.judge.peaks import MomentLoads, Worth, loads_of, worth
from hil_server.judge.rebound import not_measured
from hil_server.judge.run import Run
from hil_server.judge.unit_ledger import UnitLedger, unit_ledger
from hil_server.log.moments import HEADLINE, WRENCH_NAMES
from hil_server.log.reader import Log
from hil_server.log.recoveries import Recovery, recovered, recoveries_of
from hil_server.requirements import Result, violated
from rt_kernels.codes import code_name
from rt_kernels.layout import CODES, RUNS

# what of a setpoint may be clipped
CLIPS = {name: mask for name, mask in RUNS["setpoint_status"].items() if name != "blocked"}

PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
END_EXIT = {"tripped": 3, "record_lost": 3, "not_aligned": 1}  # exit code of a run by its end, 0 of every other


class Requirement(TypedDict):
    """A requirement against the run (`hil_server.requirements.Result`). marks: what lies in its window and speaks against its figures."""

    name: str
    verdict: str
    value: float | None
    limit: float | None
    margin: float | None
    unit: str
    time_s: float | None
    phase: str
    source: str
    words: str
    marks: NotRequired[list[str]]


NO_TIME = dict.fromkeys([*PERCENTILES, "max"], 0.0)
NO_WRENCH: dict[str, float | None] = dict.fromkeys(WRENCH_NAMES)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times of the loop: p50, p99, p999, p9999, max of each in µs; margin_us: its min; bus_deviation_us: its amount, None where the grid
    does not follow the clock of a bus; late_causes: where the late ticks lost their time; late_named: why, of a live run
    (`hil_server.host.late_causes.summed_up`)."""

    lateness_us: dict[str, float] = field(default_factory=NO_TIME.copy)
    compute_us: dict[str, float] = field(default_factory=NO_TIME.copy)
    read_us: dict[str, float] = field(default_factory=NO_TIME.copy)
    write_us: dict[str, float] = field(default_factory=NO_TIME.copy)
    bus_deviation_us: dict[str, float] | None = None
    margin_us: dict[str, float] = field(default_factory=lambda: {"min": 0.0})
    late_causes: dict[str, int] = field(default_factory=dict)
    late_named: list[dict[str, Any]] = field(default_factory=list)
    realtime_mode: int = 0


@dataclass(frozen=True, kw_only=True)
class Loads:
    """Largest loads by moment of the docking (peaks), of its closed loop (peak_wrench, docking_*) and of its impact; None where the run did
    not come to it. peak_worth, moment_worth: of the impact."""

    peaks: list[MomentLoads] = field(default_factory=list)
    peak_wrench: dict[str, float | None] = field(default_factory=NO_WRENCH.copy)
    peak_wrench_time_s: dict[str, float | None] = field(default_factory=NO_WRENCH.copy)
    docking_force_n: float | None = None
    docking_moment_n_m: float | None = None
    impact_force_n: float | None = None
    impact_moment_n_m: float | None = None
    peak_worth: Worth | None = None
    moment_worth: Worth | None = None


@dataclass(frozen=True, kw_only=True)
class Legs:
    """How near the legs came to their limits."""

    stroke_margin_min_m: float = 0.0
    following_error_max_m: float = 0.0
    clipped_ticks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLIPS, 0))


@dataclass(frozen=True, kw_only=True)
class Summary(Timing, Loads, Legs):
    """A run in figures. Facts that the server left at the end of the log (end, exit_code, captured) take precedence.

    ticks: of the log; thinned: 1, or n of a log that holds one tick in n; overflow: samples lost in the ring. faults: names, first cause
    first, and fault_details; notes_raised, note_details: what was noted and is no fault; cause: None without a fault.
    contacts_without_e: a line for each reason. crafts: peaks of joints, sensors, interfaces by name, None where the dynamics part has
    none; arm: None without a manipulator; unit_ledger: None where the log has no energies of the unit.
    delay_in_run: term → mean of the run, s. requirements: one that is violated is exit code 1. limits: of
    `hil_server.config.narrowing.signature`: whose the stand's limits are, which of them the test had stricter; None of an old log.
    not_available: figures that could not be had: figure, reason. Each of peaks, contacts and requirements has `marks`: injected faults and
    missed periods in its window, in words. not_confirmed: what the drives did not confirm when their power was taken off, exit code 4.
    record_lost: why the record ended before the run, as the server knows it; no key of the JSON.
    """

    run: str
    mode: str
    log: str
    complete: bool
    incomplete: list[str]
    end: str
    exit_code: int
    captured: bool
    done_to_the_run: list[Intervention]
    alignment: Alignment | None
    capture_time_s: float | None
    first_contact_time_s: float | None
    duration_s: float
    ticks: int
    missed: int
    overflow: int
    thinned: int
    faults: list[str]
    fault_details: list[Fault]
    notes_raised: list[str]
    note_details: list[Fault]
    cause: Cause | None
    trip_tick: int
    recoveries: list[Recovery]
    recovered: bool
    contacts: list[Contact]
    crafts: Crafts | None
    unit_ledger: UnitLedger | None
    arm: ArmMargin | None
    loop_delay_s: float
    delay_ledger: dict[str, float]
    delay_origins: dict[str, str]
    delay_in_run: dict[str, float]
    prediction: dict[str, Any]
    requirements: list[Requirement]
    synthetic: str
    limits: dict[str, Any] | None
    not_available: list[dict[str, str]]
    contacts_without_e: list[str]
    not_confirmed: list[str]
    record_lost: str = ""

    def as_json(self) -> dict[str, Any]:
        """As JSON values, by key; what it shares with Timing, Loads and Legs comes last."""
        own_first = sorted(fields(self), key=lambda one: one.name not in Summary.__annotations__)
        found = {one.name: getattr(self, one.name) for one in own_first if one.name != "record_lost"}
        if self.bus_deviation_us is None:
            del found["bus_deviation_us"]
        return found | {"unit_ledger": self.unit_ledger and asdict(self.unit_ledger)}


def summarise(run: Run) -> Summary:
    """The figures of a run; one that cannot be had is named in `not_available`, and costs no other."""
    log = run.log
    r = log.records
    missing: list[dict[str, str]] = []
    raised = attempt("faults", lambda: run.faults, [], missing)
    faults, notes = [f for f in raised if f["severity"] != "note"], [f for f in raised if f["severity"] == "note"]
    done = attempt("what was done to the run", lambda: done_to_the_run(run), [], missing)
    ended = code_name("end_cause", int(r["end_cause"][-1])) if log.ticks else "none"
    if ended == "none":
        ended = "tripped" if any(f["name"] in STOP for f in faults) else "stopped"
    cut = ended == "stopped" and _cut(r)
    ended = "time" if cut else ended
    capture = _positive(r["capture_time"])
    alignment = attempt("alignment of the units", lambda: alignment_of(run), None, missing)
    timing = attempt("time of the loop", lambda: _timing(run), Timing(), missing)
    loads = attempt("loads by moment", lambda: _loads(run), Loads(), missing)
    legs = attempt("limits of the legs", lambda: _legs(run), Legs(), missing)
    cause = attempt("cause", lambda: cause_of(log, faults, run.document), None, missing)
    recoveries = attempt("recoveries", lambda: recoveries_of(r), [], missing)
    contacts = attempt("contacts", lambda: run.contacts, [], missing)
    crafts = attempt("loads within the crafts", lambda: crafts_of(run), None, missing)
    ledger = attempt("ledger of the unit's energy", lambda: unit_ledger(run), None, missing)
    arm = attempt("margin of the arm", lambda: arm_margin(run), None, missing)
    delay_in_run = attempt("delay in the run", lambda: _delay_in_run(run), {}, missing)
    rows = attempt("requirements", lambda: [_row(one) for one in run.requirements], [], missing)
    limits = attempt("limits", lambda: _limits(run), None, missing)
    marked = attempt("marks of the figures", lambda: _marked(run, done, loads.peaks, contacts, rows), (loads.peaks, contacts, rows),
                     missing)  # fmt: skip
    exit_code = VerdictError.exit_code if cut else END_EXIT.get(ended, 0)
    if not exit_code and violated(rows):
        exit_code = VerdictError.exit_code
    not_confirmed = list(log.end.get("not_confirmed", ()))
    if not_confirmed and exit_code in (0, VerdictError.exit_code):
        exit_code = DeviceError.exit_code
    return Summary(
        run=log.header.run_id,
        mode=log.header.mode,
        log=str(log.path),
        complete=log.complete,
        incomplete=log.incomplete,
        end=str(log.end.get("end", ended)),
        exit_code=int(log.end.get("exit_code", exit_code)),
        captured=bool(log.end.get("captured", capture is not None)),
        done_to_the_run=done,
        alignment=alignment,
        capture_time_s=capture,
        first_contact_time_s=_positive(r["first_contact_time"]),
        duration_s=float(log.time_s[-1] - log.time_s[0]) if log.ticks else 0.0,
        ticks=log.ticks,
        missed=int(r["missed_total"][-1]) if log.ticks else 0,
        overflow=max(int(r["overflow_total"][-1]) if log.ticks else 0, int(log.end.get("overflow", 0))),
        **vars(timing),
        **(vars(loads) | {"peaks": marked[0]}),
        **vars(legs),
        thinned=run.thinning,
        faults=[fault["name"] for fault in faults],
        fault_details=faults,
        notes_raised=[note["name"] for note in notes],
        note_details=notes,
        cause=cause,
        trip_tick=int(r["trip_tick"][-1]) if log.ticks else -1,
        recoveries=recoveries,
        recovered=recovered(r),
        contacts=marked[1],
        crafts=crafts,
        unit_ledger=ledger,
        arm=arm,
        loop_delay_s=float(r["loop_delay"][-1]) if log.ticks else 0.0,
        delay_ledger=log.header.delay_ledger,
        delay_origins=log.header.delay_origins,
        delay_in_run=delay_in_run,
        prediction=log.header.prediction,
        requirements=marked[2],
        synthetic=log.header.synthetic,
        limits=limits,
        not_available=missing,
        contacts_without_e=not_measured(contacts),
        not_confirmed=not_confirmed,
    )


def _row(one: Result) -> Requirement:
    return {"name": one.name, "verdict": one.verdict, "value": one.value, "limit": one.limit, "margin": one.margin, "unit": one.unit,
            "time_s": one.time_s, "phase": one.phase, "source": one.source, "words": one.words}  # fmt: skip


def microseconds(nanoseconds: np.ndarray) -> dict[str, float]:
    """p50, p99, p999, p9999 and max of times, in µs; zeros for an empty run."""
    if not len(nanoseconds):
        return NO_TIME
    us = nanoseconds * 1e-3
    return {**{name: float(np.percentile(us, p)) for name, p in PERCENTILES.items()}, "max": float(us.max())}


def _limits(run: Run) -> dict[str, Any] | None:
    record = run.document.get("stand", {}).get("safety_record")
    return record if isinstance(record, dict) and "state" in record else None


def _cut(r: np.ndarray) -> bool:
    """Whether the end of its time stopped a live run in the middle: the command `park` that the loop gives itself then
    (`rt_kernels.command_latch`) met a phase of motion, and nothing had ended the test before."""
    given = np.flatnonzero((r["command_code"] == CODES["command"]["park"]) & (r["command_arg"][:, 0] == TIME_IS_UP))
    if not len(given):
        return False
    before = r[max(0, int(given[0]) - 1)]
    at_rest = (CODES["phase"]["idle"], CODES["phase"]["ended"])
    return int(before["phase"]) not in at_rest and int(before["end_cause"]) == CODES["end_cause"]["none"]


def _positive(times: np.ndarray) -> float | None:
    return float(times[-1]) if len(times) and times[-1] >= 0.0 else None


def _delay_in_run(run: Run) -> dict[str, float]:
    """What the run itself shows of the ledger: mean age of the force record at the tick, and mean lateness of the ticks, which no ledger
    can know before the run. Means, s: jitter about them does not enter the restitution to first order."""
    log = run.log
    if not log.ticks or log.header.mode != "live":
        return {}
    return {name: 1e-9 * float(log.records[field].mean()) for name, field in (("sensor age", "wrench_age_ns"), ("lateness", "lateness_ns"))}


def _timing(run: Run) -> Timing:
    log, r = run.log, run.log.records
    later = r[1:]  # the first record has no tick before it whose times it could carry
    busy = later["read_ns"] + later["compute_ns"] + later["write_ns"]
    margin = log.header.period_ns - r["lateness_ns"][:-1] - busy
    return Timing(
        lateness_us=microseconds(r["lateness_ns"]),
        compute_us=microseconds(later["compute_ns"]),
        read_us=microseconds(later["read_ns"]),
        write_us=microseconds(later["write_ns"]),
        bus_deviation_us=microseconds(np.abs(log.aux("bus_deviation_ns"))) if "bus_deviation_ns" in log.aux_names else None,
        margin_us={"min": float(margin.min()) * 1e-3 if len(margin) else 0.0},
        late_causes={name: int(np.count_nonzero(r["late_cause"] == code)) for name, code in CODES["late_cause"].items() if code},
        late_named=summed_up(log.end.get("late", []), log.end.get("late_more")),
        realtime_mode=int(r["realtime_mode"][-1]) if log.ticks else 0,
    )


def _loads(run: Run) -> Loads:
    """Loads by moment of the docking (`hil_server.log.moments`)."""
    rows, closed = loads_of(run), run.peaks.closed()
    if closed is None:
        return Loads(peaks=rows)
    impact = next((row for row in rows if row["moment"] == HEADLINE), None)
    return Loads(
        peaks=rows,
        peak_wrench=closed["wrench"],
        peak_wrench_time_s=closed["wrench_time_s"],
        docking_force_n=closed["force_n"],
        docking_moment_n_m=closed["moment_n_m"],
        impact_force_n=impact and impact["force_n"],
        impact_moment_n_m=impact and impact["moment_n_m"],
        peak_worth=impact and worth(run, impact),
        moment_worth=impact and worth(run, impact, "moment"),
    )


def _marked(run: Run, done: Sequence[Intervention], peaks: list[MomentLoads], contacts: list[Contact],
            rows: list[Requirement]) -> tuple[list[MomentLoads], list[Contact], list[Requirement]]:  # fmt: skip
    """The same with `marks`: what lies in the window of each and speaks against its figures."""
    if not run.log.ticks:
        return peaks, contacts, rows
    marks = Marks(run.log, done)
    return (
        [{**one, "marks": marks.of(one["from_s"], one["to_s"])} for one in peaks],
        [{**one, "marks": marks.of(one["begin_s"], one["begin_s"] + one["duration_s"])} for one in contacts],
        [{**one, "marks": [] if one["verdict"] == "not judged" else marks.of(*_window(run.log, one))} for one in rows],
    )


def _window(log: Log, one: Requirement) -> tuple[float, float]:
    """From when to when a requirement looks: the phases that it names, else the whole run."""
    phases = [CODES["phase"][word] for word in one["phase"].replace(",", " ").split() if word in CODES["phase"]]
    inside = np.flatnonzero(np.isin(log.records["phase"], phases))
    first, last = (inside[0], inside[-1]) if len(inside) else (0, -1)
    return float(log.time_s[first]), float(log.time_s[last])


def _legs(run: Run) -> Legs:
    r = run.log.records
    if not run.log.ticks:
        return Legs()
    return Legs(
        stroke_margin_min_m=float(r["stroke_margin"].min()),
        following_error_max_m=float(np.abs(r["following_error"]).max()),
        clipped_ticks={name: int(np.count_nonzero(r["setpoint_status"] & mask)) for name, mask in CLIPS.items()},
    )
