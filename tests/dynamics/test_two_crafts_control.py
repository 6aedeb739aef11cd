"""What the control commands to joints: torques, targets of servos, of either craft; names by which it finds them."""

from dataclasses import replace

import numpy as np
import pytest

from tests.dynamics.test_two_crafts import ANGLES, AUX, MODE, PERIOD, arm, make, pair
from tests.dynamics.test_two_crafts_joints import change, command, equipped, fly, resultant, settings

STILL = np.zeros(6)
LOOSE = {"stiffness": 0.0, "damping": 0.0}
SERVO = {"mode": "driven", "servo_stiffness": 3e6, "damping": 5e4, "rate": 0.2, "upper": 0.5}
orders = pytest.mark.parametrize("order", ["first_order", "second_order"])


def crafts(order, **by_joint):
    """The arm with these settings of its joints, others locked, on both craft."""
    held = {name: {"mode": "locked"} for name in ("link0", "link1", "link2") if name not in by_joint}
    craft = replace(settings(arm(**LOOSE), **held, **by_joint), step=order)
    return pair(craft, craft)


def of(aux, what, joint):
    return aux[:, AUX[f"joint_{what}"]][:, joint]


@orders
def test_a_torque_acts_on_the_joint_that_is_named(order):
    """And on no other, not beyond the drive's effort, and only while it is commanded."""
    vehicles = crafts(order, link1={"mode": "driven", "effort": 9.0})
    torques = np.array([5.0, 7.0, 5.0, 5.0, -20.0, 5.0, *[0.0] * 34])
    _, aux = fly(make(vehicles), 300, STILL, joint_target=torques, joint_controlled=lambda k: 0b010010 if k < 200 else 0)
    np.testing.assert_allclose(of(aux, "torque", 1)[1:201], 7.0, rtol=1e-12)
    np.testing.assert_allclose(of(aux, "torque", 4)[1:201], -9.0, rtol=1e-12)
    assert not of(aux, "torque", 1)[201:].any() and not of(aux, "torque", 4)[201:].any()
    assert all((of(aux, "position", joint) == ANGLES[joint % 3]).all() for joint in (0, 2, 3, 5))
    assert of(aux, "rate", 1)[200] > 1e-3 > -1e-3 > of(aux, "rate", 4)[200]


@orders
def test_a_servo_goes_to_its_target_as_fast_as_its_drive(order):
    """A ramp of that slope, behind which the joint lags by what its own damper asks of the spring; then its stop, where it stays when it is
    left alone."""
    vehicles = crafts(order, link0=SERVO)
    targets = np.array([0.9, *[0.0] * 39])
    _, aux = fly(make(vehicles), 1500, STILL, joint_target=targets, joint_controlled=lambda k: 1 if k < 1200 else 0)
    x, rate = of(aux, "position", 0), of(aux, "rate", 0)
    # the spring is taken between the place at the beginning, or in the middle, of a step and the reference at its end
    ahead = {"first_order": PERIOD, "second_order": 0.5 * PERIOD}[order]
    assert x[900] == pytest.approx(ANGLES[0] + 0.2 * (0.9 + ahead - SERVO["damping"] / SERVO["servo_stiffness"]), abs=2e-6)
    assert rate[900] == pytest.approx(0.2, rel=1e-4)
    np.testing.assert_allclose(x[1300:], 0.5, atol=1e-5)


@orders
def test_the_reference_begins_where_its_path_stands(order):
    """A target amid the path of a change of mode, then the path's own end: no jump of the servo."""
    joint = change("link0", "driven", target=0.5, time_s=1.0)
    part = make(crafts(order, link0=SERVO | {"rate": 1e3}), joint_changes=[joint])
    free = make(crafts(order, link0=SERVO | {"rate": 1e3}), joint_changes=[joint])
    _, expected = fly(free, 500, STILL)
    here = of(expected, "position", 0)[300]
    _, aux = fly(part, 500, STILL, joint_target=np.array([here, *[0.0] * 39]), joint_controlled=lambda k: int(k >= 300))
    assert (of(aux, "position", 0)[:301] == of(expected, "position", 0)[:301]).all()
    assert np.abs(np.diff(of(aux, "position", 0))).max() < 2.0 * np.abs(np.diff(of(expected, "position", 0))).max()
    assert of(aux, "position", 0)[-1] == pytest.approx(here, abs=0.02)


@orders
@pytest.mark.parametrize("mode", ["locked", "free", "given"])
def test_a_joint_that_is_not_driven_takes_no_command(order, mode):
    vehicles = crafts(order, link0={"mode": mode})
    commanded, left = (fly(make(vehicles), 100, STILL, joint_target=np.full(40, 0.7), joint_controlled=mask) for mask in (0xFFF, 0))
    assert (commanded[1] == left[1]).all() and (commanded[0]["X_TA"] == left[0]["X_TA"]).all()


def test_skipped_periods_are_steps_of_the_reference(order="first_order"):
    vehicles = crafts(order, link0=SERVO)
    fields = {"joint_target": np.array([0.9, *[0.0] * 39]), "joint_controlled": 1}
    _, each = fly(make(vehicles), 400, STILL, **fields)
    _, fourth = fly(make(vehicles), 100, STILL, periods=4, **fields)
    np.testing.assert_allclose(of(fourth, "position", 0)[1:], of(each, "position", 0)[4::4], atol=1e-12)


def test_the_operator_takes_the_joint_away():
    vehicles = crafts("first_order", link1={"mode": "driven"})
    _, aux = fly(make(vehicles), 200, STILL, joint_target=np.full(40, 3.0), joint_controlled=2, **command(100, 0, 1, MODE["locked"]))
    assert of(aux, "torque", 1)[50] == pytest.approx(3.0, rel=1e-12) and np.ptp(of(aux, "position", 1)[110:]) == 0.0


def test_names_for_a_control():
    """Joints that are driven at some time, and actuators with what they do to a rigid craft; a wheel is not a driven joint."""
    craft = equipped()
    part = make(pair(craft, settings(arm(), link0={"mode": "driven"})),
                joint_changes=[{"craft": "target", "joint": "link2", "mode": "driven", "event": "capture"}])  # fmt: skip
    assert part.driven == ("target link0", "target link2")
    assert part.named["joint_rate"] == part.named["joint_target"] == (part.joints, 1)
    assert part.named["sensor_rate"] == (part.sensors, 3) and part.named["interface_wrench"] == (part.interfaces, 6)
    assert part.named["wheel_rate_A"] == (("z",), 1) and part.named["thruster_A"] == (("aft", "side"), 1)
    assert part.named["wheel_torque_T"] == ((), 1) and part.actuators["thruster_T"] == ()
    (wrench, *limits), = part.actuators["wheel_torque_A"]
    # the disc: 0.2 about all axes and 0.15 more about its own
    assert limits == pytest.approx([-0.5, 0.5, 0.35, 100.0]) and wrench == pytest.approx([0.0, 0.0, 0.0, 0.0, -0.6, -0.8])
    thrusters = part.actuators["thruster_A"]
    assert [row[1:] for row in thrusters] == [(0.0, 200.0, 0.0, 0.0), (0.0, 20.0, 0.0, 0.0)]
    np.testing.assert_allclose(np.column_stack([row[0] for row in thrusters]), resultant(craft), atol=1e-12)
