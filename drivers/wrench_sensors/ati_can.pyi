# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import PortPart

class AtiCanPort(PortPart):
    def __init__(self, **parameters: Any) -> None: ...
    def calibrate(self, matrix: Any, counts_per_newton: Any, counts_per_newton_metre: Any) -> Any: ...
    def measure(self, seconds: Any = 0.2, period_s: Any = 1e-3) -> Any: ...
    def open(self) -> Any: ...
    def begin(self) -> Any: ...
    def close(self) -> Any: ...
    def ask(self) -> Any: ...
    def feed(self, data: Any, at_ns: Any = 0) -> Any: ...
    def counters(self) -> Any: ...
    sensor_scale: Any
    delays: Any
    delay_origins: Any
    counts_per_newton: Any
    counts_per_newton_metre: Any
    force_unit: Any
    torque_unit: Any
    serial: Any
    firmware: Any
    matrix: Any
    identities: Any
    PARAMETERS: tuple[Any, ...]

FORCE_CODES: dict[Any, Any]
READ_COUNTS: int
READ_FIRMWARE: int
READ_GAUGES: int
READ_MATRIX: int
READ_SERIAL: int
READ_UNITS: int
RESET: int
SENSOR_CALIBRATION: Any
SENSOR_SERIAL: Any
SET_CALIBRATION: int
TORQUE_CODES: dict[Any, Any]
