"""The newest of a run's telemetry, kept for all pages of the console: one subscription, however many look."""

import asyncio
import contextlib
import math
import time
import tomllib
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from hil_server import registry
from hil_server.bus.publisher import Trip
from hil_server.bus.wire import HAND_ADDRESS, Message
from hil_server.client import AsyncClient, Batch
from hil_server.console.alarm import end_of, in_words
from hil_server.console.history import History
from hil_server.console.picture import Picture
from hil_server.console.programme import newest_programme, shown
from hil_server.errors import HilError
from hil_server.judge.crafts import names_in
from hil_server.line.run_header import CONFIGURATION
from hil_server.log.format import Facts
from hil_server.values import finite
from rt_kernels.codes import bit_names
from rt_kernels.layout import FAULTS
from rt_kernels.pictures import Values

LINES = 200
OLD = 0.5  # s of age, of the newest tick that has come
PROGRAMME_PERIOD = 1.0  # s between two looks at the programme's file


@dataclass(frozen=True)
class Line:
    """One entry of the list of events and faults."""

    t: float
    name: str
    severity: str
    action: str = ""


class Feed:
    """newest: last `slow` message, None before the first. status: last answer about log, ring and desk. about: answer of `describe`.

    history: the last minute of every channel; joints: names of the crafts' joints; lines: events and faults, newest first; lost: messages
    that did not reach us; trouble: why nothing comes, in words; picture: how to draw the run; listeners: called at every `slow` message.

    Sent to pages only when it is another object: facts (of the run: ledger, tunable parameters, limits, channels with units),
    requirements (with their margins so far), rows (the lines as plain data), programme (the newest one below `logs`, see
    `hil_server.console.programme.shown`).
    """

    def __init__(self, telemetry: str, command: str, hand: str = HAND_ADDRESS, logs: Path | None = None) -> None:
        self.addresses = telemetry, command
        self.hand_address = hand
        self.newest: Batch | None = None
        self.status: Message = {}
        self.about: Message = {}
        self.limits: dict[str, float] = {}
        self.history = History()
        self.joints: tuple[str, ...] = ()
        self.facts: dict[str, object] | None = None
        self.requirements: list[dict[str, object]] | None = None
        self.rows: list[dict[str, object]] = []
        self.programme: dict[str, object] | None = None
        self._logs = logs
        self._programme_seen: Facts | None = None
        self.lines: deque[Line] = deque(maxlen=LINES)
        self.lost = 0
        self._trip: Trip | None = None
        self._status_of = ""
        self.trouble = "no telemetry yet"
        self.listeners: set[Callable[[], None]] = set()
        self.picture = Picture({})
        self._frame: tuple[Batch | None, dict[str, object]] = (None, {})
        self._told = -float("inf")  # when pages last heard of a message
        self._arrived = {"slow": -float("inf"), "status": -float("inf")}
        self._faults = 0
        self._levels: set[str] = set()

    def client(self, name: str = "console") -> AsyncClient:
        """A client of its own for a page's commands; the caller closes it."""
        return AsyncClient(*self.addresses, name=name)

    def age(self, topic: str = "slow") -> float:
        """Seconds since the newest message."""
        return time.monotonic() - self._arrived[topic]

    def data_age(self, wall: float | None = None) -> float:
        """Age of the newest tick that has come, s: by the time of day that its message says (the run's clock against this machine's), so
        that what a busy bus held up is not taken for new; at least the time since it came. wall: the time of day now."""
        told = self.newest.head.get("wall_of_tick") if self.newest is not None else None
        late = (time.time() if wall is None else wall) - told if isinstance(told, int | float) and math.isfinite(told) else 0.0
        return max(late, self.age())

    async def run(self) -> None:
        """Listens until cancelled."""
        topics = {"slow": self.take, "status": self.take_status, "requirements": self.take_requirements}
        await asyncio.gather(*(self._listen(topic, take) for topic, take in topics.items()), self._watch_programme())

    async def _watch_programme(self) -> None:
        while self._logs is not None:
            found = await asyncio.to_thread(newest_programme, self._logs)
            if found != self._programme_seen:
                self._programme_seen, self.programme = found, shown(found)
                self._tell()
            await asyncio.sleep(PROGRAMME_PERIOD)

    async def _listen(self, topic: str, take: Callable[[Batch], None]) -> None:
        while True:
            try:
                with_client = self.client()
                async for batch in with_client.subscribe(topic=topic):
                    if topic == "slow" and (self.newest is None or batch.run != self.newest.run or not self.about):
                        await self._new_run(batch.run)
                    take(batch)
            except (HilError, ValueError) as error:
                self.trouble = str(error)
                await asyncio.sleep(1.0)

    async def _new_run(self, run: str) -> None:
        self.history.clear()
        self.joints = ()
        self.lines.clear()
        self.rows, self.requirements = [], None
        self.lost, self._faults, self._levels, self._trip = 0, 0, set(), None
        client = self.client()
        try:
            self.about = await client.describe()
            self.joints = names_in(self.about.get("notes", [])).get("joints", ())
            self.limits = limits_of(self.about.get("configuration", {}))
            self.picture = Picture(self.about.get("configuration", {}))
        except HilError as error:
            self.about, self.limits, self.trouble = {"run": run}, {}, str(error)
            self.picture = Picture({})
        finally:
            client.close()
        self.facts = facts_of(self.about, self.limits, self.picture.document)

    def take(self, batch: Batch) -> None:
        """The next `slow` message."""
        self.newest, self.trouble = batch, ""
        self._arrived["slow"] = time.monotonic()
        self.lost += batch.lost
        self._trip = self._trip or batch.head.get("trip")
        self.history.add(batch.t, batch.last, batch.minimum, batch.maximum)
        self._note(batch)
        if self.data_age() <= OLD or time.monotonic() - self._told > OLD:
            # of messages that were held up one in a while is shown: drawing them all would keep the newest waiting longer
            self._told = time.monotonic()
            self._tell()

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()

    def figures(self) -> dict[str, object]:
        """Of the newest message what pages without pictures draw as well: legs, and the values in force of the tunable parameters."""
        last: Values = self.newest.last if self.newest else {}
        names = {"leg": "measured_leg", "follows": "following_error", "stroke_margin": "stroke_margin", "tuned": "tuned"}
        return {short: last[name] for short, name in names.items() if name in last}

    def frame(self) -> dict[str, object]:
        """The newest message as a frame of the pictures, made once for all pages."""
        if self.newest is not None and self._frame[0] is not self.newest:
            self._frame = self.newest, {**self.picture.frame(self.newest.last), **self.figures()}
        return self._frame[1]

    def take_requirements(self, batch: Batch) -> None:
        """Takes the requirements with their margins so far; of another run than the newest they say nothing."""
        found = batch.head.get("requirements")
        if isinstance(found, list) and (self.newest is None or batch.run == self.newest.run):
            self.requirements = [{key: finite(value) for key, value in one.items()} for one in found if isinstance(one, dict)]
            self._tell()

    def take_status(self, batch: Batch) -> None:
        """Takes a status message: it becomes `status`, and the trip is the first that this run told of."""
        self.status, self._status_of = batch.head, batch.run
        self._arrived["status"] = time.monotonic()
        if self.newest is not None and batch.run == self.newest.run:
            self._trip = self._trip or batch.head.get("trip")
            self._tell()

    def situation(self) -> dict[str, object]:
        """How the run stands, for the banner: its name, its trip, why it ended, whether its data are old, who holds the desk; trouble: why
        nothing comes."""
        if self.newest is None:
            return {"run": "no run", "trouble": self.trouble, "trip": None, "end": "", "from": self.addresses[0], "log": "", "desk": ""}
        run, last, old = self.newest.run, self.newest.last, self.data_age() > OLD
        end = end_of(last, self.status if self._status_of == run else {})
        log = self.status.get("log_path", "") if self._status_of == run else ""
        trip = in_words(self._trip)
        desk = self.status.get("desk_holder", "")
        news = {"run": run, "trouble": self.trouble, "trip": trip, "end": end, "from": self.addresses[0]}
        return news | {"old": old, "log": log, "desk": desk}

    def _note(self, batch: Batch) -> None:
        """New faults, and events: what stays on for several messages is one line."""
        before = self.lines[0] if self.lines else None
        faults = int(batch.any_bits["faults"])
        for name, mask, severity, meaning, action, _ in FAULTS:
            if faults & ~self._faults & mask:
                self.lines.appendleft(Line(batch.t, name, severity, f"{meaning}; {action}"))
        self._faults = faults
        events = set(bit_names("event", int(batch.any_bits["events"])))
        for name in sorted(events - self._levels):
            self.lines.appendleft(Line(batch.t, name, "event"))
        self._levels = events
        if self.lines and self.lines[0] is not before:
            self.rows = [asdict(line) for line in self.lines]


def facts_of(about: Message, limits: dict[str, float], document: Facts) -> dict[str, object]:
    """Of a run for the page what does not change: delay ledger with origins, tunable parameters, limits, units of the channels."""
    units = {field[0]: field[3] for field in about.get("fields", []) if len(field) > 3}
    units |= {channel[0]: channel[1] for channel in about.get("aux", []) if len(channel) > 1}
    return {
        "ledger": about.get("delay_ledger", {}),
        "origins": about.get("delay_origins", {}),
        "tunables": about.get("tunables", []),
        "legs": [limits.get("leg_length_min_m"), limits.get("leg_length_max_m")],
        "units": units,
        "period_ms": 1e-6 * about.get("period_ns", 0),
        "test": document.get("test", {}).get("name", ""),
        "does": does_of(document.get("guidance", {}).get("part", "")),
    }


def does_of(guidance: str) -> dict[str, str]:
    """What the commands do whose effect is this guidance's own, in words, by name."""
    with contextlib.suppress(HilError):
        commands = registry.part("guidance", guidance).COMMANDS
        return {command.name: command.does for command in commands if command.does}
    return {}


def limits_of(configuration: dict[str, str]) -> dict[str, float]:
    """Legs' limits out of the run's own configuration; empty when it has none."""
    try:
        platform = tomllib.loads(configuration[CONFIGURATION])["stand"]["platform"]
    except (KeyError, tomllib.TOMLDecodeError):
        return {}
    return {key: value for key, value in platform.items() if isinstance(value, float) and key.startswith("leg_")}
