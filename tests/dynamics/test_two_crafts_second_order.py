"""Step of second order of two craft: Pinocchio under scipy's DOP853, momentum, energy of a contact, latches, friction that holds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from rt_kernels.model.craft import Craft, CraftPort, JointSettings, Link
from rt_kernels.model.modes import ModalBody
from tests.dynamics.test_two_crafts import AUX, ROOT, arm, begin, farthest, flexible, latched, make, pair, run
from tests.dynamics.test_two_crafts_joints import change, equipped, fly, pulse, settings

pin = pytest.importorskip("pinocchio")
KINDS = ("revolute", "prismatic", "screw", "continuous", "spherical")
SECONDS = 10.0


def second(craft):
    return replace(craft, step="second_order")


# --------------------------------------------------------------------------------------------------------------- against Pinocchio


def random_craft(seed):
    """Seven bodies on every kind of joint, sprung and damped, on a root of 2 t."""
    rng = np.random.default_rng(seed)

    def body(mass):
        return ModalBody.rigid(mass, rng.normal(scale=0.3, size=3), np.diag(rng.uniform(0.3, 0.5, 3)) * mass)

    links, joints = [Link("craft", body(2000.0), joint="free")], []
    for k in range(7):
        kind, parent = KINDS[k % 5], links[rng.integers(max(0, k - 2), k + 1)].name
        place = {"position": rng.normal(scale=0.7, size=3), "rotation": Rotation.random(random_state=10 * seed + k).as_matrix()}
        links.append(Link(f"link{k}", body(rng.uniform(50.0, 300.0)), parent, None, kind, rng.normal(size=3), pitch=0.1, **place))
        turns = kind == "continuous"
        if kind != "spherical":
            joints.append(JointSettings(f"link{k}", angle=0.0 if turns else rng.normal(scale=0.3), damping=rng.uniform(0.0, 5.0),
                                        stiffness=0.0 if turns else rng.uniform(50.0, 400.0)))  # fmt: skip
    return Craft("random", tuple(links), (CraftPort("docking", "link6", rng.normal(size=3)),), tuple(joints))


def set_off(craft, seed, period):
    """The part, its sample after the closing of the loop, and the coordinates of the craft there: root and joints in motion."""
    rng, starts = np.random.default_rng(100 + seed), []
    for joint in craft.joints:
        slides = next(link.joint for link in craft.links if link.name == joint.joint) == "prismatic"
        rate = {"rate_m_s": rng.uniform(-0.2, 0.2)} if slides else {"rate_deg_s": rng.uniform(-60.0, 60.0)}
        starts.append({"craft": "active", "joint": joint.joint, **rate})
    part = make(pair(craft), period=period, joint_start=starts)
    sample, _ = begin(part, [0.1, 0.05, -0.05, 0.2, -0.4, 0.3])
    return part, sample, [x.copy() for x in part.coordinates(0)]


class Reference:
    """The same craft as a model of Pinocchio; continuous joints by their angle."""

    def __init__(self, craft):
        self.craft, self.model, self.at = craft, pin.Model(), {}
        self.model.gravity.setZero()
        for link in craft.links:
            place = pin.SE3(link.rotation, link.position)
            kind = {
                "free": pin.JointModelFreeFlyer, "spherical": pin.JointModelSpherical,
                "prismatic": lambda: pin.JointModelPrismaticUnaligned(link.axis),  # noqa: B023
                "screw": lambda: pin.JointModelHelicalUnaligned(link.axis, link.pitch),  # noqa: B023
            }.get(link.joint, lambda: pin.JointModelRevoluteUnaligned(link.axis))  # fmt: skip  # noqa: B023
            index = self.model.addJoint(self.at[link.parent].id if link.parent else 0, kind(), place, link.name)
            self.at[link.name] = self.model.joints[index]
            c, E = link.body.first_moment / link.body.mass, link.body.second_moment
            inertia = np.trace(E) * np.eye(3) - E - link.body.mass * (c @ c * np.eye(3) - np.outer(c, c))
            self.model.appendBodyToJoint(index, pin.Inertia(link.body.mass, c, inertia), pin.SE3.Identity())
        self.data = self.model.createData()

    def state(self, tree, q, v):
        """[q, v] in the order of Pinocchio."""
        x, rates = np.zeros(self.model.nq), np.zeros(self.model.nv)
        for link in self.craft.links:
            joint, (of_q, of_v) = self.at[link.name], tree.coordinates(link.joint_name)
            own = q[of_q] if link.joint != "continuous" else np.arctan2(q[of_q][1], q[of_q][0])
            x[joint.idx_q : joint.idx_q + joint.nq], rates[joint.idx_v : joint.idx_v + joint.nv] = own, v[of_v]
        return np.concatenate([x, rates])

    def rate(self, _, y):
        q, v, tau = y[: self.model.nq].copy(), y[self.model.nq :], np.zeros(self.model.nv)
        moved = np.zeros(self.model.nq)
        for link in self.craft.links:
            joint = self.at[link.name]
            a, b = joint.idx_q, joint.idx_v
            if link.joint in ("free", "spherical"):
                free = link.joint == "free"
                a, w = (a + 3, v[b + 3 : b + 6]) if free else (a, v[b : b + 3])
                q[a : a + 4] /= np.linalg.norm(q[a : a + 4])
                x = q[a : a + 4]
                moved[a : a + 4] = 0.5 * np.append(x[3] * w + np.cross(x[:3], w), -x[:3] @ w)
                if free:
                    moved[a - 3 : a] = Rotation.from_quat(x).apply(v[b : b + 3])
            else:
                moved[a] = v[b]
        for s in self.craft.joints:
            joint = self.at[s.joint]
            tau[joint.idx_v] = -s.damping * v[joint.idx_v] - s.stiffness * (q[joint.idx_q] - s.angle)
        return np.concatenate([moved, pin.aba(self.model, self.data, q, v, tau)])

    def port(self, y):
        pin.forwardKinematics(self.model, self.data, y[: self.model.nq])
        port = self.craft.ports[0]
        return self.data.oMi[self.at[port.body].id].act(port.position)


@pytest.mark.parametrize("seed", range(3))
def test_random_crafts_move_as_in_pinocchio(seed):
    """Ten seconds, joints and root in motion: place of the port with steps of 1 and 2 ms, of both orders."""
    craft = random_craft(seed)
    errors, reference = {}, Reference(craft)
    end = None
    for step, period in (("second_order", 1e-3), ("second_order", 2e-3), ("first_order", 1e-3)):
        part, sample, state = set_off(replace(craft, step=step), seed, period)
        tree = part.trees[0]
        if end is None:
            start = reference.state(tree, *state)
            end = reference.port(solve_ivp(reference.rate, (0.0, SECONDS), start, "DOP853", rtol=1e-9, atol=1e-10).y[:, -1])
        part.repeat(sample, round(SECONDS / period))
        errors[step, period] = np.linalg.norm(reference.port(reference.state(tree, *part.coordinates(0))) - end)
    assert errors["second_order", 1e-3] < 5e-5
    assert errors["first_order", 1e-3] > 100 * errors["second_order", 1e-3]
    assert errors["second_order", 2e-3] > 2.5 * errors["second_order", 1e-3]


# ------------------------------------------------------------------------------------------------------------- what has to stay


@pytest.mark.parametrize("craft", [arm(), arm(("spherical", "revolute", "screw")), flexible()], ids=["arm", "ball", "flexible"])
def test_momentum_is_kept_and_energy_stays(craft):
    craft = second(replace(craft, joints=tuple(replace(s, damping=0.0) for s in craft.joints)))
    part = make(pair(craft, second(flexible(3))))
    records, _ = run(part, 400)
    sample = records[-1:].copy()

    def energy():
        elastic = 0.0
        for k, one in enumerate((craft, flexible(3))):
            q, _ = part.coordinates(k)
            tree = part.trees[k]
            K = tree.stiffness_matrix()
            eta = q[tree.nq - tree.nv + tree.nj :]
            elastic += 0.5 * eta @ K[tree.nj :, tree.nj :] @ eta
            elastic += sum(0.5 * s.stiffness * (q[tree.coordinates(s.joint)[0]][0] - s.angle) ** 2 for s in one.joints)
        return sample["kinetic_energy"][0] + elastic

    part.step(sample)
    before = energy()
    part.repeat(sample, 20_000)
    for half in (slice(0, 3), slice(3, 6)):
        size = np.linalg.norm(records["momentum"][0][half])
        assert np.linalg.norm(sample["momentum"][0, half] - records["momentum"][-1][half]) <= 1e-12 * size
    assert energy() == pytest.approx(before, rel=2e-5)


def test_both_orders_fly_the_same_motion():
    """With contact, control and joints that change: the difference goes with the step of the first order."""
    changes = [change("link0", "given", target=0.5, time_s=0.3), change("link1", "driven", after_s=0.1, target=-0.3, time_s=0.2)]
    craft = settings(arm(), link1={"servo_stiffness": 4e3, "servo_damping": 200.0})
    apart = []
    for period in (1e-3, 2.5e-4):
        both = []
        for one in (craft, second(craft)):
            part = make(pair(one, second(flexible(3)) if one is not craft else flexible(3)), period=period, joint_changes=changes)
            sample, aux = begin(part)
            for k in range(round(0.5 / period)):
                sample["time_ns"] = round((k + 1) * period * 1e9)
                sample["F_T_corrected"] = pulse(1e3 * k * period)
                sample["control_A"] = [3.0, -2.0, 1.0, 4.0, -1.0, 2.0]
                part.step(sample, aux)
            both.append(sample.copy())
        apart.append(farthest(*both))
    assert apart[0] < 1e-3 and apart[1] < 0.4 * apart[0]


def test_a_given_joint_is_where_its_path_is():
    move = {"name": "move", "times_s": [0.0, 0.3, 0.6], "values": [0.3, 0.8, 0.1], "interpolation": "cubic"}
    craft = settings(arm(stiffness=0.0, damping=0.0), link1={"mode": "locked"}, link2={"mode": "locked"})
    expected, found = ((make(pair(one), profiles=[move], joint_changes=[change("link0", "given", profile="move")]))
                       for one in (craft, second(craft)))  # fmt: skip
    (_, exact), (_, aux) = fly(expected, 900, F_T_corrected=pulse), fly(found, 900, F_T_corrected=pulse)
    x, wanted = (of[:, AUX["joint_position"]][:, 0] for of in (aux, exact))
    assert np.abs(x - wanted).max() < 1e-5
    np.testing.assert_allclose(x[620:], 0.1, atol=1e-9)


def test_a_contact_gives_back_what_it_takes():
    """A spring between the ports, its force measured once a tick: after the blow the energy is the one with a tenth of the step."""
    craft = Craft("ball", (Link("craft", ROOT, joint="free"),), (CraftPort("docking", "craft"),), step="second_order")
    left = []
    for period in (1e-3, 1e-4):
        part = make(pair(craft), period=period)
        sample, aux = begin(part, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
        start, before = sample["X_TA"][0, 0], sample["kinetic_energy"][0]
        for _ in range(round(1.0 / period)):
            depth = max(0.0, sample["X_TA"][0, 0] - start - 0.02)
            sample["F_T_corrected"] = [4e5 * depth, 0.0, 0.0, 0.0, 0.0, 0.0]
            part.step(sample, aux)
        assert sample["V_TA"][0, 0] < -0.05 and sample["F_T_corrected"][0, 0] == 0.0
        left.append(sample["kinetic_energy"][0] / before)
    assert left[0] == pytest.approx(left[1], abs=5e-5) and 0.98 < left[0] < 1.0


def test_latches_hold_and_let_go():
    one, other = (make(pair(arm(), flexible(3))), make(pair(second(arm()), second(flexible(3)))))
    expected, _ = latched(one, released=100)
    found, aux = latched(other, released=100)
    drift = aux[60:300, AUX["latch_drift"]]
    assert drift[:, 0].max() < 2e-4 and drift[-1, 0] < 1e-6
    assert np.abs(found["X_NC"] - expected["X_NC"]).max() < 2e-4
    for half in (slice(0, 3), slice(3, 6)):
        assert np.ptp(found["momentum"][150:, half], axis=0).max() < 1e-9


def test_snapshot_and_late_ticks():
    craft = settings(second(arm()), link0={"friction": 4.0})
    part = make(pair(craft, second(flexible())))
    block = part.dump()
    fly(part, 100, F_T_corrected=pulse)
    kept = part.snapshot()
    samples = []
    for periods in (1, 4):
        part.restore(kept)
        sample, aux = begin(part)
        sample["periods"] = periods
        for _ in range(200 // periods):
            part.step(sample, aux)
        samples.append(sample.copy())
    assert farthest(samples[1], samples[0]) == 0.0
    twin = make(pair(craft, second(flexible())))
    twin.load(block)
    part.restore(kept)
    assert run(twin, 50)[0].tobytes() == run(part, 50)[0].tobytes()


# ------------------------------------------------------------------------------------------------------------------- friction


def rubbing(torque, **more):
    """An arm whose first joint is turned by a torque against dry friction of 10 N.m, the others locked."""
    craft = settings(second(arm(stiffness=0.0, damping=0.0)), link0={"friction": 10.0, "mode": "driven"} | more,
                     link1={"mode": "locked"}, link2={"mode": "locked"})  # fmt: skip
    return make(pair(craft), joint_changes=[change("link0", "driven", target=torque)])


def test_dry_friction_holds_a_joint():
    """5 N.m on 10 N.m of friction for a minute."""
    part = rubbing(5.0)
    sample, aux = begin(part, np.zeros(6))
    part.step(sample, aux)
    part.repeat(sample, 60_000)
    aux = part.step(sample, aux)
    assert np.degrees(abs(aux[AUX["joint_position"]][0] - 0.3)) <= 0.01
    assert aux[AUX["joint_torque"]][0] == pytest.approx(0.0, abs=1e-9)


def test_more_than_the_friction_moves_it_by_the_rest():
    _, aux = fly(rubbing(15.0), 500, np.zeros(6))
    _, free = fly(rubbing(5.0, friction=0.0), 500, np.zeros(6))
    np.testing.assert_allclose(aux[:, AUX["joint_position"]][:, 0], free[:, AUX["joint_position"]][:, 0], atol=1e-12)
    np.testing.assert_allclose(aux[1:, AUX["joint_torque"]][:, 0], 5.0, rtol=1e-9)


def test_friction_stops_a_joint_and_gives_no_energy():
    """Each of three joints in motion comes to rest and stays there; kinetic energy never rises."""
    craft = second(arm(stiffness=0.0, damping=0.0, friction=200.0))
    starts = [{"craft": "active", "joint": f"link{k}", "rate_deg_s": rate} for k, rate in enumerate((20.0, -15.0, 30.0))]
    records, aux = fly(make(pair(craft), joint_start=starts), 5000, np.zeros(6))
    rate, energy = aux[:, AUX["joint_rate"]][:, :3], records["kinetic_energy"]
    assert (np.abs(rate[0]) > 0.2).all() and not rate[-1].any()
    assert (np.diff(energy) <= 1e-9 * energy[0]).all()
    assert np.abs(aux[-1, AUX["joint_torque"]][:3]).max() <= 200.0


def test_wheels_and_sensors_fly_with_it():
    """Momentum of a wheel and the craft's, as with the first order."""
    torque = np.array([0.4, *[0.0] * 15])
    axis = np.array([0.0, 0.6, 0.8])
    both = [fly(make(pair(craft)), 1000, np.zeros(6), wheel_torque_A=torque, control_A=np.concatenate([np.zeros(3), -0.4 * axis]))
            for craft in (equipped(), second(equipped()))]  # fmt: skip
    (expected, _), (found, aux) = both
    assert found["wheel_rate_A"][-1, 0] == pytest.approx(0.4 / 0.35, rel=1e-3)
    assert farthest(found[-1:], expected[-1:]) < 1e-5
    assert aux[-1, AUX["sensor_rate"]][:3] == pytest.approx(both[0][1][-1, AUX["sensor_rate"]][:3], abs=1e-5)


def test_sensors_and_interfaces_feel_the_wrench_between_the_ports():
    """As with the first order, the blows of the contact included."""
    expected, found = (fly(make(pair(craft)), 80, F_T_corrected=pulse)[1] for craft in (equipped(), second(equipped())))
    for name in ("sensor_acceleration", "interface_wrench"):
        size = np.abs(expected[:, AUX[name]]).max()
        np.testing.assert_allclose(found[1:, AUX[name]], expected[1:, AUX[name]], atol=5e-3 * size, err_msg=name)
