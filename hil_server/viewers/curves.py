"""The channels of a run as protobuf messages, one topic for each stage of the tick, under their true names.

Every field has a fixed size on the wire (double, sfixed64, sfixed32, fixed32, packed where there are several), so a message is a packed
structure like the record itself: NumPy fills many at once, and no encoder stands in between. A code of the table (phase, motion, ...) is an
enum, whose names viewers show; it takes one byte.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from hil_server.errors import UsageError
from hil_server.exchange.plain_names import distinct, identifier
from hil_server.log.record import AuxChannel
from rt_kernels.layout import CODES, FIELDS, WORDS

PACKAGE = "hil_server"
TYPES = {"f8": "TYPE_DOUBLE", "i8": "TYPE_SFIXED64", "i4": "TYPE_SFIXED32", "u4": "TYPE_FIXED32"}
WIRE = {"f8": 1, "i8": 1, "i4": 5, "u4": 5}  # kinds of a single number; several together are kind 2
TIME = ("seconds", "f8", 1, "s", "run time")
PARTS = "parts"


class CurveTopic:
    """A topic: its schema, and messages out of arrays. fields: (channel, kind, count, unit, meaning) in the order of the wire.

    Raises UsageError without protobuf."""

    def __init__(self, stage: str, fields: Iterable[tuple[str, str, int, str, str]]) -> None:
        self.topic = f"/channels/{stage}"
        self.message = "".join(word.capitalize() for word in stage.split("_"))
        self.fields = [TIME, *fields]
        self.names = distinct(identifier(name) for name, *_ in self.fields)
        layout: list[tuple[str, str] | tuple[str, str, tuple[int, ...]]] = []
        constants: dict[str, bytes] = {}
        for number, (name, kind, count, _, _) in enumerate(self.fields, 1):
            code = self._codes(name, kind, count)
            wire = 0 if code else 2 if count > 1 else WIRE[kind]
            head = _varint(number << 3 | wire) + (_varint(count * int(kind[1])) if wire == 2 else b"")
            constants[f"head {number}"] = head
            layout.append((f"head {number}", f"V{len(head)}"))
            layout.append((name, "u1") if code else (name, f"<{kind}", (count,)) if count > 1 else (name, f"<{kind}"))
        self.dtype = np.dtype(layout)
        self._blank = np.zeros(1, self.dtype)
        for place, data in constants.items():
            self._blank[place] = np.void(data)

    @staticmethod
    def _codes(name: str, kind: str, count: int) -> dict[str, int]:
        """The list of codes of a channel, {} of one that has none or one that a byte does not hold."""
        word, group = WORDS.get(name, ("", ""))
        codes = CODES[group] if word == "code" and count == 1 and kind == "i4" else {}
        return codes if codes and all(0 <= value < 128 for value in codes.values()) and 0 in codes.values() else {}

    @property
    def metadata(self) -> dict[str, str]:
        """Unit and meaning of each field, by its name in the schema."""
        return {plain: f"[{unit}] {meaning}" for plain, (_, _, _, unit, meaning) in zip(self.names, self.fields, strict=True)}

    def schema(self) -> tuple[str, bytes]:
        """Name of the message and the serialized FileDescriptorSet."""
        try:
            from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
        except ModuleNotFoundError:
            raise UsageError("viewers' files need protobuf: pip install 'hil-server[foxglove]'") from None
        files = FileDescriptorSet()
        file = files.file.add(name=f"{PACKAGE}/{self.message}.proto", package=f"{PACKAGE}", syntax="proto3")
        message: DescriptorProto = file.message_type.add(name=self.message)
        for number, (plain, (name, kind, count, _, _)) in enumerate(zip(self.names, self.fields, strict=True), 1):
            codes = self._codes(name, kind, count)
            label = FieldDescriptorProto.LABEL_REPEATED if count > 1 else FieldDescriptorProto.LABEL_OPTIONAL
            entry = message.field.add(name=plain, number=number, label=label, json_name=plain)
            if codes:
                entry.type = FieldDescriptorProto.TYPE_ENUM
                entry.type_name = f".{PACKAGE}.{self.message}.{plain}_code"
                enum = message.enum_type.add(name=f"{plain}_code")
                for word, value in sorted(codes.items(), key=lambda item: item[1]):
                    enum.value.add(name=f"{plain}_{word}", number=value)
            else:
                entry.type = getattr(FieldDescriptorProto, TYPES[kind])
        return f"{PACKAGE}.{self.message}", files.SerializeToString()

    def messages(self, columns: Mapping[str, np.ndarray], seconds: np.ndarray) -> list[bytes]:
        """One message for each tick. columns: channel → (n,) or (n, count); one that is not there stays zero."""
        rows = np.repeat(self._blank, len(seconds))
        rows["seconds"] = seconds
        for name, *_ in self.fields[1:]:
            if name in columns:
                values = np.asarray(columns[name])
                rows[name] = values & 0x7F if rows.dtype[name] == np.uint8 else values
        size, data = self.dtype.itemsize, rows.tobytes()
        return [data[at : at + size] for at in range(0, len(data), size)]


def topics(aux: Iterable[AuxChannel], on_bus: bool = False) -> list[CurveTopic]:
    """A topic for each stage of the table, and `/channels/parts` for the auxiliary channels. on_bus: only fields that are published on the
    bus."""
    stages: dict[str, list[tuple[str, str, int, str, str]]] = {}
    for name, kind, count, unit, _, stage, _, rate, meaning in FIELDS:
        if rate or not on_bus:
            stages.setdefault(stage, []).append((name, kind, count, unit, meaning))
    found = [CurveTopic(stage, fields) for stage, fields in stages.items()]
    parts = [(channel.name, "f8", channel.count, channel.unit, channel.meaning) for channel in aux]
    return [*found, CurveTopic(PARTS, parts)] if parts else found


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
