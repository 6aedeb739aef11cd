"""What the verb says of a craft, against closed forms, finite elements and the library."""

import math

import numpy as np
import pytest

from hil_server.config import SHIPPED
from hil_server.errors import ConfigurationError
from hil_server.predict.craft_view import as_dict, modes_text, picture, read, view
from rt_kernels.extends import read_tables
from rt_kernels.model.craft_file import craft_of
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.integrators import step_limit

BLOCK = {"mass_kg": 30.0, "inertia_kg_m2": [4.0, 5.0, 6.0]}
K, M1, M2 = 5000.0, 30.0, 10.0


def two_masses(mode="free", **settings):
    """Two bodies on a spring along x, ports on both: the reduced mass on the spring is one mode."""
    return craft_of({
        "name": "two masses",
        "body": [{"name": "a", "joint": "free", "rigid": BLOCK},
                 {"name": "b", "parent": "a", "joint": "prismatic", "axis": [1.0, 0.0, 0.0], "position_m": [2.0, 0.0, 0.0],
                  "rigid": {"mass_kg": M2, "inertia_kg_m2": [1.0, 1.0, 1.0]}}],
        "joint": [{"name": "b", "mode": mode, **settings}],
        "port": [{"name": "docking", "body": "b"}, {"name": "back", "body": "a", "angles_deg": [180.0, 0.0, 0.0]}],
    })  # fmt: skip


def test_two_masses_on_a_spring():
    seen = view(two_masses(stiffness_n_per_m=K, damping_n_s_per_m=20.0))
    mu = M1 * M2 / (M1 + M2)
    omega, ratio = math.sqrt(K / mu), 20.0 / (2.0 * math.sqrt(K * mu))
    assert seen.rigid_modes == 6 and len(seen.frequency_hz) == 7
    assert seen.frequency_hz[6] == pytest.approx(omega / (2 * math.pi), rel=1e-12)
    assert seen.damping_ratio[6] == pytest.approx(ratio, rel=1e-9)
    port = seen.port(None)
    assert port.name == "docking" and port.effective_mass[0] == pytest.approx(M2, rel=1e-9)
    assert port.rigid_mass[0] == pytest.approx(M1 + M2, rel=1e-9) and seen.port("back").effective_mass[0] == pytest.approx(M1, rel=1e-9)
    # shape of the mode: the masses move against each other, mass-normalised
    assert abs(port.shapes[6, 0]) == pytest.approx(math.sqrt(M1 / (M2 * (M1 + M2))), rel=1e-9)
    assert seen.steps["symplectic_euler"] == pytest.approx(2.0 * (math.sqrt(1.0 + ratio**2) - ratio) / omega, rel=1e-9)
    assert seen.steps["rk4"] == pytest.approx(2.0 * math.sqrt(2.0) / omega, rel=1e-12)


def test_step_limits_are_those_of_the_integrators():
    seen = view(two_masses(stiffness_n_per_m=K))
    tree = FlexibleTree(two_masses(stiffness_n_per_m=K).links)
    assert seen.steps["rk4"] == pytest.approx(step_limit(tree, "rk4"), rel=1e-3)


def test_joints_are_held_as_their_mode_says():
    rigid = view(two_masses("locked", distance_m=0.5, stiffness_n_per_m=K))
    assert len(rigid.frequency_hz) == 6 and rigid.port("docking").effective_mass[0] == pytest.approx(M1 + M2, rel=1e-9)
    assert rigid.rest.centre[0] == pytest.approx(2.5 * M2 / (M1 + M2), rel=1e-12)
    servo = view(two_masses("driven", servo_stiffness_n_per_m=0.5 * K, stiffness_n_per_m=0.5 * K))
    assert servo.frequency_hz[6] == pytest.approx(view(two_masses(stiffness_n_per_m=K)).frequency_hz[6], rel=1e-12)
    loose = view(two_masses())
    assert loose.rigid_modes == 7
    with pytest.raises(ConfigurationError, match="7 modes at 0 Hz, limit 6: joints free without a spring: b; lock them"):
        modes_text(loose, loose.port(None))


def test_effective_mass_across_a_rigid_body():
    """A port at a lever r: 1 / (1/m + r^2 / J)."""
    seen = view(*read(SHIPPED / "vehicles/transport_ship.toml"))
    port = seen.port(None)
    across = 1.0 / (1.0 / 7000.0 + 3.6**2 / 30700.0)
    np.testing.assert_allclose(port.effective_mass, [7000.0, across, across], rtol=1e-9)
    np.testing.assert_allclose(port.rigid_mass, port.effective_mass, rtol=1e-9)


def test_modes_of_a_vehicle_file_are_seen_too():
    """The same craft as a tree, and as a rigid vehicle with its modes: the port feels the same."""
    tree, modal = (view(*read(SHIPPED / f"vehicles/{file}.toml")) for file in ("dumbbell_truss", "flexible_truss"))
    np.testing.assert_allclose(modal.frequency_hz[6:], tree.frequency_hz[6:], rtol=1e-9)
    np.testing.assert_allclose(modal.port(None).effective_mass, tree.port(None).effective_mass, rtol=1e-6)
    np.testing.assert_allclose(modal.damping_ratio[6], 0.05 / (2 * math.pi), rtol=1e-3)
    np.testing.assert_allclose(tree.frequency_hz[6:13], [0.0982, 0.0983, 0.1533, 0.2910, 0.2912, 0.6289, 0.6313], rtol=6e-4)


def test_numbers_and_picture(tmp_path):
    seen = view(*read(SHIPPED / "vehicles/craft_two_wings.toml"))
    found = as_dict(seen)
    assert found["mass_kg"] == pytest.approx(1308.0) and [b["name"] for b in found["bodies"]] == ["hub", "left_wing", "right_wing"]
    assert found["bodies"][1]["stiffness"] == 4000.0 and found["bodies"][1]["upper"] is None and len(found["frequency_hz"]) == 10
    assert len(found["ports"][0]["modes"]) == 10 and len(found["ports"][0]["modes"][0]["shape"]) == 6
    for name, start in (("craft.png", b"\x89PNG"), ("craft.svg", b"<?xml")):
        assert (tmp_path / name).exists() is False
        assert tmp_path.joinpath(picture(seen, tmp_path / name)).read_bytes().startswith(start)
    text = (tmp_path / "craft.svg").read_text()
    assert text.count("<path") > 50
    with pytest.raises(ConfigurationError, match="must end in .png or .svg"):
        picture(seen, tmp_path / "craft.gif")


def test_every_shipped_craft_can_be_looked_at_and_drawn(tmp_path):
    for folder in ("vehicles", "manipulators"):
        for file in sorted((SHIPPED / folder).glob("*.toml")):
            if "free_free" in file.stem or "dumbbell" in file.stem:
                continue  # as dumbbell_truss above
            seen = view(*read(file))
            document = read_tables(file)
            assert as_dict(seen)["mass_kg"] > 0.0 and len(seen.craft.links) == len(document.get("body", [0]))
            picture(seen, tmp_path / f"{file.stem}.svg")
