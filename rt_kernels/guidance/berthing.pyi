# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

ALIVE: tuple[Any, ...]
BERTHING_COMMANDS: tuple[Any, ...]

class BerthingGuidance(StagePart):
    def __init__(self, *, period_s: Any, start: Any, **given: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    def approach(self, count: int) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    FLOWN: bool

COUNT_32: tuple[Any, ...]
FLAG: tuple[Any, ...]
FRAMES: dict[Any, Any]
MOVING: tuple[Any, ...]
ROTATIONS: dict[Any, Any]
STAND_BOUNDS: dict[Any, Any]
STAND_COMMANDS: tuple[Any, ...]
