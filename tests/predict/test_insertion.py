"""The latch law of each berthing unit: the axial force until the capture over miss and tilt, from the kernel."""

import pytest

from hil_server.cli import main
from hil_server.config import load_test
from hil_server.line.assembly import build_part
from hil_server.predict.insertion import insertion
from hil_server.run.examination import NAMED_BY


def unit(name, *overrides):
    key, needed = NAMED_BY["mechanism"]
    config = load_test("programmes/docking.toml", [*needed, f"{key}=mechanisms/{name}.toml", *overrides])
    return build_part(*config.setup.mechanism, {"period_s": 1.0 / config.setup.test.rate_hz})


def forces(part, *places):
    found = [insertion(part, miss, tilt) for miss, tilt in places]
    assert all(one.captured for one in found)
    return [one.force_n for one in found]


def test_latches_of_the_probe_ask_for_the_same_at_every_miss_that_an_operator_leaves():
    """Its swinging body lets the head find the middle. More than the weak arm holds (25 N), far less than the other one does (174 N)."""
    found = forces(unit("probe_cone_module"), (0.0, 0.0), (0.005, 0.25), (0.01, 0.5), (0.02, 1.0))
    assert min(found) > 40.0 and max(found) < 60.0
    # the docking unit's are stronger; with half of the springs it is half of it
    assert forces(unit("probe_cone_existing"), (0.005, 0.25))[0] == pytest.approx(110.0, rel=0.05)
    weaker = unit("probe_cone_module", "mechanism.latch_torque=[0.075, 0.375]", "mechanism.sensor_torque=[0.025, 0.125]")
    assert forces(weaker, (0.005, 0.25))[0] == pytest.approx(0.5 * found[1], rel=0.15)


def test_the_small_head_asks_for_more_beside_the_axis():
    part = unit("berthing_head")
    found = forces(part, (0.0, 0.0), (0.001, 0.25), (0.005, 0.25), (0.005, 1.0))
    assert max(found[:2]) < 100.0 < found[2] < found[3] and found[3] > 400.0
    assert not insertion(part, 0.02, 0.0).captured, "its mouth is narrow"


def test_the_pins_ask_for_the_force_of_the_ball_and_jam_beside_the_axis():
    part = unit("usa_usp")
    assert forces(part, (0.0, 0.0))[0] == pytest.approx(60.0, rel=0.02), "ball_force_n"
    assert forces(part, (0.002, 0.0))[0] > 500.0 and not insertion(part, 0.01, 0.0).captured


def test_check_shows_the_law_of_a_unit(capsys):
    assert main(["check", "mechanisms/usa_usp.toml", "--insertion"]) == 0
    reported = capsys.readouterr().out
    assert "axial force until the capture" in reported and "jams" in reported
    assert main(["check", "docking", "--insertion"]) == 2 and "a docking unit" in capsys.readouterr().err
