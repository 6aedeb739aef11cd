"""The berthing head in pictures: cone and socket, head on its hinge, latches. Keys: those of the part."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rt_kernels.pictures import (
    ACTIVE,
    ARM_AND_HEAD,
    TARGET,
    Bar,
    Diagram,
    Looks,
    Picture,
    Poses,
    Shape,
    Values,
    circle,
    multiply,
    revolved,
    sphere,
    turned,
)


class BerthingHeadPicture(Picture):
    """The head turns on its hinge where the values say by how much."""

    ANALOG = (("latch 1", "rad"), ("latch 2", "rad"))

    # figure 8.3.8 of Yaskevich 2020: hinge and latches of the head
    DIAGRAMS = (
        Diagram("hinge of the head, deg", {"hinge_angle": "axis"}, 57.29577951308232),
        Diagram("latches, deg", {"latch_angle": "latch"}, 57.29577951308232),
        Diagram("latches have closed", {"latch_fired": "latch"}, flags=True),
        Diagram("contacts", {"contacts": "touching"}),
    )

    MIMIC = ARM_AND_HEAD
    KERNEL = True

    def build(self, m: dict[str, Any]) -> Looks:
        """Shapes of receptacle, head and latches, of the mechanism's keys m."""
        front, entry = m["plane_x_m"], m["plane_x_m"] + m["cone_height_m"]
        behind, bottom = entry + m["stop_thickness_m"], entry + m["socket_depth_m"]
        cavity = [
            [front, m["plane_radius_m"]], [front, m["mouth_radius_m"]], [entry, m["stop_radius_m"]], [behind, m["stop_radius_m"]],
            [behind, m["socket_radius_m"]], [bottom, m["socket_radius_m"]], [bottom, 0.0],
        ]  # fmt: skip
        looks = Looks(extent=m["plane_radius_m"] * 1.4, probe_m=m["hinge_x_m"])
        outline = [[x, r] for cone in reversed(m["cone_x_m"]) for x, r in (cone[2:], cone[:2])]
        spheres = [
            [[x + p[0], p[1], p[2]] for p in line] for x, r in zip(m["sphere_x_m"], m["sphere_radius_m"], strict=True) for line in sphere(r)
        ]
        looks.shapes += [
            Shape("T", TARGET, revolved(cavity), "cone", cavity),
            Shape("head", ACTIVE, [*revolved(outline), *spheres, [[0.0, 0.0, 0.0], [outline[0][0], 0.0, 0.0]]], "head", outline),
            Shape("A", ACTIVE, [circle(0.0, m["plane_radius_m"]), [[0.0, 0.0, 0.0], [m["hinge_x_m"], 0.0, 0.0]]], "base",
                  [[-0.02, m["plane_radius_m"]], [0.0, m["plane_radius_m"]], [0.0, 0.02], [m["hinge_x_m"], 0.02]]),
        ]  # fmt: skip
        for i in range(4):
            angle = np.pi / 2 * i
            looks.shapes.append(
                Shape("head", TARGET, [[[x, r * np.cos(angle), r * np.sin(angle)] for x, r in m["latch_points_m"]]], f"latch{i + 1}")
            )
        free = np.radians(m["hinge_free_angle_deg"]) * 2.0
        looks.bars = [
            *(Bar(f"hinge {name}", "hinge_angle", i, "rad", float(free), "axial") for i, name in enumerate(("psi", "theta"))),
            *(
                Bar(f"latch {i + 1}", "latch_angle", i, "rad", float(np.radians(m["latch_angle_max_deg"])), "lateral", ("latch_fired",))
                for i in range(4)
            ),
        ]
        return looks

    def bodies(self, values: Values, X_TA: Sequence[float]) -> tuple[Poses, Poses]:
        """Poses of the head (and none of the target) from the hinge angles [rad] and the pose X_TA (7,)."""
        turn = np.asarray(X_TA[3:])
        if "hinge_angle" in values:
            azimuth = math.radians(self.table.get("hinge_azimuth_deg", 0.0))
            psi, theta = values["hinge_angle"]
            for step in (turned(0, azimuth), turned(1, psi), turned(2, theta), turned(0, -azimuth)):
                turn = multiply(turn, step)
        return {"head": self.head(X_TA, turn), "swing": X_TA, "limiter": X_TA}, {}
