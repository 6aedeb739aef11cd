# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

DRIVE_PARAMETERS: tuple[Any, ...]

class PlantPart:
    def __init__(
        self,
        *,
        platform: Any,
        mounting: Any,
        mechanism: MechanismPart,
        drive_frequency_hz: Any = 13.25,
        drive_damping: Any = 0.784,
        drive_delay_s: Any = 0.002,
        drive_feedforward: Any = 0.0,
        drive_rate_max_m_s: Any = None,
        drive_acceleration_max_m_s2: Any = None,
        drive_dead_band_m: Any = 0.0,
        drive_spread: Any = ...,
        leg_noise_m: Any = 0.0,
        leg_resolution_m: Any = 1e-6,
        force_noise_n: Any = 0.0,
        moment_noise_n_m: Any = 0.0,
        sensor_bias: Any = ...,
        sensor_drift: Any = ...,
        sensor_delay_s: Any = 0.0,
        sensor_dead_zone_n: Any = 0.0,
        counts_per_newton: Any = 1e5,
        counts_per_newton_metre: Any = 1e5,
        gauge_matrix: Any = None,
        chain_force_n: Any = 6000.0,
        chain_moment_n_m: Any = 4000.0,
        plant_step_s: Any = 5e-5,
        seed: Any = 1,
    ) -> None: ...
    def advance(self, steps: int) -> Any: ...
    def set_target(self, leg: Any, leg_rate: Any = ...) -> Any: ...
    def inject(self, code: int, index: int = 0, value: float = 0.0) -> Any: ...
    def state(self) -> Any: ...
    mechanism: Any
    mechanism_aux: Any
    step_s: Any
    sensor_scale: Any
    PARAMETERS: tuple[Any, ...]
