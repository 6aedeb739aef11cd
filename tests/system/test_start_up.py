"""How the program starts: inherited real-time priority, `check` beside a live run, folders of runs that are refused, the build's name."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hil_server import cli
from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.host.build import build_id, fingerprint
from hil_server.host.realtime_host import RealtimeHost, live_runs, take_ordinary_scheduling
from hil_server.run import folder, session
from hil_server.run.session import Options, run_live, simulate

ROOT = Path(__file__).resolve().parents[2]

# -------------------------------------------------------------------------------------------------- inherited priority

UNDER_FIFO = """
import os, sys
try:
    os.sched_setscheduler(0, os.SCHED_{policy}, os.sched_param(1))
except PermissionError:
    sys.exit(77)
from hil_server.cli import main
code = main({arguments!r})
import numpy  # the verb has loaded it, and its workers with it
policies = {{os.sched_getscheduler(int(thread)) for thread in os.listdir("/proc/self/task")}}
print("policies", policies, file=sys.stderr)
sys.exit(code if policies == {{os.SCHED_OTHER}} else 99)
"""


def under_realtime(policy, *arguments):
    program = UNDER_FIFO.format(policy=policy, arguments=list(arguments))
    # on one core, so that a thread that spins above the others would keep all of them from it
    one = {min(os.sched_getaffinity(0))}
    argv = [sys.executable, "-c", program]
    answer = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=100, preexec_fn=lambda: os.sched_setaffinity(0, one))
    if answer.returncode == 77:
        pytest.skip("real-time scheduling is not permitted to this user")
    return answer


@pytest.mark.parametrize("policy", ["FIFO", "RR"])
def test_inherited_real_time_priority_is_given_back_before_anything_is_loaded(policy):
    answer = under_realtime(policy, "predict", "--set", "compensation.part=none")
    assert answer.returncode in (0, 1), answer.stderr


def test_ordinary_scheduling_stays_as_it_is():
    before = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    take_ordinary_scheduling()
    assert (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


# --------------------------------------------------------------------------------------------------------------- check


@pytest.fixture
def measured(monkeypatch):
    """What `check` measures, without taking the core, and with no live run but this process's own on the machine."""
    from hil_server.host import preflight, realtime_host

    monkeypatch.setattr(realtime_host, "RUN_MARK", f"@hil-server.test.{os.getpid()}.")
    lengths = []
    monkeypatch.setattr(preflight, "measure", lambda core, seconds: lengths.append(seconds) or [])
    return lengths


def test_check_measures_only_when_asked(measured):
    assert cli.main(["check"]) == 0 and measured == []
    assert cli.main(["check", "--measure", "--seconds", "0.5"]) == 0 and measured == [0.5]


def test_measurement_is_refused_beside_a_live_run(measured, capsys):
    assert os.getpid() not in live_runs()
    with RealtimeHost(priority=0):
        assert os.getpid() in live_runs()
        assert cli.main(["check", "--measure"]) == 2 and measured == []
        reported = capsys.readouterr().err
        assert f"live run in progress (process {os.getpid()})" in reported and "wait until it has ended" in reported
        assert cli.main(["check"]) == 0, "without the measurement it disturbs no one"
    assert os.getpid() not in live_runs()


def test_a_killed_run_leaves_no_mark():
    script = """
import os, sys
from hil_server.host.realtime_host import RealtimeHost
host = RealtimeHost(priority=0).__enter__()
print(os.getpid(), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        pid = int(run.stdout.readline())
        assert pid in live_runs()
        run.kill()
        run.wait()
    assert pid not in live_runs()


def test_check_names_a_limit_of_what_is_not_given(capsys):
    """A lowest supply pressure on a stand that does not measure it would trip every run before its start."""
    assert cli.main(["check", "--set", "stand.limits.supply_pressure_min_pa=14e6"]) == 1
    assert "14 MPa: NOT MEASURED" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "1e9"])
def test_a_measurement_has_a_length(seconds, measured, capsys):
    assert cli.main(["check", "--measure", "--seconds", seconds]) == 2 and measured == []
    assert "0.1...3600 s" in capsys.readouterr().err


def test_nothing_heavy_is_loaded_before_it_is_needed():
    """`check` within a second of processor time, its help at once."""
    program = """
import sys
from hil_server.cli import main
main(["check", "--help"])
assert not {"numpy", "scipy"} & set(sys.modules), "help"
main(["check"])
assert not {"scipy.spatial", "scipy.optimize", "matplotlib", "pyarrow"} & set(sys.modules), "check"
"""
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert answer.returncode == 0, answer.stderr


# ------------------------------------------------------------------------------------------------- folders of refused runs


def test_refused_run_leaves_no_folder(tmp_path, monkeypatch):
    out = tmp_path / "deep" / "run"
    addresses = [f"telemetry.{key}=ipc://{tmp_path}/{key}" for key in ("publish", "command", "hand_controller")]
    in_the_way = load_test(None, [*addresses, "telemetry.log_every=5"])
    with pytest.raises(ConfigurationError, match="log_every"):
        run_live(in_the_way, Options(out=str(out), quiet=True))
    assert list(tmp_path.iterdir()) == []

    def refuses(*_):
        raise ConfigurationError("stand: refused")

    monkeypatch.setattr(session.assembly, "simulation", refuses)
    with pytest.raises(ConfigurationError, match="refused"):
        simulate(load_test(None, []), Options(out=str(out), quiet=True))
    assert list(tmp_path.iterdir()) == []


def test_folder_made_for_a_log_that_cannot_be_begun_is_taken_away_again(tmp_path):
    with pytest.raises(ConfigurationError, match="refused"), folder.folder_of(tmp_path / "a" / "b" / "run.mcap"):
        assert (tmp_path / "a" / "b").is_dir()
        raise ConfigurationError("refused")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("kept")
    with contextlib.suppress(KeyboardInterrupt), folder.folder_of(tmp_path / "a" / "b" / "run.mcap"):
        raise KeyboardInterrupt
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["mine"]


def test_out_that_cannot_be_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match="--out .*file/run: Not a directory: choose a folder"):
        simulate(load_test(None, []), Options(out=str(tmp_path / "file" / "run"), quiet=True))


# --------------------------------------------------------------------------------------------------------- name of the build


def test_fingerprint_is_of_the_contents(tmp_path):
    (tmp_path / "kernels").mkdir()
    kernel = tmp_path / "kernels" / "limits.so"
    kernel.write_bytes(b"\x7fELF one byte differs: 1")
    first = fingerprint([tmp_path])
    assert first == fingerprint([tmp_path]) and len(first) == 12
    kernel.write_bytes(b"\x7fELF one byte differs: 2")  # of the same size
    assert fingerprint([tmp_path]) != first
    kernel.write_bytes(b"\x7fELF one byte differs: 1")
    assert fingerprint([tmp_path]) == first
    kernel.rename(kernel.with_name("other.so"))
    assert fingerprint([tmp_path]) != first


def test_build_id_is_in_the_header_and_names_the_version():
    number, _, fingerprint_ = build_id().rpartition("-")
    assert number and len(fingerprint_) == 12 and int(fingerprint_, 16) >= 0
