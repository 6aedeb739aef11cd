# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class StewartForward(StagePart):
    def __init__(self, *, period_s: Any, platform: Any, mounting: Any, **given: Any) -> None: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
