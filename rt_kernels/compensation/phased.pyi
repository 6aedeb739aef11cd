# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class Phased(StagePart):
    def __init__(self, **given: Any) -> None: ...
    def fields(self) -> Any: ...
    AUX: Any
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

WHERE: dict[Any, Any]

def build(role: Any, table: Any, context: Any) -> Any: ...
def channels(role: Any, part: Any) -> Any: ...
