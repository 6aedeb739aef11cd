# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart, PortPart

COUNT: tuple[Any, ...]
FLAG: tuple[Any, ...]

class IdealStandPort(PortPart):
    def __init__(self, *, period_s: Any, platform: Any, mounting: Any, mechanism: MechanismPart, vehicles: Any, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    AUX: Any
    inner: Any
    sensor_scale: Any
    delays: Any
    mechanism: MechanismPart
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
