"""`hil-server console`: serves the pages until Ctrl-C."""

import argparse
import secrets
from functools import partial
from pathlib import Path

from hil_server import interrupts
from hil_server.errors import UsageError

ORDER = 150
SUMMARY = "the web console"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server console`."""
    from hil_server.telemetry.wire import COMMAND_ADDRESS, HAND_ADDRESS, TELEMETRY_ADDRESS

    parser.add_argument("log", nargs="?", metavar="LOG", help="log to begin with in the replay view")
    parser.add_argument("--logs", metavar="DIR", default="runs", help="folder whose logs the replay view offers (default: runs)")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve on; off loopback a token is required and printed")
    parser.add_argument("--port", type=int, default=8780, help="port to serve on (default: 8780)")
    parser.add_argument("--name", action="append", default=[], help="host name under which other machines reach this one")
    parser.add_argument("--token-file", metavar="FILE", help="file with the token (default: a new one at every start)")
    parser.add_argument("--telemetry", default=TELEMETRY_ADDRESS, help="telemetry address of the server")
    parser.add_argument("--command", default=COMMAND_ADDRESS, help="command address of the server")
    parser.add_argument("--hand", default=HAND_ADDRESS, help="hand-controller address of the server, for rehearsals")


def run(args: argparse.Namespace) -> int:
    """Serves the pages until Ctrl-C; returns the exit code."""
    from hil_server.console.access import is_loopback

    if args.log and not Path(args.log).is_file():
        raise UsageError(f"no such log: {args.log}")
    if not 1 <= args.port <= 65535:
        raise UsageError(f"--port: {args.port} is not within 1 ... 65535")
    try:
        from hil_server.console.pages import serve
    except ModuleNotFoundError as error:
        from hil_server.host.installation import with_group

        raise UsageError(f"the console needs {error.name}: {with_group('console')}") from None
    local = is_loopback(args.host)
    token = token_of(args.token_file, "--token-file") if args.token_file or not local else ""
    begins = partial(print, f"console on http://{args.host}:{args.port}/{f'?token={token}' if token else ''}", flush=True)
    with interrupts.ended_by_a_press():
        serve(args, token, begins)
    return 0


def token_of(file: str | None, option: str) -> str:
    """The secret in the file that `option` names; a new one without a file. Raises UsageError."""
    if file is None:
        return secrets.token_urlsafe(24)
    try:
        token = Path(file).read_text().strip()
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from None
    if len(token) < 16 or not token.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"{option} {file}: a token has at least 16 letters, digits, - and _")
    return token
