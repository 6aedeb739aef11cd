"""What a berthing asked of the arm against what it can hold: joints by an independent library, outcome and line for people."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED
from hil_server.judge.arm_margin import arm_margin, in_words
from hil_server.judge.run import Run
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.report.run_page import page
from rt_kernels.layout import BITS, CODES
from rt_kernels.multibody.tree import Tree

CONFIGURATION = """[test]
name = "latches"
[guidance]
part = "berthing"
[target_vehicle]
port_position_m = [-15.0, 0.0, 0.0]
port_angles_deg = [0.0, 0.0, 0.0]
[dynamics]
part = "manipulator_payload"
model = "canadarm2.toml"
locked_joint = "shoulder_roll"
"""
AUX = (("arm_q", "rad", "", 7), ("arm_motor_torque", "N.m", "", 7), ("arm_wrench_E", "N,N.m", "", 6), ("arm_X_NE", "m,-", "", 7),
       ("arm_X_NO", "m,-", "", 7), ("arm_deflection", "m,rad", "", 6))  # fmt: skip
ANGLES = np.radians([0.0, 20.0, -60.0, 100.0, -50.0, 10.0, 0.0])
LIMIT = 1.266 * 1842.0 * 0.85  # motor torque through gear and efficiency, N.m
BASE = np.array([-22.0, 4.0, 1.5, *Rotation.from_euler("xyz", [10.0, -20.0, 30.0], degrees=True).as_quat()])
TOUCH, CAPTURE, END = 10.0, 16.0, 20.0


def pressed(force=80.0, captured=True, blow=0.0, asked=0.019):
    """20 s at 100 Hz: contact from 10 s on, pressed with `force` until the capture; one tick of `blow` at the touch."""
    tree = Tree.from_toml(SHIPPED / "manipulators" / "canadarm2.toml", gravity=(0.0, 0.0, 0.0))
    R, p = tree.pose(ANGLES, "tip")
    O = Rotation.from_quat(BASE[3:])
    X_NE = np.concatenate([BASE[:3] + O.apply(p), (O * Rotation.from_matrix(R)).as_quat()])
    t = np.arange(round(100 * END)) * 0.01
    r = np.zeros(len(t), record_dtype(40))
    r["tick"], r["time_ns"], r["periods"], r["trip_tick"] = np.arange(len(t)), np.arange(len(t)) * 10_000_000, 1, -1
    r["motion"], r["X_TA"][:, 6] = CODES["motion"]["free"], 1.0
    touching = (t >= TOUCH) & ((t < CAPTURE) | (not captured))
    r["contact"], r["F_T"][:, 0] = touching, np.where(touching, force, 0.0)
    r["F_T"][np.searchsorted(t, TOUCH), 0] += blow
    r["operator_rate"][:, 0] = asked
    r["first_contact_time"], r["capture_time"] = np.where(t >= TOUCH, TOUCH, -1.0), np.where((t >= CAPTURE) & captured, CAPTURE, -1.0)
    r["aux"][:, :7], r["aux"][:, 20:27], r["aux"][:, 27:34] = ANGLES, X_NE, BASE
    r["aux"][:, 7:14] = [0.0, 0.6, 0.1, 0.0, 0.0, 0.0, 0.0]
    # the wrench at the end effector that holds the force at the port, E axes
    along = O.inv().apply([-1.0, 0.0, 0.0])
    lever = np.cross(O.inv().apply(np.array([-15.0, 0.0, 0.0]) - X_NE[:3]), along)
    wrench = np.concatenate([R.T @ along, R.T @ lever])
    r["aux"][:, 14:20] = np.where(touching[:, None], force * wrench, 0.0)
    return r


@pytest.fixture(scope="module")
def log(write_run):
    def make(name, **keys):
        header = {"configuration": {"configuration.toml": CONFIGURATION}, "aux": AUX, "period_ns": 10_000_000}
        return read_log(write_run(pressed(**keys), name, **header))

    return make


def independent_torques(direction=(1.0, 0.0, 0.0), twist=(0.0, 0.0, 0.0)):
    """Per newton at the port in a direction, with a moment per newton, N.m: Pinocchio's Jacobian of the same chain, joint by joint."""
    O = Rotation.from_quat(BASE[3:])
    X_NE = pressed()["aux"][0, 20:27]
    along = O.inv().apply(-np.array(direction))
    lever = np.cross(O.inv().apply(np.array([-15.0, 0.0, 0.0]) - X_NE[:3]), along) - O.inv().apply(twist)
    model = pin.Model()
    axes = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    joint = 0
    for axis, offset in (("x", (1.3589, 0, 0)), ("z", (0, 0, 0.7026)), ("y", (0, -0.5692, 0)), ("y", (7.11, -0.475, 0)),
                         ("y", (7.11, 0, 0)), ("z", (0, -0.5692, 0)), ("x", (0, 0, -0.7026))):  # fmt: skip
        joint = model.addJoint(joint, axes[axis](), pin.SE3(np.eye(3), np.array(offset, float)), str(joint))
    frame = model.addFrame(pin.Frame("tip", joint, 0, pin.SE3(np.eye(3), np.array([1.3589, 0, 0])), pin.FrameType.OP_FRAME))
    J = pin.computeFrameJacobian(model, model.createData(), ANGLES, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    return np.abs(J.T @ np.concatenate([along, lever]))


def test_what_the_joints_can_hold_is_that_of_an_independent_library(log):
    found, torques = arm_margin(Run(log("held"))), independent_torques()
    torques[0] = 0.0  # locked: its brake holds
    names = list(found["joints"])
    assert found["available_n"] == pytest.approx(LIMIT / torques.max(), rel=1e-9)
    assert found["limit"] == f"{names[int(torques.argmax())]} joint"
    np.testing.assert_allclose(list(found["joints"].values()), 80.0 * torques / LIMIT, rtol=1e-9)
    assert found["asked_n"] == pytest.approx(80.0, rel=1e-6)
    assert found["margin"] == pytest.approx(found["available_n"] / 80.0)
    assert found["motors"]["shoulder_yaw"] == pytest.approx(0.6 / 1.266)
    assert found["outcome"] == "captured" and found["contact_before_capture"]


def test_the_force_counts_by_its_norm_with_its_moment_and_until_the_head_is_at_the_bottom(write_run):
    """30 N along and 40 N across with 10 N.m about X; a blow of 900 N against the bottom, two seconds before the latches catch."""
    r = pressed(force=30.0)
    t = r["time_ns"] * 1e-9
    r["F_T"][r["contact"] != 0, 1], r["F_T"][r["contact"] != 0, 3] = 40.0, 10.0
    bottom = t >= CAPTURE - 2.0
    r["signal_discrete"] = np.where(bottom, BITS["mechanism_signal"]["DK2"], 0)
    r["F_T"][bottom & (t < CAPTURE), 0] = 900.0
    found = arm_margin(Run(read_log(write_run(r, aux=AUX, period_ns=10_000_000, configuration={"configuration.toml": CONFIGURATION}))))
    torques = independent_torques((0.6, 0.8, 0.0), (0.2, 0.0, 0.0))
    torques[0] = 0.0
    assert found["asked_n"] == pytest.approx(50.0, rel=1e-6)
    assert found["available_n"] == pytest.approx(LIMIT / torques.max(), rel=1e-9)


def test_a_blow_is_not_held_by_the_arm(log):
    """5 kN for a tick of 10 ms: 25 N over two seconds, no more."""
    assert arm_margin(Run(log("blow", blow=5000.0)))["asked_n"] == pytest.approx((0.01 * 5080.0 + 1.99 * 80.0) / 2.0, rel=0.01)


def test_an_arm_that_presses_and_does_not_capture_has_stalled(log):
    found = arm_margin(Run(log("stall", force=900.0, captured=False)))
    assert found["outcome"] == "stalled" and found["margin"] < 1.0
    assert "did not overcome the latches" in in_words(found) and found["limit"] in in_words(found)
    # no one asks for more: it has not stalled, it was let be
    assert arm_margin(Run(log("let be", captured=False, asked=0.0)))["outcome"] == "not_captured"


def test_report_shows_joints_motors_and_the_arm_that_gives(log):
    text = page(Run(log("shown")))
    assert "shoulder_yaw" in text and "gear, % of its torque" in text and "N can be held" in text


def test_a_run_without_an_arm_has_no_margin(bounce_log):
    assert arm_margin(Run(bounce_log)) is None




def test_a_gentle_capture_before_the_first_contact(write_run):
    """The latches catch below the threshold of a contact; the force rises only when the load swings back. Then the first contact comes
    after the capture, and what was asked of the arm is the little before it."""
    r = pressed(force=4.0)
    t = r["time_ns"] * 1e-9
    r["contact"], r["F_T"][t >= 17.0, 0] = t >= 17.0, 40.0
    r["first_contact_time"] = np.where(t >= 17.0, 17.0, -1.0)
    for records in (r, with_contact_after_the_flight(r)):
        log = read_log(write_run(records, aux=AUX, configuration={"configuration.toml": CONFIGURATION}))
        found = arm_margin(Run(log))
        assert found["outcome"] == "captured" and found["contact_before_capture"] is False
        assert found["asked_n"] == pytest.approx(4.0, abs=0.05) and "captured" in found["text"]
        assert "not available: " not in page(Run(log)).replace("how long it lasts is not available", "")


def with_contact_after_the_flight(r):
    """The same with the loop open from 16.5 s on, before the first contact."""
    r = r.copy()
    r["motion"][r["time_ns"] >= 16_500_000_000] = CODES["motion"]["follow_profile"]
    return r
