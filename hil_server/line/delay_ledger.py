"""The delay ledger: every term between the motion of the model and the force that answers it, with where its figure comes from.

The sum is what the compensators use; there is no second delay constant anywhere. Terms of the hybrid-stability notes, 5.3:

    sensor filter   low-pass of the wrench path
    sensor          delay inside the sensor: its own filter and electronics
    sensor age      age of the newest record when the tick takes it
    transport       bus, from the setpoint to the drive
    ticks           setpoints that act one or more ticks later
    hold            zero-order hold of the setpoint, half a tick; a whole one for an ideal drive, which is sampled at its end
    integrator      symplectic Euler with the force of this tick: the new position belongs to the end of the tick, minus one tick;
                    constant acceleration half a tick later, explicit Euler a whole one
    drive           low-frequency delay of the drive, 2 zeta / w for one of second order

On a stand whose machine is known ([stand_model]) transport and drive are of the second order with delay that is nearest to its response
along the docking axis, and `platform` holds the lead that all six directions of the platform want together, against everything in the sum.

Origins: measured (on the open device, before the run), identified and its date (`hil-server identify`), configured (a key of a file),
derived (follows from the protocol, the tick or the part).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hil_server.config.model import DriveModel
from hil_server.line.platform_lead import PlatformLead, PlatformModel
from hil_server.line.stand_response import DIRECTIONS
from rt_kernels.context import Delays


@dataclass(frozen=True)
class Term:
    """One entry. origin: measured, identified (with its date), configured, or derived."""

    name: str
    seconds: float
    origin: str


@dataclass(frozen=True)
class DelayLedger:
    """All terms, the model of the drive, and the sums. platform: the lead of the platform's six directions, None for drives alone; unknown:
    delays that no file gives and nothing measures, which the terms count as 0."""

    terms: tuple[Term, ...]
    drive_frequency_hz: float
    drive_damping: float
    measured_leg_delay_s: float
    platform: PlatformLead | None = None
    unknown: tuple[str, ...] = ()

    @property
    def drive_lag_s(self) -> float:
        """Lag of a second-order drive at low frequency, s."""
        return drive_lag(self.drive_frequency_hz, self.drive_damping)

    @property
    def total_s(self) -> float:
        """Delay of the whole loop, s."""
        return math.fsum(term.seconds for term in self.terms)

    @property
    def transport_s(self) -> float:
        """Everything but the drive's own lag: the pure delay that a lead inverts beside the drive."""
        return self.total_s - self.drive_lag_s

    @property
    def sensor_delay_s(self) -> float:
        """From the force to the tick: what does not show in the platform's own tracking."""
        return math.fsum(term.seconds for term in self.terms if term.name in ("sensor filter", "sensor", "sensor age"))

    def sums(self) -> Delays:
        """What the parts get as their context `delays`."""
        return Delays(
            total_s=self.total_s,
            transport_s=self.transport_s,
            sensor_delay_s=self.sensor_delay_s,
            drive_lag_s=self.drive_lag_s,
            drive_frequency_hz=self.drive_frequency_hz,
            drive_damping=self.drive_damping,
            measured_leg_delay_s=self.measured_leg_delay_s,
            lead_rate=self.platform.L1.ravel().tolist() if self.platform else None,
            lead_acceleration=self.platform.L2.ravel().tolist() if self.platform else None,
        )

    def as_dict(self) -> dict[str, float]:
        """Terms by name and their `total`, s."""
        return {term.name: term.seconds for term in self.terms} | {"total": self.total_s}

    def lead_in_words(self) -> str:
        """Lag of stand and loop by the platform's direction, T axes, with the second order of its lead; empty for drives alone."""
        if self.platform is None:
            return ""
        each = zip(DIRECTIONS, np.diag(self.platform.L1), np.diag(self.platform.L2), strict=True)
        return "lag by direction, L1 and L2: " + ", ".join(f"{name} {1e3 * l1:.1f} ms, {1e6 * l2:.0f} ms2" for name, l1, l2 in each)

    def origins(self) -> dict[str, str]:
        """Where the figure of each term comes from."""
        missing = "; the device's own filter NOT KNOWN"
        return {term.name: term.origin + (missing if self.unknown and term.name == "sensor" else "") for term in self.terms}


def drive_lag(frequency_hz: float, damping: float) -> float:
    """2 zeta / w, s; 0 for an ideal drive (frequency 0)."""
    return 2.0 * damping / (2.0 * math.pi * frequency_hz) if frequency_hz > 0.0 else 0.0


def ledger(known: DriveModel | PlatformModel, *, period_s: float, filter_delay_s: float, sensor_delay_s: float = 0.0,
           sensor_age_s: float = 0.0, setpoint_ticks: float = 0.0, measured_leg_delay_s: float = 0.0, integrator_late_ticks: float = 0.0,
           origins: Mapping[str, str] | None = None) -> DelayLedger:  # fmt: skip
    """known: of the drives, or the machine of the stand. setpoint_ticks: ticks until a setpoint acts;
    integrator_late_ticks: against symplectic Euler; the rest in seconds. origins: of what the devices reported, by its key; configured
    where none is given."""
    model = known if isinstance(known, PlatformModel) else None
    drive = known.drive() if isinstance(known, PlatformModel) else known
    ideal = drive.frequency_hz == 0.0
    origin = {"sensor_delay_s": "configured", "sensor_age_s": "configured", "setpoint_ticks": "configured"} | dict(origins or {})
    terms = (
        Term("sensor filter", filter_delay_s, "derived"),
        Term("sensor", sensor_delay_s, origin["sensor_delay_s"]),
        Term("sensor age", sensor_age_s, origin["sensor_age_s"]),
        Term("transport", drive.delay_s, drive.origin),
        Term("ticks", setpoint_ticks * period_s, origin["setpoint_ticks"]),
        Term("hold", period_s if ideal else 0.5 * period_s, "derived"),
        Term("integrator", (integrator_late_ticks - 1.0) * period_s, "derived"),
        Term("drive", drive_lag(drive.frequency_hz, drive.damping), drive.origin),
    )
    # the machine's response holds its own delay
    rest = math.fsum(term.seconds for term in terms if term.name not in ("transport", "drive"))
    lead = model.lead(rest) if model else None
    return DelayLedger(terms, drive.frequency_hz, drive.damping, measured_leg_delay_s, lead)
