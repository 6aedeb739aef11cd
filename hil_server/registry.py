"""All parts: role → name → "module:Class". Strings only; nothing is imported until it is asked for.

A new part is one file and one line in here. A package from outside adds lines through the entry point group `hil_server.parts`, with
names of the form `role.name`:

    [project.entry-points."hil_server.parts"]
    "drives.my_valve" = "my_package.valve:ValvePort"

Every class declares `PARAMETERS` (see `rt_kernels.parameters`); `hil-server list ROLE NAME` prints them.
"""

import importlib
from collections.abc import Mapping
from functools import lru_cache

from hil_server.errors import ConfigurationError
from hil_server.roles import PartClass
from rt_kernels.parameters import did_you_mean
from rt_kernels.stages import STAGES

ENTRY_POINT_GROUP = "hil_server.parts"

# Role → what a part of this role does. In the order of one sample's way through the line.
ROLES: dict[str, str] = {
    "clocks": "knows time: starts every tick",
    "wrench_sensors": "port: reads the force/torque sensor",
    "drives": "port: reads measured legs, writes leg setpoints",
    "mechanism_signals": "port: reads the sensors of the docking mechanism",
    "commands": "port: commands and hand controllers of the operators",
    "simulated": "port: a stand in software",
    "emulated_sensors": "force sensor in software for the port of the same name, on the wire of a virtual stand",
    **{role: f"stage: {does}" for role, does, *_ in STAGES},
    "mechanisms": "docking mechanism in software, carried by a virtual stand",
}

# Role of a port → how the names of the input fields begin that it writes; a stand in software writes those of all devices.
PORT_FIELDS: dict[str, tuple[str, ...]] = {
    "wrench_sensors": ("wrench_", "cell_acceleration"),
    "drives": ("drive_", "measured_leg", "leg_force", "leg_pressure", "leg_valve", "supply_pressure"),
    "mechanism_signals": ("signal_", "analogue_chain"),
    "commands": ("command_", "hand_"),
    "simulated": (
        "wrench_",
        "cell_acceleration",
        "drive_",
        "measured_leg",
        "leg_force",
        "leg_pressure",
        "leg_valve",
        "supply_pressure",
        "signal_",
        "analogue_chain",
    ),  # fmt: skip
}

PARTS: dict[str, dict[str, str]] = {
    "clocks": {
        "wall": "rt_kernels.clocks:WallClockPart",
        "free_running": "rt_kernels.clocks:FreeRunningClock",
    },
    "wrench_sensors": {
        "rdt": "drivers.wrench_sensors.rdt:RdtPort",
        "bota_serial": "drivers.wrench_sensors.bota_serial:BotaSerialPort",
        "robotiq_ft300": "drivers.wrench_sensors.robotiq_ft300:RobotiqFt300Port",
        "ati_can": "drivers.wrench_sensors.ati_can:AtiCanPort",
    },
    "drives": {
        "cia402": "drivers.drives.cia402:Cia402Port",
        "cia402_ethercat": "drivers.drives.cia402_ethercat:Cia402EthercatPort",
        "cia408": "drivers.drives.cia408:Cia408Port",
    },
    "mechanism_signals": {
        "cia401": "drivers.mechanism_signals.cia401:Cia401Port",
    },
    "commands": {
        "latch": "rt_kernels.command_latch:CommandLatch",
        "script": "hil_server.operator_desk.script_port:ScriptPort",
    },
    "simulated": {
        "virtual_stand": "drivers.simulated.virtual_stand:VirtualStandPort",
        "hydraulic_stand": "drivers.simulated.virtual_stand:HydraulicStandPort",
        "ideal_stand": "drivers.simulated.ideal_stand:IdealStandPort",
    },
    "emulated_sensors": {
        "rdt": "drivers.simulated.sensor_emulators.rdt:EmulatedRdt",
        "bota_serial": "drivers.simulated.sensor_emulators.bota:EmulatedBota",
        "robotiq_ft300": "drivers.simulated.sensor_emulators.robotiq:EmulatedRobotiq",
        "ati_can": "drivers.simulated.sensor_emulators.netcanoem:EmulatedNetcanoem",
    },
    "forward_kinematics": {
        "stewart_forward": "rt_kernels.forward_kinematics.stewart:StewartForward",
    },
    "wrench": {
        "six_axis": "rt_kernels.wrench.six_axis:SixAxis",
    },
    "events": {
        "docking": "rt_kernels.events.docking:DockingEvents",
    },
    "guidance": {
        "docking": "rt_kernels.guidance.docking:DockingGuidance",
        "berthing": "rt_kernels.guidance.berthing:BerthingGuidance",
        "excitation": "rt_kernels.guidance.excitation:Excitation",
        "recording": "rt_kernels.guidance.recording:Recording",
    },
    "control": {
        "press_thrust": "rt_kernels.control.press_thrust:PressThrust",
        "fmu": "rt_kernels.control.fmu.part:Fmu",
        "thrusters": "rt_kernels.control.thrusters:Thrusters",
    },
    "compensation": {
        "none": "rt_kernels.compensation.none:NoCompensator",
        "phase_lead": "rt_kernels.compensation.phase_lead:PhaseLead",
        "polynomial": "rt_kernels.compensation.polynomial:Polynomial",
        "adaptive_time_series": "rt_kernels.compensation.adaptive_time_series:AdaptiveTimeSeries",
        "pose_referenced_force": "rt_kernels.compensation.pose_referenced_force:PoseReferencedForce",
        "smith": "rt_kernels.compensation.smith:SmithPredictor",
        "energy_cap": "rt_kernels.compensation.energy_cap:EnergyCap",
        "lead_and_pose_force": "rt_kernels.compensation.lead_and_pose_force:LeadAndPoseForce",
        "phased": "rt_kernels.compensation.phased:Phased",
    },
    "dynamics": {
        "two_bodies": "rt_kernels.dynamics.two_bodies:TwoBodies",
        "two_bodies_flexible": "rt_kernels.dynamics.two_bodies_flexible:TwoBodiesFlexible",
        "two_crafts": "rt_kernels.dynamics.two_crafts:TwoCrafts",
        "manipulator_payload": "rt_kernels.dynamics.manipulator.payload:ManipulatorPayload",
    },
    "setpoint_kinematics": {
        "stewart": "rt_kernels.setpoint_kinematics.stewart:StewartSetpoints",
    },
    "safety": {
        "limits": "rt_kernels.safety.limits:SafetyLimits",
    },
    "mechanisms": {
        "berthing_head": "rt_kernels.mechanisms.berthing.head:BerthingHead",
        "berthing_pins": "rt_kernels.mechanisms.berthing.pins:BerthingPins",
        "bumper": "rt_kernels.mechanisms.linear.bumper:Bumper",
        "elastic_adaptive": "rt_kernels.mechanisms.ring.elastic.unit:ElasticAdaptive",
        "mesh_unit": "rt_kernels.mechanisms.mesh.unit:MeshUnit",
        "probe_cone": "rt_kernels.mechanisms.probe_cone.unit:ProbeCone",
        "probe_cone_simple": "rt_kernels.mechanisms.probe_cone.simple:ProbeConeSimple",
        "ring": "rt_kernels.mechanisms.ring.unit:Ring",
        "several_contacts": "rt_kernels.mechanisms.linear.several_contacts:SeveralContacts",
    },
}

# Parts that the server takes where no file names one; nothing else in the server names one.
FILLED = {"commands": "latch", "control": "press_thrust"}  # role → part, of the tables that a test may leave out
LIVE_CLOCK = "wall"
SIMULATION_CLOCK = "free_running"
LINEAR_STAND = "virtual_stand"
HYDRAULIC_STAND = "hydraulic_stand"
NO_COMPENSATION = "none"
FREE_BODIES = "two_bodies"
MOVING_CRAFT = "two_crafts"
DYNAMICS = (FREE_BODIES, "two_bodies_flexible", MOVING_CRAFT)  # the first that flies both crafts as they are
APPROACH = "docking"
RECORDED_MOTION = "recording"
DRAWN_UNIT = "mesh_unit"
# what the server speaks with the virtual stand's process
EMULATED_DRIVES = "cia402"
EMULATED_DRIVES_ON_ETHERCAT = "cia402_ethercat"
EMULATED_WRENCH_SENSOR = "rdt"
EMULATED_SIGNALS = "cia401"


@lru_cache(maxsize=1)
def parts_from_outside() -> dict[str, dict[str, str]]:
    """Role → name → "module:Class" of the entry points, read once. Raises ConfigurationError for one that names no role of ours."""
    from importlib.metadata import entry_points

    found: dict[str, dict[str, str]] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        role, _, name = point.name.partition(".")
        if role not in ROLES or not name:
            raise ConfigurationError(
                f"entry point {point.name!r} = {point.value!r}: the name must be ROLE.NAME with a role out of {', '.join(ROLES)}"
            )
        found.setdefault(role, {})[name] = point.value
    return found


def parts(role: str) -> Mapping[str, str]:
    """Name → "module:Class" of a role; a part from outside cannot replace one of ours. Raises ConfigurationError for an unknown role."""
    if role not in ROLES:
        raise ConfigurationError(f"no role {role!r}{did_you_mean(role, ROLES)}; roles: {', '.join(ROLES)}")
    return {**parts_from_outside().get(role, {}), **PARTS[role]}


def port_fields(role: str) -> frozenset[str]:
    """Fields of the sample that a port of this role may write."""
    from rt_kernels.layout import FIELDS  # NumPy: not before it is wanted

    return frozenset(name for name, *rest in FIELDS if rest[4] == "ports" and name.startswith(PORT_FIELDS[role]))


def part(role: str, name: str) -> PartClass:
    """The class of a part.

    Raises ConfigurationError, with a message of its own for each of: no such name, the module cannot be imported, the class is not in it.
    """
    known = parts(role)
    if name not in known:
        there_are = ", ".join(sorted(known)) or "none"
        raise ConfigurationError(f"no part {name!r} in role {role!r}{did_you_mean(name, known)}; there are: {there_are}")
    module_name, _, class_name = known[name].partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(
            f"part {role}.{name}: module {module_name!r} cannot be imported: {error}{_not_built(module_name)}"
        ) from error
    try:
        found: PartClass = getattr(module, class_name)
        return found
    except AttributeError:
        raise ConfigurationError(f"part {role}.{name}: module {module_name!r} has no class {class_name!r}") from None


def part_of_table(role: str, table: object) -> PartClass | None:
    """The class of the part that a configuration's table names, None where it names none that is known here (an old or foreign log)."""
    name = table.get("part") if isinstance(table, Mapping) else None
    try:
        return part(role, name) if isinstance(name, str) else None
    except ConfigurationError:
        return None


def _not_built(module_name: str) -> str:
    """What to type when the source of the module lies there, but was never compiled."""
    from importlib.util import find_spec
    from pathlib import Path

    package = find_spec(module_name.partition(".")[0])
    for folder in (package.submodule_search_locations or []) if package else []:
        if Path(folder).parent.joinpath(*module_name.split(".")).with_suffix(".pyx").exists():
            return "; its source is there but not built: python setup.py build_ext --inplace -j2"
    return ""
