"""Frames of the scene against two independent chains: the stand's own way to the active port, and the crafts' way; URDF by yourdfpy."""

import tomllib

import numpy as np
import pytest

from hil_server import open_log
from hil_server.config import load_test
from hil_server.line import assembly
from hil_server.viewers.poses import inverse, product
from hil_server.viewers.scene import Scene
from rt_kernels.algebra.arrays import pose_apply, quat_from_yaw_pitch_roll, quat_to_matrix


@pytest.fixture(scope="module")
def log(docking):
    return open_log(docking)


@pytest.fixture(scope="module")
def scene(log):
    return Scene(log.header.configuration)


@pytest.fixture(scope="module")
def ticks(log):
    """Values by name of some ticks from rest to contact."""
    records = np.concatenate(list(log.blocks()))
    return [{name: records[name][i].tolist() for name in records.dtype.names} for i in (0, 900, 1290, 1310, 1330, -1)]


def placed(frames, child):
    """X_W,child through the tree."""
    X = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    while child != "W":
        child, X_parent = frames[child][0], frames[child][1]
        X = product(X_parent, X)
    return X


def apart(X, Y):
    """Distance, m, and angle, rad, between two poses."""
    d = product(inverse(X), Y)
    return np.linalg.norm(d[:3]), 2.0 * np.linalg.norm(d[3:6])


def test_nothing_is_missing_and_the_tree_has_one_root(scene, ticks):
    assert scene.missing == []
    for values in ticks:
        frames = scene.instant(values).frames
        assert {parent for parent, _ in frames.values()} - set(frames) == {"W"}
        assert {"platform", "leg_6_rod", "load_cell", "target_port", "active_port", "head", "active_craft", "orbit"} <= set(frames)


def test_the_active_port_stands_where_the_platform_carries_it(scene, ticks):
    """W → platform → its port, against W → target port → X_TA of the loop."""
    for values in ticks[1:]:
        frames = scene.instant(values).frames
        by_platform = product(placed(frames, "platform"), scene.stand.X_PM)
        distance, angle = apart(by_platform, placed(frames, "active_port"))
        assert distance < 1e-9 and angle < 1e-8


def test_the_crafts_meet_where_the_model_says(scene, ticks):
    """target port → target craft → active craft → its port is X_TA of the dynamics."""
    port = scene._vehicles["active"].X_port
    for values in ticks[2:]:
        frames = scene.instant(values).frames
        X_TA = product(product(frames["target_craft"][1], frames["active_craft"][1]), port)
        distance, angle = apart(X_TA, values["X_TA"])
        assert distance < 1e-8 and angle < 1e-8


def test_rods_end_at_the_platforms_joints(scene, ticks):
    for values in ticks:
        frames = scene.instant(values).frames
        ends = np.array([pose_apply(placed(frames, "platform"), joint) for joint in scene.stand.platform_joints])
        rods = np.array([placed(frames, f"leg_{i}_rod")[:3] for i in range(1, 7)])
        assert np.abs(ends - rods).max() < 1e-12
    legs = np.array([scene.instant(ticks[2]).joints[f"leg_{i}"] for i in range(1, 7)])
    assert np.abs(legs - ticks[2]["measured_leg"]).max() < 1e-6


def test_urdf_by_an_independent_reader(scene, ticks, tmp_path):
    """yourdfpy's forward kinematics of our joint values: platform and rods stand where the frames say."""
    yourdfpy = pytest.importorskip("yourdfpy", reason="optional group models")
    file = tmp_path / "scene.urdf"
    file.write_text(scene.urdf())
    robot = yourdfpy.URDF.load(str(file), load_meshes=False, build_scene_graph=True, load_collision_meshes=False)
    turned = dict(ticks[2])
    turned["X_WP_measured"] = [*(np.array(scene.stand.neutral[:3]) + [0.1, -0.2, 0.15]), *quat_from_yaw_pitch_roll(0.1, -0.15, 0.2)]
    for values in (ticks[2], turned):
        now = scene.instant(values)
        robot.update_cfg({name: now.joints[name] for name in robot.actuated_joint_names if name in now.joints})
        for link in ("platform", "leg_1_cylinder", "leg_3_rod", "leg_6_rod", "load_cell"):
            T, X = robot.get_transform(link, "W"), placed(now.frames, link)
            assert np.abs(T[:3, 3] - X[:3]).max() < 1e-9 and np.abs(T[:3, :3] - quat_to_matrix(X[3:])).max() < 1e-9, link
    assert set(now.joints) == {j for j in robot.actuated_joint_names if robot.joint_map[j].type != "floating"}
    assert len(robot.link_map["target_port"].visuals) and len(robot.link_map["active_body"].visuals) == 1


def test_a_rehearsal_has_no_stand(log):
    text = log.header.configuration["configuration.toml"].replace("rehearsal = false", "rehearsal = true")
    assert tomllib.loads(text)["test"]["rehearsal"]
    scene = Scene({"configuration.toml": text})
    assert scene.stand is None and scene.rig() == [] and "leg_1" not in scene.urdf() and "active_body" in scene.urdf()


def test_a_configuration_that_is_not_whole_still_has_the_ports(log, ticks):
    scene = Scene({"configuration.toml": "broken = "})
    assert {what.partition(":")[0] for what in scene.missing} == {"stand", "active", "target"}
    assert set(scene.instant(ticks[2]).frames) >= {"target_port", "active_port"}


# ------------------------------------------------------------------------------------------------------- crafts of several bodies


@pytest.fixture(scope="module")
def winged():
    """A test of two winged crafts and its scene."""
    wings = "vehicles/craft_two_wings.toml"
    config = load_test("docking", ["test.stand=stands/ideal_stand.toml", f"test.active_vehicle={wings}", f"test.target_vehicle={wings}"])
    return config, Scene({"configuration.toml": config.as_toml()})


def bodies_at(scene, ticks, joints):
    frames = scene.instant({**ticks[3], "joint_position": joints}).frames
    return {name: X for name, (_, X) in frames.items() if name.endswith(("_wing", "_hub"))}


def test_each_body_is_drawn_with_its_size_where_the_masses_are(winged, ticks):
    """The centre of the bodies' masses is the vehicle's; a wing is 7.5 m long, as wide as an inertial radius of 0.6 m says."""
    config, scene = winged
    frames = bodies_at(scene, ticks, [0.0] * 12)
    things = {thing.frame: thing for thing in scene.crafts()}
    assert set(things) == set(frames) == {f"{side}_{body}" for side in ("active", "target") for body in ("hub", "left_wing", "right_wing")}
    mass = {"hub": 1200.0, "left_wing": 54.0, "right_wing": 54.0}
    middle = {body: 0.5 * sum(extremes(things[f"target_{body}"])) for body in mass}
    centre = sum(mass[body] * pose_apply(frames[f"target_{body}"], middle[body]) for body in mass) / sum(mass.values())
    assert centre == pytest.approx(inverse(config.setup.vehicles.target.X_port)[:3], abs=1e-6)
    low, high = extremes(things["target_left_wing"])
    assert high - low == pytest.approx([7.5, 0.6 * 12**0.5, 0.02 * 12**0.5], rel=1e-9)
    assert all(f"{thing.frame}_joint" in scene.urdf() for thing in things.values())


def extremes(thing):
    points = np.vstack([points for points, _ in thing.solids])
    return points.min(axis=0), points.max(axis=0)


def test_what_bends_is_sent_bent_in_its_true_size(winged, ticks):
    """The tip of a wing, by its own shape at the node of the kernel's body."""
    _, scene = winged
    eta = np.array([0.02, -0.01, 0.005, 0.0])
    found = scene.instant({**ticks[3], "modal_coordinate": [*[0.0] * 4, *eta, *[0.0] * 8]}).bent
    bent = {thing.frame: np.vstack([points for points, _ in thing.solids]) for thing in found}
    straight = {thing.frame: np.vstack([points for points, _ in thing.solids]) for thing in scene.crafts()}
    assert set(bent) == {f"{side}_{wing}_wing" for side in ("active", "target") for wing in ("left", "right")}
    tip = scene.picture.crafts.trees["active"].craft.links[2].body.ports["tip"]
    moved = bent["active_right_wing"][-4:].mean(axis=0) - straight["active_right_wing"][-4:].mean(axis=0)
    assert moved == pytest.approx(tip.phi @ eta, abs=1e-12) and np.abs(moved).max() > 1e-3
    assert bent["active_left_wing"] == pytest.approx(straight["active_left_wing"])


def test_joints_turn_what_hangs_on_them_in_the_order_of_the_channel(winged, ticks):
    config, scene = winged
    assert assembly.simulation(config).line.stages["dynamics"].joints == (
        "active left_drive", "active right_drive", "target left_drive", "target right_drive")  # fmt: skip
    rest = bodies_at(scene, ticks, [0.0] * 12)
    turned = bodies_at(scene, ticks, [0.3, 0.0, 0.0, -2.5, *[0.0] * 8])
    for name, angle in (("active_left_wing", 0.3), ("active_right_wing", 0.0), ("target_left_wing", 0.0), ("target_right_wing", 2.5)):
        distance, half = apart(rest[name], turned[name])
        assert 2.0 * np.arcsin(0.5 * half) == pytest.approx(angle, abs=1e-9) and distance < 1e-9, "about its own length"
    assert set(bodies_at(scene, ticks, ())) == set(rest), "of a log without the channel: at rest"
