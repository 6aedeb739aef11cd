# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

AUX: tuple[Any, ...]
COUNT: tuple[Any, ...]
COUNT_32: tuple[Any, ...]
FLAG: tuple[Any, ...]
LEAD_PARAMETERS: tuple[Any, ...]
LEG_OFFSET_PARAMETERS: tuple[Any, ...]

class LeadAndPoseForce(StagePart):
    def __init__(
        self, *, period_s: Any, delays: Any, vehicles: Any, start: Any, platform: Any, mounting: Any, stand_model: Any, **given: Any
    ) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

OBSERVER_PARAMETERS: tuple[Any, ...]
POSE_FORCE_PARAMETERS: tuple[Any, ...]
