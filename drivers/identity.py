"""Who a device is: what it says of itself beside what the stand file says of it.

An exchanged, replaced or recalibrated device answers as the right one does; only its identity distinguishes them. A port that can
ask has, after `open`, `identities`: one table for each of its devices. The key `identity` of its table in the stand file is the same
list: then each is compared, and another device refuses the start. A port that cannot ask has `not_asked`: why.

Sources: CiA 301 (1018h: 1 vendor, 2 product code, 3 revision number, 4 serial number); ETG.1000.4 (register 0x0012: configured station
alias, as an EtherCAT slave has it from its switches or its EEPROM).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rt_kernels.parameters import Parameter

NODE_KEYS = ("vendor", "product", "revision", "serial")
_HIGHEST = 0xFFFFFFFF
OF_NODE = (
    Parameter("vendor", "int", "-", "vendor (0x1018:1)", low=0, high=_HIGHEST),
    Parameter("product", "int", "-", "product code (0x1018:2)", low=0, high=_HIGHEST),
    Parameter("revision", "int", "-", "revision number (0x1018:3)", low=0, high=_HIGHEST),
    Parameter("serial", "int", "-", "serial number (0x1018:4), 0: it has none", low=0, high=_HIGHEST),
    Parameter("alias", "int", "-", "EtherCAT: configured station alias (register 0x012), 0: none", 0, 0, 0xFFFF),
)
SENSOR_SERIAL = Parameter("serial", "str", "-", "serial number, as the sensor says it")
SENSOR_CALIBRATION = Parameter("calibration", "str", "-", "calibration that is active, as the sensor says it")


class WrongDeviceError(ConnectionError):
    """Another device than the stand file says. The message has what was found, ready for the stand file."""


class Node(Protocol):
    """A CANopen or CoE device during its set-up."""

    def read(self, index: int, sub: int, size: int, meaning: str) -> int:
        """Value of an object."""


def identity_of_sensor(*keys: Parameter) -> Parameter:
    """The key `identity` of a sensor's table, which has one device."""
    return Parameter("identity", "tables", "-", "who the sensor is: one table, as it says it of itself; none: any, on a virtual stand only",
                     (), of=keys)  # fmt: skip


def identity_of_nodes(whose: str) -> Parameter:
    """The key `identity` of a table of CANopen or EtherCAT devices."""
    return Parameter("identity", "tables", "-", f"who is there: vendor, product, revision and serial number of {whose}; none: any, on a "
                     "virtual stand only", (), of=OF_NODE)  # fmt: skip


def checked_count(given: Sequence[Mapping[str, Any]], wanted: int) -> None:
    """Raises ValueError for a list `identity` that has not one table for each device."""
    if len(given) not in (0, wanted):
        raise ValueError(f"identity has {len(given)} tables: must be {wanted}, one for each device, or none")


def identity_of(node: Node) -> dict[str, int]:
    """What a device says of itself (0x1018); a part that it does not have is 0."""
    found = {}
    for sub, key in enumerate(NODE_KEYS, start=1):
        try:
            found[key] = node.read(0x1018, sub, 4, key)
        except ConnectionError:
            found[key] = 0
    return found


def compare(who: object, place: int, found: Mapping[str, Any], given: Sequence[Mapping[str, Any]]) -> None:
    """Raises WrongDeviceError when device `place` of a list `identity` is another one; where the list has it elsewhere, that is named.
    A key that the device does not say counts as 0."""
    if not given:
        return
    different = [key for key, value in given[place].items() if found.get(key, 0) != value]
    if not different:
        return
    key = different[0]
    elsewhere = [i for i, other in enumerate(given) if i != place and all(found.get(k, 0) == value for k, value in other.items())]
    exchanged = f"; it is the one of identity[{elsewhere[0]}]: are the two exchanged?" if elsewhere else ""
    raise WrongDeviceError(
        f"{who}: identity[{place}].{key} is {found.get(key, 0)} at the device, {given[place][key]} in the stand file{exchanged}; mend the "
        f"wiring, or, after a device was replaced, write {as_toml(found)} there"
    )


def alike(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for devices that say the same of themselves: exchanged, nothing here distinguishes them."""
    same = [i for i, one in enumerate(found) if sum(one == other for other in found) > 1]
    return [f"identity: axes {', '.join(map(str, same))} have drives that say the same of themselves: exchanged they are not noticed; give "
            "each a serial number or a station alias"] if same else []  # fmt: skip


def as_toml(found: Mapping[str, Any]) -> str:
    """One table of a list `identity`."""
    return "{" + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in found.items()) + "}"
