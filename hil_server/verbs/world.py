"""`hil-server world`: live runs in virtual time with everything that may go wrong, drawn from seeds (`hil_server.world`)."""

import argparse
import math
from collections.abc import Sequence

from hil_server.values import Document

GROUP = "run a test"
ORDER = 37
SUMMARY = "flies live runs in virtual time with faults drawn from seeds, and judges them"
EXAMPLES = (
    ("hil-server world docking --seeds 100", "a hundred runs, each with faults of its own; violations with the test that repeats them"),
    ("hil-server world docking --seeds 1000000 --hours 8 --cores 4", "a night"),
    ("hil-server world docking --wire ethercat --force", "with the drives on EtherCAT, whose delays are others"),
    ("hil-server world docking --from-start --within 6", "with faults during the set-up of the devices, too"),
    ("hil-server world berthing_operator --force --seeds 3", "with an operator at the hand controllers"),
    ("hil-server world docking --seed 7", "run 7 again: what went wrong in it, when, and how it ended"),
)
REMAINS = "nothing was written"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server world`."""
    parser.add_argument("config", nargs="?", metavar="CONFIG", help="test file, or name of a shipped one (default: the shipped docking)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key; may be repeated")
    parser.add_argument("--wire", choices=("can", "ethercat"), default="can", help="of the drives (default: can)")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="how many (default: 10)")
    parser.add_argument("--first", type=int, default=1, metavar="S", help="the first of them (default: 1)")
    parser.add_argument("--seed", type=int, metavar="S", help="this one alone, with a picture of who had the word when")
    parser.add_argument("--hours", type=float, metavar="H", help="begins no other seed after so long")
    parser.add_argument("--cores", type=int, default=1, metavar="C", help="processes that fly side by side (default: 1)")
    parser.add_argument("--within", type=float, default=20.0, metavar="SECONDS", help="something goes wrong within so long (default: 20)")
    parser.add_argument("--from-start", action="store_true", help="the time of what goes wrong begins with the set-up of the devices")
    parser.add_argument("--force", action="store_true", help="flies although the predicted contact differs from the one in orbit")


def run(args: argparse.Namespace) -> Document:
    """Flies the seeds; exit code 1 if something was violated."""
    import logging
    import time

    from hil_server import registry
    from hil_server.config import load_test
    from hil_server.run.progress import working
    from hil_server.world.events import drawn
    from hil_server.world.hunter import NO_BUS, PILOTED, hunt
    from hil_server.world.picture import picture

    config = load_test(args.config, [*NO_BUS, *args.set])
    guidance = config.setup.stages["guidance"]
    if getattr(registry.part(guidance.role, guidance.name), "FLOWN", False):
        config = load_test(args.config, [*PILOTED, *args.set])
    logging.getLogger("hil_server").setLevel(logging.CRITICAL)  # what goes wrong in the runs is theirs
    flown = {"wire": args.wire, "force": args.force, "from_start": args.from_start}
    if args.seed is not None:
        print(picture(config, args.seed, drawn(args.seed, args.within, args.wire), **flown))
    seeds: Sequence[int] = [args.seed] if args.seed is not None else range(args.first, args.first + args.seeds)
    began = time.monotonic()
    ends = math.inf if args.hours is None else began + 3600.0 * args.hours
    with working("seeds") as done:
        result = hunt(config, seeds, args.within, print, cores=args.cores, until=lambda: time.monotonic() > ends, done=done, **flown)
    speed = result.world_s / (time.monotonic() - began)
    print(f"{result.in_words()}; {speed:.1f} times real time")
    return result.as_json() | {"exit_code": 1 if result.found else 0}
