"""What the server asks of a part: of its class, and of a port, a stage, a docking mechanism once it is built.

Whatever has these attributes is one; most kernels have the classes of `rt_kernels.plugs` beneath them. What only some parts of a role
have (`delays`, `recover`, `approach`, ...) is asked for where it is used.
"""

from typing import TYPE_CHECKING, Any, Protocol

from rt_kernels.parameters import Aux, Command, Parameter

if TYPE_CHECKING:
    import numpy as np


class PartClass(Protocol):
    """A part before it is built, with its keys and what its `CONTEXT` names."""

    __name__: str
    PARAMETERS: tuple[Parameter, ...]
    AUX: tuple[Aux, ...]
    COMMANDS: tuple[Command, ...]

    def __call__(self, **given: object) -> Any:
        """The part, of whatever role it is registered in. Raises ValueError, TypeError."""


class Part(Protocol):
    """What every part of a line has: auxiliary channels, and a state as bytes."""

    AUX: tuple[Aux, ...]

    def snapshot(self) -> bytes:
        """The state."""

    def restore(self, snapshot: bytes) -> object:
        """The state of `snapshot`."""


class Port(Part, Protocol):
    """Reads and writes the sample of a tick; what touches a device is opened before the run, and begins right before the loop."""

    COMMANDS: tuple[Command, ...]

    def open(self) -> object:
        """Reaches the device. Raises OSError."""

    def begin(self) -> object:
        """Right before the loop."""

    def close(self) -> object:
        """Lets the device go."""


class Stage(Part, Protocol):
    """Computes fields of the sample. dump, load: its constants and initial state, as a log keeps them."""

    COMMANDS: tuple[Command, ...]

    def dump(self) -> bytes:
        """Constants and initial state."""

    def load(self, block: bytes) -> object:
        """Those of `dump`. Raises ValueError for what this program would not build itself."""

    def load_unchecked(self, block: bytes) -> object:
        """The same, of a block that was built here."""


class Mechanism(Part, Protocol):
    """The docking units in software."""

    def advance(self, X_TA: "np.ndarray", V_TA: "np.ndarray", dt: float) -> dict[str, "np.ndarray"]:
        """One step of dt s at pose (7,) and twist (6,) of A in T: `F_T` (6,) at and in T, and what else it answers."""
