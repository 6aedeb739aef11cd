"""Settings of the telemetry process: where to log, where to listen, where to run."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hil_server.bus.wire import COMMAND_ADDRESS, HAND_ADDRESS, TELEMETRY_ADDRESS, Curve, check_address
from hil_server.errors import ConfigurationError

ADDRESSES = ("telemetry_address", "command_address", "hand_address", "plotjuggler_address")


@dataclass
class TelemetrySettings:
    """Settings of the telemetry process.

    log_path: file to write, must not exist; "" for none. *_address: ZeroMQ addresses, "" for none (`*` as port: any free one).
    curve: keys, required for addresses that other machines reach. cores: where the process may run ([] = anywhere): not the loop's core
    when there is more than one. nice: added to the niceness of what publishes. batch_ticks: samples in a `full` message. slow_ticks:
    samples behind a `slow` message. exclusive: one commanding client at a time. commands: what the run's parts act on, name → [phases,
    numbers, names, targets] (None: not known). stand_control: where the virtual stand's process takes faults ({port, variant}), None for
    others.
    users: names of further users of this machine who may command (hil_server.bus.peers). desk: file that says who holds the desk, ""
    for none; journal: file to which every command goes, with its sender, "" for none.
    checkpoint: packed, in base 64, of a run that continues another one: its log begins with it.
    late: where the loop writes its late ticks down and on which core it runs ({fd, core}; trace 0: without the record of
    context switches); None: their causes are not named.
    Raises ConfigurationError that names key, value and limit.
    """

    log_path: str = ""
    telemetry_address: str = TELEMETRY_ADDRESS
    command_address: str = COMMAND_ADDRESS
    hand_address: str = HAND_ADDRESS
    plotjuggler_address: str = ""
    curve: Curve | None = None
    cores: list[int] = field(default_factory=list)
    nice: int = 5
    batch_ticks: int = 20
    slow_ticks: int = 30
    exclusive: bool = True
    commands: Mapping[str, Sequence[Any]] | None = None
    stand_control: Mapping[str, Any] | None = None
    checkpoint: str = ""
    late: dict[str, int] | None = None
    users: str = ""
    desk: str = ""
    journal: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.curve, dict):
            unknown = set(self.curve) - {"public_key", "secret_key", "allowed", "names"}
            missing = {"public_key", "secret_key", "allowed"} - set(self.curve)
            if unknown or missing:
                got = ", ".join(self.curve) or "nothing"
                raise ConfigurationError(f"telemetry.curve: needs public_key, secret_key and allowed, got {got}")
            self.curve = Curve(self.curve["public_key"], self.curve["secret_key"], tuple(self.curve["allowed"]),
                               tuple(self.curve.get("names", ())))
        for key in ADDRESSES:
            if getattr(self, key):
                check_address(key, getattr(self, key), self.curve)
        for key, low, high in (("nice", 0, 19), ("batch_ticks", 1, 1000), ("slow_ticks", 1, 10000)):
            value = getattr(self, key)
            if type(value) is not int or not low <= value <= high:
                raise ConfigurationError(f"telemetry.{key}: {value!r} is not a whole number within {low}...{high}")
        if not all(type(core) is int and core >= 0 for core in self.cores):
            raise ConfigurationError(f"telemetry.cores: {self.cores!r} are not numbers of cores")

    def to_dict(self) -> dict[str, object]:
        """The settings as a plain table, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "TelemetrySettings":
        """The settings of a plain table. Raises ConfigurationError for a key that does not exist."""
        unknown = set(plain) - {f.name for f in fields(cls)}
        if unknown:
            raise ConfigurationError(f"telemetry.{sorted(unknown)[0]}: unknown key")
        return cls(**plain)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], log_path: str, **more: Any) -> "TelemetrySettings":
        """Settings from the configuration's table `telemetry`. more: what the server decides (cores, nice)."""
        return cls(
            log_path=log_path,
            telemetry_address=table["publish"],
            command_address=table["command"],
            hand_address=table["hand_controller"],
            users=table.get("users", ""),
            plotjuggler_address=table.get("plotjuggler") or "",
            batch_ticks=table["samples_per_message"],
            curve=Curve.from_folder(table["keys"]) if table["keys"] else None,
            **more,
        )

    @classmethod
    def offline(cls, log_path: str) -> "TelemetrySettings":
        """Only a log, no sockets: simulations and replays."""
        return cls(log_path=log_path, telemetry_address="", command_address="", hand_address="")
