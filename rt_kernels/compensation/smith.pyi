# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class SmithPredictor(StagePart):
    def __init__(self, *, period_s: Any, delays: Any, lead_factor: Any = 1.0) -> None: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
