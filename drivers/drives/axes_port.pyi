# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import PortPart

class AxesPort(PortPart):
    def open(self) -> Any: ...
    def begin(self) -> Any: ...
    def end(self) -> Any: ...
    def close(self) -> Any: ...
    def counters(self) -> Any: ...
    in_loop: Any
    notes: Any
    identities: Any
    delay_origins: Any
    close_problems: Any
    CONTEXT: tuple[Any, ...]
