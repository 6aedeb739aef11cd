"""The manipulator of a run for the pictures: its joints with limits, and where they are in the arm's root frame.

Forward kinematics of the file that the dynamics part names: from link to link p <- p + R p_PJ_P, R <- R R_PJ exp(axis q).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.config import SHIPPED
from rt_kernels.extends import read_tables
from rt_kernels.model.bodies import Body
from rt_kernels.model.craft_file import read_bodies
from rt_kernels.pictures import Values

NEAR = 0.05  # of a joint's range: so near to a stop it is shown as touching


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation matrix about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    found: np.ndarray = np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * (K @ K)
    return found


class Arm:
    """bodies: the chain from the root to the tip. low, high: limits of the joints, rad, one for all or one each, none when the
    file gives none."""

    def __init__(self, bodies: list[Body], low: Sequence[float] = (), high: Sequence[float] = ()) -> None:
        self.bodies = bodies
        self.joints = [body for body in bodies if body.joint in ("revolute", "prismatic")]
        count = len(self.joints)
        self.low, self.high = (np.resize(limit, count).tolist() if len(limit) else [] for limit in (low, high))

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Arm | None":
        """The arm of a configuration, None when its dynamics have none or the file is not there."""
        table = document.get("dynamics", {})
        if not getattr(registry.part_of_table("dynamics", table), "MANIPULATOR", False):
            return None
        for name in (value for value in table.values() if isinstance(value, str) and value.endswith(".toml")):
            file = next((path for path in (Path(name), SHIPPED / name, SHIPPED / "manipulators" / name) if path.is_file()), None)
            if file is None:
                continue
            try:
                limits = read_tables(file).get("manipulator", {})
                low, high = (np.radians(np.atleast_1d(limits.get(f"{end}_deg", []))).tolist() for end in ("low", "high"))
                return cls(read_bodies(file), low, high)
            except (OSError, ValueError):
                continue
        return None

    def places(self, angles: Sequence[float]) -> list[list[float]]:
        """Origins of all bodies in the root frame, (n, 3), for the joint angles given in the order of the file."""
        frames: dict[str | None, tuple[np.ndarray, np.ndarray]] = {None: (np.zeros(3), np.eye(3))}
        left = iter(angles)
        found = [[0.0, 0.0, 0.0]]
        for body in self.bodies:
            p, R = frames[body.parent]
            p, R = p + R @ body.p_PJ_P, R @ body.R_PJ
            if body.joint == "revolute":
                R = R @ turn(body.axis, next(left, 0.0))
            elif body.joint == "prismatic":
                p = p + R @ (np.asarray(body.axis) * next(left, 0.0))
            frames[body.name] = p, R
            found.append([round(float(x), 4) for x in p])
        return found

    def things(self) -> dict[str, object]:
        """What the browser draws the arm from: names and limits of the joints [rad], and its reach [m]."""
        reach = sum(float(np.linalg.norm(body.p_PJ_P)) for body in self.bodies)
        names = [(body.joint_name or body.name).replace("_", " ") for body in self.joints]
        return {"joints": names, "low": self.low, "high": self.high, "reach": reach}

    def frame(self, values: Values) -> dict[str, object] | None:
        """What the picture of the arm needs at one instant, None when the run has no joint angles."""
        angles = values.get("arm_q")
        if angles is None:
            return None
        angles = list(angles)[: len(self.joints)]
        near = [
            int(bool(self.low) and not low + NEAR * (high - low) < q < high - NEAR * (high - low))
            for q, low, high in zip(angles, self.low or angles, self.high or angles, strict=False)
        ]

        def short(name: str) -> list[float]:
            return [round(float(x), 5) for x in values.get(name, [])]

        return {
            "places": self.places(angles),
            "q": [round(float(q), 4) for q in angles],
            "rate": short("arm_rate"),
            "command": short("arm_rate_command"),
            "near": near,
            "sigma": values.get("arm_sigma"),
            "limiting": values.get("arm_limiting_joint"),
            "tip": short("arm_X_NE"),
            "wrench": short("arm_wrench_E"),
            "waypoint": values.get("arm_waypoint"),
        }
