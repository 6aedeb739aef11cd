"""Prediction before a run (R-St-34): the same variant, its loads against limits of stand and unit, refusal and confirmation."""

import tomllib

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import SHIPPED, criticality, load_test, narrowing
from hil_server.errors import VerdictError
from hil_server.judge.loads import allowed, differences, rehearsed, wrench_at_cell
from hil_server.log.header import CONFIRMED
from hil_server.log.reader import read_log
from hil_server.run import leg_record
from hil_server.run.session import Options, simulate
from tests.system.line_runs import QUICK

SHORT = (*QUICK, "guidance.contact_max_s=2.0", "guidance.after_capture_s=0.2")


def predicted(folder, *overrides):
    return simulate(load_test(None, [*SHORT, *overrides]), Options(out=str(folder), quiet=True, report=False))["log"]


@pytest.fixture(scope="module")
def prediction(tmp_path_factory):
    return predicted(tmp_path_factory.mktemp("prediction"))


@pytest.mark.parametrize("carried", ["target", "active"])
def test_wrench_at_the_cell_is_the_kernels(tmp_path, carried):
    """The kernel of the wrench stage goes the other way, from the cell to the port."""
    overrides = (f"stand.mounting.unit_on_load_cell={carried}", "stand.mounting.measured_port_angles_deg=[10.0, -20.0, 5.0]")
    if carried == "active":  # which then stands on the other side of the target
        overrides += ("stand.mounting.load_cell_position_m=[2.4, 0.0, 0.0]",)
    r = read_log(predicted(tmp_path, *overrides)).records
    mounting = load_test(None, list(overrides)).stand["mounting"]
    np.testing.assert_allclose(wrench_at_cell(r["F_T"], r["X_TA_measured"], mounting), r["F_S"], rtol=0, atol=1e-9 * np.abs(r["F_S"]).max())


def test_the_same_variant_within_limits_may_run(prediction):
    config = load_test(None, list(SHORT))
    found = rehearsed(config, prediction)
    assert not found.against and len(found.loads) == 6
    r = read_log(prediction).records
    peaks = {load.name: load.peak for load in found.loads}
    assert peaks["fx_n"] == pytest.approx(np.abs(r["F_S"][:, 0]).max(), rel=1e-6) and peaks["fx_n"] > 100.0
    (note,) = allowed(config, [prediction], hardware=True, confirmed="")
    r1, r2 = criticality(config.initial_conditions)
    assert "of its limit" in note and f"R1 {r1:.2f}, R2 {r2:.2f}" in note
    # what happens before and after the contact, and where a default is written out, is no other variant
    same = load_test(None, [*SHORT, "guidance.speed_max_m_s=0.3", "guidance.capture_limit_s=10.0", "wrench.filter_order=1"])
    assert differences(config, same) == [] and allowed(same, [prediction], hardware=True, confirmed="") == [note]


@pytest.mark.parametrize("override, reported", [
    ("initial_conditions.lateral_y_m=0.051", "another variant: initial_conditions.lateral_y_m: 0.051 here, 0.05 there"),
    ("target_vehicle.mass_kg=19000.0", "target_vehicle.mass_kg"),
    ("mechanism.rebound_n=1.0", "mechanism."),
    ("stand.limits.force_limit_n=[50.0, 5000.0, 5000.0]", "fx_n at the stand"),
    ("mechanism.force_limit_n=[50.0, 5000.0, 5000.0]", "fx_n at the unit"),
])  # fmt: skip
def test_hardware_is_refused(prediction, override, reported):
    if override.startswith("mechanism.rebound"):
        key = next(k for k, v in load_test(None).mechanism.items() if isinstance(v, float))
        override = f"mechanism.{key}={load_test(None).mechanism[key] * 1.01}"
    config = load_test(None, [*SHORT, override])
    with pytest.raises(VerdictError, match="not armed") as refused:
        allowed(config, [prediction], hardware=True, confirmed="")
    assert reported in str(refused.value) and "--confirm-loads" in str(refused.value)
    # told to, it runs, and the log says who reported so; the virtual stand only remarks it
    notes = allowed(config, [prediction], hardware=True, confirmed="approved by the test lead")
    assert reported in notes[0] and notes[1] == f"{CONFIRMED}approved by the test lead"
    (remark,) = allowed(config, [prediction], hardware=False, confirmed="")
    assert reported in remark


def test_predictions_that_are_none(tmp_path, prediction):
    config = load_test(None, list(SHORT))
    tripped = predicted(tmp_path / "tripped", "stand.limits.force_limit_n=[50.0, 50.0, 50.0]")
    assert any("it tripped itself: force_limit" in reason for reason in rehearsed(config, tripped).against)
    missed = predicted(tmp_path / "missed", "guidance.contact_max_s=0.1")
    assert "it came to no contact" in rehearsed(config, missed).against
    with open(prediction, "rb") as file:
        (tmp_path / "cut.mcap").write_bytes(file.read()[:-3000])
    assert any("incomplete" in reason for reason in rehearsed(config, tmp_path / "cut.mcap").against)


def test_run_on_hardware_asks_for_a_prediction(tmp_path, prediction, capsys, monkeypatch):
    """No device is there: with a prediction the run gets as far as missing it."""
    stand = (SHIPPED / "stands" / "docking_stand.toml").read_text().split("[virtual]")[0]
    stand += '[drives]\npart = "cia402"\nlinks = "no_such_bus"\n[wrench_sensor]\npart = "rdt"\naddress = "127.66.0.1"\n'

    def signed(text):
        (tmp_path / "hardware.toml").write_text(text)
        narrowing.sign(tmp_path / "hardware.toml", "A. Nova", "2030-01-02")

    signed(stand)
    arguments = ["run", "--out", str(tmp_path / "run"), "--set", f"test.stand={tmp_path / 'hardware.toml'}"]
    arguments += [word for item in SHORT for word in ("--set", item)]
    assert main(arguments) == 1
    reported = capsys.readouterr().err
    assert "no prediction of this variant" in reported and "--prediction" in reported and not (tmp_path / "run").exists()

    def legs_moved():
        checksum = narrowing.checksum(tomllib.loads((tmp_path / "hardware.toml").read_text()))
        leg_record.keep(checksum, "-")

    monkeypatch.setenv("HOME", str(tmp_path))
    legs_moved()
    assert main([*arguments, "--prediction", prediction]) == 2
    assert "not armed, a delay is not known: wrench_sensor.filter_delay_s (of rdt" in capsys.readouterr().err
    signed(stand + "filter_delay_s = 0.0\n")
    legs_moved()
    assert main([*arguments, "--prediction", prediction]) == 4
    assert "of its limit" in capsys.readouterr().err
    assert main([*arguments, "--confirm-loads", "dry run"]) == 4
    assert "confirmed with: dry run" in capsys.readouterr().err


def test_a_programme_takes_the_log_of_each_variant(tmp_path):
    from argparse import Namespace

    from hil_server.terminal.outcome import _options

    args = Namespace(quiet=True, no_report=True, prediction=[str(tmp_path)], confirm_loads="", force=False)
    assert _options(args, None, "RT-01").predictions == [str(tmp_path / "RT-01" / "run.mcap")]
    args.prediction += [str(tmp_path / "one.mcap")]
    assert _options(args, None, "RT-01").predictions == [str(tmp_path / "RT-01" / "run.mcap"), args.prediction[1]]
