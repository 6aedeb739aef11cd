"""`hil-server craft` from the command line: text, numbers, picture, modes that answer as the whole craft, and faults."""

import json
import tomllib

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import SHIPPED
from hil_server.config.modal_data import modal_craft, rigid_of
from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles
from rt_kernels.dynamics.two_crafts import TwoCrafts
from rt_kernels.model.craft import at_rest
from rt_kernels.model.craft_file import read_craft
from tests.config.test_modal_data import answers_as_the_whole_craft

DUMBBELL = str(SHIPPED / "vehicles/dumbbell_truss.toml")
TRUSS = SHIPPED / "vehicles/flexible_truss.toml"


def test_exported_modes_answer_as_the_whole_craft(tmp_path, capsys):
    """From the modes that the verb writes, in the exact modal propagator."""
    modes = tmp_path / "modes.csv"
    assert main(["craft", DUMBBELL, "--modes", str(modes), "--vehicle", str(TRUSS)]) == 0
    table = tomllib.loads(TRUSS.read_text())
    table["modal"] |= {"file": modes.name, "log_decrement_bands": [[100.0, 0.0]]}
    M = rigid_of(table)
    craft = modal_craft(table["modal"], tmp_path, (5e-4, 1e-4), M)
    assert craft.n_modes == 12
    answers_as_the_whole_craft(craft, M)
    # and a vehicle file takes them as they are written
    vehicle = TRUSS.read_text().replace("dumbbell_modes.csv", modes.name)
    (tmp_path / "mine.toml").write_text(vehicle)
    assert main(["craft", str(tmp_path / "mine.toml")]) == 0
    assert "0.09821" in capsys.readouterr().out


def test_modes_of_another_craft_are_refused_with_both_numbers(tmp_path, capsys):
    bare = tomllib.loads((SHIPPED / "vehicles/dumbbell_truss.toml").read_text())["body"][0]["truss"]
    lines = [f"{key} = {json.dumps(value)}" for key, value in bare.items()] + ['[[port]]\nname = "docking"\nbody = "truss"\nnode = "tip"']
    (tmp_path / "bare.toml").write_text('name = "bare"\n[[body]]\nname = "truss"\njoint = "free"\n[body.truss]\n' + "\n".join(lines))
    modes = tmp_path / "bare.csv"
    assert main(["craft", str(tmp_path / "bare.toml"), "--modes", str(modes), "--vehicle", str(TRUSS)]) == 2
    assert "a craft of 1505 kg, the vehicle has mass_kg = 12005" in capsys.readouterr().err and not modes.exists()


def test_text_numbers_and_picture(tmp_path, capsys):
    picture, numbers = tmp_path / "ship.svg", tmp_path / "ship.json"
    probe = str(SHIPPED / "manipulators/transport_ship_probe.toml")
    assert main(["craft", probe, "--json", str(numbers), "--picture", str(picture)]) == 0
    capsys.readouterr()
    found = json.loads(numbers.read_text())
    assert found["mass_kg"] == pytest.approx(7000.0) and found["picture"] == str(picture) and picture.read_text().startswith("<?xml")
    assert [body["joint"] for body in found["bodies"]] == ["free", "revolute", "revolute"]
    assert main(["craft", "manipulators/transport_ship_probe.toml"]) == 0
    text = capsys.readouterr().out
    for words in ("mass            7000 kg", "  mount", "revolute pitch", "Port docking: 3.6  0  0 m from the centre", "effective mass"):
        assert words in text


def test_it_says_what_a_run_takes(tmp_path, capsys):
    """Counts of a shipped craft are those of the part that flies it; a craft beyond a limit is refused with both numbers."""
    file = tmp_path / "found.json"
    assert main(["craft", "manipulators/station_arm.toml", "--json", str(file)]) == 0
    assert "In a run: taken as it is" in capsys.readouterr().out
    found = json.loads(file.read_text())["in_a_run"]
    craft = read_craft(SHIPPED / "manipulators/station_arm.toml")
    rest = at_rest(craft)
    vehicles = Vehicles(Vehicle(rest.mass, rest.inertia, craft=craft), Vehicle(1.0, np.eye(3)))
    part = TwoCrafts(period_s=1e-3, vehicles=vehicles, start=Start(IDENTITY, np.zeros(6)))
    seen = [part.named["joint_rate"][0], (), range(part.trees[0].nv), part.trees[0].names, (), (), part.sensors, part.interfaces]
    assert found["refused"] == [] and found["counts"] == {
        what: [len(things), limit] for (what, limit), things in zip(TwoCrafts.LIMITS.items(), seen, strict=True)}  # fmt: skip
    ship = tmp_path / "ship.toml"
    rows = "".join(f'[[sensor]]\nname = "s{k}"\nkind = "rate"\nposition_m = [0.0, 0.0, 0.0]\n' for k in range(25))
    ship.write_text((SHIPPED / "vehicles/transport_ship.toml").read_text() + rows)
    assert main(["craft", str(ship)]) == 0
    out = capsys.readouterr().out
    assert "In a run: not as a vehicle" in out and "sensors: 25, limit 24" in out


def test_urdf_names_what_it_drops(tmp_path, capsys):
    pytest.importorskip("yourdfpy")
    link = '<link name="{0}"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{1}</link>'
    joint = ('<joint name="j" type="revolute"><origin xyz="0 0 1"/><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>'
             '<limit lower="-1" upper="1" effort="5" velocity="2"/><mimic joint="j"/></joint>')  # fmt: skip
    visual = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    file = tmp_path / "two.urdf"
    file.write_text(f'<robot name="r">{link.format("a", visual)}{link.format("b", "")}{joint}</robot>')
    assert main(["craft", str(file)]) == 0
    out = capsys.readouterr().out
    assert "Not in the model" in out and "moves by itself: it follows itself, j -> j" in out and "<visual> of links: 1" in out
    assert main(["craft", str(file), "--held"]) == 0
    assert "fixed root_joint" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "words"), [
    (["none.toml"], "none.toml: cannot be read: No such file"),
    ([DUMBBELL, "--modes", "x.csv", "--port", "dock"], "--port: dock, limit one of docking"),
    ([str(SHIPPED / "vehicles/transport_ship.toml"), "--picture", "x.gif"], "--picture x.gif: must end in .png or .svg"),
    ([str(SHIPPED / "stands/docking_stand.toml")], "docking_stand.toml: is a stand, not a craft: hil-server workspace "),
    ([str(SHIPPED / "vehicles/transport_ship.toml"), "--count", "-1"], "--count -1"),
])  # fmt: skip
def test_faults_end_with_code_2(arguments, words, capsys):
    assert main(["craft", *arguments]) == 2
    assert words in capsys.readouterr().err
