"""What the parts of one line are built from beside their own keys: the names of `rt_kernels.context`, and a few of the line's own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from hil_server.roles import Mechanism, PartClass, Stage
from hil_server.values import Document
from rt_kernels.context import Delays, Limits, Mounting, Orbit, Start, Vehicles
from rt_kernels.ring import SharedBlock
from rt_kernels.stewart.platform import Platform


class Context(TypedDict, total=False):
    """Filled on the way: geometry and vehicles first, what open devices say, then delays, block and tunables. park: X_TA (7,) at park;
    unknown_delays: of devices, in words; trusted: SHA-256 of the FMUs that may run, None: the one that is named."""

    period_s: float
    platform: Platform
    mounting: Mounting
    limits: Limits
    vehicles: Vehicles
    stand_model: Document | None
    sensor_scale: Sequence[float] | None
    noiseless: bool
    part_of: Callable[[str, str], PartClass]
    live: bool
    loop_core: int
    trusted: frozenset[str] | None
    folders: list[Path]
    mechanism: Mechanism
    dynamics: Stage
    start: Start
    orbit: Orbit | None
    park: np.ndarray
    unknown_delays: tuple[str, ...]
    delays: Delays
    block: SharedBlock
    tunables: list[dict[str, object]]
