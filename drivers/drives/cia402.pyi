# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.drives.canopen_port import CanopenPort

ACTUAL_POSITION: int
COMMON_PARAMETERS: tuple[Any, ...]
CONTROL_WORD: int
CYCLIC_SYNCHRONOUS_POSITION: int

class Cia402Port(CanopenPort):
    def __init__(self, *, period_s: Any = 0.001, **parameters: Any) -> None: ...
    PARAMETERS: tuple[Any, ...]

class Cia402Profile:
    steps: tuple[Any, ...]
    def __init__(self, rate_hz: Any, receive_timeout_periods: Any, heartbeat_ms: Any, feed_forward: Any) -> None: ...
    def prepare(self, node: Any) -> Any: ...
    def clear_fault(self, node: Any) -> Any: ...
    def step(self, node: Any, control_word: Any) -> Any: ...
    def await_state(self, node: Any, name: Any, reached: Any) -> Any: ...
    def hold_here(self, node: Any) -> Any: ...
    def disable(self, node: Any) -> Any: ...

FOLLOWING_BIT: Any
INTERPOLATION_PERIOD: int
MODE: int
MODE_DISPLAY: int
STATUS_WORD: int
TARGET_POSITION: int
VELOCITY_OFFSET: int

def interpolation_period(rate_hz: float) -> Any: ...
def status_bits(word: int) -> Any: ...
