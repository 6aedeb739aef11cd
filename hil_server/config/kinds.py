"""What a file is, by its tables or its first bytes, and which verb takes it."""

import shlex
from difflib import get_close_matches
from pathlib import Path

from hil_server.config import files
from hil_server.errors import UsageError
from hil_server.values import Given

# A table, or a key at the top, that only files of one kind have. The first match counts.
MARKS = {"test": "test", "programme": "programme", "campaign": "campaign", "platform": "stand", "part": "mechanism", "body": "craft",
         "mass_kg": "craft"}  # fmt: skip
TAKEN_BY = {
    "test": "hil-server simulate {file} (or run, check, predict)",
    "programme": "hil-server simulate {file} (or run, check)",
    "campaign": "hil-server campaign {file} (or check)",
    "stand": "hil-server workspace {file} (or check), or test.stand of a test names it",
    "mechanism": "hil-server check {file}, or test.mechanism of a test names it",
    "craft": "hil-server craft {file} (or check), or test.active_vehicle or test.target_vehicle of a test names it",
    "log": "hil-server report {file} (or replay, compare, export)",
}
LOG_MAGIC = b"\x89MCAP0\r\n"
# Kind → folder of `stand_configs` with the shipped files of that kind.
FOLDER_OF = {"stand": "stands", "craft": "vehicles", "mechanism": "mechanisms"}
MOST_NAMED = 4  # files of a folder


def kind_of(document: Given) -> str | None:
    """The kind of a file by its tables; None for one that is only a part of others."""
    return next((kind for mark, kind in MARKS.items() if mark in document), None)


def other_kind(document: Given, wanted: str, file: str) -> str | None:
    """One line for a file that is of another kind than the one wanted, with the command that takes it; None where it is not."""
    kind = kind_of(document)
    return None if kind in (None, wanted) else _is_a(str(kind), wanted, file)


def misfit(file: str | Path, wanted: str) -> str | None:
    """One line for a file that cannot be of the kind wanted, because it is missing, a folder, a log or a TOML file of another kind, with
    what to type instead; None where it can be. wanted: a kind, "log", or for a message several of them ("stand or log")."""
    path = Path(file)
    if not path.exists():
        shipped = files.named_file(file, FOLDER_OF.get(wanted, "programmes"))
        if shipped.is_file():
            return misfit(shipped, wanted)
        return f"{file}: cannot be read: No such file or directory{_nearest(path, wanted)}"
    if path.is_dir():
        return f"{file}: is a folder, not a {wanted}{_in_folder(path, wanted)}"
    if path.suffix == ".csv" and wanted == "log":
        return f"{file}: is a CSV file, not a log: hil-server import {shlex.quote(str(file))} makes a log of a recorded wrench"
    kind = _kind_of_file(path)
    return None if kind is None or kind in wanted.split(" or ") else _is_a(kind, wanted, str(file))


def a_log(path: str) -> str:
    """The path of a log as the command line gives it. Raises UsageError for a file that cannot be one."""
    if why := misfit(path, "log"):
        raise UsageError(why)
    return path


def _is_a(kind: str, wanted: str, file: str) -> str:
    short = Path(file).relative_to(files.SHIPPED) if Path(file).is_relative_to(files.SHIPPED) else Path(file)
    return f"{file}: is a {kind}, not a {wanted}: {TAKEN_BY[kind].format(file=shlex.quote(str(short)))}"


def _kind_of_file(path: Path) -> str | None:
    if not path.is_file():  # a device or a pipe is left to its reader
        return None
    try:
        with path.open("rb") as stream:
            if stream.read(len(LOG_MAGIC)) == LOG_MAGIC:
                return "log"
        return kind_of(files.parsed_toml(files.read_text(path))) if path.suffix == ".toml" else None
    except (OSError, ValueError):  # its reader reports the fault
        return None


def _nearest(path: Path, wanted: str) -> str:
    """The file that was probably meant: beside the missing one, or a shipped one."""
    pattern = "*.mcap" if wanted == "log" else "*.toml"
    try:
        known = [one.name for one in path.parent.glob(pattern)]
    except OSError:
        known = []
    if wanted == "log":
        known += [str(one) for one in Path("runs").glob("*/run.mcap")]
    elif path.parent == Path():
        known += [one.name for folder in files.FOLDERS for one in files.SHIPPED.joinpath(folder).glob("*.toml")]
    name = path.name if path.suffix else f"{path.name}{pattern[1:]}"
    close = get_close_matches(name, known, n=1, cutoff=0.75) or get_close_matches(str(path), known, n=1, cutoff=0.75)
    if not close or str(path.parent / close[0]) == str(path):
        return ""
    return f"; did you mean {close[0] if '/' in close[0] else path.parent / close[0]}?"


def _in_folder(path: Path, wanted: str) -> str:
    """What of a folder can be given instead of it."""
    if "log" in wanted.split(" or "):
        logs = sorted([*path.glob("*.mcap"), *path.glob("*/*.mcap")])
        return f": {_listed(logs)}" if logs else ", and has no log (*.mcap) in it"
    if tables := sorted(path.glob("*.toml")):
        return f": {_listed(tables)}"
    log = next(iter(sorted(path.glob("*.mcap"))), None)
    return ", and has no TOML file in it" + (f"; its log: hil-server report {shlex.quote(str(log))}" if log else "")


def _listed(found: list[Path]) -> str:
    more = len(found) - MOST_NAMED
    return ", ".join(map(str, found[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
