# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.simulated.plant import PlantPart
from rt_kernels.plugs import PortPart

COUNT: tuple[Any, ...]
DRIVE_PARAMETERS: tuple[Any, ...]
FLAG: tuple[Any, ...]
HYDRAULIC: dict[Any, Any]
IN_PROCESS: dict[Any, Any]
MACHINES: dict[Any, Any]
PORT_PARAMETERS: tuple[Any, ...]

class VirtualStandPort(PortPart):
    def __init__(self, *, period_s: Any, platform: Any, mounting: Any, mechanism: Any, limits: Any = None, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    inner: Any
    sensor_scale: Any
    delays: Any
    plant: PlantPart
    PARAMETERS: tuple[Any, ...]
    MACHINE: str
    INJECTIONS: dict[Any, Any]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

WORD: tuple[Any, ...]

class HydraulicStandPort(VirtualStandPort):
    PARAMETERS: tuple[Any, ...]
    MACHINE: str
    SAYS: tuple[Any, ...]
    INJECTIONS: dict[Any, Any]
    COMMANDS: tuple[Any, ...]
