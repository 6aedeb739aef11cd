# Generated from the built module by tools/generate_stubs.py
from __future__ import annotations

from typing import Any

from rt_kernels.plugs import MechanismPart

AUX: tuple[Any, ...]
COUNT_32: tuple[Any, ...]
INVALID: tuple[Any, ...]
PARAMETERS: tuple[Any, ...]

class ProbeCone(MechanismPart):
    def __init__(self, **given: Any) -> None: ...
    @staticmethod
    def longest_substep_s(keys: Any) -> Any: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    def set_state(self, coordinates: Any = None, rates: Any = None) -> Any: ...
    coordinates: Any
    rates: Any
    PARAMETERS: tuple[Any, ...]
    PICTURE: type[Any]
    AUX: tuple[Any, ...]
    LEDGER: tuple[Any, ...]
    INVALID: tuple[Any, ...]

def multibody_step(part: ProbeCone, q: Any, v: Any, w0: Any, Q: Any, external: Any = ...) -> Any: ...
