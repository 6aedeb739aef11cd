"""The desk: takes commands and hand-controller records from the wire, checks them, puts them into the shared block.

A command is answered once the loop has taken it, with the tick of the sample in which its sequence number appeared. What is malformed,
unknown, out of range, too frequent, from the wrong client, or such that no part of the run acts on it, is answered with an error (or
counted, where there is no sender to answer) and never reaches the loop. A command that the loop took in a phase in which no part acts on
it is answered with an error that says so. `recover` is answered when the recovery has ended, with what it has cleared, or with an error
that names what still stands. `abort`, `stop` and `hold` are never held up by the rate or by another client.

A command has a time until which it is valid (`valid_s` from `sent_ns`, of the client; 1 s from its arrival where it says nothing). One that
the loop comes to later, or that waited while an abort was taken, never acts, and its answer is `not_taken`. An abort does not expire.

Both desks serve at most `BUDGET` messages a call, so that a flood cannot keep the process from the ring.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import zmq

from hil_server.bus.commands import ALWAYS, CommandError, encode, why_not
from hil_server.bus.desk_book import NAME_MAX, DeskBook, Note, key_of
from hil_server.bus.expiry import VALID_MAX_S, VALID_MIN_S, UntilWhen
from hil_server.bus.publisher import TokenBucket
from hil_server.bus.wire import COMMAND, DESCRIBE, DESK, HAND, REPLY, STATUS, MalformedError, Message, pack, unpack
from hil_server.log.recoveries import FOLLOWING, RECOVERING, STOP, standing_in_words, why_not_begun, with_name
from rt_kernels.codes import code_name, fault_names, mask
from rt_kernels.doors import time
from rt_kernels.layout import CODES, LAYOUT_HASH
from rt_kernels.parameters import Command, TunableEntry
from rt_kernels.ring import SharedBlock

BUDGET = 64
SEEN_WITHIN = 1.0  # s after that for its sample to be seen; later, the answer is that it was taken and nothing more
LONGER = 2.5  # s more for the answer to `recover`; later, it is that the recovery is still under way
MAX_CLIENTS = 256
NEVER_EXPIRES = frozenset({"abort"})  # an abort is right whenever it comes
REQUEST_KEYS = {"id", "command", "args", "client", "layout", "session", "valid_s", "sent_ns", "boot"}
SERVER_LANE = 1  # sequence numbers of the server's own commands are odd
PHASES = {number: name for name, number in CODES["phase"].items()}
MessageId = int | str | None


class DeskSocket(Protocol):
    """A socket that gives and takes whole messages without waiting, as `hil_server.bus.peers.Peers`."""

    def recv_multipart(self, flags: int) -> list[bytes]:
        """The next message. Raises zmq.ZMQError when there is none."""

    def send_multipart(self, frames: list[bytes], flags: int) -> None:
        """Sends a message. Raises zmq.ZMQError when it cannot."""


@dataclass
class _Client:
    bucket: TokenBucket
    name: str = ""


@dataclass
class _Waiting:
    """A command on its way through the loop."""

    envelope: list[bytes]
    message_id: MessageId
    command: str
    arguments: tuple[float, ...]
    deadline: float
    name: str = ""
    answer: Mapping[str, object] = field(default_factory=dict)  # of a recovery that has begun
    faults: int = 0  # when it began


def _served(socket: DeskSocket, handle: Callable[[list[bytes]], None]) -> int:
    """Hands on what has arrived, at most BUDGET messages. Returns how many."""
    for count in range(BUDGET):
        try:
            frames = socket.recv_multipart(zmq.NOBLOCK)
        except zmq.ZMQError:
            return count
        handle(frames)
    return BUDGET


class CommandDesk:
    """Serves the command socket (ROUTER).

    block: with `push_command` and `command_state`. describe, status: make the answers to these topics. exclusive: one commanding client at
    a time; the first to command holds the desk until it leaves (`desk` with `leave`); others may only watch and stop, and take over the
    desk of a silent one (`desk` with `take` and `over`). book: who holds it (none: one of this desk alone). note: called with every command
    and its result, with the name of its sender.
    commands: what the run's parts act on, by name (None: not known, everything goes to the loop). injector: who breaks the stand where the
    loop cannot (a stand of its own process): called with (command, arguments) once the loop has taken it, raises ValueError or
    ConnectionError that says why it did not. tunables: parameters that can be changed in the run, by number (None: not known).
    """

    def __init__(
        self,
        socket: DeskSocket,
        block: SharedBlock,
        describe: Callable[[], Message],
        status: Callable[[], Message],
        exclusive: bool = True,
        rate: float = 50.0,
        clock: Callable[[], float] = time.monotonic,
        commands: Mapping[str, Command] | None = None,
        injector: Callable[[str, tuple[float, ...]], None] | None = None,
        tunables: Sequence[TunableEntry] | None = None,
        book: DeskBook | None = None,
        note: Note = lambda _: None,
    ) -> None:
        self.socket, self._block, self._describe, self._status = socket, block, describe, status
        self._commands, self._injector, self._tunables = commands, injector, tunables
        self._exclusive, self._rate, self._clock = exclusive, rate, clock
        self._clients: OrderedDict[bytes, _Client] = OrderedDict()
        self._everyone = TokenBucket(4 * rate, 4 * rate, clock)
        self._waiting: dict[int, _Waiting] = {}
        self._recovering: list[_Waiting] = []
        self._book, self._note = DeskBook(clock, note=note) if book is None else book, note
        self._until = UntilWhen(clock)
        self.accepted = self.refused = self.malformed = 0

    @property
    def holder(self) -> str:
        """Name of the client that holds the desk, "" when it is free."""
        return self._book.name

    @property
    def waiting(self) -> bool:
        """Whether a command is on its way through the loop."""
        return bool(self._waiting or self._recovering)

    # --------------------------------------------------------------------------------------------------------- requests
    def serve(self) -> int:
        """Handles what has arrived, at most BUDGET messages. Returns how many."""
        return _served(self.socket, self._handle)

    def _handle(self, frames: list[bytes]) -> None:
        # DEALER sends identity, topic, map; REQ puts an empty frame in between
        split = 2 if len(frames) == 4 and frames[1] == b"" else 1
        envelope, parts = frames[:split], frames[split:]
        if len(parts) != 2 or parts[0] not in (COMMAND, DESCRIBE, STATUS, DESK):
            self._malformed(envelope, None, "a request is two parts: topic (command, status, describe, desk) and a msgpack map")
            return
        try:
            request = unpack(parts[1], small=True)
        except MalformedError as error:
            self._malformed(envelope, None, str(error))
            return
        message_id = request.get("id")
        if not isinstance(message_id, int | str | None) or isinstance(message_id, bool):
            self._malformed(envelope, None, "id must be a number or a text")
            return
        client = self._client(envelope[0], request.get("client"))
        if why := getattr(self.socket, "refusal", ""):
            if client.bucket.take():
                self._note({"refused": request.get("command", parts[0].decode()), "why": why})
                self._refuse(envelope, message_id, "who", why)
            return
        if "session" in request:
            self._book.heard(key_of(envelope[0], request))
        name = request.get("command")
        urgent = parts[0] == COMMAND and isinstance(name, str) and name in ALWAYS
        if not (client.bucket.take() and self._everyone.take()) and not urgent:
            self._refuse(envelope, message_id, "rate", f"more than {self._rate:g} requests a second")
            return
        if parts[0] == COMMAND:
            self._command(envelope, message_id, request, urgent)
        elif parts[0] == DESCRIBE:
            self._reply(envelope, message_id, {"ok": True, **self._describe()})
        elif parts[0] == STATUS:
            self._reply(envelope, message_id, {"ok": True, **self._status()})
        else:
            self._desk(envelope, message_id, request)

    def _client(self, identity: bytes, name: object) -> _Client:
        client = self._clients.pop(identity, None) or _Client(TokenBucket(self._rate, self._rate, self._clock))
        self._clients[identity] = client
        given, known = name if isinstance(name, str) else "", getattr(self.socket, "name", "")
        both = known and given and not given.startswith(f"{known}@")
        client.name = (f"{known}: {given}" if both else given or known)[:NAME_MAX] or client.name
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return client

    def _command(self, envelope: list[bytes], message_id: MessageId, request: Message, urgent: bool) -> None:
        unknown = set(request) - REQUEST_KEYS
        if unknown:
            self._refuse(envelope, message_id, "malformed", f"unknown key {sorted(unknown)[0]!r} in the request")
            return
        if request.get("layout", LAYOUT_HASH) != LAYOUT_HASH:
            self._refuse(envelope, message_id, "layout", f"client has layout {request['layout']}, server has layout {LAYOUT_HASH}")
            return
        try:
            code, arguments = encode(request.get("command"), request.get("args"), self._tunables, self._commands)
        except CommandError as error:
            self._refuse(envelope, message_id, "arguments", str(error))
            return
        if self._commands is not None and (why := why_not(self._commands, request["command"], arguments)):
            self._refuse(envelope, message_id, "unhandled", why)
            return
        key, name = key_of(envelope[0], request), self._clients[envelope[0]].name
        if self._until.is_repeated(key, message_id, request):
            self._refuse(envelope, message_id, "repeated", f"command {request['command']}: this request of the session came before")
            return
        until = self._until(request)
        if until is None:
            why = f"valid_s: must be a number within {VALID_MIN_S:g} ... {VALID_MAX_S:g} s, sent_ns a whole number"
            self._refuse(envelope, message_id, "malformed", why)
            return
        expires = request["command"] not in NEVER_EXPIRES
        if expires and until <= self._clock():
            self._refuse(envelope, message_id, "not_taken", f"command {request['command']}: came after its time")
            return
        if why := self._may_command(key, name, urgent):
            self._refuse(envelope, message_id, "held", why)
            return
        try:
            sequence = self._block.push_command(code, with_name(arguments, name), expires_ns=int(until * 1e9) if expires else 0)
        except BufferError as error:
            self._refuse(envelope, message_id, "full", str(error))
            return
        self.accepted += 1
        self._note({"command": request["command"], "args": list(arguments), "name": name, "sequence": sequence})
        self._waiting[sequence] = _Waiting(envelope, message_id, request["command"], arguments, until, name)

    def _may_command(self, key: str, name: str, urgent: bool) -> str:
        """Why this client may not command, "" when it may."""
        if not self._exclusive or (urgent and not self._book.is_holder(key)):
            return ""
        return self._book.enter(key, name)

    def _desk(self, envelope: list[bytes], message_id: MessageId, request: Message) -> None:
        key, name = key_of(envelope[0], request), self._clients[envelope[0]].name
        if request.get("leave") is True:
            self._book.leave(key)
        elif request.get("keep") is True:
            self._book.heard(key)
        elif request.get("take") is True:
            if why := self._book.take_over(key, name) if request.get("over") is True else self._may_command(key, name, urgent=False):
                self._refuse(envelope, message_id, "held", why)
                return
        else:
            self._refuse(envelope, message_id, "malformed", "desk wants take, keep or leave")
            return
        self._reply(envelope, message_id, {"ok": True, "holder": self.holder})

    # ---------------------------------------------------------------------------------------------------------- answers
    def acknowledge(self, records: np.ndarray) -> None:
        """Answers the commands that these records show as taken."""
        if not self.waiting or not len(records):
            return
        self._answer_recovery(records)
        taken = records["command_sequence"]
        changes = np.flatnonzero(np.diff(taken, prepend=-1))
        for i in changes:
            sequence = int(taken[i])
            # a lane is first in, first out: a later number of it says that the earlier ones were taken, even if their sample was lost
            for waiting in [s for s in self._waiting if s <= sequence and sequence % 2 != SERVER_LANE]:
                if waiting != sequence and self._was_dropped(waiting):
                    continue
                entry = self._waiting.pop(waiting)
                tick, t_ns = int(records["tick"][i]), int(records["time_ns"][i])
                if sequence == waiting and (why := self._without_effect(entry, records, int(i))):
                    text = f"command {entry.command}: reached the loop at tick {tick}, {why}"
                    self._refuse(entry.envelope, entry.message_id, "unhandled", text)
                    continue
                answer = {"ok": True, "command": entry.command, "sequence": waiting, "tick": tick, "t": t_ns * 1e-9, "t_ns": t_ns}
                if sequence == waiting and entry.command == "recover":
                    entry.answer, entry.faults, entry.deadline = answer, int(records["faults"][i]), entry.deadline + LONGER
                    self._recovering.append(entry)
                    self._answer_recovery(records[i:])
                    continue
                self._reply(entry.envelope, entry.message_id, answer)

    def _answer_recovery(self, records: np.ndarray) -> None:
        """Answers those who asked for the recovery that is under way, when these records show its end."""
        ended = np.flatnonzero(records["safety_state"] != RECOVERING)
        if not self._recovering or not len(ended):
            return
        entries, self._recovering = self._recovering, []
        end = records[ended[0]]
        faults = int(end["faults"])
        for entry in entries:
            if int(end["safety_state"]) == FOLLOWING:
                self._reply(entry.envelope, entry.message_id, {**entry.answer, "cleared": fault_names(entry.faults & ~faults & STOP)})
            else:
                self._refuse(entry.envelope, entry.message_id, "unhandled", f"command recover: not recovered: {standing_in_words(faults)}")

    def _without_effect(self, entry: _Waiting, records: np.ndarray, i: int) -> str:
        """Why the command taken at record i did nothing, "" when somebody acted on it."""
        takes = (self._commands or {}).get(entry.command)
        # the phase that the command met: the guidance may have left it in the same tick, and then the new one has just begun
        before = int(records["phase"][i - 1 if i else 0])
        met = i > 0 or float(records["phase_time"][i]) > 0.0
        if takes is not None and takes.phases and met and (phase := PHASES.get(before, str(before))) not in takes.phases:
            return f"accepted, but no part handles it in phase {phase}; it acts in {', '.join(takes.phases)}"
        if entry.command == "recover" and (why := why_not_begun(records[i])):
            return f"but nothing is recovered: {why}"
        if entry.command == "tune" and (answer := int(records["tune_answer"][i])) != CODES["tune_answer"]["taken"]:
            return f"but the parameter stays as it is: {self._why_not_tuned(entry, answer, PHASES.get(before, str(before)))}"
        if self._injector is not None and entry.command in ("inject_fault", "clear_injection"):
            try:
                self._injector(entry.command, entry.arguments)
            except (ValueError, ConnectionError) as error:
                return f"but the stand did not: {error}"
        return ""

    def _why_not_tuned(self, entry: _Waiting, answer: int, phase: str) -> str:
        """The loop's answer to `tune` in words."""
        if answer == CODES["tune_answer"]["not_in_this_phase"] and self._tunables is not None:
            parameter = self._tunables[int(entry.arguments[0])]
            return f"the run is in phase {phase}, {parameter['name']} may change in {', '.join(parameter['phases'])}"
        return code_name("tune_answer", answer).replace("_", " ")

    def expire(self, reason: str | None = None) -> None:
        """Answers the commands that the loop has not taken in time; all of them when a reason is given."""
        now = self._clock()
        self._book.look()
        for sequence in [s for s, entry in self._waiting.items() if reason or now > entry.deadline]:
            if self._was_dropped(sequence):
                continue
            entry, state = self._waiting[sequence], self._block.command_state(sequence)
            if state == "waiting" and entry.command in NEVER_EXPIRES and not reason:
                continue  # the loop stands still, and will obey as soon as it runs
            if state == "taken" and not reason and now <= entry.deadline + SEEN_WITHIN:
                continue  # its sample is on the way
            del self._waiting[sequence]
            if state == "taken" and not reason:
                why = f"command {entry.command}: the loop has taken it, its sample is not to be seen: look at status"
                self._refuse(entry.envelope, entry.message_id, "taken_unseen", why)
                continue
            why = reason or "the loop did not take it in its time, and will not act on it"
            self._drop(entry, why)
        for entry in [entry for entry in self._recovering if reason or now > entry.deadline]:
            self._recovering.remove(entry)
            self._refuse(entry.envelope, entry.message_id, "under_way", f"command recover: {reason or 'still under way: see safety_state'}")

    def _was_dropped(self, sequence: int) -> bool:
        """Answers a command that the loop has come to and not taken."""
        why = {"expired": "the loop came to it after its time: it did not act", "void": "an abort came first: it did not act"}.get(
            self._block.command_state(sequence))
        if why is not None:
            self._drop(self._waiting.pop(sequence), why)
        return why is not None

    def _drop(self, entry: _Waiting, why: str) -> None:
        self._note({"not_taken": entry.command, "name": entry.name, "why": why})
        self._refuse(entry.envelope, entry.message_id, "not_taken", f"command {entry.command}: {why}")

    def _malformed(self, envelope: list[bytes], message_id: MessageId, text: str) -> None:
        self.malformed += 1
        if self._everyone.take():
            self._refuse(envelope, message_id, "malformed", text)

    def _refuse(self, envelope: list[bytes], message_id: MessageId, kind: str, text: str) -> None:
        self.refused += 1
        self._reply(envelope, message_id, {"ok": False, "kind": kind, "error": text})

    def _reply(self, envelope: list[bytes], message_id: MessageId, answer: Mapping[str, object]) -> None:
        message = {"id": message_id, "layout": LAYOUT_HASH, **answer}
        try:
            self.socket.send_multipart([*envelope, REPLY, pack(message)], zmq.NOBLOCK)
        except zmq.ZMQError:
            pass  # the client does not read its answers


# ---------------------------------------------------------------------------------------------------------- hand controllers

STATIONS = 2
SILENT_AFTER = 1.0  # s without a good record after which another sender may take the station
CLOCK_DRIFT = 1e-4  # s/s by which the device's clock may differ from ours
STALE_AFTER = 0.1  # s that a record may be older than the freshest way from the device has shown possible
HAND_KEYS = {"seq", "t", "id", "axes", "buttons"}


@dataclass
class _Station:
    sender: bytes = b""
    last_seen: float = -math.inf
    sequence: int = -1
    device_time: float = -math.inf
    offset: float = math.inf  # arrival minus device time of the freshest record, s
    rejected_since: bool = False


class HandDesk:
    """Serves the hand-controller socket (ROUTER): records {seq, t, id, axes[6], buttons} of station `id` 0 or 1.

    A record counts only when it is whole, in range, newer than the last (`seq` and `t` rise), not held up on the way, and from the sender
    that has the station. Everything else is counted in `rejected` by reason, and the next good record carries the bit `rejected`.
    """

    def __init__(self, socket: DeskSocket, block: SharedBlock, clock: Callable[[], float] = time.monotonic) -> None:
        self.socket, self._block, self._clock = socket, block, clock
        self._stations = [_Station() for _ in range(STATIONS)]
        self.accepted = 0
        self.rejected: dict[str, int] = {}

    def serve(self) -> int:
        """Handles what has arrived, at most BUDGET messages. Returns how many."""
        return _served(self.socket, self._handle)

    def _handle(self, frames: list[bytes]) -> None:
        try:
            if len(frames) != 3 or frames[1] != HAND:
                raise MalformedError("a hand-controller message has two parts")
            record = check_hand(unpack(frames[2], small=True))
        except MalformedError:
            self._reject("malformed", next((s for s in self._stations if s.sender == frames[0]), None))
            return
        if getattr(self.socket, "refusal", ""):
            self._reject("stranger", None)
            return
        station = self._station(record["id"], frames[0])
        reason = self._why_not(station, frames[0], record)
        if reason:
            self._reject(reason, station)
            return
        station.last_seen = self._clock()
        station.sequence, station.device_time = record["seq"], record["t"]
        status = mask("hand_status", "present", *(["rejected"] if station.rejected_since else []))
        station.rejected_since = False
        self._block.put_hand(record["id"], record["seq"], int(record["t"] * 1e9), record["axes"], record["buttons"], status,
                             int(station.last_seen * 1e9))  # fmt: skip
        self.accepted += 1

    def _station(self, number: int, sender: bytes) -> _Station:
        """The station's books; new ones for a new sender once the old one is silent."""
        station = self._stations[number]
        if sender != station.sender and self._clock() - station.last_seen > SILENT_AFTER:
            station = self._stations[number] = _Station(sender)
        return station

    def _why_not(self, station: _Station, sender: bytes, record: Message) -> str:
        if sender != station.sender:
            return "second_sender"
        if record["seq"] <= station.sequence or record["t"] <= station.device_time:
            return "out_of_order"
        now = self._clock()
        offset = now - record["t"]
        if station.sequence >= 0:
            allowed = station.offset + STALE_AFTER + CLOCK_DRIFT * (now - station.last_seen)
            if offset > allowed:
                return "stale"
        station.offset = min(offset, station.offset + CLOCK_DRIFT * (now - station.last_seen)) if station.sequence >= 0 else offset
        return ""

    def _reject(self, reason: str, station: _Station | None) -> None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        if station is not None:
            station.rejected_since = True


def check_hand(record: Message) -> Message:
    """A hand-controller record with exactly its keys, each of the right kind and range. Raises MalformedError that names the key."""
    if set(record) != HAND_KEYS:
        raise MalformedError(f"a hand-controller record has the keys {', '.join(sorted(HAND_KEYS))}, got {', '.join(sorted(record))}")
    for key, low, high in (("seq", 0, 2**62), ("id", 0, STATIONS - 1), ("buttons", 0, 2**32 - 1)):
        if type(record[key]) is not int or not low <= record[key] <= high:
            raise MalformedError(f"{key}: {record[key]!r} is not a whole number within {low}...{high}")
    if not _number(record["t"]) or not 0 <= record["t"] < 9e9:
        raise MalformedError(f"t: {record['t']!r} is not a time in s")
    axes = record["axes"]
    if not isinstance(axes, list) or len(axes) != 6 or not all(_number(a) and -1.0 <= a <= 1.0 for a in axes):
        raise MalformedError(f"axes: {axes!r} are not six numbers within -1...1")
    return record


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
