"""Joints of two craft in a run: their modes and changes, servo, friction, stops, wheels and thrusters; Pinocchio on what is mixed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.bus import commands
from rt_kernels.context import Vehicles
from rt_kernels.dynamics.two_bodies import TwoBodies
from rt_kernels.dynamics.two_crafts import TwoCrafts
from rt_kernels.layout import BITS, CODES, SAMPLE_DTYPE
from rt_kernels.model.craft import Craft, CraftPort, Interface, JointSettings, Link, Sensor, Thruster, Wheel
from rt_kernels.model.modes import ModalBody
from rt_kernels.multibody.flexible import FlexibleTree
from tests.dynamics.test_two_crafts import (
    ANGLES,
    AUX,
    AXES,
    MODE,
    MOTION,
    PERIOD,
    ROOT,
    TWIST,
    arm,
    begin,
    farthest,
    flexible,
    make,
    pair,
    run,
    station,
    vehicle_of,
)  # fmt: skip

pin = pytest.importorskip("pinocchio")


def settings(craft, **by_joint):
    """The craft with other settings of some joints."""
    return replace(craft, joints=tuple(replace(s, **by_joint.get(s.joint, {})) for s in craft.joints))


def fly(part, ticks, twist=TWIST, **fields):
    """Records and auxiliary channels of a flight from the closing of the loop; fields: constant, or functions of the tick."""
    sample, aux = begin(part, twist)
    out, auxes = [sample.copy()], [aux.copy()]
    for k in range(ticks):
        sample["time_ns"] = round((k + 1) * PERIOD * 1e9)
        for name, value in fields.items():
            sample[name] = value(k) if callable(value) else value
        auxes.append(part.step(sample, aux).copy())
        out.append(sample.copy())
    return np.concatenate(out), np.array(auxes)


def pulse(k):
    return max(0.0, np.sin(2 * np.pi * k / 200)) * np.array([80.0, -20.0, 15.0, 5.0, 8.0, -6.0])


def change(joint, mode, **more):
    return {"craft": "active", "joint": joint, "mode": mode} | more


def command(at, *arguments):
    """Fields of a sample that bring the command `joint` at one tick."""
    given = np.array([*arguments, *[0.0] * (8 - len(arguments))])
    return {"command_code": lambda k: CODES["command"]["joint"] if k == at else 0, "command_arg": lambda k: given if k == at else 0.0}


# ------------------------------------------------------------------------------------------------------------------- Pinocchio


def pinocchio_arm():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
    c = np.array([0.3, -0.1, 0.2])
    model.appendBodyToJoint(joint, pin.Inertia(6250.0, c, np.array([[5000.0, 200.0, -100.0], [200.0, 21000.0, 300.0],
                                                                    [-100.0, 300.0, 22000.0]])), pin.SE3.Identity())
    for k, axis in enumerate(AXES):
        place = pin.SE3(np.eye(3), np.array([2.0 if k == 0 else 1.2, 0.2, 0.1]))
        joint = model.addJoint(joint, pin.JointModelRevoluteUnaligned(np.array(axis)), place, f"link{k}")
        model.appendBodyToJoint(joint, pin.Inertia(300.0 - 50.0 * k, np.array([0.6, 0.05, 0.0]), np.diag([40.0, 120.0, 130.0])),
                                pin.SE3.Identity())
    model.gravity.setZero()
    return model


def test_mixed_joints_are_those_of_pinocchio():
    """A given, a sprung and a servo joint under contact: at a hundred ticks the accelerations of the free ones and the torque that the
    given one needs, from what a log holds of the ticks before and after."""
    stiffness, damping, gains = 4e3, 60.0, (8e3, 400.0)
    craft = settings(arm(stiffness=0.0, damping=0.0), link1={"stiffness": stiffness, "damping": damping},
                     link2={"mode": "driven", "servo_stiffness": gains[0], "servo_damping": gains[1]})
    part = make(pair(craft), joint_changes=[change("link0", "given", target=0.5, time_s=1.5)])
    records, aux = fly(part, 1210, F_T_corrected=pulse)
    model = pinocchio_arm()
    data = model.createData()
    h, worst = PERIOD, np.zeros(2)
    X_BA = pin.SE3(Rotation.from_euler("xyz", [5, -8, 3], degrees=True).as_matrix(), np.array([0.9, 0.1, -0.05]))
    for n in range(10, 1210, 12):
        before, after = records[n - 1], records[n]
        x, v = (aux[n - 1, AUX[name]][:3] for name in ("joint_position", "joint_rate"))
        accelerations = (aux[n, AUX["joint_rate"]][:3] - v) / h
        # root from the centre of mass and the joints
        q = np.concatenate([np.zeros(3), before["X_NC"][3:], x])
        q[:3] = before["X_NC"][:3] - pin.centerOfMass(model, data, q)
        R = Rotation.from_quat(q[3:7]).as_matrix()
        rates = np.concatenate([np.zeros(3), R.T @ before["V_NC"][3:], v])
        J = pin.jacobianCenterOfMass(model, data, q)
        rates[:3] = np.linalg.solve(J[:, :3], before["V_NC"][:3] - J[:, 3:] @ rates[3:])
        # contact: at T, from the pose of A in N and in T
        pin.forwardKinematics(model, data, q)
        X_NA = data.oMi[4] * X_BA
        X_TA = pin.SE3(Rotation.from_quat(before["X_TA"][3:]).as_matrix(), before["X_TA"][:3])
        F_B = (X_BA * X_TA.inverse()).act(pin.Force(-after["F_T_corrected"][:3], -after["F_T_corrected"][3:])).vector
        assert np.allclose((X_NA * X_TA.inverse()).rotation @ X_TA.rotation, X_NA.rotation)
        load = pin.computeJointJacobian(model, data, q, 4).T @ F_B
        M, bias = pin.crba(model, data, q), pin.nonLinearEffects(model, data, q, rates)
        M = np.triu(M) + np.triu(M, 1).T
        # springs and dampers of the implicit step: link1 its own, link2 those of the servo that holds its angle
        k, d = np.array([0.0, stiffness, gains[0]]), np.array([0.0, damping, gains[1]])
        tau = -k * (x - np.array(ANGLES)) - d * v
        implicit = h * h / 4.0 * k + h * d
        M[6:, 6:] += np.diag(implicit)
        free = [*range(6), 7, 8]
        right = load - bias + np.concatenate([np.zeros(6), tau]) - M[:, 6] * accelerations[0]
        a = np.linalg.solve(M[np.ix_(free, free)], right[free])
        wanted = M[6, free] @ a - right[6]
        # what spring, damper and servo gave over the step
        gave = (tau - implicit * np.array([0.0, *a[6:]]))[1:]
        worst = np.maximum(worst, [np.abs(a[6:] / accelerations[1:] - 1.0).max(),
                                   np.abs(aux[n, AUX["joint_torque"]][:3] / [wanted, *gave] - 1.0).max()])  # fmt: skip
    assert (worst <= 1e-9).all(), worst
    assert np.ptp(aux[:, AUX["joint_torque"]][:, 0]) > 10.0


# --------------------------------------------------------------------------------------------------------------- modes and changes


def test_given_joint_goes_its_way_and_stops_there():
    """Polynomial of fifth degree from rest to rest; no slower, no faster, whatever acts on it."""
    part = make(pair(arm()), joint_changes=[change("link1", "given", target=0.1, time_s=0.8, after_s=0.2)])
    _, aux = fly(part, 1500, F_T_corrected=pulse)
    x = aux[:, AUX["joint_position"]][:, 1]
    begins = np.flatnonzero(aux[:, AUX["joint_mode"]][:, 1] == MODE["given"])[0]
    assert begins == 200
    s = np.clip((np.arange(len(x)) - begins + 1) * PERIOD / 0.8, 0.0, 1.0)[begins:]
    start, rate = x[begins - 1], aux[begins - 1, AUX["joint_rate"]][1]
    expected = start + rate * 0.8 * (s - 6 * s**3 + 8 * s**4 - 3 * s**5) + (0.1 - start) * (10 * s**3 - 15 * s**4 + 6 * s**5)
    np.testing.assert_allclose(x[begins:], expected, atol=1e-13)
    assert abs(x[-1] - 0.1) < 1e-14
    assert aux[-1, AUX["joint_rate"]][1] == 0.0


def test_locked_joint_stands_and_needs_a_torque():
    changes = [change("link0", "locked", after_s=0.3), change("link0", "free", after_s=0.6)]
    part = make(pair(arm(stiffness=50.0, damping=0.0)), joint_changes=changes)
    records, aux = fly(part, 900, F_T_corrected=pulse)
    x, rate, torque = (aux[:, AUX[f"joint_{what}"]][:, 0] for what in ("position", "rate", "torque"))
    assert np.ptp(x[300:599]) == 0.0
    assert not rate[300:599].any()
    assert np.ptp(x[600:]) > 1e-4
    # the impulse of the lock is in its first tick
    assert abs(torque[300]) > 20 * np.abs(torque[301:599]).max()
    for half in (slice(0, 3), slice(3, 6)):
        assert np.abs(np.ptp(records["momentum"][:, half], axis=0)).max() <= 1e-12 * np.linalg.norm(records["momentum"][0][half])


def test_changes_wait_for_their_event():
    changes = [change("link0", "locked", event="first_contact", after_s=0.05), change("link1", "locked", event="capture")]
    part = make(pair(arm()), joint_changes=changes)
    _, aux = fly(part, 300, first_contact_time=lambda k: -1.0 if k < 99 else 0.1, capture_time=lambda k: -1.0 if k < 199 else 0.2)
    modes = aux[:, AUX["joint_mode"]]
    assert np.flatnonzero(modes[:, 0] == MODE["locked"])[0] == 150
    assert np.flatnonzero(modes[:, 1] == MODE["locked"])[0] == 200


def test_the_operator_changes_a_mode():
    part = make(pair(arm(), arm()))
    code, arguments = commands.encode("joint", {"craft": "target", "joint": 2, "mode": "given", "target": 0.7, "time_s": 0.3})
    assert code == CODES["command"]["joint"]
    assert commands.why_not(commands.taken_by([part]), "joint", arguments) == ""
    _, aux = fly(part, 600, **command(100, *arguments))
    assert part.joints[5] == "target link2"
    assert np.flatnonzero(aux[:, AUX["joint_mode"]][:, 5] == MODE["given"])[0] == 101
    assert (aux[:, AUX["joint_mode"]][:, :5] == MODE["free"]).all()
    assert aux[-1, AUX["joint_position"]][5] == pytest.approx(0.7, abs=1e-12)


@pytest.mark.parametrize("arguments", [(0, 99, 0), (0, -1, 0), (0, 0, 9), (0, 0, 2, np.nan, 1.0), (0, np.nan, 0), (1, 0, 0)])
def test_a_command_that_makes_no_sense_changes_nothing(arguments):
    """From a log or a script: the desk refuses what is out of range."""
    _, expected = fly(make(pair(arm())), 50)
    _, found = fly(make(pair(arm())), 50, **command(10, *arguments))
    assert np.array_equal(found, expected)


def test_servo_follows_and_is_limited():
    """A path of 0.5 s within the servo's strength is followed; one beyond it takes longer, with the torque at the limit."""
    servo = {"mode": "driven", "stiffness": 0.0, "damping": 0.0, "servo_stiffness": 2e6, "servo_damping": 1e5}
    for effort, far in ((1e5, False), (300.0, True)):
        craft = settings(arm(), link0=servo | {"effort": effort})
        _, aux = fly(make(pair(craft), joint_changes=[change("link0", "driven", target=0.6, time_s=0.5)]), 520)
        assert (abs(aux[-1, AUX["joint_position"]][0] - 0.6) > 0.05) == far
        assert np.abs(aux[:, AUX["joint_torque"]][:, 0]).max() <= effort * 1.001
    craft = settings(arm(), link0=servo | {"rate": 0.2})
    _, aux = fly(make(pair(craft), joint_changes=[change("link0", "driven", target=0.6, time_s=0.5)]), 3500)
    assert np.abs(aux[:, AUX["joint_rate"]][:, 0]).max() == pytest.approx(0.2, rel=2e-2)
    assert aux[-1, AUX["joint_position"]][0] == pytest.approx(0.6, abs=1e-4)


def test_torque_of_a_driven_joint_without_gains():
    """What the drive gives; the torque needs no path. Against the dense equation of the whole craft, from rest."""
    craft = settings(arm(stiffness=0.0, damping=0.0), link2={"mode": "driven", "effort": 50.0})
    part = make(pair(craft))
    tree = FlexibleTree(craft.links)
    sample, aux = begin(part, np.zeros(6))
    q, _ = part.coordinates(0)
    tau = np.zeros(tree.nv)
    for torque, acts in ((20.0, 20.0), (-80.0, -50.0)):
        twin = make(pair(craft))
        sample, aux = begin(twin, np.zeros(6))
        sample["command_code"], sample["command_arg"][0, :5] = CODES["command"]["joint"], [0, 2, MODE["driven"], torque, 0.0]
        twin.step(sample, aux)
        tau[8] = acts
        expected = np.linalg.solve(tree.mass_matrix(q), tau)
        np.testing.assert_allclose(aux[AUX["joint_rate"]][:3] / PERIOD, expected[6:], rtol=1e-9)
        assert aux[AUX["joint_torque"]][2] == acts


def test_friction_brings_a_joint_to_rest_at_the_closed_form():
    """One joint of two bodies: relative rate falls by F_c / I_r a second, then rests; the mode `free` without spring."""
    axis = (0.0, 0.0, 1.0)
    wheel = ModalBody.rigid(50.0, (0.0, 0.0, 0.0), (4.0, 4.0, 6.0))
    root = ModalBody.rigid(1000.0, (0.0, 0.0, 0.0), (300.0, 300.0, 400.0))
    links = (Link("craft", root, joint="free"), Link("disc", wheel, "craft", None, "revolute", axis))
    craft = Craft("disc", links, (CraftPort("docking", "craft"),), (JointSettings("disc", mode="driven", friction=0.3, stiffness=0.0),))
    part = make(pair(craft))
    sample, aux = begin(part, np.zeros(6))
    rates = []
    for k in range(9000):
        sample["command_code"] = CODES["command"]["joint"] if k in (0, 1000) else 0
        sample["command_arg"][0, :5] = [0, 0, MODE["driven"], 0.0 if k else 2.0, 0.0]
        part.step(sample, aux)
        rates.append(aux[AUX["joint_rate"]][0])
    inertia = 1.0 / (1.0 / 6.0 + 1.0 / 400.0)
    rates = np.array(rates)
    assert rates[999] == pytest.approx((2.0 - 0.3) / inertia, rel=2e-3)
    falls = (rates[3000] - rates[2000]) / 1.0
    assert falls == pytest.approx(-0.3 / inertia, rel=1e-3)
    assert 0.0 <= rates[-1] < 1e-6


def test_a_stop_turns_a_joint_back():
    locked = {"mode": "locked"}
    craft = settings(arm(stiffness=0.0, damping=0.0), link0={"lower": 0.25, "upper": 0.35}, link1=locked, link2=locked)
    part = make(pair(craft))
    _, aux = fly(part, 8000, F_T_corrected=lambda k: 100.0 * pulse(k) if k < 100 else 0.0)
    x, rate = aux[:, AUX["joint_position"]][:, 0], aux[:, AUX["joint_rate"]][:, 0]
    assert x.max() - 0.35 > 1e-6 or 0.25 - x.min() > 1e-6
    assert 0.25 - 5e-3 < x.min() and x.max() < 0.35 + 5e-3
    assert (np.sign(rate[:-1]) != np.sign(rate[1:])).sum() >= 2
    assert abs(rate[-1]) < 0.9 * np.abs(rate).max()


def stopped(upper, **link0):
    """An arm whose first joint has stops at -1 and `upper`, the others locked; no springs."""
    locked = {"mode": "locked"}
    return settings(arm(stiffness=0.0, damping=0.0), link0={"lower": -1.0, "upper": upper} | link0, link1=locked, link2=locked)


def test_given_motion_ends_at_the_stop_and_its_release_gives_no_energy():
    """A target beyond the stop, as an older log has it: the path ends at the stop, and what is released there stays at rest."""
    part = make(pair(stopped(0.5)))
    given, free = np.zeros(8), np.zeros(8)
    given[:5], free[:3] = [0, 0, MODE["given"], 2.0, 0.5], [0, 0, MODE["free"]]
    fields = {"command_code": lambda k: CODES["command"]["joint"] if k in (10, 700) else 0,
              "command_arg": lambda k: given if k < 600 else free}  # fmt: skip
    records, aux = fly(part, 1500, np.zeros(6), **fields)
    x = aux[:, AUX["joint_position"]][:, 0]
    assert x[690] == pytest.approx(0.5, abs=1e-12) and x.max() <= 0.5 + 1e-12
    assert records["kinetic_energy"][690:].max() < 1e-12
    assert aux[-1, AUX["joint_mode"]][0] == MODE["free"]


@pytest.mark.parametrize(("at", "goes"), [(700, "out"), (1150, "rests"), (1350, "comes back")])
def test_a_stop_that_a_branch_moves_gives_no_energy(at, goes):
    """The joint stands past the stop of the branch and is released there: what moves has no more energy than before, whichever way."""
    there = change("link0", "given", target=1.3, time_s=1.0)
    first = make(pair(stopped(1.5)), joint_changes=[there, change("link0", "given", after_s=1.2, target=0.3, time_s=1.0)])
    records, before = fly(first, at, np.zeros(6))
    part, sample = make(pair(stopped(1.0))), records[-1:].copy()
    part.keep_rates(first.snapshot())
    sample["command_code"], sample["command_arg"][0, :3] = CODES["command"]["joint"], [0, 0, MODE["free"]]
    energy, aux = [], []
    for _ in range(1000):
        aux.append(part.step(sample).copy())
        energy.append(sample["kinetic_energy"][0])
        sample["command_code"] = 0
    x, rate = (np.array(aux)[:, AUX[f"joint_{what}"]][:, 0] for what in ("position", "rate"))
    began = before[-1, AUX["joint_rate"]][0]
    assert x[0] > 1.1 and np.sign(round(began, 9)) == {"out": 1, "rests": 0, "comes back": -1}[goes]
    assert max(energy) <= records["kinetic_energy"][-1] * (1.0 + 1e-9) + 1e-15
    assert sample["joint_energy"][0, 0] <= records["joint_energy"][-1, 0] + 1e-9
    if goes == "out":
        assert rate.min() < 0.0 and x.max() - x[0] < began / (2 * np.pi * 20.0)
    if goes == "rests":
        assert abs(x[-1] - x[0]) < 1e-9


def test_a_stop_gives_back_less_than_it_takes():
    """A joint that runs into its stop: kinetic energy never rises above that before."""
    part = make(pair(stopped(0.302, mode="driven")))
    records, aux = fly(part, 1500, np.zeros(6), **command(0, 0, 0, MODE["driven"], 30.0) | {
        "command_code": lambda k: CODES["command"]["joint"] if k in (0, 300) else 0,
        "command_arg": lambda k: np.array([0, 0, MODE["driven"] if k < 300 else MODE["free"], 30.0 if k < 300 else 0.0, 0, 0, 0, 0])})
    x, energy = aux[:, AUX["joint_position"]][:, 0], records["kinetic_energy"]
    assert x[302] < 0.302 < x.max() and x[-1] < x.max()
    assert energy[302:].max() <= energy[302] * (1.0 + 1e-9) and energy[-1] < 0.5 * energy[302]


def test_a_given_joint_needs_no_more_than_its_effort():
    """Pushed harder than its drive can hold, it yields with the effort, and reaches its target behind it; no faster than its rate."""
    part = make(pair(stopped(2.0, effort=40.0, rate=0.4)), joint_changes=[change("link0", "given", target=0.35, time_s=0.1)])
    push = np.array([300.0, 100.0, 80.0, 0.0, 0.0, 0.0])
    _, aux = fly(part, 8000, np.zeros(6), F_T_corrected=lambda k: push if 200 <= k < 260 else 0.0)
    x, rate, torque = (aux[:, AUX[f"joint_{what}"]][:, 0] for what in ("position", "rate", "torque"))
    free = make(pair(stopped(2.0)), joint_changes=[change("link0", "given", target=0.35, time_s=0.1)])
    _, strong = fly(free, 400, np.zeros(6), F_T_corrected=lambda k: push if 200 <= k < 260 else 0.0)
    assert np.abs(strong[:, AUX["joint_torque"]][:, 0]).max() > 400.0
    assert np.abs(torque).max() <= 40.0 * (1 + 1e-12)
    assert (np.abs(torque) == 40.0).any()
    assert np.abs(rate[:200]).max() <= 0.4 * 1.001
    assert x[-1] == pytest.approx(0.35, abs=1e-6) and abs(rate[-1]) < 1e-6


def test_energy_of_the_joints_is_their_work_and_has_a_limit():
    """A torque from rest: what moves has the work of the joint; beyond the limit the state says so."""
    craft = settings(arm(stiffness=0.0, damping=0.0), link0={"mode": "driven"}, link1={"mode": "locked"}, link2={"mode": "locked"})
    part = make(pair(craft), joint_energy_max_j=0.2)
    records, aux = fly(part, 600, np.zeros(6), **command(0, 0, 0, MODE["driven"], 60.0))
    work = records["joint_energy"][:, 0]
    np.testing.assert_allclose(work, records["kinetic_energy"], rtol=1e-3, atol=1e-9)
    assert work[-1] > 0.3 and not records["joint_energy"][:, 1].any()
    beyond = (records["dynamics_status"] & BITS["dynamics_status"]["joint_energy"]) != 0
    assert np.array_equal(beyond, work > 0.2)
    # the wheels' own work is not counted
    spun, _ = fly(make(pair(equipped())), 500, np.zeros(6), wheel_torque_A=np.array([0.4, *[0.0] * 15]))
    assert spun["wheel_rate_A"][-1, 0] > 0.1 and not spun["joint_energy"].any()


# --------------------------------------------------------------------------------------------------- thrusters, wheels, sensors


def equipped(wheel_mode="free"):
    axis = np.array([0.0, 0.6, 0.8])
    disc = ModalBody.rigid(10.0, (0.0, 0.0, 0.0), 0.2 * np.eye(3) + 0.15 * np.outer(axis, axis))
    links = (Link("craft", ROOT, joint="free"), Link("disc", disc, "craft", None, "continuous", axis, (0.5, 0.1, 0.0)))
    thrusters = (Thruster("aft", "craft", np.array([-3.0, 0.4, 0.1]), np.array([1.0, 0.0, 0.0]), 200.0),
                 Thruster("side", "craft", np.array([2.0, 1.0, 0.1]), np.array([0.0, -0.6, 0.8]), 20.0))
    return Craft("equipped", links, (CraftPort("docking", "craft", np.array([3.6, 0.2, -0.1])),), (JointSettings("disc", mode=wheel_mode),),
                 thrusters, (Wheel("z", "disc", 0.5, 100.0),), (Sensor("imu", "acceleration", "craft", np.array([1.0, 0.5, 0.2])),),
                 (Interface("wheel", "disc"),))


def resultant(craft):
    """(6, thrusters) wrenches of unit thrusts about the centre of mass of a craft whose root has the axes of C."""
    total = sum(link.body.mass for link in craft.links)
    centre = sum(link.body.first_moment + link.body.mass * np.asarray(link.position) for link in craft.links) / total
    return np.column_stack([np.concatenate([t.direction, np.cross(t.position - centre, t.direction)]) for t in craft.thrusters])


def test_thrusters_of_a_rigid_craft_are_their_resultant():
    craft = equipped("locked")
    vehicles = pair(craft)
    thrust = np.array([200.0, 20.0])
    given = np.zeros(64)
    given[:2] = thrust
    wrench = resultant(craft) @ thrust + np.array([0, 0, 0, 3.0, -2.0, 1.0])
    expected, _ = fly(make(vehicles, TwoBodies), 300, control_A=wrench)
    found, _ = fly(make(vehicles), 300, control_A=wrench, thruster_A=given)
    assert farthest(found, expected) < 1e-11


def test_a_wheel_turns_the_craft_back():
    """Torque of the motor along the wheel's axis: equal and opposite momentum, none in the sum; the rate of the wheel is the field's."""
    part = make(pair(equipped()))
    torque = np.array([0.4, *[0.0] * 15])
    axis = np.array([0.0, 0.6, 0.8])
    records, aux = fly(part, 2000, np.zeros(6), wheel_torque_A=torque, control_A=np.concatenate([np.zeros(3), -0.4 * axis]))
    for half in (slice(0, 3), slice(3, 6)):
        assert np.abs(np.ptp(records["momentum"][:, half], axis=0)).max() <= 1e-12
    assert records["wheel_rate_A"][-1, 0] == aux[-1, AUX["joint_rate"]][0]
    assert records["wheel_rate_A"][-1, 0] == pytest.approx(0.4 * 2.0 / 0.35, rel=1e-3)
    rate = np.linalg.solve(np.array(vehicle_of(equipped()).inertia_kg_m2), -0.8 * axis)
    expected = Rotation.from_quat(records["X_NC"][-1, 3:]).apply(rate)
    np.testing.assert_allclose(records["V_NC"][-1, 3:], expected, atol=1e-3 * np.linalg.norm(expected))
    # the angle of the joint is the whole turn, not the rest of it
    assert aux[-1, AUX["joint_position"]][0] == pytest.approx(0.4 * 2.0**2 / 2 / 0.35, rel=2e-3)


def test_sensor_and_interface_feel_what_the_motion_says():
    """Acceleration of the point from the differences of its place; load of the wheel's bearing from its mass times acceleration."""
    part = make(pair(equipped()))
    thrust = np.zeros(64)
    thrust[:2] = [200.0, 20.0]
    wrench = resultant(equipped()) @ thrust[:2]
    point, disc, R = [], [], None
    sample, aux = begin(part)
    for _ in range(60):
        sample["thruster_A"], sample["control_A"] = thrust, wrench
        part.step(sample, aux)
        q, _ = part.coordinates(0)
        R = Rotation.from_quat(q[3:7]).as_matrix()
        point.append((q[:3] + R @ [1.0, 0.5, 0.2], R, aux.copy()))
        disc.append(q[:3] + R @ [0.5, 0.1, 0.0])
    for k in range(10, 50):
        a = (point[k][0] - 2 * point[k - 1][0] + point[k - 2][0]) / PERIOD**2
        found = point[k - 2][1] @ point[k][2][AUX["sensor_acceleration"]][:3]
        np.testing.assert_allclose(found, a, atol=2e-3 * np.linalg.norm(a))
        a = (disc[k] - 2 * disc[k - 1] + disc[k - 2]) / PERIOD**2
        F = point[k][2][AUX["interface_wrench"]][:3]
        assert np.linalg.norm(F) == pytest.approx(10.0 * np.linalg.norm(a), rel=2e-3)
    rate = point[-1][2][AUX["sensor_rate"]][:3]
    np.testing.assert_allclose(point[-2][1] @ rate, sample["V_NC"][0][3:], atol=1e-4)


# ------------------------------------------------------------------------------------------------------------- blocks and errors


def test_snapshot_and_block_run_to_the_same_bits():
    vehicles = pair(arm(), flexible())
    part = make(vehicles, joint_changes=[change("link0", "given", target=0.5, time_s=0.2)])
    block = part.dump()
    fly(part, 100)
    kept = part.snapshot()
    first = run(part, 100)[0]
    part.restore(kept)
    assert run(part, 100)[0].tobytes() == first.tobytes()
    twin = make(vehicles, joint_changes=[change("link0", "given", target=0.5, time_s=0.2)])
    twin.load(block)
    fly(part, 10), fly(twin, 10)
    assert twin.snapshot() == part.snapshot()
    with pytest.raises(ValueError, match=r"block has \d+ bytes, this part has \d+"):
        make(pair(arm())).load(block)
    with pytest.raises(ValueError, match="mode"):
        make(pair(arm(mode="locked"), flexible())).load(make(pair(arm(), flexible())).dump())


def test_a_branch_with_other_masses_keeps_poses_and_rates_to_the_bit():
    """Of root, joints and modes; the momenta are those of the new craft, and the rates that the next step takes from them are the same to
    rounding: a rate times a mass, divided by it, is that rate or the number beside it."""
    part = make(pair(arm(), flexible()))
    records, _ = fly(part, 150, F_T_corrected=pulse)
    hull = ModalBody.rigid(9000.0, (0.3, -0.1, 0.2), (6000.0, 21000.0, 22000.0))
    heavy = replace(arm(), links=(replace(arm().links[0], body=hull), *arm().links[1:]))
    other = make(pair(heavy, flexible(modes=4)))
    other.keep_rates(part.snapshot())
    for k in range(2):
        for now, then in zip(other.coordinates(k), part.coordinates(k), strict=True):
            assert now.tobytes() == then.tobytes()
    sample, same = records[-1:].copy(), records[-1:].copy()
    sample["motion"] = same["motion"] = MOTION["freeze"]  # the state as it is, without a step
    other.step(sample), part.step(same)
    for name in ("V_NC", "V_NV"):
        size = np.abs(same[name]).max()
        assert np.abs(sample[name][:, 3:] - same[name][:, 3:]).max() <= 4 * np.finfo(float).eps * size
    assert abs(sample["momentum"][0, 0] / same["momentum"][0, 0] - 1.0) > 0.05


@pytest.mark.parametrize(
    ("vehicles", "keys", "words"),
    [
        (pair(arm()), {"active_port": "nose"}, "no port 'nose'; there are docking"),
        (pair(arm()), {"joint_changes": [change("x", "free")]}, r"joint_changes\[0\]: no joint 'x' of the active craft; there are link0"),
        (pair(arm()), {"joint_changes": [change("link0", "loose")]}, r"joint_changes\[0\].*mode.*loose"),
        (pair(arm()), {"joint_changes": [change("link0", "locked")] * 33}, "joint_changes: 33, limit 32"),
        (pair(arm(lower=-3.0, upper=3.0)), {"joint_changes": [change("link0", "given", target=50.0)]},
         r"joint_changes\[0\].target: 50 rad of joint 'link0', limit -3 ... 3 rad \(its stops\)"),
        (pair(arm(effort=8.0)), {"joint_changes": [change("link0", "driven", target=-50.0)]},
         r"joint_changes\[0\].target: -50 N.m of joint 'link0', limit -8 ... 8 N.m \(its effort\)"),
        (pair(flexible()), {"modal_start": [{"craft": "active", "body": "boom", "coordinates": [0.1]}]}, "1 numbers, limit 4"),
        (Vehicles(replace(vehicle_of(arm()), mass_kg=7000.5), station()), {}, "mass_kg of the vehicle is 7000.5 kg, its bodies have 7000 "),
        (pair(replace(arm(), joints=())), {}, "joint 'link0' has no settings"),
        (Vehicles(replace(station(), craft=replace(arm(), links=(arm().links[0], replace(arm().links[1], joint="free"), *arm().links[2:]),
                                             joints=arm().joints[1:])), station()), {},
         "bodies link0 hang on a free joint"),
    ],
)
def test_wrong_craft_are_named(vehicles, keys, words):
    with pytest.raises(ValueError, match=words):
        make(vehicles, **keys)


def test_names_of_the_channels_are_in_the_notes():
    part = make(pair(equipped(), arm()))
    assert part.notes == ("joints active disc, target link0, target link1, target link2", "sensors active imu", "interfaces active wheel")
    assert isinstance(part, TwoCrafts)
    assert SAMPLE_DTYPE["wheel_rate_A"].shape == (16,)
    assert MOTION["joined"] == 4
