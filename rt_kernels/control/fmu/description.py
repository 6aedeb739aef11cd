"""An FMU's file: is it the one that was meant, what is in it, which variable stands where in a sample. Read with fmpy, before the run."""

import hashlib
import platform
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rt_kernels.layout import BITS, FIELDS, SAMPLE_DTYPE, WORDS
from rt_kernels.stages import STAGES

ROLE = "control"
# writers whose fields the stage may read: of this tick, and of the tick before
READABLE = next((*reads, *previous) for role, _, reads, previous in STAGES if role == ROLE)
WRITER = {name: rest[4] for name, *rest in FIELDS}
LAYOUT: Mapping[str, Any] = SAMPLE_DTYPE.fields or {}  # name → type, offset

REAL, INTEGER, BOOLEAN, FLOAT32 = range(4)  # as slave.h counts them
TYPES = {2: {"Real": REAL, "Integer": INTEGER, "Boolean": BOOLEAN},
         3: {"Float64": REAL, "Float32": FLOAT32, "Int32": INTEGER, "Boolean": BOOLEAN}}  # fmt: skip
F8, I8, I4, U4, BIT, CHANNEL, JOINT, ACTUATOR = range(8)  # kinds of place: as part.pyx counts them
KINDS = {"f8": F8, "i8": I8, "i4": I4, "u4": U4}
# types of a variable that take what stands there without loss
FITS = {**dict.fromkeys((F8, CHANNEL, JOINT, ACTUATOR), {REAL, FLOAT32}),
        I8: {REAL}, U4: {REAL}, I4: {REAL, FLOAT32, INTEGER, BOOLEAN}, BIT: {REAL, FLOAT32, INTEGER, BOOLEAN}}
MOST = {"inputs": 256, "outputs": 64}
FILE_MAX = 1 << 28  # bytes of the FMU's file
UNPACKED_MAX = 1 << 29  # and of all that is unpacked of it
DESCRIPTION_MAX = 1 << 25  # of modelDescription.xml
FILES_MAX = 5000
# name, [index or name], [index of a thing that has several numbers], .bit
PLACE = re.compile(r"(\w+)(?:\[([^\[\]]*)\])?(?:\[([^\[\]]*)\])?(?:\.(\w*))?")


class Place(NamedTuple):
    """A place of a sample: offset in bytes, kind of number there, mask of a bit (0: the whole number). CHANNEL: the offset is the number of
    the dynamics part's channel. JOINT: its mask in its word of `joint_controlled`. ACTUATOR: mask in `control_status` of one at
    its limit, target 1 on the target craft, wrench (6,) of a unit at and in the craft's centre of mass, low and high: what it gives;
    of a wheel inertia about its axis and momentum that it takes."""

    offset: int
    kind: int
    mask: int
    target: int = 0
    wrench: Sequence[float] = (0.0,) * 6
    low: float = 0.0
    high: float = 0.0
    inertia: float = 0.0
    momentum: float = 0.0


@dataclass(frozen=True)
class Wire:
    """A variable of the FMU and its place."""

    reference: int
    type: int
    place: Place


@dataclass(frozen=True)
class Start:
    """A start value."""

    reference: int
    type: int
    value: float


@dataclass(frozen=True)
class Description:
    """What the part has to know of an FMU. folder: where it is unpacked; its owner removes it."""

    version: int
    path: Path
    sha256: str
    name: str
    generator: str
    model_version: str
    token: str
    library: str
    resources: str
    keeps_state: bool
    inputs: tuple[Wire, ...]
    outputs: tuple[Wire, ...]
    start: tuple[Start, ...]
    folder: Path

    @property
    def note(self) -> str:
        """One line for the log."""
        made = ", ".join(filter(None, (f"version {self.model_version}" if self.model_version else "", self.generator)))
        return f"FMU {self.name} ({made or 'generator unknown'}; FMI {self.version}.0), sha256 {self.sha256}, {self.path}"


def described(file: str, folders: Iterable[Path], sha256: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any],
              start: Mapping[str, Any], step_s: float, trusted: Collection[str] | None = None,
              dynamics: Any = None) -> Description:  # fmt: skip
    """The FMU, unpacked and checked. trusted: SHA-256 of those that may run; None: the one that the keys name. dynamics: see `place`.
    Raises ValueError that names key, value and limit."""
    path = _found(file, folders)
    found = sum_of(path)
    if found != sha256.lower():
        raise ValueError(f"sha256: is not that of the FMU: value {sha256!r}, limit {found!r} ({path})")
    if trusted is not None and found not in trusted:
        raise ValueError(f"sha256: the configuration is that of a log, and a log does not say which code may run here: value {found!r}, "
                         f"limit an FMU that you trust (hil-server fmu trust {path}), or --run-fmu for this once")  # fmt: skip
    _refuse_bomb(path)
    try:
        import fmpy
    except ImportError as error:
        raise ValueError(f"part: an FMU is read with fmpy, which is not installed ({error}): pip install 'hil-server[fmu]'") from None
    try:
        model = fmpy.read_model_description(path, validate=False)
    except Exception as error:  # fmpy raises Exception itself, and what its XML and ZIP readers raise
        raise ValueError(f"file: cannot be read as an FMU: value {str(path)!r}, limit an FMU of version 2.0 or 3.0: {error}") from None
    version = model.fmiMajorVersion if str(model.fmiVersion).startswith(("2.0", "3.0")) else 0
    if version not in TYPES:
        raise ValueError(f"file: fmiVersion of {path} is {model.fmiVersion!r}, limit 2.0 or 3.0")
    interface = model.coSimulation
    if interface is None:
        has = "model exchange" if model.modelExchange else "scheduled execution"
        raise ValueError(f"file: {path} has no interface for co-simulation: value {has}, limit co-simulation")
    fixed = getattr(interface, "fixedInternalStepSize", None)
    if fixed is not None and abs(step_s / float(fixed) - round(step_s / float(fixed))) > 1e-9:
        raise ValueError(f"step_ticks: communication step {step_s:g} s, limit a whole multiple of the FMU's own step, {float(fixed):g} s")
    known = {variable.name: variable for variable in model.modelVariables}
    faults: list[str] = []
    wired = {
        "inputs": _wires("inputs", inputs, known, "input", version, dynamics, faults),
        "outputs": _wires("outputs", outputs, known, "output", version, dynamics, faults),
    }
    begun = _starts(start, known, version, faults)
    if not outputs:
        faults.append("outputs: empty, limit at least one variable of the FMU")
    if faults:
        raise ValueError("; ".join(faults))
    folder, library = _unpacked(path, model, version)
    resources = folder / "resources"
    keeps = interface.canGetAndSetFMUstate and interface.canSerializeFMUstate
    return Description(
        version=version, path=path, sha256=found, name=model.modelName or "", generator=model.generationTool or "",
        model_version=model.version or "", token=model.guid or "", library=str(library),
        resources=resources.as_uri() if version == 2 else f"{resources}/", keeps_state=bool(keeps),
        inputs=wired["inputs"], outputs=wired["outputs"], start=begun, folder=folder,
    )  # fmt: skip


def place(text: Any, writers: Sequence[str], dynamics: Any = None) -> Place:
    """Where "field", "field[index]", "field[name]" or "field.bit" stands in a sample, or a channel of the dynamics part among its channels.
    dynamics: the part, with names in `named` (channel or field -> names, numbers of each), `driven` (joints) and `actuators` where it has
    them. Raises ValueError with the limit."""
    if not isinstance(text, str):
        raise ValueError("a field of the sample, as 'X_TA[0]' or 'control_request.press'")
    matched = PLACE.fullmatch(text)
    name, of, number, bit = matched.groups() if matched else (text, None, None, None)
    channels = {channel.name: channel.count for channel in getattr(dynamics, "AUX", ())} if "dynamics" in writers else {}
    if name in channels and name not in WRITER and not bit:
        before = sum(list(channels.values())[: list(channels).index(name)])
        return Place(before + _element(name, of, number, channels[name], dynamics), CHANNEL, 0)
    if name not in WRITER or WRITER[name] not in writers:
        by = f"which {WRITER[name]} writes, " if name in WRITER else ""
        or_channel = f", or a channel of the dynamics part: {', '.join(channels)}" if channels else ""
        raise ValueError(f"{by}a field of {', '.join(writers)} (the table: rt_kernels/CHANNELS.md){or_channel}")
    if name == "joint_controlled" or (name == "joint_target" and of not in getattr(dynamics, "driven", ())):
        raise ValueError(_listed([f"joint_target[{joint}]" for joint in getattr(dynamics, "driven", ())], "a driven joint: there is none"))
    base = SAMPLE_DTYPE[name]
    element = _element(name, of, number, base.shape[0] if base.shape else 1, dynamics)
    offset, kind = LAYOUT[name][1] + element * base.base.itemsize, KINDS[base.base.str[1:]]
    if name == "joint_target":
        return Place(offset, JOINT, 1 << element % 32)
    if WRITER[name] == ROLE and of is not None and not of.isdecimal():
        limited = BITS["control_status"]["wheel_limited" if name.startswith("wheel") else "thrust_limited"]
        return Place(offset, ACTUATOR, limited, int(name.endswith("T")), *dynamics.actuators[name][element])
    if not bit:
        return Place(offset, kind, 0)
    group, word = WORDS.get(name, ("", ""))
    bits = BITS[word] if group == "bits" else {}
    if bit not in bits:
        raise ValueError(f"a bit of {name}: {', '.join(bits) or 'it has none'}")
    return Place(offset, BIT, bits[bit])


def _element(name: str, of: str | None, number: str | None, count: int, dynamics: Any) -> int:
    """Which of the `count` numbers of a field or channel: [of], [of][number]. Raises ValueError with the limit."""
    things, each = getattr(dynamics, "named", {}).get(name, ((), 1))
    if of is None and count == 1:
        return 0
    if of is None:
        raise ValueError(_listed(_places(name, things, each), f"one element, {name}[0] ... {name}[{count - 1}]"))
    if count == 1:
        raise ValueError(f"{name}, which has no index")
    if number is None and of.isdecimal() and int(of) < count:
        return int(of)
    if of in things and each == 1 and number is None:
        return int(things.index(of))
    if of in things and each > 1 and number is not None and number.isdecimal() and int(number) < each:
        return int(things.index(of)) * each + int(number)
    raise ValueError(_listed(_places(name, things, each), f"an index 0...{count - 1} of {name}"))


def _places(name: str, things: Sequence[str], each: int) -> list[str]:
    return [f"{name}[{thing}]" + (f"[0...{each - 1}]" if each > 1 else "") for thing in things]


def _listed(places: Sequence[str], otherwise: str) -> str:
    return f"one of {', '.join(places)}" if places else otherwise


def _found(file: str, folders: Iterable[Path]) -> Path:
    """The file as named, beside the test, among the shipped ones, or by its name alone in the working directory."""
    places = [Path(folder) / file for folder in folders] + [Path(file), Path(Path(file).name)]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise ValueError(f"file: no such file: value {file!r}, limit an FMU beside the test file or in the working directory")
    return found.resolve()


def sum_of(path: Path) -> str:
    """SHA-256 of the file. Raises ValueError for one that is too large."""
    if path.stat().st_size > FILE_MAX:
        raise ValueError(f"file: {path} has {path.stat().st_size} bytes, limit {FILE_MAX}")
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _refuse_bomb(path: Path) -> None:
    """Before anything is unpacked: raises ValueError for too many files, too many bytes (what a file claims is all that is read of it), and
    names that lead out of their folder."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ValueError(f"file: cannot be read as an FMU: value {str(path)!r}, limit an FMU, which is a ZIP file: {error}") from None
    if len(members) > FILES_MAX:
        raise ValueError(f"file: {path} holds {len(members)} files, limit {FILES_MAX}")
    if (total := sum(member.file_size for member in members)) > UNPACKED_MAX:
        raise ValueError(f"file: {path} unpacks to {total} bytes, limit {UNPACKED_MAX}")
    for member in members:
        parts = member.filename.replace("\\", "/").split("/")
        if member.filename.startswith(("/", "\\")) or ".." in parts or "\0" in member.filename:
            raise ValueError(f"file: {path} holds {member.filename!r:.120}, limit a name below the FMU's folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise ValueError(f"file: {path} holds the link {member.filename!r:.120}, limit files")
        if member.filename == "modelDescription.xml" and member.file_size > DESCRIPTION_MAX:
            raise ValueError(f"file: modelDescription.xml of {path} has {member.file_size} bytes, limit {DESCRIPTION_MAX}")


def _wires(key: str, table: Mapping[str, Any], known: Mapping[str, Any], causality: str, version: int,
           dynamics: Any, faults: list[str]) -> tuple[Wire, ...]:  # fmt: skip
    """The wires of one direction; what is wrong goes to `faults`."""
    writers = READABLE if causality == "input" else (ROLE,)
    wires: list[Wire] = []
    if len(table) > MOST[key]:
        faults.append(f"{key}: {len(table)} variables, limit {MOST[key]}")
    for name, text in table.items():
        variable = _variable(f"{key}.{name}", text, known.get(name), (causality,), known, version, faults)
        try:
            found = place(text, writers, dynamics)
        except ValueError as error:
            faults.append(f"{key}.{name}: no such place in the sample: value {text!r}, limit {error}")
            continue
        if variable is None:
            continue
        type_ = TYPES[version][variable.type]
        takes = [name_ for name_, number in TYPES[version].items() if number in FITS[found.kind]]
        if causality == "output" and found.kind in (I8, I4, U4):
            faults.append(f"{key}.{name}: is a whole word: value {text!r}, limit one of its bits")
            continue
        if type_ not in FITS[found.kind]:
            faults.append(f"{key}.{name}: is of type {variable.type}: value {text!r}, limit {', '.join(takes)}")
        same = (w for w in wires if w.place.offset == found.offset and (found.kind != BIT or w.place.mask == found.mask))
        if causality == "output" and any(same):
            faults.append(f"{key}.{name}: two variables for one place: value {text!r}, limit one")
        wires.append(Wire(int(variable.valueReference), type_, found))
    return tuple(wires)


def _variable(path: str, value: Any, variable: Any, causalities: Sequence[str], known: Mapping[str, Any], version: int,
              faults: list[str]) -> Any:  # fmt: skip
    """The FMU's variable if it may stand here, None after a fault."""
    if variable is None:
        there = [name for name, v in known.items() if v.causality in causalities]
        shown = ", ".join(there[:20]) + (", ..." if len(there) > 20 else "")
        faults.append(f"{path}: the FMU has no such variable: value {value!r}, limit one of {shown or 'none'}")
    elif variable.causality not in causalities:
        faults.append(f"{path}: its causality is {variable.causality}: value {value!r}, limit {' or '.join(causalities)}")
    elif variable.type not in TYPES[version]:
        faults.append(f"{path}: is of type {variable.type}: value {value!r}, limit {', '.join(TYPES[version])}")
    elif variable.dimensions or variable.shape:
        faults.append(f"{path}: is an array: value {value!r}, limit a scalar (export it element by element)")
    else:
        return variable
    return None


def _starts(table: Mapping[str, Any], known: Mapping[str, Any], version: int, faults: list[str]) -> tuple[Start, ...]:
    found = []
    for name, value in table.items():
        variable = _variable(f"start.{name}", value, known.get(name), ("parameter", "input"), known, version, faults)
        if variable is None:
            continue
        type_ = TYPES[version][variable.type]
        if type_ == BOOLEAN:
            right = isinstance(value, bool)
        else:
            right = isinstance(value, int if type_ == INTEGER else int | float) and not isinstance(value, bool)
        if not right or (type_ == INTEGER and not -(2**31) <= value < 2**31):
            faults.append(f"start.{name}: is of type {variable.type}: value {value!r}, limit a value of this type")
            continue
        found.append(Start(int(variable.valueReference), type_, float(value)))
    return tuple(found)


def _unpacked(path: Path, model: Any, version: int) -> tuple[Path, Path]:
    """Library for this machine and resources in a folder of their own."""
    import fmpy

    machine = platform.machine()
    inside = "binaries/linux64" if version == 2 and machine == "x86_64" else f"binaries/{machine}-linux"
    name = f"{inside}/{model.coSimulation.modelIdentifier}.so"
    folder = Path(tempfile.mkdtemp(prefix="hil-fmu-"))
    try:
        fmpy.extract(path, folder, include=lambda member: member.startswith((f"{inside}/", "resources/")))
    except Exception as error:
        shutil.rmtree(folder)
        raise ValueError(f"file: cannot be unpacked: value {str(path)!r}, limit a ZIP file: {error}") from None
    library = folder / name
    if not library.is_file():
        shutil.rmtree(folder)
        has = ", ".join(fmpy.supported_platforms(path)) or "none"
        raise ValueError(f"file: {path} has no binary for this platform: value {has}, limit {name}")
    (folder / "resources").mkdir(exist_ok=True)
    return folder, library
