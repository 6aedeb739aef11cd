"""How a part declares its parameters. The declaration is the manual page of the part (`hil-server list ROLE NAME`).

A part has a class attribute `PARAMETERS`, a tuple of `Parameter`, and takes exactly these keys as keyword arguments;
`AUX`, a tuple of `Aux`, names its auxiliary channels; `hil_server.config` checks a TOML table against the declaration.
"""

from dataclasses import dataclass
from typing import Any

REQUIRED = object()


@dataclass(frozen=True)
class Parameter:
    """One key of a part's table.

    kind: "float", "int", "bool", "str", "floats" (list of numbers), "rows" (list of lists of numbers), "table".
    low, high: inclusive limits of every number. shape: length of a list, or (rows, columns). choices: allowed strings.
    """

    key: str
    kind: str
    unit: str
    meaning: str
    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    shape: int | tuple[int, int] | None = None
    choices: tuple[str, ...] | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Aux:
    """One auxiliary channel of a part: `count` doubles from the offset the assembly gives it."""

    name: str
    unit: str
    meaning: str
    count: int = 1
