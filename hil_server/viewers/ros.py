"""Messages of ROS 2 that viewers know, as CDR: joint states, wrenches, the stand's URDF as text.

Plain CDR, little-endian: four bytes of encapsulation, then the fields, each number aligned to its own size from behind the encapsulation;
a text is its length with the final zero, the bytes and the zero; a sequence is its length and its members.
"""

import struct
from collections.abc import Mapping, Sequence

HEADER = """std_msgs/Header header
"""
HEADER_DEFINITION = """================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
VECTOR_DEFINITION = """================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
SCHEMAS = {
    "std_msgs/msg/String": "string data\n",
    "sensor_msgs/msg/JointState": f"{HEADER}string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n{HEADER_DEFINITION}",
    "geometry_msgs/msg/WrenchStamped": f"{HEADER}geometry_msgs/Wrench wrench\n"
    "================================================================================\n"
    "MSG: geometry_msgs/Wrench\ngeometry_msgs/Vector3 force\ngeometry_msgs/Vector3 torque\n"
    f"{VECTOR_DEFINITION}{HEADER_DEFINITION}",
}


class _Cdr:
    """A message that is being written."""

    def __init__(self) -> None:
        self._data = bytearray()

    def numbers(self, kind: str, *values: float) -> None:
        """kind: letter of `struct`."""
        size = struct.calcsize(kind)
        self._data += bytes(-len(self._data) % size if values else 0) + struct.pack(f"<{len(values)}{kind}", *values)

    def text(self, text: str) -> None:
        data = text.encode() + b"\0"
        self.numbers("I", len(data))
        self._data += data

    def sequence(self, values: Sequence[float]) -> None:
        """Of float64."""
        self.numbers("I", len(values))
        self.numbers("d", *values)

    def header(self, time_ns: int, frame: str) -> None:
        self.numbers("i", time_ns // 10**9)
        self.numbers("I", time_ns % 10**9)
        self.text(frame)

    def message(self) -> bytes:
        return b"\0\1\0\0" + bytes(self._data)


def text(data: str) -> bytes:
    """std_msgs/String."""
    cdr = _Cdr()
    cdr.text(data)
    return cdr.message()


def joint_state(time_ns: int, position: Mapping[str, float], velocity: Mapping[str, float], effort: Mapping[str, float]) -> bytes:
    """sensor_msgs/JointState; a joint without velocity or effort has 0. time_ns: since 1970."""
    cdr = _Cdr()
    cdr.header(time_ns, "")
    cdr.numbers("I", len(position))
    for name in position:
        cdr.text(name)
    for values in (position, velocity, effort):
        cdr.sequence([float(values.get(name, 0.0)) for name in position])
    return cdr.message()


def wrench(time_ns: int, frame: str, F: Sequence[float]) -> bytes:
    """geometry_msgs/WrenchStamped of F (6,): force, N, and moment, N.m, at the frame's origin in its axes. time_ns: since 1970."""
    cdr = _Cdr()
    cdr.header(time_ns, frame)
    cdr.numbers("d", *(float(value) for value in F))
    return cdr.message()
