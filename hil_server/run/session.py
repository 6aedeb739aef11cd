"""One test: prepare, arm, run, stop, report. Live (`run_live`) and in process (`simulate`).

Live, in this order: the virtual stand where there is no hardware, the devices, the line, the telemetry process, the host's real-time
settings, then the loop on a thread of its own while this thread shows progress and signs as the supervisor. Nothing forks after the loop
has started. Each step of the preparation looks whether Ctrl-C was pressed (`hil_server.interrupts`): after it nothing is opened, armed or
started. While the loop runs Ctrl-C parks the platform, a second one aborts, a third one ends the run as soon as the platform rests; the log
is closed in each case, and the exit code is 130.
"""

import contextlib
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hil_server import interrupts, registry
from hil_server.bus.commands import taken_by
from hil_server.config import TestConfig, narrowing
from hil_server.errors import ConfigurationError, HilError, InternalError, UsageError, VerdictError
from hil_server.interrupts import INTERRUPTED
from hil_server.line import assembly
from hil_server.line.assembly import Assembly
from hil_server.line.checkpoints import Keeper
from hil_server.line.context import Context
from hil_server.line.free_run import Thinner, blocks
from hil_server.line.run_header import header
from hil_server.log.format import LogError
from hil_server.log.header import FORCED, LogHeader
from hil_server.log.reader import Log, read_log
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter
from hil_server.requirements import Watch
from hil_server.run import leg_record
from hil_server.run.again import Wish, beginning, hold, take_over, tick_asked_for
from hil_server.run.branch import IN_PROCESS, Resumed, at_tick
from hil_server.run.claim import claimed
from hil_server.run.folder import folder_of, new_log, unless_begun
from hil_server.run.progress import Progress, Stopper, working
from hil_server.run.recovery import Recoverer
from hil_server.run.stand import begun, counters, not_confirmed, of_device, opened_in_order, stand_of, who_is_there
from hil_server.values import Document
from rt_kernels.doors import made_as, threading, time
from rt_kernels.layout import CODES, FAULTS
from rt_kernels.parameters import Command

if TYPE_CHECKING:
    from drivers.simulated.stand_server_client import StandControl
    from hil_server.bus.process import TelemetryProcess
    from hil_server.bus.settings import TelemetrySettings
    from hil_server.host.realtime_host import RealtimeHost
    from hil_server.judge.run import Run
    from hil_server.judge.summary import Summary
    from hil_server.predict.prediction import Prediction
    from hil_server.roles import Port

logger = logging.getLogger(__name__)
OPERATOR_STOP = {"operator_stop"}
ENOUGH = 3  # presses
LIVE_TARE_S = 1.0
HOME_WITHIN_S, REST_WITHIN_S = 120.0, 10.0  # of a run whose supervisor failed: until it is aborted, and ended
NOTHING_RAN = "nothing was armed, nothing has moved, there is no log"


@dataclass
class Options:
    """out: folder of the log and the report (none: runs/ and the time); quiet: no progress line; report: make one; force: run although a
    prediction forbids it; predictions: logs of the simulated variant; confirmed: why the run is to be without one, or against its loads;
    stand: settings of the virtual stand's process beside the configuration's (drivers.simulated.stand_server: other devices, faults); or
    `process`: one that already runs (`virtual_stand`) and continues after the test; desk: file of who holds the desk beyond the
    run."""

    out: str | None = None
    quiet: bool = False
    report: bool = True
    force: bool = False
    predictions: Sequence[str] = ()
    confirmed: str = ""
    stand: Document = field(default_factory=dict)
    desk: str = ""


# ------------------------------------------------------------------------------------------------------------ simulation


def simulate(config: TestConfig, options: Options | None = None, begin: Resumed | None = None) -> Document:
    """The test with everything in process, faster than real time; begin: where it continues (`hil_server.run.branch`), whose configuration
    this
    is. Returns the summary of the contract. Raises ConfigurationError, KeyboardInterrupt (before it began)."""
    with interrupts.held():
        return _simulate(config, options or Options(), begin)


def _simulate(config: TestConfig, options: Options, begin: Resumed | None) -> Document:
    interrupts.remains(NOTHING_RAN)
    log = new_log(options.out, config.setup.test.name)
    test = assembly.simulation(config) if begin is None else begin.test
    facts, every = header(test, log.parent.name, "simulation", {}, _foreseen(config, test, options)), config.setup.telemetry.log_every
    first = test.line.clock.tick
    if begin is not None:
        begin.tell(facts)
    if every > 1:
        facts.notes.append(f"thinned log: one tick in {every}, every change of a state, "
                           "every new peak of the wrench in each moment of the docking")  # fmt: skip
    with contextlib.ExitStack() as stack:
        with folder_of(log):
            writer = LogWriter(log, facts)
            presses = stack.enter_context(interrupts.counted())
        interrupts.remains(f"the log is complete: {log}")
        if begin is not None and begin.checkpoint is not None:
            writer.checkpoint(begin.checkpoint)
        keeper = Keeper(test, facts.build_id, config.setup.telemetry.checkpoint_every_s)
        began, busy = time.perf_counter(), time.process_time()
        show, chosen, watch = Progress(test, options.quiet), Thinner(every), Watch(test.requirements)
        stopper, stood = Stopper(test, presses), 0
        for records in blocks(test, keeper.at_pause):
            if every > 1:
                watch.see(records)  # the log alone does not know
            writer.write(chosen(records) if every > 1 else records)
            stood |= int(np.bitwise_or.reduce(records["faults"]))
            while keeper.waiting:
                writer.checkpoint(keeper.waiting.popleft())
            stopper.look()
            show.update()
    if len(last := chosen.last()):
        writer.write(last)
    show.end()
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    simulated = float(test.line.sample["time_ns"][0] - first * test.period_ns) * 1e-9
    speed = {"realtime_factor": simulated / max(seconds, 1e-9), "realtime_factor_of_a_core": simulated / max(busy, 1e-9)}
    judged = {"requirements": [one.as_dict() for one in watch.results()]} if every > 1 and test.requirements else {}
    complete = writer.close(speed | judged | {"seconds": seconds, "processor_seconds": busy})
    lost = {} if complete else _own_facts(test, stood) | {"record_lost": "; ".join(writer.reasons)}
    return _conclude(log, options, lost | speed | {"ticks_run": int(test.line.sample["tick"][0]) + 1 - first}, facts, presses.count)


# ------------------------------------------------------------------------------------------------------------------ live


def run_live(config: TestConfig, options: Options | None = None, begin: Resumed | None = None) -> Document:
    """The test on the stand: hardware, or the virtual stand over the wire; begin: a rehearsal that continues a logged run, with the
    stand in process (`hil_server.run.again`). Returns the summary of the contract, of the last flight where the operator asked for it
    again, with the logs of all as `flights`.

    Raises ConfigurationError, VerdictError (a prediction forbids it), DeviceError (a device is not there), InternalError,
    KeyboardInterrupt (before it began)."""
    with interrupts.held(), claimed(config, hardware=begin is None):
        return _flights(config, options or Options(), begin)


def _flights(config: TestConfig, options: Options, begin: Resumed | None) -> Document:
    flights: list[str] = []
    while True:
        summary = _fly(config, options, begin)
        flights.append(summary["log"])
        if (asked := summary.pop("again", None)) is None:
            return summary | ({"flights": flights} if len(flights) > 1 else {})
        with interrupts.heard():
            log = read_log(summary["log"])
            begin = at_tick(log, tick_asked_for(log, *asked))
        config, options = begin.test.config, replace(options, out=str(Path(summary["log"]).parent))
        for what in begin.lost:
            _say(options, f"not restored: {what}")


def _fly(config: TestConfig, options: Options, begin: Resumed | None) -> Document:
    """One flight of `run_live`; the summary has `again`, the two numbers of that command, where the operator has asked for it."""
    from hil_server.bus.process import RecordWatch, TelemetryProcess
    from hil_server.host.realtime_host import RealtimeHost
    from hil_server.judge.loads import allowed
    from hil_server.predict.course import held_against

    interrupts.remains(NOTHING_RAN)
    setup, stand = config.setup, config.setup.stand
    if setup.telemetry.log_every != 1:
        raise ConfigurationError(f"telemetry.log_every: {setup.telemetry.log_every}, a live run logs every tick: limit 1")
    in_air = _in_air(config)
    hardware = stand.hardware and begin is None
    if hardware:
        narrowing.demand_signed(stand.table["safety_record"], str(config.paths["stand"]))
    foreseen = [] if in_air else allowed(config, options.predictions, hardware, options.confirmed)
    if hardware and not in_air:
        foreseen += leg_record.demand(stand.checksum, str(config.paths["stand"]), options.force)
        foreseen += _delays_known(config, options)
    for note in foreseen:
        _say(options, note)
    if options.predictions and not in_air:
        config = held_against(config, options.predictions)
    if begin is None:
        config = tared(config)
    log = new_log(options.out, setup.test.name)
    with contextlib.ExitStack() as stack:
        host: RealtimeHost = stack.enter_context(made_as("host", RealtimeHost)())
        context = assembly.base_context(config)
        context["loop_core"] = host.core
        control: StandControl | None = None
        of_unit: list[Port] = []
        interrupts.look()
        if begin is None:
            with interrupts.not_passed_on():
                tables, control, of_unit = stack.enter_context(stand_of(config, context, host, options.stand))
            by_table = assembly.devices(context, tables)
        else:
            by_table = {"virtual": assembly.simulated_port(config, context)}
        devices = [*by_table.values(), *of_unit]
        stack.enter_context(opened_in_order(devices))
        there = who_is_there(config, by_table, hardware) if begin is None else {}
        for device in devices:
            interrupts.look()
            if hasattr(device, "measure"):
                with of_device(device):
                    device.measure()  # what the delay ledger wants to know of it
        before = None if begin is None else begin.test.context
        logged: Context | None = None if before is None else {"delays": before["delays"], "sensor_scale": before["sensor_scale"]}
        test = assembly.live(config, context, devices, priority=host.priority, cpu=host.core, logged=logged)
        if begin is not None:
            take_over(begin, test)
        late = [f"delay not known, counted as 0: {one}" for one in test.ledger.unknown if in_air]
        for note in late:
            _say(options, note)
        prediction = _foreseen(config, test, options)
        facts = header(test, log.parent.name, "live", host.facts() | ({} if begin is None else {"stand": IN_PROCESS}), prediction)
        if begin is not None:
            begin.tell(facts)
        facts.devices = there
        of_devices = [note for device in devices for note in getattr(device, "notes", ())]
        facts.notes.extend([*foreseen, *late, *_permitted(prediction, options), *of_devices])
        if options.predictions:  # the report lays the first beside the run
            facts.prediction = {**facts.prediction, "log": str(Path(options.predictions[0]).absolute())}
        interrupts.look()
        with unless_begun(log):
            with folder_of(log), interrupts.not_passed_on():
                desk = Path(options.desk) if options.desk else log.with_name("desk.json")  # over a restart of the bus
                if not options.desk:
                    stack.callback(desk.unlink, missing_ok=True)
                settings = _telemetry_settings(test, log, host, control, str(desk.absolute()), repeatable=not hardware)
                if begin is not None and begin.checkpoint is not None:
                    settings.checkpoint = beginning(begin, test)
                telemetry = TelemetryProcess.start(test.block.fd, settings, facts)
            stack.callback(telemetry.kill)
            interrupts.look()
            for line in host.missing:
                _say(options, f"not real time: {line}")
            bus, commands = (telemetry.endpoints.get(f"{name}_address", "-") for name in ("telemetry", "command"))
            _say(options, f"log {log}   bus {bus}   commands {commands}")
            if hardware and setup.stages["guidance"].keys.get("auto_start") is False:
                command = f"hil-server command start --address {commands}"
                _say(options, f"parked, waiting for the command start: {command}")
            watch, wish = RecordWatch(telemetry, test.block), Wish(test.block)
            recoverer = Recoverer(test.block, devices, setup.stages["safety"].values.get("recover_limit_s", math.inf))
            stack.callback(recoverer.end)
            if begin is not None:
                hold(test, lambda text: _say(options, text))
            interrupts.look()
            presses = stack.enter_context(interrupts.counted())
            powered = contextlib.ExitStack()
            stack.callback(powered.close)
            powered.enter_context(begun(devices))
            powered.callback(recoverer.break_off)
        interrupts.remains(f"the loop has ended, the log is complete: {log}")
        stopper = Stopper(test, presses)
        try:
            with powered, _loop(test, stopper) as thread:
                show = Progress(test, options.quiet)
                recorded = True
                while thread.is_alive():
                    test.block.heartbeat()
                    if recorded and watch.look():
                        recorded = False
                        _end_without_record(test, watch.reason)
                    if wish.look():
                        test.block.request_stop()
                    stopper.look()
                    recoverer.look()
                    show.update()
                    time.sleep(0.02)
                show.end()
        except BaseException as error:
            # the platform stands by now: what it did is kept
            failed = f"the supervisor failed: {type(error).__name__}: {error}"
            _close_record(telemetry, test.line.clock.facts() | {"exit_code": InternalError.exit_code, "failed": failed}, "")
            raise
        watch.look()
        recoverer.look()
        clock = test.line.clock.facts()
        lost = _own_facts(test, recoverer.stood) if watch.reason else {}
        left = {"end": lost["end"], "exit_code": lost["exit_code"], "record_lost": watch.reason} if lost else {}
        if wish.asked is not None and not lost:
            left = {"end": "again", "exit_code": 0}
        undone = {"not_confirmed": found} if (found := not_confirmed(devices)) else {}
        closed = _close_record(telemetry, clock | {"devices": counters(devices)} | left | undone, watch.reason)
    extra = {k: clock[k] for k in ("mode", "page_faults", "involuntary_switches", "late_ticks", "grid") if k in clock}
    extra |= undone | {"complete": closed["complete"], "overflow": test.block.overflow, "record_lost": "; ".join(closed["reasons"])}
    summary = _conclude(log, options, extra if closed["complete"] else extra | _own_facts(test, recoverer.stood), facts, presses.count)
    again = wish.asked is not None and closed["complete"] and not summary["interrupted"]
    return summary | ({"again": wish.asked} if again else {})


def _end_without_record(test: Assembly, reason: str) -> None:
    """A run that cannot be recorded ends: the platform returns to its home position, or trips, as configured."""
    trip = test.config.setup.telemetry.on_record_lost == "trip"
    test.block.push_command(CODES["command"]["record_lost"], (float(trip),), source=1)
    logger.error("\nrecord lost: %s: %s", reason, "trip" if trip else "parking the platform")


def _close_record(telemetry: "TelemetryProcess", facts: Document, lost: str) -> Document:
    """What the telemetry process says of the log at its end (`complete`, `reasons`); when it says nothing any more, what the server knows.
    lost: why the record was lost during the run, empty while it was not."""
    try:
        closed = telemetry.finish(facts, timeout_s=15.0 if lost else 60.0)
    except InternalError as error:
        return {"complete": False, "reasons": [lost or str(error)]}
    reasons = closed["reasons"]
    return {"complete": not (lost or reasons), "reasons": reasons if not lost or lost in reasons else [lost, *reasons]}


def _own_facts(test: Assembly, stood: int) -> Document:
    """How a run ended whose log may not reach to its end: from the loop's last sample. stood: the faults of those before that the server
    has seen, which a recovery may have cleared."""
    last = test.line.sample[0]
    ended = "tripped" if last["end_cause"] == CODES["end_cause"]["tripped"] else "record_lost"
    names = [name for name, mask, severity, *_ in FAULTS if severity != "note" and (stood | int(last["faults"])) & mask]
    return {"end": ended, "exit_code": 3, "ticks_run": int(last["tick"]) + 1 - int(last["missed_total"]), "faults_stood": names}


def tared(config: TestConfig) -> TestConfig:
    """The test with a tare of LIVE_TARE_S before the approach, where its wrench path can take one and the test does not give it."""
    wrench = config.setup.stages["wrench"]
    if "tare_s" in wrench.keys or "tare_s" not in {p.key for p in registry.part(wrench.role, wrench.name).PARAMETERS}:
        return config
    return replace(config, document={**config.document, "wrench": {**config.document["wrench"], "tare_s": LIVE_TARE_S}})


def _in_air(config: TestConfig) -> bool:
    """Whether the stand feels no contact in this run: its loop is never closed, or its platform stands still while the crafts fly."""
    stages = config.setup.stages
    guidance = stages["guidance"]
    never_closed = getattr(registry.part(guidance.role, guidance.name), "IN_AIR", False)
    return bool(never_closed or stages["setpoint_kinematics"].keys.get("crafts_only"))


def _foreseen(config: TestConfig, test: Assembly, options: Options) -> "Prediction | None":
    """The prediction for the line of this run, which its log carries and its report shows beside what was measured; None for a run in
    air."""
    from hil_server.predict.prediction import predict

    if _in_air(config):
        return None
    with interrupts.heard(), working("prediction", options.quiet) as done:
        found: Prediction = made_as("predict", predict)(config, test, done)
        return found


def _delays_known(config: TestConfig, options: Options) -> list[str]:
    """Notes for the log of delays that count as 0 because nothing gives them. Raises ConfigurationError for them, unless forced: whatever
    is judged of the contact is judged with the sum of the delays."""
    unknown = config.setup.stand.unknown_delays
    if unknown and not options.force:
        raise ConfigurationError(f"{config.paths['stand']}: not armed, a delay is not known: {one}; write it into the stand file "
                                 "(--force runs all the same and counts it as 0)" for one in unknown)  # fmt: skip
    return [f"{FORCED}, delay not known, counted as 0: {one}" for one in unknown]


def _permitted(found: "Prediction | None", options: Options) -> list[str]:
    """Refuses to arm when the contact would leave the band, unless forced, which is logged. Raises VerdictError."""
    if found is None or found.within:
        return []
    if not options.force:
        raise VerdictError(f"not armed: {found.verdict()} (hil-server predict shows why; --force runs it anyway)")
    _say(options, f"forced: {found.verdict()}")
    return [f"{FORCED} against the prediction: {found.verdict()}"]


def _telemetry_settings(
    test: Assembly, log: Path, host: "RealtimeHost", control: "StandControl | None", desk: str, repeatable: bool
) -> "TelemetrySettings":
    """repeatable: the flight may be asked for again, since no machine moves.
    control: of the virtual stand's process, which acts on commands beside the line's parts; None for hardware."""
    import os

    from hil_server.bus.settings import TelemetrySettings

    others = sorted(os.sched_getaffinity(0) - {host.core})
    commands = test.commands | ({} if control is None else taken_by([control])) | ({"again": Command("again")} if repeatable else {})
    return TelemetrySettings.from_table(
        test.config.document["telemetry"], str(log), cores=others, journal=str(log.with_name("commands.jsonl").absolute()), desk=desk,
        stand_control=None if control is None else control.address,
        late={"fd": test.line.clock.late.fd, "core": host.core} if host.watched else None,
        commands={name: [command.phases, command.numbers, command.names, command.targets] for name, command in commands.items()},
    )  # fmt: skip


@contextlib.contextmanager
def _loop(test: Assembly, stopper: Stopper) -> Iterator[threading.Thread]:
    """The loop on a thread of its own. Leaving this block early, as by an error of the supervisor, leads the platform home first."""
    thread = threading.Thread(target=test.line.run, name="loop")
    test.block.heartbeat()
    thread.start()
    try:
        yield thread
    finally:
        if thread.is_alive():
            _lead_home(test, thread, stopper)


def _lead_home(test: Assembly, thread: threading.Thread, stopper: Stopper) -> None:
    """Parks the platform, trips where that takes too long, and ends the loop once the setpoints rest; presses count meanwhile."""
    began, commands = time.monotonic(), [(0.0, "park"), (HOME_WITHIN_S, "abort")]
    while thread.is_alive():
        test.block.heartbeat()
        gone = time.monotonic() - began
        if commands and gone >= commands[0][0]:
            with contextlib.suppress(BufferError):  # the loop takes one a tick: the next look finds room
                test.block.push_command(CODES["command"][commands[0][1]], source=1)
                commands.pop(0)
        stopper.look()
        if gone > HOME_WITHIN_S + REST_WITHIN_S or (not commands and stopper.resting()):
            test.block.request_stop()
        thread.join(0.02)


# ---------------------------------------------------------------------------------------------------------- what both do


def _conclude(path: Path, options: Options, extra: Document, header: LogHeader, presses: int) -> Document:
    """Summary out of the log itself, and the report. Of a log that is lost: out of what the server knows. presses: of Ctrl-C while the loop
    ran; one more ends the making of the report, which is not made after three. `interrupted` is whether there were any; the exit
    code is then that of Ctrl-C, unless the record is lost, drives do not confirm that they are off, or something else than the
    operator's stop has tripped the run."""
    from hil_server.judge.faults import STOP
    from hil_server.judge.run import Run
    from hil_server.judge.summary import summarise

    lost = bool(extra.get("record_lost"))
    try:
        log = read_log(path)
    except LogError as error:
        if not lost:
            raise
        log = Log(path, header, np.empty(0, record_dtype(header.aux_count)), {}, [str(error)])
    run = Run(log)
    found = summarise(run)
    more = [name for name in extra.pop("faults_stood", ()) if name not in found.faults]
    server_knows = ("mode", "complete", "overflow", "end", "exit_code", "record_lost", "not_confirmed")
    known = {key: extra[key] for key in server_knows if key in extra}
    found = replace(found, **known, log=str(path), faults=[*found.faults, *more])
    summary = found.as_json() | extra | {"report": None}
    if options.report and presses < ENOUGH:
        try:
            with interrupts.heard():
                summary["report"] = _report(path, run, found, lost, options)
        except KeyboardInterrupt:
            _say(options, f"no report: hil-server report {path} makes it")
    presses += interrupts.stands()
    interrupts.answer()
    summary["interrupted"] = bool(presses)
    if presses and not lost and not found.not_confirmed and OPERATOR_STOP.issuperset(name for name in summary["faults"] if name in STOP):
        summary["exit_code"] = INTERRUPTED
    return summary


def _report(path: Path, run: "Run", summary: "Summary", lost: bool, options: Options) -> str | None:
    """The page of the run; None, with a message, if it cannot be written: the run and its log are kept."""
    from hil_server.report.run_page import make_report

    try:
        with working("report", options.quiet) as done:
            return str(make_report(path, path.parent, run, summary, done=done))
    except HilError as error:
        if not lost and not isinstance(error, UsageError):
            raise
        logger.warning("no report: %s; hil-server report %s --out DIR writes it to another folder", error, path)
        return None


def _say(options: Options, text: str) -> None:
    if not options.quiet:
        logger.info(text)
