"""A docking ring on six legs in pictures, the plain one and the elastic one. Keys: those of the parts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rt_kernels.mechanisms.ring.parameters import CRANKS, crank_ends, joint_circles
from rt_kernels.pictures import ACTIVE, TARGET, Bar, Diagram, Line, Looks, Mimic, Picture, Poses, Shape, Values, circle, multiply, rotate

RING = Mimic(("side", "axial", "top"), (1,), (4, 5), (("bars", {"place": "spring"}),))


class RingPicture(Picture):
    """Both rings with petals and latches, the legs, and what their springs do."""

    ANALOG = tuple((f"rod {k}", "m") for k in range(1, 7))

    DIAGRAMS: tuple[Diagram, ...] = (
        Diagram("ring against the base, mm", {"ring_position": ""}, 1e3),
        Diagram("travel of the rods, mm", {"stroke": "rod"}, 1e3),
        Diagram("springs of the rods, N", {"spring_force": "rod"}),
        Diagram("latches pressed in, mm", {"latch_compression": "latch"}, 1e3),
        Diagram("latches have closed", {"latch_fired": "latch"}, flags=True),
        Diagram("plungers of the alignment sensors, mm", {"plunger": "plunger"}, 1e3),
    )

    MIMIC = RING

    def build(self, m: dict[str, Any]) -> Looks:
        """Shapes of the two rings with their petals, of the mechanism's keys m."""
        inner, face = m["inner_radius_m"], m["face_radius_m"]
        looks = Looks(extent=m["base_joint_radius_m"] * 1.35, probe_m=m["ready_distance_m"])
        profile = [[0.0, inner], [0.0, face]]
        looks.shapes += [
            Shape("T", TARGET, [circle(0.0, inner), circle(0.0, face), *petals(m, -1.0, np.pi / 3)], "target ring", profile),
            Shape("ring", ACTIVE, [circle(0.0, inner), circle(0.0, face), *petals(m, 1.0, 0.0)], "ring", [[0.0, inner], [-0.02, face]]),
            Shape("A", ACTIVE, [circle(0.0, m["base_joint_radius_m"]), circle(0.0, 0.2)], "base", [[-0.02, face + 0.1], [-0.02, inner]]),
        ]
        for i in range(6):
            latch = m["latch_tip_radius_m"], 2.0 * np.pi * (i // 2) / 3 + (-1) ** i * np.radians(m["latch_azimuth_deg"])
            r, angle = latch
            tip = [m["latch_tip_x_m"], r * np.cos(angle), r * np.sin(angle)]
            looks.shapes.append(Shape("ring", TARGET, [[tip, [tip[0] - m["latch_length_m"], tip[1], tip[2]]]], f"latch{i + 1}"))
        looks.bars = self.springs(m)
        return looks

    def springs(self, m: dict[str, Any]) -> list[Bar]:
        """A bar for every leg."""
        return [Bar(f"PM{i + 1}", "stroke", i, "m", full_stroke(m), "spring") for i in range(6)]

    def bodies(self, values: Values, X_TA: Sequence[float]) -> tuple[Poses, Poses]:
        """Poses of the ring and the legs in T from the auxiliary channels and the pose X_TA (7,)."""
        p, q = np.array(X_TA[:3]), X_TA[3:]
        if "ring_position" not in values:
            return {"ring": self.head(X_TA, np.asarray(q))}, {}
        turn = multiply(q, values["ring_quaternion"])
        return {"ring": [*(p + rotate(q, np.array(values["ring_position"]))), *turn]}, {}

    def legs(self, bodies: Mapping[str, Any]) -> list[tuple[np.ndarray, ...]]:
        """From the base to the ring, by the end of the crank where a leg has one."""

        def placed(name: str, points: np.ndarray) -> list[np.ndarray]:
            return [np.asarray(bodies[name][:3]) + rotate(bodies[name][3:], point) for point in points]

        base, ring = joint_circles(self.table)
        ends = [placed("A", base), placed("ring", ring)]
        if self.table.get("leg_kind", "UPS") in CRANKS:
            to_base = np.array(bodies["A"][3:]) * [-1, -1, -1, 1]
            p_AN = rotate(to_base, np.subtract(bodies["ring"][:3], bodies["A"][:3]))
            R_AN = np.column_stack([rotate(multiply(to_base, bodies["ring"][3:]), axis) for axis in np.eye(3)])
            ends.insert(1, placed("A", crank_ends(self.table, p_AN, R_AN)))
        return list(zip(*ends, strict=True))


class ElasticRingPicture(RingPicture):
    """The same with legs that are compressed and whose clutches block."""

    # figure 7.6.4 of Yaskevich 2020: clutches, cables, drive beside the rods
    DIAGRAMS = (
        *RingPicture.DIAGRAMS,
        Diagram("springs' compression, mm", {"compression": "rod"}, 1e3),
        Diagram("clutches hold", {"clutch_blocked": "clutch"}, flags=True),
        Diagram("rods in their initial position", {"initial_position": "rod"}, flags=True),
        Diagram("cables, N", {"cable_tension": "cable"}),
        Diagram("cables have caught", {"cable_joined": "cable"}, flags=True),
        Diagram("drive, rad/s", {"drive_rate": "drive", "wheel_rate": "motor"}),
    )

    def springs(self, m: dict[str, Any]) -> list[Bar]:
        """Bars of the six spring mechanisms, m."""
        flags = ("clutch_blocked", "initial_position")
        return [Bar(f"PM{i + 1}", "compression", i, "m", full_stroke(m), "spring", flags) for i in range(6)]


def full_stroke(m: Mapping[str, Any]) -> float:
    """Compression of a leg at its stop, m."""
    return float(m.get("stroke_m") or m["spring_forward_n"][-1][0])


def petals(m: Mapping[str, Any], forward: float, turn: float) -> list[Line]:
    """Three petals: trapezoids of the cylinder about X, from the ring plane towards `forward`."""
    lines = []
    base, tip = np.radians(m["petal_base_azimuth_deg"]), np.radians(m["petal_tip_azimuth_deg"])
    inward = m["petal_height_m"] * np.tan(np.radians(90.0 - m["petal_half_angle_deg"])) * 0.25
    for k in range(3):
        middle = turn + 2.0 * np.pi * k / 3
        corners = ((0.0, -base, 0.0), (1.0, -tip, inward), (1.0, tip, inward), (0.0, base, 0.0))
        line = []
        for height, angle, less in corners:
            r = m["inner_radius_m"] - less
            line.append([forward * height * m["petal_height_m"], r * np.cos(middle + angle), r * np.sin(middle + angle)])
        lines.append(line)
    return lines
