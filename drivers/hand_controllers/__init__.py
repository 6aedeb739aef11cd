"""Hand controllers: what a device says, unchanged. Calibration is `hil_server.operator_desk.calibration`'s business.

A source has `fileno()`, `read()`, `close()` and `framed`. `read` never waits and returns the good readings since the last call; it raises
`OSError` when the device is gone and `FaultyDeviceError` when what it says cannot be believed. framed: every reading is a frame of its own
with a sequence, so that silence means a fault; otherwise the device speaks only when something moves.
"""

import errno
from typing import NamedTuple


class Reading(NamedTuple):
    """raw: channel → value as the device gives it. pressed: numbers of the buttons that are down."""

    raw: dict[int, float]
    pressed: frozenset[int]


class FaultyDeviceError(OSError):
    """The device is there, but contradicts itself: garbage, a sequence that runs backwards, a value that it cannot have."""

    def __init__(self, text: str) -> None:
        super().__init__(errno.EPROTO, text)
