"""The newest of a run's telemetry, kept for all pages of the console: one subscription, however many look."""

import asyncio
import time
import tomllib
from collections import deque
from dataclasses import dataclass
from typing import Any

from hil_server.analysis.summary import bits_of
from hil_server.client import AsyncClient, Batch
from hil_server.errors import HilError
from hil_server.replay import CONFIGURATION
from rt_kernels.layout import FAULTS

OLD = 0.5  # s after which a value is shown as old
HISTORY = 1500  # points of a curve: a minute of `slow`
LINES = 200


@dataclass(frozen=True)
class Line:
    """One entry of the list of events and faults."""

    t: float
    name: str
    severity: str
    action: str = ""


class Feed:
    """newest: last `slow` message, None before the first. status: last answer about log, ring and desk. about: what `describe` said.

    curve: (t, force maxima) for the plot; lines: events and faults, newest first; lost: messages that did not reach us; trouble: why
    nothing comes, in words.
    """

    def __init__(self, telemetry: str, command: str) -> None:
        self.addresses = telemetry, command
        self.newest: Batch | None = None
        self.status: dict[str, Any] = {}
        self.about: dict[str, Any] = {}
        self.limits: dict[str, float] = {}
        self.curve: deque[list[float]] = deque(maxlen=HISTORY)
        self.lines: deque[Line] = deque(maxlen=LINES)
        self.lost = 0
        self.trouble = "no telemetry yet"
        self._arrived = {"slow": -float("inf"), "status": -float("inf")}
        self._faults = 0
        self._levels: set[str] = set()

    def client(self, name: str = "console") -> AsyncClient:
        return AsyncClient(*self.addresses, name=name)

    def age(self, topic: str = "slow") -> float:
        """Seconds since the newest message."""
        return time.monotonic() - self._arrived[topic]

    @property
    def old(self) -> bool:
        return self.age() > OLD

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
        self.lines.clear()
        self.lost, self._faults, self._levels = 0, 0, set()
        client = self.client()
        try:
            self.about = await client.describe()
            self.limits = limits_of(self.about.get("configuration", {}))
        except HilError as error:
            self.about, self.limits, self.trouble = {"run": run}, {}, str(error)
        finally:
            client.close()

    def take(self, batch: Batch) -> None:
        """The next `slow` message."""
        self.newest, self.trouble = batch, ""
        self._arrived["slow"] = time.monotonic()
        self.lost += batch.lost
        force = [low if abs(low) > abs(high) else high for low, high in zip(batch.minimum["F_T"], batch.maximum["F_T"], strict=True)]
        self.curve.append([round(batch.t, 4), *(round(f, 2) for f in force)])
        self._note(batch)

    def take_status(self, batch: Batch) -> None:
        self.status = batch.head
        self._arrived["status"] = time.monotonic()

    def _note(self, batch: Batch) -> None:
        """New faults, and events: what stays on for several messages is one line."""
        faults = int(batch.any_bits["faults"])
        for name, bit, severity, meaning, action in FAULTS:
            if (faults & ~self._faults) >> bit & 1:
                self.lines.appendleft(Line(batch.t, name, severity, f"{meaning}; {action}"))
        self._faults = faults
        events = set(bits_of("event", int(batch.any_bits["events"])))
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
