# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

COUNT: tuple[Any, ...]
COUNT_32: tuple[Any, ...]

class Fmu(StagePart):
    def __init__(self, *, period_s: Any, folders: Any, live: Any, trusted: Any = None, **given: Any) -> None: ...
    def fields(self) -> Any: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def snapshot(self) -> Any: ...
    def restore(self, snapshot: bytes) -> Any: ...
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    FILES: tuple[Any, ...]

SANDBOX: tuple[Any, ...]
