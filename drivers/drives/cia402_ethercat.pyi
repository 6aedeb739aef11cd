# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.drives.cia402 import Cia402Profile
from rt_kernels.plugs import PortPart

AUX: tuple[Any, ...]
AXIS_PARAMETERS: tuple[Any, ...]
CYCLIC_SYNCHRONOUS_POSITION: int

class Cia402EthercatPort(PortPart):
    def __init__(self, *, period_s: Any = 0.001, platform: Any = None, **parameters: Any) -> None: ...
    def open(self) -> Any: ...
    def begin(self) -> Any: ...
    def end(self) -> Any: ...
    def close(self) -> Any: ...
    def session_with(self, **keys: Any) -> Any: ...
    def counters(self) -> Any: ...
    def bus_loads(self) -> Any: ...
    def host_findings(self) -> Any: ...
    in_loop: Any
    notes: Any
    identities: Any
    axes: Any
    grid_reference: Any
    delays: Any
    delay_origins: Any
    close_problems: list[Any]
    PARAMETERS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    AUX: tuple[Any, ...]

class Cia402EthercatProfile(Cia402Profile):
    def __init__(self, rate_hz: Any) -> None: ...
    def prepare(self, node: Any) -> Any: ...

FOLLOWING_BIT: Any
INTERPOLATION_PERIOD: int
MODE: int
