"""Requirements of a test: what its file demands of the run, and the verdicts with margins (docs/requirements.md).

`Watch` is the one evaluation, fed with records: by the bus of a live run, by a simulation, by the cases of a campaign. `of_log` feeds it
with a log.
"""

import tomllib
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from hil_server.requirements.declaration import Requirement, read
from hil_server.requirements.expression import Carried
from hil_server.requirements.result import MET, NOT_JUDGED, VIOLATED, Result, counted, violated
from hil_server.requirements.watch import Watch
from hil_server.values import Document, Given

__all__ = ["MET", "NOT_JUDGED", "VIOLATED", "Requirement", "Result", "Watch", "counted", "of_configuration", "of_log", "read", "violated"]

CONFIGURATION = "configuration.toml"  # as hil_server.line.run_header writes it
PIECE = 4096  # records at once: their columns stay in the cache


class Header(Protocol):
    """What of a log's header is needed."""

    configuration: dict[str, str]

    @property
    def aux(self) -> Iterable[Carried]: ...


class Logged(Protocol):
    """What of a log is needed (`hil_server.log.reader.Log`)."""

    records: np.ndarray
    end: Document

    @property
    def header(self) -> Header: ...


def of_configuration(text: str, aux: Iterable[Carried]) -> list[Requirement]:
    """The requirements in a configuration as a log or a run's header keeps it; none in one that cannot be read. A channel that the run
    does not carry was accepted when it was assembled: its requirement is not judged."""
    try:
        rows = tomllib.loads(text).get("requirement", [])
    except tomllib.TOMLDecodeError:
        return []
    return read(rows, aux, absent=lambda name: True)


def of_log(log: Logged, rows: Iterable[Given] | None = None) -> list[Result]:
    """Verdicts on the requirements of a log's run, in the order of its file. rows: others instead, as a file has them.

    A thinned log keeps the results of the run itself, which saw every tick. Raises ConfigurationError for a channel that the log does not
    have."""
    if rows is None and (kept := log.end.get("requirements")) is not None:
        return [Result.from_dict(row) for row in kept]
    aux = log.header.aux
    demanded = of_configuration(log.header.configuration.get(CONFIGURATION, ""), aux) if rows is None else read(rows, aux)
    watch = Watch(demanded)
    for at in range(0, len(log.records) if demanded else 0, PIECE):
        watch.see(log.records[at : at + PIECE])
    return watch.results()
