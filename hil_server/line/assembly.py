"""Configuration → clock + ports + stages = one line.

The one place that knows how the parts get what they need: a part's own keys come from its table, and what it lists in `CONTEXT` comes
from here (see `rt_kernels.parameters`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from drivers.replayed.log_port import GivenCommands
from hil_server import registry
from hil_server.bus.commands import taken_by
from hil_server.config import TestConfig, crafts, physics, trusted_fmus
from hil_server.config.loader import SHIPPED
from hil_server.config.modal_data import modal_craft, rigid_of
from hil_server.config.parts import check_part, part_table
from hil_server.config.tables import MECHANISM_KEYS
from hil_server.errors import ConfigurationError
from hil_server.line import initial_conditions
from hil_server.line.delay_ledger import DelayLedger, ledger
from hil_server.line.overlap import park_pose, refuse_overlap
from hil_server.line.platform_lead import platform_model
from hil_server.log.record import aux_channels
from hil_server.requirements import Requirement
from hil_server.requirements import read as read_requirements
from hil_server.requirements.angles import yaw_pitch_roll
from rt_kernels.compensation.effective_mass import rotation
from rt_kernels.context import ZERO3, Limits, Mounting, Orbit, Vehicle, Vehicles
from rt_kernels.loop import LoopLine
from rt_kernels.parameters import Command, TunedParameter
from rt_kernels.ring import SharedBlock
from rt_kernels.stages import STAGE_ROLES
from rt_kernels.stewart.platform import Platform
from rt_kernels.tuning import Tuning

HOME_WITHIN_NS = 300_000_000_000  # from the end of a live run's time to the abort of what is not at home by then
REST_WITHIN_NS = 30_000_000_000  # and to the end of the clock
RING_SECONDS = 8.0  # a live run's reader may be held up this long
PARK_STEPS = 20  # Newton steps from the neutral pose to the parked one
RING_TICKS = 1000  # a simulation waits for its reader: a ring that stays in the cache


@dataclass
class Assembly:
    """One line and what it was made of."""

    config: TestConfig
    line: LoopLine
    block: SharedBlock
    ledger: DelayLedger
    period_ns: int
    context: dict[str, Any]
    ports: list[Any] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)

    @property
    def aux(self) -> list[Any]:
        """Declared auxiliary channels of all parts, in order."""
        parts = [*self.ports, *(self.line.stages[role] for role in STAGE_ROLES)]
        return [channel for part in parts for channel in part.AUX]

    @property
    def commands(self) -> dict[str, Command]:
        """What the parts act on, by name; `tune` where one of them can be tuned."""
        found = taken_by([*self.ports, *(self.line.stages[role] for role in STAGE_ROLES)])
        return found | ({"tune": Command("tune", numbers=tuple(range(len(self.tunables))))} if self.tunables else {})

    @property
    def tunables(self) -> list[TunedParameter]:
        """Parameters that can be changed while it runs, by their numbers."""
        found: list[TunedParameter] = self.line.tuning.tunables
        return found


def period_ns(config: TestConfig) -> int:
    """Period of the loop, ns."""
    found: int = round(1e9 / config.test["rate_hz"])
    return found


def vehicle(table: Mapping[str, Any]) -> Vehicle:
    """What parts may know of a vehicle; its modes at the port are made when a part asks."""
    if "body" in table:
        mass_kg, inertia_kg_m2, X_port = crafts.mass_properties(table)
    else:
        mass_kg, inertia_kg_m2 = table["mass_kg"], table["inertia_kg_m2"]
        X_port = physics.pose(table["port_position_m"], table["port_angles_deg"])
    craft = crafts.craft(table)
    modal = None
    if table.get("modal"):
        directions = np.array([thruster.direction for thruster in craft.thrusters]).reshape(-1, 3) @ rotation(X_port[3:])
        modal = partial(modal_craft, table["modal"], SHIPPED / "vehicles", rigid=rigid_of(table), thrusters=directions)
    return Vehicle(
        mass_kg=mass_kg,
        inertia_kg_m2=inertia_kg_m2,
        X_port=X_port,
        thrust_n=table["thrust_n"],
        port_compliance=table.get("port_compliance_rows"),
        modal=modal,
        craft=craft,
    )


def vehicles(config: TestConfig) -> Vehicles:
    """The two vehicles of the test."""
    return Vehicles(active=vehicle(config.active_vehicle), target=vehicle(config.target_vehicle))


def orbit(config: TestConfig) -> Orbit | None:
    """The reference orbit of the test; None without one."""
    table = config.document.get("orbit")
    if table is None:
        return None
    return Orbit(*physics.orbital_state(table), table["gravitational_parameter_m3_per_s2"])


def mounting(table: Mapping[str, Any]) -> Mounting:
    """Where the ports sit on platform and load cell, of the stand's table."""
    return Mounting(
        **physics.mounting_poses(table),
        X_S_port=physics.pose(table["measured_port_position_m"], table["measured_port_angles_deg"]),
        load_cell_on=table["load_cell_on"],
        unit_on_load_cell=table["unit_on_load_cell"],
        carried_mass_kg=table["carried_mass_kg"],
        carried_com_m=table["carried_com_m"],
        gravity_m_s2=table["gravity_m_s2"],
        carried_inertia_kg_m2=table["carried_inertia_kg_m2"],
    )


def limits(table: Mapping[str, Any]) -> Limits:
    """What the run may not exceed, of the test's table of limits."""
    return Limits(
        force_limit_n=table["force_limit_n"],
        moment_limit_n_m=table["moment_limit_n_m"],
        start_tolerance_m=table["start_tolerance_m"],
        start_leg_m=table.get("start_leg_m"),
        supply_pressure_min_pa=table["supply_pressure_min_pa"],
        blocking_valves=table["blocking_valves"],
        **{key: table[key] for key in ("power_off", "emergency_stop", "guard", "hydraulic_unit", "discrepancy_s", "proof_test")},
    )


def noiseless(stand: Mapping[str, Any], in_process: bool = False) -> bool:
    """Whether the stand's force sensor is one in software without noise, in the process or behind a wire of its own. in_process: the
    stand is played in software, whatever devices it has."""
    virtual = stand.get("virtual")
    if virtual is None or ("drives" in stand and not in_process):
        return False
    keys = check_part("simulated", virtual["part"], {k: v for k, v in virtual.items() if k != "part"})
    return not keys.get("force_noise_n") and not keys.get("moment_noise_n_m")


def drive_model(stand: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the drives: identified ones first, else those of the virtual stand. Raises ConfigurationError when nothing is."""
    if stand.get("drive_model"):
        known = stand["drive_model"]
        return {
            "frequency_hz": known["frequency_hz"],
            "damping": known["damping"],
            "delay_s": known["delay_s"],
            "origin": f"identified {known['date']}" if known.get("date") else "configured",
        }
    virtual = stand.get("virtual")
    if virtual is None:
        raise ConfigurationError("stand: neither [drive_model] nor [virtual]: run hil-server identify on this stand first")
    keys = check_part("simulated", virtual["part"], {k: v for k, v in virtual.items() if k != "part"})
    if "drive_frequency_hz" not in keys:
        return {"frequency_hz": 0.0, "damping": 1.0, "delay_s": 0.0, "origin": "derived"}
    return {
        "frequency_hz": keys["drive_frequency_hz"],
        "damping": keys["drive_damping"],
        "delay_s": keys["drive_delay_s"],
        "origin": "configured",
    }


def stand_model(stand: Mapping[str, Any]) -> tuple[dict[str, Any], str] | None:
    """Parameters of the machine that moves the platform, and where they are from: identified ones first, else those of the virtual stand.
    None for a stand whose drives are all that is known."""
    machine = registry.own("hydraulic stand")
    known, virtual = stand.get("stand_model"), stand.get("virtual") or {}
    if known:
        origin = f"identified {known['date']}" if known.get("date") else "configured"
    elif stand.get("drive_model") or virtual.get("part") != machine:
        return None
    else:
        known, origin = virtual, "configured"
    declared = part_table("simulated", machine).parameters
    keys = check_part("simulated", machine, {k: v for k, v in known.items() if k in declared})
    # the response is that of hydraulic legs: of electric ones the ledger knows what [drive_model] says
    return (keys, origin) if keys["actuator"] == "hydraulic" else None


def build_part(role: str, name: str, keys: Mapping[str, Any], context: Mapping[str, Any]) -> Any:
    """A part from its keys and the context it asks for. A ValueError of its constructor becomes a ConfigurationError."""
    cls = registry.part(role, name)
    needs = {wanted: context[wanted] for wanted in getattr(cls, "CONTEXT", ())}
    try:
        return cls(**keys, **needs)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{role}.{name}: {error}") from error


def part_of(config: TestConfig, role: str, context: Mapping[str, Any]) -> Any:
    """The part that the test names for the role. Raises ConfigurationError for a key or value that it does not take."""
    name, keys = config.part(role)
    return build_part(role, name, keys, context)


def mechanism_of(config: TestConfig, context: Mapping[str, Any]) -> Any:
    """The test's docking mechanism. Raises ConfigurationError for a key or value that it does not take."""
    table = {k: v for k, v in config.mechanism.items() if k not in MECHANISM_KEYS}
    return build_part("mechanisms", table.pop("part"), table, context)


def base_context(config: TestConfig) -> dict[str, Any]:
    """What the configuration alone decides: geometry, vehicles, first contact. Raises ConfigurationError when the docking units overlap
    before it."""
    try:
        platform = Platform.from_dict(config.stand["platform"])
    except ValueError as error:
        raise ConfigurationError(f"stand.platform: {error}") from error
    context: dict[str, Any] = {
        "period_s": period_ns(config) * 1e-9,
        "platform": platform,
        "mounting": mounting(config.stand["mounting"]),
        "limits": limits(config.stand["limits"]),
        "vehicles": vehicles(config),
        "stand_model": (stand_model(config.stand) or (None,))[0],
        "sensor_scale": None,
        "noiseless": noiseless(config.stand),
        "part_of": _part_of,
        "live": False,
        "loop_core": -1,
        "trusted": trusted_fmus.allowed(config),
        "folders": [config.paths["test"].parent if "test" in config.paths else SHIPPED, SHIPPED],
    }
    context["mechanism"] = mechanism_of(config, context)
    context["start"] = initial_conditions.start(
        config.initial_conditions, context["vehicles"], getattr(context["mechanism"], "max_penetration", None)
    )
    context["orbit"] = orbit(config)
    if context["orbit"] is not None:
        turns = config.orbit["target_attitude"] == "orbital"
        context["start"] = replace(context["start"], orbital_rate_rad_s=physics.orbital_rate(config.orbit) if turns else ZERO3)
    context["park"] = park_pose(context["mounting"], Platform.from_dict(parked(config.stand)).neutral_pose)
    refuse_overlap(context["mechanism"], context["mounting"], context["park"], part_of(config, "guidance", context), config.paths)
    return context


def _part_of(role: str, name: str) -> type:
    """For parts that are made of others. Raises LookupError for an unknown one."""
    try:
        return registry.part(role, name)
    except ConfigurationError as error:
        raise LookupError(str(error)) from error


def parked(stand: Mapping[str, Any]) -> dict[str, Any]:
    """Table [platform] of a stand in software, which starts in its neutral pose: that is where the stand is parked (`limits.start_leg_m`).
    Raises ConfigurationError for legs that are those of no pose."""
    table: dict[str, Any] = dict(stand["platform"])
    legs = stand["limits"].get("start_leg_m")
    if legs is None:
        return table
    try:
        X_WP = Platform.from_dict(table).forward(np.array(legs), steps=PARK_STEPS)
    except ValueError as error:
        raise ConfigurationError(f"stand.limits.start_leg_m: {list(legs)} m are the legs of no pose: {error}") from error
    angles = dict(zip(("yaw", "pitch", "roll"), np.degrees(yaw_pitch_roll(X_WP[None])[0]).tolist(), strict=True))
    return table | {"neutral_position_m": X_WP[:3].tolist()} | {f"neutral_{name}_deg": angle for name, angle in angles.items()}


def simulated_port(config: TestConfig, context: Mapping[str, Any]) -> Any:
    """The stand in software. Raises ConfigurationError if the stand file has none."""
    virtual = config.stand.get("virtual")
    if virtual is None:
        raise ConfigurationError(f"stand {config.stand['name']!r} has no table [virtual]: it cannot be simulated")
    keys = {k: v for k, v in virtual.items() if k != "part"}
    return build_part("simulated", virtual["part"], keys, {**context, "platform": Platform.from_dict(parked(config.stand))})


def new_block(parts: list[Any], ticks: int) -> SharedBlock:
    """The shared block for these parts' auxiliary channels, `ticks` deep."""
    block: SharedBlock = SharedBlock.create(ticks, sum(channel.count for part in parts for channel in part.AUX))
    return block


def simulation_clock(**keys: Any) -> Any:
    """The clock of a simulation or a replay: period_ns, duration_ns, block."""
    return registry.part("clocks", registry.own("clock of a simulation"))(**keys)


def finish(config: TestConfig, context: dict[str, Any], devices: list[Any], clock: Any = None,
           logged: Mapping[str, Any] | None = None, given: np.ndarray | None = None) -> Assembly:  # fmt: skip
    """Stages, shared block, clock and line. devices: the ports that touch the stand, opened, so that their `delays` are known; clock: makes
    the clock of a live run out of period, duration and block; None: a simulation; logged: delays and sensor scale of the run that this one
    continues, for which its stages are built in place of those of the devices; given: records of a log with a command, which the line
    takes again at their ticks."""
    context |= logged or {}
    first = {role: part_of(config, role, context) for role in ("wrench", "dynamics")}
    machine = stand_model(config.stand)
    known = platform_model(*machine, context) if machine else drive_model(config.stand)
    entries = ledger(
        known, period_s=context["period_s"], filter_delay_s=first["wrench"].filter_delay_s,
        integrator_late_ticks=getattr(first["dynamics"], "integrator_late_ticks", 0.0), **_device_delays(devices),
    )  # fmt: skip
    entries = replace(entries, unknown=tuple(context.get("unknown_delays", ())))
    context.setdefault("delays", entries.sums())
    stages = {role: first[role] if role in first else part_of(config, role, context) for role in STAGE_ROLES}
    deep = max(64, int(np.ceil(RING_SECONDS / context["period_s"]))) if clock is not None else RING_TICKS
    context["block"] = new_block([*devices, *stages.values()], deep)
    try:
        tuning = Tuning(context["period_s"], stages)
    except ValueError as error:
        raise ConfigurationError(f"tunable parameters: {error}") from None
    context["tunables"] = [one.entry() for one in tuning.tunables]
    ports = [part_of(config, "commands", context), *devices]
    if given is not None and len(given):
        ports[0] = GivenCommands(ports[0], given)
    duration = round(config.test["duration_max_s"] * 1e9)
    if clock is not None:
        # a machine does not stop where its time is up: it is led home, and the clock ends what does not come there
        ports[0].end_at(max(1, duration), duration + HOME_WITHIN_NS)
        duration += HOME_WITHIN_NS + REST_WITHIN_NS
    ticker = (clock or simulation_clock)(period_ns=period_ns(config), duration_ns=duration, block=context["block"])
    line = LoopLine(ticker, ports, stages, context["block"], tuning)
    found = Assembly(config, line, context["block"], entries, period_ns(config), context, ports)
    rows = config.document.get("requirement", ())
    of_unit = {channel.name for channel in context["mechanism"].AUX}
    found.requirements = read_requirements(rows, aux_channels(found.aux), str(config.paths.get("test", "configuration")),
                                           of_unit.__contains__)  # fmt: skip
    return found


def simulation(config: TestConfig, logged: Mapping[str, Any] | None = None, given: np.ndarray | None = None) -> Assembly:
    """Everything in process on the free-running clock. logged, given: see `finish`."""
    context = base_context(config)
    port = simulated_port(config, context)
    context |= {"sensor_scale": port.sensor_scale, "noiseless": noiseless(config.stand, in_process=True)}
    return finish(config, context, [port], logged=logged, given=given)


def _device_delays(devices: list[Any]) -> dict[str, Any]:
    """What the devices add to the ledger, and where they have it from."""
    delays: dict[str, float] = {}
    origins: dict[str, str] = {}
    for device in devices:
        for key, value in getattr(device, "delays", {}).items():
            delays[key] = delays.get(key, 0.0) + value
        origins |= getattr(device, "delay_origins", {})
    return {**delays, "origins": origins}


# device table of a stand file, role in the registry: in the order in which they are opened and read
DEVICE_ROLES = (("mechanism_signals", "mechanism_signals"), ("wrench_sensor", "wrench_sensors"), ("drives", "drives"))


def devices(config: TestConfig, context: dict[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The ports of a live run by table, not yet opened. tables: stand-file tables of the devices, each with its `part`."""
    context["unknown_delays"] = unknown_delays(tables)
    found = {}
    for name, role in DEVICE_ROLES:
        if name in tables:
            keys = dict(tables[name])
            found[name] = build_part(role, keys.pop("part"), keys, context)
    return found


SETTINGS_OF_FILTER = ("sinc_length", "chop", "fast", "fir", "filter_index")


def own_delay(role: str, table: Mapping[str, Any]) -> float | None:
    """Delay of a device's own filter by its table of the stand file, s: as given there, else as its part derives it from its settings; None
    where neither says it."""
    given = table.get("filter_delay_s")
    derived = getattr(registry.part_of_table(role, table), "own_delay_s", None)
    return float(given) if given is not None else derived(table) if derived is not None else None


def unknown_delays(tables: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Keys of these devices that say how late they are by what was set in them, that the stand file does not give, and that do not follow
    from their settings: one line each, with what it does say of the filter."""
    found = []
    for name, role in DEVICE_ROLES:
        table = tables.get(name, {})
        part = registry.part_of_table(role, table)
        if part is None or all(p.key != "filter_delay_s" for p in part.PARAMETERS) or own_delay(role, table) is not None:
            continue
        given = "".join(f", {key} = {table[key]}" for key in SETTINGS_OF_FILTER if key in table)
        found.append(f"{name}.filter_delay_s (of {table['part']}{given}: from its data sheet, or as measured)")
    return tuple(found)


def live(config: TestConfig, context: dict[str, Any], opened: list[Any], *, priority: int, cpu: int,
         logged: Mapping[str, Any] | None = None) -> Assembly:  # fmt: skip
    """The line of a live run on opened devices: their scales and delays are known now. logged: see `finish`. Raises ConfigurationError for
    a part that is not for a stand that moves."""
    for role in STAGE_ROLES:
        name, _ = config.part(role)
        if not getattr(registry.part(role, name), "LIVE", True):
            raise ConfigurationError(f"{role}.part: {name!r} is for recordings only, limit a part that may move a stand")
    for device in opened:
        scale = getattr(device, "sensor_scale", None)
        if scale is not None:
            context["sensor_scale"] = list(scale)
    context["live"] = True
    # the grid follows the clock of a bus that has one; its port measures how far they are apart
    references = [device.grid_reference for device in opened if getattr(device, "grid_reference", None) is not None]
    follow = {"reference": references[0]} if references else {}
    clock = partial(registry.part("clocks", registry.own("clock of a live run")), priority=priority, cpu=cpu, **follow)
    return finish(config, context, opened, clock, logged)


def emulated_sensor(table: Mapping[str, Any] | None) -> dict[str, Any]:
    """The virtual stand's force sensor (settings of drivers.simulated.stand_server): the one of the stand file's [wrench_sensor], without
    that table one on RDT. Raises ConfigurationError for a part that it has no sensor for."""
    if table is None:
        return {"rate_hz": 4000.0}
    if table["part"] not in registry.EMULATORS:
        limit = f"one of {', '.join(registry.EMULATORS)}"
        raise ConfigurationError(f"stand.wrench_sensor.part: the virtual stand has no sensor for {table['part']!r}, limit {limit}")
    keys = check_part("wrench_sensors", table["part"], {k: v for k, v in table.items() if k != "part"})
    variant = registry.EMULATORS[table["part"]] or keys["variant"]
    return {"variant": variant, "rate_hz": 500.0 if variant == "onrobot" else 4000.0}


def virtual_stand_settings(config: TestConfig, context: Mapping[str, Any], *, priority: int, loop_core: int) -> dict[str, Any]:
    """What the virtual stand's process needs (see drivers.simulated.stand_server): the plant of this configuration, another core."""
    import os

    virtual = dict(config.stand["virtual"])
    name = virtual.pop("part")
    keys = check_part("simulated", name, virtual)
    port_only = ("setpoint_delay_ticks", "measured_leg_delay_ticks", "faults")
    mechanism = {k: v for k, v in config.mechanism.items() if k not in MECHANISM_KEYS}
    mechanism["part"] = registry.parts("mechanisms")[mechanism["part"]]
    plant = {k: v for k, v in keys.items() if k not in port_only and v is not None}
    plant["platform"] = parked(config.stand)
    plant["mounting"] = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in asdict(context["mounting"]).items()}
    plant["mechanism"] = mechanism
    plant["machine"] = registry.part("simulated", name).MACHINE  # type: ignore[attr-defined]
    others = sorted(os.sched_getaffinity(0) - {loop_core})
    sensor = emulated_sensor(config.stand.get("wrench_sensor"))
    gives = getattr(context["mechanism"], "gives", None)
    # strokes that the energy monitor reads come as fine as the unit declares
    module = {"analog_scale": [gives.resolution_m] * 8} if gives is not None and gives.struts else {}
    limits = context["limits"]
    for key, wired, inputs in (("emergency_stop_inputs", limits.emergency_stop, [20, 21]), ("guard_inputs", limits.guard, [22, 23]),
                               ("unit_inputs", limits.hydraulic_unit, [28, 29, 30, 31])):  # fmt: skip
        module |= {key: inputs} if wired else {}
    module["watchdog_outputs"] = [8, 9]
    core = others[0] if others else -1
    return {"plant": plant, "sensor": sensor, "module": module, "priority": priority, "core": core, "lock_memory": True}
