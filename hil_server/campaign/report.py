"""The page of a campaign: one HTML file that needs no network."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from hil_server.campaign.plan import Plan
from hil_server.campaign.sensitivity import Index
from hil_server.campaign.statistics import column, magnitude, rank_correlation, standing, unjudged, wilson
from hil_server.config import model
from hil_server.config.files import whole
from hil_server.pages.figures import COLOURS, embedded
from hil_server.pages.html import document, pill, section, table_html, text, verdict_html
from hil_server.values import Document

if TYPE_CHECKING:
    import pyarrow as pa

STANDINGS = {"kept": "good", "violated": "bad", "not judged": ""}  # level of each
LOADS = {"impact_force_n": "force of the impact, N", "impact_moment_n_m": "moment of the impact, N.m",
         "peak_force_n": "force of the closed loop, N", "peak_moment_n_m": "moment of the closed loop, N.m",
         "fx_n": "Fx, N", "fy_n": "Fy, N", "fz_n": "Fz, N", "mx_n_m": "Mx, N.m", "my_n_m": "My, N.m",
         "mz_n_m": "Mz, N.m"}  # fmt: skip
QUANTILES = {"p50": "median", "p95": "95 %", "p99": "99 %", "max": "max"}
# pairs of conditions that are looked at together; those that the box has
PAIRS = (("lateral_y_m", "lateral_z_m"), ("yaw_deg", "pitch_deg"), ("velocity_x_m_s", "roll_deg"),
         ("velocity_y_m_s", "velocity_z_m_s"), ("rate_y_deg_s", "rate_z_deg_s"), ("velocity_x_m_s", "rate_x_deg_s"))  # fmt: skip
UNITS = (("_kg_m2", "kg m²"), ("_n_per_m", "N/m"), ("_n_s_per_m", "N s/m"), ("_deg_s", "deg/s"), ("_m_s", "m/s"), ("_n_m", "N m"),
         ("_deg", "deg"), ("_kg", "kg"), ("_n", "N"), ("_m", "m"))  # fmt: skip
FEW_CASES = 500  # captured ones, up to which each is drawn as clearly as the others
BOUNDARY_CASES = 10  # captured and lost ones, at least, for a boundary to be drawn
BOUNDARY_NEAR = 1.0  # cases that the kernel must see at a place


def write(plan: Plan, table: "pa.Table", summary: Document, worst: list[Document], file: Path,
          indices: dict[str, list[Index]] | None = None, rare: Document | None = None) -> None:  # fmt: skip
    """table: of results; summary: of `statistics`; worst: rows `number`, `log` of the cases that were run again; indices: of `sensitivity`;
    rare: of `rare.study`."""
    unit, active, target = (plan.base.document[name] for name in ("mechanism", "active_vehicle", "target_vehicle"))
    invented = [t["name"] for t in (unit, active, target) if t.get("synthetic")]
    unresolved = model.moment_unresolved(plan.base.document, 1.0 / plan.base.setup.test.rate_hz)
    parts = [
        f"<h1>Campaign {text(plan.name)}</h1>",
        verdict_html(*_verdict(summary)),
        f"<p>{text(plan.description)}{f' ({text(plan.source)})' if plan.source else ''}</p>",
        f'<p class="note">test {text(plan.base.setup.test.name)}: {text(unit["name"])}, {_craft(active)} to '
        f"{_craft(target)} · {plan.cases} cases, {text(plan.sampling)}, seed {plan.seed}</p>",
        *([] if plan.begin is None else [f"<p>Every case continues from {text(plan.begin.log)} at {plan.begin.time_s:.3f} s.</p>"]),
        *([f'<p class="banner">{text(unresolved)}.</p>'] if unresolved else []),
        *([f'<p class="banner">Made with synthetic geometry: {text(", ".join(invented))}.</p>'] if invented else []),
        *([f'<p class="banner bad">{summary["errors"]} cases ended with an error: see the column error of the results.</p>']
          if summary["errors"] else []),  # fmt: skip
        *_rare(rare),
        section("Outcome", _outcome(summary)),
        *_requirements(summary),
        section("Worst cases", _worst(plan, table, worst, file.parent)),
        section("Loads", "<p>Largest size of force and moment in impact and damping and in the whole closed loop; peak of each component "
                "of the contact wrench, at and in the target port, in the closed loop. Of the cases with a verdict.</p>"
                + table_html(("peak", *QUANTILES.values()), [(LOADS[n], *(v[q] for q in QUANTILES)) for n, v in summary["loads"].items()])
                + embedded(_loads(table), "Histograms of force and moment of all cases, of the impact and of the closed loop, by outcome")),
        section("Capture envelope", "<p>Every case by what was varied. Lines, where there are enough cases on both sides: the boundary at "
                "which half of the cases, nine in ten and ninety-nine in a hundred are captured (kernel estimate over the two shown).</p>"
                + embedded(_pairs(table, plan.keys), "Every case by pairs of its conditions, captured ones and others")
                + "<p>Share of captured cases over each condition, with 95 % intervals.</p>"
                + embedded(_envelope(summary, plan.keys), "Share of captured cases over each condition")),
        *_sensitivity(indices or {}),
        section("What was varied", _conditions(plan, table, indices or {})),
        *_channels(summary),
    ]  # fmt: skip
    with whole(file) as unfinished:
        unfinished.write_text(document(f"Campaign {plan.name}", parts), encoding="utf-8")


def _craft(vehicle: Document) -> str:
    return f"{text(vehicle['name'])} ({model.vehicle(vehicle).mass_kg / 1000:g} t)"


def named(key: str) -> str:
    """`lateral_y_m` as `lateral y, m`."""
    for ending, unit in UNITS:
        if key.endswith(ending):
            return f"{key.removesuffix(ending).replace('_', ' ').replace('.', ': ')}, {unit}"
    return key.replace("_", " ").replace(".", ": ")


# ---------------------------------------------------------------------------------------------------------------------- tables


def _outcome(s: Document) -> str:
    def share(name: str, hits: int, interval: tuple[float, float], of: int = s["cases"]) -> tuple[str, int, int, float, str]:
        return name, hits, of, hits / max(of, 1), f"{interval[0]:.4f} … {interval[1]:.4f}"

    rows = [share("captured", s["captured"], s["capture_interval_95"], s["judged"]),
            share("captured within the limits (no trip)", s["captured_within_limits"], s["within_limits_interval_95"],
                  s["judged_within_limits"])]  # fmt: skip
    without = {f"no verdict: {reason.replace('_', ' ')}": count for reason, count in s["no_verdict"].items()}
    rows += [share(words, count, wilson(count, s["cases"])) for words, count in without.items()]
    rows += [share(f"ended: {end}", count, wilson(count, s["cases"])) for end, count in s["ends"].items()]
    rows += [share(f"fault: {name}", count, wilson(count, s["cases"])) for name, count in s["faults"].items()]
    after = s["capture_after_s"]
    intro = "" if not after else (
        f"<p>Capture after first contact: median {after['p50']:.2f} s, 95 % {after['p95']:.2f} s, latest {after['max']:.2f} s.</p>"
    )  # fmt: skip
    intro += ("<p>No verdict: the case ended with an error, or a model left the range in which it holds. Whether it would have captured is "
             "not known: it counts neither for nor against.</p>") if s["no_verdict"] else ""  # fmt: skip
    return table_html(("", "cases", "of", "share", "95 % interval (Wilson)"), rows) + intro


def _verdict(s: Document) -> tuple[str, str, str]:
    """Level, word and line: how many cases were captured within the limits, and which requirement failed how often."""
    cases, good = s["judged_within_limits"], s["captured_within_limits"]
    low, high = s["within_limits_interval_95"]
    line = f"captured within the limits, {100 * good / max(cases, 1):.2f} % (95 %: {100 * low:.2f} … {100 * high:.2f} %)"
    if without := s["cases"] - cases:
        line += f"; {without} of {s['cases']} without a verdict"
    broken = sorted(((name, one["violated"]) for name, one in s["requirements"].items() if not one["kept"]), key=lambda row: -row[1])
    if broken:
        line += "; requirements violated: " + ", ".join(f"{name} in {count}" for name, count in broken[:3])
    level = "bad" if broken or s["errors"] else "good" if good == cases else "warn"
    return level, f"{good} of {cases} cases", line


def _requirements(s: Document) -> list[str]:
    """How often each requirement failed and what was left of its limit, the most often violated first; nothing where there are none."""
    if not s["requirements"]:
        return []
    rows = []
    for name, found in sorted(s["requirements"].items(), key=lambda one: -one[1]["violated"]):
        low, high = found["interval_95"]
        margin = [found["margin"].get(key) for key in ("p0", "p1", "p5", "p50")]
        rows.append((name, pill(STANDINGS[word := standing(found)], word), found["violated"], found["met"],
                     found["not_judged"], f"{low:.4f} … {high:.4f}", found["violated_max"], *margin, found["source"]))  # fmt: skip
    head = ("requirement", "", "violated", "met", "not judged", "share violated, 95 % (Wilson)", "allowed", "least margin", "1 %", "5 %",
            "median", "source")  # fmt: skip
    intro = "<p>Of every case, in the unit of its bound; a margin below zero is beyond it.</p>"
    return [section("Requirements", intro + table_html(head, rows, sortable=True))]


def _conditions(plan: Plan, table: "pa.Table", indices: dict[str, list[Index]]) -> str:
    alone = {(outcome, one.key): one.first for outcome, found in indices.items() for one in found}
    captured, invalid = np.array(table["captured"].to_pylist(), bool), unjudged(table)
    of_force, of_capture = ~invalid, captured | ~invalid
    force = magnitude(table, "impact_force_n")
    rows = []
    for v in plan.variables:
        x = column(table, v.name)
        if v.values:
            ends, centre = (", ".join(map(v.shown, v.ends)), ""), float(np.median(x))
        else:
            ends, centre = (v.shown(v.low), v.shown(v.high)), (v.low + v.high) / 2
        of_two = ((force, of_force, "impact force"), (captured.astype(float), of_capture, "captured"))
        correlation = (_strongest(x[m], centre, y[m], alone.get((outcome, v.name))) for y, m, outcome in of_two)
        rows.append((named(v.name), v.distribution + (", factor" if v.factor else ""), *ends, *correlation))
    intro = (
        "<p>Rank correlation (Spearman), of the value or of its distance from the middle, whichever is stronger. It sees what rises or "
        "falls with them alone: beside it the share of the variance that the variable explains in any way (Sobol' index of first order), "
        "where there are cases enough for it.</p>"
    )
    return intro + table_html(("", "distribution", "from", "to", "with the force of the impact", "with the capture"), rows)


def _strongest(x: np.ndarray, centre: float, y: np.ndarray, alone: float | None = None) -> str:
    """The stronger of the two rank correlations, and of what it is; alone: first-order index of the same variable on the same outcome."""
    pairs = [(rank_correlation(x, y), "value"), (rank_correlation(np.abs(x - centre), y), "distance from the middle")]
    found, of = max(pairs, key=lambda pair: abs(pair[0]))
    return f"{found:+.2f}, {of}" + ("" if alone is None else f"; explains {100.0 * max(0.0, alone):.0f} % alone")


def _sensitivity(indices: dict[str, list[Index]]) -> list[str]:
    """A picture and a table of Sobol' indices; nothing where none were found."""
    if not indices:
        return []
    rows = []
    for outcome, found in indices.items():
        for i in sorted(found, key=lambda i: -i.first):
            total = "" if math.isnan(i.total) else f"{i.total:.3f} ± {i.total_half:.3f}"
            rows.append((outcome, named(i.key), f"{i.first:.3f} ± {i.first_half:.3f}", total))
    intro = (
        "<p>Share of an outcome's variance that each variable explains (Sobol' indices with 95 % intervals): first order alone, total "
        "with its interactions (only from the sampling saltelli).</p>"
    )
    listed = table_html(("outcome", "variable", "first order", "total"), rows)
    drawn = embedded(_shares(indices), "Sobol' indices of every variable, first order and total, by outcome")
    return [section("Sensitivity", f"{intro}{drawn}<details><summary>figures</summary>{listed}</details>")]


def _rare(rare: Document | None) -> list[str]:
    if rare is None:
        return []
    low, high = rare["interval_95"]
    rows = [("probability", f"{rare['probability']:.3g}"), ("95 % interval", f"{low:.3g} … {high:.3g}"),
            ("coefficient of variation", f"{rare['coefficient_of_variation']:.2f}"), ("method", rare["method"].replace("_", " ")),
            ("cases by level", ", ".join(map(str, rare["levels"]))),
            ("cases without the outcome, counted", rare["without_outcome"])]  # fmt: skip
    return [section(rare["event"], table_html(("", ""), rows)),
            '<p class="banner">All that follows is of the cases that were run, which crowd towards the event: their shares are not those '
            "of the campaign's distribution.</p>"]  # fmt: skip


def _worst(plan: Plan, table: "pa.Table", worst: list[Document], folder: Path) -> str:
    """A row a case that was run again, with a link to its report."""
    if not worst:
        return "<p>None was run again.</p>"
    places = {number: i for i, number in enumerate(table["number"].to_pylist())}
    force, moment = magnitude(table, "peak_force_n"), magnitude(table, "peak_moment_n_m")
    head = ("case", "end", "captured", "faults", "force, N", "moment, N.m", *(named(k) for k in plan.keys))
    rows = []
    for one in worst:
        i = places[one["number"]]
        row = table.slice(i, 1).to_pylist()[0]
        cells = [one["number"], row["end"], row["captured"], row["faults"], float(force[i]), float(moment[i])]
        rows.append((*cells, *(float(f"{row[k]:.3g}") for k in plan.keys)))
    links = " · ".join(
        f'<a href="{text(os.path.relpath(Path(one["log"]).with_suffix(".html"), folder))}">case {one["number"]}</a>' for one in worst
    )
    ways = "".join(f"<li><code>{text(one['branch'])}</code></li>" for one in worst if one.get("branch"))
    intro = "commands that continue them from before their first contacts, with other keys"
    branches = f"<details><summary>{intro}</summary><ul>{ways}</ul></details>" if ways else ""
    return f"<p>Run again with full logs: {links}</p>{branches}{table_html(head, rows, sortable=True)}"


def _channels(s: Document) -> list[str]:
    rows = [(name, *(v[q] for q in QUANTILES)) for name, v in s["channels"].items() if v]
    if not rows:
        return []
    listed = table_html(("channel", *QUANTILES.values()), rows)
    return [section("Mechanism", f"<details><summary>largest magnitudes of {len(rows)} channels (SI)</summary>{listed}</details>")]


# -------------------------------------------------------------------------------------------------------------------- pictures


def _grid(count: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    rows = -(-count // columns)
    drawn = Figure(figsize=(10.0, height * rows), layout="constrained")
    axes = list(drawn.subplots(rows, columns, squeeze=False).ravel())
    for unused in axes[count:]:
        unused.set_visible(False)
    for one in axes:
        one.grid(True, linewidth=0.4, alpha=0.6)
        one.tick_params(labelsize=8)
    return drawn, axes


def groups(table: "pa.Table") -> list[tuple[str, str, np.ndarray]]:
    """Cases in three kinds: (name, colour, mask)."""
    captured = np.array(table["captured"].to_pylist(), bool)
    tripped = np.array([e == "tripped" for e in table["end"].to_pylist()], bool)
    invalid = unjudged(table) & ~captured
    kinds = (("captured", COLOURS[0], captured & ~tripped), ("captured, then tripped", COLOURS[4], captured & tripped),
             ("not captured", COLOURS[1], ~captured & ~invalid), ("no verdict", COLOURS[5], invalid))  # fmt: skip
    return [kind for kind in kinds if kind[2].any()]


def _loads(table: "pa.Table") -> Figure:
    drawn, axes = _grid(4, 2, 3.0)
    sizes = ("impact_force_n", "impact_moment_n_m", "peak_force_n", "peak_moment_n_m")
    for one, name in zip(axes, sizes, strict=True):
        values, label = magnitude(table, name), LOADS[name]
        kinds, colours, masks = zip(*groups(table), strict=True)
        one.hist([values[mask] for mask in masks], bins=50, stacked=True, color=colours, label=kinds)
        one.set_yscale("log")  # a single bad case is to be seen
        one.set_xlabel(label, fontsize=9)
        one.set_ylabel("cases", fontsize=9)
    axes[0].legend(fontsize=8)
    return drawn


def _pairs(table: "pa.Table", keys: tuple[str, ...]) -> Figure:
    pairs = [pair for pair in PAIRS if set(pair) <= set(keys)] or [(keys[0], keys[-1])]
    drawn, axes = _grid(len(pairs), 3, 3.1)
    for one, (x, y) in zip(axes, pairs, strict=False):
        for name, colour, mask in groups(table):
            small = name == "captured" and mask.sum() > FEW_CASES
            one.scatter(column(table, x)[mask], column(table, y)[mask], s=3 if small else 9, c=colour, label=name,
                        alpha=0.35 if small else 0.9, linewidths=0)  # fmt: skip
        captured = np.array(table["captured"].to_pylist(), bool)
        judged = captured | ~unjudged(table)
        _boundary(one, column(table, x)[judged], column(table, y)[judged], captured[judged])
        one.set_xlabel(named(x), fontsize=9)
        one.set_ylabel(named(y), fontsize=9)
    axes[0].legend(fontsize=7, markerscale=2)
    return drawn


def _boundary(one: Axes, x: np.ndarray, y: np.ndarray, captured: np.ndarray) -> None:
    """Contours of the share of captured cases: the density of the captured ones over that of all, with one kernel, that of all."""
    if min(captured.sum(), (~captured).sum()) < BOUNDARY_CASES or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return
    unit = np.array([(x - x.min()) / np.ptp(x), (y - y.min()) / np.ptp(y)])
    width = float(gaussian_kde(unit).factor)
    ticks = np.linspace(0.0, 1.0, 41)
    places = np.array(np.meshgrid(ticks, ticks)).reshape(2, -1)
    near = np.exp(-0.5 * ((places[:, :, None] - unit[:, None, :]) ** 2).sum(axis=0) / (0.5 * width) ** 2)
    cases = near.sum(axis=1)
    share = np.where(cases > BOUNDARY_NEAR, near[:, captured].sum(axis=1) / np.maximum(cases, 1e-12), np.nan).reshape(41, 41)
    if np.nanmin(share) < 0.99:
        lines = one.contour(x.min() + ticks * np.ptp(x), y.min() + ticks * np.ptp(y), np.ma.masked_invalid(share), levels=(0.5, 0.9, 0.99),
                            colors="black", linewidths=(1.4, 0.9, 0.5))  # fmt: skip
        one.clabel(lines, fmt={0.5: "50 %", 0.9: "90 %", 0.99: "99 %"}, fontsize=6)


def _shares(indices: dict[str, list[Index]]) -> Figure:
    drawn, axes = _grid(len(indices), 2, 2.6)
    for one, (outcome, found) in zip(axes, indices.items(), strict=False):
        rows = sorted(found, key=lambda i: i.first)
        places = np.arange(len(rows))
        one.barh(places, [i.first for i in rows], xerr=[i.first_half for i in rows], color=COLOURS[0], height=0.5, label="first order")
        if not math.isnan(rows[0].total):
            one.barh(places + 0.3, [i.total for i in rows], xerr=[i.total_half for i in rows], color=COLOURS[1], height=0.25, label="total")
        one.set_yticks(places, [named(i.key) for i in rows], fontsize=7)
        one.set_xlim(-0.02, 1.02)
        one.set_title(outcome, fontsize=9)
    axes[0].legend(fontsize=7)
    return drawn


def _envelope(summary: Document, keys: tuple[str, ...]) -> Figure:
    drawn, axes = _grid(len(keys), 3, 2.1)
    lowest = 1.0
    for one, key in zip(axes, keys, strict=False):
        bins = [b for b in summary["envelope"][key] if b["cases"]]
        one.set_xlabel(named(key), fontsize=9)
        if not bins:
            continue
        x = [(b["from"] + b["to"]) / 2 for b in bins]
        p, low, high = (np.array([b[k] for b in bins]) for k in ("probability", "low", "high"))
        one.errorbar(x, p, yerr=np.maximum([p - low, high - p], 0.0), fmt="o-", markersize=3, capsize=2, color=COLOURS[0], linewidth=0.9)
        lowest = min(lowest, float(low.min()))
    for one in axes:
        one.set_ylim(lowest - 0.03, 1.03)  # one scale for all
    return drawn
