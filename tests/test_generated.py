"""What is generated is current, and only what people read and review of it is committed. `make generate` makes what differs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import generate, generate_channels

ROOT = Path(__file__).resolve().parent.parent
MOST_COMMITTED_LINES = 1_500


def test_everything_generated_is_current():
    done = subprocess.run([sys.executable, "tools/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


def test_git_has_what_people_read_and_no_more():
    if not (ROOT / ".git").exists():
        pytest.skip("no git here; nothing to do: it is for the repository")
    made = sorted(str(path.relative_to(ROOT)) for path in generate.table() | generate.read_off() | generate.documents())
    known = subprocess.run(["git", "ls-files", "-z", *made], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(filter(None, known.split("\0"))) == sorted(generate.COMMITTED)
    ignored = subprocess.run(["git", "check-ignore", "--stdin"], input="\n".join(made), cwd=ROOT, capture_output=True, text=True).stdout
    assert set(ignored.split("\n")) - {""} == set(made) - set(generate.COMMITTED)
    pages = ("README.md", "docs/safety.md")  # of which only a table is made
    whole = [name for name in generate.COMMITTED if name not in pages]
    assert sum(ROOT.joinpath(name).read_text().count("\n") for name in (*whole, "docs/papers.md")) < MOST_COMMITTED_LINES


# ---------------------------------------------------------------------------------------------------------- the tool itself
@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree whose table gives one file for the build and one that is committed; stubs and pages give one each."""
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "STAMP", tmp_path / "build" / "generated")
    monkeypatch.setattr(generate, "table", lambda: {tmp_path / "rt_kernels/layout.py": "A = 1\n", tmp_path / "README.md": "read\n"})
    monkeypatch.setattr(generate, "read_off", lambda folder=tmp_path: {folder / "rt_kernels/a.pyi": "x: int\n"})
    monkeypatch.setattr(generate, "documents", lambda: {tmp_path / "docs/keys.md": "# Keys\n"})
    for folder in generate.SOURCES:
        (tmp_path / folder).mkdir()
    kernels = tmp_path / "rt_kernels"
    (kernels / "a.pyx").write_text("")
    (kernels / "a.cpython.so").write_text("")
    return tmp_path


def test_the_build_makes_what_is_not_committed_once(tree, monkeypatch):
    generate.build()
    assert [name for name in ("rt_kernels/layout.py", "rt_kernels/a.pyi", "docs/keys.md") if not (tree / name).exists()] == []
    assert not (tree / "README.md").exists()
    monkeypatch.setattr(generate, "table", lambda: pytest.fail("made again, and nothing has changed"))
    generate.build()


@pytest.mark.parametrize("change", ["source", "kernel", "product", "gone"])
def test_the_build_makes_again_after_a_change(tree, change):
    generate.build()
    made = tree / "rt_kernels/a.pyi"
    later = generate.STAMP.stat().st_mtime + 10.0
    if change in ("product", "gone"):
        made.write_text("edited") if change == "product" else made.unlink()
    files = {"source": "hil_server/x.py", "kernel": "rt_kernels/a.cpython.so", "product": "rt_kernels/a.pyi", "gone": "rt_kernels/x.txt"}
    file = files[change]
    (tree / file).touch()
    os.utime(tree / file, (later, later))
    assert not generate.fresh()
    generate.build()
    assert made.read_text() == "x: int\n"


def test_all_is_written_and_only_where_it_differs(tree, capsys):
    assert generate.everything() == 0 and len(capsys.readouterr().out.split()) == 4
    (tree / "README.md").write_text("read\nedited\n")
    (tree / "rt_kernels" / "gone.pyi").write_text("")
    before = (tree / "rt_kernels/layout.py").stat().st_mtime_ns
    assert generate.check() == 1
    reported = capsys.readouterr().out
    assert "README.md: differs\n    @@ -2 +1,0 @@\n    -edited" in reported and "gone.pyi: made from something that is gone" in reported
    assert "layout.py" not in reported and generate.everything() == 0 and generate.check() == 0
    assert (tree / "rt_kernels/layout.py").stat().st_mtime_ns == before and not (tree / "rt_kernels" / "gone.pyi").exists()


def test_nothing_is_read_off_kernels_that_are_not_built(tree, capsys):
    (tree / "rt_kernels/b.pyx").write_text("")
    assert generate.unbuilt() == ["rt_kernels/b.pyx"]
    assert generate.everything() == 1 and "make build" in capsys.readouterr().out
    assert (tree / "rt_kernels/layout.py").exists() and not (tree / "rt_kernels/a.pyi").exists()
    assert generate.check() == 1 and "not built" in capsys.readouterr().out


def test_a_build_stops_where_the_committed_tick_is_another(tmp_path, monkeypatch):
    """Where the file that it includes is missing it makes it, and changes nothing that people read."""
    tick, read, included = (tmp_path / name for name in ("tick.pyx", "CHANNELS.md", "sample.pxd"))
    monkeypatch.setattr(generate_channels, "KERNELS", tmp_path)
    monkeypatch.setattr(generate_channels, "READ", {tick, read})
    monkeypatch.setattr(generate_channels, "products", lambda: {included: "made", read: "made", tick: "made"})
    tick.write_text("made")
    read.write_text("old")
    generate_channels.write()
    assert included.read_text() == "made" and read.read_text() == "old"
    tick.write_text("old")
    with pytest.raises(SystemExit, match=r"tools/generate\.py"):
        generate_channels.write()
