# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.drives.canopen_port import CanopenPort

ACTUAL_POSITION: int
COMMON_PARAMETERS: tuple[Any, ...]
CONTROL_WORD: int
CYCLIC_SYNCHRONOUS_POSITION: int

class Cia402Port(CanopenPort):
    def __init__(self, *, period_s: Any = 0.001, platform: Any = None, loop_core: int = -1, **parameters: Any) -> None: ...
    PARAMETERS: tuple[Any, ...]

class Cia402Profile:
    last_state: str
    def __init__(
        self,
        rate_hz: Any,
        receive_timeout_periods: Any,
        heartbeat_ms: Any,
        feed_forward: Any,
        watchdog_axis: Any = -1,
        watchdog_mask: Any = 0,
    ) -> None: ...
    def prepare(self, node: Any, axis: Any) -> Any: ...
    def set_mode(self, node: Any) -> Any: ...
    def scale(self, node: Any, feed_m: Any) -> Any: ...
    def check(self, node: Any) -> Any: ...
    def standing(self, node: Any) -> Any: ...
    def next_state(self, word: Any) -> Any: ...

DIGITAL_OUTPUTS: int
FOLLOWING_BIT: Any
INTERPOLATION_PERIOD: int
MODE: int
MODE_DISPLAY: int
STATUS_WORD: int
TARGET_POSITION: int
VELOCITY_OFFSET: int

def interpolation_period(rate_hz: float) -> Any: ...
def status_bits(word: int) -> Any: ...
