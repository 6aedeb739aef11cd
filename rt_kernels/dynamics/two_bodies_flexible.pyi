# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.dynamics.two_bodies import TwoBodies

AUX: tuple[Any, ...]
OWN_PARAMETERS: tuple[Any, ...]

class TwoBodiesFlexible(TwoBodies):
    def __init__(self, *, period_s: Any, vehicles: Any, start: Any, **given: Any) -> None: ...
    def whole(self) -> Any: ...
    def fields(self) -> Any: ...
    def put_whole(self, block: bytes) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
