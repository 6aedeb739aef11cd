"""No record, no test: a live run whose log can no longer be written is ended by parking or by a trip, and says why."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zmq

from hil_server.bus.wire import STATUS, connect, unpack
from hil_server.config import load_test
from hil_server.log.reader import read_log
from rt_kernels.layout import CODES
from tests.processes import children
from tests.system.line_runs import QUICK, fault_names, phases, run_line

ROOT = Path(__file__).resolve().parents[2]
END = {code: name for name, code in CODES["end_cause"].items()}
RECORD_LOST = CODES["command"]["record_lost"]


def lose_record(trip):
    return lambda block: block.push_command(RECORD_LOST, (float(trip),), source=1)


# --------------------------------------------------------------------------------------------------- the command, any guidance


@pytest.mark.parametrize("when_s", [0.5, 2.0, 4.0, 6.0])
def test_docking_parks_from_any_phase_when_its_record_is_lost(when_s):
    records = run_line(QUICK, at=[(when_s, lose_record(trip=False))])
    last = records[-1]
    assert END[int(last["end_cause"])] == "record_lost" and fault_names(last["faults"]) >= {"record_lost"}
    assert "record_required" not in fault_names(last["faults"]) and last["trip_tick"] == -1
    assert phases(records)[-3:] == ["retreat", "park", "ended"]
    # home again, from where the run had started
    assert np.allclose(last["leg_setpoint"], records["leg_setpoint"][0], atol=2e-3)


def test_docking_trips_when_the_configuration_says_so():
    records = run_line(QUICK, at=[(4.0, lose_record(trip=True))])
    last = records[-1]
    assert END[int(last["end_cause"])] == "tripped" and "record_required" in fault_names(last["faults"])
    assert records["tick"][records["command_code"] == RECORD_LOST][0] == last["trip_tick"]
    assert phases(records)[-2:] == ["fault", "ended"]


def test_what_has_tripped_is_not_recovered_from_without_a_record():
    at = [(4.0, lambda block: block.push_command(CODES["command"]["abort"])), (4.5, lose_record(trip=False)),
          (4.8, lambda block: block.push_command(CODES["command"]["recover"]))]  # fmt: skip
    records = run_line([*QUICK, "guidance.recover_s=20"], at=at)
    last = records[-1]
    assert CODES["command"]["recover"] in records["command_code"]
    assert CODES["safety_state"]["recovering"] not in records["safety_state"] and phases(records)[-2:] == ["fault", "ended"]
    assert END[int(last["end_cause"])] == "tripped" and fault_names(last["faults"]) >= {"operator_stop", "record_lost"}


def test_a_waiting_stand_ends_at_once():
    records = run_line(["guidance.auto_start=false"], at=[(0.2, lose_record(trip=False))])
    assert phases(records) == ["idle", "ended"] and END[int(records[-1]["end_cause"])] == "record_lost"


@pytest.mark.parametrize(("programme", "when_s"), [("berthing", 6.0), ("identify", 1.0)])
@pytest.mark.parametrize("trip", [False, True])
def test_other_guidances_obey_too(programme, when_s, trip):
    config = load_test(str(ROOT / "stand_configs" / "programmes" / f"{programme}.toml"), [])
    last = run_line(config=config, at=[(when_s, lose_record(trip))])[-1]
    assert END[int(last["end_cause"])] == ("tripped" if trip else "record_lost")
    assert ("record_required" if trip else "record_lost") in fault_names(last["faults"])


# ----------------------------------------------------------------------------------------------------------------- live runs


class LiveRun:
    """`hil-server run` on the virtual stand, from the outside."""

    def __init__(self, folder, *overrides):
        self.folder, self.json, self.bus = folder, folder.parent / "summary.json", f"ipc://{folder.parent}/publish"
        wires = [f"telemetry.{name}='ipc://{folder.parent}/{name}'" for name in ("publish", "command", "hand_controller")]
        settings = [word for setting in (*wires, *QUICK, *overrides) for word in ("--set", setting)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hil_server", "run", "--out", str(folder), "--json", str(self.json), "--no-report", *settings],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def telemetry(self):
        """Process number of the telemetry process, once a second of the run is in the log."""
        with zmq.Context() as context, connect(context, zmq.SUB, self.bus, 1000) as heard:
            heard.subscribe(STATUS)
            while not (heard.poll(100) and unpack(heard.recv_multipart()[1])["log_ticks"] > 1000):
                assert self.process.poll() is None, f"the run did not start: {self.process.communicate()}"
        return next(pid for pid in children(self.process.pid) if "hil_server.bus.drain" in command_line(pid))

    def end(self):
        """Exit code, what was reported on the screen, the summary."""
        out, err = self.process.communicate()
        return self.process.returncode, out, err, json.loads(self.json.read_text())


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@pytest.fixture
def live(tmp_path):
    made = []

    def start(*overrides):
        made.append(LiveRun(tmp_path / "run", *overrides))
        return made[-1]

    yield start
    for run in made:
        if run.process.poll() is None:
            run.process.kill()
            run.process.communicate()


def test_run_whose_telemetry_is_killed_parks(live):
    run = live("guidance.auto_start=false")  # a stand that waits does not end by itself, however late the machine is
    os.kill(run.telemetry(), signal.SIGKILL)
    code, out, err, summary = run.end()
    assert code == 3 == summary["exit_code"] and summary["end"] == "record_lost"
    assert "the telemetry process has died (signal SIGKILL)" in summary["record_lost"]
    assert "record lost" in err and "parking the platform" in err
    assert "record    LOST: the telemetry process has died" in "".join(out.splitlines(keepends=True)[-4:])
    # the end is known although the log does not reach to it
    assert "record_lost" in summary["faults"] and 0 < summary["ticks"] < summary["ticks_run"] and not summary["complete"]
    assert f"{summary['ticks_run']} ticks, {summary['ticks']} of them in the log" in out


def test_run_whose_telemetry_stands_still_parks_and_keeps_what_the_ring_holds(live):
    run = live("guidance.auto_start=false")  # a stand that waits does not end by itself, however late the machine is
    os.kill(run.telemetry(), signal.SIGSTOP)
    code, out, err, summary = run.end()
    assert code == 3 == summary["exit_code"] and summary["end"] == "record_lost"
    assert "does not keep up" in summary["record_lost"] and "parking the platform" in err and "record    LOST" in out
    log = read_log(run.folder / "run.mcap")
    assert log.ticks + log.end["lost_ticks"] == summary["ticks_run"] and log.end["record_lost"] in summary["record_lost"]
    # the loop was stopped while there was room left: the order stands in the log
    assert RECORD_LOST in log.records["command_code"]


def test_run_whose_disk_is_full_trips_if_told_to(live):
    run = live("telemetry.on_record_lost=trip", "guidance.auto_start=false")
    pid = run.telemetry()
    size = (run.folder / "run.mcap").stat().st_size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 300_000, size + 300_000))
    code, out, err, summary = run.end()
    assert code == 3 == summary["exit_code"] and summary["end"] == "tripped"
    assert "record_required" in summary["faults"] and "File too large" in summary["record_lost"]
    assert "record lost: log: File too large: trip" in err and "record    LOST: log: File too large" in out
    log = read_log(run.folder / "run.mcap")
    assert log.incomplete == ["log: File too large"] and log.end["record_lost"] == "log: File too large"
    assert np.all(np.diff(log.records["tick"]) > 0) and log.ticks + log.end["lost_ticks"] == summary["ticks_run"]


def test_configuration_names_the_choices():
    from hil_server.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match="telemetry.on_record_lost: must be one of park, trip, got 'ignore'"):
        load_test(None, ["telemetry.on_record_lost=ignore"])
    assert load_test(None, []).telemetry["on_record_lost"] == "park"
