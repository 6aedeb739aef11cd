# Generated from the built module by tools/generate_stubs.py
from typing import Any

import numpy as np

from rt_kernels.plugs import PortPart
from rt_kernels.ring import SharedBlock

HAND_BOUNDS: dict[Any, Any]
ROW_DTYPE: np.dtype[Any]

class Script(PortPart):
    def __init__(self, rows: Any, block: SharedBlock | None = None, **given: Any) -> None: ...
    def state_fields(self) -> Any: ...
    def state_bounds(self) -> Any: ...
    def end_at(self, park_ns: int, abort_ns: int) -> Any: ...
    PARAMETERS: tuple[Any, ...]

TIME_NS: tuple[Any, ...]
