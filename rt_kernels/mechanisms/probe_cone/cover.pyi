# Generated from the built module by tools/generate_stubs.py
from typing import Any

def implicit_euler(h: float, m: float, k: float, c: float, net: float, v: float, x: float) -> Any: ...
