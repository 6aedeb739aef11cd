# Generated from the built module by tools/generate_stubs.py
from typing import Any

import numpy as np

LATE_TICK: np.dtype[Any]

class LateTicks:
    @staticmethod
    def create(capacity: int = 1024) -> Any: ...
    @staticmethod
    def attach(fd: int) -> Any: ...
    def take(self) -> Any: ...
    def put(self, record: Any) -> Any: ...
    thread: Any
    accounted: Any
    recorded: Any
    fd: Any
