"""`hil-server simulate`: the test with everything in process."""

import argparse
from typing import Any

from hil_server.terminal.outcome import add_configuration_arguments, add_run_arguments, perform

ORDER = 20
SUMMARY = "the same test with everything in process, as fast as it goes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server simulate`."""
    add_configuration_arguments(parser)
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Simulates the test; returns its summary."""
    from hil_server.run.session import simulate

    return perform(args, simulate, live=False)
