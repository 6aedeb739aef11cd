"""Row by row: contacts as they are, on the hydraulic stand whose unit rings at 30 Hz. `python tools/rubbing_table.py [--seeds N]`.

Each number is one run of programmes/rubbing_contacts.toml through the line: e by energy (hil_server.judge.contact_energy) over that of
the same two bodies and contacts in orbit, from the state in which the loop was closed, in steps of 10 us. 1 is the truth. Layouts: where
the two contacts are. With --seeds the stand has the noise of its file, and a number is the mean of the seeds, in brackets the extremes.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.hybrid.rubbing import contact_tables, rub, settings  # noqa: E402

LAYOUTS = {
    "one side": ((0.0, 0.3, 0.15), (0.0, 0.3, -0.15)),
    "either side": ((0.0, 0.3, 0.0), (0.0, -0.3, 0.0)),
    "2:1": ((0.0, 0.3, 0.0), (0.0, -0.3, 0.0)),
}
SHARES = {"2:1": (2.0, 1.0)}


def cell(frequency, layout, friction, factor, seeds, speed, compensator):
    """Mean, smallest, largest ratio to the truth, and the truth; nan where a run does not end."""
    keys = {"points": LAYOUTS[layout], "friction": friction, "shares": SHARES.get(layout)}
    K = sum(table["stiffness_n_per_m"] for table in contact_tables(frequency, **keys))
    found = []
    for seed in range(1, max(1, seeds) + 1):
        own = {"stand.virtual.seed": seed}
        if compensator is None:
            own["compensation.stiffness_n_per_m"] = factor * K
        try:
            found.append(rub(settings(frequency, speed, compensator=compensator, quiet=not seeds, **keys, **own)))
        except AssertionError as why:
            print(f"    {frequency:g} Hz, {layout}, seed {seed}: {why}", file=sys.stderr)
            return (np.nan,) * 4
    ratios = [one.ratio for one in found]
    return np.mean(ratios), min(ratios), max(ratios), np.mean([one.truth for one in found])


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frequencies", default="1,2,3,5,8,10", help="Hz")
    parser.add_argument("--friction", default="0,0.1,0.3")
    parser.add_argument("--factors", default="0.8,1,1.2", help="of the stiffness given to the compensator")
    parser.add_argument("--speed", type=float, default=0.05, help="m/s")
    parser.add_argument("--seeds", type=int, default=0, help="runs with noise for each number; 0: one without")
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--bare", action="store_true", help="without compensation")
    given = parser.parse_args()
    frequencies = [float(f) for f in given.frequencies.split(",")]
    print(f"{'contacts':12} {'mu':>4} {'K':>4}  " + "".join(f"{f:>9g} Hz" for f in frequencies))
    for layout in given.layouts.split(","):
        for friction in map(float, given.friction.split(",")):
            for factor in (1.0,) if given.bare else map(float, given.factors.split(",")):
                cells = [cell(f, layout, friction, factor, given.seeds, given.speed, "none" if given.bare else None) for f in frequencies]
                text = "".join(f"{m:12.3f}" if not given.seeds else f"  {m:.3f} ({a:.3f} {b:.3f})" for m, a, b, _ in cells)
                print(f"{layout:12} {friction:4g} {factor:4g}  {text}   truth {cells[0][3]:.3f}", flush=True)


if __name__ == "__main__":
    main()
