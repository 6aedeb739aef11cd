"""Craft files in whole runs: captured where the rigid craft captures, equal bytes in replay, momentum; the dumbbell under a push."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import load_test
from hil_server.config.loader import SHIPPED
from hil_server.log.reader import read_log
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from rt_kernels.context import Vehicles
from rt_kernels.layout import CODES
from rt_kernels.model.craft_file import read_craft
from tests.dynamics.test_two_crafts import AUX, PERIOD, begin, make, station, vehicle_of

VIRTUAL = SHIPPED / "programmes" / "virtual_docking.toml"
MODE = CODES["joint_mode"]

# the 20 t ship of the shipped virtual docking, its mass and centre on bodies of its own
HULL = """
name = "{name}"
thrust_n = 300.0

[[body]]
name = "hull"
joint = "free"
[body.rigid]
mass_kg = 19000.0
centre_of_mass_m = {centre}
inertia_kg_m2 = [38000.0, 110000.0, 110000.0]

[[port]]
name = "docking"
body = "{carrier}"
position_m = {port}

[[interface]]
name = "shoulder"
body = "{first}"

[[sensor]]
name = "nose"
kind = "acceleration"
body = "hull"
position_m = [3.0, 0.0, 0.0]
"""
PANEL = """
[[body]]
name = "panel{k}"
parent = "{parent}"
joint = "{joint}"
position_m = {at}
axis = {axis}
[body.rigid]
mass_kg = {mass}
centre_of_mass_m = {centre}
inertia_kg_m2 = {inertia}
"""
JOINT = """
[[joint]]
name = "panel{k}"
mode = "{mode}"
stiffness_n_m_per_rad = {stiffness}
damping_n_m_s_per_rad = {damping}
friction_n_m = {friction}
"""
WING = """
[[body]]
name = "{name}"
parent = "hull"
joint = "fixed"
position_m = [0.0, {side}, 0.0]
angles_deg = [0.0, {turn}, 0.0]
[body.beam]
length_m = 10.0
mass_per_length_kg_per_m = 50.0
axial_stiffness_n = 2.0e6
bending_stiffness_y_n_m2 = 2.0e5
bending_stiffness_z_n_m2 = 6.0e5
torsion_stiffness_n_m2 = 2.0e5
gyration_y_m = 0.6
gyration_z_m = 0.02
mode_set = "clamped"
modes = 6
damping_ratio = 0.005
"""


def panels(mode, stiffness=2e5, damping=2e4, friction=0.0):
    """Two panels on the sides and a third one on the first: 1000 kg in all, centre of mass of the whole at the hull's."""
    text = HULL.format(name="panels", centre=[0.0, 0.0, 0.0], carrier="hull", port=[4.0, 0.0, 0.0], first="panel0")
    for k, (parent, at, axis, mass, centre) in enumerate((
        ("hull", [0.0, 2.0, 0.0], [1.0, 0.0, 0.0], 250.0, [0.0, 2.0, 0.0]),
        ("hull", [0.0, -2.0, 0.0], [0.0, 0.0, 1.0], 500.0, [0.0, -3.0, 0.0]),
        ("panel0", [0.0, 4.0, 0.0], [0.0, 0.0, 1.0], 250.0, [0.0, 0.0, 0.0]))):  # fmt: skip
        text += PANEL.format(k=k, parent=parent, joint="revolute" if mode else "fixed", at=at, axis=axis, mass=mass, centre=centre,
                             inertia=[300.0, 60.0, 320.0])
        if mode:
            text += JOINT.format(k=k, mode=mode, stiffness=stiffness, damping=damping, friction=friction)
    return text


def wings():
    text = HULL.format(name="wings", centre=[0.0, 0.0, 0.0], carrier="hull", port=[4.0, 0.0, 0.0], first="left")
    return text + WING.format(name="left", side=1.5, turn=90.0) + WING.format(name="right", side=-1.5, turn=-90.0)


CRAFTS = {"rigid tree": panels(""), "flexible tree": wings(), "three joints": panels("free"), "joints change": panels("free")}
CHANGES = ('dynamics.joint_changes=[{craft="active", joint="panel0", mode="locked", event="first_contact", after_s=0.2}, '
           '{craft="active", joint="panel1", mode="given", event="first_contact", after_s=0.1, target=0.05, time_s=1.5}, '
           '{craft="active", joint="panel0", mode="free", event="first_contact", after_s=1.0}]',)


def fly(folder, *overrides, until=9.0):
    """(records, aux by name, log path, notes) of the shipped virtual docking from the approach into the capture, met so that the latches
    catch at the first strike: after a rebound the time of the capture says little."""
    case = ("initial_conditions.velocity_x_m_s=0.14", "initial_conditions.lateral_y_m=0.05", "initial_conditions.lateral_z_m=0.02")
    config = load_test(VIRTUAL, [f"test.duration_max_s={until}", "telemetry.log_every=1", *case, *overrides])
    log = simulate(config, Options(out=str(folder), quiet=True, report=False))["log"]
    opened = read_log(log)
    return opened, log


@pytest.fixture(scope="module")
def rigid(tmp_path_factory):
    """Time of the first contact and of the capture of the same masses as one rigid body."""
    folder = tmp_path_factory.mktemp("rigid")
    log, _ = fly(folder / "run")
    return log.records["first_contact_time"][-1], log.records["capture_time"][-1]


@pytest.mark.parametrize("name", CRAFTS)
def test_a_craft_docks_where_the_rigid_one_does(tmp_path, rigid, name):
    """Captured like the rigid ship; equal bytes in replay; joints, sensor and interface in the log, named in its notes."""
    file = tmp_path / "craft.toml"
    file.write_text(CRAFTS[name])
    overrides = [f'test.active_vehicle="{file}"', 'dynamics.part="two_crafts"', *(CHANGES if name == "joints change" else ())]
    log, path = fly(tmp_path / "run", *overrides)
    contact, capture = log.records["first_contact_time"][-1], log.records["capture_time"][-1]
    assert rigid[1] > rigid[0] > 0.0
    assert contact == pytest.approx(rigid[0], abs=0.05)
    # what swings, locks and moves takes a little energy
    assert capture - contact == pytest.approx(rigid[1] - rigid[0], rel=0.02)
    assert any("interfaces active shoulder" in note for note in log.header.notes)
    assert any("sensors active nose" in note for note in log.header.notes)
    assert np.abs(log.aux("sensor_acceleration")).max() > 1e-3
    assert np.abs(log.aux("interface_wrench")).max() > 1.0
    if "joint" in name:
        assert any("joints active panel0, active panel1, active panel2" in note for note in log.header.notes)
        assert np.ptp(log.aux("joint_position")[:, :3], axis=0).min() > 1e-5
    if name == "joints change":
        modes = log.aux("joint_mode")[:, :3]
        assert {MODE["locked"], MODE["free"]} <= set(modes[:, 0])
        assert MODE["given"] in modes[:, 1]
        assert log.aux("joint_position")[-1, 1] == pytest.approx(0.05, abs=1e-9)
    if name == "flexible tree":
        assert log.aux("modal_energy")[:, 0].max() > 1e-6
    assert replay.replay(path, verify=True)["equal"]


# --------------------------------------------------------------------------------------------------------------------- the dumbbell


def test_dumbbell_under_a_push_at_its_port():
    """100 N across, half a sine of 0.5 s, at the reactor's far end: 4.37 mm after 0.5 s, 18.8 mm after 2 s (finite elements; the modes
    of the whole craft give the same)."""
    craft = read_craft(SHIPPED / "vehicles" / "dumbbell_truss.toml")
    part = make(Vehicles(station(), vehicle_of(craft)))
    tree = part.trees[1]
    sample, aux = begin(part, np.zeros(6))

    def port():
        q, _ = part.coordinates(1)
        R, p = tree.pose(q, "reactor")
        return p + R @ [3.0, 0.0, 0.0]

    before, course = port(), {}
    for k in range(round(2.0 / PERIOD)):
        t = (k + 0.5) * PERIOD
        sample["F_T_corrected"][0, 1] = 100.0 * np.sin(np.pi * t / 0.5) if t < 0.5 else 0.0
        part.step(sample, aux)
        course[k + 1] = port() - before
    assert np.linalg.norm(course[500]) == pytest.approx(4.37e-3, rel=0.02)
    assert np.linalg.norm(course[2000]) == pytest.approx(18.8e-3, rel=0.02)
    assert aux[AUX["modal_energy"]][1] > 0.1
    assert Rotation.from_quat(sample["X_NV"][0][3:]).magnitude() > 1e-4


@pytest.mark.parametrize(("control_body", "peaks"), [("main_body", (-1.044, 1.056)), (None, (-0.03, 0.03))])
def test_dumbbell_under_the_torques_of_the_paper(control_body, peaks):
    """50, 600, 600 N.m of the craft's own control for 100 s: the truss's end moves as the chain of rigid segments in Pinocchio does
    (`tests/offline/test_dumbbell_chain.py`); on the frame of the bending truss, as where no body is named, it would hardly bend."""
    craft = replace(read_craft(SHIPPED / "vehicles" / "dumbbell_truss.toml"), control_body=control_body)
    part = make(Vehicles(vehicle_of(craft), station()), period=5e-3)
    tree = part.trees[0]
    sample, aux = begin(part, np.zeros(6))
    sample["control_A"][0, 3:] = 50.0, 600.0, 600.0
    course = []
    for _ in range(2000):
        part.repeat(sample, 10)
        q, _ = part.coordinates(0)
        (R, p), (_, tip) = tree.pose(q, "main_body"), tree.pose(q, "reactor")
        course.append(R.T @ (tip - p) - [30.0, 0.0, 0.0])
    course = np.array(course)
    found = course[:, 1].min(), course[:, 2].max()
    if control_body is None:
        assert np.abs(course).max() < 0.05
    else:
        np.testing.assert_allclose(found, peaks, rtol=0.02)
