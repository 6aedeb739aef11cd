"""URDF and TOML models: the same coordinates as Pinocchio's reader, and bad models end in an error that names the fault."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from hil_server.cli import main
from rt_kernels.extends import read_tables
from rt_kernels.model.craft import at_rest
from rt_kernels.model.craft_file import read_craft
from rt_kernels.model.urdf import read_urdf_craft
from rt_kernels.multibody import Body, ModelError, Tree
from rt_kernels.multibody.flexible import FlexibleTree
from tests.multibody.tree_cases import full_mass_matrix, relative
from tests.system.line_runs import QUICK, STOPPING, fault_names, run_line

pytest.importorskip("yourdfpy")
MANIPULATORS = Path(__file__).parents[2] / "stand_configs" / "manipulators"

LINK = (
    '<link name="{0}"><inertial><origin xyz="0.1 0.02 {2}" rpy="0.3 -0.2 0.5"/><mass value="{1}"/>'
    '<inertia ixx="0.4" ixy="0.01" ixz="-0.02" iyy="0.5" iyz="0.03" izz="0.6"/></inertial></link>'
)
JOINT = '<joint name="{0}" type="{1}"><origin xyz="{4}" rpy="0.1 0.7 -0.4"/><parent link="{2}"/><child link="{3}"/>{5}</joint>'
LIMIT = '<axis xyz="{0}"/><limit lower="-3" upper="3" effort="10" velocity="2"/>'


def sample_urdf():
    """Every joint kind of URDF, two branches whose joints are not declared in order, fixed links with and without mass."""
    masses = {"base": (20, 0.1), "a": (3, 0.2), "b": (2, -0.1), "c": (1.5, 0), "d": (1, 0.3), "e": (2.5, 0.1), "g": (4, 0)}
    links = [LINK.format(name, *values) for name, values in masses.items()]
    links += ['<link name="tool"/>', LINK.format("ballast", 0.7, 0.05)]
    joints = [
        JOINT.format("z_first", "revolute", "base", "a", "0 0 0.5", LIMIT.format("0 0 1")),
        JOINT.format("slide", "prismatic", "a", "b", "0.2 0 0.1", LIMIT.format("0.6 0 0.8")),
        JOINT.format("wheel", "continuous", "b", "c", "0.1 0.1 0", LIMIT.format("0 1 0")),
        JOINT.format("a_second", "revolute", "base", "d", "0 -0.4 0", LIMIT.format("0.2 -0.5 0.9")),
        JOINT.format("m_weld", "fixed", "d", "ballast", "0 0 0.2", ""),
        JOINT.format("n_tool", "fixed", "ballast", "tool", "0.3 0 0", ""),
        JOINT.format("o_after", "revolute", "ballast", "e", "0 0.2 0", LIMIT.format("1 0 0")),
        JOINT.format("loose", "floating", "e", "g", "0 0 0.4", ""),
    ]
    return f'<robot name="sample">{"".join(links)}{"".join(joints)}</robot>'


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample.urdf"
    path.write_text(sample_urdf())
    return path


@pytest.mark.parametrize("floating", [True, False])
def test_urdf_against_pinocchio(sample, floating):
    model = pin.buildModelFromUrdf(str(sample), pin.JointModelFreeFlyer()) if floating else pin.buildModelFromUrdf(str(sample))
    data, tree = model.createData(), Tree.from_urdf(sample, floating_base=floating)
    assert (tree.nq, tree.nv, tree.joint_names) == (model.nq, model.nv, list(model.names)[1:])
    rng = np.random.default_rng(1)
    pin.seed(1)
    for _ in range(10):
        q = pin.randomConfiguration(model, np.full(model.nq, -1.0), np.full(model.nq, 1.0))
        v, tau = rng.normal(size=(2, tree.nv))
        assert relative(tree.forward_dynamics(q, v, tau), pin.aba(model, data, q, v, tau)) < 1e-12
        assert relative(tree.inverse_dynamics(q, v, tau), pin.rnea(model, data, q, v, tau)) < 1e-12
        assert relative(tree.mass_matrix(q), full_mass_matrix(model, data, q)) < 1e-12
        pin.framesForwardKinematics(model, data, q)
        R, p = tree.pose(q, "tool")
        pose = data.oMf[model.getFrameId("tool")]
        np.testing.assert_allclose(np.column_stack([R, p]), np.column_stack([pose.rotation, pose.translation]), atol=1e-12)


@pytest.mark.parametrize("name", ["canadarm2.toml", "canadarm2_free_flyer.toml", "craft_wings_arm.toml", "puma560.toml"])
def test_shipped_models_load_and_invert(name):
    tree = Tree.from_toml(MANIPULATORS / name)
    rng = np.random.default_rng(2)
    q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv), 1.0)
    v, tau = rng.normal(size=(2, tree.nv))
    assert relative(tree.inverse_dynamics(q, v, tree.forward_dynamics(q, v, tau)), tau) < 1e-9


def test_canadarm2_geometry():
    """Stretched arm: the tip lies where the offsets of the published chain sum up to; masses as published."""
    tree = Tree.from_toml(MANIPULATORS / "canadarm2.toml")
    _, p = tree.pose(tree.neutral(), "tip")
    np.testing.assert_allclose(p, [1.3589 + 7.11 + 7.11 + 1.3589, -0.5692 - 0.475 - 0.5692, 0.0], atol=1e-12)
    assert tree.nv == 7
    # published mass of the whole arm; its root stands on the base and is no moving body
    bodies = read_tables(MANIPULATORS / "canadarm2.toml")["body"]
    assert sum(b["rigid"]["mass_kg"] for b in bodies) == pytest.approx(1641.0, abs=0.05)
    free = Tree.from_toml(MANIPULATORS / "canadarm2_free_flyer.toml")
    assert abs(sum(b.mass for b in free.bodies) - 100_000 - 1505.3) < 0.1


BAD = {
    "zero mass": ('<mass value="3"/>', '<mass value="0"/>', "link 'a'.*mass"),
    "negative mass": ('<mass value="3"/>', '<mass value="-3"/>', "link 'a'.*mass"),
    "mass not finite": ('<mass value="3"/>', '<mass value="nan"/>', "link 'a'.*mass"),
    "inertia not physical": ('izz="0.6"', 'izz="6"', "not physical"),
    "inertia negative": ('ixx="0.4"', 'ixx="-0.4"', "negative principal moment"),
    "unknown joint kind": ('type="prismatic"', 'type="ball"', "'slide'.*'ball'"),
    "unknown parent": ('<parent link="b"/>', '<parent link="nowhere"/>', "nowhere"),
    "two parents": ('<child link="d"/>', '<child link="c"/>', "child of two joints"),
    "loop": ('<parent link="base"/><child link="d"/>', '<parent link="e"/><child link="d"/>', "root links|loop"),
    "no axis": ('<axis xyz="0.2 -0.5 0.9"/>', '<axis xyz="0 0 0"/>', "'a_second'.*axis"),
    "massless tip": (LINK.format("g", 4, 0), '<link name="g"/>', "'loose' moves no inertia"),
    "link given twice": ('<link name="tool"/>', '<link name="a"/>', "'a'"),
    "not XML": ("</robot>", "", "not a URDF"),
    "not a robot": ('<robot name="sample">', "<html>", "not a URDF"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_urdf_is_named(tmp_path, fault):
    old, new, message = BAD[fault]
    text = sample_urdf()
    assert old in text
    path = tmp_path / "bad.urdf"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ModelError, match=message):
        Tree.from_urdf(path, floating_base=True)


def test_bad_bodies_are_named():
    good = {"name": "a", "mass": 1.0, "inertia": np.eye(3)}
    for change, message in (
        ({"joint": "ball"}, "'ball'"),
        ({"axis": [0, 0]}, "axis: shape"),
        ({"axis": [0, 0, np.nan]}, "not finite"),
        ({"mass": "3"}, "mass"),
        ({"mass": 1e40}, "limit"),
        ({"mass": 1e-40}, "at least"),
        ({"R_PJ": 2 * np.eye(3)}, "not a rotation"),
        ({"rotor_inertia": -1.0}, "rotor_inertia"),
        ({"parent": "ghost"}, "ghost"),
        ({"inertia": np.diag([1, 1, 3])}, "not physical"),
        ({"joint": "free", "rotor_inertia": 1.0}, "no drive"),
        ({"joint": "fixed"}, "no moving"),
        ({"mass": 0.0, "inertia": np.zeros((3, 3))}, "moves no inertia"),
        ({"joint": "universal", "axis2": [0, 0, 2]}, "parallel"),
    ):
        with pytest.raises(ModelError, match=message):
            Tree([Body(**{**good, **change})])
    with pytest.raises(ModelError, match="a -> b -> a"):
        Tree([Body(**good, parent="b"), Body(**{**good, "name": "b"}, parent="a")])
    with pytest.raises(ModelError, match="given twice: a"):
        Tree([Body(**good), Body(**good)])
    with pytest.raises(ModelError, match="no moving body"):
        Tree([])
    with pytest.raises(ModelError, match="no such file"):
        Tree.from_urdf("/nonexistent.urdf")


def test_wrong_shapes_are_named(sample):
    tree = Tree.from_urdf(sample, floating_base=True)
    q, v = tree.neutral(), np.zeros(tree.nv)
    with pytest.raises(ValueError, match=rf"q: shape \({tree.nq - 1},\)"):
        tree.forward_dynamics(q[1:], v, v)
    with pytest.raises(ValueError, match="tau: shape"):
        tree.forward_dynamics(q, v, np.zeros((tree.nv, 1)))
    with pytest.raises(ValueError, match="f_ext: shape"):
        tree.inverse_dynamics(q, v, v, np.zeros((tree.n_bodies + 1, 6)))
    with pytest.raises(ValueError, match="known: float64"):
        tree.hybrid_dynamics(q, v, v, v, np.zeros(tree.nv))
    with pytest.raises(ValueError, match="a: an array of float64"):
        tree.inverse_dynamics(q, v, ["x"] * tree.nv)
    with pytest.raises(ValueError, match="unknown joint 'elbow'"):
        tree.lock(q, v, "elbow")
    # what can be turned into the right array is
    assert np.array_equal(tree.forward_dynamics(list(q), np.zeros(2 * tree.nv)[::2], v.astype(int)), tree.forward_dynamics(q, v, v))


def craft_urdf():
    """The sample with limits, drives, a joint that follows another, and things for other programs."""
    text = sample_urdf()
    extra = {
        '"z_first"': '<limit lower="-1.5" upper="2.5" effort="40" velocity="1.25"/><dynamics damping="0.3" friction="0.7"/>',
        '"slide"': '<limit lower="0.1" upper="0.6" effort="90" velocity="0.05"/><mimic joint="z_first" multiplier="2" offset="0.1"/>',
        '"a_second"': '<limit effort="5" velocity="2"/><safety_controller k_velocity="10" soft_lower_limit="-1"/>',
        '"loose"': '<dynamics damping="1"/>',
    }
    for name, inner in extra.items():
        start = text.index(f"<joint name={name}")
        end = text.index("</joint>", start)
        body = text[start:end]
        for own in ("limit", "dynamics"):
            if f"<{own}" in inner:
                body = re.sub(rf"<{own}[^>]*/>", "", body)
        text = text[:start] + body + inner + text[end:]
    visual = '<visual><geometry><box size="1 1 1"/></geometry></visual></link>'
    return text.replace("</link>", visual, 2).replace("</robot>", '<transmission name="t"/></robot>')


def test_a_craft_of_urdf_has_limits_and_drives_as_pinocchio_reads_them(tmp_path):
    path = tmp_path / "sample.urdf"
    path.write_text(craft_urdf())
    craft, dropped = read_urdf_craft(path)
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    for name in ("z_first", "slide", "a_second", "o_after"):
        s, joint = craft.settings(name), model.joints[model.getJointId(name)]
        q, v = joint.idx_q, joint.idx_v
        if name in ("z_first", "slide"):
            assert (s.lower, s.upper) == (model.lowerPositionLimit[q], model.upperPositionLimit[q])
            assert (s.effort, s.rate) == (model.effortLimit[v], model.velocityLimit[v])
        assert (s.damping, s.friction) == (model.damping[v], model.upperDryFrictionLimit[v] if hasattr(model, "upperDryFrictionLimit")
                                           else model.friction[v])  # fmt: skip
    assert craft.settings("a_second").effort == 5.0 and craft.settings("a_second").lower == -np.inf
    assert craft.settings("slide").angle == 0.1 and craft.links[0].joint == "free"
    assert next(link for link in craft.links if link.joint_name == "z_first").damping == 0.3
    for words in (r"joint 'slide': <mimic> \(joint z_first, multiplier 2, offset 0.1\): locked at 0.1 m, does not follow when 'z_f",
                  r"joint 'a_second': <safety_controller> \(k_velocity 10, soft_lower_limit -1\): not in the model",
                  r"<visual> of links: 2 dropped", r"<transmission>: 1 dropped",
                  r"joint 'loose': .*dynamics.*floating joint"):  # fmt: skip
        assert any(re.search(words, line) for line in dropped), (words, dropped)
    assert len(dropped) == 6  # and the stops of the continuous joint


@pytest.mark.parametrize(("mimics", "mode", "angle", "words"), [
    ({"slide": 'joint="z_first" multiplier="2" offset="0.3"'}, "locked", 1.1, "locked at 1.1 m, does not follow when 'z_first' moves"),
    # over another one, -2 (0.5 z + 0.2) + 1.6, z at its stop of 0.4
    ({"slide": 'joint="a_second" multiplier="-2" offset="1.6"', "a_second": 'joint="z_first" multiplier="0.5" offset="0.2"'}, "locked",
     0.8, "locked at 0.8 m"),
    ({"slide": 'joint="z_first" offset="4"'}, "free", 0.0, "the joint moves by itself: joint 'slide': angle 4.4 is not between the stops"),
    ({"slide": 'joint="a_second"', "a_second": 'joint="slide"'}, "free", 0.0, "itself: it follows itself, slide -> a_second -> slide"),
    ({"slide": 'joint="m_weld"'}, "free", 0.0, "itself: no joint of one degree of freedom 'm_weld'"),
    ({"slide": 'multiplier="2"'}, "free", 0.0, "itself: no joint of one degree of freedom 'None'"),
    ({"m_weld": 'joint="slide"'}, "free", 0.0, "itself: no joint of one degree of freedom 'm_weld'"),
    ({"slide": 'joint="z_first" multiplier="1e300" offset="-inf"'}, "free", 0.0, "itself: its place is -inf"),
])  # fmt: skip
def test_a_joint_that_follows_another_is_locked_where_that_puts_it(tmp_path, mimics, mode, angle, words):
    text = sample_urdf()
    for name, values in mimics.items():
        text = re.sub(rf'(<joint name="{name}".*?)(</joint>)', rf"\1<mimic {values}/>\2", text)
    start = text.index('<joint name="z_first"')
    (file := tmp_path / "follows.urdf").write_text(text[:start] + text[start:].replace('lower="-3"', 'lower="0.4"', 1))
    craft, dropped = read_urdf_craft(file)
    slide = craft.settings("slide")
    assert (slide.mode, slide.angle) == (mode, pytest.approx(angle))
    assert any(words in line and "<mimic>" in line for line in dropped), dropped


def test_a_craft_of_urdf_moves_as_pinocchio_says(sample):
    craft, dropped = read_urdf_craft(sample)
    assert dropped == ["joint 'wheel': stops -3 and 3: a continuous joint has none"]
    rest, model = at_rest(craft), pin.buildModelFromUrdf(str(sample), pin.JointModelFreeFlyer())
    data, q = model.createData(), pin.neutral(model)
    pin.ccrba(model, data, q, np.zeros(model.nv))
    assert rest.mass == pytest.approx(pin.computeTotalMass(model), rel=1e-13)
    np.testing.assert_allclose(rest.centre, pin.centerOfMass(model, data, q), atol=1e-12)
    np.testing.assert_allclose(rest.inertia, data.Ig.inertia, atol=1e-9)


@pytest.mark.parametrize("fault", [fault for fault in BAD if fault != "massless tip"])  # which a craft may have: it marks a place
def test_a_bad_urdf_is_no_craft(tmp_path, fault):
    old, new, _ = BAD[fault]
    path = tmp_path / "bad.urdf"
    path.write_text(sample_urdf().replace(old, new, 1))
    with pytest.raises(ModelError, match="bad.urdf"):
        read_urdf_craft(path)


def test_a_chain_that_no_run_takes_is_counted_before_it_is_read(tmp_path, monkeypatch):
    count = 10_000
    links = [f'<link name="l{k}"/>' for k in range(count)]
    joints = [f'<joint name="j{k}" type="fixed"><parent link="l{k - 1}"/><child link="l{k}"/></joint>' for k in range(1, count)]
    (file := tmp_path / "chain.urdf").write_text(f'<robot name="chain">{"".join(links + joints)}</robot>')
    monkeypatch.setattr("rt_kernels.model.urdf.read_urdf", lambda *_: pytest.fail("read"))
    with pytest.raises(ModelError, match=r"chain.urdf: 10000 links, limit 64"):
        read_urdf_craft(file)


def test_a_urdf_file_as_a_craft_file_is_the_same_craft(sample, tmp_path, capsys):
    """`craft --toml`: masses, joints, stops; extended by a port, thrust and locks it is a vehicle that docks."""
    urdf = tmp_path / "flyer.urdf"
    urdf.write_text(sample_urdf().replace('<mass value="20"/>', '<mass value="2000"/>').replace('type="floating"', 'type="fixed"'))
    assert main(["craft", str(urdf), "--toml", str(tmp_path / "flyer.toml")]) == 0 and "craft file" in capsys.readouterr().out
    (one, _), other = read_urdf_craft(urdf), read_craft(tmp_path / "flyer.toml")
    trees = [FlexibleTree(craft.links) for craft in (one, other)]
    assert trees[0].joint_names == trees[1].joint_names
    q = trees[0].neutral()
    q[7:9] = 0.4, -0.3
    np.testing.assert_allclose(trees[1].mass_matrix(q), trees[0].mass_matrix(q), rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(other.joints, one.joints, strict=True):
        for field in fields(ours):
            assert getattr(ours, field.name) == (pytest.approx(x, rel=1e-14) if isinstance(x := getattr(theirs, field.name), float) else x)
    vehicle = tmp_path / "vehicle.toml"
    vehicle.write_text(f"""extends = "flyer.toml"
thrust_n = 60.0
joint = [{", ".join(f'{{ name = "{name}", mode = "locked" }}' for name in ("z_first", "slide", "wheel", "a_second", "o_after"))}]

[[port]]
name = "docking"
body = "base"
position_m = [0.0, -1.0, 0.0]
angles_deg = [0.0, -90.0, 0.0]
""")
    records = run_line([*QUICK, "test.stand=stands/ideal_stand.toml", f"test.active_vehicle={vehicle}", "compensation.part=none",
                        "guidance.after_capture_s=0.01"])  # fmt: skip
    assert records["capture_time"][-1] > 0.0 and not fault_names(records["faults"][-1]) & STOPPING
