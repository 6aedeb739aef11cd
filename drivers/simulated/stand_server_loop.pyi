# Generated from the built module by tools/generate_stubs.py
from typing import Any

from drivers.simulated.plant import PlantPart

CHAIN_KEYS: tuple[Any, ...]
KINDS: dict[Any, Any]

class StandLoop:
    def __init__(
        self,
        plant: PlantPart,
        link_fds: Any,
        sensor_fd: int,
        control_fd: int,
        drives: Any,
        sensor: Any,
        module: Any,
        faults: Any = ...,
        truth_s: float = 0.0,
        wire_fd: int = -1,
    ) -> None: ...
    def run(self, priority: int = 0, core: int = -1) -> Any: ...
    def stop(self) -> Any: ...
    def gauge(self) -> Any: ...
    def truth(self) -> Any: ...
    def states(self) -> Any: ...
    def unattended_ns(self) -> Any: ...
    def counters(self) -> Any: ...
