"""`hil-server compare LOG OTHER`: two runs side by side, or a run and its prediction; forces first."""

import argparse
from pathlib import Path
from typing import Any

ORDER = 90
SUMMARY = "two runs side by side"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server compare`."""
    parser.add_argument("log", metavar="LOG", help="log of the run")
    parser.add_argument("other", metavar="OTHER", help="log of the prediction, or of another run")
    parser.add_argument("--channel", action="append", default=[], metavar="NAME", help="an auxiliary channel too, as probe.stroke")
    parser.add_argument("--out", metavar="DIR", help="folder for the page with pictures (default: beside LOG)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Compares the two logs, forces first; returns the differences."""
    from hil_server.analysis.comparison import compare

    log, other = Path(args.log), Path(args.other)
    # the logs of runs are all called run: their folders tell them apart
    names = [path.parent.name if path.stem == "run" and path.parent.name else path.stem for path in (log, other)]
    figures = compare(log, other, Path(args.out or log.parent) / f"{names[0]}_and_{names[1]}.html", args.channel)
    begin, end = figures["window_s"]
    print(f"{figures['a']} and {figures['b']}, aligned at {figures['aligned']}, {begin:.3f}...{end:.3f} s from there")
    print(f"{'':16} {'unit':6} {'peak':>11} {'peak other':>11} {'rms diff.':>11} {'peak diff.':>11} {'relative':>9}")
    for c in figures["channels"]:
        relative = "" if c["relative"] is None else f"{100 * c['relative']:8.2f}%"
        numbers = " ".join(f"{c[key]:11.4g}" for key in ("peak_a", "peak_b", "rms_difference", "peak_difference"))
        print(f"{c['name']:16} {c['unit']:6} {numbers} {relative:>9}")
    print(f"{'capture':16} {'s':6} " + " ".join(f"{'-' if t is None else format(t, '.4f'):>11}" for t in figures["capture_s"]))
    print(f"{'energy absorbed':16} {'J':6} " + " ".join(f"{energy:11.5g}" for energy in figures["absorbed_j"]))
    for name, one, two in figures["signals"]:
        times = " ".join(f"{'-' if t is None else format(t, '.3f'):>11}" for t in (one, two))
        print(f"{name:16} {'s':6} {times}")
    for line in figures["variant"]:
        print(f"not the same variant: {line}")
    print(f"page: {figures['page']}")
    return {**figures, "exit_code": 0}
