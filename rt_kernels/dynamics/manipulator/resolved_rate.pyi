# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.multibody.tree import Tree

class ResolvedRate:
    def __init__(
        self,
        tree: Tree,
        end_effector: str,
        axes: Any = None,
        point: Any = None,
        *,
        rate_max: Any,
        low: Any,
        high: Any,
        braking: Any,
        period_s: float = 0.008,
        linear_max: float = 1.0,
        angular_max: float = 0.2,
        length_m: float = 5.0,
        lambda_0: float = 0.05,
        sigma_0: float = 0.05,
        arrived_rad: float = 1e-4,
        approach_per_s: Any = None,
    ) -> None: ...
    def set_axes(self, axes: Any) -> Any: ...
    def set_path(self, path: Any) -> Any: ...
    def lock(self, joint: Any) -> Any: ...
    def step(self, q: Any, mode: str = "hold", command: Any = None, joint: int = 0) -> Any: ...
    status: Any
    tree: Any
