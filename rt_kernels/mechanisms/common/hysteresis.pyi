# Generated from the built module by tools/generate_stubs.py
from typing import Any

class Hysteresis:
    def step(self, q: float) -> Any: ...
    def path(self, q: Any) -> Any: ...
    slip: Any
    slope_max: Any
    stored: Any

class TwoBrakes:
    def step(self, q: float) -> Any: ...
    def path(self, q: Any) -> Any: ...
    slip1: Any
    slip2: Any
    stored: Any
