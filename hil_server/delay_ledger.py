"""The delay ledger: every term between the motion of the model and the force that answers it, with where its figure comes from.

The sum is what the compensators use; there is no second delay constant anywhere. Terms of the hybrid-stability notes, 5.3:

    sensor filter   low-pass of the wrench path
    sensor          delay of the sensor itself, and the age of the record at the tick
    transport       bus, from the set point to the drive
    ticks           set points that act one or more ticks later
    hold            zero-order hold of the set point, half a tick; a whole one for an ideal drive, which is sampled at its end
    integrator      symplectic Euler with the force of this tick: the new position belongs to the end of the tick, minus one tick
    drive           low-frequency delay of the drive, 2 zeta / w for one of second order
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Term:
    """One entry. origin: configured, identified (with its date), measured, or derived."""

    name: str
    seconds: float
    origin: str


@dataclass(frozen=True)
class DelayLedger:
    """All terms, the model of the drive, and the sums."""

    terms: tuple[Term, ...]
    drive_frequency_hz: float
    drive_damping: float
    measured_leg_delay_s: float

    @property
    def drive_lag_s(self) -> float:
        return drive_lag(self.drive_frequency_hz, self.drive_damping)

    @property
    def total_s(self) -> float:
        return math.fsum(term.seconds for term in self.terms)

    @property
    def transport_s(self) -> float:
        """Everything but the drive's own lag: the pure delay that a lead inverts beside the drive."""
        return self.total_s - self.drive_lag_s

    @property
    def sensor_delay_s(self) -> float:
        """From the force to the tick: what does not show in the platform's own tracking."""
        return math.fsum(term.seconds for term in self.terms if term.name in ("sensor filter", "sensor"))

    def sums(self) -> dict[str, float]:
        """What the parts get as their context `delays`."""
        return {
            "total_s": self.total_s,
            "transport_s": self.transport_s,
            "sensor_delay_s": self.sensor_delay_s,
            "drive_lag_s": self.drive_lag_s,
            "drive_frequency_hz": self.drive_frequency_hz,
            "drive_damping": self.drive_damping,
            "measured_leg_delay_s": self.measured_leg_delay_s,
        }

    def as_dict(self) -> dict[str, float]:
        return {term.name: term.seconds for term in self.terms} | {"total": self.total_s}


def drive_lag(frequency_hz: float, damping: float) -> float:
    """2 zeta / w, s; 0 for an ideal drive (frequency 0)."""
    return 2.0 * damping / (2.0 * math.pi * frequency_hz) if frequency_hz > 0.0 else 0.0


def ledger(drive: Mapping[str, Any], *, period_s: float, filter_delay_s: float, sensor_delay_s: float, setpoint_ticks: float,
           measured_leg_delay_s: float) -> DelayLedger:  # fmt: skip
    """drive: frequency_hz, damping, delay_s, origin. setpoint_ticks: ticks until a set point acts; the rest in seconds."""
    ideal = drive["frequency_hz"] == 0.0
    terms = (
        Term("sensor filter", filter_delay_s, "derived"),
        Term("sensor", sensor_delay_s, "configured"),
        Term("transport", drive["delay_s"], drive["origin"]),
        Term("ticks", setpoint_ticks * period_s, "configured"),
        Term("hold", period_s if ideal else 0.5 * period_s, "derived"),
        Term("integrator", -period_s, "derived"),
        Term("drive", drive_lag(drive["frequency_hz"], drive["damping"]), drive["origin"]),
    )
    return DelayLedger(terms, drive["frequency_hz"], drive["damping"], measured_leg_delay_s)
