"""`hil-server tune [NAME VALUE]`: changes a parameter of the live run; without a name: lists what can be changed."""

import argparse

from hil_server.values import Document

GROUP = "live control"
ORDER = 165
SUMMARY = "changes a parameter of the live run, or lists what can be changed"
EXAMPLES = (
    ("hil-server tune compensation.lead_factor 0.9", "changes to 0.9 at the declared rate"),
    ("hil-server tune", "lists all parameters that can be changed, with value and limits"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server tune`."""
    from hil_server.bus.wire import COMMAND_ADDRESS

    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="parameter, e.g. compensation.lead_factor (default: lists all that can be changed)"
    )
    parser.add_argument("value", nargs="?", type=float, metavar="VALUE", help="new value, in the unit of the parameter")
    parser.add_argument("--address", default=COMMAND_ADDRESS, metavar="ADDRESS", help="command address of the run")


def run(args: argparse.Namespace) -> Document:
    """Lists the tunable parameters, or changes one and waits for the loop; returns the list or the acknowledgement."""
    from hil_server.client import Client
    from hil_server.errors import UsageError
    from hil_server.terminal.tables import print_table

    if args.name is not None and args.value is None:
        raise UsageError(
            f"tune: {args.name}: the new value is missing, e.g. hil-server tune {args.name} 0.9; hil-server tune lists the limits"
        )
    with Client(command=args.address) as client:
        if args.name is not None:
            with client.visit():
                taken = client.tune(args.name, args.value)
            print(f"{args.name}: changes to {args.value:g} from tick {taken.tick}, {taken.t:.3f} s")
            return {"parameter": args.name, "value": args.value, "tick": taken.tick, "t": taken.t, "exit_code": 0}
        tunables = client.describe()["tunables"]
    rows = [
        (t["name"], f"{t['value']:g}", t["unit"], f"{t['low']:g} ... {t['high']:g}", f"{t['rate_per_s']:g} per s", phases(t["phases"]))
        for t in tunables
    ]
    head = ("parameter", "value", "unit", "limit", "moves at", "in phases")
    print_table(rows, head) if rows else print("This run has no parameters that can be changed.")
    return {"tunables": tunables, "exit_code": 0}


def phases(names: list[str]) -> str:
    """Phases in which a parameter may be changed, in words."""
    return ", ".join(names) or "all"
