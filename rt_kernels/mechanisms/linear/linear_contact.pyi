# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

class LinearContact(MechanismPart):
    def __init__(self, *, stiffness: float, damping: float, screw: Any, X_TA: Any, X_wait: Any) -> None: ...
