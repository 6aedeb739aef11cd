# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

ATTITUDE: dict[Any, Any]
COUNT_32: tuple[Any, ...]
FLAG: tuple[Any, ...]

class Thrusters(StagePart):
    def __init__(self, *, period_s: Any, vehicles: Any, start: Any, **given: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
