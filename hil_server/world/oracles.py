"""What must hold of every run, whatever goes wrong in it: of its wires (OF_WIRES), also where nothing was armed, and of its log (OF_LOG).
Each says in words what did not hold, and where."""

import re
from collections.abc import Callable, Iterator

import numpy as np

from hil_server.bus.commands import ALWAYS
from hil_server.config import TestConfig
from hil_server.errors import HilError
from hil_server.judge.faults import STOP
from hil_server.line.assembly import RING_SECONDS
from hil_server.log.reader import Log, read_log
from hil_server.run.replay import replay
from hil_server.world.flight import Flight
from hil_server.world.surroundings import ROLES, WIRES
from rt_kernels.codes import fault_names
from rt_kernels.layout import BITS, CODES, FAULTS

STATE, PHASE = CODES["safety_state"], CODES["phase"]
DRIVE, SENSOR = BITS["drive_status"], BITS["sensor_status"]
SYNC, RPDO1, TPDO1, HEARTBEAT, SERVER_NODE = 0x080, 0x200, 0x180, 0x700, 127
NODE = np.uint32(0x7F)  # of an identifier
COUNTS_PER_METRE = 1e6  # of the drives of the virtual stand
BEAT_S = 1.0  # a drive of the virtual stand stops when it misses the server's heartbeat for so long
AL_OPERATIONAL, AL_ERROR = 8, 0x10
ENABLED_WORD, SWITCHED_ON, OPERATION_ENABLED, STATE_MASK = 0x0F, 0x23, 0x27, 0x6F
FRESH_PERIODS = 3.5  # a status is fresh that came within so many periods
ATTENDED_PERIODS = 3.5  # between two frames to an enabled axis
IN_PLACE = 1500  # counts from its setpoint at most is an axis that is enabled; one that sinks moves while its answer is on the way
SILENCE_S = 0.25  # of a device, in which a run that follows must have noticed it
KEPT_S = 0.8  # of the record may be on its way to the disk: a chunk, a stall of the drain, what makes room for the end
REACTS_S = 0.3  # from the moment at which the record has waited too long to what ends the run
# from the loss of a record to the end of the run, beside the time for a recovery: to brake and settle, and the way home
HOME_S, HOME_M = 6.0, 2.4
UNCOUNTED = 0  # ticks that begin or end while the keeper of the drives has their wires
TAKEN_S = 0.05  # in which a command is taken, and the operator has the reply
RECOVERY_ANSWERED_S = 4.5  # the answer to `recover` is how it went
NOT_TAKEN = ("held", "not_taken", "full", "rate")  # kinds of refusals
ACTS_S = 2.0  # after the answer a command that was not taken may come yet
START_S = 0.02  # from the loop's begin, when the events' time begins, to its first tick at the latest
SEEN_S = 0.1  # a run is judged by its end where the last event is so long before it
# injections after which motion must stop
STOPPING_FAULTS = ("drive_silent", "drive_disabled", "drive_fault", "link_silent", "sensor_silent", "signals_silent", "al_error",
                    "slave_lost", "cable_cut", "working_counter", "drive_local")  # fmt: skip
RESET = ("drive_disabled", "drive_fault")  # a recovery that is under way undoes them at once
# what a recovery begins with or without, and injections that leave nothing behind when their time is over
RECOVERABLE = ("loss", "delay", "repeat", "reorder", "inject", "clock", "command")
PASSING = ("drive_restart", "drive_silent", "drive_disabled", "drive_fault", "drive_emergency", "drive_heartbeat_lost", "drive_lost",
           "link_silent", "sensor_silent", "sensor_lost", "sensor_delay", "sensor_stale", "sensor_taken_over", "signals_silent",
           "frames_lost", "working_counter")  # fmt: skip
OVER_S = 1.5  # after that what has ended is over: a node has started again, a count of losses has run out
RECOVERED_S = 2.0  # safety.recover_limit_s where it is not given
ENOUGH = 30  # lost records: none of them would be seen by chance
HURT = re.compile("damaged|incomplete record")  # of what the reader of a log says
SENDERS = ("loop", "drives keeper", "recovery", "server")
STOP_MASK = sum(mask for _, mask, severity, *_ in FAULTS if severity == "stop")


def violations(flight: Flight, config: TestConfig) -> list[str]:
    """Everything that did not hold of this flight; empty when all did."""
    found = [f"left over: {one}" for one in flight.left]
    for look in OF_WIRES:
        found += [f"{look.__name__}: {words}" for words in look(flight, config)]
    if flight.from_start and isinstance(flight.error, HilError) and flight.ran_s == 0.0:
        return found  # a device that does not answer as it should is not armed
    if flight.error is not None:
        return [*found, f"error: {type(flight.error).__name__}: {flight.error}"]
    log = read_log(flight.log)
    for oracle in OF_LOG:
        found += [f"{oracle.__name__}: {words}" for words in oracle(flight, config, log)]
    return found


def setpoints(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """Inside stroke, rate and acceleration at every frame."""
    legs, period = config.setup.stand.parked, config.setup.test.period_ns * 1e-9
    r = log.records
    sent = r["safety_state"] != STATE["not_armed"]
    y, v = r["leg_setpoint"], r["leg_rate_setpoint"]
    if not np.isfinite(y).all():
        yield f"not finite at tick {r['tick'][~np.isfinite(y).all(axis=1)][0]}"
        return
    next_to = sent[1:] & sent[:-1] & (np.diff(r["tick"]) == r["periods"][1:])
    for name, wrong in (
        ("stroke", (sent & ((y < legs.leg_length_min - 1e-12) | (y > legs.leg_length_max + 1e-12)).any(axis=1))[1:]),
        ("rate", next_to & (np.abs(np.diff(y, axis=0)) > legs.leg_rate_max * period + 1e-9).any(axis=1)),
        ("acceleration", next_to & (np.abs(np.diff(v, axis=0)) > legs.leg_acceleration_max * period + 1e-9).any(axis=1)),
        ("own rate", next_to & (np.abs(np.diff(y, axis=0) - v[1:] * period) > 1e-9).any(axis=1)),
    ):
        if wrong.any():
            yield f"{name} at tick {r['tick'][1:][wrong][0]}, {wrong.sum()} frames"


def frames(flight: Flight, config: TestConfig) -> Iterator[str]:
    """As they leave for the drives: setpoints of an enabled axis move by no more than the rate, and no axis is enabled elsewhere than where
    it is, nor without a fresh status that says it may be."""
    period = config.setup.test.period_ns
    f = flight.of_drives
    word, counts = f["data"][:, :2].copy().view("<u2")[:, 0], _counts(f)
    most = config.setup.stand.parked.leg_rate_max * 1e-9 * period * 1e6 + 1.5
    # a flipped bit that no checksum found is believed
    flipped = {e.where for e in flight.events if e.kind == "corrupt"}
    for wire in np.unique(f["wire"]):
        here = f["wire"] == wire
        for node in np.unique(f["id"][here & (f["id"] & ~NODE == RPDO1)]) - RPDO1:
            told = here & (f["id"] == RPDO1 + node) & (f["heard"] == 0)
            on, at = word[told] == ENABLED_WORD, f["at_ns"][told]
            moved = np.abs(np.diff(counts[told].astype(np.int64)))
            if (wrong := on[1:] & on[:-1] & (moved > most)).any():
                yield f"node {node} on {WIRES[wire]}: setpoint moves by {moved[wrong].max()} counts at {_at(flight, at[1:][wrong][0])}"
            heard = np.flatnonzero(here & (f["id"] == TPDO1 + node) & (f["heard"] == 1) & (f["length"] == 6))
            for k in np.flatnonzero(on & ~np.concatenate([[False], on[:-1]])):
                before = np.searchsorted(f["at_ns"][heard], at[k], side="right") - 1
                if before < 0:
                    yield f"node {node} on {WIRES[wire]}: enabled before it answered"
                    continue
                age, last = at[k] - f["at_ns"][heard[before]], word[heard[before]] & STATE_MASK
                if age > FRESH_PERIODS * period:
                    yield f"node {node} on {WIRES[wire]}: enabled at {_at(flight, at[k])}, its status is {1e-6 * age:.1f} ms old"
                elif last not in (SWITCHED_ON, OPERATION_ENABLED) and WIRES[wire] not in flipped:
                    yield f"node {node} on {WIRES[wire]}: enabled at {_at(flight, at[k])} in state 0x{last:02X}"
                elif abs(gap := int(counts[told][k]) - int(counts[heard[before]])) > IN_PLACE and WIRES[wire] not in flipped:
                    yield f"node {node} on {WIRES[wire]}: enabled at {_at(flight, at[k])}, {gap} counts from where it is"


def attended(flight: Flight, config: TestConfig) -> Iterator[str]:
    """An enabled axis gets its frames from enabling to disabling, unless what sends them is stalled."""
    if any(e.kind == "stall" and e.where in SENDERS for e in flight.events):
        return
    f = flight.of_drives
    f = f[(f["heard"] == 0) & (f["id"] & ~NODE == RPDO1)]
    for wire in np.unique(f["wire"]):
        for number in np.unique(f["id"][f["wire"] == wire]):
            told = f[(f["wire"] == wire) & (f["id"] == number)]
            on = (told["data"][:-1, 0] == ENABLED_WORD) & (told["data"][:-1, 1] == 0)
            gap = np.diff(told["at_ns"]) / config.setup.test.period_ns
            if (wrong := on & (gap > ATTENDED_PERIODS)).any():
                at = told["at_ns"][:-1][wrong][0]
                yield f"node {number - RPDO1} on {WIRES[wire]}: {gap[wrong].max():.1f} periods without a frame at {_at(flight, at)}"
    # by the drives' own log, where nothing but the server can keep a frame from them
    if all(e.kind in ("command", "disk", "kill", "clock") or e.where in ("sensor", "signals") for e in flight.events):
        for axis in range(6):
            rows = flight.drives[flight.drives[:, 1] == axis]
            # the longest time that a frame ended, and the time since the newest where the drive left its state by itself
            left = rows[1:, 4][rows[:-1, 2] == OPERATION_ENABLED]
            longest = max(rows[:, 5].max(initial=0), left.max(initial=0)) / config.setup.test.period_ns
            if longest > ATTENDED_PERIODS:
                yield f"drive {axis} was enabled for {longest:.1f} periods without a frame"


def ticks(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """Between wire and log: each axis is sent its setpoint of the log in its tick, once; what it says is in the log in the tick that hears
    it, and so is that it says nothing."""
    f = flight.of_drives
    f = f[f["role"] == ROLES.index("loop")]
    gaps = np.flatnonzero(np.diff(log.records["tick"]) != log.records["periods"][1:])
    r = log.records[: gaps[0] + 1 if len(gaps) else None]
    flipped = {e.where for e in flight.events if e.kind == "corrupt"}  # what is heard of those is not what is taken
    for wire in np.unique(f["wire"]):
        here = f[f["wire"] == wire]
        on_can = (here["id"] == SYNC).any()
        # what a tick says and hears, by its place in the log: CAN: hears, then SYNC and the setpoints; EtherCAT: hears, then says
        begins = (here["heard"] == 0) & (here["id"] == (SYNC if on_can else RPDO1 + 1))
        if len(r) and r["tick"][0] > 0:  # a log whose first chunk is lost
            logged = here["at_ns"] - here["at_ns"][begins][0] > r["time_ns"][0] - config.setup.test.period_ns // 2
            first = np.flatnonzero(begins & logged)[0]
            here, begins = here[first:], begins[first:]
        tick = np.cumsum(begins) - (here["heard"] == 0)
        count = min(int(begins.sum()), len(r))
        for node in np.unique(here["id"][here["id"] & ~NODE == RPDO1] & NODE):
            yield from _sent(here, tick, node, count, r)
            if WIRES[wire] not in flipped:
                yield from _heard(here, tick, node, count, r, on_can)
        if not on_can and WIRES[wire] not in flipped:
            yield from _al_status(here, tick, count, r)


def _sent(here: np.ndarray, tick: np.ndarray, node: int, count: int, r: np.ndarray) -> Iterator[str]:
    mine = (here["heard"] == 0) & (here["id"] == RPDO1 + node) & (tick < count)
    times = np.bincount(tick[mine], minlength=count)
    if (times != 1).any():
        yield f"node {node} is sent {times[times != 1][0]} setpoints at tick {r['tick'][np.flatnonzero(times != 1)[0]]}"
        return
    wanted = np.round(r["leg_setpoint"][:count, node - 1] * COUNTS_PER_METRE)
    off = (np.abs(_counts(here[mine]) - wanted) > 1) & (r["safety_state"][:count] != STATE["not_armed"])
    if off.any():
        yield f"node {node} is sent another setpoint than the log has at tick {r['tick'][:count][off][0]}, {off.sum()} ticks"


def _heard(here: np.ndarray, tick: np.ndarray, node: int, count: int, r: np.ndarray, on_can: bool) -> Iterator[str]:
    mine = (here["heard"] == 1) & (here["id"] == TPDO1 + node) & (here["length"] == 6) & (tick < count)
    at, word, axis = tick[mine], here[mine]["data"][:, :2].copy().view("<u2")[:, 0], node - 1
    # of several in one tick: CAN: the newest counts; EtherCAT: all answer one frame, the first counts
    taken = np.diff(at, append=count) > 0 if on_can else np.diff(at, prepend=-2) > 0
    status, names = r["drive_status"][:count, axis], r["tick"][:count]
    off = np.abs(r["measured_leg"][at[taken], axis] * COUNTS_PER_METRE - _counts(here[mine])[taken]) > 0.5
    if off.any():
        yield f"node {node} says another position than the log has at tick {names[at[taken]][off][0]}, {off.sum()} ticks"
    alone = np.bincount(at, minlength=count)[at] == 1
    off = alone & ((r["drive_device_status"][at, axis] & 0xFFFF) != word)
    if off.any():
        yield f"node {node} says another status word than the log has at tick {names[at][off][0]}, {off.sum()} ticks"
    off = (word & STATE_MASK != OPERATION_ENABLED) & (status[at] & DRIVE["not_enabled"] == 0) & (taken | on_can)
    if off.any():
        yield f"node {node} says that it is not enabled, the log not, at tick {names[at][off][0]}"
    silent = np.bincount(at, minlength=count) == 0
    silent[:1] = False  # what there is in the first tick is the keeper's
    if (wrong := silent & (status & DRIVE["lost"] == 0)).any():
        yield f"node {node} is not heard at tick {names[wrong][0]}, and not lost"


def _al_status(here: np.ndarray, tick: np.ndarray, count: int, r: np.ndarray) -> Iterator[str]:
    """What the slaves say of their AL status is in the tick that hears it, for all, and for the axis that was asked."""
    mine = (here["heard"] == 1) & (here["id"] & ~NODE == HEARTBEAT) & (tick < count)
    # of several answers in one tick the first counts
    first = np.unique(np.stack([tick[mine], here[mine]["id"]]), axis=1, return_index=True)[1]
    node, at, data = here[mine]["id"][first] & NODE, tick[mine][first], here[mine]["data"][first]
    slaves = data[node == 0, 2].max(initial=0)
    for off, bit in (
        ((node == 0) & ((data[:, 0] != AL_OPERATIONAL) | (data[:, 2] != slaves)), "bus_fault"),
        ((node >= 1) & (node <= 6) & (data[:, 0] & 0x0F != AL_OPERATIONAL), "not_enabled"),
        ((node >= 1) & (node <= 6) & (data[:, 0] & AL_ERROR != 0), "emergency"),
    ):
        axis = np.maximum(node, 1).astype(int) - 1
        # of a line without a slave there is no status: it is lost
        told = np.where((node == 0) & (data[:, 2] == 0), DRIVE["lost"] | DRIVE[bit], DRIVE[bit])
        if (off := off & (r["drive_status"][at, axis] & told == 0)).any():
            yield f"AL status 0x{data[off][0, 0]:02X} at tick {r['tick'][at[off][0]]}, and the log has no {bit}"


def beats(flight: Flight, config: TestConfig) -> Iterator[str]:
    """The drives on CAN hear that the server lives, unless what says so is stalled."""
    if any(e.kind == "stall" and e.where in SENDERS for e in flight.events):
        return
    f = flight.of_drives
    for wire in np.unique(f["wire"][f["id"] == SYNC]):
        beat = f["at_ns"][(f["wire"] == wire) & (f["heard"] == 0) & (f["id"] == HEARTBEAT + SERVER_NODE)]
        syncs = f["at_ns"][(f["wire"] == wire) & (f["heard"] == 0) & (f["id"] == SYNC)]
        gap = 1e-9 * np.diff(beat, prepend=syncs[0], append=syncs[-1])
        if (gap > BEAT_S).any():
            yield f"no heartbeat of the server on {WIRES[wire]} for {gap.max():.3f} s"


def record(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """A good verdict only with a whole record; what is called whole is."""
    whole = log.complete and not log.missing() and not log.damaged()
    if flight.summary["complete"] and not whole:
        yield f"called complete: {log.incomplete}, missing {log.missing()[:3]}"
    if flight.summary["exit_code"] == 0 and not (whole and flight.summary["complete"]):
        yield f"exit code 0 without a whole record: {log.incomplete}"
    if log.ticks and not whole and not flight.summary.get("record_lost") and flight.summary["complete"]:
        yield "record lost without a word"


def counted(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """The ticks of a log rise, and its end counts those that it has not, as the wire of the drives shows them."""
    if not log.ticks:
        return
    if (wrong := np.diff(log.records["tick"]) <= 0).any():
        yield f"tick {log.records['tick'][1:][wrong][0]} follows on {log.records['tick'][:-1][wrong][0]}"
    f = flight.of_drives
    if "lost_ticks" not in log.end:
        return
    f = f[(f["role"] == ROLES.index("loop")) & (f["wire"] == 0) & (f["heard"] == 0)]
    ran = int(((f["id"] == SYNC) if (f["id"] == SYNC).any() else (f["id"] == RPDO1 + 1)).sum())
    has, lost = log.ticks, int(log.end["lost_ticks"])
    if abs(ran - has - lost) > UNCOUNTED:
        yield f"{ran} ticks ran, the log has {has} and counts {lost} as lost"


def kept(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """What was there when the record was lost stays, and a writer that came to its end leaves a file that is whole."""
    losses = [e.from_s for e in flight.events if e.kind == "kill" or (e.kind == "disk" and e.where != "short")]
    ran_s = 1e-9 * (log.records["time_ns"][-1] if log.ticks else 0)
    least = min([*losses, flight.ran_s]) - KEPT_S
    if any(e.kind == "stall" for e in flight.events):
        return
    if ran_s < least:
        yield f"the log ends at {ran_s:.3f} s, all was well until {least + KEPT_S:.3f} s"
    if all(e.kind != "kill" for e in flight.events) and (hurt := [words for words in log.incomplete if HURT.search(words)]):
        yield f"the writer came to its end, and {hurt[0]}"


def without_record(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """A run that cannot be recorded ends at once, unless an operator holds it on its way home; where the record only waits, once half of
    what there is room for does."""
    if any(e.kind == "stall" and e.where != "telemetry" for e in flight.events):
        return
    half_s = 0.5 * RING_SECONDS + KEPT_S
    at = 1e-9 * log.records["time_ns"]
    held = any(a.reply.get("ok") and a.command == "hold" for a in flight.answers)
    keys = config.setup.stages["guidance"].values
    home_s = HOME_S + HOME_M / keys.get("speed_max_m_s", HOME_M) + keys.get("recover_s", 0.0)  # excitations have neither
    for e in flight.events:
        fails = e.kind == "disk" and e.where != "short" and e.until_s - e.from_s > KEPT_S
        from_s = max(0.0, e.from_s)  # what begins in the set-up counts from the first record
        waits = e.kind == "stall" and e.lasts_until_s - from_s > half_s
        lost_s = from_s + (half_s if waits else KEPT_S if fails else 0.0)
        if (e.kind == "kill" or fails or waits) and lost_s < flight.ran_s - 0.1:
            if flight.ran_s > lost_s + home_s and not held:
                yield f"the record ends at {e.from_s} s, the run at {flight.ran_s:.3f} s"
            given = at[log.records["command_code"] == CODES["command"]["record_lost"]]
            due_s = from_s + 0.5 * RING_SECONDS + REACTS_S
            if waits and log.ticks and due_s < at[-1] and not (given <= due_s).any():
                yield f"the record waits from {e.from_s} s on, and nothing ends the run until {due_s:.3f} s"
            if flight.summary["end"] not in ("record_lost", "tripped"):
                yield f"the record ended at {e.from_s} s, the run ended as {flight.summary['end']!r}"


def commands(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """What the desk replies is so: a command that is called taken is in the log at the tick that is named, one that is called not taken
    is not in it; and once the loop runs the desk answers in its time, unless somebody is stalled who has a part in it."""
    r = log.records
    at = 1e-9 * r["time_ns"]
    reached = {a.reply.get("tick") for a in flight.answers}
    if len(obeyed := {a.desk for a in flight.answers if a.reply.get("ok") and a.command not in ALWAYS}) > 1:
        yield f"operators {sorted(obeyed)} are obeyed, and none has left the desk"
    on_time = all(e.kind not in ("stall", "kill") for e in flight.events)
    held_up = any(e.kind == "stall" and e.where != "loop" for e in flight.events)
    for a in flight.answers:
        code, kind = CODES["command"][a.command], a.reply.get("kind")
        within = RECOVERY_ANSWERED_S if a.command == "recover" else TAKEN_S
        if on_time and 0.0 <= a.given_s < flight.ran_s - within - SEEN_S and not a.came_s <= a.given_s + within:
            yield f"{a.command} of {a.given_s:.3f} s is answered at {a.came_s:.3f} s"
        if a.reply.get("ok"):
            here = r["tick"] == a.reply["tick"]
            told = (r["command_code"] == code) & (r["command_sequence"] == a.reply["sequence"])
            if here.any() and not (here & told).any():
                yield f"{a.command} of {a.given_s:.3f} s is called taken at tick {a.reply['tick']}, and the log has it not"
            elif here.any() and a.came_s < at[here][0] - TAKEN_S:
                yield f"{a.command} of {a.given_s:.3f} s is called taken at {a.came_s:.3f} s, before its tick"
            for b in flight.answers:
                if b.command == "abort" and b.reply.get("ok") and a.given_s + SEEN_S < b.reply["t"] < a.reply["t"] and not held_up:
                    yield f"{a.command} of {a.given_s:.3f} s waited behind the abort of {b.given_s:.3f} s, and acts at {a.reply['t']:.3f} s"
        elif kind in NOT_TAKEN:
            # beside an own one of the loop's, or one of the other desk
            acts = (r["command_code"] == code) & (at > a.given_s - START_S) & (at < a.came_s + ACTS_S) & (r["command_arg"][:, 0] >= 0)
            others = [o.reply for o in flight.answers if o is not a and o.command == a.command]
            own = [reply for reply in others if not reply or reply.get("kind") == "unhandled"]
            if acts.any() and not own and not reached.issuperset(r["tick"][acts].tolist()):
                yield f"{a.command} of {a.given_s:.3f} s is called {kind}, and acts at tick {r['tick'][acts][0]}"


def end(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """Held, parked or closed: setpoints at rest."""
    if not log.ticks:
        return
    last = log.records[-1]
    if flight.summary["complete"] and (np.abs(last["leg_rate_setpoint"]) > 1e-4).any() and int(last["safety_state"]) in (0, 1):
        yield f"the last setpoints move, {np.abs(last['leg_rate_setpoint']).max():.3g} m/s"


def power(flight: Flight, config: TestConfig) -> Iterator[str]:
    """At the end the drives are without power where their wires let them know."""
    ended_s = flight.ran_s or flight.world_s
    # a stall begins when its task is due: the keeper of the drives sleeps while the loop has the buses
    if all(e.kind != "stall" or e.where != "drives keeper" and e.lasts_until_s < ended_s for e in flight.events):
        f = flight.of_drives
        f = f[(f["heard"] == 0) & (f["id"] & ~NODE == RPDO1)]
        places, newest = np.unique((f["wire"].astype(int) << 7 | f["id"] & NODE)[::-1], return_index=True)
        for place, k in zip(places, len(f) - 1 - newest, strict=True):
            if f["data"][k, 0] == ENABLED_WORD and f["data"][k, 1] == 0:
                yield f"the last that node {place & 0x7F} on {WIRES[place >> 7]} gets leaves it enabled"
    harmless = ("command", "disk", "kill", "clock", "repeat")
    if all(e.kind in harmless or e.lasts_until_s < ended_s - SEEN_S for e in flight.events):
        for axis in range(6):
            rows = flight.drives[flight.drives[:, 1] == axis]
            if len(rows) and rows[-1, 2] == OPERATION_ENABLED:
                yield f"drive {axis} is enabled after the end"


def stopping(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """A trip comes to rest within the time that braking takes."""
    limits = config.setup.stages["safety"].keys
    within = config.setup.stand.parked.leg_rate_max / limits.get("braking_m_s2", 4.0) + 0.02
    r = log.records
    slows = r["safety_state"] == STATE["decelerating"]
    edges = np.flatnonzero(np.diff(slows.astype(np.int8), prepend=0, append=0))
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        took = (b - a) * config.setup.test.period_ns * 1e-9
        if took > within:
            yield f"the trip of tick {r['tick'][a]} took {took:.3f} s to come to rest, limit {within:.3f}"
    standing = (r["faults"] & STOP_MASK != 0) & (r["safety_state"] == STATE["following"])
    if standing.any():
        yield f"a stop fault stands while the setpoints follow, tick {r['tick'][standing][0]}"


def recoveries(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """A recovery that begins when all that went wrong is over for good lets motion go, the second as the first."""
    r = log.records
    at = 1e-9 * r["time_ns"]
    begun = np.flatnonzero(np.diff((r["safety_state"] == STATE["recovering"]).astype(np.int8), prepend=0) == 1)
    limits = config.setup.stages["safety"].keys
    within = float(limits.get("recover_limit_s", RECOVERED_S)) + SEEN_S  # type: ignore[arg-type]
    for k in begun:
        till = at[k] + within
        harm = [e for e in flight.events if e.where not in ("recover", "short")]
        if till > at[-1] or any(e.kind not in RECOVERABLE or (e.kind == "inject" and e.where.partition(":")[0] not in PASSING)
                                or at[k] - OVER_S < e.lasts_until_s and e.from_s < till for e in harm):  # fmt: skip
            continue
        if STATE["following"] not in r["safety_state"][(at > at[k]) & (at < till)]:
            yield f"the recovery of {at[k]:.3f} s fails, and nothing is wrong any more: {fault_names(int(r['faults'][at < till][-1]))}"


def silence(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """A device that is not heard is noticed."""
    r = log.records
    at = r["time_ns"] * 1e-9
    for e in flight.events:
        injected = e.kind == "inject" and e.where.partition(":")[0] in STOPPING_FAULTS
        lost = e.kind == "loss" and e.share == 1.0 and e.direction != 0
        if not (injected or lost) or e.until_s - e.from_s < SILENCE_S:
            continue
        during = (at > e.from_s) & (at < e.until_s)
        # the set-up leads up what it resets, as a recovery does
        if e.where.partition(":")[0] in RESET and (e.from_s < 0.0 or (r["safety_state"][during] == STATE["recovering"]).any()):
            continue
        here = during & (at > max(0.0, e.from_s) + SILENCE_S)
        if (r["safety_state"][here] == STATE["following"]).any() and (r["phase"][here] < PHASE["ended"]).any():
            yield f"{e.where} is silent from {e.from_s} s, and the setpoints follow at {at[here][0]:.3f} s"


def losses(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """What the sensor's wire loses is in its status, where nothing else happens to the sensor."""
    about = [e for e in flight.events if e.where.startswith("sensor") or e.kind in ("stall", "disk", "kill")]
    r = log.records
    for e in about if len(about) == 1 else ():
        if e.kind != "loss" or e.direction == 0 or not log.ticks:
            continue
        at = 1e-9 * r["time_ns"]
        here = (at > e.from_s - START_S) & (at < e.until_s + START_S)
        # a record at least comes in every tick
        if e.share * (min(e.until_s, at[-1]) - e.from_s) * 1e9 > ENOUGH * config.setup.test.period_ns:
            if not (r["wrench_status"][here] & (SENSOR["lost"] | SENSOR["no_data"])).any():
                yield f"records of the sensor are lost from {e.from_s} s on, and its status does not say so"


def unprovoked(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """Nothing trips before anything went wrong."""
    first_s = min((e.from_s for e in flight.events), default=np.inf) - START_S
    r = log.records[1e-9 * log.records["time_ns"] < first_s]
    if len(found := r[r["faults"] & STOP_MASK != 0]):
        yield f"{fault_names(int(found['faults'][0]))} at {1e-9 * found['time_ns'][0]:.3f} s, before anything went wrong"


def causes(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """A run that tripped names its faults; one that names none did not trip."""
    s = flight.summary
    stops = [name for name in s["faults"] if name in STOP]
    stood = int(np.bitwise_or.reduce(log.records["faults"])) & STOP_MASK if log.ticks else 0
    if s["complete"] and (missing := set(fault_names(stood)) - set(s["faults"])):
        yield f"{sorted(missing)} stood, and the summary does not name them"
    if s["end"] == "tripped" and not stops:
        yield f"tripped, and names {s['faults']}"
    if s["end"] == "tripped" and s["exit_code"] != 3:
        yield f"tripped with exit code {s['exit_code']}"
    if s["end"] == "record_lost" and s["exit_code"] == 0:
        yield "record lost with exit code 0"
    if s["end"] not in CODES["end_cause"] or (s["end"] == "none" and s["complete"]):
        yield f"ended as {s['end']!r}"
    if not flight.events and (s["end"] not in ("captured", "complete") or stops):
        yield f"nothing went wrong, and it ended as {s['end']!r} with {s['faults']}"


def replays(flight: Flight, config: TestConfig, log: Log) -> Iterator[str]:
    """The log replays equal, as far as it goes."""
    if not log.ticks:
        return
    result = replay(log)
    if result["differing"] or result["damaged"]:
        yield f"{result['differing']} of {result['ticks']} ticks differ, {result['first_difference']}"


def _counts(frames: np.ndarray) -> np.ndarray:
    counts: np.ndarray = frames["data"][:, 2:6].copy().view("<i4")[:, 0]
    return counts


def _at(flight: Flight, ns: np.int64) -> str:
    return f"{1e-9 * (ns - flight.began_ns):.4f} s"


OF_WIRES: tuple[Callable[[Flight, TestConfig], Iterator[str]], ...] = (frames, attended, beats, power)
OF_LOG: tuple[Callable[[Flight, TestConfig, Log], Iterator[str]], ...] = (
    setpoints, ticks, record, counted, kept, without_record, commands, end, stopping, recoveries, silence, losses, unprovoked, causes,
    replays,
)  # fmt: skip
