"""A run in the schemas that Foxglove and rerun know, for a file and for a live server: both are sinks of one `foxglove.Context`.

    /tf                 foxglove.FrameTransforms   all frames (`scene`)
    /scene/stand, /scene/unit, /scene/crafts   foxglove.SceneUpdate   bodies fixed to the frames, sent once; those that bend
                        in every message
    /scene/contact      foxglove.SceneUpdate       contact points, contact force, legs of a docking ring, sent in every message
    /joint_states       sensor_msgs/msg/JointState joints of the stand's URDF; effort of a leg: its force
    /robot_description  std_msgs/msg/String        stand, unit and crafts as URDF
    /wrench/contact, /wrench/sensor   geometry_msgs/msg/WrenchStamped   F_T in target_port, F_S in load_cell
    /events             foxglove.Log               events, faults, phases
    /channels/clock, ... /channels/parts   hil_server.*   every channel by its name (`curves`)

Times are nanoseconds since 1970.
"""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Protocol

import numpy as np

from hil_server.errors import UsageError
from hil_server.log.record import AuxChannel
from hil_server.viewers import curves, ros
from hil_server.viewers.scene import CONTACT_COLOUR, FORCE_COLOUR, FORCE_M_PER_N, Instant, Scene, Thing
from rt_kernels.pictures import LEG, Values, along

THIN = 1.5  # pixels of a line
AHEAD = "target_port"
Numbers = Sequence[float] | np.ndarray


class Channel(Protocol):
    """A topic of the library."""

    def log(self, msg: object, *, log_time: int) -> None:
        """Sends a message; log_time: ns since 1970."""

    def close(self) -> None:
        """Takes the topic back."""


def library() -> ModuleType:
    """The module `foxglove`. Raises UsageError without it."""
    try:
        import foxglove
        import foxglove.channels
        import foxglove.messages
    except ModuleNotFoundError as error:
        raise UsageError(f"this needs {error.name}: pip install 'hil-server[foxglove]'") from None
    return foxglove


class Stream:
    """Writes to the sinks of `context`. scene: of the run; on_bus: only the channels that the bus has. Raises UsageError without the
    libraries."""

    def __init__(self, context: object, scene: Scene, aux: Sequence[AuxChannel], on_bus: bool = False) -> None:
        self._foxglove = library()
        self._scene, self._context = scene, context
        channels = self._foxglove.channels
        self._tf = channels.FrameTransformsChannel("/tf", context=context)
        self._things = {
            name: channels.SceneUpdateChannel(f"/scene/{name}", context=context) for name in ("stand", "unit", "crafts", "contact")
        }
        self._events = channels.LogChannel("/events", context=context)
        self._joints = self._ros("/joint_states", "sensor_msgs/msg/JointState")
        self._wrenches = {name: self._ros(f"/wrench/{name}", "geometry_msgs/msg/WrenchStamped") for name in ("contact", "sensor")}
        self._description = self._ros("/robot_description", "std_msgs/msg/String")
        self._curves = [(topic, self._curve(topic)) for topic in curves.topics(aux, on_bus)]

    def _ros(self, topic: str, name: str) -> Channel:
        schema = self._foxglove.Schema(name=name, encoding="ros2msg", data=ros.SCHEMAS[name].encode())
        channel: Channel = self._foxglove.Channel(topic, schema=schema, message_encoding="cdr", context=self._context)
        return channel

    def _curve(self, topic: curves.CurveTopic) -> Channel:
        name, data = topic.schema()
        schema = self._foxglove.Schema(name=name, encoding="protobuf", data=data)
        channel: Channel = self._foxglove.Channel(
            topic.topic, schema=schema, message_encoding="protobuf", metadata=topic.metadata, context=self._context
        )
        return channel

    def close(self) -> None:
        """Takes the topics back."""
        channels = [self._tf, *self._things.values(), self._events, self._joints, *self._wrenches.values(), self._description]
        for channel in [*channels, *(channel for _, channel in self._curves)]:
            channel.close()

    # ------------------------------------------------------------------------------------------------------------------ once
    def begin(self, time_ns: int) -> None:
        """What does not change: things, and the URDF."""
        for name, things in (("stand", self._scene.rig()), ("unit", self._scene.unit()), ("crafts", self._scene.crafts())):
            entities = [self._entity(thing, time_ns) for thing in things]
            self._things[name].log(self._foxglove.messages.SceneUpdate(entities=entities), log_time=time_ns)
        self._description.log(ros.text(self._scene.urdf()), log_time=time_ns)

    # --------------------------------------------------------------------------------------------------------- every instant
    def instant(self, time_ns: int, values: Values) -> None:
        """Frames, contact, joints and wrenches of one tick."""
        m = self._foxglove.messages
        now = self._scene.instant(values)
        stamp = self._stamp(time_ns)
        transforms = [
            m.FrameTransform(timestamp=stamp, parent_frame_id=parent, child_frame_id=child, translation=self._vector(X[:3]),
                             rotation=m.Quaternion(x=float(X[3]), y=float(X[4]), z=float(X[5]), w=float(X[6])))
            for child, (parent, X) in now.frames.items()
        ]  # fmt: skip
        self._tf.log(m.FrameTransforms(transforms=transforms), log_time=time_ns)
        self._things["contact"].log(m.SceneUpdate(entities=[self._contact(now, time_ns)]), log_time=time_ns)
        if now.bent:
            self._things["crafts"].log(m.SceneUpdate(entities=[self._entity(thing, time_ns) for thing in now.bent]), log_time=time_ns)
        if now.joints:
            legs = [f"leg_{i}" for i in range(1, 7)]
            rate, force = values.get("measured_leg_rate", ()), values.get("leg_force", ())
            state = ros.joint_state(time_ns, now.joints, dict(zip(legs, rate, strict=False)), dict(zip(legs, force, strict=False)))
            self._joints.log(state, log_time=time_ns)
        self._wrenches["contact"].log(ros.wrench(time_ns, AHEAD, values["F_T"]), log_time=time_ns)
        if self._scene.stand is not None and "F_S" in values:
            self._wrenches["sensor"].log(ros.wrench(time_ns, "load_cell", values["F_S"]), log_time=time_ns)

    def curves(self, times_ns: Sequence[int], seconds: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Channels of many ticks. times_ns: since 1970; columns: channel → (n,) or (n, count)."""
        for topic, channel in self._curves:
            for time_ns, message in zip(times_ns, topic.messages(columns, seconds), strict=True):
                channel.log(message, log_time=int(time_ns))

    def event(self, time_ns: int, name: str) -> None:
        """A line of the list of events; faults are warnings."""
        m = self._foxglove.messages
        level = m.LogLevel.Warning if name.startswith("fault") else m.LogLevel.Info
        self._events.log(m.Log(timestamp=self._stamp(time_ns), level=level, message=name, name="hil_server"), log_time=time_ns)

    # ---------------------------------------------------------------------------------------------------------------- things
    def _entity(self, thing: Thing, time_ns: int) -> object:
        m = self._foxglove.messages
        colour, clear = self._colour(thing.colour), self._colour(thing.colour, thing.opacity)
        return m.SceneEntity(
            timestamp=self._stamp(time_ns),
            frame_id=thing.frame,
            id=thing.name,
            frame_locked=True,
            lines=[self._line(line, colour) for line in thing.lines],
            cubes=[m.CubePrimitive(pose=self._pose(at), size=self._vector(size), color=clear) for at, size in thing.boxes],
            cylinders=[
                m.CylinderPrimitive(
                    pose=self._pose((length / 2, 0.0, 0.0), along([0.0, 0.0, -1.0])),  # its axis is Z
                    size=self._vector((2 * radius, 2 * radius, abs(length))), bottom_scale=1.0, top_scale=1.0, color=clear)
                for length, radius in thing.rods
            ],
            triangles=[
                m.TriangleListPrimitive(points=[self._point(p) for p in points], indices=triangles.ravel().tolist(), color=clear)
                for points, triangles in thing.solids
            ],
        )  # fmt: skip

    def _contact(self, now: Instant, time_ns: int) -> object:
        """Contact points, the force as an arrow, and lines that change their length."""
        m = self._foxglove.messages
        size = self._vector((0.02, 0.02, 0.02))
        arrows = []
        if now.force is not None:
            at, F = now.force
            length = float(np.linalg.norm(F)) * FORCE_M_PER_N
            arrows = [m.ArrowPrimitive(pose=self._pose(at, along(F)), shaft_length=0.8 * length, shaft_diameter=0.02,
                                       head_length=0.2 * length, head_diameter=0.04, color=self._colour(FORCE_COLOUR))]  # fmt: skip
        return m.SceneEntity(
            timestamp=self._stamp(time_ns),
            frame_id=AHEAD,
            id="contact",
            frame_locked=True,
            spheres=[m.SpherePrimitive(pose=self._pose(p), size=size, color=self._colour(CONTACT_COLOUR)) for p in now.contacts],
            arrows=arrows,
            lines=[self._line(line, self._colour(LEG)) for lines in now.lines.values() for line in lines],
        )

    def _line(self, points: np.ndarray, colour: object) -> object:
        m = self._foxglove.messages
        return m.LinePrimitive(type=m.LinePrimitiveLineType.LineStrip, thickness=THIN, scale_invariant=True, color=colour,
                               points=[self._point(p) for p in points])  # fmt: skip

    def _stamp(self, time_ns: int) -> object:
        return self._foxglove.messages.Timestamp(sec=time_ns // 10**9, nsec=time_ns % 10**9)

    def _vector(self, v: Numbers) -> object:
        return self._foxglove.messages.Vector3(x=float(v[0]), y=float(v[1]), z=float(v[2]))

    def _point(self, p: Numbers) -> object:
        return self._foxglove.messages.Point3(x=float(p[0]), y=float(p[1]), z=float(p[2]))

    def _pose(self, p: Numbers, q: Numbers = (0.0, 0.0, 0.0, 1.0)) -> object:
        m = self._foxglove.messages
        turn = m.Quaternion(x=float(q[0]), y=float(q[1]), z=float(q[2]), w=float(q[3]))
        return m.Pose(position=self._vector(p), orientation=turn)

    def _colour(self, text: str, opacity: float = 1.0) -> object:
        r, g, b = (int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return self._foxglove.messages.Color(r=r, g=g, b=b, a=opacity)
