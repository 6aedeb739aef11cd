"""A log for the analyst: `from hil_server import open_log`.

    log = open_log("run.mcap")
    log["F_T"]                         # (n, 6) with unit, frame and meaning; "F_T[0]" is one component
    log.seconds                        # run time of the same ticks, s
    log.phase("contact")["F_T[0]"].values.min()
    log.around("first_contact", 1.0).to_pandas(["F_T", "X_TA"]).query("F_T_x < -100")

A log is read on demand: opening looks at the heads of its chunks; a channel is read by one walk over the chunks that the selection touches,
and memory holds that channel and one chunk. Read several channels together (`read`, `to_pandas`, `to_xarray`).

A selection (`phase`, `between`, `around`, `every`) is a log again, of fewer ticks, and reads nothing by itself.

Names: a channel is named as everywhere (`F_T`, `probe.stroke`), one of its numbers `F_T[0]`. Data frames and data sets have names that
queries take without quotes (`F_T_x`, `probe_stroke`): components of a spatial vector are x y z rx ry rz, of a pose x y z qx qy qz qw, of
anything else 0, 1, ...
"""

import difflib
import html
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from hil_server.errors import UsageError
from hil_server.exchange.plain_names import components, distinct, identifier
from hil_server.log.header import LogHeader
from hil_server.log.reader import LogFile
from hil_server.log.record import record_dtype, scalar_names
from hil_server.requirements.units import scalar_units
from rt_kernels.codes import bit_names, code_name, fault_names, words
from rt_kernels.layout import BITS, CODES, FIELDS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LOOK = 1 << 28  # bytes inside a log up to which its picture in a notebook reads it through for phases and events
SHOWN = 12  # events in that picture
Mask = Callable[[np.ndarray], np.ndarray]


class ChannelError(UsageError, KeyError):
    """A log has no such channel, phase or event; says which are near."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class ChannelInfo:
    """What a channel is. name: `F_T`, or `F_T[0]` of one number of it. unit: of each component ("N,N,N,N.m,N.m,N.m"), one where they are
    all alike. count: numbers a tick. field: of the record that holds it, at: which numbers of that field."""

    name: str
    unit: str
    frame: str
    role: str
    meaning: str
    count: int
    components: tuple[str, ...]
    field: str
    at: int

    @property
    def units(self) -> list[str]:
        """Unit of each component."""
        return scalar_units(self.unit, self.count)

    def taken(self, records: np.ndarray) -> np.ndarray:
        """The channel out of records, (n,) or (n, count), copied."""
        whole = records[self.field]
        if whole.ndim == 1:
            return whole.copy()
        return whole[:, self.at].copy() if self.count == 1 else whole[:, self.at : self.at + self.count].copy()


@dataclass(frozen=True, eq=False)
class Channel:
    """A channel of a log. values: (n,) or (n, count); seconds: (n,) run time, s. NumPy and Matplotlib take it as an array."""

    about: ChannelInfo
    values: np.ndarray
    seconds: np.ndarray

    @property
    def name(self) -> str:
        """As it was asked for."""
        return self.about.name

    @property
    def unit(self) -> str:
        """Unit, or one for each component with commas between."""
        return self.about.unit

    @property
    def meaning(self) -> str:
        """What it is, in words."""
        return self.about.meaning

    def words(self) -> list[str]:
        """What each tick's number says, for codes, bits and faults ("contact"; "DK1, DSG"). Raises UsageError for another channel."""
        if self.about.field == "faults":
            return [", ".join(fault_names(int(value))) or "-" for value in self.values]
        if self.values.dtype.kind not in "iu" or self.values.ndim != 1:
            raise UsageError(f"{self.name} has numbers, no words")
        known = {int(value): words(self.about.field, int(value)) for value in np.unique(self.values)}
        return [known[int(value)] for value in self.values]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        shape = " x ".join(str(n) for n in self.values.shape)
        return f"{self.name} [{self.unit}] {self.meaning}: {shape}{_range(self.values)}"


@dataclass(frozen=True)
class Event:
    """Something that began at a tick: an event, a phase ("phase contact"), a fault ("fault force_limit"), a command ("command hold")."""

    name: str
    seconds: float
    tick: int


@dataclass(frozen=True)
class PhaseSpan:
    """A phase from its first tick to its last, run time in s."""

    name: str
    start_s: float
    stop_s: float
    ticks: int


@dataclass(frozen=True)
class _Course:
    """What a walk over the whole log found: ticks that are there, their span, phases, events."""

    ticks: int
    events: tuple[Event, ...]
    phases: tuple[PhaseSpan, ...]


class LogView:
    """A log, or a selection of its ticks. Made by `hil_server.open_log`; close it, or use it as a context manager, where many are open."""

    def __init__(self, source: LogFile, chunks: Sequence[int] | None = None, masks: tuple[Mask, ...] = (), chosen: str = "") -> None:
        self._source = source
        self._chunks = chunks
        self._masks = masks
        self._chosen = chosen

    # ----------------------------------------------------------------------------------------------------------------- the run
    @property
    def header(self) -> LogHeader:
        """What is known of the run from before its first tick: configuration, delay ledger, host, notes."""
        return self._source.header

    @property
    def end(self) -> dict[str, Any]:
        """Facts that the run left at its end; {} when it was cut."""
        return self._source.end

    @property
    def created(self) -> datetime:
        """When the run began."""
        return datetime.fromtimestamp(self.header.created, UTC)

    @property
    def problems(self) -> list[str]:
        """Why the log is not whole, as far as it has been read; `check` reads all of it."""
        return self._source.incomplete

    def check(self) -> list[str]:
        """Reads the whole log: everything that is missing, left out or damaged in it, in words; [] when nothing is."""
        damage = [f"damaged record: tick {tick}" for _, ticks in self._source.damaged() for tick in ticks]
        course = self._course
        written = self._source.written
        if written is not None and written != course.ticks:
            damage.append(f"{course.ticks} ticks are in the file, {written} were written")
        if self._source.absent:
            damage.append(f"of an earlier table of channels, without {', '.join(sorted(self._source.absent))}")
        return [*self.problems, *damage]

    # ---------------------------------------------------------------------------------------------------------------- channels
    @cached_property
    def channels(self) -> Mapping[str, ChannelInfo]:
        """Every channel with unit and meaning, in the order of the tick, then the auxiliary ones of this run."""
        found = {}
        for name, _, count, unit, frame, _, role, _, meaning in FIELDS:
            found[name] = ChannelInfo(name, unit, frame, role, meaning, count, components(unit, count), name, 0)
        for aux in self.header.aux:
            parts = tuple(str(i) for i in range(aux.count))
            found[aux.name] = ChannelInfo(aux.name, aux.unit, "", "auxiliary", aux.meaning, aux.count, parts, "aux", aux.offset)
        return found

    def find(self, text: str) -> list[ChannelInfo]:
        """Channels with `text` in their name or meaning."""
        low = text.lower()
        return [about for about in self.channels.values() if low in about.name.lower() or low in about.meaning.lower()]

    def __getitem__(self, name: str) -> Channel:
        return self.read([name])[name]

    def read(self, names: Sequence[str]) -> dict[str, Channel]:
        """Several channels by one walk over the log. Raises ChannelError for a name that it does not have."""
        wanted = {name: self._about(name) for name in names}
        parts: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
        times: list[np.ndarray] = []
        for records in self.blocks():
            times.append(records["time_ns"].copy())
            for name, about in wanted.items():
                parts[name].append(about.taken(records))
        seconds = _joined(times, np.zeros(0, np.int64)) * 1e-9
        none = np.zeros(0, record_dtype(self.header.aux_count))
        return {name: Channel(about, _joined(parts[name], about.taken(none)), seconds) for name, about in wanted.items()}

    @cached_property
    def seconds(self) -> np.ndarray:
        """Run time of every tick, s, (n,)."""
        return _joined([records["time_ns"].copy() for records in self.blocks()], np.zeros(0, np.int64)) * 1e-9

    @property
    def ticks(self) -> int:
        """Number of ticks."""
        return len(self.seconds)

    def __len__(self) -> int:
        return self.ticks

    # --------------------------------------------------------------------------------------------------------------- selection
    def between(self, start_s: float, stop_s: float) -> "LogView":
        """Ticks of the run times start_s <= t <= stop_s; reads only the chunks that have some."""
        inside = set(self._source.between(start_s, stop_s))
        chunks = [number for number in self._numbers() if number in inside]

        def mask(records: np.ndarray) -> np.ndarray:
            t: np.ndarray = records["time_ns"] * 1e-9
            return (t >= start_s - 1e-12) & (t <= stop_s + 1e-12)

        return self._narrowed(f"{start_s:g} ... {stop_s:g} s", mask, chunks)

    def phase(self, *names: str) -> "LogView":
        """Ticks of these phases. Raises ChannelError for one that there is not."""
        codes = np.array([CODES["phase"][self._known("phase", name, CODES["phase"])] for name in names])
        return self._narrowed(f"phase {', '.join(names)}", lambda records: np.isin(records["phase"], codes))

    def around(self, event: str, before_s: float, after_s: float | None = None, which: int = 0) -> "LogView":
        """Ticks from before_s before an event to after_s (as long, if not given) after it. event: a name of `events()`; which: 0 the
        first, -1 the last. Raises ChannelError when it did not happen."""
        at = self.time_of(event, which)
        return self.between(at - before_s, at + (before_s if after_s is None else after_s))

    def every(self, number: int) -> "LogView":
        """Only ticks whose number is a multiple of this, for a look at a long run. Raises UsageError."""
        if number < 1:
            raise UsageError(f"every: {number}, limit 1 or more")
        return self._narrowed(f"every {number}th tick", lambda records: records["tick"] % number == 0)

    # ------------------------------------------------------------------------------------------------------------------ events
    def events(self) -> tuple[Event, ...]:
        """What began when, in the order of time, of the whole log: events, phases, faults, commands."""
        return self._course.events

    def phases(self) -> tuple[PhaseSpan, ...]:
        """The phases of the whole log, one after the other."""
        return self._course.phases

    def time_of(self, event: str, which: int = 0) -> float:
        """Run time of an event, s; which: 0 the first, -1 the last. Raises ChannelError when it did not happen."""
        found = [one.seconds for one in self.events() if one.name == event]
        try:
            return found[which]
        except IndexError:
            names = dict.fromkeys(one.name for one in self.events())
            known = event in names or event in BITS["event"]
            many = f"{len(found)} times" if found else "not"
            text = f"{event!r} happened {many} in this run" if known else f"no event {event!r}{_near(event, names)}"
            raise ChannelError(f"{text}; it has {', '.join(names) or 'none'}") from None

    @cached_property
    def _course(self) -> _Course:
        return _course_of(self._source)

    # ------------------------------------------------------------------------------------------------------------------ tables
    def to_pandas(self, channels: Sequence[str] | None = None, utc: bool = False) -> "pd.DataFrame":
        """A data frame, one column for each number, indexed by run time in s, or by time of day (`utc`). channels: None for all.

        `frame.attrs["channels"]` says channel, unit and meaning of each column. Raises ChannelError, UsageError without pandas.
        """
        pandas = _library("pandas")
        names = list(self.channels) if channels is None else list(channels)
        read = self.read(names)
        columns, about = {}, {}
        for scalar, column, unit, meaning, values in _flat(read):
            columns[column] = values
            about[column] = {"channel": scalar, "unit": unit, "meaning": meaning}
        seconds = next(iter(read.values())).seconds if read else self.seconds
        index = pandas.Index(seconds, name="seconds")
        if utc:
            index = pandas.DatetimeIndex(pandas.to_datetime(self._epoch_ns(seconds), unit="ns", utc=True), name="time")
        frame: pd.DataFrame = pandas.DataFrame(columns, index=index, copy=False)
        frame.attrs = {"run": self.header.run_id, "created": self.created.isoformat(), "channels": about}
        return frame

    def to_xarray(self, channels: Sequence[str] | None = None) -> "xr.Dataset":
        """A data set: one variable for each channel over `seconds`, with a dimension `F_T_component` of its own for components and
        `F_T_unit` beside it. Each variable has `units`, `long_name`, `frame` and `channel`. Raises ChannelError, UsageError without
        xarray."""
        xarray = _library("xarray")
        read = self.read(list(self.channels) if channels is None else list(channels))
        variables: dict[str, Any] = {}
        coordinates: dict[str, Any] = {}
        for plain, (name, channel) in zip(distinct(identifier(name) for name in read), read.items(), strict=True):
            about = channel.about
            facts = {"units": about.unit, "long_name": about.meaning, "frame": about.frame, "channel": name}
            dimensions = ["seconds"]
            if about.count > 1:
                dimensions.append(f"{plain}_component")
                coordinates[dimensions[1]] = list(about.components)
                coordinates[f"{plain}_unit"] = (dimensions[1], about.units)
            variables[plain] = (dimensions, channel.values, facts)
        seconds = next(iter(read.values())).seconds if read else self.seconds
        coordinates["seconds"] = ("seconds", seconds, {"units": "s", "long_name": "run time"})
        facts = {"run": self.header.run_id, "created": self.created.isoformat()}
        found: xr.Dataset = xarray.Dataset(variables, coords=coordinates, attrs=facts)
        return found

    # ------------------------------------------------------------------------------------------------------------------- shown
    def __repr__(self) -> str:
        rows = [f"{title:10}{text}" for title, text in self._told()]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(title)}</th>"
            f"<td style='text-align:left'>{html.escape(text).replace(chr(10), '<br>')}</td></tr>"
            for title, text in self._told()
        )
        table = "".join(
            f"<tr><td style='text-align:left'><code>{html.escape(about.name)}</code></td><td>{about.count}</td>"
            f"<td>{html.escape(about.unit)}</td><td style='text-align:left'>{html.escape(about.meaning)}</td></tr>"
            for about in self.channels.values()
        )
        head = "<tr><th>channel</th><th>numbers</th><th>unit</th><th style='text-align:left'>meaning</th></tr>"
        listed = f"<details><summary>{len(self.channels)} channels</summary><table>{head}{table}</table></details>"
        return f"<table>{rows}</table>{listed}"

    def _told(self) -> Iterator[tuple[str, str]]:
        """(title, text) of what people should see first."""
        h, (start, stop) = self.header, self._source.span_s
        yield "run", f"{h.run_id}, {h.mode or 'mode unknown'}, begun {self.created:%Y-%m-%d %H:%M:%S} UTC"
        yield "time", f"{start:.3f} ... {stop:.3f} s, period {h.period_ns * 1e-6:g} ms, {self._source.bytes_inside / 1e6:.0f} MB of ticks"
        if self._chosen:
            yield "selected", self._chosen
        if self._source.bytes_inside <= LOOK or "_course" in self.__dict__:
            yield "phases", ", ".join(f"{p.name} {p.start_s:.2f}-{p.stop_s:.2f} s" for p in self.phases()) or "-"
            ours = [one for one in self.events() if not one.name.startswith("phase ")]
            more = f", ... {len(ours) - SHOWN} more" if len(ours) > SHOWN else ""
            yield "events", ", ".join(f"{one.name} {one.seconds:.3f} s" for one in ours[:SHOWN]) + more if ours else "-"
        else:
            yield "phases", "a long log: phases() and events() read it through"
        if h.synthetic:
            yield "synthetic", h.synthetic
        yield "whole", "\n".join(self.problems) or "yes, as far as it was read"

    # ----------------------------------------------------------------------------------------------------------------- reading
    def _numbers(self) -> Sequence[int]:
        return range(len(self._source.places)) if self._chunks is None else self._chunks

    def blocks(self) -> Iterator[np.ndarray]:
        """Records chunk by chunk, (n,) structured with the fields of the table and `aux`; those that are selected."""
        for number in self._numbers():
            records = self._source.records(number)
            keep = np.ones(len(records), bool)
            for mask in self._masks:
                keep &= mask(records)
            if keep.all():
                yield records
            elif keep.any():
                yield records[keep]

    def _narrowed(self, what: str, mask: Mask, chunks: Sequence[int] | None = None) -> "LogView":
        chosen = f"{self._chosen}, {what}" if self._chosen else what
        view = LogView(self._source, self._chunks if chunks is None else chunks, (*self._masks, mask), chosen)
        if "_course" in self.__dict__:
            view.__dict__["_course"] = self._course
        return view

    def _about(self, name: str) -> ChannelInfo:
        if name in self.channels:
            return self.channels[name]
        found = re.fullmatch(r"(.+)\[(\d+)\]", name)
        if found and found[1] in self.channels and int(found[2]) < (whole := self.channels[found[1]]).count and whole.count > 1:
            i = int(found[2])
            return replace(whole, name=name, unit=whole.units[i], count=1, components=(whole.components[i],), at=whole.at + i)
        scalars = (scalar for about in self.channels.values() for scalar in (about.name, *scalar_names(about.name, about.count)))
        known: dict[str, None] = dict.fromkeys(scalars)
        raise ChannelError(f"no channel {name!r} in this log{_near(name, known)}; log.channels has them all")

    def _known(self, kind: str, name: str, names: Collection[str]) -> str:
        if name not in names:
            raise ChannelError(f"no {kind} {name!r}{_near(name, names)}; there are {', '.join(names)}")
        return name

    def _epoch_ns(self, seconds: np.ndarray) -> np.ndarray:
        """Nanoseconds since 1970 of run times."""
        start = round(self.header.created * 1e9)
        ns: np.ndarray = start + np.round(seconds * 1e9).astype(np.int64)
        return ns

    def close(self) -> None:
        """Lets the file go."""
        self._source.close()

    def __enter__(self) -> "LogView":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


# --------------------------------------------------------------------------------------------------------------------- names
def _plain_names(about: ChannelInfo) -> list[str]:
    """Names of a channel's numbers that queries take: `F_T_x`."""
    plain = identifier(about.name.partition("[")[0] if about.count == 1 and about.name.endswith("]") else about.name)
    alone = about.count == 1 and not about.name.endswith("]")
    return [plain] if alone else [f"{plain}_{part}" for part in about.components]


def _flat(read: Mapping[str, Channel]) -> Iterator[tuple[str, str, str, str, np.ndarray]]:
    """(channel or number of it, name of the column, unit, meaning, values) of every number."""
    names = iter(distinct(plain for channel in read.values() for plain in _plain_names(channel.about)))
    for channel in read.values():
        about = channel.about
        parts = channel.values.reshape(len(channel.values), about.count)
        for i, (scalar, unit) in enumerate(zip(scalar_names(about.name, about.count), about.units, strict=True)):
            yield scalar, next(names), unit, about.meaning, np.ascontiguousarray(parts[:, i])


def _near(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, 3, 0.5)
    return f"; near: {', '.join(close)}" if close else ""


def _joined(parts: list[np.ndarray], nothing: np.ndarray) -> np.ndarray:
    return np.concatenate(parts) if parts else nothing


def _range(values: np.ndarray) -> str:
    if not values.size:
        return ", no tick"
    known = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return f", {known.min():g} ... {known.max():g}" if known.size else ", no finite number"


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise UsageError(f"this needs {name}: pip install 'hil-server[analyst]'") from None


# -------------------------------------------------------------------------------------------------------------------- course
def _course_of(source: LogFile) -> _Course:
    """One walk over a log: number of ticks, phases, and everything that began. Keeps the changes alone."""
    ticks, before = 0, {"events": 0, "faults": 0}
    phase_now: int | None = None
    events: list[Event] = []
    spans: list[PhaseSpan] = []
    last_command: int | None = None
    for number in range(len(source.places)):
        records = source.records(number)
        if not len(records):
            continue
        ticks += len(records)
        t = records["time_ns"] * 1e-9
        for i, name in _risen(records, "events", before["events"], lambda word: bit_names("event", word)):
            events.append(Event(name, float(t[i]), int(records["tick"][i])))
        for i, name in _risen(records, "faults", before["faults"], fault_names):
            events.append(Event(f"fault {name}", float(t[i]), int(records["tick"][i])))
        before = {name: int(records[name][-1]) for name in before}
        sequence = records["command_sequence"]
        first = int(sequence[0]) if last_command is None else last_command
        for k in np.flatnonzero(np.diff(sequence, prepend=first)):
            events.append(Event(f"command {code_name('command', int(records['command_code'][k]))}", float(t[k]), int(records["tick"][k])))
        last_command = int(sequence[-1])
        phase = records["phase"]
        edges = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist(), len(phase)]
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            if phase_now == phase[a] and spans:
                spans[-1] = replace(spans[-1], stop_s=float(t[b - 1]), ticks=spans[-1].ticks + int(b - a))
                continue
            phase_now = int(phase[a])
            name = code_name("phase", phase_now)
            spans.append(PhaseSpan(name, float(t[a]), float(t[b - 1]), b - a))
            events.append(Event(f"phase {name}", float(t[a]), int(records["tick"][a])))
    events.sort(key=lambda one: one.tick)
    return _Course(ticks, tuple(events), tuple(spans))


def _risen(records: np.ndarray, field: str, before: int, names: Callable[[int], list[str]]) -> Iterator[tuple[int, str]]:
    """(number of the record, name) of every bit that came on."""
    word = records[field].astype(np.int64)
    new = word & ~np.concatenate(([before], word[:-1]))
    for i in np.flatnonzero(new):
        for name in names(int(new[i])):
            yield int(i), name
