"""The configuration of a test as the server reads it: made once of the checked document, then handed on.

`TestConfig.setup` has everything below; no code behind the loader looks into tables, fills in defaults or finds a part's name again. The
text form, `TestConfig.document`, is what logs keep and what another configuration is made from.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hil_server import registry
from hil_server.config import crafts, physics, tables, toml_text
from hil_server.config.checks import check_part, part_table
from hil_server.config.files import SHIPPED
from hil_server.config.modal_data import modal_craft, rigid_of
from hil_server.errors import ConfigurationError
from hil_server.requirements.angles import yaw_pitch_roll
from hil_server.values import Document, Given, Keys, Value
from rt_kernels.compensation.effective_mass import rotation
from rt_kernels.context import Limits, Mounting, Orbit, Vehicle, Vehicles
from rt_kernels.model.craft import DOCKING
from rt_kernels.stages import STAGE_ROLES
from rt_kernels.stewart.platform import Platform

PARK_STEPS = 20  # Newton steps from the neutral pose to the parked one
DEVICES = ("mechanism_signals", "wrench_sensor", "drives")  # tables of a stand file, in the order in which they are opened and read


def moment_unresolved(document: Given, period_s: float) -> str:
    """Why the largest moment of an impact is not to be trusted with this tick, as the docking unit's file says; "" where it is.
    document: configuration of a test as tables."""
    unit = document.get("mechanism", {})
    needed = unit.get("moment_step_max_s")
    if needed is None or period_s <= needed * (1.0 + 1e-9):
        return ""
    name = unit.get("name", "the docking unit")
    return (f"largest moment of an impact not resolved at {1.0 / period_s:g} Hz: {name} needs {1.0 / needed:g} Hz for it "
            "(mechanism.moment_step_max_s)")  # fmt: skip


class Part(NamedTuple):
    """A part that a table names, with its own keys as given."""

    role: str
    name: str
    keys: Keys

    @property
    def values(self) -> Document:
        """Its keys, checked and with defaults filled in. Raises ConfigurationError."""
        return check_part(*self)


def part(role: str, table: Mapping[str, Value], shared: Sequence[str] = ()) -> Part:
    """The part of a table. shared: keys of the table that are not the part's."""
    return Part(role, str(table["part"]), {key: value for key, value in table.items() if key != "part" and key not in shared})


@dataclass(frozen=True)
class Test:
    """Table [test]. stand: its file, as the test names it."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    name: str
    rate_hz: float
    duration_max_s: float
    stand: str
    notes: str = ""

    @property
    def period_ns(self) -> int:
        """Period of the loop, ns."""
        return round(1e9 / self.rate_hz)


@dataclass(frozen=True)
class InitialConditions:
    """Table [initial_conditions]: lateral_m along Y and Z of the target port; angles_deg: yaw, pitch, roll; velocity_m_s, rate_deg_s: of
    the approaching vehicle ("active", "target") against the other; orbital_rate_rad_s (3,) in the axes of the one that stands. between:
    "ports" or "bodies", whose axes the angles, velocities and rates are in."""

    approaching_vehicle: str
    lateral_m: tuple[float, float]
    angles_deg: tuple[float, float, float]
    velocity_m_s: tuple[float, float, float]
    rate_deg_s: tuple[float, float, float]
    orbital_rate_rad_s: tuple[float, float, float]
    first_contact_penetration_m: float
    between: str = "ports"


@dataclass(frozen=True)
class Telemetry:
    """What the server itself reads of [telemetry]; addresses are "" where there is none."""

    addresses: Mapping[str, str]  # by their keys: publish, command, hand_controller, plotjuggler
    on_record_lost: str
    log_every: int
    checkpoint_every_s: float


class DriveModel(NamedTuple):
    """A drive of second order with delay; frequency_hz 0: an ideal one. origin: where the figures are from."""

    frequency_hz: float
    damping: float
    delay_s: float
    origin: str


class Machine(NamedTuple):
    """Parameters of the machine that moves the platform, and where they are from."""

    keys: Document
    origin: str


def docking_port(document: Given, side: str) -> str:
    """Name of the port by which the craft of a side (active, target) docks."""
    dynamics = document.get("dynamics")
    return str(dynamics.get(f"{side}_port", DOCKING)) if isinstance(dynamics, Mapping) else DOCKING


def vehicle(table: Given, port: str = DOCKING, along_port: bool = True) -> Vehicle:
    """What parts may know of a vehicle by its table; its modes at the port are made when a part asks. along_port: its thrust acts along
    X of the port, not of its own axes."""
    if "body" in table:
        mass_kg, inertia_kg_m2, X_port = crafts.mass_properties(table, port)
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
        port=port,
        docking_axis=tuple(rotation(np.asarray(X_port)[3:])[:, 0].tolist()) if along_port else (1.0, 0.0, 0.0),
    )


@dataclass(frozen=True)
class Stand:
    """A stand by its table, checked, or a part of one."""

    table: Given

    @property
    def name(self) -> str:
        """As reports show it."""
        return str(self.table["name"])

    @property
    def hardware(self) -> bool:
        """Whether it has drives: a machine that moves."""
        return "drives" in self.table

    @property
    def checksum(self) -> str:
        """Of its signed tables."""
        return str(self.table["safety_record"]["checksum"])

    @cached_property
    def platform(self) -> Platform:
        """Raises ConfigurationError."""
        try:
            found: Platform = Platform.from_dict(self.table["platform"])
        except ValueError as error:
            raise ConfigurationError(f"stand.platform: {error}") from error
        return found

    @cached_property
    def parked_table(self) -> Document:
        """Table [platform] of the stand in software, which starts in its neutral pose: that is where the stand is parked
        (`limits.start_leg_m`). Raises ConfigurationError for legs that are those of no pose."""
        legs = self.limits.start_leg_m
        if legs is None:
            return dict(self.table["platform"])
        try:
            X_WP = self.platform.forward(np.array(legs), steps=PARK_STEPS)
        except ValueError as error:
            raise ConfigurationError(f"stand.limits.start_leg_m: {list(legs)} m are the legs of no pose: {error}") from error
        angles = dict(zip(("yaw", "pitch", "roll"), np.degrees(yaw_pitch_roll(X_WP[None])[0]).tolist(), strict=True))
        turned = {f"neutral_{name}_deg": angle for name, angle in angles.items()}
        return {**self.table["platform"], "neutral_position_m": X_WP[:3].tolist(), **turned}

    @cached_property
    def parked(self) -> Platform:
        """The platform of `parked_table`."""
        found: Platform = Platform.from_dict(self.parked_table)
        return found

    @cached_property
    def mounting(self) -> Mounting:
        """Where the ports sit on platform and load cell."""
        table = self.table["mounting"]
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

    @cached_property
    def limits(self) -> Limits:
        """What the run may not exceed."""
        names = Limits.__dataclass_fields__
        return Limits(**{key: value for key, value in self.table["limits"].items() if key in names})

    @cached_property
    def devices(self) -> Mapping[str, Part]:
        """The device ports by their tables, in the order in which they are opened and read."""
        return devices_of(self.table)

    @cached_property
    def virtual(self) -> Part | None:
        """The stand in software."""
        return part("simulated", self.table["virtual"]) if self.table.get("virtual") is not None else None

    @cached_property
    def virtual_keys(self) -> Document:
        """Of the stand in software, defaults filled in; {} without one."""
        return self.virtual.values if self.virtual is not None else {}

    def noiseless(self, in_process: bool = False) -> bool:
        """Whether the force sensor is one in software without noise, in the process or behind a wire of its own. in_process: the stand is
        played in software, whatever devices it has."""
        if self.virtual is None or (self.hardware and not in_process):
            return False
        return not self.virtual_keys.get("force_noise_n") and not self.virtual_keys.get("moment_noise_n_m")

    @cached_property
    def drive(self) -> DriveModel:
        """What is known of the drives: identified ones first, else those of the virtual stand. Raises ConfigurationError when nothing
        is."""
        if known := self.table.get("drive_model"):
            return DriveModel(known["frequency_hz"], known["damping"], known["delay_s"], _identified(known))
        if self.virtual is None:
            raise ConfigurationError("stand: neither [drive_model] nor [virtual]: run hil-server identify on this stand first")
        keys = self.virtual_keys
        if "drive_frequency_hz" not in keys:
            return DriveModel(0.0, 1.0, 0.0, "derived")
        return DriveModel(keys["drive_frequency_hz"], keys["drive_damping"], keys["drive_delay_s"], "configured")

    @cached_property
    def machine(self) -> Machine | None:
        """The machine that moves the platform: identified ones first, else that of the virtual stand. None for a stand whose drives are
        all that is known."""
        name = registry.HYDRAULIC_STAND
        known, origin = self.table.get("stand_model"), "configured"
        if known:
            origin = _identified(known)
        elif self.table.get("drive_model") or self.virtual is None or self.virtual.name != name:
            return None
        else:
            known = self.virtual.keys
        declared = part_table("simulated", name).parameters
        keys = check_part("simulated", name, {k: v for k, v in known.items() if k in declared})
        # the response is that of hydraulic legs: of electric ones the ledger knows what [drive_model] says
        return Machine(keys, origin) if keys["actuator"] == "hydraulic" else None

    @cached_property
    def played_sensor(self) -> Document:
        """The virtual stand's force sensor (settings of drivers.simulated.stand_server): the one of [wrench_sensor], without that table one
        on RDT. Raises ConfigurationError for a part that it has no sensor for."""
        sensor = self.devices.get("wrench_sensor")
        if sensor is None:
            return {"rate_hz": 4000.0}
        known = registry.parts("emulated_sensors")
        if sensor.name not in known:
            limit = f"one of {', '.join(known)}"
            raise ConfigurationError(f"stand.wrench_sensor.part: the virtual stand has no sensor for {sensor.name!r}, limit {limit}")
        family = sensor.values.get("variant")
        if family not in getattr(registry.part("emulated_sensors", sensor.name), "VARIANTS", ()):
            return {"variant": known[sensor.name]}
        return {"variant": family, "rate_hz": 500.0 if family == "onrobot" else 4000.0}

    @cached_property
    def unknown_delays(self) -> tuple[str, ...]:
        """Of its devices, as `unknown_delays`."""
        return unknown_delays(self.devices)


def _identified(known: Given) -> str:
    return f"identified {known['date']}" if known.get("date") else "configured"


def devices_of(stand: Mapping[str, Given]) -> dict[str, Part]:
    """The devices among these tables of a stand file, in the order in which they are opened and read."""
    return {name: part(tables.DEVICES[name], stand[name]) for name in DEVICES if name in stand}


SETTINGS_OF_FILTER = ("sinc_length", "chop", "fast", "fir", "filter_index")


def own_delay(device: Part) -> float | None:
    """Delay of a device's own filter, s: as its table gives it, else as its part derives it from its settings; None where neither says
    it."""
    given = device.keys.get("filter_delay_s")
    derived = getattr(registry.part(device.role, device.name), "own_delay_s", None)
    return float(given) if isinstance(given, int | float) else derived(device.keys) if derived is not None else None


def unknown_delays(devices: Mapping[str, Part]) -> tuple[str, ...]:
    """Keys of these devices that say how late they are by what was set in them, that the stand file does not give, and that do not follow
    from their settings: one line each, with what it does say of the filter. devices: by their tables."""
    found = []
    for name, device in devices.items():
        if "filter_delay_s" not in part_table(device.role, device.name).parameters or own_delay(device) is not None:
            continue
        given = "".join(f", {key} = {device.keys[key]}" for key in SETTINGS_OF_FILTER if key in device.keys)
        found.append(f"{name}.filter_delay_s (of {device.name}{given}: from its data sheet, or as measured)")
    return tuple(found)


@dataclass(frozen=True)
class Setup:
    """A test by its document, checked."""

    document: Document

    @cached_property
    def test(self) -> Test:
        """Table [test]."""
        return Test(**{name: self.document["test"][name] for name in ("name", "rate_hz", "duration_max_s", "stand", "notes")})

    @cached_property
    def initial_conditions(self) -> InitialConditions:
        """Table [initial_conditions]."""
        given = self.document["initial_conditions"]
        return InitialConditions(
            given["approaching_vehicle"],
            (given["lateral_y_m"], given["lateral_z_m"]),
            (given["yaw_deg"], given["pitch_deg"], given["roll_deg"]),
            (given["velocity_x_m_s"], given["velocity_y_m_s"], given["velocity_z_m_s"]),
            (given["rate_x_deg_s"], given["rate_y_deg_s"], given["rate_z_deg_s"]),
            given["orbital_rate_rad_s"],
            given["first_contact_penetration_m"],
            given["between"],
        )

    @property
    def criticality(self) -> tuple[float, float]:
        """R1 and R2 of the initial conditions."""
        return physics.criticality(self.document["initial_conditions"])

    @cached_property
    def telemetry(self) -> Telemetry:
        """Table [telemetry]."""
        given = self.document["telemetry"]
        addresses = {key: given.get(key) or "" for key in ("publish", "command", "hand_controller", "plotjuggler")}
        return Telemetry(addresses, given["on_record_lost"], given["log_every"], given["checkpoint_every_s"])

    @cached_property
    def stand(self) -> Stand:
        """The stand."""
        return Stand(self.document["stand"])

    @cached_property
    def vehicles(self) -> Vehicles:
        """The two vehicles."""
        ports = self.initial_conditions.between == "ports"
        return Vehicles(*(vehicle(self.document[f"{side}_vehicle"], docking_port(self.document, side), ports)
                          for side in ("active", "target")))  # fmt: skip

    @cached_property
    def orbit(self) -> Orbit | None:
        """The reference orbit; None without one."""
        table = self.document.get("orbit")
        return None if table is None else Orbit(*physics.orbital_state(table), table["gravitational_parameter_m3_per_s2"])

    @cached_property
    def orbital_rate_rad_s(self) -> Sequence[float] | np.ndarray:
        """(3,) at which the target turns before the loop closes: of the orbit, where there is one."""
        table = self.document.get("orbit")
        if table is None:
            return self.initial_conditions.orbital_rate_rad_s
        return physics.orbital_rate(table) if table["target_attitude"] == "orbital" else (0.0, 0.0, 0.0)

    @cached_property
    def mechanism(self) -> Part:
        """The docking units."""
        return part("mechanisms", self.document["mechanism"], tables.MECHANISM_KEYS)

    @cached_property
    def commands(self) -> Part:
        """Who commands."""
        return part("commands", self.document["commands"])

    @cached_property
    def stages(self) -> Mapping[str, Part]:
        """The stages by their roles."""
        return {role: part(role, self.document[role]) for role in STAGE_ROLES}

    @property
    def synthetic(self) -> str:
        """Which of stand, vehicles and docking units are invented, in words; "" where none is."""
        marks = {name: self.document[name] for name in ("stand", "active_vehicle", "target_vehicle", "mechanism")}
        return ", ".join(f"{name} {table['name']}" for name, table in marks.items() if table.get("synthetic"))


@dataclass(frozen=True)
class TestConfig:
    """A checked configuration. document: the whole of it as plain tables; sources: file → its text; paths: table → file it came from;
    overrides: the `--set` items as given; chosen: parts that no file names, each with the reason; of_log: it was read out of a log, which
    may be somebody else's: it names no code that runs here."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    document: Document
    sources: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    of_log: bool = False

    def __getattr__(self, name: str) -> Document:
        """`config.stand` is the table `stand`: every top-level table is an attribute."""
        try:
            found: Document = self.__dict__["document"][name]
            return found
        except KeyError:
            raise AttributeError(f"configuration has no table {name!r}") from None

    @cached_property
    def setup(self) -> Setup:
        """What the document says, as the line and the run read it."""
        return Setup(self.document)

    def part(self, role: str) -> tuple[str, Document]:
        """Name of the part chosen for a stage role, and the part's own keys as given."""
        table = dict(self.document[role])
        return table.pop("part"), table

    def as_toml(self) -> str:
        """The whole document as one TOML text, overrides included; `test_from_toml` reads it back."""
        return toml_text.dumps(self.document)

    @property
    def hash(self) -> str:
        """16 hexadecimal digits over `as_toml()`: equal for equal configurations, wherever their files lie."""
        return hashlib.sha256(self.as_toml().encode()).hexdigest()[:16]
