"""What CANopen axes may say beside their position: force, chamber pressures, spool, supply pressure, and what a hydraulic axis says of its
state. Optional: a stand that does not ask has the traffic of the position alone.

The values travel in TPDO3 and TPDO4, which lose the arbitration of the bus against actual values (0x180) and setpoints (0x200) and so fill
what these leave over, with every n-th SYNC (transmission type n, CiA 301). Which object says what: the profile's own where it has one
(`DEFAULTS`), else as the stand file states it, with the size of one count in SI units.

    CiA 402  6077h  torque actual value, of a linear motor its force, in thousandths of the rated one (6076h, in mN)
             6078h  current actual value in thousandths of the rated one
    CiA 408  6301h  spool position actual value, 16384 at its end
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drivers.drives.canopen_setup import DriveSetupError, Node, Pdo
from rt_kernels.parameters import Parameter, checked

NAMES = ("leg_force", "leg_pressure_a", "leg_pressure_b", "leg_valve", "supply_pressure", "hydraulic_status")
SUPPLY, STATUS = NAMES.index("supply_pressure"), NAMES.index("hydraulic_status")
PDO_NUMBERS = (3, 4)

CHANNEL = (
    Parameter("channel", "str", "-", "what it is", choices=NAMES),
    Parameter("object", "str", "-", "index and sub-index, as 0x6381:1; none: the profile's own", None),
    Parameter("bits", "int", "bit", "length of the object, 16 or 32; none: of the profile's own", None, 16, 32),
    Parameter("unit", "float", "of the channel", "one count in N, Pa, or a share of the spool's way; none: the profile's, from the device",
              None, -1e9, 1e9),
)  # fmt: skip

CHANNEL_PARAMETERS = (
    Parameter("channels", "tables", "-", "what the drives say beside their position: tables with channel, object, bits, unit", ()),
    Parameter("channels_every", "int", "-", "these come with every n-th SYNC", 10, 1, 240),
    Parameter("supply_axis", "int", "-", "axis (0...5) whose drive says the supply pressure", 0, 0, 5),
    Parameter("valve_saturated_bit", "int", "-", "bit that says that the valve is at its end: 0...15 of the status word, 16...31 of the "
              "channel hydraulic_status; -1: none", -1, -1, 31),
    Parameter("supply_low_bit", "int", "-", "bit that says that the supply pressure is low, as above", -1, -1, 31),
    Parameter("hydraulics_blocked_bit", "int", "-", "bit that says that the blocking valves are closed, as above", -1, -1, 31),
)  # fmt: skip

# channel → (object, bits, one count in SI units or None, object with the rated value in thousandths of the SI unit or None)
Default = tuple[str, int, float | None, int | None]
DEFAULTS: Mapping[int, Mapping[str, Default]] = {
    402: {"leg_force": ("0x6077:0", 16, None, 0x6076), "leg_valve": ("0x6078:0", 16, 1e-3, None)},
    408: {"leg_valve": ("0x6301:1", 16, 1.0 / 16384.0, None)},
}


@dataclass(frozen=True)
class Channel:
    """One value of every axis (of `supply_axis` alone, if it is the supply pressure). number: its place in NAMES. unit: one count in SI
    units; None: a thousandth of what the object `rated` says, in thousandths of the SI unit."""

    number: int
    index: int
    sub: int
    bits: int
    unit: float | None
    rated: int | None = None

    @property
    def name(self) -> str:
        """Its name in the table."""
        return NAMES[self.number]


# of one PDO of one axis: its length in bytes, and (number of the channel, bytes, one count) of each value in order
Layout = tuple[int, list[tuple[int, int, float]]]


class DriveChannels:
    """The channels of six axes: which PDOs carry them, their set-up, their first values.

    profile: 402 or 408. own_bits: bits of the status word that the profile itself uses. given: the drivers' parameters. where: goes before
    keys in the words. Raises ValueError for a channel that is given twice, has no object, or does not fit into two PDOs, and for a bit that
    means something else.
    """

    def __init__(self, profile: int, own_bits: int, given: Mapping[str, Any], where: str = "drives"):
        self.every: int = given["channels_every"]
        self.supply_axis: int = given["supply_axis"]
        self.channels = [_channel(profile, table, f"{where}.channels[{i}]") for i, table in enumerate(given["channels"])]
        names = [channel.name for channel in self.channels]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"{where}.channels: {sorted(twice)[0]} is given twice")
        self.bits = [given[key] for key in ("valve_saturated_bit", "supply_low_bit", "hydraulics_blocked_bit")]
        for key, bit in zip(("valve_saturated_bit", "supply_low_bit", "hydraulics_blocked_bit"), self.bits, strict=True):
            if 0 <= bit < 16 and own_bits >> bit & 1:
                raise ValueError(f"{where}.{key} = {bit}: CiA {profile} has another meaning for this bit of the status word")
            if bit >= 16 and "hydraulic_status" not in names:
                raise ValueError(f"{where}.{key} = {bit}: is a bit of the channel hydraulic_status, which is not among the channels")
        for axis in range(6):
            self._packed(axis, where)
        self._layouts: dict[int, list[Layout]] = {}
        self._first: dict[int, list[tuple[int, float]]] = {}

    def frames(self, axis: int) -> list[int]:
        """Data bytes of each PDO that the axis sends with every n-th SYNC."""
        return [sum(channel.bits // 8 for channel in pdo) for pdo in self._packed(axis)]

    def prepare(self, node: Node, axis: int) -> None:
        """Pre-operational: maps the channels of one axis. Raises DriveSetupError when the drive does not have one, or no rated value."""
        layouts: list[Layout] = []
        for number, channels in zip(PDO_NUMBERS, self._packed(axis), strict=False):
            entries = tuple((c.index, c.sub, c.bits) for c in channels)
            node.set_pdo(Pdo(False, number, 0x080 + 0x100 * number + node.id, entries, transmission=self.every))
            layouts.append((sum(c.bits // 8 for c in channels), [(c.number, c.bits // 8, _unit(c, node)) for c in channels]))
        self._layouts[axis] = layouts

    def read_first(self, node: Node, axis: int) -> None:
        """The values as they are now, so that the first tick has some."""
        units = {number: (size, unit) for _, values in self._layouts[axis] for number, size, unit in values}
        self._first[axis] = []
        for channel in (c for pdo in self._packed(axis) for c in pdo):
            size, unit = units[channel.number]
            counts = node.read(channel.index, channel.sub, size if channel.number == STATUS else -size, channel.name)
            self._first[axis].append((channel.number, float(counts) * unit))

    def layouts(self) -> list[list[Layout]]:
        """Of each axis, after `prepare`: what its PDOs carry."""
        return [self._layouts.get(axis, []) for axis in range(6)]

    def first_values(self) -> list[list[tuple[int, float]]]:
        """Of each axis, after `read_first`: (number of the channel, value in SI units)."""
        return [self._first.get(axis, []) for axis in range(6)]

    def _packed(self, axis: int, where: str = "drives") -> list[list[Channel]]:
        """Channels of the axis, in order into the first PDO with room."""
        pdos: list[list[Channel]] = []
        for channel in self.channels:
            if channel.number == SUPPLY and axis != self.supply_axis:
                continue
            room = (pdo for pdo in pdos if sum(c.bits for c in pdo) + channel.bits <= 64)
            if (found := next(room, None)) is not None:
                found.append(channel)
            else:
                pdos.append([channel])
        if len(pdos) > len(PDO_NUMBERS):
            raise ValueError(f"{where}.channels: they take more than {len(PDO_NUMBERS)} frames of 8 bytes: shorter objects, or fewer")
        return pdos


def _channel(profile: int, table: Mapping[str, Any], where: str) -> Channel:
    keys = checked(CHANNEL, table, where)
    own = DEFAULTS[profile].get(keys["channel"])
    text, bits, unit, rated = keys["object"], keys["bits"], keys["unit"], None
    if text is None:
        if own is None:
            raise ValueError(f"{where}.object: CiA {profile} has no object for {keys['channel']}: state object, bits and unit")
        text, bits = own[0], own[1] if bits is None else bits
        if unit is None:
            unit, rated = own[2], own[3]
    elif bits is None or (unit is None and keys["channel"] != "hydraulic_status"):
        raise ValueError(f"{where}: a stated object ({text}) needs bits and unit")
    if bits not in (16, 32):
        raise ValueError(f"{where}.bits = {bits}: must be 16 or 32")
    if keys["channel"] == "hydraulic_status":
        if bits != 16:
            raise ValueError(f"{where}.bits = {bits}: hydraulic_status is a word of 16 bits")
        unit = 1.0
    index, _, sub = text.partition(":")
    try:
        return Channel(NAMES.index(keys["channel"]), int(index, 16), int(sub or "0", 0), bits, unit, rated)
    except ValueError:
        raise ValueError(f"{where}.object = {text!r}: must be an index and a sub-index, as 0x6381:1") from None


def _unit(channel: Channel, node: Node) -> float:
    if channel.unit is not None:
        return channel.unit
    assert channel.rated is not None
    rated = node.read(channel.rated, 0, 4, f"rated value of {channel.name}")
    if rated == 0:
        raise DriveSetupError(f"{node}: the rated value of {channel.name} (0x{channel.rated:04X}) is 0: state object, bits and unit")
    return rated * 1e-6
