"""`hil-server fmu list|trust|forget`: the FMUs that may run when a log asks for them."""

import argparse
from typing import Any

ORDER = 35
SUMMARY = "the FMUs that may run when a log asks for them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server fmu`."""
    parser.add_argument("what", choices=("list", "trust", "forget"), help="trust FILE: its SHA-256 into your list; forget: out of it")
    parser.add_argument("names", nargs="*", metavar="FILE", help="an FMU; of forget also a SHA-256 or a name of the list")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Shows or changes the list; returns it."""
    from pathlib import Path

    from hil_server.config import trusted_fmus
    from hil_server.errors import UsageError
    from hil_server.terminal.tables import print_table
    from rt_kernels.control.fmu.description import sum_of

    if args.what != "list" and not args.names:
        raise UsageError(f"fmu {args.what}: no FILE named")
    if args.what == "list" and args.names:
        raise UsageError(f"fmu list: takes no FILE, got {args.names[0]}")
    for name in args.names:
        if args.what == "trust":
            print(f"trusted: {trusted_fmus.trust(name)}  {Path(name).name}")
            continue
        for gone in trusted_fmus.forget(sum_of(Path(name)) if Path(name).is_file() else name):
            print(f"forgotten: {gone}")
    found = trusted_fmus.listed()
    if args.what == "list" and found:
        print_table([(name, sum_) for sum_, name in found.items()], ("FMU", "SHA-256"))
    elif args.what == "list":
        print(f"none in {trusted_fmus.list_file()}")
    return {"file": str(trusted_fmus.list_file()), "trusted": [{"sha256": sum_, "name": name} for sum_, name in found.items()]}
