"""The unit's energy: the ledger of a shipped docking closes, one with too long a step does not, and the report says so; the largest step
that a unit states."""

import math
from dataclasses import asdict

import pytest

from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.judge.unit_ledger import OPEN_MAX, unit_ledger
from hil_server.judge.verdict import verdict
from hil_server.log.reader import read_log
from hil_server.run.session import Options, simulate

SHORT = ["guidance.contact_max_s=3.0", "guidance.finish_on_capture=true", "guidance.after_capture_s=1.0"]


def flown(tmp_path, *settings):
    summary = simulate(load_test("virtual_docking", [*SHORT, *settings]), Options(out=str(tmp_path), quiet=True, report=False))
    return summary, read_log(summary["log"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return flown(tmp_path_factory.mktemp("whole"), "telemetry.log_every=1")


def test_a_shipped_docking_closes_its_ledger(whole):
    summary, log = whole
    found = summary["unit_ledger"]
    put_in, stored, lost = (log.aux(f"probe.energy_{name}").ravel() for name in ("supplied", "stored", "lost"))  # stored: kinetic, too
    left = put_in - stored - lost
    assert found == asdict(unit_ledger(Run(log))) and not found["at_least"] and found["closes"] and 0.0 < found["share"] < OPEN_MAX
    assert abs(found["open_j"]) == pytest.approx(max(abs(left - left[0]))) and found["largest_j"] == pytest.approx(max(abs(put_in)))
    assert "energy of the docking unit" not in verdict(summarise(Run(log))).line


def test_a_thinned_log_shows_the_least_of_what_is_open(whole, tmp_path):
    summary, log = whole
    every_tick = summary["unit_ledger"]
    summary, thinned = flown(tmp_path, "telemetry.log_every=20")
    found = summary["unit_ledger"]
    assert thinned.ticks < log.ticks / 10 and found["at_least"] and "open by at least " in found["in_words"]
    assert 0.0 < abs(found["open_j"]) <= abs(every_tick["open_j"]) and found["largest_j"] <= every_tick["largest_j"]


def test_a_step_that_is_too_long_takes_the_green_away(tmp_path):
    """The unit's own limit is lifted: at 500 Hz it runs away within seconds."""
    free = ["test.rate_hz=500", "mechanism.step_max_s=0.01", "mechanism.substeps=2"]
    summary, log = flown(tmp_path, *free)
    found = summary["unit_ledger"]
    assert not found["closes"] and found["share"] > OPEN_MAX and "the step is too long for the unit" in found["in_words"]
    assert "no number from " in found["in_words"] and math.isfinite(found["largest_j"])
    assert "energy of the docking unit open by " in verdict(summarise(Run(log))).line


@pytest.mark.parametrize("unit", ["probe_cone_modified", "ring", "berthing_head"])
def test_a_tick_longer_than_the_unit_states_is_refused(unit):
    stand = ["test.stand=stands/ideal_stand_long_unit.toml", f"test.mechanism=mechanisms/{unit}.toml"]
    with pytest.raises(ConfigurationError, match="test.rate_hz: too slow for the docking unit, value 1000.0, limit at least 2000: .* Hz"):
        load_test("docking", [*stand, "test.rate_hz=1000"])
    assert load_test("docking", [*stand, "test.rate_hz=2000"]).mechanism["step_max_s"] == 0.0005


@pytest.mark.parametrize(("unit", "rate", "substeps"), [
    ("probe_cone_existing", 1000, 8), ("probe_cone_existing", 2000, 8), ("ring", 2000, 4),
    ("ring", 4000, 2), ("elastic_adaptive", 1000, 2), ("elastic_adaptive", 2000, 1),
])  # fmt: skip
def test_a_longer_tick_gets_more_sub_steps(unit, rate, substeps):
    settings = [f"test.mechanism=mechanisms/{unit}.toml", f"test.rate_hz={rate}"]
    config = load_test("virtual_docking", settings)
    assert config.mechanism["substeps"] == substeps
    longest = config.mechanism["substep_max_s"]
    assert 1.0 / rate / substeps <= longest * (1.0 + 1e-9) and math.isclose(load_test("virtual_docking", [
        *settings, "mechanism.substeps=1"]).mechanism["substeps"], 1)  # what was asked for by name stays
    assert any("mechanism.substeps" in line for line in config.chosen) == (substeps > {"probe_cone_existing": 8}.get(unit, 1))


@pytest.mark.parametrize(("settings", "substeps"), [
    ((), 1), (("stand.virtual.plant_step_s=0.0002",), 2), (("stand.virtual.plant_step_s=0.0002", "mechanism.substep_max_s=0.00005"), 4),
    (("mechanism.substeps=4",), 4),
])  # fmt: skip
def test_a_plant_that_steps_within_the_tick_advances_the_unit_in_as_few_sub_steps(settings, substeps):
    """The file asks for 4 in a tick of 1 ms, none longer than 0.125 ms. A configuration out of a log keeps what the log has."""
    assert load_test("berthing_latches", settings).mechanism["substeps"] == substeps


def test_the_friction_of_a_unit_says_how_many_sub_steps_it_needs():
    """Eight times the damping of its friction: twice the sub-steps, chosen and named; fewer by `--set` are taken, and named."""
    own = load_test("virtual_docking").mechanism
    assert 0.5 / 2000.0 * own["friction_damping_max_n_s_per_m"] <= 0.5 * own["contact_mass_kg"]
    stiffer = "mechanism.friction_damping_max_n_s_per_m=64000"
    config = load_test("virtual_docking", [stiffer])
    assert config.mechanism["substeps"] == 16 and any("mechanism.substeps: 16, the file has 8" in line for line in config.chosen)
    config = load_test("virtual_docking", [stiffer, "mechanism.substeps=2"])
    assert config.mechanism["substeps"] == 2
    assert any("2 by --set, friction may turn the slip: 16 are needed" in line for line in config.chosen)


def test_a_tick_too_long_for_the_largest_moment_is_named():
    (reported,) = (line for line in load_test("virtual_docking_modified").chosen if "moment" in line)
    assert "not resolved at 2000 Hz: probe_cone_modified needs 4000 Hz for it" in reported
    assert not any("moment" in line for line in load_test("virtual_docking_modified", ["test.rate_hz=4000"]).chosen)
