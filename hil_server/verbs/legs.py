"""`hil-server legs STAND|LOG`: moves each leg alone by 2 mm and reports which measured leg followed (`hil_server.run.leg_check`)."""

import argparse
from pathlib import Path

from hil_server.values import Document

GROUP = "stand and host"
ORDER = 132
SUMMARY = "moves each leg alone by 2 mm and checks that the right one followed"
EXAMPLES = (
    ("hil-server legs stand.toml", "before the first test on new cables"),
    ("hil-server legs runs/legs/run.mcap", "evaluates the log of such a run"),
)
REMAINS = "no leg was checked; the log of a completed run is kept"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server legs`."""
    parser.add_argument("stand", metavar="STAND|LOG", help="stand file, or log of such a run (.mcap)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key of the run; may be repeated")
    parser.add_argument("--out", metavar="DIR", help="folder for the log")
    parser.add_argument("--live", action="store_true", help="over the wire, even if the stand file has only a virtual stand")


def run(args: argparse.Namespace) -> Document:
    """Moves the legs, or reads a log of it; exit code 1 if a leg did not follow its setpoint, or another one moved."""
    from hil_server.config.kinds import a_log
    from hil_server.log.reader import read_log
    from hil_server.run.leg_check import found_in, run_on

    if Path(args.stand).suffix == ".mcap":
        found, log = found_in(read_log(a_log(args.stand))), args.stand
    else:
        found, log = run_on(args.stand, tuple(args.set), args.out, args.live, quiet=False)
    print("\n".join(one.in_words() for one in found))
    print(f"log       {log}")
    good = all(one.good for one in found)
    legs = [{"leg": one.leg, "way_m": list(one.way_m), "good": one.good} for one in found]
    return {"legs": legs, "log": log, "exit_code": 0 if good else 1}
