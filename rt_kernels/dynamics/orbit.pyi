# Generated from the built module by tools/generate_stubs.py
from typing import Any

LEAST_RADIUS_M: float

def field(orbit: Any, place: Any) -> Any: ...
def moment(inertia: Any, G: Any) -> Any: ...
