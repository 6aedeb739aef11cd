# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class EnergyCap(StagePart):
    def __init__(
        self, *, period_s: Any, delays: Any, vehicles: Any, start: Any, dissipated: Any = 0.0, energy_floor_j: Any = 1e-6
    ) -> None: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
