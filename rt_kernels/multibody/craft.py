"""Links of a flexible tree, and craft with flexible parts from TOML files.

A craft file has `[craft]` (gravity_m_per_s2, rates) and one `[[body]]` per body with its joint and exactly one of

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

import difflib
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.multibody.beam_elements import Frame, Section, square_truss, straight_beam
from rt_kernels.multibody.modes import ModalBody, Port, clamped_modes, craig_bampton_modes, free_free_modes

JOINTS = ("fixed", "revolute", "prismatic", "spherical", "free")


@dataclass(frozen=True)
class Link:
    """A body and the joint that carries it.

    parent, port   body and port it hangs on; parent None: the inertial base, port None: the parent's frame
    joint          fixed | revolute | prismatic | spherical | free
    axis           (3,) of a revolute or prismatic joint, body axes
    position, rotation  joint frame in the port frame at zero joint coordinate
    armature       kg m^2 or kg, added to the joint's own inertia; stiffness N m/rad or N/m and damping N m s/rad or N s/m of a one-degree
                   joint (torque -k q - d v)
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

    def __post_init__(self) -> None:
        where = f"link {self.name!r}"
        if self.joint not in JOINTS:
            raise ValueError(f"{where}: joint {self.joint!r} is not one of {', '.join(JOINTS)}")
        if self.parent is None and self.port is not None:
            raise ValueError(f"{where}: port {self.port!r} given, but the base has no ports")
        for name in ("axis", "position"):
            value = np.array(getattr(self, name), dtype=float)
            if value.shape != (3,) or not np.all(np.isfinite(value)):
                raise ValueError(f"{where}: {name} must be three finite numbers, got {getattr(self, name)!r}")
            object.__setattr__(self, name, value)
        length = np.linalg.norm(self.axis)
        if self.joint in ("revolute", "prismatic") and not length > 1e-9:
            raise ValueError(f"{where}: axis has no length")
        object.__setattr__(self, "axis", self.axis / length if length > 0.0 else self.axis)
        R = np.array(self.rotation, dtype=float)
        if R.shape != (3, 3) or not np.abs(R @ R.T - np.eye(3)).max() < 1e-9 or np.linalg.det(R) < 0.0:
            raise ValueError(f"{where}: rotation is not a rotation matrix")
        object.__setattr__(self, "rotation", R)
        for name in ("armature", "stiffness", "damping"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{where}: {name} = {value} is not a finite number >= 0")
            if value and (self.joint not in ("revolute", "prismatic")):
                raise ValueError(f"{where}: {name} belongs to a revolute or prismatic joint, this one is {self.joint}")


# --- craft files ------------------------------------------------------------------------------------------------------------------------


_LARGEST = 1e15


def _number(low: float, high: float = _LARGEST) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise ValueError(f"{value!r} is not a number")
        if not low <= value <= high:
            raise ValueError(f"{value} is not from {low:g} to {high:g}")
        return float(value)

    return check


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{value!r} is not a whole number from {low} to {high}")
        return value

    return check


def _numbers(*shapes: tuple[int, ...]) -> Callable[[Any], np.ndarray]:
    def check(value: Any) -> np.ndarray:
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{value!r} is not an array of numbers") from None
        if array.shape not in shapes or not np.all(np.abs(array) <= _LARGEST):
            raise ValueError(f"numbers of shape {' or '.join(map(str, shapes))}, at most {_LARGEST:g}, expected, got {value!r}")
        return array

    return check


def _text(*allowed: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise ValueError(f"{value!r} is not " + (f"one of {', '.join(allowed)}" if allowed else "a text"))
        return value

    return check


def _powers(value: Any) -> list[int]:
    if not isinstance(value, list) or not all(isinstance(n, int) and not isinstance(n, bool) and 2 <= n <= 9 for n in value):
        raise ValueError(f"{value!r} is not a list of whole numbers from 2 to 9")
    if len(set(value)) != len(value):
        raise ValueError(f"{value!r} has a power twice")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def _table(value: Any) -> dict:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a table")
    return value


_REQUIRED = object()
_POSITIVE, _NOT_NEGATIVE, _VECTOR = _number(1e-9), _number(0.0), _numbers((3,))
_SPECTRUM = {
    "mode_set": (_text("clamped", "free_free", "mass_loaded"), "clamped"),
    "modes": (_integer(0, 60), _REQUIRED),
    "damping_ratio": (_number(0.0, 0.999), 0.0),
}

# table -> key -> (check, default)
KEYS: dict[str, dict[str, tuple[Callable[[Any], Any], Any]]] = {
    "craft": {"name": (_text(), ""), "gravity_m_per_s2": (_VECTOR, [0.0, 0.0, 0.0]), "rates": (_text("exact", "first_order"), "exact")},
    "body": {
        "name": (_text(), _REQUIRED), "parent": (_text(), None), "port": (_text(), None), "joint": (_text(*JOINTS), "fixed"),
        "axis": (_VECTOR, [0.0, 0.0, 1.0]), "position_m": (_VECTOR, [0.0, 0.0, 0.0]),
        "quaternion_xyzw": (_numbers((4,)), [0.0, 0.0, 0.0, 1.0]),
        "armature": (_NOT_NEGATIVE, 0.0), "joint_stiffness": (_NOT_NEGATIVE, 0.0), "joint_damping": (_NOT_NEGATIVE, 0.0),
        "rigid": (_table, None), "beam": (_table, None), "truss": (_table, None), "assumed": (_table, None), "modal_file": (_table, None),
    },
    "rigid": {"mass_kg": (_NOT_NEGATIVE, _REQUIRED), "centre_m": (_VECTOR, [0.0, 0.0, 0.0]),
              "inertia_kg_m2": (_numbers((3,), (3, 3)), [0.0, 0.0, 0.0]), "ports": (_table, {})},
    "beam": {
        "length_m": (_POSITIVE, _REQUIRED), "elements": (_integer(1, 400), 20), "mass_per_length_kg_per_m": (_POSITIVE, _REQUIRED),
        "axial_stiffness_n": (_POSITIVE, _REQUIRED), "bending_stiffness_y_n_m2": (_POSITIVE, _REQUIRED),
        "bending_stiffness_z_n_m2": (_POSITIVE, _REQUIRED), "torsion_stiffness_n_m2": (_POSITIVE, _REQUIRED),
        "shear_stiffness_y_n": (_NOT_NEGATIVE, 0.0), "shear_stiffness_z_n": (_NOT_NEGATIVE, 0.0),
        "gyration_y_m": (_POSITIVE, _REQUIRED), "gyration_z_m": (_POSITIVE, _REQUIRED), "stiffening": (_flag, False), **_SPECTRUM,
    },
    "truss": {
        "bays": (_integer(1, 200), _REQUIRED), "side_m": (_POSITIVE, _REQUIRED), "mass_kg": (_POSITIVE, _REQUIRED),
        "youngs_modulus_pa": (_POSITIVE, _REQUIRED), "shear_modulus_pa": (_POSITIVE, _REQUIRED), "member_area_m2": (_POSITIVE, _REQUIRED),
        "member_bending_m4": (_POSITIVE, _REQUIRED), "member_torsion_m4": (_POSITIVE, _REQUIRED), **_SPECTRUM,
    },
    "assumed": {
        "length_m": (_POSITIVE, _REQUIRED), "mass_kg": (_POSITIVE, _REQUIRED), "nodes": (_integer(3, 200), 5),
        "bending_stiffness_n_m2": (_POSITIVE, _REQUIRED), "powers_y": (_powers, [2, 3]), "powers_z": (_powers, [2]),
        "damping_ratio": (_number(0.0, 0.999), 0.0),
    },
    "modal_file": {"file": (_text(), _REQUIRED), "inboard_port": (_text(), None)},
}
_SHAPES = ("rigid", "beam", "truss", "assumed", "modal_file")


def _read(table: dict, kind: str, where: str) -> dict[str, Any]:
    """The checked table: unknown keys and wrong values are named with their path."""
    keys = KEYS[kind]
    for key in table:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            raise ValueError(f"{where}: unknown key {key!r}" + (f", did you mean {near[0]!r}?" if near else ""))
    out = {}
    for key, (check, default) in keys.items():
        if key not in table:
            if default is _REQUIRED:
                raise ValueError(f"{where}: key {key!r} is missing")
            out[key] = np.array(default) if isinstance(default, list) and default and isinstance(default[0], float) else default
            continue
        try:
            out[key] = check(table[key])
        except ValueError as error:
            raise ValueError(f"{where}: {key} = {error}") from None
    return out


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
        if not isinstance(port, dict) or set(port) - {"position_m", "quaternion_xyzw"} or "position_m" not in port:
            raise ValueError(f"rigid: ports.{name}: position_m and, if turned, quaternion_xyzw expected")
        with _named(f"rigid: ports.{name}"):
            ports[name] = (_VECTOR(port["position_m"]), _rotation(_numbers((4,))(port.get("quaternion_xyzw", [0, 0, 0, 1]))))
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

    Source of the form: paper on hybrid recursive dynamics of flexible chains, example of six links.
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


def load_craft(path):
    """`FlexibleTree` of a craft file. Raises ValueError with file, body, key, value and limit."""
    from rt_kernels.multibody.flexible import FlexibleTree

    path = Path(path)
    with open(path, "rb") as file:
        try:
            document = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: {error}") from None
    unknown = set(document) - {"craft", "body"}
    if unknown:
        raise ValueError(f"{path}: unknown key {', '.join(sorted(unknown))}")
    craft = _read(_table(document.get("craft", {})), "craft", f"{path}: craft")
    if not isinstance(document.get("body"), list) or not all(isinstance(table, dict) for table in document["body"]):
        raise ValueError(f"{path}: at least one [[body]] is needed")
    tables = []
    for number, table in enumerate(document["body"]):
        where = f"{path}: body {table.get('name', number)!r}"
        d = _read(table, "body", where)
        kinds = [kind for kind in _SHAPES if d[kind] is not None]
        if len(kinds) != 1:
            raise ValueError(f"{where}: exactly one of {', '.join(_SHAPES)} is needed, {', '.join(kinds) or 'none'} given")
        tables.append((where, d, kinds[0], _read(d[kinds[0]], kinds[0], f"{where}: {kinds[0]}")))
    bodies: dict[str, ModalBody] = {}
    # rigid bodies first: mass-loaded modes need them
    for where, d, kind, shape in sorted(tables, key=lambda table: table[2] in ("beam", "truss")):
        with _named(where):
            bodies[d["name"]] = _body(d, kind, shape, path, tables, bodies, f"{where}: {kind}")
    links = []
    for where, d, _, _ in tables:
        with _named(where):
            links.append(Link(d["name"], bodies[d["name"]], d["parent"], d["port"], d["joint"], d["axis"], d["position_m"],
                              _rotation(d["quaternion_xyzw"]), d["armature"], d["joint_stiffness"], d["joint_damping"]))
    with _named(str(path)):
        return FlexibleTree(links, craft["gravity_m_per_s2"], craft["rates"])


@contextmanager
def _named(where: str) -> Iterator[None]:
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
