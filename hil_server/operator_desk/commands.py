"""The commands of the table with their arguments: checked by the sender and again by the desk.

A command reaches the loop as its code and up to eight doubles (`command_code`, `command_arg` of the sample).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hil_server.errors import UsageError
from rt_kernels.layout import CODES

REQUIRED = None
# these go through at any time, whoever holds the desk and however often they come
ALWAYS = frozenset({"abort", "stop", "hold"})


class CommandError(UsageError):
    """A command that does not exist, or arguments that it does not take."""


@dataclass(frozen=True)
class Argument:
    """One number of a command. default None: must be given. whole: an integer (a switch when its range is 0...1)."""

    name: str
    unit: str
    low: float
    high: float
    default: float | None = REQUIRED
    whole: bool = False

    def check(self, command: str, value: Any) -> float:
        place = f"command {command}: {self.name}"
        if isinstance(value, bool) and self.whole and (self.low, self.high) == (0, 1):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CommandError(f"{place}: {value!r} is not a number")
        if not math.isfinite(value) or not self.low <= value <= self.high:
            raise CommandError(f"{place}: {value:g} is not within {self.low:g}...{self.high:g} {self.unit}".rstrip(" -"))
        if self.whole and value != int(value):
            raise CommandError(f"{place}: {value:g} is not a whole number")
        return float(value)


def _switch(default: float = 1) -> Argument:
    return Argument("on", "-", 0, 1, default, whole=True)


ARGUMENTS: dict[str, tuple[Argument, ...]] = {
    "start": (),
    "stop": (),
    "hold": (),
    "resume": (),
    "park": (),
    "abort": (),
    "inject_fault": (
        Argument("kind", "-", 0, 255, whole=True),
        Argument("index", "-", -1, 63, 0, whole=True),
        Argument("value", "-", -1e12, 1e12, 0),
        Argument("duration_s", "s", 0, 86400, 0),
    ),
    "clear_injection": (Argument("kind", "-", -1, 255, -1, whole=True),),
    "set_compensator": (
        Argument("number", "-", 0, 63, whole=True),
        *(Argument(f"value{i}", "-", -1e12, 1e12, 0) for i in range(1, 8)),
    ),
    "manual_mode": (_switch(),),
    "single_joint": (Argument("joint", "-", 0, 16, whole=True), Argument("rate_rad_per_s", "rad/s", -1, 1, 0)),
    "step": (
        Argument("coordinate", "-", 0, 5, whole=True),
        Argument("amplitude", "m, rad", -3.2, 3.2),
        Argument("rate", "m/s, rad/s", 0, 1),
    ),
    "insert": (Argument("stroke_m", "m", -1, 1), Argument("rate_m_per_s", "m/s", 0, 1)),
    "auto_sequence": (Argument("number", "-", 0, 255, whole=True),),
    "brakes": (_switch(),),
    "limp": (_switch(),),
    "release": (_switch(),),
    "mechanism_drive": (_switch(),),
    "speed_mode": (Argument("coarse", "-", 0, 1, whole=True),),
}


def encode(name: Any, given: Any = None) -> tuple[int, tuple[float, ...]]:
    """Code and arguments of a command, defaults filled in.

    given: argument name → number, or a list of up to eight numbers in the order of the table. Raises CommandError that names what is wrong.
    """
    if not isinstance(name, str) or name not in ARGUMENTS:
        raise CommandError(f"unknown command {name!r}; there are {', '.join(ARGUMENTS)}")
    wanted = ARGUMENTS[name]
    if given is None:
        given = {}
    if isinstance(given, list | tuple):
        if len(given) > len(wanted):
            raise CommandError(f"command {name}: takes at most {len(wanted)} arguments, got {len(given)}")
        given = {argument.name: value for argument, value in zip(wanted, given, strict=False)}
    if not isinstance(given, Mapping):
        raise CommandError(f"command {name}: arguments must be a map or a list, got {type(given).__name__}")
    unknown = [str(key) for key in given if key not in {argument.name for argument in wanted}]
    if unknown:
        raise CommandError(f"command {name}: unknown argument {unknown[0]!r}; it takes {', '.join(a.name for a in wanted) or 'none'}")
    return CODES["command"][name], tuple(_value(name, argument, given) for argument in wanted)


def _value(name: str, argument: Argument, given: Mapping[Any, Any]) -> float:
    if argument.name in given:
        return argument.check(name, given[argument.name])
    if argument.default is REQUIRED:
        raise CommandError(f"command {name}: {argument.name} is missing")
    return float(argument.default)
