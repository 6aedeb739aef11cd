"""What a `[[requirement]]` of a file may say, and the requirement it becomes.

[[requirement]]
name = "peak axial force"
channel = "abs(F_T[0])"        # an expression of channels; or value = a figure of the run; or stl = a formula
phase = ["contact"]            # omitted: the whole run
below_n = 5000.0               # above_..., below_... with the unit of the channel
within_s = 5.0                 # becomes true within this time of the phase's beginning
for_s = 0.5                    # ... and then holds for so long
source = "Yaskevich 2020, 6.4"
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hil_server.errors import ConfigurationError
from hil_server.requirements import expression as expressions
from hil_server.requirements.expression import Carried, Channels, Expression, ExpressionError, UnknownChannelError
from hil_server.requirements.figures import FIGURES
from hil_server.requirements.units import SUFFIXES, Unit, of_suffix, suffixes, unit
from hil_server.values import Document, Given
from rt_kernels import parameters
from rt_kernels.layout import BITS, CODES
from rt_kernels.parameters import Parameter, did_you_mean, shown

if TYPE_CHECKING:
    from hil_server.requirements.stl import Formula

MOMENTS = ("first_contact", "capture", "complete", "end")
PHASES = tuple(CODES["phase"])

BOUNDS = {f"{side}_{suffix}".rstrip("_"): (side, suffix) for side in ("above", "below") for suffix in SUFFIXES}
PARAMETERS = (
    Parameter("name", "str", "-", "what it is called wherever its result is shown"),
    Parameter("channel", "str", "-", "what is held against the bounds: a channel, or an expression of channels, as norm(F_T[0:3])",
              default=None),
    Parameter("value", "str", "-", "instead of a channel: a figure of the whole run", default=None, choices=tuple(FIGURES)),
    Parameter("stl", "str", "-", "instead of both: a formula of signal temporal logic over channels in SI units, as "
              "always(F_T[0] > 50 implies eventually[0, 2] F_T[0] < 5)", default=None),
    Parameter("signals", "table", "-", "names that the formula has for expressions of channels", default=None),
    Parameter("phase", "table", "-", "phases in which it is judged; omitted: the whole run", default=None),
    Parameter("per", "str", "-", "contact: judged in each contact by itself, the worst one counts", default="run",
              choices=("run", "contact")),
    Parameter("at", "str", "-", "the one moment at which the channel is judged", default=None, choices=MOMENTS),
    Parameter("within_s", "float", "s", "must become true within this time of the beginning of the phase, the contact or the run",
              default=None, low=0.0, high=86400.0),
    Parameter("for_s", "float", "s", "must hold for so long without a break", default=None, low=0.0, high=86400.0),
    Parameter("violated_max", "float", "-", "in a campaign: share of the judged cases that may violate it", default=0.0, low=0.0, high=1.0),
    Parameter("source", "str", "-", "where the figure comes from", default=""),
    *(Parameter(key, "float", SUFFIXES[suffix], f"must be {'at least' if side == 'above' else 'at most'} this", default=None)
      for key, (side, suffix) in BOUNDS.items()),
)  # fmt: skip
NUMBERS_AND_WORDS = tuple(p for p in PARAMETERS if p.key != "phase")  # phase is a list of names, which no kind of parameter is
KEYS = tuple(p.key for p in PARAMETERS)


@dataclass(frozen=True)
class Bounds:
    """low, high: in SI, infinite where there is none. unit: of the file's keys, in which people see values."""

    low: float
    high: float
    unit: Unit

    @property
    def limits(self) -> tuple[float, float]:
        """Low and high in `unit`."""
        return self.low / self.unit.factor, self.high / self.unit.factor

    def margins(self, values: np.ndarray) -> np.ndarray:
        """Distance of values (n,) from the nearer bound, (n,) in SI; minus infinity for what is no number."""
        found = np.minimum(values - self.low, self.high - values)
        return np.where(np.isnan(found), -np.inf, found)


@dataclass(frozen=True)
class Requirement:
    """One checked requirement. signal: of `channel`; figure: name of a figure; formula: of `stl`; bounds: None with a formula; absent: a
    channel of it that this run does not carry, so that it is not judged."""

    name: str
    source: str = ""
    what: str = ""
    signal: Expression | None = None
    figure: str = ""
    formula: "Formula | None" = None
    bounds: Bounds | None = None
    phases: tuple[str, ...] = ()
    per_contact: bool = False
    absent: str = ""
    at: str = ""
    within_s: float | None = None
    for_s: float | None = None
    violated_max: float = 0.0

    @property
    def figure_factor(self) -> float:
        """What one unit of the figure is in SI."""
        return unit(FIGURES[self.figure].unit).factor


def faults_of(rows: object, path: str = "requirement") -> list[str]:
    """Everything that is wrong with a file's requirements, a line each without the file's name, as far as the table of channels tells; a
    channel that it has not may be one of a part's, which is known when the line stands (`read`)."""
    if not isinstance(rows, list):
        return [f"{path}: must be tables [[requirement]], got {shown(rows)}"]
    found: list[str] = []
    known = expressions.channels()
    for i, row in enumerate(rows):
        where = f"{path}[{i}]"
        if not isinstance(row, dict):
            found.append(f"{where}: must be a table, got {shown(row)}")
            continue
        wrong = parameters.faults(NUMBERS_AND_WORDS, {k: v for k, v in row.items() if k != "phase"}, where)
        wrong += _phase_faults(row.get("phase", []), f"{where}.phase")
        wrong = wrong or _sense(row, where)
        if not wrong:
            try:
                requirement(row, known)
            except UnknownChannelError:
                pass
            except _FaultError as fault:
                wrong.append(fault.line(where))
        found += wrong
    names = [row.get("name") for row in rows if isinstance(row, dict)]
    twice = [i for i, name in enumerate(names) if name is not None and name in names[:i]]
    return found + [_line(f"{path}[{i}].name", "used twice", names[i], "a name of its own") for i in twice]


def with_defaults(rows: Sequence[Given]) -> list[Document]:
    """Rows without faults, as the document keeps them: what was given, in the order of the declaration."""
    return [{key: row[key] for key in KEYS if row.get(key) is not None} for row in rows]


def read(rows: Iterable[Given], aux: Iterable[Carried], file: str = "test",
         absent: Callable[[str], bool] = lambda name: False) -> list[Requirement]:  # fmt: skip
    """The requirements in checked rows, for a run with these auxiliary channels. absent: whether a channel that is not there is known to
    be of a part that this run does not compute, as the docking unit of a stand of hardware; its requirement is not judged. Raises
    ConfigurationError with every other channel that is not there."""
    known = expressions.channels(aux)
    found, wrong = [], []
    for i, row in enumerate(rows):
        path = f"requirement[{i}]"
        try:
            found.append(requirement(row, known))
        except UnknownChannelError as error:
            if absent(error.channel):
                what = row.get("channel", row.get("stl", ""))
                found.append(Requirement(row["name"], row.get("source", ""), what, absent=error.channel))
                continue
            key = "channel" if "channel" in row else "stl"
            message = f"{error} (requirement {row['name']!r})"
            wrong.append(_line(f"{path}.{key}", message, row[key], "a channel of this run (hil-server list channels CONFIG)"))
        except _FaultError as fault:
            wrong.append(fault.line(path))
    if wrong:
        raise ConfigurationError(f"{file}: {fault}" for fault in wrong)
    return found


class _FaultError(ExpressionError):
    """What is wrong with one key."""

    def __init__(self, key: str, what: str, value: object, limit: str, unit: str = "-") -> None:
        super().__init__(what)
        self.key, self.rest = key, (what, value, limit, unit)

    def line(self, path: str) -> str:
        return _line(f"{path}.{self.key}", *self.rest)


def _line(path: str, what: str, value: object, limit: str, unit: str = "-") -> str:
    """One fault as one line, as `hil_server.config.checks.line` without the file."""
    return f"{path}: {what}, value {shown(value)}, limit {limit}, unit {unit}"


def requirement(row: Given, known: Channels) -> Requirement:
    """The requirement in a row whose keys are right. Raises UnknownChannelError, or another ExpressionError that knows its key."""
    about = {
        "name": row["name"], "source": row.get("source", ""), "phases": tuple(row.get("phase", ())), "at": row.get("at", ""),
        "per_contact": row.get("per", "run") == "contact", "within_s": row.get("within_s"), "for_s": row.get("for_s"),
        "violated_max": row.get("violated_max", 0.0),
    }  # fmt: skip
    if "stl" in row:
        from hil_server.requirements.stl import formula

        try:
            return Requirement(**about, what=row["stl"], formula=formula(row["stl"], row.get("signals", {}), known))
        except UnknownChannelError:
            raise
        except ExpressionError as error:
            raise _FaultError("stl", str(error), row["stl"], "a formula of channels") from None
    if "value" in row:
        figure = FIGURES[row["value"]]
        return Requirement(**about, what=row["value"], figure=row["value"], bounds=_bounds(row, unit(figure.unit), row["value"]))
    try:
        signal = expressions.expression(row["channel"], known)
    except UnknownChannelError:
        raise
    except ExpressionError as error:
        raise _FaultError("channel", str(error), row["channel"], "one number made of channels") from None
    return Requirement(**about, what=row["channel"], signal=signal, bounds=_bounds(row, signal.unit, row["channel"]))


def _bounds(row: Given, of: Unit, what: str) -> Bounds:
    """Raises _FaultError for a bound in another unit than the channel's."""
    low, high, shown = float("-inf"), float("inf"), of
    for key in row:
        if key not in BOUNDS:
            continue
        side, suffix = BOUNDS[key]
        bound = of_suffix(suffix, of)
        if not bound.fits(of):
            rest = " or ".join(f"{side}_{s}".rstrip("_") for s in suffixes(of))
            raise _FaultError(key, f"not in the unit of {what!r}", row[key], rest, of.text)
        value = float(row[key]) * bound.factor
        low, high, shown = (value, high, bound) if side == "above" else (low, value, bound)
    if low > high:
        value = low / shown.factor
        raise _FaultError("above", "above its upper bound, so never met", value, f"at most {high / shown.factor:g}", shown.text)
    return Bounds(low, high, shown)


def _sense(row: Given, path: str) -> list[str]:
    """Keys that do not go together."""
    subjects = [key for key in ("channel", "value", "stl") if key in row]
    if len(subjects) != 1:
        return [_line(path, "what is judged", " and ".join(subjects) or "none of them", "exactly one of channel, value and stl")]
    subject, bounds = subjects[0], [key for key in row if key in BOUNDS]
    if subject == "stl":
        odd = [*bounds, *(key for key in ("at", "within_s", "for_s") if key in row)]
        return [_line(f"{path}.{key}", "not with stl, whose formula contains it", row[key], "stl alone") for key in odd]
    found = [] if bounds else [f"{path}: required key is missing: a bound, as below_n = 5000.0"]
    for side in ("above", "below"):
        if len(both := [key for key in bounds if key.startswith(side)]) > 1:
            found.append(_line(f"{path}.{both[1]}", "a second bound on the same side", row[both[1]], f"{both[0]} alone"))
    odd = ["signals"] if "signals" in row else []
    if subject == "value":
        odd += [key for key in ("phase", "at", "within_s", "for_s") if key in row]
        if row.get("per") == "contact" and not FIGURES[row["value"]].per_contact:
            odd.append("per")
        why = f"not with value = {row['value']!r}"
    else:
        why = "only with stl"
        if "at" in row:
            odd += [key for key in ("phase", "within_s", "for_s") if key in row] + (["per"] if row.get("per") == "contact" else [])
            why = "not with at"
    return found + [_line(f"{path}.{key}", why, row[key], "the key left out") for key in odd]


def _phase_faults(given: object, path: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        return [f'{path}: must be a list of phases, as ["contact"], got {shown(given)}']
    found = []
    for name in given:
        if name not in PHASES:
            found.append(_line(path, f"no such phase{did_you_mean(name, PHASES)}", name, ", ".join(PHASES)))
    return found


def came(moment: str, records: np.ndarray) -> np.ndarray:
    """In which records the moment has come, (n,) of bool: the event of the first contact or the capture, or the guidance's word that the
    docking is complete."""
    if moment == "complete":
        found: np.ndarray = records["sequence"] == CODES["sequence"]["complete"]
    else:
        found = records["events"] & BITS["event"][moment] != 0
    return found
