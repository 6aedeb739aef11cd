# Generated from the built module by tools/generate_stubs.py
from typing import Any

MOST_MEMORY: int
MOST_SAID: int

def main() -> Any: ...
