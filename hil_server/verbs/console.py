"""`hil-server console`: serves the pages of the web console until Ctrl-C."""

import argparse
import secrets
from functools import partial
from pathlib import Path

from hil_server import interrupts
from hil_server.errors import UsageError

GROUP = "live control"
ORDER = 150
SUMMARY = "serves the web console"
EXAMPLES = (
    ("hil-server console", "the live run, on http://127.0.0.1:8780"),
    ("hil-server console runs/first/run.mcap", "opens a log in the replay view"),
    ("hil-server console --host 0.0.0.0 --token-file token", "for other machines"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server console`."""
    from hil_server.bus.wire import COMMAND_ADDRESS, HAND_ADDRESS, TELEMETRY_ADDRESS

    parser.add_argument("log", nargs="?", metavar="LOG", help="log that the replay view opens")
    parser.add_argument("--logs", metavar="DIR", default="runs", help="folder with the logs of the replay view (default: runs)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to serve on (default: 127.0.0.1); any other requires a token, which is printed"
    )
    parser.add_argument("--port", type=int, default=8780, help="port to serve on (default: 8780)")
    parser.add_argument("--name", action="append", default=[], help="host name by which other machines reach this one; may be repeated")
    parser.add_argument("--token-file", metavar="FILE", help="file with the token (default: a new one at each start)")
    parser.add_argument("--telemetry", default=TELEMETRY_ADDRESS, help="telemetry address of the run")
    parser.add_argument("--command", default=COMMAND_ADDRESS, help="command address of the run")
    parser.add_argument("--hand", default=HAND_ADDRESS, help="hand-controller address of the run, for rehearsals")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)  # process with which it ends


def run(args: argparse.Namespace) -> int:
    """Serves the pages until Ctrl-C; returns the exit code."""
    from hil_server.bus.wire import is_loopback
    from hil_server.config.kinds import a_log
    from hil_server.workers import die_with

    if args.log:
        a_log(args.log)
    if not 1 <= args.port <= 65535:
        raise UsageError(f"--port: {args.port} must be within 1 ... 65535")
    try:
        from hil_server.console.pages import serve
    except ModuleNotFoundError as error:
        from hil_server.host.installation import with_group

        raise UsageError(f"the console needs {error.name}: {with_group('console')}") from None
    local = is_loopback(args.host)
    token = token_of(args.token_file, "--token-file") if args.token_file or not local else ""
    begins = partial(print, f"console on http://{args.host}:{args.port}/{f'?token={token}' if token else ''}", flush=True)
    if args.parent:
        die_with(args.parent)
    with interrupts.ended_by_a_press():
        serve(args, token, begins)
    return 0


def token_of(file: str | None, option: str) -> str:
    """Token from the file that `option` names; without a file a new one. Raises UsageError."""
    if file is None:
        return secrets.token_urlsafe(24)
    try:
        token = Path(file).read_text().strip()
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from None
    if len(token) < 16 or not token.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"{option} {file}: a token has at least 16 letters, digits, - and _")
    return token
