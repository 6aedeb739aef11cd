# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class Polynomial(StagePart):
    def __init__(self, *, period_s: Any, delays: Any, order: Any = 3, spacing_ticks: Any = 0, lead_factor: Any = 1.0) -> None: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

def coefficients(order: Any, r: Any) -> Any: ...
