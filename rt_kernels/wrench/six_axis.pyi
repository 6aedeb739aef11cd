# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class SixAxis(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        mounting: Any,
        sensor_scale: Any = None,
        calibration: Any = None,
        bias_counts: Any = ...,
        range_force_n: Any = ...,
        range_moment_n_m: Any = ...,
        saturation_counts: Any = 2147480000.0,
        broken_wire_counts: Any = None,
        filter_order: Any = 0,
        filter_corner_hz: Any = 100.0,
    ) -> None: ...
    def fields(self) -> Any: ...
    filter_delay_s: float
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

def low_pass_coefficients(order: Any, corner_hz: Any, period_s: Any) -> Any: ...
