"""The commands and snippets of README.md and `docs/`, run as they stand, page by page, in order: `python tools/run_snippets.py [PAGE ...]`.

Without a word more: in a copy of this tree, with its kernels and its environment, as `tests/test_snippets.py` does it; what is marked
`long` gives way to its stand-in. `--long`: what is marked `long` runs itself, too. `--clone FOLDER`: in a fresh `git clone` of this
tree in FOLDER, which the page README.md builds with an environment of its own; the pages after it use that one. `--list`: every block
that is not run, and why.

How a page says what a block is:

    ```sh        commands, pasted into a shell in the folder of the project; one that is to fail ends with `# exit code 1`
    ```python    one after the other in one session
    ```toml      configuration: a whole file is loaded, a part of one is compared with the declared keys
    ```text      what a command prints, or a file of another system: not run

and, invisible, on the line before it, `<!-- snippet: ... -->` with one of

    not run: REASON                     needs hardware, root, another machine or a desktop
    long: REASON                        takes more than some ten seconds; not in the tests
    long: REASON; instead: COMMAND      the same, and COMMAND leaves the same files behind (of sh)
    serves "TEXT": REASON               runs until the page is done, ready when it prints TEXT; as `long`
    KIND                                of a TOML block that does not show it: test, stand, craft, mechanism, programme, campaign,
                                        hand controller
    in FILE                             the test that takes the block out of the page
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"(?:^ *<!-- snippet: (?P<mark>[^\n]*?) -->\n+)?^(?P<indent> *)```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)")
KINDS = ("test", "stand", "craft", "mechanism", "programme", "campaign")
NOT_COPIED = (".git", ".venv", ".ci", "build", "runs", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", "*.egg-info")
SESSION = """
import json, sys, traceback
names = {}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "snippet", "exec"), names)
        code = 0
    except BaseException:
        traceback.print_exc()
        code = 1
    print(f"\\n\\x01{code}", flush=True)
"""


class SnippetError(Exception):
    """A snippet that does not do what its page says, with page, line, command and what it printed."""


@dataclass(frozen=True)
class Block:
    """One block of a page. line: of its first line of text."""

    page: Path
    line: int
    kind: str
    text: str
    mark: str = ""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def marked(self, word: str) -> str | None:
        """What stands behind `word` in the mark, None if it begins otherwise."""
        return self.mark[len(word):].lstrip(": ") if self.mark.startswith(word) else None


def pages() -> list[Path]:
    """README first: it makes the environment that the others use."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        indent = len(found["indent"])
        lines = [line[indent:] for line in found["text"].splitlines()]
        yield Block(page, text.count("\n", 0, found.start("text")) + 1, found["kind"], "\n".join(lines), found["mark"] or "")


def commands(text: str) -> Iterator[str]:
    """The commands of a block as a shell takes them: with their continued lines and what is written into their standard input."""
    held, until = [], None
    for line in text.splitlines():
        held.append(line)
        if until is not None:
            if line != until:
                continue
            until = None
        elif begins := re.search(r"<<-?\s*(['\"]?)(\w+)\1", line):
            until = begins[2]
            continue
        elif line.endswith("\\"):
            continue
        if any(part.strip() and not part.lstrip().startswith("#") for part in held):
            yield "\n".join(held)
        held = []
    if held:
        raise SnippetError(f"a command does not end: {held[0]}")


# --------------------------------------------------------------------------------------------------------------------------- run
class Session:
    """A shell, or a Python session, that is handed one command after the other. Attribute `printed`: what the last one wrote."""

    def __init__(self, program: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            program, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.printed = ""

    def do(self, line: str, patience_s: float) -> int:
        """Exit code; raises TimeoutError."""
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        output, end = b"", time.monotonic() + patience_s
        while not (done := re.search(rb"\n?\x01(\d+)\n$", output)):
            if not self.selector.select(max(0.0, end - time.monotonic())):
                self.printed = output.decode(errors="replace")
                raise TimeoutError
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                self.printed = output.decode(errors="replace")
                return self.process.wait()
            output += piece
        self.printed = output[: done.start()].decode(errors="replace")
        return int(done[1])

    def close(self) -> None:
        """Ends it and all that it started."""
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.selector.close()


def end(process: subprocess.Popen) -> None:
    """Ctrl-C, as a user does it: the first one lets a live run park, the second one ends it."""
    for patience_s in (60, 30):
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            break
    else:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process.stdout.close()


@dataclass
class Runner:
    """Runs pages in a folder that is a copy of the tree. own_environment: the folder makes and uses its own .venv."""

    folder: Path
    long: bool = False
    own_environment: bool = False
    patience_s: float = 120.0
    times: list[tuple[float, str, str]] = field(default_factory=list)  # s, place, command

    def page(self, page: Path) -> None:
        """Runs every block of the page in order; raises SnippetError at the first that fails."""
        environment = self.environment(page)
        shell = Session(["bash", "--noprofile", "--norc"], self.folder, environment)
        self.python, self.served = None, []
        try:
            for block in blocks(page):
                if block.kind == "sh":
                    self.shell_block(shell, block)
                elif block.kind == "python" and not self.left_out(block):
                    self.python = self.python or Session([self.interpreter(), "-u", "-c", SESSION], self.folder, environment)
                    self.one(self.python, block, block.text.partition("\n")[0] + " ...", json.dumps(block.text))
        finally:
            for process in self.served:
                end(process)
            for session in filter(None, (shell, self.python)):
                session.close()

    def environment(self, page: Path) -> dict[str, str]:
        """As of a user's terminal, with the environment on its path, but for the page that makes the environment."""
        own = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV", "VIRTUAL_ENV", "PYTHONPATH"))}
        if not self.own_environment:
            own["PYTHONPATH"] = str(self.folder)  # the copy, not the tree that the environment is installed from
        binaries = self.folder / ".venv" / "bin"
        if page.name == "README.md" and self.own_environment:
            return own
        return own | {"PATH": f"{binaries}{os.pathsep}{own['PATH']}", "MPLBACKEND": "Agg"}

    def interpreter(self) -> str:
        return str(self.folder / ".venv" / "bin" / "python")

    def left_out(self, block: Block) -> bool:
        python = block.kind == "python" and not self.long and block.marked("long") is not None
        return python or block.marked("not run") is not None or block.marked("in ") is not None

    def shell_block(self, shell: Session, block: Block) -> None:
        text = block.text
        if self.left_out(block):
            return
        if (served := block.marked("serves")) is not None:
            if self.long:
                self.serve(block, re.match(r'"(.*?)"', served)[1])
            return
        if (reason := block.marked("long")) is not None and not self.long:
            text = reason.partition("; instead: ")[2]
        for command in commands(text):
            self.one(shell, block, command, f"{{\n{command}\n}} </dev/null; printf '\\n\\001%d\\n' $?")

    def one(self, session: Session, block: Block, command: str, line: str) -> None:
        """Runs it and compares its exit code with the one its remark says."""
        begin, first = time.monotonic(), command.partition("\n")[0]
        wanted = int(found[1]) if (found := EXIT_CODE.search(first)) else 0
        try:
            code = session.do(line, 3600.0 if self.long else self.patience_s)
        except TimeoutError:
            code = None
        self.times.append((time.monotonic() - begin, block.where, first))
        if code != wanted:
            came = "did not end in time" if code is None else f"ended with {code}, not {wanted}"
            raise SnippetError(f"{block.where}: {came}:\n{command}\n\n{session.printed[-4000:]}")

    def serve(self, block: Block, text: str) -> None:
        """Starts what runs beside the rest of the page."""
        process = subprocess.Popen(
            ["bash", "-c", block.text], cwd=self.folder, env=self.environment(ROOT / "docs"), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, text=True,
        )  # fmt: skip
        self.served.append(process)
        output, began = [], time.monotonic()
        for line in process.stdout:
            output.append(line)
            if text in line:
                self.times.append((time.monotonic() - began, block.where, f"{block.text}  (until it says {text!r})"))
                return
        raise SnippetError(f"{block.where}: ended without {text!r}:\n{block.text}\n\n{''.join(output)}")


def copy(folder: Path) -> Path:
    """A copy of the tree with its environment; what is built is linked, not copied."""

    def take(source, target):
        if source.endswith((".so", ".c")):
            os.symlink(source, target)
        else:
            shutil.copy2(source, target)

    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), copy_function=take)
    for built in ROOT.glob("build/lib.*"):  # else the next build makes all of it again
        shutil.copytree(built, folder / "build" / built.name, copy_function=take)
    folder.joinpath(".venv").symlink_to(sys.prefix)
    return folder


# -------------------------------------------------------------------------------------------------------------------------- TOML
def toml_faults(block: Block) -> list[str]:
    """What is wrong with a TOML block. A whole craft is loaded; of all else every key, value and limit is compared with its declaration.

    What a part of a file lacks is no fault. A table of a part has to name it (`part`).
    """
    if block.marked("not run") is not None or block.marked("in ") is not None:
        return []
    try:
        document = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        return [f"{block.where}: {error}"]
    from hil_server.config.kinds import kind_of

    generate = _generate_schemas()
    known = generate.schemas()
    kind = block.mark or kind_of(document)
    if not kind:  # a part of a file: of the only kind that has such tables
        fitting = [name for name, schema in known.items() if document.keys() <= schema["properties"].keys()]
        kind = fitting[0] if len(fitting) == 1 else ""
    if kind == "hand controller":
        return _calibration_faults(block)
    if kind not in KINDS:
        return [f"{block.where}: what kind of file is this? <!-- snippet: one of {', '.join(KINDS)} -->"]
    if kind == "craft" and "name" in document and ("body" in document or "mass_kg" in document):
        from rt_kernels.model import craft_file

        try:
            craft_file.craft_of(document, block.where, ROOT)
        except ValueError as error:
            return [str(error)]
        return []
    import jsonschema

    found = jsonschema.Draft7Validator(_without_required(known[kind])).iter_errors(document)
    return [f"{block.where}: {'.'.join(map(str, e.absolute_path))}: {e.message}" for e in found]


def _generate_schemas():
    spec = importlib.util.spec_from_file_location("generate_schemas", ROOT / "tools" / "generate_schemas.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _without_required(schema):
    """The schema of a part of such a file: no table lacks a key. Which part a table is for has to be given."""
    if isinstance(schema, list):
        return [_without_required(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"required"} if "additionalProperties" in schema else set()
    if all(one.keys() <= {"required", "not"} for one in schema.get("oneOf", ())):
        left_out.add("oneOf")
    return {key: _without_required(value) for key, value in schema.items() if key not in left_out}


def _calibration_faults(block: Block) -> list[str]:
    from hil_server.errors import HilError
    from hil_server.operator_desk.calibration import load

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sticks.toml"
        file.write_text(block.text)
        try:
            load(file)
        except HilError as error:
            return [f"{block.where}: {error}"]
    return []


# ------------------------------------------------------------------------------------------------------------------------ program
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="README.md, docs/tutorial.md, ... (default: all)")
    parser.add_argument("--long", action="store_true", help="runs what is marked long as well")
    parser.add_argument("--clone", type=Path, metavar="FOLDER", help="in a fresh clone with an environment of its own; implies --long")
    parser.add_argument("--list", action="store_true", help="lists what is not run, or is long, and why")
    args = parser.parse_args()
    chosen = [page.resolve() for page in args.pages] or pages()
    if args.list:
        for page in chosen:
            for block in blocks(page):
                if block.mark and block.mark not in (*KINDS, "hand controller"):
                    print(f"{block.where}  [{block.kind}]  {block.mark}")
        return 0
    with tempfile.TemporaryDirectory(prefix="snippets-") as temporary:
        if args.clone and not args.clone.exists():
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(args.clone)], check=True)
        folder = args.clone.resolve() if args.clone else copy(Path(temporary) / "hil-server")
        failed = 0
        for page in chosen:
            runner = Runner(folder, args.long or bool(args.clone), bool(args.clone))
            try:
                faults = [fault for block in blocks(page) if block.kind == "toml" for fault in toml_faults(block)]
                runner.page(page)
            except SnippetError as error:
                faults = [*faults, str(error)]
            for seconds, where, command in runner.times:
                print(f"{seconds:7.1f} s  {where:32}  {command}", flush=True)
            print(*faults, sep="\n", end="\n" if faults else "", flush=True)
            failed += bool(faults)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
