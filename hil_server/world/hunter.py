"""Runs seeds, keeps those that violate something, shrinks each to the fewest events, and writes the test that repeats it."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil_server.config import TestConfig
from hil_server.values import Document
from hil_server.world.events import Event, drawn
from hil_server.world.flight import Flight, fly
from hil_server.world.oracles import violations

NO_BUS = tuple(f"telemetry.{key}=''" for key in ("publish", "command", "hand_controller"))  # the bus has no door yet


@dataclass
class Found:
    """A seed that violated something: its events, the fewest of them that still do, and what was violated."""

    seed: int
    events: Sequence[Event]
    least: Sequence[Event]
    violated: list[str]

    def as_test(self) -> str:
        """The test that repeats it."""
        lines = "\n".join(f"        {event!r}," for event in self.least)
        return (f"def test_seed_{self.seed}(config, tmp_path):\n    # {self.violated[0]}\n    events = [\n{lines}\n    ]\n"
                f"    assert violations(fly(config, {self.seed}, tmp_path / 'run', events), config) == []\n")  # fmt: skip


@dataclass
class Hunt:
    """What came of a hunt: how runs ended, ticks flown, seconds of world time."""

    found: list[Found] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    ticks: int = 0
    world_s: float = 0.0

    def as_json(self) -> Document:
        """For --json."""
        found = [{"seed": f.seed, "violated": f.violated, "events": [list(e) for e in f.least], "test": f.as_test()} for f in self.found]
        return {"ends": dict(self.ends), "ticks": self.ticks, "world_s": self.world_s, "violations": found}


def tried(config: TestConfig, seed: int, events: Sequence[Event], force: bool = False) -> tuple[Flight, list[str]]:
    """One flight in a folder that is taken away again, and what it violated."""
    folder = Path(tempfile.mkdtemp(prefix="world-"))
    try:
        flight = fly(config, seed, folder / f"seed-{seed}", events, force=force)
        return flight, violations(flight, config)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shrunk(events: Sequence[Event], violates: Callable[[Sequence[Event]], bool]) -> list[Event]:
    """The events without all those without which it still violates."""
    least = list(events)
    for event in events:
        fewer = [one for one in least if one is not event]
        if len(fewer) < len(least) and violates(fewer):
            least = fewer
    return least


def hunt(config: TestConfig, seeds: Iterable[int], length_s: float, say: Callable[[str], object], force: bool = False) -> Hunt:
    """Flies each seed with the events that it draws. say: hears of each violation at once."""
    result = Hunt()
    for seed in seeds:
        events = drawn(seed, length_s)
        flight, violated = tried(config, seed, events, force)
        result.ends[str(flight.summary.get("end", type(flight.error).__name__))] += 1
        result.ticks += flight.summary.get("ticks") or 0
        result.world_s += flight.world_s
        if violated:
            kinds = {one.partition(":")[0] for one in violated}

            def violates(fewer: Sequence[Event], seed: int = seed, kinds: set[str] = kinds) -> bool:
                return not kinds.isdisjoint(one.partition(":")[0] for one in tried(config, seed, fewer, force)[1])

            result.found.append(Found(seed, events, shrunk(events, violates), violated))
            say(f"seed {seed}: {'; '.join(violated)}\n{result.found[-1].as_test()}")
    return result
