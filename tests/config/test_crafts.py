"""Crafts as vehicles of a test: taken into the configuration whole, known by the parts, and the dynamics part that fits them."""

import re
import tomllib

import numpy as np
import pytest

from hil_server import registry
from hil_server.cli import main
from hil_server.config import SHIPPED, crafts, load_test, physics, test_from_toml, toml_text
from hil_server.errors import ConfigurationError
from hil_server.terminal.faults import located
from rt_kernels.model.craft import at_rest, port_pose
from rt_kernels.model.craft_file import craft_of

PROBE = SHIPPED / "manipulators/transport_ship_probe.toml"
BARE = PROBE.read_text().split("[[joint]]")[0]  # without the settings of its joints


@pytest.fixture
def programme(tmp_path):
    """Writes the shipped docking with this text in the place of its vehicle and without a dynamics part; returns the file."""

    def write(active=None, target=None, dynamics=None):
        document = tomllib.loads((SHIPPED / "programmes/docking.toml").read_text())
        for name, text in (("active_vehicle", active), ("target_vehicle", target)):
            if text is not None:
                (tmp_path / f"{name}.toml").write_text(text)
                document["test"][name] = f"{name}.toml"
        document.pop("dynamics", None)
        if dynamics is not None:
            document["dynamics"] = dynamics
        file = tmp_path / "mine.toml"
        file.write_text(toml_text.dumps(document))
        return file

    return write


@pytest.fixture(autouse=True)
def two_crafts(monkeypatch):
    """Any part in the place of the one for crafts that move, where that is not there."""
    if "two_crafts" not in registry.PARTS["dynamics"]:
        monkeypatch.setitem(registry.PARTS["dynamics"], "two_crafts", "rt_kernels.dynamics.two_bodies:TwoBodies")


def faults(file, overrides=()):
    with pytest.raises(ConfigurationError) as error:
        load_test(file, overrides)
    assert error.value.exit_code == 2
    return error.value.faults


def test_a_craft_of_several_bodies_is_a_vehicle(programme):
    config = load_test(programme(BARE))
    vehicle, rest = config.setup.vehicles.active, at_rest(craft_of(tomllib.loads(BARE)))
    assert vehicle.mass_kg == 7000.0 and np.array_equal(vehicle.inertia_kg_m2, rest.inertia)
    np.testing.assert_allclose(vehicle.X_port, [3.6, 0, 0, 0, 0, 0, 1], atol=1e-12)
    assert [link.name for link in vehicle.craft.links] == ["hull", "mount", "probe"]
    rigid = config.setup.vehicles.target
    assert [link.name for link in rigid.craft.links] == ["body"] and rigid.craft.links[0].body.mass == rigid.mass_kg


def test_turned_port_stands_in_the_frame_of_the_centre_of_mass(programme):
    text = BARE + "angles_deg = [10.0, -20.0, 30.0]\n"
    config = load_test(programme(text + '[[joint]]\nname = "pitch"\nmode = "locked"\nangle_deg = 5.0\n'))
    vehicle = config.setup.vehicles.active
    craft = crafts.craft(config.active_vehicle)
    R, p = port_pose(craft, at_rest(craft), "docking")
    found = physics.multiply(vehicle.X_port, physics.pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    x, y, z, w = found[3:]
    np.testing.assert_allclose(found[:3], p - at_rest(craft).centre, atol=1e-14)
    np.testing.assert_allclose([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], R[:, 0], atol=1e-14)


def test_the_configuration_is_whole_and_comes_back(programme, tmp_path):
    wing = craft_of({"name": "w", "body": [{"name": "a", "joint": "free", "assumed": {
        "length_m": 4.0, "mass_kg": 30.0, "bending_stiffness_n_m2": 900.0}}]}).links[0].body  # fmt: skip
    wing.save(tmp_path / "wing.npz")
    body = '[[body]]\nname = "wing"\nparent = "hull"\njoint = "fixed"\nmodal_file = { file = "wing.npz" }\n\n'
    text = BARE
    file = programme(text.replace("[[port]]", body + "[[port]]"))
    config = load_test(file)
    (tmp_path / "wing.npz").unlink()
    again = test_from_toml(config.as_toml())
    assert again.document == config.document and again.hash == config.hash
    held = crafts.craft(again.active_vehicle).links[-1].body
    assert np.array_equal(held.Q, wing.Q) and np.array_equal(held.ports["tip"].psi, wing.ports["tip"].psi)
    # another file in a what-if replay
    wing.with_damping_ratio(0.1).save(tmp_path / "other.npz")
    other = test_from_toml(config.as_toml(), [f"active_vehicle.body.wing.modal_file.file={tmp_path / 'other.npz'}"])
    assert crafts.craft(other.active_vehicle).links[-1].body.damping.any()
    missing = faults(file)
    assert any("active_vehicle.toml: " in fault and "wing.npz" in fault for fault in missing), missing


def test_overrides_reach_bodies_and_joints_by_name_and_number(programme):
    file = programme(BARE + '[[joint]]\nname = "yaw"\nmode = "free"\n')
    config = load_test(file, ["active_vehicle.body.hull.rigid.mass_kg=6000", "active_vehicle.joint.0.mode=locked",
                              "active_vehicle.joint.yaw.angle_deg=2.0"])  # fmt: skip
    assert config.setup.vehicles.active.mass_kg == 6200.0
    assert crafts.craft(config.active_vehicle).settings("yaw").mode == "locked"
    assert faults(file, ["active_vehicle.body.hull.rigid.mass_kg=-6000"]) == (
        "--set: active_vehicle.body.hull.rigid.mass_kg: must be a number within 0 ... 1e+09 kg, got -6000",)  # fmt: skip
    (found,) = faults(file, ["active_vehicle.body.hul.joint=fixed"])
    assert found.startswith("--set active_vehicle.body.hul.joint: 'hul' is not an index of a list of 3, nor one of the names hull, mount")
    (found,) = faults(file, ["active_vehicle.mass_kg=7000"])
    assert "mass_kg: " in found and "here the bodies say it" in found
    config = load_test(None, ["active_vehicle.mass_kg=6500"])
    assert config.setup.vehicles.active.mass_kg == 6500.0


@pytest.mark.parametrize(("old", "new", "words"), [
    ('joint = "free"', 'joint = "fixed"', "body.hull.joint: a vehicle flies: .* got 'fixed'"),
    ('name = "docking"', 'name = "dock"', "body: .*no port 'docking', did you mean 'dock'"),
    ('parent = "hull"\n', "", "body: .*2 bodies without a parent .hull, mount., limit 1"),
    ('joint = "free"', 'joint = "free"\nposition_m = [1.0, 0.0, 0.0]', "body.hull.joint: a vehicle flies"),
    ('name = "transport_ship_probe"', 'name = "x"\ngravity_m_s2 = [0.0, 0.0, -9.8]', r"gravity_m_s2: \[0.0, 0.0, -9.8\] m/s2, limit 0"),
])  # fmt: skip
def test_a_craft_that_is_no_vehicle_is_refused(programme, tmp_path, old, new, words):
    found = faults(programme(BARE.replace(old, new, 1)))
    assert any(re.match(rf"{tmp_path}/active_vehicle.toml: {words}", fault) for fault in found), found


@pytest.mark.parametrize(("old", "new"), [
    ('parent = "mount"', 'parent = "mont"'), ('name = "probe"', 'name = "mount"'), ('body = "probe"', 'body = "prob"'),
])  # fmt: skip
def test_a_name_that_stands_for_nothing_has_its_line(programme, tmp_path, old, new):
    text = BARE.replace(old, new)
    assert text != BARE
    (found,) = map(located, faults(programme(text)))
    number, path = re.match(rf"{tmp_path}/active_vehicle.toml:(\d+): (\S+): ", found).groups()
    assert text.splitlines()[int(number) - 1] == new and path.rpartition(".")[2] == new.partition(" ")[0]


def test_tables_on_a_rigid_vehicle_are_held_too(programme):
    ship = (SHIPPED / "vehicles/transport_ship.toml").read_text()
    thruster = '[[thruster]]\nname = "t"\nposition_m = [-3.0, 0.0, 0.0]\ndirection = [1.0, 0.0, 0.0]\nthrust_n = 20.0\n'
    config = load_test(programme(ship + thruster))
    assert config.setup.vehicles.active.craft.thrusters[0].thrust_n == 20.0
    (found,) = faults(programme(ship + thruster.replace("thrust_n = 20.0", "thrust_n = -20.0")))
    assert "active_vehicle.toml: thruster.t.thrust_n: must be a number within 1e-06 ... 1e+06 N, got -20.0" in found
    principal = load_test(programme(ship), ["active_vehicle.inertia_kg_m2=[4235.0, 30700.0, 30700.0]"])
    assert principal.active_vehicle["inertia_kg_m2"] == load_test(None).active_vehicle["inertia_kg_m2"]


MODAL = (SHIPPED / "vehicles/flexible_truss.toml").read_text().replace("dumbbell_modes.csv", str(SHIPPED / "vehicles/dumbbell_modes.csv"))


@pytest.mark.parametrize(("active", "target", "part", "why"), [
    (None, None, "two_bodies", "both vehicles are rigid"),
    (None, MODAL, "two_bodies_flexible", "target_vehicle has modes at its port"),
    (None, BARE, "two_crafts", "target_vehicle has 2 moving joints"),
    (BARE.replace('"revolute"', '"fixed"'), None, "two_bodies", "both vehicles are rigid"),
])  # fmt: skip
def test_the_dynamics_part_follows_from_the_crafts(programme, active, target, part, why):
    config = load_test(programme(active, target, {"range_max_m": 4.0}))
    assert config.dynamics == {"part": part, "range_max_m": 4.0}
    (chosen,) = (words for words in config.chosen if words.startswith("dynamics: "))
    assert chosen.startswith(f"dynamics: {part}: ") and why in chosen
    assert test_from_toml(config.as_toml()).dynamics["part"] == part
    named = load_test(programme(active, target), [f"dynamics.part={part}"])
    assert named.dynamics["part"] == part and not any("dynamics: " in words for words in named.chosen)
    if part != "two_bodies":
        (found,) = faults(programme(active, target), ["dynamics.part=two_bodies"])
        assert f"dynamics.part: would not fly all of the crafts ({why}" in found
        assert f"limit {part!r}, or no part: the server takes it" in found


def test_crafts_that_no_part_flies_are_refused(programme):
    (found,) = faults(programme(BARE, MODAL))
    assert "test.active_vehicle: no dynamics part flies both crafts" in found
    assert "active_vehicle has 2 moving joints and 0 modes in its bodies; target_vehicle has modes at its port ([modal])" in found
    (found,) = faults(programme(BARE, MODAL), ["dynamics.part=two_crafts"])
    assert "would not fly all of the crafts (target_vehicle has modes at its port" in found and "no part flies both" in found


DOCKINGS = ("docking", "docking_tuned", "elastic_contact", "idss_docking", "ring_expert", "rubbing_contacts", "virtual_docking",
            "virtual_docking_elastic", "virtual_docking_hydraulic", "virtual_docking_modified", "virtual_docking_movable_limiter",
            "virtual_docking_ring", "virtual_docking_ring_hydraulic")  # fmt: skip


@pytest.mark.parametrize("name", DOCKINGS)
def test_a_shipped_docking_flies_the_craft_that_is_named(name):
    """Two rigid bodies as shipped; with wings, wheels or a truss the part that flies them; the rigid one by name is refused."""
    assert load_test(name).dynamics["part"] == "two_bodies"
    for craft, what in (("craft_two_wings", "joints"), ("transport_ship_wheels", "wheels"), ("large_station_flexible", "at its port")):
        settings = [f"test.active_vehicle=vehicles/{craft}.toml"]
        config = load_test(name, settings)
        part = "two_bodies_flexible" if what == "at its port" else "two_crafts"
        assert config.dynamics["part"] == part and what in config.chosen[0]
        (found,) = faults(name, [*settings, "dynamics.part=two_bodies"])
        assert "would not fly all of the crafts" in found and what in found and repr(part) in found


@pytest.mark.parametrize(("port", "reported"), [("docking", True), ("receiving", False)])
def test_a_port_that_looks_the_other_way_is_reported(port, reported):
    """Half of a truss of 56 m stands on the wrong side of the port by which it docks as an active craft."""
    config = load_test("docking", ["test.target_vehicle=vehicles/dumbbell_truss.toml", f"dynamics.target_port={port}"])
    words = f"target_vehicle: X of its port '{port}' looks out of the craft: the centre of mass is 23.7 m on the side of the other craft"
    assert (words in config.chosen) == reported


def test_the_choice_is_printed(programme, capsys):
    assert main(["check", str(programme())]) == 0
    assert "dynamics: two_bodies: both vehicles are rigid" in capsys.readouterr().out


def test_former_spelling_in_a_vehicle_is_refused_with_the_new_one(programme):
    old = BARE.replace("[body.rigid]\n", "", 1)
    found = faults(programme(old))
    assert any("body.hull.mass_kg: was renamed rigid.mass_kg" in fault for fault in found), found


def test_a_craft_whose_root_bends_names_what_its_control_acts_on(programme):
    """A torque on the frame of a bending root would turn all of its mass at once; a log from before the key still replays."""
    text = (SHIPPED / "vehicles/dumbbell_truss.toml").read_text().replace("bays = 40", "bays = 4")
    config = load_test(programme(text))
    assert crafts.craft(config.active_vehicle).control_body == "main_body"
    bare = programme(text.replace('control_body = "main_body"\n', ""))
    (found,) = faults(bare)
    assert "active_vehicle.toml: control_body: the body without a parent, 'truss', bends: control acts on a rigid body" in found
    assert '(main_body, reactor), value None, limit control_body = "BODY"' in found
    named = load_test(bare, ["active_vehicle.control_body=reactor"])
    assert crafts.craft(named.active_vehicle).control_body == "reactor"
    del named.document["active_vehicle"]["control_body"]
    assert test_from_toml(named.as_toml()).active_vehicle["name"] == "dumbbell spacecraft"
    for body, words in (("truss", "'truss' bends, limit a rigid body: main_body, reactor"),
                        ("main", "no body 'main', did you mean 'main_body'")):  # fmt: skip
        (found,) = faults(bare, [f"active_vehicle.control_body={body}"])
        assert f"control_body: {words}" in found
