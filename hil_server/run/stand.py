"""The stand of a live run: which devices it has, the virtual stand where there is no hardware, opening and closing."""

import contextlib
from collections.abc import Iterator
from typing import Any

from hil_server import interrupts, registry
from hil_server.config import TestConfig
from hil_server.errors import DeviceError
from hil_server.line import assembly


@contextlib.contextmanager
def stand_of(
    config: TestConfig, context: dict[str, Any], host: Any, beside: dict[str, Any]
) -> Iterator[tuple[dict[str, dict[str, Any]], Any]]:
    """Tables of the three device ports: from the stand file, or of a virtual stand that is started for this run; and the control of the
    latter, which injects faults, None for the former. The virtual stand has the force sensor of [wrench_sensor] if there is one."""
    if "drives" in config.stand:
        given = ("drives", "wrench_sensor", "mechanism_signals")
        yield {table: dict(config.stand[table]) for table in given if table in config.stand}, None
        return
    with contextlib.ExitStack() as stack:
        stand = beside.get("process") or stack.enter_context(virtual_stand(config, context, host, beside))
        sensor, signals = (registry.own(f"virtual stand: {device}") for device in ("wrench sensor", "signals"))
        # a process on the same machine may be held up longer than a device would be
        if stand.config["drives"].get("wire") == "ethercat":
            on_ethercat = registry.own("virtual stand: drives on EtherCAT")
            drives: dict[str, Any] = {"part": on_ethercat, "no_data_periods": 500, "watchdog_ms": 1000.0}
        else:
            drives = {"part": stand.config["drives"]["profile"], "receive_timeout_periods": 500, "server_timeout_ms": 1000}
        yield {
            "drives": drives | stand.ports["drives"],
            "wrench_sensor": {
                "part": sensor,
                **registry.PATIENCE.get(config.stand.get("wrench_sensor", {}).get("part", ""), {}),
                **config.stand.get("wrench_sensor", {}),
                "filter_delay_s": stand.config["plant"]["sensor_delay_s"],
                **stand.ports["wrench_sensors"],
            },
            "mechanism_signals": {"part": signals, **stand.ports["mechanism_signals"]},
        }, stand.control


def virtual_stand(config: TestConfig, context: dict[str, Any], host: Any, beside: dict[str, Any]) -> Any:
    """The process of the virtual stand of this test (`StandProcess`, a context manager), with the settings `beside` those of the
    configuration. Raises DeviceError when it does not come up."""
    from drivers.simulated.stand_server_client import StandProcess

    keys = assembly.virtual_stand_settings(config, context, priority=max(0, host.priority - 20), loop_core=host.core)
    keys["drives"] = {"profile": registry.own("virtual stand: drives")}
    for table, value in beside.items():
        keys[table] = {**keys.get(table, {}), **value} if isinstance(value, dict) else value
    try:
        return StandProcess(keys)
    except (ValueError, ConnectionError) as error:
        raise DeviceError(f"virtual stand: {error}") from error


@contextlib.contextmanager
def opened_in_order(devices: list[Any]) -> Iterator[None]:
    """Opens the devices in order; closes those that were opened, last first, whatever happens."""
    opened: list[Any] = []
    try:
        for device in devices:
            interrupts.look()
            try:
                device.open()
            except (OSError, ConnectionError, TimeoutError) as error:
                raise DeviceError(f"{type(device).__name__}: {error}") from error
            opened.append(device)
        yield
    finally:
        for device in reversed(opened):
            with contextlib.suppress(OSError):
                device.close()


@contextlib.contextmanager
def begun(devices: list[Any]) -> Iterator[None]:
    """Around the loop and nothing else: last before it the devices begin, those that move the stand first, so that what the others heard
    meanwhile is no backlog; first after it the former take their power off, however it ended. Raises DeviceError."""
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


def counters(devices: list[Any]) -> dict[str, Any]:
    """What the devices have counted, by the name of their class."""
    return {type(device).__name__: device.counters() for device in devices if hasattr(device, "counters")}
