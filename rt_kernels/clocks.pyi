# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import ClockPart
from rt_kernels.ring import SharedBlock

class FreeRunningClock(ClockPart):
    def __init__(self, period_ns: int, duration_ns: int, block: SharedBlock | None = None) -> None: ...
    def extend(self, ticks: int) -> Any: ...
    def restart(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]

class WallClockPart(ClockPart):
    def __init__(
        self,
        period_ns: int,
        duration_ns: int,
        priority: int = 80,
        cpu: int = -1,
        spin_ns: int = 0,
        late_bar_ns: int = 100000,
        block: SharedBlock | None = None,
    ) -> None: ...
    def facts(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
