# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class DockingEvents(StagePart):
    def __init__(self, *, period_s: Any, contact_on_n: Any = 20.0, contact_off_n: Any = 10.0, contact_hold_s: Any = 0.005) -> None: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
