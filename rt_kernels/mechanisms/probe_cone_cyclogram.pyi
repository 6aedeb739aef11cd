# Generated from the built module by tools/generate_stubs.py
from typing import Any

class DockingCyclogram:
    def step(
        self, dt: float, DK1: bool = False, DSG: bool = False, DK2: bool = False, complete: bool = False, manual: bool = False
    ) -> Any: ...
    phase: Any
    times: Any

PHASES: tuple[Any, ...]
