# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

FLAG: tuple[Any, ...]
LATE_TICKS: dict[Any, Any]

class TwoBodies(StagePart):
    def __init__(self, *, period_s: Any, vehicles: Any, start: Any, orbit: Any = None, **given: Any) -> None: ...
    def keep_rates(self, snapshot: bytes) -> Any: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    integrator_late_ticks: Any
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    FLIES: tuple[Any, ...]
    FREE_VEHICLES: bool
