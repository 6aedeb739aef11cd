# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.dynamics.two_bodies import TwoBodies

AUX: tuple[Any, ...]
OWN_PARAMETERS: tuple[Any, ...]

class TwoBodiesFlexible(TwoBodies):
    def __init__(self, *, period_s: Any, vehicles: Any, start: Any, orbit: Any = None, **given: Any) -> None: ...
    def dump(self) -> Any: ...
    def fields(self) -> Any: ...
    def load_unchecked(self, block: bytes) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
