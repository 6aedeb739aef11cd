"""Approach between docking ports wherever they look: against rigid-body kinematics written out, the same as between bodies where the ports
have their axes; every craft of the documents and every shipped one with joints or bodies docks at each of its ports."""

import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED, load_test
from hil_server.config.model import InitialConditions
from hil_server.errors import ConfigurationError
from hil_server.line.initial_conditions import start
from rt_kernels.context import Vehicle, Vehicles
from rt_kernels.model.craft_file import craft_of
from tests.system.line_runs import QUICK, STOPPING, fault_names, run_line

ROOT = SHIPPED.parent
GIVEN = InitialConditions("active", (0.02, -0.03), (2.0, -1.5, 3.0), (0.12, 0.01, -0.02), (0.3, -0.2, 0.4), (0.0, 0.0, 0.0), 1e-6)
LOOKING = Rotation.from_euler("xyz", [10.0, 150.0, 80.0], degrees=True)


def vehicle(position, rotation):
    return Vehicle(7000.0, np.diag([4000.0, 30000.0, 30000.0]).tolist(), [*position, *rotation.as_quat()])


@pytest.mark.parametrize("side", ["active", "target"])
def test_angles_velocities_and_rates_are_those_between_the_ports(side):
    """The approaching craft by a millisecond of its own motion, the other one at rest: pose and twist of the ports from it."""
    arms = {"active": np.array([0.4, -2.0, 1.1]), "target": np.array([-1.0, 0.5, 3.0])}
    crafts = {"active": vehicle(arms["active"], LOOKING), "target": vehicle(arms["target"], LOOKING.inv())}
    found = start(replace(GIVEN, approaching_vehicle=side), Vehicles(**crafts), None)
    assert found.X_TA[:3] == pytest.approx([0.0, 0.02, -0.03])
    R_TA = Rotation.from_quat(found.X_TA[3:])
    yaw, pitch, roll = np.radians(GIVEN.angles_deg)
    attitude = Rotation.from_euler("YZX", [yaw, pitch, roll])
    assert ((attitude if side == "active" else attitude.inv()).inv() * R_TA).magnitude() < 1e-12
    # port axes: place of the centre of mass of what approaches from its port, then all of it after h
    h, rate = 1e-4, np.radians(GIVEN.rate_deg_s)
    v = np.array(GIVEN.velocity_m_s) * (1.0 if side == "active" else -1.0)
    R_port = {"active": LOOKING, "target": LOOKING.inv()}[side]
    to_port = R_port.inv().apply(arms[side])
    if side == "active":
        def pose(t):
            R = R_TA * Rotation.from_rotvec(rate * t)
            return found.X_TA[:3] - R_TA.apply(to_port) + v * t + R.apply(to_port), R
    else:
        p_AT, R_AT = -R_TA.inv().apply(found.X_TA[:3]), R_TA.inv()

        def pose(t):
            R = R_AT * Rotation.from_rotvec(rate * t)
            p = p_AT - R_AT.apply(to_port) + v * t + R.apply(to_port)
            return -R.inv().apply(p), R.inv()
    (p_1, R_1), (p_2, R_2) = pose(-h), pose(h)
    assert found.V_TA[:3] == pytest.approx((p_2 - p_1) / (2 * h), abs=1e-9)
    assert found.V_TA[3:] == pytest.approx((R_2 * R_1.inv()).as_rotvec() / (2 * h), abs=1e-9)


@pytest.mark.parametrize("side", ["active", "target"])
def test_ports_with_the_axes_of_their_crafts_are_met_as_between_bodies(side):
    """To the bit: a log of before the key begins as it began."""
    crafts = Vehicles(vehicle([3.6, 0.1, 0.0], Rotation.identity()), vehicle([-6.2, 0.0, 0.3], Rotation.identity()))
    both = [start(replace(GIVEN, approaching_vehicle=side, between=between), crafts, None) for between in ("ports", "bodies")]
    assert both[0].X_TA.tobytes() == both[1].X_TA.tobytes() and both[0].V_TA.tobytes() == both[1].V_TA.tobytes()


def test_a_refusal_names_the_ports():
    with pytest.raises(ConfigurationError, match="do not touch .* \\(port 'docking' of the active craft, 'docking' of the target craft\\)"):
        start(GIVEN, Vehicles(vehicle([3.6, 0.0, 0.0], LOOKING), vehicle([-6.2, 0.0, 0.0], LOOKING)), lambda X: -1.0)
    with pytest.raises(ConfigurationError, match=r"dynamics.active_port: .*no port 'nose'; there are docking, value 'nose'"):
        load_test(None, ["test.active_vehicle=vehicles/craft_two_wings.toml", "dynamics.active_port=nose"])


# -------------------------------------------------------------------------------------------------------------- every craft docks


def documents():
    """Name -> text of every whole craft in docs/craft.md."""
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "craft.md").read_text(), re.S)
    crafts = {tomllib.loads(block)["name"]: block for block in blocks if block.startswith("name =")}
    assert len(crafts) >= 4
    return crafts


def shipped():
    """File of every shipped craft of several bodies whose root flies."""
    files = [*sorted((SHIPPED / "vehicles").glob("*.toml")), *sorted((SHIPPED / "manipulators").glob("*.toml"))]
    return {file.name: file for file in files if re.search(r'^joint = "free"$', file.read_text(), re.M)}


CRAFTS = documents() | shipped()


def ports(name):
    from rt_kernels.extends import read_tables

    tables = tomllib.loads(CRAFTS[name]) if isinstance(CRAFTS[name], str) else read_tables(CRAFTS[name])
    return [port.name for port in craft_of(tables, folder=SHIPPED / "vehicles").ports]


@pytest.mark.parametrize("side", ["active", "target"])
@pytest.mark.parametrize("name", CRAFTS)
def test_every_craft_docks_at_each_of_its_ports(tmp_path, name, side):
    file = CRAFTS[name]
    if isinstance(file, str):
        file = tmp_path / "craft.toml"
        file.write_text(CRAFTS[name])
    for port in ports(name):
        chosen = (f"dynamics.{side}_port={port}",) if port != "docking" else ()
        records = run_line([*QUICK, "test.stand=stands/ideal_stand.toml", f"test.{side}_vehicle={file}", "compensation.part=none",
                            "guidance.after_capture_s=0.01", *chosen])  # fmt: skip
        assert records["capture_time"][-1] > 0.0, f"{name}, port {port}"
        assert not fault_names(records["faults"][-1]) & STOPPING
