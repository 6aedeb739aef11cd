# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import PortPart
from rt_kernels.ring import SharedBlock

COUNT: tuple[Any, ...]

class CommandLatch(PortPart):
    def __init__(self, *, block: SharedBlock, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def end_at(self, park_ns: int, abort_ns: int) -> Any: ...
    now_ns: Any
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

FLAG: tuple[Any, ...]
HAND_BOUNDS: dict[Any, Any]
TIME_NS: tuple[Any, ...]
WORD: tuple[Any, ...]
