"""Names of a log's numbers that data frames, queries and programs take without quotes: `F_T_x`, `measured_leg_0`, `probe_stroke`.

Components of a spatial vector are x y z rx ry rz, of a pose x y z qx qy qz qw, of anything else 0, 1, ...
"""

import re
from collections.abc import Iterable
from itertools import chain, count

SPATIAL = ("x", "y", "z", "rx", "ry", "rz")
POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def components(unit: str, number: int) -> tuple[str, ...]:
    """Names of the components of a channel with this unit ("N,N.m") and number of them."""
    if "," in unit and number in (6, 7):
        return SPATIAL if number == 6 else POSE
    return tuple(str(i) for i in range(number))


def identifier(name: str) -> str:
    """A name of letters, digits and _ alone."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return plain if plain[:1].isalpha() else f"x_{plain}"


def distinct(names: Iterable[str]) -> list[str]:
    """The names with `_2`, `_3`, ... behind those that came before."""
    found: dict[str, None] = {}
    for name in names:
        found[next(one for one in chain((name,), (f"{name}_{i}" for i in count(2))) if one not in found)] = None
    return list(found)
