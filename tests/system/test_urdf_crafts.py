"""Arms of URDF on a bus in a docking: captured, and moved as Pinocchio recomputes it from the log and the URDF file.

The reference has of the run what its log says: wrench between the ports, wrench of the craft's own control, pose and twist when the loop
closes, joints' places there. Bodies, joints, dampers and drives of the arm are Pinocchio's own reading of the URDF file; bus, tool, springs
and servos are those of the craft file that the log carries. It integrates by Runge-Kutta of fourth order, the contact linear between ticks.
The crafts take steps of second order at 2 kHz: those of first order have the centre of mass 9 um and loads 0.3 % off.
"""

import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.cli import main
from hil_server.config import load_test
from hil_server.log.reader import read_log
from hil_server.run.session import Options, simulate
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK, STOPPING, fault_names, phases

pin = pytest.importorskip("pinocchio")
pytest.importorskip("yourdfpy")
FILES = Path(__file__).parents[1] / "data" / "urdf"

BUS = """extends = "arm.toml"
name = "arm on a bus"
thrust_n = 20.0
control_body = "bus"
step = "second_order"

[[body]]
name = "bus"
joint = "free"
[body.rigid]
mass_kg = 420.0
centre_of_mass_m = [0.05, -0.02, 0.03]
inertia_kg_m2 = [[90.0, 2.0, -1.0], [2.0, 110.0, 3.0], [-1.0, 3.0, 105.0]]

[[body]]
name = "{root}"
parent = "bus"
position_m = {place}
rotation_xyzw = {rotation}

[[interface]]
name = "mount"
body = "{root}"

[[interface]]
name = "elbow"
body = "{elbow}"
"""
TOOL = """
[[body]]
name = "unit"
parent = "flange"
joint = "fixed"
rigid = { mass_kg = 20.0, centre_of_mass_m = [0.02, 0.0, 0.01], inertia_kg_m2 = [0.4, 0.45, 0.5] }

[[port]]
name = "docking"
body = "unit"
position_m = [0.05, 0.0, 0.0]
"""
ON_BUS = """
[[port]]
name = "docking"
body = "bus"
position_m = [0.9, 0.05, 0.0]
"""
SERVO = """
[[joint]]
name = "{name}"
mode = "driven"
angle_deg = {angle}
servo_stiffness_n_m_per_rad = {stiffness}
servo_damping_n_m_s_per_rad = {damping}
armature_kg_m2 = {armature}
"""
SPRING = """
[[joint]]
name = "{name}"
angle_deg = {angle}
stiffness_n_m_per_rad = {stiffness}
"""
FINGER = """
[[joint]]
name = "finger_joint_1"
mode = "locked"
"""


def six_joints():
    """The docking unit on the flange, the joints held by servos; the drive of the second wrist joint comes to its limit."""
    text = BUS.format(root="base_link", elbow="forearm", place=[0.5, -0.12, -0.16],
                      rotation=Rotation.from_euler("y", 2, degrees=True).as_quat().tolist())  # fmt: skip
    names = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
    for k, (name, angle) in enumerate(zip(names, (-2.0, -50.0, 90.0, 140.0, -90.0, 20.0), strict=True)):
        stiffness, damping, armature = (1500.0, 150.0, 2.0) if k < 3 else (500.0, 30.0, 0.5)
        text += SERVO.format(name=name, angle=angle, stiffness=stiffness, damping=damping, armature=armature)
    return text + TOOL


def seven_joints():
    """The docking unit on the bus, the arm on springs; the gripper shut: its second finger follows the first."""
    text = BUS.format(root="link0", elbow="link4", place=[0.5, 0.0, 0.1],
                      rotation=Rotation.from_euler("z", 30, degrees=True).as_quat().tolist())  # fmt: skip
    for k, angle in enumerate((20.0, -30.0, 10.0, -120.0, 15.0, 100.0, 40.0)):
        text += SPRING.format(name=f"joint{k + 1}", angle=angle, stiffness=(80.0, 80.0, 40.0, 40.0, 12.0, 8.0, 4.0)[k])
    return text + FINGER + ON_BUS


# name -> (craft file, joint that carries the body of the second interface)
ARMS = {"six_joint_arm": (six_joints, "elbow"), "seven_joint_arm": (seven_joints, "joint4")}


def fly(folder, arm):
    """The log of a docking with the arm on the bus as active craft, every tick."""
    shutil.copy(FILES / f"{arm}.urdf", folder / "arm.urdf")
    assert main(["craft", str(folder / "arm.urdf"), "--held", "--toml", str(folder / "arm.toml")]) == 0
    (folder / "craft.toml").write_text(ARMS[arm][0]())
    config = load_test(None, [*QUICK, "test.stand=stands/ideal_stand.toml", f'test.active_vehicle="{folder / "craft.toml"}"',
                              "test.rate_hz=2000", "compensation.part=none", "guidance.after_capture_s=0.5"])  # fmt: skip
    return read_log(simulate(config, Options(out=str(folder / "run"), quiet=True, report=False))["log"])


def kept(log, name):
    """Tables of a file of the run, as the log has its text."""
    return tomllib.loads(next(text for file, text in log.header.configuration.items() if file.endswith(name)))


class Reference:
    """The craft as a model of Pinocchio: a bus that flies free, and the arm of the URDF file on it."""

    def __init__(self, urdf, overlay, carrier):
        bodies = {table["name"]: table for table in overlay["body"]}
        settings = {table["name"]: table for table in overlay["joint"]}
        arm = pin.buildModelFromUrdf(str(urdf))
        held = [k for k in range(1, arm.njoints) if "finger" in arm.names[k]]
        arm = pin.buildReducedModel(arm, held, pin.neutral(arm))
        bus = pin.Model()
        self.bus = self._inertia(bodies["bus"])
        bus.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "bus")
        bus.appendBodyToJoint(1, self.bus, pin.SE3.Identity())
        frame = bus.addFrame(pin.Frame("bus", 1, 0, pin.SE3.Identity(), pin.FrameType.BODY))
        mount = next(table for table in overlay["body"] if table.get("parent") == "bus")
        self.mount = pin.SE3(Rotation.from_quat(mount["rotation_xyzw"]).as_matrix(), np.array(mount["position_m"]))
        self.model = pin.appendModel(bus, arm, frame, self.mount)
        self.model.gravity.setZero()
        self.port = 1
        if "unit" in bodies:
            flange = self.model.frames[self.model.getFrameId("flange")]
            self.port = flange.parentJoint
            self.model.appendBodyToJoint(self.port, self._inertia(bodies["unit"]), flange.placement)

        def of(key):
            return np.array([settings[name].get(key, 0.0) for name in self.model.names[2:]])

        self.rest = np.radians(of("angle_deg"))
        self.spring, self.servo, self.servo_damper = (of(f"{key}_per_rad") for key in ("stiffness_n_m", "servo_stiffness_n_m",
                                                                                       "servo_damping_n_m_s"))  # fmt: skip
        self.model.armature = np.concatenate([np.zeros(6), of("armature_kg_m2")])
        self.data, self.carrier = self.model.createData(), self.model.getJointId(carrier)

    @staticmethod
    def _inertia(body):
        rigid, tensor = body["rigid"], np.array(body["rigid"]["inertia_kg_m2"])
        return pin.Inertia(rigid["mass_kg"], np.array(rigid["centre_of_mass_m"]), tensor if tensor.ndim == 2 else np.diag(tensor))

    def loads(self, q, contact, control):
        """Wrenches on the joints' bodies: the contact about the origin of N, the control at and in the centre of mass."""
        centre = pin.centerOfMass(self.model, self.data, q)
        f = [pin.Force.Zero() for _ in range(self.model.njoints)]
        f[1] = pin.Force(control[:3], control[3:] + np.cross(self.data.oMi[1].actInv(centre), control[:3]))
        f[self.port] += self.data.oMi[self.port].actInv(pin.Force(contact[:3], contact[3:]))
        return f

    def torques(self, q, v):
        x, rate, effort = q[7:] - self.rest, v[6:], self.model.effortLimit[6:]
        own = -self.spring * x - self.model.damping[6:] * rate
        return np.concatenate([np.zeros(6), own + np.clip(-self.servo * x - self.servo_damper * rate, -effort, effort)])

    def acceleration(self, q, v, contact, control):
        return pin.aba(self.model, self.data, q, v, self.torques(q, v), self.loads(q, contact, control))

    def step(self, q, v, h, contacts, control):
        """One period; contact wrench between its values at both ends."""
        first, last = contacts
        rates, accelerations = [v], [self.acceleration(q, v, first, control)]
        for share, contact in ((0.5, 0.5 * (first + last)), (0.5, 0.5 * (first + last)), (1.0, last)):
            moved = pin.integrate(self.model, q, share * h * rates[-1])
            rates.append(v + share * h * accelerations[-1])
            accelerations.append(self.acceleration(moved, rates[-1], contact, control))
        weights = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0
        return pin.integrate(self.model, q, h * (weights @ rates)), v + h * (weights @ accelerations)

    def interfaces(self, q, v, contact, control):
        """(12,) wrenches through mount and elbow on the outer body, its axes: what the bus's own motion leaves of the loads on it, and of
        the inverse dynamics."""
        a, f = self.acceleration(q, v, contact, control), self.loads(q, contact, control)
        pin.rnea(self.model, self.data, q, v, a, f)
        A, V = self.data.a[1], self.data.v[1]
        through = f[1] - (self.bus * A + V.cross(self.bus * V))
        return np.concatenate([self.mount.actInv(through).vector, self.data.f[self.carrier].vector])


def recomputed(log, urdf, carrier):
    """(records, centre of mass (n, 3), joints (n, joints), interfaces (n, 12)) from the closing of the loop on, from the log."""
    r = log.records
    closed = int(np.flatnonzero(r["motion"] == CODES["motion"]["close_loop"])[-1])
    free = closed + 1 + np.arange(np.count_nonzero(r["motion"][closed + 1 :] == CODES["motion"]["free"]))
    assert (r["motion"][free] == CODES["motion"]["free"]).all() and (r["periods"][free] == 1).all()
    reference = Reference(urdf, kept(log, "craft.toml"), carrier)
    model, data = reference.model, reference.data
    # where the port of the rigid target is in N, and the wrench on the craft about the origin of N at the beginning of a tick
    target = Rotation.from_quat(r["X_NV"][:, 3:])
    place = r["X_NV"][:, :3] + target.apply(kept(log, "station_module.toml")["port_position_m"])
    following = np.minimum(np.arange(len(r)) + 1, len(r) - 1)
    force, moment = (-target.apply(r["F_T_corrected"][following][:, half]) for half in (slice(0, 3), slice(3, 6)))
    contact = np.hstack([force, moment + np.cross(place, force)])
    # the state when the loop closes: joints at rest
    q, v = pin.neutral(model), np.zeros(model.nv)
    q[3:7], q[7:] = r["X_NC"][closed, 3:], log.aux("joint_position")[closed, : model.nv - 6]
    q[:3] = r["X_NC"][closed, :3] - pin.centerOfMass(model, data, q)
    w, R = r["V_NC"][closed, 3:], Rotation.from_quat(q[3:7]).inv()
    v[:3], v[3:6] = R.apply(r["V_NC"][closed, :3] - np.cross(w, r["X_NC"][closed, :3] - q[:3])), R.apply(w)
    centres, joints, interfaces = [], [], []
    for k in free:
        interfaces.append(reference.interfaces(q, v, contact[k - 1], r["control_A"][k]))
        q, v = reference.step(q, v, 1e-9 * log.header.period_ns, contact[k - 1 : k + 1], r["control_A"][k])
        centres.append(pin.centerOfMass(model, data, q).copy())
        joints.append(q[7:].copy())
    return free, np.array(centres), np.array(joints), np.array(interfaces)


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_of_urdf_docks_and_moves_as_pinocchio_says(tmp_path, arm):
    log = fly(tmp_path, arm)
    r = log.records
    assert r["capture_time"][-1] > r["first_contact_time"][-1] > 0.0 and phases(r)[-1] == "ended"
    assert not fault_names(np.bitwise_or.reduce(r["faults"])) & STOPPING
    free, centres, joints, interfaces = recomputed(log, tmp_path / "arm.urdf", ARMS[arm][1])
    found = log.aux("joint_position")[free, : joints.shape[1]]
    loads = log.aux("interface_wrench")[free, :12]
    assert np.ptp(centres[:, 0]) > 0.05
    assert np.linalg.norm(centres - r["X_NC"][free, :3], axis=1).max() < 1e-6
    assert np.abs(joints - joints[0]).max() > 0.025
    assert np.abs(joints - found).max() < 5e-4
    for part in (slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)):
        peak = np.linalg.norm(interfaces[:, part], axis=1).max()
        assert peak > 1.0
        assert np.linalg.norm(loads[:, part], axis=1).max() == pytest.approx(peak, rel=1e-3)
        assert np.linalg.norm(interfaces[:, part] - loads[:, part], axis=1).max() < 4e-3 * peak


def test_the_finger_that_follows_is_locked_in_the_craft_file(tmp_path):
    assert main(["craft", str(FILES / "seven_joint_arm.urdf"), "--toml", str(tmp_path / "arm.toml")]) == 0
    modes = {joint["name"]: joint["mode"] for joint in tomllib.loads((tmp_path / "arm.toml").read_text())["joint"]}
    assert (modes["finger_joint_1"], modes["finger_joint_2"]) == ("free", "locked")
