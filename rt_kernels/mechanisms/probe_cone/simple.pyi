# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

FLAG: tuple[Any, ...]

class ProbeConeSimple(MechanismPart):
    def __init__(self, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    PICTURE: type[Any]
    PARAMETERS: tuple[Any, ...]
