"""The central docking unit in pictures: probe and cone, swinging body, limiter, rollers, dampers. Keys: those of the part."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rt_kernels.pictures import (
    ACTIVE,
    TARGET,
    Bar,
    Diagram,
    Looks,
    Picture,
    Poses,
    Shape,
    Values,
    along,
    ball_profile,
    circle,
    multiply,
    revolved,
    rotate,
    sphere,
    turned,
)

AXES = ("x", "y", "z")
LININGS, ROLLERS = 8, 3
SURFACES = (("lining", LININGS), ("roller", ROLLERS))


class ProbeConePicture(Picture):
    """The unit with its inner state, where the values have it (channels `probe.*`)."""

    ANALOG = (("LPS", "m"), ("BPR", "m"), ("BPT", "m"), ("planes' gap", "m"), ("clutch slip", "rad"), ("deepest", "m"), ("limiter", "m"),
              ("drive", "rad/s"))  # fmt: skip

    # what figures 6.2.2 to 6.2.4, 6.4.3 and 6.5.3 of Yaskevich 2020 draw of a docking
    DIAGRAMS = (
        Diagram("travel of probe and limiter, mm", {"probe.stroke": "probe", "probe.limiter": "limiter"}, 1e3),
        Diagram("movable limiter on the body, mm", {"probe.movable_x": "limiter"}, 1e3),
        Diagram("probe, deg", {"probe.swing_y": "swing y", "probe.swing_z": "swing z", "probe.bend_y": "bend y", "probe.bend_z": "bend z",
                               "probe.twist": "twist"}, 57.29577951308232),
        Diagram("rods of the lateral dampers, mm", {"probe.spring1_stroke": "rod 1", "probe.spring2_stroke": "rod 2"}, 1e3),
        Diagram("brakes, N·m", {"probe.brake1_torque": "brake 1", "probe.brake2_torque": "brake 2", "probe.clutch_moment": "clutch"}),
        Diagram("slip of the clutches, rad", {"probe.clutch_slip": "main", "probe.clutch_slip1": "first"}),
        Diagram("drive, rad/s", {"probe.drive_rate": "drive", "probe.drive_wheel_a_rate": "motor a", "probe.drive_wheel_b_rate": "motor b",
                                 "probe.nut_rate": "nut"}),
        Diagram("head in the cone, N", {f"probe.head_contact{i}_force": f"contact {i}" for i in (1, 2, 3)}),
        Diagram("rollers on the cone, N", {f"probe.roller{i}_force": f"roller {i}" for i in range(1, ROLLERS + 1)}),
        Diagram("latches in the receptacle, N", {f"probe.latch{i}_force": f"latch {i}" for i in range(1, 5)}),
        Diagram("pushers' gaps, mm", {f"probe.pusher{i}_gap": f"pusher {i}" for i in range(1, 5)}, 1e3),
        Diagram("pushers, N", {f"probe.pusher{i}_force": f"pusher {i}" for i in range(1, 5)}),
    )  # fmt: skip

    def build(self, m: dict[str, Any]) -> Looks:
        """Shapes of receptacle, probe, head, limiter and rings, of the mechanism's keys m."""
        cone, length, exit_x = m["cone_profile_m"], m["probe_length_m"], m["exit_x_m"]
        looks = Looks(extent=max(1.5 * max(r for _, r in cone), 1.15 * m["pusher_radius_m"]), probe_m=length + exit_x)
        grooves = []
        for angle in np.arange(4) * np.pi / 2:
            y, z = np.cos(angle), np.sin(angle)
            side = np.array([0.0, -z, y]) * m["groove_wide_m"]
            centre = np.array([m["groove_stop_x_m"], m["groove_plane_m"] * y, m["groove_plane_m"] * z])
            end = centre + [m["groove_length_m"], 0.0, 0.0]
            grooves.append([p.tolist() for p in (centre - side, centre + side, end + side, end - side, centre - side)])
        looks.shapes += [Shape("T", TARGET, revolved(cone), "cone", cone), Shape("T", TARGET, grooves, "grooves")]
        radius = m["head_radius_m"]
        rod = min(0.3 * radius, 0.02)
        looks.shapes += [
            Shape("head", ACTIVE, sphere(radius), "head", ball_profile(radius)),
            Shape("head", ACTIVE, [[[-length, 0.0, 0.0], [-radius, 0.0, 0.0]]], "probe", [[-length, rod], [-radius, rod]]),
        ]
        for i in range(4):
            angle = np.pi / 4 + i * np.pi / 2
            points = [m["latch_pivot_m"], np.add(m["latch_pivot_m"], m["latch_tip_m"]), np.add(m["latch_pivot_m"], m["latch_nose_m"])]
            latch = [[float(x), float(r * np.cos(angle)), float(r * np.sin(angle))] for x, r in points]
            looks.shapes.append(Shape("head", ACTIVE, [latch], f"latch{i + 1}"))
        front, rear = m["lining_front_m"], m["lining_rear_m"]
        limiter = "limiter" if m["limiter"] == "movable" else "swing"
        looks.shapes += [
            Shape(limiter, ACTIVE, [circle(*front), circle(*rear)], "limiter", [rear, front]),
            Shape("swing", ACTIVE, [[[0.0, 0.0, 0.0], [exit_x, 0.0, 0.0]], circle(exit_x, 0.08)], "swinging body"),
            Shape("A", ACTIVE, [circle(m["plane_x_m"], m["pusher_radius_m"]), circle(0.0, 0.12)], "base"),
        ]
        for i in range(LININGS):
            angle = np.pi / 4 * i
            line = [[x, r * np.cos(angle), r * np.sin(angle)] for x, r in (front, rear)]
            looks.shapes.append(Shape(limiter, TARGET, [line], f"lining{i + 1}"))
        for i in range(ROLLERS):
            looks.shapes.append(Shape(f"roller{i + 1}", TARGET, sphere(m["roller_radius_m"]), f"roller{i + 1}"))
        low, high = m["probe_length_range_m"]
        slip = max(abs(row[0]) for row in m["axial_forward"])
        nut = max(row[0] for row in m["axial_brake_table"]) * m["screw_lead_m"] / (2.0 * np.pi)
        spring = max(row[0] for row in m["spring_forward"])
        crank = max(row[0] for row in m["brake_table"])
        # two brakes stand in the place of spring mechanism, clutch and magnetic brakes
        springs = m["axial_damper"] == "spring"
        looks.bars = [
            Bar("PM travel" if springs else "probe travel", "probe.stroke", 0, "m", max(high - length, length - low), "axial"),
            *([] if springs else [Bar("FrT1 travel", "probe.clutch_slip1", 0, "rad", m["brake1_stroke_rad"], "axial")]),
            Bar("FrT travel" if springs else "FrT2 travel", "probe.clutch_slip", 0, "rad", slip, "axial"),
            *([Bar("axial MT speed", "probe.stroke_rate", 0, "m/s", nut, "axial")] if springs else []),
            *(Bar(f"lateral PM {i}", f"probe.spring{i}_stroke", 0, "m", spring, "lateral") for i in (1, 2)),
            *(Bar(f"lateral MT {i}", f"probe.brake{i}_rate", 0, "rad/s", crank, "lateral") for i in (1, 2)),
        ]
        if m["limiter"] == "movable":
            looks.bars.append(Bar("XLimD", "probe.movable_x", 0, "m", m["limiter_travel_m"], "axial", zero=m["limiter_front_m"]))
        return looks

    def bodies(self, values: Values, X_TA: Sequence[float]) -> tuple[Poses, Poses]:
        """Poses of the moving bodies in T from the auxiliary channels and the pose X_TA (7,)."""
        if "probe.head_x" not in values:
            return super().bodies(values, X_TA)
        p, q = np.array(X_TA[:3]), X_TA[3:]
        bodies: Poses = {}
        rollers: Poses = {}
        head = [values[f"probe.head_{a}"] for a in AXES]
        bodies["head"] = [*head, *along([values[f"probe.axis_{a}"] for a in AXES])]
        swing = multiply(turned(1, values["probe.swing_y"]), turned(2, values["probe.swing_z"]))
        bodies["swing"] = [*p, *multiply(q, swing)]
        back = values.get("probe.movable_x", 0.0)
        bodies["limiter"] = [*(p + rotate(bodies["swing"][3:], np.array([back, 0.0, 0.0]))), *bodies["swing"][3:]]
        for i in range(1, ROLLERS + 1):
            place = [values.get(f"probe.roller{i}_{a}", 0.0) for a in AXES]
            if any(place):
                rollers[f"roller{i}"] = [*place, 0, 0, 0, 1]
        return bodies, rollers

    def contacts(self, values: Values) -> list[list[float]] | None:
        """Points of contact in T [m]; None without the auxiliary channels."""
        if "probe.head_x" not in values:
            return None
        names = [f"probe.{n}{i}" for n, count in (("head_contact", 3), *SURFACES) for i in range(1, count + 1)]
        return [[values[f"{name}_r_{a}"] for a in AXES] for name in names if values.get(f"{name}_depth", 0.0) > 0.0]

    def touching(self, values: Values) -> list[str]:
        """Names of the surfaces and latches that touch."""
        names = [f"{kind}{i}" for kind, count in SURFACES for i in range(1, count + 1)]
        on = [name for name in names if values.get(f"probe.{name}_depth", 0.0) > 0.0]
        on += [f"latch{i}" for i in range(1, 5) if values.get(f"probe.latch{i}_phase", 0.0) >= 2.0]
        return on + super().touching(values)
