# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.multibody.tree import Tree

class ArmCompliance:
    def __init__(self, tree: Tree, frame: str, segments: Any) -> None: ...
    def compliance(self, q: Any) -> Any: ...
    def stiffness(self, q: Any) -> Any: ...
    tree: Any
