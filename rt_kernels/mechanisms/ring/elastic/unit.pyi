# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

AUX: tuple[Any, ...]

class ElasticAdaptive(MechanismPart):
    def __init__(self, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    gives: Any
    PARAMETERS: tuple[Any, ...]
    PICTURE: type[Any]
    @staticmethod
    def longest_substep_s(keys: Any) -> Any: ...
    AUX: tuple[Any, ...]
    LEDGER: tuple[Any, ...]

FLAG: tuple[Any, ...]
PHASES: tuple[Any, ...]
RING_PARAMETERS: tuple[Any, ...]
