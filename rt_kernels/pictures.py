"""How a docking mechanism declares what it looks like: the declaration is plain data and set-up code, nothing of it runs in a tick.

A mechanism has a class attribute `PICTURE`, a subclass of `Picture`, made from its table of the configuration with all defaults. The
picture gives the things themselves (`looks`) and, for every instant, where they are (`bodies`) and what touches (`contacts`, `touching`),
out of the values of one tick by name; what a run does not have (the inner state of a real docking unit) is left out. `MIMIC` says what
stands in the mimic display. The console draws it; a mechanism without a picture is shown as two flanges.

A `Shape` belongs to a body: `T` the target port, `A` the base of the active unit, and what moves on it, as `head` (at the head's centre, X
along the probe) or `swing` (at the hinge, the swinging body). Coordinates in the body's axes, m; passive parts are blue, active ones
orange. Poses are [x, y, z, qx, qy, qz, qw] in T.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

TARGET, ACTIVE, LEG = "#4fc3f7", "#ffb74d", "#eceff1"  # blue and orange: told apart by every eye
SECTORS = 32
Line = list[list[float]]
Values = Mapping[str, Any]
Poses = dict[str, Any]


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
    """A damper: channel (with component), unit, the value at which the bar is full, where it stands (`axial`, `lateral`, `spring`), and
    `zero`, the channel without deflection."""

    label: str
    channel: str
    index: int
    unit: str
    limit: float
    place: str
    flags: tuple[str, ...] = ()
    zero: float = 0.0


@dataclass(frozen=True)
class Diagram:
    """One diagram of the report of a run over time: the unit's auxiliary channels (whole ones, or `name[i]`) with their labels; what a run
    does not have is left out. factor: from the channels' unit to that of `label`. flags: the channels are 0 or 1 and are drawn as bars."""

    label: str
    channels: Mapping[str, str]
    factor: float = 1.0
    flags: bool = False


@dataclass(frozen=True)
class Mimic:
    """What stands in the mimic display. projections: of the wire-frames in the upper window (side, top, axial, axonometric); numbers:
    groups beside them before the capture; below: groups in the middle window; panels: kinds and options of what is drawn there."""

    projections: tuple[str, ...]
    numbers: tuple[int, ...]
    below: tuple[int, ...]
    panels: tuple[tuple[str, dict[str, Any]], ...]


DAMPERS: tuple[tuple[str, dict[str, Any]], ...] = (("bars", {"place": "axial"}), ("bars", {"place": "lateral"}))
ONE_PROBE = Mimic(("side", "top"), (1, 2), (4, 5), (("lateral", {}), *DAMPERS))
ARM_AND_HEAD = Mimic(("axial", "side", "axonometric"), (1, 2), (4,), (("arm", {}), ("sticks", {}), *DAMPERS))


@dataclass
class Looks:
    """What does not change during a run. extent: radius of what should be in sight, m; probe_m: from the base to the head, along X."""

    extent: float
    shapes: list[Shape] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    probe_m: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain tables and lists, for JSON."""
        return asdict(self)


class Picture:
    """The picture of a unit of which nothing is known: two flanges and an axis. table: of the mechanism, with all defaults.

    KERNEL: the part answers for a pose alone where the units touch (`contacts(X_TA)`). DIAGRAMS: the state of the unit over time, as the
    texts draw it. ANALOG: label and unit of its analogue signals, in their order."""

    MIMIC = ONE_PROBE
    ANALOG: tuple[tuple[str, str], ...] = ()
    DIAGRAMS: tuple[Diagram, ...] = ()
    KERNEL = False

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = dict(table)
        self.looks = self.build(self.table)

    def build(self, m: dict[str, Any]) -> Looks:
        """Shapes and bars out of the table."""
        axis = [[0.0, 0.0, 0.0], [0.3, 0.0, 0.0]]
        back = [[-0.3, 0.0, 0.0], [0.0, 0.0, 0.0]]
        shapes = [
            Shape("T", TARGET, [circle(0.0, 0.4), circle(0.0, 0.2), axis], "target port", [[0.0, 0.4], [0.05, 0.4]]),
            Shape("A", ACTIVE, [circle(0.0, 0.4), circle(0.0, 0.2), back], "active port", [[-0.05, 0.4], [0.0, 0.4]]),
        ]
        return Looks(0.6, shapes, [])

    def bodies(self, values: Values, X_TA: Sequence[float]) -> tuple[Poses, Poses]:
        """Poses of the bodies besides T and A, and of those that a picture of the axis leaves out."""
        return {"head": self.head(X_TA, np.asarray(X_TA[3:])), "swing": X_TA, "limiter": X_TA}, {}

    def head(self, X_TA: Sequence[float], turn: np.ndarray) -> list[float]:
        """A head on the axis of A, `probe_m` ahead of it, with this attitude."""
        return [*(np.array(X_TA[:3]) + rotate(X_TA[3:], np.array([self.looks.probe_m, 0.0, 0.0]))), *turn]

    def legs(self, bodies: Mapping[str, Any]) -> list[tuple[np.ndarray, ...]]:
        """Joints of each leg of a platform that the unit carries, from its base on, in T."""
        return []

    def contacts(self, values: Values) -> list[list[float]] | None:
        """Contact points in T where the values give them, None where they do not."""
        return None

    def touching(self, values: Values) -> list[str]:
        """Names of the parts that touch, and of the latches that have fired: drawn red."""
        return [f"latch{i + 1}" for i, fired in enumerate(as_list(values.get("latch_fired", []))) if fired]


# ------------------------------------------------------------------------------------------------------------------ lines


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
    """Profile (x, rho) of a ball about the origin, m."""
    angle = np.linspace(0.0, np.pi, 7)
    return np.column_stack((-radius * np.cos(angle), radius * np.sin(angle))).tolist()


def damper_bars() -> list[Bar]:
    """The analogue signals of a central unit of which the damper's inner state is not known."""
    return [
        Bar("LPS", "signal_analog", 0, "m", 0.2, "axial"),
        Bar("BPR", "signal_analog", 1, "m", 0.05, "lateral"),
        Bar("BPT", "signal_analog", 2, "m", 0.05, "lateral"),
    ]


# ------------------------------------------------------------------------------------------------------------------ turns


def as_list(value: Any) -> list[float]:
    """The value as a list; a single number becomes a list of one."""
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def rotate(q: Any, v: Any) -> np.ndarray:
    """v turned by the quaternion [x, y, z, w]."""
    u, w = np.asarray(q[:3]), q[3]
    t = 2.0 * np.cross(u, v)
    return np.asarray(v + w * t + np.cross(u, t))


def multiply(p: Any, q: Any) -> np.ndarray:
    """Product of two quaternions [x, y, z, w]."""
    u, v = np.asarray(p[:3]), np.asarray(q[:3])
    return np.append(p[3] * v + q[3] * u + np.cross(u, v), p[3] * q[3] - u @ v)


def turned(axis: int, angle: float) -> np.ndarray:
    """Quaternion of a turn about an axis of the frame."""
    q = np.zeros(4)
    q[axis], q[3] = np.sin(angle / 2), np.cos(angle / 2)
    return q


def along(direction: Any) -> np.ndarray:
    """The shortest turn that brings X into this direction."""
    d = np.asarray(direction) / max(1e-12, float(np.linalg.norm(direction)))
    q = np.array([0.0, -d[2], d[1], 1.0 + d[0]])
    norm = float(np.linalg.norm(q))
    return q / norm if norm > 1e-9 else np.array([0.0, 0.0, 1.0, 0.0])
