"""From what a hand controller says to six rates, -1...1, and buttons: a strict TOML file.

    station = 0
    rate_hz = 100.0

    [source]
    kind = "evdev"                 # or "serial"
    path = "/dev/input/event5"

    [buttons]
    deadman = 288                  # number of the button at the device
    others = [289, 290]            # become bits 1, 2, ... of the record

    [axes.x]                       # x y z: translation; roll yaw pitch: rotation about x y z
    channel = 1
    centre = 512.0
    range = 480.0                  # from the centre to full deflection, counts
    dead_band = 0.05               # of the range
    curve = 0.5                    # 0 straight ... 1 cubic
    sign = -1                      # +1 or -1

An axis without a table is always zero. Rate of an axis, u = sign (raw - centre)/range, held to -1...1; within the dead band 0, outside it
v = (|u| - d)/(1 - d) and the rate is sgn(u) ((1 - c) v + c v^3), which is continuous at the edge of the band and 1 at full deflection.
"""

from dataclasses import dataclass
from pathlib import Path

from drivers.hand_controllers import FaultyDeviceError, Reading
from hil_server.bus.wire import HAND_ADDRESS
from hil_server.config import files
from hil_server.config.checks import Table
from hil_server.errors import ConfigurationError
from hil_server.values import Document, Given
from rt_kernels.parameters import Parameter

AXES = ("x", "y", "z", "roll", "yaw", "pitch")
BEYOND = 1.25  # of the range: a healthy stick does not say more
DEADMAN = 1

TOP = (
    Parameter("station", "int", "-", "which of the two hand-controller stations", 0, low=0, high=1),
    Parameter("rate_hz", "float", "Hz", "records per second of a device that speaks only on changes", 100.0, low=50.0, high=500.0),
    Parameter("address", "str", "-", "address of the server", HAND_ADDRESS),
    Parameter("server_key", "str", "-", "file with the server's public key, empty on the server's own machine", ""),
    Parameter("own_keys", "str", "-", "file with this station's secret key", ""),
    Parameter("source", "table", "-", "the device"),
    Parameter("buttons", "table", "-", "the buttons"),
    Parameter("axes", "table", "-", "the axes"),
)
SOURCE = (
    Parameter("kind", "str", "-", "what it is", choices=("evdev", "serial")),
    Parameter("path", "str", "-", "device file"),
    Parameter("baud", "int", "1/s", "speed of the serial line", 115200, low=9600, high=4_000_000),
    Parameter("still_limit_s", "float", "s", "deflected without any change for longer counts as frozen, 0 never", 0.0, low=0.0, high=60.0),
)
BUTTONS = (
    Parameter("deadman", "int", "-", "number of the button that must be held", low=0, high=767),
    Parameter("others", "floats", "-", "numbers of further buttons, for bits 1, 2, ...", ()),
)
AXIS = (
    Parameter("channel", "int", "-", "number of the axis at the device", low=0, high=63),
    Parameter("centre", "float", "counts", "value at rest"),
    Parameter("range", "float", "counts", "from the centre to full deflection", low=1e-6, high=1e9),
    Parameter("dead_band", "float", "-", "part of the range that gives no rate", low=0.0, high=0.5),
    Parameter("curve", "float", "-", "0 straight ... 1 cubic", 0.0, low=0.0, high=1.0),
    Parameter("sign", "int", "-", "+1 or -1", 1, low=-1, high=1),
)


@dataclass(frozen=True)
class Axis:
    """One axis of the record, see the module's formula."""

    channel: int
    centre: float
    range: float
    dead_band: float
    curve: float
    sign: int

    def rate(self, raw: float) -> float:
        """Raises FaultyDeviceError for a value that the stick cannot have (broken wire, wrong device)."""
        u = self.sign * (raw - self.centre) / self.range
        if not abs(u) <= BEYOND:
            raise FaultyDeviceError(f"channel {self.channel} reports {raw:g}: more than {BEYOND:g} times its range from the centre")
        size = (min(abs(u), 1.0) - self.dead_band) / (1.0 - self.dead_band)
        if size <= 0.0:
            return 0.0
        value = (1.0 - self.curve) * size + self.curve * size**3
        return value if u > 0 else -value


@dataclass(frozen=True)
class Calibration:
    """axes: six, None for an axis that the device has not. others: button numbers of bits 1, 2, ..."""

    axes: tuple[Axis | None, ...]
    deadman: int
    others: tuple[int, ...] = ()

    def record(self, reading: Reading) -> tuple[list[float], int]:
        """Six rates and the button word (bit 0 the deadman). Raises FaultyDeviceError."""
        rates = [0.0 if axis is None else axis.rate(reading.raw[axis.channel]) for axis in self.axes]
        buttons = DEADMAN if self.deadman in reading.pressed else 0
        for bit, number in enumerate(self.others, start=1):
            buttons |= (number in reading.pressed) << bit
        return rates, buttons

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of the device that the calibration uses, in the order of the axes."""
        return tuple(axis.channel for axis in self.axes if axis is not None)


KEYBOARD = Calibration(tuple(Axis(n, 0.0, 1.0, 0.0, 0.0, 1) for n in range(6)), deadman=0, others=(1,))


@dataclass(frozen=True)
class Desk:
    """A calibration file: where the device is, where the server is, and the calibration."""

    station: int
    rate_hz: float
    address: str
    server_key: str
    own_keys: str
    source: Given
    calibration: Calibration


def load(path: str) -> Desk:
    """Reads and checks a calibration file. Raises ConfigurationError with every fault, one line each."""
    try:
        table = files.parse_toml(files.read_text(path))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: not a TOML file: {error}") from None
    return desk_of(table, Path(path).name)


def desk_of(table: Document, file: str = "hand controller") -> Desk:
    """The same of a table that is read already."""
    top = Table(TOP)
    faults = top.faults(table, file, "")
    parts = {key: table[key] for key in ("source", "buttons", "axes") if isinstance(table.get(key), dict)}
    for key, declared in (("source", SOURCE), ("buttons", BUTTONS)):
        if key in parts:
            faults += Table(declared).faults(parts[key], file, key)
    for name, axis in parts.get("axes", {}).items():
        if name not in AXES:
            faults.append(f"{file}: axes.{name}: unknown key, value {axis!r}; keys: {', '.join(AXES)}")
        else:
            faults += Table(AXIS).faults(axis, file, f"axes.{name}")
    faults = faults or _contradictions(parts, file)
    if faults:
        raise ConfigurationError(faults)
    full = top.with_defaults(table)
    axes = [Axis(**Table(AXIS).with_defaults(parts["axes"][name])) if name in parts["axes"] else None for name in AXES]
    buttons = Table(BUTTONS).with_defaults(parts["buttons"])
    calibration = Calibration(tuple(axes), buttons["deadman"], tuple(int(n) for n in buttons["others"]))
    where = {key: full[key] for key in ("station", "rate_hz", "address", "server_key", "own_keys")}
    return Desk(**where, source=Table(SOURCE).with_defaults(parts["source"]), calibration=calibration)


def _contradictions(parts: Document, file: str) -> list[str]:
    """What is good key by key and wrong together."""
    found: list[str] = []
    seen: dict[object, str] = {}
    for name, axis in parts["axes"].items():
        if axis.get("sign", 1) == 0:
            found.append(f"{file}: axes.{name}.sign: value 0, limit +1 or -1, unit -")
        other = seen.setdefault(axis["channel"], name)
        if other != name:
            found.append(f"{file}: axes.{name}.channel: value {axis['channel']}, already axes.{other}'s")
        if parts["source"]["kind"] == "serial" and axis["channel"] > 5:
            found.append(f"{file}: axes.{name}.channel: value {axis['channel']}, limit 0 ... 5 at a serial box, unit -")
    if not parts["axes"]:
        found.append(f"{file}: axes: empty: at least one of {', '.join(AXES)}")
    numbers = [parts["buttons"]["deadman"], *parts["buttons"].get("others", [])]
    if len(numbers) > 32 or len(set(numbers)) < len(numbers) or any(n != int(n) or not 0 <= n <= 767 for n in numbers):
        found.append(f"{file}: buttons: value {numbers}, limit at most 32 different whole numbers within 0 ... 767")
    return found
