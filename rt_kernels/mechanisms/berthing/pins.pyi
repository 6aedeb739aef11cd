# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

AUX: tuple[Any, ...]

class BerthingPins(MechanismPart):
    def __init__(self, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def contacts(self, X_TA: Any) -> Any: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    PICTURE: type[Any]
    AUX: tuple[Any, ...]
    LEDGER: tuple[Any, ...]
