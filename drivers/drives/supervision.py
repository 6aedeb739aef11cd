"""The protection that each drive has of its own, and its scale. The same for CANopen and EtherCAT: objects of CiA 301 and CiA 402.

If the server dies, no other part stops the legs: so a drive that loses its setpoints or the server's heartbeat stops by itself, and one
that is sent too far or too fast refuses. Each value is written before the drives are enabled and read back. An object that a drive does
not have is reported; one that reads back otherwise refuses the start.

Sources: CiA 301 (1006h communication cycle, 1016h consumer heartbeat, 1029h error behaviour), CiA 402-2 (6007h abort connection,
605Ah...605Eh option codes, 6065h and 6066h following error, 607Dh software position limits, 607Fh profile velocity limit, 6080h motor
speed limit, 6085h quick stop deceleration, 60C5h and 60C6h acceleration limits, 6092h feed constant, 60A8h unit of position; units as in
CiA 303-2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from drivers.drives.canopen_setup import DriveSetupError
from drivers.identity import identity_of_nodes
from rt_kernels.parameters import Parameter

RATE_SHARE = 1.25  # of the stand's rate and acceleration limits: the drive's own lie behind them
FOLLOWING_TIME_MS = 100
QUICK_STOP_RAMP, FAULT_SIGNAL, PRE_OPERATIONAL = 2, 1, 0
SLOW_DOWN_RAMP, POWER_OFF = 1, 0
METRE = 0x01

SUPERVISION_PARAMETERS = (
    identity_of_nodes("the drive of each axis, six tables"),
    Parameter("following_window_m", "float", "m", "a drive further from its setpoint for 0.1 s is in fault (0x6065)", 0.1, 1e-4, 10.0),
    Parameter("feed_m", "float", "m", "way of a leg in one turn of its drive's shaft, to compare with 0x6092; 0: not compared", 0.0, 0.0,
              10.0),
    Parameter("left_objects", "str", "-", "objects of the drives' own protection that stay as the drive has them, separated by blanks, as "
              "0x6007:0", ""),
)  # fmt: skip


class SetUpNode(Protocol):
    """A drive during its set-up, on any bus."""

    def read(self, index: int, sub: int, size: int, meaning: str) -> int:
        """Value of an object."""

    def write(self, index: int, sub: int, size: int, value: int, meaning: str, optional: bool = False) -> bool:
        """Writes an object; False where `optional` and the drive does not have it."""


@dataclass(frozen=True)
class Protection:
    """One object, what it is to hold, and what it is called. size: bytes, negative for a signed one."""

    index: int
    sub: int
    size: int
    value: int
    meaning: str

    @property
    def name(self) -> str:
        """As a stand file names it."""
        return f"0x{self.index:04X}:{self.sub}"


def objects_named(text: str) -> frozenset[tuple[int, int]]:
    """Index and sub-index of each object in the list. Raises ValueError naming the one that is none."""
    found = set()
    for word in text.split():
        index, _, sub = word.partition(":")
        try:
            found.add((int(index, 16), int(sub or "0", 0)))
        except ValueError:
            raise ValueError(f"left_objects: {word!r} is not an index and a sub-index, as 0x6007:0") from None
    return frozenset(found)


def heartbeat_of_server(node: int, timeout_ms: int) -> list[Protection]:
    """CANopen: a drive that does not hear node `node` for so long leaves the operational state."""
    return [
        Protection(0x1016, 1, 4, node << 16 | timeout_ms, "consumer heartbeat time of the server"),
        Protection(0x1029, 1, 1, PRE_OPERATIONAL, "error behaviour: pre-operational after a lost heartbeat"),
    ]


def reactions() -> list[Protection]:
    """CiA 402: a lost connection is a fault; every stop is a ramp, after which the power stage is off."""
    return [
        Protection(0x6007, 0, -2, FAULT_SIGNAL, "abort connection option: fault"),
        Protection(0x605A, 0, -2, QUICK_STOP_RAMP, "quick stop option: quick stop ramp, then off"),
        Protection(0x605B, 0, -2, POWER_OFF, "shutdown option: off"),
        Protection(0x605C, 0, -2, SLOW_DOWN_RAMP, "disable operation option: ramp, then off"),
        Protection(0x605D, 0, -2, SLOW_DOWN_RAMP, "halt option: ramp"),
        Protection(0x605E, 0, -2, QUICK_STOP_RAMP, "fault reaction option: quick stop ramp, then off"),
    ]


def cycle_of_bus(period_us: int) -> list[Protection]:
    """CANopen: how often SYNC comes."""
    return [Protection(0x1006, 0, 4, period_us, "communication cycle period")]


def limits_of_axis(platform: Any, zero_m: float, given: Mapping[str, Any]) -> list[Protection]:
    """CiA 402: following error, position, velocity and acceleration limits in counts, speed of the motor in 1/min where it is known how far
    a turn moves the leg. platform: of the stand, none: following error. given: the port's parameters."""
    counts_per_metre, window_m, feed_m = given["counts_per_metre"], given["following_window_m"], given["feed_m"]
    found = [
        Protection(0x6065, 0, 4, min(round(window_m * counts_per_metre), 0xFFFFFFFF), "following error window"),
        Protection(0x6066, 0, 2, FOLLOWING_TIME_MS, "following error time out"),
    ]
    if platform is None:
        return found
    speed = round(60.0 * RATE_SHARE * platform.leg_rate_max / feed_m) if feed_m > 0.0 else 0
    rate, acceleration = (round(RATE_SHARE * x * counts_per_metre) for x in (platform.leg_rate_max, platform.leg_acceleration_max))
    return [
        *found,
        Protection(0x607D, 1, -4, round((platform.leg_length_min - zero_m) * counts_per_metre), "lowest position"),
        Protection(0x607D, 2, -4, round((platform.leg_length_max - zero_m) * counts_per_metre), "highest position"),
        Protection(0x607F, 0, 4, min(rate, 0xFFFFFFFF), "greatest velocity"),
        *([Protection(0x6080, 0, 4, min(speed, 0xFFFFFFFF), "greatest speed of the motor")] if speed else []),
        Protection(0x60C5, 0, 4, min(acceleration, 0xFFFFFFFF), "greatest acceleration"),
        Protection(0x60C6, 0, 4, min(acceleration, 0xFFFFFFFF), "greatest deceleration"),
        Protection(0x6085, 0, 4, min(round(platform.leg_acceleration_max * counts_per_metre), 0xFFFFFFFF), "quick stop deceleration"),
    ]


def write_and_read_back(node: SetUpNode, one: Protection, optional: bool = False) -> bool:
    """Writes an object and reads it back; False where `optional` and the drive does not have it. Raises DriveSetupError when the drive
    refuses it, or when it reads back otherwise."""
    if not node.write(one.index, one.sub, one.size, one.value, one.meaning, optional=optional):
        return False
    found = node.read(one.index, one.sub, one.size, one.meaning)
    if found != one.value:
        raise DriveSetupError(
            f"{node}: {one.meaning} ({one.name}) reads back {found} instead of {one.value}; set it at the drive"
            + (f", or name {one.name} in drives.left_objects if the drive protects itself otherwise" if optional else "")
        )
    return True


def protect(node: SetUpNode, wanted: Sequence[Protection], left: frozenset[tuple[int, int]] = frozenset()) -> list[str]:
    """Writes what is wanted and reads it back. Returns the objects that this drive does not have or keeps as they are, in words. Raises
    DriveSetupError for one that the drive refuses, or that reads back otherwise."""
    missing = []
    for one in wanted:
        if (one.index, one.sub) in left:
            missing.append(f"{one.name} ({one.meaning}) is left as the drive has it")
        elif not write_and_read_back(node, one, optional=True):
            missing.append(f"no object {one.name} ({one.meaning})")
    return missing


# ---------------------------------------------------------------------------------------------------------------------- scale
def check_scale(node: SetUpNode, scales: Sequence[tuple[float, str]], counts_per_metre: float) -> None:
    """Compares the drive's own scale with the stand file's. scales: (counts per metre, object that gives it). Raises DriveSetupError."""
    for per_metre, where in scales:
        if abs(per_metre - counts_per_metre) > 1e-3 * counts_per_metre:
            raise DriveSetupError(
                f"{node}: {per_metre:.6g} position counts per metre by {where}, drives.counts_per_metre = {counts_per_metre:.6g} in the "
                "stand file: the leg would move by another length than it is sent; mend the one that is wrong"
            )


def scale_of_drive(node: SetUpNode, feed_m: float) -> list[tuple[float, str]]:
    """CiA 402: by the feed constant (0x6092, counts in a turn of the shaft) where it is known how far a turn moves the leg, and by the unit
    of position (0x60A8) where that is a power of ten of a metre. Objects that a drive does not have are left out."""
    found = []
    if feed_m > 0.0 and (feed := _optional(node, 0x6092, 1)) and (turns := _optional(node, 0x6092, 2)):
        found.append((feed / turns / feed_m, "its feed constant (0x6092) and drives.feed_m"))
    unit = _optional(node, 0x60A8, 0)
    return found + unit_of_position(unit >> 16 & 0xFF, unit >> 24, "0x60A8") if unit else found


def unit_of_position(unit: int, prefix: int, where: str) -> list[tuple[float, str]]:
    """Counts per metre by a unit and a prefix (a power of ten, one signed byte) of CiA 303-2."""
    if unit != METRE:
        return []
    return [(10.0 ** (256 - prefix if prefix > 127 else -prefix), f"its unit of position ({where})")]


def _optional(node: SetUpNode, index: int, sub: int) -> int | None:
    try:
        return node.read(index, sub, 4, "scale")
    except DriveSetupError:
        return None
