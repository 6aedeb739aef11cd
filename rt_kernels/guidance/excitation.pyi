# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class Excitation(StagePart):
    def __init__(self, *, period_s: Any, **given: Any) -> None: ...
    def state_bounds(self) -> Any: ...
    def fields(self) -> Any: ...
    schedule: dict[Any, Any]
    lines: list[Any]
    fade_s: float
    move_s: float
    still_s: float
    multisine_s: float
    six_lines: list[Any]
    six_period_s: float
    PARAMETERS: tuple[Any, ...]
    COMMANDS: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]
    IN_AIR: bool

def raise_for(lines_hz: Any, multisine_s: Any) -> Any: ...
def raise_for_six(rates: Any, grid: Any, poses: Any) -> Any: ...
def round_down(x: Any) -> Any: ...
def round_up(x: Any) -> Any: ...
