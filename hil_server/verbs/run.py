"""`hil-server run`: a live test, on hardware or on the virtual stand over the wire."""

import argparse
from typing import Any

from hil_server.terminal.outcome import add_configuration_arguments, add_from_argument, add_run_arguments, go_on, perform

ORDER = 10
SUMMARY = "live test, or a programme of tests, on the stand that CONFIG names"
REMAINS = "nothing was armed, nothing has moved, there is no log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server run`."""
    add_configuration_arguments(parser)
    add_run_arguments(parser)
    parser.add_argument(
        "--prediction",
        metavar="LOG",
        action="append",
        help="simulated run of the same variant, required on hardware: its peak loads are "
        "compared with the limits (a programme: the folder of its simulation); may be given again, for other draws of the noise",
    )
    parser.add_argument("--confirm-loads", default="", metavar="REASON", help="arm without a prediction or against its loads; logged")
    parser.add_argument("--hold", action="store_true", help="a programme waits for the command start before every variant but the first")
    add_from_argument(parser)
    parser.add_argument("--force", action="store_true", help="arm although the prediction says that the contact would not be as in orbit")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the test live, or flies on from a tick of a logged run with the stand in software; returns its summary."""
    from hil_server.run.session import run_live

    return go_on(args, run_live) if args.begin else perform(args, run_live, live=True)
