"""Description of a tree of rigid bodies, its checks, and the reader of URDF files (of TOML: `craft_file`).  Set-up only; the kernels are in
`tree.pyx`.

A body hangs on its parent by one joint.  `R_PJ`, `p_PJ_P` place the joint frame J in the parent's frame P at zero joint coordinates; the
body's own frame is J after the joint has moved.  SI units; inertia tensor about the centre of mass, on the body's axes.
"""

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.extends import read_tables

#: joint kind: (number of position coordinates, number of velocity coordinates, has an axis)
JOINT_KINDS = {
    "revolute": (1, 1, True),
    "continuous": (2, 1, True),
    "prismatic": (1, 1, True),
    "screw": (1, 1, True),
    "universal": (2, 2, True),
    "spherical": (4, 3, False),
    "planar": (4, 3, False),
    "free": (7, 6, False),
    "fixed": (0, 0, False),
}


#: Bounds of every number of a model (SI units): far beyond any craft, and products of them stay finite.
LARGEST, SMALLEST_MASS = 1e30, 1e-30


class ModelError(ValueError):
    """A model that cannot be computed with; the message names body or joint, the value and the limit."""


@dataclass
class Body:
    """One body and the joint that carries it.

    axis: direction of a revolute, continuous, prismatic or screw joint in J (any length but zero); for a universal joint the first axis,
    fixed in the parent, and `axis2` the second, fixed in the body.  pitch: advance of a screw [m/rad].
    rotor_inertia [kg.m2] and gear_ratio of the drive add gear_ratio^2 rotor_inertia to the joint's own coordinate (for a prismatic
    joint the ratio is in rad/m).  parent None: the inertial frame.  mass 0: a massless body, which must carry something heavier.
    """

    name: str
    parent: str | None = None
    joint: str = "revolute"
    joint_name: str = ""
    R_PJ: np.ndarray = field(default_factory=lambda: np.eye(3))
    p_PJ_P: np.ndarray = field(default_factory=lambda: np.zeros(3))
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    axis2: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    pitch: float = 0.0
    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    rotor_inertia: float = 0.0
    gear_ratio: float = 1.0

    def __post_init__(self) -> None:
        self.joint_name = self.joint_name or self.name
        for key, shape in (("R_PJ", (3, 3)), ("p_PJ_P", (3,)), ("axis", (3,)), ("axis2", (3,)), ("com", (3,)), ("inertia", (3, 3))):
            setattr(self, key, _array(getattr(self, key), shape, f"body '{self.name}': {key}"))
        for key in ("pitch", "mass", "rotor_inertia", "gear_ratio"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)) or not math.isfinite(value):
                raise ModelError(f"body '{self.name}': {key} is {value!r}, a finite number is needed")
            if abs(float(value)) > LARGEST:
                raise ModelError(f"body '{self.name}': {key} is {value:g}, the limit is {LARGEST:g}")


@dataclass(frozen=True)
class Frame:
    """A named frame fixed in a body: pose X_BF. body -1: fixed in the inertial frame."""

    name: str
    body: int
    R_BF: np.ndarray
    p_BF_B: np.ndarray


def _array(value: object, shape: tuple[int, ...], what: str) -> np.ndarray:
    try:
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what}: {error}") from None
    if out.shape != shape:
        raise ModelError(f"{what}: shape {out.shape}, {shape} is needed")
    if not np.isfinite(out).all():
        raise ModelError(f"{what}: not finite: {out.tolist()}")
    if np.abs(out).max(initial=0.0) > LARGEST:
        raise ModelError(f"{what}: {np.abs(out).max():g} is above the limit {LARGEST:g}")
    return out


# ---- checks --------------------------------------------------


def check_inertia(name: str, mass: float, inertia: np.ndarray) -> None:
    """Mass not negative; tensor symmetric, not negative, and no principal moment above the sum of the other two."""
    if mass < 0.0 or 0.0 < mass < SMALLEST_MASS:
        raise ModelError(f"body '{name}': mass is {mass:g} kg, it must be 0 or at least {SMALLEST_MASS:g}")
    scale = float(np.abs(inertia).max())
    if mass == 0.0 and scale > 0.0:
        raise ModelError(f"body '{name}': mass is 0 kg but its inertia is not zero")
    if not np.allclose(inertia, inertia.T, rtol=0.0, atol=1e-9 * scale):
        raise ModelError(f"body '{name}': inertia tensor is not symmetric")
    low, middle, high = np.linalg.eigvalsh(inertia)
    if low < -1e-9 * scale:
        raise ModelError(f"body '{name}': inertia has the negative principal moment {low:g} kg.m2")
    if high > (low + middle) * (1.0 + 1e-6) + 1e-9 * scale:
        raise ModelError(
            f"body '{name}': inertia is not physical: principal moments {low:g}, {middle:g}, {high:g} kg.m2, "
            "the last exceeds the sum of the others"
        )


def _check_body(body: Body) -> None:
    if body.joint not in JOINT_KINDS:
        raise ModelError(f"joint '{body.joint_name}': unknown kind '{body.joint}', one of {', '.join(JOINT_KINDS)} is needed")
    if np.abs(body.R_PJ.T @ body.R_PJ - np.eye(3)).max() > 1e-9 or np.linalg.det(body.R_PJ) < 0.0:
        raise ModelError(f"joint '{body.joint_name}': R_PJ is not a rotation")
    axes = [("axis", body.axis)] if JOINT_KINDS[body.joint][2] else []
    if body.joint == "universal":
        axes.append(("axis2", body.axis2))
    for key, axis in axes:
        if np.linalg.norm(axis) < 1e-12:
            raise ModelError(f"joint '{body.joint_name}': {key} has no direction")
    lengths = np.linalg.norm(body.axis) * np.linalg.norm(body.axis2)
    if body.joint == "universal" and np.linalg.norm(np.cross(body.axis, body.axis2)) < 1e-9 * lengths:
        raise ModelError(f"joint '{body.joint_name}': axis and axis2 are parallel")
    if body.rotor_inertia < 0.0:
        raise ModelError(f"joint '{body.joint_name}': rotor_inertia is {body.rotor_inertia:g} kg.m2, it cannot be negative")
    if body.rotor_inertia > 0.0 and body.joint in ("free", "fixed"):
        raise ModelError(f"joint '{body.joint_name}': a {body.joint} joint has no drive, rotor_inertia must be 0")
    check_inertia(body.name, body.mass, body.inertia)


def _check_topology(bodies: Sequence[Body]) -> None:
    if not bodies:
        raise ModelError("the model has no moving body")
    for kind, names in (("body", [b.name for b in bodies]), ("joint", [b.joint_name for b in bodies])):
        twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
        if twice:
            raise ModelError(f"{kind} name given twice: {', '.join(sorted(twice))}")
    parent = {b.name: b.parent for b in bodies}
    grounded: set[str | None] = {None}
    for body in bodies:
        if body.parent is not None and body.parent not in parent:
            raise ModelError(f"body '{body.name}': unknown parent '{body.parent}'")
        path: list[str] = []
        at: str | None = body.name
        while at not in grounded:
            if at in path:
                loop = " -> ".join(path[path.index(at) :] + [at])
                raise ModelError(f"bodies form a loop: {loop}; cut one joint and close it as a constraint")
            path.append(at)  # type: ignore[arg-type]
            at = parent[at]  # type: ignore[index]
        grounded.update(path)


def join_masses(parts: Iterable[tuple[float, np.ndarray, np.ndarray]]) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it of rigidly joined parts (mass, centre of mass, inertia about it), on common axes."""
    parts = [p for p in parts if p[0] > 0.0]
    mass = sum(p[0] for p in parts)
    if not parts:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    com = np.sum([p[0] * p[1] for p in parts], axis=0) / mass
    inertia = np.zeros((3, 3))
    for m, c, inertia_c in parts:
        d = c - com
        inertia += inertia_c + m * (d @ d * np.eye(3) - np.outer(d, d))
    return float(mass), com, inertia


def coordinate_numbers(joint: str, part: slice, coordinates: Iterable[int] | None) -> list[int]:
    """Of the velocity coordinates `part` of a joint those with these numbers, None: all. Raises ValueError that names joint and limit."""
    indices = list(range(part.start, part.stop))
    if coordinates is None:
        return indices
    for c in coordinates:
        if not (isinstance(c, int) and 0 <= c < len(indices)):
            raise ValueError(f"joint '{joint}': coordinate {c!r}, 0 to {len(indices) - 1} is needed")
    return [indices[c] for c in coordinates]


def resolve(bodies: Sequence[Body]) -> tuple[list[Body], list[Frame]]:
    """Checked bodies with the fixed ones merged into their parents (a fixed root into the inertial frame), and a frame for every body."""
    for body in bodies:
        if not isinstance(body, Body):
            raise ModelError(f"a Body is needed, not {type(body).__name__}")
        _check_body(body)
    _check_topology(bodies)
    by_name = {b.name: b for b in bodies}
    moving = [b for b in bodies if b.joint != "fixed"]
    if not moving:
        raise ModelError("the model has no moving joint")
    number = {b.name: i for i, b in enumerate(moving)}

    def carrier(name: str | None) -> tuple[str | None, np.ndarray, np.ndarray]:
        """The moving body that carries `name`, and the pose of `name` in it."""
        R, p = np.eye(3), np.zeros(3)
        while name is not None and name not in number:
            b = by_name[name]
            R, p, name = b.R_PJ @ R, b.R_PJ @ p + b.p_PJ_P, b.parent
        return name, R, p

    frames, parts = [], {b.name: [(b.mass, b.com, b.inertia)] for b in moving}
    for b in bodies:
        holder, R, p = carrier(b.name)
        frames.append(Frame(b.name, -1 if holder is None else number[holder], R, p))
        if b.joint == "fixed" and holder is not None:
            parts[holder].append((b.mass, R @ b.com + p, R @ b.inertia @ R.T))
    merged = []
    for b in moving:
        holder, R, p = carrier(b.parent)
        mass, com, inertia = join_masses(parts[b.name])
        merged.append(replace(b, parent=holder, R_PJ=R @ b.R_PJ, p_PJ_P=R @ b.p_PJ_P + p, mass=mass, com=com, inertia=inertia))
    return merged, frames


# ---- files --------------------------------------------------


def _pose(matrix: object, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and origin of a 4x4 transform; the rotation is freed of the rounding of printed angles."""
    if matrix is None:
        return np.eye(3), np.zeros(3)
    X = _array(matrix, (4, 4), what)
    return X[:3, :3], X[:3, 3]


URDF_JOINTS = {k: k for k in ("revolute", "continuous", "prismatic", "planar", "fixed")} | {"floating": "free"}


def read_urdf(path: str | Path, floating_base: bool = False) -> list[Body]:
    """Bodies of a URDF file (reader: yourdfpy, optional group `models`), in Pinocchio's order: depth first, children by joint name.

    With `floating_base` the root link gets a free joint named root_joint, else it is fixed.  A continuous joint keeps (cos, sin) as
    Pinocchio does; <mimic> is read as an independent joint. Limits and <dynamics> are in `urdf.read_urdf_craft`.  Raises ModelError.
    """
    robot = _load_urdf(Path(path))
    links, joints = {}, []
    for link in robot.links:
        if not link.name or link.name in links:
            raise ModelError(f"{path}: link name '{link.name}' is missing or given twice")
        links[link.name] = link
    child_of: dict[str, object] = {}
    for joint in robot.joints:
        if joint.type not in URDF_JOINTS:
            raise ModelError(f"{path}: joint '{joint.name}': unknown kind '{joint.type}', one of {', '.join(URDF_JOINTS)} is needed")
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                raise ModelError(f"{path}: joint '{joint.name}': unknown {role} link '{name}'")
        if joint.child in child_of:
            raise ModelError(f"{path}: link '{joint.child}' is the child of two joints: the tree has a loop")
        child_of[joint.child] = joint
        joints.append(joint)
    roots = [name for name in links if name not in child_of]
    if len(roots) != 1:
        raise ModelError(f"{path}: {len(roots)} root links ({', '.join(roots[:5])}); exactly one is needed, none means a loop")
    children: dict[str, list] = {}
    for joint in sorted(joints, key=lambda j: str(j.name)):
        children.setdefault(joint.parent, []).append(joint)

    root = roots[0]
    bodies = [_urdf_body(path, links[root], "root_joint", "free" if floating_base else "fixed", None, None, None)]
    stack = list(reversed(children.get(root, [])))
    while stack:
        joint = stack.pop()
        bodies.append(_urdf_body(path, links[joint.child], joint.name, URDF_JOINTS[joint.type], joint.parent, joint.origin, joint.axis))
        stack.extend(reversed(children.get(joint.child, [])))
    if len(bodies) != len(links):
        raise ModelError(f"{path}: {len(links) - len(bodies)} links do not hang on the root '{root}': they form a loop")
    return bodies


def joint_elements(path: str | Path) -> dict[str, Any]:
    """Name -> the reader's element of every joint of a URDF file (limit, dynamics, type). Raises ModelError."""
    return {joint.name: joint for joint in _load_urdf(Path(path)).joints}


def _load_urdf(path: Path):
    try:
        import yourdfpy
    except ImportError as error:
        raise ModelError(f"reading URDF needs yourdfpy (optional group 'models'): {error}") from None
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        ElementTree.parse(path)  # the reader repairs broken XML silently: refuse it first
        return yourdfpy.URDF.load(str(path), load_meshes=False, build_scene_graph=False, build_collision_scene_graph=False).robot
    except Exception as error:  # the reader raises whatever its parts raise on a malformed file
        raise ModelError(f"{path}: not a URDF model that can be read: {type(error).__name__}: {error}") from None


def _urdf_body(path, link, joint_name, kind, parent, origin, axis) -> Body:
    what = f"{path}: link '{link.name}'"
    R, p = _pose(origin, f"{path}: joint '{joint_name}': origin")
    body = Body(link.name, parent, kind, joint_name, R, p)
    if axis is not None and JOINT_KINDS[kind][2]:
        body.axis = _array(axis, (3,), f"{path}: joint '{joint_name}': axis")
    inertial = link.inertial
    if inertial is not None:
        mass = inertial.mass
        if not isinstance(mass, (int, float)) or not math.isfinite(mass) or mass <= 0.0:
            raise ModelError(f"{what}: mass is {mass!r} kg, it must be positive (leave <inertial> out for a massless link)")
        R_BC, com = _pose(inertial.origin, f"{what}: inertial origin")
        tensor = np.zeros((3, 3)) if inertial.inertia is None else _array(inertial.inertia, (3, 3), f"{what}: inertia")
        body.mass, body.com, body.inertia = float(mass), com, R_BC @ tensor @ R_BC.T
    return body


def model_path(name: str) -> Path:
    """The file of a model: as named, or of that name among the shipped manipulators. Raises ValueError when there is none."""
    for path in (Path(name), Path(__file__).parents[2] / "stand_configs" / "manipulators" / name):
        if path.is_file():
            return path
    raise ValueError(f"model: no file {name!r}, and none of that name in stand_configs/manipulators")


def model_tables(name: str, data: dict | None = None) -> dict:
    """The tables of a model's file: those that the configuration carries (`data`), else from the file. Raises ValueError."""
    if data:
        return data
    path = model_path(name)
    try:
        return read_tables(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"model {name}: {error}") from None
