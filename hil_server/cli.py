"""The one command, `hil-server VERB`.

A verb is a module of `hil_server.verbs`; that package says what it has. A summary that it returns `--json FILE` writes.
Exit codes: see `hil_server.errors`.
"""

import argparse
import importlib
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hil_server import interrupts, verbs
from hil_server.errors import ConfigurationError, HilError, UsageError
from hil_server.host.realtime_host import take_ordinary_scheduling
from hil_server.interrupts import INTERRUPTED
from hil_server.terminal.completion import asked_by_the_shell
from hil_server.terminal.help import Parser, did_you_mean, examples, overview
from hil_server.terminal.log import LEVELS, show
from hil_server.terminal.plain import plain_streams
from hil_server.values import Document

NOTHING_DONE = "nothing was changed"  # by a verb without REMAINS


def main(arguments: list[str] | None = None) -> int:
    """Runs one verb; returns the exit code. Never lets an exception out."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with plain_streams(), interrupts.owned():
        try:
            with interrupts.heard():
                code = _run(arguments)
        except BaseException as error:
            # Ctrl-C counts, whatever exception a library made of it
            code = INTERRUPTED if interrupts.stands() else _explained(arguments, error)
        if code == INTERRUPTED:
            _say(f"interrupted: {interrupts.remains() or getattr(_verb_of(arguments), 'REMAINS', NOTHING_DONE)}")
    return code


def _run(arguments: list[str]) -> int:
    """The verb that the arguments name; returns the exit code."""
    take_ordinary_scheduling()
    if line := asked_by_the_shell():
        _complete(line)
    args = _parsed(arguments)
    if args.version:
        print(_version())
        return 0
    if not hasattr(args, "run"):
        _parser([]).print_help()
        return 2
    show("debug" if args.verbose else args.log_level)
    for option in ("json", "junit"):
        if file := getattr(args, option, None):
            _refuse_unwritable(f"--{option}", Path(file), getattr(args, "out", None) or "runs/DATE-NAME")
    outcome = args.run(args)
    if not isinstance(outcome, dict):
        return int(outcome or 0)
    if args.json:
        write_json(args.json, outcome)
    return int(outcome.get("exit_code", 0))


def _explained(arguments: list[str], error: BaseException) -> int:
    """Says what ended the verb; returns the exit code."""
    if isinstance(error, SystemExit):  # argparse: 0 after --help, 2 after a usage error
        return int(error.code or 0)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, HilError):
        if isinstance(error, ConfigurationError):
            from hil_server.terminal.faults import located

            error = ConfigurationError([located(fault) for fault in error.faults])
        _say(str(error))
        _write_error(arguments, error, error.exit_code)
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError) and error.filename is not None:
        # a file that cannot be read or written is not an internal error
        _say(f"{error.filename}: {error.strerror or error}")
        _write_error(arguments, error, UsageError.exit_code)
        return UsageError.exit_code
    if isinstance(error, ImportError):
        from hil_server.host.installation import import_remedy

        if remedy := import_remedy(error):
            _say(remedy)
            _write_error(arguments, error, UsageError.exit_code)
            return UsageError.exit_code
    # everything else: exit code 5 and a file instead of a traceback
    _say(f"internal error: {type(error).__name__}: {error}\nthe details are in {_keep_traceback()}; please report it with this file")
    _write_error(arguments, error, 5)
    return 5


def _refuse_unwritable(option: str, file: Path, out: str) -> None:
    """Raises UsageError, before any work, for a result file that cannot be written after it. out: a folder that the verb makes."""
    folder = file.parent
    if not folder.exists() and (file.is_relative_to(out) or Path(out).is_relative_to(folder)):
        return
    why = ("is a folder" if file.is_dir() else "No such folder" if not folder.is_dir()
           else "Permission denied" if not os.access(file if file.exists() else folder, os.W_OK) else "")  # fmt: skip
    if why:
        raise UsageError(f"{option} {file}: cannot be written: {why}")


def write_json(file: str, summary: Document) -> None:
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
        raise UsageError(f"--json {file}: cannot be written: {error.strerror}") from error


def offered() -> dict[str, ModuleType]:
    """The verbs by their names, in the order of the help: every module of `hil_server.verbs`."""
    modules = [importlib.import_module(f"{verbs.__name__}.{module.name}") for module in pkgutil.iter_modules(verbs.__path__)]
    return {_name_of(module): module for module in sorted(modules, key=lambda module: (module.ORDER, module.__name__))}


def _name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2].rstrip("_").replace("_", "-")


def _parser(arguments: list[str]) -> Parser:
    """The parser; only the verb that is in `arguments` adds its own arguments."""
    parser = Parser(prog="hil-server", description="Real-time hardware-in-the-loop server for docking stands.")
    parser.add_argument("--version", action="store_true", help="prints the version")
    listed = parser.add_subparsers(title="verbs", metavar="VERB", parser_class=Parser)
    asked = _asked(arguments)
    known = offered()
    parser.epilog = overview(known)
    for name, verb in known.items():
        about = verb.SUMMARY[0].upper() + verb.SUMMARY[1:] + "."
        sub = listed.add_parser(name, help=verb.SUMMARY, description=about, epilog=examples(verb.EXAMPLES))
        sub.add_argument("--json", metavar="FILE", help="writes the summary as JSON")
        sub.add_argument("--log-level", choices=LEVELS, default="info", metavar="LEVEL", help=f"{', '.join(LEVELS)} (default: info)")
        sub.add_argument("--verbose", action="store_true", help="same as --log-level debug")
        if name == asked:
            verb.add_arguments(sub)
            sub.set_defaults(run=verb.run)
    return parser


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """The arguments of the command line. Raises UsageError for a verb or an option that does not exist, with the nearest one."""
    asked = _asked(arguments)
    known = offered()
    if asked is not None and asked not in known:
        raise UsageError(f"hil-server: no verb {asked!r}{did_you_mean(asked, known)}; hil-server --help lists them")
    parser = _parser(arguments)
    args, rest = parser.parse_known_args(arguments)
    if rest:
        verb = _verb_parser(parser, asked)
        options = [text for action in (verb or parser)._actions for text in action.option_strings]
        what = "no option" if rest[0].startswith("-") else "takes no argument"
        (verb or parser).error(f"{what} {rest[0]}{did_you_mean(rest[0].partition('=')[0], options)}")
    return args


def _asked(arguments: list[str]) -> str | None:
    return next((a for a in arguments if not a.startswith("-")), None)


def _verb_of(arguments: list[str]) -> ModuleType | None:
    return offered().get(_asked(arguments) or "")


def _verb_parser(parser: Parser, asked: str | None) -> Parser | None:
    choices = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    return choices.get(asked) if asked else None


def _complete(line: str) -> None:
    """Answers the shell, which asks for completions (argcomplete), and ends the process."""
    from hil_server.terminal.completion import complete

    words = line.split()[1:]
    parser = _parser(words)
    complete(parser, _verb_parser(parser, _asked(words)))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"hil-server {version('hil-server')}"
    except PackageNotFoundError:
        return "hil-server (not installed: running from its source folder)"


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _write_error(arguments: list[str], error: BaseException, exit_code: int) -> None:
    """A script that asked for --json finds the error there as well."""
    file = next((a.partition("=")[2] or b for a, b in zip(arguments, [*arguments[1:], ""], strict=True) if a.split("=")[0] == "--json"), "")
    if not file:
        return
    try:
        write_json(file, {"exit_code": exit_code, "error": type(error).__name__, "faults": getattr(error, "faults", [str(error)])})
    except HilError as second:
        if not str(error).startswith(f"--json {file}"):
            _say(str(second))


def _keep_traceback() -> str:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="hil-server-error-", suffix=".txt", delete=False) as file:
        file.write(f"{sys.version}\n{sys.argv}\n{traceback.format_exc()}")
    return file.name
