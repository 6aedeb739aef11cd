"""Reads a test: its file, the stand, the two vehicles and the mechanism it names, and the overrides of the command line.

All of it becomes one document with the top-level tables `test`, `initial_conditions`, `orbit` (if there is one), `commands`, one per stage
role, `telemetry`, `cameras`, `stand`, `active_vehicle`, `target_vehicle`, `mechanism`. The document is what `--set`
addresses, what the log keeps, and what `test_from_toml` reads back. Nothing is merged silently: a key comes from the file that is named,
from one that this says it extends (`hil_server.config.extends`), or from `--set`.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from hil_server import registry
from hil_server.config import crafts, extends, files, former_names, narrowing, physics, tables, toml_text
from hil_server.config.checks import Table, join, line, missing, must_be, part_faults, part_table, trial_faults, unknown_key, unknown_table
from hil_server.config.files import SHIPPED, named_file
from hil_server.config.keys import keys_of, similar
from hil_server.config.model import TestConfig, docking_port, moment_unresolved
from hil_server.config.tables import DEVICES
from hil_server.errors import ConfigurationError
from hil_server.requirements import declaration
from hil_server.values import Document, Given, Value
from rt_kernels.model import craft_file
from rt_kernels.stages import FORMER_ROLES, STAGE_ROLES

DEFAULT_TEST = SHIPPED / "programmes" / "docking.toml"
VEHICLES = ("active_vehicle", "target_vehicle")
REFERENCES = ("stand", *VEHICLES, "mechanism")
KIND_OF = {"stand": "stand", **dict.fromkeys(VEHICLES, "craft"), "mechanism": "mechanism"}  # of the file that a reference names
TEST_FILE = ("test", "initial_conditions", "orbit", "commands", *STAGE_ROLES, "telemetry", "cameras", "requirement")
Setting: TypeAlias = tuple[tuple[str, ...], Value]  # path of a key and what `--set` gives it
SET_MAX = 1 << 17  # characters of one --set: what a command line can carry


def load_test(
    path: str | Path | None = None, overrides: Sequence[str] = (), requirements: Sequence[Given] = (), waived: Sequence[str] = ()
) -> TestConfig:
    """Reads and checks the test file `path` (none: the shipped docking) and everything it names.

    overrides: items `a.b.c=value`, values in TOML (a bare word counts as text). requirements: tables [[requirement]] beside those of the
    file, or in place of those of the same name; waived: names of those that are left out. Raises ConfigurationError with all independent
    faults."""
    file = named_file(path) if path is not None else DEFAULT_TEST
    settings = [parse_override(item) for item in overrides]
    faults: list[str] = []
    document, sources = _read(file, faults, "test")
    _check_keys(settings, file, document)
    paths = {"test": file}
    _demand(document, requirements, waived, str(file), faults)
    _apply(document, [s for s in settings if s[0][0] not in REFERENCES])
    for name in REFERENCES:
        named = document.get("test", {}).get(name) if isinstance(document.get("test"), dict) else None
        if name in document:
            faults.append(unknown_key(str(file), name, document[name], name, TEST_FILE))
        if not isinstance(named, str):
            document[name] = None  # the check of [test] reports the missing or wrong reference
            continue
        found = _resolve(named, file)
        if found is None:
            limit = f"a file below {file.parent} or {SHIPPED}"
            faults.append(line(str(file), f"test.{name}", "no such file", named, limit=limit, unit="-"))
            document[name] = None
            continue
        paths[name] = found
        before = len(faults)
        document[name], texts = _read(found, faults, KIND_OF[name])
        if len(faults) > before:
            document[name] = None
        sources |= texts
    set_in = {s[0][0] for s in settings}
    if faults and (set_in & {name for name in REFERENCES if document[name] is None}
                   or not any(isinstance(document.get(name), dict) for name in ("test", *REFERENCES))):  # fmt: skip
        raise ConfigurationError(faults)
    own = copy.deepcopy(document["stand"])
    _apply(document, [s for s in settings if s[0][0] in REFERENCES])
    labels = {name: str(p) for name, p in paths.items()}
    for name in VEHICLES:
        _inline_modes(document, name, paths[name].parent if name in paths else file.parent, labels.get(name, str(file)), faults)
    _take_model(document, file.parent, str(file), faults)
    _take_operator(document, file.parent, str(file), faults)
    _read_files(document, file.parent, str(file), faults)
    _find_files(document, {name: path.parent for name, path in paths.items()})
    try:
        return _checked(document, labels, faults, own, TestConfig(document, sources, paths, tuple(overrides)))
    except ConfigurationError as error:
        raise ConfigurationError(_name_overrides(error.faults, labels, settings)) from None


def test_from_toml(text: str, overrides: Sequence[str] = (), label: str = "log", former: bool = False) -> TestConfig:
    """The configuration out of `TestConfig.as_toml()` (a log's header), with overrides for a what-if replay. Former names
    of tables and keys are read as the present ones; former: keys that the program of the log did not have stand for what it did.
    Raises ConfigurationError."""
    try:
        document = former_names.renamed(files.parse_toml(text))
        if former:
            former_names.as_before(document)
    except ValueError as error:
        raise ConfigurationError(f"{label}: not TOML: {error}") from None
    settings = [parse_override(item) for item in overrides]
    _check_keys(settings, None, document)
    _apply(document, settings)
    labels = {name: label for name in ("test", *REFERENCES)}
    faults: list[str] = []
    for name in VEHICLES:
        for path, _ in settings:
            if path[0] == name and path[-1] == "file" and len(path) > 2:
                _descend_to(document, path).pop("data", None)  # other modes were asked for
                _inline_modes(document, name, Path(), "--set", faults)
    if any(path == ("dynamics", "model") for path, _ in settings):
        document["dynamics"].pop("model_data", None)
        _take_model(document, Path(), "--set", faults)
    if any(path == ("commands", "file") for path, _ in settings):
        document["commands"].pop("data", None)
        _take_operator(document, Path(), "--set", faults)
    return _checked(document, labels, faults, None, TestConfig(document, {label: text}, {}, tuple(overrides)))


test_from_toml.__test__ = False  # type: ignore[attr-defined]


def parse_override(item: str) -> Setting:
    """`a.b.c=value` as (("a", "b", "c"), value). Raises ConfigurationError when it is none."""
    if len(item) > SET_MAX:
        raise ConfigurationError(f"--set {item[:40]}...: {len(item)} characters, limit {SET_MAX}: put it into the file")
    key, equals, text = item.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise ConfigurationError(f"--set {item}: must be key=value, as compensation.part=none or active_vehicle.mass_kg=7000")
    text = text.strip()
    try:
        return path, files.parse_toml(f"value = {text}")["value"]
    except (ValueError, KeyError) as error:
        number = len(text) > 18 and text.lstrip("+-").replace("_", "").isdigit()  # a whole number beyond 64 bits, not a name like 007
        if text and "\n" not in text and text[0] not in "[{\"'" and not number:
            return path, text
        raise ConfigurationError(f"--set {item:.200}: the value is not TOML: {text!r:.80}: {error}") from None


def _inline_modes(document: Document, name: str, folder: Path, label: str, faults: list[str]) -> None:
    """The modes of a vehicle out of their files into the document, so that it is whole wherever it goes: log, worker, other machine."""
    vehicle = document[name]
    if not isinstance(vehicle, dict):
        return
    try:
        document[name] = vehicle = craft_file.with_data(vehicle, folder)
    except (OSError, ValueError) as error:
        faults.append(f"{label}: {error}")
    if not isinstance(vehicle.get("modal"), dict):
        return
    from hil_server.config.modal_data import with_data

    try:
        vehicle["modal"] = with_data(vehicle["modal"], folder)
    except OSError as error:
        faults.append(line(label, "modal.file", "cannot be read", vehicle["modal"]["file"], limit=str(error.strerror), unit="-"))
    except (ValueError, TypeError) as error:
        faults.append(f"{label}: {error}")


def _naming(document: Document, role: str, key: str, into: str) -> Document | None:
    """The table of a part in which `key` names a file whose content goes to `into`, where it is not there yet. None where it names none, or
    the part has no `into`."""
    table = document.get(role)
    if not isinstance(table, dict) or not isinstance(table.get(key), str) or into in table:
        return None
    part = registry.part_of_table(role, table)
    return table if part is not None and any(p.key == into for p in part.PARAMETERS) else None


def _take_model(document: Document, folder: Path, label: str, faults: list[str]) -> None:
    """The tables of a manipulator's file into the document, likewise. A file that is not there is left to the part to name."""
    dynamics = _naming(document, "dynamics", "model", "model_data")
    if dynamics is None:
        return
    for place in (folder, Path(), SHIPPED / "manipulators"):
        if place.joinpath(dynamics["model"]).is_file():
            try:
                dynamics["model_data"] = extends.tables_of(place / dynamics["model"])
            except ConfigurationError as error:
                faults.append(line(label, "dynamics.model", "cannot be read", dynamics["model"], limit=str(error), unit="-"))
            return


def _take_operator(document: Document, folder: Path, label: str, faults: list[str]) -> None:
    """What a recorded operator's file says into the document, likewise."""
    commands = _naming(document, "commands", "file", "data")
    if commands is None:
        return
    for place in (folder, SHIPPED):
        if place.joinpath(commands["file"]).is_file():
            try:
                commands["data"] = files.read_text(place / commands["file"])
            except (OSError, UnicodeDecodeError) as error:
                limit = str(getattr(error, "strerror", None) or error)
                faults.append(line(label, "commands.file", "cannot be read", commands["file"], limit=limit, unit="-"))
            return


def _read_files(document: Document, folder: Path, label: str, faults: list[str]) -> None:
    """What the tables of a part name in files that the configuration takes in (its `READS`)."""
    for role in STAGE_ROLES:
        table = document.get(role)
        if not isinstance(table, dict):
            continue
        for key, read in getattr(registry.part_of_table(role, table), "READS", {}).items():
            rows = table[key] if isinstance(table.get(key), list) else []
            for number, row in enumerate(rows):
                try:
                    rows[number] = read(row, folder)
                except OSError as error:
                    where = f"{role}.{key}[{number}].file"
                    faults.append(line(label, where, "cannot be read", row["file"], limit=str(error.strerror), unit="-"))
                except ValueError as error:
                    faults.append(f"{label}: {role}.{key}[{number}].file: {error}")


def _find_files(document: Document, folders: dict[str, Path]) -> None:
    """Files of a part that stay outside of the configuration (its `FILES`: code, which a log does not bring): from here on they go by their
    full names, wherever the document goes. One that is not there is left to the part to name. folders: table → folder of its file."""
    for name in (*STAGE_ROLES, "mechanism"):
        table = document.get(name)
        if not isinstance(table, dict):
            continue
        for key in getattr(registry.part_of_table("mechanisms" if name == "mechanism" else name, table), "FILES", ()):
            if isinstance(table.get(key), str) and (found := _resolve(table[key], folders.get(name, folders["test"]) / "file")) is not None:
                table[key] = str(found.resolve())


def named_test(named: str, file: Path, key: str) -> Path:
    """The test that a programme or a campaign names under `key`: a path from its own folder, or a shipped one, with or without the folder
    `programmes`. Raises ConfigurationError."""
    found = _resolve(named, file) or _resolve(f"programmes/{named}", file)
    if found is None:
        limit = f"a test file below {file.parent} or {SHIPPED / 'programmes'}"
        raise ConfigurationError(line(str(file), key, "no such file", named, limit=limit, unit="-"))
    return found


# ------------------------------------------------------------------------------------------------------------- reading files
def _read(file: Path, faults: list[str], wanted: str | None = None) -> tuple[Document, dict[str, str]]:
    """A file's document, with those that it extends, and their texts; on failure an empty document and one more fault. wanted: kind."""
    try:
        found = extends.whole(file, wanted)
    except ConfigurationError as error:
        faults += error.faults
        return {}, {}
    return found.tables, {str(one): text for one, text in found.texts.items()}


def _resolve(named: str, file: Path) -> Path | None:
    """A file that a test names: absolute, beside the test file, or among the shipped ones."""
    for folder in (file.parent, SHIPPED):
        try:
            if named and folder.joinpath(named).is_file():
                return folder / named
        except (OSError, ValueError):
            return None
    return None


# -------------------------------------------------------------------------------------------------------------- requirements
def _demand(document: Document, more: Sequence[Given], waived: Sequence[str], label: str, faults: list[str]) -> None:
    """The requirements of a programme beside the test's, or in their place, less those that are waived."""
    rows = document.get("requirement", [])
    if not more and not waived or not isinstance(rows, list):
        return
    names = [row.get("name") for row in more if isinstance(row, dict)]
    rows = [row for row in rows if not (isinstance(row, dict) and row.get("name") in names)] + [copy.deepcopy(row) for row in more]
    known = [row.get("name") for row in rows if isinstance(row, dict)]
    faults += [f"{label}: waive: no requirement {name!r}; there are: {', '.join(map(str, known)) or 'none'}"
               for name in waived if name not in known]  # fmt: skip
    document["requirement"] = [row for row in rows if not (isinstance(row, dict) and row.get("name") in waived)]


# ----------------------------------------------------------------------------------------------------------------- overrides
def _apply(document: Document, settings: list[Setting]) -> None:
    """Sets each value. A change of `part` comes first and drops the keys of the part that was there: they belonged to it."""
    for path, value in sorted(settings, key=lambda s: s[0][-1] != "part"):
        table, key = _descend_to(document, path), path[-1]
        if isinstance(table, list):
            table[_index(table, key, path)] = value
            continue
        if key == "part" and table.get("part") not in (None, value):
            for other in [k for k in table if k not in SHARED_KEYS]:
                del table[other]
        table[key] = value


def _check_keys(settings: Sequence[Setting], file: Path | None, document: Document) -> None:
    """Raises ConfigurationError for a `--set` that has no table before its key, or one that a test does not have, with similar keys.
    file: the test, None: `document` is a whole configuration."""
    for path, value in settings:
        name, known = ".".join(path), (*TEST_FILE, *REFERENCES)
        if len(path) > 1 and (path[0] in known or path[0] in document or path[0] in FORMER_ROLES):
            continue
        if path[0] in known:
            example = (
                "test.rate_hz=500" if path[0] not in REFERENCES else f"test.{path[0]}=FILE to use another file, or {path[0]}.KEY=VALUE"
            )
            raise ConfigurationError(f"--set {name}: is a table; set one of its keys, e.g. --set {example}")
        what = "has no table" if len(path) == 1 else f"no table {path[0]!r}"
        try:
            keys = list(keys_of(document if file is None else load_test(file).document))
        except ConfigurationError:  # its own faults are reported without --set
            keys = []
        near = similar(name, keys)
        text = f"similar: {', '.join(near)}" if near else f"tables: {', '.join(known)}"
        example = f"{near[0]}={toml_text.value(value)}" if near else "test.rate_hz=500"
        raise ConfigurationError(f"--set {name}: {what}; write TABLE.KEY=VALUE, e.g. --set {example}; {text}")


SHARED_KEYS = {p.key for p in tables.MECHANISM}


def _descend_to(document: Document, path: tuple[str, ...]) -> Any:
    """The table, or the list, that holds the last key of the path."""
    table: Document | list[Document] = document
    for key in path[:-1]:
        table = _descend(table, key, path)
    return table


def _descend(table: Document | list[Document], key: str, path: tuple[str, ...]) -> Document | list[Document]:
    if isinstance(table, list):
        return table[_index(table, key, path)]
    inner = table.setdefault(key, {})
    if not isinstance(inner, dict | list):
        raise ConfigurationError(f"--set {'.'.join(path)}: {key!r} is a value, not a table")
    return inner


def _index(items: list[Document], key: str, path: tuple[str, ...]) -> int:
    """Place in a list: its number, or of a list of tables the name in one of them."""
    names = [item.get("name") for item in items if isinstance(item, dict)]
    if key in names:
        return names.index(key)
    if not key.isdecimal() or int(key) >= len(items):
        known = f", nor one of the names {', '.join(map(str, names))}" if names else ""
        raise ConfigurationError(f"--set {'.'.join(path)}: {key!r} is not an index of a list of {len(items)}{known}")
    return int(key)


def _name_overrides(faults: Sequence[str], labels: dict[str, str], settings: list[Setting]) -> list[str]:
    """Faults in values from `--set` name it instead of the file."""
    named = []
    for fault in faults:
        for path, _ in settings:
            file = labels.get(path[0], labels["test"])
            full = ".".join(path)
            shown = ".".join(path[1:]) if path[0] in REFERENCES else full
            if fault.startswith((f"{file}: {shown}:", f"{file}: {shown}[")):
                fault = f"--set: {full}{fault[len(f'{file}: {shown}') :]}"
        named.append(fault)
    return named


# -------------------------------------------------------------------------------------------------------------------- checks
@lru_cache
def _table(name: str) -> Table:
    declared = tables.CAMERAS[name] if name in tables.CAMERAS else getattr(tables, name)
    return Table(declared() if callable(declared) else declared)


@lru_cache
def _platform() -> tuple[Table, type]:
    from rt_kernels.stewart.platform import Platform

    return Table(Platform.PARAMETERS), Platform


def _checked(document: Document, labels: dict[str, str], faults: list[str], own: Document | None, origin: TestConfig) -> TestConfig:
    """Checks every table, fills in defaults, and builds the TestConfig; raises ConfigurationError with all faults. origin: with the
    document as it was read. own: the stand file's
    tables before the overrides, beyond which no limit may go; None: a log's document, with which nothing moves any more."""
    check = _Check(document, labels, faults)
    check.stand_limits()
    check.choose_dynamics()
    check.test_file()
    check.vehicle("active_vehicle")
    check.vehicle("target_vehicle")
    check.mechanism()
    check.stand()
    check.closing()
    check.steps([tuple(item.partition("=")[0].split(".")) for item in origin.overrides] if own is not None else None)
    check.orbit()
    if own is not None:
        check.flown_as_named()
        check.docked()
        check.controlled()
        check.started_by_a_person()
        check.narrowing(own)
    if check.faults:
        raise ConfigurationError(dict.fromkeys(check.faults))
    return replace(origin, document=check.result, chosen=tuple(check.chosen))


class _Check:
    """One pass over a document: faults found so far, and the result with defaults filled in.

    labels: top-level table → the file it came from. one_file: the document is one text, so that key paths in it are full ones."""

    def __init__(self, document: Document, labels: dict[str, str], faults: list[str]) -> None:
        self.document = document
        self.labels = labels
        self.one_file = len(set(labels.values())) == 1
        self.faults = faults
        self.result: Document = {}
        self.chosen: list[str] = []

    # what the document consists of ------------------------------------------------------------------------------------------
    def test_file(self) -> None:
        known = (*TEST_FILE, *REFERENCES)
        self.faults += [unknown_table(self.labels["test"], k, k, v, known) for k, v in self.document.items() if k not in known]
        self.document.setdefault("telemetry", {})
        for role, name in registry.FILLED.items():
            self.document.setdefault(role, {"part": name})
        self.fixed("test", "TEST")
        self.fixed("initial_conditions", "INITIAL_CONDITIONS")
        if isinstance(self.document.get("initial_conditions"), dict):
            self.document["initial_conditions"].setdefault("limits", {})
            self.fixed("initial_conditions.limits", "CRITICALITY_LIMITS")
        for role in ("commands", *STAGE_ROLES):
            self.part(role, role)
        if "orbit" in self.document:
            self.fixed("orbit", "ORBIT", physics.orbit_faults)
        self.fixed("telemetry", "TELEMETRY")
        self.cameras()
        self.requirements()

    def stand_limits(self) -> None:
        """The limits that the stand file has for the parts of the test: each is one of that part, and holds where the test says nothing."""
        stand = self.document.get("stand")
        if not isinstance(stand, dict):
            return
        for role in narrowing.GUARDED_ROLES:
            if role in stand:
                table = self.document.setdefault(role, {"part": registry.FILLED[role]} if role in registry.FILLED else {})
                part = registry.part_of_table(role, table) if isinstance(table, dict) else None
                if part is None:
                    continue  # the check of the part says so
                found = narrowing.stand_table_faults(role, table["part"], stand[role], *self.where(f"stand.{role}"))
                if not found:
                    narrowing.take_from_stand(role, table, stand)
                self.faults += found

    def started_by_a_person(self) -> None:
        """A stand of hardware waits, parked, until somebody gives the command start: no test starts it by itself."""
        if self.faults or "drives" not in self.document["stand"]:
            return
        guidance = self.document["guidance"]
        if "auto_start" not in part_table("guidance", guidance["part"]).parameters:
            return
        if guidance.get("auto_start"):
            limit = "false, or omitted, on a stand with [drives]: the command start is a person's"
            self.faults.append(line(*self.where("guidance.auto_start"), "hardware does not start by itself", True, limit=limit, unit="-"))
        guidance["auto_start"] = False

    def narrowing(self, own: Document) -> None:
        """No limit is wider than the stand file has it; what is narrower, and who signed that file, goes into the log."""
        if self.faults:
            return
        platform = _platform()[0].parameters.values()
        full = self.result | {"stand": self.result["stand"] | {"platform": self.document["stand"]["platform"]}}
        found, narrower = narrowing.compare(full, own, self.where, self.labels["stand"], platform)
        self.faults += found
        changed = narrowing.changed_keys(self.document["stand"], own, platform)
        self.result["stand"].pop("safety_record", None)  # behind all tables, as a log has it
        self.result["stand"]["safety_record"] = narrowing.signature(own, changed, narrower)

    def requirements(self) -> None:
        """What the run is to show, as far as the table of channels tells; a part's channels are known when the line stands."""
        if rows := self.document.get("requirement"):
            self.faults += (found := [f"{self.labels['test']}: {fault}" for fault in declaration.faults_of(rows)])
            if not found:
                self.result["requirement"] = declaration.with_defaults(rows)

    def cameras(self) -> None:
        """Each camera has a table of its own; what is not given is as shipped."""
        cameras = self.document.setdefault("cameras", {})
        if not isinstance(cameras, dict):
            self.faults.append(must_be(self.labels["test"], "cameras", "a table", cameras))
            return
        unknown = {k: v for k, v in cameras.items() if k not in tables.CAMERAS}
        self.faults += [unknown_key(self.labels["test"], f"cameras.{k}", v, k, tables.CAMERAS) for k, v in unknown.items()]
        for name in tables.CAMERAS:
            cameras.setdefault(name, {})
            self.fixed(f"cameras.{name}", name)

    def choose_dynamics(self) -> None:
        """The part by what the vehicles are, where the test names none; vehicles that are none are refused later."""
        table = self.document.setdefault("dynamics", {})
        if not isinstance(table, dict) or "part" in table:
            return
        vehicles = {name: self.document[name] for name in VEHICLES if isinstance(self.document.get(name), dict)}
        sound = len(vehicles) == len(VEHICLES) and not any(crafts.faults(vehicle) for vehicle in vehicles.values())
        name, why = crafts.dynamics_for(vehicles) if sound else (registry.FREE_BODIES, "")
        if not name:
            limit = "crafts that one part flies, as joints and bodies that bend without modes at a port ([modal]) of either"
            named = self.document.get("test", {}).get("active_vehicle")
            self.faults.append(line(*self.where("test.active_vehicle"), f"no dynamics part flies both crafts ({why})", named, limit=limit,
                                    unit="-"))  # fmt: skip
            name = registry.MOVING_CRAFT
        self.document["dynamics"] = {"part": name, **table}
        self.chosen.append(f"dynamics: {name}: {why}")

    def flown_as_named(self) -> None:
        """A part that the test names flies both crafts with all that they have."""
        if self.faults or self.chosen and self.chosen[0].startswith("dynamics: "):
            return
        vehicles = {name: self.document[name] for name in VEHICLES}
        name = self.document["dynamics"]["part"]
        if left := crafts.dropped(registry.part("dynamics", name), vehicles):
            fitting = crafts.dynamics_for(vehicles)[0]
            limit = f"{fitting!r}, or no part: the server takes it" if fitting else "crafts without them: no part flies both"
            what = f"would not fly all of the crafts ({'; '.join(left)})"
            self.faults.append(line(*self.where("dynamics.part"), what, name, limit=limit, unit="-"))

    def docked(self) -> None:
        """The crafts have the ports by which they dock; one whose port looks the other way would stand inside the other: a note."""
        if self.faults:
            return
        for side in ("active", "target"):
            name = docking_port(self.document, side)
            try:
                ahead = crafts.ahead_of_port(self.document[f"{side}_vehicle"], name)
                if (wrong := ahead if side == "active" else -ahead) > 0.0:
                    looks = "into" if side == "active" else "out of"
                    self.chosen.append(f"{side}_vehicle: X of its port {name!r} looks {looks} the craft: "
                                       f"the centre of mass is {wrong:.3g} m on the side of the other craft")
            except ValueError as error:
                self.faults.append(line(*self.where(f"dynamics.{side}_port"), str(error), name, limit="a port of this craft", unit="-"))

    def controlled(self) -> None:
        """A craft with a body that bends as its root names the one that its own control acts on. Logs from before the key replay."""
        if self.faults:
            return
        for name in VEHICLES:
            if "body" in self.document[name] and (why := crafts.craft(self.document[name]).lacks_control_body):
                self.faults.append(line(*self.where(f"{name}.control_body"), why, None, limit='control_body = "BODY"', unit="-"))

    def vehicle(self, path: str) -> None:
        """A craft of one body or of several: each key by itself, then the whole."""
        if not self.has(path):
            return
        table = self.document[path]
        if "body" not in table:
            if "inertia_kg_m2" in table:
                table["inertia_kg_m2"] = craft_file.full_inertia(table["inertia_kg_m2"])
            before = len(self.faults)
            self.fixed(path, "VEHICLE", physics.vehicle_faults)
            if len(self.faults) > before or not any(name in table for name in craft_file.TABLES):
                return
        file, where = self.where(path)
        found = [f"{file}: {join(where, fault)}" for fault in crafts.faults(table)]
        if not found and "body" in table:
            self.fixed(path, "CRAFT")
        self.faults += found

    def mechanism(self) -> None:
        if not self.has("mechanism"):
            return
        table, shared = self.document["mechanism"], _table("MECHANISM")
        self.faults += shared.faults({k: v for k, v in table.items() if k in shared.parameters}, *self.where("mechanism"))
        before = len(self.faults)
        self.part("mechanism", "mechanisms", tuple(shared.parameters))
        if len(self.faults) == before:
            own = {k: v for k, v in table.items() if k != "part" and k not in shared.parameters}
            self.faults += trial_faults(registry.part("mechanisms", table["part"]), own, *self.where("mechanism"))

    def stand(self) -> None:
        if not self.has("stand"):
            return
        stand = self.document["stand"]
        file, path = self.where("stand")
        known = [*_table("STAND").parameters, "platform", "mounting", "limits", *narrowing.GUARDED_ROLES, "safety_record", "drive_model",
                 "stand_model", *DEVICES]  # fmt: skip
        self.faults += [unknown_table(file, join(path, k), k, v, known) for k, v in stand.items() if k not in known]
        self.fixed("stand", "STAND")
        self.platform()
        self.fixed("stand.mounting", "MOUNTING", physics.mounting_faults)
        self.fixed("stand.limits", "LIMITS", physics.limits_faults)
        self.result.setdefault("stand", {}).update({role: stand[role] for role in narrowing.GUARDED_ROLES if role in stand})
        if "drive_model" in stand:
            self.fixed("stand.drive_model", "DRIVE_MODEL")
        if "stand_model" in stand:
            self.fixed("stand.stand_model", "stand_model", physics.stand_model_faults)
        for table, role in DEVICES.items():
            # A virtual stand can do without wire and signals; a stand without anything to drive or to measure is none.
            if table in stand or (table in ("drives", "wrench_sensor") and "virtual" not in stand):
                self.part(f"stand.{table}", role)
        if not self.faults and "wrench_sensor" in stand:
            self.faults += physics.tare_faults(self.result["stand"], file, path)
        if "safety_record" in stand and self.one_file:  # as `narrowing.signature` made it
            self.result["stand"]["safety_record"] = stand["safety_record"]
        elif "safety_record" in stand:
            self.fixed("stand.safety_record", "SAFETY_RECORD")

    def platform(self) -> None:
        """The platform's own class declares its keys, and finds out whether they are a platform."""
        table, into = self.at("stand.platform")
        if table is None:
            return
        try:
            checker, platform = _platform()
        except ImportError as error:
            raise ConfigurationError(f"the kernels are not built: {error}; python setup.py build_ext --inplace -j2") from error
        found = checker.faults(table, *self.where("stand.platform"))
        if not found:
            into["platform"] = checker.with_defaults(table)
            found = trial_faults(platform, into["platform"], *self.where("stand.platform"))
        self.faults += found

    def closing(self) -> None:
        """The setpoint kinematics must have blended over to the model before the first contact: else the platform is not where it is."""
        if self.faults:
            return
        close, blend = (
            _default_or_given(self.document[role], role, key)
            for role, key in (("guidance", "close_before_s"), ("setpoint_kinematics", "blend_s"))
        )
        if close is not None and blend is not None and close < blend:
            file, path = self.where("guidance.close_before_s")
            limit = f"at least setpoint_kinematics.blend_s = {blend:g}"
            self.faults.append(line(file, path, "the loop closes too late to blend over before the contact", close, limit=limit, unit="s"))

    def steps(self, set_keys: list[tuple[str, ...]] | None) -> None:
        """The unit states the longest tick with which it is stable and accurate, and the longest sub-step, which its friction may make
        shorter: a test with a longer tick is refused, a longer sub-step made shorter; one of `--set` is taken, and named where friction
        does not bear it. A virtual stand whose plant has steps of its own advances the unit by these: they count as the tick then, in as
        many sub-steps as keep the length that the file asks for. set_keys: paths of `--set`, None: of a log's document, which keeps its
        sub-steps."""
        if self.faults:
            return
        mechanism, period = self.document["mechanism"], 1.0 / self.result["test"]["rate_hz"]
        longest, shorter = mechanism.get("step_max_s"), mechanism.get("substep_max_s")
        if longest is not None and period > longest * (1.0 + 1e-9):
            limit = f"at least {1.0 / longest:g}: {mechanism['name']} is stable and accurate up to mechanism.step_max_s = {longest:g} s"
            self.faults.append(line(*self.where("test.rate_hz"), "too slow for the docking unit", 1.0 / period, limit=limit, unit="Hz"))
        if why := moment_unresolved(self.document, period):
            self.chosen.append(f"test.rate_hz: {why}")
        keys = {key: mechanism.get(key, p.default) for key, p in part_table("mechanisms", mechanism["part"]).parameters.items()}
        if "substeps" not in keys or set_keys is None:
            return
        given = keys["substeps"]
        of_friction = getattr(registry.part("mechanisms", mechanism["part"]), "longest_substep_s", lambda keys: None)(keys)
        if ("mechanism", "substeps") in set_keys:
            if of_friction is not None and period / given > of_friction * (1.0 + 1e-9):
                needed = math.ceil(period / of_friction * (1.0 - 1e-9))
                self.chosen.append(f"mechanism.substeps: {given} by --set, friction may turn the slip: {needed} are needed for "
                                   "mechanism.friction_damping_max_n_s_per_m")  # fmt: skip
            return
        if (shorter := min((s for s in (shorter, of_friction) if s is not None), default=None)) is None:
            return
        step = self.plant_step(period) if of_friction is not None else period
        needed = max(math.ceil(step / s * (1.0 - 1e-9)) for s in (shorter, period / given if step < period else math.inf))
        if needed != given and (needed > given or step < period):
            mechanism["substeps"] = needed
            self.chosen.append(f"mechanism.substeps: {needed}, the file has {given}: {step:g} s in sub-steps of at most {shorter:g} s")

    def plant_step(self, period: float) -> float:
        """Step in which the virtual stand advances the unit, s: its plant's, or the tick."""
        virtual = self.document["stand"].get("virtual")
        step = None if virtual is None else _default_or_given(virtual, "simulated", "plant_step_s")
        return period if step is None else min(step, period)

    def orbit(self) -> None:
        """Who flies in an orbit must know gravity, and the orbital rate is that of the orbit."""
        if self.faults or "orbit" not in self.result:
            return
        name = self.document["dynamics"]["part"]
        if "orbit" not in getattr(registry.part("dynamics", name), "CONTEXT", ()):
            known = [n for n in registry.parts("dynamics") if "orbit" in getattr(registry.part("dynamics", n), "CONTEXT", ())]
            limit = "no table [orbit], or one of " + ", ".join(known)
            self.faults.append(line(*self.where("dynamics.part"), "a part without gravity", name, limit=limit, unit="-"))
        given = self.result["initial_conditions"]["orbital_rate_rad_s"]
        self.faults += physics.orbital_rate_faults(self.result["orbit"], given, *self.where("initial_conditions.orbital_rate_rad_s"))

    # kinds of tables --------------------------------------------------------------------------------------------------------
    def fixed(self, path: str, declaration: str, physical: Callable[[Document, str, str], list[str]] | None = None) -> None:
        """A table with declared keys; then, if it is whole, its physical sense."""
        table, into = self.at(path)
        if table is None:
            return
        checker = _table(declaration)
        own = {k: v for k, v in table.items() if not _is_sub_table(path, k)} if isinstance(table, dict) else table
        found = checker.faults(own, *self.where(path))
        if not found:
            full = checker.with_defaults(own)
            into.setdefault(path.rpartition(".")[2], {}).update(full)
            found = physical(full, *self.where(path)) if physical else []
        self.faults += found

    def part(self, path: str, role: str, shared: tuple[str, ...] = ()) -> None:
        """A part's table."""
        table, into = self.at(path)
        if table is not None:
            self.faults += part_faults(table, role, *self.where(path), shared)
            into[path.rpartition(".")[2]] = table

    # where things are -------------------------------------------------------------------------------------------------------
    def has(self, path: str) -> bool:
        """Whether a referenced file is there to be checked: its absence is reported where it is named, or in a log's text here."""
        if isinstance(self.document.get(path), dict):
            return True
        if self.one_file and path not in self.document:
            self.at(path)
        elif self.document.get(path) is not None:
            self.faults.append(must_be(*self.where(path), "a table", self.document[path]))
        return False

    def where(self, path: str) -> tuple[str, str]:
        """File and key path as they stand in that file."""
        head, _, rest = path.partition(".")
        return self.labels.get(head, self.labels["test"]), rest if head in REFERENCES and not self.one_file else path

    def at(self, path: str) -> tuple[Any, Document]:
        """The table at `path` (None: it is missing, which is a fault), and the table that its result goes into."""
        outer, _, key = path.rpartition(".")
        parent = self.document[outer] if outer else self.document
        into = self.result.setdefault(outer, {}) if outer else self.result
        if not isinstance(parent, dict) or key not in parent:
            file, shown = self.where(path)
            self.faults.append(missing(file, shown, "table", f"[{shown}]"))
            return None, into
        return parent[key], into


def _default_or_given(table: Document, role: str, key: str) -> float | None:
    """Value of a part's key, its default where it is not given; None for a part that has no such key."""
    declared = part_table(role, table["part"]).parameters.get(key)
    return None if declared is None else table.get(key, declared.default)


def _is_sub_table(path: str, key: str) -> bool:
    """Keys of a table that are tables of their own, checked by themselves."""
    return (path == "stand" and key not in _table("STAND").parameters) or (path, key) == ("initial_conditions", "limits")
