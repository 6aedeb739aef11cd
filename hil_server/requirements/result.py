"""The verdict on one requirement."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from hil_server.values import Document, Given

MET, VIOLATED, NOT_JUDGED = "met", "violated", "not judged"


@dataclass(frozen=True)
class Result:
    """A requirement against a run, or against what has been of it.

    verdict: "met", "violated" or "not judged" (what it speaks of did not come). value: what was reached, limit: the bound that is
    nearest to it, margin: how far it is within (negative: beyond), all in `unit`; None where there is no such number. time_s, phase: when;
    words: a sentence for people.
    """

    name: str
    verdict: str
    value: float | None
    limit: float | None
    margin: float | None
    unit: str
    time_s: float | None
    phase: str
    source: str
    words: str

    def as_dict(self) -> Document:
        """For JSON and the bus."""
        return asdict(self)

    @classmethod
    def from_dict(cls, kept: Given) -> "Result":
        """What `as_dict` gave. Raises KeyError for what is none."""
        return cls(**{f.name: kept[f.name] for f in fields(cls)})


def violated(results: Iterable[Result | Given]) -> list[str]:
    """Names of the requirements that are violated; of results or of their dicts."""
    found = []
    for one in results:
        row = one.as_dict() if isinstance(one, Result) else one
        if row["verdict"] == VIOLATED:
            found.append(str(row["name"]))
    return found


def counted(results: Sequence[Result | Given]) -> str:
    """How many of which verdict, in words: "4 met, 1 violated"; "none" without any."""
    rows = [one.as_dict() if isinstance(one, Result) else one for one in results]
    shares = [(verdict, sum(row["verdict"] == verdict for row in rows)) for verdict in (MET, VIOLATED, NOT_JUDGED)]
    return ", ".join(f"{n} {verdict}" for verdict, n in shares if n) or "none"


def finite(value: float) -> float | None:
    """The number, None for one that is none."""
    return float(value) if math.isfinite(value) else None
