"""Logs of an earlier table of channels: read by the names that their own schema gives, as records of today's table.

A field that was renamed is found by its former name; one that had fewer numbers is 0 behind them. A field that the log does not have, or
has with another type, holds its value before the first tick and is `absent`: nothing compares it. The checksums are those of the records as
they were written; the converted records get new ones, so damage has to be looked for before.
"""

import re

import numpy as np

from hil_server.log.format import MAX_AUX, LogError
from hil_server.log.record import CRC_FIELD, ROS2_TYPES, checksums, record_dtype, syndromes
from rt_kernels.layout import FORMER_FIELDS, INITIAL, SAMPLE_DTYPE

LINE = re.compile(r"(\w+?)(?:\[(\d{1,6})\])? (\w+)  # (\w+) ")
TYPES = {ros2: f"<{ours}" for ours, ros2 in ROS2_TYPES.items()}
MAX_RECORD = 1 << 16  # bytes of the fields of a sample; ours have about 2,500


def dtype_of(schema: str, aux_count: int) -> np.dtype:
    """Structured type of the records, of the text of the schema. Raises LogError when that describes no record of a tick."""
    fields: list[tuple[str, str, tuple[int, ...]]] = []
    for line in schema.splitlines():
        found = LINE.match(line)
        if found is None or found[1] not in TYPES:
            raise LogError(f"schema of the log: line {len(fields) + 1} is no field of a record: {line!r:.80}")
        count = int(found[2]) if found[2] else 1
        if found[3] == "aux":
            if count != aux_count or not 0 < count <= MAX_AUX:
                raise LogError(f"schema of the log: {count} auxiliary scalars, its header declares {aux_count}")
            continue
        fields.append((found[4], TYPES[found[1]], (count,) if count > 1 else ()))
    types = {name: (kind, shape) for name, kind, shape in fields}
    size = sum(np.dtype(kind).itemsize * int(np.prod(shape)) for kind, shape in types.values())
    if len(types) != len(fields) or "aux" in types or size > MAX_RECORD or size % 8:
        limit = f"limit {MAX_RECORD} bytes, a multiple of 8"
        raise LogError(f"schema of the log: {len(fields)} fields, {len(types)} names, which must differ; {size} bytes, {limit}")
    for name in ("tick", "time_ns", CRC_FIELD):
        if types.get(name) != (SAMPLE_DTYPE[name].base.str, SAMPLE_DTYPE[name].shape):
            raise LogError(f"schema of the log: no field {name!r} of the type it has in every record")
    return np.dtype([*fields, ("aux", "<f8", (aux_count,))])


def damaged(records: np.ndarray) -> list[tuple[int, str]]:
    """(tick, "") of every record whose own checksum is wrong."""
    return [(int(tick), "") for tick in records["tick"][syndromes(records) != 0]]


def _fits(theirs: np.dtype, ours: np.dtype) -> bool:
    """Whether a field has our type, and as many numbers at most."""
    return theirs.base == ours.base and theirs.ndim <= 1 and theirs.itemsize <= ours.itemsize


def converted(records: np.ndarray) -> tuple[np.ndarray, frozenset[str]]:
    """The same ticks as records of today's table, shape (n,), and the names of the fields that they do not have."""
    names = {FORMER_FIELDS.get(name, name): name for name in records.dtype.names or ()}
    out = np.zeros(len(records), record_dtype(records.dtype["aux"].shape[0]))
    absent = set()
    for name in SAMPLE_DTYPE.names or ():
        theirs = names.get(name)
        if theirs is not None and _fits(records.dtype[theirs], SAMPLE_DTYPE[name]):
            out[name].reshape(len(out), -1)[:, : records.dtype[theirs].itemsize // SAMPLE_DTYPE[name].base.itemsize] = (
                records[theirs].reshape(len(out), -1))  # fmt: skip
        elif name != "pad":
            absent.add(name)
            out[name] = INITIAL.get(name, 0)
    out["aux"] = records["aux"]
    out[CRC_FIELD] = 0
    out[CRC_FIELD] = checksums(out)
    return out, frozenset(absent)
