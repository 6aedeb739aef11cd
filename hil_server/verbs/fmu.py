"""`hil-server fmu list|trust|forget`: the list of FMUs that may run when a log names them."""

import argparse

from hil_server.values import Document

GROUP = "files and parts"
ORDER = 70
SUMMARY = "manages the list of FMUs that may run when a log names them"
EXAMPLES = (
    ("hil-server fmu trust controller.fmu", "adds its SHA-256 to your list"),
    ("hil-server fmu list", "shows the list"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server fmu`."""
    parser.add_argument(
        "what", choices=("list", "trust", "forget"), help="list: shows your list; trust FILE: adds its SHA-256; forget: removes it"
    )
    parser.add_argument("names", nargs="*", metavar="FILE", help="FMU file (.fmu); for forget also a SHA-256 or a name from the list")


def run(args: argparse.Namespace) -> Document:
    """Shows or changes the list; returns it."""
    from pathlib import Path

    from hil_server.config import trusted_fmus
    from hil_server.errors import UsageError
    from hil_server.terminal.tables import print_table
    from rt_kernels.control.fmu.description import sum_of

    if args.what != "list" and not args.names:
        raise UsageError(f"fmu {args.what}: FILE is missing, e.g. hil-server fmu {args.what} controller.fmu")
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
