"""The docking units as lines and simple solids, out of a run's own configuration: what all pictures of the console are drawn from.

A `Shape` belongs to a body: `T` the target port, `A` the base of the active unit, and what moves on it: `head` (at the head's centre, X
along the probe), `swing` (at the hinge, the swinging body), `ring` (ring centre, ring axes). Coordinates in the body's axes, m; passive
parts are green, active ones orange. Where the configuration has no known unit, two flanges stand for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hil_server.errors import HilError

PASSIVE, ACTIVE, LEG = "#66bb6a", "#ffb74d", "#eceff1"
SECTORS = 32
Line = list[list[float]]


@dataclass(frozen=True)
class Shape:
    """lines: polylines. name: by which a contact can colour it (`on` of a frame). revolved: (x, radius) profile about X for the camera
    pictures, or None for a shape that they do not show."""

    body: str
    colour: str
    lines: list[Line]
    name: str = ""
    revolved: list[list[float]] | None = None


@dataclass(frozen=True)
class Bar:
    """A damper: channel (with component), unit, the value at which the bar is full, and where it stands (`axial`, `lateral`, `spring`)."""

    label: str
    channel: str
    index: int
    unit: str
    limit: float
    place: str
    flags: tuple[str, ...] = ()


@dataclass
class Unit:
    """layout: probe_cone, ring, berthing. extent: radius of what should be in sight, m. hinge: of the swinging body in A."""

    layout: str
    extent: float
    shapes: list[Shape] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    probe_m: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def circle(x: float, radius: float, centre: Sequence[float] = (0.0, 0.0)) -> Line:
    """Around the X axis, or around a parallel to it through (y, z) = centre."""
    angle = np.linspace(0.0, 2.0 * np.pi, SECTORS + 1)
    return np.column_stack((np.full_like(angle, x), centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle))).tolist()


def revolved(profile: Sequence[Sequence[float]], meridians: int = 8, centre: Sequence[float] = (0.0, 0.0)) -> list[Line]:
    """Wire-frame of a body of revolution about X: a circle at every vertex (x, radius), and meridians."""
    lines = [circle(x, r, centre) for x, r in profile if r > 0.0]
    for angle in np.arange(meridians) * 2.0 * np.pi / meridians:
        lines.append([[x, centre[0] + r * np.cos(angle), centre[1] + r * np.sin(angle)] for x, r in profile])
    return lines


def sphere(radius: float) -> list[Line]:
    """Three great circles about the origin."""
    angle = np.linspace(0.0, 2.0 * np.pi, SECTORS + 1)
    c, s, zero = radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(angle)
    return [np.column_stack(axes).tolist() for axes in ((c, s, zero), (c, zero, s), (zero, c, s))]


def ball_profile(radius: float) -> list[list[float]]:
    angle = np.linspace(0.0, np.pi, 7)
    return np.column_stack((-radius * np.cos(angle), radius * np.sin(angle))).tolist()


def unit_of(mechanism: Mapping[str, Any]) -> Unit:
    """The unit that a configuration's table `mechanism` describes."""
    part = mechanism.get("part", "")
    make = {
        "probe_cone": _probe_cone,
        "probe_cone_simple": _probe_cone_simple,
        "ring": _ring,
        "elastic_adaptive": _ring,
        "berthing_head": _berthing_head,
        "berthing_pins": _berthing_pins,
    }.get(part, _flanges)
    return make(_with_defaults(part, mechanism))


def _with_defaults(part: str, given: Mapping[str, Any]) -> dict[str, Any]:
    from hil_server import registry

    try:
        kernel: Any = registry.part("mechanisms", part)
    except HilError:
        return dict(given)
    return {p.key: p.default for p in kernel.PARAMETERS} | dict(given)


# ------------------------------------------------------------------------------------------------------------- probe and cone


def _probe_cone(m: dict[str, Any]) -> Unit:
    cone, length, exit_x = m["cone_profile_m"], m["probe_length_m"], m["exit_x_m"]
    unit = Unit("probe_cone", extent=max(1.5 * max(r for _, r in cone), 1.15 * m["pusher_radius_m"]), probe_m=length + exit_x)
    grooves = []
    for angle in np.arange(4) * np.pi / 2:
        y, z = np.cos(angle), np.sin(angle)
        side = np.array([0.0, -z, y]) * m["groove_wide_m"]
        centre = np.array([m["groove_stop_x_m"], m["groove_plane_m"] * y, m["groove_plane_m"] * z])
        end = centre + [m["groove_length_m"], 0.0, 0.0]
        grooves.append([p.tolist() for p in (centre - side, centre + side, end + side, end - side, centre - side)])
    unit.shapes += [Shape("T", PASSIVE, revolved(cone), "cone", cone), Shape("T", PASSIVE, grooves, "grooves")]
    radius = m["head_radius_m"]
    rod = min(0.3 * radius, 0.02)
    unit.shapes += [
        Shape("head", ACTIVE, sphere(radius), "head", ball_profile(radius)),
        Shape("head", ACTIVE, [[[-length, 0.0, 0.0], [-radius, 0.0, 0.0]]], "probe", [[-length, rod], [-radius, rod]]),
    ]
    for i in range(4):
        angle = np.pi / 4 + i * np.pi / 2
        points = [m["latch_pivot_m"], np.add(m["latch_pivot_m"], m["latch_tip_m"]), np.add(m["latch_pivot_m"], m["latch_nose_m"])]
        latch = [[float(x), float(r * np.cos(angle)), float(r * np.sin(angle))] for x, r in points]
        unit.shapes.append(Shape("head", ACTIVE, [latch], f"latch{i + 1}"))
    front, rear = m["lining_front_m"], m["lining_rear_m"]
    limiter = "limiter" if m["limiter"] == "movable" else "swing"
    unit.shapes += [
        Shape(limiter, ACTIVE, [circle(*front), circle(*rear)], "limiter", [rear, front]),
        Shape("swing", ACTIVE, [[[0.0, 0.0, 0.0], [exit_x, 0.0, 0.0]], circle(exit_x, 0.08)], "swinging body"),
        Shape("A", ACTIVE, [circle(m["plane_x_m"], m["pusher_radius_m"]), circle(0.0, 0.12)], "base"),
    ]
    for i in range(8):
        angle = np.pi / 4 * i
        line = [[x, r * np.cos(angle), r * np.sin(angle)] for x, r in (front, rear)]
        unit.shapes.append(Shape(limiter, PASSIVE, [line], f"lining{i + 1}"))
    for i in range(3):
        unit.shapes.append(Shape(f"roller{i + 1}", PASSIVE, sphere(m["roller_radius_m"]), f"roller{i + 1}"))
    low, high = m["probe_length_range_m"]
    slip = max(abs(row[0]) for row in m["axial_forward"])
    nut = max(row[0] for row in m["axial_brake_table"]) * m["screw_lead_m"] / (2.0 * np.pi)
    spring = max(row[0] for row in m["spring_forward"])
    crank = max(row[0] for row in m["brake_table"])
    unit.bars = [
        Bar("PM travel", "probe.stroke", 0, "m", max(high - length, length - low), "axial"),
        Bar("FrT travel" if m["axial_damper"] == "spring" else "FrT2 travel", "probe.clutch_slip", 0, "rad", slip, "axial"),
        Bar("axial MT speed", "probe.stroke_rate", 0, "m/s", nut, "axial"),
        *(Bar(f"lateral PM {i}", f"probe.spring{i}_stroke", 0, "m", spring, "lateral") for i in (1, 2)),
        *(Bar(f"lateral MT {i}", f"probe.brake{i}_rate", 0, "rad/s", crank, "lateral") for i in (1, 2)),
    ]
    if m["axial_damper"] != "spring":
        unit.bars.insert(1, Bar("FrT1 travel", "probe.clutch_slip1", 0, "rad", m["brake1_stroke_rad"], "axial"))
    if m["limiter"] == "movable":
        unit.bars.insert(2, Bar("XLimD", "probe.movable_x", 0, "m", m["limiter_travel_m"], "axial"))
    return unit


def _probe_cone_simple(m: dict[str, Any]) -> Unit:
    cone, radius, probe = m["cavity_m"], m["head_radius_m"], m["probe_m"]
    length = float(np.linalg.norm(probe))
    shapes = [
        Shape("T", PASSIVE, revolved(cone), "cone", cone),
        Shape("head", ACTIVE, sphere(radius), "head", ball_profile(radius)),
        Shape("head", ACTIVE, [[[-length, 0.0, 0.0], [-radius, 0.0, 0.0]]], "probe", [[-length, 0.02], [-radius, 0.02]]),
        Shape("A", ACTIVE, [circle(0.0, 0.4), circle(0.0, 0.12)], "base"),
    ]
    return Unit("probe_cone", max(r for _, r in cone) * 1.6, shapes, _analog_bars(), probe_m=length)


def _analog_bars() -> list[Bar]:
    """Where the damper's inner state is not known, the mechanism's own analogue signals are."""
    return [
        Bar("LPS", "signal_analog", 0, "m", 0.2, "axial"),
        Bar("BPR", "signal_analog", 1, "m", 0.05, "lateral"),
        Bar("BPT", "signal_analog", 2, "m", 0.05, "lateral"),
    ]


# ----------------------------------------------------------------------------------------------------------------------- ring


def _petals(m: Mapping[str, Any], forward: float, turn: float) -> list[Line]:
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


def _ring(m: dict[str, Any]) -> Unit:
    inner, face = m["inner_radius_m"], m["face_radius_m"]
    unit = Unit("ring", extent=m["base_joint_radius_m"] * 1.35, probe_m=m["ready_distance_m"])
    profile = [[0.0, inner], [0.0, face]]
    unit.shapes += [
        Shape("T", PASSIVE, [circle(0.0, inner), circle(0.0, face), *_petals(m, -1.0, np.pi / 3)], "passive ring", profile),
        Shape("ring", ACTIVE, [circle(0.0, inner), circle(0.0, face), *_petals(m, 1.0, 0.0)], "ring", [[0.0, inner], [-0.02, face]]),
        Shape("A", ACTIVE, [circle(0.0, m["base_joint_radius_m"]), circle(0.0, 0.2)], "base", [[-0.02, face + 0.1], [-0.02, inner]]),
    ]
    for i in range(6):
        latch = m["latch_tip_radius_m"], 2.0 * np.pi * (i // 2) / 3 + (-1) ** i * np.radians(m["latch_azimuth_deg"])
        r, angle = latch
        tip = [m["latch_tip_x_m"], r * np.cos(angle), r * np.sin(angle)]
        unit.shapes.append(Shape("ring", PASSIVE, [[tip, [tip[0] - m["latch_length_m"], tip[1], tip[2]]]], f"latch{i + 1}"))
    limit = m.get("stroke_m") or m["spring_forward_n"][-1][0]
    compression = m["part"] == "elastic_adaptive"
    unit.bars = [
        Bar(f"PM{i + 1}", "compression" if compression else "stroke", i, "m", float(limit), "spring",
            ("clutch_blocked", "initial_position") if compression else ())
        for i in range(6)
    ]  # fmt: skip
    return unit


def leg_joints(m: Mapping[str, Any]) -> tuple[list[list[float]], list[list[float]]]:
    """Joints of the six legs on the base (A axes) and on the ring (ring axes), in pairs."""

    def joints(radius: float, azimuth_deg: float) -> list[list[float]]:
        found = []
        for i in range(6):
            angle = 2.0 * np.pi * (i // 2) / 3 + (-1) ** i * np.radians(azimuth_deg)
            found.append([0.0, float(radius * np.cos(angle)), float(radius * np.sin(angle))])
        return found

    return joints(m["base_joint_radius_m"], m["base_joint_azimuth_deg"]), joints(m["ring_joint_radius_m"], m["ring_joint_azimuth_deg"])


# ------------------------------------------------------------------------------------------------------------------- berthing


def _berthing_head(m: dict[str, Any]) -> Unit:
    front, entry = m["plane_x_m"], m["plane_x_m"] + m["cone_height_m"]
    behind, bottom = entry + m["stop_thickness_m"], entry + m["socket_depth_m"]
    cavity = [
        [front, m["plane_radius_m"]], [front, m["mouth_radius_m"]], [entry, m["stop_radius_m"]], [behind, m["stop_radius_m"]],
        [behind, m["socket_radius_m"]], [bottom, m["socket_radius_m"]], [bottom, 0.0],
    ]  # fmt: skip
    unit = Unit("berthing", extent=m["plane_radius_m"] * 1.4, probe_m=m["hinge_x_m"])
    outline = [[x, r] for cone in reversed(m["cone_x_m"]) for x, r in (cone[2:], cone[:2])]
    spheres = [
        [[x + p[0], p[1], p[2]] for p in line] for x, r in zip(m["sphere_x_m"], m["sphere_radius_m"], strict=True) for line in sphere(r)
    ]
    unit.shapes += [
        Shape("T", PASSIVE, revolved(cavity), "cone", cavity),
        Shape("head", ACTIVE, [*revolved(outline), *spheres, [[0.0, 0.0, 0.0], [outline[0][0], 0.0, 0.0]]], "head", outline),
        Shape("A", ACTIVE, [circle(0.0, m["plane_radius_m"]), [[0.0, 0.0, 0.0], [m["hinge_x_m"], 0.0, 0.0]]], "base",
              [[-0.02, m["plane_radius_m"]], [0.0, m["plane_radius_m"]], [0.0, 0.02], [m["hinge_x_m"], 0.02]]),
    ]  # fmt: skip
    for i in range(4):
        angle = np.pi / 2 * i
        unit.shapes.append(
            Shape("head", PASSIVE, [[[x, r * np.cos(angle), r * np.sin(angle)] for x, r in m["latch_points_m"]]], f"latch{i + 1}")
        )
    free = np.radians(m["hinge_free_angle_deg"]) * 2.0
    unit.bars = [
        *(Bar(f"hinge {name}", "hinge_angle", i, "rad", float(free), "axial") for i, name in enumerate(("psi", "theta"))),
        *(
            Bar(f"latch {i + 1}", "latch_angle", i, "rad", float(np.radians(m["latch_angle_max_deg"])), "lateral", ("latch_fired",))
            for i in range(4)
        ),
    ]
    return unit


def _berthing_pins(m: dict[str, Any]) -> Unit:
    offset = m["pin_offset_m"]
    unit = Unit("berthing", extent=offset * 1.5)
    pin = [
        [0.0, m["pin_mouth_radius_m"]],
        [m["pin_cone_depth_m"], m["pin_socket_radius_m"]],
        [m["pin_socket_depth_m"], m["pin_socket_radius_m"]],
    ]
    lock = [
        [0.0, m["lock_mouth_radius_m"]],
        [m["lock_cone_depth_m"], m["lock_socket_radius_m"]],
        [m["lock_socket_depth_m"], m["lock_socket_radius_m"]],
    ]
    corners = [[0.0, y, z] for y, z in m["plane_points_m"]]
    plane = [[corners[i] for i in (0, 1, 3, 2, 0)]]
    unit.shapes.append(Shape("T", PASSIVE, [*revolved(lock), *plane], "lock socket", lock))
    unit.shapes.append(Shape("A", ACTIVE, plane, "plane"))
    ring = m["torus_radius_m"] + m["tube_radius_m"]
    x = m["lock_centre_x_m"]
    tube = [[0.0, ring], [x, ring], [x + m["tube_radius_m"], m["torus_radius_m"]]]
    unit.shapes.append(Shape("A", ACTIVE, revolved(tube), "lock", tube))
    for i, y in enumerate((-offset, offset)):
        unit.shapes.append(Shape("T", PASSIVE, revolved(pin, centre=(y, 0.0)), f"cone{i + 1}"))
        rod = [[0.0, m["pin_radius_m"]], [m["pin_centre_x_m"], m["pin_radius_m"]], [m["pin_centre_x_m"] + m["pin_radius_m"], 0.0]]
        unit.shapes.append(Shape("A", ACTIVE, revolved(rod, centre=(y, 0.0)), f"pin{i + 1}"))
    unit.bars = [
        Bar("lock depth", "lock_depth", 0, "m", m["roller_exit_m"], "axial"),
        Bar("lock force", "lock_force", 0, "N", 500.0, "axial"),
    ]
    return unit


def _flanges(m: Mapping[str, Any]) -> Unit:
    """An unknown unit: two flanges and an axis."""
    shapes = [
        Shape(
            "T", PASSIVE, [circle(0.0, 0.4), circle(0.0, 0.2), [[0.0, 0.0, 0.0], [0.3, 0.0, 0.0]]], "target port", [[0.0, 0.4], [0.05, 0.4]]
        ),
        Shape(
            "A",
            ACTIVE,
            [circle(0.0, 0.4), circle(0.0, 0.2), [[-0.3, 0.0, 0.0], [0.0, 0.0, 0.0]]],
            "active port",
            [[-0.05, 0.4], [0.0, 0.4]],
        ),
    ]
    return Unit("probe_cone", 0.6, shapes, _analog_bars())
