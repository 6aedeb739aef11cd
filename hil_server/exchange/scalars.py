"""A record as scalar columns for people and other tools: names, units."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hil_server.exchange.plain_names import components, distinct, identifier
from hil_server.log.reader import Log
from hil_server.log.record import scalar_names
from hil_server.requirements.units import scalar_units
from rt_kernels.layout import FIELDS


@dataclass(frozen=True)
class Column:
    """One scalar channel of a log. values: (n,), contiguous. component: its name within the channel, "" of a channel of one number."""

    name: str
    channel: str
    unit: str
    frame: str
    role: str
    meaning: str
    values: np.ndarray
    component: str = ""


def columns(log: Log) -> Iterator[Column]:
    """Every scalar of the log: the fields in the order of the tick, then the auxiliary channels."""
    for name, _, count, unit, frame, _, role, _, meaning in FIELDS:
        data = log.records[name].reshape(log.ticks, count)
        for i, (scalar, part) in enumerate(zip(scalar_names(name, count), scalar_units(unit, count), strict=True)):
            component = components(unit, count)[i] if count > 1 else ""
            yield Column(scalar, name, part, frame, role, meaning, np.ascontiguousarray(data[:, i]), component)
    for channel in log.header.aux:
        for i, scalar in enumerate(scalar_names(channel.name, channel.count)):
            values = np.ascontiguousarray(log.records["aux"][:, channel.offset + i])
            component = str(i) if channel.count > 1 else ""
            yield Column(scalar, channel.name, channel.unit, "", "auxiliary", channel.meaning, values, component)


def plain_names(chosen: Iterable[Column]) -> dict[str, str]:
    """Scalar name → plain name, of columns of a log: `F_T[0]` → `F_T_x`."""
    listed = list(chosen)
    plain = [identifier(c.channel) + (f"_{c.component}" if c.component else "") for c in listed]
    return dict(zip([c.name for c in listed], distinct(plain), strict=True))
