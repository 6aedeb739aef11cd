"""`hil-server predict [CONFIG]`: restitution, delays and phase budget of a contact, before the test (`hil_server.predict.prediction`).

Exit code 1 if a mode leaves the band 0.98...1.02, cannot be predicted, or drives the stand to one of its limits.
"""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from hil_server.terminal.outcome import add_configuration_arguments
from hil_server.values import Document

if TYPE_CHECKING:
    from hil_server.predict.prediction import Prediction

GROUP = "run a test"
ORDER = 30
SUMMARY = "predicts before the test: restitution, critical delay, phase budget"
EXAMPLES = (
    ("hil-server predict docking", "verdict for each compensator"),
    ("hil-server predict docking --set compensation.part=none --picture e.png", "restitution over frequency as a picture"),
)
REMAINS = "no verdict, no picture"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server predict`."""
    add_configuration_arguments(parser)
    parser.add_argument("--picture", metavar="PNG", help="draws restitution over frequency for each compensator")


def run(args: argparse.Namespace) -> Document:
    """Predicts the contact in the stand; returns the verdict for each compensator."""
    from hil_server.config import load_test
    from hil_server.predict.prediction import assembled, picture, predict
    from hil_server.run.progress import working

    config = load_test(args.config, args.set)
    test = assembled(config)
    with working("predict") as done:
        found = predict(config, test, done)
    _print(found)
    if words := test.ledger.lead_in_words():
        print(f"lead            {words}")
    file = args.picture or (str(Path(args.out) / "prediction.png") if args.out else None)
    if file:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        with working("picture"):
            drawn = picture(test, found, file)
        print(f"picture         {drawn}")
    return found.as_dict() | {"picture": file, "exit_code": 0 if found.within else 1}


def _print(found: "Prediction") -> None:
    from hil_server.judge.margins import NEAR
    from hil_server.predict.prediction import LEAST_IDEAL

    for name, seconds in found.ledger.items():
        print(f"{name:15s} {seconds * 1e3:8.3f} ms  {found.origins.get(name, '')}".rstrip())
    for one in found.unknown:
        print(f"NOT KNOWN       {one}")
    print(f"compensator     {found.compensator}")
    if not found.modes:
        print("no contact found within 30 mm of the nominal first contact")
    else:
        print("  f, Hz   zeta    mass, kg   e      ideal   ratio   crit. delay  budget          PSI    latched below")
    outside = "" if found.itself else "   OUTSIDE"
    for m in found.modes:
        head = f"{m.frequency_hz:7.2f}  {m.damping_ratio:.3f}  {m.effective_mass_kg:9.1f}"
        budget = f"{m.phase_budget_deg:.2f} deg {m.delay_budget_s * 1e3:6.3f} ms"
        if not m.judged:
            print(f"{head}   too stiff or too damped for a stand: not judged")
            continue
        if m.refused:
            print(f"{head}   cannot be predicted: {m.refused}{outside}")
            continue
        limit = f"{m.latched_limit_hz:6.2f} Hz" if math.isfinite(m.latched_limit_hz) else "-"
        limit = limit if m.latched_limit_hz else "undamped: none"
        indicator = f"{m.indicator:5.2f}" if math.isfinite(m.indicator) else "  -  "
        print(f"{head}  {m.restitution:6.4f} {m.ideal:6.4f}  {m.ratio:6.4f}"
              f"  {m.critical_delay_s * 1e3:8.3f} ms  {budget}  {indicator}  {limit}{'' if m.within else outside}")  # fmt: skip
        if m.sigma > 0.0:
            print(f"{'':23s} a single run scatters by {m.sigma:.4f} under the stand's noise")
    if any(m.judged and not m.refused and m.ideal < LEAST_IDEAL for m in found.modes):
        print(f"ratio           of e to ideal; below an ideal of {LEAST_IDEAL:g}: 1 + (e - ideal) / {LEAST_IDEAL:g}")
    if found.itself:
        e = f"{found.touch.restitution:.4f}, in orbit {found.touch.ideal:.4f}" if not found.touch.refused else found.touch.refused
        print(f"own contact     e by energy {e}{'' if found.rebounds else '   OUTSIDE'}")
    if near := [margin for margin in found.margins if margin.share >= NEAR]:
        print(f"near limits     {'; '.join(map(str, near))}")
    print(f"verdict         {found.verdict()}")
