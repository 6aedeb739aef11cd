# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class Fmu(StagePart):
    def __init__(self, *, period_s: Any, folders: Any, live: Any, **given: Any) -> None: ...
    def fields(self) -> Any: ...
    def snapshot(self) -> Any: ...
    def restore(self, snapshot: bytes) -> Any: ...
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    FILES: tuple[Any, ...]
