# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

COUNT: tuple[Any, ...]
COUNT_32: tuple[Any, ...]
FLAG: tuple[Any, ...]

class SafetyLimits(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        platform: Any,
        delays: Any,
        limits: Any,
        mechanism: Any = None,
        start: Any = None,
        mounting: Any = None,
        **given: Any,
    ) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    def move(self, legs: Any, rates: Any, wanted: Any) -> Any: ...
    def follow(self, legs: Any, rates: Any, demands: Any, demands_before: Any, periods: Any) -> Any: ...
    def brake(self, legs: Any, rates: Any) -> Any: ...
    constants: Any
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

WORD: tuple[Any, ...]
