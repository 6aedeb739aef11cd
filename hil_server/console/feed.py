"""The newest of a run's telemetry, kept for all pages of the console: one subscription, however many look."""

import asyncio
import time
import tomllib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hil_server.analysis.crafts import names_in
from hil_server.client import AsyncClient, Batch
from hil_server.console.alarm import end_of, in_words
from hil_server.console.picture import Picture
from hil_server.errors import HilError
from hil_server.line.run_header import CONFIGURATION
from hil_server.telemetry.wire import HAND_ADDRESS
from rt_kernels.codes import bit_names
from rt_kernels.layout import FAULTS

HISTORY = 1500  # points of a curve: a minute of `slow`
LINES = 200
OLD = 0.5  # s without a message


@dataclass(frozen=True)
class Line:
    """One entry of the list of events and faults."""

    t: float
    name: str
    severity: str
    action: str = ""


class Feed:
    """newest: last `slow` message, None before the first. status: last answer about log, ring and desk. about: what `describe` said.

    curve: (t, force maxima) for the plot; joints: names of the crafts' joints, joint_curve: (t, their positions); lines: events and faults,
    newest first; lost: messages that did not reach us; trouble: why nothing comes, in words; picture: how to draw the run; listeners:
    called at every `slow` message.
    """

    def __init__(self, telemetry: str, command: str, hand: str = HAND_ADDRESS) -> None:
        self.addresses = telemetry, command
        self.hand_address = hand
        self.newest: Batch | None = None
        self.status: dict[str, Any] = {}
        self.about: dict[str, Any] = {}
        self.limits: dict[str, float] = {}
        self.curve: deque[list[float]] = deque(maxlen=HISTORY)
        self.joints: tuple[str, ...] = ()
        self.joint_curve: deque[list[float]] = deque(maxlen=HISTORY)
        self.lines: deque[Line] = deque(maxlen=LINES)
        self.lost = 0
        self._trip: Any = None
        self._status_of = ""
        self.trouble = "no telemetry yet"
        self.listeners: set[Callable[[], None]] = set()
        self.picture = Picture({})
        self._frame: tuple[Any, dict[str, Any]] = (None, {})
        self._arrived = {"slow": -float("inf"), "status": -float("inf")}
        self._faults = 0
        self._levels: set[str] = set()

    def client(self, name: str = "console") -> AsyncClient:
        """A client of its own for a page's commands; the caller closes it."""
        return AsyncClient(*self.addresses, name=name)

    def age(self, topic: str = "slow") -> float:
        """Seconds since the newest message."""
        return time.monotonic() - self._arrived[topic]

    async def run(self) -> None:
        """Listens until cancelled."""
        await asyncio.gather(self._listen("slow", self.take), self._listen("status", self.take_status))

    async def _listen(self, topic: str, take: Any) -> None:
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
        self.curve.clear()
        self.joint_curve.clear()
        self.joints = ()
        self.lines.clear()
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

    def take(self, batch: Batch) -> None:
        """The next `slow` message."""
        self.newest, self.trouble = batch, ""
        self._arrived["slow"] = time.monotonic()
        self.lost += batch.lost
        self._trip = self._trip or batch.head.get("trip")
        force = [low if abs(low) > abs(high) else high for low, high in zip(batch.minimum["F_T"], batch.maximum["F_T"], strict=True)]
        self.curve.append([round(batch.t, 4), *(round(f, 2) for f in force)])
        if self.joints and "joint_position" in batch.last:
            self.joint_curve.append([round(batch.t, 4), *batch.last["joint_position"][: len(self.joints)]])
        self._note(batch)
        for listener in self.listeners:
            listener()

    def frame(self) -> dict[str, Any]:
        """The newest message as a frame of the pictures, made once for all pages."""
        if self.newest is not None and self._frame[0] is not self.newest:
            self._frame = self.newest, self.picture.frame(self.newest.last)
        return self._frame[1]

    def channel_names(self) -> list[str]:
        """Scalar channels of the run that can be selected."""
        last = self.newest.last if self.newest else {}
        return [name if not isinstance(value, list) else f"{name}[{i}]" for name, value in last.items()
                for i in range(len(value) if isinstance(value, list) else 1)]  # fmt: skip

    def take_status(self, batch: Batch) -> None:
        """Takes a status message: it becomes `status`, and the trip is the first that this run told of."""
        self.status, self._status_of = batch.head, batch.run
        self._arrived["status"] = time.monotonic()
        if self.newest is not None and batch.run == self.newest.run:
            self._trip = self._trip or batch.head.get("trip")
            for listener in self.listeners:
                listener()

    def situation(self) -> dict[str, Any]:
        """How the run stands, for the banner: its name, its trip, why it ended, whether its data are old; trouble: why nothing comes."""
        if self.newest is None:
            return {"run": "no run", "trouble": self.trouble, "trip": None, "end": "", "from": self.addresses[0]}
        run, last, old = self.newest.run, self.newest.last, self.age() > OLD
        end = end_of(last, self.status if self._status_of == run else {})
        return {"run": run, "trouble": self.trouble, "trip": in_words(self._trip), "end": end, "from": self.addresses[0], "old": old}

    def _note(self, batch: Batch) -> None:
        """New faults, and events: what stays on for several messages is one line."""
        faults = int(batch.any_bits["faults"])
        for name, mask, severity, meaning, action in FAULTS:
            if faults & ~self._faults & mask:
                self.lines.appendleft(Line(batch.t, name, severity, f"{meaning}; {action}"))
        self._faults = faults
        events = set(bit_names("event", int(batch.any_bits["events"])))
        for name in sorted(events - self._levels):
            self.lines.appendleft(Line(batch.t, name, "event"))
        self._levels = events


def limits_of(configuration: dict[str, str]) -> dict[str, float]:
    """Legs' limits out of the run's own configuration; empty when it has none."""
    try:
        platform = tomllib.loads(configuration[CONFIGURATION])["stand"]["platform"]
    except (KeyError, tomllib.TOMLDecodeError):
        return {}
    return {key: value for key, value in platform.items() if isinstance(value, float) and key.startswith("leg_")}
