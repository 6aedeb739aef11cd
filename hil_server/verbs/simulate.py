"""`hil-server simulate`: the test with everything in process."""

import argparse
from typing import Any

from hil_server.terminal.outcome import add_configuration_arguments, add_from_argument, add_run_arguments, go_on, perform

ORDER = 20
SUMMARY = "the same test with everything in process, as fast as it goes"
REMAINS = "nothing was armed, nothing has moved, there is no log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server simulate`."""
    add_configuration_arguments(parser)
    add_run_arguments(parser)
    add_from_argument(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Simulates the test, or goes on from a tick of a logged one; returns its summary."""
    from hil_server.run.session import simulate

    return go_on(args, simulate) if args.begin else perform(args, simulate, live=False)
