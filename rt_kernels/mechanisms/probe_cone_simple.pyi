# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

class ProbeConeSimple(MechanismPart):
    def __init__(
        self,
        *,
        head_radius_m: Any = 0.04,
        head_mass_kg: Any = 4.0,
        probe_m: Any = ...,
        axial_stiffness_n_per_m: Any = 8e3,
        axial_damping_n_s_per_m: Any = 4e3,
        lateral_stiffness_n_per_m: Any = 2e4,
        lateral_damping_n_s_per_m: Any = 1.5e3,
        contact_stiffness_n_per_m: Any = 1e6,
        contact_damping_n_s_per_m: Any = 500.0,
        penetration_max_m: Any = 0.01,
        friction: Any = 0.1,
        slip_speed_m_s: Any = 1e-3,
        cavity_m: Any = ...,
        capture_x_m: Any = 0.02,
        latch_stiffness_n_per_m: Any = 2e5,
        latch_damping_n_s_per_m: Any = 1e3,
    ) -> None: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    PARAMETERS: tuple[Any, ...]
