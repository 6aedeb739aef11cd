"""The CAN libraries, as every driver takes them.

python-can loads `asammdf` for its own writer of MDF files where that is installed, and with it pandas and sympy: a second of a processor at
the start of every live run, for something that no driver uses. Here it is loaded without.
"""

import sys

_THERE = "asammdf" in sys.modules
if not _THERE:
    sys.modules["asammdf"] = None  # type: ignore[assignment]  # an import of it now fails as if it were not installed
try:
    import can
    import canopen
finally:
    if not _THERE:
        del sys.modules["asammdf"]

__all__ = ["can", "canopen"]
