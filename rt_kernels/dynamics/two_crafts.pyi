# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

AUX: tuple[Any, ...]
CODES: dict[Any, Any]
DOCKING: str
EVENTS: dict[Any, Any]
FLAG: tuple[Any, ...]
FRICTION_RATE: float
SIDES: tuple[Any, ...]
STOP_HZ: float
TARGET_MAX: float

class TwoCrafts(StagePart):
    def __init__(self, *, period_s: Any, vehicles: Any, start: Any, orbit: Any = None, **given: Any) -> None: ...
    def keep_rates(self, snapshot: bytes) -> Any: ...
    def coordinates(self, craft: int) -> Any: ...
    def dump(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    def load_unchecked(self, block: bytes) -> Any: ...
    trees: tuple[Any, ...]
    joints: tuple[Any, ...]
    joint_targets: tuple[Any, ...]
    sensors: tuple[Any, ...]
    interfaces: tuple[Any, ...]
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    FLIES: tuple[Any, ...]
    FREE_VEHICLES: bool

WORD: tuple[Any, ...]

def rigid_craft(name: Any, vehicle: Any) -> Any: ...
def targets_of(settings: Any, kind: Any) -> Any: ...
