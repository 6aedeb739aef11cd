"""Is a logged block of constants and state the one that this program builds?

The log of a run keeps the constants of its stages, because the mathematics library of another machine rounds some of them otherwise and
a replay is compared by bits. That is all a log may bring: a whole number is a count, an offset, an index or a mode, and decides where a
kernel reads and writes, so it has to be the one that was built here.
"""

from typing import Any

import numpy as np

ROUNDING = 1e-6  # of the largest number of the same array: far above what a library rounds, far below what would be another constant
NOTHING = 1e-12  # what is this small in SI units is the rest of a sum that cancels


def first_difference(built: Any, logged: Any, name: str = "") -> str:
    """Name and values of the first field that may not be taken from the log, "" when all may be.

    built, logged: tables of fields, lists of them, numbers or bytes, of the same shape.
    """
    if built == logged:
        return ""
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
