"""Craft files: what they describe against Pinocchio and closed forms, and every key of every shipped one wrong."""

import copy
import re
import tomllib

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED, crafts, physics, toml_text
from hil_server.errors import ConfigurationError
from hil_server.predict.craft_view import read
from rt_kernels.extends import read_tables
from rt_kernels.model import craft_file, manipulator_file
from rt_kernels.model.craft import at_rest, port_pose, resting_links
from rt_kernels.model.craft_file import CraftError, bodies_of, craft_of, read_craft, rotation_of, with_data
from rt_kernels.multibody import Tree
from rt_kernels.multibody.flexible import FlexibleTree

FILES = {
    str(path.relative_to(SHIPPED)): read_tables(path)
    for folder in ("vehicles", "manipulators")
    for path in sorted((SHIPPED / folder).glob("*.toml"))
}
HUB = {"name": "hub", "joint": "free",
       "rigid": {"mass_kg": 100.0, "centre_of_mass_m": [0.1, 0.0, -0.2], "inertia_kg_m2": [30.0, 40.0, 50.0]}}  # fmt: skip
ARM = {"name": "arm", "parent": "hub", "position_m": [0.5, 0.2, 0.1], "angles_deg": [20.0, -30.0, 40.0],
       "rigid": {"mass_kg": 20.0, "centre_of_mass_m": [0.6, 0.1, 0.0], "inertia_kg_m2": [2.0, 5.0, 6.0]}}  # fmt: skip


ONE = {"name": "one", "mass_kg": 700.0, "inertia_kg_m2": [300.0, 900.0, 1000.0], "port_position_m": [1.0, 0.0, 0.0]}


def tables(*bodies, **more):
    return {"name": "made", "body": list(bodies), **more}


# ------------------------------------------------------------------------------------------------------------------- what they describe
@pytest.mark.parametrize("angles", [(10.0, -20.0, 30.0), (90.0, 0.0, -90.0), (-135.0, 80.0, 179.0)])
def test_angles_are_yaw_pitch_roll_as_everywhere(angles):
    R = rotation_of(angles)
    np.testing.assert_allclose(R, Rotation.from_euler("YZX", angles, degrees=True).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(R, Rotation.from_quat(physics.pose((0, 0, 0), angles)[3:]).as_matrix(), atol=1e-15)
    quaternion = Rotation.from_matrix(R).as_quat().tolist()
    arm = {key: value for key, value in ARM.items() if key != "angles_deg"} | {"joint": "fixed"}
    one, other = (craft_of(tables(HUB, arm | turned)) for turned in ({"angles_deg": list(angles)}, {"rotation_xyzw": quaternion}))
    np.testing.assert_allclose(one.links[1].rotation, other.links[1].rotation, atol=1e-15)


def test_right_angles_are_exact():
    assert np.array_equal(rotation_of((0.0, 0.0, -90.0)), [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


@pytest.mark.parametrize("file", ["manipulators/canadarm2_free_flyer.toml", "manipulators/craft_wings_arm.toml"])
def test_mass_centre_and_inertia_at_given_angles_against_pinocchio(file):
    rng = np.random.default_rng(3)
    document = copy.deepcopy(FILES[file])
    names = [body["joint_name"] for body in document["body"] if body["joint"] == "revolute"]
    degrees = rng.uniform(-120.0, 120.0, len(names))
    document["joint"] = [{"name": n, "mode": "locked", "angle_deg": float(a)} for n, a in zip(names, degrees, strict=True)]
    last = document["body"][-1]["name"]
    document["port"] = [{"name": "docking", "body": last, "position_m": [0.1, 0.2, 0.3], "angles_deg": [5.0, 6.0, 7.0]}]
    craft = craft_of(document)
    rest = at_rest(craft)
    model, frame = pin.Model(), {}
    joint = {None: 0}
    for body in document["body"]:
        joint_of, parent = joint[body.get("parent")], frame.get(body.get("parent"), pin.SE3.Identity())
        R = Rotation.from_euler("YZX", body.get("angles_deg", [0.0] * 3), degrees=True).as_matrix()
        place = parent * pin.SE3(R, np.array(body.get("position_m", [0.0] * 3)))
        if body["joint"] == "fixed":
            joint[body["name"]], frame[body["name"]] = joint_of, place
        else:
            axis = np.array(body.get("axis", [0.0, 0.0, 1.0]))
            kind = pin.JointModelFreeFlyer() if body["joint"] == "free" else pin.JointModelRevoluteUnaligned(axis)
            joint[body["name"]] = model.addJoint(joint_of, kind, place, body["name"])
            frame[body["name"]] = pin.SE3.Identity()
        rigid = body["rigid"]
        tensor = np.array(rigid.get("inertia_kg_m2", [0.0] * 3))
        tensor = np.diag(tensor) if tensor.ndim == 1 else tensor
        inertia = pin.Inertia(rigid["mass_kg"], np.array(rigid.get("centre_of_mass_m", [0.0] * 3)), tensor)
        model.appendBodyToJoint(joint[body["name"]], inertia, frame[body["name"]])
    data = model.createData()
    q = pin.neutral(model)
    for name, angle in zip((b["name"] for b in document["body"] if b["joint"] == "revolute"), degrees, strict=True):
        q[model.joints[joint[name]].idx_q] = np.radians(angle)
    pin.ccrba(model, data, q, np.zeros(model.nv))
    pin.framesForwardKinematics(model, data, q)
    assert rest.mass == pytest.approx(pin.computeTotalMass(model), rel=1e-13)
    np.testing.assert_allclose(rest.centre, pin.centerOfMass(model, data, q), atol=1e-12)
    np.testing.assert_allclose(rest.inertia, data.Ig.inertia, rtol=1e-11, atol=1e-9)
    port = data.oMi[joint[last]] * frame[last] * pin.SE3(rotation_of((5.0, 6.0, 7.0)), np.array([0.1, 0.2, 0.3]))
    R, p = port_pose(craft, rest, "docking")
    np.testing.assert_allclose(np.column_stack([R, p]), np.column_stack([port.rotation, port.translation]), atol=1e-12)
    assert all(link.joint in ("fixed", "free") for link in resting_links(craft))


CHAINS = {
    "universal": ([pin.JointModelRevoluteUnaligned(np.array([0.0, 0.6, 0.8])), pin.JointModelRevoluteUnaligned(np.array([1.0, 0.0, 0.0]))],
                  {"axis": [0.0, 0.6, 0.8], "axis2": [2.0, 0.0, 0.0]}),
    "planar": ([pin.JointModelPX(), pin.JointModelPY(), pin.JointModelRZ()], {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHAINS)
def test_joints_of_several_degrees_are_chains_as_in_pinocchio(kind):
    """Mass matrix and accelerations of a free craft with the joint, at random states."""
    parts, keys = CHAINS[kind]
    damping = "damping_n_m_s_per_rad" if kind == "universal" else "damping_n_s_per_m"
    settings = [{"name": "arm.1", "mode": "free", damping: 3.0}]
    craft = craft_of(tables(HUB, {**ARM, "joint": kind, **keys}, joint=settings))
    assert [s.joint for s in craft.joints] == [f"arm.{k + 1}" for k in range(len(parts))] and craft.links[-1].name == "arm"
    tree = FlexibleTree(craft.links, rates=craft.rates)
    model = pin.Model()
    model.gravity = pin.Motion.Zero()
    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
    model.appendBodyToJoint(root, pin.Inertia(100.0, np.array([0.1, 0.0, -0.2]), np.diag([30.0, 40.0, 50.0])), pin.SE3.Identity())
    at, place = root, pin.SE3(rotation_of(ARM["angles_deg"]), np.array(ARM["position_m"]))
    for k, part in enumerate(parts):
        at = model.addJoint(at, part, place, f"arm.{k + 1}")
        place = pin.SE3.Identity()
    model.appendBodyToJoint(at, pin.Inertia(20.0, np.array([0.6, 0.1, 0.0]), np.diag([2.0, 5.0, 6.0])), pin.SE3.Identity())
    data, rng = model.createData(), np.random.default_rng(4)
    for _ in range(5):
        turned = Rotation.from_rotvec(rng.normal(size=3)).as_quat()
        q = np.concatenate([rng.normal(size=3), turned, rng.normal(size=len(parts))])
        v, tau = rng.normal(size=(2, model.nv))
        damped = tau.copy()
        damped[6] -= 3.0 * v[6]
        np.testing.assert_allclose(tree.forward_dynamics(q, v, tau), pin.aba(model, data, q, v, damped), rtol=1e-11, atol=1e-11)


def test_every_joint_kind_is_read_and_a_tree_of_rigid_bodies_takes_them_all():
    for kind in craft_file.JOINTS:
        document = tables(HUB, {**ARM, "joint": kind})
        assert craft_of(document).links[-1].name == "arm"
        tree = Tree(bodies_of(document), gravity=(0.0, 0.0, 0.0))
        nv = {"fixed": 0, "universal": 2, "spherical": 3, "planar": 3, "free": 6}.get(kind, 1)
        assert tree.nv == 6 + nv
    with pytest.raises(CraftError, match=r"made.toml: body.arm.joint: required key is missing: one of fixed, revolute"):
        craft_of(tables(HUB, ARM), "made.toml")


def test_settings_of_joints_are_si():
    settings = {"name": "arm", "mode": "driven", "angle_deg": 30.0, "stiffness_n_m_per_rad": 4.0, "damping_n_m_s_per_rad": 0.5,
                "friction_n_m": 0.2, "armature_kg_m2": 0.7, "lower_deg": -90.0, "upper_deg": 180.0, "effort_n_m": 12.0, "rate_deg_s": 45.0,
                "servo_stiffness_n_m_per_rad": 300.0, "servo_damping_n_m_s_per_rad": 20.0}  # fmt: skip
    craft = craft_of(tables(HUB, {**ARM, "joint": "continuous"}, joint=[settings], wheel=[
        {"name": "w", "joint": "arm", "torque_n_m": 0.2, "momentum_n_m_s": 5.0}]))  # fmt: skip
    s = craft.settings("arm")
    assert (s.mode, s.stiffness, s.damping, s.friction, s.armature, s.effort, s.servo_stiffness, s.servo_damping) == (
        "driven", 4.0, 0.5, 0.2, 0.7, 12.0, 300.0, 20.0)  # fmt: skip
    np.testing.assert_allclose([s.angle, s.lower, s.upper, s.rate], np.radians([30.0, -90.0, 180.0, 45.0]))
    link = craft.links[1]
    assert (link.armature, link.stiffness, link.damping) == (0.7, 4.0, 0.5) and craft.wheels[0].momentum_n_m_s == 5.0
    slide = craft_of(tables(HUB, {**ARM, "joint": "prismatic"}, joint=[
        {"name": "arm", "mode": "locked", "distance_m": 0.25, "upper_m": 0.3, "rate_m_s": 0.1, "stiffness_n_per_m": 9.0}]))  # fmt: skip
    s = slide.settings("arm")
    assert (s.angle, s.upper, s.rate, s.stiffness) == (0.25, 0.3, 0.1, 9.0)
    np.testing.assert_allclose(at_rest(slide).poses["arm"][1], np.array([0.5, 0.2, 0.1]) + rotation_of(ARM["angles_deg"]) @ [0, 0, 0.25])


def test_a_rigid_vehicle_is_a_craft_of_one_body():
    thruster = {"name": "t1", "position_m": [-3.0, 1.0, 0.0], "direction": [2.0, 0.0, 0.0], "thrust_n": 20.0, "minimum_pulse_s": 0.02}
    document = FILES["vehicles/transport_ship.toml"] | {"thruster": [thruster]}
    craft = craft_of(document)
    rest = at_rest(craft)
    assert not craft.moves and rest.mass == 7000.0 and not rest.centre.any() and np.array_equal(rest.inertia, document["inertia_kg_m2"])
    R, p = port_pose(craft, rest, "docking")
    assert np.array_equal(R, np.eye(3)) and np.array_equal(p, [3.6, 0.0, 0.0])
    assert craft.thrusters[0].body == "body" and np.array_equal(craft.thrusters[0].direction, [1.0, 0.0, 0.0])
    assert bodies_of(document)[0].joint == "free"


TRUSS = {"name": "truss", "joint": "free", "truss": {
    "bays": 6, "side_m": 0.75, "mass_kg": 220.0, "youngs_modulus_pa": 1.0079e9, "shear_modulus_pa": 1.0079e9, "member_area_m2": 6.24e-4,
    "member_bending_m4": 4.685e-7, "member_torsion_m4": 2.37e-7, "mode_set": "mass_loaded", "modes": 8}}  # fmt: skip


def load(name, node, **more):
    return {"name": name, "parent": "truss", "node": node, "joint": "fixed",
            "rigid": {"mass_kg": 500.0, "centre_of_mass_m": [0.4, 0.0, 0.3], "inertia_kg_m2": [80.0, 90.0, 110.0]}, **more}  # fmt: skip


def test_mass_loaded_modes_take_the_load_where_it_hangs():
    """A load that is moved and turned at its node, the same load described at the node, and as two halves: the same frequencies, and modes
    that carry no momentum of the whole craft, as natural modes do not."""
    R, p = rotation_of((15.0, 25.0, -35.0)), np.array([0.3, -0.2, 0.1])
    moved = load("b", "tip", position_m=p.tolist(), angles_deg=[15.0, 25.0, -35.0])
    rigid = moved["rigid"]
    tensor = R @ np.diag(rigid["inertia_kg_m2"]) @ R.T
    there = {"mass_kg": 500.0, "centre_of_mass_m": (p + R @ rigid["centre_of_mass_m"]).tolist(), "inertia_kg_m2": tensor.tolist()}
    halves = [load(name, "tip", rigid=there | {"mass_kg": 250.0, "inertia_kg_m2": (0.5 * tensor).tolist()}) for name in "bc"]
    found = []
    for loads in ([moved], [load("b", "tip", rigid=there)], halves):
        tree = FlexibleTree(craft_of(tables(TRUSS, load("a", "root"), *loads)).links)
        found.append(tree.frequencies()[6:])
        M = tree.mass_matrix(tree.neutral())
        size = np.sqrt(np.diag(M))
        assert np.abs(M[:6, 6:] / np.outer(size[:6], size[6:])).max() < 1e-9
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9)
    unmoved = FlexibleTree(craft_of(tables(TRUSS, load("a", "root"), load("b", "tip"))).links).frequencies()[6:]
    assert np.abs(unmoved / found[0] - 1.0).max() > 0.01


BEAM = {"length_m": 6.0, "elements": 10, "mass_per_length_kg_per_m": 5.0, "axial_stiffness_n": 1e7, "bending_stiffness_y_n_m2": 2e4,
        "bending_stiffness_z_n_m2": 3e4, "torsion_stiffness_n_m2": 1e4, "gyration_y_m": 0.1, "gyration_z_m": 0.1, "modes": 60}  # fmt: skip
ASSUMED = {"length_m": 6.0, "mass_kg": 30.0, "bending_stiffness_n_m2": 3e4}


def hung(kind, shape):
    return craft_of(tables(HUB, {"name": "boom", "parent": "hub", "joint": "fixed", kind: shape})).links[1].body


@pytest.mark.parametrize(("kind", "shape", "rtol"), [("beam", BEAM, 1e-8), ("beam", BEAM | {"mode_set": "free_free"}, 1e-6),
                                                     ("assumed", ASSUMED, 1e-9)])
def test_stations_of_a_beam_move_as_its_line_does(kind, shape, rtol):
    """A force along y on the tip of a cantilever: y = F x^2 (3 L - x) / 6 EI and the angle F x (2 L - x) / 2 EI, wherever a station is."""
    at, L, F = [1.2, 4.2], 6.0, 7.0
    body = hung(kind, shape | {"stations": [{"name": f"s{k}", "at_m": x} for k, x in enumerate(at)]})
    assert list(body.ports) == [*(["root"] if kind == "beam" else []), "tip", "s0", "s1"]
    q = np.linalg.solve(body.stiffness, F * body.ports["tip"].phi[1])
    for k, x in enumerate(at):
        port = body.ports[f"s{k}"]
        np.testing.assert_allclose(port.position, [x, 0.0, 0.0], atol=1e-12)
        assert port.phi[1] @ q == pytest.approx(F * x * x * (3 * L - x) / (6 * 3e4), rel=rtol)
        assert port.psi[2] @ q == pytest.approx(F * x * (2 * L - x) / (2 * 3e4), rel=rtol)


def test_stations_of_a_truss_move_with_its_frames():
    """A force on the tip of a cantilever: at the half 5/16 of its way and 3/4 of its angle; the rest is shear."""
    shape = TRUSS["truss"] | {"bays": 16, "mode_set": "clamped", "modes": 60, "stations": [{"name": "half", "at_m": 6.0}]}
    body = hung("truss", shape)
    half, tip = body.ports["half"], body.ports["tip"]
    np.testing.assert_allclose(half.position, [6.0, 0.0, 0.0], atol=1e-12)
    q = np.linalg.solve(body.stiffness, tip.phi[1])
    assert half.phi[1] @ q / (tip.phi[1] @ q) == pytest.approx(5 / 16, rel=0.03)
    assert half.psi[2] @ q / (tip.psi[2] @ q) == pytest.approx(0.75, rel=0.03)


@pytest.mark.parametrize(("kind", "shape", "row", "words"), [
    ("beam", BEAM, {"name": "s", "at_m": 1.6}, "at_m: 1.6 m, limit a multiple of 0.6 m"),
    ("beam", BEAM, {"name": "s", "at_m": 6.0}, "at_m: 6 m, limit a multiple"),
    ("beam", BEAM, {"name": "tip", "at_m": 1.2}, "'tip' is the name of another node"),
    ("truss", TRUSS["truss"], {"name": "s", "at_m": 1.0}, "at_m: 1 m, limit a multiple of 0.75 m"),
    ("assumed", ASSUMED, {"name": "s", "at_m": 6.5}, "'s' at 6.5 m, limit a new name and 0 ... 6 m"),
    ("beam", BEAM, {"name": "s"}, "stations\\[0\\].at_m: required key is missing"),
])  # fmt: skip
def test_a_station_that_is_no_node_is_refused(kind, shape, row, words):
    with pytest.raises(CraftError, match=words):
        hung(kind, shape | {"stations": [row]})


def test_tables_with_data_need_no_file(tmp_path):
    body = craft_of(tables(TRUSS)).links[0].body.clamped_at("root")
    body.save(tmp_path / "wing.npz")
    document = tables(HUB, {"name": "wing", "parent": "hub", "joint": "fixed", "modal_file": {"file": "wing.npz"}})
    whole = tomllib.loads(toml_text.dumps(with_data(document, tmp_path)))
    (tmp_path / "wing.npz").unlink()
    again = craft_of(whole).links[1].body
    for name in ("first_moment", "second_moment", "P", "N", "Q", "stiffening", "stiffness", "damping"):
        assert np.array_equal(getattr(again, name), getattr(body, name)), name
    assert all(np.array_equal(again.ports["tip"].phi, body.ports["tip"].phi) for _ in "x") and again.mass == body.mass
    with pytest.raises(CraftError, match="body.wing.modal_file: .*wing.npz"):
        craft_of(document, "made.toml", tmp_path)
    data = whole["body"][1]["modal_file"]["data"]
    for change, words in (({"Q": data["Q"][1:]}, "data.Q: .* are needed with 8 modes"), ({"stifness": []}, "did you mean 'stiffness'")):
        broken = copy.deepcopy(whole)
        broken["body"][1]["modal_file"]["data"] |= change
        with pytest.raises(CraftError, match=f"body.wing.modal_file: {words}|{words}"):
            craft_of(broken)


CORNERS = np.array([[0, 0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0, 0, 0, 1]], float)


@pytest.mark.parametrize("kind", ["text", "binary"])
def test_what_a_body_is_declared_to_look_like(tmp_path, kind):
    """Boxes, cylinders and meshes at their poses; the triangles go into the configuration, which needs the file no more."""
    if kind == "text":
        facets = [" ".join("vertex {} {} {}".format(*p) for p in row) for row in CORNERS.reshape(2, 3, 3)]
        text = "".join(f"facet normal 0 0 1 outer loop {one} endloop endfacet\n" for one in facets)
        (tmp_path / "m.stl").write_text(f"solid m\n{text}endsolid m\n")
    else:
        made = np.zeros(2, np.dtype([("normal", "<f4", 3), ("corners", "<f4", 9), ("unused", "<u2")]))
        made["corners"] = CORNERS
        (tmp_path / "m.stl").write_bytes(bytes(80) + (2).to_bytes(4, "little") + made.tobytes())
    shapes = [{"box_m": [1.0, 2.0, 3.0], "position_m": [5.0, 0.0, 0.0], "angles_deg": [0.0, 90.0, 0.0]},
              {"cylinder_m": [0.5, 4.0]}, {"mesh": "m.stl", "position_m": [0.0, 0.0, 7.0]}]  # fmt: skip
    document = tables({**HUB, "shapes": shapes}, TRUSS | {"parent": "hub", "joint": "fixed"})
    whole = tomllib.loads(toml_text.dumps(with_data(document, tmp_path)))
    (tmp_path / "m.stl").unlink()
    hub, truss = craft_of(whole).links
    box, cylinder, mesh = hub.looks
    assert np.ptp(box.points, axis=0) == pytest.approx([2.0, 1.0, 3.0]) and box.points.mean(axis=0) == pytest.approx([5.0, 0.0, 0.0])
    assert np.ptp(cylinder.points, axis=0) == pytest.approx([4.0, 1.0, 1.0])
    assert np.hypot(*cylinder.points[:, 1:].T) == pytest.approx(0.5)
    assert mesh.points[np.array(mesh.faces)].reshape(2, 9) == pytest.approx(CORNERS + [0, 0, 7] * 3)
    assert {one.what for one in hub.looks} == {""}
    (own,) = truss.looks
    for node, port in truss.body.ports.items():
        end = np.argsort(np.linalg.norm(own.points - port.position, axis=1))[:4]
        assert own.moves[end].mean(axis=0) == pytest.approx(port.phi, abs=1e-12), node
    with pytest.raises(CraftError, match=r"body.hub.shapes\[2\].mesh: .*m.stl"):
        craft_of(document, "made.toml", tmp_path)


@pytest.mark.parametrize(("shape", "words"), [
    ({}, "exactly one of box_m, cylinder_m, mesh is needed, got none"),
    ({"box_m": [1.0, 1.0, 1.0], "cylinder_m": [1.0, 1.0]}, "exactly one of .* got box_m, cylinder_m"),
    ({"box_m": [1.0, -1.0, 1.0]}, "box_m"),
    ({"mesh": "m.stl", "triangles_m": []}, "triangles_m: 0 triangles, limit 1 ... 5000"),
    ({"boxm": [1.0, 1.0, 1.0]}, "did you mean 'box_m'"),
])  # fmt: skip
def test_a_shape_that_is_none(shape, words):
    for document, where in ((tables({**HUB, "shapes": [shape]}), r"body.hub.shapes\[0\]"), ({**ONE, "shapes": [shape]}, r"shapes\[0\]")):
        with pytest.raises(CraftError, match=f"{where}.*{words}"):
            craft_of(document)


def test_a_body_without_shapes_is_a_box_of_its_mass():
    (link,) = craft_of({**ONE}).links
    (box,) = link.looks
    a, b, c = np.ptp(box.points, axis=0)
    m, moments = ONE["mass_kg"], ONE["inertia_kg_m2"]
    assert m / 12 * np.array([b * b + c * c, a * a + c * c, a * a + b * b]) == pytest.approx(moments)
    assert box.what == "box of its mass and inertia"
    own = craft_of({**ONE, "shapes": [{"cylinder_m": [1.0, 2.0]}]}).links[0].looks
    assert len(own) == 1 and not own[0].what


SMALL = tables({**HUB}, {**ARM, "joint": "revolute"}, {**TRUSS, "parent": "hub", "joint": "fixed"})


@pytest.mark.parametrize(("more", "words"), [
    ({"port": [{"name": "p", "body": "arn"}]}, "port.p.body: no body 'arn', did you mean 'arm'"),
    ({"port": [{"name": "p"}]}, "port.p.body: required key is missing"),
    ({"port": [{"name": "p", "body": "truss", "position_m": [1.0, 0.0, 0.0]}]}, "port.p.node: body 'truss' bends: .* nodes root, tip"),
    ({"port": [{"name": "p", "body": "truss", "node": "tpi"}]}, "port.p.node: no node of body 'truss' 'tpi', did you mean 'tip'"),
    ({"port": [{"name": "p", "body": "arm"}, {"name": "p", "body": "hub"}]}, "port.p.name: 'p': the name is used twice"),
    ({"wheel": [{"name": "w", "joint": "hub", "torque_n_m": 1.0, "momentum_n_m_s": 1.0}]}, "wheel.w.joint: no joint that turns 'hub'"),
    ({"wheel": [{"name": "w", "joint": "arm", "torque_n_m": -1.0, "momentum_n_m_s": 1.0}]}, "wheel.w.torque_n_m: must be .* got -1.0"),
    ({"interface": [{"name": "i", "body": "amr"}]}, "interface.i.body: no body 'amr', did you mean 'arm'"),
    ({"sensor": [{"name": "s", "kind": "speed", "body": "arm", "position_m": [0.0] * 3}]}, "s.kind: must be one of acceleration, rate"),
    ({"thruster": [{"name": "t", "body": "arm", "position_m": [0.0] * 3, "direction": [0.0] * 3, "thrust_n": 1.0}]},
     "thruster.t.direction: must have a length"),
    ({"joint": [{"name": "arm", "mode": "free", "distance_m": 1.0}]}, "joint.arm.distance_m: unknown key"),
    ({"joint": [{"name": "arm", "mode": "free"}] * 2}, "'arm' is given twice"),
    ({"joint": [{"name": "arm", "mode": "free", "angle_deg": 20.0, "upper_deg": 10.0}]}, "joint.arm: .*angle 0.349.* is not between"),
    ({"joint": [{"name": "arm"}]}, "joint.arm.mode: required key is missing: one of locked, free, given, driven"),
    ({"mass_kg": 3.0}, "mass_kg: .*belongs to a craft without"),
    ({"bdoy": []}, "bdoy: unknown key, value .*, did you mean 'body'"),
    ({"rates": "exactly"}, "rates: must be one of exact, first_order"),
    ({"craft": {"name": "x"}}, "craft: is gone: its keys stand at the top"),
])  # fmt: skip
def test_faults_of_what_is_on_the_bodies_are_named(more, words):
    with pytest.raises(CraftError, match=f"made.toml: {words}|made.toml: .*{words}"):
        craft_of(copy.deepcopy(SMALL) | more, "made.toml")


@pytest.mark.parametrize(("key", "words"), [
    ("quaternion_xyzw", "was renamed rotation_xyzw"), ("rotation_rpy_rad", "was replaced by angles_deg"), ("port", "was renamed node"),
    ("armature", "belongs to a .*joint.* as armature_kg_m2"), ("mass_kg", "was renamed rigid.mass_kg"),
])  # fmt: skip
def test_keys_of_earlier_versions_are_named(key, words):
    with pytest.raises(CraftError, match=f"body.arm.{key}: {words}"):
        craft_of(tables(HUB, {**ARM, "joint": "fixed", key: 1.0}))


def test_loops_and_all_independent_faults_at_once():
    with pytest.raises(CraftError, match="the bodies a -> b -> a form a loop"):
        craft_of(tables(*({**ARM, "name": n, "parent": p, "joint": "fixed"} for n, p in ("ab", "ba"))))
    with pytest.raises(CraftError) as error:
        craft_of(tables({**HUB, "joint": "fre"}, {**ARM, "joint": "fixed", "rigid": {"mass_kg": -1.0}}, port=3, colour="red"))
    assert len(error.value.faults) == 4


# ------------------------------------------------------------------------------------------------------------- every key of every file
def declared_tables(document):
    """(path to a table, its declaration) of a craft file, tables of its arm included."""
    one = "body" not in document
    yield (), (*craft_file.CRAFT, *(craft_file.ONE_BODY if one else craft_file.BODIES))
    kinds = {body["joint_name"] if "joint_name" in body else body["name"]: body["joint"] for body in document.get("body", [])}
    for name in ("body", *craft_file.TABLES):
        for i, table in enumerate(document.get(name, [])):
            if name == "joint":
                yield (name, i), craft_file.SLIDING if kinds[table["name"]] == "prismatic" else craft_file.TURNING
                continue
            yield (name, i), craft_file.KEYS[name]
            for shape in craft_file.SHAPES:
                if shape in table:
                    yield (name, i, shape), craft_file.KEYS[shape]
    if "manipulator" in document:
        yield ("manipulator",), manipulator_file.PARAMETERS
        yield ("manipulator", "drive"), manipulator_file.DRIVE
        for i, table in enumerate(document["manipulator"]["segment"]):
            yield ("manipulator", "segment", i), manipulator_file.SEGMENTS[table["kind"]][1]


def at(document, path):
    for step in path:
        document = document[step]
    return document


def negative(value):
    """The value with its first number's sign turned, None where it has none above zero."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            if (turned := negative(item)) is not None:
                return [*value[:i], turned, *value[i + 1 :]]
    return -value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def mutants(document):
    """(what, document, words of the one fault that it must have), of one table of each kind and set of keys."""
    seen = set()
    for path, declaration in declared_tables(document):
        table = at(document, path)
        kind = (*(step for step in path if isinstance(step, str)), *sorted(table))
        if kind in seen:
            continue
        seen.add(kind)
        for p in declaration:
            if p.key not in table or p.key in ("modal", "manipulator", "body", *craft_file.TABLES, *craft_file.SHAPES):
                continue
            wrong = 3 if isinstance(table[p.key], str) else "three"
            changes = [("misspelt", p.key + "q", table[p.key], f"{p.key}q: unknown key"), ("wrong type", p.key, wrong, p.key)]
            if p.required:
                changes.append(("removed", None, None, f"{p.key}: required key is missing: "))
            turned = negative(table[p.key])
            if turned is not None and p.low is not None and p.low >= 0.0:
                changes.append(("wrong sign", p.key, turned, p.key))
            if p.choices:
                changes.append(("no choice", p.key, "elsewhere", "must be one of "))
            for what, key, value, words in changes:
                changed = copy.deepcopy(document)
                inner = at(changed, path)
                if key != p.key:
                    del inner[p.key]
                if key is not None:
                    inner[key] = value
                yield f"{'.'.join(map(str, path))}.{p.key} {what}", changed, words


@pytest.mark.parametrize("file", FILES)
def test_every_key_is_held(file, tmp_path):
    """Removed, misspelt, of a wrong type, of the wrong sign: one fault that names file, key and what is allowed."""
    tried, path = 0, tmp_path / "craft.toml"
    for csv in (SHIPPED / "vehicles").glob("*.csv"):
        tmp_path.joinpath(csv.name).symlink_to(csv)
    flexible = any("rigid" not in body for body in FILES[file].get("body", []))
    for case, changed, words in mutants(FILES[file]):
        path.write_text(toml_text.dumps(changed))
        with pytest.raises(ConfigurationError) as error:
            read(path)
        assert error.value.exit_code == 2
        assert any(fault.startswith(f"{path}: ") and words in fault for fault in error.value.faults), f"{case}: {error.value.faults}"
        tried += 1
    assert tried > (20 if "body" not in FILES[file] else 30)
    if not flexible:
        path.write_text(toml_text.dumps(FILES[file]))
        read(path)


@pytest.mark.parametrize("file", [
    file for file, tables in FILES.items() if any("inertia_kg_m2" in body.get("rigid", {}) for body in tables.get("body", []))
])  # fmt: skip
def test_inertia_of_the_wrong_sign_is_refused(file):
    document = copy.deepcopy(FILES[file])
    body = next(b for b in document["body"] if "inertia_kg_m2" in b.get("rigid", {}))
    body["rigid"]["inertia_kg_m2"] = negative(body["rigid"]["inertia_kg_m2"])
    with pytest.raises(CraftError, match=rf"body.{body['name']}.rigid: inertia: principal moments"):
        craft_of(document)


def test_shipped_crafts_have_what_their_names_say():
    assert {file for file, document in FILES.items() if "body" in document and read_craft(SHIPPED / file).moves} == {
        file for file, document in FILES.items() if "body" in document}  # fmt: skip
    files = ("manipulators/transport_ship_probe.toml", "vehicles/transport_ship.toml")
    probe, ship = (at_rest(read_craft(SHIPPED / file)) for file in files)
    assert probe.mass == ship.mass
    craft = read_craft(SHIPPED / "manipulators/transport_ship_probe.toml")
    np.testing.assert_allclose(port_pose(craft, probe, "docking")[1] - probe.centre, [3.6, 0.0, 0.0], atol=1e-12)


EXAMPLES = re.findall(r"```toml\n(.*?)```", (SHIPPED.parent / "docs/craft.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_of_the_guide_are_vehicles(number):
    table = tomllib.loads(EXAMPLES[number])
    assert crafts.faults(table) == []
    craft = craft_of(table)
    assert at_rest(craft).mass > 0.0 and craft.port("docking")


def test_the_guide_shows_every_kind_of_table():
    shown = "".join(EXAMPLES)
    assert len(EXAMPLES) == 4 and all(f"[[{name}]]" in shown for name in ("body", *craft_file.TABLES))


@pytest.mark.parametrize("file", sorted(path.name for path in (SHIPPED / "vehicles").glob("*.toml")))
def test_inertia_at_rest_is_symmetric_to_the_bit(file):
    """Rounding of the moments of several bodies must not make a matrix that is none."""
    inertia = at_rest(read_craft(SHIPPED / "vehicles" / file)).inertia
    assert np.array_equal(inertia, inertia.T)


# ------------------------------------------------------------------------------------------------------------------- sizes and names
def wings():
    return copy.deepcopy(FILES["vehicles/craft_two_wings.toml"])


@pytest.mark.parametrize(
    ("body", "path", "value", "says"),
    [
        (0, ("rigid", "mass_kg"), 1e-300, "body.hub.rigid.mass_kg: must be 0 (massless) or at least 1e-06 kg, got 1e-300"),
        (0, ("rigid", "inertia_kg_m2"), [1e13] * 3, "body.hub.rigid.inertia_kg_m2[0][0]: must be a number within -1e+12 ... 1e+12"),
        (1, ("beam", "length_m"), 1e-9, "body.left_wing.beam.length_m: must be a number within 0.0001 ... 10000 m, got 1e-09"),
        (2, ("beam", "axial_stiffness_n"), 1e15, "body.right_wing.beam.axial_stiffness_n: must be a number within 0.001 ... 1e+13 N"),
        (1, ("position_m",), [0.0, 1e15, 0.0], "body.left_wing.position_m[1]: must be a number within -10000 ... 10000 m"),
        (1, ("name",), "left, wing", "body[1].name: must be text of 1 ... 60 characters without commas"),
        (1, ("name",), "", "body[1].name: must be text of 1 ... 60 characters without commas"),
        (2, ("joint_name",), "x" * 61, "body.right_wing.joint_name: must be text of 1 ... 60 characters"),
    ],
)
def test_a_size_or_name_that_no_craft_has_is_refused_before_anything_is_solved(body, path, value, says, monkeypatch):
    document = wings()
    table = document["body"][body]
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    monkeypatch.setattr(craft_file._File, "_body", lambda *_: pytest.fail("solved"))
    with pytest.raises(CraftError) as error:
        craft_of(document)
    assert any(fault.startswith(says) for fault in error.value.faults), error.value.faults


def test_a_beam_without_modes_is_a_rigid_body():
    document = wings()
    for wing in document["body"][1:]:
        wing["beam"]["modes"] = 0
    with_modes, without = craft_of(FILES["vehicles/craft_two_wings.toml"]), craft_of(document)
    assert [link.body.n_modes for link in without.links] == [0, 0, 0]
    np.testing.assert_allclose(at_rest(without).inertia, at_rest(with_modes).inertia, rtol=1e-12)


@pytest.mark.parametrize("count", [65, 10_000])
def test_too_many_bodies_are_counted_before_they_are_read(count, monkeypatch):
    monkeypatch.setattr(craft_file, "_File", lambda *_: pytest.fail("read"))
    arms = [{"name": f"b{k}", "parent": "hub", "joint": "revolute", "rigid": {"mass_kg": 1.0}} for k in range(count - 1)]
    with pytest.raises(CraftError, match=f"^body: {count} tables .*limit 64"):
        craft_of(tables(HUB, *arms))


def test_what_has_no_solution_names_its_body(monkeypatch):
    def unsolvable(*_):
        raise np.linalg.LinAlgError("the leading minor of order 3 of B is not positive definite")

    monkeypatch.setattr(craft_file, "_flexible", unsolvable)
    with pytest.raises(CraftError, match=r"^body.left_wing.beam: its equations have no solution in double precision .*order 3"):
        craft_of(wings())
