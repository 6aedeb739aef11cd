"""Small things at the terminal that somebody once stumbled over, each by what is then on the screen."""

import logging
import re
import subprocess
import sys

import pytest

from hil_server import cli
from hil_server.bus.settings import TelemetrySettings
from hil_server.config import load_test
from hil_server.config.loader import SHIPPED
from hil_server.terminal.log import PACKAGES
from tests.system.line_runs import QUICK

SHORT = ["--set", "test.duration_max_s=0.3", "--no-report", "--quiet"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "a"
    assert cli.main(["simulate", *SHORT, "--out", str(folder)]) in (0, 1)
    return folder / "run.mcap"


@pytest.fixture(autouse=True)
def quiet_again():
    yield
    for package in PACKAGES:
        logging.getLogger(package).handlers = []
        logging.getLogger(package).setLevel(logging.NOTSET)


def test_plotjuggler_subscribes_to_the_address_of_the_file(tmp_path):
    """From the file to the bus's settings; `tests/bus/test_drain.py` has the messages on that address."""
    text = SHIPPED.joinpath("programmes", "docking.toml").read_text()
    assert text.count("[telemetry]\n") == 1 and "plotjuggler" not in text
    file = tmp_path / "docking.toml"
    file.write_text(text.replace("[telemetry]\n", '[telemetry]\nplotjuggler = "tcp://127.0.0.1:9773"\n'))
    assert TelemetrySettings.from_table(load_test(str(file)).telemetry, "run.mcap").plotjuggler_address == "tcp://127.0.0.1:9773"


def test_a_folder_that_is_taken_is_reported_first(log, capfd):
    assert cli.main(["simulate", *SHORT, "--out", str(log.parent)]) in (0, 1)
    there = log.parent.with_name(f"{log.parent.name}-2")
    reported = capfd.readouterr()
    assert reported.err.splitlines()[0] == f"{log.parent} has the log of another run: log and report of this one go to {there}"
    assert f"log       {there / 'run.mcap'}" in reported.out


def test_playback_says_where_and_how_long(log, capsys):
    assert cli.main(["replay", str(log), "--rate", "1"]) == 0
    reported = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"publishing \d+ ticks on tcp://\S+, \d+ s; Ctrl-C ends it", reported[0])
    assert reported[1].startswith("published ") and reported[1].split()[1] == reported[0].split()[1]


def test_a_recorded_operator_without_a_run_says_that_it_waits(monkeypatch, capsys):
    monkeypatch.setattr("hil_server.verbs.hand_controller.UNHEARD_S", 0.2)
    nowhere = ["--bus", "tcp://127.0.0.1:9", "--desk", "tcp://127.0.0.1:9", "--address", "tcp://127.0.0.1:9"]
    assert cli.main(["hand-controller", "--source", "straight_in.csv", *nowhere, "--duration", "0.6"]) == 0
    assert sum("no run is heard: waiting" in line for line in "".join(capsys.readouterr()).splitlines()) == 1


def test_peaks_are_named_and_have_units(tmp_path, capsys):
    quick = [word for item in QUICK for word in ("--set", item)]
    assert cli.main(["simulate", *quick, *SHORT[2:], "--out", str(tmp_path / "a")]) in (0, 1)
    peaks = [line for line in capsys.readouterr().out.splitlines() if line.startswith("peak ")]
    number = r"[-+.\de]+"
    assert peaks and all(re.fullmatch(rf"peak\s+[a-z ]+ {number} N at {number} s, {number} N\.m( .*)?", line) for line in peaks), peaks


def test_the_help_lists_every_exit_code(capsys):
    assert cli.main(["--help"]) == 0
    reported = " ".join(capsys.readouterr().out.split())
    assert all(re.search(rf"[ ,]{code} \w", reported.partition("exit codes:")[2]) for code in (0, 1, 2, 3, 4, 5, cli.INTERRUPTED))


def test_verbose_shows_time_level_and_module(tmp_path, capsys):
    def run(*more):
        cli.main(["simulate", *SHORT[:-2], "--no-report", "--out", str(tmp_path / "b"), *more])
        logging.getLogger("hil_server.run.session").debug("a detail")
        return capsys.readouterr().err

    assert "a detail" not in run()
    assert re.search(r"^\d{4}-\d\d-\d\d [\d:,]+ DEBUG +hil_server\.run\.session: a detail$", run("--verbose"), re.MULTILINE)
    assert "a detail" in run("--log-level", "debug") and "a detail" not in run("--log-level", "error")


def test_the_library_is_silent_and_speaks_with_logging(log):
    """No verb: a program that opens a log, and one that simulates, find nothing of ours on their terminal."""
    program = (f"from hil_server import open_log; from hil_server.config import load_test\n"
               f"from hil_server.run.session import Options, simulate\n"
               f"open_log({str(log)!r})\n"
               f"simulate(load_test(None, ['test.duration_max_s=0.05']), Options(out={str(log.parent / 'c')!r}, report=True))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
