"""How the docking units stood to each other when the retraction ended."""

from typing import TypedDict

import numpy as np

from hil_server import registry
from hil_server.judge.run import Run
from rt_kernels.codes import bit_names
from rt_kernels.layout import CODES


class Alignment(TypedDict):
    """Of the docking units at the end of the retraction (`alignment_of`)."""

    tilt_deg: float
    offset_m: float
    roll_deg: float
    limits: dict[str, float | None]
    gaps_m: dict[str, float]
    missing: list[str]
    aligned: bool


def alignment_of(run: Run) -> Alignment | None:
    """How the docking units stood to each other when the retraction ended; None for a run that did not come to it.

    tilt_deg: angle between the docking axes; roll_deg: about X; offset_m: of the ports, across the axis; each with the limit of the
    guidance (roll has none). gaps_m: of the docking planes, where the unit's channels give them (`*_gap`). missing: what a completed
    docking would have to show and this one does not: signals of the unit at that tick, and limits that are passed.
    """
    log, r = run.log, run.log.records
    if not log.ticks or int(r["end_cause"][-1]) not in (CODES["end_cause"]["complete"], CODES["end_cause"]["not_aligned"]):
        return None
    guidance = run.document.get("guidance", {})
    declared = registry.part_of_table("guidance", guidance)
    if declared is None:
        return None  # a configuration that cannot be read says nothing of the units
    defaults = {p.key: p.default for p in declared.PARAMETERS}
    if "complete_tilt_deg" not in defaults:
        return None  # what it completes is no docking: an excitation, an operator's berthing
    complete = r["sequence"] == CODES["sequence"]["complete"]  # before a probe is relieved
    last = int(np.argmax(complete if complete.any() else r["end_cause"] != 0))
    x, y, z, w = (float(c) for c in r["X_TA"][last, 3:])
    tilt = float(np.degrees(np.arccos(np.clip(1.0 - 2.0 * (y * y + z * z), -1.0, 1.0))))
    roll = float(np.degrees(np.arctan2(2.0 * (w * x - y * z), 1.0 - 2.0 * (x * x + z * z))))
    offset = float(np.hypot(*r["X_TA"][last, 1:3]))
    limits = {key: guidance.get(f"complete_{key}", defaults.get(f"complete_{key}")) for key in ("tilt_deg", "offset_m")}
    on = bit_names("mechanism_signal", int(r["signal_discrete"][last]))
    missing = [name for name in ("DSG", "planes_together") if name not in on]
    missing += [f"{key} above {limit:g}" for (key, limit), value in zip(limits.items(), (tilt, offset), strict=True)
                if limit is not None and value > limit]  # fmt: skip
    gaps = {c.name: float(r["aux"][last, c.offset]) for c in log.header.aux if c.name.endswith("_gap") and c.unit == "m"}
    return {"tilt_deg": tilt, "offset_m": offset, "roll_deg": roll, "limits": limits, "gaps_m": gaps, "missing": missing,
            "aligned": not missing}  # fmt: skip
