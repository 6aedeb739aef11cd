"""The record of one tick: the sample as the table lays it out, then the auxiliary channels of the run as doubles.

The same bytes lie in the ring, in the log and, after four bytes of encapsulation, form a little-endian CDR message: the fields are in
falling alignment and the size is a multiple of eight, so no encoder stands in between.

`record_crc` is CRC-32 (zlib) of the whole record with that field zero. CRC is linear over GF(2): two records of one length that differ by a
pattern E have checksums that differ by crc(E) xor crc(0). A wrong checksum therefore names a single flipped bit by one table look-up.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count
from typing import Any

import numpy as np

from hil_server.errors import UsageError
from rt_kernels.layout import FIELDS, LAYOUT_HASH, SAMPLE_DTYPE

ROS2_TYPES = {"f8": "float64", "i8": "int64", "i4": "int32", "u4": "uint32"}
CRC_FIELD = "record_crc"
CRC_OFFSET: int = SAMPLE_DTYPE.fields[CRC_FIELD][1]  # type: ignore[index]


class LayoutMismatchError(UsageError):
    """A log, a message or a block was made with another table of channels."""

    def __init__(self, what: str, theirs: str) -> None:
        self.theirs, self.ours = theirs, LAYOUT_HASH
        super().__init__(f"{what} has layout {theirs}, this program has layout {LAYOUT_HASH}: use the version that made it")


@dataclass(frozen=True)
class AuxChannel:
    """An auxiliary channel of a run: `count` doubles named `name`, from `offset` in the record's `aux`."""

    name: str
    unit: str
    meaning: str
    count: int
    offset: int

    def declaration(self) -> list[str | int]:
        """Name, unit, meaning and count, as the log's header keeps them."""
        return [self.name, self.unit, self.meaning, self.count]


def aux_channels(declared: Iterable[Any]) -> tuple[AuxChannel, ...]:
    """Channels with their offsets from parts' declarations (`rt_kernels.parameters.Aux`, or tuples name, unit, meaning, count).

    A name that the table or an earlier part has already taken gets `#2`, `#3`, ...
    """
    channels: list[AuxChannel] = []
    taken = {field[0] for field in FIELDS}
    for entry in declared:
        name, unit, meaning, scalars = entry[:4] if isinstance(entry, Sequence) else (entry.name, entry.unit, entry.meaning, entry.count)
        unique = next(n for n in chain((name,), (f"{name}#{i}" for i in count(2))) if n not in taken)
        taken.add(unique)
        offset = channels[-1].offset + channels[-1].count if channels else 0
        channels.append(AuxChannel(unique, unit, meaning, int(scalars), offset))
    return tuple(channels)


def record_dtype(aux_count: int) -> np.dtype:
    """Structured type of a record: the fields of SAMPLE_DTYPE and `aux`, (aux_count,) float64."""
    return np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (aux_count,))])


def scalar_names(name: str, count: int) -> list[str]:
    """Names of the single numbers of a channel: its own, or with [0], [1] ... behind it."""
    return [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]


def ros2_schema(aux_count: int) -> str:
    """The record as a ROS 2 message definition. ROS 2 allows lower case only; the true name stands in the comment."""
    about = {field[0]: field for field in FIELDS}
    lines = []
    for name in SAMPLE_DTYPE.names or ():
        base, shape = SAMPLE_DTYPE[name].base, SAMPLE_DTYPE[name].shape
        kind = ROS2_TYPES[base.str[1:]] + (f"[{shape[0]}]" if shape else "")
        unit, meaning = (about[name][3], about[name][8]) if name in about else ("-", "keeps the size a multiple of eight")
        lines.append(f"{kind} {name.lower()}  # {name} [{unit}] {meaning}")
    if aux_count:
        lines.append(f"float64[{aux_count}] aux  # auxiliary channels, named in the metadata of the log")
    return "\n".join(lines) + "\n"


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """At least one array of records, (n,), of one type, one after the other. They are joined as bytes: numpy takes half a millisecond to
    compare their fields."""
    whole = np.dtype((np.void, parts[0].dtype.itemsize))
    return np.concatenate([part.view(whole) for part in parts]).view(parts[0].dtype)


def checksums(records: np.ndarray) -> np.ndarray:
    """CRC-32 of each record as it stands, shape (n,) uint32. records: (n,) contiguous."""
    size = records.dtype.itemsize
    return checksums_in(memoryview(records.data).cast("B"), 0, size, size, len(records)) if len(records) else np.zeros(0, np.uint32)


def checksums_in(raw: memoryview, start: int, step: int, size: int, number: int) -> np.ndarray:
    """CRC-32 of `number` pieces of `size` bytes, `step` bytes apart from `start` on, shape (number,) uint32."""
    crc = zlib.crc32
    return np.fromiter((crc(raw[at : at + size]) for at in range(start, start + step * number, step)), np.uint32, number)


def syndromes(records: np.ndarray) -> np.ndarray:
    """Each record's checksum as it should be xor as it stands, 0 where it is right, shape (n,) uint32. records: (n,) of any layout that has
    the field `record_crc`; taken in pieces, so that a long log is not copied whole."""
    out = np.zeros(len(records), np.uint32)
    block = max(1, (1 << 20) // records.dtype.itemsize)  # stays in the processor's cache
    for start in range(0, len(records), block):
        part = records[start : start + block].copy()
        part[CRC_FIELD] = 0
        out[start : start + block] = checksums(part) ^ records[CRC_FIELD][start : start + block]
    return out


def damaged_records(records: np.ndarray, aux: Sequence[str] = ()) -> list[tuple[int, str]]:
    """(tick, channel) of every record whose checksum is wrong; channel is "" when more than one bit changed.

    records: (n,) of `record_dtype`. aux: names of the auxiliary scalars. A flipped bit in `tick` itself is undone in the answer.
    """
    found, syndrome = [], syndromes(records)
    for i in np.flatnonzero(syndrome):
        bit = flipped_bit(int(syndrome[i]), records.dtype.itemsize)
        tick = int(records["tick"][i])
        channel = "" if bit is None else channel_at(bit // 8, records.dtype, aux)
        if channel == "tick" and bit is not None:
            tick ^= 1 << (bit - 8 * records.dtype.fields["tick"][1])  # type: ignore[index]
        found.append((tick, channel))
    return found


def flipped_bit(syndrome: int, size: int) -> int | None:
    """Which bit of a record of `size` bytes explains this difference of checksums, or None."""
    if syndrome.bit_count() == 1:  # the checksum itself was hit (no single bit of the body gives a one-bit difference at these lengths)
        return 8 * CRC_OFFSET + syndrome.bit_length() - 1
    return _syndromes(size).get(syndrome)


@lru_cache(maxsize=2)
def _syndromes(size: int) -> dict[int, int]:
    """Difference of the checksum for each single flipped bit of the record outside `record_crc`."""
    pattern, zero = bytearray(size), zlib.crc32(bytes(size))
    table = {}
    for byte in range(size):
        if CRC_OFFSET <= byte < CRC_OFFSET + 4:
            continue
        for bit in range(8):
            pattern[byte] = 1 << bit
            table[zlib.crc32(pattern) ^ zero] = 8 * byte + bit
        pattern[byte] = 0
    return table


def channel_at(byte: int, dtype: np.dtype, aux: Sequence[str] = ()) -> str:
    """Name of the scalar that holds this byte of a record, as `name` or `name[i]`."""
    for name in dtype.names or ():
        kind, start = dtype.fields[name][:2]  # type: ignore[index]
        if start <= byte < start + kind.itemsize:
            i = (byte - start) // kind.base.itemsize
            if name == "aux":
                return aux[i] if i < len(aux) else f"aux[{i}]"
            return f"{name}[{i}]" if kind.shape else name
    raise IndexError(f"byte {byte} is beyond a record of {dtype.itemsize} bytes")
