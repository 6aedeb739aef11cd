# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import PortPart

LINE_PARAMETERS: tuple[Any, ...]

class SerialSensor(PortPart):
    def measure(self, seconds: Any = 0.2) -> Any: ...
    def begin(self) -> Any: ...
    def feed(self, data: Any, at_ns: Any = 0) -> Any: ...
    def close(self) -> Any: ...
    def counters(self) -> Any: ...
    line_delay_s: Any
    received_ns: Any
    rate_hz: Any
    delays: Any
    delay_origins: Any
    measured_rate_hz: Any
    sensor_scale: tuple[Any, ...]

def checksum_of(data: bytes, generator: int, invert: int) -> int: ...
