# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

class Bumper(MechanismPart):
    def __init__(
        self,
        *,
        stiffness_n_per_m: Any,
        damping_n_s_per_m: Any = 0.0,
        plane_point_m: Any = ...,
        normal: Any = ...,
        contact_point_m: Any = ...,
        clamp: Any = True,
        latches: Any = False,
    ) -> None: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    PARAMETERS: tuple[Any, ...]
