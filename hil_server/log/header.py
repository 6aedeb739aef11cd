"""What a log says of its run before the first tick, and how each of these facts is kept in the file.

A field of `LogHeader` is declared here once, with its default and with the kind that stores it, reads it again and checks it: writer,
reader and the text for another process go over the fields. Where its value comes from stands in `hil_server.line.run_header`.
"""

import base64
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from hil_server.log.format import MAX_AUX, Facts, LogError
from hil_server.log.record import AuxChannel, aux_channels
from rt_kernels.doors import time
from rt_kernels.layout import CODES, LAYOUT_HASH, SAMPLE_DTYPE
from rt_kernels.parameters import TunableEntry
from rt_kernels.stages import FORMER_ROLES

TOML, JSON, BYTES = "application/toml", "application/json", "application/octet-stream"
MAX_TUNABLES = SAMPLE_DTYPE["tuned"].shape[0]
# Beginnings of notes of a start that was made although something spoke against it.
FORCED, CONFIRMED = "armed by --force", "armed anyway, confirmed with: "
TUNABLE_TEXTS, TUNABLE_NUMBERS = ("name", "unit", "meaning"), ("low", "high", "rate_per_s", "value")
T = TypeVar("T")
N = TypeVar("N", int, float)


@dataclass
class Stored:
    """The header as a file has it. run: its metadata `run`, name → text; files: its attachments, name → (content, media type)."""

    path: Path | None = None
    run: dict[str, str] = field(default_factory=dict)
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)

    def fault(self, what: str) -> LogError:
        """The error to raise about this log."""
        return LogError(f"{self.path}: {what}")

    def content(self, name: str) -> bytes:
        """The attachment's bytes; none, where there is no such attachment."""
        return self.files.get(name, (b"", ""))[0]

    def text(self, name: str) -> str:
        """An attachment as text, "" where there is none. Raises LogError."""
        try:
            return self.content(name).decode()
        except UnicodeDecodeError as error:
            raise self.fault(f"attachment {name}: not UTF-8 text: byte {error.start}") from None

    def parsed(self, what: str, text: str, kind: type[T]) -> T:
        """JSON of this kind, dict or list. Raises LogError that names `what`."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.fault(f"{what}: not JSON: {error}") from None
        if not isinstance(value, kind):
            raise self.fault(f"{what}: must be a {'table' if kind is dict else 'list'}")
        return value

    def entry(self, name: str, kind: type[T], later: bool = False) -> T:
        """JSON of this kind in the metadata; later: empty where it is not there. Raises LogError that names it."""
        text = self.run.get(name, json.dumps(kind()) if later else None)
        if text is None:
            raise self.fault(f"metadata run: {name} is missing")
        return self.parsed(f"metadata run: {name}", text, kind)


class Kind(ABC, Generic[T]):
    """How a field is kept. `read` raises LogError that names what is missing or wrong."""

    @abstractmethod
    def write(self, name: str, value: T, stored: Stored) -> None:
        """Puts the field into `stored`."""

    @abstractmethod
    def read(self, name: str, stored: Stored) -> T:
        """The field out of `stored`. Raises LogError."""

    def plain(self, value: T) -> object:
        """As a JSON value, for another process."""
        return value

    def restored(self, plain: Any) -> T:
        """The entry's value from the one in JSON."""
        value: T = plain
        return value


@dataclass(frozen=True)
class Text(Kind[str]):
    """Text of the metadata. required: the reader refuses a file without it."""

    default: str | None = ""

    def write(self, name: str, value: str, stored: Stored) -> None:
        """Puts the text into the log's metadata."""
        stored.run[name] = value

    def read(self, name: str, stored: Stored) -> str:
        """The text out of the log's metadata. Raises LogError if it is missing and has no default."""
        value = stored.run.get(name, self.default)
        if value is None:
            raise stored.fault(f"metadata run: {name} is missing")
        return value


@dataclass(frozen=True)
class Number(Kind[N]):
    """A number of the metadata within low ... high."""

    kind: type[N]
    low: float
    high: float

    def write(self, name: str, value: N, stored: Stored) -> None:
        """Puts the number into the log's metadata."""
        stored.run[name] = str(value)

    def read(self, name: str, stored: Stored) -> N:
        """The number out of the log's metadata. Raises LogError if it is missing or no number."""
        try:
            value = self.kind(stored.run[name])
        except (KeyError, ValueError):
            raise stored.fault(f"metadata run: {name} is missing or not a number") from None
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise stored.fault(f"metadata run: {name} is {value:g}, limit {self.low:g} ... {self.high:g}")
        return value


class Json(Kind[T]):
    """JSON of the metadata, as `plain` gives it."""

    def write(self, name: str, value: T, stored: Stored) -> None:
        """Puts the value as JSON into the log's metadata."""
        stored.run[name] = json.dumps(self.plain(value), default=str)


@dataclass(frozen=True)
class Entries(Json[dict[str, T]]):
    """A table of the metadata. later: files that were written before this field had come have none."""

    later: bool = False

    def read(self, name: str, stored: Stored) -> dict[str, T]:
        """The table out of the log's metadata. Raises LogError if it is missing or no table."""
        return stored.entry(name, dict, self.later)


class Lines(Json[list[str]]):
    """A list of lines for people."""

    def read(self, name: str, stored: Stored) -> list[str]:
        """The list, each member as text. Raises LogError if it is missing or no list."""
        return [str(line) for line in stored.entry(name, list)]


class AuxChannels(Json[tuple[AuxChannel, ...]]):
    """Declared auxiliary channels, each [name, unit, meaning, count]."""

    def read(self, name: str, stored: Stored) -> tuple[AuxChannel, ...]:
        """The channels as they were declared. Raises LogError for a declaration that is none."""
        declared = stored.entry(name, list)
        for entry in declared:
            whole = isinstance(entry, list) and len(entry) == 4 and all(isinstance(word, str) for word in entry[:3])
            if not whole or type(entry[3]) is not int or not 1 <= entry[3] <= MAX_AUX:
                raise stored.fault(f"metadata run: {name}: {entry!r:.80} is not [name, unit, meaning, 1 ... {MAX_AUX}]")
        if sum(entry[3] for entry in declared) > MAX_AUX:
            raise stored.fault(f"metadata run: {name}: more than {MAX_AUX} auxiliary scalars")
        return aux_channels(declared)

    def plain(self, value: tuple[AuxChannel, ...]) -> list[list[str | int]]:
        """The channels as lists for JSON."""
        return [channel.declaration() for channel in value]


class Tunables(Json[list[TunableEntry]]):
    """The run's tunable parameters by number, each a table as `TunedParameter.entry` makes it. Earlier files have none."""

    def read(self, name: str, stored: Stored) -> list[TunableEntry]:
        """The list. Raises LogError for an entry that is none, or too many of them."""
        listed = stored.entry(name, list, later=True)
        if len(listed) > MAX_TUNABLES or len({str(entry.get("name")) if isinstance(entry, dict) else "" for entry in listed}) < len(listed):
            raise stored.fault(f"metadata run: {name}: {len(listed)} entries, limit {MAX_TUNABLES} with different names")
        for entry in listed:
            if not isinstance(entry, dict) or set(entry) != {*TUNABLE_TEXTS, *TUNABLE_NUMBERS, "phases"}:
                raise stored.fault(f"metadata run: {name}: {entry!r:.80} is no tunable parameter")
            numbers = [entry[key] for key in TUNABLE_NUMBERS]
            right = all(isinstance(entry[key], str) for key in TUNABLE_TEXTS) and isinstance(entry["phases"], list)
            right = right and all(isinstance(phase, str) and phase in CODES["phase"] for phase in entry["phases"])
            right = right and all(type(x) in (int, float) and math.isfinite(x) for x in numbers)
            if not right or not entry["low"] <= entry["value"] <= entry["high"] or not entry["rate_per_s"] > 0.0:
                raise stored.fault(f"metadata run: {name}: {entry!r:.80}: text, phase or number is none, or beyond its limits")
        return listed


class Texts(Json[dict[str, str]]):
    """Files, name → text: their names in the metadata, in order, each an attachment FIELD/NAME."""

    def write(self, name: str, value: dict[str, str], stored: Stored) -> None:
        """Puts the files' names into the metadata and each file into an attachment."""
        stored.run[name] = json.dumps(list(value))
        stored.files |= {f"{name}/{file}": (text.encode(), TOML) for file, text in value.items()}

    def read(self, name: str, stored: Stored) -> dict[str, str]:
        """The files by name. Raises LogError if the names are no list of names, or a file is missing."""
        names = stored.entry(name, list)
        if not all(isinstance(file, str) for file in names):
            raise stored.fault(f"metadata run: {name}: must be a list of names")
        return {file: stored.text(f"{name}/{file}") for file in names}


class JsonFile(Kind[Facts]):
    """A table as an attachment FIELD.json."""

    def write(self, name: str, value: Facts, stored: Stored) -> None:
        """Puts the table into an attachment."""
        stored.files[f"{name}.json"] = (json.dumps(value, default=str).encode(), JSON)

    def read(self, name: str, stored: Stored) -> Facts:
        """The table out of its attachment, empty where there is none. Raises LogError if it is no table."""
        file = f"{name}.json"
        return stored.parsed(file, stored.text(file) if file in stored.files else "{}", dict)


class Block(Kind[bytes]):
    """Bytes as an attachment."""

    def write(self, name: str, value: bytes, stored: Stored) -> None:
        """Puts the bytes into an attachment."""
        stored.files[name] = (value, BYTES)

    def read(self, name: str, stored: Stored) -> bytes:
        """The attachment's bytes."""
        return stored.content(name)

    def plain(self, value: bytes) -> str:
        """The bytes in base 64, for JSON."""
        return base64.b64encode(value).decode()

    def restored(self, plain: str) -> bytes:
        """The bytes again."""
        return base64.b64decode(plain)


@dataclass(frozen=True)
class Blocks(Kind[dict[str, bytes]]):
    """Bytes by name, each an attachment FOLDER/NAME."""

    folder: str

    def write(self, name: str, value: dict[str, bytes], stored: Stored) -> None:
        """Puts each block into an attachment of its own."""
        stored.files |= {f"{self.folder}/{key}": (block, BYTES) for key, block in value.items()}

    def read(self, name: str, stored: Stored) -> dict[str, bytes]:
        """The blocks by role; roles of earlier versions have today's names."""
        front = f"{self.folder}/"
        blocks = {key.removeprefix(front): block for key, (block, _) in stored.files.items() if key.startswith(front)}
        return {FORMER_ROLES.get(key, key): block for key, block in blocks.items()}

    def plain(self, value: dict[str, bytes]) -> dict[str, str]:
        """The blocks in base 64, for JSON."""
        return {key: base64.b64encode(block).decode() for key, block in value.items()}

    def restored(self, plain: Mapping[str, str]) -> dict[str, bytes]:
        """The blocks again."""
        return {key: base64.b64decode(block) for key, block in plain.items()}


def _kept(kind: Kind[T], *default: T, factory: Callable[[], T] | None = None) -> T:
    """A field of the header with its kind; without default and factory it must be given."""
    metadata = {"kind": kind}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    needed: T = field(metadata=metadata)
    return field(default=default[0], metadata=metadata) if default else needed


@dataclass
class LogHeader:
    """What is known of a run before its first tick. The order of the fields is their order in the file."""

    run_id: str = _kept(Text(default=None))  # name of the run
    layout_hash: str = _kept(Text(), LAYOUT_HASH)  # of the table of channels
    build_id: str = _kept(Text(), "")  # of the kernels
    mode: str = _kept(Text(), "")  # live, simulation, imported
    period_ns: int = _kept(Number(int, 1, 10**10), 1_000_000)  # nominal period of the loop
    created: float = _kept(Number(float, 0.0, 1e11), factory=time.time)  # seconds since 1970
    synthetic: str = _kept(Text(), "")  # what was made with invented geometry, "" when nothing was
    aux: tuple[AuxChannel, ...] = _kept(AuxChannels(), ())  # declared auxiliary channels
    tunables: list[TunableEntry] = _kept(Tunables(), factory=list)  # what can be changed while it runs, by number
    host: Facts = _kept(Entries(), factory=dict)  # facts of the machine
    devices: dict[str, str] = _kept(Entries(later=True), factory=dict)  # table of the stand file, and place → what it says it is
    delay_ledger: dict[str, float] = _kept(Entries(), factory=dict)  # term → seconds
    delay_origins: dict[str, str] = _kept(Entries(later=True), factory=dict)  # term → measured, identified, configured or derived
    prediction: Facts = _kept(Entries(later=True), factory=dict)  # what `hil-server predict` says of the run
    branch: Facts = _kept(Entries(later=True), factory=dict)  # of a run that continues another one: run, tick, set, ...
    notes: list[str] = _kept(Lines(), factory=list)  # lines for the reader
    configuration: dict[str, str] = _kept(Texts(), factory=dict)  # file name → text; the first is what the run was started with
    calibration: Facts = _kept(JsonFile(), factory=dict)  # of the sensors
    initial_record: bytes = _kept(Block(), b"")  # the record before tick 0
    states: dict[str, bytes] = _kept(Blocks("state"), factory=dict)  # stage → its snapshot before tick 0

    def __post_init__(self) -> None:
        self.aux = aux_channels(self.aux)

    @property
    def aux_count(self) -> int:
        """Number of doubles of the auxiliary channels."""
        return sum(channel.count for channel in self.aux)

    def store(self) -> Stored:
        """Metadata and attachments of this header."""
        stored = Stored()
        for name, kind in KINDS.items():
            kind.write(name, getattr(self, name), stored)
        return stored

    @classmethod
    def read(cls, stored: Stored) -> "LogHeader":
        """Raises LogError that names the first fact that is missing or not of its kind."""
        return cls(**{name: kind.read(name, stored) for name, kind in KINDS.items()})

    def to_json(self) -> str:
        """The header as text, for another process; bytes in base 64."""
        return json.dumps({name: kind.plain(getattr(self, name)) for name, kind in KINDS.items()}, default=str)

    @classmethod
    def from_json(cls, text: str) -> "LogHeader":
        """The header that `to_json` wrote."""
        return cls(**{name: KINDS[name].restored(value) for name, value in json.loads(text).items()})


KINDS: dict[str, Kind[Any]] = {one.name: one.metadata["kind"] for one in fields(LogHeader)}
