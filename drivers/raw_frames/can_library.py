"""The CAN libraries, as every driver takes them.

python-can loads `asammdf` for its own writer of MDF files where that is installed, and with it pandas and sympy: a second of a processor at
the start of every live run, for something that no driver uses. Here it is loaded without. Its threads, queues and clock are those of the
doors, as everybody's in a live run. What they log of a transfer that fails is in the error that is raised.
"""

import logging
import sys

from rt_kernels.doors import queue, threading, time

_THERE = "asammdf" in sys.modules
if not _THERE:
    sys.modules["asammdf"] = None  # type: ignore[assignment]  # an import of it now fails as if it were not installed
try:
    import can
    import can.bus
    import can.notifier
    import canopen
    import canopen.emcy
    import canopen.nmt
    import canopen.sdo.client
finally:
    if not _THERE:
        del sys.modules["asammdf"]

for _module in (can.notifier, canopen.emcy, canopen.nmt, canopen.sdo.client):
    for _name, _door in (("queue", queue), ("threading", threading), ("time", time)):
        if hasattr(_module, _name):
            setattr(_module, _name, _door)
logging.getLogger("canopen").addHandler(logging.NullHandler())
can.bus.time = time.time  # type: ignore[attr-defined]

__all__ = ["can", "canopen"]
