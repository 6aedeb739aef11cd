"""`hil-server simulate`: a test in one process, faster than real time."""

import argparse

from hil_server.terminal.outcome import add_configuration_arguments, add_from_argument, add_run_arguments, go_on, perform
from hil_server.values import Document

GROUP = "run a test"
ORDER = 20
SUMMARY = "runs a test in one process, faster than real time"
EXAMPLES = (
    ("hil-server simulate docking --out runs/first", "the shipped docking; log and report in runs/first"),
    ("hil-server simulate docking --set compensation.part=none", "without delay compensation"),
    ("hil-server simulate --from runs/first@contact-1s --set active_vehicle.mass_kg=9000", "continues a logged run with another mass"),
)
REMAINS = "nothing was armed, nothing has moved, there is no log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server simulate`."""
    add_configuration_arguments(parser)
    add_run_arguments(parser)
    add_from_argument(parser)


def run(args: argparse.Namespace) -> Document:
    """Simulates the test, or continues a logged one; returns its summary."""
    from hil_server.run.session import simulate

    return go_on(args, simulate) if args.begin else perform(args, simulate, live=False)
