"""Runs seeds, keeps those that violate something, shrinks each to the fewest events, and writes the test that repeats it."""

import contextlib
import ctypes
import functools
import itertools
import shutil
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil_server import interrupts
from hil_server.config import TestConfig
from hil_server.config.files import Done, no_progress
from hil_server.values import Document
from hil_server.workers import pool
from hil_server.world.events import Event, drawn
from hil_server.world.flight import Flight, fly
from hil_server.world.messages import COMMAND_AT, HAND_AT, PICTURE_AT
from hil_server.world.oracles import violations

# no listener, and the desk at an address of this world; in a berthing that an operator flies a hand controller and a picture, too
NO_BUS = ("telemetry.publish=''", "telemetry.hand_controller=''", f"telemetry.command={COMMAND_AT!r}")
PILOTED = (*NO_BUS, f"telemetry.hand_controller={HAND_AT!r}", f"telemetry.plotjuggler={PICTURE_AT!r}")


@dataclass
class Found:
    """A seed that violated something: its events, the fewest of them that still do, and what was violated."""

    seed: int
    events: Sequence[Event]
    least: Sequence[Event]
    violated: list[str]
    flown: Document = field(default_factory=dict)

    def as_test(self) -> str:
        """The test that repeats it."""
        lines = "\n".join(f"        {event!r}," for event in self.least)
        flown = "".join(f", {key}={value!r}" for key, value in self.flown.items() if value not in (False, "can"))
        return (f"def test_seed_{self.seed}(config, tmp_path):\n    # {self.violated[0]}\n    events = [\n{lines}\n    ]\n"
                f"    assert violations(fly(config, {self.seed}, tmp_path / 'run', events{flown}), config) == []\n")  # fmt: skip


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # mallopt(3)
LARGEST_LOG, MOST_KEPT = 500_000_000, 1_000_000_000  # bytes
Outcome = tuple[str, int, float, Found | None]  # of a seed: how it ended, ticks, seconds of world time


@dataclass
class Hunt:
    """What came of a hunt: how runs ended, ticks flown, seconds of world time."""

    found: list[Found] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    ticks: int = 0
    world_s: float = 0.0

    def in_words(self) -> str:
        """How many runs and ticks, and how they ended."""
        return (f"{self.ends.total()} runs, {self.ticks} ticks, {self.world_s:.0f} s of world time: {dict(self.ends)}; "
                f"{len(self.found)} violate something")  # fmt: skip

    def as_json(self) -> Document:
        """For --json."""
        found = [{"seed": f.seed, "violated": f.violated, "events": [list(e) for e in f.least], "test": f.as_test()} for f in self.found]
        return {"ends": dict(self.ends), "ticks": self.ticks, "world_s": self.world_s, "violations": found}


def tried(config: TestConfig, seed: int, events: Sequence[Event], **flown: Any) -> tuple[Flight, list[str]]:
    """One flight (flown: as `fly` takes them) in a folder that is taken away again, and what it violated, or why that
    cannot be judged."""
    folder = Path(tempfile.mkdtemp(prefix="world-"))
    try:
        with interrupts.sealed():
            flight = fly(config, seed, folder / f"seed-{seed}", events, **flown)
        try:
            return flight, violations(flight, config)
        except Exception as error:  # a log that cannot be read or flown again is a find
            return flight, [f"not judged: {type(error).__name__}: {error}"]
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


def keep_memory() -> None:
    """The next flight takes the memory of the one before: a log that goes back to the kernel costs as much to get again as to read."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):  # of glibc
        mallopt(M_MMAP_THRESHOLD, LARGEST_LOG)
        mallopt(M_TRIM_THRESHOLD, MOST_KEPT)


def one(config: TestConfig, seed: int, length_s: float, **flown: Any) -> Outcome:
    """Flies a seed with the events that it draws: how it ended, ticks, seconds of world time, what was found."""
    keep_memory()
    events = drawn(seed, length_s, flown.get("wire", "can"))
    flight, violated = tried(config, seed, events, **flown)
    found = None
    if violated:
        kinds = {line.partition(":")[0] for line in violated}
        least = shrunk(events, lambda fewer: not kinds.isdisjoint(v.partition(":")[0] for v in tried(config, seed, fewer, **flown)[1]))
        found = Found(seed, events, least, violated, flown)
    return str(flight.summary.get("end", type(flight.error).__name__)), flight.summary.get("ticks") or 0, flight.world_s, found


def hunt(config: TestConfig, seeds: Sequence[int], length_s: float, say: Callable[[str], object], *, cores: int = 1,
         until: Callable[[], bool] = lambda: False, done: Done = no_progress, **flown: Any) -> Hunt:  # fmt: skip
    """Flies each seed. say: hears of each violation at once; cores: so many processes; until: no seed is begun once it is true; done:
    called with how many are flown and how many there are; flown: as `fly` takes them (wire, force, from_start)."""
    result = Hunt()
    asked = itertools.takewhile(lambda _: not until(), seeds)
    fly_one = functools.partial(one, config, length_s=length_s, **flown)
    with contextlib.ExitStack() as end:
        if cores > 1:
            outcomes = _as_asked(end.enter_context(pool(cores)), fly_one, asked, cores)
        else:
            outcomes = map(fly_one, asked)
        try:
            for ended, ticks, world_s, found in outcomes:
                result.ends[ended] += 1
                result.ticks += ticks
                result.world_s += world_s
                if found is not None:
                    result.found.append(found)
                    say(f"seed {found.seed}: {'; '.join(found.violated)}\n{found.as_test()}")
                done(result.ends.total(), len(seeds))
        except KeyboardInterrupt:
            interrupts.remains(result.in_words())
            raise
    return result


def _as_asked(processes: ProcessPoolExecutor, work: Callable[[int], Outcome], seeds: Iterable[int], cores: int) -> Iterator[Outcome]:
    """Results in the order of the seeds; each is asked for when a process is about to be free."""
    waiting: deque[Future[Outcome]] = deque()
    for seed in seeds:
        with interrupts.not_passed_on():
            waiting.append(processes.submit(work, seed))
        if len(waiting) > cores:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
