# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class Recording(StagePart):
    def __init__(self, *, period_s: Any, start: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    LIVE: bool
    CONTEXT: tuple[Any, ...]
