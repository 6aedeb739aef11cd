"""One test: prepare, arm, run, stop, report. Live (`run_live`) and in process (`simulate`).

Live, in this order: the virtual stand where there is no hardware, the devices, the line, the telemetry process, the host's real-time
settings, then the loop on a thread of its own while this thread shows progress and signs as the supervisor. Nothing forks after the loop
has started. Ctrl-C parks the platform and closes the log; a second one aborts; a third one gives up.
"""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.config import TestConfig
from hil_server.errors import ConfigurationError, DeviceError, HilError, InternalError, VerdictError
from hil_server.host.build import build_id
from hil_server.line import assembly
from hil_server.line.assembly import Assembly
from hil_server.line.free_run import Thinner, blocks
from hil_server.run.replay import CONFIGURATION
from hil_server.telemetry.commands import taken_by
from hil_server.telemetry.log_file import Log, LogError, LogHeader, LogWriter, open_log
from hil_server.telemetry.record import record_dtype
from rt_kernels.layout import CODES, FAULTS, SAMPLE_DTYPE

COMMANDS, PHASES = CODES["command"], {number: name for name, number in CODES["phase"].items()}
PROGRESS_S = 0.25


@dataclass
class Options:
    """out: folder of the log and the report (none: runs/ and the time); quiet: no progress line; report: make one; force: run although a
    prediction forbids it; prediction: log of the simulated variant; confirmed: why the run is to be without one, or against its loads;
    stand: settings of the virtual stand's process beside the configuration's (drivers.simulated.stand_server: other devices, faults)."""

    out: str | None = None
    quiet: bool = False
    report: bool = True
    force: bool = False
    prediction: str | None = None
    confirmed: str = ""
    stand: dict[str, Any] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------------ simulation


def simulate(config: TestConfig, options: Options | None = None) -> dict[str, Any]:
    """The test with everything in process, as fast as it goes. Returns the summary of the contract. Raises ConfigurationError."""
    options = options or Options()
    log = _new_log(config, options)
    test = assembly.simulation(config)
    facts, every = header(test, log.parent.name, "simulation", {}, _foreseen(config, test)), config.telemetry["log_every"]
    if every > 1:
        facts.notes.append(f"thinned log: one tick in {every}, every change of a state, every new peak of a component of the wrench")
    with _folder_of(log):
        writer = LogWriter(log, facts)
    began, busy = time.perf_counter(), time.process_time()
    show, chosen = _Progress(test, options.quiet), Thinner(every)
    with _interruptible(test):
        for records in blocks(test):
            writer.write(chosen(records) if every > 1 else records)
            show.update()
    if len(last := chosen.last()):
        writer.write(last)
    show.end()
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    simulated = float(test.line.sample["time_ns"][0]) * 1e-9
    speed = {"realtime_factor": simulated / max(seconds, 1e-9), "realtime_factor_of_a_core": simulated / max(busy, 1e-9)}
    writer.close(speed | {"seconds": seconds, "processor_seconds": busy})
    return _conclude(log, options, speed | {"ticks_run": int(test.line.sample["tick"][0]) + 1}, facts)


# ------------------------------------------------------------------------------------------------------------------ live


def run_live(config: TestConfig, options: Options | None = None) -> dict[str, Any]:
    """The test on the stand: hardware, or the virtual stand over the wire. Returns the summary of the contract.

    Raises ConfigurationError, VerdictError (a prediction forbids it), DeviceError (a device is not there), InternalError."""
    from hil_server.analysis.loads import allowed
    from hil_server.host.realtime_host import RealtimeHost
    from hil_server.telemetry.process import RecordWatch, TelemetryProcess

    options = options or Options()
    if config.telemetry["log_every"] != 1:
        raise ConfigurationError(f"telemetry.log_every: {config.telemetry['log_every']}, a live run logs every tick: limit 1")
    in_air = config.part("guidance")[0] == "excitation"  # the loop is never closed
    foreseen = [] if in_air else allowed(config, options.prediction, "drives" in config.stand, options.confirmed)
    for note in foreseen:
        _say(options, note)
    log = _new_log(config, options)
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(RealtimeHost())
        context = assembly.base_context(config)
        tables, control = stack.enter_context(_stand(config, context, host, options.stand))
        devices = assembly.devices(config, context, tables)
        stack.enter_context(_opened(devices))
        for device in devices:
            if hasattr(device, "measure"):
                device.measure()  # what the delay ledger wants to know of it
        test = assembly.live(config, context, devices, priority=host.priority, cpu=host.core)
        prediction = _foreseen(config, test)
        facts = header(test, log.parent.name, "live", host.facts(), prediction)
        facts.notes.extend([*foreseen, *_permitted(prediction, options)])
        with _folder_of(log):
            telemetry = TelemetryProcess.start(test.block.fd, _telemetry_settings(test, log, host, control), facts)
        stack.callback(telemetry.kill)
        for line in host.missing:
            _say(options, f"not real time: {line}")
        bus, commands = (telemetry.endpoints.get(f"{name}_address", "-") for name in ("telemetry", "command"))
        _say(options, f"log {log}   bus {bus}   commands {commands}")
        for device in devices:
            device.begin()
        watch = RecordWatch(telemetry, test.block)
        with _loop(test) as thread, _interruptible(test):
            show = _Progress(test, options.quiet)
            recorded = True
            while thread.is_alive():
                test.block.heartbeat()
                if recorded and watch.look():
                    recorded = False
                    _end_without_record(test, watch.reason)
                show.update()
                time.sleep(0.02)
            show.end()
        watch.look()
        clock = test.line.clock.facts()
        lost = _own_facts(test) if watch.reason else {}
        left = {"end": lost["end"], "exit_code": lost["exit_code"], "record_lost": watch.reason} if lost else {}
        closed = _close_record(telemetry, clock | {"devices": _counters(devices)} | left, watch.reason)
    extra = {k: clock[k] for k in ("mode", "page_faults", "involuntary_switches", "late_ticks")}
    extra |= {"complete": closed["complete"], "overflow": test.block.overflow, "record_lost": "; ".join(closed["reasons"])}
    return _conclude(log, options, extra if closed["complete"] else extra | _own_facts(test), facts)


def _end_without_record(test: Assembly, reason: str) -> None:
    """A test without a record is no test: the platform goes home, or trips, as the configuration says."""
    trip = test.config.telemetry["on_record_lost"] == "trip"
    test.block.push_command(COMMANDS["record_lost"], (float(trip),), source=1)
    print(f"\nrecord lost: {reason}: {'trip' if trip else 'parking the platform'}", file=sys.stderr)


def _close_record(telemetry: Any, facts: dict[str, Any], lost: str) -> dict[str, Any]:
    """What the telemetry process says of the log at its end (`complete`, `reasons`); when it says nothing any more, what the server knows.
    lost: why the record was lost during the run, empty while it was not."""
    try:
        closed = telemetry.finish(facts, timeout_s=15.0 if lost else 60.0)
    except InternalError as error:
        return {"complete": False, "reasons": [lost or str(error)]}
    reasons = closed["reasons"]
    return {"complete": not (lost or reasons), "reasons": reasons if not lost or lost in reasons else [lost, *reasons]}


def _own_facts(test: Assembly) -> dict[str, Any]:
    """How a run ended whose log may not reach to its end: from the loop's last sample."""
    last = test.line.sample[0]
    ended = "tripped" if last["end_cause"] == CODES["end_cause"]["tripped"] else "record_lost"
    names = [name for name, mask, severity, *_ in FAULTS if severity != "note" and int(last["faults"]) & mask]
    return {"end": ended, "exit_code": 3, "ticks_run": int(last["tick"]) + 1 - int(last["missed_total"]), "faults_at_end": names}


def _foreseen(config: TestConfig, test: Assembly) -> Any:
    """The prediction for the line of this run, which its log carries and its report shows beside what was measured; None for a run in
    air, whose loop is never closed."""
    from hil_server.analysis.predict import predict

    return None if config.part("guidance")[0] == "excitation" else predict(config, test)


def _permitted(found: Any, options: Options) -> list[str]:
    """Refuses to arm when the contact would leave the band, unless told; then the log says that it was told. Raises VerdictError."""
    if found is None or found.within:
        return []
    if not options.force:
        raise VerdictError(f"not armed: {found.verdict()} (hil-server predict shows why; --force runs it all the same)")
    _say(options, f"forced: {found.verdict()}")
    return [f"armed by --force against the prediction: {found.verdict()}"]


@contextlib.contextmanager
def _stand(
    config: TestConfig, context: dict[str, Any], host: Any, beside: dict[str, Any]
) -> Iterator[tuple[dict[str, dict[str, Any]], Any]]:
    """Tables of the three device ports: from the stand file, or of a virtual stand that is started for this run; and the control of the
    latter, which injects faults, None for the former."""
    if "drives" in config.stand:
        given = ("drives", "wrench_sensor", "mechanism_signals")
        yield {table: dict(config.stand[table]) for table in given if table in config.stand}, None
        return
    from drivers.simulated.stand_server_client import StandProcess

    keys = assembly.virtual_stand_settings(config, context, priority=max(0, host.priority - 20), loop_core=host.core)
    profile = beside.get("drives", {}).get("profile", "cia402")
    for table, value in beside.items():
        keys[table] = {**keys.get(table, {}), **value} if isinstance(value, dict) else value
    try:
        stand = StandProcess(keys)
    except (ValueError, ConnectionError) as error:
        raise DeviceError(f"virtual stand: {error}") from error
    with stand:
        yield (
            {
                # a process on the same machine may be held up longer than a device would be
                "drives": {"part": profile, "receive_timeout_periods": 500, **stand.ports["drives"]},
                "wrench_sensor": {"part": "rdt", "filter_delay_s": keys["plant"]["sensor_delay_s"], **stand.ports["wrench_sensors"]},
                "mechanism_signals": {"part": "cia401", **stand.ports["mechanism_signals"]},
            },
            stand.control,
        )


@contextlib.contextmanager
def _opened(devices: list[Any]) -> Iterator[None]:
    """Opens the devices in order; closes those that were opened, last first, whatever happens."""
    opened: list[Any] = []
    try:
        for device in devices:
            try:
                device.open()
            except (OSError, ConnectionError, TimeoutError) as error:
                raise DeviceError(f"{type(device).__name__}: {error}") from error
            opened.append(device)
        yield
    finally:
        for device in reversed(opened):
            with contextlib.suppress(OSError):
                device.close()


def _counters(devices: list[Any]) -> dict[str, Any]:
    return {type(device).__name__: device.counters() for device in devices if hasattr(device, "counters")}


def _telemetry_settings(test: Assembly, log: Path, host: Any, control: Any) -> Any:
    """control: of the virtual stand's process, which acts on commands beside the line's parts; None for hardware."""
    import os

    from hil_server.telemetry.settings import TelemetrySettings

    others = sorted(os.sched_getaffinity(0) - {host.core})
    commands = test.commands | ({} if control is None else taken_by([control]))
    return TelemetrySettings.from_table(
        test.config.telemetry, str(log), cores=others, stand_control=None if control is None else control.address,
        commands={name: [command.phases, command.numbers] for name, command in commands.items()},
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- what both do


def header(test: Assembly, run_id: str, mode: str, host: dict[str, Any], foreseen: Any = None) -> LogHeader:
    """Everything that a log must know of a run before its first tick. foreseen: its prediction."""
    config = test.config
    marks = {name: getattr(config, name) for name in ("stand", "active_vehicle", "target_vehicle", "mechanism")}
    synthetic = ", ".join(f"{name} {table['name']}" for name, table in marks.items() if table.get("synthetic"))
    return LogHeader(
        run_id=run_id,
        build_id=build_id(),
        mode=mode,
        period_ns=test.period_ns,
        configuration={CONFIGURATION: config.as_toml(), **config.sources},
        aux=tuple(test.aux),
        host=host,
        delay_ledger=test.ledger.as_dict(),
        delay_origins=test.ledger.origins(),
        prediction=foreseen.as_dict() if foreseen is not None else {},
        calibration={"context": {"delays": test.context["delays"], "sensor_scale": test.context["sensor_scale"]}},
        notes=[
            *([config.test["notes"]] if config.test.get("notes") else []),
            *(f"{role}: {note}" for role, part in test.line.stages.items() for note in getattr(part, "notes", ())),
        ],
        synthetic=synthetic,
        initial_record=test.line.sample.tobytes(),
        states={role: part.whole() for role, part in test.line.stages.items()},
    )


def _new_log(config: TestConfig, options: Options) -> Path:
    """Where the run's log goes, in a folder of its own. A folder that has a log already gets a number behind its name.

    Nothing is made here: what is refused before the run leaves nothing behind."""
    wanted = Path(options.out) if options.out else Path("runs") / time.strftime(f"%Y%m%d-%H%M%S-{config.test['name']}")
    folder, number = wanted, 1
    while (folder / "run.mcap").exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder / "run.mcap"


@contextlib.contextmanager
def _folder_of(log: Path) -> Iterator[None]:
    """Makes the log's folder; when the arming fails after all, what was made is taken away again as far as it is empty."""
    made = [folder for folder in log.absolute().parents if not folder.exists()]
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException as error:
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()
        if isinstance(error, OSError):
            raise ConfigurationError(f"--out {log.parent}: {error.strerror or error}: choose a folder that can be written to") from error
        raise


@contextlib.contextmanager
def _loop(test: Assembly) -> Iterator[threading.Thread]:
    """The loop on a thread of its own; leaving this block early stops it."""
    thread = threading.Thread(target=test.line.run, name="loop")
    test.block.heartbeat()
    thread.start()
    try:
        yield thread
    finally:
        if thread.is_alive():
            test.block.request_stop()
            thread.join(10.0)


@contextlib.contextmanager
def _interruptible(test: Assembly) -> Iterator[None]:
    """Ctrl-C and SIGTERM: park; again: abort (trip); a third time: as Python does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = 0

    def handler(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            test.block.push_command(COMMANDS["park"], source=1)
            print("\nparking the platform; once more to abort", file=sys.stderr)
        elif pressed == 2:
            test.block.push_command(COMMANDS["abort"], source=1)
        else:
            raise KeyboardInterrupt

    old = {n: signal.signal(n, handler) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for n, previous in old.items():
            signal.signal(n, previous)


class _Progress:
    """One line, a few times a second: phase, time, force, lateness."""

    def __init__(self, test: Assembly, quiet: bool) -> None:
        self._test, self._next, self._shown = test, 0.0, False
        self._on = not quiet and sys.stderr.isatty()

    def update(self) -> None:
        now = time.monotonic()
        if not self._on or now < self._next:
            return
        self._next = now + PROGRESS_S
        newest = self._test.block.newest()
        if newest is None:
            return
        s = np.frombuffer(newest[: SAMPLE_DTYPE.itemsize], SAMPLE_DTYPE)[0]
        force = float(np.linalg.norm(s["F_T"][:3]))
        late = float(s["lateness_ns"]) * 1e-3
        text = f"{PHASES[int(s['phase'])]:9s} {s['time_ns'] * 1e-9:8.2f} s  {force:8.1f} N  late {late:6.1f} us"
        print(f"\r{text}  missed {int(s['missed_total'])}   ", end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        if self._shown:
            print(file=sys.stderr)


def _say(options: Options, text: str) -> None:
    if not options.quiet:
        print(text, file=sys.stderr)


def _conclude(path: Path, options: Options, extra: dict[str, Any], header: LogHeader) -> dict[str, Any]:
    """Summary out of the log itself, and the report. Of a log that is lost: out of what the server knows."""
    from hil_server.analysis.summary import summarise

    lost = bool(extra.get("record_lost"))
    try:
        log = open_log(path)
    except LogError as error:
        if not lost:
            raise
        log = Log(path, header, np.empty(0, record_dtype(header.aux_count)), {}, [str(error)])
    summary = summarise(log) | extra | {"log": str(path), "report": None}
    summary["faults"] += [name for name in summary.pop("faults_at_end", ()) if name not in summary["faults"]]
    if options.report:
        make: Callable[..., Any]
        from hil_server.analysis.report import make_report as make

        try:
            summary["report"] = str(make(path, path.parent))
        except HilError as error:
            if not lost:
                raise
            _say(options, f"no report: {error}")  # the disk that the log had no room on
    return summary
