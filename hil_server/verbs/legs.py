"""`hil-server legs STAND|LOG`: moves each leg a little, alone, and says which measured one has followed (`hil_server.run.leg_check`)."""

import argparse
from pathlib import Path
from typing import Any

ORDER = 99
SUMMARY = "moves each leg a little, alone: is it the right one?"
REMAINS = "no leg was found to be the right one; the log of a run that had ended stays"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server legs`."""
    parser.add_argument("stand", metavar="STAND|LOG", help="stand file, or the log of such a run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key of the run")
    parser.add_argument("--out", metavar="DIR", help="folder for the log")
    parser.add_argument("--live", action="store_true", help="over the wire, also where there is only a virtual stand")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Moves the legs, or reads a log of it; exit code 1 where a leg has not moved as it was sent, or another one has."""
    from hil_server.run.leg_check import found_in, run_on
    from hil_server.telemetry.log_file import open_log

    if Path(args.stand).suffix == ".mcap":
        found, log = found_in(open_log(args.stand)), args.stand
    else:
        found, log = run_on(args.stand, tuple(args.set), args.out, args.live, quiet=False)
    print("\n".join(one.in_words() for one in found))
    print(f"log       {log}")
    good = all(one.good for one in found)
    legs = [{"leg": one.leg, "way_m": list(one.way_m), "good": one.good} for one in found]
    return {"legs": legs, "log": log, "exit_code": 0 if good else 1}
