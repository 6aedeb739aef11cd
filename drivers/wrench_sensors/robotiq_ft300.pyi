# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.wrench_sensors.serial_stream import SerialSensor

COUNTS_PER_NEWTON: int
COUNTS_PER_NEWTON_METRE: int
CRC_GENERATOR: int
ERROR: int
FIRST_RECORDS: int
LINE_PARAMETERS: tuple[Any, ...]
RATE_TOLERANCE: float
READ_REGISTERS: int

class RobotiqFt300Port(SerialSensor):
    def __init__(self, **parameters: Any) -> None: ...
    def close(self) -> Any: ...
    rate_hz: Any
    serial: Any
    identities: Any
    not_asked: Any
    PARAMETERS: tuple[Any, ...]

SENSOR_SERIAL: Any
SERIAL_REGISTER: int
STOP: bytes
STREAM_ON: int
STREAM_REGISTER: int
WINDOW_S: float
WRITE_REGISTERS: int
