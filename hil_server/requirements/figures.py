"""Figures of a whole run that a requirement may name.

They are gathered record by record, so that they are the same live, in a campaign and from a log.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hil_server.requirements.window import pieces
from rt_kernels.layout import CODES, FAULTS

LATE_BINS = 1_000_001  # lateness is counted to the microsecond, up to one second
COUNTED = sum(mask for _, mask, severity, *_ in FAULTS if severity != "note")


class Gathered:
    """What the figures are made of. contacts: per contact, [time of its beginning s, duration s, work J, closing speed before it m/s]."""

    def __init__(self) -> None:
        self.first_s = self.last_s = 0.0
        self.records = 0
        self.capture_s = self.first_contact_s = self.complete_s = -1.0
        self.missed = self.overflow = self.faults = 0
        self.late = np.zeros(0, np.int64)
        self.contacts: list[list[float]] = []
        self._touching = False
        self._before: np.void | None = None  # the last record of the block before

    def see(self, records: np.ndarray, late: bool) -> None:
        """Takes the next records of the run. late: whether anybody asks for the lateness."""
        time_s = records["time_ns"] * 1e-9
        if not self.records:
            self.first_s = float(time_s[0])
        self.records += len(records)
        last = records[-1]
        self.last_s = float(time_s[-1])
        self.capture_s, self.first_contact_s = float(last["capture_time"]), float(last["first_contact_time"])
        complete = np.flatnonzero(records["sequence"] == CODES["sequence"]["complete"])
        if len(complete) and self.complete_s < 0.0:
            self.complete_s = float(time_s[complete[0]])
        self.missed, self.overflow = int(last["missed_total"]), int(last["overflow_total"])
        self.faults = bin(int(last["faults"]) & COUNTED).count("1")
        if late:
            counts = np.bincount(np.clip(-(-records["lateness_ns"] // 1000), 0, LATE_BINS - 1))
            if len(counts) > len(self.late):
                self.late = np.concatenate([self.late, np.zeros(len(counts) - len(self.late), np.int64)])
            self.late[: len(counts)] += counts
        self._contacts(records, time_s)
        self._before = records[-1].copy()

    def _contacts(self, records: np.ndarray, time_s: np.ndarray) -> None:
        touching = records["contact"] != 0
        for start, stop, begins in pieces(touching, self._touching):
            if not touching[start]:
                continue
            if begins:
                before = records[start - 1] if start else self._before
                self.contacts.append([float(time_s[start]), 0.0, 0.0, float((records[0] if before is None else before)["V_TA"][0])])
            present = self.contacts[-1]
            present[1] = float(time_s[stop - 1]) - present[0]
            present[2] = float(records["contact_work"][stop - 1])
        self._touching = bool(touching[-1])

    def late_us(self, share: float) -> float:
        """Lateness that this share of the ticks did not exceed, us, rounded up."""
        total = int(self.late.sum())
        return float(np.searchsorted(np.cumsum(self.late), max(1, np.ceil(share * total)))) if total else float("nan")


@dataclass(frozen=True)
class Figure:
    """unit: of what `of` gives. of: the values with their times, (value, time_s); none when it did not come. event: it has to come."""

    unit: str
    meaning: str
    of: Callable[[Gathered], list[tuple[float, float | None]]]
    event: str = ""
    per_contact: bool = False


def _came(time_s: float, value: float) -> list[tuple[float, float | None]]:
    return [(value, time_s)] if time_s >= 0.0 else []


def _now(value: float) -> list[tuple[float, float | None]]:
    return [] if value != value else [(value, None)]


FIGURES: dict[str, Figure] = {
    "first_contact_time_s": Figure("s", "run time of the first contact", lambda g: _came(g.first_contact_s, g.first_contact_s),
                                   event="no contact"),
    "capture_time_s": Figure("s", "run time of the capture", lambda g: _came(g.capture_s, g.capture_s), event="not captured"),
    "captured_after_s": Figure("s", "from the first contact to the capture", lambda g: _came(g.capture_s, g.capture_s - g.first_contact_s),
                               event="not captured"),
    "completed_after_s": Figure("s", "from the first contact to the completed docking",
                                lambda g: _came(g.complete_s, g.complete_s - g.first_contact_s), event="not completed"),
    "duration_s": Figure("s", "length of the run", lambda g: _now(g.last_s - g.first_s)),
    "missed": Figure("-", "periods that the loop skipped", lambda g: _now(g.missed)),
    "overflow": Figure("-", "samples that found the ring full", lambda g: _now(g.overflow)),
    "faults": Figure("-", "kinds of faults that were raised; notes are none", lambda g: _now(g.faults)),
    "late_p50": Figure("us", "lateness that half of the ticks did not exceed, to the microsecond", lambda g: _now(g.late_us(0.5))),
    "late_p99": Figure("us", "of 99 % of the ticks", lambda g: _now(g.late_us(0.99))),
    "late_p999": Figure("us", "of 99.9 % of the ticks", lambda g: _now(g.late_us(0.999))),
    "late_max": Figure("us", "of all ticks", lambda g: _now(g.late_us(1.0))),
    "contacts": Figure("-", "number of contacts", lambda g: _now(len(g.contacts))),
    "contact_duration_s": Figure("s", "length of each contact", lambda g: [(c[1], c[0]) for c in g.contacts], per_contact=True),
    "contact_work_j": Figure("J", "what each contact did on the vehicles' model; below zero it took energy",
                             lambda g: [(c[2], c[0]) for c in g.contacts], per_contact=True),
    "closing_speed_m_s": Figure("m/s", "V_TA[0] in the tick before each contact", lambda g: [(c[3], c[0]) for c in g.contacts],
                                per_contact=True),
}  # fmt: skip
LATE = {name for name in FIGURES if name.startswith("late_")}
