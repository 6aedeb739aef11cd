# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

AUX: tuple[Any, ...]
COUNT_32: tuple[Any, ...]
FLAG: tuple[Any, ...]

class ManipulatorPayload(StagePart):
    def __init__(self, *, period_s: Any, vehicles: Any, start: Any, **given: Any) -> None: ...
    def dump(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    def load_unchecked(self, block: bytes) -> Any: ...
    def load(self, block: bytes) -> Any: ...
    COMMANDS: Any
    generated: Any
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    FLIES: tuple[Any, ...]
    MANIPULATOR: bool
    @staticmethod
    def model_tables(name: Any, data: Any = ...) -> Any: ...
