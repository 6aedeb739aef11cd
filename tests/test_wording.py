"""Plain English: words and phrases that no page, help text, message, docstring, comment or test may have, each with a better one."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "DECISIONS.md", "docs", "hil_server", "rt_kernels", "drivers", "tools",
          "stand_configs", "deploy", "tests")  # fmt: skip
KINDS = {".md", ".py", ".pyi", ".pyx", ".pxd", ".toml", ".json", ".js", ".html", ".css", ".sh", ".service", ".ipynb"}
# What is refused (a regular expression, whole words, either case) → what to write instead.
REFUSED = {
    "anew": "again, restarted, rebuilt",
    "go on(?! the bus)|goes on|went on|going on|gone on": "continue",
    "nobody": "no part, no client, none, not signed ...",
    "whoever": "the reader, the owner, a client that ...",
    "said|unsaid": "reported, given, printed",
    "comes? of it|came of it|what (?:becomes|became) of": "result, outcome, verdict",
    "of (?:its|their) own accord": "by itself",
    "foretold": "predicted",
    "(?:is|are|was|were) told(?! apart)": "is called with, receives, is set to",
    "may fail how": "failure modes",
    "takes? the delay of the loop out": "compensates loop delay in",
    "flies it, in one": "the page from which you fly it",
    "each with its remedy": "with the fix for each",
    "whatever pulls": "regardless of load",
    "as fast as it goes": "faster than real time",
    "the way of a sample": "data flow",
    "sizes are usual": "typical values",
    "however many browsers": "all browsers share one bus subscription",
    "on a desk and on a phone|in the light and in the dark": "responsive, light and dark themes",
    "is not to be flown again": "need not be rerun from the start",
    "fails nothing": "does not fail the run",
    "what rings": "structural modes",
    "what rubs": "contact friction",
    "bits are those of before": "results are bit-identical to",
    "go home|goes home": "returns to its home position",
    "cannot happen happened": "internal consistency check failed",
    "is no truth": "is not a condition",
    "is none of": "unsupported, allowed are",
    "without the interpreter": "in C, without the GIL",
}
PATTERNS = {re.compile(rf"(?<![\w$])(?:{phrase})(?!\w)".replace(" ", " +"), re.IGNORECASE): better for phrase, better in REFUSED.items()}
LINE_BREAK = re.compile(r"""["']?[ \t]*\n[ \t]*(?:#+ |// |\* |f?["'](?=\w))?[ \t]*""")


def files():
    tracked = subprocess.run(["git", "ls-files", "--", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        if Path(name).suffix in KINDS and not ROOT.joinpath(name).samefile(__file__):
            yield name


def refused(text):
    """Line, phrase and what to write instead, of everything in a text that is refused; phrases may go over the end of a line."""
    starts = [0]
    flat = ""
    for i, part in enumerate(LINE_BREAK.split(text)):
        flat += (" " if i else "") + part
        starts.append(len(flat))
    for pattern, better in PATTERNS.items():
        for match in pattern.finditer(flat):
            yield sum(start <= match.start() for start in starts), match[0], better


@pytest.mark.parametrize("place", PLACES)
def test_no_refused_word(place):
    own = [name for name in files() if name == place or name.startswith(f"{place}/")]
    hits = [f"{name}:{line}: {phrase!r}: write {better}"
            for name in own for line, phrase, better in refused(ROOT.joinpath(name).read_text())]  # fmt: skip
    assert own and not hits, "\n".join(hits)


def test_the_help_has_no_refused_word(capsys):
    from hil_server import cli

    for arguments in ([], *([name] for name in cli.offered())):
        assert cli.main([*arguments, "--help"]) == 0
    assert not list(refused(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nThe log goes\n    on, b", 2),
        ("x = 1\n# built\n# anew in each tick", 3),
        ('say("what became "\n    "of it")', 1),
        ("Nobody reads", 1),
    ],
)
def test_the_search_finds_it(text, line):
    assert [found for found, *_ in refused(text)] == [line]
    assert not list(refused("It continues. The fields go on the bus. saidas, dialogue.goes_on"))
