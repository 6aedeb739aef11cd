"""Scalars of a run by name: those of its log, and rates and accelerations of the crafts."""

import numpy as np
from scipy.spatial.transform import Rotation

from hil_server.errors import UsageError
from hil_server.judge.record_time import derivative
from hil_server.judge.run import Run
from hil_server.log.record import scalar_names
from rt_kernels.layout import CODES

CRAFTS = {"active": ("X_NC", "V_NC", "active_vehicle"), "target": ("X_NV", "V_NV", "target_vehicle")}


def channel(run: Run, name: str, position_m: np.ndarray | None = None) -> np.ndarray:
    """A scalar of a run, (ticks,): of the log, or derived of a craft. Raises UsageError if no such scalar exists."""
    craft, _, what = name.partition(".")
    base, _, index = what.partition("[")
    if craft in CRAFTS and base in ("acceleration", "rate"):
        position_m = np.zeros(3) if position_m is None else position_m
        motion = body_rate(run, craft) if base == "rate" else body_motion(run, craft, position_m)[1]
        found: np.ndarray = motion[:, int(index.rstrip("]"))]
        return found
    base, _, index = name.partition("[")
    try:
        if base in (run.log.records.dtype.names or ()):
            values = run.log.records[base].astype(float)
        else:
            values = run.log.aux(base).astype(float)
        return values.reshape(run.log.ticks, -1)[:, int(index.rstrip("]")) if index else 0]
    except (KeyError, ValueError, IndexError):
        aux = [n for c in run.log.header.aux for n in scalar_names(c.name, c.count)]
        some = ", ".join([*aux[:6], "F_T[0]", "active.acceleration[0]", "target.rate[2]"])
        raise UsageError(f"{run.log.path}: no channel {name!r}; there are, as examples: {some}") from None


def body_rate(run: Run, craft: str) -> np.ndarray:
    """Angular rate, (ticks, 3), body axes."""
    pose, twist, _ = CRAFTS[craft]
    found: np.ndarray = Rotation.from_quat(run.log.records[pose][:, 3:]).inv().apply(run.log.records[twist][:, 3:])
    return found


def body_motion(run: Run, craft: str, position_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angular rate and acceleration at `position_m` from the centre of mass, (ticks, 3) each, body axes. Raises UsageError for a thinned
    log."""
    pose, twist, _ = CRAFTS[craft]
    w = body_rate(run, craft)
    # where the loop closes or opens the model is set to a state and does not move into it
    closed = np.isin(run.log.records["motion"], [CODES["motion"][name] for name in ("free", "joined")])
    apart = np.diff(closed)
    a = Rotation.from_quat(run.log.records[pose][:, 3:]).inv().apply(derivative(run, run.log.records[twist][:, :3], apart))
    turning = derivative(run, w, apart)
    return w, a + np.cross(turning, position_m) + np.cross(w, np.cross(w, position_m))
