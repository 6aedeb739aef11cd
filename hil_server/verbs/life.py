"""`hil-server life LOG ...`: load spectra over many dockings, and the share of the life that they use (`hil_server.judge.life`)."""

import argparse
from collections import Counter

from hil_server.values import Document

GROUP = "look at results"
ORDER = 48
SUMMARY = "computes load spectra and fatigue damage over many dockings"
EXAMPLES = (
    ("hil-server life runs/*/run.mcap --curve 5:2000@1e6", "damage by the S-N curve with exponent 5 and 1e6 cycles of 2000 N"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server life`."""
    parser.add_argument("log", nargs="+", metavar="LOG", help="logs of dockings")
    parser.add_argument(
        "--channel", action="append", default=[], metavar="NAME", help="channel of a load (default: F_T[0]...F_T[5]); may be repeated"
    )
    parser.add_argument(
        "--curve", metavar="M:RANGE@CYCLES", help="S-N curve: life of CYCLES at the double amplitude RANGE, exponent M, e.g. 5:2000@1e6"
    )
    parser.add_argument(
        "--least", type=float, default=0.05, metavar="SHARE", help="ignores cycles below this share of the largest range (default: 0.05)"
    )
    parser.add_argument("--bins", type=int, default=8, metavar="N", help="rows of each spectrum (default: 8)")
    parser.add_argument("--picture", metavar="FILE", help="writes a picture (.png, .svg, .pdf)")


def run(args: argparse.Namespace) -> Document:
    """Prints the spectra; returns them with the damage of each channel."""
    from hil_server.config.kinds import a_log
    from hil_server.errors import UsageError
    from hil_server.judge import life
    from hil_server.judge.run import Run
    from hil_server.log.reader import read_log

    if not 1 <= args.bins <= 1000:
        raise UsageError(f"--bins {args.bins}: must be within 1...1000")
    if not 0.0 <= args.least < 1.0:
        raise UsageError(f"--least {args.least}: must be within 0...1")
    sn = None if args.curve is None else life.curve(args.curve)
    logs = [read_log(a_log(path)) for path in args.log]
    found = life.spectra([Run(log) for log in logs], args.channel or life.WRENCH, sn, args.least)
    modes = Counter("branch of another run" if log.header.branch else log.header.mode or "mode unknown" for log in logs)
    twice = len(logs) - len({(log.header.run_id, log.header.created) for log in logs})
    print("logs      " + ", ".join(f"{count} {mode}" for mode, count in modes.items()) + (f"; {twice} counted again" if twice else ""))
    print("load histories: the closed loop of each log, from its first tick to its last")
    for one in found:
        if one.not_available:
            print(f"{one.name}: not available: {one.not_available}")
            continue
        total = float(one.counts.sum())
        print(f"{one.name}: {total:g} cycles, largest range {one.ranges.max() if len(one.ranges) else 0.0:.5g}")
        for low, high, count in one.table(args.bins):
            print(f"  {low:10.4g} ... {high:10.4g}  {count:10.1f}")
        if sn is not None:
            more = f", a life is {len(args.log) / one.damage:.3g} dockings" if one.damage > 0.0 else ""
            least = ", at least (a thinned log lacks the cycles between its records)" if one.at_least else ""
            print(f"  of a life: {one.damage:.3g} in {len(args.log)} dockings{more}{least}")
            print("  by moment: " + ", ".join(f"{moment} {value:.3g}" for moment, value in one.by_moment.items()))
    if args.picture:
        life.draw(found, args.picture)
        print(f"picture   {args.picture}")
    rows = [{"channel": s.name, "cycles": float(s.counts.sum()), "spectrum": s.table(args.bins), "damage": s.damage,
             "damage_by_moment": s.by_moment, "at_least": s.at_least, "not_available": s.not_available} for s in found]  # fmt: skip
    return {"logs": len(args.log), "modes": dict(modes), "counted_again": twice, "channels": rows, "exit_code": 0}
