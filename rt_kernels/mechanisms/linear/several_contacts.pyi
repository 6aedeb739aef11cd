# Generated from the built module by tools/generate_stubs.py
from typing import Any

from rt_kernels.plugs import MechanismPart

CONTACT: tuple[Any, ...]

class SeveralContacts(MechanismPart):
    def __init__(self, **given: Any) -> None: ...
    def max_penetration(self, X_TA: Any) -> Any: ...
    def stored_energy(self, X_TA: Any) -> Any: ...
    PARAMETERS: tuple[Any, ...]
