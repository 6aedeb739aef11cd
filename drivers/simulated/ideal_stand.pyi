# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart, PortPart

class IdealStandPort(PortPart):
    def __init__(self, *, period_s: Any, platform: Any, mounting: Any, mechanism: MechanismPart, vehicles: Any, **given: Any) -> None: ...
    AUX: Any
    inner: Any
    sensor_scale: Any
    delays: Any
    mechanism: MechanismPart
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
