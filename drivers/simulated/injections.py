"""The faults that a stand in software can show on request, from the table (`[[injection]]` of rt_kernels/channels.toml).

An injection lasts until it is cleared. `index` is the leg, gauge or component of the plant, the drive (0...5), the link, or not used;
`value` has a default that shows the fault. Two stands know them: the one in process (drivers.simulated.virtual_stand; those of
`hydraulic` only with hydraulic legs), and the one that serves the wires (drivers.simulated.stand_server), where a class of the force
sensor's status word becomes the word of its product family. Those of `emulator` are for sensors that have such a wire
(drivers.simulated.sensor_emulators).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from drivers.simulated.sensor_emulators import shows
from rt_kernels.layout import INJECTIONS
from rt_kernels.parameters import Parameter, checked

CLEAR = 0  # the number that makes everything whole again


@dataclass(frozen=True)
class Injection:
    """One row of the table. shows: (field of the sample, bit that its input then has); fault: what follows of it, "" when nothing does."""

    name: str
    number: int
    at: str
    meaning: str
    value: float
    value_meaning: str
    shows: tuple[tuple[str, str], ...]
    fault: str
    stands: tuple[str, ...]
    at_start: bool
    profile: str


ALL: tuple[Injection, ...] = tuple(Injection(*row) for row in INJECTIONS)
BY_NAME = {injection.name: injection for injection in ALL}
IN_PROCESS = {injection.name: injection.number for injection in ALL if "in_process" in injection.stands}
HYDRAULIC = {injection.name: injection.number for injection in ALL if {"in_process", "hydraulic"} & set(injection.stands)}
SERVED = tuple(injection for injection in ALL if "served" in injection.stands)
ETHERCAT = tuple(injection for injection in ALL if "ethercat" in injection.stands)  # served, with its drives on EtherCAT
EMULATED = tuple(injection for injection in ALL if {"served", "emulator"} & set(injection.stands))

# a fault of the stand in process that comes by itself (`virtual.faults` of a stand file)
SCHEDULED = (
    Parameter("fault", "str", "-", "name of an injected fault, or clear: everything whole again", choices=("clear", *IN_PROCESS)),
    Parameter("at_s", "float", "s", "when it comes, after the start of the run", low=0.0, high=1e6),
    Parameter("index", "int", "-", "leg, gauge, component or drive", 0, low=0, high=5),
    Parameter("value", "float", "of the fault", "how much; the default shows the fault", None, low=-1e12, high=1e12),
)

# classes of the status word of a force sensor
_CLASSES = ("sensor_saturated", "sensor_out_of_range", "sensor_device_fault", "sensor_busy", "sensor_broken_gauge", "sensor_threshold",
            "sensor_supply", "sensor_temperature")  # fmt: skip


def scheduled(faults: Sequence[Mapping[str, Any]], known: Mapping[str, int] = IN_PROCESS) -> list[tuple[float, int, int, float]]:
    """(at_s, number, index, value) of each table of `faults`; known: name → number of what this stand can show.

    Raises ValueError that names the table, key, value and limit."""
    declared = (replace(SCHEDULED[0], choices=("clear", *known)), *SCHEDULED[1:])
    found = []
    for i, table in enumerate(faults):
        keys = checked(declared, table, f"virtual.faults[{i}]")
        injection = BY_NAME.get(keys["fault"])
        value = keys["value"] if keys["value"] is not None else injection.value if injection else 0.0
        found.append((keys["at_s"], injection.number if injection else CLEAR, keys["index"], value))
    return found


def wire_fault(name: str, value: float | None, variant: str) -> tuple[int, float]:
    """(number, value) that the served stand understands. A class of the status word becomes the word of the sensor family.

    Raises ValueError for a name that this stand does not know, or what the family's status word or wire does not have.
    """
    known = [injection.name for injection in (*EMULATED, *ETHERCAT)]
    if name not in known:
        raise ValueError(f"fault {name!r} is unknown; there are: {', '.join(known)}")
    injection = BY_NAME[name]
    words, without = shows(variant)
    if name in _CLASSES:
        word = words.get(name, 0)
        if not word:
            raise ValueError(f"fault {name!r}: the status word of {variant} has no such class")
        return BY_NAME["sensor_status_word"].number, float(word)
    if name in without:
        raise ValueError(f"fault {name!r}: the wire of {variant} has no such fault")
    return injection.number, injection.value if value is None else float(value)


def served_by(variant: str, machine: str = "linear") -> dict[int, str]:
    """Number → name of what an operator may inject into the served stand: all that both stands know, this sensor family can say and what
    moves the platform (machine) can have."""
    known = HYDRAULIC if machine == "hydraulic" else IN_PROCESS
    found = {}
    for injection in SERVED:
        if injection.name not in known:
            continue
        try:
            wire_fault(injection.name, None, variant)
        except ValueError:
            continue
        found[injection.number] = injection.name
    return found
