# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class ManipulatorPayload(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        vehicles: Any,
        start: Any,
        model: Any,
        joint_angles_deg: Any,
        model_data: Any = None,
        base: Any = "fixed",
        grapple_position_m: Any = ...,
        grapple_angles_deg: Any = ...,
        camera_position_m: Any = ...,
        camera_angles_deg: Any = ...,
        locked_joint: Any = "",
        log_decrement: Any = 0.1,
        refresh_angle_deg: Any = 2.0,
        blend_s: Any = 0.1,
        stop_margin_deg: Any = 5.0,
        paths_deg: Any = ...,
        path_tolerance_deg: Any = 0.1,
        singular_value_min: Any = 0.05,
        singular_damping: Any = 0.05,
        kernels: Any = "fastest",
        range_max_m: Any = 20.0,
    ) -> None: ...
    def whole(self) -> Any: ...
    def fields(self) -> Any: ...
    def put_whole(self, block: bytes) -> Any: ...
    def restore_whole(self, block: bytes) -> Any: ...
    COMMANDS: Any
    generated: Any
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
