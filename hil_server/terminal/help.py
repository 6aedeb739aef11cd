"""Help and usage errors of the command line: verbs in groups, examples for each verb. Light to import."""

import argparse
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

from hil_server.errors import UsageError

# Headings of the verbs, in the order of the help.
GROUPS = ("run a test", "look at results", "files and parts", "stand and host", "live control")
WIDTH = 110
COLUMN = 18  # where the summaries begin
EXIT_CODES = (
    "exit codes: 0 completed, 1 a verdict is negative or a requirement is violated, 2 usage or configuration, 3 tripped or not recorded, "
    "4 device absent or lost, 5 internal error, 130 ended by Ctrl-C"
)
FIRST = (
    ("hil-server simulate docking --out runs/first", "a first docking, with a report in runs/first/run.html"),
    ("hil-server simulate --help", "options of a verb, with examples"),
)


class Parser(argparse.ArgumentParser):
    """As argparse has it; the text behind the options keeps its lines, a usage error raises UsageError with an example of the verb."""

    def __init__(self, **more: Any) -> None:
        super().__init__(formatter_class=_Formatter, **more)

    def error(self, message: str) -> NoReturn:
        """Raises UsageError: what is wrong, an example, where the options are listed."""
        lines = [line.strip().partition("  # ")[0].strip() for line in (self.epilog or "").splitlines() if line.startswith("  hil-server")]
        example = f"\nexample: {lines[0]}" if lines else ""
        raise UsageError(f"{self.prog}: {message.removeprefix('argument ')}{example}\n{self.prog} --help lists all options")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of a fixed width; the verbs are listed by `overview`."""

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog, width=WIDTH, max_help_position=30, **more)

    def add_argument(self, action: argparse.Action) -> None:
        """Adds the line of an option; not of VERB."""
        if not isinstance(action, argparse._SubParsersAction):
            super().add_argument(action)


def overview(known: Mapping[str, ModuleType]) -> str:
    """The verbs under the headings of their groups, examples, exit codes."""
    parts = []
    for group in GROUPS:
        rows = [_row(name, module.SUMMARY) for name, module in known.items() if module.GROUP == group]
        if rows:
            parts.append("\n".join([f"{group}:", *rows]))
    return "\n\n".join([*parts, examples(FIRST), textwrap.fill(EXIT_CODES, WIDTH)])


def _row(name: str, summary: str) -> str:
    return textwrap.fill(summary, WIDTH, initial_indent=f"  {name:{COLUMN - 2}s}", subsequent_indent=" " * COLUMN)


def examples(lines: Sequence[tuple[str, str]]) -> str:
    """Command lines with what each does, as the end of a help."""
    wide = max(len(command) for command, _ in lines)
    if wide + max(len(what) for _, what in lines) + 6 <= WIDTH:
        return "\n".join(["examples:", *(f"  {command:{wide}s}  # {what}" for command, what in lines)])
    return "\n".join(["examples:", *(f"  # {what}\n  {command}" for command, what in lines)])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest known word as the rest of a message; empty where none is near."""
    close = get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""
