# Generated from the built module by tools/generate_stubs.py
from typing import Any

import numpy as np

from rt_kernels.memory_file import MemoryFile

LATE_TICK: np.dtype[Any]

class LateTicks(MemoryFile):
    @staticmethod
    def create(capacity: int = 1024) -> Any: ...
    @staticmethod
    def attach(fd: int) -> Any: ...
    def take(self) -> Any: ...
    def put(self, record: Any) -> Any: ...
    thread: Any
    accounted: Any
    recorded: Any
