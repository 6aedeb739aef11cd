# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

AUX: tuple[Any, ...]

class ManipulatorPayload(StagePart):
    def __init__(self, *, period_s: Any, vehicles: Any, start: Any, **given: Any) -> None: ...
    def whole(self) -> Any: ...
    def fields(self) -> Any: ...
    def put_whole(self, block: bytes) -> Any: ...
    def restore_whole(self, block: bytes) -> Any: ...
    COMMANDS: Any
    generated: Any
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    MANIPULATOR: bool
    model_tables: Any
