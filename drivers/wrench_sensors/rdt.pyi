# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import PortPart

class RdtPort(PortPart):
    def __init__(self, **parameters: Any) -> None: ...
    @staticmethod
    def own_delay_s(keys: Any) -> Any: ...
    def measure(self, seconds: Any = 0.2) -> Any: ...
    def open(self) -> Any: ...
    def begin(self) -> Any: ...
    def recover(self) -> Any: ...
    def feed(self, datagrams: Any, at_ns: Any = 0) -> Any: ...
    def bias(self) -> Any: ...
    def close(self) -> Any: ...
    def counters(self) -> Any: ...
    counts_per_newton: Any
    counts_per_newton_metre: Any
    sensor_scale: Any
    delays: Any
    delay_origins: Any
    rate_hz: Any
    force_unit: Any
    torque_unit: Any
    serial: Any
    calibration: Any
    identities: Any
    not_asked: Any
    scaling: Any
    measured_rate_hz: Any
    PARAMETERS: tuple[Any, ...]

SENSOR_CALIBRATION: Any
SENSOR_SERIAL: Any
