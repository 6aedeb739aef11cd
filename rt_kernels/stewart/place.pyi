# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class StewartPlacer(StagePart):
    def __init__(self, *, period_s: Any, platform: Any, mounting: Any, blend_s: Any = 0.3) -> None: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
