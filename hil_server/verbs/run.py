"""`hil-server run`: a live test, on hardware or on the virtual stand over the wire."""

import argparse
from pathlib import Path

from hil_server.terminal.outcome import add_configuration_arguments, add_from_argument, add_run_arguments, go_on, perform
from hil_server.values import Document

GROUP = "run a test"
ORDER = 10
SUMMARY = "runs a test live on its stand, or a programme of tests"
EXAMPLES = (
    ("hil-server run docking", "the shipped docking, on the virtual stand over the wire"),
    ("hil-server run test.toml --prediction runs/predicted/run.mcap", "on hardware, with the simulated run whose loads are checked"),
    ("hil-server run --from runs/x@contact-30s", "a rehearsal again, from 30 s before its first contact"),
)
REMAINS = "nothing was armed, nothing has moved, there is no log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server run`."""
    add_configuration_arguments(parser)
    add_run_arguments(parser)
    parser.add_argument(
        "--prediction",
        metavar="LOG",
        action="append",
        help="simulated run of the same variant, required on hardware: its peak loads are compared with the limits (programme: the "
        "folder of its simulation); may be repeated, for other draws of the noise",
    )
    parser.add_argument(
        "--confirm-loads",
        default="",
        metavar="REASON",
        help="arms without a prediction, or although its loads exceed the limits; REASON is logged",
    )
    parser.add_argument("--hold", action="store_true", help="programme: waits for the command start before each variant after the first")
    add_from_argument(parser)
    parser.add_argument("--force", action="store_true", help="arms although the predicted contact differs from the one in orbit")


def run(args: argparse.Namespace) -> Document:
    """Runs the test live, or continues a logged run with the stand in software; returns its summary."""
    from hil_server.config.kinds import a_log
    from hil_server.run.session import run_live

    for prediction in args.prediction or ():
        if not Path(prediction).is_dir():  # of a programme: its folder
            a_log(prediction)
    return go_on(args, run_live) if args.begin else perform(args, run_live, live=True)
