# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

AUX: tuple[Any, ...]
COUNT: tuple[Any, ...]
COUNT_32: tuple[Any, ...]
FLAG: tuple[Any, ...]
POSE_FORCE_PARAMETERS: tuple[Any, ...]

class PoseReferencedForce(StagePart):
    def __init__(self, *, period_s: Any, delays: Any, **given: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
