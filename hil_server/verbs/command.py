"""`hil-server command NAME [VALUE...]`: sends one command to the live run, whose loop acknowledges it."""

import argparse

from hil_server.values import Document

GROUP = "live control"
ORDER = 160
SUMMARY = "sends one command to the live run and waits for its acknowledgement"
EXAMPLES = (
    ("hil-server command hold", "stops the motion; resume continues it"),
    ("hil-server command inject_fault sensor_bias 2 300", "a fault by its name, with index and value"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server command`."""
    from hil_server.bus.commands import ARGUMENTS
    from hil_server.bus.wire import COMMAND_ADDRESS

    shown = "; ".join(" ".join([name, *(a.name.upper() for a in arguments)]) for name, arguments in ARGUMENTS.items())
    parser.add_argument("name", metavar="NAME", help=f"one of: {shown}")
    given = "arguments in this order: numbers, or names, e.g. of a fault"
    parser.add_argument("arguments", nargs="*", type=_argument, metavar="VALUE", help=given)
    parser.add_argument("--take-over", action="store_true", help="first takes the desk over from a client that no longer responds")
    parser.add_argument("--address", default=COMMAND_ADDRESS, metavar="ADDRESS", help="command address of the run")


def _argument(text: str) -> float | str:
    """A number, else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def run(args: argparse.Namespace) -> Document:
    """Sends the command and waits for the loop; returns its acknowledgement."""
    from hil_server.bus.commands import ARGUMENTS, encode
    from hil_server.client import Client

    encode(args.name, args.arguments)
    names = [argument.name for argument in ARGUMENTS[args.name]]
    with Client(command=args.address, name=_who()) as client, client.visit():
        if args.take_over:
            client.take_desk(over=True)
        taken = client.command(args.name, **dict(zip(names, args.arguments, strict=False)))
    cleared = f"; cleared: {', '.join(taken.cleared)}" if taken.cleared else ""
    print(f"{taken.command}: taken at {taken.t:.3f} s, tick {taken.tick}{cleared}")
    return {"command": taken.command, "tick": taken.tick, "t": taken.t, "cleared": list(taken.cleared), "exit_code": 0}


def _who() -> str:
    """User and machine, as the log names who commanded."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
