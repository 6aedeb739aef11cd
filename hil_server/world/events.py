"""What goes wrong in a run, each at its time since the loop began; drawn from a seed, or given."""

import contextlib
import errno
import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import zmq

from drivers.simulated import world
from drivers.simulated.injections import BY_NAME
from drivers.simulated.stand_server_client import StandControl
from hil_server.bus.wire import COMMAND, pack, unpack
from hil_server.config import TestConfig
from hil_server.line.assembly import base_context
from hil_server.operator_desk.autopilot import pilot_for
from hil_server.operator_desk.script import Row
from hil_server.operator_desk.sender import HandSender
from hil_server.world import messages, surroundings
from hil_server.world.surroundings import ROLES, WIRES, Thread, children
from rt_kernels import disk
from rt_kernels.layout import BITS, CODES

ON_WIRES = ("loss", "delay", "repeat", "reorder", "truncate", "corrupt")
ON_DISK = ("short", "full", "error")
INJECTED = ("drive_restart", "drive_silent", "drive_disabled", "drive_fault", "drive_emergency", "drive_heartbeat_lost", "drive_lost",
            "link_silent", "sensor_silent", "sensor_lost", "sensor_delay", "sensor_stale", "sensor_taken_over", "sensor_device_fault",
            "signals_silent", "emergency_stop", "leg_stuck", "leg_runaway", "transducer_offset")  # fmt: skip
# of drives on EtherCAT in the place of what only those on CAN have
ON_ETHERCAT = {"drive_restart": "al_error", "drive_silent": "slave_lost", "drive_emergency": "drive_local", "link_silent": "cable_cut",
               "drive_heartbeat_lost": "working_counter", "drive_lost": "frames_lost"}  # fmt: skip
OTHERS = 0.3  # share of the commands that come from a second desk
STALLED = ("server", "loop", "stand", "telemetry", "drives keeper", "desks")
RECOVERED = 0.3  # share of what goes wrong that an operator answers with a recovery
AGAIN, DISTURBED = 0.3, 0.4  # shares of the recoveries
UNHEARD, TWICE, CONTRADICTED, WAITS, OUTDATED = 0.1, 0.1, 0.1, 0.05, 0.05  # shares of the seeds
TOGETHER, JOINED = ("server", "telemetry", "desks"), 0.3
ABORTED = 0.3  # share of the stalls in which the run is ended
HAND_PERIOD_NS = 10_000_000  # of a hand controller's records
COMMANDS = ("hold", "resume", "park", "abort", "stop", "recover")


class Event(NamedTuple):
    """where: a wire, the role of a task that stalls, a fault of the stand with its index, a command, or nothing. direction of a wire: 0 to
    the device, 1 from it, -1 both. share: of messages. amount: ns of a delay, a repetition, a spread, a stall, a jump; bytes that are left
    of a message, or that a write takes; number of an operator's desk."""

    kind: str
    where: str
    from_s: float
    until_s: float = 0.0
    share: float = 1.0
    amount: int = 0
    direction: int = -1

    def __repr__(self) -> str:
        return f"Event({', '.join(map(repr, self))})"

    @property
    def lasts_until_s(self) -> float:
        """When it is over."""
        return max(self.until_s, self.from_s + 1e-9 * self.amount * (self.kind == "stall"))


def drawn(seed: int, length_s: float, wire: str = "can") -> list[Event]:
    """The events of a seed in a run of this length: one to six, of one to three kinds, so that some meet; wire: of the drives."""
    draw = random.Random(seed)
    kinds = draw.sample(("wire", "wire", "stall", "inject", "command", "disk", "kill", "clock"), draw.randint(1, 3))
    found = [_one(draw, draw.choice(kinds), length_s, wire) for _ in range(draw.randint(1, 6))]
    # what trips a run is recovered from at times; then the same comes again, or something else while it recovers
    for event in list(found):
        if draw.random() < RECOVERED:
            found.append(recover := Event("command", "recover", round(min(event.lasts_until_s, length_s) + draw.uniform(0.2, 3.0), 4)))
            if (then := draw.random()) < AGAIN:
                again = recover.from_s + draw.uniform(1.5, 3.0) - event.from_s
                found.append(event._replace(from_s=round(event.from_s + again, 4), until_s=round(event.until_s + again, 4)))
                found.append(recover._replace(from_s=round(recover.from_s + again, 4)))
            elif then < AGAIN + DISTURBED:
                at, other = recover.from_s + draw.uniform(0.0, 0.1), _one(draw, draw.choice(("wire", "inject")), length_s, wire)
                found.append(other._replace(from_s=round(at, 4), until_s=round(at + other.until_s - other.from_s, 4)))
    # a machine that is held up holds up all that need not be in time
    for event in [event for event in found if event.kind == "stall" and event.where in TOGETHER]:
        if draw.random() < JOINED:
            amount = round(draw.choice((1e8, 1e9, 1e10)) * draw.uniform(0.5, 2.0))
            found += [event._replace(where=one, amount=amount) for one in TOGETHER]
            found.remove(event)
    # and what ends a run comes while a task stands still
    for event in [event for event in found if event.kind == "stall"]:
        if draw.random() < ABORTED:
            found.append(Event("command", "abort", round(event.from_s + draw.uniform(0.0, min(1.0, 1e-9 * event.amount)), 4)))
    # and a drive that comes up again falls silent on its way
    if draw.random() < UNHEARD:
        off = draw.uniform(0.3, length_s)
        recover = Event("command", "recover", round(off + draw.uniform(1.2, 2.5), 4))
        at = recover.from_s + draw.uniform(0.0, 0.03)
        found += [Event("inject", f"drive_disabled:{draw.randint(0, 1)}", round(off, 4), round(off + 0.05, 4)), recover,
                  Event("loss", "drives 0", round(at, 4), round(at + draw.uniform(0.02, 0.5), 4), direction=1)]  # fmt: skip
    # and one that lost its set-up loses it a second time
    if draw.random() < TWICE:
        at, where = round(draw.uniform(0.3, 0.5 * length_s), 4), f"{'drive_restart' if wire == 'can' else 'al_error'}:{draw.randint(0, 1)}"
        for _ in range(2):
            recover = Event("command", "recover", round(at + draw.uniform(1.8, 2.5), 4))
            found += [Event("inject", where, at, round(at + 0.05, 4)), recover]
            at = round(recover.from_s + draw.uniform(2.2, 3.0), 4)
    # and an operator who has the desk is contradicted by another one
    if draw.random() < CONTRADICTED:
        at = draw.uniform(0.1, length_s)
        for name, desk in (("hold", 0), ("resume", 0), ("hold", 0), ("resume", 1)):
            found.append(Event("command", name, round(at, 4), amount=desk))
            at += draw.uniform(0.1, 1.0)
    # and the record waits for so long that the run has to end
    if draw.random() < WAITS:
        found = [Event("stall", "telemetry", round(draw.uniform(0.02, 0.4 * length_s), 4), amount=round(draw.uniform(6e9, 15e9)))]
    # and a command waits behind an abort
    if draw.random() < OUTDATED:
        at, held_up = draw.uniform(0.1, length_s), draw.uniform(0.15, 0.4)
        found.append(Event("stall", "loop", round(at, 4), amount=round(1e9 * held_up)))
        found += [Event("command", name, round(at + when * held_up, 4)) for name, when in (("abort", 0.05), ("hold", 0.1))]
    return sorted(found, key=lambda event: event.from_s)


def _one(draw: random.Random, kind: str, length_s: float, wire: str) -> Event:
    at = round(draw.uniform(0.02, length_s), 4)
    until = round(at + draw.choice((0.001, 0.005, 0.02, 0.1, 0.5, 2.0)) * draw.uniform(0.5, 2.0), 4)
    if kind == "wire":
        name = draw.choice(ON_WIRES)
        where = draw.choice(("drives 0", "drives 1" if wire == "can" else "drives 0", "signals", "sensor"))
        amount = {"truncate": draw.randint(0, 20)}.get(name, round(draw.choice((1e5, 1e6, 1e7, 1e8)) * draw.uniform(0.5, 2.0)))
        return Event(name, where, at, until, draw.choice((0.01, 0.1, 0.5, 1.0)), amount, draw.choice((-1, 0, 1)))
    if kind == "stall":
        return Event("stall", draw.choice(STALLED), at, amount=round(draw.choice((1e6, 1e7, 1e8, 1e9, 1e10)) * draw.uniform(0.5, 2.0)))
    if kind == "inject":
        name = draw.choice(INJECTED)
        return Event("inject", f"{name if wire == 'can' else ON_ETHERCAT.get(name, name)}:{draw.randint(0, 1)}", at, until)
    if kind == "command":
        return Event("command", draw.choice(COMMANDS), at, amount=int(draw.random() < OTHERS))
    if kind == "disk":
        return Event("disk", draw.choice(ON_DISK), at, draw.choice((until, 1e6)), amount=draw.randint(1, 100_000))
    if kind == "kill":
        return Event("kill", "telemetry", at)
    return Event("clock", "", at, amount=round(draw.uniform(-1e10, 1e10)))


def put_on_wires(events: Sequence[Event]) -> list[int]:
    """Tells the world of what happens on wires and to tasks. Returns the numbers of those events."""
    return [
        world.add_event(e.kind, (ROLES if e.kind == "stall" else WIRES).index(e.where), e.direction, e.from_s, e.until_s, e.share, e.amount)
        for e in events
        if e.kind in ON_WIRES or e.kind == "stall"
    ]


def of_stand(events: Sequence[Event]) -> list[dict[str, object]]:
    """Faults of the stand, as its configuration has them."""
    found = []
    for e in events:
        if e.kind == "inject":
            name, index = e.where.split(":")
            lasts_s = 0.0 if _of_plant(e) else e.until_s - e.from_s
            found.append({"name": name, "index": int(index), "at_s": e.from_s + 0.05, "duration_s": lasts_s})
    return found


def _of_plant(injected: Event) -> bool:
    return BY_NAME[injected.where.partition(":")[0]].at == "plant"


class Answer(NamedTuple):
    """What the desk replied to an operator: the command, who he is, when it was given and answered (s since the loop began), the reply;
    {} and never, where there was none."""

    command: str
    desk: int
    given_s: float
    came_s: float
    reply: dict[str, Any]


class Actor:
    """Does what happens at a moment: commands of operators at their desks, the end of a process, a jump of the time of day. A task of its
    own. answers: gets one for each command. stand: gives the control of the stand's faults, None before there is one; without it the stand
    has its faults from its configuration (`of_stand`)."""

    def __init__(self, events: Sequence[Event], answers: list[Answer], stand: Callable[[], StandControl | None] | None = None) -> None:
        self._events = [e for e in events if e.kind in ("command", "kill", "clock") or (e.kind == "inject" and stand)]
        if stand:
            over = [e._replace(kind="clear", from_s=e.until_s) for e in self._events if e.kind == "inject" and not _of_plant(e)]
            self._events = sorted([*self._events, *over], key=lambda e: e.from_s)
        self._stand, self._answers = stand, answers
        self._thread = Thread(target=self._act, name="operator")

    def begin(self) -> None:
        """When the loop does."""
        if self._events:
            self._thread.start()

    def end(self) -> None:
        """The run is over."""
        self._thread.kill()
        if self._events and self._thread.ident is not None:
            self._thread.join()

    def _act(self) -> None:
        for e in self._events:
            self._listen(world.armed_ns() + round(1e9 * e.from_s))
            if e.kind == "command":
                self._give(e)
            elif e.kind == "kill":
                while e.where not in children:  # not begun yet
                    self._listen(world.now_ns() + 1_000_000)
                children[e.where].die()
            elif e.kind == "clock":
                world.step_wall(e.amount)
            elif self._stand and (control := self._stand()):
                name, index = e.where.split(":")
                (control.inject if e.kind == "inject" else control.clear)(name, int(index))
        self._listen(world.NEVER_NS)

    def _give(self, e: Event) -> None:
        end = messages.clients.get(messages.COMMAND_AT)  # none before the bus has begun, and once it has ended
        if end or surroundings.loop_began_ns() >= 0:
            self._answers.append(Answer(e.where, e.amount, 1e-9 * (world.now_ns() - world.armed_ns()), math.inf, {}))
        if end:
            request = {"id": len(self._answers) - 1, "command": e.where, "client": f"operator {e.amount}"}
            with contextlib.suppress(OSError):  # the bus was killed
                messages.sent(end, [b"desk %d" % e.amount, COMMAND, pack(request)])

    def _listen(self, until_ns: int) -> None:
        """Notes what the desk answers until then."""
        while (now := world.now_ns()) < until_ns:
            end = messages.clients.get(messages.COMMAND_AT)
            if end is None or end.fileno() < 0 or not world.wait_readable([end.fileno()], until_ns - now):
                world.wait(until_ns)
                return
            with contextlib.suppress(zmq.Again):
                reply = unpack(messages.received(end)[-1])
                given = self._answers[reply["id"]]
                self._answers[reply["id"]] = given._replace(came_s=1e-9 * (world.now_ns() - world.armed_ns()), reply=reply)


class Pilot:
    """Flies a berthing at the hand controllers by what the bus publishes (`hil_server.operator_desk.autopilot`). A task of its own."""

    def __init__(self, config: TestConfig) -> None:
        self._pilot = pilot_for(config, base_context(config)["start"])
        self._thread = Thread(target=self._fly, name="pilot")

    def begin(self) -> None:
        """When the loop does."""
        self._thread.start()

    def end(self) -> None:
        """The run is over."""
        self._thread.kill()
        if self._thread.ident is not None:
            self._thread.join()

    def _fly(self) -> None:
        picture, held = messages.clients[messages.PICTURE_AT], {int(row.what): row for row in self._pilot.take_over(0.0)}
        hands = {station: HandSender(station, messages.HAND_AT) for station in held}
        while True:
            for station, row in held.items():
                hands[station].send(row.values, row.buttons)
            due = world.now_ns() + HAND_PERIOD_NS
            while world.now_ns() < due and world.wait_readable([picture.fileno()], due - world.now_ns()):
                held |= {int(row.what): row for row in self._look(unpack(messages.received(picture)[-1]))}

    def _look(self, seen: Mapping[str, Any]) -> list[Row]:
        last = seen["last"]
        if last["motion"] != CODES["motion"]["free"]:
            return []
        captured = bool(last["mechanism_state"] & BITS["mechanism_signal"]["DSG"])
        return self._pilot.look(seen["t"], np.array(last["X_TA"]), bool(last["contact"]), captured)


class FaultyFile:
    """A file on a disk with events. A disk that is full takes the bytes that it has room for yet (`amount`), and what is cut off again."""

    def __init__(self, file: BinaryIO, events: Sequence[Event]) -> None:
        self._file, self._events = file, events
        self._room = {e: e.amount for e in events if e.where == "full"}

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def _now(self, *kinds: str) -> Event | None:
        armed = world.armed_ns()
        at = 1e-9 * (world.now_ns() - armed)
        return next((e for e in self._events if e.where in kinds and armed >= 0 and e.from_s <= at < e.until_s), None)

    def write(self, data: memoryview) -> int:
        """As much as the disk takes. Raises OSError."""
        if self._now("error"):
            raise OSError(errno.EIO, "Input/output error")
        if full := self._now("full"):
            if not self._room[full]:
                raise OSError(errno.ENOSPC, "No space left on device")
            data = data[: self._room[full]]
        elif short := self._now("short"):
            data = data[: short.amount]
        written = self._file.write(data)
        if full:
            self._room[full] -= written
        return written

    def truncate(self) -> None:
        """Cuts off what is behind the place at which it writes."""
        cut = os.fstat(self._file.fileno()).st_size - self._file.tell()
        self._file.truncate()
        if full := self._now("full"):
            self._room[full] += cut

    def sync(self) -> None:
        """Nothing is lost in a world that ends with its process. Raises OSError."""
        if self._now("error"):
            raise OSError(errno.EIO, "Input/output error")


class Disk:
    """What a world has in the place of rt_kernels.disk."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = [e for e in events if e.kind == "disk"]

    def new_file(self, path: str) -> FaultyFile:
        """A file that was not there. Raises OSError."""
        return FaultyFile(disk.new_file(path), self._events)

    def sync(self, file: FaultyFile) -> None:
        """What is in the file is on the disk. Raises OSError."""
        file.sync()
