# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.drives.canopen_port import CanopenPort

ACTUAL_POSITION: int
COMMON_PARAMETERS: tuple[Any, ...]
CONTROL_MODE: int
CONTROL_WORD: int

class Cia408Port(CanopenPort):
    def __init__(self, *, period_s: Any = 0.001, platform: Any = None, loop_core: int = -1, **parameters: Any) -> None: ...
    PARAMETERS: tuple[Any, ...]

class Cia408Profile:
    last_state: str
    def __init__(self, rate_hz: Any, receive_timeout_periods: Any, heartbeat_ms: Any, control_mode: Any) -> None: ...
    def prepare(self, node: Any, axis: Any) -> Any: ...
    def scale(self, node: Any, feed_m: Any) -> Any: ...
    def check(self, node: Any) -> Any: ...
    def standing(self, node: Any) -> Any: ...
    def next_state(self, word: Any) -> Any: ...

DEVICE_MODE: int
HOLD_ACTUAL_POSITION: int
HOLD_TARGET: int
POSITION_SET_POINT: int
SET_POINT_FROM_BUS: int
STATUS_WORD: int
TRAJECTORY_TYPE: int

def status_bits(word: int) -> Any: ...
