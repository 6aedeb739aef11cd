"""`hil-server run`: a live test, on hardware or on the virtual stand over the wire."""

import argparse
from typing import Any

from hil_server.cli import add_configuration_arguments
from hil_server.verbs.outcome import add_run_arguments, print_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_configuration_arguments(parser)
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from hil_server.config import load_test
    from hil_server.session import Options, run_live

    summary = run_live(load_test(args.config, args.set), Options(out=args.out, quiet=args.quiet, report=not args.no_report))
    print_summary(summary)
    return summary
