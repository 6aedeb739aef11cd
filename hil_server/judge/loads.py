"""Is a variant allowed on the hardware? A simulated run of the same variant, its peak loads against the limits (R-St-34).

The prediction is the log of `hil-server simulate`, on whatever stand: what must be the same are the tables that decide the contact
(`VARIANT`). Its peaks count, and not a safety factor: limits are set with their reserve. Compared are

* the wrench at the load cell with the software limits of the stand that is about to run (stand.limits). The cell's place is that stand's:
  the wrench of the prediction is moved from the port to it, F_S = X_S,port F;
* the wrench at the docking port with what the docking unit may bear (mechanism.force_limit_n, moment_limit_n_m), where its file says so;
* strokes of the legs, where the prediction was made with this stand's platform.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.config import TestConfig, criticality, physics
from hil_server.config.checks import check_part
from hil_server.config.tables import MECHANISM_KEYS
from hil_server.errors import HilError, VerdictError
from hil_server.judge.run import Run
from hil_server.log.header import CONFIRMED
from hil_server.log.moments import MOMENTS, STAND, WRENCH_NAMES
from hil_server.log.reader import read_log
from rt_kernels.codes import code_name

VARIANT = ("initial_conditions", "active_vehicle", "target_vehicle", "mechanism", "guidance", "dynamics")
# of no consequence for the contact: words, limits of the criticality, the programme mode before and after it
BESIDE = {"name", "description", "source", "synthetic", "limits", "force_limit_n", "moment_limit_n_m", "auto_start", "speed_max_m_s",
          "turn_max_deg_s", "acceleration_max_m_s2", "turn_acceleration_max_deg_s2", "position_tolerance_m", "angle_tolerance_deg",
          "settle_s", "retreat_distance_m", "fault_s"}  # fmt: skip


@dataclass(frozen=True)
class Load:
    """One predicted peak. where: "stand" or "unit"; share: peak over limit; moment: of the docking, in words
    (`hil_server.log.moments`)."""

    where: str
    name: str
    peak: float
    limit: float
    moment: str = ""

    @property
    def share(self) -> float:
        """The peak in parts of its limit."""
        return self.peak / self.limit


@dataclass(frozen=True)
class Rehearsal:
    """What a prediction says of a variant. against: reasons not to arm, empty when there are none."""

    path: Path
    run_id: str
    loads: tuple[Load, ...]
    against: tuple[str, ...]

    def line(self) -> str:
        """One line for the log and for people."""
        if not self.loads:
            return f"prediction {self.run_id}: {'; '.join(self.against)}"
        most = max(self.loads, key=lambda load: load.share)
        when = f" in {most.moment}" if most.moment else ""
        share = f"reaches {100 * most.share:.0f} % of its limit ({most.limit:g}){when}"
        sentence = f"prediction {self.run_id}: {most.name} at the {most.where} {share}"
        return sentence + ("; " + "; ".join(self.against) if self.against else "")


def rehearsed(config: TestConfig, path: str | Path) -> Rehearsal:
    """Holds the simulated run in `path` against the test that is about to run. Raises LogError when there is no log."""
    run = Run(read_log(path))
    log = run.log
    loads = tuple(peaks(config, run)) if log.ticks else ()
    against = [
        *(["it is no simulation, but a run of mode " + (log.header.mode or "(none)")] if log.header.mode != "simulation" else []),
        *(f"it is incomplete: {reason}" for reason in log.incomplete),
        *_differences(config, run),
        *_course(run),
        *(f"{p.name} at the {p.where}: {p.peak:.4g} is beyond its limit {p.limit:g}" for p in loads if not p.share <= 1.0),
        *_strokes(config, run),
    ]
    return Rehearsal(Path(path), log.header.run_id, loads, tuple(against))


def allowed(config: TestConfig, paths: Sequence[str | Path], hardware: bool, confirmed: str) -> list[str]:
    """Notes for the log of the run. On hardware a prediction without objection is needed, or a confirmation (a reason in words).

    Raises VerdictError when there is neither; LogError for a file that is none. On the virtual stand nothing is refused."""
    if not paths:
        sentence, objections = "no prediction of this variant was given (--prediction LOG of hil-server simulate)", 1
    else:
        found = [rehearsed(config, path) for path in paths]
        r1, r2 = criticality(config.initial_conditions)
        sentence = f"variant of R1 {r1:.2f}, R2 {r2:.2f}: {'; '.join(one.line() for one in found)}"
        objections = sum(len(one.against) for one in found)
    if not objections:
        return [sentence]
    if not hardware:
        return [sentence if paths else f"{sentence}: recommended, and needed on hardware"]
    if not confirmed:
        raise VerdictError(
            f"not armed: {sentence}. Simulate this variant (hil-server simulate, --set test.stand=stands/ideal_stand.toml where the stand "
            'cannot be simulated) and name its log, or confirm with --confirm-loads "REASON", which is logged'
        )
    return [sentence, f"{CONFIRMED}{confirmed}"]


# ------------------------------------------------------------------------------------------------------------------ same variant


def differences(ours: TestConfig, theirs: TestConfig) -> list[str]:
    """Keys in which two tests are not the same variant, as `table.key: ours, theirs`."""
    found = []
    for table in VARIANT:
        a, b = _flat(_whole(ours, table)), _flat(_whole(theirs, table))
        found += [f"{table}.{k}: {_short(a.get(k))} here, {_short(b.get(k))} there" for k in {**a, **b} if a.get(k) != b.get(k)]
    return found


def _short(value: object) -> str:
    """Modal data are long."""
    text = "-" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:20]}... ({len(text)} characters)"


def _whole(config: TestConfig, name: str) -> dict[str, object]:
    """A table with the defaults of its part: a key left away and its default are the same."""
    table = dict(getattr(config, name))
    role = "mechanisms" if name == "mechanism" else name
    if "part" not in table:
        return table
    own = {k: v for k, v in table.items() if k != "part" and (name != "mechanism" or k not in MECHANISM_KEYS)}
    return table | check_part(role, table["part"], own)


def _flat(table: Mapping[str, object], path: str = "") -> dict[str, object]:
    items: dict[str, object] = {}
    for key, value in table.items():
        if path or key not in BESIDE:
            items |= _flat(value, f"{path}{key}.") if isinstance(value, Mapping) else {path + key: _plain(value)}
    return items


def _plain(value: object) -> object:
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _differences(config: TestConfig, run: Run) -> list[str]:
    try:
        found = differences(config, run.configuration)
    except HilError as error:
        return [f"its configuration cannot be read: {error}"]
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return [f"it is another variant: {'; '.join(found[:4])}{more}"] if found else []


# ------------------------------------------------------------------------------------------------------------------------ loads


def peaks(config: TestConfig, run: Run) -> list[Load]:
    """Largest magnitude of every component of the predicted wrench, with its limit at the stand and, where there is one, at the unit."""
    log, moments = run.log, run.moments
    F_T = log.records["F_T"]
    # the cell feels what its own retreat does, too; the unit's limits are for its docking
    every, closed = np.arange(log.ticks), np.flatnonzero(moments != STAND)
    sides = [("stand", wrench_at_cell(F_T, log.records["X_TA"], config.stand["mounting"]), config.stand["limits"], every)]
    if {"force_limit_n", "moment_limit_n_m"} & set(config.mechanism) and len(closed):
        sides.append(("unit", F_T, config.mechanism, closed))
    found = []
    for where, wrench, limits, rows in sides:
        at = rows[np.abs(wrench[rows]).argmax(axis=0)]
        for start, key in ((0, "force_limit_n"), (3, "moment_limit_n_m")):
            for i, limit in enumerate(limits.get(key, ())):
                row = at[start + i]
                peak, moment = float(abs(wrench[row, start + i])), list(MOMENTS.values())[moments[row]]
                found.append(Load(where, WRENCH_NAMES[start + i], peak, float(limit), moment))
    return found


def wrench_at_cell(F_T: np.ndarray, X_TA: np.ndarray, mounting: Mapping[str, Any]) -> np.ndarray:
    """F_S (n, 6) [N, N.m], at and in the load cell, from the wrench of the active unit on the target unit, F_T (n, 6), at and in T.

    The cell carries the target unit and feels F_T, or the active unit and feels the reaction, at and in A. X_TA: (n, 7)."""
    from scipy.spatial.transform import Rotation

    X = physics.pose(mounting["measured_port_position_m"], mounting["measured_port_angles_deg"])
    f, m = F_T[:, :3], F_T[:, 3:]
    if mounting["unit_on_load_cell"] == "active":
        R_AT = Rotation.from_quat(X_TA[:, 3:]).inv()
        f, m = R_AT.apply(-f), R_AT.apply(-(m - np.cross(X_TA[:, :3], f)))
    R = Rotation.from_quat(X[3:])
    f, m = R.apply(f), R.apply(m)
    return np.hstack([f, m + np.cross(X[:3], f)])


def _course(run: Run) -> list[str]:
    """A prediction that tripped or never came to a contact predicts nothing."""
    if not run.log.ticks:
        return ["it has no ticks"]
    last = run.log.records[-1]
    if code_name("end_cause", int(last["end_cause"])) == "tripped":
        return ["it tripped itself: " + ", ".join(f["name"] for f in run.faults if f["severity"] == "stop")]
    return [] if last["first_contact_time"] >= 0.0 else ["it came to no contact"]


def _strokes(config: TestConfig, run: Run) -> list[str]:
    theirs = run.config
    same = theirs is not None and all(theirs.stand[k] == config.stand[k] for k in ("platform", "mounting"))
    margin = float(run.log.records["stroke_margin"].min()) if run.log.ticks else 1.0
    return [f"a leg passes its stroke by {-margin * 1e3:.0f} mm"] if same and margin < 0.0 else []
