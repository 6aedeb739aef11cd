"""Contacts of a run: when, how hard, whether and how they rebounded, beside what was predicted of them."""

from typing import NotRequired, TypedDict

import numpy as np

from hil_server.judge.rebound import Rebound, rebound, screw_of
from hil_server.log.moments import MOMENTS
from hil_server.log.reader import Log
from rt_kernels.context import Vehicles


class Foreseen(TypedDict):
    """What was predicted of a contact; None without a prediction, or for one that did not rebound."""

    rebound_predicted: float | None
    rebound_in_orbit: float | None
    mode_frequency_hz: float | None


class Contact(Foreseen):
    """One contact (`contacts_of`). marks: what lies in its window and speaks against its figures."""

    begin_s: float
    moment: str
    duration_s: float
    ended: bool
    axial_speed_before_m_s: float
    axial_speed_after_m_s: float | None
    peak_force_n: float
    peak_moment_n_m: float
    energy_before_j: float
    energy_after_j: float | None
    energy_ratio: float | None
    work_j: float
    energy_ratio_of_contact: float | None
    rebound: float | None
    rebound_note: str
    marks: NotRequired[list[str]]


def contacts_of(log: Log, gaps: np.ndarray, moments: np.ndarray, vehicles: Vehicles | None) -> list[Contact]:
    """Every contact: when, how hard, and whether and how it rebounded.

    moment: of the docking in which it begins. begin_s, duration_s and the peaks are those of the contact flag; speeds, energies and work_j
    (what the energy monitor counted for the corrected wrench, `contact_work`) those of the free motion on either side where there is one,
    else of the ticks next to the flag. rebound is e (`hil_server.judge.rebound`), None where it is not measurable, and rebound_note then
    says why; energy_ratio and energy_ratio_of_contact (1 + work_j/energy_before_j) are given where there is a rebound: a graze or a passage
    has none. rebound_predicted, rebound_in_orbit (without the stand), mode_frequency_hz: of the predicted mode whose direction is nearest.

    gaps: where the log leaves out ticks, (n - 1,) bool; moments: of each record, (n,); vehicles: where they fly free, for the share of
    their control forces.
    """
    r, time_s = log.records, log.time_s
    touching = np.flatnonzero(np.diff(r["contact"] != 0, prepend=False, append=False))
    contacts: list[Contact] = []
    for start, stop in touching.reshape(-1, 2):
        ended = bool(stop < log.ticks)
        e = rebound(r, int(start), int(stop), 1e-9 * log.header.period_ns, vehicles)
        if gaps[max(start - 1, 0) if e.before is None else e.before : stop if e.after is None else e.after].any():
            e = Rebound(None, "the log is thinned: a rebound needs every tick")
        before = max(start - 1, 0) if e.before is None else e.before
        after = stop if e.after is None else e.after
        force, moment = np.linalg.norm(r["F_T"][start:stop].reshape(-1, 2, 3), axis=2).max(axis=0)
        energy_before = float(r["kinetic_energy"][before])
        energy_after = float(r["kinetic_energy"][after]) if ended else None
        judged = e.restitution is not None and energy_before > 0.0
        # the force works on below the threshold that ends the flag
        work = float(r["contact_work"][stop - 1 if e.after is None else e.after])
        predicted = _foreseen(log, int(start), int(stop), e.restitution)
        contacts.append(
            {
                "begin_s": float(time_s[start]),
                "moment": list(MOMENTS)[moments[start]],
                "duration_s": float(time_s[stop - 1] - time_s[start]),
                "ended": ended,
                "axial_speed_before_m_s": float(r["V_TA"][before, 0]),
                "axial_speed_after_m_s": float(r["V_TA"][after, 0]) if ended else None,
                "peak_force_n": float(force),
                "peak_moment_n_m": float(moment),
                "energy_before_j": energy_before,
                "energy_after_j": energy_after,
                "energy_ratio": energy_after / energy_before if judged and energy_after is not None else None,
                "work_j": work,
                "energy_ratio_of_contact": 1.0 + work / energy_before if judged else None,
                "rebound": e.restitution,
                "rebound_note": e.why,
                "rebound_predicted": predicted["rebound_predicted"],
                "rebound_in_orbit": predicted["rebound_in_orbit"],
                "mode_frequency_hz": predicted["mode_frequency_hz"],
            }
        )
    return contacts


def _foreseen(log: Log, start: int, stop: int, measured: float | None) -> Foreseen:
    """What the prediction in the log's header has for a contact that rebounded."""
    modes = [m for m in log.header.prediction.get("modes", []) if m["judged"]]
    screw = screw_of(log.records, start, stop)
    if measured is None or screw is None or not modes:
        return {"rebound_predicted": None, "rebound_in_orbit": None, "mode_frequency_hz": None}
    mode = max(modes, key=lambda m: abs(float(screw[:3] @ np.asarray(m["direction"]))))
    return {"rebound_predicted": mode["restitution"], "rebound_in_orbit": mode["ideal"], "mode_frequency_hz": mode["frequency_hz"]}
