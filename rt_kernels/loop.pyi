# Generated from the built module by tools/generate_stubs.py
from typing import Any

import numpy as np

from rt_kernels.plugs import ClockPart
from rt_kernels.ring import SharedBlock
from rt_kernels.tuning import Tuning

CODES: dict[Any, Any]
INITIAL: dict[Any, Any]

class LoopLine:
    def __init__(
        self, clock: ClockPart, ports: list[Any], stages: dict[Any, Any], block: SharedBlock | None = None, tuning: Tuning | None = None
    ) -> None: ...
    def reset_sample(self) -> Any: ...
    def port_parts(self) -> Any: ...
    def snapshot(self) -> Any: ...
    def restore(self, state: Any, checked: bool = False) -> Any: ...
    def run(self) -> Any: ...
    def tick_once(self) -> Any: ...
    def time_ticks(self, count: int) -> Any: ...
    sample: Any
    aux: Any
    clock: Any
    ports: list[Any]
    stages: dict[Any, Any]
    aux_channels: Any
    tuning: Tuning

SAMPLE_DTYPE: np.dtype[Any]
STAGE_ROLES: tuple[Any, ...]
WORDS: dict[Any, Any]
