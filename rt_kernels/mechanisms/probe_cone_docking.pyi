# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

def virtual_docking(
    part: MechanismPart,
    active: Any,
    target: Any,
    X_TA: Any,
    V_TA: Any,
    w_A: Any = ...,
    duration: float = 60.0,
    dt: float = 5e-4,
    every: int = 100,
    press_thrust: float = 0.0,
    attitude_gain: float = 0.0,
    timing: Any = ...,
    stop_on_complete: bool = True,
) -> Any: ...
