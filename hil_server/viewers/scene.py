"""What a three-dimensional viewer shows of a run: frames, in every instant, and things that hang on them.

Tree of frames (Monogram notation; all in m, quaternions x y z w):

    W  world of the stand         platform, leg_1_cylinder, leg_1_rod, ... leg_6_rod, load_cell
       target_port (T)            active_port (A); the bodies of the docking unit, as head, swing, ring
                                  target_craft, active_craft (centres of mass) as in orbit; orbit (N)
                                  the bodies of the crafts and of an arm, as active_left_wing, arm_tip

In a rehearsal no stand moves, and none is drawn: T stands at W. The same scene serves a log and the bus: a frame is made from the values of
one tick by name.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from hil_server.config.model import docking_port, vehicle
from hil_server.console.picture import Picture
from hil_server.errors import HilError
from hil_server.pages.crafts import SIDES, Placed, is_pose
from hil_server.viewers.poses import IDENTITY, Pose, inverse, product
from hil_server.viewers.stand import Stand, add_box, add_joint, add_rings
from rt_kernels.pictures import ACTIVE, LEG, SECTORS, TARGET, Values

FRAMES = {"T": "target_port", "A": "active_port"}
CRAFTS = {"target_craft": TARGET, "active_craft": ACTIVE}
STAND_COLOUR, CONTACT_COLOUR, FORCE_COLOUR = "#90a4ae", "#e53935", "#fdd835"
FORCE_M_PER_N = 2e-4  # length of the arrow of the contact force: 0.2 m for 1 kN
FORCE_SEEN = 5.0  # N
T = TypeVar("T")


@dataclass(frozen=True)
class Thing:
    """Hangs on a frame. lines: polylines; solids: (points (n, 3), triangles (m, 3)); boxes: (centre, size); rods: from the frame's origin
    along X, (length, radius)."""

    name: str
    frame: str
    colour: str
    lines: list[np.ndarray] = field(default_factory=list)
    solids: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    boxes: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    rods: list[tuple[float, float]] = field(default_factory=list)
    opacity: float = 1.0


@dataclass(frozen=True)
class Instant:
    """frames: child → (parent, pose in it); joints: of the stand, name → value (m, rad); contacts: points in T, m; force: (point, vector in
    N) in T, None below FORCE_SEEN; lines: name → segments in T (legs of a docking ring); bent: bodies of the crafts as they bend."""

    frames: dict[str, tuple[str, Pose]]
    joints: dict[str, float]
    contacts: list[np.ndarray]
    force: tuple[np.ndarray, np.ndarray] | None
    lines: dict[str, list[np.ndarray]]
    bent: list[Thing]


class Scene:
    """configuration: texts of the run by name, as its log or `describe` has them. stand: None where none moves or its table is not whole;
    missing: what could not be made, in words."""

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self.picture = Picture(configuration)
        document = self.picture.document
        self.missing: list[str] = []
        self.stand = None if self.picture.rehearsal else self._made("stand", lambda: Stand(document["stand"]))
        self._vehicles = {
            "active": self._made("active", lambda: vehicle(document["active_vehicle"], docking_port(document, "active"))),
            "target": self._made("target", lambda: vehicle(document["target_vehicle"], docking_port(document, "target"))),
        }
        self.missing += self.picture.crafts.missing

    def _made(self, what: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except (KeyError, TypeError, ValueError, AttributeError, OSError, HilError) as error:
            self.missing.append(f"{what}: {type(error).__name__}: {error}")
            return None

    @property
    def name(self) -> str:
        """Of the stand."""
        return str(self.picture.document.get("stand", {}).get("name", "stand"))

    # ------------------------------------------------------------------------------------------------------------ what moves
    def instant(self, values: Values) -> Instant:
        """Where everything is at one tick."""
        frame = self.picture.frame(values)
        frames: dict[str, tuple[str, Pose]] = {}
        joints: dict[str, float] = {}
        X_WT = IDENTITY
        if self.stand is not None:
            measured = values.get("X_WP_measured")
            X_WP = next((np.asarray(X, float) for X in (measured, values.get("X_WP")) if is_pose(X)), self.stand.neutral)
            frames |= {**self.stand.links(X_WP), **self.stand.fixed()}
            joints = self.stand.joints(X_WP)
            X_WT = self.stand.X_WT(X_WP)
        frames["target_port"] = ("W", X_WT)
        for name, X in frame["bodies"].items():
            if name not in FRAMES and is_pose(X):
                frames[name] = ("target_port", np.asarray(X, float))
        X_TA = next((X for X in (values.get("X_TA_measured"), values["X_TA"]) if is_pose(X)), IDENTITY)
        frames["active_port"] = ("target_port", np.asarray(X_TA, float))
        frames |= self._crafts(values)
        bodies = self.picture.crafts.poses(values, X_TA)
        frames |= {name.replace(" ", "_", 1): ("target_port", X_TB) for name, X_TB in bodies.items()}
        force = np.asarray(values["F_T"], float)[:3]
        contacts = [np.asarray(point, float) for point in frame["contacts"]]
        at = np.mean(contacts, axis=0) if contacts else np.asarray(frame["bodies"]["A"][:3], float)
        return Instant(
            frames,
            joints,
            contacts,
            (at, force) if np.linalg.norm(force) >= FORCE_SEEN else None,
            {"unit_legs": [np.array(leg, float) for leg in frame["legs"]]},
            self.crafts(frame.get("crafts", {})),
        )

    def _crafts(self, values: Values) -> dict[str, tuple[str, Pose]]:
        """The crafts as in orbit, seen from the target port: X_TV = inverse(X_VT), X_TC = X_TV inverse(X_NV) X_NC."""
        target, X_NV, X_NC = self._vehicles["target"], values.get("X_NV"), values.get("X_NC")
        if target is None or not (is_pose(X_NV) and is_pose(X_NC)):
            return {}
        X_VN = inverse(X_NV)
        return {
            "target_craft": ("target_port", inverse(target.X_port)),
            "active_craft": ("target_craft", product(X_VN, X_NC)),
            "orbit": ("target_craft", X_VN),
        }

    # ------------------------------------------------------------------------------------------------------ what hangs on it
    def unit(self) -> list[Thing]:
        """The docking unit's parts."""
        found = []
        for i, shape in enumerate(self.picture.unit.looks.shapes):
            solids = [_revolved(np.array(shape.revolved, float))] if shape.revolved and len(shape.revolved) > 1 else []
            name = shape.name or f"part {i + 1}"
            lines = [np.array(line, float) for line in shape.lines]
            found.append(Thing(f"{name} of {FRAMES.get(shape.body, shape.body)}", FRAMES.get(shape.body, shape.body), shape.colour, lines,
                               solids, opacity=0.6))  # fmt: skip
        return found

    def rig(self) -> list[Thing]:
        """The stand: base, platform, legs, load cell."""
        if self.stand is None:
            return []
        found = [Thing(f"outline of {frame}", frame, STAND_COLOUR, [np.array(line, float)]) for frame, line in self.stand.plates().items()]
        upper, lower = 0.75 * self.stand.length_min, 0.55 * self.stand.length_min
        for i in range(1, 7):
            found.append(Thing(f"cylinder {i}", f"leg_{i}_cylinder", STAND_COLOUR, rods=[(lower, 0.06)]))
            found.append(Thing(f"rod {i}", f"leg_{i}_rod", LEG, rods=[(-upper, 0.04)]))
        found.append(Thing("load cell", "load_cell", FORCE_COLOUR, boxes=[(np.zeros(3), np.array([0.05, 0.3, 0.3]))]))
        return found

    def crafts(self, frame: Placed | None = None) -> list[Thing]:
        """Each body of the crafts and of an arm as the pages draw it (`hil_server.pages.crafts`). frame: of an instant: those alone that
        bend, in their true size; else all, not bent."""
        found = []
        bend = frame.get("bend", {}) if frame else {}
        for side, tree in self.picture.crafts.trees.items():
            for link in tree.craft.links:
                eta = bend.get(f"{side} {link.name}")
                if link.looks and (frame is None or eta):
                    parts = [(solid.points if eta is None or solid.moves is None else solid.points + solid.moves @ eta, solid.faces)
                             for solid in link.looks]  # fmt: skip
                    found.append(Thing(
                        f"{link.name} of {tree.craft.name} ({side})", f"{side}_{link.name}", SIDES[side], opacity=0.25,
                        lines=[points[list(face)] for points, faces in parts for face in faces if len(face) == 2],
                        solids=[(points, corners) for points, faces in parts if len(corners := _triangles(faces))],
                    ))  # fmt: skip
        return found

    def urdf(self) -> str:
        """All of it as URDF, for viewers that draw no SceneUpdate: what moves freely hangs on `floating` joints, and /tf says where it is.
        Bodies of revolution are stacks of cylinders, those of the crafts boxes around them."""
        robot = ET.Element("robot", name=self.name)
        ET.SubElement(robot, "link", name="W")
        hung: dict[str, tuple[str, Pose | None]] = {"target_port": ("W", IDENTITY)}
        if self.stand is not None:
            self.stand.describe(robot)
            fixed, moving = ("target_port", "active_port") if self.stand.target_fixed else ("active_port", "target_port")
            hung = {fixed: ("W", self.stand.X_WF), moving: ("platform", self.stand.X_PM)}
        for thing in [*self.unit(), *self.crafts()]:
            hung.setdefault(thing.frame, ("target_port", None))
        links = {name: ET.SubElement(robot, "link", name=name) for name in hung}
        for name, (parent, X) in hung.items():
            add_joint(robot, f"{name}_joint", "floating" if X is None else "fixed", parent, name, IDENTITY if X is None else X)
        for shape in self.picture.unit.looks.shapes:
            if shape.revolved and len(shape.revolved) > 1:
                add_rings(links[FRAMES.get(shape.body, shape.body)], np.array(shape.revolved, float), shape.colour)
        for thing in self.crafts():
            points = np.vstack([*thing.lines, *(points for points, _ in thing.solids)])
            low, high = points.min(axis=0), points.max(axis=0)
            add_box(links[thing.frame], high - low, thing.colour, 0.5 * (low + high))
        ET.indent(robot)
        return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode") + "\n"


def _triangles(faces: Iterable[tuple[int, ...]]) -> np.ndarray:
    """(n, 3) numbers of points: every face as a fan, lines left out."""
    return np.array([(face[0], *pair) for face in faces for pair in zip(face[1:], face[2:], strict=False)], int).reshape(-1, 3)


def _revolved(profile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of a body of revolution about X, of its profile (n, 2): x, radius."""
    angle = np.arange(SECTORS) * 2.0 * np.pi / SECTORS
    x, r = profile[:, 0:1], profile[:, 1:2]
    points = np.stack([np.broadcast_to(x, (len(profile), SECTORS)), r * np.cos(angle), r * np.sin(angle)], axis=2).reshape(-1, 3)
    row, column = np.meshgrid(np.arange(len(profile) - 1), np.arange(SECTORS), indexing="ij")
    a, b = row * SECTORS + column, row * SECTORS + (column + 1) % SECTORS
    quads = np.stack([a, b, a + SECTORS, b, b + SECTORS, a + SECTORS], axis=-1).reshape(-1, 3)
    return points, quads
