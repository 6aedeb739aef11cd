"""The bus of a run: telemetry for everybody who asks, and commands and hand controllers to the loop. A process of its own.

    python -m hil_server.bus.server --fd N --lifeline N

How it is started and told: `child.py`; by the telemetry process, which tells it twice a second how the log does ({"log": {...}}). It looks
at the samples in the shared block without taking them, so that nothing that happens here is felt by the log or the loop. It ends when it
is requested, or when the server is gone; when the telemetry process dies it continues, so that an abort stays possible.

Commands and hand controllers have a thread of their own, at ordinary priority.
"""

import contextlib
import json
import logging
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import numpy as np
import zmq

from hil_server.bus.child import Control, LogState, Task, say, serve
from hil_server.bus.desk_book import DeskBook
from hil_server.bus.desks import BUDGET, CommandDesk, HandDesk
from hil_server.bus.peers import Peers
from hil_server.bus.publisher import Publisher
from hil_server.bus.settings import TelemetrySettings
from hil_server.bus.wire import Context, DoorKeeper, Message, Socket, bind
from hil_server.log.format import Facts
from hil_server.log.header import LogHeader
from hil_server.log.record import joined, record_dtype
from hil_server.requirements import CONFIGURATION, Requirement, Watch, of_configuration
from rt_kernels.doors import made_as, queue, select, socket, threading, time
from rt_kernels.layout import FIELDS, LAYOUT_HASH
from rt_kernels.parameters import Command, TunableEntry
from rt_kernels.ring import SharedBlock

if TYPE_CHECKING:
    from drivers.simulated.stand_server_client import StandControl

logger = logging.getLogger(__name__)  # in a process of its own: warnings go to standard error without a word of configuration

PERIOD = 0.010  # s between two looks at the ring
LOOK_AT_ONCE = 2000  # records
STATUS_PERIOD = 0.5  # s
REQUIREMENTS_PERIOD = 0.25  # s
DESK_PERIOD_MS = 50  # between two looks at the time, without requests
ANSWER_PERIOD_MS = 5  # between two looks at the ring for a command that is on its way to the loop
PUBLISH_QUEUE = 200  # messages for a subscriber that does not read, 4 s of `full`
REQUEST_QUEUE = 100
INJECTED_WITHIN = 0.5  # s that the virtual stand's process has for its answer
MOST_MEMORY = 1 << 30  # bytes: who makes this process grow beyond ends it, and it alone
P = ParamSpec("P")
T = TypeVar("T")


class NumberedTunable(TunableEntry):
    """A tunable parameter with its number in the run."""

    number: int


class Bus:
    """The process's state: block, sockets, desks."""

    def __init__(self, block: SharedBlock, settings: TelemetrySettings, header: LogHeader) -> None:
        if header.aux_count != block.aux_count:
            raise ValueError(f"header declares {header.aux_count} auxiliary channels, the block has {block.aux_count}")
        self.block, self.settings, self.header = block, settings, header
        self.dtype = record_dtype(header.aux_count)
        self.log: LogState = {"ticks": 0, "lost_ticks": 0, "reasons": [], "bus_restarts": 0}
        self.faults = 0
        self._next = max(0, block.head - 1)  # number of the record to be looked at next: the newest
        self._passed_over = 0
        self._next_status = self._next_requirements = 0.0
        self._unseen = self._next  # records before the first look, where this process was started again
        self.watch = Watch(self.attempt(self._demanded) or ())
        self.requirements: list[Facts] = []
        self._unjudged: list[np.ndarray] = []  # records since the requirements were judged
        self._last_tick = -1
        self._tuned: np.ndarray | None = None  # of the newest record
        self._stand: StandControl | None = None  # takes an operator's faults
        self.journal: queue.SimpleQueue[Mapping[str, object]] = queue.SimpleQueue()  # from the desks' thread to the file
        self._open_sockets()
        self.desks = DeskThread(self)

    def _demanded(self) -> list[Requirement]:
        """What the run is to show; none where the header's configuration cannot say."""
        return of_configuration(self.header.configuration.get(CONFIGURATION, ""), self.header.aux)

    def _open_sockets(self) -> None:
        s = self.settings
        self.context: Context = made_as("messages", zmq).Context()
        self.door = DoorKeeper(self.context, s.curve) if s.curve is not None else None
        self.sockets: dict[str, Socket] = {}
        kinds = {
            "telemetry_address": (zmq.PUB, PUBLISH_QUEUE),
            "plotjuggler_address": (zmq.PUB, PUBLISH_QUEUE),
            "command_address": (zmq.ROUTER, REQUEST_QUEUE),
            "hand_address": (zmq.ROUTER, REQUEST_QUEUE),
        }
        for key, (kind, most) in kinds.items():
            address = getattr(s, key)
            if address:
                self.sockets[key] = bind(self.context, kind, key, address, s.curve, most, shared=kind == zmq.PUB or bool(s.users))
        self.publisher = Publisher(
            self.header,
            self.sockets.get("telemetry_address"),
            self.sockets.get("plotjuggler_address"),
            s.batch_ticks,
            s.slow_ticks,
            lambda: self.block.overflow + self._passed_over,
        )
        command, hand = self.sockets.get("command_address"), self.sockets.get("hand_address")
        self.desk = self._command_desk(command) if command is not None else None
        self.hands = HandDesk(self._guarded(hand, "hand_address"), self.block) if hand is not None else None

    def _guarded(self, socket: Socket, key: str) -> Peers:
        """The socket that says who has sent what it gives."""
        keys = self.settings.curve is not None and getattr(self.settings, key).startswith("tcp")
        peers: Peers = made_as("peers", Peers)(socket, self.settings.users.split(), keys)
        return peers

    def _command_desk(self, socket: Socket) -> CommandDesk:
        s = self.settings
        commands = None if s.commands is None else {
            name: Command(name, phases, numbers, names=names, targets=targets)
            for name, (phases, numbers, names, targets) in s.commands.items()}
        if s.stand_control is not None:
            from drivers.simulated.stand_server_client import StandControl

            self._stand = StandControl(**s.stand_control, timeout_s=INJECTED_WITHIN)
        return CommandDesk(self._guarded(socket, "command_address"), self.block, self.describe, self.status, s.exclusive, commands=commands,
                           injector=None if self._stand is None else self._stand.obey, tunables=self.header.tunables, note=self.note,
                           book=DeskBook(file=s.desk or None, note=self.note))  # fmt: skip

    def note(self, what: Mapping[str, object]) -> None:
        """One line more for the journal of commands; the desks do not wait for the disk."""
        self.journal.put({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "tick": self._last_tick, **what})

    def write_journal(self) -> None:
        """What the desks have noted, to its file."""
        lines = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(json.dumps(self.journal.get_nowait()) + "\n")
        if lines and self.settings.journal:
            with open(self.settings.journal, "a", encoding="utf-8") as file:
                file.writelines(lines)

    def endpoints(self) -> dict[str, str]:
        """Addresses at which the sockets really listen, by the name of their setting."""
        return {key: socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0") for key, socket in self.sockets.items()}

    # ---------------------------------------------------------------------------------------------------------- samples
    def look(self) -> int:
        """One look at the ring. Returns the number of records seen."""
        first, data = self.block.look(self._next, LOOK_AT_ONCE)
        self._passed_over += first - self._next
        records = np.frombuffer(data, self.dtype)
        self._next = first + len(records)
        if not len(records):
            return 0
        self._last_tick = int(records["tick"][-1])
        self._tuned = records["tuned"][-1].copy()
        self.attempt(self.publisher.publish, records)
        if self.watch.requirements:
            self._unjudged.append(records)
        return len(records)

    def attempt(self, act: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T | None:
        """What `act` returns, None when it fails: it is counted, and the rest continues."""
        try:
            return act(*arguments, **more)
        except Exception as error:
            self.faults += 1
            if self.faults <= 10:
                logger.warning("bus: %s: %s", type(error).__name__, error)
            return None

    # ---------------------------------------------------------------------------------------------------------- status
    def beat(self) -> None:
        """Twice a second status for everybody, four times a second the requirements."""
        now = time.monotonic()
        self.attempt(self.write_journal)
        if now >= self._next_requirements:
            self._next_requirements = now + REQUIREMENTS_PERIOD
            self.attempt(self.judge, False)
        if now >= self._next_status:
            self._next_status = now + STATUS_PERIOD
            self.attempt(lambda: self.publisher.status(self.status()))

    def judge(self, final: bool) -> None:
        """Publishes what the requirements have come to; nothing where there are none."""
        if self.watch.requirements:
            unjudged, self._unjudged = self._unjudged, []
            self.watch.missing = self._unseen + self._passed_over
            if unjudged:
                self.watch.see(joined(unjudged))
            self.requirements = [one.as_dict() for one in self.watch.results(final)]
            self.publisher.requirements(self.requirements, final)

    def status(self) -> Message:
        """What a status message says about tick, log, desk and hands."""
        log, desk, hands = self.log, self.desk, self.hands
        return {
            "tick": self._last_tick,
            "run": self.header.run_id,
            "running": not self.block.finished,
            "log_path": self.settings.log_path,
            "log_ok": not log["reasons"],
            "log_ticks": log["ticks"],
            "log_lost_ticks": log["lost_ticks"],
            "log_reasons": log["reasons"],
            "overflow": self.block.overflow,
            "ring_waiting": self.block.head - self.block.tail,
            "ring_capacity": self.block.capacity,
            "desk_holder": "" if desk is None else desk.holder,
            "commands_accepted": 0 if desk is None else desk.accepted,
            "commands_refused": 0 if desk is None else desk.refused,
            "requests_malformed": 0 if desk is None else desk.malformed,
            "hand_accepted": 0 if hands is None else hands.accepted,
            "hand_rejected": {} if hands is None else dict(hands.rejected),
            "keys_refused": 0 if self.door is None else self.door.refused,
            "bus_faults": self.faults,
            "bus_restarts": log["bus_restarts"],
        }

    def describe(self) -> Message:
        """Everything a client needs to understand the run: fields, auxiliary channels, configuration, ledger."""
        h = self.header
        return {
            "run": h.run_id,
            "mode": h.mode,
            "build_id": h.build_id,
            "period_ns": h.period_ns,
            "created": h.created,
            "synthetic": h.synthetic,
            "fields": [list(field) for field in FIELDS],
            "aux": [channel.declaration() for channel in h.aux],
            "configuration": h.configuration,
            "delay_ledger": h.delay_ledger,
            "delay_origins": h.delay_origins,
            "prediction": h.prediction,
            "host": json.loads(json.dumps(h.host, default=str)),
            "notes": h.notes,
            "commands": self.settings.commands,
            "tunables": self.tunables(),
            "requirements": self.requirements,
        }

    def tunables(self) -> list[NumberedTunable]:
        """Parameters that can be changed in the run: what the header says of each, its number, and the value in force now."""
        tuned = self._tuned
        found: list[NumberedTunable] = [{"number": number, **entry} for number, entry in enumerate(self.header.tunables)]
        return found if tuned is None else [{**entry, "value": float(tuned[entry["number"]])} for entry in found]

    # ------------------------------------------------------------------------------------------------------------- end
    def close(self) -> None:
        """Sends what is left and says goodbye."""
        while self.look():
            pass
        self.attempt(self.judge, True)
        self.desks.end()
        if self.desk is not None:
            self.attempt(self.desk.expire, "the run is over")
        self.attempt(self.write_journal)
        self.attempt(lambda: self.publisher.status(self.status()))
        self.context.destroy(linger=200)
        if self._stand is not None:
            self._stand.close()


class DeskThread:
    """Serves the sockets that bring something to the loop; they belong to this thread until `end`.

    While a command is on its way this thread looks at the ring itself: publishing, which is polite and falls behind on a busy machine,
    does not hold up an answer.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._next = 0  # number of the record in which a command may be seen next
        self._bell, self._cord = socket.socketpair()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="desks", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Answers what was taken so far and gives the sockets back."""
        self._ending = True
        self._cord.send(b"\1")
        self._thread.join()
        self._bell.close()
        self._cord.close()

    def _run(self) -> None:
        bus, poller = self._bus, made_as("messages", zmq).Poller()
        desks = [desk for desk in (bus.desk, bus.hands) if desk is not None]
        served = [bus.sockets[key] for key in ("command_address", "hand_address") if key in bus.sockets]
        for one in served + ([] if bus.door is None else [bus.door.socket]):
            poller.register(one, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        ending = flooded = False
        while not ending:
            waiting = bus.desk is not None and bus.desk.waiting
            if flooded:
                time.sleep(PERIOD)  # a client that sends too much waits
            else:
                poller.poll(ANSWER_PERIOD_MS if waiting else DESK_PERIOD_MS)
            if not waiting:
                self._next = max(0, bus.block.head - 1)  # with the record before: the phase that a command met
            ending = self._ending
            if bus.door is not None:
                bus.attempt(bus.door.serve)
            flooded = BUDGET in [bus.attempt(desk.serve) for desk in desks]
            if bus.desk is not None:
                if bus.desk.waiting:
                    bus.attempt(self._acknowledge, bus.desk)
                bus.attempt(bus.desk.expire)

    def _acknowledge(self, desk: CommandDesk) -> None:
        """Answers the commands that the loop has taken by now; the newest record is looked at again the next time."""
        while True:
            first, data = self._bus.block.look(self._next, LOOK_AT_ONCE)
            records = np.frombuffer(data, self._bus.dtype)
            desk.acknowledge(records)
            self._next = max(self._next, first + len(records) - 1)
            if len(records) < LOOK_AT_ONCE:
                return


def run(bus: Bus, control: Control, lifeline: int) -> None:
    """Runs until a request to end, or the end of the server."""
    next_look = time.monotonic()
    heard_of: list[int] = [control.descriptor, lifeline]
    while True:
        ready, _, _ = select.select(heard_of, [], [], max(0.0, next_look - time.monotonic()))
        if lifeline in ready:
            return
        while (line := control.line()) is not None:
            bus.log.update(cast(LogState, line.get("log") or line.get("close") or {}))
            if "close" in line:
                return
        if control.ended and control.descriptor in heard_of:
            heard_of.remove(control.descriptor)
            bus.log["reasons"] = [*bus.log["reasons"], "the telemetry process has died"]
        now = time.monotonic()
        if now >= next_look:
            busy = bus.look() >= LOOK_AT_ONCE
            bus.beat()
            next_look = now if busy else now + PERIOD


def work(task: Task, control: Control) -> Facts:
    """Serves the bus until the run ends; returns its summary."""
    block, settings, header, arguments = task
    control.bound(MOST_MEMORY)
    bus = Bus(block, settings, header)
    control.yield_more(settings.nice)  # of this thread alone, which publishes; the desks keep theirs
    say({"ready": bus.endpoints(), "layout": LAYOUT_HASH})
    run(bus, control, arguments.lifeline)
    bus.close()
    return {}


def main(argv: list[str] | None = None) -> int:
    """The process of the bus; returns its exit code."""
    return serve("hil_server.bus.server", "bus of a run; started by the telemetry process", argv, work)


if __name__ == "__main__":
    sys.exit(main())
