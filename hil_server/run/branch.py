"""A logged run continues from one of its ticks: `hil-server simulate --from LOG@TIME [--set KEY=VALUE]`.

* TIME is a run time in s, or an event and what is to be added to it: `contact-30s`, `capture-5s`, `trip-2s`, `end-1s`, a phase
  (`approach`).
* Of a simulation the line is restored to the nearest checkpoint at or before TIME and run on to it with the recorded inputs (commands,
  hand controllers, clock); without a checkpoint of this build, from the start. What it computes on the way has to be what the log says, by
  bytes, or nothing continues from it. What follows is then what would have followed: the same bytes.
* Of a live run the stages are run from the start with the recorded inputs, and are as they were. The stand is not: its place is taken by
  the one in software, which has followed the recorded set points all the way. `Resumed.lost` names what that leaves out.
* `--set` applies from TIME on. A part whose state has the same size keeps it and has the new constants; one without memory worth keeping
  starts again and is named; where neither is possible, this says why. Of a craft with other masses poses and rates stay, its momenta
  are rebuilt; what only the start of a run reads, as the mode of a joint, is refused.

The log of the new run begins at TIME with a checkpoint and the line's sample; its header says where it comes from (`branch`).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drivers.replayed.log_port import GivenCommands, LogPort
from hil_server.config import TestConfig, crafts
from hil_server.config.loader import VEHICLES
from hil_server.errors import ConfigurationError, UsageError, VerdictError
from hil_server.host.build import build_id
from hil_server.line import assembly
from hil_server.line.assembly import Assembly
from hil_server.line.checkpoints import put_back, same_sample, take
from hil_server.line.run_header import configuration
from hil_server.log.checkpoint import Checkpoint, places
from hil_server.log.format import LogError
from hil_server.log.header import LogHeader
from hil_server.log.reader import Log, read_log
from hil_server.roles import Port
from hil_server.run import replay
from hil_server.values import Document
from rt_kernels.layout import CODES
from rt_kernels.loop import LoopLine
from rt_kernels.stages import STAGE_ROLES
from rt_kernels.tuning import Tuning

WHEN = re.compile(r"(?:(?P<event>[a-z][a-z_]*)|(?P<time>\d+(?:\.\d*)?) ?s?)(?:(?P<sign>[+-])(?P<offset>\d+(?:\.\d*)?) ?s?)?")
# parts whose memory is short: they may be reset in the middle of a run
RESETTABLE = ("forward_kinematics", "wrench", "control", "compensation")
# what a run begins with, and has no effect later
BEGINNING = ("initial_conditions", "orbit")
IN_PROCESS = "in process"  # fact `stand` of a live run whose stand is a part of its own line
FILES = ("test.stand", "test.mechanism", "test.active_vehicle", "test.target_vehicle")
LOST_OF_A_LIVE_RUN = (
    "the stand: in its place the one in software has followed the recorded set points from the start (drives, platform, docking unit, "
    "sensor's noise and delay are those of its model)"
)
NO_CHECKPOINT = "the new log has no checkpoint at its beginning and cannot be replayed"


@dataclass
class Resumed:
    """A line that continues. test: the assembly, about to compute `tick`; facts: of the header of its log; checkpoint: of that tick, None
    where a part cannot give its state; states: constants and initial states of the stages, as a log's header keeps them; lost: what could
    not be restored."""

    test: Assembly
    log: Log
    tick: int
    facts: Document
    checkpoint: Checkpoint | None
    states: dict[str, bytes]
    lost: list[str] = field(default_factory=list)

    @property
    def time_s(self) -> float:
        """Run time of the tick that comes next, s."""
        return self.tick * self.test.period_ns * 1e-9

    def tell(self, header: LogHeader) -> None:
        """Puts into the header of the new log where it continues from."""
        header.branch, header.states = self.facts, self.states
        header.notes.append(
            f"continues from {self.facts['run']} at {self.time_s:.3f} s" + "".join(f", --set {s}" for s in self.facts["set"])
        )
        header.notes.extend(f"not restored: {what}" for what in self.lost)
        for key in ("changed", "reset"):
            if self.facts[key]:
                header.notes.append(f"{key} there: {', '.join(self.facts[key])}")


def split(text: str) -> tuple[Path, str]:
    """File and time of LOG@TIME. Raises UsageError."""
    file, at, when = text.rpartition("@")
    if not at or not file or not WHEN.fullmatch(when.strip()):
        raise UsageError(f"{text!r} is not LOG@TIME, as runs/x/run.mcap@12.5 or runs/x/run.mcap@contact-30s")
    path = Path(file)
    return (path / "run.mcap" if path.is_dir() else path), when.strip()


def moment(log: Log, when: str) -> int:
    """The tick that comes first at or after this time. Raises UsageError for an event that the log does not have, or a time outside."""
    found = WHEN.fullmatch(when)
    if found is None:
        raise UsageError(f"{when!r} is no time: seconds, or an event and an offset, as contact-30s")
    if not log.ticks:
        raise UsageError(f"{log.path}: the log has no ticks")
    event = found["event"]
    time_s = float(found["time"]) if event is None else event_time(log, event)
    offset = float(found["offset"] or 0.0)
    wanted = time_s + (-offset if found["sign"] == "-" else offset)
    period_ns = log.header.period_ns
    tick = int(np.ceil(round(wanted * 1e9) / period_ns - 1e-9))
    first, last = int(log.header.branch.get("tick", 0)), int(log.records["tick"][-1])
    if not first <= tick <= last:
        raise UsageError(
            f"{log.path}: {when} is {wanted:.3f} s, the run goes from {first * period_ns * 1e-9:.3f} s to {last * period_ns * 1e-9:.3f} s"
        )
    return tick


def event_time(log: Log, event: str) -> float:
    """Run time of an event: contact (the first), capture, trip, end, or the beginning of a phase. Raises UsageError where there is none."""
    r = log.records
    if event in ("contact", "capture"):
        time_s = float(r["first_contact_time" if event == "contact" else "capture_time"][-1])
        if time_s >= 0.0:
            return time_s
        raise UsageError(f"{log.path}: there is no {'first contact' if event == 'contact' else 'capture'} in this run")
    if event == "end":
        return float(log.time_s[-1])
    if event == "trip":
        where = np.flatnonzero(r["end_cause"] == CODES["end_cause"]["tripped"])
    elif event in CODES["phase"]:
        where = np.flatnonzero(r["phase"] == CODES["phase"][event])
    else:
        there = dict.fromkeys(("contact", "capture", "trip", "end", *CODES["phase"]))
        raise UsageError(f"{log.path}: {event!r} is no event; there are: {', '.join(there)}")
    if not len(where):
        raise UsageError(f"{log.path}: there is no {event} in this run")
    return float(log.time_s[where[0]])


def resumed(text: str, overrides: tuple[str, ...] = (), config: str | None = None) -> Resumed:
    """The line of LOG@TIME, with overrides from there on. config: a test file named beside it, which is refused. Raises UsageError,
    ConfigurationError, LogError; VerdictError where the log is not what this program computes."""
    if config:
        raise UsageError(f"--from: the log holds the configuration; {config} cannot be given too (--set changes single keys)")
    path, when = split(text)
    log = read_log(path)
    return at_tick(log, moment(log, when), overrides)


def at_tick(log: Log, tick: int, overrides: tuple[str, ...] = ()) -> Resumed:
    """The line of the log about to compute this tick, with overrides from there on. Raises as `resumed` does."""
    if log.absent is not None:
        raise UsageError(f"{log.path}: the log is of an earlier table of channels: simulate its test again and continue from that log")
    if log.header.mode not in ("simulation", "live"):
        raise UsageError(f"{log.path}: a run of the kind {log.header.mode or 'unknown'!r} has no stand to continue with")
    live = log.header.mode == "live" and log.header.host.get("stand") != IN_PROCESS
    config = configuration(log)
    test, how = _live_again(log, config, tick) if live else _simulated_again(log, config, tick)
    facts: Document = {
        "run": log.header.run_id, "log": str(log.path.absolute()), "tick": tick, "time_s": tick * test.period_ns * 1e-9,
        "set": [], "way": how, "reset": [], "changed": [],
    }  # fmt: skip
    begin = Resumed(test, log, tick, facts, None, dict(log.header.states), [LOST_OF_A_LIVE_RUN] if live else [])
    return changed(begin, overrides) if overrides else _with_checkpoint(begin)


def changed(begin: Resumed, overrides: tuple[str, ...], config: TestConfig | None = None) -> Resumed:
    """The same tick with overrides from there on; `begin` stays as it is. config: the configuration with the overrides where it says more
    than the log does (requirements). Raises as `resumed` does."""
    facts, states = begin.facts | {"set": list(overrides), "reset": [], "changed": []}, dict(begin.states)
    test = _changed(begin.log, begin.test, config or configuration(begin.log, overrides), states, facts)
    lost = [what for what in begin.lost if not what.startswith(NO_CHECKPOINT)]
    return _with_checkpoint(Resumed(test, begin.log, begin.tick, facts, None, states, lost))


def _with_checkpoint(begin: Resumed) -> Resumed:
    """With the checkpoint of its tick, or the reason why there is none."""
    try:
        begin.checkpoint = take(begin.test, build_id(), "branch")
    except ValueError as error:
        begin.lost.append(f"{NO_CHECKPOINT}: {error}")
    begin.facts["lost"] = begin.lost
    return begin


# ----------------------------------------------------------------------------------------------------------- up to the tick


def _simulated_again(log: Log, config: TestConfig, tick: int) -> tuple[Assembly, str]:
    """The whole line of a simulation about to compute `tick`, and in words from where it was run."""
    test = _from_header(log, config, tick)
    way = "from the start"
    own = build_id()
    for place in reversed([p for p in places(log.path) if p.time_ns <= tick * log.header.period_ns]):
        checkpoint = place.read()
        if checkpoint.build_id != own and not log.header.branch:
            way = f"from the start: its checkpoints are of build {checkpoint.build_id}, this is {own}"
            break
        if checkpoint.build_id != own:
            raise UsageError(f"{log.path}: continues another run by a checkpoint of build {checkpoint.build_id}, this is {own}: "
                             "continue from that run again")  # fmt: skip
        try:
            put_back(checkpoint, test)
        except ValueError as error:
            raise LogError(f"{log.path}: checkpoint at {place.time_ns * 1e-9:.3f} s cannot be restored: {error}") from None
        way = f"from the checkpoint at {place.time_ns * 1e-9:.3f} s ({checkpoint.cause})"
        break
    else:
        if log.header.branch:
            raise LogError(f"{log.path}: the log continues another run and its checkpoint at the beginning is lost")
    _run_on(log, test, tick, thinned=config.setup.telemetry.log_every > 1)
    return test, way


def _from_header(log: Log, config: TestConfig, tick: int) -> Assembly:
    """The line before its first tick, with the constants of the log, and with its commands up to `tick`."""
    commands = log.records[(log.records["command_code"] != 0) & (log.records["tick"] < tick)]
    test = assembly.simulation(config, replay.calibration(log), commands)
    if test.block.aux_count != log.header.aux_count and log.header.mode == "simulation":
        raise ConfigurationError(f"{log.path}: {log.header.aux_count} auxiliary scalars, its configuration makes {test.block.aux_count}")
    for role, part in test.line.stages.items():
        replay.put_constants(log, role, part)
    test.line.sample = replay.initial_sample(log)
    return test


def _run_on(log: Log, test: Assembly, tick: int, thinned: bool) -> None:
    """Runs the line on to before `tick` and holds it against the log. Raises VerdictError where they differ."""
    clock = test.line.clock
    if thinned:
        # a record in between is what can be looked at; inputs that the configuration does not have are not in such a log
        before = log.records[log.records["tick"] < tick]
        at = max(clock.tick, int(before["tick"][-1]) + 1 if len(before) else 0)
        _advance(test, at, max(0, at - clock.tick))
        if len(before) and int(before["tick"][-1]) == at - 1:
            _hold_against(log, test, before[-1])
        _advance(test, tick, tick - at)
        return
    first = clock.tick
    if tick > first:
        records = _records(log, first, tick)
        feed = LogPort(records)
        _advance(test, tick, len(records), feed)
        if feed.first is not None:
            raise VerdictError(_differs(log, int(records["tick"][feed.first])))
    if tick == 0 or tick == log.header.branch.get("tick"):
        return
    i = int(np.searchsorted(log.records["tick"], tick)) - 1
    if i < 0 or any(a <= tick - 1 <= b for a, b in log.missing()):
        raise LogError(f"{log.path}: tick {tick - 1} is missing from the log: nothing to hold the line against")
    _hold_against(log, test, log.records[i])  # of the tick before, or where the loop has skipped that one, of the last that it computed


def _records(log: Log, first: int, tick: int) -> np.ndarray:
    """The records of ticks first ... tick - 1, every one. Raises LogError where one is missing or damaged."""
    ticks = log.records["tick"]
    part: np.ndarray = log.records[np.searchsorted(ticks, first) : np.searchsorted(ticks, tick)]
    gaps = [(a, b) for a, b in log.missing() if b >= first and a < tick]
    if gaps or not len(part):
        raise LogError(f"{log.path}: ticks {gaps[0][0] if gaps else first} to {gaps[0][1] if gaps else tick - 1} are missing from the log")
    return part


def _advance(test: Assembly, tick: int, steps: int, feed: Port | None = None, behind: Port | None = None) -> None:
    """The parts of the line up to before `tick`, in so many steps (a live run may have skipped ticks), without its ring. feed: port of
    recorded inputs before the stand, behind: after it."""
    line = test.line
    clock = assembly.simulation_clock(period_ns=test.period_ns, duration_ns=tick * test.period_ns)
    clock.begin_at(line.clock.tick)
    clock.extend(steps)
    commands, *stand = line.ports
    ports = [commands, *([feed] if feed is not None else []), *stand, *([behind] if behind is not None else [])]
    tuning = getattr(line, "tuning", None)
    helper = LoopLine(clock, ports, line.stages, None, *([] if tuning is None else [tuning]))
    own = len(line.aux)
    ports_aux = sum(channel.count for port in line.ports for channel in port.AUX)
    helper.sample = line.sample
    helper.aux[:ports_aux] = line.aux[:ports_aux]
    helper.aux[len(helper.aux) - (own - ports_aux) :] = line.aux[ports_aux:]
    helper.run()
    line.sample = helper.sample
    line.aux[:ports_aux] = helper.aux[:ports_aux]
    line.aux[ports_aux:] = helper.aux[len(helper.aux) - (own - ports_aux) :]
    line.clock.begin_at(tick)


def _hold_against(log: Log, test: Assembly, record: np.ndarray) -> None:
    if not same_sample(test, record):
        raise VerdictError(_differs(log, int(record["tick"])))


def _differs(log: Log, tick: int) -> str:
    return (
        f"{log.path}: this program (build {build_id()}) computes another tick {tick} than the log of build {log.header.build_id} has: it "
        "cannot continue from it. hil-server replay LOG --verify names the channel; simulate the test again and continue from that log"
    )


def _live_again(log: Log, config: TestConfig, tick: int) -> tuple[Assembly, str]:
    """The stages of a live run as they were before `tick`, and beside them the stand in software that has followed the recorded set
    points."""
    test = assembly.simulation(config, replay.calibration(log))
    records = _records(log, int(log.header.branch.get("tick", 0)), tick)
    line, port = replay.build(log, (), (0, len(records)))
    inputs = port.channels
    whole = LoopLine(test.line.clock, test.ports, line.stages, test.context["block"], *_tuning_of(line))
    test.line = whole
    whole.sample = line.sample
    stages_aux = sum(channel.count for part in line.stages.values() for channel in part.AUX)
    if stages_aux:
        whole.aux[len(whole.aux) - stages_aux :] = line.aux[len(line.aux) - stages_aux :]
    if log.header.branch and (found := places(log.path)):
        try:
            put_back(found[0].read(), test)
        except ValueError as error:
            raise LogError(f"{log.path}: the checkpoint at its beginning cannot be restored: {error}") from None
    # clock and operator before the stand in software, and behind it all that the stages saw
    check = LogPort(records, inputs)
    _advance(test, tick, len(records), LogPort(records), check)
    if check.first is not None:
        raise VerdictError(_differs(log, int(records["tick"][check.first])))
    return test, "from the start, with the recorded inputs"


def _tuning_of(line: LoopLine) -> list[Tuning]:
    tuning = getattr(line, "tuning", None)
    return [] if tuning is None else [tuning]


# -------------------------------------------------------------------------------------------------------------- another way


def _changed(log: Log, base: Assembly, config: TestConfig, states: dict[str, bytes], facts: Document) -> Assembly:
    """The line with the overrides, in the state of `base`. Fills what the header is to say. Raises ConfigurationError for a change that
    cannot be made in the middle of a run."""
    keys = [one.partition("=")[0].strip() for one in facts["set"]]
    if named := [key for key in keys if key in FILES]:
        raise ConfigurationError([f"{key}: the log holds this file: change its keys (as {key.removeprefix('test.')}.KEY=VALUE), "
                                  "or simulate the other file from its start" for key in named])  # fmt: skip
    before = base.config
    faults = [f"{table}: is what the run began with; a change has no effect at {facts['time_s']:.3f} s: simulate it from its start"
              for table in BEGINNING if before.document.get(table) != config.document.get(table)]  # fmt: skip
    faults += [f"{name}.joint.{joint}.{key}: is what the run began with; a change has no effect at {facts['time_s']:.3f} s: the command "
               "joint changes it in a run, or simulate it from its start" for name in VEHICLES
               for joint, key in _begun_with(before.document.get(name), config.document.get(name))]  # fmt: skip
    rate_hz, was_hz = config.setup.test.rate_hz, before.setup.test.rate_hz
    if rate_hz != was_hz:
        faults.append(f"test.rate_hz: {rate_hz:g} Hz, limit that of the run, {was_hz:g} Hz")
    if faults:
        raise ConfigurationError(faults)
    test, plain = (assembly.simulation(one, replay.calibration(log)) for one in (config, before))
    state = base.line.snapshot()
    for role in STAGE_ROLES:
        _stage(role, base, test, plain, state, states, facts, faults)
    _ports(base, test, state, facts, faults)
    if faults:
        raise ConfigurationError(faults)
    _tuning(base, test, plain)
    test.line.sample = base.line.sample
    places_of = {name: i for i, (name, *_) in enumerate(base.line.aux_channels)}
    for i, (name, *_) in enumerate(test.line.aux_channels):
        if name in places_of:
            test.line.aux[i] = base.line.aux[places_of[name]]
    test.line.clock.begin_at(facts["tick"])
    return test


def _stage(role: str, base: Assembly, test: Assembly, plain: Assembly, state: dict[str, bytes], states: dict[str, bytes],
           facts: Document, faults: list[str]) -> None:  # fmt: skip
    """One stage into the state that it had, with its new constants where it has some."""
    part, old = test.line.stages[role], base.line.stages[role]
    fresh = part.dump()
    if type(part) is type(old) and fresh == plain.line.stages[role].dump():
        # not changed: constants and state as they are
        part.load_unchecked(old.dump())
        part.restore(state[f"stage.{role}"])
        return
    facts["changed"].append(role)
    states[role] = fresh
    if type(part) is type(old):
        vehicles = any(base.config.document[name] != test.config.document[name] for name in VEHICLES)
        take = part.keep_rates if vehicles and hasattr(part, "keep_rates") else part.restore
        try:
            take(state[f"stage.{role}"])
            return
        except ValueError:
            pass
    if role in RESETTABLE:
        facts["reset"].append(role)
        return
    was, now = (config.setup.stages[role].name for config in (base.config, test.config))
    faults.append(f"{role}: {now!r} cannot take over the state of {was!r}, nor begin without it in the middle of a run: "
                  "simulate the change from its start")  # fmt: skip


def _begun_with(before: Document | None, after: Document | None) -> list[tuple[str, str]]:
    """(joint, key) of a craft that only the start of a run reads and that differ: the mode and the place of a joint."""
    if before == after or not before or not after:
        return []
    was, now = ({one.joint: one for one in crafts.craft(table).joints} for table in (before, after))
    return [(name, key) for name in was if name in now for key in ("mode", "angle")
            if getattr(was[name], key) != getattr(now[name], key)]  # fmt: skip


def _tuning(base: Assembly, test: Assembly, plain: Assembly) -> None:
    """Parameters that were changed in the run stay changed, and continue from the value they had reached, by name; one whose own key the
    overrides set
    has that value from here on."""
    configured = {one.name: one.value for one in plain.tunables}
    there = {one.name for one in base.line.tuning.tunables}
    kept = [one.name for one in test.tunables if one.name in there and configured.get(one.name) == one.value]
    test.line.tuning.take_over(base.line.tuning, kept)


def _kind(port: object) -> type:
    """Class of a port; of one that gives logged commands, that of the port behind it."""
    return type(port.commands if isinstance(port, GivenCommands) else port)


def _ports(base: Assembly, test: Assembly, state: dict[str, bytes], facts: Document, faults: list[str]) -> None:
    """Commands and stand: their states where they fit; a docking unit that has not been touched may be another one."""
    touched = float(base.line.sample["first_contact_time"][0]) >= 0.0
    old, new = ({name: part for name, part in a.line.port_parts()} for a in (base, test))
    if base.config.document.get("commands") != test.config.document.get("commands"):
        faults.append("commands: rows of another script would all be due at once: simulate it from its start")
    for name in sorted(set(old) | set(new)):
        fits = name in old and name in new and _kind(old[name]) is _kind(new[name])
        if fits:
            try:
                new[name].restore(state[name])
                continue
            except ValueError:
                pass
        if name.endswith(".mechanism") and name in new and not touched:
            facts["reset"].append("mechanism")
            continue
        what = "mechanism: after the first contact" if name.endswith(".mechanism") else "stand: in the middle of a run"
        faults.append(f"{what} another one cannot take over the state of the one before ({name}): simulate the change from its start")
