# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.drives.axes_port import AxesPort

BEATS_IN_TIMEOUT: int

class CanopenPort(AxesPort):
    def begin(self) -> Any: ...
    def recover(self) -> Any: ...
    def bus_loads(self) -> Any: ...
    delays: Any

OUTPUT_BYTES: int
VELOCITY_BYTES: int
