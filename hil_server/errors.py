"""What can go wrong, as exceptions. The exit code of the program is that of the class.

    HilError                    base; never raised itself
     ├─ VerdictError        1   the run ended, and a verdict is negative: prediction diverges, replay differs, a requirement is violated
     ├─ UsageError          2   the command line: no such file, verb, part or format
     ├─ ConfigurationError  2   a TOML file or a `--set`: carries every fault that was found, one line each
     ├─ TripError           3   the protection stopped the run: which fault, at which tick
     ├─ DeviceError         4   a device is not there, was lost, or refuses its set-up
     └─ InternalError       5   our own mistake: the message says what to send to whom maintains this

Drivers and kernels do not import this file: they raise `OSError` and `ValueError`, and the assembly turns these into the classes above,
naming the part. Any other exception leaves the program with 5.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")
CUT_THE_POWER = "a drive that is not off may move its leg: cut the power of the stand before you go near"


class HilError(Exception):
    """Base of every error that the program explains in words instead of a traceback."""

    exit_code = 5


class VerdictError(HilError):
    """Ended as asked, but the answer is no: `predict` diverges, `replay --verify` differs, a variant failed, a requirement is violated."""

    exit_code = 1


class UsageError(HilError):
    """The command line asks for something that does not exist."""

    exit_code = 2


class ConfigurationError(HilError):
    """One or more faults in a configuration.

    faults: lines of the form `file: key.path: what is wrong, value, limit, unit, did you mean ...`.
    """

    exit_code = 2

    def __init__(self, faults: str | Iterable[str]) -> None:
        self.faults: tuple[str, ...] = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("\n".join(self.faults))


class TripError(HilError):
    """The protection stopped the run. faults: names of the fault bits in the table; tick: of the first stop fault."""

    exit_code = 3

    def __init__(self, faults: Iterable[str], tick: int) -> None:
        self.faults = tuple(faults)
        self.tick = tick
        super().__init__(f"tripped at tick {tick}: {', '.join(self.faults)}")


class DeviceError(HilError):
    """A device is not there (wrong address, no power, no permission), was lost, refuses its set-up, or does not confirm that it is off."""

    exit_code = 4


class InternalError(HilError):
    """An internal consistency check failed."""

    exit_code = 5


def attempt(figure: str, make: Callable[[], T], instead: S, missing: list[dict[str, str]]) -> T | S:
    """What `make` gives; where it fails, `instead`, and the figure's name and the reason in `missing` (keys figure, reason): one figure
    that cannot be had costs no other."""
    try:
        return make()
    except Exception as error:
        missing.append({"figure": figure, "reason": reason_of(error)})
        return instead


def reason_of(error: Exception) -> str:
    """Why something is not available, in one line; of an exception of ours its words, of any other its kind, too."""
    words = " ".join(str(error).split())
    return words if isinstance(error, HilError) and words else f"{type(error).__name__}: {words}".rstrip(": ")
