# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.wrench_sensors.serial_stream import SerialSensor

BAUD_CODES: dict[Any, Any]

class BotaSerialPort(SerialSensor):
    def __init__(self, **parameters: Any) -> None: ...
    @staticmethod
    def own_delay_s(keys: Any) -> Any: ...
    period_us: Any
    rate_hz: Any
    PARAMETERS: tuple[Any, ...]
    not_asked: str

FIRST_RECORDS: int
LINE_PARAMETERS: tuple[Any, ...]
RATE_TOLERANCE: float
SINC_LENGTH: int
SINC_US: float
STAMP_WINDOW_US: int
