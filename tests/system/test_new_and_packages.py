"""What a newcomer is given: a project of one's own whose page works as pasted, completion, packages that run without the tree."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from hil_server import cli
from hil_server.host.installation import with_group

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("hil_server", "rt_kernels", "drivers", "stand_configs")
SOURCES = {".py", ".pyx", ".pxd", ".pxi", ".pyi", ".h", ".inc", ".toml", ".csv", ".css", ".js", ".json", ".npz", ".typed"}


# ----------------------------------------------------------------------------------------------------------------------- new
@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "my docking"]) == 0
    monkeypatch.chdir(tmp_path / "my docking")
    return tmp_path / "my docking"


def test_the_page_of_a_new_project_works_as_pasted(project, capsys):
    block = re.search(r"```sh\n(.*?)```", (project / "README.md").read_text(), re.S)[1]
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [c[1] for c in commands] == ["check", "predict", "simulate", "simulate", "compare", "replay"]
    for command in commands:
        quick = ["--no-report"] if command[1] == "simulate" else []
        assert cli.main([*command[1:], *quick]) == 0, (command, capsys.readouterr())
    for verb in re.findall(r"`hil-server (list[^`]*)`", (project / "README.md").read_text()):
        assert cli.main(verb.split()) == 0


def test_the_files_of_a_new_project_are_its_own(project):
    from hil_server.config import load_test

    assert load_test("test.toml").test["name"] == "my docking"
    for file, text in [("vehicle.toml", "mass_kg = 8123.0\n"), ("stand.toml", "[platform]\nleg_force_max_n = 71234.0\n")]:
        with (project / file).open("a") as stream:
            stream.write(text)
    config = load_test("test.toml")
    assert config.active_vehicle["mass_kg"] == 8123.0 and config.stand["platform"]["leg_force_max_n"] == 71234.0


def test_the_files_of_a_new_project_have_only_what_differs_and_the_examples_are_valid(project, tmp_path, capsys):
    from hil_server.config import load_test

    for file in project.glob("*.toml"):
        text = file.read_text()
        assert len(text.splitlines()) < 15 and re.search('(?m)^extends = "', text)
        file.write_text(re.sub(r"(?m)^# (?=\[|\w+ = )", "", text))
    config = load_test("test.toml")
    assert config.active_vehicle["mass_kg"] == 9000.0 and config.stand["limits"]["force_limit_n"] == [4000.0] * 3
    assert cli.main(["check", "vehicle.toml", "--resolved"]) == 0
    assert "mass_kg = 9000.0" in capsys.readouterr().out


def test_a_new_project_may_be_moved(project, tmp_path):
    """On another machine the editor finds the schemas: no file names a place outside of the project."""
    moved = shutil.move(project, tmp_path / "elsewhere")
    for file in moved.glob("*.toml"):
        assert (moved / file.read_text().split("\n")[0].removeprefix("#:schema ")).is_file(), file
    named = [file for file in moved.rglob("*") if file.is_file() and (str(project) in file.read_text() or str(ROOT) in file.read_text())]
    assert named == []


def test_new_leaves_what_is_there_alone(project, capsys):
    assert cli.main(["new", str(project)]) == 2
    assert "not empty" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------- completion
def completed(line):
    """What a shell is offered behind the line; argcomplete answers on descriptor 8."""
    environment = os.environ | {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_SHELL": "bash",
                                "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_COMP_WORDBREAKS": " "}  # fmt: skip
    script = f"{shlex.quote(sys.executable)} -m hil_server 8>&1 9>/dev/null 1>/dev/null"
    out = subprocess.run(["bash", "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60)
    return [word.strip() for word in out.stdout.split("\n") if word.strip()]


def test_the_tab_key_knows_verbs_options_files_and_parts():
    assert {"simulate", "campaign", "new"} <= set(completed("hil-server "))
    assert completed("hil-server simu") == ["simulate"]
    assert "--no-report" in completed("hil-server simulate --no")
    assert "docking_variants.toml" in completed("hil-server simulate docking_v")
    assert completed("hil-server list compensa") == ["compensation"]
    assert completed("hil-server list compensation phase_l") == ["phase_lead"]
    assert "programmes/berthing_head.toml" in completed("hil-server simulate programmes/be")


@pytest.mark.parametrize(("line", "words"), [
    ("simulate docking --set initial_conditions.velocity_x", {"initial_conditions.velocity_x_m_s="}),
    ("simulate --set compensation.part=phase_", {"compensation.part=phase_lead"}),
    ("export run.mcap --format m", {"mat", "mdf"}),
    ("command inj", {"inject_fault"}),
    ("command inject_fault sensor_bi", {"sensor_bias"}),
    ("campaign design", {"design_campaign.toml"}),
    ("tune compensation.lead_f", {"compensation.lead_factor"}),
    ("hand-controller --source straight", {"straight_in.csv"}),
])  # fmt: skip
def test_the_tab_key_knows_keys_formats_commands_faults_and_programmes(line, words):
    assert words == set(completed(f"hil-server {line}"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_the_shells_own_code(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    code = capsys.readouterr().out
    assert "hil-server" in code and "_ARGCOMPLETE" in code
    if found := shutil.which(shell):
        assert subprocess.run([found, "-n"], input=code, text=True, capture_output=True).returncode == 0


# ------------------------------------------------------------------------------------------------------------------ packages
def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=110, **more)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The sdist, made from a copy of the tree: a test writes nothing into the tree itself."""
    work = tmp_path_factory.mktemp("sdist")
    made = {f"{s.relative_to(ROOT).with_suffix('.c')}" for p in PACKAGES for s in (ROOT / p).rglob("*.pyx")}
    made |= {"rt_kernels/cython_shared.c"}

    def left_out(folder, names):
        here = Path(folder).relative_to(ROOT)
        return [n for n in names if n in ("__pycache__",) or n.endswith(".so") or str(here / n) in made]

    def present(source, target):
        with contextlib.suppress(FileNotFoundError):  # what another test wrote there and has taken away
            shutil.copy2(source, target)

    for package in PACKAGES:
        shutil.copytree(ROOT / package, work / "tree" / package, ignore=left_out, copy_function=present)
    for file in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, work / "tree" / file)
    shutil.copytree(ROOT / "tools", work / "tree" / "tools", ignore=left_out)
    run(sys.executable, "-c", "from setuptools import build_meta; build_meta.build_sdist('../out')", cwd=work / "tree")
    with tarfile.open(next((work / "out").glob("*.tar.gz"))) as archive:
        archive.extractall(work / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # Python 3.11.4
    return next((work / "unpacked").iterdir())


def test_the_sdist_holds_every_source_and_nothing_that_was_built(sdist):
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*"):
            if file.suffix in SOURCES and "__pycache__" not in file.parts:
                assert (sdist / file.relative_to(ROOT)).read_bytes() == file.read_bytes(), file
    assert list(sdist.rglob("*.so")) == []
    assert [c.name for c in sdist.rglob("*.c") if not c.name.startswith("native_")] == []
    assert (sdist / "tools" / "first_docking.txt").is_file()


@pytest.fixture(scope="module")
def installed(sdist, tmp_path_factory):
    """An environment without the tree, with the wheel that the sdist makes. Its kernels are the tree's: the sources are the same to the
    byte (above), a compiler would only make them once more (tools/test_packages.sh has them made)."""
    work = tmp_path_factory.mktemp("installed")
    shutil.copytree(sdist, work / "sdist")
    for file in [so for package in PACKAGES for so in (ROOT / package).rglob("*.so")]:
        (work / "sdist" / file.relative_to(ROOT)).symlink_to(file)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", work / "wheel", work / "sdist", env=os.environ | {"HIL_KERNELS": "built"})
    shutil.rmtree(work / "sdist")
    run(sys.executable, "-m", "venv", "--without-pip", work / "environment")
    site = Path(sysconfig.get_path("purelib", vars={"base": str(work / "environment"), "platbase": str(work / "environment")}))
    # the other packages; the .pth files among them, which lead to the tree, have no effect from there
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    wheel = next((work / "wheel").glob("*.whl"))
    run(sys.executable, "-m", "pip", "--python", work / "environment/bin/python", "--disable-pip-version-check", "install", "--quiet",
        "--no-deps", wheel)  # fmt: skip
    return work, wheel


def test_the_wheel_holds_what_a_run_and_a_type_checker_need(installed):
    names = set(zipfile.ZipFile(installed[1]).namelist())
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == set(PACKAGES)
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*"):
            if file.suffix in SOURCES - {".pyx", ".pxi"} and "__pycache__" not in file.parts:
                assert str(file.relative_to(ROOT)) in names, file
    kernels = {str(so.relative_to(ROOT)) for package in PACKAGES for so in (ROOT / package).rglob("*.so")}
    assert kernels <= names and len(kernels) > 60


def test_an_installed_wheel_simulates_without_the_tree(installed):
    work, _ = installed
    bin_ = work / "environment" / "bin"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    program = "import hil_server, rt_kernels.tick as t; print(hil_server.__file__, t.__file__)"
    where = run(bin_ / "python", "-c", program, cwd=work, env=environment)
    assert all(str(work / "environment") in place for place in where.split())
    run(bin_ / "hil-server", "new", "mine", cwd=work, env=environment)
    reported = run(bin_ / "hil-server", "simulate", "test.toml", "--out", "first", cwd=work / "mine", env=environment)
    assert "captured" in reported and (work / "mine" / "first" / "run.html").stat().st_size > 10_000
    program = "from hil_server.host.installation import with_group; print(with_group('console'))"
    hint = run(bin_ / "python", "-c", program, cwd=work, env=environment)
    assert hint.strip() == f"{work}/environment/bin/pip install 'nicegui>=2.0'"


def test_the_hint_of_the_tree_installs_the_tree(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin")
    monkeypatch.chdir(ROOT)
    assert with_group("console") == "pip install -e '.[console]'"
    monkeypatch.chdir(tmp_path)
    assert with_group("hdf5") == f"pip install -e '{ROOT}[hdf5]'"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert with_group("hdf5").startswith(f"{sys.prefix}/bin/pip install")


def test_the_first_docking_has_its_kernels_and_no_others():
    """`tools/first_docking.txt`, which the demo builds first, against what a simulation loads."""
    program = """
import sys
from hil_server.cli import main
assert main(["simulate", "virtual_docking_ship", "--quiet", "--out", sys.argv[1]]) == 0
print(*(name for name, m in sys.modules.items() if name.startswith(("rt_kernels.", "drivers.")) and (m.__file__ or "").endswith(".so")))
"""
    import tempfile

    with tempfile.TemporaryDirectory() as out:
        loaded = set(run(sys.executable, "-c", program, out, cwd=ROOT).splitlines()[-1].split())
    assert loaded == set(ROOT.joinpath("tools", "first_docking.txt").read_text().split())
