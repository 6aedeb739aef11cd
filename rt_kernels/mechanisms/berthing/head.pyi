# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

AUX: tuple[Any, ...]

class BerthingHead(MechanismPart):
    def __init__(self, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def contacts(self, X_TA: Any) -> Any: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    PICTURE: type[Any]
    AUX: tuple[Any, ...]
    LEDGER: tuple[Any, ...]

def hinge_step(h: Any, inertia: Any, stiffness: Any, damping: Any, free_angle: Any, moment: Any, rate: Any, angle: Any) -> Any: ...
