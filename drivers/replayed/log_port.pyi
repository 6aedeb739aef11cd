# Generated from the built module by tools/generate_stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rt_kernels.plugs import PortPart

FIELDS: tuple[Any, ...]

class LogPort(PortPart):
    def __init__(
        self, records: Any, input_aux: Any = ..., from_record: int = 0, to_record: Any = None, ideal_stand: float = 0.0, absent: Any = ...
    ) -> None: ...
    def watch(self, line_aux: NDArray[np.float64], all_aux: int) -> Any: ...
    AUX: Any
    compared: Any
    differing: Any
    first: Any
    channels: tuple[Any, ...]

SAMPLE_DTYPE: np.dtype[Any]

def runs_of(wanted: Any) -> Any: ...
