"""Is a logged block of constants and state the one that this program builds, and is a state one that its part can have?

The log of a run keeps the constants of its stages, because the mathematics library of another machine rounds some of them otherwise and
a replay is compared by bits. That is all a log may bring: a whole number is a count, an offset, an index or a mode, and decides where a
kernel reads and writes, so it has to be the one that was built here.

The state in the middle of a run (a checkpoint) has whole numbers of its own: each must be within the bounds that its part declares
(`state_bounds`), and one without a declaration is refused. Numbers must be finite.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rt_kernels.layout import CODES

Bounds = Mapping[str, tuple[int, int]]  # field of a state, without indices (`valves.head`) → smallest and largest whole number
FLAG = (0, 1)
WORD = (0, 2**32 - 1)  # bits, none of which steers
COUNT = (0, 2**62)  # 64 bits, room to count on
COUNT_32 = (0, 2**30)
UNUSED = "unused"  # field that only fills a struct up to eight bytes
TIME_NS = (-(2**62), 2**62)

ROUNDING = 1e-6  # of the largest number of the same array: far above what a library rounds, far below what would be another constant
VALUES = ({*"xyz"}, {*"xyzw"}, {f"{row}{column}" for row in "xyz" for column in "xyz"})  # fields of Vec3, Quat and Mat3
NOTHING = 1e-12  # what is this small in SI units is the rest of a sum that cancels


def first_difference(built: Any, logged: Any, name: str = "") -> str:
    """Name and values of the first field that may not be taken from the log, "" when all may be.

    built, logged: tables of fields, lists of them, numbers or bytes, of the same shape.
    """
    if built == logged:
        return ""
    if isinstance(built, dict) and built.keys() in VALUES:
        built, logged = list(built.values()), list(logged.values())
    if isinstance(built, dict):
        found = (first_difference(value, logged[key], f"{name}.{key}" if name else key) for key, value in built.items())
        return next(filter(None, found), "")
    if isinstance(built, bytes):
        return f"{name or 'block'} is not the one that this program builds"
    if not isinstance(built, list):
        return "" if _same(np.array(built), np.array(logged)).all() else _words(name, built, logged)
    ours, theirs = (np.array(value) if _plain(value) else None for value in (built, logged))
    if ours is None or theirs is None:
        found = (first_difference(a, b, f"{name}[{i}]") for i, (a, b) in enumerate(zip(built, logged, strict=True)))
        return next(filter(None, found), "")
    wrong = np.argwhere(~_same(ours, theirs))
    if not len(wrong):
        return ""
    at = tuple(wrong[0])
    return _words(name + "".join(f"[{i}]" for i in at), ours[at].item(), theirs[at].item())


def _plain(value: Any) -> bool:
    """Numbers, or lists of lists of numbers?"""
    while isinstance(value, list):
        if not value:
            return True
        value = value[0]
    return isinstance(value, int | float)


def _same(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Where theirs may be taken. Whole numbers: equal. Numbers: equal, or finite and the same but for rounding."""
    if ours.dtype.kind != "f":
        return np.equal(ours, theirs)
    finite = np.isfinite(ours)
    largest = np.abs(ours, where=finite, out=np.zeros_like(ours)).max(initial=0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(ours - theirs) <= ROUNDING * largest + NOTHING
    return (near & finite) | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))


def _words(name: str, built: Any, logged: Any) -> str:
    return f"{name} is {logged!r}, this program builds {built!r}"


def first_beyond(found: Any, bounds: Bounds, name: str = "") -> str:
    """Name and value of the first number of a state that its part cannot have, "" when there is none.

    found: table of fields, a list of them, or a number, as a C struct is converted.
    """
    if isinstance(found, Mapping):
        below = (first_beyond(value, bounds, f"{name}.{key}" if name else key) for key, value in found.items() if key != UNUSED)
        return next(filter(None, below), "")
    if isinstance(found, list):
        if found and isinstance(found[0], float) and all(map(math.isfinite, found)):
            return ""
        return next(filter(None, (first_beyond(value, bounds, name) for value in found)), "")
    if isinstance(found, float):
        return "" if math.isfinite(found) else f"{name} is {found}, limit a finite number"
    if name not in bounds:
        return f"{name} is {found!r}: a whole number without declared bounds"
    low, high = bounds[name]
    return "" if low <= found <= high else f"{name} is {found}, limit {low} ... {high}"


def under(name: str, bounds: Bounds) -> dict[str, tuple[int, int]]:
    """The same bounds for a struct that is the field `name` of another one."""
    return {f"{name}.{field}": limits for field, limits in bounds.items()}


def code_range(name: str) -> tuple[int, int]:
    """Smallest and largest number of a code of the table."""
    return min(CODES[name].values()), max(CODES[name].values())


def as_built(built: Any, name: str = "") -> dict[str, tuple[int, int]]:
    """Bounds that allow every whole number only what this program has built; state is left out, it has bounds of its own."""
    if isinstance(built, Mapping):
        found: dict[str, tuple[int, int]] = {}
        for key, value in built.items():
            found |= {} if key == "state" else as_built(value, f"{name}.{key}" if name else key)
        return found
    if isinstance(built, list):
        found = {}
        for value in built:
            for key, (low, high) in as_built(value, name).items():
                before = found.get(key, (low, high))
                found[key] = min(before[0], low), max(before[1], high)
        return found
    return {} if isinstance(built, float) else {name: (int(built), int(built))}
