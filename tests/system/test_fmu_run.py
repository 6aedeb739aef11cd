"""A docking flown by a controller from outside: the whole run, its log, its replay, and what its failure does."""

import numpy as np
import pytest

from hil_server import cli
from hil_server.config import load_test
from hil_server.config.loader import DEFAULT_TEST
from hil_server.errors import ConfigurationError
from hil_server.log.reader import read_log
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from rt_kernels.codes import bit_names
from rt_kernels.layout import CODES
from tests.control.fmu import factory
from tests.system.line_runs import QUICK

GAIN, FORCE = 300.0, 250.0
FAIL_TIME = 2.0


def test_file(folder, version=2, start=None):
    """The shipped docking with an FMU beside it, named without its folder. Returns the path of the test."""
    made = factory.keys(folder, version, {"gain": GAIN, "force": FORCE} | (start or {}))
    table = {"part": "fmu", **made, "file": f"controller{version}.fmu"}
    lines = []
    for key, value in table.items():
        inner = ", ".join(f'"{k}" = {v!r}' for k, v in value.items()) if isinstance(value, dict) else ""
        lines.append(f"{key} = {{ {inner} }}" if isinstance(value, dict) else f"{key} = {value!r}")
    path = folder / "controlled.toml"
    path.write_text(DEFAULT_TEST.read_text() + "\n[control]\n" + "\n".join(lines) + "\n")
    return path


test_file.__test__ = False


def flown(folder, version=2, start=None, overrides=()):
    path = test_file(folder, version, start)
    return simulate(load_test(path, [*QUICK, *overrides]), Options(out=str(folder / "run"), quiet=True, report=False))


@pytest.fixture(scope="module", params=[2, 3])
def docking(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("docking")
    return flown(folder, request.param), folder


def test_it_docks_and_the_controller_is_what_acts(docking):
    summary, _ = docking
    assert summary["captured"] and summary["exit_code"] == 0
    records = read_log(summary["log"]).records
    pressed = (records["control_request"] & 1) > 0
    assert 100 < pressed.sum() < len(records)
    assert (records["control_A"][:, 0] == np.where(pressed, FORCE, 0.0)).all()
    # the rates of the tick before through the lag of controller.c
    x, torque = np.zeros(3), np.zeros((len(records), 3))
    for i in range(1, len(records)):
        x += 1e-3 / 0.05 * (records["V_NC"][i - 1, 3:] - x)
        torque[i] = -GAIN * x
    assert records["control_A"][1000:, 3:] == pytest.approx(torque[1000:], rel=1e-9, abs=1e-12)
    assert np.abs(torque).max() > 0.1


def test_the_replay_is_equal_by_bytes(docking, monkeypatch, tmp_path):
    """From another directory too: the configuration says where the FMU was."""
    monkeypatch.chdir(tmp_path)
    result = replay.replay(docking[0]["log"], verify=True)
    assert result["equal"] and result["exit_code"] == 0 and result["ticks"] == docking[0]["ticks_run"]


def test_the_log_names_the_fmu(docking):
    header = read_log(docking[0]["log"]).header
    (note,) = [note for note in header.notes if note.startswith("control: ")]
    config = load_test(docking[1] / "controlled.toml")
    assert f"FMU controller (version 1.4, factory; FMI {note.partition('FMI ')[2][0]}.0), sha256 {config.control['sha256']}" in note
    assert config.control["sha256"] in header.configuration["configuration.toml"]


def test_a_replay_with_another_fmu_is_refused(docking, tmp_path):
    log, true = docking[0]["log"], load_test(docking[1] / "controlled.toml").control["sha256"]
    own = next(docking[1].glob("*.fmu"))
    kept = own.read_bytes()
    try:
        other = factory.write(own, 2 if "2" in own.stem else 3, keeps_state=False)["sha256"]
        with pytest.raises(ConfigurationError, match=f"control.fmu: sha256: is not that of the FMU: value '{true}', limit '{other}'"):
            replay.replay(log, verify=True)
        own.unlink()
        with pytest.raises(ConfigurationError, match="control.fmu: file: no such file: .*controller"):
            replay.replay(log, verify=True)
    finally:
        own.write_bytes(kept)


@pytest.mark.parametrize(("how", "failure"), [(1, 4), (2, 2), (3, 1), (4, 3)], ids=["nan", "segfault", "error", "endless"])
def test_a_failure_trips_and_the_log_is_whole(tmp_path, how, failure):
    summary = flown(tmp_path, 2, {"fail": how, "fail_time": FAIL_TIME}, ["control.patience_s=1.0"])
    assert summary["exit_code"] == 3 and summary["end"] == "tripped" and "control_failed" in summary["faults"]
    log = read_log(summary["log"])
    assert not log.incomplete and not log.damaged() and not log.missing()
    records = log.records
    failed = np.flatnonzero(records["time_ns"] >= FAIL_TIME * 1e9)[0]
    assert records["trip_tick"][-1] == records["tick"][failed] and not records["faults"][failed - 1]
    assert records["phase"][-1] == CODES["phase"]["ended"]
    assert not records["control_A"][failed:].any()
    assert {bit_names("control_status", int(s))[0] for s in records["control_status"][failed:]} == {"failed"}
    (place,) = [i for i, name in enumerate(log.aux_names) if name == "fmu.failure"]
    assert (records["aux"][failed:, place] == failure).all() and not records["aux"][:failed, place].any()
    # the legs come to rest
    assert np.abs(np.diff(records["leg_setpoint"][-20:], axis=0)).max() < 1e-6
    assert replay.replay(summary["log"], verify=True)["equal"]


def test_a_wrong_sum_ends_the_command_with_its_words(tmp_path, capsys):
    path = test_file(tmp_path)
    true = load_test(path).control["sha256"]
    assert cli.main(["simulate", str(path), "--set", f"control.sha256={'a' * 64}", "--out", str(tmp_path / "run"), "--quiet"]) == 2
    reported = "".join(capsys.readouterr())
    assert "control.fmu: sha256" in reported and "a" * 64 in reported and true in reported
    assert not (tmp_path / "run").exists()


def test_the_fmu_of_a_log_runs_only_where_it_is_trusted(docking, tmp_path, monkeypatch, capsys):
    """The log says which hash it had: that is no trust. The list of the user is, and --run-fmu for this once."""
    monkeypatch.setattr("hil_server.config.trusted_fmus._named_here", set())
    monkeypatch.setenv("HOME", str(tmp_path))
    log, own = docking[0]["log"], str(next(docking[1].glob("*.fmu")))
    verify = ["replay", log, "--verify"]
    onwards = ["simulate", "--from", f"{log}@0.05", "--out", str(tmp_path / "on"), "--quiet"]
    for command in (verify, onwards):
        assert cli.main(command) == 2
        assert f"limit an FMU that you trust (hil-server fmu trust {own})" in "".join(capsys.readouterr())
    assert not (tmp_path / "on").exists()
    assert cli.main([*verify, "--run-fmu"]) == 0 and cli.main(verify) == 2
    assert cli.main(["fmu", "trust", own]) == 0 and cli.main(verify) == 0
    assert cli.main(["fmu", "forget", own]) == 0 and cli.main(verify) == 2
    assert cli.main(["fmu", "forget", own]) == 2
