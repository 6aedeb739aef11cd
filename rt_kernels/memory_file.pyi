# Generated from the built module by tools/generate_stubs.py
from typing import Any

class MemoryFile:
    fd: Any
