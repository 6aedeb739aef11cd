# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

def step_times(part: StagePart, sample: Any, batches: int = 200, steps: int = 200) -> Any: ...
