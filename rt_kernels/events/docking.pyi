# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class DockingEvents(StagePart):
    def __init__(self, *, period_s: Any, **given: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

FLAG: tuple[Any, ...]
OUT_OF_LOOP: tuple[Any, ...]
WORD: tuple[Any, ...]
