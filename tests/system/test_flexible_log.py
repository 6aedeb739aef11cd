"""Runs with a user's own modal file: log, campaign worker and replay need the file no more."""

import shutil

import numpy as np
import pytest

from hil_server.campaign.case import run_case
from hil_server.config import SHIPPED, load_test, test_from_toml
from hil_server.config.modal_data import read_csv
from hil_server.errors import ConfigurationError
from hil_server.log.reader import read_log
from hil_server.log.record import scalar_names
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from rt_kernels.dynamics import modal
from rt_kernels.layout import CODES, FIELDS
from tests.config.test_modal_data import f06_text

SHORT = ("guidance.contact_max_s=0.8", "guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "telemetry.log_every=1")
VEHICLES = SHIPPED / "vehicles"


def test_file(folder, ending):
    """A flexible docking whose station has a modal file of its own, with other modes than the shipped ones."""
    data = read_csv(VEHICLES / "large_station_modes.csv")
    if ending == "csv":
        text = (VEHICLES / "large_station_modes.csv").read_text().replace(",0.0015,", ",0.0014142135,")
    else:
        text = f06_text(data, np.linspace(0.5, 4.0, len(data.frequency_hz)), in_front=0)
    (folder / f"mine.{ending}").write_text(text)
    station = (VEHICLES / "large_station_flexible.toml").read_text().replace("large_station_modes.csv", f"mine.{ending}")
    (folder / "station.toml").write_text(station)
    programme = (SHIPPED / "programmes" / "virtual_docking_flexible.toml").read_text()
    (folder / "mine.toml").write_text(programme.replace("vehicles/large_station_flexible.toml", "station.toml"))
    return folder / "mine.toml"


test_file.__test__ = False


@pytest.mark.parametrize("ending", ["csv", "f06"])
def test_replay_without_the_file_and_with_another_mathematics_library(tmp_path, monkeypatch, ending):
    (tmp_path / "input").mkdir()
    config = load_test(test_file(tmp_path / "input", ending), list(SHORT))
    log = simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))["log"]
    shutil.rmtree(tmp_path / "input")
    run = read_log(log)
    bent = np.abs(run.aux("target_port_displacement")[run.records["motion"] == CODES["motion"]["free"]]).max()  # the closed loop
    assert bent > 1e-6 and replay.replay(log, verify=True)["equal"]
    y = config.initial_conditions["lateral_y_m"]
    row = run_case(config.as_toml(), 0, ("lateral_y_m",), (y,), (f"initial_conditions.lateral_y_m={y!r}",))
    assert row["error"] == "" and max(row[f"peak target_port_displacement[{i}]"] for i in range(6)) == bent
    # coefficients that differ in the last digit, as from another exp: those of the log are taken
    made = modal.step_coefficients
    monkeypatch.setattr(modal, "step_coefficients", lambda *a: np.nextafter(made(*a), np.inf))
    assert replay.replay(log, verify=True)["equal"]


def test_other_modes_by_override_are_read(tmp_path):
    config = load_test(test_file(tmp_path, "csv"), list(SHORT))
    text, shipped = config.as_toml(), VEHICLES / "large_station_modes.csv"
    assert test_from_toml(text).as_toml() == text
    other = test_from_toml(text, [f"target_vehicle.modal.file={shipped}"]).target_vehicle["modal"]["data"]
    assert other != config.target_vehicle["modal"]["data"] and "0.0014142135" not in other
    with pytest.raises(ConfigurationError, match=r"modal\.file: cannot be read, value 'nothing.csv'"):
        test_from_toml(text, ["target_vehicle.modal.file=nothing.csv"])
    (tmp_path / "mine.csv").write_text("mode,node\n")
    with pytest.raises(ConfigurationError, match=r"station\.toml: .*column 'frequency_hz' is missing"):
        load_test(tmp_path / "mine.toml")


def test_names_of_more_than_150_craft_and_300_mechanism_channels(tmp_path):
    """Poses, twists, wrenches, momentum, control and profile of the craft from the table, their ports' bending, and the probe's own."""
    config = load_test(SHIPPED / "programmes" / "virtual_docking_flexible.toml", list(SHORT))
    log = read_log(simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))["log"])
    writers = ("forward_kinematics", "wrench", "guidance", "control", "compensation", "dynamics")
    craft = {name for field, _, count, _, _, writer, *_ in FIELDS if writer in writers for name in scalar_names(field, count)}
    craft |= {name for name in log.aux_names if "_port_" in name}
    mechanism = [name for name in log.aux_names if name.startswith("probe.")]
    assert len(craft) > 150 and len(mechanism) > 300 and len(set(mechanism)) == len(mechanism)
    assert {"X_TA[6]", "V_NC[0]", "momentum[5]", "control_A[0]", "F_T[2]", "target_port_rate[5]"} <= craft
    assert {"probe.stroke", "probe.latch4_groove_force", "probe.brake2_torque", "probe.energy_lost"} <= set(mechanism)
    units = {channel.name: channel.unit for channel in log.header.aux}
    assert units["probe.stroke"] == "m" and units["probe.latch1_force"] == "N" and all(units[name] for name in mechanism)
    # they are recorded, not only named
    moved = np.ptp(log.records["aux"], axis=0) > 0
    assert np.isfinite(log.records["aux"]).all() and moved.sum() > 150
