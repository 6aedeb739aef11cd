# Generated from the built module by tools/generate_stubs.py
from typing import Any

class CableRetraction:
    def __init__(self, table: Any, eyes: Any, phi: Any = 0.0) -> None: ...
    def step(self, p_0N: Any, R_0N: Any, v_N: Any, w_N: Any, command: float, dt: float = 5e-4) -> Any: ...

class OperationSequence:
    def __init__(self, table: Any, eyes: Any, phase: Any = "ready") -> None: ...
    def step(
        self, stroke: Any, aligned: Any, extend: bool = False, gear_cam: float = 0.0, mated: bool = False, dt: float = 5e-4
    ) -> Any: ...

PHASES: tuple[Any, ...]
