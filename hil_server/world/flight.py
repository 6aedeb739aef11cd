"""One live run in a world."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drivers.simulated import world
from hil_server.config import TestConfig
from hil_server.run.session import Options, run_live
from hil_server.values import Document
from hil_server.world import surroundings
from hil_server.world.processes import NoHost, TaskChild, TaskStand
from hil_server.world.surroundings import ROLES, WIRES
from rt_kernels import doors

LONGEST_S = 1800.0  # of world time: whoever waits longer is killed


class Event(NamedTuple):
    """Something that goes wrong, at times since the loop began. where: a wire, or the task of a stall. direction: 0 to the device, 1 from
    it, -1 both. share: of messages. amount: ns of a delay, a repetition, a spread, a stall; bytes that are left."""

    kind: str
    where: str
    from_s: float
    until_s: float = 0.0
    share: float = 1.0
    amount: int = 0
    direction: int = -1

    @property
    def place(self) -> int:
        """Number of the wire or of the task's role."""
        return (ROLES if self.kind == "stall" else WIRES).index(self.where)


@dataclass
class Flight:
    """What came of it. left: what was still there at the end, in words; happened: how often each event did something."""

    seed: int
    log: Path
    summary: Document = field(default_factory=dict)
    error: BaseException | None = None
    left: list[str] = field(default_factory=list)
    happened: list[int] = field(default_factory=list)
    turns: np.ndarray = field(default_factory=lambda: np.zeros(0, world.TURN))
    world_s: float = 0.0


def fly(config: TestConfig, seed: int, out: Path, events: Sequence[Event] = (), turns: int = 0) -> Flight:
    """A live run on the virtual stand over its wires, in virtual time; the same seed, events and configuration give the same log. turns: so
    many hand-overs of the baton are noted."""
    flight = Flight(seed, out / "run.mcap")
    world.begin(seed)
    world.limit(world.now_ns() + round(1e9 * LONGEST_S))
    numbers = [world.add_event(e.kind, e.place, e.direction, e.from_s, e.until_s, e.share, e.amount) for e in events]
    if turns:
        world.keep_turns(turns)
    began = world.now_ns()
    try:
        with doors.opened(surroundings.modules(child=TaskChild, stand=TaskStand, host=NoHost)):
            flight.summary = run_live(config, Options(out=str(out), quiet=True, report=False))
    except (Exception, world.Killed) as error:
        flight.error = error
    flight.world_s = 1e-9 * (world.now_ns() - began)
    flight.happened = [world.happened(number) for number in numbers]
    flight.turns = world.turns()
    flight.left = [*surroundings.died, *([f"{n} sockets of the world are open"] if (n := world.open_sockets()) else [])]
    if world.stuck():
        flight.left.append("nobody was due ever again")
    world.end()
    return flight
