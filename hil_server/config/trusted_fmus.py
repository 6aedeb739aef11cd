"""Which FMUs may run when a log asks for them: an FMU is machine code, and a log may be somebody else's.

A test file names its FMU with file and SHA-256, and the person who starts the test has chosen it. The configuration of a log has the same
words, but they come from the author of the log: what it names runs when its SHA-256 is in this user's list (`hil-server fmu trust FILE`),
when a test file has named it in this process, or with `--run-fmu`.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from hil_server.config.model import TestConfig
from hil_server.errors import UsageError
from rt_kernels.control.fmu.description import sum_of

LINE = re.compile(r"(?P<sum>[0-9a-f]{64})(?:  (?P<name>[^\0-\x1f]*))?")
_named_here: set[str] = set()  # by test files that this process runs
_any = False


def list_file() -> Path:
    """The list of this user: a line each, SHA-256 and name of the file."""
    return Path.home() / ".config" / "hil-server" / "trusted-fmus"


def listed() -> dict[str, str]:
    """SHA-256 → name. Raises UsageError for a list that cannot be read."""
    path = list_file()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        match = LINE.fullmatch(line.strip())
        if match is None:
            raise UsageError(f"{path}:{number}: {line!r:.80} is not a SHA-256 of 64 hexadecimal digits and a name")
        found[match["sum"]] = match["name"] or ""
    return found


def trust(file: str | Path) -> str:
    """Puts the FMU into the list; its SHA-256. Raises UsageError."""
    try:
        found = sum_of(Path(file))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from error
    _write(listed() | {found: re.sub(r"[\0-\x1f]", "?", Path(file).name)})
    return found


def forget(name: str) -> list[str]:
    """Takes out what has this SHA-256, its beginning (8 digits or more), or this name. Raises UsageError where there is none."""
    before = listed()
    gone = [sum_ for sum_, of in before.items() if of == name or (len(name) >= 8 and sum_.startswith(name.lower()))]
    if not gone:
        raise UsageError(f"{name}: no FMU in {list_file()} is called so")
    _write({sum_: of for sum_, of in before.items() if sum_ not in gone})
    return gone


def _write(entries: dict[str, str]) -> None:
    path = list_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text("".join(f"{sum_}  {of}\n" for sum_, of in entries.items()), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


@contextlib.contextmanager
def any_runs(yes: bool) -> Iterator[None]:
    """`--run-fmu`: within, the FMU of a log runs whatever it is."""
    global _any
    before, _any = _any, _any or yes
    try:
        yield
    finally:
        _any = before


def allowed(config: TestConfig) -> frozenset[str] | None:
    """SHA-256 of the FMUs that this configuration may have run; None: the one that it names."""
    named = str(config.document.get("control", {}).get("sha256", "")).lower()
    if not config.of_log:
        if named:
            _named_here.add(named)
        return None
    if _any or not named:
        return None
    return frozenset(listed()) | _named_here
