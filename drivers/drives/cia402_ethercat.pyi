# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.drives.axes_port import AxesPort
from drivers.drives.cia402 import Cia402Profile

AUX: tuple[Any, ...]
AXIS_PARAMETERS: tuple[Any, ...]

class Cia402EthercatPort(AxesPort):
    def __init__(self, *, period_s: Any = 0.001, platform: Any = None, loop_core: int = -1, **parameters: Any) -> None: ...
    def session_with(self, **keys: Any) -> Any: ...
    def bus_loads(self) -> Any: ...
    def host_findings(self) -> Any: ...
    axes: Any
    grid_reference: Any
    delays: Any
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]

class Cia402EthercatProfile(Cia402Profile):
    def __init__(self, rate_hz: Any) -> None: ...
    def prepare(self, node: Any, axis: Any) -> Any: ...

FOLLOWING_BIT: Any
