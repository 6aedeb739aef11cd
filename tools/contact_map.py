"""The map of the contact: restitution over frequency, speed, direction, pose, method, wrong stiffness and seeds, on a given stand.

Use: `python tools/contact_map.py --stand FILE --out DIR [--knowledge FILE] [--direction x y ...] [--causes] [--pictures DIR]`.

Every cell is one contact of 300 kg of effective mass through the whole line (wrench path, compensator, setpoint kinematics, safety stage
of the programme elastic_contact), on the stand of the file's [virtual] with its noise and limits: the truth. What the server knows of it is
[stand_model] or [drive_model] of --knowledge, else of the same file; `--knowledge truth`: the exact parameters. e is that of the free
motion on either side; in orbit it is one. Beside each cell stands what the prediction says of it before.

Directions: x, y, z along an axis of T; rx, ry, rz about one: a push 1.5 m beside it on vehicles eleven times as heavy, so that nine tenths
of the motion is rotation. Poses: of the platform at the contact. A cell that misses is run again with one thing of the truth taken away at
a time (--causes): the one without which most of the error goes is its cause. A folder is taken up where it was left.
"""

import argparse
import csv
import json
import math
import os
import sys
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hil_server.config import load_test  # noqa: E402
from hil_server.config.checks import part_table  # noqa: E402
from hil_server.errors import ConfigurationError  # noqa: E402
from hil_server.line import assembly  # noqa: E402
from hil_server.predict.contact_line import FIELDS_OF_A_RUN, line, mode_at, play, read_run, records_of  # noqa: E402
from tests.open_stand import opened  # noqa: E402

PROGRAMME = "stand_configs/programmes/elastic_contact.toml"
ARM = 1.5
# point of T at the origin, force and moment of the push
SCREWS = {
    "x": (1, 0, 0, 0, 0, 0), "y": (0, 1, 0, 0, 0, 0), "z": (0, 0, 1, 0, 0, 0),
    "rx": (0, 1, 0, ARM, 0, 0), "ry": (1, 0, 0, 0, ARM, 0), "rz": (1, 0, 0, 0, 0, ARM),
}  # fmt: skip
# position and angles of the load cell that bring the platform to a pose at the contact; none: the stand's own
POSES = {
    "own": None,
    "neutral": ((3.895, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "high": ((4.395, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "aside": ((4.095, 0.3, -0.2), (8.0, -6.0, 5.0)),
}
# 300 kg along u: 1/300 = 2/m, or 2/m + 2 ARM^2/I
MASS, INERTIA = {"along": 600.0, "about": 6600.0}, {"along": 150.0, "about": 2.0 * ARM**2 / (1.0 / 300.0 - 2.0 / 6600.0)}
# cause → what is taken away from the truth; keys of [virtual] that the stand does not have are passed over
CAUSES = {
    "dead band": {"valve_overlap": 0.0, "drive_dead_band_m": 0.0},
    "friction": {"friction_coulomb_n": 0.0, "friction_static_n": 0.0},
    "saturation": {"valve_slew_per_s": 1e5, "drive_rate_max_m_s": None, "drive_acceleration_max_m_s2": None},
    "supply": {"accumulator_gas_m3": 0.0, "line_volume_m3": 0.0},
    "noise": {"force_noise_n": 0.0, "moment_noise_n_m": 0.0, "leg_noise_m": 0.0},
}
# likewise, of the test's own limits: table → keys
CAUSES_IN_TEST = {
    "leg limits": {"stand.platform": {"leg_rate_max_m_s": 10.0, "leg_acceleration_max_m_s2": 1e4}},
    "load cell": {
        "stand.limits": {f"{kind}_n": [1e8] * 3 for kind in ("force_limit", "analogue_force")}
        | {f"{kind}_n_m": [1e8] * 3 for kind in ("moment_limit", "analogue_moment")},
        "wrench": {"range_force_n": [1e8] * 3, "range_moment_n_m": [1e8] * 3},
        "stand.virtual": {"chain_force_n": 1e8, "chain_moment_n_m": 1e8},
    },
}
TRUE, NEAR = 0.02, 0.10


@dataclass(frozen=True)
class Cell:
    """One contact. seed 0: what the prediction says of it before. off: cause that is taken away from the truth, or empty."""

    method: str
    direction: str
    pose: str
    frequency_hz: float
    speed_m_s: float
    stiffness: float
    seed: int
    off: str = ""

    @property
    def place(self):
        """The cell whatever the seed."""
        return replace(self, seed=0)


# ------------------------------------------------------------------------------------------------------------- one cell


def method_of(text):
    """Part and keys of `name` or `name:key=value,key=value`."""
    name, _, keys = text.partition(":")
    return name, {k: tomllib.loads(f"x = {v}")["x"] for k, v in (item.split("=") for item in keys.split(",") if item)}


def test_of(cell, stand, knowledge):
    """The assembled test of a cell: its stand, vehicles and pose, and what is known of the stand."""
    about = "about" if cell.direction.startswith("r") else "along"
    inertia = [[INERTIA[about] * (i == j) for j in range(3)] for i in range(3)]
    settings = [f"test.stand={stand}"]
    for vehicle in ("active_vehicle", "target_vehicle"):
        settings += [f"{vehicle}.mass_kg={MASS[about]}", f"{vehicle}.inertia_kg_m2={inertia}", f"{vehicle}.port_position_m=[0.0, 0.0, 0.0]"]
    if POSES[cell.pose] is not None:
        position, angles = POSES[cell.pose]
        settings += [f"stand.mounting.load_cell_position_m={list(position)}", f"stand.mounting.load_cell_angles_deg={list(angles)}"]
    for part, keys in CAUSES_IN_TEST.get(cell.off, {}).items():
        settings += [f"{part}.{key}={value}" for key, value in keys.items()]
    config = load_test(PROGRAMME, opened(settings, PROGRAMME))
    table = dict(config.stand)
    virtual = dict(table["virtual"]) | {"seed": 1000 + cell.seed}
    declared = part_table("simulated", virtual["part"]).parameters
    known = {"stand_model": virtual} if knowledge == "truth" else knowledge
    if known:
        table = {k: v for k, v in table.items() if k not in ("stand_model", "drive_model")} | known
    for key, value in CAUSES.get(cell.off, {}).items():
        if key in declared:
            virtual[key] = value
    table["virtual"] = {k: v for k, v in virtual.items() if v is not None}
    return assembly.simulation(replace(config, document={**config.document, "stand": table}))


def run_cell(cell, stand, knowledge):
    """The cell's row: e, or why there is none; of the prediction (seed 0) whether it would arm, and the nearest limits."""
    begin = time.process_time()
    row = asdict(cell) | {"e": None, "why": "", "armed": None, "limits": ""}
    try:
        test = test_of(cell, stand, knowledge)
        mode = mode_at(test, cell.frequency_hz, 0.0, SCREWS[cell.direction])
        name, keys = method_of(cell.method)
        declared = part_table("compensation", name).parameters
        share = 1.0 if cell.off == "wrong stiffness" else cell.stiffness
        method = name, ({"stiffness_n_per_m": share * mode.stiffness} if "stiffness_n_per_m" in declared else {}) | keys
        if cell.seed == 0:
            played = play(test, mode, cell.speed_m_s, method)
            stops = [m for m in played.margins if m.touched and m.stops]
            e = played.restitution
            row |= {"e": e if math.isfinite(e) else None, "why": played.refused, "limits": "; ".join(map(str, stops or played.margins[:1])),
                    "armed": math.isfinite(e) and abs(e - 1.0) <= TRUE and not stops}  # fmt: skip
        else:
            row |= measured(line(test, mode, cell.speed_m_s, method, as_configured=True), mode.shape)
    except ConfigurationError as error:
        row["why"] = str(error)
    return row | {"processor_s": round(time.process_time() - begin, 3)}


def measured(test, screw):
    """e of the first contact of a run, along a known screw; a run that trips has none."""
    found = read_run(records_of(test, FIELDS_OF_A_RUN), np.asarray(screw), test.context["period_s"])
    return {"e": None if found.refused else found.restitution, "why": found.refused}


# ------------------------------------------------------------------------------------------------------------- all cells


def run_all(cells, folder, stand, knowledge, processes, stream=sys.stderr):
    """Runs what is not in the folder yet; all rows by cell."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "cells.jsonl"
    rows = {}
    if file.exists():
        for text in file.read_text().splitlines():
            row = json.loads(text)
            rows[Cell(**{k: row[k] for k in Cell.__dataclass_fields__})] = row
    left = [cell for cell in cells if cell not in rows]
    begin = shown = time.monotonic()
    with file.open("a") as out, ProcessPoolExecutor(processes) as pool:
        jobs = {pool.submit(run_cell, cell, stand, knowledge): cell for cell in left}
        for i, job in enumerate(as_completed(jobs), 1):
            row = job.result()
            rows[jobs[job]] = row
            out.write(json.dumps(row) + "\n")
            now = time.monotonic()
            if now - shown > 10.0 or i == len(left):
                out.flush()
                shown = now
                print(f"{i} of {len(left)} cells, {(now - begin) / i * (len(left) - i):.0f} s left", file=stream, flush=True)
    return {cell: rows[cell] for cell in cells}


def places(rows):
    """Per cell without its seed: mean and standard deviation of e over the seeds, runs without e and why, the prediction."""
    found = {}
    for cell, row in rows.items():
        one = found.setdefault(cell.place, {"es": [], "missing": [], "predicted": None, "armed": None, "limits": "", "refused": ""})
        if cell.seed == 0:
            one |= {"predicted": row["e"], "armed": row["armed"], "limits": row["limits"], "refused": row["why"]}
        elif row["e"] is None:
            one["missing"].append(row["why"])
        else:
            one["es"].append(row["e"])
    for one in found.values():
        one["mean"] = float(np.mean(one["es"])) if one["es"] and not one["missing"] else math.nan
        one["sigma"] = float(np.std(one["es"])) if one["es"] else math.nan
    return found


def grade(mean):
    """How true the mean of the seeds is, in three steps; runs that have no e must not be."""
    off = abs(mean - 1.0)
    return "true" if off <= TRUE else "near" if off <= NEAR else "no"


MARK = {"true": "", "near": " ~", "no": " **no**"}


# ---------------------------------------------------------------------------------------------------------------- output


def tables(found, directions, frequencies):
    """Markdown: per method, speed and pose the worst mean over the stiffnesses, frequency across, direction down."""
    kinds = list(dict.fromkeys((c.method, c.speed_m_s, c.pose) for c in found if not c.off))
    for method, speed, pose in kinds:
        print(f"\n`{method}`, {speed:g} m/s, {pose}\n\n| | " + " | ".join(f"{f:g} Hz" for f in frequencies) + " |")
        print("|---|" + "---|" * len(frequencies))
        for direction in directions:
            print(f"| {direction} | " + " | ".join(_entry(worst(found, method, speed, pose, direction, f)) for f in frequencies) + " |")
        across = [max((worst(found, method, speed, pose, d, f) for d in directions), key=_off) for f in frequencies]
        print("| worst | " + " | ".join(map(_entry, across)) + " |")


def worst(found, method, speed, pose, direction, frequency):
    """The place with the largest error over the stiffnesses, None where there is none."""
    some = [one for c, one in found.items() if not c.off
            and (c.method, c.speed_m_s, c.pose, c.direction, c.frequency_hz) == (method, speed, pose, direction, frequency)]  # fmt: skip
    return max(some, key=_off) if some else None


def _off(one):
    return -1.0 if one is None else math.inf if math.isnan(one["mean"]) else abs(one["mean"] - 1.0)


def _entry(one):
    if one is None:
        return "–"
    if math.isnan(one["mean"]):
        return max(set(one["missing"]), key=one["missing"].count).removeprefix("the contact does not end: ") + MARK["no"]
    return f"{one['mean']:.3f}" + MARK[grade(one["mean"])]


def misses(found):
    """Places outside of the first band, each with its cause where causes were run."""
    rows = []
    for cell, one in found.items():
        if cell.off or not _off(one) > TRUE:
            continue
        without = {other.off: another["mean"] for other, another in found.items() if other.off and replace(other, off="") == cell}
        rows.append((cell, one, cause(one["mean"], without), without))
    return rows


def cause(mean, without):
    """Name of what explains most of an error: e without it is nearest to one, and by at least a quarter nearer than with everything."""
    judged = {name: abs(e - 1.0) for name, e in without.items() if not math.isnan(e)}
    if not judged:
        return ""
    name = min(judged, key=judged.get)
    before = math.inf if math.isnan(mean) else abs(mean - 1.0)
    return name if judged[name] < 0.75 * before else "lag left by the method"


def write_csv(found, file):
    """Every place with mean, scatter, prediction, limits and cause."""
    named = {cell: why for cell, _, why, _ in misses(found)}
    with file.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["method", "direction", "pose", "frequency_hz", "speed_m_s", "stiffness", "without", "e", "sigma", "runs", "without_e",
                      "predicted", "armed", "limits", "grade", "cause"])  # fmt: skip
        for c, one in found.items():
            out.writerow([c.method, c.direction, c.pose, c.frequency_hz, c.speed_m_s, c.stiffness, c.off, one["mean"], one["sigma"],
                          len(one["es"]), "; ".join(sorted(set(one["missing"]))), one["predicted"], one["armed"], one["limits"],
                          grade(one["mean"]), named.get(c, "")])  # fmt: skip


def pictures(found, folder, directions, frequencies):
    """Per method and speed: e over the frequency, one line a direction, the worst of poses and stiffnesses as its band."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "contact"}
    folder.mkdir(parents=True, exist_ok=True)
    kinds = list(dict.fromkeys((c.method, c.speed_m_s) for c in found if not c.off))
    colours = {"true": "#4a9c5d", "near": "#e0b040", "no": "#c0504d"}
    methods, speeds = list(dict.fromkeys(m for m, _ in kinds)), list(dict.fromkeys(v for _, v in kinds))
    poses = list(dict.fromkeys(c.pose for c in found))
    figure = Figure(figsize=(1.2 + 3.6 * len(speeds), 0.8 + 2.0 * len(methods)))
    axes = figure.subplots(len(methods), len(speeds), squeeze=False)
    for (i, method), (j, speed) in product(enumerate(methods), enumerate(speeds)):
        one = axes[i, j]
        for (y, direction), (x, f) in product(enumerate(directions), enumerate(frequencies)):
            place = max((worst(found, method, speed, pose, direction, f) for pose in poses), key=_off)
            if place is None:
                continue
            mean = place["mean"]
            one.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color=colours[grade(mean)], linewidth=0))
            one.text(x, y, "trip" if math.isnan(mean) else f"{mean:.2f}", ha="center", va="center", fontsize=7)
        one.set(xlim=(-0.5, len(frequencies) - 0.5), ylim=(len(directions) - 0.5, -0.5), title=f"{method.partition(':')[0]}, {speed:g} m/s")
        one.set_xticks(range(len(frequencies)), [f"{f:g}" for f in frequencies])
        one.set_yticks(range(len(directions)), directions)
        one.title.set_fontsize(9)
    for one in axes[-1]:
        one.set_xlabel("contact frequency, Hz", fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "contact-map.svg", metadata={"Date": None})
    return folder / "contact-map.svg"


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stand", default="stand_configs/stands/docking_stand.toml")
    parser.add_argument("--knowledge", metavar="FILE", help="TOML with [stand_model] or [drive_model], or `truth`")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--method", nargs="+", default=["phase_lead", "lead_and_pose_force"], help="name or name:key=value,key=value")
    parser.add_argument("--direction", nargs="+", choices=SCREWS, default=list(SCREWS))
    parser.add_argument("--pose", nargs="+", choices=POSES, default=["own", "neutral", "aside"])
    parser.add_argument("--frequency", nargs="+", type=float, default=[1.0, 2.0, 3.0, 5.0, 7.0, 10.0])
    parser.add_argument("--speed", nargs="+", type=float, default=[0.02, 0.1])
    parser.add_argument("--stiffness", nargs="+", type=float, default=[0.8, 1.0, 1.2], help="the compensator's over the true one")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--unpredicted", action="store_true", help="runs alone: four times as fast")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--causes", action="store_true", help="run the places that miss again, one thing of the truth taken away at a time")
    parser.add_argument("--pictures", type=Path, metavar="DIR")
    args = parser.parse_args(words)
    stand = str(Path(args.stand).resolve())
    knowledge = args.knowledge
    if knowledge and knowledge != "truth":
        table = tomllib.loads(Path(knowledge).read_text())
        knowledge = {key: table[key] for key in ("stand_model", "drive_model") if key in table}
    grid = product(args.method, args.direction, args.pose, args.frequency, args.speed, args.stiffness,
                   range(1 if args.unpredicted else 0, args.seeds + 1))  # fmt: skip
    rows = run_all([Cell(*one) for one in grid], args.out, stand, knowledge, args.processes)
    found = places(rows)
    if args.causes:
        off = [*CAUSES, *CAUSES_IN_TEST, "wrong stiffness"]
        again = [replace(cell, off=name, seed=s) for cell, *_ in misses(found) for name in off for s in range(1, args.seeds + 1)]
        found = places(rows | run_all(again, args.out, stand, knowledge, args.processes))
    tables(found, args.direction, args.frequency)
    for cell, one, why, without in misses(found):
        if why:
            print(f"{cell.method} {cell.direction} {cell.pose} {cell.frequency_hz:g} Hz {cell.speed_m_s:g} m/s x {cell.stiffness:g}: "
                  f"{one['mean']:.3f}, {why} ({', '.join(f'without {n} {e:.3f}' for n, e in without.items())})")  # fmt: skip
    runs = [one for cell, one in found.items() if not cell.off]
    armed_wrong = sum(1 for one in runs if one["armed"] and _off(one) > 0.05)
    close = [abs(e - one["predicted"]) <= 0.02 for one in runs if one["predicted"] is not None for e in one["es"]]
    true, near = (sum(_off(one) <= band for one in runs) for band in (TRUE, NEAR))
    print(f"\n{len(runs)} places: {true} true within 2 %, {near} within 10 %; {armed_wrong} would arm and miss by more than 5 %; "
          + (f"{np.mean(close):.1%} of the runs within 0.02 of the prediction" if close else "not predicted"))  # fmt: skip
    write_csv(found, args.out / "map.csv")
    print(args.out / "map.csv")
    if args.pictures:
        print(pictures(found, args.pictures, args.direction, args.frequency))


if __name__ == "__main__":
    main()
