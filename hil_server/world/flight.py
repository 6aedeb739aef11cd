"""One live run in a world."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from drivers.simulated import world
from hil_server.config import TestConfig
from hil_server.config.files import Done
from hil_server.line.assembly import Assembly
from hil_server.predict.prediction import Prediction, predict
from hil_server.run.session import Options, run_live
from hil_server.values import Document
from hil_server.world import ethercat_master, messages, surroundings
from hil_server.world.events import Actor, Answer, Disk, Event, Pilot, of_stand, put_on_wires
from hil_server.world.processes import NoHost, TaskChild, TaskStand, drive_log, outlive, stands
from rt_kernels import doors

WIRES_OF_DRIVES: dict[str, Document] = {
    "can": {},
    "ethercat": {"wire": "ethercat", "interface": "slaves", "master_interface": "master"},  # surroundings.INTERFACES
}
LONGEST_S = 1800.0  # of world time: a task that waits longer is killed
NO_DATA_FRAME = np.uint32(0xE0000000)  # of a CAN identifier: extended, remote, error frame
FRAMES = 24_000_000  # most that are noted of a run: 13 a tick, for so long


_predictions: dict[tuple[str, str], Prediction] = {}


def _predicted(config: TestConfig, test: Assembly, done: Done) -> Prediction:
    """The prediction of one configuration and one ledger of delays is made once; it takes no world time."""
    key = config.hash, repr(test.ledger)
    if key not in _predictions:
        world.aside(True)
        try:
            with doors.closed():
                _predictions[key] = predict(config, test, done)
        finally:
            world.aside(False)
    return _predictions[key]


@dataclass
class Flight:
    """Its outcome. left: what was still there at the end, in words; frames: CAN frames as the server sent and received them (world.FRAME);
    drives: what the drives noted of their states (StandLoop.states); turns: hand-overs of the baton (world.TURN), names: of tasks;
    answers: to what operators commanded; began_ns: world time of the loop's begin, or, without one, of the first event's; ran_s: how long
    the loop ran; from_start: as given to `fly`. Times of events and answers are since `began_ns`."""

    seed: int
    events: Sequence[Event]
    log: Path
    summary: Document = field(default_factory=dict)
    error: BaseException | None = None
    left: list[str] = field(default_factory=list)
    frames: np.ndarray = field(default_factory=lambda: np.zeros(0, world.FRAME))
    drives: np.ndarray = field(default_factory=lambda: np.zeros((0, 6), np.int64))
    turns: np.ndarray = field(default_factory=lambda: np.zeros(0, world.TURN))
    names: dict[int, str] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    from_start: bool = False
    began_ns: int = -1
    ran_s: float = 0.0
    world_s: float = 0.0

    @cached_property
    def of_drives(self) -> np.ndarray:
        """Frames of the drives' wires, with identifiers as who hears them reads them."""
        here, last = self.frames, surroundings.WIRES.index("drives 2")
        f: np.ndarray = here[(here["wire"] <= last) & (here["id"] & NO_DATA_FRAME == 0)]
        f["id"] &= 0x7FF
        return f

    def count_from(self, began_ns: int) -> None:
        """Times of events and answers are since the loop's begin from now on."""
        late_s = 1e-9 * (began_ns - self.began_ns)
        self.events = [e._replace(from_s=e.from_s - late_s, until_s=e.until_s - late_s) for e in self.events]
        self.answers = [a._replace(given_s=a.given_s - late_s, came_s=a.came_s - late_s) for a in self.answers]
        self.began_ns = began_ns


def fly(config: TestConfig, seed: int, out: Path, events: Sequence[Event] = (), *, turns: int = 0, force: bool = False,
        from_start: bool = False, wire: str = "can") -> Flight:  # fmt: skip
    """A live run on the virtual stand over its wires, in virtual time; the same seed, events and configuration give the same log.

    wire: of the stand's drives (WIRES_OF_DRIVES). turns: so many hand-overs of the baton are noted. force: as of `hil-server run`.
    from_start: the events' time begins with the set-up of the devices and not with the loop."""
    flight = Flight(seed, events, out / "run.mcap", from_start=from_start)
    stand = {"drives": WIRES_OF_DRIVES[wire], "faults": [] if from_start else of_stand(events)}
    options = Options(out=str(out), quiet=True, report=False, force=force, stand={key: value for key, value in stand.items() if value})
    with flown(flight, turns), contextlib.ExitStack() as end:
        if config.setup.telemetry.addresses["hand_controller"]:
            pilot = Pilot(config)
            surroundings.with_the_loop.append(pilot.begin)
            end.callback(pilot.end)
        flight.summary = run_live(config, options)
    return flight


@contextlib.contextmanager
def flown(flight: Flight, turns: int = 0) -> Iterator[None]:
    """Live runs of the block are in a world of the flight's seed and events. At its end the flight has how it went; an error of the
    block is kept there, not raised."""
    world.begin(flight.seed)
    began = world.now_ns()
    world.limit(began + round(1e9 * LONGEST_S))
    put_on_wires(flight.events)
    if flight.from_start:
        world.arm()
    world.keep_frames(FRAMES)
    if turns:
        world.keep_turns(turns)
    drive_log.clear()
    stands.clear()
    messages.clients.clear()  # a desk that hung has left its end
    parts = {"child": TaskChild, "stand": TaskStand, "host": NoHost, "disk": Disk(flight.events), "predict": _predicted,
             "pysoem": lambda: ethercat_master, "messages": messages.module, "peers": lambda socket, *_: socket}  # fmt: skip
    try:
        with doors.opened(surroundings.modules(**parts)), contextlib.ExitStack() as end:
            end.callback(surroundings.end_tasks)
            end.callback(outlive)
            actor = Actor(flight.events, flight.answers, (lambda: stands[-1].control if stands else None) if flight.from_start else None)
            end.callback(actor.end)
            if flight.from_start:
                actor.begin()
            else:
                surroundings.with_the_loop.append(actor.begin)
            yield
    except (Exception, world.Killed) as error:
        flight.error = error
    flight.world_s = 1e-9 * (world.now_ns() - began)
    flight.ran_s = 1e-9 * surroundings.loop_ran_ns()
    flight.began_ns, flight.frames, flight.turns = world.armed_ns(), world.frames(), world.turns()
    if flight.from_start and surroundings.loop_began_ns() >= 0:
        flight.count_from(surroundings.loop_began_ns())
    flight.drives = drive_log[-1] if drive_log else flight.drives
    flight.left, flight.names = list(surroundings.died), dict(surroundings.names)
    if len(flight.frames) == FRAMES:
        flight.left.append("more frames than are kept")
    if open_sockets := world.open_sockets():
        flight.left.append(f"{open_sockets} sockets of the world are open")
    if world.stuck():
        flight.left.append("no task was due ever again")
    world.end()
