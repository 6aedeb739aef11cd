"""Links of a flexible tree, and craft with flexible parts from TOML files.

A craft file has `[craft]` (gravity_m_s2, rates) and one `[[body]]` per body with its joint and exactly one of

    [body.rigid]        mass, centre, inertia
    [body.beam]         uniform beam along x, finite elements; ports root, tip
    [body.truss]        square truss along x, finite elements; ports root, tip
    [body.assumed]      beam with power shapes xi^n clamped at its root; port tip
    [body.modal_file]   `.npz` or `.toml` of `ModalBody.load`

The keys with units, defaults and ranges are the tables `KEYS` below. Modes of beams and trusses: clamped (at the root), free_free, or
mass_loaded (Craig-Bampton with the rigid bodies that are fixed to the ports). A body that hangs on a parent has its frame at its
inboard port: the joint coordinate is between the parent's port and that place.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.model.beam_elements import Frame, Section, square_truss, straight_beam
from rt_kernels.model.modes import ModalBody, Port, clamped_modes, craig_bampton_modes, free_free_modes
from rt_kernels.parameters import REQUIRED, Parameter, checked, shown

JOINTS = ("fixed", "revolute", "continuous", "prismatic", "screw", "universal", "spherical", "planar", "free")
ONE_DEGREE = ("revolute", "continuous", "prismatic", "screw")
MODES = ("locked", "free", "given", "driven")


@dataclass(frozen=True)
class Link:
    """A body and the joint that carries it.

    parent, port   body and port it hangs on; parent None: the inertial base, port None: the parent's frame
    joint          one of `JOINTS`
    axis           (3,) of a revolute, continuous, prismatic or screw joint, body axes; of a universal joint the first, fixed in the
                   parent; axis2 (3,) its second, fixed in the body; pitch m/rad: advance of a screw
    position, rotation  joint frame in the port frame at zero joint coordinate
    armature       kg.m2 or kg, added to the joint's own inertia; stiffness N.m/rad or N/m and damping N.m.s/rad or N.s/m of a one-degree
                   joint (torque -k q - d v); joint_name: left away, the body's name
    """

    name: str
    body: ModalBody
    parent: str | None = None
    port: str | None = None
    joint: str = "fixed"
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    armature: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0
    joint_name: str = ""
    axis2: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    pitch: float = 0.0

    def __post_init__(self) -> None:
        where = f"link {self.name!r}"
        object.__setattr__(self, "joint_name", self.joint_name or self.name)
        if self.joint not in JOINTS:
            raise ValueError(f"{where}: joint {self.joint!r} is not one of {', '.join(JOINTS)}")
        if self.parent is None and self.port is not None:
            raise ValueError(f"{where}: port {self.port!r} given, but the base has no ports")
        for name in ("axis", "axis2", "position"):
            value = np.array(getattr(self, name), dtype=float)
            if value.shape != (3,) or not np.all(np.isfinite(value)):
                raise ValueError(f"{where}: {name} must be three finite numbers, got {getattr(self, name)!r}")
            object.__setattr__(self, name, value)
        for name, joints in (("axis", (*ONE_DEGREE, "universal")), ("axis2", ("universal",))):
            length = np.linalg.norm(getattr(self, name))
            if self.joint in joints and not length > 1e-9:
                raise ValueError(f"{where}: {name} has no length")
            object.__setattr__(self, name, getattr(self, name) / length if length > 0.0 else getattr(self, name))
        if self.joint == "universal" and np.linalg.norm(np.cross(self.axis, self.axis2)) < 1e-9:
            raise ValueError(f"{where}: axis and axis2 are parallel")
        if not np.isfinite(self.pitch):
            raise ValueError(f"{where}: pitch = {self.pitch} m/rad is not a finite number")
        R = np.array(self.rotation, dtype=float)
        if R.shape != (3, 3) or not np.abs(R @ R.T - np.eye(3)).max() < 1e-9 or np.linalg.det(R) < 0.0:
            raise ValueError(f"{where}: rotation is not a rotation matrix")
        object.__setattr__(self, "rotation", R)
        for name in ("armature", "stiffness", "damping"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{where}: {name} = {value} is not a finite number >= 0")
            if value and self.joint not in ONE_DEGREE:
                raise ValueError(f"{where}: {name} belongs to a joint of one degree of freedom ({', '.join(ONE_DEGREE)}), this one is "
                                 f"{self.joint}")


@dataclass(frozen=True)
class CraftPort:
    """A named frame of a craft: where another one docks, where an arm grapples.

    body: what carries it. node: port of that body's `ModalBody` (root, tip, ...), None: the body's frame. position (3,) m and rotation
    (3, 3): the port there, undeformed; X looks out of a docking unit.
    """

    name: str
    body: str
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    node: str | None = None


@dataclass(frozen=True)
class JointSettings:
    """How a joint of one degree of freedom is held and driven; SI: rad or m, N.m or N, per rad or m and per second.

    mode                 locked | free | given | driven, at the start of a run (`MODES`)
    angle                rest of the spring; where a locked or driven joint stands and a given one begins
    stiffness, damping   spring and damper of the joint itself, in every mode but locked and given
    friction             Coulomb friction; armature: added to the joint's own inertia (rotor times gear ratio squared)
    lower, upper         stops; effort, rate: most that the drive gives
    servo_stiffness, servo_damping   gains of a driven joint towards its wanted angle and rate; both 0: torque command
    """

    joint: str
    mode: str = "free"
    angle: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    effort: float = math.inf
    rate: float = math.inf
    servo_stiffness: float = 0.0
    servo_damping: float = 0.0


@dataclass(frozen=True)
class Thruster:
    """A thruster: force `thrust_n` along `direction` (unit (3,)) on the craft at `position` (3,) m, both in the axes of the body, or of its
    node. minimum_pulse_s: shortest opening; delay_s: from command to the first thrust; rise_s: time constant of the thrust."""

    name: str
    body: str
    position: np.ndarray
    direction: np.ndarray
    thrust_n: float
    minimum_pulse_s: float = 0.0
    delay_s: float = 0.0
    rise_s: float = 0.0
    node: str | None = None


@dataclass(frozen=True)
class Wheel:
    """A reaction wheel: a body on a continuous or revolute joint, its motor and the momentum that it may store about its axis."""

    name: str
    joint: str
    torque_n_m: float
    momentum_n_m_s: float


@dataclass(frozen=True)
class Sensor:
    """A point whose motion is recorded, body (or node) axes. kind: acceleration | rate."""

    name: str
    kind: str
    body: str
    position: np.ndarray
    node: str | None = None


@dataclass(frozen=True)
class Interface:
    """Where loads between bodies are wanted: through the joint that carries `body`."""

    name: str
    body: str


@dataclass(frozen=True)
class Craft:
    """Any craft: bodies with their joints, and what is on them. A rigid vehicle is a craft of one body on a free joint.

    links: parents need not come first; joints: settings of every joint that moves, in the order of the links (the root's free joint left
    out); rates: terms of the deformation in the rates, exact | first_order; gravity (3,) m/s2 on the inertial axes.
    """

    name: str
    links: tuple[Link, ...]
    ports: tuple[CraftPort, ...] = ()
    joints: tuple[JointSettings, ...] = ()
    thrusters: tuple[Thruster, ...] = ()
    wheels: tuple[Wheel, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    rates: str = "exact"
    gravity: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def port(self, name: str) -> CraftPort:
        """The named port. Raises ValueError."""
        for port in self.ports:
            if port.name == name:
                return port
        raise ValueError(f"{self.name}: no port {name!r}; there are {', '.join(p.name for p in self.ports) or 'none'}")

    def settings(self, joint: str) -> JointSettings:
        """Settings of the named joint. Raises ValueError."""
        for settings in self.joints:
            if settings.joint == joint:
                return settings
        raise ValueError(f"{self.name}: no moving joint {joint!r}; there are {', '.join(s.joint for s in self.joints) or 'none'}")


# --- craft files ------------------------------------------------------------------------------------------------------------------------


_LARGEST = 1e15


def _above(key: str, unit: str, meaning: str, **more: Any) -> Parameter:
    """A number above zero."""
    return Parameter(key, "float", unit, meaning, low=1e-9, high=_LARGEST, **more)


def _not_below(key: str, unit: str, meaning: str, **more: Any) -> Parameter:
    """A number that may be zero."""
    return Parameter(key, "float", unit, meaning, low=0.0, high=_LARGEST, **more)


def _vector(key: str, unit: str, meaning: str, default: Any = (0.0, 0.0, 0.0), shape: int = 3) -> Parameter:
    return Parameter(key, "floats", unit, meaning, default, -_LARGEST, _LARGEST, shape)


_DAMPING = Parameter("damping_ratio", "float", "-", "of every mode", 0.0, 0.0, 0.999)
_SPECTRUM = (
    Parameter("mode_set", "str", "-", "what holds the structure while its modes are found", "clamped",
              choices=("clamped", "free_free", "mass_loaded")),
    Parameter("modes", "int", "-", "number of modes", low=0, high=60),
    _DAMPING,
)  # fmt: skip
SHAPES = ("rigid", "beam", "truss", "assumed", "modal_file")

# table of a craft file -> its keys
KEYS: dict[str, tuple[Parameter, ...]] = {
    "craft": (
        Parameter("name", "str", "-", "name of the craft", ""),
        _vector("gravity_m_s2", "m/s2", "gravity in the inertial frame"),
        Parameter("rates", "str", "-", "terms of the deformation in the rates", "exact", choices=("exact", "first_order")),
    ),
    "body": (
        Parameter("name", "str", "-", "name of the body"),
        Parameter("parent", "str", "-", "body that carries it; left away: the inertial frame", None),
        Parameter("port", "str", "-", "port of the parent; left away: the parent's frame", None),
        Parameter("joint", "str", "-", "joint between the two", "fixed", choices=JOINTS),
        _vector("axis", "-", "of the joint, body axes", (0.0, 0.0, 1.0)),
        _vector("position_m", "m", "joint frame in the port frame"),
        _vector("quaternion_xyzw", "-", "its orientation there", (0.0, 0.0, 0.0, 1.0), 4),
        _not_below("armature", "kg.m2 or kg", "added to the joint's own inertia", default=0.0),
        _not_below("joint_stiffness", "N.m/rad or N/m", "of a joint of one degree", default=0.0),
        _not_below("joint_damping", "N.m.s/rad or N.s/m", "of a joint of one degree", default=0.0),
        *(Parameter(shape, "table", "-", "what the body is: exactly one of " + ", ".join(SHAPES), None) for shape in SHAPES),
    ),
    "rigid": (
        _not_below("mass_kg", "kg", "mass"),
        _vector("centre_m", "m", "centre of mass in the body's frame"),
        Parameter("inertia_kg_m2", "rows", "kg.m2", "about the centre of mass: rows, or the three principal moments", ((0.0,) * 3,) * 3,
                  -_LARGEST, _LARGEST, (3, 3)),
        Parameter("ports", "table", "-", "name = { position_m, quaternion_xyzw }", {}),
    ),
    "port": (
        _vector("position_m", "m", "port in the body's frame", REQUIRED),
        _vector("quaternion_xyzw", "-", "its orientation there", (0.0, 0.0, 0.0, 1.0), 4),
    ),
    "beam": (
        _above("length_m", "m", "length"),
        Parameter("elements", "int", "-", "finite elements", 20, 1, 400),
        _above("mass_per_length_kg_per_m", "kg/m", "mass per length"),
        _above("axial_stiffness_n", "N", "EA"),
        _above("bending_stiffness_y_n_m2", "N.m2", "EI about y"),
        _above("bending_stiffness_z_n_m2", "N.m2", "EI about z"),
        _above("torsion_stiffness_n_m2", "N.m2", "GJ"),
        _not_below("shear_stiffness_y_n", "N", "kGA along y; 0: stiff in shear", default=0.0),
        _not_below("shear_stiffness_z_n", "N", "kGA along z", default=0.0),
        _above("gyration_y_m", "m", "radius of gyration about y"),
        _above("gyration_z_m", "m", "radius of gyration about z"),
        Parameter("stiffening", "bool", "-", "by the axial load; needs mode_set = 'clamped'", False),
        *_SPECTRUM,
    ),
    "truss": (
        Parameter("bays", "int", "-", "number of bays", low=1, high=200),
        _above("side_m", "m", "side of the square and of a bay"),
        _above("mass_kg", "kg", "mass of the whole"),
        _above("youngs_modulus_pa", "Pa", "of the members"),
        _above("shear_modulus_pa", "Pa", "of the members"),
        _above("member_area_m2", "m2", "cross section of a member"),
        _above("member_bending_m4", "m4", "its second moment of area"),
        _above("member_torsion_m4", "m4", "its torsion constant"),
        *_SPECTRUM,
    ),
    "assumed": (
        _above("length_m", "m", "length"),
        _above("mass_kg", "kg", "mass"),
        Parameter("nodes", "int", "-", "points of mass along it", 5, 3, 200),
        _above("bending_stiffness_n_m2", "N.m2", "EI"),
        Parameter("powers_y", "ints", "-", "shapes (x / L)^n along y", (2, 3), 2, 9),
        Parameter("powers_z", "ints", "-", "along z", (2,), 2, 9),
        _DAMPING,
    ),
    "modal_file": (
        Parameter("file", "str", "-", "`.npz` or `.toml` of `ModalBody.load`, beside this file"),
        Parameter("inboard_port", "str", "-", "port by which it hangs; left away: its own frame", None),
    ),
}  # fmt: skip


def _read(table: dict, kind: str, where: str) -> dict[str, Any]:
    """The checked table, lists of numbers as arrays. Raises ValueError with the path of what is wrong."""
    principal = table.get("inertia_kg_m2") if kind == "rigid" else None
    if isinstance(principal, list) and len(principal) == 3 and not any(isinstance(x, list) for x in principal):
        table = table | {"inertia_kg_m2": [[x if i == j else 0.0 for j in range(3)] for i, x in enumerate(principal)]}
    out = checked(KEYS[kind], table, where)
    for p in KEYS[kind]:
        if p.kind in ("floats", "rows"):
            out[p.key] = np.array(out[p.key])
        if p.kind == "ints" and len(set(out[p.key])) != len(out[p.key]):
            raise ValueError(f"{where}.{p.key}: must be different powers, got {out[p.key]}")
    return out


def _table(value: Any, where: str) -> dict:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: must be a table, got {shown(value)}")
    return value


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    if abs(np.linalg.norm(quaternion) - 1.0) > 1e-6:
        raise ValueError(f"quaternion_xyzw {quaternion.tolist()} has norm {np.linalg.norm(quaternion):.6g}, 1 expected")
    x, y, z, w = quaternion / np.linalg.norm(quaternion)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def _rigid(d: dict) -> ModalBody:
    ports = {}
    for name, port in d["ports"].items():
        p = _read(_table(port, f"ports.{name}"), "port", f"ports.{name}")
        with named(f"ports.{name}"):
            ports[name] = (p["position_m"], _rotation(p["quaternion_xyzw"]))
    return ModalBody.rigid(d["mass_kg"], d["centre_m"], d["inertia_kg_m2"], ports)


def _structure(kind: str, d: dict) -> tuple[Frame, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(frame, interface coordinates of root and tip, their positions) of a beam or truss."""
    if kind == "beam":
        section = Section(1.0, 1.0, d["axial_stiffness_n"], d["bending_stiffness_y_n_m2"], d["bending_stiffness_z_n_m2"],
                          d["torsion_stiffness_n_m2"], d["mass_per_length_kg_per_m"] / d["axial_stiffness_n"],
                          d["shear_stiffness_y_n"], d["shear_stiffness_z_n"], d["gyration_y_m"], d["gyration_z_m"])
        start = -d["length_m"] / 2.0 if d["mode_set"] != "clamped" else 0.0
        frame = straight_beam(d["length_m"], section, d["elements"], start)
        root, tip = frame.node_dofs(0), frame.node_dofs(d["elements"])
        return frame, root, tip, frame.nodes[0], frame.nodes[-1]
    length = d["bays"] * d["side_m"]
    section = Section(d["youngs_modulus_pa"], d["shear_modulus_pa"], d["member_area_m2"], d["member_bending_m4"], d["member_bending_m4"],
                      d["member_torsion_m4"], 1.0)
    frame, first, last = square_truss(d["bays"], d["side_m"], section)
    frame.scale_mass(d["mass_kg"])
    ends = np.array([[-length / 2.0, 0.0, 0.0], [length / 2.0, 0.0, 0.0]])
    if d["mode_set"] == "free_free":
        return frame, first, last, ends[0], ends[1]          # ends stay flexible: ports are averages of the corners
    root_tie, tip_tie = frame.tie(first, ends[0]), frame.tie(last, ends[1])
    return frame, frame.interface(root_tie), frame.interface(tip_tie), ends[0], ends[1]


def _flexible(kind: str, d: dict, loads: dict[str, ModalBody], where: str) -> ModalBody:
    frame, root, tip, p_root, p_tip = _structure(kind, d)
    averaged = kind == "truss" and d["mode_set"] == "free_free"
    if d["mode_set"] == "clamped":
        _, X = clamped_modes(frame, d["modes"], root)
    elif d["mode_set"] == "free_free":
        _, X = free_free_modes(frame, d["modes"])
    else:
        carried = np.zeros((12, 12))
        for k, name in enumerate(("root", "tip")):
            if name in loads:
                carried[6 * k: 6 * k + 6, 6 * k: 6 * k + 6] = loads[name].mass_matrix()
        _, X = craig_bampton_modes(frame, d["modes"], np.concatenate([root, tip]), carried)
    if averaged:
        ports = {"root": frame.averaged_port(root, p_root, X), "tip": frame.averaged_port(tip, p_tip, X)}
    else:
        ports = {"root": frame.port(root, p_root, X), "tip": frame.port(tip, p_tip, X)}
    if d.get("stiffening") and d["mode_set"] != "clamped":
        raise ValueError(f"{where}: stiffening needs mode_set = 'clamped'")
    body = frame.modal_body(X, ports, stiffening=d.get("stiffening", False))
    if kind == "truss" and d["mode_set"] == "clamped":
        body = body.clamped_at("root")
    return body.with_damping_ratio(d["damping_ratio"]) if d["damping_ratio"] else body


def assumed_beam(length: float, mass: float, bending_stiffness: float, nodes: int = 5, powers_y=(2, 3), powers_z=(2,)) -> ModalBody:
    """Beam clamped at its root with shapes xi^n (xi = x / L) and its mass at equidistant nodes (half at the ends); port tip.

    Source of the form: Tian et al. 2010, example of six links.
    """
    xi = np.linspace(0.0, 1.0, nodes)
    weights = np.ones(nodes)
    weights[[0, -1]] = 0.5
    axes = [(1, n) for n in powers_y] + [(2, n) for n in powers_z]
    s = len(axes)
    shapes, K, phi, psi = np.zeros((nodes, 3, s)), np.zeros((s, s)), np.zeros((3, s)), np.zeros((3, s))
    for a, (axis, n) in enumerate(axes):
        shapes[:, axis, a] = xi**n
        phi[axis, a] = 1.0
        psi[3 - axis, a] = n / length if axis == 1 else -n / length
        for b, (other, k) in enumerate(axes):
            if other == axis:
                K[a, b] = bending_stiffness / length**3 * n * (n - 1) * k * (k - 1) / (n + k - 3)
    positions = np.column_stack([length * xi, np.zeros(nodes), np.zeros(nodes)])
    ports = {"tip": Port(np.array([length, 0.0, 0.0]), np.eye(3), phi, psi)}
    return ModalBody.from_points(mass * weights / weights.sum(), positions, shapes, K, ports)


def read_craft(path: str | Path) -> Craft:
    """The craft of a file. ValueError with file, body, key, value and limit."""
    path = Path(path)
    with open(path, "rb") as file:
        try:
            document = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: {error}") from None
    unknown = set(document) - {"craft", "body"}
    if unknown:
        raise ValueError(f"{path}: unknown key {', '.join(sorted(unknown))}")
    craft = _read(_table(document.get("craft", {}), f"{path}: craft"), "craft", f"{path}: craft")
    if not isinstance(document.get("body"), list) or not all(isinstance(table, dict) for table in document["body"]):
        raise ValueError(f"{path}: at least one [[body]] is needed")
    tables = []
    for number, table in enumerate(document["body"]):
        where = f"{path}: body {table.get('name', number)!r}"
        d = _read(table, "body", where)
        kinds = [kind for kind in SHAPES if d[kind] is not None]
        if len(kinds) != 1:
            raise ValueError(f"{where}: exactly one of {', '.join(SHAPES)} is needed, {', '.join(kinds) or 'none'} given")
        tables.append((where, d, kinds[0], _read(d[kinds[0]], kinds[0], f"{where}: {kinds[0]}")))
    bodies: dict[str, ModalBody] = {}
    # rigid bodies first: mass-loaded modes need them
    for where, d, kind, shape in sorted(tables, key=lambda table: table[2] in ("beam", "truss")):
        with named(where):
            bodies[d["name"]] = _body(d, kind, shape, path, tables, bodies, f"{where}: {kind}")
    links = []
    for where, d, _, _ in tables:
        with named(where):
            links.append(Link(d["name"], bodies[d["name"]], d["parent"], d["port"], d["joint"], d["axis"], d["position_m"],
                              _rotation(d["quaternion_xyzw"]), d["armature"], d["joint_stiffness"], d["joint_damping"]))
    joints = [JointSettings(link.joint_name, stiffness=link.stiffness, damping=link.damping, armature=link.armature)
              for link in links if link.joint not in ("fixed", "free")]
    return Craft(craft["name"], tuple(links), (), tuple(joints), rates=craft["rates"], gravity=craft["gravity_m_s2"])


@contextmanager
def named(where: str) -> Iterator[None]:
    """Whatever goes wrong inside with the numbers of a file is a ValueError that says where."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, RuntimeError, OSError) as error:
        raise ValueError(f"{where}: {error}") from None


def _body(d: dict, kind: str, shape: dict, path: Path, tables: list, bodies: dict[str, ModalBody], where: str) -> ModalBody:
    """Modal body of one table."""
    if kind == "rigid":
        return _rigid(shape)
    if kind == "modal_file":
        body = ModalBody.load(path.parent / shape["file"])
        return body.clamped_at(shape["inboard_port"]) if shape["inboard_port"] else body
    if kind == "assumed":
        body = assumed_beam(shape["length_m"], shape["mass_kg"], shape["bending_stiffness_n_m2"], shape["nodes"], shape["powers_y"],
                            shape["powers_z"])
        return body.with_damping_ratio(shape["damping_ratio"]) if shape["damping_ratio"] else body
    # what is fixed to the ports, for mass-loaded modes
    carried = {other["port"]: bodies[other["name"]] for _, other, other_kind, _ in tables
               if other["parent"] == d["name"] and other_kind == "rigid" and other["joint"] == "fixed"}
    body = _flexible(kind, shape, carried, where)
    return body.clamped_at("root") if d["parent"] is not None and shape["mode_set"] != "clamped" else body
