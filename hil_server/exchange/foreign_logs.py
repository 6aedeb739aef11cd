"""Recordings of other programs: CSV or MCAP streams with their own, irregular clocks, brought onto one grid by a stated rule.

Rule: on the grid a value is interpolated linearly between the two records around it. Where these are further apart than `gap_s` the
grid point is marked as a gap and stays not-a-number; before the first and after the last record as well. Nothing is filled in silently:
`Resampled.report()` says per stream how many points, which rate, which offset, how many gaps. Time stamps in us, ms, ns or s are
distinguished apart by the column's name (t_us, t_ms, t_ns, t_s) or, for a bare `t` or `time`, by the size of the steps.
"""

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hil_server.config import TestConfig, files
from hil_server.config.files import Done, no_progress, whole
from hil_server.errors import ConfigurationError

if TYPE_CHECKING:
    from hil_server.line.assembly import Assembly

TIME_NAMES = {"t_s": 1.0, "time_s": 1.0, "t_ms": 1e-3, "t_us": 1e-6, "t_ns": 1e-9, "t": None, "time": None, "timestamp": None}
STAMP_MAX = 1e19  # ns since 1970 and still centuries to go
GRID_MAX = 4_000_000  # points: more than an hour of a run
GRID_PER_RECORD = 1000  # points between two records of the slowest stream worth taking, beside GRID_LEAST
GRID_LEAST = 100_000
WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")
WRENCH_NAMES = {w: w for w in WRENCH} | {"mx": "tx", "my": "ty", "mz": "tz"}


@dataclass(frozen=True)
class Stream:
    """One recorded stream. time_s: (n,), or None for a list without a clock; columns: name → (n,)."""

    name: str
    time_s: np.ndarray | None
    columns: dict[str, np.ndarray]
    backwards: int = 0

    def stack(self, names: Sequence[str]) -> np.ndarray:
        """(n, len(names)). Raises ConfigurationError for a column that is not there."""
        missing = [n for n in names if n not in self.columns]
        if missing:
            raise ConfigurationError(f"{self.name}: no column {', '.join(missing)}; there are: {', '.join(self.columns)}")
        return np.column_stack([self.columns[n] for n in names])


@dataclass(frozen=True)
class Resampled:
    """A stream on the grid. values: (n, k), NaN in gaps; gap: (n,) bool."""

    name: str
    values: np.ndarray
    gap: np.ndarray
    facts: dict[str, Any]


def read_csv(path: str | Path, name: str | None = None) -> Stream:
    """A CSV file with one line of column names. Raises ConfigurationError with the line of a value that is not a number."""
    file = Path(path)
    try:
        rows = list(csv.reader(StringIO(files.read_text(file), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(rows) < 2:
        raise ConfigurationError(f"{file}: needs a line of column names and at least one record")
    names = [cell.strip().lower() for cell in rows[0]]
    values = np.empty((len(rows) - 1, len(names)))
    for i, row in enumerate(rows[1:]):
        if len(row) != len(names):
            raise ConfigurationError(f"{file}: line {i + 2} has {len(row)} values, the header {len(names)}")
        for j, cell in enumerate(row):
            try:
                values[i, j] = float(cell)
                if not np.isfinite(values[i, j]):
                    raise ValueError
            except ValueError:
                raise ConfigurationError(f"{file}: line {i + 2}, column {names[j]}: {cell!r:.40} is not a number") from None
    # integer time stamps in us are beyond what a double keeps when they count from 1970: subtract first
    columns = {n: values[:, j] for j, n in enumerate(names)}
    clock = next((n for n in TIME_NAMES if n in columns), None)
    if clock is None:
        return Stream(name or file.stem, None, columns)
    at = names.index(clock)
    wrong = np.flatnonzero(~(np.abs(values[:, at]) < STAMP_MAX))
    if len(wrong):
        limit = f"a number of less than {STAMP_MAX:g}"
        raise ConfigurationError(f"{file}: line {wrong[0] + 2}, column {clock}: {rows[wrong[0] + 1][at]!r:.40}, limit {limit}")
    ticks = np.array([_exact(row[at]) for row in rows[1:]], dtype=object)
    return _with_clock(name or file.stem, clock, ticks, {k: v for k, v in columns.items() if k != clock})


def _exact(cell: str) -> float:
    return int(cell) if cell.strip().lstrip("+-").isdecimal() else float(cell)


def _with_clock(name: str, clock: str, ticks: np.ndarray, columns: dict[str, np.ndarray]) -> Stream:
    """Sorted by time; records that repeat a time stamp are dropped, and counted with those that came out of order."""
    steps = np.array([float(b - a) for a, b in zip(ticks, ticks[1:], strict=False)])
    unit = TIME_NAMES[clock]
    if unit is None:
        typical = float(np.median(np.abs(steps))) if len(steps) else 1.0
        unit = 1.0 if typical < 1.0 else 1e-3 if typical < 50.0 else 1e-6 if typical < 5e4 else 1e-9
    time = np.array([float(t) * unit if isinstance(t, float) else t * unit for t in ticks])
    # kept to the last digit relative to the first stamp; the absolute start goes along as its own number
    first = ticks[0]
    relative = np.array([float(t - first) * unit for t in ticks])
    order = np.argsort(relative, kind="stable")
    keep = order[np.concatenate([[True], np.diff(relative[order]) > 0])]
    unusable = len(ticks) - len(keep) + int((steps < 0).sum())
    return Stream(name, float(time[0]) + relative[keep], {k: v[keep] for k, v in columns.items()}, unusable)


def read_mcap(path: str | Path, topic: str) -> Stream:
    """One topic of an MCAP file whose messages are JSON, or ROS 2 `geometry_msgs/WrenchStamped` (CDR); time is the log time.

    Raises ConfigurationError for a file or topic that cannot be read."""
    import json
    import struct

    from lz4.frame import get_frame_info
    from mcap.exceptions import McapError
    from mcap.records import Channel, Chunk, Message, Schema
    from mcap.stream_reader import StreamReader, breakup_chunk
    from zstandard import ZstdError

    from hil_server.log.format import MAX_CHUNK
    from hil_server.log.reader import chunk_fault

    def fault_of(chunk: Chunk) -> str:
        if chunk.compression != "lz4":
            return chunk_fault(chunk)
        inside = get_frame_info(chunk.data)["content_size"]  # 0 where the frame does not say
        honest = chunk.uncompressed_size <= MAX_CHUNK and inside in (0, chunk.uncompressed_size)
        return "" if honest else f"{inside} bytes inside, its header states {chunk.uncompressed_size}, limit {MAX_CHUNK}"

    def records(handle: Any) -> Iterator[Any]:
        for record in StreamReader(handle, emit_chunks=True).records:
            if not isinstance(record, Chunk):
                yield record
            elif fault := fault_of(record):
                raise ValueError(f"a chunk is damaged: {fault}")
            else:
                yield from breakup_chunk(record)

    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    times: list[int] = []
    rows: list[dict[str, float]] = []
    topics = set()
    try:
        files.check_file(path)
        # in memory: a length that the file claims cannot ask for more than the file has
        for record in records(BytesIO(Path(path).read_bytes())):
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                channels[record.id] = record
                topics.add(record.topic)
            if not isinstance(record, Message) or channels[record.channel_id].topic != topic:
                continue
            message, channel = record, channels[record.channel_id]
            schema = schemas.get(channel.schema_id)
            times.append(message.log_time)
            if channel.message_encoding == "json":
                rows.append({k: float(v) for k, v in _flat(json.loads(message.data)).items() if isinstance(v, int | float)})
            elif channel.message_encoding == "cdr" and schema is not None and schema.name.endswith("WrenchStamped"):
                # header (stamp, frame id with its length), then six doubles on an eight-byte border behind the four of the encoding
                length = struct.unpack_from("<I", message.data, 12)[0]
                at = 4 + -(-(12 + length) // 8) * 8
                rows.append(dict(zip(WRENCH, struct.unpack_from("<6d", message.data, at), strict=True)))
            else:
                kind = f"{channel.message_encoding}/{schema.name if schema else '-'}"
                raise ConfigurationError(f"{path}: topic {topic} is {kind}: only json and geometry_msgs/WrenchStamped are known")
    except (OSError, McapError, ValueError, struct.error, KeyError, OverflowError, RecursionError, RuntimeError, ZstdError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not rows:
        own = f"; a log of hil-server needs no import: hil-server replay {path}" if "sample" in topics else ""
        raise ConfigurationError(f"{path}: no topic {topic}; there are: {', '.join(sorted(topics)) or 'none'} (--topic NAME){own}")
    names = sorted(set.intersection(*(set(r) for r in rows)))
    return _with_clock(topic, "t_ns", np.array(times, dtype=object), {n: np.array([r[n] for r in rows]) for n in names})


def _flat(tree: object, path: str = "") -> dict[str, object]:
    if not isinstance(tree, dict):
        return {path: tree}
    return {k: v for key, inner in tree.items() for k, v in _flat(inner, f"{path}.{key}" if path else str(key).lower()).items()}


def resample(stream: Stream, names: Sequence[str], grid_s: np.ndarray, gap_s: float, offset_s: float = 0.0) -> Resampled:
    """`names` of the stream at the times grid_s (n,), by the rule above. offset_s is taken off the stream's time stamps."""
    if stream.time_s is None:
        raise ConfigurationError(f"{stream.name}: no column with time stamps ({', '.join(TIME_NAMES)})")
    time, values = stream.time_s - offset_s, stream.stack(names)
    after = np.searchsorted(time, grid_s, side="left")
    inside = (after > 0) & (after < len(time)) | np.isin(grid_s, time)
    left, right = np.clip(after - 1, 0, len(time) - 1), np.clip(after, 0, len(time) - 1)
    gap = ~inside | ((time[right] - time[left] > gap_s) & (time[right] != grid_s))
    out = np.column_stack([np.interp(grid_s, time, column) for column in values.T])
    out[gap] = np.nan
    steps = np.diff(time)
    facts = {
        "records": len(time),
        "rate_hz": float(1.0 / np.median(steps)) if len(steps) else 0.0,
        "step_s": [float(steps.min()), float(steps.max())] if len(steps) else [],
        "begins_s": float(time[0] - grid_s[0]),
        "offset_taken_off_s": offset_s,
        "out_of_order": stream.backwards,
        "gap_points": int(gap.sum()),
        "gaps": int(np.sum(np.diff(np.concatenate([[0], gap.astype(int)])) == 1)),
        "rule": f"linear between neighbours, gap beyond {gap_s} s",
    }
    return Resampled(stream.name, out, gap, facts)


def at_rate(stream: Stream, rate_hz: float) -> Stream:
    """A list without a clock as a stream of `rate_hz` records a second. Raises ConfigurationError when it has a clock, or for a rate that
    is none."""
    if stream.time_s is not None:
        raise ConfigurationError(f"--rate-hz {rate_hz:g}: {stream.name} has time stamps of its own")
    if not 0.1 <= rate_hz <= 1e6:
        raise ConfigurationError(f"--rate-hz {rate_hz:g}: must be within 0.1...1e6 records a second")
    count = len(next(iter(stream.columns.values())))
    return Stream(stream.name, np.arange(count) / rate_hz, stream.columns)


def common_grid(streams: Sequence[Stream], period_s: float) -> np.ndarray:
    """Times from the first instant at which all streams run to the last one, (n,). Raises ConfigurationError for a stream without a
    clock."""
    for stream in streams:
        if stream.time_s is None:
            raise ConfigurationError(f"{stream.name}: no column with time stamps ({', '.join(TIME_NAMES)}): give --rate-hz")
    clocks = [s.time_s for s in streams if s.time_s is not None]
    begin, end = max(c[0] for c in clocks), min(c[-1] for c in clocks)
    if end <= begin:
        raise ConfigurationError(f"the streams {', '.join(s.name for s in streams)} do not overlap in time")
    most = min(GRID_MAX, GRID_LEAST + GRID_PER_RECORD * max(len(c) for c in clocks))
    if (end - begin) / period_s > most:
        raise ConfigurationError(f"the streams last {end - begin:.6g} s, limit {most} points {period_s:g} s apart")
    found: np.ndarray = begin + period_s * np.arange(int((end - begin) / period_s + 1e-9) + 1)
    return found


def report(resampled: Mapping[str, Resampled] | Sequence[Resampled]) -> list[str]:
    """One line per stream: what was done to it."""
    items = list(resampled.values()) if isinstance(resampled, Mapping) else list(resampled)
    return [
        f"{r.name}: {r.facts['records']} records, {r.facts['rate_hz']:.0f} Hz, begins {r.facts['begins_s'] * 1e3:+.2f} ms, "
        f"{r.facts['rule']}: {r.facts['gap_points']} of {len(r.gap)} points in {r.facts['gaps']} gaps"
        for r in items
    ]


# -------------------------------------------------------------------------------------------------------- as a run's log


IDEAL = "the stand is taken as ideal, for none moved: the measured legs are the setpoints wanted of them, without lag or limits of a drive"
STARTS = "the loop is closed throughout: the model starts at the nominal first contact with the test's initial conditions"
ENERGY = "the energy of contacts is not judged: the recorded wrench belongs to another motion than the model's"
NOTHING_CARRIED = (
    "no weight is subtracted: the cell is taken to have carried nothing "
    "(--set stand.mounting.carried_mass_kg=..., carried_com_m=[...], gravity_m_s2=[...] for what it carried, at a fixed attitude)"
)
CARRIED = "stand.mounting.carried_mass_kg"


def as_recording(config: TestConfig) -> tuple[TestConfig, list[str]]:
    """The configuration under which a foreign wrench goes through the line of a test, and what was changed, in words: guidance that closes
    the loop for the whole recording, drives without lag or limits, no judgement of contact energy, and nothing on the load cell unless
    the user says what it carried."""
    from hil_server import registry
    from hil_server.config import part_table, test_from_toml, toml_text

    document = tomllib.loads(config.as_toml())
    document["guidance"] = {"part": registry.RECORDED_MOTION}
    document["safety"] |= {"energy_floor_j": 1e6, "following_max_m": 1.0, "following_time_s": 10.0}
    document["stand"]["platform"] |= {"leg_rate_max_m_s": 100.0, "leg_acceleration_max_m_s2": 1e4}
    document["stand"]["limits"] |= {"start_tolerance_m": 10.0, "supply_pressure_min_pa": 0.0}  # nothing stood anywhere, nothing drove it
    document["stand"].pop("drive_model", None)
    virtual = document["stand"]["virtual"]
    declared = part_table("simulated", virtual["part"]).parameters
    ideal = {"drive_frequency_hz": 0.0, "drive_delay_s": 0.0, "setpoint_delay_ticks": 0, "measured_leg_delay_ticks": 0, "faults": []}
    virtual |= {key: value for key, value in ideal.items() if key in declared}
    mounting, notes = document["stand"]["mounting"], [IDEAL, STARTS, ENERGY]
    if any(item.partition("=")[0].strip() == CARRIED for item in config.overrides):
        notes.append(f"the weight of {mounting['carried_mass_kg']:g} kg on the cell is subtracted (--set), at the stand's attitude")
    else:
        mounting["carried_mass_kg"] = 0.0
        notes.append(NOTHING_CARRIED)
    return test_from_toml(toml_text.dumps(document), label="imported"), notes


def write_run(config: TestConfig, wrench: Resampled, path: str | Path, done: Done = no_progress) -> dict[str, Any]:
    """A run's log whose measured wrench (N, N.m, at and in S) is the recording: it goes through wrench path, compensator and dynamics of
    the test `config` tick by tick to its end, on an ideal stand (`as_recording`). It replays and answers what-ifs like any log.

    wrench: on the grid of the loop, (n, 6). In a gap the sensor reports no data: the last value stays, its age grows. Returns log, points
    (given), ticks (imported), gap_points, end, trip (as the console's, None without one), faults, notes.
    done: called with the amount done and the total. Raises ValueError for a recording
    of another shape, ConfigurationError for one that begins with a gap."""
    from drivers.replayed.log_port import LogPort
    from hil_server.judge.faults import faults_of
    from hil_server.line import assembly
    from hil_server.line.free_run import run_in_pieces
    from hil_server.line.run_header import header
    from hil_server.log.reader import read_log
    from hil_server.log.record import record_dtype
    from hil_server.log.writer import LogWriter
    from rt_kernels.layout import BITS
    from rt_kernels.loop import LoopLine
    from rt_kernels.ring import SharedBlock

    if wrench.values.ndim != 2 or wrench.values.shape[1] != 6:
        raise ValueError(f"a wrench has six columns, got an array of shape {wrench.values.shape}")
    if wrench.gap[0]:
        raise ConfigurationError(f"{wrench.name}: begins with a gap; start the grid at the first record")
    config, notes = as_recording(config)
    test = assembly.simulation(config)
    facts = header(test, Path(path).stem, "imported", {})
    facts.notes.extend(["imported recording", *notes, *report([wrench])])
    count, ports = len(wrench.gap), tuple(channel for port in test.ports for channel in port.AUX)
    records = np.zeros(count, record_dtype(facts.aux_count))
    records["tick"], records["periods"] = np.arange(count), 1
    records["time_ns"] = np.arange(count, dtype=np.int64) * test.period_ns
    records["measured_leg"] = _legs_at_start(test)
    records["analogue_chain"] = BITS["analogue_chain"]["healthy"]
    # the last good value stays in a gap
    good = np.maximum.accumulate(np.where(wrench.gap, 0, np.arange(count)))
    records["wrench_raw"] = wrench.values[good] * np.asarray(test.context["sensor_scale"], float)
    records["wrench_status"] = np.where(wrench.gap, BITS["sensor_status"]["no_data"], 0)
    records["wrench_sequence"] = np.cumsum(~wrench.gap)
    records["wrench_age_ns"] = (np.arange(count) - good) * test.period_ns
    block = SharedBlock.create(count + 2, facts.aux_count)
    clock = assembly.simulation_clock(period_ns=test.period_ns, duration_ns=count * test.period_ns)
    port = LogPort(records, ports, ideal_stand=test.period_ns * 1e-9)
    line = LoopLine(clock, [port], test.line.stages, block, test.line.tuning)
    line.sample = test.line.sample
    run_in_pieces(line, count, done)
    with_outputs = block.drain(count + 2)
    with whole(Path(path)) as unfinished:
        writer = LogWriter(unfinished, facts)
        writer.write(with_outputs)
        writer.close({})
    log = read_log(path)
    faults = faults_of(log)
    return {
        "log": str(path),
        "points": count,
        "ticks": log.ticks,
        "gap_points": int(wrench.gap.sum()),
        "end": "end of the recording" if log.ticks == count else f"tick {log.ticks - 1} of {count}",
        "trip": next((fault for fault in faults if fault["severity"] == "stop"), None),
        "faults": faults,
        "notes": notes,
        "streams": wrench.facts,
    }


def _legs_at_start(test: "Assembly") -> np.ndarray:
    """Leg lengths (6,) at the nominal first contact: where an ideal stand waits for the recording to begin."""
    from hil_server.line.assembly import part_of
    from rt_kernels.layout import SAMPLE_DTYPE

    sample = np.zeros(1, SAMPLE_DTYPE)
    sample["periods"] = 1
    sample["X_TA"] = test.context["start"].X_TA
    sample["lead"][:, 0] = 1.0
    part_of(test.config, "setpoint_kinematics", test.context).step(sample)
    found: np.ndarray = sample["leg_demand"][0]
    return found
