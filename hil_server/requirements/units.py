"""Units as the table of channels writes them ("N.m", "m/s2", "kg.m2/s"), and as a key's last words say them ("_n_m", "_m_s2").

A unit is a factor to SI and powers of metre, kilogram, second, radian, kelvin, ampere. What is written otherwise ("SI", "m,rad") is a unit
of its own: it fits nothing but itself.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from rt_kernels import units as endings

BASE = ("m", "kg", "s", "rad", "K", "A")
_FORCE = {"m": 1, "kg": 1, "s": -2}
_PRESSURE = {"m": -1, "kg": 1, "s": -2}
_ENERGY = {"m": 2, "kg": 1, "s": -2}
SYMBOLS: dict[str, tuple[float, dict[str, int]]] = {
    "-": (1.0, {}), "1": (1.0, {}), "%": (0.01, {}),
    "m": (1.0, {"m": 1}), "mm": (1e-3, {"m": 1}), "kg": (1.0, {"kg": 1}),
    "s": (1.0, {"s": 1}), "ms": (1e-3, {"s": 1}), "us": (1e-6, {"s": 1}), "ns": (1e-9, {"s": 1}), "Hz": (1.0, {"s": -1}),
    "rad": (1.0, {"rad": 1}), "deg": (math.pi / 180.0, {"rad": 1}),
    "N": (1.0, _FORCE), "kN": (1e3, _FORCE), "Pa": (1.0, _PRESSURE), "kPa": (1e3, _PRESSURE), "MPa": (1e6, _PRESSURE),
    "J": (1.0, _ENERGY), "W": (1.0, {"m": 2, "kg": 1, "s": -3}), "K": (1.0, {"K": 1}), "A": (1.0, {"A": 1}),
}  # fmt: skip
FACTOR = re.compile(r"([A-Za-z%]+|-|1)(\d*)")

# what a bound may be in
BOUNDED = ("-", "N", "kN", "N.m", "m", "mm", "m/s", "mm/s", "m/s2", "rad", "deg", "rad/s", "deg/s", "rad/s2", "deg/s2", "s", "ms", "us",
           "J", "W", "Pa", "MPa", "kg.m/s", "kg.m2/s", "N/m", "Hz")  # fmt: skip
OF_BOUNDS = {"mm/s": "mm_s", "kg.m/s": "kg_m_s", "kg.m2/s": "kg_m2_s"}  # without the "per" that a key of a configuration has
# last words of a key → unit; "" is a number without one
SUFFIXES = {OF_BOUNDS.get(text) or endings.suffix(text): text for text in BOUNDED}


@dataclass(frozen=True)
class Unit:
    """factor: what one of it is in SI. powers: (symbol, power) in order; equal for units that can be compared. text: as written."""

    factor: float
    powers: tuple[tuple[str, int], ...]
    text: str

    def __mul__(self, other: "Unit") -> "Unit":
        return self._combined(other, 1)

    def __truediv__(self, other: "Unit") -> "Unit":
        return self._combined(other, -1)

    def _combined(self, other: "Unit", sign: int) -> "Unit":
        powers = dict(self.powers)
        for symbol, power in other.powers:
            powers[symbol] = powers.get(symbol, 0) + sign * power
        kept = {symbol: power for symbol, power in powers.items() if power}
        return Unit(1.0, tuple(sorted(kept.items())), _written(kept))

    def fits(self, other: "Unit") -> bool:
        """Whether the two measure the same."""
        return self.powers == other.powers


@lru_cache(1024)
def unit(text: str) -> Unit:
    """The unit as the table writes it; one that it does not know fits itself alone."""
    factor = 1.0
    powers: dict[str, int] = {}
    for i, side in enumerate(text.split("/")):
        for part in side.split("."):
            found = FACTOR.fullmatch(part)
            if found is None or found[1] not in SYMBOLS or i > 1:
                return Unit(1.0, ((text, 1),), text)
            of, inner = SYMBOLS[found[1]]
            times = int(found[2] or 1) * (-1 if i else 1)
            factor *= of**times
            for symbol, power in inner.items():
                powers[symbol] = powers.get(symbol, 0) + times * power
    return Unit(factor, tuple(sorted((symbol, power) for symbol, power in powers.items() if power)), text)


NUMBER = unit("-")


def suffixes(of: Unit) -> list[str]:
    """Last words of keys that hold a bound of this unit; "" alone for one that has none."""
    return [suffix for suffix, text in SUFFIXES.items() if unit(text).fits(of)] or [""]


def of_suffix(suffix: str, channel: Unit) -> Unit:
    """The unit of a bound whose key ends so. A key without a unit takes that of a channel whose unit no key can say."""
    return channel if suffix == "" and suffixes(channel) == [""] else unit(SUFFIXES[suffix])


def _written(powers: dict[str, int]) -> str:
    """SI powers as the table writes units: "kg.m2/s"."""

    def side(sign: int) -> str:
        return ".".join(f"{s}{abs(p) if abs(p) > 1 else ''}" for s, p in sorted(powers.items()) if sign * p > 0)

    over, under = side(1), side(-1)
    return f"{over or '1'}/{under}" if under else over or "-"


def scalar_units(text: str, count: int) -> list[str]:
    """Unit of each component of a channel: "N,N.m" of six is three and three, "m,-" of a pose three and four, "-,s,s2" one each."""
    parts = text.split(",")
    if count == 1:
        return [text]  # of one that may be either, as "m,rad"
    if len(parts) == 1:
        return parts * count
    if len(parts) == count:
        return parts
    if len(parts) == 2 and count in (6, 7):
        return [parts[0]] * 3 + [parts[1]] * (count - 3)
    raise ValueError(f"unit {text!r} does not say which of {count} components it is for")
