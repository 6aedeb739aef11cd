"""A log for the pages: its frame at any time, curves of any channel, its events."""

import time
from pathlib import Path

import numpy as np

from hil_server.console.alarm import of_log
from hil_server.console.picture import Picture
from hil_server.judge.crafts import is_names
from hil_server.log.reader import Log, read_log
from hil_server.pages.thinning import thin
from rt_kernels.codes import bit_names, code_name
from rt_kernels.layout import FIELDS
from rt_kernels.pictures import Values

POINTS = 1500  # of a curve: more than a screen has columns


def logs_in(folder: Path) -> dict[str, str]:
    """Every log below the folder, newest first: path → name shown."""
    found = sorted(folder.rglob("*.mcap"), key=lambda path: path.stat().st_mtime, reverse=True)
    return {str(path): str(path.relative_to(folder)) for path in found}


def channels_of(log: Log) -> dict[str, np.ndarray]:
    """Scalar channels of a log: `name` or `name[i]` → (n,)."""
    found: dict[str, np.ndarray] = {}
    for name in log.records.dtype.names or ():
        column = log.records[name]
        if name in ("aux", "pad", "record_crc") or column.dtype.kind not in "fiu":
            continue
        found |= {name: column} if column.ndim == 1 else {f"{name}[{i}]": column[:, i] for i in range(column.shape[1])}
    return found | {name: log.records["aux"][:, i] for i, name in enumerate(log.aux_names)}


def thinned(t: np.ndarray, values: np.ndarray, points: int = POINTS) -> list[list[float]]:
    """[t, value] pairs, at most about `points`, that keep the smallest and the largest value of every stretch."""
    pairs: list[list[float]] = np.column_stack(thin(t, values, points)).tolist()
    return pairs


def events_of(log: Log) -> list[tuple[float, str]]:
    """(time, name) of the first tick of every event and change of phase, in order of time."""
    words = log.records["events"].astype(np.int64)
    found = []
    for tick in np.flatnonzero(words & ~np.concatenate(([0], words[:-1]))):
        before = int(words[tick - 1]) if tick else 0
        found += [(float(log.time_s[tick]), name.replace("_", " ")) for name in bit_names("event", int(words[tick]) & ~before)]
    phase = log.records["phase"]
    changes = np.flatnonzero(np.diff(phase, prepend=phase[:1] - 1)) if len(phase) else np.zeros(0, np.int64)
    found += [(float(log.time_s[i]), f"phase {code_name('phase', int(phase[i]))}") for i in changes]
    return sorted(found)


class Recording:
    """One log. Raises LogError, and UsageError when it holds no record."""

    def __init__(self, path: str | Path) -> None:
        from hil_server.errors import UsageError

        self.log = read_log(path)
        if not self.log.ticks:
            raise UsageError(f"{path}: this log has no record")
        self.name = self.log.header.run_id
        self.channels = channels_of(self.log)
        self.picture = Picture(self.log.header.configuration)
        self.picture.crafts.look_at(self.log)
        self._names = [name for name in self.log.records.dtype.names or () if name not in ("aux", "pad", "record_crc")]

    @property
    def what(self) -> str:
        """One line: run, mode, length, and whether the log is whole."""
        log = self.log
        whole = "whole" if log.complete else f"incomplete: {'; '.join(log.incomplete)}"
        return f"{log.header.run_id}, {log.header.mode}, {log.ticks} ticks, {whole}"

    def facts(self) -> dict[str, object]:
        """What the page's cursor needs."""
        last, t = self.log.records[-1], self.log.time_s
        return {
            "from": float(t[0]),
            "to": float(t[-1]),
            "first_contact": float(last["first_contact_time"]),
            "capture": float(last["capture_time"]),
            "created": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.log.header.created)),
            "notes": "; ".join(note for note in self.log.header.notes if not is_names(note)),
            "trip": of_log(self.log),
            "units": {field[0]: field[3] for field in FIELDS} | {channel.name: channel.unit for channel in self.log.header.aux},
        }

    def at(self, t: float) -> int:
        """The last tick that is not after t."""
        return int(np.clip(np.searchsorted(self.log.time_s, t + 1e-9, side="right") - 1, 0, self.log.ticks - 1))

    def values(self, i: int) -> Values:
        """All channels of tick number i of the log by name."""
        record = self.log.records[i]
        values = {name: record[name].tolist() for name in self._names}
        aux = record["aux"].tolist()
        for channel in self.log.header.aux:
            part = aux[channel.offset : channel.offset + channel.count]
            values[channel.name] = part[0] if channel.count == 1 else part
        return values

    def instant(self, t: float) -> tuple[dict[str, object], Values]:
        """The frame of the last tick that is not after t, and all channels of that very tick."""
        i = self.at(t)
        values = self.values(i)
        return {"t": float(self.log.time_s[i]), "tick": values["tick"], **self.picture.frame(values)}, values

    def frame(self, t: float) -> dict[str, object]:
        """The frame of the last tick that is not after t [s]."""
        return self.instant(t)[0]

    def curves(self, names: list[str], start: float, stop: float) -> dict[str, object]:
        """The channels between two times, thinned: {"names", "data": [[[t, value], ...], ...], "range"}."""
        t = self.log.time_s
        a, b = np.searchsorted(t, [start, stop])
        known = [name for name in names if name in self.channels]
        data = [np.nan_to_num(thinned(t[a:b], self.channels[name][a:b].astype(float))).tolist() for name in known]
        return {"names": known, "data": data, "range": [start, stop]}
