"""Configuration → clock + ports + stages = one line.

The one place that knows how the parts get what they need: a part's own keys come from its table, and what it lists in `CONTEXT` comes
from here (see `rt_kernels.parameters`).
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from drivers.replayed.log_port import GivenCommands
from hil_server import registry
from hil_server.bus.commands import taken_by
from hil_server.config import SHIPPED, TestConfig, model, trusted_fmus
from hil_server.errors import ConfigurationError
from hil_server.line import initial_conditions
from hil_server.line.context import Context
from hil_server.line.delay_ledger import DelayLedger, ledger
from hil_server.line.overlap import park_pose, refuse_overlap
from hil_server.line.platform_lead import platform_model
from hil_server.log.record import aux_channels
from hil_server.requirements import Requirement
from hil_server.requirements import read as read_requirements
from hil_server.roles import Part, PartClass, Port
from hil_server.values import Document, Keys
from rt_kernels.loop import LoopLine
from rt_kernels.parameters import Aux, Command, TunedParameter
from rt_kernels.plugs import ClockPart
from rt_kernels.ring import SharedBlock
from rt_kernels.stages import STAGE_ROLES
from rt_kernels.tuning import Tuning

HOME_WITHIN_NS = 300_000_000_000  # from the end of a live run's time to the abort of what is not at home by then
REST_WITHIN_NS = 30_000_000_000  # and to the end of the clock
RING_SECONDS = 8.0  # a live run's reader may be held up this long
RING_TICKS = 1000  # a simulation waits for its reader: a ring that stays in the cache


@dataclass
class Assembly:
    """One line and what it was made of."""

    config: TestConfig
    line: LoopLine
    block: SharedBlock
    ledger: DelayLedger
    period_ns: int
    context: Context
    ports: list[Port] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)

    @property
    def aux(self) -> list[Aux]:
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


def build_part(role: str, name: str, keys: Keys, context: Mapping[str, object]) -> Any:
    """A part from its keys and the context it asks for. A ValueError of its constructor becomes a ConfigurationError."""
    cls = registry.part(role, name)
    needs = {wanted: context[wanted] for wanted in getattr(cls, "CONTEXT", ())}
    try:
        return cls(**keys, **needs)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{role}.{name}: {error}") from error


def part_of(config: TestConfig, role: str, context: Mapping[str, object]) -> Any:
    """The part that the test names for the role. Raises ConfigurationError for a key or value that it does not take."""
    try:
        return build_part(*config.setup.stages[role], context)
    except ConfigurationError as error:
        raise ConfigurationError(f"{config.paths.get('test', 'configuration')}: {error}") from error


def base_context(config: TestConfig) -> Context:
    """What the configuration alone decides: geometry, vehicles, first contact. Raises ConfigurationError when the docking units overlap
    before it."""
    setup, stand = config.setup, config.setup.stand
    context: Context = {
        "period_s": setup.test.period_ns * 1e-9,
        "platform": stand.platform,
        "mounting": stand.mounting,
        "limits": stand.limits,
        "vehicles": setup.vehicles,
        "stand_model": stand.machine.keys if stand.machine is not None else None,
        "sensor_scale": None,
        "noiseless": stand.noiseless(),
        "part_of": _part_of,
        "live": False,
        "loop_core": -1,
        "trusted": trusted_fmus.allowed(config),
        "folders": [config.paths["test"].parent if "test" in config.paths else SHIPPED / "programmes", SHIPPED],
    }
    context["mechanism"] = build_part(*setup.mechanism, context)
    context["start"] = initial_conditions.start(
        setup.initial_conditions, setup.vehicles, getattr(context["mechanism"], "max_penetration", None)
    )
    context["orbit"] = setup.orbit
    if setup.orbit is not None:
        context["start"] = replace(context["start"], orbital_rate_rad_s=setup.orbital_rate_rad_s)
    context["park"] = park_pose(stand.mounting, stand.parked.neutral_pose)
    refuse_overlap(context["mechanism"], stand.mounting, context["park"], part_of(config, "guidance", context), config.paths)
    return context


def _part_of(role: str, name: str) -> PartClass:
    """For parts that are made of others. Raises LookupError for an unknown one."""
    try:
        return registry.part(role, name)
    except ConfigurationError as error:
        raise LookupError(str(error)) from error


def simulated_port(config: TestConfig, context: Mapping[str, object]) -> Any:
    """The stand in software. Raises ConfigurationError if the stand file has none."""
    stand = config.setup.stand
    if stand.virtual is None:
        raise ConfigurationError(f"stand {stand.name!r} has no table [virtual]: it cannot be simulated")
    return build_part(*stand.virtual, {**context, "platform": stand.parked})


def new_block(parts: Iterable[Part], ticks: int) -> SharedBlock:
    """The shared block for these parts' auxiliary channels, `ticks` deep."""
    block: SharedBlock = SharedBlock.create(ticks, sum(channel.count for part in parts for channel in part.AUX))
    return block


def simulation_clock(*, period_ns: int, duration_ns: int, block: SharedBlock | None = None) -> Any:
    """The clock of a simulation or a replay."""
    return registry.part("clocks", registry.SIMULATION_CLOCK)(period_ns=period_ns, duration_ns=duration_ns, block=block)


def finish(config: TestConfig, context: Context, devices: Sequence[Port], clock: Callable[..., ClockPart] | None = None,
           logged: Context | None = None, given: np.ndarray | None = None) -> Assembly:  # fmt: skip
    """Stages, shared block, clock and line. devices: the ports that touch the stand, opened, so that their `delays` are known; clock: makes
    the clock of a live run out of period, duration and block; None: a simulation; logged: delays and sensor scale of the run that this one
    continues, for which its stages are built in place of those of the devices; given: records of a log with a command, which the line
    takes again at their ticks."""
    context.update(logged or {})
    setup = config.setup
    first = {role: part_of(config, role, context) for role in ("wrench", "dynamics")}
    context["dynamics"] = first["dynamics"]
    machine = setup.stand.machine
    known = platform_model(*machine, context) if machine is not None else setup.stand.drive
    delays, origins = _device_delays(devices)
    entries = ledger(
        known, period_s=context["period_s"], filter_delay_s=first["wrench"].filter_delay_s,
        integrator_late_ticks=getattr(first["dynamics"], "integrator_late_ticks", 0.0), origins=origins, **delays,
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
    commands = build_part(*setup.commands, context)
    if given is not None and len(given):
        commands = GivenCommands(commands, given)
    duration = round(setup.test.duration_max_s * 1e9)
    if clock is not None:
        # a machine does not stop where its time is up: it is led home, and the clock ends what does not come there
        commands.end_at(max(1, duration), duration + HOME_WITHIN_NS)
        duration += HOME_WITHIN_NS + REST_WITHIN_NS
    ticker = (clock or simulation_clock)(period_ns=setup.test.period_ns, duration_ns=duration, block=context["block"])
    ports = [commands, *devices]
    line = LoopLine(ticker, ports, stages, context["block"], tuning)
    found = Assembly(config, line, context["block"], entries, setup.test.period_ns, context, ports)
    rows = config.document.get("requirement", ())
    of_unit = {channel.name for channel in context["mechanism"].AUX}
    found.requirements = read_requirements(rows, aux_channels(found.aux), str(config.paths.get("test", "configuration")),
                                           of_unit.__contains__)  # fmt: skip
    return found


def simulation(config: TestConfig, logged: Context | None = None, given: np.ndarray | None = None) -> Assembly:
    """Everything in process on the free-running clock. logged, given: see `finish`."""
    context = base_context(config)
    port = simulated_port(config, context)
    context |= {"sensor_scale": port.sensor_scale, "noiseless": config.setup.stand.noiseless(in_process=True)}
    return finish(config, context, [port], logged=logged, given=given)


def _device_delays(devices: Iterable[Port]) -> tuple[dict[str, float], dict[str, str]]:
    """What the devices add to the ledger, and where they have it from."""
    delays: dict[str, float] = {}
    origins: dict[str, str] = {}
    for device in devices:
        for key, value in getattr(device, "delays", {}).items():
            delays[key] = delays.get(key, 0.0) + value
        origins |= getattr(device, "delay_origins", {})
    return delays, origins


def devices(context: Context, tables: Mapping[str, model.Part]) -> dict[str, Port]:
    """The ports of a live run by table, not yet opened. tables: the devices by their tables of the stand file, in the order in which they
    are opened and read."""
    context["unknown_delays"] = model.unknown_delays(tables)
    return {name: build_part(*part, context) for name, part in tables.items()}


def live(config: TestConfig, context: Context, opened: Sequence[Port], *, priority: int, cpu: int,
         logged: Context | None = None) -> Assembly:  # fmt: skip
    """The line of a live run on opened devices: their scales and delays are known now. logged: see `finish`. Raises ConfigurationError for
    a part that is not for a stand that moves."""
    for stage in config.setup.stages.values():
        if not getattr(registry.part(stage.role, stage.name), "LIVE", True):
            raise ConfigurationError(f"{stage.role}.part: {stage.name!r} is for recordings only, limit a part that may move a stand")
    for device in opened:
        scale = getattr(device, "sensor_scale", None)
        if scale is not None:
            context["sensor_scale"] = list(scale)
    context["live"] = True
    # the grid follows the clock of a bus that has one; its port measures how far they are apart
    references = [found for device in opened if (found := getattr(device, "grid_reference", None)) is not None]
    follow = {"reference": references[0]} if references else {}
    clock = partial(registry.part("clocks", registry.LIVE_CLOCK), priority=priority, cpu=cpu, **follow)
    return finish(config, context, opened, clock, logged)


def virtual_stand_settings(config: TestConfig, context: Context, *, priority: int, loop_core: int) -> Document:
    """What the virtual stand's process needs (see drivers.simulated.stand_server): the plant of this configuration, another core. Raises
    ConfigurationError for a force sensor that it cannot play, and for a stand in software whose legs have no drives."""
    stand, unit = config.setup.stand, config.setup.mechanism
    assert stand.virtual is not None  # without drives a stand has it
    machine = getattr(registry.part(stand.virtual.role, stand.virtual.name), "MACHINE", "")
    if not machine:
        raise ConfigurationError(f"{config.paths['stand']}: virtual.part: {stand.virtual.name!r} has no drives for a live run; "
                                 "simulate the test, or --set test.stand=stands/docking_stand.toml")  # fmt: skip
    port_only = ("setpoint_delay_ticks", "measured_leg_delay_ticks", "faults")
    plant = {k: v for k, v in stand.virtual_keys.items() if k not in port_only and v is not None}
    plant["platform"] = stand.parked_table
    plant["mounting"] = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in asdict(context["mounting"]).items()}
    plant["mechanism"] = {**unit.keys, "part": registry.parts(unit.role)[unit.name]}
    plant["machine"] = machine
    others = sorted(os.sched_getaffinity(0) - {loop_core})
    gives = getattr(context["mechanism"], "gives", None)
    # strokes that the energy monitor reads come as fine as the unit declares
    module = {"analog_scale": [gives.resolution_m] * 8} if gives is not None and gives.struts else {}
    limits = context["limits"]
    for key, wired, inputs in (("emergency_stop_inputs", limits.emergency_stop, [20, 21]), ("guard_inputs", limits.guard, [22, 23]),
                               ("unit_inputs", limits.hydraulic_unit, [28, 29, 30, 31])):  # fmt: skip
        module |= {key: inputs} if wired else {}
    module["watchdog_outputs"] = [8, 9]
    core = others[0] if others else -1
    return {"plant": plant, "sensor": stand.played_sensor, "module": module, "priority": priority, "core": core, "lock_memory": True}
