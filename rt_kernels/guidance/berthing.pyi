# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

ALIVE: tuple[Any, ...]
BERTHING_COMMANDS: tuple[Any, ...]

class BerthingGuidance(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        start: Any,
        start_distance_m: Any = 0.3,
        frame: Any = "camera",
        rotation_from: Any = "right",
        coarse_m_s: Any = 0.019,
        coarse_deg_s: Any = 0.15,
        vernier_m_s: Any = 0.005,
        vernier_deg_s: Any = 0.04,
        start_coarse: Any = True,
        sticks_required: Any = True,
        stick_cancels: Any = True,
        step_acceleration_m_s2: Any = 0.002,
        step_acceleration_deg_s2: Any = 0.02,
        step_tolerance_m: Any = 0.0005,
        step_tolerance_deg: Any = 0.02,
        correction_gain_per_s: Any = 0.2,
        correction_max_s: Any = 20.0,
        abort_force_n: Any = 1000.0,
        abort_moment_n_m: Any = 1000.0,
        speed_max_m_s: Any = 0.1,
        turn_max_deg_s: Any = 5.0,
        acceleration_max_m_s2: Any = 0.2,
        turn_acceleration_max_deg_s2: Any = 10.0,
        position_tolerance_m: Any = 0.003,
        angle_tolerance_deg: Any = 0.2,
        settle_s: Any = 0.3,
        contact_max_s: Any = 900.0,
        after_capture_s: Any = 2.0,
        retreat_distance_m: Any = 0.25,
        fault_s: Any = 1.0,
        auto_start: Any = True,
        finish_on_capture: Any = True,
        finish_on_overload: Any = False,
        hold_stops_platform: Any = False,
    ) -> None: ...
    def fields(self) -> Any: ...
    def approach(self, count: int) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

FRAMES: dict[Any, Any]
ROTATIONS: dict[Any, Any]
STAND_COMMANDS: tuple[Any, ...]
