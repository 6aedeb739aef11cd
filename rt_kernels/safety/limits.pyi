# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

START_TOLERANCE: float

class SafetyLimits(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        platform: Any,
        delays: Any,
        limits: Any,
        braking_m_s2: Any = 4.0,
        stroke_reserve_m: Any = 0.01,
        following_max_m: Any = 0.02,
        following_time_s: Any = 0.05,
        rate_excess_s: Any = 0.05,
        condition_max: Any = 30.0,
        drift_max_n: Any = 0.5,
        drift_time_s: Any = 1.0,
        energy_warn: Any = 0.05,
        energy_trip: Any = 0.2,
        energy_floor_j: Any = 0.05,
        supervisor_s: Any = 5.0,
        skipped_periods_max: Any = 50,
        damaged_max_per_s: Any = 5.0,
        drive_lost_max_per_s: Any = 5.0,
        arming_s: Any = 0.5,
        sensor_missing_periods: Any = 1,
        drive_missing_periods: Any = 3,
        signals_missing_periods: Any = 3,
    ) -> None: ...
    def fields(self) -> Any: ...
    def move(self, legs: Any, rates: Any, wanted: Any) -> Any: ...
    def follow(self, legs: Any, rates: Any, demands: Any, demands_before: Any, periods: Any) -> Any: ...
    def brake(self, legs: Any, rates: Any) -> Any: ...
    constants: Any
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
