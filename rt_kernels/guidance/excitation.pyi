# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class Excitation(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        direction: Any = ...,
        slow_amplitude_m: Any = 0.004,
        slow_hz: Any = 0.25,
        slow_periods: Any = 2,
        lines_hz: Any = ...,
        rate_rms_m_s: Any = 0.03,
        multisine_s: Any = 4.0,
        periods: Any = 3,
        chirp_hz: Any = ...,
        chirp_s: Any = 6.0,
        chirp_rate_m_s: Any = 0.03,
        fade_s: Any = 0.5,
    ) -> None: ...
    def fields(self) -> Any: ...
    schedule: dict[Any, Any]
    lines: list[Any]
    fade_s: float
    multisine_s: float
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

def raise_for(lines_hz: Any, multisine_s: Any) -> Any: ...
