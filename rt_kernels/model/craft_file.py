"""Craft files: TOML of any craft, from a rigid vehicle to a jointed and flexible one with its actuators. Set-up only.

A file without [[body]] is one rigid body: mass_kg, inertia_kg_m2, port_position_m, port_angles_deg stand at its top, the body's frame is at
its centre of mass, its port is called `docking`. Else there is one [[body]] per body, with its joint and exactly one of

    [body.rigid]        mass, centre of mass, inertia; mass 0: a massless one, which must carry something or marks a place
    [body.beam]         uniform beam along x, finite elements; nodes root, tip, and its `stations`
    [body.truss]        square truss along x, finite elements; the same
    [body.assumed]      beam with power shapes xi^n clamped at its root; nodes tip, and its `stations`
    [body.modal_file]   `.npz` or `.toml` of `ModalBody.load`, with its own nodes

and [[port]], [[joint]], [[thruster]], [[wheel]], [[sensor]], [[interface]] for what is on the bodies and in the joints. The keys with
units, defaults and ranges are the tables below. Modes of beams and trusses: clamped (at the root), free_free, or mass_loaded
(Craig-Bampton with the rigid bodies that are fixed to the nodes). A body that hangs on a parent has its frame at its inboard node: the
joint coordinate is between the parent's node and that place.

Every pose is `position_m` with either `angles_deg` (yaw about Y, pitch about Z, roll about X, in this order) or `rotation_xyzw`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.extends import read_tables
from rt_kernels.model.beam_elements import Frame, Section, square_truss, straight_beam
from rt_kernels.model.bodies import Body, ModelError
from rt_kernels.model.craft import (
    BODIES_MAX,
    DOCKING,
    JOINTS,
    MODES,
    ONE_DEGREE,
    STEPS,
    Craft,
    CraftPort,
    Interface,
    JointSettings,
    Link,
    Sensor,
    Thruster,
    Wheel,
    chain,
    degrees,
    no_such,
)
from rt_kernels.model.modes import ModalBody, Port, clamped_modes, craig_bampton_modes, free_free_modes
from rt_kernels.model.solids import TRIANGLES_MAX, Solid, bar, box, cylinder, mesh, read_stl
from rt_kernels.parameters import REQUIRED, Parameter, checked, faults, must_be, unknown_key

_LARGEST = 1e15
# least and largest of what a body of a craft can be, in SI units: from a washer to a station, and any material
_LENGTH, _MASS, _STIFFNESS = (1e-4, 1e4), (1e-6, 1e9), (1e-3, 1e13)
NAME_MAX = 60  # characters of a name
STATIONS = 21  # most that are drawn of a beam


class CraftError(ModelError):
    """What is wrong with a craft file. faults: one line each, the path of the key before the words."""

    def __init__(self, faults: list[str], where: str = "") -> None:
        self.faults = list(dict.fromkeys(faults))
        super().__init__("; ".join(f"{where}: {fault}" if where else fault for fault in self.faults))


# --- what the tables hold ---------------------------------------------------------------------------------------------------------------


def _above(key: str, unit: str, meaning: str, within: tuple[float, float] = (1e-9, _LARGEST), **more: Any) -> Parameter:
    """A number above zero."""
    return Parameter(key, "float", unit, meaning, low=within[0], high=within[1], **more)


def _not_below(key: str, unit: str, meaning: str, **more: Any) -> Parameter:
    """A number that may be zero."""
    return Parameter(key, "float", unit, meaning, low=0.0, high=_LARGEST, **more)


def _vector(key: str, unit: str, meaning: str, default: Any = (0.0, 0.0, 0.0), shape: int = 3) -> Parameter:
    largest = _LENGTH[1] if unit == "m" else _LARGEST
    return Parameter(key, "floats", unit, meaning, default, -largest, largest, shape)


def _pose(what: str, of: str) -> tuple[Parameter, ...]:
    """The keys of a pose."""
    return (
        _vector("position_m", "m", f"{what} in the frame of {of}"),
        Parameter("angles_deg", "floats", "deg", "its yaw (Y), pitch (Z), roll (X) there, in this order", None, -360.0, 360.0, 3),
        Parameter("rotation_xyzw", "floats", "-", "the same as a unit quaternion; one of the two", None, -1.0 - 1e-6, 1.0 + 1e-6, 4),
    )


_BODY_OF = Parameter("body", "str", "-", "body that carries it; left away where there is only one", None)
_NODE = Parameter("node", "str", "-", "node of that body (root, tip, ...); left away: its own frame", None)
_DAMPING = Parameter("damping_ratio", "float", "-", "of every mode", 0.0, 0.0, 0.999)
_SPECTRUM = (
    Parameter("mode_set", "str", "-", "what holds the structure while its modes are found", "clamped",
              choices=("clamped", "free_free", "mass_loaded")),
    Parameter("modes", "int", "-", "number of modes", low=0, high=60),
    _DAMPING,
)  # fmt: skip
_STATIONS = Parameter("stations", "tables", "-", "further nodes: name, and at_m from the root: where an element or a bay ends", [], of=(
    Parameter("name", "str", "-", "name of the node"),
    Parameter("at_m", "float", "m", "from the root", low=0.0, high=_LENGTH[1]),
))
_LOOKS = Parameter("shapes", "tables", "-", "what it looks like, for pictures: tables with box_m, cylinder_m or mesh; left away: a box of "
                   "its mass and inertia, of a beam or truss its own form", None)
SHAPES = ("rigid", "beam", "truss", "assumed", "modal_file")
TABLES = ("port", "joint", "thruster", "wheel", "sensor", "interface")

# keys at the top of a craft of one rigid body
ONE_BODY = (
    Parameter("mass_kg", "float", "kg", "mass", low=1.0, high=1e7),
    Parameter("inertia_kg_m2", "rows", "kg.m2", "about the centre of mass, vehicle axes: rows, or the three principal moments",
              shape=(3, 3), low=-1e10, high=1e10),
    Parameter("port_position_m", "floats", "m", "centre of the docking port from the centre of mass", shape=3, low=-200.0, high=200.0),
    Parameter("port_angles_deg", "floats", "deg", "port axes in vehicle axes: yaw, pitch, roll",
              default=(0.0, 0.0, 0.0), shape=3, low=-180.0, high=180.0),
    Parameter("port_compliance_rows", "rows", "m/N, rad/(N.m)",
              "static compliance of what carries the port (arm, soft mount): twist of the port by a wrench on it, in port axes; in series "
              "with the contact for hil-server predict, no part of the model", default=None, shape=(6, 6)),
    Parameter("modal", "table", "-", "flexible modes, see hil_server.config.modal_data", default=None),
    _LOOKS,
)  # fmt: skip
# keys at the top of any craft
CRAFT = (
    Parameter("name", "str", "-", "short name, shown in reports"),
    Parameter("description", "str", "-", "what it is", default=""),
    Parameter("source", "str", "-", "where the figures come from", default=""),
    Parameter("synthetic", "bool", "-", "true: invented for tests, no real hardware has these figures", default=False),
    Parameter("thrust_n", "float", "N", "thrust of the docking sequence along the docking axis", default=0.0, low=0.0, high=1e5),
    Parameter("rates", "str", "-", "terms of the deformation in the rates of nodes; left away: exact", None,
              choices=("exact", "first_order")),
    Parameter("step", "str", "-", "order of the integration in time in a test; second_order: a hundred times more exact and more, up to "
              "1.9 times the cost, dry friction holds; left away: first_order", None, choices=STEPS),
    Parameter("gravity_m_s2", "floats", "m/s2", "gravity in the inertial frame, for studies; left away: none", None, -100.0, 100.0, 3),
    *(Parameter(name, "tables", "-", f"tables [[{name}]]", None) for name in TABLES),
)  # fmt: skip
# keys at the top of a craft of several bodies
BODIES = (
    Parameter("body", "tables", "-", "tables [[body]]", None),
    Parameter("control_body", "str", "-", "rigid body that thrust_n, attitude control and wheels' reaction act on; left away: the body "
              "without a parent, which then must not bend", None),
    Parameter("manipulator", "table", "-", "drives, limits, segments of an arm, see rt_kernels.model.manipulator_file", None),
)
KEYS: dict[str, tuple[Parameter, ...]] = {
    "body": (
        Parameter("name", "str", "-", "name of the body"),
        Parameter("parent", "str", "-", "body that carries it; left away: the inertial frame", None),
        Parameter("node", "str", "-", "node of the parent (root, tip, ...); left away: the parent's frame", None),
        Parameter("joint", "str", "-", "joint between the two", choices=JOINTS),
        Parameter("joint_name", "str", "-", "name of the joint; empty: that of the body", ""),
        *_pose("joint frame", "parent or node"),
        _vector("axis", "-", "of the joint, body axes; of a universal joint the first one, fixed in the parent", (0.0, 0.0, 1.0)),
        _vector("axis2", "-", "second axis of a universal joint, body axes", (0.0, 1.0, 0.0)),
        Parameter("pitch_m_per_rad", "float", "m/rad", "advance of a screw", 0.0, -1e3, 1e3),
        *(Parameter(shape, "table", "-", "what the body is: exactly one of " + ", ".join(SHAPES), None) for shape in SHAPES),
        _LOOKS,
    ),
    "shapes": (
        Parameter("box_m", "floats", "m", "edges of a box along x, y, z about its middle", None, *_LENGTH, 3),
        Parameter("cylinder_m", "floats", "m", "radius and length of a cylinder along x about its middle", None, *_LENGTH, 2),
        Parameter("mesh", "str", "-", "STL file beside this file, in metres", None),
        Parameter("triangles_m", "rows", "m", "what stands in the mesh, nine numbers a triangle; the configuration takes it in when it "
                  "is read", None, -_LENGTH[1], _LENGTH[1], (None, 9)),
        *_pose("shape", "the body"),
    ),
    "rigid": (
        Parameter("mass_kg", "float", "kg", f"mass, from {_MASS[0]:g} kg; 0: a massless body, which must carry something or marks a place",
                  low=0.0, high=_MASS[1]),
        _vector("centre_of_mass_m", "m", "centre of mass in the body's frame"),
        Parameter("inertia_kg_m2", "rows", "kg.m2", "about the centre of mass: rows, or the three principal moments", ((0.0,) * 3,) * 3,
                  -1e12, 1e12, (3, 3)),
    ),
    "beam": (
        _above("length_m", "m", "length", _LENGTH),
        Parameter("elements", "int", "-", "finite elements", 20, 1, 400),
        _above("mass_per_length_kg_per_m", "kg/m", "mass per length", _MASS),
        _above("axial_stiffness_n", "N", "EA", _STIFFNESS),
        _above("bending_stiffness_y_n_m2", "N.m2", "EI about y", _STIFFNESS),
        _above("bending_stiffness_z_n_m2", "N.m2", "EI about z", _STIFFNESS),
        _above("torsion_stiffness_n_m2", "N.m2", "GJ", _STIFFNESS),
        _not_below("shear_stiffness_y_n", "N", "kGA along y; 0: stiff in shear", default=0.0),
        _not_below("shear_stiffness_z_n", "N", "kGA along z", default=0.0),
        _above("gyration_y_m", "m", "radius of gyration about y", (1e-6, 1e2)),
        _above("gyration_z_m", "m", "radius of gyration about z", (1e-6, 1e2)),
        Parameter("stiffening", "bool", "-", "by the axial load; needs mode_set = 'clamped'", False),
        *_SPECTRUM,
        _STATIONS,
    ),
    "truss": (
        Parameter("bays", "int", "-", "number of bays", low=1, high=200),
        _above("side_m", "m", "side of the square and of a bay", (1e-3, 1e3)),
        _above("mass_kg", "kg", "mass of the whole", _MASS),
        _above("youngs_modulus_pa", "Pa", "of the members", (1e3, 1e13)),
        _above("shear_modulus_pa", "Pa", "of the members", (1e3, 1e13)),
        _above("member_area_m2", "m2", "cross section of a member", (1e-9, 1e2)),
        _above("member_bending_m4", "m4", "its second moment of area", (1e-16, 1e2)),
        _above("member_torsion_m4", "m4", "its torsion constant", (1e-16, 1e2)),
        *_SPECTRUM,
        _STATIONS,
    ),
    "assumed": (
        _above("length_m", "m", "length", _LENGTH),
        _above("mass_kg", "kg", "mass", _MASS),
        Parameter("nodes", "int", "-", "points of mass along it", 5, 3, 200),
        _above("bending_stiffness_n_m2", "N.m2", "EI", _STIFFNESS),
        Parameter("powers_y", "ints", "-", "shapes (x / L)^n along y", (2, 3), 2, 9),
        Parameter("powers_z", "ints", "-", "along z", (2,), 2, 9),
        _DAMPING,
        _STATIONS,
    ),
    "modal_file": (
        Parameter("file", "str", "-", "`.npz` or `.toml` of `ModalBody.load`, beside this file"),
        Parameter("inboard_node", "str", "-", "node by which it hangs; left away: its own frame", None),
        Parameter("data", "table", "-", "what stands in the file; the configuration takes it in when it is read", None),
    ),
    "port": (
        Parameter("name", "str", "-", "name of the port: docking for the docking unit's"),
        _BODY_OF,
        _NODE,
        *_pose("port", "body or node"),
    ),
    "thruster": (
        Parameter("name", "str", "-", "name of the thruster"),
        _BODY_OF,
        _NODE,
        _vector("position_m", "m", "nozzle in the frame of body or node", REQUIRED),
        _vector("direction", "-", "of the force on the craft, same axes, any length", REQUIRED),
        Parameter("thrust_n", "float", "N", "force when open", low=1e-6, high=1e6),
        Parameter("minimum_pulse_s", "float", "s", "shortest opening", 0.0, 0.0, 10.0),
        Parameter("delay_s", "float", "s", "from command to the first thrust", 0.0, 0.0, 1.0),
        Parameter("rise_s", "float", "s", "time constant of the thrust's rise and fall", 0.0, 0.0, 10.0),
    ),
    "wheel": (
        Parameter("name", "str", "-", "name of the wheel"),
        Parameter("joint", "str", "-", "continuous or revolute joint that it turns on"),
        Parameter("torque_n_m", "float", "N.m", "most that its motor gives", low=1e-9, high=1e6),
        Parameter("momentum_n_m_s", "float", "N.m.s", "most that it stores", low=1e-9, high=1e9),
    ),
    "sensor": (
        Parameter("name", "str", "-", "name of the point"),
        Parameter("kind", "str", "-", "what is recorded there", choices=("acceleration", "rate")),
        _BODY_OF,
        _NODE,
        _vector("position_m", "m", "in the frame of body or node", REQUIRED),
    ),
    "interface": (
        Parameter("name", "str", "-", "name of the interface"),
        Parameter("body", "str", "-", "the joint that carries this body"),
    ),
}  # fmt: skip


def _joint(quantity: str, load: str, per_rate: str, inertia: str) -> tuple[Parameter, ...]:
    """Keys of a [[joint]] that turns (angle_deg, N.m) or slides (distance_m, N)."""
    slides = quantity == "m"
    name, rate, largest = ("distance", "m_s", 1e3) if slides else ("angle", "deg_s", 1e5)
    per, shown, of_rate = ("m", "m", "m/s") if slides else ("rad", "rad", "deg/s")
    key = load.lower().replace(".", "_")
    units = {"stiffness": f"{load}/{shown}", "damping": f"{load}.s/{shown}"}
    return (
        Parameter("name", "str", "-", "name of a joint of one degree; of a universal or planar one NAME.1, NAME.2, NAME.3"),
        Parameter("mode", "str", "-", "at the start of a run", choices=MODES),
        Parameter(f"{name}_{quantity}", "float", quantity, "where it stands, and the rest of its spring", 0.0, -largest, largest),
        _not_below(f"stiffness_{key}_per_{per}", units["stiffness"], "spring of the joint", default=0.0),
        _not_below(f"damping_{key}_s_per_{per}", units["damping"], "damper of the joint", default=0.0),
        _not_below(f"friction_{key}", load, "Coulomb friction", default=0.0),
        _not_below(f"armature_{per_rate}", inertia, "added to the joint's own inertia: rotor times gear ratio squared", default=0.0),
        Parameter(f"lower_{quantity}", "float", quantity, "lower stop", None, -largest, largest),
        Parameter(f"upper_{quantity}", "float", quantity, "upper stop", None, -largest, largest),
        _above(f"effort_{key}", load, "most that the drive gives", default=None),
        _above(f"rate_{rate}", of_rate, "fastest that the drive goes", default=None),
        _not_below(f"servo_stiffness_{key}_per_{per}", units["stiffness"], "of the servo towards the wanted place", default=0.0),
        _not_below(f"servo_damping_{key}_s_per_{per}", units["damping"], "of the servo towards the wanted rate", default=0.0),
    )


# kind of joint -> keys of its [[joint]], in the order of the fields of `JointSettings`
TURNING = _joint("deg", "N.m", "kg_m2", "kg.m2")
SLIDING = _joint("m", "N", "kg", "kg")
# what keys were called in files of earlier versions, by table
FORMER = {
    "": {"craft": "is gone: its keys stand at the top of the file"},
    "body": {"port": "was renamed node", "quaternion_xyzw": "was renamed rotation_xyzw",
             "rotation_rpy_rad": "was replaced by angles_deg: yaw (Y), pitch (Z), roll (X)",
             "armature": "belongs to a [[joint]] as armature_kg_m2 or armature_kg",
             "joint_stiffness": "belongs to a [[joint]] as stiffness_n_m_per_rad or stiffness_n_per_m",
             "joint_damping": "belongs to a [[joint]] as damping_n_m_s_per_rad or damping_n_s_per_m",
             "rotor_inertia_kg_m2": "belongs to a [[joint]] as armature_kg_m2: times gear_ratio squared",
             "gear_ratio": "belongs to a [[joint]] with the rotor's inertia: armature_kg_m2", "mass_kg": "was renamed rigid.mass_kg",
             "centre_of_mass_m": "was renamed rigid.centre_of_mass_m", "inertia_kg_m2": "was renamed rigid.inertia_kg_m2"},
    "rigid": {"centre_m": "was renamed centre_of_mass_m",
              "ports": "is gone: position_m of the body that hangs there says it, or a [[port]]"},
    "modal_file": {"inboard_port": "was renamed inboard_node"},
    "port": {"quaternion_xyzw": "was renamed rotation_xyzw"},
}  # fmt: skip


# --- readers ----------------------------------------------------------------------------------------------------------------------------


def read_craft(path: str | Path) -> Craft:
    """The craft of a file. Raises CraftError (a ValueError) with file, key, value and limit of all that is wrong."""
    return craft_of(_tables(path), str(path), Path(path).parent)


def read_bodies(path: str | Path) -> list[Body]:
    """The bodies of a file, all of them rigid, for `Tree`. Raises CraftError."""
    return bodies_of(_tables(path), str(path))


def craft_of(tables: Mapping[str, Any], where: str = "", folder: Path | None = None) -> Craft:
    """The same from the tables of a file. where: goes before each fault; folder: of the files that it names."""
    bodies = tables.get("body")
    if isinstance(bodies, list) and len(bodies) > BODIES_MAX:
        raise CraftError([f"body: {len(bodies)} tables [[body]], limit {BODIES_MAX}: join what does not move, or use a modal_file"], where)
    return _File(tables, where, folder).craft()


def bodies_of(tables: Mapping[str, Any], where: str | Path = "") -> list[Body]:
    """The same from the tables of a file, joints as declared."""
    return _File(tables, str(where)).rigid_bodies()


def tables_of(craft: Craft) -> dict[str, Any]:
    """The tables of a file of this craft: bodies, joints and their settings. Raises ValueError for a body that bends."""
    kinds = {link.joint_name: link.joint for link in craft.links}
    return {"name": craft.name, "body": [_body_table(link) for link in craft.links],
            "joint": [_joint_table(settings, kinds[settings.joint] == "prismatic") for settings in craft.joints]}  # fmt: skip


def with_data(tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The tables of a craft file that need no other file any more: every `modal_file` with its `data`. What is no table is left as it is.
    Raises ValueError; OSError for a file that is not there."""
    found = _with_meshes(dict(tables), folder)
    if isinstance(found.get("body"), list):
        found["body"] = [_body_with_data(_with_meshes(table, folder), folder) for table in found["body"]]
    return found


def full_inertia(value: Any) -> Any:
    """Three principal moments as rows, anything else as it is."""
    if isinstance(value, list | tuple) and len(value) == 3 and not any(isinstance(x, list | tuple) for x in value):
        return [[x if i == j else 0.0 for j in range(3)] for i, x in enumerate(value)]
    return value


def rotation_of(angles_deg: Any) -> np.ndarray:
    """R = Ry(yaw) Rz(pitch) Rx(roll), (3, 3), of angles in degrees; exact for whole right angles."""
    (cy, sy), (cp, sp), (cr, sr) = ((_cosine(a), _cosine(a - 90.0)) for a in angles_deg)
    about_y = np.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    about_z = np.array([[cp, -sp, 0.0], [sp, cp, 0.0], [0.0, 0.0, 1.0]])
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, cr, -sr], [0.0, sr, cr]])
    R: np.ndarray = about_y @ about_z @ about_x
    return R


def _cosine(degrees: float) -> float:
    return 0.0 if degrees % 180.0 == 90.0 else math.cos(math.radians(degrees))


def _with_meshes(table: Any, folder: Path) -> Any:
    """A table with shapes, the triangles of every mesh beside its name."""
    shapes = table.get("shapes") if isinstance(table, dict) else None
    if not isinstance(shapes, list):
        return table
    return table | {"shapes": [
        shape | {"triangles_m": read_stl(folder / shape["mesh"])}
        if isinstance(shape, dict) and isinstance(shape.get("mesh"), str) and "triangles_m" not in shape else shape
        for shape in shapes
    ]}  # fmt: skip


def _body_with_data(table: Any, folder: Path) -> Any:
    modal = table.get("modal_file") if isinstance(table, dict) else None
    if not isinstance(modal, dict) or "data" in modal or not isinstance(modal.get("file"), str):
        return table
    return table | {"modal_file": modal | {"data": ModalBody.load(folder / modal["file"]).as_tables()}}


def _tables(path: str | Path) -> dict[str, Any]:
    try:
        return read_tables(path)
    except (OSError, ValueError, RecursionError) as error:
        raise CraftError([str(error)], str(path)) from None


class _File:
    """The checked tables of a craft file."""

    def __init__(self, tables: Mapping[str, Any], where: str, folder: Path | None = None) -> None:
        self.where, self.folder = where, folder
        self.faults: list[str] = []
        self.one = "body" not in tables
        self.top = self._top(tables)
        self.bodies = [] if self.one else self._bodies(self._given(tables, "body"))
        self.solids = self._solids()
        joints = [(d["joint"], d["joint_name"] or d["name"]) for _, d, _, _ in self.bodies]
        self._finish()
        self.settings = self._settings({name: kind for joint, of in joints for name, kind in degrees(joint, of).items()})
        self.things = {name: self._on_bodies(name) for name in TABLES if name != "joint"}
        self._finish()

    # ---- checks

    def _top(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        own = CRAFT + (ONE_BODY if self.one else BODIES)
        other = {p.key for p in ((*BODIES,) if self.one else ONE_BODY)}
        given = dict(tables)
        if self.one:
            given["inertia_kg_m2"] = full_inertia(given["inertia_kg_m2"]) if "inertia_kg_m2" in given else None
            if given["inertia_kg_m2"] is None:
                del given["inertia_kg_m2"]
        for key in [key for key in given if key in other]:
            owner = "a craft with [[body]] tables" if self.one else "a craft without [[body]]: here the bodies say it"
            self.faults.append(f"{key}: belongs to {owner}, got {unknown_key(key, given.pop(key), ())}")
        known = {p.key for p in own} | other
        for key in [key for key in given if key not in known and key not in FORMER[""]]:
            self.faults.append(f"{key}: {unknown_key(key, given.pop(key), [p.key for p in (*CRAFT, *ONE_BODY, *BODIES)])}")
        return self._read(own, given, "", "") or {}

    def _read(self, declared: tuple[Parameter, ...], table: Any, where: str, kind: str) -> dict[str, Any] | None:
        """The checked table with lists of numbers as arrays; None and more faults when it is wrong."""
        before = f"{where}." if where else ""
        if not isinstance(table, Mapping):
            self.faults.append(f"{where}: must be a table, got {table!r:.80}")
            return None
        known = {p.key for p in declared}
        former = {key: new for key, new in FORMER.get(kind, {}).items() if key in table and key not in known}
        self.faults += [f"{before}{key}: {what}" for key, what in former.items()]
        given = {key: value for key, value in table.items() if key not in former}
        if kind == "rigid" and "inertia_kg_m2" in given:
            given["inertia_kg_m2"] = full_inertia(given["inertia_kg_m2"])
        found = faults(declared, given, where)
        self.faults += found
        if found or former:
            return None
        out = checked(declared, given, where)
        for p in declared:
            if p.kind in ("floats", "rows") and out[p.key] is not None:
                out[p.key] = np.array(out[p.key])
            if kind and p.key in ("name", "joint_name"):
                self._name(out[p.key], f"{before}{p.key}", may_be_empty=p.key == "joint_name")
            if p.kind == "ints" and len(set(out[p.key])) != len(out[p.key]):
                self.faults.append(f"{before}{p.key}: must be different powers, got {out[p.key]}")
        if kind == "rigid" and 0.0 < out["mass_kg"] < _MASS[0]:
            self.faults.append(f"{before}mass_kg: must be 0 (massless) or at least {_MASS[0]:g} kg, got {out['mass_kg']!r}")
        if "rotation_xyzw" in out:
            self._rotation(out, before)
        return out

    def _name(self, name: str, where: str, may_be_empty: bool) -> None:
        """Lists in notes and tables hold names between commas, a line each."""
        if not (name or may_be_empty) or len(name) > NAME_MAX or re.search(r"[,\x00-\x1f\x7f]", name):
            limit = f"text of 1 ... {NAME_MAX} characters without commas and control characters"
            self.faults.append(f"{where}: must be {limit}, got {name!r:.80}")

    def _rotation(self, d: dict[str, Any], before: str) -> None:
        """The pose's rotation matrix into d["rotation"]."""
        angles, q = d.pop("angles_deg"), d.pop("rotation_xyzw")
        d["rotation"] = np.eye(3)
        if angles is not None and q is not None:
            self.faults.append(f"{before}rotation_xyzw: {q.tolist()} given beside angles_deg, limit one of the two")
        elif angles is not None:
            d["rotation"] = rotation_of(angles)
        elif q is not None:
            if abs(np.linalg.norm(q) - 1.0) > 1e-6:
                self.faults.append(f"{before}rotation_xyzw: {q.tolist()} has norm {np.linalg.norm(q):.6g}, limit 1")
            else:
                d["rotation"] = _matrix(q / np.linalg.norm(q))

    def _given(self, tables: Mapping[str, Any], name: str) -> list[Any]:
        """The tables [[name]]; what is no list of tables has been refused with the top."""
        value = tables.get(name)
        if not isinstance(value, list):
            return []
        if name == "body" and not value:
            self.faults.append("body: at least one [[body]] is needed, got []")
        return value

    def _bodies(self, given: list[Any]) -> list[tuple[str, dict, str, dict]]:
        """(where, keys, kind, keys of the kind) of every body."""
        found = []
        for number, table in enumerate(given):
            where = _path("body", number, table)
            d = self._read(KEYS["body"], table, where, "body")
            if d is None:
                for kind in SHAPES:
                    if isinstance(table, dict) and isinstance(table.get(kind), dict):
                        self._read(KEYS[kind], table[kind], f"{where}.{kind}", kind)
                continue
            kinds = [kind for kind in SHAPES if d[kind] is not None]
            if len(kinds) != 1:
                self.faults.append(f"{where}: exactly one of {', '.join(SHAPES)} is needed, got {', '.join(kinds) or 'none'}")
                continue
            shape = self._read(KEYS[kinds[0]], d[kinds[0]], f"{where}.{kinds[0]}", kinds[0])
            if shape is not None:
                found.append((where, d, kinds[0], shape))
        return found

    def _solids(self) -> list[tuple[Solid, ...]]:
        """What each body is declared to look like."""
        found = []
        for where, d in [("", self.top)] if self.one else [(f"{where}.", d) for where, d, _, _ in self.bodies]:
            rows = [(f"{where}shapes[{i}]", table) for i, table in enumerate(d.get("shapes") or [])]
            found.append(tuple(one for at, table in rows if (one := self._solid(at, table)) is not None))
        return found

    def _solid(self, where: str, table: Any) -> Solid | None:
        d = self._read(KEYS["shapes"], table, where, "shapes")
        if d is None:
            return None
        kinds = [kind for kind in ("box_m", "cylinder_m", "mesh") if d[kind] is not None]
        if len(kinds) != 1:
            self.faults.append(f"{where}: exactly one of box_m, cylinder_m, mesh is needed, got {', '.join(kinds) or 'none'}")
            return None
        at = d["rotation"], d["position_m"]
        if kinds[0] == "box_m":
            return box(d["box_m"], *at)
        if kinds[0] == "cylinder_m":
            return cylinder(float(d["cylinder_m"][0]), float(d["cylinder_m"][1]), *at)
        if d["triangles_m"] is not None and not 0 < len(d["triangles_m"]) <= TRIANGLES_MAX:
            self.faults.append(f"{where}.triangles_m: {len(d['triangles_m'])} triangles, limit 1 ... {TRIANGLES_MAX}")
            return None
        try:
            triangles = read_stl((self.folder or Path()) / d["mesh"]) if d["triangles_m"] is None else d["triangles_m"]
            return mesh(np.asarray(triangles), *at)
        except (OSError, ValueError) as error:
            self.faults.append(f"{where}.mesh: {error}")
            return None

    def _on_bodies(self, name: str) -> list[dict[str, Any]]:
        """The tables [[name]], each with the body that it is on."""
        only = "body" if self.one else self.bodies[0][1]["name"] if len(self.bodies) == 1 else None
        found = []
        for i, table in enumerate(self.top[name] or []):
            where = _path(name, i, table)
            d = self._read(KEYS[name], table, where, name)
            if d is None:
                continue
            if "body" in d and d["body"] is None:
                d["body"] = only
                if only is None:
                    self.faults.append(f"{where}.body: required key is missing: {must_be(_BODY_OF)} ({_BODY_OF.meaning})")
            if "direction" in d:
                length = np.linalg.norm(d["direction"])
                if not length > 1e-9:
                    self.faults.append(f"{where}.direction: must have a length above 1e-9, got {d['direction'].tolist()}")
                    continue
                d["direction"] = d["direction"] / length
            found.append(d)
        return found

    def _finish(self) -> None:
        if self.faults:
            raise CraftError(self.faults, self.where)

    # ---- what comes out

    def craft(self) -> Craft:
        """The craft. Raises CraftError."""
        ports = [CraftPort(DOCKING, "body", self.top["port_position_m"], rotation_of(self.top["port_angles_deg"]))] if self.one else []
        made = {"port": CraftPort, "thruster": Thruster, "wheel": Wheel, "sensor": Sensor, "interface": Interface}
        things = {name: tuple(made[name](**_fields(d)) for d in items) for name, items in self.things.items()}
        expanded = [self._with_settings(link, self.settings) for declared in self._links() for link in chain(declared)]
        gravity = np.zeros(3) if self.top["gravity_m_s2"] is None else self.top["gravity_m_s2"]
        with self._named(""):
            return Craft(
                self.top["name"], tuple(expanded), (*ports, *things["port"]), tuple(self.settings.values()), things["thruster"],
                things["wheel"], things["sensor"], things["interface"], self.top["rates"] or "exact", gravity,
                self.top.get("control_body"), self.top["step"] or STEPS[0],
            )  # fmt: skip

    def rigid_bodies(self) -> list[Body]:
        """Bodies for a tree of rigid ones. Raises CraftError."""
        if self.one:
            return [Body("body", None, "free", mass=self.top["mass_kg"], inertia=self.top["inertia_kg_m2"])]
        bending = [f"{where}.{kind}: a tree of rigid bodies has no {kind}" for where, _, kind, _ in self.bodies if kind != "rigid"]
        hung = [f"{where}.node: {d['node']!r}: a rigid body has no nodes" for where, d, _, _ in self.bodies if d["node"] is not None]
        self.faults += bending + hung
        self._finish()
        named_joints = {d["joint_name"] or d["name"]: d["joint"] for _, d, _, _ in self.bodies}
        settings = self.settings
        for joint, of in named_joints.items():
            if of in ("universal", "planar") and any(settings[name].armature for name in degrees(of, joint) if name in settings):
                self.faults.append(f"joint {joint!r}: armature of a {of} joint in a tree of rigid bodies, limit 0")
        self._finish()
        return [
            Body(d["name"], d["parent"], d["joint"], d["joint_name"], d["rotation"], d["position_m"], d["axis"], d["axis2"],
                 d["pitch_m_per_rad"], shape["mass_kg"], shape["centre_of_mass_m"], shape["inertia_kg_m2"],
                 settings[d["joint_name"] or d["name"]].armature if d["joint"] in ONE_DEGREE else 0.0)
            for _, d, _, shape in self.bodies
        ]  # fmt: skip

    def _links(self) -> list[Link]:
        """The bodies with their joints as declared."""
        if self.one:
            with self._named("inertia_kg_m2"):
                return [Link("body", ModalBody.rigid(self.top["mass_kg"], inertia=self.top["inertia_kg_m2"]), joint="free",
                             solids=self.solids[0])]
        made: dict[str, ModalBody] = {}
        # rigid bodies first: mass-loaded modes need them
        for where, d, kind, shape in sorted(self.bodies, key=lambda body: body[2] in ("beam", "truss")):
            with self._named(f"{where}.{kind}"):
                made[d["name"]] = self._body(d, kind, shape, made)
        links = []
        for (where, d, _, _), solids in zip(self.bodies, self.solids, strict=True):
            with self._named(where):
                links.append(Link(d["name"], made[d["name"]], d["parent"], d["node"], d["joint"], d["axis"], d["position_m"], d["rotation"],
                                  joint_name=d["joint_name"], axis2=d["axis2"], pitch=d["pitch_m_per_rad"], solids=solids))
        return links

    def _body(self, d: dict, kind: str, shape: dict, made: Mapping[str, ModalBody]) -> ModalBody:
        """Modal body of one table."""
        if kind == "rigid":
            return ModalBody.rigid(shape["mass_kg"], shape["centre_of_mass_m"], shape["inertia_kg_m2"])
        if kind == "modal_file":
            if shape["data"] is not None:
                body = ModalBody.of_tables(shape["data"])
            else:
                body = ModalBody.load((self.folder or Path()) / shape["file"])
            return body.clamped_at(shape["inboard_node"]) if shape["inboard_node"] else body
        if kind == "assumed":
            body = assumed_beam(shape["length_m"], shape["mass_kg"], shape["bending_stiffness_n_m2"], shape["nodes"], shape["powers_y"],
                                shape["powers_z"], shape["stations"])
            return body.with_damping_ratio(shape["damping_ratio"]) if shape["damping_ratio"] else body
        # what is fixed to the nodes, for mass-loaded modes
        carried: dict[str, np.ndarray] = {}
        for _, other, other_kind, _ in self.bodies:
            if other["parent"] == d["name"] and other["node"] and other_kind == "rigid" and other["joint"] == "fixed":
                there = _moved(made[other["name"]].mass_matrix(), other["position_m"], other["rotation"])
                carried[other["node"]] = carried.get(other["node"], 0.0) + there
        body = _flexible(kind, shape, carried)
        return body.clamped_at("root") if d["parent"] is not None and shape["mode_set"] != "clamped" else body

    def _settings(self, kinds: Mapping[str, str]) -> dict[str, JointSettings]:
        """Settings of every joint of one degree (name -> kind), in this order."""
        given: dict[str, JointSettings] = {}
        for i, table in enumerate(self.top["joint"] or []):
            found = self._one_joint(i, table, kinds)
            if found is not None and found.joint in given:
                self.faults.append(f"joint.{found.joint}.name: {found.joint!r} is given twice, limit one [[joint]] for each")
            elif found is not None:
                given[found.joint] = found
        return {name: given.get(name, JointSettings(name)) for name in kinds}

    def _one_joint(self, i: int, table: Any, kinds: Mapping[str, str]) -> JointSettings | None:
        where = _path("joint", i, table)
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str) and name not in kinds:
            self.faults.append(f"{where}.name: {no_such('joint of one degree of freedom', name, kinds)}")
            return None
        sliding = isinstance(name, str) and kinds[name] == "prismatic"
        d = self._read(SLIDING if sliding else TURNING, table, where, "joint")
        if d is None:
            return None
        joint, mode, angle, stiffness, damping, friction, armature, lower, upper, effort, rate, gain, rate_gain = d.values()
        one = 1.0 if sliding else math.pi / 180.0
        with self._named(where):
            return JointSettings(
                joint, mode, one * angle, stiffness, damping, friction, armature, -math.inf if lower is None else one * lower,
                math.inf if upper is None else one * upper, math.inf if effort is None else effort,
                math.inf if rate is None else one * rate, gain, rate_gain,
            )  # fmt: skip

    @staticmethod
    def _with_settings(link: Link, settings: Mapping[str, JointSettings]) -> Link:
        s = settings.get(link.joint_name)
        if s is None or link.joint in ("fixed", "free", "spherical"):
            return link
        return replace(link, armature=s.armature, stiffness=s.stiffness, damping=s.damping)

    @contextmanager
    def _named(self, where: str) -> Iterator[None]:
        """Whatever goes wrong inside with the numbers of a file is a CraftError that says where."""
        try:
            with named(""):
                yield
        except ValueError as error:
            text = str(error).removeprefix(": ")
            raise CraftError([*self.faults, f"{where}: {text}" if where else text], self.where) from None


@contextmanager
def named(where: str) -> Iterator[None]:
    """Whatever goes wrong inside with the numbers of a file is a ValueError that says where."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError, RuntimeError) as error:
        why = "masses, lengths and stiffnesses lie too far apart, or one is 0"
        raise ValueError(f"{where}: its equations have no solution in double precision ({error}): {why}") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{where}: {error}") from None


def _body_table(link: Link) -> dict[str, Any]:
    from scipy.spatial.transform import Rotation

    body = link.body
    if body.n_modes:
        raise ValueError(f"body.{link.name}: has {body.n_modes} modes, limit a rigid body")
    c = body.first_moment / body.mass if body.mass else np.zeros(3)
    E = body.second_moment - body.mass * np.outer(c, c)
    table: dict[str, Any] = {"name": link.name, "parent": link.parent or "", "joint": link.joint, "joint_name": link.joint_name}
    table = {key: value for key, value in table.items() if value}
    if np.any(link.position):
        table["position_m"] = link.position.tolist()
    if np.any(link.rotation != np.eye(3)):
        table["rotation_xyzw"] = Rotation.from_matrix(link.rotation).as_quat().tolist()
    if link.joint in ONE_DEGREE:
        table["axis"] = link.axis.tolist()
    if link.joint == "screw":
        table["pitch_m_per_rad"] = link.pitch
    inertia = np.trace(E) * np.eye(3) - E
    return table | {"rigid": {"mass_kg": body.mass, "centre_of_mass_m": c.tolist(), "inertia_kg_m2": inertia.tolist()}}


def _joint_table(settings: JointSettings, slides: bool) -> dict[str, Any]:
    """What differs from its default, in the units of the file."""
    declared = SLIDING if slides else TURNING
    values = {p.key: getattr(settings, field.name) for p, field in zip(declared, fields(settings), strict=True)}
    in_file = {p.key: math.degrees(values[p.key]) if p.unit in ("deg", "deg/s") else values[p.key] for p in declared}
    return {key: value for key, value in in_file.items() if isinstance(value, str) or (value and math.isfinite(value))}


# --- bodies -----------------------------------------------------------------------------------------------------------------------------


def _path(kind: str, number: int, table: Any) -> str:
    """Path of one of the tables [[kind]]: by its name, which `--set` takes too, or by its number."""
    name = table.get("name") if isinstance(table, dict) else None
    return f"{kind}.{name}" if isinstance(name, str) and re.fullmatch(r"[\w-]+", name) else f"{kind}[{number}]"


def _fields(d: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a table as the fields of what it describes."""
    return {"position" if key == "position_m" else key: value for key, value in d.items()}


def _matrix(q: np.ndarray) -> np.ndarray:
    """(3, 3) of a unit quaternion [x, y, z, w]."""
    x, y, z, w = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def _moved(M: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Mass matrix (6, 6) of a rigid body at another place: its frame stands at `position`, `rotation` there. Twists linear part first."""
    if not np.any(position) and np.array_equal(rotation, np.eye(3)):
        return M
    x, y, z = position
    S = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    T = np.block([[rotation.T, -rotation.T @ S], [np.zeros((3, 3)), rotation.T]])
    there: np.ndarray = T.T @ M @ T
    return there

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


def _flexible(kind: str, d: dict, loads: Mapping[str, np.ndarray]) -> ModalBody:
    """Modal body of a beam or truss. loads: node -> mass matrix (6, 6) of what is fixed there."""
    return _modes_of(kind, json.dumps(d), json.dumps({name: M.tolist() for name, M in loads.items()}))


@lru_cache(maxsize=64)  # a run asks for its crafts several times, a truss takes half a second
def _modes_of(kind: str, table: str, carried_there: str) -> ModalBody:
    d, loads = json.loads(table), json.loads(carried_there)
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
                carried[6 * k: 6 * k + 6, 6 * k: 6 * k + 6] = loads[name]
        _, X = craig_bampton_modes(frame, d["modes"], np.concatenate([root, tip]), carried)
    if averaged:
        ports = {"root": frame.averaged_port(root, p_root, X), "tip": frame.averaged_port(tip, p_tip, X)}
    else:
        ports = {"root": frame.port(root, p_root, X), "tip": frame.port(tip, p_tip, X)}
    if d.get("stiffening") and d["mode_set"] != "clamped":
        raise ValueError(f"stiffening: true with mode_set = {d['mode_set']!r}, limit 'clamped'")
    count, apart = (d["elements"], d["length_m"] / d["elements"]) if kind == "beam" else (d["bays"], d["side_m"])
    for name, k in _stations(d["stations"], count, apart):
        place = p_root + (p_tip - p_root) * k / count
        ports[name] = (frame.port(frame.node_dofs(k), place, X) if kind == "beam"
                       else frame.averaged_port(4 * k + np.arange(4), place, X))  # fmt: skip
    body = replace(frame.modal_body(X, ports, stiffening=d.get("stiffening", False)), outline=_outline(kind, d, frame, X))
    if kind == "truss" and d["mode_set"] == "clamped":
        body = body.clamped_at("root")
    return body.with_damping_ratio(d["damping_ratio"]) if d["damping_ratio"] else body


def _stations(rows: list[dict[str, Any]], count: int, apart: float) -> Iterator[tuple[str, int]]:
    """(name, which node) of the stations of a beam or truss with `count` pieces. Raises ValueError."""
    taken = {"root", "tip"}
    for number, row in enumerate(rows):
        k = round(row["at_m"] / apart)
        if row["name"] in taken:
            raise ValueError(f"stations[{number}].name: {row['name']!r} is the name of another node, limit a new one")
        if not 0 < k < count or abs(row["at_m"] - k * apart) > 1e-6 * apart:
            raise ValueError(f"stations[{number}].at_m: {row['at_m']:g} m, limit a multiple of {apart:.6g} m (element or bay) between the "
                             f"ends, 0 and {count * apart:.6g} m")
        taken.add(row["name"])
        yield row["name"], k


def _outline(kind: str, d: dict, frame: Frame, X: np.ndarray) -> Solid:
    """A beam as a bar with the section that has its radii of gyration, of a truss the members, bending with the modes X."""
    u = np.asarray(frame.transform() @ X).reshape(len(frame.nodes), 6, -1)
    if kind == "beam":
        at = np.unique(np.linspace(0, len(u) - 1, STATIONS).round().astype(int))
        width, height = math.sqrt(3.0) * d["gyration_y_m"], math.sqrt(3.0) * d["gyration_z_m"]
        return bar(frame.nodes[at], u[at, :3], u[at, 3:], width, height, "bar with its radii of gyration")
    corners = 4 * (d["bays"] + 1)
    across = [(k, k - k % 4 + (k + 1) % 4) for k in range(corners)]
    along = [(k, k + 4) for k in range(corners - 4)]
    # the diagonals as `square_truss` has them
    sides = [(4 * k + c, 4 * k + (c + 1) % 4)[:: 1 if (c + k) % 2 == 0 else -1] for k in range(d["bays"]) for c in range(4)]
    return Solid(frame.nodes[:corners], (*across, *along, *((a, b + 4) for a, b in sides)), u[:corners, :3], "its members")


def assumed_beam(length: float, mass: float, bending_stiffness: float, nodes: int = 5, powers_y=(2, 3), powers_z=(2,),
                 stations=()) -> ModalBody:  # fmt: skip
    """Beam clamped at its root with shapes xi^n (xi = x / L) and its mass at equidistant nodes (half at the ends); ports tip and stations.

    Source of the form: Tian et al. 2010, example of six links.
    """
    xi = np.linspace(0.0, 1.0, nodes)
    weights = np.ones(nodes)
    weights[[0, -1]] = 0.5
    axes = [(1, n) for n in powers_y] + [(2, n) for n in powers_z]
    s = len(axes)
    shapes, K = np.zeros((nodes, 3, s)), np.zeros((s, s))
    for a, (axis, n) in enumerate(axes):
        shapes[:, axis, a] = xi**n
        for b, (other, k) in enumerate(axes):
            if other == axis:
                K[a, b] = bending_stiffness / length**3 * n * (n - 1) * k * (k - 1) / (n + k - 3)
    ports = {}
    for number, row in enumerate(({"name": "tip", "at_m": length}, *stations)):
        if row["name"] in ports or not 0.0 <= row["at_m"] <= length:
            raise ValueError(f"stations[{number - 1}]: {row['name']!r} at {row['at_m']:g} m, limit a new name and 0 ... {length:g} m")
        phi, psi, there = np.zeros((3, s)), np.zeros((3, s)), row["at_m"] / length
        for a, (axis, n) in enumerate(axes):
            phi[axis, a] = there**n
            psi[3 - axis, a] = (3 - 2 * axis) * n / length * there ** (n - 1)
        ports[row["name"]] = Port(np.array([row["at_m"], 0.0, 0.0]), np.eye(3), phi, psi)
    positions = np.column_stack([length * xi, np.zeros(nodes), np.zeros(nodes)])
    at = np.linspace(0.0, 1.0, STATIONS)
    moves, turns = np.zeros((STATIONS, 3, s)), np.zeros((STATIONS, 3, s))
    for a, (axis, n) in enumerate(axes):
        moves[:, axis, a] = at**n
        turns[:, 3 - axis, a] = (3 - 2 * axis) * n / length * at ** (n - 1)
    line = np.column_stack([length * at, np.zeros(STATIONS), np.zeros(STATIONS)])
    outline = bar(line, moves, turns, 0.01 * length, 0.01 * length, "bar of any section")
    return replace(ModalBody.from_points(mass * weights / weights.sum(), positions, shapes, K, ports), outline=outline)


