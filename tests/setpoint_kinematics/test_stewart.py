"""Relative pose to the platform's pose and legs: lead, offset, mounting, bumpless change of the motion's source, against plain NumPy."""

import numpy as np
import pytest

from rt_kernels.layout import BITS, CODES
from rt_kernels.setpoint_kinematics.stewart import StewartSetpoints
from tests.first_sample import first_sample
from tests.stewart import plain_kinematics as plain

PERIOD, BLEND = 1e-3, 0.3
STATUS, MOTION = BITS["setpoint_kinematics_status"], CODES["motion"]
V_TA = np.array([0.1, -0.02, 0.03, 0.02, 0.05, -0.04])
A_TA = np.array([0.4, 0.3, -0.6, -0.2, 0.5, 0.7])
START = [0.02, -0.05, 0.08, 0.05, -0.08, 0.11]


def part(platform=None, mounting=None, **keys):
    return StewartSetpoints(period_s=PERIOD, platform=platform or plain.platform(), mounting=mounting or plain.mounting(), **keys)


def around(mounting, d=START):
    """T_TA of a platform moved by d from its neutral pose."""
    return plain.relative(mounting, plain.moved(plain.matrix_of(plain.platform().neutral_pose), np.asarray(d)))


def sample(T_TA, V=0.0, A=0.0, **fields):
    return first_sample(X_TA=plain.pose(T_TA), V_TA=V, A_TA=A, **fields)


def asked_for(s, mounting):
    """T_TA that the legs of the sample give."""
    return plain.relative(mounting, plain.matrix_of(s["X_WP"][0]))


@pytest.mark.parametrize(("unit", "cell"), plain.MOUNTINGS)
def test_pose_and_twist_go_through_the_mounting_to_the_legs(unit, cell):
    platform, mounting = plain.platform(), plain.mounting(unit, cell)
    T_TA = around(mounting)
    s = sample(T_TA, V_TA, A_TA)
    part(platform, mounting).step(s)
    T_WP = plain.platform_of(mounting, T_TA)
    plain.same_pose(s["X_WP"][0], T_WP)
    V_WP = plain.twist_through(lambda T: plain.platform_of(mounting, T), T_TA, V_TA)
    np.testing.assert_allclose(s["V_WP"][0], V_WP, rtol=0, atol=1e-8)
    legs = plain.lengths(platform, T_WP)
    np.testing.assert_allclose(s["leg_demand"][0], legs, rtol=0, atol=1e-9)
    np.testing.assert_allclose(s["leg_rate_demand"][0], plain.rates(platform, T_WP, V_WP), rtol=0, atol=1e-8)
    assert s["stroke_margin"][0] == pytest.approx(np.minimum(legs - 3.0, 5.0 - legs).min(), abs=1e-9)
    assert s["condition"][0] == pytest.approx(plain.condition(platform, T_WP), rel=1e-6)
    assert s["setpoint_kinematics_status"][0] == 0


def test_lead_and_offset_move_the_command():
    """X_TA moved by l1 V + l2 A + offset in T axes, V_TA by l1 A; the first of the leads is the force's and moves nothing."""
    mounting = plain.mounting()
    T_TA, lead, offset = around(mounting), (0.7, 0.025, 0.003), np.array([4e-3, -3e-3, 2e-3, 0.03, 0.02, -0.04])
    s = sample(T_TA, V_TA, A_TA, lead=lead, lead_offset=offset)
    part(mounting=mounting).step(s)
    T_cmd = plain.moved(T_TA, lead[1] * V_TA + lead[2] * A_TA + offset)
    plain.same_pose(s["X_WP"][0], plain.platform_of(mounting, T_cmd))
    V_WP = plain.twist_through(lambda T: plain.platform_of(mounting, T), T_cmd, V_TA + lead[1] * A_TA)
    np.testing.assert_allclose(s["V_WP"][0], V_WP, rtol=0, atol=1e-8)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_out_of_reach_is_reported_at_the_end_of_the_stroke(way):
    """Along the axis until the first leg stands a tenth of a millimetre before, then behind the end of its stroke."""
    platform, mounting = plain.platform(), plain.mounting()
    neutral = plain.matrix_of(platform.neutral_pose)

    def margin(x):
        legs = plain.lengths(platform, plain.moved(neutral, np.array([x, 0, 0, 0, 0, 0])))
        return np.minimum(legs - 3.0, 5.0 - legs).min()

    inside, outside = 0.0, 3.0 * way
    assert margin(outside) < 0.0
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if margin(middle) > 0.0 else (inside, middle)
    for x, status in ((inside - 1e-4 * way, 0), (outside + 1e-4 * way, STATUS["out_of_reach"])):
        s = sample(around(mounting, [x, 0, 0, 0, 0, 0]))
        part(platform, mounting).step(s)
        assert s["setpoint_kinematics_status"][0] & STATUS["out_of_reach"] == status
        assert s["stroke_margin"][0] == pytest.approx(margin(x), abs=1e-9)


def test_near_singular_is_reported():
    mounting = plain.mounting()
    T_TA = around(mounting)
    value = plain.condition(plain.platform(), plain.platform_of(mounting, T_TA))
    for limit, status in ((1.001 * value, 0), (0.999 * value, STATUS["near_singular"])):
        s = sample(T_TA)
        part(plain.platform(condition_max=limit), mounting).step(s)
        assert s["setpoint_kinematics_status"][0] == status


@pytest.mark.parametrize(("field", "i"), [("X_TA", 1), ("X_TA", 5), ("V_TA", 2), ("lead_offset", 3)])
def test_a_command_that_is_no_number_is_reported(field, i):
    mounting = plain.mounting()
    s = sample(around(mounting))
    s[field][0, i] = np.nan
    part(mounting=mounting).step(s)
    assert s["setpoint_kinematics_status"][0] & STATUS["not_finite"]


class Run:
    """A stage whose commands are given tick by tick as constants or as motions T(t), V."""

    def __init__(self, T_TA, V=0.0, blend=BLEND):
        self.mounting = plain.mounting()
        self.stage, self.s = part(mounting=self.mounting, blend_s=blend), sample(T_TA, V, motion=MOTION["follow_profile"])

    def tick(self, T_TA, V=0.0, periods=1, **fields):
        self.s["X_TA"], self.s["V_TA"], self.s["periods"] = plain.pose(T_TA), V, periods
        for name, value in fields.items():
            self.s[name] = value
        self.stage.step(self.s)
        return asked_for(self.s, self.mounting)


def minimum_jerk(u):
    return u**3 * (10.0 - 15.0 * u + 6.0 * u * u)


STEP = np.array([0.02, -0.01, 0.015, 0.03, -0.04, 0.05])


@pytest.mark.parametrize(("unit", "cell"), plain.MOUNTINGS)
def test_a_changed_source_is_blended(unit, cell):
    """The new source stands elsewhere: in its first tick the command is the old one carried on with its velocity; the offset then goes
    by the minimum-jerk profile, and after `blend_s` nothing of it is left."""
    run = Run(np.eye(4))
    run.mounting = plain.mounting(unit, cell)
    run.stage = part(mounting=run.mounting, blend_s=BLEND)
    old = around(run.mounting)
    new = plain.moved(old, STEP)
    run.tick(plain.moved(old, -PERIOD * V_TA), V_TA)
    run.tick(old, V_TA)
    carried_on = plain.moved(old, PERIOD * V_TA)
    offset = plain.difference(new, carried_on)
    for k in range(400):
        got = run.tick(new, motion=MOTION["close_loop"])
        u = min(k * PERIOD / BLEND, 1.0)
        left = (1.0 - minimum_jerk(u)) * offset
        np.testing.assert_allclose(got, plain.moved(new, left), rtol=0, atol=1e-9)


def test_both_quaternions_of_an_attitude_are_one():
    """The new source may give the other of the two: the way that is taken back is the short one all the same."""
    one, other = Run(np.eye(4)), Run(np.eye(4))
    old = around(one.mounting)
    new = plain.moved(old, STEP)
    for run in (one, other):
        run.tick(old)
    for _ in range(100):
        first = one.tick(new, motion=MOTION["close_loop"])
        other.s["motion"], other.s["V_TA"], other.s["X_TA"] = MOTION["close_loop"], 0.0, plain.pose(new) * [1, 1, 1, -1, -1, -1, -1]
        other.stage.step(other.s)
        np.testing.assert_allclose(asked_for(other.s, other.mounting), first, rtol=0, atol=1e-12)


def test_the_same_step_without_a_change_of_source_is_taken_at_once():
    run = Run(np.eye(4))
    old = around(run.mounting)
    run.tick(old)
    np.testing.assert_allclose(run.tick(plain.moved(old, STEP)), plain.moved(old, STEP), rtol=0, atol=1e-9)


def test_rates_are_those_of_the_blended_legs():
    """leg_rate_demand is the derivative of leg_demand, also while an offset is taken back: central differences over the blend."""
    run = Run(np.eye(4))
    old = around(run.mounting)
    run.tick(old)
    legs, rates = [], []
    for _ in range(310):
        run.tick(plain.moved(old, STEP), motion=MOTION["close_loop"])
        legs.append(run.s["leg_demand"][0].copy())
        rates.append(run.s["leg_rate_demand"][0].copy())
    legs, rates = np.array(legs), np.array(rates)
    assert np.abs(rates).max() > 0.05
    # of a central difference at the profile's greatest jerk
    own_error = PERIOD**2 / 6.0 * 60.0 / BLEND**3 * np.abs(legs[-1] - legs[0]).max()
    np.testing.assert_allclose((legs[2:] - legs[:-2]) / (2.0 * PERIOD), rates[1:-1], rtol=0, atol=1.5 * own_error)


def test_a_source_that_changes_again_amid_a_blend_makes_no_step():
    run = Run(np.eye(4))
    old = around(run.mounting)
    places = [old, plain.moved(old, STEP), plain.moved(old, -2.0 * STEP)]
    before, largest = run.tick(old), 0.0
    for k in range(1000):
        source = 1 if k < 130 else 2
        got = run.tick(places[source], motion=(MOTION["follow_profile"], MOTION["close_loop"], MOTION["follow_profile"])[source])
        largest, before = max(largest, np.abs(plain.difference(before, got)).max()), got
    assert 0.0 < largest < 2e-3  # a minimum-jerk way of 0.15 rad in 0.3 s is at its fastest 0.94 mrad a tick
    np.testing.assert_allclose(got, places[2], rtol=0, atol=1e-9)


def test_periods_that_were_skipped_count_in_the_blend():
    one, three = Run(np.eye(4)), Run(np.eye(4))
    old = around(one.mounting)
    new = plain.moved(old, STEP)
    for run in (one, three):
        run.tick(old)
        run.tick(new, motion=MOTION["close_loop"])
    for _ in range(20):
        for _ in range(3):
            single = one.tick(new)
        triple = three.tick(new, periods=3)
    # the profile is taken where the tick before ended: after 60 periods in the one run, after 61 in the other
    triple = three.tick(new)
    offset = plain.difference(new, old)
    np.testing.assert_allclose(single, plain.moved(new, (1.0 - minimum_jerk(60 * PERIOD / BLEND)) * offset), rtol=0, atol=1e-9)
    np.testing.assert_allclose(triple, plain.moved(new, (1.0 - minimum_jerk(61 * PERIOD / BLEND)) * offset), rtol=0, atol=1e-9)
