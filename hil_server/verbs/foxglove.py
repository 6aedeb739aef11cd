"""`hil-server foxglove`: the live run for the Foxglove app, until Ctrl-C."""

import argparse
import time

from hil_server import interrupts
from hil_server.errors import UsageError

GROUP = "live control"
ORDER = 155
SUMMARY = "serves the live run to the Foxglove app"
EXAMPLES = (
    ("hil-server foxglove", "Foxglove: Open connection, ws://127.0.0.1:8765"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server foxglove`."""
    from hil_server.bus.wire import COMMAND_ADDRESS, TELEMETRY_ADDRESS

    parser.add_argument("--host", default="127.0.0.1", help="address to serve on (default: 127.0.0.1); any other requires a key")
    parser.add_argument("--port", type=int, default=8765, help="port to serve on (default: 8765; 0: any free one)")
    parser.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="URL",
        help="page that may connect in addition to the Foxglove app; may be repeated",
    )
    parser.add_argument(
        "--key-file", metavar="FILE", help="file with the key that the address must have (default for other machines: a new one)"
    )
    parser.add_argument("--telemetry", default=TELEMETRY_ADDRESS, help="telemetry address of the run")
    parser.add_argument("--command", default=COMMAND_ADDRESS, help="command address of the run")


def run(args: argparse.Namespace) -> int:
    """Serves until Ctrl-C; returns the exit code."""
    if not 0 <= args.port <= 65535:
        raise UsageError(f"--port: {args.port} must be within 0 ... 65535")
    from hil_server.bus.wire import is_loopback
    from hil_server.verbs.console import token_of
    from hil_server.viewers.foxglove_live import Bridge

    key = token_of(args.key_file, "--key-file") if args.key_file or not is_loopback(args.host) else ""
    bridge = Bridge(args.telemetry, args.command, args.host, args.port, lambda text: print(text, flush=True), origins=args.origin, key=key)
    print(f"Foxglove: Open connection, Foxglove WebSocket, ws://{args.host}:{bridge.port}{f'/?key={key}' if key else ''}", flush=True)
    try:
        with interrupts.ended_by_a_press():
            while True:
                time.sleep(3600.0)
    finally:
        bridge.close()
    return 0
