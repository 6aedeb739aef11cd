"""A recording of another stand or of a flight against runs: named columns of several sensors, each with its own clock, rate and gaps.

    [recorded]
    name = "docking of 12 March"
    tau_s = 0.02                     # width over which angular rates are differentiated
    known_thrust = true              # the ship pressed as the run did: the run's control_A is taken off the reconstructed load

    [[stream]]
    file = "accelerometers.csv"      # columns of numbers, one of them time (hil_server.exchange.foreign_logs)
    sigma = 0.002                    # noise of a value, rms, in the unit of the channel
    position_m = [0.4, 0.0, 0.0]     # of an accelerometer from the craft's centre of mass, body axes
    [stream.columns]
    ax = "active.acceleration[0]"    # channel of the run, or  { channel = "...", factor = 9.80665, offset = 0.0 }

A channel is any scalar of a log (`F_T[0]`, `probe.stroke`, `signal_discrete` as a whole), or of the crafts `active.` and `target.`:
`acceleration[i]` (m/s2, of the stream's position, free fall taken off, body axes) and `rate[i]` (rad/s, body axes).

Alignment: streams of one `recorder` (without it: of one file) have one clock. It is set against the run at the first contact: roughly by
the largest sum of the correlations of its columns over all shifts, then where the columns begin to change as those of the run do. For this
only the first moments of the contact count (BEFORE_S, AFTER_S) and no amplitude: a model whose clutch or mass is wrong goes another way
later on, and that is no error of a clock. What each column is off by at the events, and over the whole, is left and stands in `Match.left`.
A run without a contact is aligned by the correlations alone. Nothing is filled in, a gap takes no part.

Which of several runs it was, the share of the columns' variation that the run explains says (`Match.explained`, 1 at best, negative where
the run is further off than a constant): an amplitude that is wrong costs there, in a correlation it does not.

Contact load (rigid crafts, masses known): with w the rates, a the acceleration at r,

    a_c = a - w' x r - w x (w x r)           F = m a_c,  M_c = I w' + w x I w          (Newton, Euler)

at each instant one linear system for a_c and w', solved by least squares over all accelerometers and rates of a craft with their noise; its
covariance goes along. The load is that of all contacts together, at the centre of mass.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from hil_server.config import files
from hil_server.config.checks import Table, line, missing, must_be, unknown_key
from hil_server.errors import ConfigurationError, UsageError
from hil_server.exchange.foreign_logs import Stream, read_csv
from hil_server.judge.channels import CRAFTS, channel
from hil_server.judge.run import Run
from hil_server.log.moments import STAND
from hil_server.log.reader import Log
from rt_kernels.layout import CODES
from rt_kernels.parameters import Parameter

GRID_S = 1e-3
GAP_PERIODS = 3.5  # a pause of so many typical steps is a gap
LEAST_OVERLAP = 0.5  # of the shorter of stream and run must take part
BEFORE_S, AFTER_S = 0.25, 0.08  # of the first contact: what sets a clock
STANDS_OUT, LONGEST_S = 60.0, 1.0  # of a channel's noise: what its change must come to, and within what time
MOST_WEIGHT = 100.0  # of a channel's change over its noise
SOUGHT_S = 0.4  # how far from the correlations' offset
LEAST_EXPLAINED = 0.5  # a run that explains less of a recording is not the one
HEAD = Table(
    (
        Parameter("name", "str", "-", "short name, shown in reports"),
        Parameter("tau_s", "float", "s", "width over which angular rates are differentiated", default=0.02, low=1e-3, high=1.0),
        Parameter("known_thrust", "bool", "-", "the run's own thrust is taken off the reconstructed load", default=True),
    )
)
STREAM = Table(
    (
        Parameter("file", "str", "-", "CSV file, beside the recording's"),
        Parameter("sigma", "float", "-", "noise of a value, rms, in the unit of the channel", default=0.0, low=0.0),
        Parameter("recorder", "str", "-", "what has the clock of its time stamps: streams of one recorder have one (else each its own)",
                  default=""),
        Parameter("position_m", "floats", "m", "of an accelerometer, from the centre of mass, body axes", default=(0.0,) * 3, shape=3),
        Parameter("columns", "table", "-", "column of the file: channel of the run"),
    )
)


@dataclass(frozen=True)
class Sensor:
    """One file's columns. time_s: (n,); values: channel → (n,), in the units of the run."""

    name: str
    time_s: np.ndarray
    values: dict[str, np.ndarray]
    sigma: float
    position_m: np.ndarray
    recorder: str = ""

    @property
    def clock(self) -> str:
        """What has its clock: the recorder, or the file by itself."""
        return self.recorder or self.name


@dataclass(frozen=True)
class Recording:
    """Sensors with clocks of their own."""

    name: str
    sensors: tuple[Sensor, ...]
    tau_s: float = 0.02
    known_thrust: bool = True


@dataclass(frozen=True)
class Match:
    """A recording against the run `run` (its folder, or its file). offset_s: of each sensor's clock, to be taken off its time stamps to
    get run time, s, the same for all of a recorder; correlation, rms, explained (share of the variation): of each channel, by `sensor:
    channel`, around the closed loop; phases: rms difference of each channel by phase of the run; mean, score: of the correlations, of
    what is explained; left: by how much each channel is still later than the run at an event, or as a whole, s; at: what the clocks were
    set at."""

    run: str
    offset_s: dict[str, float]
    correlation: dict[str, float]
    rms: dict[str, float]
    phases: dict[str, dict[str, float]] = field(default_factory=dict)
    explained: dict[str, float] = field(default_factory=dict)
    left: dict[str, dict[str, float]] = field(default_factory=dict)
    at: str = "first contact"

    @property
    def score(self) -> float:
        """Mean share of the channels' variation that the run explains."""
        return float(np.mean(list(self.explained.values())))

    @property
    def matches(self) -> bool:
        """Whether the recording may be of this run at all."""
        return self.score >= LEAST_EXPLAINED

    @property
    def mean(self) -> float:
        """Mean correlation of all channels."""
        return float(np.mean(list(self.correlation.values())))


# --------------------------------------------------------------------------------------------------------------------- files


def load(path: str | Path) -> Recording:
    """Reads a recording's file and the files it names. Raises ConfigurationError with all faults of it."""
    file = Path(path)
    try:
        document = files.parse_toml(files.read_text(file))
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None
    faults = [unknown_key(str(file), k, v, k, ("recorded", "stream")) for k, v in document.items() if k not in ("recorded", "stream")]
    head, rows = document.get("recorded"), document.get("stream")
    faults += HEAD.faults(head, str(file), "recorded")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ConfigurationError([*faults, missing(str(file), "stream", "tables", "at least one [[stream]]")])
    for i, row in enumerate(rows):
        faults += STREAM.faults(row, str(file), f"stream[{i}]")
    if faults:
        raise ConfigurationError(faults)
    assert isinstance(head, dict)
    sensors = tuple(_sensor(STREAM.with_defaults(row), f"stream[{i}]", file) for i, row in enumerate(rows))
    head = HEAD.with_defaults(head)
    return Recording(head["name"], sensors, head["tau_s"], head["known_thrust"])


def _sensor(row: dict[str, Any], path: str, file: Path) -> Sensor:
    stream = read_csv(file.parent / row["file"], row["file"])
    if stream.time_s is None:
        raise ConfigurationError(f"{file.parent / row['file']}: no column with time stamps")
    values = {}
    for column, given in row["columns"].items():
        told = {"channel": given} if isinstance(given, str) else given
        if not isinstance(told, dict) or not isinstance(told.get("channel"), str) or set(told) - {"channel", "factor", "offset"}:
            raise ConfigurationError(must_be(str(file), f"{path}.columns.{column}", "a channel, or { channel, factor, offset }", given))
        one: Stream = stream
        values[told["channel"]] = one.stack([column.lower()])[:, 0] * float(told.get("factor", 1.0)) + float(told.get("offset", 0.0))
    if not values:
        raise ConfigurationError(line(str(file), f"{path}.columns", "no column", {}, limit="at least one", unit="-"))
    return Sensor(row["file"], stream.time_s, values, row["sigma"], np.asarray(row["position_m"], float), row["recorder"])


# --------------------------------------------------------------------------------------------------------------------- alignment


def match(recording: Recording, run: Run) -> Match:
    """The recording's clocks set against a run, and how well its channels go with those of the run.

    Raises UsageError when a recorder and the run have no shift at which they overlap enough."""
    log = run.log
    ours = {s.name: {name: channel(run, name, s.position_m) for name in s.values} for s in recording.sensors}
    contact = float(log.records["first_contact_time"][-1]) if log.ticks else -1.0
    at_contact = log.ticks > 0 and log.time_s[0] < contact < log.time_s[-1]
    offset: dict[str, float] = {}
    for clock in dict.fromkeys(s.clock for s in recording.sensors):
        sensors = [s for s in recording.sensors if s.clock == clock]
        shift = _shift(sensors, log.time_s, ours)
        if at_contact:
            shift += _late(sensors, log.time_s, ours, shift, contact, AFTER_S) or 0.0
        offset |= {s.name: shift for s in sensors}
    found = Match(run_name(log), offset, {}, {}, {}, at="first contact" if at_contact else "correlation")
    for sensor in recording.sensors:
        for name in sensor.values:
            _held_against(found, sensor, name, run, ours[sensor.name][name], contact if at_contact else None)
    return found


def _held_against(found: Match, sensor: Sensor, name: str, run: Run, ours: np.ndarray, contact: float | None) -> None:
    """Adds the figures of one channel to a match."""
    log = run.log
    begin, end = log.time_s[0], log.time_s[-1]
    closed = np.flatnonzero(run.moments != STAND)
    if contact is not None and len(closed):
        begin, end = max(begin, contact - 1.0), min(end, float(log.time_s[closed[-1]]))
    seen = sensor.time_s - found.offset_s[sensor.name]
    inside = (seen >= begin) & (seen <= end)
    at, recorded = seen[inside], sensor.values[name][inside]
    expected = np.interp(at, log.time_s, ours)
    label = f"{sensor.name}: {name}"
    error = float(np.mean((recorded - expected) ** 2)) if len(at) else math.nan
    # what noise alone would make of a channel that does not move is not to be explained
    varied = max(float(np.var(recorded)) if len(at) else 0.0, 4.0 * sensor.sigma**2, 1e-300)
    found.correlation[label] = _correlation(recorded, expected)
    found.rms[label] = math.sqrt(error)
    found.explained[label] = 1.0 - error / varied if len(at) else -1.0
    phase = log.records["phase"][np.clip(np.searchsorted(log.time_s, at), 0, log.ticks - 1)]
    found.phases[label] = {
        word: float(np.sqrt(np.mean((recorded[phase == number] - expected[phase == number]) ** 2)))
        for word, number in CODES["phase"].items() if np.any(phase == number)
    }  # fmt: skip
    capture = float(log.records["capture_time"][-1])
    events = [("first contact", -1.0 if contact is None else contact, AFTER_S), ("capture", capture, BEFORE_S)]
    events = [(event, when, after) for event, when, after in events if begin < when < end]
    one, ours_alone = [replace(sensor, values={name: sensor.values[name]})], {sensor.name: {name: ours}}
    events.append(("whole", begin + BEFORE_S + SOUGHT_S, end - begin - 2.0 * (BEFORE_S + SOUGHT_S)))
    lags = {event: _late(one, log.time_s, ours_alone, found.offset_s[sensor.name], when, after) for event, when, after in events}
    found.left[label] = {event: lag for event, lag in lags.items() if lag is not None}


def _late(sensors: Sequence[Sensor], time: np.ndarray, ours: dict[str, dict[str, np.ndarray]], shift: float, when: float,
          after: float) -> float | None:  # fmt: skip
    """By how much more than `shift` the sensors' stamps are late around the instant `when` of the run, s: where their columns, each with
    a mean and an amplitude of its own, go best with those of the run from before it to `after` behind it. None where nothing changes
    there."""
    reach = round(SOUGHT_S / GRID_S)
    missed, weight = np.zeros(2 * reach + 1), 0.0
    for sensor in sensors:
        pace = float(np.median(np.diff(sensor.time_s)))
        before, least, t = max(BEFORE_S, 10.0 * pace), max(after, 5.0 * pace), sensor.time_s - shift
        for name, values in sensor.values.items():
            # no longer than it takes to stand out of the noise: what comes later is of the model
            behind = _stands_out(time, ours[sensor.name][name], when, STANDS_OUT * sensor.sigma, least)
            grid = np.arange(-round(before / GRID_S), round(behind / GRID_S) + 1) * GRID_S + when
            wide = np.concatenate([grid[0] - GRID_S * np.arange(reach, 0, -1), grid, grid[-1] + GRID_S * np.arange(1, reach + 1)])
            own = np.interp(grid, time, ours[sensor.name][name])
            if t[0] > wide[0] or t[-1] < wide[-1] or np.ptp(own) <= 6.0 * sensor.sigma or np.ptp(own) == 0.0:
                continue
            share = min(float(np.ptp(own)) / max(sensor.sigma, 1e-12), MOST_WEIGHT) * (least / behind) ** 2
            missed, weight = missed + share * _unexplained(np.interp(wide, t, values), own), weight + share
    if not weight:
        return None
    best = int(missed.argmin())
    part = 0.0
    if 0 < best < len(missed) - 1:
        a, b, c = missed[best - 1 : best + 2]
        bend = a - 2.0 * b + c
        part = 0.5 * (a - c) / bend if bend > 0.0 else 0.0
    return float((best - reach + part) * GRID_S)


def _stands_out(time: np.ndarray, y: np.ndarray, when: float, size: float, least: float) -> float:
    """How long after `when` y has gone this far from where it was, s, at least `least`; `least` if it does not within LONGEST_S."""
    first, last = np.searchsorted(time, (when, when + LONGEST_S))
    far = np.flatnonzero(np.abs(y[first:last] - y[max(first - 1, 0)]) > size)
    return max(least, float(time[first + far[0]]) - when) if len(far) else least


def _unexplained(x: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Share of the variation of each window of x (m,) as long as own (n,) that a constant and a multiple of `own` do not explain,
    (m - n + 1,); a negative multiple explains none."""
    own, x = own - own.mean(), x - x.mean()
    sums, squares = (np.concatenate([[0.0], np.cumsum(values)]) for values in (x, x * x))
    n = len(own)
    total = squares[n:] - squares[:-n] - (sums[n:] - sums[:-n]) ** 2 / n
    along = np.maximum(np.correlate(x, own, "valid"), 0.0)
    found: np.ndarray = np.where(total > 1e-12 * max(squares[-1], 1e-300), 1.0 - along**2 / np.maximum(total * (own @ own), 1e-300), 1.0)
    return found


def run_name(log: Log) -> str:
    """The logs of runs are all called run: their folders tell them apart."""
    path = Path(log.path)
    return path.parent.name if path.stem == "run" and path.parent.name else path.stem


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    if len(a) < 2 or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def gridded(time: np.ndarray, values: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Values on a grid of `step` from the first record on, and which points are no gap: (m,) each, zero in a gap."""
    grid = time[0] + step * np.arange(int((time[-1] - time[0]) / step) + 1)
    after = np.clip(np.searchsorted(time, grid), 1, len(time) - 1)
    fine = time[after] - time[after - 1] <= GAP_PERIODS * max(float(np.median(np.diff(time))), step)
    return np.where(fine, np.interp(grid, time, values), 0.0), fine.astype(float)


def _shift(sensors: Sequence[Sensor], time: np.ndarray, ours: dict[str, dict[str, np.ndarray]]) -> float:
    """What must be taken off the time stamps of the sensors, which have one clock, s: roughly, by the correlations of all their columns."""
    curves = []
    for sensor in sensors:
        total: np.ndarray | None = None
        zero = 0
        for name, values in sensor.values.items():
            x, mx = gridded(sensor.time_s, values, GRID_S)
            y, my = gridded(time, ours[sensor.name][name], GRID_S)
            found, zero = correlations(x, mx, y, my)
            # a channel that does not move, in recording or run, has no say
            total = found if total is None else total + found
        assert total is not None
        # the record's first point lies at (k - zero) steps after the run's first
        curves.append((sensor.time_s[0] - time[0] - (np.arange(len(total)) - zero) * GRID_S, total))
    shifts, total = curves[0]
    for others, found in curves[1:]:
        total = total + np.interp(shifts[::-1], others[::-1], found[::-1], left=np.nan, right=np.nan)[::-1]
    if not np.any(np.isfinite(total)):
        raise UsageError(f"{', '.join(s.name for s in sensors)}: at no shift does half of it overlap the run")
    best = int(np.nanargmax(total))
    a, b, c = (total[i] if 0 <= i < len(total) else math.nan for i in (best - 1, best, best + 1))
    bend = a - 2 * b + c
    part = 0.5 * (a - c) / bend if np.isfinite(bend) and bend < 0.0 else 0.0
    return float(shifts[best] - part * GRID_S)


def correlations(x: np.ndarray, mx: np.ndarray, y: np.ndarray, my: np.ndarray) -> tuple[np.ndarray, int]:
    """Correlation coefficient of x (n,) shifted along y (m,) at all shifts, (n + m - 1,), nan where too little overlaps, and the index of
    shift 0. mx, my: 1 where a point counts. All sums over the common points by Fourier transforms."""
    n = 1 << int(np.ceil(np.log2(len(x) + len(y))))

    def slide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        full = np.fft.irfft(np.fft.rfft(b, n) * np.conj(np.fft.rfft(a, n)), n)
        found: np.ndarray = np.concatenate([full[n - len(x) + 1 :], full[: len(y)]])
        return found

    x, y = (x - x[mx > 0].mean()) * mx, (y - y[my > 0].mean()) * my
    count = np.round(slide(mx, my))
    enough = count >= LEAST_OVERLAP * min(mx.sum(), my.sum())
    c = np.maximum(count, 1.0)
    sx, sy = slide(x, my), slide(mx, y)
    vx, vy = slide(x * x, my) - sx * sx / c, slide(mx, y * y) - sy * sy / c
    least = 1e-9 * max(float((x * x).sum()), 1e-300), 1e-9 * max(float((y * y).sum()), 1e-300)
    varied = (vx > least[0]) & (vy > least[1])
    r = np.where(varied, (slide(x, y) - sx * sy / c) / np.sqrt(np.where(varied, vx * vy, 1.0)), 0.0)
    return np.where(enough, r, np.nan), len(x) - 1


def best_run(recording: Recording, runs: Sequence[Run]) -> list[Match]:
    """The recording against each run, the one that explains most of it first; by whether any does, `Match.matches`."""
    return sorted((match(recording, run) for run in runs), key=lambda m: -m.score)


# ------------------------------------------------------------------------------------------------------------------ contact load


@dataclass(frozen=True)
class Load:
    """Reconstructed contact load on a craft, at its centre of mass, body axes. time_s: (n,) run time; wrench: (n, 6), N, N.m; covariance:
    (6, 6), of one instant."""

    time_s: np.ndarray
    wrench: np.ndarray
    covariance: np.ndarray

    def impulse(self, begin_s: float, end_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Integral of the force (3,) from begin to end, N.s, and its standard deviation (3,), neighbouring instants independent."""
        inside = (self.time_s >= begin_s) & (self.time_s <= end_s)
        t = self.time_s[inside]
        found = np.trapezoid(self.wrench[inside, :3], t, axis=0)
        step = float(np.median(np.diff(t)))
        return found, np.sqrt(np.diag(self.covariance)[:3] * len(t)) * step


def contact_load(recording: Recording, run: Run, craft: str = "active", found: Match | None = None) -> Load:
    """The load on a craft from its accelerometers and rate sensors, its masses those of the run. Raises UsageError without three
    accelerations and three rates of it."""
    from hil_server.config import model

    log, found = run.log, found or match(recording, run)
    vehicle = model.vehicle(run.configuration.document[CRAFTS[craft][2]])
    inertia = np.asarray(vehicle.inertia_kg_m2, float).reshape(3, 3)
    step = GRID_S
    grid = np.arange(log.time_s[0], log.time_s[-1], step)
    accelerations: list[tuple[int, np.ndarray, float, np.ndarray]] = []
    rates: list[tuple[int, np.ndarray, float, np.ndarray]] = []
    for sensor in recording.sensors:
        for name, values in sensor.values.items():
            base, _, index = name.removeprefix(f"{craft}.").partition("[")
            if name.startswith(f"{craft}.") and base in ("acceleration", "rate"):
                on = np.interp(grid, sensor.time_s - found.offset_s[sensor.name], values)
                each = max(sensor.sigma, 1e-12) * math.sqrt(max(1.0, float(np.median(np.diff(sensor.time_s))) / step))
                (accelerations if base == "acceleration" else rates).append((int(index.rstrip("]")), on, each, sensor.position_m))
    axes = [{a[0] for a in kind} for kind in (accelerations, rates)]
    if axes != [{0, 1, 2}] * 2:
        raise UsageError(f"{recording.name}: the load on the {craft} craft needs three accelerations and three rates of it")
    width = 2 * max(1, round(recording.tau_s / step / 2)) + 3
    w, wd, sigma_w = np.zeros((len(grid), 3)), np.zeros((len(grid), 3)), np.zeros(3)
    for i in range(3):
        of = [r for r in rates if r[0] == i]
        weight = np.array([1.0 / r[2] ** 2 for r in of])
        mean = np.tensordot(weight, [r[1] for r in of], 1) / weight.sum()
        w[:, i] = savgol_filter(mean, width, 2)
        wd[:, i] = savgol_filter(mean, width, 2, deriv=1, delta=step)
        # derivative of a parabola through 2 k + 1 points: variance 3 s^2 / (k (k+1) (2k+1) dt^2)
        k = (width - 1) // 2
        sigma_w[i] = math.sqrt(3.0 / (k * (k + 1) * (2 * k + 1)) / weight.sum()) / step
    # unknowns a_c, w': rows of accelerometers  a_i - (w x (w x r))_i = a_c,i + (w' x r)_i, and of the differentiated rates
    rows, right, sigma = [], [], []
    for i, values, noise, r in accelerations:
        row = np.zeros(6)
        row[i] = 1.0
        row[3:] = np.cross(r, np.eye(3)[i])  # e_i . (w' x r) = w' . (r x e_i)
        rows.append(row)
        right.append(values - np.cross(w, np.cross(w, r))[:, i])
        sigma.append(noise)
    for i in range(3):
        rows.append(np.eye(6)[3 + i])
        right.append(wd[:, i])
        sigma.append(sigma_w[i])
    A, b, s = np.array(rows), np.array(right), np.array(sigma)
    normal = np.linalg.inv((A / s[:, None] ** 2).T @ A)
    x = (normal @ (A / s[:, None] ** 2).T @ b).T
    force = vehicle.mass_kg * x[:, :3]
    moment = x[:, 3:] @ inertia.T + np.cross(w, w @ inertia.T)
    G = np.zeros((6, 6))
    G[:3, :3], G[3:, 3:] = vehicle.mass_kg * np.eye(3), inertia
    if recording.known_thrust and craft == "active":
        own = log.records["control_A"]
        force = force - np.column_stack([np.interp(grid, log.time_s, own[:, i]) for i in range(3)])
        moment = moment - np.column_stack([np.interp(grid, log.time_s, own[:, 3 + i]) for i in range(3)])
    return Load(grid, np.hstack([force, moment]), G @ normal @ G.T)


class Impulse(TypedDict):
    """Impulse of the closed loop on a craft, its axes, N.s: reconstructed, its standard deviation, and of the run's wrench."""

    impulse_n_s: list[float]
    sigma_n_s: list[float]
    run_n_s: list[float]


def reconstructed(recording: Recording, run: Run, found: Match) -> dict[str, Impulse]:
    """Impulse of the closed loop on each craft that has the sensors for it, and that which the run's wrench gave, N.s, craft axes; empty
    without a contact."""
    log, r = run.log, run.log.records
    closed = np.flatnonzero(np.isin(r["phase"], [CODES["phase"][name] for name in ("contact", "latched")]))
    out: dict[str, Impulse] = {}
    if not len(closed):
        return out
    begin, end = float(log.time_s[closed[0]]), float(log.time_s[closed[-1]])
    for craft in CRAFTS:
        try:
            load = contact_load(recording, run, craft, found)
        except UsageError:
            continue
        value, sigma = load.impulse(begin, end)
        force = -r["F_T"][:, :3] if craft == "active" else r["F_T"][:, :3]
        own = Rotation.from_quat(r[CRAFTS[craft][0]][:, 3:]).inv().apply(Rotation.from_quat(_port_N(run)).apply(force))
        out[craft] = {"impulse_n_s": value.tolist(), "sigma_n_s": sigma.tolist(),
                      "run_n_s": np.trapezoid(own[closed], log.time_s[closed], axis=0).tolist()}  # fmt: skip
    return out


def _port_N(run: Run) -> np.ndarray:
    """Attitude of the target's docking port in N, (ticks, 4)."""
    port = run.configuration.setup.vehicles.target.X_port
    found: np.ndarray = (Rotation.from_quat(run.log.records["X_NV"][:, 3:]) * Rotation.from_quat(np.asarray(port)[3:])).as_quat()
    return found


def write_page(recording: Recording, run: Run, ranked: Sequence[Match], loads: Mapping[str, Impulse], path: Path) -> Path:
    """One HTML page: correlation table, every channel of recording and best run on one time axis, impulses. Raises UsageError."""
    from hil_server.pages import figures
    from hil_server.pages.html import document, table_html, text

    best = ranked[0]
    names = list(best.correlation)
    ranking = [(m.run, f"{m.score:.4f}", f"{m.mean:.4f}", *(f"{m.correlation[n]:.4f}" for n in names)) for m in ranked]
    table = table_html(("run", "explained", "mean correlation", *names), ranking)
    drawn, axes = figures.figure(len(names))
    at = 0
    for sensor in recording.sensors:
        seen = sensor.time_s - best.offset_s[sensor.name]
        for name, values in sensor.values.items():
            one, at = axes[at], at + 1
            ours = channel(run, name, sensor.position_m)
            one.plot(seen, values, ".", markersize=1.5, alpha=0.5, color=figures.COLOURS[1], label=recording.name)
            one.plot(run.log.time_s, ours, linewidth=0.9, color=figures.COLOURS[0], label=best.run)
            one.set_ylabel(name, fontsize=8)
            one.grid(True, linewidth=0.4, alpha=0.6)
    axes[0].legend(fontsize=8)
    axes[-1].set_xlabel("run time, s", fontsize=9)
    rows = [(n, best.rms[n], "; ".join(f"{p} {v:.3g}" for p, v in best.phases[n].items()),
             "; ".join(f"{event} {1e3 * lag:+.1f}" for event, lag in best.left[n].items())) for n in names]  # fmt: skip
    goes = f"It matches best {text(best.run)}" if best.matches else f"It matches none of them; the best of them is {text(best.run)}"
    impulses = [(craft, *(f"{v:+.2f} ± {s:.2f}" for v, s in zip(one["impulse_n_s"], one["sigma_n_s"], strict=True)),
                 ", ".join(f"{v:+.2f}" for v in one["run_n_s"])) for craft, one in loads.items()]  # fmt: skip
    body = [
        f"<h1>{text(recording.name)} against {len(ranked)} run{'s' if len(ranked) > 1 else ''}</h1>",
        f"<p>{goes}, which explains {100 * best.score:.0f} % of its variation. Clocks, set at the {text(best.at)}, taken off: "
        + ", ".join(f"{text(s)} {v:+.4f} s" for s, v in best.offset_s.items()) + ".</p>",
        "<h2>Correlation</h2>", table,
        f"<h2>Recording and {text(best.run)}</h2>",
        figures.embedded(drawn, f"Sensors of {recording.name} over those of {best.run}"),
        table_html(("channel", "rms difference", "by phase", "still later than the run, ms"), rows),
        *(["<h2>Impulse of the closed loop</h2><p>Out of accelerations, rates and known masses, N·s in the craft's axes, with one standard "
           "deviation; last column: of the run's wrench.</p>", table_html(("craft", "x", "y", "z", "run"), impulses)] if impulses else []),
    ]  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document(recording.name, body), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    return path
