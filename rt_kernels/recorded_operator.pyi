# Generated from the built module by tools/generate_stubs.py
from typing import Any

import numpy as np

from rt_kernels.plugs import PortPart
from rt_kernels.ring import SharedBlock

ROW_DTYPE: np.dtype[Any]

class Script(PortPart):
    def __init__(self, rows: Any, block: SharedBlock | None = None, **given: Any) -> None: ...
    PARAMETERS: tuple[Any, ...]
