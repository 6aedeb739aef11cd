# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

FLAG: tuple[Any, ...]

class SmithPredictor(StagePart):
    def __init__(self, *, period_s: Any, delays: Any, **given: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
