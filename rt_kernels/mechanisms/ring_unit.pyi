# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

DRIVE_ON: int
RELEASE: int
REQUIRED: Any
RING_AUX: tuple[Any, ...]
RING_AUX_COUNT: int
RING_PARAMETERS: tuple[Any, ...]

class Ring(MechanismPart):
    def __init__(self, **parameters: Any) -> None: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]

def checked_table(cls, values: Any) -> Any: ...
def drawn_in(t: Any) -> Any: ...
