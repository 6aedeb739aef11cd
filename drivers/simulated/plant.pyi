# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

COUNT: tuple[Any, ...]
DRIVE_PARAMETERS: tuple[Any, ...]
HYDRAULIC_PARAMETERS: tuple[Any, ...]
LINEAR: tuple[Any, ...]
MACHINES: dict[Any, Any]

class PlantPart:
    def __init__(self, *, platform: Any, mounting: Any, mechanism: MechanismPart, machine: Any = "linear", **given: Any) -> None: ...
    def advance(self, steps: int) -> Any: ...
    def set_target(self, leg: Any, rate: Any = ...) -> Any: ...
    def inject(self, code: int, index: int = 0, value: float = 0.0) -> Any: ...
    def snapshot(self) -> Any: ...
    def restore(self, snapshot: bytes) -> Any: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def state(self) -> Any: ...
    machine: Any
    mechanism: Any
    mechanism_aux: Any
    step_s: Any
    sensor_scale: Any
    PARAMETERS: tuple[Any, ...]

STRUCTURE_PARAMETERS: tuple[Any, ...]
TRANSDUCERS: tuple[Any, ...]
WORD: tuple[Any, ...]
