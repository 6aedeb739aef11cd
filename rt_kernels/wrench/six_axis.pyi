# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

COUNT: tuple[Any, ...]
FLAG: tuple[Any, ...]

class SixAxis(StagePart):
    def __init__(self, *, period_s: Any, mounting: Any, sensor_scale: Any, noiseless: Any = False, **given: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    filter_delay_s: float
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

def low_pass_coefficients(order: Any, corner_hz: Any, period_s: Any) -> Any: ...
