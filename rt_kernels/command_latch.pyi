# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import PortPart
from rt_kernels.ring import SharedBlock

class CommandLatch(PortPart):
    def __init__(self, *, block: SharedBlock, **given: Any) -> None: ...
    now_ns: Any
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
