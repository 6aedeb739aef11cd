# Generated from the built module by tools/generate_stubs.py
from typing import Any

class RingContact:
    def __init__(self, table: Any) -> None: ...
    def contacts(self, p_TN: Any, R_TN: Any) -> Any: ...
    def petal(self, k: Any, R_TN: Any = None, p_TN: Any = None) -> Any: ...
    chord_error: Any

def implicit_latch(h: Any, mass: Any, stiffness: Any, preload: Any, force: Any, v: Any, x: Any) -> Any: ...
def petal_shape(
    inner_radius: Any,
    outer_radius: Any,
    height: Any,
    half_angle: Any,
    clearance: Any,
    base_azimuth: Any,
    tip_azimuth: Any,
    thickness: Any,
    levels: Any,
) -> Any: ...
def rotation_x(angle: Any) -> Any: ...
