"""The set-up scripts say what is missing, with the package line of this distribution, and stop."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check_machine(path, **variables):
    """`check_machine` of the scripts with a search path of our own."""
    return subprocess.run(
        ["/bin/sh", "-c", f". {ROOT}/tools/environment.sh; check_machine; echo all there"],
        capture_output=True, text=True, env={"PATH": str(path), **variables},
    )  # fmt: skip


@pytest.fixture
def bare(tmp_path):
    """A search path with nothing but what the script itself calls; a function adds a command."""
    for name in ("uname", "sh", "cat", "printf", "echo", "id"):
        if found := shutil.which(name):
            tmp_path.joinpath(name).symlink_to(found)

    def add(name, script):
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    add.path = tmp_path
    return add


def test_this_machine_has_everything():
    out = check_machine(os.environ["PATH"])
    assert out.returncode == 0 and "all there" in out.stdout, out.stderr


def test_missing_python(bare):
    bare("gcc", "exit 0")
    bare("python3", "exit 1")  # older than 3.11
    out = check_machine(bare.path)
    assert out.returncode == 2 and "Python 3.11 or newer is missing" in out.stderr and "python3" in out.stderr.splitlines()[-1]


def test_missing_compiler(bare):
    bare("python3", "exit 0")
    out = check_machine(bare.path)
    assert out.returncode == 2 and "C compiler gcc is missing" in out.stderr and "gcc" in out.stderr.splitlines()[-1]


def test_missing_headers(bare):
    bare("gcc", "exit 0")
    bare("python3", 'case "$*" in *sysconfig*) echo /nowhere/include ;; esac')
    out = check_machine(bare.path)
    assert out.returncode == 2 and "headers are missing (/nowhere/include/Python.h)" in out.stderr and "all there" not in out.stdout
    assert len(out.stderr.splitlines()) == 2  # what is missing, and the line that installs it


@pytest.mark.parametrize("script", ["tools/demo.sh", "tools/test.sh", "tools/environment.sh", ".ci/run"])
def test_scripts_are_plain_sh(script):
    assert subprocess.run(["/bin/sh", "-n", str(ROOT / script)], capture_output=True).returncode == 0
