"""The commands of the table with their arguments: checked by the sender and again by the desk.

A command reaches the loop as its code and up to eight doubles (`command_code`, `command_arg` of the sample).

What a run can act on is what its parts declare (`COMMANDS`, rt_kernels.parameters): `taken_by` puts the declarations together, the desk
refuses the rest with the reason.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hil_server.errors import UsageError
from rt_kernels.layout import CODES, INJECTIONS
from rt_kernels.parameters import Command, TunableEntry, did_you_mean

REQUIRED = None
# these go through at any time, from any client and at any rate
ALWAYS = frozenset({"abort", "stop", "hold"})
# first argument of `park` and `abort` where the loop gave them itself (rt_kernels.command_latch)
TIME_IS_UP = -1.0
# the server gives these itself: clients may not send them
OWN = frozenset({"none", "record_lost"})


class CommandError(UsageError):
    """A command that does not exist, or arguments that it does not take."""


@dataclass(frozen=True)
class Argument:
    """One number of a command. default None: must be given. whole: an integer (a switch when its range is 0...1); names: what may be given
    instead of the number; of_run: it has names that the run knows, of its tunable parameters or joints."""

    name: str
    unit: str
    low: float
    high: float
    default: float | None = REQUIRED
    whole: bool = False
    names: Mapping[str, int] = field(default_factory=dict)
    of_run: bool = False

    def check(self, command: str, value: object) -> float:
        """The value as the number that is sent. Raises CommandError when it is no number, out of range, or no known name."""
        place = f"command {command}: {self.name}"
        if isinstance(value, str) and self.names:
            if value not in self.names:
                raise CommandError(f"{place}: {value!r} is unknown; there are: {', '.join(self.names)}")
            value = self.names[value]
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
        Argument("fault", "-", 0, 255, whole=True, names={name: number for name, number, *_ in INJECTIONS}),
        Argument("index", "-", 0, 5, 0, whole=True),
        Argument("value", "-", -1e12, 1e12, 0),
    ),
    "clear_injection": (),
    "set_compensator": (Argument("number", "-", 0, 63, whole=True),),
    "manual_mode": (_switch(),),
    "single_joint": (Argument("joint", "-", 0, 16, whole=True), Argument("rate_rad_s", "rad/s", -1, 1, 0)),
    "step": (
        Argument("coordinate", "-", 0, 5, whole=True),
        Argument("amplitude", "m, rad", -3.2, 3.2),
        Argument("rate", "m/s, rad/s", 1e-6, 1),
    ),
    "insert": (Argument("stroke_m", "m", -1, 1), Argument("rate_m_s", "m/s", 1e-6, 1)),
    "auto_sequence": (Argument("number", "-", 0, 255, whole=True),),
    "brakes": (_switch(),),
    "limp": (_switch(),),
    "release": (_switch(),),
    # 1 draws the probe in, -1 extends it
    "mechanism_drive": (Argument("on", "-", -1, 1, 1, whole=True),),
    "speed_mode": (Argument("coarse", "-", 0, 1, whole=True),),
    "tune": (Argument("number", "-", 0, 255, whole=True, of_run=True), Argument("value", "its own unit", -1e12, 1e12)),
    # after a trip whose cause is cleared; the desk adds the name of the sender (hil_server.log.recoveries)
    "recover": (),
    # a rehearsal: ends this flight and flies again from a time of it; time_s -1: that long before the first contact
    "again": (Argument("before_contact_s", "s", 0, 1e5, 30), Argument("time_s", "s", -1, 1e5, -1)),
    "joint": (
        Argument("craft", "-", 0, 1, whole=True, names={"active": 0, "target": 1}),
        Argument("joint", "-", 0, 11, whole=True, of_run=True),
        Argument("mode", "-", 0, 3, whole=True, names=CODES["joint_mode"]),
        Argument("target", "rad, m, N.m or N", -1e6, 1e6, 0),
        Argument("time_s", "s", 0, 1e4, 0),
    ),
}


def taken_by(parts: Iterable[Any]) -> dict[str, Command]:
    """The commands that these parts act on, by name. Where two declare one, both must be able to: phases and numbers that both have."""
    found: dict[str, Command] = {}
    for part, command in ((one, command) for one in parts for command in one.COMMANDS):
        other = found.get(command.name, Command(command.name, acts=False))
        phases, numbers = other.phases or command.phases, other.numbers
        if command.phases:
            phases = tuple(phase for phase in command.phases if phase in phases)
        if command.numbers is not None:
            numbers = tuple(n for n in command.numbers if numbers is None or n in numbers)
        names = getattr(part, command.names_of) if command.names_of else other.names
        targets = getattr(part, command.targets_of) if command.targets_of else other.targets
        found[command.name] = Command(command.name, phases, numbers, command.acts or other.acts, names=names, targets=targets)
    return {name: command for name, command in found.items() if command.acts}


def why_not(commands: Mapping[str, Command], name: str, arguments: tuple[float, ...]) -> str:
    """Why no part of a run with these commands can act on this one, "" when one can. An abort is never refused."""
    if name == "abort":
        return ""
    if name not in commands:
        return f"command {name}: no part of this run acts on it; it takes {', '.join(commands) or 'no command'}"
    numbers = commands[name].numbers
    if numbers is not None and int(arguments[0]) not in numbers:
        first = ARGUMENTS[name][0]
        called = {number: f"{known} ({number})" for known, number in first.names.items()}
        known = ", ".join(called.get(n, str(n)) for n in numbers) or "none"
        number = int(arguments[0])
        return f"command {name}: {first.name} {called.get(number, number)} is unknown to this run; there are: {known}"
    if (names := commands[name].names) is not None:
        place = [str(known) for known, number in ARGUMENTS[name][0].names.items() if number == int(arguments[0])][0]
        if int(arguments[1]) >= len(own := _names_at(names, place)):
            known = ", ".join(f"{one} ({number})" for number, one in enumerate(own)) or "none"
            return f"command {name}: the {place} craft of this run has no {ARGUMENTS[name][1].name} {int(arguments[1])}; there are: {known}"
        if targets := commands[name].targets:
            joint = f"{place} {own[int(arguments[1])]}"
            return _beyond(name, joint, targets[names.index(joint)], arguments)
    return ""


def _beyond(name: str, joint: str, by_mode: Sequence[tuple[float, float, str, str] | None], arguments: tuple[float, ...]) -> str:
    """Why a joint cannot have the target (fourth argument) in the mode (third), "" when it can. by_mode: as `Command.targets`."""
    limits = by_mode[int(arguments[2])] if len(arguments) > 3 else None
    if limits is None or limits[0] <= arguments[3] <= limits[1]:
        return ""
    low, high, unit, whose = limits
    return f"command {name}: target {arguments[3]:g} {unit} of joint {joint} is not within {low:g} ... {high:g} {unit} ({whose})"


def _names_at(names: Iterable[str], place: str) -> list[str]:
    """Of names as "active yaw" those of one place, without it."""
    return [name.partition(" ")[2] for name in names if name.partition(" ")[0] == place]


def encode(name: object, given: object = None, tunables: Sequence[TunableEntry] | None = None,
           commands: Mapping[str, Command] | None = None) -> tuple[int, tuple[float, ...]]:  # fmt: skip
    """Code and arguments of a command, defaults filled in.

    given: argument name → number, or a list of up to eight numbers in the order of the table. tunables: what can be changed in the run, by
    number; None: not known here, a parameter's name is left to the run (number 0) and so are its limits. commands: of the run, likewise for
    the names of joints. Raises CommandError that names what is wrong.
    """
    if not isinstance(name, str) or name not in ARGUMENTS:
        raise CommandError(f"unknown command {name!r}{did_you_mean(str(name), ARGUMENTS)}; there are {', '.join(ARGUMENTS)}")
    wanted = ARGUMENTS[name]
    if given is None:
        given = {}
    if isinstance(given, list | tuple):
        if len(given) > len(wanted):
            takes = f"{len(wanted)} arguments ({', '.join(a.name for a in wanted)})" if wanted else "no arguments"
            raise CommandError(f"command {name}: takes {takes}, got {len(given)}")
        given = {argument.name: value for argument, value in zip(wanted, given, strict=False)}
    if not isinstance(given, Mapping):
        raise CommandError(f"command {name}: arguments must be a map or a list, got {type(given).__name__}")
    unknown = [str(key) for key in given if key not in {argument.name for argument in wanted}]
    if unknown:
        raise CommandError(f"command {name}: unknown argument {unknown[0]!r}; it takes {', '.join(a.name for a in wanted) or 'none'}")
    if wanted and wanted[0].of_run and isinstance(named := given.get(wanted[0].name), str):
        given = {**given, wanted[0].name: 0 if tunables is None else tunable_number(named, tunables)}
    elif len(wanted) > 1 and wanted[1].of_run and isinstance(named := given.get(wanted[1].name), str):
        given = {**given, wanted[1].name: 0 if commands is None else _number_of(name, named, given.get(wanted[0].name), commands)}
    values = tuple(_value(name, argument, given) for argument in wanted)
    if name == "tune" and tunables is not None:
        _check_tune(values, tunables)
    return CODES["command"][name], values


def tunable_number(name: str, tunables: Sequence[TunableEntry]) -> int:
    """Number of a parameter of the run by its name ("compensation.lead_factor"). Raises CommandError with what was perhaps meant."""
    names = [entry["name"] for entry in tunables]
    if name in names:
        return names.index(name)
    meant, there = did_you_mean(name, names), ", ".join(names) or "nothing"
    raise CommandError(f"command tune: {name!r} is unknown or cannot be changed in this run{meant}; tunable: {there}")


def _number_of(name: str, given: str, place: object, commands: Mapping[str, Command]) -> int:
    """Number of what a command points to by its name, as the joint "yaw" of the craft "active". Raises CommandError with the names there
    are."""
    first, second = ARGUMENTS[name][:2]
    known: dict[float, str] = {number: word for word, number in first.names.items()}
    names = commands[name].names if name in commands else None
    own = _names_at(names or (), place if isinstance(place, str) else known.get(place, "") if isinstance(place, int | float) else "")
    if given in own:
        return own.index(given)
    there = ", ".join(own) or "none"
    raise CommandError(f"command {name}: {second.name} {given!r} is unknown to this run; the {place} craft has: {there}")


def _check_tune(values: tuple[float, ...], tunables: Sequence[TunableEntry]) -> None:
    """Raises CommandError for a number that no parameter has, and for a value beyond the limits of this run."""
    number, value = int(values[0]), values[1]
    if number >= len(tunables):
        raise CommandError(f"command tune: parameter {number} is unknown to this run; it has {len(tunables)}")
    entry = tunables[number]
    if not entry["low"] <= value <= entry["high"]:
        unit = "" if entry["unit"] == "-" else f" {entry['unit']}"
        raise CommandError(f"command tune: {entry['name']}: {value:g} is not within {entry['low']:g}...{entry['high']:g}{unit} of this run")


def _value(name: str, argument: Argument, given: Mapping[str, object]) -> float:
    if argument.name in given:
        return argument.check(name, given[argument.name])
    if argument.default is REQUIRED:
        raise CommandError(f"command {name}: {argument.name} is missing")
    return float(argument.default)
