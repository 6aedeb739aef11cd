# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

ALIVE: tuple[Any, ...]

class DockingGuidance(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        start: Any,
        vehicles: Any,
        ramp_s: Any = 1.0,
        constant_s: Any = 0.5,
        close_before_s: Any = 0.5,
        speed_max_m_s: Any = 0.1,
        turn_max_deg_s: Any = 5.0,
        acceleration_max_m_s2: Any = 0.2,
        turn_acceleration_max_deg_s2: Any = 10.0,
        position_tolerance_m: Any = 0.003,
        angle_tolerance_deg: Any = 0.2,
        settle_s: Any = 0.3,
        contact_max_s: Any = 20.0,
        after_capture_s: Any = 2.0,
        capture_limit_s: Any = 10.0,
        retreat_distance_m: Any = 0.25,
        retreat_range_m: Any = 0.1,
        attitude_rate_gain_n_m_s_per_rad: Any = 0.0,
        brakes_after_s: Any = 2.0,
        brakes_for_s: Any = 30.0,
        drive_after_s: Any = 35.0,
        complete_tilt_deg: Any = 0.5,
        complete_offset_m: Any = 0.010,
        complete_hold_s: Any = 0.5,
        fault_s: Any = 1.0,
        auto_start: Any = True,
        finish_on_capture: Any = True,
        finish_at_region_end: Any = True,
        latch_on_capture: Any = False,
        latch_after_s: Any = 0.5,
    ) -> None: ...
    def fields(self) -> Any: ...
    def approach(self, count: int) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

STAND_COMMANDS: tuple[Any, ...]
