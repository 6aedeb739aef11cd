"""A logged run again: the same stages, fed with the recorded inputs.

* verify: every field of every tick is compared byte by byte; the constants of the stages come from the log, because the mathematics
  library of another machine may have made others.
* a thinned log (`telemetry.log_every`) lacks inputs: the whole simulation is run again, docking unit included, and compared at the
  logged ticks. So is a simulation's log from which ticks are missing.
* where ticks are missing from the log of a live run, their inputs are gone: the ticks before are compared as ever; those behind are run
  with what there is and counted by themselves, since the stages come out of the gap with other states.
* a log of an earlier table of channels is compared in the fields that it has. A stage whose logged constants are not those of this
  program (another form by now, or altered) is rebuilt from the configuration, and named.
* what-if (`--set`): stages whose configuration changed are rebuilt; the differences are reported. The measured force belongs to the
  original motion: a what-if says what the changed part would have answered to *those* inputs, not what would have happened.
* a parameter that was changed in the run (command `tune`) is changed in its replay at the same tick, also in a what-if; one that the
  changed parts do not have is named by the list of the log alone and changes nothing.
* playback (`--rate`): the run goes out on the bus at X times its own speed.
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drivers.replayed.log_port import LogPort
from hil_server import interrupts
from hil_server.config.files import Done, no_progress
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.line.assembly import Assembly
from hil_server.line.checkpoints import put_back, refuse_foreign
from hil_server.line.context import Context
from hil_server.line.free_run import blocks, run_in_pieces
from hil_server.line.run_header import configuration
from hil_server.log.checkpoint import places
from hil_server.log.reader import Log, read_log
from hil_server.log.record import aux_channels, scalar_names
from hil_server.roles import Stage
from hil_server.run.progress import Line
from hil_server.values import Document, Value
from rt_kernels.context import Delays
from rt_kernels.layout import FIELDS, SAMPLE_DTYPE
from rt_kernels.loop import LoopLine
from rt_kernels.parameters import TunedParameter
from rt_kernels.plugs import ClockPart, restore_checked
from rt_kernels.ring import SharedBlock
from rt_kernels.stages import STAGE_ROLES
from rt_kernels.tuning import Tuning

if TYPE_CHECKING:
    from hil_server.bus.settings import TelemetrySettings

WHAT_IF = "the measured force belongs to the original motion: this is the answer of the changed parts to the recorded inputs"


def replay(source: str | Path | Log, *, verify: bool = False, overrides: tuple[str, ...] = (), start_s: float | None = None,
           stop_s: float | None = None, done: Done = no_progress) -> Document:  # fmt: skip
    """Runs a log, read or by its path, through the line. Returns equal, ticks, differing, first_difference {tick, channel, ...} or None,
    seconds, realtime_factor, damaged, incomplete; with overrides also `changes` per channel. done: called with the amount done and the
    total. Raises ConfigurationError, LogError."""
    log = source if isinstance(source, Log) else read_log(source)
    path = log.path
    if log.ticks == 0:
        raise ConfigurationError(f"{path}: the log has no ticks")
    window = _window(log, start_s, stop_s)
    damaged = log.damaged()
    thinned = configuration(log).setup.telemetry.log_every > 1
    if thinned and overrides:
        raise ConfigurationError(f"{path}: a thinned log (telemetry.log_every) has not every input: simulate the change (simulate --set)")
    missing = [] if thinned else log.missing()
    began = time.perf_counter()
    behind = None
    if thinned or (missing and log.header.mode == "simulation" and not overrides):
        differing, other = _simulated_again(log, window, done)
    else:
        # in front of the first gap every input is there
        gap = int(np.searchsorted(log.records["tick"], missing[0][0])) if missing else log.ticks
        differing, other = _run_again(log, overrides, (window[0], max(window[0], min(window[1], gap))), done)
        if window[1] > gap:
            start = max(window[0], gap)
            behind = {"ticks": window[1] - start, "differing": _run_again(log, overrides, (start, window[1]))[0]}
    seconds = time.perf_counter() - began
    first = _first_difference(log, other, damaged, missing)
    result: Document = {
        "log": str(path),
        "equal": differing == 0 and not damaged and not missing,
        "ticks": window[1] - window[0],
        "differing": differing,
        "first_difference": first,
        "damaged": [{"tick": t, "channel": c} for t, c in damaged[:20]],
        "missing": [{"first": a, "last": b} for a, b in missing[:20]],
        "missing_ticks": sum(b - a + 1 for a, b in missing),
        "behind_gap": behind,
        "incomplete": list(log.incomplete),
        "rebuilt": rebuilt(log),
        "absent": sorted(log.absent or ()),
        "seconds": seconds,
        "realtime_factor": float(log.time_s[-1] - log.time_s[0]) / max(seconds, 1e-9),
    }
    if overrides:
        result["overrides"] = list(overrides)
        result["note"] = WHAT_IF
        result["changes"] = changes(log, overrides)
    result["exit_code"] = 0 if result["equal"] or not verify else 1
    return result


def _run_again(log: Log, overrides: tuple[str, ...], window: tuple[int, int],
               done: Done = no_progress) -> tuple[int, tuple[int, np.ndarray] | None]:  # fmt: skip
    """The line on the recorded inputs. Returns how many records of the window differ, index and computed record of the first."""
    line, port = build(log, overrides, window)
    run_in_pieces(line, log.ticks, done)
    first = None if port.first is None else (port.first, sample_at(log, port.first, overrides))
    unrun = window[1] - max(window[0], min(window[1], port.compared))  # the line ended before the log does
    if unrun and first is None:
        first = (window[1] - unrun, np.zeros(1, log.records.dtype)[0])
    return port.differing + unrun, first


def build(log: Log, overrides: tuple[str, ...] = (), window: tuple[int, int] | None = None, clock: ClockPart | None = None,
          block: SharedBlock | None = None) -> tuple[LoopLine, LogPort]:  # fmt: skip
    """The line of the log: its stages with the logged constants, but for those that an override changes."""
    stages = _stages(log, ())
    logged = {role: part.dump() for role, part in stages.items()}
    if overrides:
        changed = _stages(log, overrides)
        stages = {role: changed[role] if changed[role].dump() != logged[role] else stages[role] for role in STAGE_ROLES}
    for role, part in stages.items():
        if part.dump() == logged[role] or not overrides:
            put_constants(log, role, part)
    aux = tuple(log.header.aux)
    own = [channel for part in stages.values() for channel in part.AUX]
    behind = [(channel.name.partition("#")[0], channel.count) for channel in aux[len(aux) - len(own) :]] if len(own) <= len(aux) else []
    if behind != [(channel.name, channel.count) for channel in own]:
        raise ConfigurationError(f"{log.path}: auxiliary channels are not those of the stages of its configuration")
    inputs = aux[: len(aux) - len(own)]  # those of the ports
    window = window or (0, log.ticks)
    port = LogPort(log.records, inputs, *window, absent=log.absent or ())
    clock = clock or assembly.simulation_clock(period_ns=log.header.period_ns, duration_ns=log.ticks * log.header.period_ns)
    tuning = Tuning(log.header.period_ns * 1e-9, stages, [TunedParameter(**entry) for entry in log.header.tunables])
    line = LoopLine(clock, [port], stages, block, tuning)
    line.sample = initial_sample(log)
    _go_on(log, line)
    port.watch(line.aux if len(line.aux) else np.zeros(1), len(line.aux))
    return line, port


def _stages(log: Log, overrides: tuple[str, ...]) -> dict[str, Stage]:
    config = configuration(log, overrides)
    context = assembly.base_context(config)
    context.update(calibration(log))
    context["dynamics"] = dynamics = assembly.part_of(config, "dynamics", context)
    return {role: dynamics if role == "dynamics" else assembly.part_of(config, role, context) for role in STAGE_ROLES}


def put_constants(log: Log, role: str, part: Stage) -> str:
    """Constants and initial state of a stage out of the log. Where they are not what this program builds, the part stays as it was built
    from the configuration; returns what differs, "" where nothing does."""
    try:
        part.load(log.header.states.get(role, b""))
    except ValueError as error:
        return str(error)
    return ""


def rebuilt(log: Log) -> dict[str, str]:
    """Role of each stage whose constants are not taken from the log → why."""
    return {role: why for role, part in _stages(log, ()).items() if (why := put_constants(log, role, part))}


def _go_on(log: Log, line: LoopLine) -> None:
    """The stages of a log that continues another run, as they were at its beginning. Raises ConfigurationError."""
    if not log.header.branch:
        return
    found = places(log.path)
    if not found:
        raise ConfigurationError(f"{log.path}: continues another run and has no checkpoint at its beginning: it cannot be replayed")
    checkpoint = found[0].read()
    parts = checkpoint.parts
    try:
        refuse_foreign(checkpoint)
        for role, part in line.stages.items():
            restore_checked(part, parts[f"stage.{role}"])
        if "tuning" in parts:
            line.tuning.restore(parts["tuning"])
        line.aux[:] = np.frombuffer(parts["aux"])[: len(line.aux)]
    except (KeyError, ValueError) as error:
        raise ConfigurationError(f"{log.path}: the checkpoint at its beginning does not fit: {error}") from error


def initial_sample(log: Log) -> np.ndarray:
    """The sample before the first tick, one record of SAMPLE_DTYPE."""
    record = log.header.initial_record
    if len(record) < SAMPLE_DTYPE.itemsize:
        raise ConfigurationError(f"{log.path}: initial_record has {len(record)} bytes, a replay needs {SAMPLE_DTYPE.itemsize}")
    return np.frombuffer(record[: SAMPLE_DTYPE.itemsize], SAMPLE_DTYPE)


# Context that a live run measured before its first tick: limits beyond which no stand is
DELAYS = {"total_s": 10.0, "transport_s": 10.0, "sensor_delay_s": 10.0, "drive_lag_s": 10.0, "drive_frequency_hz": 1e6,
          "drive_damping": 1e6, "measured_leg_delay_s": 10.0}  # fmt: skip
LEADS = ("lead_rate", "lead_acceleration")  # 36 numbers each, or none
LEAD_MAX = 1e3
SCALE_MAX = 1e12


def calibration(log: Log) -> Context:
    """Delays and sensor scale of the run. Raises ConfigurationError that names what is not a number within its limits."""
    where = f"{log.path}: calibration.json: context"
    context = log.header.calibration.get("context")
    if not isinstance(context, dict) or not isinstance(context.get("delays"), dict):
        raise ConfigurationError(f"{where}: missing: the log cannot be replayed")
    delays, scale = context["delays"], context.get("sensor_scale")
    for key, limit in DELAYS.items():
        if not _within(delays.get(key), limit):
            raise ConfigurationError(f"{where}.delays.{key}: {delays.get(key)!r:.80}, limit a number within -{limit:g} ... {limit:g}")
    if scale is not None and not (isinstance(scale, list) and len(scale) == 6 and all(_within(x, SCALE_MAX) and x for x in scale)):
        raise ConfigurationError(f"{where}.sensor_scale: {scale!r:.80}, limit none or six numbers other than 0")
    for key in LEADS:
        rows = delays.get(key)
        if rows is not None and not (isinstance(rows, list) and len(rows) == 36 and all(_within(x, LEAD_MAX) for x in rows)):
            raise ConfigurationError(f"{where}.delays.{key}: {rows!r:.80}, limit none or 36 numbers within -{LEAD_MAX:g} ... {LEAD_MAX:g}")
    found = {key: delays[key] for key in DELAYS} | {key: delays.get(key) for key in LEADS}
    return {"delays": Delays(**found), "sensor_scale": scale}


def _within(value: object, limit: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -limit <= value <= limit


def _window(log: Log, start_s: float | None, stop_s: float | None) -> tuple[int, int]:
    t = log.time_s
    first = 0 if start_s is None else int(np.searchsorted(t, start_s))
    last = log.ticks if stop_s is None else int(np.searchsorted(t, stop_s, side="right"))
    if first >= last:
        raise ConfigurationError(f"no tick between {start_s} s and {stop_s} s: the log goes from {t[0]:.3f} s to {t[-1]:.3f} s")
    return first, last


def _first_difference(log: Log, other: tuple[int, np.ndarray] | None, damaged: list[tuple[int, str]],
                      missing: list[tuple[int, int]]) -> Document | None:  # fmt: skip
    """Tick and channel that differ first: a damaged record and a gap name themselves, else what was computed is held against the record.

    other: index of the first record that differs and what was computed for it."""
    found = []
    if damaged:
        tick, channel = damaged[0]
        found.append((tick, {"tick": tick, "channel": channel or "(more than one bit)", "cause": "damaged record: its checksum is wrong"}))
    if missing:
        first, last = missing[0]
        found.append((first, {"tick": first, "channel": "(none)", "cause": f"ticks {first} to {last} are missing from the log"}))
    if other is not None:
        record = log.records[other[0]]
        channel, a, b = _differing_channel(log, record, other[1])
        tick = int(record["tick"])
        found.append((tick, {"tick": tick, "channel": channel, "logged": a, "computed": b, "cause": "computed otherwise"}))
    return min(found, key=lambda item: item[0])[1] if found else None  # of the same tick the one that explains the other


def _simulated_again(log: Log, window: tuple[int, int], done: Done) -> tuple[int, tuple[int, np.ndarray] | None]:
    """The simulation of a thinned log once more. Returns how many logged records differ, index and computed record of the first.

    Constants of the stages come from the log, those of the docking unit are prepared again: another mathematics library may differ."""
    test = assembly.simulation(configuration(log), calibration(log), log.records[log.records["command_code"] != 0])
    ours = {name: i for i, name in enumerate(n for c in aux_channels(test.aux) for n in scalar_names(c.name, c.count))}
    if gone := [name for name in log.aux_names if name not in ours]:
        raise ConfigurationError(f"{log.path}: its configuration makes no auxiliary channel {gone[0]}")
    logged_aux = [ours[name] for name in log.aux_names]  # parts have appended others since
    for role, part in test.line.stages.items():
        put_constants(log, role, part)
    test.line.sample = initial_sample(log)
    if log.header.branch:
        _put_back(log, test)
    at, stop = window
    differing, first = 0, None
    for records in blocks(test):
        upto = min(stop, int(np.searchsorted(log.records["tick"], records["tick"][-1], side="right")))
        if upto > at:
            logged = log.records[at:upto]
            full = records[logged["tick"] - records["tick"][0]]
            computed = np.zeros(len(full), log.records.dtype)
            for name in SAMPLE_DTYPE.names or ():
                computed[name] = full[name]
            computed["aux"] = full["aux"][:, logged_aux]
            for name in ("record_crc", *(log.absent or ())):
                computed[name] = logged[name]
            unequal = np.flatnonzero((_bytes(computed) != _bytes(logged)).any(axis=1))
            if first is None and len(unequal):
                first = (at + int(unequal[0]), computed[unequal[0]])
            differing += len(unequal)
            at = upto
            done(at, stop)
        if at == stop:
            break
    if at < stop:  # the simulation ended before the log does
        first = first or (at, np.zeros(1, log.records.dtype)[0])
        differing += stop - at
    return differing, first


def _put_back(log: Log, test: Assembly) -> None:
    """The whole line of a log that continues another run, as it was at its beginning. Raises ConfigurationError."""
    found = places(log.path)
    try:
        if not found:
            raise ValueError("there is none")
        put_back(found[0].read(), test)
    except ValueError as error:
        raise ConfigurationError(f"{log.path}: the checkpoint at its beginning cannot be restored: {error}") from error


def _bytes(records: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(records).view(np.uint8).reshape(len(records), -1)


def sample_at(log: Log, index: int, overrides: tuple[str, ...] = ()) -> np.ndarray:
    """Sample and auxiliary channels as computed at record `index`: one structured record."""
    period = log.header.period_ns
    clock = assembly.simulation_clock(period_ns=period, duration_ns=(index + 1) * period)
    line, _ = build(log, overrides, clock=clock)
    line.run()
    out = np.zeros(1, log.records.dtype)
    for name in SAMPLE_DTYPE.names or ():
        out[name] = line.sample[name]
    out["aux"] = line.aux
    found: np.ndarray = out[0]
    return found


def _differing_channel(log: Log, record: np.ndarray, computed: np.ndarray) -> tuple[str, Value | None, Value | None]:
    """First channel in the order of the tick whose bytes differ, with both values."""
    for name, _, shape, *_ in FIELDS:
        if name not in ("record_crc", *(log.absent or ())) and record[name].tobytes() != computed[name].tobytes():
            if shape == 1:
                return name, record[name].item(), computed[name].item()
            i = next(i for i in range(shape) if record[name][i].tobytes() != computed[name][i].tobytes())
            return f"{name}[{i}]", record[name][i].item(), computed[name][i].item()
    for i, name in enumerate(log.aux_names):
        if record["aux"][i].tobytes() != computed["aux"][i].tobytes():
            return name, float(record["aux"][i]), float(computed["aux"][i])
    return "(none)", None, None


def run_records(log: Log, overrides: tuple[str, ...] = ()) -> np.ndarray:
    """All samples as the line computes them from the recorded inputs, (n,) SAMPLE_DTYPE."""
    block = SharedBlock.create(log.ticks + 2, log.header.aux_count)
    line, _ = build(log, overrides, block=block)
    line.run()
    whole = np.frombuffer(block.drain(log.ticks + 2), np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (log.header.aux_count,))]))
    return whole


def changes(log: Log, overrides: tuple[str, ...]) -> list[Document]:
    """What-if: the largest difference of every channel that changed, against its range in the log."""
    computed = run_records(log, overrides)
    rows = []
    for name, kind, *_ in FIELDS:
        if kind != "f8":
            continue
        a, b = log.records[name][: len(computed)], computed[name]  # a changed run may end earlier
        difference = np.nanmax(np.abs(b - a)) if np.any(np.isfinite(b - a)) else np.nan
        if difference > 0:
            rows.append({"channel": name, "largest_difference": float(difference), "range": float(np.ptp(a))})
    return rows


def playback(path: str | Path, rate: float, settings: "TelemetrySettings | None" = None,
             say: Callable[[str], None] = lambda _: None) -> Document:  # fmt: skip
    """Publishes the logged run on the bus at `rate` times its speed; Ctrl-C ends it. say: called with the address and the length."""
    from hil_server.bus.process import TelemetryProcess
    from hil_server.bus.settings import TelemetrySettings
    from hil_server.log.header import LogHeader
    from rt_kernels.ring import SharedBlock

    if not 0.01 <= rate <= 100.0:
        raise ConfigurationError(f"--rate {rate}: must be within 0.01...100 times the speed of the run")
    log = read_log(path)
    show = Line()
    block = SharedBlock.create(8192, log.header.aux_count)
    h = log.header  # pages and viewers draw what its configuration describes
    header = LogHeader(f"{h.run_id} (replayed)", period_ns=h.period_ns, aux=h.aux, configuration=h.configuration, notes=h.notes)
    with interrupts.held(), interrupts.not_passed_on():
        process = TelemetryProcess.start(block.fd, settings or TelemetrySettings(log_path="", commands={}), header)
    dtype = log.records.dtype
    where, length = process.endpoints.get("telemetry_address", "-"), log.time_s[-1] / rate if log.ticks else 0.0
    say(f"publishing {log.ticks} ticks on {where}, {length:.0f} s; Ctrl-C ends it")
    began = time.monotonic()
    sent = 0
    with contextlib.ExitStack() as stack:
        stack.callback(process.finish, {})
        stack.callback(setattr, block, "finished", True)
        stack.callback(show.end)
        stack.enter_context(interrupts.ended_by_a_press())
        chunk = max(1, int(0.02 * rate / (log.header.period_ns * 1e-9)))
        while sent < log.ticks:
            sent += block.push_records(np.ascontiguousarray(log.records[sent : sent + chunk]).view(np.uint8).reshape(-1), dtype.itemsize)
            at = log.time_s[min(sent, log.ticks - 1)]
            show.update(f"published {at:.1f} of {log.time_s[-1]:.1f} s, {(log.time_s[-1] - at) / rate:.0f} s left")
            ahead = log.time_s[min(sent, log.ticks - 1)] / rate - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
    return {"log": str(path), "ticks": sent, "rate": rate, "endpoints": process.endpoints, "exit_code": 0}
