# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.simulated.plant import PlantPart
from rt_kernels.plugs import PortPart

DRIVE_PARAMETERS: tuple[Any, ...]
IN_PROCESS: dict[Any, Any]

class VirtualStandPort(PortPart):
    def __init__(self, *, period_s: Any, platform: Any, mounting: Any, mechanism: Any, **given: Any) -> None: ...
    sensor_scale: Any
    delays: Any
    plant: PlantPart
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
