"""The stand for viewers: its links in every instant, its joints' values, and the same as URDF (no model of dynamics: no inertia).

A parallel stand is a tree in URDF: W; the platform by six joints one after the other (x y z, then yaw about Y, pitch about Z, roll about
X); each leg for itself: two turns at its foot, then the extension along X. Where the legs end follows from the platform's pose, so that
the tree closes by the values of its joints (`joints`). Leg frames: origin at the foot, X along the leg of the neutral pose.
"""

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hil_server.config import model, physics
from hil_server.console.picture import angles_deg
from hil_server.viewers.poses import IDENTITY, Pose, inverse, pointing, pose, product
from rt_kernels.pictures import multiply, rotate, turned

LEGS = range(1, 7)
PLATFORM_JOINTS = ("platform_x", "platform_y", "platform_z", "platform_yaw", "platform_pitch", "platform_roll")
AXES = ("1 0 0", "0 1 0", "0 0 1", "0 1 0", "0 0 1", "1 0 0")  # of these joints
RADIUS = 0.06  # m, of a cylinder; its rod has two thirds


class Stand:
    """table: the stand's, of a configuration. base_joints, platform_joints: (6, 3) m in W and in P; X_WF: port of the unit that does not
    move, in W; X_PM: port of the other one on the platform; X_S: load cell in `load_cell_parent`. Raises KeyError, ValueError where the
    table is not whole."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        platform = table["platform"]
        self.base_joints = np.array(platform["base_joints_m"], float)
        self.platform_joints = np.array(platform["platform_joints_m"], float)
        self.length_min, self.length_max = float(platform["leg_length_min_m"]), float(platform["leg_length_max_m"])
        angles = [platform.get(f"neutral_{name}_deg", 0.0) for name in ("yaw", "pitch", "roll")]
        self.neutral = physics.pose(platform["neutral_position_m"], angles)
        mounting = model.Stand(table).mounting
        self.target_fixed = (mounting.unit_on_load_cell == "target") == (mounting.load_cell_on == "floor")
        self.X_WF, self.X_PM = np.array(mounting.X_WF, float), np.array(mounting.X_PM, float)
        self.load_cell_parent = "W" if mounting.load_cell_on == "floor" else "platform"
        self.X_S = np.array(mounting.X_S, float)
        ends = self.joints_in_w(self.neutral)
        self.feet = [pointing(foot, end) for foot, end in zip(self.base_joints, ends, strict=True)]

    def joints_in_w(self, X_WP: Pose) -> np.ndarray:
        """The legs' upper ends, (6, 3) m in W."""
        return np.array([X_WP[:3] + rotate(X_WP[3:], joint) for joint in self.platform_joints])

    def X_WT(self, X_WP: Pose) -> Pose:
        """The target port in W."""
        return self.X_WF if self.target_fixed else product(X_WP, self.X_PM)

    def joints(self, X_WP: Pose) -> dict[str, float]:
        """Value of every joint of the URDF, m or rad, for a pose of the platform."""
        values = dict(zip(PLATFORM_JOINTS, [*X_WP[:3], *np.radians(angles_deg(X_WP[3:]))], strict=True))
        for i, foot, end in zip(LEGS, self.feet, self.joints_in_w(X_WP), strict=True):
            d = rotate(inverse(foot)[3:], end - foot[:3])
            length = float(np.linalg.norm(d))
            values |= {
                f"leg_{i}_turn": math.atan2(d[1], d[0]),
                f"leg_{i}_tilt": -math.asin(d[2] / length),
                f"leg_{i}": length,
            }
        return {name: float(value) for name, value in values.items()}

    def links(self, X_WP: Pose) -> dict[str, tuple[str, Pose]]:
        """Child → (parent, pose in it) of every moving link that is drawn; X of a rod runs from its upper end on outward."""
        found: dict[str, tuple[str, Pose]] = {"platform": ("W", np.asarray(X_WP, float))}
        values = self.joints(X_WP)
        for i, foot in zip(LEGS, self.feet, strict=True):
            turn = multiply(turned(2, values[f"leg_{i}_turn"]), turned(1, values[f"leg_{i}_tilt"]))
            cylinder = product(foot, pose((0.0, 0.0, 0.0), turn))
            found[f"leg_{i}_cylinder"] = ("W", cylinder)
            found[f"leg_{i}_rod"] = ("W", product(cylinder, pose((values[f"leg_{i}"], 0.0, 0.0))))
        return found

    def fixed(self) -> dict[str, tuple[str, Pose]]:
        """Child → (parent, pose in it) of what is bolted on: the load cell."""
        return {"load_cell": (self.load_cell_parent, self.X_S)}

    def plates(self) -> dict[str, list[list[float]]]:
        """Outlines of base (in W) and platform (in its frame): their joints in order around, closed."""
        return {"W": [*self.base_joints.tolist(), self.base_joints[0].tolist()],
                "platform": [*self.platform_joints.tolist(), self.platform_joints[0].tolist()]}  # fmt: skip

    def describe(self, robot: ET.Element) -> None:
        """Adds the stand's links and joints to a robot that has W."""
        _disc(ET.SubElement(robot, "link", name="load_cell"), 0.15, 0.05)
        add_joint(robot, "load_cell_mount", "fixed", self.load_cell_parent, "load_cell", self.X_S)
        parent = "W"
        for joint, axis in zip(PLATFORM_JOINTS, AXES, strict=True):
            child = "platform" if joint == PLATFORM_JOINTS[-1] else f"{joint}_stage"
            kind, limit = ("prismatic", 10.0) if joint in PLATFORM_JOINTS[:3] else ("revolute", math.pi)
            link = ET.SubElement(robot, "link", name=child)
            if child == "platform":
                _disc(link, float(np.linalg.norm(self.platform_joints[:, 1:], axis=1).max()), 0.04)
            add_joint(robot, joint, kind, parent, child, IDENTITY, axis, -limit, limit)
            parent = child
        for i, foot in zip(LEGS, self.feet, strict=True):
            for link_name, length, radius in ((f"leg_{i}_yoke", 0.0, 0.0), (f"leg_{i}_cylinder", self.length_min * 0.55, RADIUS),
                                              (f"leg_{i}_rod", -self.length_min * 0.75, RADIUS * 2 / 3)):  # fmt: skip
                link = ET.SubElement(robot, "link", name=link_name)
                if length:
                    _bar(link, length, radius)
            add_joint(robot, f"leg_{i}_turn", "revolute", "W", f"leg_{i}_yoke", foot, "0 0 1", -1.5, 1.5)
            add_joint(robot, f"leg_{i}_tilt", "revolute", f"leg_{i}_yoke", f"leg_{i}_cylinder", IDENTITY, "0 1 0", -1.5, 1.5)
            add_joint(robot, f"leg_{i}", "prismatic", f"leg_{i}_cylinder", f"leg_{i}_rod", IDENTITY, "1 0 0",
                      self.length_min, self.length_max)  # fmt: skip


def add_joint(robot: ET.Element, name: str, kind: str, parent: str, child: str, X: Pose, axis: str = "", low: float = 0.0,
              high: float = 0.0) -> None:  # fmt: skip
    """A joint of a URDF."""
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    ET.SubElement(joint, "origin", xyz=_numbers(X[:3]), rpy=_numbers(_fixed_angles(X[3:])))
    if axis:
        ET.SubElement(joint, "axis", xyz=axis)
        ET.SubElement(joint, "limit", lower=f"{low:.9g}", upper=f"{high:.9g}", effort="0", velocity="0")


def add_box(link: ET.Element, size: Iterable[float], colour: str, middle: Iterable[float] = (0.0, 0.0, 0.0)) -> None:
    """A box, its edges along the link's axes. colour: #rrggbb."""
    visual = ET.SubElement(link, "visual")
    ET.SubElement(visual, "origin", xyz=_numbers(middle), rpy=_numbers((0.0, 0.0, 0.0)))
    ET.SubElement(ET.SubElement(visual, "geometry"), "box", size=_numbers(size))
    _material(visual, colour, 0.3)


def add_rings(link: ET.Element, profile: np.ndarray, colour: str) -> None:
    """A body of revolution about X as a stack of cylinders. profile: (n, 2) x and radius, m."""
    for (x0, r0), (x1, r1) in zip(profile[:-1], profile[1:], strict=True):
        visual = ET.SubElement(link, "visual")
        ET.SubElement(visual, "origin", xyz=_numbers(((x0 + x1) / 2, 0.0, 0.0)), rpy=_numbers((0.0, math.pi / 2, 0.0)))
        radius, length = max((r0 + r1) / 2, 1e-3), max(abs(x1 - x0), 5e-3)
        ET.SubElement(ET.SubElement(visual, "geometry"), "cylinder", radius=f"{radius:.6g}", length=f"{length:.6g}")
        _material(visual, colour, 0.8)


def _material(visual: ET.Element, colour: str, opacity: float) -> None:
    material = ET.SubElement(visual, "material", name=f"{colour} {opacity:g}")
    ET.SubElement(material, "color", rgba=_numbers([*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)), opacity]))


def _bar(link: ET.Element, length: float, radius: float) -> None:
    """A cylinder from the link's origin along X."""
    visual = ET.SubElement(link, "visual")
    ET.SubElement(visual, "origin", xyz=_numbers((length / 2, 0.0, 0.0)), rpy=_numbers((0.0, math.pi / 2, 0.0)))
    ET.SubElement(ET.SubElement(visual, "geometry"), "cylinder", radius=f"{radius:.6g}", length=f"{abs(length):.6g}")


def _disc(link: ET.Element, radius: float, height: float) -> None:
    """A disc around X, just below the link's origin."""
    visual = ET.SubElement(link, "visual")
    ET.SubElement(visual, "origin", xyz=_numbers((-height / 2, 0.0, 0.0)), rpy=_numbers((0.0, math.pi / 2, 0.0)))
    ET.SubElement(ET.SubElement(visual, "geometry"), "cylinder", radius=f"{radius:.6g}", length=f"{height:.6g}")


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{float(value):.12g}" for value in values)


def _fixed_angles(q: Iterable[float]) -> tuple[float, float, float]:
    """URDF's roll, pitch, yaw of a quaternion: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z, w = (float(part) for part in q)
    pitch = math.asin(max(-1.0, min(1.0, 2.0 * (w * y - x * z))))
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return roll, pitch, yaw
