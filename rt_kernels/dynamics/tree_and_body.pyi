# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import StagePart

class TreeAndBody(StagePart):
    def __init__(
        self,
        *,
        period_s: Any,
        vehicles: Any,
        start: Any,
        model: Any,
        port_body: Any,
        model_data: Any = None,
        joint_angles: Any = ...,
        stiffness: Any = ...,
        damping: Any = ...,
        kernels: Any = "fastest",
        range_max_m: Any = 5.0,
    ) -> None: ...
    def joints(self) -> Any: ...
    def whole(self) -> Any: ...
    def fields(self) -> Any: ...
    def put_whole(self, block: bytes) -> Any: ...
    def restore_whole(self, block: bytes) -> Any: ...
    generated: Any
    notes: tuple[Any, ...]
    PARAMETERS: tuple[Any, ...]
    AUX: tuple[Any, ...]
    CONTEXT: tuple[Any, ...]

def model_path(name: Any) -> Any: ...
def model_tables(name: Any, data: Any = None) -> Any: ...
