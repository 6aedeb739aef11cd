"""What a TOML file is, by its tables, and which verb takes it: so that the wrong one says the right one."""

from collections.abc import Mapping
from typing import Any

# A table, or a key at the top, that only files of one kind have. The first that is found counts.
MARKS = {"test": "test", "programme": "programme", "campaign": "campaign", "platform": "stand", "part": "mechanism", "body": "craft",
         "mass_kg": "craft"}  # fmt: skip
TAKEN_BY = {
    "test": "hil-server simulate {file} (or run, check, predict)",
    "programme": "hil-server simulate {file} (or run, check)",
    "campaign": "hil-server campaign {file} (or check)",
    "stand": "hil-server workspace {file} (or check), or test.stand of a test names it",
    "mechanism": "hil-server check {file}, or test.mechanism of a test names it",
    "craft": "hil-server craft {file} (or check), or test.active_vehicle or test.target_vehicle of a test names it",
}


def kind_of(document: Mapping[str, Any]) -> str | None:
    """The kind of a file by its tables; None for one that is only a part of others."""
    return next((kind for mark, kind in MARKS.items() if mark in document), None)


def other_kind(document: Mapping[str, Any], wanted: str, file: str) -> str | None:
    """One line for a file that is of another kind than the one wanted, with the command that takes it; None where it is not."""
    kind = kind_of(document)
    if kind in (None, wanted):
        return None
    return f"{file}: is a {kind}, not a {wanted}: {TAKEN_BY[kind].format(file=file)}"
