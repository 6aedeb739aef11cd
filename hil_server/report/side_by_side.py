"""Designs side by side: variants of a programme that meet the same case with different units, and what that changes.

A programme names the `case` and the `design` of a variant (`hil_server.run.programme`); the first design of a case is what the others are
measured against. Its figures are of impact and damping; the largest force of each later moment (`hil_server.log.moments`) stands in a
row of its own. Axial is along X of the target port, lateral across it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from hil_server.errors import attempt
from hil_server.judge.peaks import loads_of
from hil_server.judge.run import Run
from hil_server.log.moments import IMPACT, MOMENTS, STAND
from hil_server.log.reader import read_log
from hil_server.pages.curves import Plot, embedded
from hil_server.pages.html import document, guarded, section, table_html, text
from rt_kernels.layout import BITS

PAGE = "side_by_side.html"
NOTHING = 1.0  # N, N.m: less is no load
ALIKE = 0.05  # designs within this share of each other are called equal
# key of a figure, its words, unit, factor from SI
FIGURES = (
    ("axial_n", "axial compression", "N", 1.0),
    ("pull_n", "axial tension", "N", 1.0),
    ("lateral_n", "lateral force", "N", 1.0),
    ("bending_n_m", "bending moment", "N.m", 1.0),
    ("limiter_n", "force of the limiter", "N", 1.0),
    ("limiter_arm_m", "arm of that force about the hinge", "m", 1.0),
    ("tilt_rad", "tilt after capture", "deg", 180.0 / np.pi),
    ("penetration_m", "deepest penetration", "mm", 1e3),
)
LATER = tuple(MOMENTS)[IMPACT + 1 :]
LOADS = ("axial_n", "pull_n", "lateral_n", "bending_n_m", "limiter_n")


class Design(TypedDict):
    """One design of a case: its variant, its log, figures of its run (`figures_of`; none of one whose log cannot be read)."""

    design: str
    number: str
    verdict: str
    log: str | None
    figures: dict[str, float | None]
    not_available: list[dict[str, str]]


class Case(TypedDict):
    """Designs that met the same case, the reference first; text: what the others change against it."""

    case: str
    designs: list[Design]
    text: list[str]


def figures_of(run: Run) -> dict[str, float | None]:
    """Peaks of one run in SI units (keys of FIGURES, of the impact; `force_n MOMENT` of the others), `capture_s` from the first contact;
    None for what the run does not have."""
    log, r = run.log, run.log.records
    loop = np.flatnonzero(run.moments == IMPACT)
    found: dict[str, float | None] = dict.fromkeys((key for key, *_ in FIGURES))
    found |= {f"force_n {row['moment']}": row["force_n"] for row in loads_of(run) if row["moment"] in LATER}
    contact, capture = r["first_contact_time"].max(initial=-1.0), r["capture_time"].max(initial=-1.0)
    found["capture_s"] = float(capture - contact) if capture >= 0.0 <= contact else None
    if not len(loop):
        return found
    F, q = r["F_T"][loop], r["X_TA"][loop, 3:]
    found["axial_n"], found["pull_n"] = float(F[:, 0].max()), float(-F[:, 0].min())
    found["lateral_n"] = float(np.hypot(F[:, 1], F[:, 2]).max())
    found["bending_n_m"] = float(np.hypot(F[:, 4], F[:, 5]).max())
    found["limiter_n"], found["limiter_arm_m"] = _limiter(run, loop)
    captured = r["signal_discrete"][loop] & BITS["mechanism_signal"]["DSG"] != 0
    if captured.any():
        cosine = 1.0 - 2.0 * (q[:, 1] ** 2 + q[:, 2] ** 2)
        found["tilt_rad"] = float(np.arccos(np.clip(cosine[np.argmax(captured) :], -1.0, 1.0)).max())
    for name in log.aux_names:
        if name.endswith(".penetration"):
            found["penetration_m"] = float(log.aux(name)[loop].max())
    return found


def _limiter(run: Run, loop: np.ndarray) -> tuple[float | None, float | None]:
    """Largest force on the limiter in these records, N, and its arm about the hinge of the swinging body then, m: the moment about A across
    the axis over it (Yaskevich 2020, 6.4). None of a unit without a limiter, and the arm where nothing touches it."""
    names = run.log.aux_names
    unit = next((name.removesuffix("limiter_f_x") for name in names if name.endswith(".limiter_f_x")), None)
    if unit is None:
        return None, None
    force = np.linalg.norm([run.log.aux(f"{unit}limiter_f_{axis}")[loop] for axis in "xyz"], axis=0)
    most = int(force.argmax())
    if force[most] < NOTHING:
        return float(force[most]), None
    return float(force[most]), float(np.hypot(*(run.log.aux(f"{unit}limiter_m_{axis}")[loop][most] for axis in "yz")) / force[most])


def compared(rows: Iterable[Mapping[str, Any]]) -> list[Case]:
    """The cases of a programme's rows (keys number, case, design, verdict, log): name and designs, each with its figures; reference first.

    A run whose log cannot be read has no figures."""
    cases: dict[str, list[Design]] = {}
    for row in rows:
        if not row.get("case"):
            continue
        missing: list[dict[str, str]] = []
        log = row.get("log")
        figures = attempt("figures", lambda log=log: figures_of(Run(read_log(log))), {}, missing) if log else {}  # type: ignore[misc]
        entry: Design = {"design": row["design"], "number": row["number"], "verdict": row["verdict"], "log": log, "figures": figures,
                         "not_available": missing}  # fmt: skip
        cases.setdefault(row["case"], []).append(entry)
    return [{"case": case, "designs": designs, "text": _sentences(designs)} for case, designs in cases.items()]


def _sentences(designs: Sequence[Design]) -> list[str]:
    """What the other designs change against the first one, in words."""
    first, sentences = designs[0], []
    for other in designs[1:]:
        parts = []
        for key, words, unit, factor in FIGURES:
            a, b = first["figures"].get(key), other["figures"].get(key)
            if key not in LOADS or a is None or b is None or max(a, b) < NOTHING:
                continue
            parts.append(f"{words} {_against(a, b)} ({factor * b:.0f} against {factor * a:.0f} {unit})")
        if parts:
            sentences.append(f"{other['design']} against {first['design']}: {'; '.join(parts)}.")
        ends = {d["design"]: d["verdict"] for d in (first, other)}
        if len(set(ends.values())) > 1:
            sentences.append("They do not end alike: " + ", ".join(f"{name} {end}" for name, end in ends.items()) + ".")
    return sentences


def _against(a: float, b: float) -> str:
    """b in words against a."""
    if abs(a - b) <= ALIKE * max(a, b):
        return "equal"
    return f"lower by {100.0 * (1.0 - b / a):.0f} %" if b < a else f"higher by {100.0 * (b / a - 1.0):.0f} %" if a > 0.0 else "higher"


def table_of(case: Case) -> tuple[list[str], list[list[object]]]:
    """Head and rows of the table of a case: one row a figure, one column a design."""
    designs = case["designs"]
    rows: list[list[object]] = [["end", *(d["verdict"] for d in designs)]]
    rows.append(["capture, s", *(d["figures"].get("capture_s") for d in designs)])
    for key, words, unit, factor in FIGURES:
        values = [d["figures"].get(key) for d in designs]
        rows.append([f"{words} in the impact, {unit}", *(None if v is None else factor * v for v in values)])
    for moment in LATER:
        values = [d["figures"].get(f"force_n {moment}") for d in designs]
        if any(v is not None for v in values):
            rows.append([f"largest force, {MOMENTS[moment]}, N", *values])
    return ["", *(d["design"] for d in designs)], rows


def write_page(name: str, cases: Sequence[Case], out: Path) -> Path:
    """The page of a programme in the folder `out`: for every case its words, its table, axial and lateral force of every one over time."""
    parts = [f"<h1>{text(name)}: side by side</h1>"]
    for case in cases:
        words = "".join(f"<p>{text(sentence)}</p>" for sentence in case["text"])
        words += "".join(f'<p class="note">Not available: figures of {text(design["design"])}: {text(one["reason"])}.</p>'
                         for design in case["designs"] for one in design.get("not_available") or ())  # fmt: skip
        body = guarded("Table", lambda case=case: [table_html(*table_of(case))], alone=False)  # type: ignore[misc]
        body += guarded("Forces", lambda case=case: [_drawn(case)], alone=False)  # type: ignore[misc]
        parts.append(section(case["case"], words + "".join(body)))
    path = out / PAGE
    path.write_text(document(f"{name}: side by side", parts), encoding="utf-8")
    return path


def _drawn(case: Case) -> str:
    """Axial and lateral force over the time from the first contact, a row of both for each design, on one scale."""
    runs = [(d["design"], d["log"], d["figures"]) for d in case["designs"] if d["figures"].get("axial_n") is not None]
    if not runs:
        return ""
    top = 1.05 * max(max(figures["axial_n"] or 0.0, figures["lateral_n"] or 0.0, 1.0) for *_, figures in runs)
    low = -1.05 * max(max(figures["pull_n"] or 0.0, 0.0) for *_, figures in runs)
    found = []
    for design, log, _ in runs:
        if log is None:
            continue
        flown = Run(read_log(log))
        r, loop = flown.log.records, flown.moments != STAND
        t = flown.log.time_s[loop] - max(float(r["first_contact_time"].max()), 0.0)
        F = r["F_T"][loop]
        values = np.column_stack([F[:, 0], np.hypot(F[:, 1], F[:, 2])])
        found.append(embedded(Plot(design, "N", t, values, ("axial", "lateral"), group=case["case"], scale=(low, top))))
    return "<p>Force over the time from the first contact, on one scale.</p>" + "".join(found)
