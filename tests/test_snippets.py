"""Every command and snippet of README.md and `docs/`, run as it stands: tools/run_snippets.py says how a page marks them.

A page is run in order in a copy of the tree. What takes longer than some ten seconds or is live gives way to its stand-in; `python
tools/run_snippets.py --clone FOLDER` runs all of it on a fresh clone.
"""

import os
import re
import shutil
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from hil_server import cli
from hil_server.errors import UsageError
from tools import run_snippets
from tools.run_snippets import Block, Runner, SnippetError, blocks, commands, toml_faults

ROOT = Path(__file__).resolve().parent.parent
PAGES = run_snippets.pages()
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
ALL = [block for page in PAGES for block in blocks(page)]
RUN = sorted({b.page for b in ALL if b.kind in ("sh", "python") and b.marked("not run") is None and b.marked("in ") is None})
TOML = [b for b in ALL if b.kind == "toml"]
INLINE = [(str(page.relative_to(ROOT)), " ".join(code.split())) for page in (*PAGES, ROOT / "CONTRIBUTING.md")
          for code in re.findall(r"(?<!`)`((?:hil-server|python|sh|make|pip|pytest) [^`]+)`(?!`)", page.read_text())]  # fmt: skip
MARK = re.compile(
    r'not run: .{8,}|long: .{8,}|serves ".+": .+|test|stand|craft|mechanism|programme|campaign|hand controller|in tests/\S+\.py'
)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Copies of the tree that no page has changed: some thousand files each."""
    return []


@pytest.mark.parametrize("page", RUN, ids=lambda p: p.name)
def test_page(page, trees, tmp_path_factory):
    tree = trees.pop() if trees else run_snippets.copy(tmp_path_factory.mktemp("page") / "hil-server")
    before = files_of(tree)
    Runner(tree, patience_s=300.0).page(page)
    for made in set(tree.iterdir()) - before.keys():
        shutil.rmtree(made) if made.is_dir() else made.unlink()
    if files_of(tree) == before:
        trees.append(tree)


def files_of(tree):
    """Top of the tree, and time of the last change of each file; compiled modules are left out."""
    found = {path: 0 for path in tree.iterdir()}
    for folder, inner, files in os.walk(tree):
        inner[:] = [name for name in inner if name != "__pycache__"]
        found |= {Path(folder, name): Path(folder, name).lstat().st_mtime_ns for name in files}
    return found


@pytest.mark.parametrize("block", TOML, ids=lambda b: b.where)
def test_toml(block):
    assert toml_faults(block) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_marks_are_known_and_have_a_reason(page):
    text = page.read_text()
    marks = re.findall(r"<!-- snippet: (.*?) -->", text)
    assert [m for m in marks if not MARK.fullmatch(m)] == []
    assert len(marks) == sum(1 for b in blocks(page) if b.mark), "a mark stands on the line before its block"
    assert [b.where for b in blocks(page) if b.kind not in ("sh", "python", "toml", "text", "cython")] == []
    for mark in marks:
        assert not mark.startswith("in ") or (ROOT / mark.removeprefix("in ")).is_file()
    # what looks like a command is one: nothing to paste hides in a block that is not run
    shown = [line for b in blocks(page) if b.kind == "text" for line in b.text.splitlines()]
    shown += re.findall(r"^(?: {4}|\t)(\S.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    assert [line for line in shown if re.match(r"(\$ )?(hil-server|python3?|sh|pip|make|git|sudo) ", line)] == []


@pytest.mark.parametrize("page, code", INLINE, ids=[f"{page}: {code}" for page, code in INLINE])
def test_a_command_in_a_sentence_could_be_typed(page, code, capsys):
    """Verb, options and choices exist; words in capitals stand for something, brackets for what may be left out."""
    words = [re.sub(r"^[A-Z_]{3,}[0-9]?$|^JOINT$|^A$|^B$", "1", word.strip("[]")) for word in code.replace("LOG...", "LOG").split()]
    if words[0] == "hil-server":
        words = [word.strip("'\"") for word in words[1:] if word not in ("...", "…")]
        if words[-1].startswith("--") and f"{words[-1]} ..." in code:
            words.append("1")
        try:
            asked = cli._parser(words).parse_args(words)
        except SystemExit as error:
            assert error.code == 0, capsys.readouterr().err
            return
        except UsageError:  # a verb by itself names the verb
            assert len(words) == 1 and words[0] in cli.offered()
            return
        assert asked.run
    elif words[:2] == ["python", "-m"]:
        assert find_spec(words[2])
    elif words[0] in ("python", "sh"):
        text = (ROOT / words[1]).read_text()
        assert [w for w in words[2:] if w.startswith("--") and f'"{w}"' not in text] == [] or words[1] == "setup.py"
    elif words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text()
    elif words[0] == "pip":
        groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert all(group in groups for group in re.findall(r"\[(\w+)\]", code))
    else:
        assert [w for w in words[1:] if "/" in w and not (ROOT / w).exists()] == []


# ----------------------------------------------------------------------------------------------- does the runner see what is wrong?
def page_of(text, folder):
    page = folder / "page.md"
    page.write_text(text)
    return page


@pytest.fixture
def runner(tmp_path, monkeypatch):
    monkeypatch.setattr(run_snippets, "ROOT", tmp_path)
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    binaries.joinpath("python").symlink_to(sys.executable)
    return Runner(tmp_path, patience_s=20.0)


@pytest.mark.parametrize(
    "text, reported",
    [
        ("```sh\ntrue\nfalse\n```\n", "ended with 1, not 0:\nfalse"),
        ("```sh\ntrue  # exit code 2: refused\n```\n", "ended with 0, not 2"),
        ("```sh\nno-such-command\n```\n", "ended with 127"),
        ("<!-- snippet: long: waits -->\n```python\n1 / 0\n```\n```sh\nfalse\n```\n", "page.md:6: ended with 1"),
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "page.md:6: ended with 1"),
        ("1. In a list:\n\n   ```sh\n   false\n   ```\n", "page.md:4"),
        ("```sh\ncat > made <<'END'\n1\nEND\ngrep 2 made\n```\n", "grep 2 made"),
        ("<!-- snippet: long: takes ages; instead: false -->\n```sh\ntrue\n```\n", "false"),
    ],
)
def test_a_wrong_snippet_is_found(text, reported, runner, tmp_path):
    with pytest.raises(SnippetError, match=re.escape(reported)):
        runner.page(page_of(text, tmp_path))


def test_right_snippets_pass_in_one_session(runner, tmp_path):
    text = "```sh\nmkdir in && cd in\nx=5\n```\n```sh\n[ $x = 5 ] && [ ${PWD##*/} = in ]\n"
    text += "exit_code() { return 3; }\nexit_code  # exit code 3\n```\n"
    runner.page(page_of(text + "<!-- snippet: not run: needs a stand -->\n```sh\nfalse\n```\n", tmp_path))
    assert [command for _, _, command in runner.times][-1] == "exit_code  # exit code 3"
    with pytest.raises(SnippetError, match="does not end"):
        list(commands("cat <<END\nand no end"))


@pytest.mark.parametrize(
    "kind, text, reported",
    [
        ("test", "[telemetry]\npublsh = 'tcp://127.0.0.1:1'", "publsh"),
        ("test", "[compensation]\npart = 'phase_lead'\norder = 3", "order"),
        ("stand", "[limits]\nstart_tolerance_m = 'much'", "start_tolerance_m"),
        ("", "[telemetry]\nsamples_per_message = 0", "samples_per_message"),
        ("", "name = 'x'\nmass_kg = 7000.0\ninertia_kg_m2 = [4235.0, 30700.0]", "inertia_kg_m2"),
        ("", "x = 1", "what kind"),
        ("hand controller", "station = 7\n", "station"),
        ("test", "[test\n", "line 1"),
    ],
)
def test_wrong_toml_is_found(kind, text, reported):
    assert reported in " ".join(toml_faults(Block(ROOT / "page.md", 1, "toml", text, kind)))
