# Generated from the built module by tools/generate_stubs.py
from typing import Any

import numpy as np

from rt_kernels.plugs import PortPart

EVENT_DTYPE: np.dtype[Any]
FIELDS: tuple[Any, ...]
INPUTS: frozenset[Any]
SAMPLE_DTYPE: np.dtype[Any]

class ScriptedInputs(PortPart):
    def __init__(self, room: int) -> None: ...
    def load(self, parts: Any) -> Any: ...
    kept: Any

def events(tick: Any, field: Any, index: Any, values: Any) -> Any: ...
