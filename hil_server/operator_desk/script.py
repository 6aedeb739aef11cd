"""A recorded operator: records of two hand controllers and the commands given, by run time.

A text file, one row a line:

    # seconds of run time, then
    12.500, 0, 0.4, 0, 0, 0, 0, 0, 1          station, six axes (-1...1 after calibration), buttons (1: the deadman is held)
    12.500, 1, 0, 0, 0, 0, -0.2, 0, 1
    20.000, step, 1, 0.02, 0.002              a command and its arguments, as in hil_server.bus.commands
    25.000, tune, compensation.lead_factor, 0.9      the parameter by its name
    31.250, 0, silent                         the station sends nothing until its next row

Rows are in order of time. A station repeats its last row 50 times a second until the next, so only changes need rows. Such a file is
the input of `hil-server simulate` (`[commands] part = "script"`) and is sent over the wire by `hil-server hand-controller --source FILE`;
`hil-server export LOG --format operator` makes it of a logged run.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hil_server.bus.commands import CommandError, encode
from hil_server.config import files
from hil_server.errors import ConfigurationError, UsageError
from hil_server.log.reader import Log
from rt_kernels.layout import BITS, CODES
from rt_kernels.parameters import TunableEntry
from rt_kernels.recorded_operator import ROW_DTYPE

COMMAND = 2  # what of a row: 0 and 1 are the stations
NAMES = {code: name for name, code in CODES["command"].items()}


@dataclass(frozen=True)
class Row:
    """One row. what: station number, or the name of a command; values: six axes or the command's arguments; silent: nothing is sent;
    parameter: name of what `tune` changes, in whose place values has 0, "" for a number."""

    time_s: float
    what: int | str
    values: tuple[float, ...] = ()
    buttons: int = 0
    silent: bool = False
    parameter: str = ""

    def text(self) -> str:
        """The row as a line of a script."""
        if self.silent:
            return f"{self.time_s:.3f}, {self.what}, silent"
        numbers = [f"{value:.6g}" for value in self.values]
        if self.parameter:
            numbers[0] = self.parameter
        return ", ".join([f"{self.time_s:.3f}", str(self.what), *numbers, *([str(self.buttons)] if isinstance(self.what, int) else [])])


def load(path: str | os.PathLike[str]) -> list[Row]:
    """Reads and checks a file. Raises ConfigurationError with every fault, one line each."""
    try:
        text = files.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse(text, str(path))


def parse(text: str, label: str = "script") -> list[Row]:
    """The same of a text that is read already."""
    rows: list[Row] = []
    faults: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = [word.strip() for word in line.partition("#")[0].split(",")]
        if words == [""]:
            continue
        try:
            row = _row(words)
            if rows and row.time_s < rows[-1].time_s:
                raise ValueError(f"time {row.time_s:g} s comes before {rows[-1].time_s:g} s")
            rows.append(row)
        except ValueError as error:
            faults.append(f"{label}:{number}: {error}, value {line.strip()!r}")
    if faults:
        raise ConfigurationError(faults)
    return rows


def save(path: str | os.PathLike[str], rows: Iterable[Row], comment: str = "") -> None:
    """Writes a script: the comment's lines with # before them, then a line for each row."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    Path(path).write_text(head + "".join(row.text() + "\n" for row in rows), encoding="utf-8")


def _row(words: Sequence[str]) -> Row:
    """Raises ValueError that says what is wrong."""
    time_s = _number(words[0], 0.0, 1e5, "time, s")
    if len(words) < 2:
        raise ValueError("a row has a time and a station (0, 1) or a command")
    if words[1] not in ("0", "1"):
        try:
            named = words[1] == "tune" and len(words) > 2 and "." in words[2] and words[2][:1].isalpha()
            arguments = [_number(word, -1e12, 1e12, "argument") for word in words[3 if named else 2 :]]
            parameter = words[2] if named else ""
            return Row(time_s, words[1], encode(words[1], [parameter, *arguments] if named else arguments)[1], parameter=parameter)
        except CommandError as error:
            raise ValueError(str(error)) from None
    if words[2:] == ["silent"]:
        return Row(time_s, int(words[1]), silent=True)
    if len(words) != 9:
        raise ValueError(f"a hand controller's row has six axes and the buttons after its station, this one {len(words) - 2} words")
    buttons = int(_number(words[8], 0, 2**32 - 1, "buttons"))
    return Row(time_s, int(words[1]), tuple(_number(word, -1.0, 1.0, "axis") for word in words[2:8]), buttons)


def _number(word: str, low: float, high: float, name: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{name}: {word!r} is not a number") from None
    if not low <= value <= high:
        raise ValueError(f"{name}: {value:g} is not within {low:g}...{high:g}")
    return value


def rows_array(rows: Sequence[Row], tunables: Sequence[TunableEntry] = ()) -> np.ndarray:
    """The rows as the kernel's port takes them, (n,) ROW_DTYPE. tunables: what can be changed in the run, by number. Raises
    ConfigurationError for a parameter that cannot, or not to this value."""
    out = np.zeros(len(rows), ROW_DTYPE)
    for i, row in enumerate(rows):
        out[i]["time_ns"] = round(row.time_s * 1e9)
        out[i]["what"] = COMMAND if isinstance(row.what, str) else row.what
        out[i]["code"] = CODES["command"][row.what] if isinstance(row.what, str) else 0
        values = row.values
        if row.what == "tune":
            try:
                values = encode("tune", [row.parameter or row.values[0], row.values[1]], tunables)[1]
            except CommandError as error:
                raise ConfigurationError(f"script: at {row.time_s:g} s: {error}") from None
        out[i]["value"][: len(values)] = values
        out[i]["buttons"], out[i]["silent"] = row.buttons, row.silent
    return out


def rows_of_log(log: Log) -> list[Row]:
    """What the operators of a logged run did, changes only. The axes are those of the sample: zero while a controller was not armed."""
    r, time_s = log.records, log.time_s
    rows: list[Row] = []
    for tick in np.flatnonzero(r["command_code"]):
        code = int(r["command_code"][tick])
        if code not in NAMES:
            raise UsageError(f"{log.path}: record {tick}: command_code is {code}, not a command of the table")
        name = NAMES[code]
        values = encode(name, _arguments(name, r["command_arg"][tick]))[1]
        known = name == "tune" and values[0] < len(log.header.tunables)
        rows.append(Row(float(time_s[tick]), name, values, parameter=log.header.tunables[int(values[0])]["name"] if known else ""))
    for station in range(2):
        axes = r["hand_axis"][:, 6 * station : 6 * station + 6]
        present = r["hand_status"][:, station] & BITS["hand_status"]["present"] != 0
        lost = r["hand_status"][:, station] & BITS["hand_status"]["stale"] != 0
        state = np.column_stack([axes, r["hand_buttons"][:, station], lost])
        changed = np.flatnonzero(present & np.any(np.diff(state, axis=0, prepend=state[:1] - 1.0) != 0.0, axis=1))
        for tick in changed:
            values = tuple(float(x) for x in axes[tick])
            rows.append(Row(float(time_s[tick]), station, values, int(r["hand_buttons"][tick, station]), bool(lost[tick])))
    return sorted(rows, key=lambda row: row.time_s)


def _arguments(name: str, values: np.ndarray) -> list[float]:
    from hil_server.bus.commands import ARGUMENTS

    return [float(value) for value in values[: len(ARGUMENTS[name])]]
