"""The stand in software as a process of its own: force sensor, six CANopen axes, an input module, one plant behind them.

    python -m drivers.simulated.stand_server CONFIG.toml|CONFIG.json     (or `-`: one line of JSON on standard input)

It binds its sockets on the loopback, prints one line of JSON with the parameters that the ports of `drivers` need to reach it, and runs
until SIGTERM, the stop command on its control port, or, with `-`, until its standard input is closed: so it never outlives the process that
started it, however that ended. At the end it prints one line of JSON with its counters. Exit code 2 for a configuration that cannot be.

`drivers.simulated.stand_server_client.StandProcess` starts it from Python.
"""

import ctypes
import importlib
import json
import os
import select
import signal
import sys
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drivers.simulated.emulated_sensor import bound
from drivers.simulated.injections import BY_NAME, wire_fault
from drivers.simulated.plant import PlantPart
from drivers.simulated.sensor_emulators import emulator
from drivers.simulated.stand_server_loop import StandLoop
from drivers.simulated.unit_channels import UnitMemory
from rt_kernels.context import Mounting
from rt_kernels.doors import socket
from rt_kernels.parameters import Parameter, checked
from rt_kernels.stewart.platform import Platform

# Every table and key with its default; a port 0 is chosen by the system.
DEFAULTS: dict[str, Any] = {
    "address": "127.0.0.1",
    "priority": 0,  # SCHED_FIFO priority of the loop, 0: none
    "core": -1,  # core of the loop, -1: any
    "lock_memory": False,
    "control_port": 0,
    "plant": {},  # platform, mounting, mechanism and the keys of drivers.simulated.plant (see make_plant)
    "sensor": {},  # variant, boot_s and the keys of the emulator (see sensor_table)
    "drives": {
        "profile": "cia402",
        "wire": "can",  # or "ethercat": six slaves on a raw socket
        "interface": "",  # of the slaves, and of the master at the other end of the same cable (ethercat)
        "master_interface": "",
        "axis_link": [0, 0, 0, 1, 1, 1],
        "axis_node": [1, 2, 3, 4, 5, 6],
        "counts_per_metre": 1e6,
        "zero_m": [0.0] * 6,
        "following_window_m": 0.2,
        "watchdog_axis": -1,  # whose digital outputs (0x60FE) the relay behind the watchdog hangs on; -1: on the module's
        "watchdog_outputs": [-1, -1],
        "identity": [[0xDAC, 402, 1, axis + 1] for axis in range(6)],  # vendor, product, revision, serial number of each
        "feed_m": 0.01,  # way of a leg in one turn of its shaft
        "slaves": 6,  # on the EtherCAT line
        "terminal_slave": -1,  # place there of an output terminal (0x7000:1, one byte) on which the relay behind the watchdog hangs
        "ports": [0, 0, 0],
    },
    "module": {
        "node": 10,
        "signal_bits": list(range(19)),
        "chain_inputs": [24, 25, 26],
        "emergency_stop_inputs": [-1, -1],
        "guard_inputs": [-1, -1],
        "unit_inputs": [-1, -1, -1, -1],
        "range_input": 27,
        "analog_scale": [0.001] * 8,
        "analog_offset": [0.0] * 8,
        "command_output": 1,
        "watchdog_outputs": [-1, -1],
        "relay_ms": 10.0,  # a relay behind the watchdog falls when no edge has come for so long
        "relay_input": -1,  # digital input with its feedback contact
        "port": 0,
    },
    "unit_fd": -1,  # descriptor of a `UnitMemory` that takes the channels of the docking unit, -1: they go nowhere
    "truth_file": "",  # NumPy file into which it writes at its end where the plant truly was at each SYNC (`StandLoop.truth`)
    "truth_s": 120.0,  # for so long
    "states_file": "",  # NumPy file into which it writes at its end what the drives logged of their states (`StandLoop.states`)
    "faults": [],  # tables with name, index, value, at_s, duration_s
}
# What the drives of a loaded machine say, as a stand file would state it for `drivers.drives` (objects: stand_server_node.pxd).
_OWN_RECORD = [
    {"channel": "leg_force", "object": "0x2600:1", "bits": 16, "unit": 10.0},
    {"channel": "leg_pressure_a", "object": "0x2600:2", "bits": 16, "unit": 1000.0},
    {"channel": "leg_pressure_b", "object": "0x2600:3", "bits": 16, "unit": 1000.0},
]
_SUPPLY = {"channel": "supply_pressure", "object": "0x2600:5", "bits": 16, "unit": 1000.0}
MACHINE_CHANNELS: dict[str, dict[str, Any]] = {
    "cia402": {
        "channels": [*_OWN_RECORD, {"channel": "leg_valve", "object": "0x2600:4", "bits": 16, "unit": 1.0 / 16384.0}, _SUPPLY],
        "valve_saturated_bit": 8,
        "supply_low_bit": 14,
        "hydraulics_blocked_bit": 15,
    },
    "cia408": {
        "channels": [
            *_OWN_RECORD,
            {"channel": "leg_valve"},
            {"channel": "hydraulic_status", "object": "0x2600:6", "bits": 16},
            _SUPPLY,
        ],
        "channels_every": 12,  # at 10 the bus of three axes is beyond its budget
        "valve_saturated_bit": 16,
        "supply_low_bit": 17,
        "hydraulics_blocked_bit": 18,
    },
}
_BOOT_S = Parameter("boot_s", "float", "s", "of a sensor that boots, from power-up to its first word", 0.3, 0.0, 60.0)
_FAULT_KEYS = {"name", "index", "value", "at_s", "duration_s"}
_MCL_CURRENT = 1


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with all defaults. Raises ValueError naming the key that is unknown or the value that cannot be."""
    config = _merged("", DEFAULTS, given)
    config["sensor"], drives = sensor_table(config["sensor"]), config["drives"]
    if drives["profile"] not in ("cia402", "cia408"):
        raise ValueError(f"drives.profile = {drives['profile']!r}: must be cia402 or cia408")
    if drives["wire"] not in ("can", "ethercat"):
        raise ValueError(f"drives.wire = {drives['wire']!r}: must be can or ethercat")
    if drives["wire"] == "ethercat" and not (drives["interface"] and drives["master_interface"] and drives["profile"] == "cia402"):
        raise ValueError("drives.wire = 'ethercat': needs drives.interface, drives.master_interface and profile cia402")
    for key, low, high in (("axis_link", 0, 2), ("axis_node", 1, 127), ("zero_m", -100, 100)):
        if len(drives[key]) != 6:
            raise ValueError(f"drives.{key} = {drives[key]!r}: must have six entries")
        for value in drives[key]:
            _within(f"drives.{key}", value, low, high, "")
    if len(drives["identity"]) != 6 or any(len(row) != 4 for row in drives["identity"]):
        raise ValueError("drives.identity: must be six rows of vendor, product, revision, serial number")
    on_can = drives["wire"] == "can" and drives["profile"] == "cia402"
    _within("drives.watchdog_axis", drives["watchdog_axis"], -1, 5 if on_can else -1, "")
    _within("drives.terminal_slave", drives["terminal_slave"], -1, -1 if drives["wire"] == "can" else drives["slaves"] - 1, "")
    if 0 <= drives["terminal_slave"] < 6:
        raise ValueError(f"drives.terminal_slave = {drives['terminal_slave']}: is a drive; must be 6 or more, or -1")
    wired = max(drives["watchdog_axis"], drives["terminal_slave"]) >= 0
    _within("drives.watchdog_outputs", drives["watchdog_outputs"][0], 0 if wired else -1, 31, "")
    _within("drives.feed_m", drives["feed_m"], 0, 10, "m")
    _within("drives.slaves", drives["slaves"], 6, 16, "")
    _within("drives.counts_per_metre", drives["counts_per_metre"], 1, 1e10, "1/m")
    _within("truth_s", config["truth_s"], 0, 3600, "s")
    _within("priority", config["priority"], 0, 99, "")
    for fault in config["faults"]:
        if unknown := set(fault) - _FAULT_KEYS:
            raise ValueError(f"faults: unknown key {sorted(unknown)[0]!r}; there are: {', '.join(sorted(_FAULT_KEYS))}")
        wire_fault(fault.get("name", ""), fault.get("value"), config["sensor"]["variant"])
    return config


def sensor_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """The sensor's table with all defaults: `variant` (one of the emulators, or "module:Class"), `boot_s`, and the keys of the emulator, in
    a table that is named like its module, or beside these. Raises ValueError."""
    keys = dict(given)
    variant = str(keys.pop("variant", "net_ft"))
    part = emulator(variant)
    table = _table_of(part)
    own = [Parameter(table, "table", "-", "keys of the emulator", {})] if table else part.PARAMETERS
    keys = {"variant": variant, **checked((_BOOT_S, *own), keys, "sensor")}
    if table:
        keys[table] = checked(part.PARAMETERS, keys[table], f"sensor.{table}")
    return keys


def _table_of(part: Any) -> str:
    return getattr(part, "TABLE", part.__module__.rpartition(".")[2])


def make_plant(table: Mapping[str, Any]) -> PlantPart:
    """The plant out of plain data: `platform` (a stand file's table), `mounting` (poses as seven numbers), `mechanism` (`part` =
    "module:Class" and its keys), and the plant's own keys. Raises ValueError naming what is missing."""
    keys = dict(table)
    for name in ("platform", "mounting", "mechanism"):
        if not isinstance(keys.get(name), Mapping):
            raise ValueError(f"plant.{name}: must be a table")
    mechanism = dict(keys.pop("mechanism"))
    module_name, _, class_name = str(mechanism.pop("part", "")).partition(":")
    try:
        mechanism_class = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"plant.mechanism.part = {module_name}:{class_name}: {error}") from error
    mounting = Mounting(**keys.pop("mounting"))
    return PlantPart(platform=Platform.from_dict(keys.pop("platform")), mounting=mounting, mechanism=mechanism_class(**mechanism), **keys)


def _merged(path: str, default: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(default)
    for key, value in given.items():
        where = f"{path}{key}"
        if key not in default:
            raise ValueError(f"{where}: no such key; there are: {', '.join(default)}")
        if key == "module" and value is None:
            result[key] = None
        elif isinstance(default[key], dict):
            if not isinstance(value, Mapping):
                raise ValueError(f"{where} = {value!r}: must be a table")
            result[key] = _merged(f"{where}.", default[key], value) if default[key] else value
        else:
            if not _same_kind(default[key], value):
                raise ValueError(f"{where} = {value!r}: must be like {default[key]!r}")
            result[key] = value
    return result


def _same_kind(default: Any, value: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int | float):
        return isinstance(value, int | float)
    if isinstance(default, list):
        return isinstance(value, list | tuple)
    return isinstance(value, type(default))


def _within(key: str, value: Any, low: float, high: float, unit: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{key} = {value!r}: must be {low}...{high} {unit}".rstrip())


def raw(interface: str) -> socket.socket:
    """A non-blocking raw socket for EtherCAT frames, with stamps of arrival. Raises OSError without an interface or a right to it."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(0x88A4))
    s.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_TIMESTAMPNS", 35), 1)
    s.bind((interface, 0x88A4))
    return s


class Stand:
    """Sockets, set-up servers and the loop: `ports` says how to reach it, `run()` blocks until stopped (from any thread)."""

    def __init__(self, given: Mapping[str, Any]):
        config = self.config = complete(given)
        address, sensor, drives, module = config["address"], config["sensor"], config["drives"], config["module"]
        plant = make_plant(config["plant"])
        on_ethercat = drives["wire"] == "ethercat"
        links = [] if on_ethercat else [bound(address, drives["ports"][k]) for k in range(max(drives["axis_link"]) + 1)]
        if module is not None:
            links.append(bound(address, module["port"]))
        part, variant = emulator(sensor["variant"]), sensor["variant"]
        if not part.BARE_GAUGES and plant.sensor_scale is None:
            raise ValueError(f"sensor.variant = {variant!r}: needs a plant whose counts are forces and torques, not bare gauges")
        keys = sensor[_table_of(part)] if _table_of(part) else sensor
        own = part(**{p.key: keys[p.key] for p in part.PARAMETERS})
        self._control = bound(address, config["control_port"])
        line = [raw(drives["interface"])] if on_ethercat else []
        self._sockets: list[Any] = [*links, own, self._control, *line]
        at_sensor = own.open(address, variant, plant.sensor_scale)
        self.link_ends, self.sensor_fd = [(s.getsockname()[1], s.fileno()) for s in links], own.fd
        faults = []
        for f in config["faults"]:
            number, value = wire_fault(f["name"], f.get("value"), variant)
            at_s = 0.0 if BY_NAME[f["name"]].at_start else f.get("at_s", 0.0)
            faults.append((number, int(f.get("index", -1)), value, at_s, f.get("duration_s", 0.0)))
        self.loop = StandLoop(
            plant,
            [s.fileno() for s in links],
            own,
            sensor["boot_s"],
            self._control.fileno(),
            drives,
            module,
            faults,
            config["truth_s"] if config["truth_file"] else 0.0,
            line[0].fileno() if on_ethercat else -1,
            UnitMemory.attach(config["unit_fd"], len(plant.mechanism_aux)) if config["unit_fd"] >= 0 else None,
        )
        names = [f"udp:{address}:{s.getsockname()[1]}" for s in links]
        wired = ("watchdog_axis", "watchdog_outputs") if drives["watchdog_axis"] >= 0 else ()
        of_drives = " ".join(names[: len(names) - (module is not None)])
        on_can = {key: drives[key] for key in ("axis_link", "axis_node", *wired)} | {"links": of_drives}
        terminal = drives["terminal_slave"]
        of_terminal = {"watchdog_slave": terminal, "watchdog_outputs": drives["watchdog_outputs"]} if terminal >= 0 else {}
        at = {"interface": drives["master_interface"], "slaves": drives["slaves"], **of_terminal} if on_ethercat else on_can
        self.ports: dict[str, Any] = {
            "wrench_sensors": at_sensor,
            "drives": {**at, "counts_per_metre": drives["counts_per_metre"], "zero_m": drives["zero_m"], "feed_m": drives["feed_m"]},
            "control_port": self._control.getsockname()[1],
            "sensor": variant,
            "machine": "linear" if plant.machine is None else "hydraulic",
        }
        if plant.machine is not None and not on_ethercat:
            self.ports["drives"] |= MACHINE_CHANNELS[drives["profile"]]
        if module is not None:
            self.ports["mechanism_signals"] = {
                "link": names[-1],
                **{key: value for key, value in module.items() if key not in ("port", "relay_ms", "relay_input")},
            }

    def run(self) -> tuple[int, int]:
        """Runs the stand until `stop` or the end of the run; returns what the loop returns."""
        return self.loop.run(self.config["priority"], self.config["core"])

    def stop(self) -> None:
        """Ends `run` after the present cycle; may be called by another thread or a signal handler."""
        self.loop.stop()

    def close(self) -> None:
        """Closes the set-up servers and all sockets; writes the true motion where it was asked for."""
        if self.config["truth_file"]:
            np.save(self.config["truth_file"], self.loop.truth())
        if self.config["states_file"]:
            np.save(self.config["states_file"], self.loop.states())
        for s in self._sockets:
            s.close()


def _read(source: str) -> Mapping[str, Any]:
    if source == "-":
        return json.loads(sys.stdin.readline())
    text = Path(source).read_text()
    return tomllib.loads(text) if source.endswith(".toml") else json.loads(text)


def main(arguments: list[str]) -> int:
    """Serves the stand of one configuration file (- is standard input) until a request to end; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m drivers.simulated.stand_server CONFIG.toml|CONFIG.json|-", file=sys.stderr)
        return 2
    try:
        stand = Stand(_read(arguments[0]))
    except (ValueError, TypeError, OSError) as error:
        print(f"stand_server: {arguments[0]}: {error}", file=sys.stderr)
        return 2
    follow = arguments[0] == "-"
    signal.signal(signal.SIGTERM, lambda *_: stand.stop())
    # Ctrl-C goes to the whole group: the server parks the platform first, then it closes our standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN if follow else lambda *_: stand.stop())
    if stand.config["lock_memory"]:
        ctypes.CDLL(None, use_errno=True).mlockall(_MCL_CURRENT)
    outcome: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: outcome.append(stand.run()), name="stand")
    thread.start()
    print(json.dumps({"ready": True, **stand.ports}), flush=True)
    while thread.is_alive():
        if follow:
            ready, _, _ = select.select([0], [], [], 0.1)
            if ready and not os.read(0, 4096):
                stand.stop()
                thread.join()
        else:
            thread.join(0.1)
    fifo_error, core_error = outcome[0]
    stand.close()
    try:
        print(json.dumps({**stand.loop.counters(), "fifo": fifo_error == 0, "pinned": core_error == 0}), flush=True)
    except BrokenPipeError:
        pass  # the process that started this one is gone
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
