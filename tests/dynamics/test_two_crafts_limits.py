"""The largest craft that a run takes: everything at its limit at once, against Pinocchio; one more of each is refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.dynamics.two_crafts import TwoCrafts
from rt_kernels.layout import SAMPLE_DTYPE
from rt_kernels.model.craft import Craft, CraftPort, Interface, JointSettings, Link, Sensor, Thruster, Wheel
from rt_kernels.model.modes import ModalBody
from tests.dynamics.test_two_crafts import PERIOD, ROOT, arm, begin, flexible, make, pair

pin = pytest.importorskip("pinocchio")

JOINTS, WHEELS, THRUSTERS, SENSORS, INTERFACES = 40, 16, 64, 24, 16
DRIVEN = JOINTS - WHEELS


def largest(joints=JOINTS):
    """A tree with joints driven by torques, wheels on continuous ones, and thrusters, sensors and interfaces on its bodies."""
    rng = np.random.default_rng(4)
    links, settings, path = [Link("craft", ROOT, joint="free")], [], ["craft"]
    for k in range(joints):
        wheel = k >= joints - WHEELS
        mass = 5.0 if wheel else rng.uniform(20.0, 80.0)
        body = ModalBody.rigid(mass, np.zeros(3) if wheel else rng.normal(0.0, 0.4, 3), mass * np.diag([0.3, 0.4, 0.5]))
        # on one of the bodies between the root and the one before: depth first, as Pinocchio has them
        path = path[: 1 if wheel else int(rng.integers(max(1, len(path) - 2), len(path) + 1))]
        axis = rng.normal(size=3)
        rotation = Rotation.random(random_state=k).as_matrix()
        links.append(Link(f"link{k}", body, path[-1], None, "continuous" if wheel else "revolute", axis / np.linalg.norm(axis),
                          rng.normal(0.0, 0.8, 3), rotation))  # fmt: skip
        path.append(f"link{k}")
        settings.append(JointSettings(f"link{k}", mode="free" if wheel else "driven", angle=rng.uniform(-1.0, 1.0)))
    wheels = tuple(Wheel(f"w{k}", f"link{k}", 50.0, 1e6) for k in range(joints - WHEELS, joints))
    thrusters = tuple(Thruster(f"t{k}", "craft", rng.normal(size=3), _unit(rng), 20.0) for k in range(THRUSTERS))
    sensors = tuple(Sensor(f"s{k}", "acceleration", f"link{k}", rng.normal(size=3)) for k in range(SENSORS))
    interfaces = tuple(Interface(f"i{k}", f"link{k}") for k in range(INTERFACES))
    return Craft("largest", tuple(links), (CraftPort("docking", "craft", np.array([3.0, 0.0, 0.0])),), tuple(settings), thrusters, wheels,
                 sensors, interfaces)  # fmt: skip


def _unit(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def as_in_pinocchio(craft):
    """(model, joint number of each link)."""
    model, numbers = pin.Model(), {}
    for link in craft.links:
        kind = pin.JointModelFreeFlyer() if link.joint == "free" else pin.JointModelRevoluteUnaligned(link.axis)
        at = pin.SE3(np.asarray(link.rotation), np.asarray(link.position, float))
        numbers[link.name] = model.addJoint(numbers.get(link.parent, 0), kind, at, link.name)
        body = link.body
        c = body.first_moment / body.mass
        E = body.second_moment - body.mass * np.outer(c, c)
        model.appendBodyToJoint(numbers[link.name], pin.Inertia(body.mass, c, np.trace(E) * np.eye(3) - E), pin.SE3.Identity())
    model.gravity.setZero()
    return model, numbers


def coordinates_of(model, tree, q, v):
    """Coordinates of the tree in Pinocchio's order, and of each link the places of its rates there and in the tree."""
    q_, v_, places = np.zeros(model.nq), np.zeros(model.nv), {}
    for link in tree.links:
        joint = model.joints[model.getJointId(link.name)]
        own_q, own_v = (slice(0, 7), slice(0, 6)) if link.joint == "free" else tree.coordinates(link.joint_name)
        # of a continuous joint cosine and sine
        q_[joint.idx_q : joint.idx_q + joint.nq] = np.arctan2(*q[own_q][::-1]) if link.joint == "continuous" else q[own_q]
        v_[joint.idx_v : joint.idx_v + joint.nv] = v[own_v]
        places[link.name] = joint.idx_v, own_v
    return q_, v_, places


def test_the_largest_craft_moves_as_in_pinocchio():
    """Torques on all joints, the ones beyond the 32nd of the sample too, wheels and thrusters: accelerations of the joints, of the sensors'
    points, wrenches through the interfaces."""
    craft = largest()
    part = make(pair(craft))
    model, numbers = as_in_pinocchio(craft)
    data = model.createData()
    rng = np.random.default_rng(5)
    order = [int(name.removeprefix("active link")) for name in part.joints]  # of the channels
    word = sum(1 << place for place, k in enumerate(order) if k < DRIVEN)
    sample, aux = begin(part)
    widths = {one.name: one.count for one in part.AUX}
    assert widths["joint_rate"] == JOINTS and widths["sensor_rate"] == 3 * SENSORS and widths["interface_wrench"] == 6 * INTERFACES
    at, first = {}, 0
    for one in part.AUX:
        at[one.name], first = slice(first, first + one.count), first + one.count
    assert len(aux) == first
    for _ in range(30):
        torque, thrust = rng.uniform(-30.0, 30.0, JOINTS), rng.uniform(0.0, 20.0, THRUSTERS)
        sample["joint_target"], sample["joint_controlled"] = torque[order], [word & 0xFFFFFFFF, word >> 32]
        sample["wheel_torque_A"], sample["thruster_A"] = torque[DRIVEN:], thrust
        # what the control logs of them together
        sample["control_A"] = sum(value * np.array(row[0]) for name in ("wheel_torque_A", "thruster_A")
                                  for value, row in zip(sample[name][0], part.actuators[name], strict=True))  # fmt: skip
        tree = part.trees[0]
        q, v, places = coordinates_of(model, tree, *part.coordinates(0))
        before = part.coordinates(0)[1]
        found = part.step(sample, aux)
        after = part.coordinates(0)[1]
        tau = np.zeros(model.nv)
        for t, value in zip(craft.thrusters, thrust, strict=True):
            tau[:6] += value * np.concatenate([t.direction, np.cross(t.position, t.direction)])
        for k, value in enumerate(torque):
            tau[places[f"link{k}"][0]] = value
        a = pin.aba(model, data, q, v, tau)
        ours = np.array([((after - before) / PERIOD)[places[f"link{k}"][1]][0] for k in range(JOINTS)])
        theirs = np.array([a[places[f"link{k}"][0]] for k in range(JOINTS)])
        assert np.abs(ours - theirs).max() < 1e-8 * np.abs(theirs).max()
        np.testing.assert_allclose(found[at["joint_torque"]], torque[order], rtol=1e-12)
        # the external wrench of the thrusters is on the root
        pin.rnea(model, data, q, v, a)
        wrench = np.array([data.f[numbers[i.body]].vector for i in craft.interfaces])
        assert np.abs(found[at["interface_wrench"]].reshape(-1, 6) - wrench).max() < 1e-8 * np.abs(wrench).max()
        pin.forwardKinematics(model, data, q, v, a)
        for s, one in zip(craft.sensors, found[at["sensor_acceleration"]].reshape(-1, 3), strict=True):
            j = numbers[s.body]
            alpha, linear, omega = data.a[j].angular, data.a[j].linear + np.cross(data.v[j].angular, data.v[j].linear), data.v[j].angular
            expected = linear + np.cross(alpha, s.position) + np.cross(omega, np.cross(omega, s.position))
            assert np.abs(one - expected).max() < 1e-7 * max(1.0, np.abs(expected).max())


def test_a_torque_of_the_second_word_reaches_its_joint():
    """Joint 34 of both crafts together is driven by bit 1 of the second word alone."""
    links = [Link("craft", ROOT, joint="free")]
    body = ModalBody.rigid(10.0, inertia=np.ones(3))
    links += [Link(f"j{k}", body, "craft", None, "revolute", (0.0, 0.0, 1.0), (0.0, 0.1 * k, 0.0)) for k in range(37)]
    craft = Craft("many", tuple(links), (CraftPort("docking", "craft", np.zeros(3)),),
                  tuple(JointSettings(f"j{k}", mode="driven") for k in range(37)))  # fmt: skip
    for vehicles, one in ((pair(craft, arm()), 33), (pair(arm(), craft), 33)):
        part = make(vehicles)
        sample, aux = begin(part, [0.0] * 6)
        sample["joint_target"], sample["joint_controlled"] = 2.0, [0, 2]
        torque = part.step(sample, aux)[2 * JOINTS : 3 * JOINTS]
        moved = {name for name, value in zip(part.joints, torque, strict=True) if value == 2.0}
        assert moved == {part.joints[one]}


@pytest.mark.parametrize(("what", "more", "limit"), [
    ("thrusters", {"thrusters": Thruster("one", "craft", np.zeros(3), np.eye(3)[0], 1.0)}, THRUSTERS),
    ("wheels", {"wheels": Wheel("one", "link0", 1.0, 1.0)}, WHEELS),
    ("sensors", {"sensors": Sensor("one", "rate", "craft", np.zeros(3))}, SENSORS),
    ("interfaces", {"interfaces": Interface("one", "link0")}, INTERFACES),
])
def test_one_more_is_refused(what, more, limit):
    assert TwoCrafts.LIMITS[what] == limit
    craft = largest()
    craft = replace(craft, **{name: (*getattr(craft, name), one) for name, one in more.items()})
    with pytest.raises(ValueError, match=f"{what}: {limit + 1}, limit {limit}$"):
        make(pair(craft))


def test_more_joints_than_the_sample_has_places_for_are_refused():
    with pytest.raises(ValueError, match="joints of one degree of freedom: 41, limit 40"):
        make(pair(largest(JOINTS + 1)))
    with pytest.raises(ValueError, match="both craft: 43, limit 40"):
        make(pair(largest(), arm()))
    assert SAMPLE_DTYPE["joint_target"].shape == (TwoCrafts.LIMITS["joints of one degree of freedom"],)
    for field, what in (("thruster_A", "thrusters"), ("wheel_torque_T", "wheels"), ("wheel_rate_A", "wheels")):
        assert SAMPLE_DTYPE[field].shape == (TwoCrafts.LIMITS[what],)


def test_channels_of_a_small_craft_are_those_of_earlier_logs():
    assert make(pair(arm(), flexible())).AUX == TwoCrafts.AUX
