"""What an FMU cannot do: write, delete, kill, make processes, open a network, read the server's memory, all memory, flood a terminal."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hil_server import registry
from rt_kernels.layout import SAMPLE_DTYPE
from tests.control.fmu import factory

HOSTILE = {
    20: "makes a file", 21: "opens a file to write", 22: "empties a file", 23: "deletes, renames, cuts", 24: "makes folders and links",
    25: "changes rights, makes a file in memory", 26: "sends signals", 27: "traces the server", 28: "reads the server's memory",
    29: "forks", 30: "forks by vfork", 31: "runs a program", 32: "opens a network", 33: "widens its limits",
    34: "changes the server's priority", 35: "takes all memory", 36: "reads somebody's file", 37: "asks through io_uring",
    38: "sends signals by a file, takes the input",
}  # fmt: skip


@pytest.fixture
def victim(tmp_path, monkeypatch):
    """A file with something in it, whose path the FMU receives."""
    path = tmp_path / "elsewhere" / "victim"
    path.parent.mkdir()
    path.write_text("kept")
    path.chmod(0o600)
    monkeypatch.setenv("HIL_TESTS_VICTIM", str(path))
    monkeypatch.setenv("HIL_TESTS_SERVER", str(os.getpid()))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Keys of an FMU of its own folder."""
    return factory.keys(tmp_path_factory.mktemp("fmu"), 2)


def stepped(made, act):
    """The part after three steps, and what its auxiliary channels reported."""
    part = registry.part("control", "fmu")(period_s=1e-3, folders=[], live=False, **(made | {"start": {"fail": act, "fail_time": 0.0}}))
    sample = np.zeros(1, SAMPLE_DTYPE)
    sample["periods"] = 1
    for _ in range(3):
        reported = part.step(sample).copy()
    return part, reported


@pytest.mark.parametrize("act", HOSTILE, ids=HOSTILE.get)
def test_what_an_fmu_cannot_do(made, victim, act):
    part, reported = stepped(made, act)
    sandboxed = [note for note in part.notes if "; sandboxed: no files written" in note]
    assert sandboxed, f"this kernel has no seccomp: {part.notes}"
    if act == 36 and "no Landlock" in sandboxed[0]:
        pytest.skip("this kernel has no Landlock")
    assert not reported[0], f"it {HOSTILE[act]}"
    assert victim.read_text() == "kept" and victim.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in victim.parent.iterdir()] == ["victim"]


def test_what_it_prints_is_cut_and_cannot_steer_a_terminal(made):
    """40 prints without end: its patience ends, and the server has passed on 64 KiB of text."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
import numpy as np
from rt_kernels.control.fmu.part import Fmu
from rt_kernels.layout import SAMPLE_DTYPE
part = Fmu(period_s=1e-3, folders=[], live=False, patience_s=0.3, **{made | {"start": {"fail": 40, "fail_time": 0.0}}!r})
sample = np.zeros(1, SAMPLE_DTYPE)
sample["periods"] = 1
print(part.step(sample)[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "3.0\n"  # no answer in time
    assert 60_000 < len(done.stderr.encode()) < 70_000
    assert re.search(r"prints more than 65536 bytes: the rest is dropped", done.stderr)
    assert "\033" not in done.stderr and "\007" not in done.stderr


@pytest.mark.parametrize("act", [20, 21, 23, 24, 26, 29, 32, 36], ids=HOSTILE.get)
def test_what_the_same_fmu_can_do_where_nothing_holds_it(made, victim, act, tmp_path):
    """So that the test above can fail."""
    library = tmp_path / "controller.so"
    library.write_bytes(factory.library(2))
    program = f"""
import ctypes, os
os.environ["HIL_TESTS_SERVER"] = str(os.getpid())
lib = ctypes.CDLL({str(library)!r})
lib.fmi2Instantiate.restype = ctypes.c_void_p
it = ctypes.c_void_p(lib.fmi2Instantiate(b"x", 1, b"{{controller-2}}", b"file:", None, 0, 0))
lib.fmi2SetReal(it, (ctypes.c_uint * 1)(11), ctypes.c_size_t(1), (ctypes.c_double * 1)(0.0))
lib.fmi2SetInteger(it, (ctypes.c_uint * 1)(12), ctypes.c_size_t(1), (ctypes.c_int * 1)({act}))
os._exit(lib.fmi2DoStep(it, ctypes.c_double(0.0), ctypes.c_double(1e-3), 1))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3, f"it did not get through: {HOSTILE[act]}"
