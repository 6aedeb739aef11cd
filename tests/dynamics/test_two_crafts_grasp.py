"""An arm of the target craft that holds the active one: Pinocchio, momentum, work, the twist that is asked for, modes, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from rt_kernels.context import Vehicle, Vehicles
from rt_kernels.dynamics.two_crafts import TwoCrafts
from rt_kernels.layout import BITS, CODES
from rt_kernels.model.craft import Craft, CraftPort, JointSettings, Link
from rt_kernels.model.modes import ModalBody
from tests.dynamics.test_two_crafts import AUX, MOTION, ROOT, arm, begin, make, vehicle_of
from tests.dynamics.test_two_crafts_second_order import Reference

pin = pytest.importorskip("pinocchio")
MODE, FRAME = CODES["arm_mode"], CODES["rate_frame"]
STIFFNESS, DAMPING = 4e4, 2e4
ANGLES = (0.2, -0.5, 0.9, -0.7, 0.4, 0.3)
AXES = ((0, 0, 1.0), (0, 1.0, 0), (0, 1.0, 0), (0, 1.0, 0), (0, 0, 1.0), (1.0, 0, 0))
CONTACT = np.array([-30.0, 8.0, 5.0, 2.0, -3.0, 4.0])


def station(joints=6, port="craft", mode="driven", **gains):
    """A craft of 6 t with an arm of six joints, the docking port on its root, the one that holds on the last link."""
    links, parent = [Link("craft", ROOT, joint="free")], "craft"
    for k in range(6):
        body = ModalBody.rigid(60.0 - 5.0 * k, (0.7, 0.05, -0.02), (4.0, 12.0, 13.0))
        links.append(Link(f"link{k}", body, parent, None, "revolute", AXES[k], (1.5, 0.2, 0.1)))
        parent = f"link{k}"
    gains = {"servo_stiffness": STIFFNESS, "servo_damping": DAMPING} | gains
    settings = tuple(JointSettings(f"link{k}", mode=mode if k < joints else "locked", angle=ANGLES[k], **gains) for k in range(6))
    ports = (CraftPort("docking", port, np.array([-2.0, 0.3, 0.2]), Rotation.from_euler("xyz", [4, 7, -5], degrees=True).as_matrix()),
             CraftPort("grapple", "link5", np.array([1.1, 0.1, -0.2]), Rotation.from_euler("xyz", [20, -10, 30], degrees=True).as_matrix()))
    return Craft("station", tuple(links), ports, settings)


def module():
    """A rigid module of 2 t."""
    return Vehicle(2000.0, np.diag([2500.0, 4000.0, 4200.0]).tolist(), [1.5, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0])


def held(craft=None, **more):
    return make(Vehicles(module(), vehicle_of(craft or station())), grasp_port="grapple", **more)


def fly(part, seconds, period=1e-3, **fields):
    """Records and auxiliary channels of a flight that begins at rest; fields of every tick."""
    sample, aux = begin(part, np.zeros(6))
    out, auxes = [sample.copy()], [aux.copy()]
    for name, value in fields.items():
        sample[name] = value
    for _ in range(round(seconds / period)):
        auxes.append(part.step(sample, aux).copy())
        out.append(sample.copy())
    return np.concatenate(out), np.array(auxes)


# ------------------------------------------------------------------------------------------------------------------- Pinocchio


class Whole(Reference):
    """Station, arm and module as one tree, the module fixed on the last link; servos, one of which is led, and the contact between the
    ports."""

    def __init__(self, craft, part, sample, joint, rate):
        super().__init__(craft)
        self.end, self.led, self.led_rate = self.at["link5"].id, joint, rate
        start = self.state(part.trees[1], *part.coordinates(1))
        pin.forwardKinematics(self.model, self.data, start[: self.model.nq])
        own = module()
        X_NC = pin.SE3(Rotation.from_quat(sample["X_NC"][0, 3:]).as_matrix(), sample["X_NC"][0, :3])
        X_EC = self.data.oMi[self.end].inverse() * X_NC
        self.load = X_EC.act(pin.Inertia(own.mass_kg, np.zeros(3), np.array(own.inertia_kg_m2)))
        self.model.appendBodyToJoint(self.end, pin.Inertia(own.mass_kg, np.zeros(3), np.array(own.inertia_kg_m2)), X_EC)
        self.data = self.model.createData()
        self.X_EA = X_EC * pin.SE3(np.eye(3), np.array(own.X_port[:3]))
        self.X_0T, self.X_EG = (pin.SE3(np.asarray(p.rotation), np.asarray(p.position)) for p in craft.ports)
        self.start = start

    def contact(self, q):
        """On the target at and in T, its opposite on the module: for each, in the axes and at the origin of its joint."""
        pin.forwardKinematics(self.model, self.data, q)
        F = self.X_0T.act(pin.Force(CONTACT))
        root = self.at["craft"].id
        return F, (self.data.oMi[self.end].inverse() * self.data.oMi[root]).act(-F)

    def accelerations(self, t, q, v):
        tau, loads = np.zeros(self.model.nv), pin.StdVec_Force()
        loads.extend([pin.Force.Zero() for _ in range(self.model.njoints)])
        loads[self.at["craft"].id], loads[self.end] = self.contact(q)
        for k in range(6):
            joint, rate = self.at[f"link{k}"], self.led_rate if k == self.led else 0.0
            tau[joint.idx_v] = STIFFNESS * (ANGLES[k] + rate * t - q[joint.idx_q]) + DAMPING * (rate - v[joint.idx_v])
        return pin.aba(self.model, self.data, q, v, tau, loads)

    def rate(self, t, y):
        found = super().rate(t, y)
        q, v = y[: self.model.nq].copy(), y[self.model.nq :]
        q[3:7] /= np.linalg.norm(q[3:7])
        return np.concatenate([found[: self.model.nq], self.accelerations(t, q, v)])

    def seen(self, t, y):
        """X_TA and the wrench of the grasp on the target craft, at and in its port."""
        q, v = y[: self.model.nq], y[self.model.nq :]
        a = self.accelerations(t, q, v)
        _, on_module = self.contact(q)
        pin.forwardKinematics(self.model, self.data, q, v, a)
        X_TA = (self.data.oMi[self.at["craft"].id] * self.X_0T).inverse() * self.data.oMi[self.end] * self.X_EA
        V, A = self.data.v[self.end], self.data.a[self.end]
        total = self.load * A + V.cross(self.load * V)
        return X_TA, self.X_EG.actInv(on_module - total).vector


def test_held_it_moves_as_one_tree_of_pinocchio():
    """Two seconds, one joint led, a contact between module and station: pose of the ports and the wrench in the grasp. Errors are of first
    order in the step: half with half of it, and gone in what both steps extrapolate to."""
    craft, seen, true = station(), {}, None
    for period in (1e-3, 5e-4):
        part = held(craft, period=period)
        sample, _ = begin(part, np.zeros(6))
        if true is None:
            whole = Whole(craft, part, sample, 2, 0.05)
            end = solve_ivp(whole.rate, (0.0, 2.0), whole.start, "DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
            X_TA, wrench = whole.seen(2.0, end)
            true = np.concatenate([X_TA.translation, np.zeros(3), wrench])
        records, aux = fly(part, 2.0, period, F_T_corrected=CONTACT, arm_mode=MODE["single_joint"], arm_target=2,
                           operator_rate=[0.05, 0, 0, 0, 0, 0])  # fmt: skip
        found = records["X_TA"][-1]
        turned = Rotation.from_matrix(X_TA.rotation).inv() * Rotation.from_quat(found[3:])
        seen[period] = np.concatenate([found[:3], turned.as_rotvec(), aux[-1, AUX["latch_wrench"]]])
        assert np.linalg.norm(found[:3] - records["X_TA"][0, :3]) > 0.05 and np.linalg.norm(wrench[:3]) > 10.0
        assert aux[1:, AUX["latch_drift"]].max() < 1e-6
    size = np.repeat([1.0, 1.0, *(np.linalg.norm(wrench[half]) for half in (slice(0, 3), slice(3, 6)))], 3)
    whole_step, half_step, none = (np.abs(x - true) / size for x in (seen[1e-3], seen[5e-4], 2.0 * seen[5e-4] - seen[1e-3]))
    assert whole_step.max() < 3e-4 and np.linalg.norm(half_step) == pytest.approx(0.5 * np.linalg.norm(whole_step), rel=0.02)
    assert none.max() < 2e-7


# ----------------------------------------------------------------------------------------------------------------- what has to stay


def test_momentum_is_kept_and_energy_is_what_joints_and_contact_give():
    part = held()
    records, aux = fly(part, 3.0, F_T_corrected=CONTACT, arm_mode=MODE["hand"], rate_frame=FRAME["target"],
                       operator_rate=[0.02, -0.01, 0.01, 0.002, 0.0, -0.003])  # fmt: skip
    scale = 2000.0 * np.abs(records["V_NC"][:, :3]).max()
    assert scale > 10.0 and np.abs(records["momentum"] - records["momentum"][0]).max() < 1e-11 * scale
    # power of the wrench on the craft: the opposite one on the active craft, at the origin of T
    V, p = records["V_TA"], records["X_TA"][:, :3]
    power = -(V[:, :3] - np.cross(V[:, 3:], p)) @ CONTACT[:3] - V[:, 3:] @ CONTACT[3:]
    given = records["joint_energy"].sum(axis=1) + np.concatenate([[0.0], np.cumsum(0.5e-3 * (power[1:] + power[:-1]))])
    gained = records["kinetic_energy"] - records["kinetic_energy"][0]
    assert np.ptp(given) > 0.5 and np.abs(gained - given).max() < 0.01 * np.ptp(given)
    assert aux[1:, AUX["latch_drift"]].max() < 1e-6


def test_latched_ports_take_the_place_of_the_grasp():
    """Joined, the ports hold and the arm's end no more; what was latched and released is free."""
    part = held()
    sample, aux = begin(part, np.zeros(6))
    sample["motion"] = MOTION["joined"]
    part.repeat(sample, 50, aux)
    sample["motion"], sample["F_T_corrected"] = MOTION["free"], [-50.0, 0, 0, 0, 0, 0]
    for _ in range(1000):
        part.step(sample, aux)
    # 50 N on 2 t and on some 6.5 t, for a second: nothing else holds them
    assert sample["V_TA"][0, 0] == pytest.approx(50.0 * (1 / 2000.0 + 1 / 6500.0), rel=0.2) and not aux[AUX["latch_wrench"]].any()


# --------------------------------------------------------------------------------------------------------------------- what is asked for


@pytest.mark.parametrize("frame", ["target", "interface", "camera", "end_effector"])
@pytest.mark.parametrize("asked", [[4e-3, -2e-3, 3e-3, 0, 0, 0], [0, 0, 0, 2e-3, -1e-3, 1.5e-3]], ids=["translation", "rotation"])
def test_the_arm_gives_the_twist_that_is_asked_for(frame, asked):
    """Of A against T, on the axes of T or A; of E on its own: what does not move with a rotation is the point that it is of."""
    craft = station(servo_stiffness=4e6, servo_damping=4e6)
    part = held(craft)
    records, _ = fly(part, 4.0, arm_mode=MODE["hand"], rate_frame=FRAME[frame], operator_rate=asked)
    X, V = records["X_TA"][-1], records["V_TA"][-1]
    R, w, p = np.eye(3), V[3:], np.zeros(3)
    if frame in ("interface", "camera"):
        R = Rotation.from_quat(X[3:]).as_matrix()
    elif frame == "end_effector":
        tree, (q, _) = part.trees[1], part.coordinates(1)
        R_0E, p_0E = (np.asarray(x) for x in tree.pose(q, "link5"))
        R_00, p_00 = (np.asarray(x) for x in tree.pose(q, "craft"))
        docking, grapple = craft.ports
        R_NT = R_00 @ docking.rotation
        R = R_NT.T @ R_0E @ grapple.rotation
        p = R_NT.T @ (p_0E + R_0E @ grapple.position - p_00 - R_00 @ docking.position) - X[:3]
    found = np.concatenate([R.T @ (V[:3] + np.cross(w, p)), R.T @ w])
    size = np.linalg.norm(asked)
    assert np.linalg.norm(found - asked) < 0.03 * size


def test_without_a_demand_the_servos_hold_and_limp_none_pulls():
    part = held()
    still, aux = fly(part, 1.0, arm_mode=MODE["hold"])
    assert np.abs(still["X_TA"][-1] - still["X_TA"][0]).max() < 1e-12
    pressed, aux = fly(part, 1.0, arm_mode=MODE["limp"], F_T_corrected=CONTACT)
    assert not aux[:, AUX["joint_torque"]].any() and np.linalg.norm(pressed["V_TA"][-1, :3]) > 1e-3
    # from where it is then, without a jump
    sample, last = pressed[-1:].copy(), aux[-1].copy()
    sample["arm_mode"], sample["F_T_corrected"] = MODE["hand"], 0.0
    part.step(sample, last)
    torque, rate = np.abs(last[AUX["joint_torque"]]).max(), np.abs(aux[-1, AUX["joint_rate"]]).max()
    assert 0.0 < torque < 1.1 * DAMPING * rate


def test_a_stretched_arm_says_that_it_is_near_a_singularity_and_no_joint_is_faster_than_its_drive():
    craft = station()
    part = held(replace(craft, joints=tuple(replace(s, angle=0.0, rate=0.01) for s in craft.joints)))
    records, aux = fly(part, 0.5, arm_mode=MODE["hand"], rate_frame=FRAME["target"], operator_rate=[0.5, 0, 0, 0, 0, 0])
    assert (records["dynamics_status"][1:] & BITS["dynamics_status"]["near_singular"]).all()
    bent, _ = fly(held(), 0.01, arm_mode=MODE["hand"], operator_rate=[0.01, 0, 0, 0, 0, 0])
    assert not (bent["dynamics_status"] & BITS["dynamics_status"]["near_singular"]).any()
    assert np.abs(aux[:, AUX["joint_rate"]]).max() < 0.0125


def test_which_joint_is_moved_singly_is_narrowed_to_the_arm():
    part = held()
    (single,) = (one for one in part.COMMANDS if one.name == "single_joint")
    assert single.numbers == tuple(range(6)) and not single.acts
    assert part.COMMANDS[: len(TwoCrafts.COMMANDS)] == TwoCrafts.COMMANDS == make(Vehicles(module(), vehicle_of(station()))).COMMANDS


@pytest.mark.parametrize(("craft", "words"), [
    (lambda: station(mode="locked"), "0 joints with a servo between port 'grapple' and the root"),
    (lambda: station(servo_stiffness=0.0, servo_damping=0.0), "0 joints with a servo"),
    (lambda: station(port="link1"), "moves the docking port too"),
    (lambda: arm(), "no port 'grapple'"),
])  # fmt: skip
def test_what_holds_nothing_is_refused(craft, words):
    with pytest.raises(ValueError, match=words):
        held(craft())


def test_a_step_of_second_order_is_refused():
    with pytest.raises(ValueError, match="grasp_port: a craft has a step of second order, limit first order"):
        held(replace(station(), step="second_order"))
    with pytest.raises(ValueError, match="grasp_port: 'grapple' of a target craft of one body"):
        make(Vehicles(vehicle_of(station()), module()), grasp_port="grapple")
