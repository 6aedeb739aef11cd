"""Restitution through the whole line: the tables of docs/validation.md.

Use: `python tools/contact_table.py [--only noisy]`.

Every number is one contact (or the mean of the seeds) of the programme elastic_contact through the line: without noise the contact that
the prediction plays (`hil_server.predict.contact_line`), with noise a run of the whole programme.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hil_server.config import load_test  # noqa: E402
from hil_server.line import assembly  # noqa: E402
from hil_server.predict.contact_line import mode_at, play  # noqa: E402
from tests.hybrid.bounce import DRIVES, MASS, PROGRAMME, overrides, rebound_of, run, settings, stiffness  # noqa: E402
from tests.hybrid.test_contact_six import NOISY  # noqa: E402

FREQUENCIES = (1, 3, 5, 10, 20)
ROWS = (("none", {}), ("phase_lead", {}), ("polynomial", {"compensation.spacing_ticks": 1}), ("pose_referenced_force", {}), ("smith", {}),
        ("energy_cap", {}), ("lead_and_pose_force", {}))  # fmt: skip


def row(drive, compensator, frequencies=FREQUENCIES, zeta=0.0, **keys):
    tests = [assembly.simulation(load_test(PROGRAMME, overrides(settings(f, drive, compensator, zeta, **keys)))) for f in frequencies]
    return [play(test, mode_at(test, f, zeta), 0.02).restitution for f, test in zip(frequencies, tests, strict=True)]


def show(name, values):
    print(f"| {name} | " + " | ".join(f"{v:.4f}" for v in values) + " |", flush=True)


def drives():
    for drive in DRIVES:
        print(f"\n{drive}\n\n| compensator | " + " | ".join(f"{f} Hz" for f in FREQUENCIES) + " |\n|---|" + "---|" * len(FREQUENCIES))
        for name, keys in ROWS:
            show(name, row(drive, name, **keys))


def wrong_parameters():
    print("\nrecommended stack, spec drive, parameters wrong\n")
    for lead, share in ((0.9, 1.0), (1.1, 1.0), (0.9, 0.8), (0.9, 1.2), (1.1, 0.8), (1.1, 1.2)):
        keys = {"compensation.lead_factor": lead, "compensation.stiffness_factor": share}
        show(f"lead x {lead}, stiffness x {share}", row("spec", "lead_and_pose_force", (1, 2, 3, 4, 5, 7, 10), **keys))


def damped():
    print("\nzeta 0.1, spec drive (0.7292), mean of four places of the touch within a tick\n")
    for name in ("none", "phase_lead", "lead_and_pose_force"):
        means = []
        for f in (1, 3, 5, 7, 10):
            keys = {"compensation.damping_n_s_per_m": 0.2 * float(np.sqrt(stiffness(f) * MASS))} if name == "lead_and_pose_force" else {}
            means.append(np.mean([row("spec", name, (f,), zeta=0.1, **keys, **{"guidance.close_before_s": 0.4 + (q + 0.01) * 1e-3})
                                  for q in (0.0, 0.25, 0.5, 0.75)]))  # fmt: skip
        show(name, means)


def noisy(seeds, picture=None):
    from hil_server.identify.drives import run_on

    found, _ = run_on("stand_configs/stands/docking_stand.toml", ("stand.virtual.leg_noise_m=1e-5",))
    drive = {f"stand.drive_model.{key}": found.model[key] for key in ("frequency_hz", "damping", "delay_s")}
    print(f"\nidentified {drive}; noise, stiffness wrong, {seeds} seeds: mean +- standard deviation of one run\n")
    curves = {}
    for share in (0.8, 1.0, 1.2):
        for f in (1, 2, 3, 5, 7, 10, 12, 15, 20):
            keys = NOISY | drive | {"compensation.stiffness_factor": share}
            es = [rebound_of(run(settings(f, "spec", "lead_and_pose_force", **keys, **{"stand.virtual.seed": s}))[1])
                  for s in range(1, seeds + 1)]  # fmt: skip
            print(f"| x {share} | {f} Hz | {np.mean(es):.4f} +- {np.std(es):.4f} |", flush=True)
            curves.setdefault(share, []).append((f, np.mean(es), np.std(es) / np.sqrt(seeds)))
    if picture:
        draw(curves, picture)


def draw(curves, path):
    """Mean of the seeds with its own standard deviation, over the frequency of the contact, and the band."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "contact"}
    figure = Figure(figsize=(7, 3.6))
    axes = figure.subplots()
    axes.axhspan(0.98, 1.02, color="0.88")
    for share, points in curves.items():
        f, mean, sigma = zip(*points, strict=True)
        axes.errorbar(f, mean, sigma, marker="o", markersize=3, capsize=2, label=f"stiffness x {share}")
    axes.set(xscale="log", xlabel="contact frequency, Hz", ylabel="e", xticks=f, xticklabels=[str(x) for x in f])
    axes.minorticks_off()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=("drives", "wrong", "damped", "noisy"))
    parser.add_argument("--picture", metavar="SVG", help="the curve of `noisy`")
    args = parser.parse_args()
    parts = {"drives": drives, "wrong": wrong_parameters, "damped": damped, "noisy": lambda: noisy(args.seeds, args.picture)}
    for name, part in parts.items():
        if args.only in (None, name):
            part()
