"""The one command, `hil-server VERB`.

A verb is a module with `add_arguments(parser)` and `run(args)`; `run` returns the exit code, or a summary (a dict) with its `exit_code`,
which `--json FILE` writes. Only the verb that was asked for is imported, so that `--help` costs nothing.
Exit codes: see `hil_server.errors`.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from hil_server.errors import HilError, UsageError
from hil_server.host.realtime_host import take_ordinary_scheduling

INTERRUPTED = 130
EXIT_CODES = (
    "exit codes: 0 ended as asked, 1 a verdict is negative, 2 usage or configuration, 3 tripped, 4 device not there or lost, "
    "5 internal error"
)


class Verb(NamedTuple):
    """module: has `add_arguments` and `run`. A verb is offered when its module is installed."""

    module: str
    summary: str


VERBS: dict[str, Verb] = {
    "run": Verb("hil_server.verbs.run", "live test, or a programme of tests, on the stand that CONFIG names"),
    "simulate": Verb("hil_server.verbs.simulate", "the same test with everything in process, as fast as it goes"),
    "replay": Verb("hil_server.verbs.replay", "a logged run again: bit-exact check, what-if, paced playback"),
    "check": Verb("hil_server.verbs.check", "configuration, installation, and what the host lacks for real time"),
    "predict": Verb("hil_server.analysis.predict", "before the test: restitution, critical delay, phase budget"),
    "list": Verb("hil_server.verbs.list", "parts and their parameters"),
    "report": Verb("hil_server.verbs.report", "plots and figures of a run"),
    "export": Verb("hil_server.verbs.export", "a log for other tools"),
    "compare": Verb("hil_server.analysis.compare", "two runs side by side"),
    "identify": Verb("hil_server.analysis.identify", "delay and response of the drives out of a log"),
    "calibrate": Verb("hil_server.analysis.calibrate", "force sensor: bias, payload, matrix"),
    "import": Verb("hil_server.analysis.foreign_logs", "a foreign recording of the wrench as a log that replays"),
    "workspace": Verb("hil_server.analysis.workspace", "what the platform can reach"),
    "campaign": Verb("hil_server.campaign.verb", "many simulated runs: sampling, execution, statistics"),
    "console": Verb("hil_server.console.verb", "the web console"),
    "command": Verb("hil_server.operator_desk.command_verb", "one command to a run, acknowledged by its loop"),
    "rehearsal": Verb("hil_server.analysis.rehearsal_verb", "score sheets of berthing attempts, and their trend"),
    "hand-controller": Verb("hil_server.operator_desk.verb", "sends a hand controller's motion to the server"),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one verb; returns the exit code. Never lets an exception out."""
    take_ordinary_scheduling()
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        args = _parser(arguments).parse_args(arguments)
        if args.version:
            print(_version())
            return 0
        if not hasattr(args, "run"):
            _parser([]).print_help()
            return 2
        outcome = args.run(args)
        if not isinstance(outcome, dict):
            return int(outcome or 0)
        if args.json:
            write_json(args.json, outcome)
        return int(outcome.get("exit_code", 0))
    except SystemExit as error:  # argparse: 0 after --help, 2 after a usage error
        return int(error.code or 0)
    except HilError as error:
        _say(str(error))
        _write_error(arguments, error, error.exit_code)
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            raise
        # a file that cannot be read or written is nobody's mistake in here
        _say(f"{error.filename}: {error.strerror or error}")
        _write_error(arguments, error, UsageError.exit_code)
        return UsageError.exit_code
    except Exception as error:  # the program's last line of defence: exit code 5 and a file instead of a traceback
        _say(f"internal error: {type(error).__name__}: {error}\nthe details are in {_keep_traceback()}; please report it with this file")
        _write_error(arguments, error, 5)
        return 5


def write_json(file: str, summary: dict[str, Any]) -> None:
    """The machine-readable summary. Paths become text, NumPy values become numbers and lists, NaN becomes null."""
    import json
    import math

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(k): plain(v) for k, v in value.items()}
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, list | tuple | set | frozenset):
            return [plain(v) for v in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    try:
        Path(file).write_text(json.dumps(plain(summary), indent=2) + "\n")
    except OSError as error:
        from hil_server.errors import UsageError

        raise UsageError(f"--json {file}: cannot be written: {error.strerror}") from error


def add_configuration_arguments(parser: argparse.ArgumentParser) -> None:
    """CONFIG, --set and --out: the same for every verb that runs a test."""
    parser.add_argument("config", nargs="?", metavar="CONFIG", help="test file (default: a shipped docking on the virtual stand)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key, as compensation.part=none")
    parser.add_argument("--out", metavar="DIR", help="folder for log and report (default: runs/ and the time)")


def offered() -> dict[str, Verb]:
    """The verbs whose modules are installed."""
    return {name: verb for name, verb in VERBS.items() if _installed(verb.module)}


def _installed(module: str) -> bool:
    """Whether the module's file lies there; does not import anything."""
    here = Path(__file__).parent.joinpath(*module.split(".")[1:])
    return here.with_suffix(".py").exists() or here.joinpath("__init__.py").exists()


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    """The parser; only the verb that is in `arguments` brings its own arguments in."""
    about = "Real-time hardware-in-the-loop server for docking stands."
    parser = argparse.ArgumentParser(prog="hil-server", description=about, epilog=EXIT_CODES)
    parser.add_argument("--version", action="store_true", help="shows the version and ends")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB")
    asked = next((a for a in arguments if not a.startswith("-")), None)
    for name, verb in offered().items():
        sub = verbs.add_parser(name, help=verb.summary, description=verb.summary[0].upper() + verb.summary[1:] + ".")
        sub.add_argument("--json", metavar="FILE", help="writes the summary for machines")
        if name == asked:
            module = importlib.import_module(verb.module)
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"hil-server {version('hil-server')}"
    except PackageNotFoundError:
        return "hil-server (not installed: running from its source folder)"


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _write_error(arguments: list[str], error: Exception, exit_code: int) -> None:
    """A script that asked for --json finds the error there as well."""
    file = next((a.partition("=")[2] or b for a, b in zip(arguments, [*arguments[1:], ""], strict=True) if a.split("=")[0] == "--json"), "")
    if not file:
        return
    try:
        write_json(file, {"exit_code": exit_code, "error": type(error).__name__, "faults": getattr(error, "faults", [str(error)])})
    except HilError as second:
        _say(str(second))


def _keep_traceback() -> str:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="hil-server-error-", suffix=".txt", delete=False) as file:
        file.write(f"{sys.version}\n{sys.argv}\n{traceback.format_exc()}")
    return file.name
