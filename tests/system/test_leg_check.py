"""Each leg moved alone: what is seen of a whole stand, of exchanged cables, of a leg that stands still; and that hardware asks for it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hil_server import cli
from hil_server.config.loader import SHIPPED
from hil_server.errors import ConfigurationError
from hil_server.log.reader import read_log
from hil_server.run import leg_record
from hil_server.run.leg_check import WAY_M, found_in, run_on

STAND = SHIPPED / "stands" / "docking_stand.toml"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of a whole stand."""
    found, path = run_on(STAND, out=str(tmp_path_factory.mktemp("legs") / "run"))
    assert all(one.good for one in found)
    return read_log(path)


def test_each_leg_moves_alone_by_its_way(log):
    found = found_in(log)
    assert np.abs(np.array([one.way_m for one in found]) - WAY_M * np.eye(6)).max() < 3e-5
    setpoints = log.records["leg_setpoint"]
    assert np.ptp(setpoints, axis=0).max() < WAY_M + 3e-5  # nothing else moves the platform
    assert found[2].in_words().startswith("leg 3: moved by 2.00 mm, the others by at most 0.0")


def test_two_measured_legs_that_are_exchanged_are_named(log):
    records = log.records.copy()
    records["measured_leg"] = records["measured_leg"][:, [0, 4, 2, 3, 1, 5]]
    found = found_in(replace(log, records=records))
    assert [one.good for one in found] == [True, False, True, True, False, True]
    assert "LEG 5 moved, by 2.00 mm" in found[1].in_words() and "LEG 2 moved" in found[4].in_words()


@pytest.mark.parametrize(("factor", "good"), [(0.5, False), (0.9, True), (2.0, False), (0.0, False)])
def test_a_leg_that_moves_by_another_way_is_named(log, factor, good):
    records = log.records.copy()
    first = records["measured_leg"][0, 3]
    records["measured_leg"][:, 3] = first + factor * (records["measured_leg"][:, 3] - first)
    found = found_in(replace(log, records=records))
    assert [one.good for one in found] == [True, True, True, good, True, True]
    assert good or "NOT AS SENT" in found[3].in_words() or "LEG" in found[3].in_words()


def test_a_leg_that_stands_still_ends_with_exit_code_1(tmp_path, capsys):
    stuck = "stand.virtual.faults=[{fault='leg_stuck', at_s=0.0, index=3}]"
    assert cli.main(["legs", str(STAND), "--set", stuck, "--out", str(tmp_path / "run")]) == 1
    assert "leg 4: moved by 0.00 mm, was sent by 2.00 mm" in capsys.readouterr().out


def test_another_log_is_refused(tmp_path, log):
    with pytest.raises(ConfigurationError, match="s of motion, .* are needed"):
        found_in(replace(log, records=log.records[: len(log.records) // 2]))


def test_a_run_on_hardware_asks_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    stand, other = (f"sha256:{digit * 64}" for digit in "ab")
    with pytest.raises(ConfigurationError, match=r"stand.toml: that each leg .*: hil-server legs stand.toml \(--force"):
        leg_record.demand(stand, "stand.toml", forced=False)
    assert leg_record.demand(stand, "stand.toml", forced=True)[0].startswith("armed by --force: that each leg")
    leg_record.keep(stand, "runs/legs/run.mcap")
    assert leg_record.demand(stand, "stand.toml", forced=False) == ["each leg was moved alone and was the right one: runs/legs/run.mcap"]
    with pytest.raises(ConfigurationError):
        leg_record.demand(other, "stand.toml", forced=False)
    (file,) = (tmp_path / ".local" / "state" / "hil-server").iterdir()
    whole = json.loads(file.read_text())
    for wrong in (whole | {"boot": "another"}, whole | {"time": whole["time"] - 25 * 3600.0}, {}, []):
        file.write_text(json.dumps(wrong))
        with pytest.raises(ConfigurationError):
            leg_record.demand(stand, "stand.toml", forced=False)
