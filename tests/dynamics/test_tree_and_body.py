"""A free-flying tree and a rigid target vehicle: against two rigid bodies, momentum, energy, kinds of kernels, replay."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from hil_server.telemetry.log_file import open_log
from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles
from rt_kernels.dynamics.tree_and_body import TreeAndBody
from rt_kernels.dynamics.two_bodies import TwoBodies
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.multibody import Tree

MOTION = CODES["motion"]
PERIOD = 1e-3
START = Start(IDENTITY, np.zeros(6))
TILTED = [-0.5, 0.05, -0.03, *Rotation.from_euler("xyz", [2, -3, 4], degrees=True).as_quat()]
TWIST = [0.1, 0.01, -0.02, 0.01, -0.02, 0.03]
ANGLES = [0.3, -0.5, 0.4]

ROOT = """
[[body]]
name = "craft"
joint = "free"
mass_kg = 6250.0
centre_of_mass_m = [0.3, -0.1, 0.2]
inertia_kg_m2 = [5000.0, 200.0, -100.0, 21000.0, 300.0, 22000.0]
"""
LINK = """
[[body]]
name = "link{k}"
parent = "{parent}"
joint = "{joint}"
position_m = [{x}, 0.2, 0.1]
axis = {axis}
mass_kg = {mass}
centre_of_mass_m = [0.6, 0.05, 0.0]
inertia_kg_m2 = [40.0, 120.0, 130.0]
"""


def write_model(folder, joints=("revolute", "revolute", "revolute")):
    axes, text, parent = ([0.0, 1.0, 0.0], [0.0, 0.6, 0.8], [1.0, 0.0, 0.0]), ROOT, "craft"
    for k, (joint, axis) in enumerate(zip(joints, axes, strict=True)):
        text += LINK.format(k=k, parent=parent, joint=joint, axis=axis, mass=300.0 - 50.0 * k, x=2.0 if k == 0 else 1.2)
        parent = f"link{k}"
    path = folder / f"{'_'.join(joints)}.toml"
    path.write_text(text)
    return path


def vehicles(path, angles):
    """Active: mass and inertia of the whole tree at these angles about its centre of mass, root axes; target: as in test_two_bodies."""
    tree = Tree.from_toml(path, gravity=(0, 0, 0))
    H = tree.mass_matrix(np.array([0, 0, 0, 0, 0, 0, 1.0, *angles]))[:6, :6]
    m = H[0, 0]
    inertia = H[3:, 3:] - H[:3, 3:].T @ H[:3, 3:] / m
    target = Rotation.from_euler("xyz", [10, -20, 30], degrees=True).as_matrix()
    target = target @ np.diag([42000.0, 260000.0, 250000.0]) @ target.T
    return Vehicles(
        active=Vehicle(m, ((inertia + inertia.T) / 2).tolist(), [3.6, 0.2, -0.1, 0, 0, 0, 1.0]),
        target=Vehicle(20000.0, ((target + target.T) / 2).tolist(), [-6.2, 0.1, 0, 0, 0, 0, 1.0]),
    )


def make(path, angles=ANGLES, port="link2", **keys):
    table = {"range_max_m": 1e3, "joint_angles": list(angles) or [0.0]} | keys
    return TreeAndBody(period_s=PERIOD, vehicles=vehicles(path, angles), start=START, model=str(path), port_body=port, **table)


def run(part, ticks=400, contact=1.0, thrust=0.0):
    """Records of a free flight with a contact pulse and thrust, from the closing of the loop."""
    sample = np.zeros(1, SAMPLE_DTYPE)
    sample["periods"], sample["X_TA_measured"], sample["V_TA_measured"] = 1, TILTED, TWIST
    sample["motion"] = MOTION["close_loop"]
    aux = part.step(sample)
    sample["motion"] = MOTION["free"]
    out = [sample.copy()]
    for k in range(ticks):
        pulse = contact * max(0.0, np.sin(2 * np.pi * k / 200))
        sample["F_T_corrected"] = pulse * np.array([80.0, -20.0, 15.0, 5.0, 8.0, -6.0])
        sample["control_A"] = thrust * np.array([3.0, -2.0, 1.0, 4.0, -1.0, 2.0]) * (100 <= k < 200)
        aux = part.step(sample, aux)
        out.append(sample.copy())
    return np.concatenate(out), aux


COMPARED = ("X_TA", "V_TA", "X_NC", "V_NC", "X_NV", "V_NV", "momentum")


def farthest(a, b):
    return max(np.abs(a[name] - b[name]).max() / max(1.0, np.abs(b[name]).max()) for name in COMPARED)


@pytest.mark.parametrize("kernels", ["general", "fastest"])
def test_without_joints_it_is_two_bodies(tmp_path, kernels):
    """All links fixed: the same equations by other kernels, with contact and with thrust."""
    path = write_model(tmp_path, ("fixed",) * 3)
    rigid = TwoBodies(period_s=PERIOD, vehicles=vehicles(path, []), start=START, range_max_m=1e3)
    expected, _ = run(rigid, thrust=1.0)
    found, _ = run(make(path, [], kernels=kernels), thrust=1.0)
    assert farthest(found, expected) < 1e-11
    assert farthest(run(make(path, [], kernels=kernels))[0], expected) > 1e-6  # thrust does show


def test_stiff_joints_come_near_two_bodies(tmp_path):
    """What is left is the compliance: a hundredth of the stiffness, a hundred times the distance, about."""
    path = write_model(tmp_path)
    rigid = TwoBodies(period_s=PERIOD, vehicles=vehicles(path, ANGLES), start=START, range_max_m=1e3)
    expected, _ = run(rigid)
    errors = [np.abs(run(make(path, stiffness=[k], damping=[1e-3 * k]))[0]["X_TA"] - expected["X_TA"]).max() for k in (1e5, 1e7)]
    assert errors[1] < 1e-4
    assert errors[0] > 20 * errors[1]


@pytest.mark.parametrize("joints", [("revolute", "revolute", "revolute"), ("prismatic", "revolute", "revolute")])
def test_momentum_is_kept_while_the_joints_move(tmp_path, joints):
    part = make(write_model(tmp_path, joints), stiffness=[50.0], damping=[5.0])
    records, aux = run(part, 5000)
    assert aux[1] > 0.01  # the joints do move
    before, after = records["momentum"][0], records["momentum"][-1]
    for half in (slice(0, 3), slice(3, 6)):
        assert np.linalg.norm(after[half] - before[half]) <= 1e-12 * np.linalg.norm(before[half])


def test_energy_of_a_free_elastic_joint_stays(tmp_path):
    """One joint without damping, no contact: kinetic and spring energy swap; their sum swings with the step, but does not grow."""
    path, stiffness = write_model(tmp_path, ("revolute", "fixed", "fixed")), 2e4
    part = make(path, [0.3], stiffness=[stiffness], damping=[0.0])
    records, aux = run(part, 400)
    sample, energy, elastic = records[-1:].copy(), [], []
    sample["F_T_corrected"] = 0.0
    for _ in range(4000):
        part.step(sample, aux)
        elastic.append(0.5 * stiffness * aux[1] ** 2)
        energy.append(sample["kinetic_energy"][0] + elastic[-1])
    swing, mean = max(elastic), np.mean(energy)
    assert np.ptp(energy) < 0.02 * swing
    assert abs(np.mean(energy[2000:]) - np.mean(energy[:2000])) < 2e-3 * swing, mean


def test_velocity_is_the_rate_of_the_pose(tmp_path):
    records, _ = run(make(write_model(tmp_path), stiffness=[500.0], damping=[5.0]), 600)
    rate = (records["X_TA"][2:, :3] - records["X_TA"][:-2, :3]) / (2 * PERIOD)
    assert np.abs(rate - records["V_TA"][1:-1, :3]).max() < 1e-4


def test_closing_the_loop_starts_from_the_achieved_pose_and_twist(tmp_path):
    part = make(write_model(tmp_path))
    records, _ = run(part, 1, contact=0.0)
    np.testing.assert_array_equal(records["X_TA"][0], TILTED)
    np.testing.assert_allclose(records["V_TA"][1], TWIST, atol=1e-5)
    np.testing.assert_allclose(records["X_TA"][1][:3], np.add(TILTED[:3], PERIOD * np.array(TWIST[:3])), atol=1e-7)


def test_freeze_and_joined_hold_the_pose(tmp_path):
    part = make(write_model(tmp_path))
    records, aux = run(part, 10)
    sample = records[-1:].copy()
    for motion, status in (("freeze", 0), ("joined", 4)):
        sample["motion"] = MOTION[motion]
        part.step(sample, aux)
        np.testing.assert_array_equal(sample["X_TA"], records["X_TA"][-1:])
        assert not sample["V_TA"].any()
        assert sample["dynamics_status"][0] == status


def latched(part, ticks=300, released=0, thrust=1.0):
    """Records of a latching after a contact pulse, with thrust, and of the flight after a release."""
    records, aux = run(part, 60)
    sample, out = records[-1:].copy(), [records[-1:]]
    sample["F_T_corrected"] = 0.0
    for k in range(ticks + released):
        sample["motion"] = MOTION["joined" if k < ticks else "free"]
        sample["control_A"] = thrust * np.array([3.0, -2.0, 1.0, 4.0, -1.0, 2.0]) * (k < 100)
        part.step(sample, aux)
        out.append(sample.copy())
    return np.concatenate(out), aux


def test_joined_without_joints_it_is_two_bodies(tmp_path):
    path = write_model(tmp_path, ("fixed",) * 3)
    rigid = TwoBodies(period_s=PERIOD, vehicles=vehicles(path, []), start=START, range_max_m=1e3)
    expected, _ = latched(rigid, released=100)
    found, _ = latched(make(path, []), released=100)
    # the joined body turns by its rate at the start of a step in `two_bodies`, at its middle here
    assert farthest(found, expected) < 1e-6
    assert np.abs(found["kinetic_energy"] - expected["kinetic_energy"]).max() < 1e-6 * expected["kinetic_energy"][0]
    assert np.array_equal(found["dynamics_status"], expected["dynamics_status"])


@pytest.mark.parametrize("joints", [("revolute", "revolute", "revolute"), ("prismatic", "revolute", "revolute")])
def test_latching_and_release_keep_momentum_and_do_not_bump(tmp_path, joints):
    part = make(write_model(tmp_path, joints), stiffness=[500.0], damping=[5.0])
    records, aux = latched(part, 1500, released=300, thrust=0.0)
    before = records["momentum"][0]
    for half in (slice(0, 3), slice(3, 6)):
        assert np.abs(records["momentum"][:, half] - before[half]).max() <= 1e-12 * np.linalg.norm(before[half])
    joined = records["dynamics_status"] == 4
    assert np.array_equal(np.flatnonzero(joined), np.arange(1, 1501))
    # the pose at latching is held, and left again without a jump
    assert (records["X_TA"][joined] == records["X_TA"][1]).all()
    assert np.abs(records["X_TA"][1] - records["X_TA"][0]).max() < 1e-15
    assert np.abs(records["X_TA"][1501] - records["X_TA"][1500]).max() < 1e-6
    # the positions of both vehicles go on as the velocities say
    for place, rate in (("X_NV", "V_NV"), ("X_NC", "V_NC")):
        jump = np.diff(records[place][:, :3], axis=0) / PERIOD - records[rate][1:, :3]
        assert np.abs(jump).max() < 1e-4
    assert records["kinetic_energy"][1] < records["kinetic_energy"][0]  # a latch that closes on moving parts takes energy


def test_the_latch_gives_the_joints_an_impulse(tmp_path):
    """Against the dense equation of impulses, and the joints swing on under both masses."""
    path = write_model(tmp_path)
    part = make(path, stiffness=[500.0], damping=[5.0])
    records, aux = run(part, 60)
    sample = records[-1:].copy()
    tree = Tree.from_toml(path, gravity=(0, 0, 0))
    joints, rates = part.joints()
    twin = make(path, stiffness=[0.0], damping=[0.0])
    twin.restore(part.snapshot())
    # whole system in minimal coordinates: tree and loose target vehicle; the latch acts along the relative twist of the two bodies
    pose_root = np.concatenate([sample["X_NC"][0], []])
    q = np.concatenate([[0.0] * 3, pose_root[3:], joints])
    q[:3] = sample["X_NC"][0][:3] - (tree.centre_of_mass(q))
    H = np.zeros((15, 15))
    H[:9, :9] = tree.mass_matrix(q)
    target = vehicles(path, ANGLES).target
    R_V = Rotation.from_quat(sample["X_NV"][0][3:]).as_matrix()
    H[9:12, 9:12] = target.mass_kg * np.eye(3)
    H[12:, 12:] = R_V @ np.array(target.inertia_kg_m2) @ R_V.T
    R, p = tree.pose(q, "link2")
    J = tree.jacobian(q, "link2", R.T @ (sample["X_NV"][0][:3] - p))
    C = np.hstack([J, -np.eye(6)])  # relative velocity of the port's body at V, inertial axes
    # velocities before: root twist from momentum and joint rates
    c = sample["X_NC"][0][:3]
    own = np.concatenate([target.mass_kg * sample["V_NV"][0][:3], H[12:, 12:] @ sample["V_NV"][0][3:]])
    P = sample["momentum"][0][:3] - own[:3]
    L = sample["momentum"][0][3:] - own[3:] - np.cross(sample["X_NV"][0][:3], own[:3]) - np.cross(c, P)
    R_root = Rotation.from_quat(q[3:7]).as_matrix()
    h = np.concatenate([R_root.T @ P, R_root.T @ (L + np.cross(c - q[:3], P))])
    root = np.linalg.solve(H[:6, :6], h - H[:6, 6:9] @ rates)
    v = np.concatenate([root, rates, sample["V_NV"][0]])
    inverse = np.linalg.inv(H)
    after = v - inverse @ C.T @ np.linalg.solve(C @ inverse @ C.T, C @ v)
    sample["motion"], sample["F_T_corrected"], sample["control_A"] = MOTION["joined"], 0.0, 0.0
    twin.step(sample, aux)
    found = twin.joints()[1]
    assert np.abs(after[6:9] - rates).max() > 1e-2
    # one period without springs lies between: rates change by the coupling terms of that period only
    np.testing.assert_allclose(found, after[6:9], atol=2e-3 * np.abs(after[6:9]).max())


def test_a_mass_that_disagrees_is_named(tmp_path):
    path = write_model(tmp_path)
    table = vehicles(path, ANGLES)
    table = replace(table, active=replace(table.active, mass_kg=table.active.mass_kg + 0.5))
    with pytest.raises(ValueError, match=r"mass_kg of the active vehicle is 7000.5 kg, the bodies of the model .* have 7000 kg"):
        TreeAndBody(period_s=PERIOD, vehicles=table, start=START, model=str(path), port_body="link2", joint_angles=ANGLES)


def test_kinds_of_kernels_agree_and_are_named(tmp_path):
    path = write_model(tmp_path)
    general, fastest = make(path, kernels="general"), make(path)
    assert general.generated is None
    assert "general kernels" in general.notes[0]
    assert fastest.generated is not None
    assert "generated kernels" in fastest.notes[0]
    logged = [part.dump() for part in (general, fastest)]
    (a, aux_a), (b, aux_b) = run(general), run(fastest)
    assert (aux_a[0], aux_b[0]) == (0.0, 1.0)
    assert farthest(a, b) < 1e-11
    # a log's constants bring their kind of kernels along: the other part runs to the same bits
    for part, block, states in zip((general, fastest), logged, (a, b), strict=True):
        twin = make(path, kernels="fastest" if part is general else "general")
        twin.load(block)
        assert twin.generated == part.generated
        assert run(twin)[0].tobytes() == states.tobytes()
    with pytest.raises(ValueError, match="other constants"):
        make(write_model(tmp_path, ("prismatic", "revolute", "revolute"))).load(logged[0])


@pytest.mark.parametrize("kernels", ["general", "fastest"])
def test_a_run_names_its_kernels_and_replays(tmp_path, kernels):
    path = write_model(tmp_path)
    overrides = ["test.duration_max_s=1.5", 'dynamics.part="tree_and_body"', f'dynamics.model="{path}"', 'dynamics.port_body="link2"',
                 f'dynamics.kernels="{kernels}"']  # fmt: skip
    summary = simulate(load_test(None, overrides), Options(out=str(tmp_path / "run"), quiet=True, report=False))
    log = open_log(summary["log"])
    assert any(("generated" if kernels == "fastest" else "general") + " kernels" in note for note in log.header.notes)
    assert replay.replay(summary["log"], verify=True)["equal"]


def test_replay_without_a_compiler_takes_kept_kernels_or_says_why_not(tmp_path, monkeypatch):
    """A log of generated kernels: equal to the bit with the library that was kept, a plain refusal with neither compiler nor library."""
    monkeypatch.setenv("HOME", str(tmp_path))
    overrides = ["test.duration_max_s=1.5", 'dynamics.part="tree_and_body"', f'dynamics.model="{write_model(tmp_path)}"',
                 'dynamics.port_body="link2"']  # fmt: skip
    log = simulate(load_test(None, overrides), Options(out=str(tmp_path / "run"), quiet=True, report=False))["log"]
    kept = list((tmp_path / ".cache").rglob("*.so"))
    assert kept
    monkeypatch.setenv("PATH", str(tmp_path))
    assert replay.replay(log, verify=True)["equal"]
    for library in kept:
        library.unlink()
    words = r"stage dynamics cannot be put back: the log was made with kernels generated for its tree.*no C compiler"
    with pytest.raises(ConfigurationError, match=words):
        replay.replay(log, verify=True)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"model": "no_such.toml"}, "model: no file"),
        ({"port": "nobody"}, "port_body: unknown frame 'nobody'"),
        ({"stiffness": [1e12]}, "stiffness, damping: .* limit 1"),
        ({"stiffness": [1.0, 2.0]}, "stiffness: 2 values, limit 1 or 3"),
    ],
)
def test_wrong_models_are_named(tmp_path, keys, words):
    path = write_model(tmp_path)
    table = {"port_body": keys.pop("port", "link2"), "model": str(path), "joint_angles": ANGLES} | keys
    with pytest.raises(ValueError, match=words):
        TreeAndBody(period_s=PERIOD, vehicles=vehicles(path, ANGLES), start=START, **table)


def test_a_fixed_base_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the first body must be the only root"):
        TreeAndBody(period_s=PERIOD, vehicles=vehicles(write_model(tmp_path), ANGLES), start=START, model="puma560.toml", port_body="craft")
