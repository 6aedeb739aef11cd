# Generated from the built module by tools/generate_stubs.py
from typing import Any

KINDS: dict[Any, Any]

class RingPlatform:
    def __init__(self, legs: Any, ring_mass: Any, ring_inertia: Any) -> None: ...
    def place(self, p_0N: Any, R_0N: Any) -> Any: ...
    def evaluate(
        self,
        p_0N: Any,
        R_0N: Any,
        v_N: Any,
        w_N: Any,
        F_ring: Any,
        forces: Any,
        base_w: Any = ...,
        base_alpha: Any = ...,
        base_accel: Any = ...,
    ) -> Any: ...
    def momentum(self, p_0N: Any, R_0N: Any, v_N: Any, w_N: Any, base_w: Any = ..., base_v: Any = ...) -> Any: ...
    count: int

def leg_axes(p_base: Any, p_ring: Any, hint: Any = ...) -> Any: ...
