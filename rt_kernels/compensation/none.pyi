# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class NoCompensator(StagePart):
    def __init__(self, *, delays: Any) -> None: ...
    def fields(self) -> Any: ...
    CONTEXT: tuple[Any, ...]
