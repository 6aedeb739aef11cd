"""The stand of a live run: which devices it has and who they are, the virtual stand where there is no hardware, opening and closing."""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from drivers.identity import as_toml
from hil_server import interrupts, registry
from hil_server.config import TestConfig
from hil_server.config.model import Part, devices_of
from hil_server.errors import ConfigurationError, DeviceError
from hil_server.line import assembly
from hil_server.line.context import Context
from hil_server.roles import Port
from hil_server.values import Document
from rt_kernels.doors import made_as

if TYPE_CHECKING:
    from drivers.simulated.stand_server_client import StandControl, StandProcess
    from hil_server.host.realtime_host import RealtimeHost

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def stand_of(
    config: TestConfig, context: Context, host: "RealtimeHost", beside: Document
) -> "Iterator[tuple[Mapping[str, Part], StandControl | None, list[Port]]]":
    """The three device ports by their tables: from the stand file, or of a virtual stand that is started for this run; the control of the
    latter, which injects faults, None for the former; and the port of its docking unit's channels, if it has any. The virtual stand has
    the force sensor of [wrench_sensor] if there is one."""
    own = config.setup.stand
    if own.hardware:
        yield own.devices, None, []
        return
    from drivers.simulated.unit_channels import UnitChannelsPort

    with contextlib.ExitStack() as stack:
        stand = beside.get("process") or stack.enter_context(virtual_stand(config, context, host, beside))
        # a process on the same machine may be held up longer than a device would be
        if stand.config["drives"].get("wire") == "ethercat":
            held_up = {"no_data_periods": 500} if stand.pid else {}  # a task of a world never is
            drives: Document = {"part": registry.EMULATED_DRIVES_ON_ETHERCAT, "watchdog_ms": 1000.0, "timeout_s": 10.0, **held_up}
        else:
            drives = {"part": stand.config["drives"]["profile"], "receive_timeout_periods": 500, "server_timeout_ms": 1000,
                      "timeout_s": 10.0}  # fmt: skip
        sensor = own.devices.get("wrench_sensor") or Part("wrench_sensors", registry.EMULATED_WRENCH_SENSOR, {})
        declared = {p.key for p in registry.part(sensor.role, sensor.name).PARAMETERS}
        late = {"filter_delay_s": stand.config["plant"]["sensor_delay_s"]} if "filter_delay_s" in declared else {}
        yield devices_of({
            "drives": drives | stand.ports["drives"],
            "wrench_sensor": {
                "part": sensor.name,
                **getattr(registry.part("emulated_sensors", sensor.name), "PATIENCE", {}),
                **sensor.keys,
                **late,
                **stand.ports["wrench_sensors"],
            },
            "mechanism_signals": {"part": registry.EMULATED_SIGNALS, **stand.ports["mechanism_signals"]},
        }), stand.control, [UnitChannelsPort(stand.unit, context["mechanism"])] if stand.unit is not None else []  # fmt: skip


def virtual_stand(config: TestConfig, context: Context, host: "RealtimeHost", beside: Document) -> "StandProcess":
    """The process of the virtual stand of this test (`StandProcess`, a context manager), with the settings `beside` those of the
    configuration. Raises DeviceError when it does not come up."""
    from drivers.simulated.stand_server_client import StandProcess
    from drivers.simulated.unit_channels import UnitMemory

    keys = assembly.virtual_stand_settings(config, context, priority=max(0, host.priority - 20), loop_core=host.core)
    keys["drives"] = {"profile": registry.EMULATED_DRIVES}
    for table, value in beside.items():
        keys[table] = {**keys.get(table, {}), **value} if isinstance(value, dict) else value
    channels = sum(channel.count for channel in context["mechanism"].AUX)
    try:
        found: StandProcess = made_as("stand", StandProcess)(keys, UnitMemory.create(channels) if channels else None)
    except (ValueError, ConnectionError) as error:
        raise DeviceError(f"virtual stand: {error}") from error
    return found


@contextlib.contextmanager
def of_device(device: Port) -> Iterator[None]:
    """What `device` raises in its set-up is a DeviceError that names it."""
    try:
        yield
    except OSError as error:
        raise DeviceError(f"{type(device).__name__}: {error}") from error


@contextlib.contextmanager
def opened_in_order(devices: Sequence[Port]) -> Iterator[None]:
    """Opens the devices in order; closes those that were opened, last first, whatever happens: also when another one's closing fails."""
    with contextlib.ExitStack() as opened:
        for device in devices:
            interrupts.look()
            with of_device(device):
                device.open()
            opened.callback(_close, device)
        yield


def _close(device: Port) -> None:
    with contextlib.suppress(OSError):
        device.close()


def who_is_there(config: TestConfig, devices: Mapping[str, Port], hardware: bool) -> dict[str, str]:
    """What each device says it is, by the table of the stand file and its place in there, for the log; of a device that cannot be asked,
    why. devices: opened, by table. Raises ConfigurationError on hardware for a device that says who it is while the stand file does not:
    with the lines for the stand file."""
    found: dict[str, str] = {}
    lacking: dict[str, list[Mapping[str, object]]] = {}
    for table, device in devices.items():
        says = list(getattr(device, "identities", ()))
        found |= {f"{table}[{i}]" if len(says) > 1 else table: as_toml(one) for i, one in enumerate(says)}
        if not says:
            found[table] = f"cannot be asked: {getattr(device, 'not_asked', '') or 'its part has no question for it'}"
        elif table not in config.setup.stand.devices or not config.setup.stand.devices[table].keys.get("identity"):
            lacking[table] = says
    if hardware and lacking:
        raise ConfigurationError(_lines_to_write(str(config.paths["stand"]), lacking))
    return found


def _lines_to_write(file: str, lacking: Mapping[str, list[Mapping[str, object]]]) -> str:
    """lacking: what devices say that the stand file has no `identity` for, by table."""
    keys = ", ".join(f"{table}.identity" for table in lacking)
    lines = [f"{file}: {keys}: required on hardware, where an exchanged device moves the wrong leg. The devices say of themselves what "
             "follows: compare it with their type plates and cables, write it into the tables of that file, then "
             f"hil-server sign {file} --owner 'YOUR NAME'"]  # fmt: skip
    for table, says in lacking.items():
        lines += [f"[{table}]", "identity = [", *(f"  {as_toml(one)}," for one in says), "]"]
    return "\n".join(lines)


@contextlib.contextmanager
def begun(devices: Sequence[Port]) -> Iterator[None]:
    """Around the loop and nothing else: last before it the devices begin, those that move the stand first, so that what the others heard
    meanwhile is no backlog; first after it the former take their power off, however it ended; what they do not confirm is reported. Raises
    DeviceError."""
    moving = [device for device in devices if hasattr(device, "end")]
    try:
        for device in [*moving, *(one for one in devices if one not in moving)]:
            try:
                device.begin()
            except (OSError, ConnectionError, TimeoutError) as error:
                raise DeviceError(f"{type(device).__name__}: {error}") from error
        yield
    finally:
        for device in moving:
            device.end()
        for words in not_confirmed(moving):
            logger.error("at the end: %s", words)


def not_confirmed(devices: Sequence[Port]) -> list[str]:
    """What the devices did not confirm when their power was taken off, a line each."""
    return [words for device in devices for words in getattr(device, "close_problems", ())]


def counters(devices: Sequence[Port]) -> dict[str, object]:
    """What the devices have counted, by the name of their class."""
    return {type(device).__name__: device.counters() for device in devices if hasattr(device, "counters")}
