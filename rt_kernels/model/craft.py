"""A craft: bodies with their joints, and what is on them. Files of it are read by `craft_file` (TOML) and `urdf`.

A rigid vehicle is a craft of one body. What follows from the description alone is here too: the pose of every body when the joints stand
at their given angles and nothing bends, with mass, centre of mass and inertia of the whole there (`at_rest`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rt_kernels.model.modes import ModalBody, skew
from rt_kernels.model.solids import Solid, of_mass
from rt_kernels.parameters import did_you_mean

JOINTS = ("fixed", "revolute", "continuous", "prismatic", "screw", "universal", "spherical", "planar", "free")
ONE_DEGREE = ("revolute", "continuous", "prismatic", "screw")
MODES = ("locked", "free", "given", "driven")
STEPS = ("first_order", "second_order")
BODIES_MAX = 64  # of one craft, as `rt_kernels.dynamics.two_crafts` has room for
DOCKING = "docking"  # name of the port that carries the docking unit


@dataclass(frozen=True)
class Link:
    """A body and the joint that carries it.

    parent, port   body and port it hangs on; parent None: the inertial base, port None: the parent's frame
    joint          one of `JOINTS`
    axis           (3,) of a revolute, continuous, prismatic or screw joint, body axes; of a universal joint the first, fixed in the
                   parent; axis2 (3,) its second, fixed in the body; pitch m/rad: advance of a screw
    position, rotation  joint frame in the port frame at zero joint coordinate
    armature       kg.m2 or kg, added to the joint's own inertia; stiffness N.m/rad or N/m and damping N.m.s/rad or N.s/m of a one-degree
                   joint (torque -k q - d v); joint_name: left away, the body's name
    solids         what the file says that it looks like
    """

    name: str
    body: ModalBody
    parent: str | None = None
    port: str | None = None
    joint: str = "fixed"
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    armature: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0
    joint_name: str = ""
    axis2: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    pitch: float = 0.0
    solids: tuple[Solid, ...] = ()

    def __post_init__(self) -> None:
        where = f"link {self.name!r}"
        object.__setattr__(self, "joint_name", self.joint_name or self.name)
        if self.joint not in JOINTS:
            raise ValueError(f"{where}: joint {self.joint!r} is not one of {', '.join(JOINTS)}")
        if self.parent is None and self.port is not None:
            raise ValueError(f"{where}: port {self.port!r} given, but the base has no ports")
        for name in ("axis", "axis2", "position"):
            value = np.array(getattr(self, name), dtype=float)
            if value.shape != (3,) or not np.all(np.isfinite(value)):
                raise ValueError(f"{where}: {name} must be three finite numbers, got {getattr(self, name)!r}")
            object.__setattr__(self, name, value)
        for name, joints in (("axis", (*ONE_DEGREE, "universal")), ("axis2", ("universal",))):
            length = np.linalg.norm(getattr(self, name))
            if self.joint in joints and not length > 1e-9:
                raise ValueError(f"{where}: {name} has no length")
            object.__setattr__(self, name, getattr(self, name) / length if length > 0.0 else getattr(self, name))
        if self.joint == "universal" and np.linalg.norm(np.cross(self.axis, self.axis2)) < 1e-9:
            raise ValueError(f"{where}: axis and axis2 are parallel")
        if not np.isfinite(self.pitch):
            raise ValueError(f"{where}: pitch = {self.pitch} m/rad is not a finite number")
        R = np.array(self.rotation, dtype=float)
        if R.shape != (3, 3) or not np.abs(R @ R.T - np.eye(3)).max() < 1e-9 or np.linalg.det(R) < 0.0:
            raise ValueError(f"{where}: rotation is not a rotation matrix")
        object.__setattr__(self, "rotation", R)
        for name in ("armature", "stiffness", "damping"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{where}: {name} = {value} is not a finite number >= 0")
            if value and self.joint not in ONE_DEGREE:
                raise ValueError(f"{where}: {name} belongs to a joint of one degree of freedom ({', '.join(ONE_DEGREE)}), this one is "
                                 f"{self.joint}")


    @property
    def looks(self) -> tuple[Solid, ...]:
        """What is drawn of the body, its axes: what the file declares, else its outline, else the box of even density with its mass and
        moments; nothing of a place without mass."""
        body = self.body
        if self.solids or body.outline is not None:
            return self.solids or (body.outline,)  # type: ignore[return-value]
        return (of_mass(body.mass, body.first_moment, body.second_moment),) if body.mass > 0.0 else ()


@dataclass(frozen=True)
class CraftPort:
    """A named frame of a craft: where another one docks, where an arm grapples.

    body: what carries it. node: port of that body's `ModalBody` (root, tip, ...), None: the body's frame. position (3,) m and rotation
    (3, 3): the port there, undeformed; X looks out of a docking unit.
    """

    name: str
    body: str
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    node: str | None = None


@dataclass(frozen=True)
class JointSettings:
    """How a joint of one degree of freedom is held and driven; SI: rad or m, N.m or N, per rad or m and per second.

    mode                 locked | free | given | driven, at the start of a run (`MODES`)
    angle                rest of the spring; where a locked or driven joint stands and a given one begins
    stiffness, damping   spring and damper of the joint itself, in every mode but locked and given
    friction             Coulomb friction; armature: added to the joint's own inertia (rotor times gear ratio squared)
    lower, upper         stops; effort, rate: most that the drive gives
    servo_stiffness, servo_damping   gains of a driven joint towards its wanted angle and rate; both 0: torque command
    """

    joint: str
    mode: str = "free"
    angle: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    effort: float = math.inf
    rate: float = math.inf
    servo_stiffness: float = 0.0
    servo_damping: float = 0.0

    def __post_init__(self) -> None:
        where = f"joint {self.joint!r}"
        if self.mode not in MODES:
            raise ValueError(f"{where}: mode {self.mode!r} is not one of {', '.join(MODES)}")
        for name in ("stiffness", "damping", "friction", "armature", "servo_stiffness", "servo_damping"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{where}: {name} = {value} is not a finite number >= 0")
        for name in ("effort", "rate"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{where}: {name} = {getattr(self, name)} is not above 0")
        if not self.lower < self.upper:
            raise ValueError(f"{where}: lower stop {self.lower:g} is not below the upper one {self.upper:g}")
        if not self.lower <= self.angle <= self.upper:
            raise ValueError(f"{where}: angle {self.angle:g} is not between the stops {self.lower:g} and {self.upper:g}")


@dataclass(frozen=True)
class Thruster:
    """A thruster: force `thrust_n` along `direction` (unit (3,)) on the craft at `position` (3,) m, both in the axes of the body, or of its
    node. minimum_pulse_s: shortest opening; delay_s: from command to the first thrust; rise_s: time constant of the thrust."""

    name: str
    body: str
    position: np.ndarray
    direction: np.ndarray
    thrust_n: float
    minimum_pulse_s: float = 0.0
    delay_s: float = 0.0
    rise_s: float = 0.0
    node: str | None = None


@dataclass(frozen=True)
class Wheel:
    """A reaction wheel: a body on a continuous or revolute joint, its motor and the momentum that it may store about its axis."""

    name: str
    joint: str
    torque_n_m: float
    momentum_n_m_s: float


@dataclass(frozen=True)
class Sensor:
    """A point whose motion is recorded, body (or node) axes. kind: acceleration | rate."""

    name: str
    kind: str
    body: str
    position: np.ndarray
    node: str | None = None


@dataclass(frozen=True)
class Interface:
    """Where loads between bodies are wanted: through the joint that carries `body`."""

    name: str
    body: str


@dataclass(frozen=True)
class Craft:
    """Any craft: bodies with their joints, and what is on them. A rigid vehicle is a craft of one body on a free joint.

    links: parents need not come first; joints: settings of every joint that moves, in the order of the links (the root's free joint left
    out); rates: terms of the deformation in the rates, exact | first_order; gravity (3,) m/s2 on the inertial axes; control_body: the
    rigid body on which the wrenches of the craft's own control act, None: the root; step: order of the integration in time (`STEPS`).
    """

    name: str
    links: tuple[Link, ...]
    ports: tuple[CraftPort, ...] = ()
    joints: tuple[JointSettings, ...] = ()
    thrusters: tuple[Thruster, ...] = ()
    wheels: tuple[Wheel, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    rates: str = "exact"
    gravity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    control_body: str | None = None
    step: str = STEPS[0]

    def __post_init__(self) -> None:
        if self.step not in STEPS:
            raise ValueError(f"{self.name}: step: {self.step!r} is not one of {', '.join(STEPS)}")
        if not self.links:
            raise ValueError(f"{self.name}: at least one body is needed")
        bodies = {link.name: link for link in self.links}
        for kind, things in (("body", [link.name for link in self.links]), ("joint", [link.joint_name for link in self.links]),
                             ("port", [p.name for p in self.ports]), ("joint", [j.joint for j in self.joints]),
                             ("thruster", [t.name for t in self.thrusters]), ("wheel", [w.name for w in self.wheels]),
                             ("sensor", [s.name for s in self.sensors]), ("interface", [i.name for i in self.interfaces])):  # fmt: skip
            twice = sorted({name for name in things if things.count(name) > 1})
            if twice:
                raise ValueError(f"{kind}.{twice[0]}.name: {twice[0]!r}: the name is used twice")
        _check_tree(bodies)
        for kind, places in (("port", self.ports), ("thruster", self.thrusters), ("sensor", self.sensors)):
            for place in places:
                _check_place(f"{kind}.{place.name}", place, bodies)
        for interface in self.interfaces:
            if interface.body not in bodies:
                raise ValueError(f"interface.{interface.name}.body: {no_such('body', interface.body, bodies)}")
        if self.control_body is not None and self.control_body not in bodies:
            raise ValueError(f"control_body: {no_such('body', self.control_body, bodies)}")
        if self.control_body is not None and bodies[self.control_body].body.n_modes:
            raise ValueError(f"control_body: {self.control_body!r} bends, limit a rigid body: {', '.join(_rigid(bodies))}")
        moving = {link.joint_name: link.joint for link in self.links if link.joint in ONE_DEGREE}
        for settings in self.joints:
            if settings.joint not in moving:
                raise ValueError(f"joint.{settings.joint}: {no_such('joint of one degree of freedom', settings.joint, moving)}")
        for wheel in self.wheels:
            if moving.get(wheel.joint) not in ("revolute", "continuous"):
                turning = [name for name, kind in moving.items() if kind in ("revolute", "continuous")]
                raise ValueError(f"wheel.{wheel.name}.joint: {no_such('joint that turns', wheel.joint, turning)}")

    @property
    def moves(self) -> bool:
        """Whether a body can move against another one: by a joint, or by bending."""
        return any(link.body.n_modes or (link.parent is not None and link.joint != "fixed") for link in self.links)

    @property
    def lacks_control_body(self) -> str:
        """Why wrenches of the craft's own control have no body to act on, "" where they have one: a root that bends is a frame without a
        place of its own, and a wrench on it would act on all of its mass at once."""
        if self.control_body is not None or not self.root.body.n_modes:
            return ""
        rigid = _rigid({link.name: link for link in self.links if link.body.mass})
        return f"the body without a parent, {self.root.name!r}, bends: control acts on a rigid body that is named ({', '.join(rigid)})"

    @property
    def root(self) -> Link:
        """The body that hangs on no other one. Raises ValueError when there are several."""
        roots = [link for link in self.links if link.parent is None]
        if len(roots) != 1:
            raise ValueError(f"{self.name}: {len(roots)} bodies without a parent ({', '.join(r.name for r in roots)}), limit 1")
        return roots[0]

    def port(self, name: str) -> CraftPort:
        """The named port. Raises ValueError."""
        for port in self.ports:
            if port.name == name:
                return port
        raise ValueError(f"{self.name}: {no_such('port', name, [port.name for port in self.ports])}")

    def settings(self, joint: str) -> JointSettings:
        """Settings of the named joint. Raises ValueError."""
        for settings in self.joints:
            if settings.joint == joint:
                return settings
        raise ValueError(f"{self.name}: {no_such('moving joint', joint, [settings.joint for settings in self.joints])}")


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """The words for a name that is none, with the one that may have been meant."""
    known = list(known)
    return f"no {what} {name!r}" + (did_you_mean(name, known) or f"; there are {', '.join(known) or 'none'}")


def _rigid(bodies: Mapping[str, Link]) -> list[str]:
    return [name for name, link in bodies.items() if not link.body.n_modes]


def _check_tree(bodies: Mapping[str, Link]) -> None:
    """Parents and their nodes are there, and nothing hangs on itself."""
    for name, link in bodies.items():
        if link.parent is None:
            continue
        if link.parent not in bodies:
            raise ValueError(f"body.{name}.parent: {no_such('body', link.parent, bodies)}")
        _node(f"body.{name}", bodies[link.parent], link.port)
        above, seen = link, [name]
        while above.parent is not None:
            above = bodies[above.parent]
            if above.name in seen:
                raise ValueError(f"body.{name}.parent: the bodies {' -> '.join([*seen, above.name])} form a loop, a tree has none")
            seen.append(above.name)


def _check_place(where: str, place: CraftPort | Thruster | Sensor, bodies: Mapping[str, Link]) -> None:
    """The body and its node are there; a place on a body that bends is at a node, or it would not move with the bending."""
    if place.body not in bodies:
        raise ValueError(f"{where}.body: {no_such('body', place.body, bodies)}")
    body = bodies[place.body]
    _node(where, body, place.node)
    if place.node is None and body.body.n_modes and np.any(place.position):
        raise ValueError(f"{where}.node: body {place.body!r} bends: a place on it must be at one of its nodes {', '.join(body.body.ports)}")


def _node(where: str, link: Link, node: str | None) -> None:
    if node is not None and node not in link.body.ports:
        raise ValueError(f"{where}.node: {no_such(f'node of body {link.name!r}', node, link.body.ports)}")


# --- at rest ----------------------------------------------------------------------------------------------------------------------------


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3) rotation by `angle` rad about the unit vector `axis`."""
    S = skew(axis)
    R: np.ndarray = np.eye(3) + math.sin(angle) * S + (1.0 - math.cos(angle)) * S @ S
    return R


def resting_links(craft: Craft, angles: Mapping[str, float] | None = None) -> tuple[Link, ...]:
    """The links for looking at the craft about its rest: every joint frame stands where its given angle puts it, so that the neutral
    pose is the craft at rest. Locked and given joints and those of wheels are fixed there, a servo is a spring and a damper. angles: of
    joints that stand elsewhere, rad or m by their names."""
    settings = {s.joint: s for s in craft.joints}
    wheels = {wheel.joint for wheel in craft.wheels}
    return tuple(_resting(link, settings.get(link.joint_name), link.joint_name in wheels, (angles or {}).get(link.joint_name))
                 for link in craft.links)  # fmt: skip


def _resting(link: Link, s: JointSettings | None, wheel: bool, angle: float | None) -> Link:
    if link.joint not in ONE_DEGREE or s is None:
        return link
    angle = s.angle if angle is None else angle
    slide = {"prismatic": 1.0, "screw": link.pitch}.get(link.joint, 0.0) * angle * link.axis
    R = link.rotation if link.joint == "prismatic" else link.rotation @ turn(link.axis, angle)
    link = replace(link, position=link.position + link.rotation @ slide, rotation=R)
    if wheel or s.mode in ("locked", "given"):
        return replace(link, joint="fixed", armature=0.0, stiffness=0.0, damping=0.0)
    servo = s.mode == "driven"
    return replace(
        link, joint="revolute" if link.joint == "continuous" else link.joint,
        stiffness=s.stiffness + servo * s.servo_stiffness, damping=s.damping + servo * s.servo_damping,
    )  # fmt: skip


@dataclass(frozen=True)
class AtRest:
    """A craft with its joints at the given angles, not bent; axes and origin of the root body.

    poses: body -> (rotation (3, 3), position (3,) m); mass kg; centre (3,) m; inertia (3, 3) kg.m2 about the centre of mass.
    """

    poses: Mapping[str, tuple[np.ndarray, np.ndarray]]
    mass: float
    centre: np.ndarray
    inertia: np.ndarray


def at_rest(craft: Craft, angles: Mapping[str, float] | None = None) -> AtRest:
    """Places and mass of a craft at rest, joints at their given angles or at those in `angles` (rad, m by name). Raises ValueError for a
    craft without mass or with several roots."""
    links = {link.name: link for link in resting_links(craft, angles)}
    poses: dict[str, tuple[np.ndarray, np.ndarray]] = {craft.root.name: (np.eye(3), np.zeros(3))}

    def pose(name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in poses:
            link = links[name]
            R, p = node_pose(links[str(link.parent)], pose(str(link.parent)), link.port)
            poses[name] = R @ link.rotation, p + R @ link.position
        return poses[name]

    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for name, link in links.items():
        R, p = pose(name)
        m, d = link.body.mass, R @ link.body.first_moment
        mass += m
        first += d + m * p
        second += R @ link.body.second_moment @ R.T + np.outer(d, p) + np.outer(p, d) + m * np.outer(p, p)
    if not mass > 0.0:
        raise ValueError(f"{craft.name}: its bodies have no mass")
    centre = first / mass
    about = second - mass * np.outer(centre, centre)
    about = 0.5 * (about + about.T)  # turned moments are symmetric to rounding only
    return AtRest(poses, mass, centre, np.trace(about) * np.eye(3) - about)


def node_pose(link: Link, pose: tuple[np.ndarray, np.ndarray], node: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of a node (None: the body's own frame) of a body at `pose`, undeformed."""
    R, p = pose
    position, rotation, _, _ = link.body.port_arrays(node)
    return R @ rotation, p + R @ position


def port_pose(craft: Craft, rest: AtRest, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rotation (3, 3) and position (3,) m of a named port at rest, axes and origin of the root body. Raises ValueError."""
    port = craft.port(name)
    link = next(link for link in craft.links if link.name == port.body)
    R, p = node_pose(link, rest.poses[port.body], port.node)
    return R @ port.rotation, p + R @ port.position


# --- joints of several degrees --------------------------------------------------------------------------------------------------------


def degrees(joint: str, name: str) -> dict[str, str]:
    """Name -> kind of the joints of one degree that a joint consists of: itself, or for a universal or planar one NAME.1, NAME.2, ..."""
    if joint in ONE_DEGREE:
        return {name: joint}
    kinds: Sequence[str] = {"universal": ("revolute", "revolute"), "planar": ("prismatic", "prismatic", "revolute")}.get(joint, ())
    return {f"{name}.{number}": kind for number, kind in enumerate(kinds, start=1)}


def chain(link: Link) -> list[Link]:
    """The link with its universal or planar joint as a chain of joints of one degree with massless bodies in between; others as they are.

    universal: about axis, then axis2. planar: along x and y of the joint frame, then about z.
    """
    if link.joint not in ("universal", "planar"):
        return [link]
    axes = [link.axis, link.axis2] if link.joint == "universal" else list(np.eye(3))
    found: list[Link] = []
    for (name, kind), axis in zip(degrees(link.joint, link.joint_name).items(), axes, strict=True):
        one = replace(link, joint=kind, axis=axis, joint_name=name)
        if found:
            one = replace(one, parent=found[-1].name, port=None, position=np.zeros(3), rotation=np.eye(3))
        last = len(found) == len(axes) - 1
        found.append(one if last else replace(one, name=name, body=ModalBody.rigid(0.0), solids=()))
    return found
