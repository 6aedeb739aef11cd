"""What a page draws: once per run the things themselves (`Picture.things`), then for every instant where they are (`Picture.frame`).

The same two for a live run, whose values come from the bus, and for a log. A frame is made from the values of one tick by name; a value
that a run does not have (the inner state of a real docking unit, an arm) is left out, and the page shows that it is not known.

Poses are [x, y, z, qx, qy, qz, qw] in the target port T; angles are yaw, pitch, roll (about Y, Z, X, in that order) in degrees.
"""

import contextlib
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from hil_server import registry
from hil_server.console.arm import Arm
from hil_server.errors import HilError
from hil_server.line.run_header import CONFIGURATION
from hil_server.pages.crafts import Crafts, Placed
from rt_kernels.codes import code_name
from rt_kernels.layout import BITS
from rt_kernels.pictures import Bar, Poses, Values, as_list, rotate
from rt_kernels.pictures import Picture as UnitPicture

FORCE_SEEN = 5.0  # N; below it a measured force has no direction worth drawing
AXES = ("x", "y", "z")
ANGLES = ("yaw ψ", "pitch θ", "roll φ")
Point = Sequence[float] | np.ndarray


class Frame(TypedDict, total=False):
    """One instant. bodies: name → pose; contacts: points in T, m; on: parts that touch; legs: from, to; numbers: rows of NUMBERS."""

    bodies: dict[str, list[float]]
    contacts: list[list[float]]
    on: list[str]
    legs: list[list[list[float]]]
    bars: list[dict[str, object] | None]
    numbers: list[list[float] | None]
    flags: dict[str, int]
    contact: int
    capture_time: float
    first_contact_time: float
    words: dict[str, str]
    supervisory_left: float
    supervisory_queue: int
    hand: list[float]
    hand_buttons: list[int]
    hand_status: list[int]
    operator_rate: list[float]
    arm: dict[str, object] | None
    crafts: Placed


def angles_deg(q: Iterable[float]) -> list[float]:
    """Yaw, pitch, roll of a quaternion [x, y, z, w]: R = Ry(yaw) Rz(pitch) Rx(roll)."""
    x, y, z, w = q
    pitch = math.asin(max(-1.0, min(1.0, 2.0 * (x * y + w * z))))
    yaw = math.atan2(2.0 * (w * y - x * z), 1.0 - 2.0 * (y * y + z * z))
    roll = math.atan2(2.0 * (w * x - y * z), 1.0 - 2.0 * (x * x + z * z))
    return [math.degrees(a) for a in (yaw, pitch, roll)]


def picture_of(mechanism: Mapping[str, object]) -> UnitPicture:
    """The picture that the part of a configuration's table `mechanism` declares; two flanges where it declares none, or is not known."""
    part = registry.part_of_table("mechanisms", mechanism)
    if part is None:
        return UnitPicture(mechanism)
    made: UnitPicture = getattr(part, "PICTURE", UnitPicture)({p.key: p.default for p in part.PARAMETERS} | dict(mechanism))
    return made


class Picture:
    """configuration: texts of the run by name, as its log or `describe` has them."""

    def __init__(self, configuration: Mapping[str, str]) -> None:
        try:
            document = tomllib.loads(configuration.get(CONFIGURATION, ""))
        except tomllib.TOMLDecodeError:
            document = {}
        self.document = document
        self._table = document.get("mechanism", {})
        self.unit = picture_of(self._table)
        self._sensors = [(label, unit, 4) for label, unit in self.unit.ANALOG]
        self._mechanism = _contact_kernel(document) if self.unit.KERNEL else None
        self.arm = Arm.of(document)
        self.crafts = Crafts(document)

    @property
    def rehearsal(self) -> bool:
        """Whether the test is a rehearsal: no stand moves."""
        return bool(self.document.get("test", {}).get("rehearsal"))

    def things(self) -> dict[str, object]:
        """What does not change during a run."""
        return {
            **self.unit.looks.to_dict(),
            "cameras": self.document.get("cameras") or _shipped_cameras(),
            "arm": self.arm.things() if self.arm else None,
            "crafts": self.crafts.things(),
            "numbers": [{"title": title, "rows": rows} for title, rows in [*NUMBERS, ("Sensors", self._sensors)]],
            "rehearsal": self.rehearsal,
            "limits": self.document.get("initial_conditions", {}).get("limits", {}),
        }

    def frame(self, values: Values) -> Frame:
        """One instant."""
        X, V = _motion(values)
        moving, rollers = self.unit.bodies(values, X)
        bodies: Poses = {"T": [0, 0, 0, 0, 0, 0, 1], "A": X, **moving}
        frame: Frame = {
            "bodies": {name: _short(pose) for name, pose in bodies.items()},
            "contacts": [_short(point) for point in self._contacts(values, X, bodies)],
            "on": self.unit.touching(values),
            "legs": [[_short(joint) for joint in leg] for leg in self.unit.legs(bodies)],
            "bars": [self._bar(values, bar) for bar in self.unit.looks.bars],
            "numbers": [*_numbers(values, X, V, bodies), _short(as_list(values.get("signal_analog", ()))[: len(self._sensors)])],
            "flags": _flags(values),
            "contact": int(values.get("contact", 0)),
            "capture_time": float(values.get("capture_time", -1.0)),
            "first_contact_time": float(values.get("first_contact_time", -1.0)),
            "words": {
                group: _name(group, int(values[group]))
                for group in ("phase", "motion", "arm_mode", "rate_frame", "speed_mode", "supervisory", "sequence")
                if group in values
            },
            "supervisory_left": values.get("supervisory_left", 0.0),
            "supervisory_queue": values.get("supervisory_queue", 0),
            "hand": [round(a, 3) for a in values.get("hand_axis", [0.0] * 12)],
            "hand_buttons": list(values.get("hand_buttons", [0, 0])),
            "hand_status": list(values.get("hand_status", [0, 0])),
            "operator_rate": _short(values.get("operator_rate", [0.0] * 6)),
        }
        frame["bodies"] |= {name: _short(pose) for name, pose in rollers.items()}
        if self.crafts.trees:
            frame["crafts"] = self.crafts.frame(values, X)
        if self.arm:
            frame["arm"] = self.arm.frame(values)
        return frame

    # ------------------------------------------------------------------------------------------------------- what moves
    def _contacts(self, values: Values, X: list[float], bodies: Poses) -> Sequence[Point]:
        """Contact points in T: of the physics where they are recorded, of the same contact kernel at this pose where it can be asked, else
        where the measured force enters the head."""
        found = self.unit.contacts(values)
        if found is not None:
            return found
        if self._mechanism is not None:
            return [r for _, _, r, *_ in self._mechanism.contacts(np.array(X))]
        point = self._entry_of_force(values, bodies)
        return [] if point is None or not values.get("contact") else [point]

    def _entry_of_force(self, values: Values, bodies: Poses) -> np.ndarray | None:
        """Where the line of action of the measured force F_T, followed into the target, leaves the head; None where it misses it."""
        radius = self._table.get("head_radius_m")
        force, moment = np.array(values["F_T"][:3]), np.array(values["F_T"][3:])
        strength = float(np.linalg.norm(force))
        if radius is None or strength < FORCE_SEEN:
            return None
        direction = force / strength
        from_head = np.cross(force, moment) / strength**2 - np.array(bodies["head"][:3])
        s = float(from_head @ direction)
        root = s * s - float(from_head @ from_head) + radius**2
        return None if root < 0.0 else np.array(bodies["head"][:3]) + from_head + (math.sqrt(root) - s) * direction

    def _bar(self, values: Values, bar: Bar) -> dict[str, object] | None:
        if bar.channel not in values:
            return None
        at = as_list(values[bar.channel])
        flags = [int(as_list(values[flag])[bar.index]) for flag in bar.flags if flag in values]
        return {"value": round(float(at[bar.index]) - bar.zero, 6), "flags": flags}


def _contact_kernel(document: Mapping[str, object]) -> Any:
    """The unit's own kernel, None where the configuration is not whole."""
    from hil_server.config import test_from_toml, toml_text
    from hil_server.line import assembly

    with contextlib.suppress(HilError):
        config = test_from_toml(toml_text.dumps(dict(document)))
        return assembly.build_part(*config.setup.mechanism, {})
    return None


def _shipped_cameras() -> dict[str, object]:
    from hil_server.config import tables
    from hil_server.config.checks import Table

    return {name: Table(declared).with_defaults({}) for name, declared in tables.CAMERAS.items()}


def _motion(values: Values) -> tuple[list[float], list[float]]:
    """X_TA and V_TA: achieved ones where the platform's measured pose is known, else those of the dynamics."""
    X = values.get("X_TA_measured", ())
    known = len(X) == 7 and 0.99 < sum(x * x for x in X[3:]) < 1.01
    names = ("X_TA_measured", "V_TA_measured") if known else ("X_TA", "V_TA")
    return list(values[names[0]]), list(values[names[1]])


def _short(numbers: Iterable[float]) -> list[float]:
    return [round(float(x), 5) for x in numbers]


def _name(group: str, value: int) -> str:
    return code_name(group, value).replace("_", " ")


def _flags(values: Values) -> dict[str, int]:
    word = int(values.get("signal_discrete", 0)) | int(values.get("mechanism_state", 0))
    return {name: int(word & BITS["mechanism_signal"][name] != 0) for name in ("DK1", "DSG", "DK2")}


# title, (label, unit, digits) of each row: in the order of `_numbers`; behind them the analogue signals that the unit has
NUMBERS: list[tuple[str, list[tuple[str, str, int]]]] = [
    ("Active port in target port", [*((a, "m", 4) for a in AXES), *((a, "°", 3) for a in ANGLES)]),
    ("Rates", [*((f"v{a}", "m/s", 4) for a in AXES), *((f"ω{a}", "°/s", 3) for a in AXES)]),
    ("Head in target port", [*((a, "m", 4) for a in AXES), *((f"v{a}", "m/s", 4) for a in AXES)]),
    ("Craft, relative", [*((a, "m", 3) for a in AXES), *((f"v{a}", "m/s", 4) for a in AXES), *((f"ω{a}", "°/s", 3) for a in AXES)]),
    ("Contact wrench F_T", [*((f"F{a}", "N", 1) for a in AXES), *((f"M{a}", "N.m", 1) for a in AXES)]),
]


def _numbers(values: Values, X: list[float], V: list[float], bodies: Poses) -> list[list[float] | None]:
    turn = [math.degrees(w) for w in V[3:]]
    head = None
    if "head" in bodies:
        place = bodies["head"][:3]
        known = "probe.head_v_x" in values
        arm = np.subtract(place, X[:3])
        speed = [values[f"probe.head_v_{a}"] for a in AXES] if known else np.add(V[:3], np.cross(V[3:], arm))
        head = _short([*place, *speed])
    return [
        _short([*X[:3], *angles_deg(X[3:])]),
        _short([*V[:3], *turn]),
        head,
        _craft(values),
        _short(values["F_T"]),
    ]


def _craft(values: Values) -> list[float] | None:
    """Centre of mass of the active craft in the target's axes: position, velocity as seen there, relative angular velocity, °/s."""
    if "X_NC" not in values:
        return None
    C, V, vC, vV = (np.array(values[name]) for name in ("X_NC", "X_NV", "V_NC", "V_NV"))
    if not 0.99 < float(V[3:] @ V[3:]) < 1.01:
        return None
    back = [*(-V[3:6]), V[6]]
    apart = C[:3] - V[:3]
    speed = vC[:3] - vV[:3] - np.cross(vV[3:], apart)
    return _short([*rotate(back, apart), *rotate(back, speed), *np.degrees(rotate(back, vC[3:] - vV[3:]))])
