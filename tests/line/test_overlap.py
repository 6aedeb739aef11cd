"""Docking units that touch before their test begins are refused, with the place, the force and what to change."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from hil_server import registry
from hil_server.cli import main
from hil_server.config import SHIPPED, extends, load_test
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.line.overlap import park_pose, parked_inside, refuse_overlap
from hil_server.run.programme import is_programme, load_programme
from rt_kernels.context import Mounting

PROGRAMMES = sorted(file for file in (SHIPPED / "programmes").glob("*.toml") if "campaign" not in file.stem)
VIRTUAL = SHIPPED / "programmes" / "virtual_docking.toml"
LONG = "test.stand=stands/ideal_stand_long_unit.toml"
# units that need it: their hinge is further from the head
LONGER = ("probe_cone_modified", "probe_cone_modified_short", "probe_cone_movable_limiter")
FREE, INSIDE = -1.2, -0.50  # X_TA of the existing unit: its head before the mouth, 5 mm deep in the bottom of the socket


def pose(x, y=0.0):
    return np.array([x, y, 0.0, 0.0, 0.0, 0.0, 1.0])


def configurations(file):
    return [v.config for v in load_programme(file)[1]] if is_programme(file) else [load_test(file)]


def parked_at(leg_m, name, folder):
    """Copy of a shipped stand file with legs of this length at park, None: those of the neutral pose."""
    lines = extends.resolved_text(extends.whole(SHIPPED / "stands" / f"{name}.toml")).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("start_leg_m"))
    lines[at] = f"start_leg_m = {[leg_m] * 6}" if leg_m else ""
    (folder / f"{name}.toml").write_text("\n".join(lines))
    return folder / f"{name}.toml"


@pytest.mark.parametrize("file", PROGRAMMES, ids=[file.stem for file in PROGRAMMES])
def test_every_shipped_programme_parks_and_starts_clear(file):
    for config in configurations(file):
        context = assembly.base_context(config)
        guidance = assembly.part_of(config, "guidance", context)
        assert parked_inside(context["park"], context["start"].X_TA, guidance, config.paths) == "", config.test["name"]


@pytest.mark.parametrize("stand", [file.stem for file in sorted((SHIPPED / "stands").glob("*.toml"))])
def test_every_shipped_stand_parks_clear_of_what_docks_on_it(stand):
    """Whatever shipped unit can be flown there: its probe or ring stands in front of the nominal first contact."""
    looked = 0
    for file in sorted((SHIPPED / "mechanisms").glob("*.toml")):
        settings = [f"test.stand=stands/{stand}.toml", f"test.mechanism=mechanisms/{file.name}", "test.rate_hz=4000"]
        try:
            context = assembly.base_context(config := load_test("docking", settings))
        except ConfigurationError as error:
            assert "the docking units overlap at park" in str(error) and file.stem in LONGER
            continue
        guidance = assembly.part_of(config, "guidance", context)
        assert parked_inside(context["park"], context["start"].X_TA, guidance, config.paths) == "" or file.stem in LONGER, file.stem
        looked += 1
    assert looked >= 11


@pytest.mark.parametrize(("leg_m", "inside"), [(None, "0.053 m further in"), (3.961, "0.007 m further in"), (3.951, ""), (3.707, "")])
def test_check_says_that_the_parked_units_are_inside_each_other(leg_m, inside, tmp_path, monkeypatch, capsys):
    """In the neutral pose the probe is in the cone, though it does not touch: the first contact of the shipped docking is 0.053 m lower."""
    monkeypatch.chdir(tmp_path)
    stand = parked_at(leg_m, "docking_stand", tmp_path)
    code = main(["check", "--set", f"test.stand='{stand}'", "--json", "reported.json"])
    reported = json.loads((tmp_path / "reported.json").read_text())["parked_inside"]
    assert code == 0 and inside in reported and bool(reported) == bool(inside)
    assert not inside or (reported in capsys.readouterr().out and f"{stand}: the docking units are parked inside each other" in reported)


@pytest.mark.parametrize("name", [file.stem for file in sorted((SHIPPED / "mechanisms").glob("*.toml"))])
def test_every_shipped_mechanism_has_a_shipped_stand_on_which_it_starts_clear(name):
    stand = [LONG] if name in LONGER else []
    assembly.base_context(load_test(VIRTUAL, [*stand, f"test.mechanism=mechanisms/{name}.toml"]))


@pytest.mark.parametrize(("verb", "unit"), [("check", "probe_cone_modified"), ("simulate", "probe_cone_movable_limiter")])
def test_probe_in_the_cone_at_park_is_bad_input(verb, unit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    more = ["--seconds", "0"] if verb == "check" else []
    stand = f"test.stand='{parked_at(None, 'ideal_stand', tmp_path)}'"
    code = main([verb, str(VIRTUAL), "--set", stand, "--set", f"test.mechanism=mechanisms/{unit}.toml", "--json", "reported.json", *more])
    assert code == 2
    reported = json.loads((tmp_path / "reported.json").read_text())
    text = "\n".join(reported.get("faults") or reported["configuration"]["faults"])
    assert f"mechanisms/{unit}.toml: the docking units overlap at park" in text and "e+07 N, limit 1 N" in text
    assert "(-0.605, 0.000, 0.000) m" in text and "at least 0.150 m further from" in text
    assert "ideal_stand.toml (mounting.load_cell_position_m, mounting.measured_port_position_m" in text


@pytest.mark.parametrize(
    ("approach", "where"),
    [
        (None, None),
        ([pose(FREE), pose(-1.0)], None),
        ([pose(INSIDE), pose(-1.0)], "between park and start"),
        ([pose(-1.0), pose(INSIDE)], "on the approach, before the loop is closed"),
        ([pose(FREE, 0.6), pose(-0.75, 0.6), pose(-0.75, -0.6), pose(FREE, -0.6)], "on the approach, before the loop is closed"),
    ],
    ids=["only park", "clear", "start", "approach", "through the cone, clear at every given pose"],
)
def test_the_whole_way_is_looked_at(approach, where):
    unit = registry.part("mechanisms", "probe_cone")()
    unit.advance(pose(-0.9), np.array([0.1, 0, 0, 0, 0, 0]), 1e-3)  # not in its first state
    before = unit.snapshot()
    mounting = Mounting("target", "floor", X_WF=pose(4.0), X_PM=pose(0.3))
    guidance = SimpleNamespace() if approach is None else SimpleNamespace(approach=lambda count: np.array(approach))
    park = park_pose(mounting, pose(4.0 - 0.3 + FREE))
    assert park == pytest.approx(pose(FREE))
    if where is None:
        refuse_overlap(unit, mounting, park, guidance, {})
    else:
        with pytest.raises(ConfigurationError, match=where):
            refuse_overlap(unit, mounting, park, guidance, {})
    assert unit.snapshot() == before


@pytest.mark.parametrize("cell_on", ["floor", "platform"])
@pytest.mark.parametrize("unit_on", ["target", "active"])
def test_park_pose_agrees_with_the_stand_however_the_units_are_mounted(cell_on, unit_on):
    """Against the kernel that the line uses."""
    from drivers.simulated.plant import PlantPart

    angles = {"other_port_angles_deg": [2.0, -3.0, 20.0], "measured_port_angles_deg": [1.0, 2.0, 3.0]}
    turned = {"load_cell_on": cell_on, "unit_on_load_cell": unit_on, **angles}
#X"other_port_angles_deg": [2.0, -3.0, 20.0], "measured_port_angles_deg": [1.0, 2.0, 3.0]}
    config = load_test(None, [f"stand.mounting.{key}={value}" for key, value in turned.items()])
    platform = config.setup.stand.platform
    mounting = config.setup.stand.mounting
    plant = PlantPart(platform=platform, mounting=mounting, mechanism=registry.part("mechanisms", "bumper")(stiffness_n_per_m=1.0)).state()
    found, truth = park_pose(mounting, plant["X_WP"]), plant["X_TA"]
    np.testing.assert_allclose(found[:3], truth[:3], atol=1e-12)
    assert abs(found[3:] @ truth[3:]) == pytest.approx(1.0, abs=1e-12)
