"""How near a played contact comes to the limits of its stand: valves, legs, supply, load cell, monitors.

Each figure is the largest of the closed loop (of the supply's pressure the smallest). What stops a run, or takes the stand to where its
drives follow no longer, refuses the arming. Rates and accelerations that the limits clip for a moment are in the restitution already and
are only reported: of an acceleration that is the limit itself, for the legs are sent no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hil_server.config import TestConfig, check_part
from hil_server.requirements.window import window_min

FIELDS = (
    "tick", "F_S", "leg_rate_demand", "leg_rate_setpoint", "leg_force", "leg_valve", "supply_pressure", "stroke_margin", "following_error",
    "contact_energy_ratio", "unit_energy_ratio",
)  # fmt: skip
NEAR = 0.8  # of a limit: what comes nearer is worth a word


@dataclass(frozen=True)
class Margin:
    """reached, limit: in `unit`. share: 1 at the limit, larger beyond it. stops: a run that gets there is stopped or does not follow."""

    name: str
    reached: float
    limit: float
    unit: str
    share: float
    stops: bool

    @property
    def touched(self) -> bool:
        """Whether the limit is reached."""
        return self.share >= 1.0

    def __str__(self) -> str:
        return f"{self.name} {self.reached:.3g} of {self.limit:.3g} {self.unit}".rstrip()


def margins(records: np.ndarray | Mapping[str, np.ndarray], config: TestConfig, period_s: float) -> tuple[Margin, ...]:
    """Of the records of the closed loop (n,), or their columns FIELDS, against the limits of the test `config`, nearest first.
    Legs that measure no force or valve have no such margin."""
    platform, stand = config.stand["platform"], config.stand["limits"]
    found = []

    def add(name: str, reached: float, limit: float, unit: str, stops: bool = True) -> None:
        found.append(Margin(name, reached, limit, unit, reached / limit if limit > 0.0 else 0.0, stops))

    def largest(values: np.ndarray) -> float:
        return float(np.abs(values).max()) if len(values) else 0.0

    for part, name, key, unit in (
        (slice(0, 3), "force", "force_limit_n", "N"), (slice(3, 6), "moment", "moment_limit_n_m", "N.m"),
    ):  # fmt: skip
        loads, limits = np.abs(records["F_S"][:, part]), np.asarray(stand[key], float)
        worst = int(np.argmax((loads / limits).max(axis=0))) if len(loads) else 0
        add(f"{name} on the load cell", largest(loads[:, worst]), float(limits[worst]), unit)
    # what the motion asks for, before the limits; what the legs are sent, a compensator's lead in it
    sent = records["leg_rate_setpoint"]
    rate = np.maximum(np.abs(records["leg_rate_demand"]), np.abs(sent))
    safety = _safety(config)
    tick = records["tick"]
    excess = held(rate, safety.get("rate_excess_s", 0.0), period_s, tick) >= platform["leg_rate_max_m_s"]
    add("leg rate", largest(rate), platform["leg_rate_max_m_s"], "m/s", stops=excess)
    change = np.diff(sent, axis=0) / (np.diff(records["tick"]) * period_s)[:, None]
    add("leg acceleration", largest(change), platform["leg_acceleration_max_m_s2"], "m/s2", stops=False)
    # a stroke that is used up to its end has no margin left
    half = 0.5 * (platform["leg_length_max_m"] - platform["leg_length_min_m"])
    add("leg stroke", half - float(records["stroke_margin"].min(initial=half)), half, "m")
    if records["leg_valve"].any():
        add("valve opening", largest(records["leg_valve"]), 1.0, "")
    if records["leg_force"].any():
        add("leg force", largest(records["leg_force"]), platform["leg_force_max_n"], "N")
    lowest = stand.get("supply_pressure_min_pa", 0.0)
    pressure = records["supply_pressure"]
    if lowest > 0.0 and pressure.any():
        least = float(pressure.min())
        found.append(Margin("supply pressure", least, lowest, "Pa", lowest / max(least, 1e-9), True))
    if "following_max_m" in safety:
        add("following error", held(records["following_error"], safety["following_time_s"], period_s, tick), safety["following_max_m"], "m")
    if "energy_trip" in safety:
        gain = records["contact_energy_ratio"] - 1.0 - records["unit_energy_ratio"]
        add("energy gain", float(gain.max(initial=0.0)), safety["energy_trip"], "")
    return tuple(sorted(found, key=lambda margin: -margin.share))


def _safety(config: TestConfig) -> Mapping[str, float]:
    """The keys of the test's safety part, its defaults filled in."""
    name, keys = config.part("safety")
    return check_part("safety", name, keys)


def held(values: np.ndarray, seconds: float, period_s: float, tick: np.ndarray | None = None) -> float:
    """Largest magnitude below which a column of `values` (n,) or (n, k) does not fall for this long; 0 in a shorter record. tick: numbers
    of the rows' ticks (n,), none left out without it; of a thinned log the answer is not below that of the whole one."""
    ticks = max(1, round(seconds / period_s))
    at = np.arange(len(values)) if tick is None else np.asarray(tick)
    if not len(at) or at[-1] - at[0] + 1 < ticks:
        return 0.0
    behind = np.flatnonzero(at - at[0] + 1 >= ticks) + 1
    first = np.searchsorted(at, at[behind - 1] - ticks + 1)
    return max(float(window_min(column, first, behind).max()) for column in np.atleast_2d(np.abs(values).T))
