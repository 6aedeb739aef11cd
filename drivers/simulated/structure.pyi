# Generated from the built module by tools/generate_stubs.py
from typing import Any

STRUCTURE_PARAMETERS: tuple[Any, ...]

def modal_spring(mass: Any, inertia: Any, frequencies_hz: Any, damping: Any, shapes: Any = None, stiffness: Any = None) -> Any: ...
